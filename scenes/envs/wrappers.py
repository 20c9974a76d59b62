"""Wrappers of an environment for learners: automatic new episodes, and normalized observations. Each has the interface
of an `Environment`, and may wrap another one."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from .environment import Environment, Step

LITTLE = 1e-8  # added to variances, which may be 0


class Scale(NamedTuple):
    """Statistics of the observations so far: count (), mean and variance (k,)."""

    count: Array
    mean: Array
    variance: Array

    def update(self, x: Array) -> Scale:
        """Update by x (..., k) (Chan, Golub and LeVeque 1979, eq. 2.1)."""
        rows = x.reshape(-1, x.shape[-1])
        n, mean, variance = len(rows), rows.mean(0), rows.var(0)
        total, off = self.count + n, mean - self.mean
        spread = self.variance * self.count + variance * n + off**2 * self.count * n / total
        return Scale(total, self.mean + off * n / total, spread / total)

    def of(self, x: Array, most: float) -> Array:
        """(x - mean) / deviation, within +-most."""
        return jnp.clip((x - self.mean) / jnp.sqrt(self.variance + LITTLE), -most, most)


class NormalizedState(NamedTuple):
    """inner: state of the environment.  raw: (..., k) observation.  scale: statistics of all lanes so far."""

    inner: Any
    raw: Array
    scale: Scale


class NormalizeObservation:
    """Normalizes observations to (x - mean) / deviation within +-most, with mean and standard deviation of all
    observations so far in all lanes. The state holds them: `state.scale`.

    scale: that of another run, e.g. of training, kept constant; None: it is learned.
    """

    def __init__(self, env: Any, *, most: float = 10.0, scale: Scale | None = None) -> None:
        self.env, self.task, self.actions, self.dtype = env, env.task, env.actions, env.dtype
        self.observations = type(env.observations).of(*(most,) * env.observations.shape[0])
        self._most, self._scale = most, scale
        self.reset, self.step, self.restarted = jax.jit(self._reset), jax.jit(self._step), jax.jit(self._restart)

    def _reset(self, key: Array) -> tuple[NormalizedState, Array]:
        """See `Environment`."""
        inner, raw = self.env.reset(key)
        size = raw.shape[-1:]
        new = Scale(jnp.zeros((), raw.dtype), jnp.zeros(size, raw.dtype), jnp.ones(size, raw.dtype))
        return self._normalize(inner, raw, new.update(raw) if self._scale is None else self._scale)

    def _step(self, state: NormalizedState, action: Array) -> Step:
        """See `Environment`."""
        after = self.env.step(state.inner, action)
        scale = state.scale.update(after.observation) if self._scale is None else state.scale
        now, observation = self._normalize(after.state, after.observation, scale)
        return Step(now, observation, *after[2:])  # type: ignore[arg-type]

    def _restart(self, state: NormalizedState, _: Array, done: Array) -> tuple[NormalizedState, Array]:
        """See `Environment`; observations at the ends of episodes count, those at their new starts do not."""
        inner, raw = self.env.restarted(state.inner, state.raw, done)
        return self._normalize(inner, raw, state.scale)

    def _normalize(self, inner: Any, raw: Array, scale: Scale) -> tuple[NormalizedState, Array]:
        return NormalizedState(inner, raw, scale), scale.of(raw, self._most)


class EpisodeState(NamedTuple):
    """inner: state of the environment.  gained: (...) rewards of the episode so far.  length: (...) int32 periods."""

    inner: Any
    gained: Array
    length: Array


class EpisodeStep(NamedTuple):
    """A `Step` after which new episodes have begun in lanes whose episodes ended.

    observation: (..., k), that of the new episode if one began.  last: (..., k) that of the period's end in any case.
    gained, length: (...) those of the episode including this period, also if it ended.
    """

    state: EpisodeState
    observation: Array
    reward: Array
    terminated: Array
    truncated: Array
    last: Array
    gained: Array
    length: Array


class AutoReset:
    """Begins the next episode of each lane in the same step in which one ends, and counts what episodes gained."""

    def __init__(self, env: Environment | NormalizeObservation) -> None:
        self.env, self.task, self.actions, self.dtype = env, env.task, env.actions, env.dtype
        self.observations = env.observations
        self.reset, self.step = jax.jit(self._reset), jax.jit(self._step)

    def _reset(self, key: Array) -> tuple[EpisodeState, Array]:
        """See `Environment`."""
        inner, observation = self.env.reset(key)
        return EpisodeState(inner, jnp.zeros(key.shape, self.dtype), jnp.zeros(key.shape, jnp.int32)), observation

    def _step(self, state: EpisodeState, action: Array) -> EpisodeStep:
        """Advance by one control period, and begin new episodes where some ended."""
        after = self.env.step(state.inner, action)
        done = after.terminated | after.truncated
        gained, length = state.gained + after.reward, state.length + 1
        inner, observation = self.env.restarted(after.state, after.observation, done)  # type: ignore[arg-type]
        now = EpisodeState(inner, jnp.where(done, 0, gained), jnp.where(done, 0, length))
        rest = after.reward, after.terminated, after.truncated
        return EpisodeStep(now, observation, *rest, after.observation, gained, length)
