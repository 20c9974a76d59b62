"""Motion schemes: order, reversibility, what they keep, and what an impulse means to them."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.integrators.schemes import SCHEMES, scheme_named
from carom.scenes.library.registry import library_scene

FLESH = {"mass": 1.0, "inertia": (0.03, 0.05, 0.04)}


def free_tree(b: carom.SceneBuilder) -> carom.SceneBuilder:
    """A floating base, an arm on a sprung hinge and a ball joint, all off-centre and moving."""
    b.add_link(
        "base", joint=carom.Floating(), com=(0.05, -0.03, 0.1), q0=(0, 0, 1, 0.8, 0.6, 0, 0),
        v0=(1, -2, 1.5, 0.5, 0.2, 1), **FLESH,
    )  # fmt: skip
    hinge = carom.Revolute((1, 2, 0.5), damping=0.1, stiffness=2.0)
    b.add_link("arm", "base", joint=hinge, position=(0.2, 0, 0.1), com=(0.1, 0.2, 0), q0=0.5, v0=-2.0, **FLESH)
    ball = carom.Spherical(damping=0.05)
    b.add_link("hand", "arm", joint=ball, position=(0, 0.4, 0), com=(0.05, 0, -0.2), v0=(1, 2, -3), **FLESH)
    return b


@cache
def scene() -> tuple[carom.Model, carom.State]:
    """The free tree, a swinging one on a spherical joint, and a thrown stone whose origin is off its centre."""
    b = free_tree(carom.SceneBuilder())
    pivot = carom.Spherical(stiffness=1.0)
    b.add_link("pivot", joint=pivot, position=(2, 0, 2), com=(0, 0.1, -0.3), v0=(2, -1, 3), **FLESH)
    hinge = carom.Revolute((0, 1, 0))
    b.add_link("tail", "pivot", joint=hinge, position=(0, 0.2, -0.6), com=(0, 0.1, -0.3), q0=-0.4, v0=3.0, **FLESH)
    b.add_body("stone", com=(0.1, 0.2, -0.1), angular_velocity=(3, 2, -4), linear_velocity=(1, 0, 3), **FLESH)
    return carom.compile_scene(b)


@cache
def runner(name: str):
    """run(model, state, h, n): n steps of h; one program a topology, so control and impulses are always given."""

    @jax.jit
    def steps(model, state, h, n, control, impulses):
        return jax.lax.fori_loop(0, n, lambda _, s: SCHEMES[name](model, s, h, control, impulses), state)

    def run(model, state, h, n=1, control=None, impulses=None):
        control = model.motor_target if control is None else control
        impulses = jnp.zeros_like(state.v) if impulses is None else impulses
        return steps(model, state, h, n, control, impulses)

    return run


def apart(a: carom.State, b: carom.State) -> float:
    return max(float(jnp.abs(a.q - b.q).max()), float(jnp.abs(a.v - b.v).max()))


# -- order -----------------------------------------------------------------------------------------

SPAN = 0.5  # s, all joints move by about a radian


@pytest.fixture(scope="module")
def reference() -> carom.State:
    """rk4 at 2048 steps: its own error, 1e-12, is below all that is measured here."""
    return runner("rk4")(*scene(), SPAN / 2048, 2048)


@pytest.mark.parametrize(
    ("name", "order", "steps"),
    [("exact", 4, 64), ("rk4", 4, 64), ("lie_midpoint", 2, 64), ("semi_implicit", 1, 256)],
)
def test_order(name: str, order: int, steps: int, reference: carom.State) -> None:
    """Halving the step divides the error by 2^order, twice in a row; all schemes meet the same solution."""
    errors = [apart(runner(name)(*scene(), SPAN / n, n), reference) for n in (steps, 2 * steps, 4 * steps)]
    np.testing.assert_allclose(-np.diff(np.log2(errors)), order, rtol=0, atol=0.1)


@pytest.mark.slow
def test_free_bodies_forces_act_at_their_origins() -> None:
    """`exact` moves the origin to the centre of mass; damping and a motor's push must not move along with it."""
    b = carom.SceneBuilder()
    joint = carom.Floating(damping=(0.1, 0.2, 0.1, 0.5, 0.4, 0.3), motor=carom.Motor(target=(0.1, 0.2, 0.3, 4, 5, 6)))
    b.add_link("stone", joint=joint, com=(0.3, -0.2, 0.4), v0=(3, -5, 7, 1, 2, 3), **FLESH)
    model, state = carom.compile_scene(b)
    fine = runner("rk4")(model, state, 1 / 1024, 1024)
    errors = [apart(runner("exact")(model, state, 1 / n, n), fine) for n in (64, 128)]
    assert errors[1] < 1e-5
    assert np.log2(errors[0] / errors[1]) == pytest.approx(4, abs=0.2)


def test_unknown_scheme() -> None:
    with pytest.raises(ValueError, match="scheme 'euler' is unknown; it must be one of exact, rk4, lie_midpoint, semi"):
        scheme_named("euler")


# -- step lengths -----------------------------------------------------------------------------------


def test_exact_stone_does_not_depend_on_the_step() -> None:
    """A ball's flight and spin (principal axes equal) are the same in 1, 7 or 240 steps, to rounding."""
    b = carom.SceneBuilder()
    b.add_body("ball", mass=0.2, inertia=(1e-3,) * 3, linear_velocity=(1, 2, 3), angular_velocity=(0, 0, 2))
    model, state = carom.compile_scene(b)
    ends = [runner("exact")(model, state, 1 / n, n) for n in (1, 7, 240)]
    for end in ends:
        np.testing.assert_allclose(end.q[:3], [1, 2, 3 - 9.81 / 2], rtol=0, atol=1e-12)
        np.testing.assert_allclose(end.v, [0, 0, 2, 1, 2, 3 - 9.81], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", SCHEMES)
@pytest.mark.slow
def test_a_step_of_its_own_for_each_lane(name: str) -> None:
    """Lanes with different h do what single scenes with those steps do."""
    b = carom.SceneBuilder()
    b.add_body("stone", com=(0.1, 0.2, -0.1), angular_velocity=(3, 2, -4), linear_velocity=(1, 0, 3), **FLESH)
    b.add_link("rod", joint=carom.Revolute((0, 1, 0)), com=(0, 0, -0.5), v0=1.0, **FLESH)
    model, state = carom.compile_scene(b)
    h = jnp.array([1e-3, 2e-2])
    p = jnp.linspace(-1, 1, 7)
    both = jax.jit(SCHEMES[name])(model, carom.tile(state, 2), h, None, jnp.stack([p, -p]))
    np.testing.assert_array_equal(both.t, h)
    for lane, impulses in enumerate((p, -p)):
        alone = runner(name)(model, state, h[lane], impulses=impulses)
        one = jax.tree.map(lambda x, lane=lane: x[lane], both)
        assert apart(one, alone) < 1e-13


# -- reversibility and long runs ---------------------------------------------------------------------


def test_lie_midpoint_runs_backwards() -> None:
    """50 steps forth and 50 back: to rounding, damping and all; rk4 does not come back (so the test can fail)."""
    model, state = scene()
    returns = {}
    for name in ("lie_midpoint", "rk4"):
        there = runner(name)(model, state, 5e-3, 50)
        returns[name] = apart(runner(name)(model, there, -5e-3, 50), state)
    assert returns["lie_midpoint"] < 1e-13
    assert returns["rk4"] > 1e-9


def test_long_energy_behaviour() -> None:
    """A double pendulum for 400 s in 10 000 steps of 40 ms.

    lie_midpoint: an error of 3e-4 of the kinetic energy that neither widens nor drifts. rk4: loses steadily.
    semi_implicit (10 ms): gains; on a tree it is not symplectic, for the acceleration depends on the velocity.
    """
    model, state = carom.compile_scene(library_scene("double_pendulum", angle=0.4))
    h = 0.04
    mean, width = {}, {}  # of the energy error in each tenth of the run, in units of the kinetic energy
    for name, step in (("lie_midpoint", h), ("rk4", h), ("semi_implicit", h / 4)):
        result = carom.rollout(model, state, duration=10_000 * step, frame_dt=4 * step, max_dt=step, scheme=name)
        energy = carom.energy(model, carom.State(result.q, result.v, result.t))
        error = (np.asarray(energy.total) - float(energy.total[0])) / float(energy.kinetic.max())
        tenths = np.array_split(error, 10)
        mean[name], width[name] = np.array([t.mean() for t in tenths]), np.array([np.ptp(t) for t in tenths])
    assert width["lie_midpoint"].max() < 3e-4
    np.testing.assert_allclose(width["lie_midpoint"], width["lie_midpoint"][0], rtol=0.05)
    assert np.ptp(mean["lie_midpoint"]) < 0.02 * width["lie_midpoint"][0]
    assert (np.diff(mean["rk4"]) < 0).all()
    assert mean["rk4"][-1] < -3e-3
    assert (np.diff(mean["semi_implicit"]) > 0).all()
    assert mean["semi_implicit"][-1] > 0.02


# -- what is kept ------------------------------------------------------------------------------------


def test_momenta_of_a_free_tree() -> None:
    """Without gravity, springs and damping inside or not: 1e-11 over 1 s, `exact` (here rk4) in steps of 0.5 ms."""
    model, state = carom.compile_scene(free_tree(carom.SceneBuilder(gravity=(0, 0, 0))))
    result = carom.rollout(model, state, duration=1.0, frame_dt=0.1, max_dt=5e-4)
    momentum = carom.momentum(model, carom.State(result.q, result.v, result.t), (1.0, 2.0, 3.0))
    for part in momentum:
        assert float(jnp.linalg.norm(part[0])) > 1
        np.testing.assert_allclose(part, jnp.broadcast_to(part[0], part.shape), rtol=0, atol=1e-11)


@pytest.mark.parametrize("gravity", [0.0, -9.81])
def test_energy_of_a_free_chain(gravity: float) -> None:
    """Ten links on crossed hinges, joint rates up to 5 rad/s, 10 s with rk4 at 1 ms: 1e-9 of the kinetic energy."""
    model, state = carom.compile_scene(library_scene("chain", n=10, free=True, alternate=True))
    rates = np.random.default_rng(0).normal(0, 1, (2, *state.v.shape))[1]
    state = carom.State(state.q, jnp.asarray(rates), state.t)
    model = model.replace(gravity=jnp.array([0, 0, gravity]))
    result = carom.rollout(model, state, duration=10.0, frame_dt=0.5, max_dt=1e-3, scheme="rk4")
    energy = carom.energy(model, carom.State(result.q, result.v, result.t))
    assert float(jnp.abs(result.v[:, 6:]).max()) > 3
    assert float(jnp.abs(energy.total - energy.total[0]).max()) < 1e-9 * float(energy.kinetic.max())


@pytest.mark.parametrize("speed", [30.0, 1000.0])
def test_fast_bodies_that_are_driven(speed: float) -> None:
    """A stone at 1000 rad/s, 17 rad a step, does the same if a motor drives it (by 1e-9 N m, but by Runge-Kutta) as in
    exact flight, and lanes with steps of their own keep momentum and energy."""
    b = carom.SceneBuilder(gravity=(0, 0, 0))
    rate = speed * np.array([0.6, -0.64, 0.48])
    b.add_body("stone", com=(0.1, 0.2, -0.1), angular_velocity=rate, **FLESH)
    model, state = carom.compile_scene(b)
    flight, driven = (runner("exact")(model, state, 1 / 60, 6, control=jnp.full(6, x)) for x in (0.0, 1e-9))
    np.testing.assert_allclose(driven.v[:3], flight.v[:3], rtol=0, atol=1e-2 * speed)
    np.testing.assert_allclose(driven.q, flight.q, rtol=0, atol=1e-2)
    assert float(jnp.abs(driven.v - state.v).max()) > 0.05 * speed
    h, lanes = jnp.array([1 / 600, 1 / 60, 1 / 20]), carom.tile(state, 3)
    ends = runner("exact")(model, lanes, h, 6, control=jnp.full((3, 6), 1e-9))
    alone = runner("exact")(model, state, h[2], 6, control=jnp.full(6, 1e-9))
    assert apart(jax.tree.map(lambda x: x[2], ends), alone) < 1e-9 * speed
    before, after = carom.momentum(model, state), carom.momentum(model, ends)
    for x, y in zip(before, after, strict=True):
        np.testing.assert_allclose(y, np.tile(x, (3, 1)), rtol=0, atol=1e-8 + 1e-2 * float(jnp.linalg.norm(x)))
    kinetic = carom.energy(model, state).kinetic
    np.testing.assert_allclose(carom.energy(model, ends).kinetic, kinetic, rtol=2e-2)


def test_fast_trees() -> None:
    """A tree whose base rotates at 300 rad/s and whose ball joint at 200 keeps its momentum in steps of 1/60 s."""
    model, state = carom.compile_scene(free_tree(carom.SceneBuilder(gravity=(0, 0, 0))))
    v = state.v.at[:3].set(jnp.array([180.0, -192, 144])).at[7:].set(jnp.array([80.0, 150, -100]))
    state = carom.State(state.q, v, state.t)
    end = runner("exact")(model, state, 1 / 60, 12)
    for x, y in zip(carom.momentum(model, state), carom.momentum(model, end), strict=True):
        np.testing.assert_allclose(y, x, rtol=0, atol=2e-2 * float(jnp.linalg.norm(x)))


# -- impulses ----------------------------------------------------------------------------------------

H = 0.01


@pytest.mark.parametrize("name", SCHEMES)
def test_positions_see_half_of_an_impulse(name: str) -> None:
    """A body at rest, pushed by p over one step: v = p/m, and x = h p/(2m), as under the constant force p/h.

    semi_implicit moves with the end velocity: x = h p/m.
    """
    b = carom.SceneBuilder(gravity=(0, 0, 0))
    b.add_body("puck", mass=2.0, inertia=(1, 1, 1))
    model, state = carom.compile_scene(b)
    p = jnp.array([0, 0, 0, 4.0, -2.0, 1.0])
    end = runner(name)(model, state, H, impulses=p)
    seen = 1.0 if name == "semi_implicit" else 0.5
    np.testing.assert_allclose(end.v, p / 2.0, rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(end.q[:3], seen * H * p[3:] / 2.0, rtol=1e-13, atol=1e-16)


@pytest.mark.parametrize("name", SCHEMES)
def test_impulse_is_a_force_over_the_step(name: str) -> None:
    """impulses = h F is what torque motors told F do; on the stone only at the start, where moments are taken."""
    model, state = scene()
    stone = model.topology.v_start[model.topology.link("stone")]
    F = jnp.asarray(np.random.default_rng(3).normal(0, 2, model.topology.nv)).at[stone:].set(0)
    pushed = runner(name)(model, state, H, impulses=H * F)
    assert apart(pushed, runner(name)(model, state, H, control=F)) < 1e-13
    assert apart(pushed, runner(name)(model, state, H)) > 1e-3


def test_impulse_on_an_offset_stone() -> None:
    """Its angular impulse about the centre of mass is that at the step's start, however far the body turns."""
    model, state = scene()
    stone = model.topology.v_start[model.topology.link("stone")]
    p = jnp.zeros(model.topology.nv).at[stone:].set(jnp.array([0.1, 0.2, -0.1, 1.0, -2.0, 0.5]))
    step = runner("exact")

    def spin(s: carom.State) -> jax.Array:
        """Angular momentum about the stone's own centre, of the stone alone."""
        only = model.replace(
            mass=jnp.zeros(6).at[5].set(1.0), inertia=model.inertia * (jnp.arange(6) == 5)[:, None, None]
        )
        center = carom.fk(model, s.q)
        return carom.momentum(only, s, center.position[5] + center.rotation[5] @ model.com[5]).angular

    moment = p[stone : stone + 3] - jnp.cross(carom.fk(model, state.q).rotation[5] @ model.com[5], p[stone + 3 :])
    gained = spin(step(model, state, H, impulses=p)) - spin(step(model, state, H))
    np.testing.assert_allclose(gained, moment, rtol=0, atol=1e-14)  # [N m s]; moments that turn along: 1e-2 off
