"""A recording made by hand, for the tests of what is drawn: nothing is run, so there is little to compile."""

from __future__ import annotations

from typing import Any

import numpy as np

from carom import Capsule, Revolute, SceneBuilder, SceneSpec, Sphere
from carom.integrators.recording import Events
from carom.scenes.recordings.recording import Recording

FRAMES, FRAME_DT = 31, 1 / 60
SPIN = 200.0  # [rad/s] half a turn and more between frames


def two_bodies() -> SceneSpec:
    """A ball on the ground, and a pendulum of a capsule."""
    b = SceneBuilder()
    b.add_plane(name="ground")
    b.add_body("ball", [Sphere(0.1)], mass=2.0, position=(0, 0, 0.5))
    b.add_link("arm", joint=Revolute((0, 1, 0)), position=(0, 0, 1), mass=1.0, com=(0, 0, -0.3),
               inertia=(0.1, 0.1, 0.01), shapes=[Capsule(0.05, 0.2, position=(0, 0, -0.3))])  # fmt: skip
    return b.build()


def recording(lanes: int | None = None) -> Recording:
    """The ball flies along x, spinning about y, and strikes the ground at 0.2 s; the arm swings.

    lanes: the same for each, shifted along y by the lane's number [m].
    """
    t = np.arange(FRAMES) * FRAME_DT
    angle = SPIN * t
    q, v = np.zeros((FRAMES, 8)), np.zeros((FRAMES, 7))
    q[:, 0], q[:, 2], q[:, 3], q[:, 5], q[:, 7] = t, 0.5, np.cos(angle / 2), np.sin(angle / 2), np.sin(3 * t)
    v[:, 1], v[:, 3], v[:, 6] = SPIN, 1.0, 3 * np.cos(3 * t)
    event: dict[str, Any] = {
        "t": np.array([0.2, 0.0]),
        "bodies": np.array([[-1, 0], [-1, -1]]),  # the ground is A, the ball is B
        "pair": np.array([0, -1]),
        "dof": np.array([-1, -1]),
        "point": np.array([[0.2, 0.0, 0.0], [0, 0, 0]]),
        "normal": np.array([[0.0, 0.0, -1.0], [0, 0, 0]]),  # from B to A: down
        "u_before": np.array([[0.0, 0.0, -1.0], [0, 0, 0]]),
        "u_after": np.array([[0.0, 0.0, 0.5], [0, 0, 0]]),
        "impulse": np.array([[0.3, 0.0, 3.0], [0, 0, 0]]),
        "energy_before": np.array([5.0, 0.0]),
        "energy_after": np.array([4.0, 0.0]),
        "code": np.array([0, 0]),
        "count": np.array(1),
        "missed": np.array(0),
    }
    code = np.array(0)
    if lanes is not None:
        t, q, v, code = (np.array([x] * lanes) for x in (t, q, v, code))
        q[..., 1] = np.arange(lanes)[:, None]
        event = {name: np.array([x] * lanes) for name, x in event.items()}
    return Recording(two_bodies(), "two <bodies>", t, q, v, Events(**event, law="stronge"), code, {}, {})
