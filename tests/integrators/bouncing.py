"""Balls over a floor, as many tests of time want them: few scenes and shapes of arrays, so that little is compiled."""

import functools
from typing import Any

import jax.numpy as jnp

import carom

G, RADIUS = 9.81, 0.1
FRAMES = 270  # of the runs of one ball
LANES = 4  # of the runs of two
FRAME = 1 / 60
RUN: dict[str, Any] = {"duration": 1.0, "frame_dt": FRAME, "max_events": 16, "max_contacts": 2, "throw": False}


@functools.cache
def two_balls() -> tuple[carom.Model, carom.State]:
    """1 kg each, e = 0.8 and mu = 0.2 with all; the second is thrown at the first, which falls from rest and spins."""
    b = carom.SceneBuilder()
    b.add_plane(friction=0.2, restitution=0.8)
    how: dict[str, Any] = {"shapes": [carom.Sphere(RADIUS)], "mass": 1.0, "friction": 0.2, "restitution": 0.8}
    b.add_body("first", position=(0, 0, 0.4), angular_velocity=(0, 20, 0), **how)
    b.add_body("second", position=(0.6, 0.05, 0.5), linear_velocity=(-3, 0, -0.5), **how)
    return carom.compile_scene(b)


def lanes(*changes: tuple[int, Any]) -> carom.State:
    """LANES times that scene, each thrown a little differently; a change is (lane, function of its q, v)."""
    _, state = two_balls()
    many = carom.tile(state, LANES)
    q, v = many.q, many.v * (1 + 0.1 * jnp.arange(LANES)[:, None])
    for lane, change in changes:
        new_q, new_v = change(q[lane], v[lane])
        q, v = q.at[lane].set(new_q), v.at[lane].set(new_v)
    return carom.State(q, v, many.t)


@functools.cache
def ball(friction: float = 0.0, restitution: float = 0.9, off: float = 0.0, spin: float = 0.0):
    """A ball of 1 kg and 0.1 m, 1 m over the ground; off: how far its mass lies from its middle, along its x [m];
    spin: about y [rad/s]. All its moments of inertia are 2/5 m r^2: it spins evenly in flight."""
    b = carom.SceneBuilder(gravity=(0, 0, -G))
    b.add_plane(friction=friction, restitution=restitution)
    b.add_body(
        "ball", shapes=[carom.Sphere(RADIUS)], mass=1.0, com=(off, 0, 0), inertia=(0.004,) * 3, position=(0, 0, 1.1),
        angular_velocity=(0, spin, 0), friction=friction, restitution=restitution,
    )  # fmt: skip
    return carom.compile_scene(b)


def fallen(model: carom.Model, state: carom.State, frame_dt: float, max_dt: float = 1 / 240, throw: bool = True) -> Any:
    """The rollout of one ball over so many frames."""
    return carom.rollout(
        model, state, duration=FRAMES * frame_dt, frame_dt=frame_dt, max_dt=max_dt, max_events=256, max_contacts=1,
        throw=throw,
    )  # fmt: skip


def ran(state: carom.State, model: carom.Model | None = None, **changes: Any):
    """The rollout of one scene, or of LANES, always of the same shapes."""
    return carom.rollout(two_balls()[0] if model is None else model, state, **(RUN | changes))
