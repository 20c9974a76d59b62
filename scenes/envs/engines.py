"""Engines of tasks, which advance the coordinates by a control period: three ways to compute accelerations, one RK4."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.typing import DTypeLike

from ...engine.algebra.fence import fence
from ...engine.dynamics.aba import aba
from ...engine.dynamics.passive import passive_forces
from ...engine.planar.accelerations import chain_accelerations
from ...engine.planar.angles import chain_angular, chain_state
from ...engine.planar.model import ChainDrive
from ..chains.spec import ChainSpec
from ..compile import compile_scene
from ..spec import SceneSpec
from .closed_forms import Accelerate, Components, Rods, closed_form, smooth_loss
from .task import Advance

Factory = Callable[[DTypeLike], Accelerate]  # dtype -> accelerations


@dataclass(frozen=True)
class Smooth:
    """An engine without events: `substeps` steps of RK4 in each period dt [s], at constant forces."""

    accelerations: Factory
    dt: float
    substeps: int

    def __call__(self, dtype: DTypeLike) -> Advance:
        accelerate, h = fence(self.accelerations(dtype)), self.dt / self.substeps

        def advance(q: Array, v: Array, push: Array) -> tuple[Array, Array]:
            u = components(push.astype(dtype))

            def substep(_: Array, at: tuple[Components, Components]) -> tuple[Components, Components]:
                return classical(lambda q, v: accelerate(q, v, u), *at, h)

            end = lax.fori_loop(0, self.substeps, substep, (components(q), components(v)))
            q_next, v_next = (jnp.stack(x, -1) for x in end)
            return q_next, v_next

        return advance


def components(x: Array) -> Components:
    return tuple(x[..., i] for i in range(x.shape[-1]))


def classical(
    accelerate: Callable[[Components, Components], Components], q: Components, v: Components, h: float
) -> tuple[Components, Components]:
    """One step of the classical Runge-Kutta method of order 4 for q'' = a(q, q')."""

    def along(x: Components, slope: Components, by: float) -> Components:
        return jax.tree.map(lambda a, b: a + by * b, x, slope)

    a1 = accelerate(q, v)
    v2 = along(v, a1, h / 2)
    a2 = accelerate(along(q, v, h / 2), v2)
    v3 = along(v, a2, h / 2)
    a3 = accelerate(along(q, v2, h / 2), v3)
    v4 = along(v, a3, h)
    a4 = accelerate(along(q, v3, h), v4)

    def mean(x: Components, *slopes: Components) -> Components:
        return jax.tree.map(lambda x, a, b, c, d: x + h / 6 * (a + 2 * b + 2 * c + d), x, *slopes)

    return mean(q, v, v2, v3, v4), mean(v, a1, a2, a3, a4)


def smooth(dt: float, substeps: int, **ways: Factory) -> dict[str, Smooth]:
    """Engines by name."""
    return {name: Smooth(way, dt, substeps) for name, way in ways.items()}


def formulas(rods: Rods) -> Factory:
    """Accelerations by closed forms: the fastest."""
    return lambda dtype: closed_form(rods)


def planar(rods: Rods) -> Factory:
    """Accelerations by Wawrzynski's recursion of planar chains of point masses, at the ends of their links."""
    if rods.cart is not None or rods.centre != rods.length or any(rods.inertia):
        raise ValueError(f"planar: point masses at the ends of links on a fixed pivot, not {rods}")
    sign, first = (-1.0, np.pi / 2) if rods.upright else (1.0, 0.0)  # angles of chains are from the horizontal

    spec = ChainSpec.of(rods.length, (1.0, *rods.mass), gravity=(0.0, -rods.gravity)).with_joint(0, guided=True)

    def build(dtype: DTypeLike) -> Accelerate:
        chain, _ = compile_scene(spec, dtype)

        def accelerate(q: Components, v: Components, push: Components) -> Components:
            angle, rate, torque = (sign * jnp.stack(x, -1) for x in (q, v, push))
            at = chain_state(chain, angle.at[..., 0].add(first), rate)
            drive = ChainDrive(torque=jnp.concatenate([torque, jnp.zeros_like(torque[..., :1])], -1))
            moved = chain_accelerations(chain, at, drive)
            return components(sign * chain_angular(chain, at, moved.a))

        return accelerate

    return build


def tree(scene: SceneSpec, loss: tuple[float, ...] | None = None) -> Factory:
    """Accelerations by the articulated-body algorithm, with the joints' friction; loss: replaces it."""

    def build(dtype: DTypeLike) -> Accelerate:
        model, _ = compile_scene(scene, dtype=dtype)
        if loss is not None:
            model = model.replace(loss=jnp.array(loss, model.loss.dtype))

        def accelerate(q: Components, v: Components, push: Components) -> Components:
            angles, rates = jnp.stack(q, -1), jnp.stack(v, -1)
            passive = passive_forces(model, angles, rates) - smooth_loss(model.loss, rates)
            return components(aba(model, angles, rates, jnp.stack(push, -1) + passive))

        return accelerate

    return build
