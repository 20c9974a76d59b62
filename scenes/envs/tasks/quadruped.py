"""A robot on four legs that walks over rough ground."""

from __future__ import annotations

from math import pi
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ....collision.shapes import Heightfield, Sphere
from ....engine.algebra.rotation import Quat
from ....engine.algebra.vec3 import Vec3
from ....engine.model import Model
from ....integrators.options import Options
from ...builder import SceneBuilder
from ...joint_specs import Floating, Motor, Revolute
from ...spec import SceneSpec
from ..scene_task import Period, Task

TRUNK, BUMPER = (0.2, 0.1, 0.05), 0.06  # [m] half its sides; radius of the balls at its corners
TRUNK_MASS, HIP_MASS, THIGH_MASS, SHANK_MASS = 6.0, 0.5, 0.8, 0.2  # [kg]
LINK, FOOT, OUT = 0.2, 0.025, 0.05  # [m] of thigh and shank; the foot's radius; from the hip to the thigh
STAND = (0.0, 0.7, -1.4)  # [rad] hip, thigh and knee: feet below the hips
HEIGHT = 0.35  # [m] of the trunk above the highest hill at the start: a little more than the legs' length
REACH = (0.5, 0.9, 0.9)  # [rad] to both sides of that
KP, KD, EFFORT = 40.0, 1.0, 25.0  # [N m/rad, N m s/rad, N m]
CELL, POINTS = 0.3, 40  # [m] between points of the ground, and how many along each side
START = 1.0  # [m] half the square in which episodes start
LEGS = {"front_left": (1, 1), "front_right": (1, -1), "hind_left": (-1, 1), "hind_right": (-1, -1)}


def quadruped(*, roughness: float = 0.03, speed: float = 0.3) -> Task:
    """Walk ahead over a heightfield at the episode's speed.

    Actions are targets of the position motors of the twelve joints, hip, thigh and knee of each leg, within their
    limits. Hills are up to `roughness` m high; an episode starts near their middle, in any direction.
    The ground's friction (0.5 to 1.2) and the trunk's mass (0.8 to 1.2 of 6 kg) are drawn with it.
    Command: the wanted speed ahead, 0.5 to 1.5 times `speed` [m/s].
    Reward: 0.5 + exp(-(u / 0.15)^2), u the error of the trunk's speed along its own front [m/s], less 0.02 times the
    squares of its speed sideways and of its rates of roll and pitch, and 2e-4 times those of the joints' rates.
    500 steps of 0.02 s; an episode ends when the trunk leans by more than 60 degrees, or comes to the hills' edge.
    Observation: up, velocity and rates in the trunk's axes; the joints' angles less those of standing, and their rates;
    the last action; the command.
    """
    if not (0 <= roughness <= 0.1 and speed > 0):
        raise ValueError(f"quadruped: roughness {roughness} must be from 0 to 0.1 m, and speed {speed} m/s positive")
    hills = ground(roughness)
    edge = CELL * (POINTS - 1) / 2

    def start(key: Array, q: Array, v: Array) -> tuple[Array, Array]:
        x, y, heading = jax.random.uniform(key, (3,), q.dtype, -1, 1)
        yaw = jnp.stack([jnp.cos(pi / 2 * heading), 0 * heading, 0 * heading, jnp.sin(pi / 2 * heading)])
        return jnp.concatenate([START * jnp.stack([x, y]), q[2:3], yaw, q[7:]]), v

    def randomise(key: Array, model: Model) -> Model:
        grip, load = jax.random.uniform(key, (2,), model.mass.dtype)
        return model.replace(friction=model.friction * (0.5 + 0.7 * grip), mass=model.mass.at[0].mul(0.8 + 0.4 * load))

    def reward(s: Period) -> Array:
        _, velocity, rates = trunk_motion(s)
        tracked = jnp.exp(-(((velocity[0] - s.command) / 0.15) ** 2))
        unsteady = velocity[1] ** 2 + rates[0] ** 2 + rates[1] ** 2
        return 0.5 + tracked - 0.02 * unsteady - 2e-4 * (s.v[6:] ** 2).sum()

    def observe(s: Period) -> Array:
        joints = s.q[7:] - jnp.array(STAND * 4, s.q.dtype)
        return jnp.concatenate([*trunk_motion(s), joints, s.v[6:], s.action, s.command[None]])

    return Task(
        name="quadruped",
        description="walk over rough ground, as fast as asked",
        scene=scene(hills),
        dt=0.02,
        max_steps=500,
        start=start,
        randomise=randomise,
        command=lambda key: speed * jax.random.uniform(key, minval=0.5, maxval=1.5),
        observe=observe,
        reward=reward,
        ended=lambda s: (trunk_motion(s)[0][2] < 0.5) | (jnp.abs(s.q[:2]) > edge - 0.5).any(),
        info=lambda s: {"speed": trunk_motion(s)[1][0]},
        options=Options(max_dt=0.005, scheme="semi_implicit"),
    )


def trunk_motion(s: Period) -> tuple[Array, Array, Array]:
    """Up, velocity [m/s] and angular velocity [rad/s] in the trunk's axes, (3,) each."""
    to_trunk = Quat.of_array(s.q[3:7]).conjugate()
    up = Vec3(*jnp.array([0.0, 0.0, 1.0], s.q.dtype))
    return tuple(jnp.stack(to_trunk.rotate(x).xyz) for x in (up, Vec3(*s.v[3:6]), Vec3(*s.v[:3])))  # type: ignore[return-value]


def ground(roughness: float) -> np.ndarray:
    """Heights (POINTS, POINTS) from 0 to `roughness` [m]: waves of several lengths and directions."""
    x, y = np.meshgrid(*[CELL * (np.arange(POINTS) - (POINTS - 1) / 2)] * 2, indexing="ij")
    lengths = (3.1, 2.3, 1.7, 1.3)  # [m]
    waves = [np.sin(2 * pi * (np.cos(k) * x + np.sin(k) * y) / length) for k, length in enumerate(lengths)]
    return roughness / 2 * (1 + np.sum(waves, 0) / len(waves))


def scene(hills: np.ndarray) -> SceneSpec:
    """The scene; joints: those of the trunk, then hip, thigh and knee of each leg. Robots do not touch themselves."""
    b = SceneBuilder()
    b.add_static("ground", [Heightfield(hills, CELL, friction=1.0)])
    touch: Any = {"group": 2, "mask": 1, "friction": 1.0}
    corners = [Sphere(BUMPER, position=(x * TRUNK[0], y * TRUNK[1], 0), **touch) for x, y in LEGS.values()]
    b.add_link(
        "trunk", joint=Floating(), mass=TRUNK_MASS, com=(0, 0, 0), shapes=corners,
        q0=(0, 0, HEIGHT + hills.max(), 1, 0, 0, 0),
        inertia=[TRUNK_MASS / 3 * (TRUNK[i] ** 2 + TRUNK[k] ** 2) for i, k in ((1, 2), (0, 2), (0, 1))],
    )  # fmt: skip
    for leg, (ahead, left) in LEGS.items():
        hip, thigh, knee = (
            Revolute(axis, limits=(at - reach, at + reach), motor=Motor("position", KP, KD, EFFORT, at), armature=0.01)
            for axis, at, reach in zip(((1, 0, 0), (0, 1, 0), (0, 1, 0)), STAND, REACH, strict=True)
        )
        b.add_link(
            f"{leg}_hip", "trunk", joint=hip, position=(ahead * TRUNK[0], left * TRUNK[1], 0), mass=HIP_MASS,
            inertia=(5e-4,) * 3, com=(0, left * OUT / 2, 0),
        )  # fmt: skip
        b.add_link(
            f"{leg}_thigh", f"{leg}_hip", joint=thigh, position=(0, left * OUT, 0), mass=THIGH_MASS, q0=STAND[1],
            inertia=(3e-3, 3e-3, 5e-4), com=(0, 0, -LINK / 3), shapes=[Sphere(FOOT, position=(0, 0, -LINK), **touch)],
        )  # fmt: skip
        b.add_link(
            f"{leg}_shank", f"{leg}_thigh", joint=knee, position=(0, 0, -LINK), mass=SHANK_MASS, q0=STAND[2],
            inertia=(1e-3, 1e-3, 5e-5), com=(0, 0, -LINK / 2), shapes=[Sphere(FOOT, position=(0, 0, -LINK), **touch)],
        )  # fmt: skip
    return b.build()
