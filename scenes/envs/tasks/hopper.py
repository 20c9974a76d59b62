"""One-legged hopper (Raibert 1986): to hop along without falling. A task with contacts, and with events in a step."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import DTypeLike

from ....engine.state import State
from ....integrators.advance import step
from ...compile import compile_scene
from ...library.hopper import FOOT, HALF, LEG, STANDING, THRUST, TORQUE, TRUNK
from ...library.hopper import hopper as scene
from ...spec import SceneSpec
from ..sketches import INK, LINKS
from ..starts import uniform
from ..task import Advance, BatchTask, BoxSpace, Segment

PERIOD = 1 / 60  # [s]
LOW, TILT = 0.36, 0.8  # [m], [rad] hip height and pitch at which it has fallen, before the body touches the ground
BAND = 1e-5  # [m] gap band, that of single precision: that of double takes three times the work
EFFORT = np.array((TORQUE, THRUST))
ALIVE, COST = 1.0, 0.05  # reward per step, and cost of full effort of either motor


def hopper(*, friction: float = 0.9, damping: float = 5.0) -> BatchTask:
    """Hop along x as fast as possible. Actions: hip torque and leg thrust, as parts of 40 N m and 200 N, for 1/60 s.

    Observation: height of the hip, pitch, hip angle, leg; the rates of pitch, x, height, hip and leg. Reward a step:
    1 + mean speed along x [m/s] - 0.05 (torque^2 + thrust^2), as parts of the greatest. It starts above the ground,
    and ends with the hip below 0.36 m or a pitch beyond 0.8 rad.
    friction: of the ground; damping: of the leg [N s/m].
    """

    def start(key: Array) -> tuple[Array, Array]:
        off = uniform(key, 0.05, 0.0, 0.05, 0.05, 0.0, *(0.05,) * 4, 0.0)  # the leg is out, on its stop
        return off[..., :5] + jnp.array((0.0, 0.0, STANDING + 0.1, 0.0, 0.0)), off[..., 5:]

    return BatchTask(
        name="hopper",
        description="hop on one leg, as fast as may be",
        dt=PERIOD,
        max_steps=600,
        actions=BoxSpace.of(1.0, 1.0),
        observations=BoxSpace.of(*(inf,) * 9),
        start=start,
        observe=lambda q, v: jnp.concatenate([q[..., 2:3], q[..., :1], q[..., 3:], v], -1),
        push=_push,
        reward=_reward,
        ended=lambda q, v: (q[..., 2] < LOW) | (jnp.abs(q[..., 0]) > TILT),
        engines={"tree": lambda dtype: with_events(scene(friction=friction, damping=damping), dtype)},
        sketch=_sketch,
        window=(-1.2, 1.2, -0.4, 2.0),
        events=True,
    )


def with_events(spec: SceneSpec, dtype: DTypeLike) -> Advance:
    """The scene's own step, which locates impacts; the forces are its motors' efforts.

    Steps are semi-implicit: their end velocity is linear in the impulses of resting contacts, as the contact solver
    assumes. After a step of higher order the light foot under the stiff spring leaves the ground by 0.1 m/s, falls
    back, and so strikes the ground over and over all through its stance.
    """
    model, _ = compile_scene(replace(spec, gap_band=BAND), dtype=dtype)

    @jax.jit
    def advance(q: Array, v: Array, push: Array) -> tuple[Array, Array]:
        lanes = q.shape[:-1]
        q, v, effort = (x.reshape((-1, x.shape[-1]) if lanes else x.shape) for x in (q, v, push.astype(dtype)))
        after = step(
            model, State(q, v, jnp.zeros(q.shape[:-1], dtype)), dt=PERIOD, max_dt=PERIOD / 2, control=effort,
            scheme="semi_implicit", time_control="likely", max_contacts=5, throw=False,
        )  # fmt: skip
        return after.q.reshape(*lanes, -1), after.v.reshape(*lanes, -1)

    return advance


def _push(action: Array) -> Array:
    effort = jnp.clip(action, -1, 1) * EFFORT.astype(action.dtype)
    return jnp.concatenate([jnp.zeros((*effort.shape[:-1], 3), effort.dtype), effort], -1)


def _reward(q: Array, v: Array, push: Array, q_next: Array, v_next: Array) -> Array:
    part = push[..., 3:] / EFFORT.astype(push.dtype)
    return ALIVE + (q_next[..., 1] - q[..., 1]) / PERIOD - COST * (part * part).sum(-1)


def _sketch(q: np.ndarray) -> list[Segment]:
    """The hopper in a view that follows it: marks on the ground, half a metre apart, pass by."""
    pitch, x, z, hip, leg = (float(number) for number in q)
    nose = HALF * np.array((np.cos(pitch), np.sin(pitch)))
    along = np.array((np.sin(pitch + hip), -np.cos(pitch + hip)))
    knee, foot = 0.3 * along, (LEG + leg) * along

    def segment(a: np.ndarray, b: np.ndarray, radius: float, colour: tuple[float, float, float]) -> Segment:
        return float(a[0]), float(a[1]) + z, float(b[0]), float(b[1]) + z, radius, colour

    ground: Segment = (-1.5, -0.02, 1.5, -0.02, 0.02, INK)
    marks: list[Segment] = [
        (m - x % 0.5, -0.12, m - x % 0.5, -0.02, 0.01, INK) for m in np.arange(-1.0, 1.6, 0.5).tolist()
    ]
    return [
        ground, *marks, segment(foot, knee, 0.02, LINKS[2]), segment(foot, foot, FOOT, LINKS[2]),
        segment(0 * knee, knee, 0.035, LINKS[1]), segment(-nose, nose, TRUNK, LINKS[0]),
    ]  # fmt: skip
