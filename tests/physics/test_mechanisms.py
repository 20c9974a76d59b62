"""Closed mechanisms: what the library promises of them is right, forces by hand, impacts by dense algebra."""

import math
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, special

import carom
from carom.engine.dynamics.passive import motor_forces
from carom.engine.loops.active_forces import loop_forces
from carom.engine.loops.forward import constrained
from carom.engine.loops.jacobian import closed
from carom.engine.loops.wrenches import loop_wrenches
from carom.scenes.library import linkages, mechanisms, platforms
from carom.scenes.library.registry import library_scene

G = 9.81
LEVEL = carom.Revolute((0, 1, 0))

# -- whether what is promised is right ----------------------------------------------------------------------


def test_places_of_a02_are_those_of_one_equation():
    """((N + 1)/3 + N) th'' = -((N + 1)/2 + N) g cos th, by Runge-Kutta of order 8."""
    n = 2
    pull = ((n + 1) / 2 + n) / ((n + 1) / 3 + n) * G
    times = list(mechanisms._TOPS)
    start, closely = (math.pi / 2, -1.0), {"method": "DOP853", "rtol": 1e-13, "atol": 1e-13}
    found = integrate.solve_ivp(lambda t, y: (y[1], -pull * math.cos(y[0])), (0, 10), start, t_eval=times, **closely)
    places = np.stack([np.cos(found.y[0]), np.sin(found.y[0])], 1)
    np.testing.assert_allclose(places, list(mechanisms._TOPS.values()), rtol=0, atol=2e-10)


def test_closed_forms():
    """Freudenstein's angle closes the four-bar; Bennett's relation the four hinges; the swing is a pendulum."""
    for crank in np.linspace(0, 2 * np.pi, 9):
        rocker = linkages.rocker_angle(crank)
        tip = linkages.CRANK * np.array([np.cos(crank), np.sin(crank)])
        end = np.array([linkages.GROUND, 0]) + linkages.ROCKER * np.array([np.cos(rocker), np.sin(rocker)])
        assert np.linalg.norm(tip - end) == pytest.approx(linkages.COUPLER, abs=1e-14)

        def step(angle, length, twist):
            c, s, ct, st = np.cos(angle), np.sin(angle), np.cos(twist), np.sin(twist)
            return np.array(
                [[c, -s * ct, s * st, length * c], [s, c * ct, -c * st, length * s], [0, st, ct, 0], [0, 0, 0, 1]]
            )

        a, b = crank + 0.1, linkages.bennett_angle(crank + 0.1)
        sides = [(linkages.SHORT, linkages.TWIST_SHORT), (linkages.LONG, linkages.TWIST_LONG)] * 2
        turn = np.eye(4)
        for angle, (length, twist) in zip((a, b, -a, -b), sides, strict=True):
            turn = turn @ step(angle, length, twist)
        np.testing.assert_allclose(turn, np.eye(4), atol=1e-14)
    sn = special.ellipj(special.ellipk(0.25) - math.sqrt(G) * 10.0, 0.25)[0]
    (place,) = (fact for fact in platforms._SWING.facts if fact.expected)
    assert place.expected == pytest.approx(math.sin(2 * math.asin(0.5 * sn)), abs=1e-12)


@pytest.mark.slow
def test_first_accelerations_of_the_squeezer():
    """As printed in the Test Set: 16 digits, of which the start angles carry 15."""
    model, state = carom.compile_scene(library_scene("andrews_squeezer"))
    tau = motor_forces(model, state.q, state.v) + loop_forces(model, state.q, state.v, state.t)
    found = dict(
        zip(model.topology.names, constrained(model, state.q, state.v, state.t, tau).acceleration, strict=True)
    )
    wanted = dict.fromkeys(found, 0.0) | {"K1": 14222.4439199541, "K2": -10666.8329399656}
    for name, value in wanted.items():
        assert found[name] == pytest.approx(value, abs=1e-9), name


# -- forces -------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_forces_of_loops_by_hand():
    """At rest: a four-bar that hangs, a weight on a rod and one on a spring, joints that are held, a gear."""
    b = carom.SceneBuilder()
    weight = {"mass": 2.0, "inertia": (0.1, 0.1, 0.1)}
    b.add_link("left", joint=LEVEL, com=(0, 0, -0.5), **weight)
    b.add_link("bar", "left", joint=LEVEL, position=(0, 0, -1), com=(0.5, 0, 0), **weight)
    b.add_link("right", joint=LEVEL, position=(1, 0, 0), com=(0, 0, -0.5), **weight)
    b.add_loop("bar", (1, 0, 0), "right", (0, 0, -1), joint=LEVEL)  # the pin: half the bar's weight
    b.add_body("weight", position=(5, 0, -1), **weight)
    b.add_loop("weight", link_b="world", frame_b=(5, 0, 0), joint=carom.Distance())
    b.add_body("hung", position=(6, 0, -1), **weight)
    b.add_loop("world", (6, 0, 0), "hung", (0, 0, 0), joint=carom.Spring(4 * 2 * G, length=0.75))
    b.add_link("arm", joint=LEVEL, position=(7, 0, 0), com=(0.5, 0, 0), **weight)
    b.add_loop("arm", joint=carom.Driven())
    b.add_link("lift", joint=carom.Prismatic((0, 0, 1)), position=(9, 0, 0), **weight)
    b.add_loop("lift", joint=carom.Driven())
    b.add_link("wheel", joint=LEVEL, position=(11, 0, 0), com=(0.5, 0, 0), **weight)
    b.add_link("pinion", joint=LEVEL, position=(12, 0, 0), **weight)
    b.add_loop("wheel", link_b="pinion", joint=carom.Gear(0.5))
    b.add_link("plate", joint=LEVEL, position=(15, 0, 0), com=(0.5, 0, 0), **weight)
    b.add_loop("plate", (0.25, 0, 0), joint=carom.Fixed())  # a weld beside a hinge: what each carries is not determined
    model, state = carom.compile_scene(b)
    lanes = loop_wrenches(model, carom.tile(state, 2))
    assert lanes.shape == (2, 7, 6)
    up, down = [0, 0, 0, 0, 0, 2 * G], [0, 0, 0, 0, 0, -2 * G]
    held = [0, -G, 0, 0, 0, 0]
    # wheel: I = 0.1 + 2/4, and the pinion's 0.1 by the ratio: q_pinion = 2 q_wheel
    turning = G / (0.6 + 0.1 * 4)
    geared = [0, -0.1 * 4 * turning, 0, 0, 0, 0]
    determined = [[0, 0, 0, 0, 0, G], up, down, held, up, geared]
    np.testing.assert_allclose(lanes[:, :6], [determined, determined], atol=1e-9)
    moment = lanes[:, 6, 1] - 0.25 * lanes[:, 6, 5]  # about the hinge: of y, of the force up at x = 0.25
    np.testing.assert_allclose(moment, -G, atol=1e-9)


# -- motion -------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_ball_strikes_a_closed_chain():
    """The impulse is -(1 + e) u_n/(n K n) with K of the inertia that loops leave, M_c^-1; they hold afterwards."""
    e, radius = 0.6, 0.1
    scene = linkages.four_bar(angle=1.0, rate=0.0)
    rod = carom.Box((0.5, 0.05, 0.02), position=(0.5, 0, 0))
    shapes = {"coupler": (rod,)}
    links = [replace(link, friction=0.0, restitution=e, shapes=shapes.get(link.name, ())) for link in scene.links]
    bare, start = carom.compile_scene(replace(scene, links=links))
    poses = carom.fk(bare, start.q)
    p, R = poses.position[1], poses.rotation[1]
    n = R[:, 2]  # the upper side of the coupler, a bar along its x
    point = p + R @ np.array([0.3, 0, 0.02])
    b = carom.SceneBuilder()
    b.add_body("ball", [carom.Sphere(radius)], mass=2.0, position=point + radius * n, linear_velocity=-3.0 * n,
               friction=0.0, restitution=e)  # fmt: skip
    model, state = carom.compile_scene(replace(scene, links=[*links, *b.build().links]))
    result = carom.rollout(model, state, duration=1e-9, frame_dt=1e-9, law="newton")
    assert int(result.events.count) == 1
    A = np.asarray(closed(model, state.q, state.v).A)
    inverse = np.linalg.inv(carom.crba(model, state.q))
    held = inverse - inverse @ A.T @ np.linalg.pinv(A @ inverse @ A.T, rcond=1e-10) @ A @ inverse
    J = n @ (carom.jacobian(model, state.q, "ball", np.array([0, 0, 0.0]))[3:] - at(model, state.q, R, point - p))
    normal = -(1 + e) * (J @ state.v) / (J @ held @ J)
    after = state.v + held @ J * normal
    assert np.linalg.norm(np.asarray(result.events.impulse)[0]) == pytest.approx(float(normal), rel=1e-7)
    np.testing.assert_allclose(result.v[-1], after, rtol=0, atol=1e-6)  # and 1e-9 s of weight
    np.testing.assert_allclose(A @ result.v[-1], 0, atol=1e-7)
    assert float(J @ after) == pytest.approx(float(-e * (J @ state.v)))


def at(model, q, R, arm):
    """Rows of the coupler's point that lies at `arm` from its origin, world axes: how joints move it (3, nv)."""
    return carom.jacobian(model, q, "coupler", R.T @ arm)[3:]


@pytest.mark.slow
def test_errors_that_are_fed_back_stay_small():
    """Baumgarte's way: the loop stays nearly closed, and no worse after ten seconds than after five."""
    scene = linkages.four_bar()
    model, state = carom.compile_scene(replace(scene, baumgarte=20.0))
    result = carom.rollout(model, state, duration=10.0, frame_dt=0.01)
    off = np.abs(jax.vmap(lambda q, v, t: closed(model, q, v, t).error)(result.q, result.v, result.t)).max(1)
    assert 1e-13 < off[:500].max() < 1e-5
    assert off[500:].max() < 10 * off[:500].max()


@pytest.mark.exhaustive
def test_forty_windows():
    """A02 with 81 bars and 200 constraints, of which 80 are independent and one half is lost twice a turn."""
    model, state = carom.compile_scene(library_scene("n_four_bar", windows=40))
    result = carom.rollout(model, state, duration=10.0, frame_dt=10.0, max_dt=2e-2)
    angle = float(result.q[-1, 0])
    printed = 0.18051222668, 0.98357274058
    np.testing.assert_allclose((math.cos(angle), math.sin(angle)), printed, rtol=0, atol=2e-5)  # steps of order 4
    assert np.abs(closed(model, result.q[-1], result.v[-1]).error).max() < 1e-10


@pytest.mark.slow
def test_a_spring_swings_two_bodies_as_their_reduced_mass_says():
    b = carom.SceneBuilder((0, 0, 0))
    for name, mass, x in (("light", 1.0, 0.0), ("heavy", 3.0, 1.2)):
        b.add_body(name, mass=mass, inertia=(0.1, 0.1, 0.1), position=(x, 0, 0))
    b.add_loop("light", link_b="heavy", frame_b=(0, 0, 0), joint=carom.Spring(30.0, length=1.0))
    model, state = carom.compile_scene(b)
    result = carom.rollout(model, state, duration=1.0, frame_dt=0.1, max_dt=1e-3)
    stretch = result.q[:, 7] - result.q[:, 0] - 1.0
    np.testing.assert_allclose(stretch, 0.2 * jnp.cos(math.sqrt(30.0 / 0.75) * result.t), rtol=0, atol=1e-9)
