"""Dry friction of joints and motors of limited effort: what holds holds exactly, what slides slides exactly."""

import functools
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.engine.dynamics.crba import crba
from carom.tests.oracles.dry_pendulum import Links
from carom.tests.oracles.single_step import single_step

G, Y = 9.81, (0, 1, 0)
RIGID = float("inf")


def hinge(*, q0: float = np.pi / 2, v0: float = 0.0, dtype: Any = None, **joint: Any) -> Any:
    """A link of 1 kg that hangs from a hinge: its weight asks the hinge for G sin q, its inertia is 1.1."""
    b = carom.SceneBuilder()
    b.add_link("arm", joint=carom.Revolute(Y, **joint), mass=1.0, com=(0, 0, -1), inertia=(0.1, 0.1, 0.1), q0=q0, v0=v0)
    return carom.compile_scene(b, dtype=dtype)


HOLDS = {
    "friction": lambda most: {"loss": most},
    "motor": lambda most: {"motor": carom.Motor("velocity", kd=RIGID, effort=most)},
}


@pytest.mark.parametrize("by", HOLDS)
def test_a_load_below_the_bound_is_held_and_one_above_it_falls(by: str):
    """At 0.99 of it the hinge stands still, to the bit; at 1.01 it falls with (load - bound) / inertia."""
    model, state = hinge(**HOLDS[by](G / 0.99))
    held = carom.rollout(model, state, duration=10.0, frame_dt=0.5)
    assert (held.q == np.pi / 2).all()
    assert not held.v.any()
    model, state = hinge(**HOLDS[by](G / 1.01))
    short = 1e-3
    after = carom.step(model, state, dt=short)
    a = -(G - G / 1.01) / 1.1
    np.testing.assert_allclose(after.v, a * short, rtol=1e-9)
    np.testing.assert_allclose(after.q - np.pi / 2, a * short**2 / 2, rtol=1e-6)  # a difference of angles near 1.6


def beside_a_resting_ball(*pushers: str) -> Any:
    """A drawer of 1.5 kg on a rail with 2 N of friction, and 2 m away a ball that lies on the floor."""
    b = carom.SceneBuilder()
    b.add_plane()
    b.add_body("ball", [carom.Sphere(0.1)], mass=1.0, position=(0, 2, 0.1))
    drawer, finger = carom.Box((0.01, 0.2, 0.1)), carom.Sphere(0.02)
    rail, motor = carom.Prismatic((1, 0, 0), loss=2.0), carom.Prismatic((1, 0, 0))
    b.add_link("drawer", joint=rail, mass=1.5, position=(0, 0, 0.5), shapes=[drawer])
    for name in pushers:
        b.add_link(name, joint=motor, mass=0.5, position=(-0.03, 0, 0.5), shapes=[finger])
    return b


@pytest.mark.parametrize(
    ("pushers", "dtype"), [((), "float32"), (("finger",), "float64")], ids=["by a force", "by a finger"]
)
def test_a_joint_breaks_loose_beside_a_contact_that_rests(pushers: tuple[str, ...], dtype: str):
    """It moves by (F - loss) t^2 / 2 m from the first instant on, however short the steps are: as long as it is as slow
    as the errors of a joint at rest, it is not stopped again."""
    model, state = carom.compile_scene(beside_a_resting_ball(*pushers), dtype=dtype)
    mass, column = (2.0, -1) if pushers else (1.5, 6)
    push = np.array([1.9, 2.005, 2.1, 2.5, 4.0])
    force = np.zeros((len(push), model.topology.nv))
    force[:, column] = push
    expected = np.maximum(push - 2, 0) / mass * 0.5**2 / 2
    for max_dt in (1 / 240, 1e-3):
        run = carom.rollout(
            model, carom.tile(state, len(push)), control=jnp.asarray(force), duration=0.5, max_dt=max_dt
        )
        np.testing.assert_allclose(run.q[:, -1, 7], expected, rtol=1e-4 if dtype == "float32" else 1e-9)


def spinner(loss: float, v0: float, dtype: Any = None) -> Any:
    b = carom.SceneBuilder(gravity=(0, 0, 0))
    joint = carom.Revolute((0, 0, 1), loss=loss)
    b.add_link("rotor", joint=joint, mass=1.0, inertia=(0.1, 0.1, 0.2), v0=v0)
    return carom.compile_scene(b, dtype=dtype)


def test_a_rotor_spins_down_in_its_time():
    """It stops at I w / loss, after I w^2 / (2 loss), and stays."""
    model, state = spinner(0.31, 2.0)
    stop = 0.2 * 2.0 / 0.31
    early, late = (carom.step(model, state, dt=stop + d) for d in (-1e-9, 1e-9))
    np.testing.assert_allclose(early.v, 0.31 / 0.2 * 1e-9, rtol=1e-4)
    assert not late.v.any()
    run = carom.rollout(model, state, duration=3.0)
    rests = run.t > stop
    assert not run.v[rests].any()
    assert (run.q[rests] == run.q[-1]).all()
    np.testing.assert_allclose(run.q[-1], stop, atol=1e-12)
    assert run.stats.rollbacks < 5


# -- a mass on a spring, on a rough rail: it swings about -+ loss / k in turn ------------------------------

M, K, LOSS, X0 = 2.0, 40.0, 1.3, 1.0
HALF = np.pi * np.sqrt(M / K)  # s, half a swing


def sprung(dtype: Any = None) -> Any:
    b = carom.SceneBuilder()
    joint = carom.Prismatic((1, 0, 0), loss=LOSS, stiffness=K)
    b.add_link("mass", joint=joint, mass=M, inertia=(1, 1, 1), q0=X0)
    return carom.compile_scene(b, dtype=dtype)


def swung(t: np.ndarray) -> np.ndarray:
    d, turns = LOSS / K, [X0]
    while abs(turns[-1]) > d:
        turns.append(-turns[-1] + 2 * d * np.sign(turns[-1]))
    n = np.minimum(t // HALF, len(turns) - 1).astype(int)
    start = np.array(turns)[n]
    middle = np.sign(start) * d
    moving = middle + (start - middle) * np.cos((t - n * HALF) * np.pi / HALF)
    return np.where(n < len(turns) - 1, moving, start)


def test_a_spring_on_a_rough_rail_loses_the_same_every_half_swing():
    """2 loss / k a half swing, until |k x| <= loss where it turns: there it stays. Of order 4, as without friction."""
    model, state = sprung()
    errors = []
    for max_dt in (1 / 60, 1 / 120, 1 / 240):
        run = carom.rollout(model, state, duration=12.0, frame_dt=0.05, max_dt=max_dt)
        errors.append(np.abs(run.q[:, 0] - swung(np.asarray(run.t))).max())
        assert not run.v[-1].any()
    assert errors[-1] < 2e-8
    assert errors[0] / errors[1] > 10
    assert errors[1] / errors[2] > 10


@pytest.mark.parametrize("scheme", ["semi_implicit", "lie_midpoint"])
def test_other_schemes_stop_too(scheme: str):
    model, state = sprung()
    run = carom.rollout(model, state, duration=12.0, frame_dt=1.0, scheme=scheme)
    assert not run.v[-1].any()
    assert abs(run.q[-1, 0] - swung(np.array(12.0))) < 2e-3


def test_steps_of_fixed_length_stop_too():
    """Where no stop is located, a step ends at rest and not behind it."""
    model, state = sprung()
    run = carom.rollout(model, state, duration=12.0, frame_dt=1.0, time_control="fixed")
    assert run.stats.rollbacks == 0
    assert not run.v[-1].any()
    assert abs(run.q[-1, 0] - swung(np.array(12.0))) < 2e-3


def test_single_precision():
    model, state = sprung("float32")
    run = carom.rollout(model, state, duration=12.0, frame_dt=1.0)
    assert not run.v[-1].any()
    assert abs(run.q[-1, 0] - swung(np.array(12.0))) < 1e-5
    model, state = hinge(loss=G / 0.99, dtype="float32")
    run = carom.rollout(model, state, duration=5.0, frame_dt=1.0)
    assert (run.q == state.q).all()


# -- two links -------------------------------------------------------------------------------------------

LANES = 32


@dataclass(frozen=True)
class Pendulums:
    """Random ones, a lane each; some joints rest at the start, and some of these hold."""

    links: list[Links]
    model: carom.Model
    state: carom.State


@pytest.fixture(scope="module")
def pendulums() -> Pendulums:
    rng = np.random.default_rng(0)
    draw = rng.uniform
    links = [Links(draw(0.5, 2, 2), draw(0.2, 0.6, 2), draw(0.01, 0.1, 2), 0.7, draw(0.05, 8, 2)) for _ in range(LANES)]
    b, joint = carom.SceneBuilder(), carom.Revolute(Y, loss=1.0)
    b.add_link("upper", joint=joint, mass=1.0, com=(0, 0, -1), inertia=(1, 1, 1))
    b.add_link("lower", "upper", joint=joint, position=(0, 0, -0.7), mass=1.0, com=(0, 0, -1), inertia=(1, 1, 1))
    model, _ = carom.compile_scene(b)
    of = {name: np.array([getattr(x, name) for x in links]) for name in ("mass", "centre", "inertia", "loss")}
    com = of["centre"][..., None] * np.array([0.0, 0.0, -1.0])
    inertia = of["inertia"][..., None, None] * np.eye(3)
    model = model.replace(mass=of["mass"], com=com, inertia=inertia, loss=of["loss"])
    v = 3 * rng.normal(size=(LANES, 2)) * (rng.random((LANES, 2)) > 0.6)
    q = draw(-2, 2, (LANES, 2)) * np.where(np.arange(LANES) % 3, 1.0, 0.1)[:, None]  # a third hangs nearly straight
    return Pendulums(links, model, carom.State(jnp.array(q), jnp.array(v), jnp.zeros(LANES)))


def test_each_joint_sticks_or_slides_as_the_law_says(pendulums: Pendulums):
    """What a short step does is the acceleration of the one mode, of all, that keeps the law; what sticks is at 0."""
    q, v, dt = np.array(pendulums.state.q), np.array(pendulums.state.v), 1e-6
    after = np.asarray(carom.step(pendulums.model, pendulums.state, dt=dt).v)
    modes = np.array([x.mode(*rest) for x, *rest in zip(pendulums.links, q, v, 0 * q, strict=True)])
    assert {tuple(np.abs(x)) for x in modes} == {(0, 0), (0, 1), (1, 0), (1, 1)}
    a = np.array([x.accelerations(*rest)[0] for x, *rest in zip(pendulums.links, q, v, modes, strict=True)])
    np.testing.assert_allclose((after - v) / dt, a, rtol=0, atol=1e-4 * np.abs(a).max())
    assert not after[modes == 0].any()


def test_two_links_that_stick_and_slide_as_an_ode_with_events(pendulums: Pendulums):
    """Stops are found in time, which is of order 4; where a joint breaks loose is known to a step: order 2."""
    q, v = np.array(pendulums.state.q), np.array(pendulums.state.v)
    wanted = [x.run(a, b, 1.0) for x, a, b in zip(pendulums.links, q, v, strict=True)]
    assert sum(len(x[2]) for x in wanted) > 50
    run = carom.rollout(pendulums.model, pendulums.state, duration=1.0, frame_dt=0.25)
    error = np.abs(run.q[:, -1] - np.array([x[0] for x in wanted])).max(-1)
    loose = np.array([x[3] for x in wanted])
    assert 5 < (loose == 0).sum() < LANES - 5
    assert np.median(error[loose == 0]) < 1e-8
    assert np.median(error[loose > 0]) < 1e-4
    assert error.max() < 1e-2  # of one that hangs over what it decides


def test_a_lane_is_the_same_bits_alone(pendulums: Pendulums):
    few = 4
    lanes = lambda x: jax.tree.map(lambda y: y[:few], x)  # noqa: E731
    per_lane = {k: getattr(pendulums.model, k) for k in ("mass", "com", "inertia", "loss")}
    model = pendulums.model.replace(**lanes(per_lane))
    run = carom.rollout(model, lanes(pendulums.state), duration=1.0, frame_dt=0.25)
    for k in range(few):
        own = model.replace(**{name: x[k] for name, x in per_lane.items()})
        alone = carom.rollout(own, jax.tree.map(lambda x, k=k: x[k], pendulums.state), duration=1.0, frame_dt=0.25)
        assert (alone.q == run.q[k]).all()
        assert (alone.v == run.v[k]).all()


@pytest.mark.slow
def test_lanes_side_by_side_in_one_program(pendulums: Pendulums):
    """As accelerators run them: to rounding what each does by itself."""
    h = 1 / 240
    together = jax.jit(single_step)(pendulums.model, pendulums.state, h).state
    alone = carom.step(pendulums.model, pendulums.state, dt=h, max_dt=h, time_control="fixed")
    np.testing.assert_allclose(together.v, alone.v, rtol=0, atol=1e-12)
    np.testing.assert_allclose(together.q, alone.q, rtol=0, atol=1e-14)


# -- with contacts, limits and motors ------------------------------------------------------------------------

LEAN = np.arccos(0.4 / 0.9)  # where the arm's ball rests on the ground
WEIGHT = G * 0.5 * np.sin(LEAN)  # N m, how its weight turns it down


def arm(loss: float, **joint: Any) -> Any:
    """An arm of 0.9 m from a hinge half a metre up, with a ball of 0.1 m at its end, on the ground."""
    b = carom.SceneBuilder()
    b.add_plane(friction=0.5)
    ball = carom.Sphere(0.1, position=(0, 0, -0.9))
    b.add_link("arm", joint=carom.Revolute(Y, loss=loss, **joint), position=(0, 0, 0.5), mass=1.0, com=(0, 0, -0.5),
               inertia=(0.1, 0.1, 0.1), q0=LEAN, shapes=[ball])  # fmt: skip
    return carom.compile_scene(b)


@pytest.fixture(scope="module")
def leaning() -> Any:
    return arm(3.0)


@pytest.mark.parametrize("push", [0.0, -20.0, WEIGHT + 2.9])
def test_an_arm_that_leans_on_the_ground_and_sticks_stands(leaning: Any, push: float):
    """Pushed down, the ground takes what the hinge does not hold; pushed up less than it holds, it stays as well."""
    model, state = leaning
    force = jnp.array([push])
    run = carom.rollout(model, state, duration=2.0, frame_dt=0.5, forces=force)
    assert (run.q == LEAN).all()
    assert np.abs(run.v).max() < 1e-12
    h = 1 / 240
    stepped = single_step(model, state, h, forces=force)
    # how far from the hinge the ground pushes up, and friction half as hard across
    least, most = ((WEIGHT - push + a * 3.0) / (0.9 * np.sin(LEAN) - a * 0.5 * 0.5) for a in (-1, 1))
    assert max(least, 0) * h * (1 - 1e-9) <= np.asarray(stepped.impulse.z).sum() <= max(most, 0) * h * (1 + 1e-9)


def test_an_arm_pushed_up_harder_leaves_the_ground(leaning: Any):
    model, state = leaning
    inertia = 0.1 + 0.25
    after = carom.step(model, state, dt=1e-3, forces=jnp.array([WEIGHT + 3.5]))
    np.testing.assert_allclose(after.v, 0.5 / inertia * 1e-3, rtol=1e-3)


def test_a_box_pushes_a_rough_slider():
    """A box on rough ground, pushed by F, moves a slider only if F > mu m g + loss, and then with the rest of F."""
    b = carom.SceneBuilder()
    b.add_plane(friction=0.3)
    b.add_body("box", [carom.Box((0.1, 0.1, 0.1))], mass=2.0, position=(0, 0, 0.1), friction=0.3)
    b.add_link("slider", joint=carom.Prismatic((1, 0, 0), loss=4.0), position=(0.2, 0, 0.1), mass=1.0,
               inertia=(1, 1, 1), shapes=[carom.Box((0.1, 0.1, 0.09), friction=0.0)])  # fmt: skip
    model, state = carom.compile_scene(b)
    bound = 0.3 * 2.0 * G + 4.0

    def pushed(force: float, duration: float) -> carom.Rollout:
        # low, so that the box does not tip
        forces = jnp.zeros(7).at[3].set(force)
        return carom.rollout(model, state, duration=duration, frame_dt=0.1, forces=forces)

    below = pushed(0.98 * bound, 1.0)
    assert np.abs(below.q[:, 7]).max() < 1e-12 + 1e-9  # [m] and the gap band
    above = pushed(1.2 * bound, 0.5)
    a = 0.2 * bound / 3.0
    np.testing.assert_allclose(above.v[-1, 6], a * 0.5, rtol=1e-4)


def test_a_motor_keeps_its_speed_exactly_as_long_as_it_can():
    """It speeds up with all its effort, keeps its target against gravity, and gives way where that asks for more."""
    motor = carom.Motor("velocity", kd=RIGID, effort=8.0, target=2.0)
    model, state = hinge(q0=0.0, motor=motor)
    run = carom.rollout(model, state, duration=0.8, frame_dt=1 / 240)
    q, v = np.asarray(run.q[:, 0]), np.asarray(run.v[:, 0])
    keeps = np.flatnonzero(v == 2.0)
    assert len(keeps) > 20
    assert (np.diff(keeps) == 1).all()
    np.testing.assert_allclose(np.diff(q[keeps]), 2 / 240, atol=1e-14)
    last = keeps[-1]
    assert abs(q[last] - np.arcsin(8.0 / G)) < 2 * 2 / 240  # within two steps of where gravity asks for all of it
    assert (np.diff(v[last:]) < 0).all()
    # all the way up to speed it gives its effort: 1.1 v^2 / 2 + G (1 - cos q) = effort q
    rising = slice(1, keeps[0])
    np.testing.assert_allclose(1.1 * v[rising] ** 2 / 2 + G * (1 - np.cos(q[rising])), 8.0 * q[rising], atol=1e-9)


def test_a_motor_of_any_effort_brings_its_joint_to_its_target():
    """More and more effort takes less and less time, down to none: the other link then moves as after an impulse in the
    motor's joint. In a whole step the motor would give the arm a speed that no number holds."""
    b = carom.SceneBuilder()
    motor = carom.Motor("velocity", kd=RIGID, effort=1.0, target=2.0)
    b.add_link("upper", joint=carom.Revolute(Y, motor=motor), mass=1.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.1))
    below = {"parent": "upper", "joint": carom.Revolute(Y), "position": (0, 0, -1), "q0": 0.4}
    b.add_link("lower", mass=0.5, com=(0, 0, -0.3), inertia=(0.02, 0.02, 0.02), **below)
    model, state = carom.compile_scene(b)
    M = np.asarray(crba(model, state.q))
    swift = carom.State(state.q, jnp.array([2.0, -M[1, 0] / M[1, 1] * 2.0]), state.t)
    run = functools.partial(carom.rollout, duration=0.1, frame_dt=0.02)
    best = run(model.replace(motor_effort=jnp.array([1e30, 0.0])), swift)
    assert (best.v[:, 0] == 2.0).all()
    for effort in (1e5, 1e8, 1e12, 1e30, 1e100):
        by = run(model.replace(motor_effort=jnp.array([effort, 0.0])), state)
        assert (by.v[1:, 0] == 2.0).all()
        np.testing.assert_allclose(by.v[1:], best.v[1:], atol=1e-12 + 100 / effort)
        np.testing.assert_allclose(by.q[1:], best.q[1:], atol=1e-12 + 10 / effort)


def test_a_jammed_grip_stops_nothing_else():
    """Two fingers squeeze what they cannot move. What the solver leaves open there is no reason for others to stand."""
    b = carom.SceneBuilder()

    def add(name: str, axis: tuple[int, int, int], at: tuple[float, float, float], mass: float, *motor: float) -> None:
        size = (0.02, 0.1, 0.1) if name in ("left", "right") else (0.05, 0.05, 0.05)
        drive = carom.Motor("velocity", kd=RIGID, effort=motor[0], target=motor[1])
        b.add_link(name, joint=carom.Prismatic(axis, motor=drive), position=at, mass=mass, shapes=[carom.Box(size)])

    add("left", (1, 0, 0), (-0.071, 0, 1), 0.2, 1e4, 0.1)
    add("right", (1, 0, 0), (0.071, 0, 1), 0.2, 1e4, -0.1)
    add("table", (0, 0, -1), (0, 0, 0.85), 1.0, 1e6, 0.0)
    add("lift", (0, 0, 1), (5, 0, 1), 1.0, 1e6, 0.0)
    b.add_body("box", [carom.Box((0.05, 0.08, 0.1), friction=0.3)], mass=100.0, position=(0, 0, 1))
    b.exclude("left", "table")
    b.exclude("right", "table")
    model, state = carom.compile_scene(b, dtype=jnp.float32)
    state = carom.rollout(model, state, duration=0.2, throw=False).state
    moving = model.replace(motor_target=model.motor_target.at[2].set(0.2).at[3].set(0.1))
    v = carom.rollout(moving, state, duration=0.1, throw=False).v[1:]
    np.testing.assert_allclose(v[:, 2], 0.2, rtol=1e-3)
    np.testing.assert_allclose(v[:, 3], 0.1, rtol=1e-3)


def test_a_motor_against_friction():
    """At its target the motor gives what friction takes; told to stop it brakes with both, and both hold."""
    model, state = spinner(0.3, 0.0)
    model = model.replace(motor_gain=jnp.array([RIGID]), motor_kd=jnp.array([RIGID]), motor_effort=jnp.array([0.5]))
    up = carom.rollout(model, state, duration=2.0, frame_dt=0.5, control=jnp.array([1.0]))
    np.testing.assert_allclose(up.v[:, 0], [0, 0.5, 1, 1, 1], atol=1e-12)  # (0.5 - 0.3) / 0.2 = 1 rad/s^2
    down = carom.rollout(model, up.state, duration=0.5, frame_dt=0.1, control=jnp.array([0.0]))
    np.testing.assert_allclose(down.v[:, 0], [1, 0.6, 0.2, 0, 0, 0], atol=1e-12)  # 0.8 / 0.2 = 4 rad/s^2
    weak = model.replace(motor_effort=jnp.array([0.2]))
    assert not carom.rollout(weak, state, duration=1.0, control=jnp.array([1.0])).v.any()


def test_a_joint_held_at_its_limit_and_beside_it():
    """A hinge that falls on its limit stays there; one that sticks just short of it takes no more steps than others."""
    model, state = hinge(q0=1.0, loss=0.5, limits=(0.4, 2.0))
    run = carom.rollout(model, state, duration=4.0, frame_dt=0.5)
    assert abs(run.q[-1, 0] - 0.4) < 1e-8
    assert abs(run.v[-1, 0]) < 1e-12
    model, state = hinge(q0=1.0, loss=20.0, limits=(1 - 1e-7, 2.0))
    run = carom.rollout(model, state, duration=1.0, frame_dt=0.5)
    assert (run.q == 1.0).all()
    assert run.stats.ticks < 300


def test_joints_of_several_degrees_of_freedom():
    """Ball joints alone, where there are no limits to look at: each axis stops, one by one."""
    b = carom.SceneBuilder(gravity=(0, 0, 0))
    b.add_link("ball", joint=carom.Spherical(loss=(0.3, 0.2, 0.1)), mass=1.0, inertia=(0.1, 0.1, 0.1), v0=(1, 2, 3))
    run = carom.rollout(*carom.compile_scene(b), duration=4.0, frame_dt=0.25)
    stop = 0.1 * np.array([1, 2, 3]) / np.array([0.3, 0.2, 0.1])
    np.testing.assert_allclose(run.v, np.array([1, 2, 3]) * np.clip(1 - run.t[:, None] / stop, 0, None), atol=1e-12)


def test_a_free_body_brakes_along_its_axes():
    b = carom.SceneBuilder(gravity=(0, 0, 0))
    joint = carom.Floating(loss=(0, 0, 0, 1, 1, 1))
    b.add_link("body", joint=joint, mass=2.0, inertia=(0.1, 0.1, 0.1), v0=(0, 0, 1, 1, 0, 0.5))
    run = carom.rollout(*carom.compile_scene(b), duration=3.0, frame_dt=0.5)
    np.testing.assert_allclose(run.q[-1, :3], [1, 0, 0.25], atol=1e-12)
    np.testing.assert_allclose(run.v[-1], [0, 0, 1, 0, 0, 0], atol=1e-12)


@pytest.mark.parametrize(("loss", "holds"), [(50.0, True), (0.5, False)])
def test_a_linkage_with_one_stiff_joint(loss: float, holds: bool):
    """What sticks in one joint of a closed loop holds all of it; what slides loses its work."""
    from carom.scenes.library.registry import library_scene

    model, state = carom.compile_scene(library_scene("four_bar", rate=0.0))
    model = model.replace(loss=jnp.zeros(model.topology.nv).at[0].set(loss))
    run = carom.rollout(model, state, duration=0.5, frame_dt=1 / 240)
    if holds:
        np.testing.assert_allclose(run.q, np.broadcast_to(state.q, run.q.shape), rtol=0, atol=1e-12)
        return
    energy = np.array(
        [carom.energy(model, carom.State(q, v, t)).total for q, v, t in zip(run.q, run.v, run.t, strict=True)]
    )
    slid = np.abs(np.diff(np.asarray(run.q[:, 0]))).sum()
    assert slid > 0.1
    np.testing.assert_allclose(energy[-1] - energy[0], -loss * slid, rtol=1e-3)


def test_without_loss_nothing_changes():
    """A loss of 0 is no friction: the same topology, and the same bits as a scene that never had any."""
    model, state = hinge(v0=1.0)
    zero = model.replace(loss=jnp.ones(1)).replace(loss=jnp.zeros(1))
    assert zero.topology == model.topology
    assert (carom.rollout(zero, state, duration=1.0).q == carom.rollout(model, state, duration=1.0).q).all()


def test_losses_that_are_traced():
    """Inside jit any joint may have friction."""
    model, state = spinner(0.0, 2.0)
    spun = jax.jit(lambda loss: carom.step(model.replace(loss=loss[None]), state, dt=0.5).v[0])
    np.testing.assert_allclose([spun(x) for x in jnp.array([0.0, 0.4, 5.0])], [2, 1, 0], atol=1e-12)


def test_a_world_for_games_holds():
    b = carom.SceneBuilder()
    b.add_link("arm", joint=carom.Revolute(Y, loss=G / 0.99), mass=1.0, com=(0, 0, -1), inertia=(0.1, 0.1, 0.1),
               q0=np.pi / 2)  # fmt: skip
    world = carom.Live(b, warm=False)
    for _ in range(10):
        world.step()
    assert world.state.q == np.pi / 2
    world.apply_force("arm", (0.0, 0.0, -1.0))
    world.step()
    assert world.state.q != np.pi / 2


@pytest.mark.parametrize("resting", ["penalty", "microcollisions"])
def test_models_of_rest_that_hold_no_joint_say_so(resting: str):
    model, state = hinge(loss=1.0)
    with pytest.raises(ValueError, match="use resting='solve'"):
        carom.rollout(model, state, duration=0.1, resting=resting)


@pytest.mark.slow  # derivatives of a whole step compile for a minute
def test_derivatives_of_where_a_rotor_stops():
    """At I w^2 / (2 loss): by the speed and by the loss."""
    model, state = spinner(0.31, 2.0)

    def stops(x: jax.Array) -> jax.Array:
        return carom.step(model.replace(loss=x[1:]), carom.State(state.q, x[:1], state.t), dt=2.0).q[0]

    slope = jax.jacfwd(stops)(jnp.array([2.0, 0.31]))
    np.testing.assert_allclose(slope, [0.2 * 2 / 0.31, -0.2 * 2 / 0.31**2], rtol=1e-9)


@pytest.mark.slow
def test_derivatives_of_what_swings_on():
    """A spring on a rough rail turns at times that depend on its stiffness; by that, the loss and the start."""
    model, state = sprung()
    end = 1.6 * HALF  # in its second half swing

    def place(x: Any, xp: Any = jnp) -> Any:
        k, loss, start = x
        d, w = loss / k, xp.sqrt(k / M)
        return -d - (start - 2 * d - d) * xp.cos(w * end - np.pi)

    def run(x: jax.Array) -> jax.Array:
        changed = model.replace(stiffness=x[:1], loss=x[1:2])
        return carom.step(changed, carom.State(x[2:], state.v, state.t), dt=end).q[0]

    x = jnp.array([K, LOSS, X0])
    np.testing.assert_allclose(run(x), place(x), atol=1e-8)
    np.testing.assert_allclose(jax.jacfwd(run)(x), jax.grad(place)(x), rtol=1e-6, atol=1e-7)
