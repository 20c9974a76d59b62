"""Rollouts: frames and times, batches, controls, failures, and what passes through them (jit, vmap, derivatives)."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.engine import results
from carom.integrators.clock import Frames
from carom.integrators.motion.forces import Drive
from carom.integrators.rules import Rules
from carom.integrators.step import first_lane, tick
from carom.scenes.library.registry import library_scene

MASS = 2.0


@functools.cache
def slider() -> tuple[carom.Model, carom.State]:
    """2 kg on a straight rail, pushed by a force motor: x'' = u / m."""
    b = carom.SceneBuilder()
    b.add_link("slider", joint=carom.Prismatic((1, 0, 0)), mass=MASS, inertia=(1, 1, 1), v0=1.0)
    return carom.compile_scene(b)


@functools.cache
def pair() -> tuple[carom.Model, carom.State]:
    """A pendulum of two links, and a stone thrown past it."""
    b = carom.SceneBuilder()
    for name, parent, z in (("upper", "world", 0.0), ("lower", "upper", -0.5)):
        joint = carom.Revolute((0, 1, 0), damping=0.1)
        b.add_link(
            name, parent, joint=joint, position=(0, 0, z), mass=1.0, com=(0, 0, -0.25), inertia=(0.02,) * 3, q0=0.5
        )
    b.add_body("stone", mass=0.5, com=(0.1, 0, 0), inertia=(1e-3, 2e-3, 2e-3), angular_velocity=(3, 1, 2))
    return carom.compile_scene(b)


PAIR_RUN: dict[str, Any] = {"duration": 0.2, "frame_dt": 0.05, "max_dt": 0.01}

# -- frames -----------------------------------------------------------------------------------------


def test_frames_and_times() -> None:
    """The first frame is the start; the last is at `duration`, whether frame_dt divides it or not."""
    model, state = slider()
    for duration, t in ((0.3, [0, 0.1, 0.2, 0.3]), (0.25, [0, 0.1, 0.2, 0.25]), (0.04, [0, 0.04])):
        result = carom.rollout(model, state, duration=duration, frame_dt=0.1)
        np.testing.assert_allclose(result.t, t, rtol=0, atol=1e-15)
        np.testing.assert_allclose(result.q[:, 0], t, rtol=0, atol=1e-14)  # at 1 m/s
        assert result.q.shape == result.v.shape == (len(t), 1)
        np.testing.assert_array_equal(result.state.q, result.q[-1])
        np.testing.assert_array_equal(result.state.t, result.t[-1])
        assert int(result.code) == results.OK


def test_rollouts_continue() -> None:
    """A rollout from where another ended goes on with its clock and its motion."""
    model, state = pair()
    whole = carom.rollout(model, state, **PAIR_RUN)
    half = dict(PAIR_RUN, duration=0.1)
    first = carom.rollout(model, state, **half)
    second = carom.rollout(model, first.state, **half)
    np.testing.assert_allclose(second.t, whole.t[2:], rtol=0, atol=1e-15)
    np.testing.assert_allclose(second.q, whole.q[2:], rtol=0, atol=1e-14)  # frame times round differently


def test_steps_are_at_most_max_dt() -> None:
    """A function as control is called once a step: it counts them, and sees the step's start."""
    model, state = slider()
    # pushed by t for each step of h from its start: v gains sum(h t_k)/m = h^2 n (n - 1) / 2m
    for frame_dt, max_dt, h in ((0.1, 0.03, 0.025), (0.1, 1.0, 0.1), (0.1, 0.1, 0.1)):
        result = carom.rollout(
            model, state, duration=0.2, frame_dt=frame_dt, max_dt=max_dt, control=lambda model, state, t: t[None]
        )
        n = round(0.2 / h)
        assert float(result.v[-1, 0]) == pytest.approx(1 + h**2 * n * (n - 1) / 2 / MASS, abs=1e-14)


# -- batches ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lanes() -> carom.State:
    """Four different starts."""
    _, state = pair()
    noise = np.random.default_rng(0).normal(0, 1, (4, *state.v.shape))
    batch = carom.tile(state, 4)
    return carom.State(batch.q, batch.v + noise, batch.t)


def lane(batch, k: int):
    return jax.tree.map(lambda x: x[k], batch)


def test_batch_is_its_lanes(lanes: carom.State) -> None:
    """To 1e-12, and often bitwise, but XLA may contract a product and a sum in one shape and not in another.

    The same batch twice: bitwise.
    """
    model, _ = pair()
    both = carom.rollout(model, lanes, **PAIR_RUN)
    assert both.t.shape == (4, 5)
    assert both.q.shape == (4, 5, model.topology.nq)
    assert both.code.shape == (4,)
    for k in range(4):
        alone = carom.rollout(model, lane(lanes, k), **PAIR_RUN)
        for name in ("t", "q", "v"):
            np.testing.assert_allclose(getattr(both, name)[k], getattr(alone, name), rtol=0, atol=1e-12)
    again = carom.rollout(model, lanes, **PAIR_RUN)
    for a, b in zip(jax.tree.leaves(both), jax.tree.leaves(again), strict=True):
        np.testing.assert_array_equal(a, b)


def test_batched_parameters() -> None:
    """Any parameter may differ from lane to lane, the state need not: one start, four sets of numbers."""
    model, state = pair()
    k = jnp.arange(4.0)
    batched = model.replace(
        mass=model.mass * (1 + k[:, None]),
        com=model.com + 0.01 * k[:, None, None],
        damping=model.damping * k[:, None],
        gravity=jnp.array([0, 0, -1.0]) * k[:, None],
    )
    both = carom.rollout(batched, state, **PAIR_RUN)
    assert both.q.shape == (4, 5, model.topology.nq)
    names = ("mass", "com", "damping", "gravity")
    for i in range(4):
        single = model.replace(**{name: getattr(batched, name)[i] for name in names})
        np.testing.assert_allclose(both.q[i], carom.rollout(single, state, **PAIR_RUN).q, rtol=0, atol=1e-12)
    assert float(jnp.abs(both.q[0, -1] - both.q[3, -1]).max()) > 1e-3


@pytest.mark.parametrize("name", ["stack", "ragdoll", "pool_break", "dominoes"])
def test_single_precision_stays_single(name: str) -> None:
    """Though JAX has double precision on: a tick's lane has no other numbers."""
    model, state = carom.compile_scene(library_scene(name), dtype="float32")
    rules, frames, max_dt = Rules(), Frames.of([0.1, 0.1], np.float32), jnp.float32(1 / 240)

    def looked() -> Any:
        lane = first_lane(rules, model, state, frames, lambda *_: Drive())
        return lane, tick(rules, model, lane, frames, max_dt, lambda *_: Drive())

    assert {x.dtype.name for x in jax.tree.leaves(jax.eval_shape(looked))} == {"float32", "int32", "bool"}


def test_tile() -> None:
    _, state = pair()
    many = carom.tile(state, 3)
    assert many.q.shape == (3, *state.q.shape)
    assert many.t.shape == (3,)
    with pytest.raises(ValueError, match="lanes is 0; it must be at least 1"):
        carom.tile(state, 0)


# -- control ----------------------------------------------------------------------------------------


def test_forms_of_control() -> None:
    """Targets, a constant, one row an interval (also for each lane), a function: what the motor is told."""
    model, state = slider()
    run = functools.partial(carom.rollout, duration=0.4, frame_dt=0.1)

    def speed(control, state=state, model=model):
        return np.asarray(run(model, state, control=control).v)[..., 0]

    def under(forces):
        return 1 + np.concatenate([[0], np.cumsum(forces)]) * 0.1 / MASS

    np.testing.assert_allclose(speed(None), under([0] * 4), rtol=0, atol=1e-15)
    told = model.replace(motor_target=jnp.array([3.0]))
    np.testing.assert_allclose(speed(None, model=told), under([3] * 4), rtol=0, atol=1e-14)
    np.testing.assert_allclose(speed([3.0]), under([3] * 4), rtol=0, atol=1e-14)
    rows = np.array([[1.0], [-2.0], [0.5], [4.0]])
    np.testing.assert_allclose(speed(rows), under(rows[:, 0]), rtol=0, atol=1e-14)
    np.testing.assert_allclose(speed(lambda model, state, t: jnp.array([3.0])), under([3] * 4), rtol=0, atol=1e-14)
    two = carom.tile(state, 2)
    expected = [under(rows[:, 0]), under(-rows[:, 0])]
    np.testing.assert_allclose(speed(np.stack([rows, -rows], 1), two), expected, rtol=0, atol=1e-14)
    np.testing.assert_allclose(speed(rows, two), [expected[0]] * 2, rtol=0, atol=1e-14)
    feedback = speed(lambda model, state, t: -state.v, two)  # a policy that sees lanes
    np.testing.assert_allclose(
        feedback, [np.exp(-0.1 * np.arange(5) / MASS)] * 2, rtol=0, atol=1e-3
    )  # held over a step: order 1


STOPS, BOUNCE = (-0.2, 0.3), 0.5


@functools.cache
def stopped() -> tuple[carom.Model, carom.State]:
    """The slider on a level rail between stops."""
    b = carom.SceneBuilder(gravity=(0, 0, 0))
    joint = carom.Prismatic((1, 0, 0), limits=STOPS, restitution=BOUNCE)
    b.add_link("slider", joint=joint, mass=MASS, inertia=(1, 1, 1), v0=1.0)
    return carom.compile_scene(b)


def between_stops(push, frames: int, frame_dt: float) -> tuple[np.ndarray, list[tuple[float, float]]]:
    """(x, v) at the frames, and (time, speed) of the impacts; push(frame, v) is constant between frames and impacts."""
    x, v, path, impacts = 0.0, 1.0, [(0.0, 1.0)], []
    for frame in range(frames):
        left = frame_dt
        while left > 0:
            a = push(frame, v) / MASS
            times = [(t.real, stop) for stop in STOPS for t in np.roots([a / 2, v, x - stop]) if abs(t.imag) == 0]
            t, stop = min(((t, s) for t, s in times if t > 1e-9), default=(np.inf, 0.0))
            h = min(t, left)
            x, v, left = x + v * h + a * h * h / 2, v + a * h, left - h
            if h == t:
                impacts.append(((frame + 1) * frame_dt - left, v))
                x, v = stop, -BOUNCE * v
        path.append((x, v))
    return np.array(path), impacts


@pytest.mark.slow
def test_function_against_stops() -> None:
    """A motor that pushes a slider into its limits, and sees each impact's outcome at once, not at the next frame."""
    model, state = stopped()

    def follow(model, state, t):
        return jnp.where(state.v > 0, 4.0, -6.0)

    run = carom.rollout(model, state, duration=1.2, frame_dt=0.2, control=follow, max_events=16)
    hits_as_expected(run, *between_stops(lambda frame, v: 4.0 if v > 0 else -6.0, 6, 0.2))


@pytest.mark.slow  # a program of its own
def test_rows_against_stops() -> None:
    """One row for each lane and frame, of lanes that are never at the same impact."""
    model, state = stopped()
    forces = np.array([3.0, 3.0, -4.0, -4.0, 6.0, -2.0])[:, None] * [1.0, -0.7]
    lanes = carom.tile(state, 2)
    run = carom.rollout(model, lanes, duration=1.2, frame_dt=0.2, control=jnp.asarray(forces)[..., None], max_events=16)
    for k in range(2):
        hits_as_expected(lane(run, k), *between_stops(lambda frame, v, k=k: forces[frame, k], 6, 0.2))


def hits_as_expected(run: Any, path: np.ndarray, impacts: list[tuple[float, float]]) -> None:
    """Limits in the log (references.md, Stop of a joint): lambda = -(1 + e) v m, dT = -(1 - e^2) m v^2 / 2."""
    np.testing.assert_allclose(np.stack([run.q[:, 0], run.v[:, 0]], 1), path, rtol=0, atol=1e-12)
    rows = int(run.events.count)
    t, speeds = np.array(impacts).T
    assert rows == len(impacts) >= 1
    log = {name: np.asarray(x)[:rows] for name, x in vars(run.events).items() if np.ndim(x)}
    np.testing.assert_allclose(log["t"], t, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(log["dof"], 0)
    np.testing.assert_array_equal(log["pair"], -1)
    np.testing.assert_array_equal(log["bodies"], [[0, -1]] * rows)
    np.testing.assert_allclose(log["u_before"][:, 2], -np.abs(speeds), rtol=0, atol=1e-12)
    np.testing.assert_allclose(log["u_after"][:, 2], BOUNCE * np.abs(speeds), rtol=0, atol=1e-12)
    np.testing.assert_allclose(log["impulse"][:, 2], (1 + BOUNCE) * np.abs(speeds) * MASS, rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        log["energy_after"] - log["energy_before"], -(1 - BOUNCE**2) * MASS * speeds**2 / 2, rtol=0, atol=1e-12
    )
    np.testing.assert_array_equal(log["impulse"][:, :2], 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"duration": 0.0}, "duration is 0.0; it must be a positive number of seconds"),
        ({"duration": float("nan")}, "duration is nan; it must be a positive"),
        ({"impacts": "simultaneous", "law": "newton"}, "law of its own, Moreau's, and does not read law='newton'"),
        ({"duration": "1"}, "duration is '1'; it must be a positive number of seconds"),
        ({"chunk": 0}, "chunk is 0; it must be a whole number from 1 to"),
        ({"frame_dt": -0.1}, "frame_dt is -0.1; it must be a positive"),
        ({"max_dt": float("inf")}, "max_dt is inf; it must be a positive"),
        ({"scheme": "euler"}, "scheme 'euler' is unknown; it must be one of exact, rk4"),
        ({"law": ["stronge"]}, r"law is \['stronge'\]; it must be a name"),
        ({"max_pairs": 3.5}, "max_pairs is 3.5; it must be a whole number from 1 to"),
        (
            {"control": np.zeros(3)},
            r"control has shape \(3,\); give \(1,\) for a constant, or one row for each of the 2",
        ),
        ({"control": np.zeros((3, 1))}, r"control has shape \(3, 1\); .* intervals between frames: \(2, 1\)$"),
        ({"control": np.zeros((2, 5, 1))}, r"control has shape \(2, 5, 1\)"),
        ({"control": {"slider": 1.0}}, "control is a dict; give an array with a column for each of the 1 degrees of"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], message: str) -> None:
    model, state = slider()
    arguments = {"duration": 0.2, "frame_dt": 0.1} | arguments
    with pytest.raises(ValueError, match=message):
        carom.rollout(model, state, **arguments)


def test_bad_shapes() -> None:
    model, state = slider()
    wrong = carom.State(jnp.zeros(2), jnp.zeros(1), jnp.zeros(()))
    with pytest.raises(ValueError, match=r"^q has shape \(2,\); this model needs \(\.\.\., 1\)$"):
        carom.rollout(model, wrong, duration=0.1)
    rows = jnp.zeros((1, 2, 1))
    with pytest.raises(ValueError, match=r"control has shape \(1, 2, 1\); .*: \(1, 1\) or \(3, 1, 1\)$"):
        carom.rollout(model, carom.tile(state, 3), duration=0.1, frame_dt=0.1, control=rows)


def test_a_state_of_another_precision_or_batch_is_named() -> None:
    model, state = slider()
    single = jax.tree.map(lambda x: x.astype(jnp.float32), state)
    with pytest.raises(ValueError, match=r"numbers of float32, the model of float64: convert the state, jax.tree.map"):
        carom.rollout(model, single, duration=0.1)
    three = model.replace(mass=jnp.ones((3, model.topology.n_links)))
    with pytest.raises(ValueError, match=r"^the model has 3 lanes, the state 2: they must be as many, or one"):
        carom.step(three, carom.tile(state, 2), dt=0.1)


def test_motors_are_told_lane_by_lane() -> None:
    """However its axes are ordered, as far as that is clear."""
    model, state = slider()
    states, told = carom.tile(state, 3), np.random.default_rng(5).normal(size=(3, 4, 1))
    model = model.replace(motor_gain=jnp.ones(1), motor_effort=jnp.ones(1))

    def run(states: carom.State, control: Any) -> np.ndarray:
        return np.asarray(carom.rollout(model, states, duration=0.4, frame_dt=0.1, control=control).v)

    first = run(states, told)
    for k in range(3):
        np.testing.assert_array_equal(first[k], run(state, told[k]))
    np.testing.assert_array_equal(first, run(states, np.moveaxis(told, 1, 0)))
    held = run(states, told[:, 0])
    np.testing.assert_array_equal(held, run(states, np.repeat(told[:, :1], 4, 1)))
    assert (np.abs(np.diff(held[:, -1, 0])) > 1e-6).all()
    square = np.random.default_rng(5).normal(size=(4, 4, 1))
    np.testing.assert_array_equal(run(carom.tile(state, 4), square)[1], run(state, square[1]))  # lanes first
    with pytest.raises(ValueError, match=r"as many lanes as intervals between frames: give \(4, 4, 1\), lanes first"):
        run(carom.tile(state, 4), square[0])


# -- failures ---------------------------------------------------------------------------------------


def test_failed_lane_is_named() -> None:
    """A spring far too stiff for its step blows up in its own lane only; the code says so, or the host raises."""
    model, state = slider()
    model = model.replace(stiffness=jnp.array([[1.0], [1e12], [1.0], [1e12]]))
    run = functools.partial(carom.rollout, model, state, duration=5.0, frame_dt=0.5, max_dt=0.01)
    result = run(throw=False)
    np.testing.assert_array_equal(result.code, [results.OK, results.NOT_FINITE] * 2)
    assert np.isfinite(result.q[::2]).all()
    with pytest.raises(results.SimulationError, match=r"lanes 1, 3 \(2 of 4 lanes\), after t = 0 s: .* lower max_dt"):
        run()
    with pytest.raises(results.SimulationError, match=r"^lane 0, after t = 0 s"):
        carom.rollout(model.replace(stiffness=jnp.array([jnp.inf])), state, duration=0.1, frame_dt=0.1)


# -- through jit, vmap and derivatives ----------------------------------------------------------------


def end(start: jax.Array, state: carom.State, model: carom.Model) -> jax.Array:
    """The last coordinates as a function of the first velocities."""
    return carom.rollout(model, carom.State(state.q, start, state.t), **PAIR_RUN).state.q


@pytest.mark.slow
def test_inside_jit_and_vmap(lanes: carom.State) -> None:
    """Inside jit nothing raises; vmap of single rollouts is the batch."""
    model, state = pair()
    outside = carom.rollout(model, carom.State(jnp.broadcast_to(state.q, lanes.q.shape), lanes.v, lanes.t), **PAIR_RUN)
    inside = jax.jit(jax.vmap(lambda v: end(v, state, model)))(lanes.v)
    np.testing.assert_allclose(inside, outside.q[:, -1], rtol=0, atol=1e-12)


@functools.cache
def tangent() -> tuple:
    """f, a direction to go along, and the forward derivative of f along it."""
    model, state = pair()
    f = jax.jit(functools.partial(end, state=state, model=model))
    along = jnp.asarray(np.random.default_rng(1).normal(0, 1, state.v.shape))
    return f, along, jax.jit(lambda: jax.jvp(f, (state.v,), (along,))[1])()


def test_forward_derivatives() -> None:
    """Against central differences."""
    f, along, forward = tangent()
    start = pair()[1].v
    step = 1e-5  # differences: rounding 1e-11, truncation 1e-10
    difference = (f(start + step * along) - f(start - step * along)) / (2 * step)
    np.testing.assert_allclose(forward, difference, rtol=0, atol=1e-8)


@pytest.mark.slow  # compiles for 10 to 20 s
def test_reverse_derivatives() -> None:
    """Against the forward ones: the same number by both orders of multiplication, to rounding."""
    f, along, forward = tangent()
    _, state = pair()
    onto = jnp.asarray(np.random.default_rng(2).normal(0, 1, state.q.shape))
    backward = jax.jit(lambda: jax.vjp(f, state.v)[1](onto)[0])()
    assert float(onto @ forward) == pytest.approx(float(backward @ along), rel=1e-12)


def test_derivative_by_a_parameter() -> None:
    """In reverse mode: a thrown slider under damping d goes x = m/d (1 - exp(-d t/m)); its slope in d."""
    model, state = slider()

    def travel(d: jax.Array) -> jax.Array:
        damped = model.replace(damping=d[None])
        return carom.rollout(damped, state, duration=1.0, frame_dt=1.0, max_dt=0.02).state.q[0]

    def closed(d: float) -> float:
        return MASS / d * (1 - np.exp(-d / MASS))

    value, slope = jax.jit(jax.value_and_grad(travel))(jnp.array(1.5))
    assert float(value) == pytest.approx(closed(1.5), abs=1e-9)
    assert float(slope) == pytest.approx((closed(1.5 + 1e-5) - closed(1.5 - 1e-5)) / 2e-5, abs=1e-8)
