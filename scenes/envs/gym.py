"""Tasks as gymnasium's environments: one lane, or many as one batch.

Only this file and `gym_registry.py` import gymnasium.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from .environment import Environment
from .rows import Lanes
from .task import BoxSpace, Discrete

try:
    import gymnasium
    from gymnasium import spaces
    from gymnasium.vector import AutoresetMode, VectorEnv
    from gymnasium.vector.utils import batch_space
except ImportError as error:
    raise ImportError(
        "environments for gymnasium: gymnasium 1.1 or later is not installed: pip install 'carom[rl]'"
    ) from error

SHOWN = 16  # lanes that a vector environment draws at most


class CaromEnv(gymnasium.Env):
    """One lane of the environment `name`, in NumPy.

    engine, dtype, parameters: as `carom.make_env` takes them.  Observations are float32.
    This and later episodes depend only on the seed of `reset`, modulo 2^32.
    The task truncates its episodes, or the TimeLimit of gymnasium.make.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 50}  # noqa: RUF012

    def __init__(
        self, name: str, *, engine: str | None = None, dtype: DTypeLike | None = None, render_mode: str | None = None,
        **parameters: Any,
    ) -> None:  # fmt: skip
        self._lanes = Lanes(name, (), engine=engine, dtype=dtype, parameters=parameters)
        self._steps = 0
        self.render_mode = _render_mode(render_mode)
        self.metadata = _metadata(self._lanes.task.dt)
        self.observation_space, self.action_space = _spaces(self._lanes.env)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self._steps = 0
        return self._lanes.begin([seed], np.True_, self.np_random), {}

    def step(self, action: ArrayLike) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        observation, reward, ended = self._lanes.step(action)
        self._steps += 1
        truncated = self.spec is None and self._steps >= self._lanes.task.max_steps
        info = {name: x.item() if x.ndim == 0 else x for name, x in self._lanes.info.items()}
        return observation, float(reward), bool(ended), truncated, info

    def render(self) -> np.ndarray | None:
        """Picture (H, W, 3) uint8; None without render_mode="rgb_array"."""
        return None if self.render_mode is None else self._lanes.pictures(1)[0]


class CaromVectorEnv(VectorEnv):
    """`num_envs` lanes of the environment `name`, stepped as one batch; NumPy in, NumPy out.

    Lane k equals a CaromEnv with the same seed: reset(seed=s) seeds it with s + k, a list has the seed of each lane.
    autoreset_mode: see gymnasium.vector.AutoresetMode. Lanes that have ended begin again with the next step, whose
        action they ignore ("NextStep"), in the same step, with infos["final_obs"] ("SameStep"), or on
        reset(options={"reset_mask": (num_envs,) bool}) ("Disabled").
    max_episode_steps: None for the task's.  render: frames of the first 16 lanes.  Other parameters: see CaromEnv.
    """

    def __init__(
        self, name: str, num_envs: int = 1, *, autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        max_episode_steps: int | None = None, engine: str | None = None, dtype: DTypeLike | None = None,
        render_mode: str | None = None, **parameters: Any,
    ) -> None:  # fmt: skip
        if num_envs < 1 or (max_episode_steps is not None and max_episode_steps < 1):
            raise ValueError(
                f"{name}: num_envs {num_envs} and max_episode_steps {max_episode_steps} must be at least 1"
            )
        self._lanes = Lanes(name, (num_envs,), engine=engine, dtype=dtype, parameters=parameters)
        self._limit = max_episode_steps or self._lanes.task.max_steps
        self._steps = np.zeros(num_envs, np.int64)
        self._done = np.zeros(num_envs, bool)
        self._mode = AutoresetMode(autoreset_mode)
        self.num_envs = num_envs
        self.render_mode = _render_mode(render_mode)
        self.metadata = {**_metadata(self._lanes.task.dt), "autoreset_mode": self._mode}
        self.single_observation_space, self.single_action_space = _spaces(self._lanes.env)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        seeds: list[int | None]
        if seed is None or isinstance(seed, int | np.integer):
            super().reset(seed=seed if seed is None else int(seed))
            seeds = [seed if seed is None else int(seed) + k for k in range(self.num_envs)]
        else:
            seeds = list(seed)
        if len(seeds) != self.num_envs:
            raise ValueError(f"{len(seeds)} seeds for {self.num_envs} lanes: one each, or one number for all")
        again = self._mask((options or {}).get("reset_mask"))
        observation = self._lanes.begin(seeds, again, self.np_random)
        self._steps[again] = 0
        self._done &= ~again
        return observation, {}

    def step(self, actions: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        again = self._done
        if self._mode is AutoresetMode.DISABLED and again.any():
            raise ValueError(
                f"lanes {np.flatnonzero(again)} have ended: reset(options={{'reset_mask': ...}}) them first"
            )
        observation, reward, ended = self._lanes.step(actions, again)
        self._steps = np.where(again, 0, self._steps + 1)
        truncated = self._steps >= self._limit
        self._done = ended | truncated
        if self._mode is not AutoresetMode.SAME_STEP or not self._done.any():
            return observation, reward, ended, truncated, self._infos(~again)
        infos = self._infos(np.ones_like(again))
        done, self._done = self._done, np.zeros_like(self._done)
        self._steps[done] = 0
        last = np.full(self.num_envs, None, object)
        for k in np.flatnonzero(done):
            last[k] = observation[k]
        final = {name: x.copy() for name, x in infos.items()}
        infos |= {"final_obs": last, "_final_obs": done, "final_info": final, "_final_info": done.copy()}
        return self._lanes.begin([None] * self.num_envs, done, self.np_random), reward, ended, truncated, infos

    def render(self) -> tuple[np.ndarray, ...] | None:
        """Pictures (H, W, 3) uint8 of the first lanes; None without render_mode="rgb_array"."""
        return None if self.render_mode is None else self._lanes.pictures(SHOWN)

    def _infos(self, there: np.ndarray) -> dict[str, Any]:
        """Infos in gymnasium's form: each value with a mask of its lanes."""
        infos: dict[str, Any] = dict(self._lanes.info)
        return infos | {f"_{name}": there.copy() for name in infos}

    def _mask(self, mask: object) -> np.ndarray:
        """Mask (num_envs,) bool of the lanes to reset."""
        if mask is None:
            return np.ones(self.num_envs, bool)
        if not (isinstance(mask, np.ndarray) and mask.dtype == bool and mask.shape == (self.num_envs,) and mask.any()):
            raise ValueError(f"reset_mask must be ({self.num_envs},) bool, true somewhere: not {mask!r}")
        return mask


def _spaces(env: Environment) -> tuple[spaces.Space, spaces.Space]:
    """Spaces of observations and of actions."""
    return _space(env.observations), _space(env.actions)


def _space(space: BoxSpace | Discrete) -> spaces.Space:
    if isinstance(space, Discrete):
        return spaces.Discrete(space.n)
    return spaces.Box(np.array(space.low, np.float32), np.array(space.high, np.float32), dtype=np.float32)


def _metadata(dt: float) -> dict[str, Any]:
    return {"render_modes": ["rgb_array"], "render_fps": max(1, round(1 / dt))}


def _render_mode(mode: str | None) -> str | None:
    if mode not in (None, "rgb_array"):
        raise ValueError(f"render_mode is 'rgb_array' or None, not {mode!r}; gymnasium.make knows 'human' besides")
    return mode
