"""What rolls does not strike: rattlebacks against the ODE of rolling, balls, boxes that topple, a foot on a spring."""

from __future__ import annotations

import math
import warnings

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

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
@pytest.mark.parametrize(("steps", "most", "apart"), [((240, 1000), 6, 1e-3), ((1000, 2000), 12, 1e-3)])
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


def off_an_edge(shape, radius, yaw, seed):
    """What rolls over the edge of a table: k, its speed, the model and states. k: inertia over m r^2.

    yaw: of each lane, by which its axis is not parallel to the edge [rad].
    """
    count, rng = len(yaw), np.random.default_rng(seed)
    k, speed = rng.uniform(0.2, 0.9, count), rng.uniform(0.2, 0.9, count)
    b = carom.SceneBuilder()
    b.add_static("table", [carom.Box((1, 1, 0.5), position=(-1, 0, -0.5))], friction=1e3)
    lying = (math.sqrt(0.5), math.sqrt(0.5), 0, 0)
    b.add_body(
        "roll", [shape], mass=1.0, inertia=(0.05, 0.05, 0.02), position=(0, 0, radius), quaternion=lying, friction=1e3
    )
    model, state = carom.compile_scene(b.build())
    q, v = np.tile(np.asarray(state.q), (count, 1)), np.zeros((count, 6))
    turns = Rotation.from_euler("z", yaw[:, None]) * Rotation.from_euler("x", 90, degrees=True)
    q[:, 3:] = turns.as_quat(scalar_first=True)
    ahead = np.stack([np.cos(yaw), np.sin(yaw), 0 * yaw], 1) * speed[:, None]
    q[:, :2], v[:, 3:] = -0.1 * ahead[:, :2], ahead
    v[:, 0], v[:, 1] = -ahead[:, 1] / radius, ahead[:, 0] / radius
    inertia = np.zeros((count, 1, 3, 3))
    inertia[:, 0, [0, 1], [0, 1]], inertia[:, 0, 2, 2] = 0.05, k * radius**2
    model = model.replace(inertia=inertia)
    return k, speed, model, carom.State(*map(jnp.asarray, (q, v, np.zeros(count))))


@pytest.mark.parametrize("kind", ["cylinder", pytest.param("capsule", marks=pytest.mark.slow)])
def test_what_rolls_over_an_edge_turns_about_it(kind):
    """At the edge after 0.1 s; then r (1 + k) a = g sin(angle), without slip, until the edge carries nothing."""
    r, yaw = 0.2, np.array([0, 0, 0, 0, *10 ** np.linspace(-8, -5, 8)])
    shape = carom.Cylinder(r, 0.3) if kind == "cylinder" else carom.Capsule(r, 0.3)
    k, speed, model, state = off_an_edge(shape, r, yaw, 7)
    run = carom.rollout(model, state, duration=0.7, frame_dt=0.01)
    assert (run.code == 0).all()
    assert (run.stats.impacts <= np.where(yaw > 0, 20, 0)).all()
    assert run.stats.ticks.max() < 3 * 0.7 * 240
    q, v = np.asarray(run.q), np.asarray(run.v)
    energy = 0.5 * (v[..., 3:] ** 2).sum(-1) + 0.5 * k[:, None] * r**2 * v[..., 1] ** 2 + 9.81 * q[..., 2]
    assert (energy - energy[:, :1]).max() < 1e-6
    assert (energy[:, :1] - energy).max() < 2e-4
    assert (np.abs(v[..., [0, 2, 4]]).max((1, 2)) < np.where(yaw > 0, 1e-2, 1e-6)).all()  # it stays in its plane
    for lane in np.flatnonzero(run.stats.impacts == 0):
        still = lambda t, y: 9.81 * math.cos(y[0]) - r * y[1] ** 2  # noqa: E731
        still.terminal = True
        path = solve_ivp(
            lambda t, y, lane=lane: [y[1], 9.81 * math.sin(y[0]) / (r * (1 + k[lane]))], (0.1, 5),
            [0, speed[lane] / r], events=still, rtol=1e-11, atol=1e-12, dense_output=True,
        )  # fmt: skip
        frames = np.flatnonzero((np.asarray(run.t)[lane] >= 0.1) & (np.asarray(run.t)[lane] < path.t[-1] - 0.01))
        assert len(frames) > 5
        angle, rate = path.sol(np.asarray(run.t)[lane][frames])
        assert np.abs(q[lane, frames, 0] - r * np.sin(angle)).max() < 1e-4
        assert np.abs(v[lane, frames, 1] - rate).max() < 1e-2


def test_a_pile_of_logs_stands():
    """Six cylinders that touch along lines, in one way only between blocks, each a little beside the next."""
    r, lying = 0.1, (math.sqrt(0.5), math.sqrt(0.5), 0, 0)
    b = carom.SceneBuilder()
    b.add_plane(friction=0.8)
    spots = [(2 * r * (i + row / 2), r + row * r * math.sqrt(3)) for row, n in enumerate((3, 2, 1)) for i in range(n)]
    for k, (x, z) in enumerate(spots):
        b.add_body(
            f"log{k}", [carom.Cylinder(r, 0.4)], mass=2.0, position=(x, 0.01 * k, z), quaternion=lying, friction=0.8
        )
    stops = [carom.Box((0.02, 0.6, 0.1), position=(x, 0, 0.1)) for x in (-r - 0.02, 5 * r + 0.02)]
    b.add_static("stops", stops, friction=0.8)
    with warnings.catch_warnings():
        warnings.simplefilter("error", carom.SceneWarning)  # they touch, and do not overlap
        model, state = carom.compile_scene(b.build())
    run = carom.rollout(model, state, duration=3.0, frame_dt=0.1)
    assert run.stats.ticks < 400
    assert np.abs(np.asarray(run.q) - np.asarray(state.q)).max() < 1e-8
