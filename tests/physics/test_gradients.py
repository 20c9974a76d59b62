"""Derivatives of whole runs, through impacts, slides and rests: closed forms, and central differences of the runs.

A run finds touches within its gap band, so that differences of runs are off by the band over the length of a step
(1e-9 m, 4 mm: 2.5e-7), while derivatives are not: where the two are compared the band is narrower.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.engine import results
from carom.tests.oracles.native_and_xla import no_fallback

pytestmark = pytest.mark.slow  # derivatives of a whole step compile for ten seconds and more


@pytest.fixture(autouse=True)
def _machine_code() -> Any:
    """Derivatives left to XLA compile for minutes."""
    with no_fallback():
        yield


G, RADIUS = 9.81, 0.1
NARROW = 1e-12  # m: differences of runs are off by 1e-9 then
RUN: dict[str, Any] = {"max_events": 8, "max_impacts": 8, "throw": False}


def differences(f: Any, x: jax.Array, step: float) -> np.ndarray:
    """Central, a column for each number in x."""
    f = jax.jit(f)
    return np.stack([(f(x + d) - f(x - d)) / (2 * step) for d in jnp.eye(len(x)) * step], -1)


# -- a ball, thrown and pushed --------------------------------------------------------------------------------

END, TICKS = 2.0, 64  # s; steps that a run in reverse mode has room for
# height of its fall [m], speeds upwards and along [m/s], restitution, friction
THROWN = np.array([1.0, 0.3, 8.0, 0.8, 0.1])  # bounces three times, and slips each time
PUSHED = np.array([0.0, 0.0, 1.5, 0.5, 0.4])  # slips along the ground, then rolls
ACROSS = np.array([0.6, 0.8])  # reverse mode: the slope of a sum of both numbers


def bounced(x: jax.Array) -> jax.Array:
    """(along, height) at END, after the third bounce: each returns e times the speed, lasts that much less, and slows
    it by mu (1 + e) of its speed."""
    h, v, along, e, mu = x
    u = jnp.sqrt(v * v + 2 * G * h)
    first, second, third = (v + u) / G, 2 * e * u / G, 2 * e * e * u / G
    since = END - first - second - third
    slower = mu * (1 + e) * u * jnp.cumsum(jnp.stack([jnp.ones_like(e), e, e * e]))
    far = along * END - slower @ jnp.stack([second, third, since])
    return jnp.stack([far, RADIUS + e**3 * u * since - G * since * since / 2])


def rolled(x: jax.Array) -> jax.Array:
    """How far at END: it slips for t = 2 v / (7 mu g), and rolls at 5/7 of its speed."""
    v, mu = x
    t = 2 * v / (7 * mu * G)
    return v * t - mu * G * t * t / 2 + 5 / 7 * v * (END - t)


@functools.cache
def ball(dtype: Any) -> Any:
    b = carom.SceneBuilder(gravity=(0, 0, -G))
    b.add_plane(friction=0.1, restitution=0.8)
    b.add_body("ball", shapes=[carom.Sphere(RADIUS)], mass=1.0, position=(0, 0, 1), friction=0.1, restitution=0.8)
    return carom.compile_scene(b, dtype=dtype)


def moved(x: jax.Array, **how: Any) -> Any:
    """(along, height) at END."""
    model, state = ball(x.dtype.name)
    state = carom.State(state.q.at[2].set(x[0] + RADIUS), state.v.at[5].set(x[1]).at[3].set(x[2]), state.t)
    every = jnp.ones_like(model.pair_friction)
    model = model.replace(pair_restitution=x[3] * every, pair_friction=x[4] * every)
    run = carom.rollout(model, state, duration=END, frame_dt=END, max_dt=0.1, max_contacts=1, **RUN, **how)
    return run.state.q[jnp.array([0, 2])], (run.code, run.stats.impacts, run.stats.ticks)


@functools.cache
def slopes(mode: str, dtype: str) -> Any:
    """A program: rows of both numbers in forward mode, ACROSS of them in reverse mode; and what came of the run."""
    ball(dtype)  # not inside jit
    if mode == "forward":
        return jax.jit(jax.jacfwd(moved, has_aux=True))

    def across(x: jax.Array) -> Any:
        place, told = moved(x, reverse=True, max_ticks=TICKS)
        return ACROSS @ place, (place, told)

    return jax.jit(jax.grad(across, has_aux=True))


@pytest.mark.parametrize(
    ("mode", "dtype", "tolerance"),
    [
        ("forward", "float64", 1e-9),
        ("reverse", "float64", 1e-9),
        ("forward", "float32", 2e-4),  # 1e-5 m of gap
    ],
)
def test_of_a_ball_after_three_bounces(mode: str, dtype: str, tolerance: float) -> None:
    """By the height, the speeds, e and mu: what the formula says."""
    x = jnp.asarray(THROWN, dtype)
    slope, told = slopes(mode, dtype)(x)
    code, impacts, ticks = told if mode == "forward" else told[1]
    assert (int(code), int(impacts)) == (results.OK, 3)
    assert int(ticks) <= TICKS
    expected = jax.jacfwd(bounced)(jnp.asarray(THROWN))
    expected = expected if mode == "forward" else ACROSS @ expected
    np.testing.assert_allclose(slope, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("along", "mu"), [(1.5, 0.4), (1.05, 0.2), (1.0, 0.35), (1.0, 0.1), (3.0, 0.25)])
def test_of_a_ball_that_slips_and_rolls(along: float, mu: float) -> None:
    """Without an impact, and forward and reverse are the same number, whichever step the slip ends in."""
    x = jnp.asarray(PUSHED).at[2].set(along).at[4].set(mu)
    forward, (code, impacts, _) = slopes("forward", "float64")(x)
    assert (int(code), int(impacts)) == (results.OK, 0)
    # where the slip ends is found to 1e-3 of the step
    np.testing.assert_allclose(forward[0, [2, 4]], jax.grad(rolled)(x[jnp.array([2, 4])]), rtol=1e-4)
    reverse, (_, (code, _, ticks)) = slopes("reverse", "float64")(x)
    assert int(code) == results.OK
    assert int(ticks) <= TICKS
    np.testing.assert_allclose(reverse, ACROSS @ forward, rtol=1e-9, atol=1e-12)


def test_too_few_ticks_are_said() -> None:
    """A run that has not reached its end has a code that says so, and ends where it got: so many bounces cost more."""
    _, (place, (code, _, ticks)) = slopes("reverse", "float64")(jnp.array([0.001, 0.0, 1.0, 0.99, 0.0]))
    assert (int(code), int(ticks)) == (results.TICKS_CAPPED, TICKS)
    assert 0 < float(place[0]) < END


# -- against differences --------------------------------------------------------------------------------------


def rods() -> Any:
    """A rod that strikes its stop: by its angle and speed, mass, centre of mass, restitution and the stop. And one with
    a ball that strikes a wall: by its angle and speed, mass, the rod's length and the ball's radius."""
    b = carom.SceneBuilder(gravity=(0, 0, -G))
    b.add_plane(normal=(1, 0, 0), offset=-0.3, friction=0.3, restitution=0.6)
    rod: dict[str, Any] = {"mass": 1.3, "com": (0, 0, -0.5), "inertia": (0.1, 0.1, 0.01)}
    joint = carom.Revolute((0, 1, 0), limits=(-0.4, 2.0), restitution=0.7, damping=0.05)
    b.add_link("pendulum", joint=joint, position=(9, 0, 1), **rod)
    ball = carom.Sphere(0.1, position=(0, 0, -0.8))
    hinge = carom.Revolute((0, 1, 0))
    b.add_link("hammer", joint=hinge, position=(0, 0, 1), shapes=[ball], friction=0.3, restitution=0.6, **rod)
    model, state = carom.compile_scene(b)

    def given(x: jax.Array) -> Any:
        changed = model.replace(
            mass=jnp.stack([x[2], x[8]]),
            com=model.com.at[0, 2].set(x[3]),
            limit_restitution=model.limit_restitution.at[0].set(x[4]),
            lower=model.lower.at[0].set(x[5]),
            shape_position=model.shape_position.at[1, 2].set(x[9]),
            shape_size=model.shape_size.at[1, 0].set(x[10]),
        )
        return changed, carom.State(x[jnp.array([0, 6])], x[jnp.array([1, 7])], state.t)

    x = [0.9, 0.1, 1.3, -0.5, 0.7, -0.4, -0.6, -0.2, 1.3, -0.8, 0.1]
    # each rod's numbers at the end, of q and v, by its own at the start
    return given, x, 1.6, 2, [(slice(0, 4, 2), slice(6)), (slice(1, 4, 2), slice(6, 11))]


def balls() -> Any:
    """One is thrown at another that falls and spins: by their places, the throw, a mass and the friction."""
    b = carom.SceneBuilder()
    b.add_plane(friction=0.2, restitution=0.8)
    how: dict[str, Any] = {"shapes": [carom.Sphere(RADIUS)], "friction": 0.2, "restitution": 0.8}
    b.add_body("first", mass=1.0, position=(0, 0, 0.4), angular_velocity=(0, 20, 0), **how)
    b.add_body("second", mass=1.0, position=(0.6, 0.05, 0.5), linear_velocity=(-3, 0, -0.5), **how)
    model, state = carom.compile_scene(b)

    def given(x: jax.Array) -> Any:
        changed = model.replace(mass=model.mass.at[0].set(x[3]), pair_friction=model.pair_friction * x[4])
        q, v = state.q.at[2].set(x[0]).at[8].set(x[1]), state.v.at[9].set(x[2])
        return changed, carom.State(q, v, state.t)

    return given, [0.4, 0.05, -3.0, 1.0, 1.0], 0.45, 3, [(slice(None), slice(None))]


@pytest.mark.parametrize("scene", [rods, balls])
def test_against_differences(scene: Any) -> None:
    """In forward mode, by the start and by parameters of the model."""
    given, start, end, impacts, blocks = scene()

    def run(x: jax.Array) -> Any:
        model, state = given(x)
        model = model.replace(gap_band=jnp.full_like(model.gap_band, NARROW))
        return carom.rollout(model, state, duration=end, frame_dt=end, max_contacts=4, **RUN)

    def last(x: jax.Array) -> tuple[jax.Array, Any]:
        ran = run(x)
        return jnp.concatenate([ran.state.q, ran.state.v]), (ran.code, ran.stats.impacts)

    x = jnp.asarray(start)
    forward, (code, count) = jax.jit(jax.jacfwd(last, has_aux=True))(x)
    assert (int(code), int(count)) == (results.OK, impacts)
    expected = differences(lambda x: last(x)[0], x, 1e-5)
    # differences: 1e-9 of the band, 1e-10 of their length; where an impact turns slip its third derivative is larger
    for ends, own in blocks:
        off = np.abs(forward[ends] - expected[ends])
        assert off.max() <= 1e-6 * np.abs(expected[ends, own]).max()


def test_of_a_sliding_box() -> None:
    """It slides on four corners and stops: x = v^2 / (2 mu g).

    Where the slide stops is a solution of order 2 in the step, and found to 1e-3 of the last one.
    """
    b = carom.SceneBuilder(gravity=(0, 0, -G))
    b.add_plane(friction=0.4, restitution=0.0)
    b.add_body("box", shapes=[carom.Box((0.2, 0.15, 0.1))], mass=2.0, position=(0, 0, 0.1), friction=0.4)
    model, state = carom.compile_scene(b)
    x = jnp.array([1.5, 0.4])

    def end(x: jax.Array) -> Any:
        changed = model.replace(pair_friction=jnp.full_like(model.pair_friction, x[1]))
        start = carom.State(state.q, state.v.at[3].set(x[0]), state.t)
        run = carom.rollout(changed, start, duration=0.5, frame_dt=0.5, max_contacts=4, **RUN)
        return run.state.q[0], run.code

    forward, code = jax.jit(jax.jacfwd(end, has_aux=True))(x)
    assert int(code) == results.OK
    v, mu = x
    np.testing.assert_allclose(forward, [v / (mu * G), -v * v / (2 * mu * mu * G)], rtol=1e-4)


@functools.cache
def stack() -> Any:
    b = carom.SceneBuilder(gravity=(0, 0, -G))
    b.add_plane(friction=0.5)
    for k in range(2):
        b.add_body(f"box{k}", shapes=[carom.Box((0.1, 0.1, 0.1))], mass=1.0, position=(0.02 * k, 0, 0.1 + 0.2 * k))
    return carom.compile_scene(b)


def stacked(x: jax.Array, max_dt: float, **how: Any) -> tuple[jax.Array, Any]:
    """Two stacked boxes slide at different speeds, tip together onto an edge, and the lower one stops sliding."""
    model, state = stack()
    start = carom.State(state.q, state.v.at[3].set(x[1]).at[9].set(x[2]), state.t)
    run = carom.rollout(
        model.replace(mass=model.mass * x[0]), start, duration=0.2, frame_dt=0.2, max_dt=max_dt, **{**RUN, **how}
    )
    return run.state.q[7] + 2 * run.state.q[0], run.code


@pytest.mark.parametrize(("max_dt", "tolerance"), [(0.05, 5e-3), (0.01, 1e-3)])
def test_of_boxes_that_slide_on_many_contacts(max_dt: float, tolerance: float) -> None:
    """Corrections of steps move with the start, and so do the ends of slides that are found in several tries."""
    stack()
    x = jnp.array([1.0, 0.7, 1.1])
    forward, code = jax.jit(jax.jacfwd(functools.partial(stacked, max_dt=max_dt), has_aux=True))(x)
    assert int(code) == results.OK
    expected = differences(lambda x: stacked(x, max_dt)[0], x, 1e-5)
    np.testing.assert_allclose(forward, expected, atol=tolerance * np.abs(expected).max())
    if max_dt == 0.05:
        back = jax.jit(jax.grad(lambda x: stacked(x, max_dt, reverse=True, max_ticks=48)[0]))(x)
        np.testing.assert_allclose(back, forward, rtol=1e-9)


@functools.cache
def neighbours() -> Any:
    b = carom.SceneBuilder(gravity=(0, 0, -G))
    b.add_plane(friction=0.3)
    for name, half, mass, place in (
        ("a", (0.1, 0.1, 0.1), 1.0, (0, 0, 0.1)),
        ("b", (0.1, 0.2, 0.1), 2.0, (0.26, 0.03, 0.1)),
    ):
        b.add_body(name, shapes=[carom.Box(half)], mass=mass, position=place, friction=0.3)
    return carom.compile_scene(b)


@pytest.mark.parametrize("along", [(0.13, 1.64, 0.13), (0.10, 1.91, 0.26), (0.36, 2.1, -0.2)])
def test_of_a_box_that_turns_into_another(along: tuple[float, float, float]) -> None:
    """The corner of one slides over the face of the other, by the spin and the speed of the first."""
    model, state = neighbours()
    model = model.replace(gap_band=jnp.asarray(NARROW))

    def pushed(x: jax.Array) -> Any:
        start = carom.State(state.q, state.v.at[2:5].set(x), state.t)
        run = carom.rollout(model, start, duration=0.2, frame_dt=0.2, max_dt=0.02, max_events=0, throw=False)
        return jnp.concatenate([run.state.q, run.state.v]), run.code

    x = jnp.array(along)
    forward, code = jax.jit(jax.jacfwd(pushed, has_aux=True))(x)
    assert int(code) == results.OK
    expected = differences(lambda x: pushed(x)[0], x, 1e-6)
    np.testing.assert_allclose(forward, expected, atol=5e-3 * np.abs(expected).max())


@functools.cache
def walled() -> Any:
    b = carom.SceneBuilder(gravity=(0, 0, -G))
    b.add_plane(friction=0.2)
    b.add_static("wall", [carom.Box((0.1, 1, 0.5))], position=(0.5, 0, 0.5), restitution=0.6, friction=0.2)
    box = [carom.Box((0.1, 0.1, 0.1))]
    b.add_body("box", box, mass=1.0, position=(0.2, 0, 0.1), restitution=0.6, friction=0.2)
    return carom.compile_scene(b)


@pytest.mark.parametrize("along", [(0.64, 2.4, 0.5), (-0.72, 2.9, -0.2), (-0.9, 2.2, -0.6), (0.4, 2.6, 0.1)])
def test_of_a_box_that_bounces_off_a_wall(along: tuple[float, float, float]) -> None:
    """It slides over the floor and strikes with edges and corners in turn: steps of every length end at impacts. By its
    spin, its velocity and its size."""
    model, state = walled()
    model = model.replace(gap_band=jnp.asarray(NARROW))

    def bounced(x: jax.Array) -> Any:
        start = carom.State(state.q.at[2].multiply(x[3]), state.v.at[2:5].set(x[:3]), state.t)
        grown = model.replace(shape_size=model.shape_size.at[-1].multiply(x[3]))
        run = carom.rollout(grown, start, duration=0.08, frame_dt=0.08, max_dt=0.01, max_events=0, throw=False)
        return jnp.concatenate([run.state.q, run.state.v]), (run.code, run.stats.impacts)

    x = jnp.array([*along, 1.0])
    forward, (code, impacts) = jax.jit(jax.jacfwd(bounced, has_aux=True))(x)
    assert int(code) == results.OK
    assert int(impacts) > 3
    expected = differences(lambda x: bounced(x)[0], x, 1e-6)
    assert (np.abs(forward - expected).max(0) < 5e-3 * np.abs(expected).max(0)).all()


# -- trees that rest ------------------------------------------------------------------------------------------


def legs() -> Any:
    """A leg with a spring falls on its foot and stands. Until it is corrected, the foot closes faster than at rest."""
    b = carom.SceneBuilder()
    b.add_plane(friction=0.5)
    up = (0, 0, 1)
    b.add_link("hip", joint=carom.Prismatic(axis=up), mass=0.8, position=(0, 0, 0.5), inertia=(0.01,) * 3)
    spring = carom.Prismatic(axis=up, stiffness=300.0, damping=3.0)
    b.add_link("foot", parent="hip", joint=spring, position=(0, 0, -0.3), mass=0.2,
               shapes=[carom.Sphere(0.1)], inertia=(1e-3,) * 3)  # fmt: skip
    return *carom.compile_scene(b), 0.35


def arms() -> Any:
    """A double pendulum whose first joint falls to its limit and rests there."""
    b = carom.SceneBuilder()
    axis, inertia = (0, 1, 0), (0.01,) * 3
    b.add_link("a", joint=carom.Revolute(axis=axis, limits=(-0.6, 0.7)), mass=0.8, com=(0.2, 0, 0), inertia=inertia)
    b.add_link("b", parent="a", joint=carom.Revolute(axis=axis, damping=0.02), position=(0.4, 0, 0), mass=0.4,
               com=(0.25, 0, 0), inertia=inertia)  # fmt: skip
    return *carom.compile_scene(b), 0.35


@pytest.mark.parametrize("scene", [legs, arms])
def test_of_trees_at_rest(scene: Any) -> None:
    """By gravity, with steps whose ends are corrected: against differences, and reverse mode against forward mode."""
    model, state, end = scene()

    def run(x: jax.Array | float, **how: Any) -> tuple[jax.Array, Any]:
        ran = carom.rollout(
            model.replace(gravity=model.gravity * x),
            state,
            duration=end,
            frame_dt=end,
            max_events=0,
            throw=False,
            **how,
        )
        return jnp.concatenate([ran.state.q, ran.state.v]), (ran.code, ran.stats.resting)

    forward, (code, rests) = jax.jit(jax.jacfwd(run, has_aux=True))(1.0)
    assert int(code) == results.OK
    assert int(rests) > 10
    step = 1e-5
    expected = (run(1.0 + step)[0] - run(1.0 - step)[0]) / (2 * step)
    np.testing.assert_allclose(forward, expected, rtol=1e-3, atol=1e-4)
    across = jnp.array([0.3, -0.2, 0.5, 0.7])
    back = jax.jit(jax.grad(lambda x: across @ run(x, reverse=True, max_ticks=400)[0]))(1.0)
    np.testing.assert_allclose(back, across @ forward, rtol=1e-6)
