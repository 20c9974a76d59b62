"""Resting and sliding contacts: slopes, a stack, a board with balls, a joint at its limit. All numbers are exact."""

import jax
import numpy as np
import pytest

import carom
from carom.engine.results import OK
from carom.tests.oracles.stepping import run

G = 9.81
H = 1 / 240
STEPS = 480  # of a call: all boxes on slopes share one program


def slope(degrees, friction, **moving):
    """A box of half a metre on a plane that rises by so many degrees along -x: it wants to go along +x."""
    a = np.radians(degrees)
    b = carom.SceneBuilder()
    normal = (np.sin(a), 0, np.cos(a))
    b.add_plane(normal=normal, friction=friction)
    quaternion = (np.cos(a / 2), 0, np.sin(a / 2), 0)
    b.add_body("box", [carom.Box((0.25, 0.25, 0.25))], mass=2.0, position=np.multiply(normal, 0.25),
               quaternion=quaternion, friction=friction, **moving)  # fmt: skip
    down = np.array([np.cos(a), 0, -np.sin(a)])
    return *carom.compile_scene(b.build()), down


@pytest.mark.slow
def test_box_holds_on_a_slope():
    """tan 20 = 0.364 < 0.4: it creeps less than 1e-6 m in 10 s."""
    model, start, _ = slope(20, 0.4)
    state, pushed = start, 0.0
    for _ in range(5):
        result = run(model, state, H, steps=STEPS)
        assert result.code == OK
        state, pushed = jax.tree.map(lambda x: x[-1], result.path), pushed + result.impulses.links[0, 3:]
    assert np.abs(np.asarray(state.q[:3] - start.q[:3])).max() < 1e-6
    np.testing.assert_allclose(np.linalg.norm(pushed) / 10, 2 * G, rtol=1e-6)


@pytest.mark.slow
def test_box_slides_on_a_slope():
    """mu = 0.3 < tan 20: a = g (sin 20 - 0.3 cos 20), velocity and parabola exact."""
    model, state, down = slope(20, 0.3)
    result = run(model, state, H, steps=STEPS)
    a = G * (np.sin(np.radians(20)) - 0.3 * np.cos(np.radians(20)))
    t = H * np.arange(1, STEPS + 1)
    assert result.code == OK
    np.testing.assert_allclose((result.path.q[:, :3] - state.q[:3]) @ down, a * t**2 / 2, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(result.path.v[:, 3:] @ down, a * t, rtol=1e-8)


def test_sliding_block_stops():
    """v0 = 1 m/s, mu = 0.3 on the level: it stops after v^2 / (2 mu g), within what one step may miss."""
    model, state, _ = slope(0, 0.3, linear_velocity=(1, 0, 0))
    result = run(model, state, H, steps=STEPS)
    far = 1 / (2 * 0.3 * G)
    np.testing.assert_allclose(result.path.q[-1, 0], far, atol=0.3 * G * H**2)
    np.testing.assert_allclose(result.path.v[-1], 0, atol=1e-9)


def stack(count, half=0.5):
    b = carom.SceneBuilder()
    b.add_plane(friction=0.6)
    for k in range(count):
        b.add_body(f"box {k}", [carom.Box((half,) * 3)], mass=1.0, position=(0, 0, half * (1 + 2 * k)), friction=0.6)
    return carom.compile_scene(b.build())


@pytest.mark.slow
def test_stack_of_ten_stands():
    """10 s: less than 1 mm of drift, and the ground carries the weight."""
    model, state = stack(10)
    result = run(model, state, H, steps=2400)
    assert result.code == OK
    drift = np.asarray(result.path.q[-1] - state.q).reshape(10, 7)
    assert np.abs(drift).max() < 1e-3
    assert np.abs(drift).max() < 1e-7, "it does stand, in fact"
    for k, (a, b) in enumerate(model.topology.pairs):
        boxes = [model.topology.shape_links[s] for s in (a, b)]
        if boxes[0] == -1 and boxes[1] == 0:
            np.testing.assert_allclose(result.impulses.normals[k], 10 * 10 * G, rtol=1e-6)
    np.testing.assert_allclose(result.impulses.links[:, 5], 10 * G, rtol=1e-6)


def rod(angle, upper):
    b = carom.SceneBuilder()
    joint = carom.Revolute(axis=(0, 1, 0), limits=(-4, upper))
    b.add_link("rod", joint=joint, mass=3.0, com=(0.5, 0, 0), inertia=(0.01, 0.25, 0.25), q0=angle)
    return carom.compile_scene(b.build())


@pytest.mark.slow
def test_rod_rests_at_its_limit():
    """Level at its limit, gravity's torque m g L / 2 is held by the limit's impulses; no drift in 10 s."""
    model, state = rod(0.0, 0.0)  # turning about +y lowers what points along +x
    result = run(model, state, H, steps=2400)
    assert result.code == OK
    np.testing.assert_allclose(np.asarray(result.path.q), 0, atol=1e-9)
    np.testing.assert_allclose(result.limits[0] / 10, -3 * G / 2, rtol=1e-6)
