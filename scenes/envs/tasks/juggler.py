"""A paddle that keeps balls in the air, in a vertical plane."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ....collision.shapes import Box, Sphere
from ....engine.model import Model
from ....integrators.options import Options
from ...builder import SceneBuilder
from ...joint_specs import Motor, Planar
from ...spec import SceneSpec
from ..scene_task import Period, Task
from ..sketches import INK, LINKS
from ..task import Segment

GRAVITY = 9.81
WIDTH, THICKNESS, RADIUS = 0.5, 0.02, 0.04  # [m] half the paddle's, and a ball's
PADDLE_MASS, PADDLE_INERTIA, BALL_MASS = 2.0, 0.17, 0.1  # [kg, kg m^2]
EFFORT = (5.0, 80.0, 80.0)  # largest efforts: tilt, along x, upwards [N m, N, N]
LIMITS = ((-0.5, 0.5), (-1.0, 1.0), (-0.4, 0.4))
LOW, ASIDE = -0.6, 2.0  # [m] where a ball is lost
SPACING = 0.3  # [m] between balls at the start, upwards


def juggler(*, balls: int = 1, restitution: float = 0.9, friction: float = 0.2) -> Task:
    """Keep `balls` balls in the air with one paddle, each up to the episode's height.

    The paddle slides along x and upwards and tilts; actions are its torque and forces. Only impacts change the path of
    a ball: between two of them its apex is a constant of its flight, to rounding, and so is the reward. Impacts are
    located in time, and between them accelerations are constant, so that an episode does not depend on `max_dt`.
    Command: the height to which the balls' centres should rise above the paddle's middle position, 0.5 to 1 m.
    Reward: the mean over the balls of exp(-10 |apex - height|), less 1e-5 times the squares of the forces [N].
    The balls' restitution is drawn between 0.9 and 1 times `restitution` with each episode. 500 steps of 0.02 s; an
    episode ends when a ball is lost, 0.6 m below the middle or 2 m aside.
    Observation: the paddle's (tilt, x, z) and rates; each ball's x, z, x', z'; the height.
    """
    if balls < 1 or not (0 < restitution <= 1 and friction >= 0):
        raise ValueError(
            f"juggler: {balls} balls, restitution {restitution}, friction {friction}; there must be a ball, a "
            "restitution of 0 to 1, and a friction of at least 0"
        )

    def start(key: Array, q: Array, v: Array) -> tuple[Array, Array]:
        position, speed = jax.random.uniform(key, (2, balls), q.dtype, -0.1, 0.1)
        return q.at[4::3].add(position), v.at[4::3].add(speed)

    def randomise(key: Array, model: Model) -> Model:
        return model.replace(restitution=model.restitution * jax.random.uniform(key, minval=0.9))

    def observe(s: Period) -> Array:
        q, v = s.q.reshape(-1, 3), s.v.reshape(-1, 3)
        ball = jnp.concatenate([q[1:, 1:], v[1:, 1:]], -1)
        return jnp.concatenate([q[0], v[0], ball.reshape(-1), s.command[None]])

    def has_ended(s: Period) -> Array:
        q = s.q.reshape(-1, 3)[1:]
        return ((q[:, 2] < LOW) | (jnp.abs(q[:, 1]) > ASIDE)).any()

    return Task(
        name="juggler",
        description="bounce balls on a paddle, up to a height",
        scene=scene(balls, restitution, friction),
        dt=0.02,
        max_steps=500,
        start=start,
        randomise=randomise,
        command=lambda key: jax.random.uniform(key, minval=0.5, maxval=1.0),
        observe=observe,
        reward=lambda s: jnp.exp(-10 * jnp.abs(apex(s) - s.command)).mean() - 1e-5 * (s.action[1:] ** 2).sum(),
        ended=has_ended,
        info=lambda s: {"apex": apex(s)},
        options=Options(max_dt=0.02),
        sketch=sketch,
        window=(-1.2, 1.2, -0.7, 1.5),
    )


def apex(s: Period) -> Array:
    """Apex heights (balls,) of the balls' present flights [m]."""
    z, rate = s.q.reshape(-1, 3)[1:, 2], s.v.reshape(-1, 3)[1:, 2]
    return z + rate**2 / (2 * GRAVITY)


def sketch(q: np.ndarray) -> list[Segment]:
    (tilt, x, z), *balls = q.reshape(-1, 3)
    along = WIDTH * np.cos(tilt), WIDTH * np.sin(tilt)
    segments: list[Segment] = [(x - along[0], z - along[1], x + along[0], z + along[1], THICKNESS, INK)]
    for k, (_, x, z) in enumerate(balls):
        segments.append((x, z, x, z, RADIUS, LINKS[k % len(LINKS)]))
    return segments


def scene(balls: int, restitution: float, friction: float) -> SceneSpec:
    """The scene in the plane of x and z; joints are (rotation towards x from z, x, z), the paddle's first."""
    b = SceneBuilder(gravity=(0.0, 0.0, -GRAVITY))
    b.add_link(
        "paddle", joint=_plane(LIMITS, tuple(Motor(effort=effort) for effort in EFFORT)), mass=PADDLE_MASS,
        inertia=(PADDLE_INERTIA,) * 3, shapes=[Box((WIDTH, THICKNESS, THICKNESS), restitution=1.0, friction=friction)],
    )  # fmt: skip
    for k in range(balls):
        shape = Sphere(RADIUS, restitution=restitution, friction=friction)
        position = (0.0, 0.0, 0.5 + SPACING * k)
        b.add_link(f"ball{k}", joint=_plane(), mass=BALL_MASS, shapes=[shape], q0=position)
    return b.build()


def _plane(limits: tuple[tuple[float, float], ...] | None = None, motor: tuple[Motor, ...] | None = None) -> Planar:
    return Planar(axis=(0, -1, 0), axis2=(1, 0, 0), limits=limits, motor=motor)
