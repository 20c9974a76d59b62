"""The one-legged hopper: its foot sticks and slides, leg and hip strike their stops; and the task made of it."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.engine.loops.energy import energy
from carom.engine.results import OK
from carom.engine.state import State
from carom.scenes.envs.registry import make_env
from carom.scenes.envs.task import BatchTask
from carom.scenes.envs.tasks import hopper as task_file
from carom.scenes.library.hopper import (
    BODY,
    FOOT,
    HALF,
    LEG,
    PRELOAD,
    SHANK,
    STANDING,
    STIFFNESS,
    STROKE,
    SWING,
    THIGH,
    THRUST,
    TORQUE,
    TRUNK,
    hopper,
)  # fmt: skip

G, FRICTION = 9.81, 0.9
WEIGHT = (BODY + THIGH + SHANK) * G
STOOD = PRELOAD - (WEIGHT - SHANK * G) / STIFFNESS  # [m] where the leg carries the body
STANDS = (0.0, 0.0, STANDING + STOOD, 0.0, STOOD)
REACH = LEG + STOOD

STILL, NOTHING = (0.0,) * 5, (0.0, 0.0)
# name: q, v, what pushes the foot sideways in parts of the most that friction bears, what hip and leg are told
LANES: dict[str, tuple[Any, Any, float, Any]] = {
    "dropped": ((0, 0, STANDING + 0.05, 0.1, 0), (0, 0.3, 0, 0, 0), 0, NOTHING),
    "struck": ((0, 0, STANDING + 0.01, 0, 0), (0, 0, -4.5, 0, 0), 0, NOTHING),
    "kicked": ((0, 0, STANDING + 0.5, 0.2, 0), (0, 0, 0, 6, 0), 0, NOTHING),
    "held": (STANDS, STILL, 0.5, NOTHING),
    "pushed": (STANDS, STILL, 1.5, NOTHING),
    "pushing": (STANDS, STILL, 0, (5, 60)),
}
SIDEWAYS = FRICTION * WEIGHT * np.array((REACH, 1, 0, REACH, 0))  # on the foot, as much as friction bears


class Lane(NamedTuple):
    q: np.ndarray
    v: np.ndarray
    events: dict[str, np.ndarray]
    energy: np.ndarray

    @property
    def foot_speed(self) -> np.ndarray:
        """(F,) of its lowest point along x [m/s]."""
        pitch, _, _, hip, leg = self.q.T
        w, vx, _, turn, out = self.v.T
        a = pitch + hip
        return vx + out * np.sin(a) + ((LEG + leg) * np.cos(a) + FOOT) * (w + turn)


@pytest.fixture(scope="module")
def lanes() -> dict[str, Lane]:
    """A third of a second of each."""
    model, _ = carom.compile_scene(hopper(friction=FRICTION))
    q, v, part, motors = (np.array(x, float) for x in zip(*LANES.values(), strict=True))
    told = np.concatenate([np.zeros((len(LANES), 3)), motors], 1)
    forces, told = (jnp.broadcast_to(x, (20, len(LANES), 5)) for x in (part[:, None] * SIDEWAYS, told))
    state = State(jnp.array(q), jnp.array(v), jnp.zeros(len(LANES)))
    run = carom.rollout(
        model, state, duration=1 / 3, max_dt=1 / 480, forces=forces, control=told, scheme="semi_implicit",
        impacts="simultaneous", max_events=128, max_contacts=5,
    )  # fmt: skip
    np.testing.assert_array_equal(run.code, OK)
    found = energy(model, State(run.q, run.v, run.t))
    total = np.asarray(found.kinetic + found.potential)
    logs = [{n: np.asarray(getattr(run.events, n))[k] for n in ("dof", "pair", "u_before", "u_after")}
            for k in range(len(LANES))]  # fmt: skip
    return {
        name: Lane(np.asarray(run.q[k]), np.asarray(run.v[k]),
                   {n: x[: int(run.events.count[k])] for n, x in logs[k].items()}, total[k])
        for k, name in enumerate(LANES)
    }  # fmt: skip


def test_foot_sticks_while_the_leg_pushes(lanes: dict[str, Lane]) -> None:
    """Through a stance with a slant, with both motors on, and against a force: the point that touches is at rest."""
    for name in ("dropped", "held", "pushing"):
        lane = lanes[name]
        stands = (lane.q[:, 4] < -1e-3) & (np.arange(21) > 0)
        assert stands.sum() >= 4, name
        np.testing.assert_allclose(lane.foot_speed[stands], 0, atol=1e-3)  # rest is solved for half a step earlier
        assert np.abs(lane.v[stands, 1]).max() > 0.01, "the body moves on"


def test_foot_slides_beyond_friction(lanes: dict[str, Lane]) -> None:
    assert lanes["pushed"].foot_speed[1] > 0.5


def test_leg_and_hip_strike_their_stops(lanes: dict[str, Lane]) -> None:
    """In the log, each with its restitution: the leg pushed in all the way and out again, the hip in the air."""
    leg, hip = lanes["struck"], lanes["kicked"]
    assert leg.q[:, 4].min() >= -STROKE - 1e-8
    assert hip.q[:, 3].max() <= SWING + 1e-8
    for lane, dof, restitution in ((leg, 4, 0.2), (hip, 3, 0.3)):
        at = lane.events["dof"] == dof
        assert at.any()
        before, after = (lane.events[name][at, 2] for name in ("u_before", "u_after"))
        np.testing.assert_allclose(after, -restitution * before, atol=1e-9)
    assert (leg.events["u_before"][leg.events["dof"] == 4, 2] < -1).sum() >= 2, "both of its stops"
    first = leg.events["pair"][0], leg.events["dof"][0]
    assert first[0] >= 0 > first[1], "the foot touches before the leg is in"


def test_nothing_gains_energy_without_motors(lanes: dict[str, Lane]) -> None:
    for name in ("dropped", "struck", "kicked"):
        E = lanes[name].energy
        gain = (E - np.minimum.accumulate(E)).max()
        assert gain < 1e-3 * (E[0] - WEIGHT * LEG / 2), name  # the spring's, to the order of a semi-implicit step
        if name != "kicked":
            assert E[-1] < E[0] - 0.3, name


# -- the task -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def task() -> BatchTask:
    return task_file.hopper()


def test_pushes_are_within_what_the_motors_can(task: BatchTask) -> None:
    np.testing.assert_array_equal(task.push(jnp.array([[0.5, -0.25], [3.0, -7.0]])),
                                  [[0, 0, 0, TORQUE / 2, -THRUST / 4], [0, 0, 0, TORQUE, -THRUST]])  # fmt: skip


def test_reward_is_speed_and_life_less_effort(task: BatchTask) -> None:
    q, v, push = jnp.zeros((2, 5)), jnp.zeros((2, 5)), task.push(jnp.array([[1.0, 0.5], [0.0, 0.0]]))
    after = q.at[0, 1].set(0.02)
    np.testing.assert_allclose(task.reward(q, v, push, after, v), [1 + 1.2 - 0.05 * 1.25, 1], rtol=1e-12)


def test_it_has_fallen_before_the_body_touches_the_ground(task: BatchTask) -> None:
    low, tilt = task_file.LOW, task_file.TILT
    q = jnp.array([[sign * tilt * part, 5.0, low * more, 0, 0] for sign in (-1, 1) for part, more in
                   ((0.99, 1.01), (1.01, 1.01), (0.99, 0.99))])  # fmt: skip
    np.testing.assert_array_equal(task.ended(q, q), [False, True, True] * 2)
    assert low - HALF * np.sin(tilt) - TRUNK > 0


def test_episodes_start_above_the_ground_with_the_leg_out(task: BatchTask) -> None:
    q, v = task.start(jax.random.split(jax.random.key(0), 64))
    assert q.shape == v.shape == (64, 5)
    assert not q[:, (1, 4)].any()
    assert not v[:, 4].any()
    assert (q[:, 2] - LEG * jnp.cos(q[:, 0] + q[:, 3]) - FOOT > 0).all()
    assert (np.ptp(np.asarray(q[:, (0, 2, 3)]), axis=0) > 0.08).all()
    assert task.observe(q, v).shape == (64, *task.observations.shape)
    np.testing.assert_array_equal(task.observe(q.at[:, 1].add(3.0), v), task.observe(q, v))


def test_it_is_drawn_on_the_ground(task: BatchTask) -> None:
    x0, y0, x1, y1, radius, _ = task.sketch(np.array((0.0, 7.3, STANDING, 0.0, 0.0)))[-3]
    assert (x0, x1) == (0, 0)
    np.testing.assert_allclose((y0, y1, radius), FOOT, atol=1e-12)
    x0, y0, *_ = task.sketch(np.array((0.2, 7.3, STANDING, 0.3, -0.1)))[-3]
    np.testing.assert_allclose((x0, y0), (0.5 * np.sin(0.5), STANDING - 0.5 * np.cos(0.5)), atol=1e-12)


def raibert(observed: jax.Array, speed: float) -> jax.Array:
    """Raibert's three parts: thrust while the leg extends; in the air, the foot to where it keeps the speed; on the
    ground, the hip keeps the body level."""
    _, pitch, hip, leg, w, vx, _, turn, out = (observed[..., k] for k in range(9))
    stands = leg < -2e-3
    lean = jnp.arcsin(jnp.clip((0.09 * vx + 0.05 * (vx - speed)) / LEG, -0.5, 0.5))
    torque = jnp.where(stands, 60 * pitch + 6 * w, 30 * (lean - pitch - hip) - 3 * (w + turn))
    return jnp.stack([jnp.clip(torque / TORQUE, -1, 1), jnp.where(stands & (out > 0), 0.2, 0)], -1)


@pytest.mark.slow
@pytest.mark.parametrize("speed", [0.0, 0.7])
def test_raibert_makes_it_hop(speed: float, hops: Any) -> None:
    """Five seconds in place and along: level, ten times off the ground, and where it is asked to be."""
    q, ended = hops(speed)
    assert not ended.any()
    assert np.abs(q[150:, :, 0]).max() < 0.1
    leg = q[:, :, 4] < -2e-3
    assert ((leg[1:] & ~leg[:-1]).sum(0) >= 8).all()
    foot = q[150:, :, 2] - (LEG + q[150:, :, 4]) * np.cos(q[150:, :, 0] + q[150:, :, 3]) - FOOT
    assert (foot.max(0) > 0.08).all()
    np.testing.assert_allclose(q[-1, :, 1], 5 * 0.8 * speed, atol=0.5)  # it is slow to start


@pytest.fixture(scope="module")
def hops() -> Any:
    env = make_env("hopper")
    state, first = env.reset(jax.random.split(jax.random.key(0), 3))

    @jax.jit
    def run(speed: float) -> Any:
        def period(carry: Any, _: None) -> Any:
            state, observed = carry
            out = env.step(state, raibert(observed, speed))
            return (out.state, out.observation), (out.state.q, out.terminated)

        return jax.lax.scan(period, (state, first), None, 300)[1]

    return lambda speed: tuple(np.asarray(x) for x in run(speed))


@pytest.mark.exhaustive
def test_lanes_of_vmap_are_lanes() -> None:
    env = make_env("hopper")
    state, _ = env.reset(jax.random.split(jax.random.key(0), 2))
    low = state._replace(q=state.q.at[:, 2].add(jnp.array((-0.1, 0.0))), v=state.v.at[:, 2].set(-2.0))
    action = jnp.array([[0.3, 0.1], [-0.2, 0.5]])
    mapped, together = jax.vmap(env.step)(low, action), env.step(low, action)
    for a, b in zip(jax.tree.leaves(mapped._replace(state=mapped.state.q)),
                    jax.tree.leaves(together._replace(state=together.state.q)), strict=True):  # fmt: skip
        np.testing.assert_allclose(a, b, atol=1e-12)
