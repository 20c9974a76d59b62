"""Cases of the contact suite with checks: random impacts, a ball that rests or strikes, a stack."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import carom
from carom.contact.laws.table import LAWS
from carom.contact.resolve import Impact
from carom.engine.model import Model
from carom.engine.results import IMPACT_UNFINISHED, OK
from carom.engine.state import State
from carom.scenes.library.registry import library_scene
from carom.tests.oracles.single_step import Stepped, single_step

SCENES = ("ball", "stack")  # the other parts of the suite
STEP = 1 / 240  # [s]


def parts(only: str) -> tuple[list[str], bool, bool]:
    """Return the parts of the suite with a text in their name: laws; whether the ball; whether the stack."""
    ball, stack = (only in name for name in SCENES)
    return [law for law in LAWS if only in law], ball, stack


# -- single impacts --------------------------------------------------------------------------------------------------

ROUNDING = {"f32": 2e-4, "f64": 1e-9}  # relative to the impact's size; some of 65536 have a nearly singular K


class ImpactCase(NamedTuple):
    """K (n, 3, 3) [1/kg], u (n, 3) [m/s], mu (n,) and e (n,) of possible impacts of bodies; all differ."""

    K: Any
    u: Any
    mu: Any
    e: Any


def impact_case(dtype: Any, count: int, seed: int = 0) -> ImpactCase:
    from carom.tests.oracles.random_impacts import random_impacts

    case = ImpactCase(*random_impacts(count, np.random.default_rng(seed)))
    assert len(np.unique(case.u[:, 2])) == count, "impacts must differ from lane to lane"
    return ImpactCase(*(jnp.asarray(x, dtype) for x in case))


def by_law(law: str) -> Callable[..., Impact]:
    """Return carom.resolve_impact as a function of arrays only."""

    def resolve(K: Any, u: Any, mu: Any, e: Any) -> Impact:
        return carom.resolve_impact(K, u, friction=mu, restitution=e, law=law)

    return resolve


@dataclass(frozen=True)
class ImpactCheck:
    """Result of the check of impacts.

    gain: part of the impacts that gained energy.
    largest: largest energy gained, in units of |p| |u|.
    fine: whether the promises of every law hold, and Stronge's, that no energy is gained.
    """

    gain: float
    largest: float
    fine: bool


def check_impacts(law: str, label: str, case: ImpactCase, out: Impact) -> ImpactCheck:
    K, u, mu, _ = (np.asarray(x, np.float64) for x in case)
    after, p = np.asarray(out.u, np.float64), np.asarray(out.impulse, np.float64)
    tolerance = ROUNDING[label]
    slip, pushed = np.linalg.norm(p[:, :2], axis=1), np.linalg.norm(p, axis=1)
    scale = np.linalg.norm(u, axis=1) + np.abs(K).max((1, 2)) * pushed
    error = np.linalg.norm(after - u - np.einsum("nij,nj->ni", K, p), axis=1) / scale
    size = pushed * scale
    gained = (p * (u + after)).sum(1) / 2 / np.where(size > 0, size, 1)
    promises = np.all(after[:, 2] >= -tolerance * scale), np.all(p[:, 2] > 0), np.all(error <= tolerance)
    fine = all(promises) and bool(np.all(slip <= mu * p[:, 2] + tolerance * pushed))
    fine &= not (np.asarray(out.code) == IMPACT_UNFINISHED).any()
    fine &= not (gained[np.asarray(out.code) == OK] > 100 * tolerance).any()  # the code tells gains of energy
    if law == "stronge":
        fine &= bool(np.all(gained <= tolerance))
    return ImpactCheck(float(np.mean(gained > tolerance)), float(gained.max()), bool(fine))


# -- a ball on the ground --------------------------------------------------------------------------------------------

RESTITUTION, FALL = 0.5, 2.0  # FALL: least speed [m/s]


def ball_case(dtype: Any, lanes: int | None) -> tuple[Model, dict[str, State]]:
    """Return a ball and its states: in the air, at rest on the ground, striking it; every lane differs."""
    b = carom.SceneBuilder()
    b.add_plane(material="ground")
    b.add_body("ball", [carom.Sphere(0.5)], position=(0.0, 0.0, 0.5), material="ball")
    b.set_pair("ground", "ball", friction=0.3, restitution=RESTITUTION)
    model, state = carom.compile_scene(b.build(), dtype=dtype)
    rng = np.random.default_rng(0)
    v, sideways = rng.normal(size=(lanes or 1, 6)), rng.normal(size=(lanes or 1, 2))
    v[:, 5] = -FALL - rng.uniform(size=len(v))

    def at(height: float, v: np.ndarray) -> State:
        q = np.concatenate([sideways, np.full((len(v), 1), height), np.tile([1.0, 0, 0, 0], (len(v), 1))], 1)
        if lanes is None:
            return replace(state, q=jnp.asarray(q[0], dtype), v=jnp.asarray(v[0], dtype))
        return replace(carom.tile(state, lanes), q=jnp.asarray(q, dtype), v=jnp.asarray(v, dtype))

    return model, {"air": at(1.5, v), "rest": at(0.5, 0 * v), "struck": at(0.5, v)}


def one_step(model: Model, state: State) -> Stepped:
    return single_step(model, state, jnp.asarray(STEP, state.q.dtype))


def ball_is_right(label: str, where: str, before: State, after: Stepped) -> bool:
    """Return whether a ball falls in air or stays at rest without impacts, or leaves an impact by its restitution."""
    v, fall = np.asarray(before.v, np.float64)[..., 5], -9.81 * STEP
    expected = {"air": v + fall, "rest": v, "struck": -RESTITUTION * v + fall}[where]
    counted = np.asarray(after.impacts.count) == int(where == "struck")
    error = np.abs(np.asarray(after.state.v, np.float64)[..., 5] - expected)
    well = (np.asarray(after.code) == OK).all()
    return bool(counted.all() and well and error.max() <= {"f32": 1e-5, "f64": 1e-9}[label])


# -- a stack of boxes ------------------------------------------------------------------------------------------------

BOXES = 10
DRIFT = 1e-3  # [m]
SIDEWAYS = 0.01  # [m] displacement of boxes in a batch, so that no two lanes are alike


def stack_case(dtype: Any, lanes: int | None = None) -> tuple[Model, State]:
    """Return the library's stack; in a batch each lane's boxes have different small displacements."""
    model, state = carom.compile_scene(library_scene("stack", n=BOXES), dtype=dtype)
    if lanes is None:
        return model, state
    sideways = np.zeros((lanes, BOXES, 7))
    sideways[..., :2] = np.random.default_rng(0).uniform(-SIDEWAYS, SIDEWAYS, (lanes, BOXES, 2))
    q = state.q + jnp.asarray(sideways.reshape(lanes, -1), dtype)
    return model, replace(carom.tile(state, lanes), q=q)


def stand(model: Model, state: State, steps: Any) -> tuple[State, Any]:
    """Return the state after a number of steps, and the largest result code of any."""

    def one(_: Any, carry: tuple[State, Any]) -> tuple[State, Any]:
        after = one_step(model, carry[0])
        return after.state, jnp.maximum(carry[1], after.code)

    return jax.lax.fori_loop(0, steps, one, (state, jnp.zeros(state.t.shape, jnp.int32)))


def drift(before: State, after: State) -> float:
    """Return the largest change of a coordinate of any box in any lane [m], including quaternions."""
    return float(np.abs(np.asarray(after.q, np.float64) - np.asarray(before.q, np.float64)).max())
