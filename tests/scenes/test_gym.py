"""Environments as gymnasium knows them."""

import importlib.util
import inspect
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from carom.scenes.envs.registration import ENVS, GYMNASIUM, register_envs
from carom.scenes.envs.registry import ON_SCENES, TASKS, make_env
from carom.scenes.envs.render import picture
from carom.scenes.envs.task import Discrete

pytest.importorskip("gymnasium", reason="gymnasium is not installed")

import gymnasium
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from carom.scenes.envs import gym
from carom.scenes.envs.gym import CaromEnv, CaromVectorEnv

PAGE = (Path(__file__).parents[2] / "docs" / "environments.md").read_text()
QUICK = ("carom/Pendulum-v0", "carom/CartPole-v0")  # to compile
SINGLE = 1e-6  # rounding of observations to float32; episodes are short
ON_PURPOSE = ("minimum value is -infinity", "maximum value is infinity", "symmetric and normalized space")

register_envs()


@pytest.mark.parametrize("id", [id if id in QUICK else pytest.param(id, marks=pytest.mark.slow) for id in ENVS])
def test_gymnasium_finds_nothing_wrong(id: str) -> None:
    env: Any = gymnasium.make(id)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        check_env(env.unwrapped)
    told = [str(warning.message) for warning in found]
    assert not [text for text in told if not any(known in text for known in ON_PURPOSE)]
    env.action_space.seed(0)
    env.reset(seed=0)
    for _ in range(3):
        observation, *_ = env.step(env.action_space.sample())
        assert observation in env.observation_space


def test_every_task_is_registered_as_it_is() -> None:
    tasks = {name: make() for name, make in {**TASKS, **ON_SCENES}.items()}
    assert dict(ENVS.values()) == {name: task.max_steps for name, task in tasks.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert register_envs() == (*ENVS, *GYMNASIUM)  # once more
    for id, (name, max_steps) in ENVS.items():
        assert gymnasium.spec(id).max_episode_steps == max_steps
        assert id.removeprefix("carom/").removesuffix("-v0").lower() == name.replace("_", "")


def test_what_gymnasium_makes_has_its_time_limit() -> None:
    def steps(env: gymnasium.Env) -> int:
        """Until truncation; a pendulum never ends."""
        env.reset(seed=0)
        for n in range(1, 500):
            *_, terminated, truncated, _ = env.step(np.zeros(1))
            assert not terminated
            if truncated:
                return n
        raise AssertionError

    assert steps(CaromEnv("pendulum")) == 400
    assert steps(gymnasium.make("carom/Pendulum-v0")) == 400
    assert steps(gymnasium.make("carom/Pendulum-v0", max_episode_steps=3)) == 3
    assert steps(gymnasium.make("carom/Pendulum-v0", max_episode_steps=450)) == 450


def agree(one, other) -> None:
    """(observations, ..., infos) of vector environments."""
    np.testing.assert_allclose(one[0], other[0], atol=SINGLE)
    assert one[0].dtype == other[0].dtype
    for a, b in zip(one[1:-1], other[1:-1], strict=True):
        np.testing.assert_allclose(a, b, atol=SINGLE)
        assert a.dtype == b.dtype
    infos, others = one[-1], other[-1]
    assert infos.keys() == others.keys()
    if infos:
        assert infos["final_info"] == others["final_info"]
        np.testing.assert_array_equal(infos["_final_obs"], others["_final_obs"])
        np.testing.assert_array_equal(infos["_final_info"], others["_final_info"])
        for last, expected in zip(infos["final_obs"], others["final_obs"], strict=True):
            assert (last is None) == (expected is None)
            if last is not None:
                np.testing.assert_allclose(last, expected, atol=SINGLE)


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_lanes_are_what_single_environments_are(mode: AutoresetMode) -> None:
    """Against gymnasium's loop over single ones: poles that fall, and episodes of 12 steps."""
    limit, n = 12, 5
    lanes: Any = gymnasium.make_vec("carom/CartPole-v0", num_envs=n, autoreset_mode=mode.value, max_episode_steps=limit)
    assert isinstance(lanes, CaromVectorEnv)
    assert lanes.metadata["autoreset_mode"] is mode
    make = lambda: gymnasium.make("carom/CartPole-v0", max_episode_steps=limit)  # noqa: E731
    loop: Any = SyncVectorEnv([make] * n, autoreset_mode=mode)
    assert lanes.observation_space == loop.observation_space
    assert lanes.action_space == loop.action_space
    agree(lanes.reset(seed=7), loop.reset(seed=7))
    rng, fell, truncated = np.random.default_rng(0), 0, 0
    for _ in range(40):
        actions = (rng.uniform(size=n) < [0.02, 0.5, 0.5, 0.5, 0.98]).astype(np.int64)  # two are pushed one way
        outcome = lanes.step(actions)
        agree(outcome, loop.step(actions))
        assert outcome[0] in lanes.observation_space
        done = outcome[2] | outcome[3]
        fell, truncated = fell + outcome[2].sum(), truncated + outcome[3].sum()
        if mode is AutoresetMode.DISABLED and done.any():
            with pytest.raises(ValueError, match="reset_mask"):
                lanes.step(actions)
            agree(lanes.reset(options={"reset_mask": done}), loop.reset(options={"reset_mask": done.copy()}))
    assert fell > 5
    assert truncated > 5
    agree(lanes.reset(seed=[3, None, 1, None, 2**40 + 1]), loop.reset(seed=[3, None, 1, None, 2**40 + 1]))
    agree(lanes.reset(), loop.reset())


def test_seeds() -> None:
    one, other = CaromEnv("cart_pole"), CaromVectorEnv("cart_pole", 3)
    first, second = one.reset(seed=5)[0], one.reset()[0]
    assert abs(first - second).min() > 0
    np.testing.assert_array_equal(one.reset(seed=5)[0], first)
    np.testing.assert_array_equal(one.reset()[0], second)
    lanes = other.reset(seed=4)[0]
    np.testing.assert_array_equal(lanes[1], first)
    assert len(np.unique(lanes)) == lanes.size
    np.testing.assert_array_equal(other.reset(seed=[1, 5, 5])[0][1:], [first, first])
    assert abs(CaromEnv("cart_pole").reset()[0] - CaromEnv("cart_pole").reset()[0]).min() > 0  # unseeded
    unseeded = CaromVectorEnv("cart_pole", 3)
    unseeded.np_random = np.random.default_rng(1)
    same = CaromVectorEnv("cart_pole", 3)
    same.np_random = np.random.default_rng(1)
    np.testing.assert_array_equal(unseeded.reset()[0], same.reset()[0])


def test_what_is_given_out_is_the_callers() -> None:
    env = CaromVectorEnv("cart_pole", 2)
    observation = env.reset(seed=0)[0]
    kept = observation.copy()
    observation[:] = 9
    outcome = env.step(np.zeros(2, int))
    assert abs(outcome[0] - kept).max() < 1
    for array in outcome[:4]:
        array[:] = 0
    assert (env.step(np.zeros(2, int))[1] == 1).all()


def test_parameters_engines_and_precision_reach_the_task() -> None:
    strong: Any = gymnasium.make("carom/Pendulum-v0", effort=0.5, engine="closed", dtype=np.float64)
    assert strong.action_space == gymnasium.spaces.Box(-0.5, 0.5, (1,), np.float32)
    weak: Any = gymnasium.make("carom/Pendulum-v0", dtype=np.float32)
    strong.reset(seed=0)
    weak.reset(seed=0)
    push = np.full(1, 0.4, np.float32)
    assert strong.step(push)[0].dtype == weak.step(push)[0].dtype == np.float32
    assert strong.unwrapped._lanes._rows.dtype == np.float64
    assert weak.unwrapped._lanes._rows.dtype == np.float32
    with pytest.raises(ValueError, match="pendulum has no engine 'steam'"):
        gymnasium.make_vec("carom/Pendulum-v0", engine="steam")


def test_render() -> None:
    env: Any = gymnasium.make("carom/CartPole-v0", render_mode="rgb_array")
    env.reset(seed=0)
    frame = env.render()
    task = make_env("cart_pole").task
    q = np.asarray(env.unwrapped._lanes._rows[:2])
    np.testing.assert_array_equal(frame, picture(task.sketch(q), task.window))
    assert frame.dtype == np.uint8
    assert frame.shape[1:] == (400, 3)
    assert len(np.unique(frame.reshape(-1, 3), axis=0)) > 3
    env.step(0)
    env.step(0)
    assert (env.render() != frame).any()
    assert env.metadata["render_fps"] == 50
    lanes: Any = CaromVectorEnv("cart_pole", 20, render_mode="rgb_array")
    lanes.reset(seed=range(20))
    frames = lanes.render()
    assert len(frames) == 16
    np.testing.assert_array_equal(frames[0], frame)
    assert (frames[1] != frame).any()
    assert CaromEnv("cart_pole").render() is None
    assert CaromVectorEnv("cart_pole").render() is None


def test_what_is_wrong_is_said_in_words() -> None:
    env, lanes = CaromEnv("cart_pole", render_mode="rgb_array"), CaromVectorEnv("cart_pole", 2)
    for call, words in {
        lambda: env.step(0): "cart_pole: step before the first reset",
        lambda: env.render(): "cart_pole: render before the first reset",
        lambda: lanes.reset(options={"reset_mask": np.array([True, False])}): "the first reset must be of all lanes",
    }.items():
        with pytest.raises(RuntimeError, match=words):
            call()
    pendulum = CaromEnv("pendulum")
    for any_env in (env, lanes, pendulum):
        any_env.reset()
    for call, words in {
        lambda: env.step(2): "cart_pole: actions are 0 to 1, not 2",
        lambda: lanes.step(np.array([0, -1])): "actions are 0 to 1, not",
        lambda: lanes.step(np.zeros(3, int)): r"shape \(3,\).*lanes \(2,\)",
        lambda: pendulum.step(np.array([np.nan])): "pendulum: actions must be finite",
        lambda: pendulum.step(0.1): r"must have shape \(1,\)",
        lambda: lanes.reset(seed=[1, 2, 3]): "3 seeds for 2 lanes",
        lambda: lanes.reset(
            options={"reset_mask": np.zeros(2, bool)}
        ): r"reset_mask must be \(2,\) bool, true somewhere",
        lambda: lanes.reset(options={"reset_mask": [True, True]}): "reset_mask must be",
        lambda: CaromVectorEnv("cart_pole", 0): "num_envs 0",
        lambda: CaromVectorEnv("cart_pole", max_episode_steps=0): "max_episode_steps 0",
        lambda: CaromVectorEnv("cart_pole", autoreset_mode="never"): "never",
        lambda: CaromEnv("cart_pole", render_mode="human"): "render_mode is 'rgb_array' or None, not 'human'",
        lambda: CaromEnv("cart_pol"): "did you mean 'cart_pole'",
    }.items():
        with pytest.raises(ValueError, match=words):
            call()


def test_without_gymnasium(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    spec = importlib.util.spec_from_file_location("carom.scenes.envs.gym_without", gym.__file__)
    assert spec is not None
    assert spec.loader is not None
    with pytest.raises(ImportError, match=r"pip install 'carom\[rl\]'"):
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def test_the_page_tells_of_every_task() -> None:
    rows = []
    for id, (name, max_steps) in ENVS.items():
        if name in ON_SCENES:
            assert f"`{name}`, at gymnasium `{id}`" in PAGE
            continue
        task, parameters = TASKS[name](), inspect.signature(TASKS[name]).parameters
        if isinstance(task.actions, Discrete):
            actions = f"{task.actions.n} choices"
        else:
            actions = ", ".join(f"±{bound:.4g}" for bound in task.actions.high)
        told = (f"`{name}`", f"`{id}`", task.description, actions, task.observations.shape[0], f"{task.dt:.3g} s",
                max_steps, ", ".join(task.engines), ", ".join(f"`{word}`" for word in parameters))  # fmt: skip
        rows.append("| " + " | ".join(map(str, told)) + " |")
    assert re.findall(r"^\| `.*$", PAGE, flags=re.MULTILINE) == rows


@pytest.mark.slow
def test_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    exec("\n".join(re.findall(r"^```python\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)), {})
    printed = capsys.readouterr().out
    balanced, *_, one, own, wrapped, frame, many = printed.splitlines()
    assert balanced == "(500, 4096) (4096, 4) 0"
    assert "Hop along x" in printed
    assert own == "(64, 5) (64,)"
    assert wrapped == "1 (4,)"
    assert (one, frame, many) == ("(4,)", "(400, 400, 3) uint8", "(256, 4) (256,)")


@pytest.mark.slow
def test_an_id_alone_is_enough() -> None:
    program = "import gymnasium; print(gymnasium.make('carom.scenes.envs.registered:carom/CartPole-v0').unwrapped)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert "CaromEnv<carom/CartPole-v0>" in done.stdout, done.stderr
