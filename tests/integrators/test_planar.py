"""Planar chains in time: exact times of stops, momentum, limits, release, order, lanes, runs in pieces."""

import functools
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.engine.planar.energy import chain_momentum
from carom.engine.planar.model import Chain, ChainDrive
from carom.engine.results import SimulationWarning
from carom.tests.oracles.native_and_xla import no_fallback

G = 9.81
N = 4  # all chains here have room for four joints: one program serves most tests
EXACT = 1e-9  # of times and velocities whose paths are parabolas, after hundreds of steps


def chain(n=N, *, mass=1.0, length=0.5, guided=(), limits=None, gravity=G, grounds=((0, 0),), normals=((0, 1),)):
    """n joints in a room for N, by hand: what scenes/chains compiles is tested there."""
    lower, upper = np.full(N, -np.inf), np.full(N, np.inf)
    for i, (a, b) in (limits or {}).items():
        lower[i], upper[i] = a, b
    held = np.isin(np.arange(N), guided)
    none = np.zeros(N)
    arrays = (np.full(N, mass), np.full(N - 1, length), np.array([0, -gravity]), np.int32(n), held, np.zeros((N, 2)),
              held & False, lower, upper, none, none, 
              np.reshape(grounds, (-1, 2)).astype(float), np.reshape(normals, (-1, 2)).astype(float))  # fmt: skip
    return Chain(*(jnp.asarray(a) for a in arrays))


def angles(*first):
    return jnp.array([*first, *[0.0] * (N - 1 - len(first))])


def start(model, *first, rates=(), base=(0.0, 0.0), base_rate=(0.0, 0.0)):
    return carom.chain_state(
        model, angles(*first), angles(*rates), base=jnp.array(base, float), base_rate=jnp.array(base_rate, float)
    )


def last(result, name):
    return np.asarray(getattr(result.events, name))[int(result.events.count) - 1]


def test_a_stick_falls_flat():
    """Both ends strike at once, at sqrt(2 h/g) to the last digits whatever the step, and stay."""
    model = chain(2)
    state = start(model, 0.0, base=(0, 1.0), base_rate=(0.3, 0.0))
    for max_dt in (1 / 240, 1 / 17):
        result = carom.chain_rollout(model, state, duration=1.0, max_dt=max_dt)
        assert int(result.events.count) == 1
        assert int(last(result, "struck")) == 2
        np.testing.assert_allclose(last(result, "t"), np.sqrt(2 / G), rtol=EXACT)
        np.testing.assert_allclose(last(result, "velocity"), [0.3, -np.sqrt(2 * G)], rtol=EXACT)
        np.testing.assert_allclose(last(result, "impulse"), [-0.6, 2 * np.sqrt(2 * G)], rtol=EXACT)
        np.testing.assert_allclose(last(result, "energy_before"), 0.09 + 2 * G, rtol=EXACT)
        assert last(result, "energy_after") == 0
        np.testing.assert_array_equal(result.stuck[-1, :2], 0)
        np.testing.assert_array_equal(result.v[-1, :2], 0)


def test_one_end_strikes():
    """A stick at 60 degrees: the end sticks, the other turns about it. By hand: I = m l^2, angular momentum about the
    end that sticks is kept."""
    model = chain(2)
    result = carom.chain_rollout(model, start(model, np.pi / 3, base=(0, 0.8)), duration=0.5, frame_dt=0.01)
    t, speed = np.sqrt(1.6 / G), np.sqrt(1.6 * G)
    np.testing.assert_allclose(result.events.t[0], t, rtol=EXACT)
    omega = -speed * np.cos(np.pi / 3) / 0.5  # m v l cos = m l^2 omega
    np.testing.assert_allclose(result.events.energy_after[0], 0.5 * (0.5 * omega) ** 2, rtol=EXACT)
    along = speed * np.sin(np.pi / 3)  # what the link stops of the upper mass
    upper = along * np.array([np.cos(np.pi / 3), np.sin(np.pi / 3)])
    np.testing.assert_allclose(result.events.impulse[0], [upper[0], speed + upper[1]], rtol=EXACT)
    np.testing.assert_allclose(result.events.push[0], result.events.impulse[0], rtol=EXACT)
    np.testing.assert_allclose(result.events.place[0], 0, atol=1e-12)


def test_momentum_changes_by_what_the_log_says():
    """Weight and all impulses are what momentum is made of; the same of angular momentum; energy only falls."""
    model = chain(N, length=0.3)
    state = start(model, 0.5, 0.3, -0.4, rates=(1.0, -2.0, 0.5), base=(0, 0.6))
    with pytest.warns(SimulationWarning, match="scraping"):
        result = carom.chain_rollout(model, state, duration=1.0)
    events, count = result.events, int(result.events.count)
    assert count >= 4
    first = float(events.t[0])
    states = [carom.chain_rollout(model, state, duration=first * (1 + by)).state for by in (-1e-9, 1e-9)]
    momenta = [chain_momentum(model, s) for s in states]
    for early, late, name in zip(*momenta, ("impulse", "moment"), strict=True):
        np.testing.assert_allclose(late - early, getattr(events, name)[0], atol=1e-6)  # and 2e-9 t of weight
    assert (np.asarray(events.energy_after - events.energy_before)[:count] <= 1e-12).all()
    assert (np.asarray(result.x)[:, :, 1] > -1e-9).all()  # nothing sinks


def test_a_limit_is_met_and_left():
    """Without weight: the second link turns at 2 rad/s into a limit 0.6 rad away; both then turn as one stick while a
    torque presses it there, until one opens the joint."""
    model = chain(3, guided=(0,), limits={1: (-1.0, 0.6)}, gravity=0.0, grounds=(), normals=())
    state = start(model, 0.2, 0.0, rates=(0.0, 2.0))
    told = np.zeros((60, N))
    told[:30, 1], told[30:, 1] = 0.5, -0.5
    result = carom.chain_rollout(model, state, duration=1.0, control=ChainDrive(torque=jnp.asarray(told)))
    assert int(result.events.count) >= 1
    shut = np.asarray(result.shut)[:, 1]
    theta = jax.vmap(lambda x, v: carom.chain_angles(model, replace(state, x=x, v=v))[0])(result.x, result.v)
    hit = float(result.events.t[0])
    assert int(result.events.limit[0]) == 1
    assert (shut[:31] == (np.asarray(result.t)[:31] > hit)).all()
    assert (shut[32:40] == 0).all()
    np.testing.assert_allclose(theta[:31, 1][shut[:31] == 1], 0.6, atol=1e-7)  # (33) holds it there
    assert (np.diff(theta[31:40, 1]) < 0).all()
    # kept by the stop: angular momentum about the fixed joint
    L = [chain_momentum(model, replace(state, x=result.x[k], v=result.v[k]))[1] for k in (0, 30)]
    np.testing.assert_allclose(L[0], L[1], rtol=2e-4)  # by steps of 1/240 s


def test_wide_limits():
    """More than three quarters of a turn apart: what is near one is not beyond the other."""
    model = chain(2, guided=(0,), limits={0: (-2.56, 2.56)}, gravity=0.0, grounds=(), normals=())
    torque = ChainDrive(torque=jnp.array([-0.1, 0, 0, 0]))
    result = carom.chain_rollout(model, start(model, -2.4, rates=(-2.0,)), duration=0.5, control=torque)
    assert int(result.events.count) == 1
    np.testing.assert_array_equal(result.events.limit[0], -1)
    omega = np.sqrt(4 + 2 * 0.1 / 0.25 * 0.16)  # of the work of the torque, I = 0.25
    np.testing.assert_allclose(result.events.push[0], [0.25 * omega, 0], rtol=1e-3)  # by steps of 1/240 s
    np.testing.assert_allclose(carom.chain_angles(model, result.state)[0][0], -2.56, atol=1e-6)


def test_time_of_a_limit_does_not_hang_on_steps():
    """One link turns about a fixed joint at a constant rate: 0.5 rad at 1.3 rad/s. Its end's path is followed by
    parabolas, to order two."""
    model = chain(2, guided=(0,), limits={0: (-0.5, 0.5)}, gravity=0.0, grounds=(), normals=())
    times = []
    for max_dt in (1 / 30, 1 / 60, 1 / 120):
        result = carom.chain_rollout(
            model, start(model, rates=(1.3,)), duration=0.5, frame_dt=0.5, max_dt=max_dt, settle=0.1
        )
        times.append(float(result.events.t[0]))
        np.testing.assert_allclose(carom.chain_angles(model, result.state)[1][0], 0, atol=1e-12)
    errors = np.abs(np.array(times) - 0.5 / 1.3)
    assert errors[-1] < 1e-4
    assert (errors[:-1] / errors[1:] > 3).all()


def test_a_stuck_joint_is_torn_off():
    """Two masses and a rod on the ground are pulled up at one end: it leaves when the force exceeds its weight, the
    other end when the rod pulls at it."""
    model = chain(2)
    state = replace(start(model, 0.0), stuck=jnp.array([0, 0, -1, -1]))
    for pull, leaves in ((0.99 * G, False), (1.01 * G, True)):
        force = jnp.zeros((N, 2)).at[1, 1].set(pull)
        result = carom.chain_rollout(model, state, duration=0.1, control=ChainDrive(force=force))
        assert bool(result.stuck[-1, 1] < 0) is leaves
        assert int(result.stuck[-1, 0]) == 0
        assert bool(result.x[-1, 1, 1] > 1e-5) is leaves


def test_a_drive_of_as_many_lanes_as_intervals_has_both() -> None:
    """Rows could be lanes or intervals."""
    model = chain(2)
    lanes = carom.tile(start(model, 0.3), 6)
    force = jnp.zeros((6, N, 2)).at[0, 1, 1].set(30.0)  # on the first lane alone
    run = functools.partial(carom.chain_rollout, model, lanes, duration=0.06, frame_dt=0.01)
    with pytest.raises(ValueError, match=r"as many lanes as intervals .* give \(6, 6, 4, 2\), intervals first"):
        run(control=ChainDrive(force=force))
    ends = run(control=ChainDrive(force=jnp.broadcast_to(force, (6, *force.shape)))).v[:, -1, 1]
    assert not np.array_equal(ends[0], ends[1])
    assert np.array_equal(ends[1], ends[2])


@pytest.mark.parametrize(("scheme", "order"), [("average", 2), ("constant", 1)])
def test_order(scheme, order):
    model = chain(3, guided=(0,), grounds=(), normals=())
    state = start(model, -0.7, 0.5)
    ends = [
        np.asarray(
            carom.chain_rollout(model, state, duration=0.5, frame_dt=0.5, max_dt=h, settle=0.05, scheme=scheme).x[
                -1, :3
            ]
        )
        for h in (1 / 4096, 1 / 128, 1 / 256)
    ]
    errors = [np.abs(end - ends[0]).max() for end in ends[1:]]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.4)


def test_pieces_are_the_whole():
    """Bit by bit, through stops, limits and a torque that changes from frame to frame."""
    model = chain(N, length=0.3, limits={1: (-0.5, 0.5), 2: (-0.4, 0.6)})
    state = start(model, 0.5, 0.3, -0.3, rates=(1.0, -2.0, 0.5), base=(0, 0.3))
    torque = np.random.default_rng(0).normal(size=(24, N))
    run: dict[str, Any] = dict(frame_dt=1 / 60, throw=False)

    def drive(rows):
        return ChainDrive(torque=jnp.asarray(rows))

    whole = carom.chain_rollout(model, state, duration=0.4, control=drive(torque), **run)
    parts = [carom.chain_rollout(model, state, duration=0.2, control=drive(torque[:12]), **run)]
    parts.append(carom.chain_rollout(model, parts[0].state, duration=0.2, control=drive(torque[12:]), **run))
    assert int(whole.events.count) > 2
    for name in ("x", "v", "stuck", "shut"):
        np.testing.assert_array_equal(getattr(parts[1], name), getattr(whole, name)[12:])
    assert int(whole.stats.impacts) == sum(int(p.stats.impacts) for p in parts)


@pytest.mark.parametrize("dtype", [jnp.float64, jnp.float32])
def test_lanes(dtype):
    """Of other lengths, masses, numbers of joints, limits; what is beyond a chain's joints is never read."""
    models = [
        chain(2, length=0.3),
        chain(3, mass=2.0, length=0.4, limits={1: (-2.0, 0.5)}),
        chain(4, mass=3.0, length=0.5, limits={1: (-2.0, 0.5)}, guided=(0,)),
    ]
    states = [start(m, 0.4, 0.1, 0.2, base=(0, 0.4), rates=(0.5, 1.0)) for m in models]

    def cast(tree):
        return jax.tree.map(lambda a: a.astype(dtype) if a.dtype == jnp.float64 else a, tree)

    def poisoned(model, state):
        beyond = np.arange(N) >= int(model.joints)
        x, v = (jnp.where(beyond[:, None], jnp.nan, a) for a in (state.x, state.v))
        mass, length = jnp.where(beyond, jnp.nan, model.mass), jnp.where(beyond[1:], jnp.nan, model.length)
        return model.replace(mass=mass, length=length), replace(state, x=x, v=v)

    stack = [cast(poisoned(m, s)) for m, s in zip(models, states, strict=True)]
    together = jax.tree.map(lambda *a: jnp.stack(a), *stack)
    lanes = carom.chain_rollout(*together, duration=0.5, throw=False)
    assert lanes.x.dtype == dtype
    for k, (m, s) in enumerate(zip(models, states, strict=True)):
        alone = carom.chain_rollout(*cast((m, s)), duration=0.5, throw=False)
        n = int(m.joints)
        assert int(lanes.events.count[k]) == int(alone.events.count) > 0
        near = 1e-9 if dtype == jnp.float64 else 2e-3  # f32: 120 steps, stops between
        np.testing.assert_allclose(lanes.x[k, :, :n], alone.x[:, :n], atol=near)
        assert np.isfinite(np.asarray(lanes.x[k, :, :n])).all()
        np.testing.assert_array_equal(lanes.stuck[k, :, :n], alone.stuck[:, :n])


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (dict(scheme="euler"), "average, constant"),
        (dict(settle=0.0), "settle is 0.0"),
        (dict(duration=-1.0), "duration is -1.0"),
        (dict(control=ChainDrive(torque=jnp.zeros(3))), r"control.torque has shape \(3,\)"),
    ],
)
def test_bad_input_is_told(wrong, words):
    model = chain(2)
    with pytest.raises(ValueError, match=words):
        carom.chain_rollout(model, start(model, 0.0, base=(0, 1.0)), **{"duration": 0.1, **wrong})


def test_rollout_sends_chains_on():
    with pytest.raises(TypeError, match="chain_rollout"):
        carom.rollout(chain(2), None, duration=1.0)  # pyright: ignore[reportArgumentType]


def test_a_lane_that_fails_says_so():
    model = chain(2)
    state = start(model, 0.0, base=(0, 1.0))
    with pytest.raises(carom.engine.results.SimulationError, match="max_ticks"):
        carom.chain_rollout(model, state, duration=1.0, max_ticks=3)
    bad = replace(state, v=state.v.at[0, 0].set(jnp.nan))
    with pytest.raises(carom.engine.results.SimulationError, match="not finite"):
        carom.chain_rollout(model, bad, duration=1.0)


@pytest.mark.parametrize("told", ["nothing", "the same", "each its own"])
def test_a_lane_is_the_same_bits_anywhere(told):
    """Lanes run in blocks, one chain alone: every number of a lane is the same, stops and limits included."""
    lanes, rng = 11, np.random.default_rng(2)
    spec = carom.ChainSpec.of((0.2, 0.15, 0.25), angles=(0.5, 0.1, 0.0), base=(0, 0.15), grounds=[carom.Ground()])
    model, state = carom.compile_scene(spec.with_joint(1, limits=(-0.2, 0.6)))
    states = jax.tree.map(lambda x: jnp.broadcast_to(x, (lanes, *x.shape)), state)
    away = states.x - states.x[:, :1]
    turn = jnp.asarray(rng.normal(size=(lanes, 1, 1)))
    states = replace(states, v=turn * jnp.stack([-away[..., 1], away[..., 0]], -1))
    torque = jnp.asarray(0.3 * rng.normal(size=(6, lanes, 4)))

    def run(states, torque):
        drive = None if told == "nothing" else carom.ChainDrive(torque=torque)
        with no_fallback():
            return carom.chain_rollout(model, states, duration=0.3, frame_dt=0.05, control=drive, throw=False)

    own = told == "each its own"
    many = run(states, torque if own else torque[:, 0])
    turned = run(jax.tree.map(lambda x: x[::-1], states), torque[:, ::-1] if own else torque[:, 0])
    assert int(many.stats.impacts.min()) >= 1
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(a, b[::-1]), many, turned)
    for k in (0, 6, lanes - 1):
        alone = run(jax.tree.map(lambda x, k=k: x[k], states), torque[:, k if own else 0])
        jax.tree.map(lambda a, b, k=k: np.testing.assert_array_equal(a, b[k]), alone, many)
