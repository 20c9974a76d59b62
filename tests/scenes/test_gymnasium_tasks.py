"""gymnasium's tasks on Carom's contacts, against gymnasium's own environments on the same states."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.engine.state import State
from carom.scenes.envs.registration import GYMNASIUM
from carom.scenes.envs.registry import OF_GYMNASIUM
from carom.scenes.envs.scene_task import Period

pytest.importorskip("gymnasium", reason="gymnasium is not installed")
pytest.importorskip("mujoco", reason="mujoco is not installed")

import gymnasium
import mujoco as mujoco_module

mujoco: Any = mujoco_module
SAME = 1e-9  # relative to the largest number of what is compared, and absolute below 1
REPORTS = "report" in inspect.signature(carom.step).parameters
OTHERWISE: dict[str, dict[str, Any]] = {  # parameters besides the default ones
    "carom/Ant-v5": {"ctrl_cost_weight": 0.3, "healthy_z_range": (0.6, 0.8), "main_body": "aux_1",
                     "contact_force_range": (-3.0, 2.0), "exclude_current_positions_from_observation": False},
    "carom/HalfCheetah-v5": {"forward_reward_weight": 2.0, "exclude_current_positions_from_observation": False},
    "carom/Hopper-v5": {"healthy_reward": 3.0, "healthy_state_range": (-2.0, 2.0), "terminate_when_unhealthy": False},
    "carom/Walker2d-v5": {"frame_skip": 2, "healthy_angle_range": (-0.5, 2.0)},
    "carom/Humanoid-v5": {"contact_cost_weight": 1e-3, "contact_cost_range": (-np.inf, 2.0),
                          "include_cvel_in_observation": False, "include_cfrc_ext_in_observation": False},
    "carom/InvertedDoublePendulum-v5": {"healthy_reward": 3.0},
    "carom/Reacher-v5": {"reward_dist_weight": 2.0, "reward_control_weight": 0.1},
    "carom/Pusher-v5": {"reward_near_weight": 2.0, "frame_skip": 3},
}  # fmt: skip
BOTH = [(id, {}) for id in GYMNASIUM] + list(OTHERWISE.items())


def theirs(id: str, **parameters: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that another version exists
        return gymnasium.make(id.removeprefix("carom/"), **parameters).unwrapped


def ours(qvel: np.ndarray, qpos: np.ndarray, m: Any) -> np.ndarray:
    """Carom's v of MuJoCo's: a free root has its angular velocity first, in world axes."""
    if m.jnt_type[0] != mujoco.mjtJoint.mjJNT_FREE:
        return qvel
    R = np.zeros(9)
    mujoco.mju_quat2Mat(R, qpos[3:7])
    return np.concatenate([R.reshape(3, 3) @ qvel[3:6], qvel[:3], qvel[6:]])


def drawn(rng: Any, env: Any) -> tuple[np.ndarray, np.ndarray]:
    """A state near that of the start or far from it, so that some are healthy and some are not."""
    spread = 10 ** rng.uniform(-3, 0.4)
    qpos = env.init_qpos + spread * rng.normal(size=env.model.nq)
    if env.model.jnt_type[0] == mujoco.mjtJoint.mjJNT_FREE:
        qpos[3:7] /= np.linalg.norm(qpos[3:7])
    return qpos, 2 * rng.normal(size=env.model.nv)


def wrenches(rng: Any, env: Any, names: tuple[str, ...]) -> tuple[dict[str, Any], Any]:
    """Random contacts of all links as `carom.step` reports them, and MuJoCo's cfrc_ext of the same."""
    m, d = env.model, env.data
    resting, struck = rng.normal(size=(2, len(names), 6))
    struck *= env.dt
    total, cfrc = resting + struck / env.dt, np.zeros((m.nbody, 6))
    for b in range(1, m.nbody):
        j = m.body_jntadr[b] + m.body_jntnum[b] - 1
        origin = d.xanchor[j] if m.body_jntnum[b] else d.xpos[b]  # of the link: where its joint turns
        moment, force = np.split(total[names.index(m.body(b).name or f"body {b}")], 2)
        cfrc[b] = np.concatenate([moment + np.cross(origin - d.subtree_com[m.body_rootid[b]], force), force])
    return {"contact_forces": jnp.asarray(resting), "contact_impulses": jnp.asarray(struck)}, cfrc


def close(ours: Any, theirs: Any) -> None:
    ours, theirs = np.asarray(ours, float), np.asarray(theirs, float)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=SAME * max(1.0, np.abs(theirs).max(initial=0)))


@pytest.mark.parametrize(("id", "parameters"), BOTH)
def test_same_states_same_numbers(id: str, parameters: dict[str, Any]) -> None:
    """Observation, reward, its terms and whether it ends: gymnasium's step, its simulation replaced by a jump to the
    state that ours is given."""
    env, task, rng = theirs(id, **parameters), OF_GYMNASIUM[id](**parameters), np.random.default_rng(5)
    model, _ = task.compiled(jnp.float64)

    @jax.jit
    def judged(before: State, state: State, action: Any, report: Any) -> Any:
        s = Period(model, before, state, action, (), jnp.ones((), jnp.int32), jnp.zeros(2, jnp.uint32), report)
        return task.observation(s), task.reward(s), task.end(s), {} if task.info is None else task.info(s)

    ends = []
    for _ in range(24):
        env.reset(seed=1)
        start, end = drawn(rng, env), drawn(rng, env)
        action = rng.uniform(env.action_space.low, env.action_space.high)
        env.set_state(*start)
        report: dict[str, Any] = {}

        def jump(ctrl: Any, frames: int, end: Any = end, report: dict[str, Any] = report) -> None:
            env.data.ctrl[:] = ctrl
            env.set_state(*end)
            known, env.data.cfrc_ext[:] = wrenches(rng, env, model.topology.names)
            report |= known if task.report else {}

        env._step_mujoco_simulation = jump
        observation, reward, ended, _, info = env.step(action)
        states = [State(jnp.asarray(q), jnp.asarray(ours(v, q, env.model)), jnp.zeros(())) for q, v in (start, end)]
        seen, paid, over, told = judged(*states, jnp.asarray(action), report)
        kept = slice(None, -1) if "Double" in id else slice(None)  # the force of a stop has a test of its own
        close(seen[kept], observation[kept])
        close(paid, reward)
        assert bool(over) == bool(ended)
        for name, value in told.items():
            close(value, info[name])
        assert set(info) - {"tendon_length", "tendon_velocity"} == set(told)
        ends.append(ended)
    may_end = "terminate_when_unhealthy" not in parameters
    assert len(set(ends)) == (2 if may_end and not any(x in id for x in ("Cheetah", "Reacher", "Pusher")) else 1)


@pytest.mark.parametrize("id", GYMNASIUM)
def test_spaces_periods_and_actuators_are_gymnasiums(id: str) -> None:
    env, task = theirs(id), OF_GYMNASIUM[id]()
    assert task.dt == pytest.approx(env.dt, rel=1e-12)
    assert task.max_steps == gymnasium.spec(id.removeprefix("carom/")).max_episode_steps == GYMNASIUM[id]
    assert task.name == id
    np.testing.assert_array_equal(np.array(task.actions.low, np.float32), env.action_space.low)
    np.testing.assert_array_equal(np.array(task.actions.high, np.float32), env.action_space.high)
    if REPORTS or not task.report:
        assert carom.Environment(task).observations.shape == env.observation_space.shape


def test_the_stop_holds_what_pushes_the_cart() -> None:
    """At the end of the rail with both poles upright, where the motor pushes on: the stop's force is the motor's."""
    env = carom.make_env("carom/InvertedDoublePendulum-v5", dtype="float64")
    state, first = env.reset(jax.random.key(0))
    assert first[-1] == 0
    at_end = state._replace(q=jnp.array([1.0, 0.0, 0.0]), v=jnp.zeros(3))
    for action in (0.01, 0.004):
        seen = env.step(at_end, jnp.array([action])).observation
        assert seen[-1] == pytest.approx(-500 * action, rel=1e-3)  # of the gear; gravity has a part of 1e-5 along x
    free = env.step(at_end._replace(q=jnp.zeros(3)), jnp.array([0.01])).observation
    assert abs(free[-1]) < 1e-2  # what the method of integration leaves [N]
