"""Contacts between bodies that springs and motors drive: forces that change within a step."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import carom

SLOPE, MU, STIFFNESS, V = np.radians(30), 0.3, 2e4, 0.6


def wedge() -> Any:
    """A wedge, driven at V, lifts a follower against a spring: the slip is constant, and the load grows."""
    b = carom.SceneBuilder(gravity=(0, 0, 0))
    length, x, up = 0.3, 0.2, np.array([np.sin(SLOPE), 0, np.cos(SLOPE)])
    corners = [(x, y, z) for y in (-0.05, 0.05) for x, z in ((0, 0), (length, 0), (0, length * np.tan(SLOPE)))]
    hull, tip = carom.ConvexHull(corners), np.array([x, 0, (length - x) * np.tan(SLOPE)]) + 0.02 * up
    ball = carom.Sphere(0.02, position=tuple(tip))
    b.add_link("wedge", joint=carom.Prismatic((1, 0, 0)), mass=1.0, shapes=[hull], friction=MU, v0=V)
    spring = carom.Prismatic((0, 0, 1), stiffness=STIFFNESS, rest=-0.01)
    b.add_link("follower", joint=spring, mass=0.3, shapes=[ball], friction=MU, v0=V * np.tan(SLOPE))
    b.add_loop("wedge", joint=carom.Driven(rate=V, start=0.0))
    return carom.compile_scene(b)


def test_friction_is_that_of_a_load_that_changes():
    """The mean force of a frame is normal force and Coulomb's friction of the spring in its middle, to order 2."""
    (model, state), errors = wedge(), []
    up = np.array([np.sin(SLOPE), 0, np.cos(SLOPE)])
    for max_dt in (1 / 240, 1e-3):
        run = carom.rollout(model, state, duration=0.1, frame_dt=0.01, max_dt=max_dt, report="pair_forces")
        force = np.asarray(run.report["pair_forces"])[1:, 0]
        normal = np.abs(force @ up)
        friction = np.linalg.norm(force - np.outer(force @ up, up), axis=1)
        lift = V * np.tan(SLOPE) * (np.asarray(run.t)[1:] - 0.005)
        exact = STIFFNESS * (lift + 0.01) / (np.cos(SLOPE) - MU * np.sin(SLOPE))
        errors.append([np.abs(normal / exact - 1).max(), np.abs(friction / normal / MU - 1).max()])
        np.testing.assert_allclose(run.q[:, 1], V * np.tan(SLOPE) * run.t, atol=1e-9)
    assert np.less(errors[0], 1e-3).all()
    assert np.less(errors[1], np.array(errors[0]) / 4).all()


def tray(dtype: str) -> Any:
    """A box on a tray that a position motor moves."""
    b = carom.SceneBuilder()
    rail = carom.Prismatic((1, 0, 0), motor=carom.Motor("position", kp=4000.0, kd=200.0))
    b.add_link("tray", joint=rail, mass=1.2, shapes=[carom.Box((0.3, 0.3, 0.01))], friction=5.0)
    b.add_body("box", [carom.Box((0.05, 0.05, 0.05))], mass=0.2, position=(0, 0, 0.06), friction=5.0)
    return *carom.compile_scene(b, dtype=dtype), 0, lambda q: q[..., 1:4] - q[..., :1] * (1, 0, 0)


def gripper(dtype: str) -> Any:
    """A box between two fingers, which a position motor lifts."""
    b = carom.SceneBuilder()
    rail = carom.Prismatic((0, 0, 1), motor=carom.Motor("position", kp=4000.0, kd=200.0, effort=500.0))
    b.add_link("hand", joint=rail, mass=1.0, inertia=(0, 0, 0), position=(0, 0, 0.5))
    for name, side in (("left", -1), ("right", 1)):
        slide = carom.Prismatic((-side, 0, 0), motor=carom.Motor("torque", target=10.0))
        pad = carom.Box((0.01, 0.02, 0.02))
        b.add_link(name, parent="hand", joint=slide, mass=0.1, position=(side * 0.04, 0, 0), shapes=[pad], friction=0.5)
    b.add_body("box", [carom.Box((0.03, 0.03, 0.03))], mass=0.1, position=(0, 0, 0.5), friction=0.5)
    return *carom.compile_scene(b, dtype=dtype), 0, lambda q: q[..., 3:6] - q[..., :1] * (0, 0, 1)


@pytest.mark.parametrize(
    ("scene", "dtype"),
    [(tray, "float64"), (tray, "float32"), (gripper, "float64")],
    ids=["tray", "tray f32", "gripper"],
)
def test_what_sticks_does_not_creep(scene: Any, dtype: str):
    """The carrier moves 0.2 m in a second, by sixty commands. Friction is far from its bound all the time."""
    model, state, column, place = scene(dtype)
    commands = np.zeros((60, model.topology.nv))
    commands[:] = np.asarray(model.motor_target)
    commands[:, column] += 0.2 * np.arange(1, 61) / 60
    run = carom.rollout(model, state, duration=1.0, frame_dt=1 / 60, control=jnp.asarray(commands))
    q = np.asarray(run.q, float)
    assert abs(q[-1, column] - q[0, column]) > 0.15
    assert run.code.max() == 0
    off = np.linalg.norm(place(q)[-1] - place(q)[30])
    assert off < (1e-8 if dtype == "float64" else 5e-5)


@pytest.mark.slow
def test_a_conveyor_carries_what_sticks_to_it_in_a_scene_with_joints():
    b = carom.SceneBuilder()
    b.add_static("belt", [carom.Box((5.0, 1.0, 0.1))], position=(0, 0, -0.1), friction=0.8, linear_velocity=(0.5, 0, 0))
    b.add_body("parcel", [carom.Box((0.1, 0.1, 0.1))], position=(0, 0, 0.1), linear_velocity=(0.5, 0, 0), friction=0.8)
    b.add_link("door", joint=carom.Revolute((0, 0, 1)), position=(0, 3, 1), mass=1.0, inertia=(0.1, 0.1, 0.1))
    model, state = carom.compile_scene(b)
    run = carom.rollout(model, state, duration=1.0, frame_dt=0.1)
    np.testing.assert_allclose(run.q[:, 0], 0.5 * run.t, atol=1e-9)
