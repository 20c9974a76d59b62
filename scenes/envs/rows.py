"""Episodes as rows of one array, so that calls from NumPy are cheap.

The cost of a call grows with the number of arrays in and out, and for one lane is nearly all of that: so there is one.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike, DTypeLike

from .environment import Environment
from .episode import EnvState
from .registry import make_env
from .render import picture
from .side_view import SideView
from .task import BatchTask, Discrete, Sketch


class Lanes:
    """The episodes of the environment `name`.  shape: of the lanes, (n,), or () of one.  The others: see `make_env`.

    Each is a row: q, v, observation, reward, whether it ended, info. Keys and the rest of an episode's state are not in
    it: a step of a `BatchTask` does not need them.
    """

    def __init__(
        self,
        name: str,
        shape: tuple[int, ...],
        *,
        engine: str | None,
        dtype: DTypeLike | None,
        parameters: dict[str, Any],
    ) -> None:
        dtype = jnp.result_type(float) if dtype is None else dtype
        self._programs = _programs(make_env(name, engine=engine, dtype=dtype, **parameters))
        self.env, self.shape = self._programs.env, shape
        self.task = self.env.task
        self._rest: dict[str, Any] | None = None  # (steps, key, parameters, command); None before the first episode
        self._rows: Array | None = None  # (*shape, columns); None before the first episode

    def begin(
        self, seeds: Sequence[int | None], again: np.ndarray | np.bool, random: np.random.Generator
    ) -> np.ndarray:
        """Begin new episodes in the lanes `again` (*shape), and return all observations.

        seeds: one a lane, modulo 2^32; None for the lane's next episode, which `random` seeds if it is the first.
        """
        if self._rest is None and not np.all(again):
            raise RuntimeError(f"{self.task.name}: the first reset must be of all lanes")
        if self._rest is None:
            seeds = [int(random.integers(2**32)) if seed is None else seed for seed in seeds]
        seeded = np.array([seed is not None for seed in seeds]).reshape(self.shape) & again
        if seeded.any():
            numbers = np.array([0 if seed is None else seed % 2**32 for seed in seeds], np.uint32)
            keys = jax.vmap(jax.random.key)(numbers).reshape(self.shape)
            if self._rest is None:
                self._rows, self._rest = self._programs.begin(keys)
                return self._read()[0]
            self._rest = {**self._rest, "key": jnp.where(seeded, keys, self._rest["key"])}
        self._rows, self._rest = self._programs.renew(self._rows, self._rest, again)
        return self._read()[0]

    def step(self, action: ArrayLike, again: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Step; return observations (*shape, k) float32, rewards (*shape) float64, and whether episodes ended (*shape);
        in lanes `again` (*shape), a new episode's observation, 0 and False instead."""
        if self._rows is None:
            raise RuntimeError(f"{self.task.name}: step before the first reset")
        if isinstance(self.task, BatchTask):
            self._rows, _ = self._programs.play(self._rows, None, self._check_action(action))
        else:
            self._rows, self._rest = self._programs.play(self._rows, self._rest, self._check_action(action))
        if again is not None and again.any():
            self._rows, self._rest = self._programs.renew(self._rows, self._rest, again)
        return self._read()

    @property
    def info(self) -> dict[str, np.ndarray]:
        """The task's info of the last step, (*shape, ...) each; zeros if an episode has just begun."""
        if not self._programs.info:
            return {}
        column, infos, rows = self._programs.n_outcome, {}, np.asarray(self._rows)
        for name, shape in self._programs.info.items():
            size = int(np.prod(shape))
            infos[name] = rows[..., column : column + size].reshape((*self.shape, *shape)).copy()
            column += size
        return infos

    def pictures(self, shown: int) -> tuple[np.ndarray, ...]:
        """Pictures of the first lanes, (H, W, 3) uint8 each."""
        if self._rows is None:
            raise RuntimeError(f"{self.task.name}: render before the first reset")
        rows = np.asarray(self._rows[:shown] if self.shape else self._rows[None])
        sketch, window = self._programs.view
        return tuple(picture(sketch(row[: self._programs.nq]), window) for row in rows)

    def _read(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rows, end = (
            np.asarray(self._rows),
            self._programs.n_outcome,
        )  # read-only, jax's own: copies are given out
        return (
            rows[..., self._programs.n : end - 2].astype(np.float32),
            rows[..., end - 2].astype(np.float64),
            rows[..., end - 1] > 0.5,
        )

    def _check_action(self, action: ArrayLike) -> np.ndarray:
        """Check actions for errors that the traced environment cannot see."""
        space, action = self.env.actions, np.asarray(action)
        if isinstance(space, Discrete):
            if not ((action >= 0) & (action < space.n)).all():
                raise ValueError(f"{self.task.name}: actions are 0 to {space.n - 1}, not {action}")
        elif not np.isfinite(action).all():
            raise ValueError(f"{self.task.name}: actions must be finite, not {action}")
        return action


class _Programs:
    """The jitted programs on rows.

    nq: columns of q.  n: of q and v.  n_outcome: of these, observation, reward and end.  info: shapes by name.
    begin: keys -> (rows, rest).  play: (rows, rest, actions) -> (rows, rest).  renew: (rows, rest, again) -> the same,
    with new episodes in the lanes `again`.
    """

    def __init__(self, env: Environment) -> None:
        self.env = env
        state, observation = jax.eval_shape(env.reset, jax.random.key(0))
        self.nq, self.n = state.q.size, state.q.size + state.v.size
        self.n_outcome = self.n + observation.size + 2
        action = jax.ShapeDtypeStruct(env.actions.shape, jnp.int32 if isinstance(env.actions, Discrete) else env.dtype)
        info = jax.eval_shape(env.step_with_info, state, action).info
        self.info = {name: x.shape for name, x in info.items()}
        self.begin, self.play, self.renew = jax.jit(self._begin), jax.jit(self._play), jax.jit(self._renew)

    @functools.cached_property
    def view(self) -> tuple[Sketch, tuple[float, float, float, float]]:
        """The function that sketches coordinates, and the window of the plane."""
        task = self.env.task
        if isinstance(task, BatchTask) or (task.sketch and task.window):
            return task.sketch, task.window  # type: ignore[return-value]
        side = SideView.of(*task.compiled(self.env.dtype))
        return task.sketch or side.sketch, task.window or side.window

    def _begin(self, keys: Array) -> tuple[Array, dict[str, Any]]:
        state, observation = self.env.reset(keys)
        zeros = jnp.zeros((*keys.shape, 2 + self._info_columns), self.env.dtype)
        return self._row(state, observation, zeros), _rest(state)

    @property
    def _info_columns(self) -> int:
        """Columns of info."""
        return sum(int(np.prod(shape)) for shape in self.info.values())

    def _play(self, rows: Array, rest: dict[str, Any] | None, action: Array) -> tuple[Array, dict[str, Any] | None]:
        step = self.env.step_with_info(self._state(rows, rest), action)
        lanes = step.reward.shape
        info = [step.info[name].reshape(*lanes, -1) for name in self.info]
        outcome = jnp.concatenate([jnp.stack([step.reward, step.terminated], -1), *info], -1)
        return self._row(step.state, step.observation, outcome), None if rest is None else _rest(step.state)

    def _renew(self, rows: Array, rest: dict[str, Any], again: Array) -> tuple[Array, dict[str, Any]]:
        observed, outcome = rows[..., self.n : self.n_outcome - 2], rows[..., self.n_outcome - 2 :]
        state, observation = self.env.restarted(self._state(rows, rest), observed, again)
        return self._row(state, observation, jnp.where(again[..., None], 0, outcome)), _rest(state)

    def _state(self, rows: Array, rest: dict[str, Any] | None) -> EnvState:
        """The state of rows; without rest, one for a step of a `BatchTask`, whose steps the caller counts."""
        q, v = rows[..., : self.nq], rows[..., self.nq : self.n]
        if rest is None:
            return EnvState(q, v, jnp.zeros(rows.shape[:-1], jnp.int32), None)  # pyright: ignore[reportArgumentType]
        return EnvState(q, v, **rest)

    def _row(self, state: EnvState, observation: Array, outcome: Array) -> Array:
        return jnp.concatenate([state.q, state.v, observation, outcome], -1, dtype=self.env.dtype)


def _rest(state: EnvState) -> dict[str, Any]:
    return {name: x for name, x in state._asdict().items() if name not in ("q", "v")}


@functools.lru_cache(maxsize=32)
def _programs(env: Environment) -> _Programs:
    """One instance for equal environments: jitted functions compile once."""
    return _Programs(env)
