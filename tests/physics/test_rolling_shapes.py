"""What rolls does not strike: rattlebacks against the ODE of rolling, balls, boxes that topple, a foot on a spring."""

from __future__ import annotations

import math

import numpy as np
import pytest

import carom
from carom.tests.oracles.rolling import rolling_ellipsoid

MILD = ((0.1, 0.03, 0.02), 0.2, 0.2, None)
# it turns about faster than the longest step can follow: 98 rad/s
WILD = ((0.2, 0.03, 0.02), 1.0, 0.1, (2e-4, 1.6e-3, 1.7e-3))
SPIN = (0.01, 0.02, -5.0)


def rattleback(half_axes, mass, skew, moments):
    a, b, c = half_axes
    own = np.diag(moments or mass / 3 * np.array([b * b + c * c, a * a + c * c, a * a + b * b]))
    turn = np.array([[math.cos(skew), -math.sin(skew), 0], [math.sin(skew), math.cos(skew), 0], [0, 0, 1]])
    inertia = turn @ own @ turn.T
    scene = carom.SceneBuilder()
    scene.add_plane(friction=2.0, restitution=0.0)
    rolls = tuple(-np.cross(SPIN, (0, 0, -c)))
    scene.add_body(
        "rattleback", [carom.Ellipsoid(half_axes)], mass=mass, inertia=inertia, position=(0, 0, c),
        linear_velocity=rolls, angular_velocity=SPIN, friction=2.0, restitution=0.0,
    )  # fmt: skip
    return *carom.compile_scene(scene.build()), inertia


def energies(model, run):
    energy = carom.energy(model, carom.State(run.q, run.v, run.t))
    return np.asarray(energy.kinetic + energy.potential), np.asarray(energy.kinetic)


@pytest.mark.parametrize("kind", [MILD, WILD], ids=["mild", "wild"])
@pytest.mark.parametrize("max_dt", [1 / 60, 1 / 240, 1 / 960])
def test_a_rattleback_never_strikes_and_keeps_its_energy(kind, max_dt):
    model, state, _ = rattleback(*kind)
    run = carom.rollout(model, state, duration=5.0, frame_dt=0.05, max_dt=max_dt)
    assert run.stats.impacts == 0
    total, kinetic = energies(model, run)
    assert np.abs(total - total[0]).max() <= (3e-3 if max_dt > 1 / 240 else 1e-3) * kinetic[0]
    # and turns about, as it should
    assert np.asarray(run.v)[:, 2].max() > 3


def test_a_rattleback_is_of_order_2():
    path, friction = rolling_ellipsoid(MILD[0], rattleback(*MILD)[2], MILD[1], SPIN, 1.0, 4000)
    assert friction < 2.0
    model, state, _ = rattleback(*MILD)
    off = []
    for max_dt in (1 / 240, 1 / 960, 1 / 3840):
        run = carom.rollout(model, state, duration=1.0, frame_dt=0.1, max_dt=max_dt)
        off.append(np.abs(np.asarray(run.v)[:, :3] - path[::400]).max())
    # the longest of these steps are taken shorter
    assert off[0] < 0.15
    assert off[1] < 0.02
    assert off[2] < 1e-3
    assert off[2] < off[1] / 8


def eccentric(origin):
    """A ball that rolls, its centre of mass 5 cm from the middle: the body's origin is at the one or at the other."""
    r, spin = 0.2, np.array([0.3, 3.0, 0.2])
    middle, com = np.array([0, 0, r]), np.array([0.05, 0, r])
    place = middle if origin == "middle" else com
    scene = carom.SceneBuilder()
    scene.add_plane(friction=2.0, restitution=0.0)
    scene.add_body(
        "ball", [carom.Sphere(r, position=tuple(middle - place))], mass=1.0, inertia=np.eye(3) * 0.016,
        com=tuple(com - place), position=tuple(place),
        linear_velocity=tuple(np.cross(spin, com)), angular_velocity=tuple(spin),
        friction=2.0, restitution=0.0,
    )  # fmt: skip
    return carom.compile_scene(scene.build())


@pytest.mark.parametrize("scheme", ["exact", "lie_midpoint"])
@pytest.mark.parametrize("origin", ["middle", "centre of mass"])
def test_an_eccentric_ball_keeps_its_energy_wherever_its_origin_is(origin, scheme):
    model, state = eccentric(origin)
    for max_dt, most in (1 / 240, 3e-4), (1 / 960, 3e-5):
        run = carom.rollout(model, state, duration=2.0, frame_dt=0.1, max_dt=max_dt, scheme=scheme)
        assert run.stats.impacts == 0
        total, kinetic = energies(model, run)
        assert np.abs(total - total[0]).max() <= most * kinetic[0]


def toppling(tilt=0.2):
    half, wide = 0.2, 0.05
    scene = carom.SceneBuilder()
    scene.add_plane(friction=1.0, restitution=0.0)
    height = half * math.cos(tilt) + wide * math.sin(tilt)
    scene.add_body(
        "box", [carom.Box((wide, 0.1, half))], mass=1.0, position=(0, 0, height),
        quaternion=(math.cos(tilt / 2), 0, math.sin(tilt / 2), 0), friction=1.0, restitution=0.0,
    )  # fmt: skip
    return carom.compile_scene(scene.build())


@pytest.mark.parametrize("max_dt", [1 / 60, 1 / 240, 1 / 960])
def test_a_box_that_topples_over_its_edge_does_not_strike(max_dt):
    model, state = toppling()
    run = carom.rollout(model, state, duration=0.3, frame_dt=0.05, max_dt=max_dt)
    assert run.stats.impacts == 0
    total, kinetic = energies(model, run)
    assert abs(total[-1] - total[0]) < (3e-3 if max_dt > 1 / 240 else 1e-3) * kinetic[-1]


def hopper(lean=0.1):
    """A torso of 10 kg on a foot of 0.1 kg, with a spring between them: 200 rad/s of the foot's own."""
    scene = carom.SceneBuilder()
    scene.add_plane(friction=0.8, restitution=0.0)
    upright = carom.Prismatic((0, 0, 1))
    scene.add_link("torso", joint=upright, position=(0, 0, 1), mass=10.0, inertia=np.eye(3) / 2)
    hip = carom.Revolute((0, 1, 0), stiffness=50.0)
    scene.add_link("hip", "torso", joint=hip, mass=0.5, inertia=np.eye(3) / 100, q0=(lean,))
    leg = carom.Prismatic((0, 0, 1), stiffness=4e3, damping=10.0)
    scene.add_link(
        "foot", "hip", joint=leg, position=(0, 0, -0.9), mass=0.1, inertia=np.eye(3) * 1e-4,
        shapes=[carom.Sphere(0.03)], restitution=0.0, friction=0.8,
    )  # fmt: skip
    return carom.compile_scene(scene.build())


@pytest.mark.parametrize("scheme", ["exact", "lie_midpoint"])
@pytest.mark.parametrize(("steps", "most", "apart"), [((240, 1000), 6, 3e-4), ((1000, 2000), 12, 1e-3)])
def test_a_light_foot_on_a_spring_does_not_chatter(steps, most, apart, scheme):
    """It comes down, and stands or leaps: a few impacts, in place of over a thousand. Where the torso turns about
    everything is slow, and what the spring changes in a step is all the foot has; and in this plane mechanism the foot
    cannot move sideways at all."""
    model, state = hopper()
    ends = []
    for rate in steps:
        run = carom.rollout(model, state, duration=1.0, frame_dt=0.02, max_dt=1 / rate, scheme=scheme)
        assert run.stats.impacts <= most
        ends.append(np.asarray(run.q)[-1])
    np.testing.assert_allclose(ends[0], ends[1], atol=apart)
