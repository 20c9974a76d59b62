"""Episodes as rows of one array: what makes the calls of an environment cheap where NumPy makes them.

A call costs by the number of arrays that go in and come out, for one lane nearly all it costs; so that number is one.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from .environment import Environment, EnvState
from .registry import make_env
from .render import picture
from .task import Discrete


class Lanes:
    """The episodes of the environment `name`.  shape: of the lanes, (n,), or () of one.  The rest: as of `make_env`.

    Each is a row: q, v, observation, reward, whether it ended. Their keys stay out: a step needs none.
    """

    def __init__(
        self, name: str, shape: tuple[int, ...], *, engine: str | None, dtype: Any, parameters: dict[str, Any]
    ) -> None:
        dtype = jnp.result_type(float) if dtype is None else dtype
        self._programs = _programs(name, engine, dtype, tuple(sorted(parameters.items())))
        self.task, self.shape = self._programs.env.task, shape
        self._keys: Array | None = None
        self._rows: Any = None  # (*shape, columns); not before the first episode

    def begin(self, seeds: Sequence[int | None], again: Any, random: np.random.Generator) -> np.ndarray:
        """The observations, where `again` (*shape) those of new episodes.

        seeds: one a lane, modulo 2^32; None for the lane's next episode, drawn from `random` if it is the first.
        """
        if self._keys is None:
            if not np.all(again):
                raise RuntimeError(f"{self.task.name}: the first reset must be of all lanes")
            seeds = [int(random.integers(2**32)) if seed is None else seed for seed in seeds]
            self._rows = self._programs.blank(self.shape)
        given = np.array([seed is not None for seed in seeds]).reshape(self.shape) & again
        if given.any():
            numbers = np.array([0 if seed is None else seed % 2**32 for seed in seeds], np.uint32)
            keys = jax.vmap(jax.random.key)(numbers).reshape(self.shape)
            self._keys = keys if self._keys is None else jnp.where(given, keys, self._keys)
        self._keys, self._rows = self._programs.renew(self._keys, self._rows, again)
        return self._read()[0]

    def step(self, action: Any, again: Any = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Observations (*shape, k) float32, rewards (*shape) float64, and whether the episodes ended (*shape); where
        `again` (*shape), a new episode's observation, 0 and False instead."""
        if self._rows is None:
            raise RuntimeError(f"{self.task.name}: step before the first reset")
        self._rows = self._programs.play(self._rows, self._checked(action))
        if again is not None and again.any():
            self._keys, self._rows = self._programs.renew(self._keys, self._rows, again)
        return self._read()

    def pictures(self, shown: int) -> tuple[np.ndarray, ...]:
        """Of the first lanes, (H, W, 3) uint8 each."""
        if self._rows is None:
            raise RuntimeError(f"{self.task.name}: render before the first reset")
        rows = np.asarray(self._rows[:shown] if self.shape else self._rows[None])
        return tuple(picture(self.task.sketch(row[: self._programs.nq]), self.task.window) for row in rows)

    def _read(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rows = np.asarray(self._rows)  # read-only, jax's own: what is given out are copies
        return (
            rows[..., self._programs.n : -2].astype(np.float32),
            rows[..., -2].astype(np.float64),
            rows[..., -1] > 0.5,
        )

    def _checked(self, action: Any) -> np.ndarray:
        """What the environment, being traced, cannot see."""
        space, action = self.task.actions, np.asarray(action)
        if isinstance(space, Discrete):
            if not ((action >= 0) & (action < space.n)).all():
                raise ValueError(f"{self.task.name}: actions are 0 to {space.n - 1}, not {action}")
        elif not np.isfinite(action).all():
            raise ValueError(f"{self.task.name}: actions must be finite, not {action}")
        return action


class _Programs:
    """What is jitted of rows.  nq: columns of q.  n: of q and v.

    play: (rows, actions) -> rows.  renew: (keys, rows, again) -> (keys, rows), where `again` begun anew.
    """

    def __init__(self, env: Environment) -> None:
        self.env = env
        q, v = jax.eval_shape(env.reset, jax.random.key(0))[0][:2]
        self.nq, self.n = q.size, q.size + v.size
        self.play, self.renew = jax.jit(self._play), jax.jit(self._renew)

    def blank(self, shape: tuple[int, ...]) -> Array:
        return jnp.zeros((*shape, self.n + self.env.task.observations.shape[0] + 2), self.env.dtype)

    def _play(self, rows: Array, action: Array) -> Array:
        step = self.env.step(self._state(rows, None), action)
        return self._row(step.state, step.observation, step.reward, step.terminated)

    def _renew(self, keys: Array, rows: Array, again: Array) -> tuple[Array, Array]:
        state, observation = self.env.restarted(self._state(rows, keys), rows[..., self.n : -2], again)
        outcome = jnp.where(again[..., None], 0, rows[..., -2:])
        return state.key, self._row(state, observation, outcome[..., 0], outcome[..., 1])

    def _state(self, rows: Array, keys: Any) -> EnvState:
        """Its steps are counted by who calls."""
        q, v = rows[..., : self.nq], rows[..., self.nq : self.n]
        return EnvState(q, v, jnp.zeros(rows.shape[:-1], jnp.int32), keys)

    def _row(self, state: EnvState, observation: Array, reward: Array, ended: Array) -> Array:
        outcome = jnp.stack([reward, ended], -1)
        return jnp.concatenate([state.q, state.v, observation, outcome], -1, dtype=self.env.dtype)


@functools.lru_cache(maxsize=32)
def _programs(name: str, engine: str | None, dtype: Any, parameters: tuple[tuple[str, Any], ...]) -> _Programs:
    """One for all environments alike: what is jitted compiles once."""
    return _Programs(make_env(name, engine=engine, dtype=dtype, **dict(parameters)))
