"""Episodes of a `BatchTask`: their starts, and one control period of any lanes."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ...engine.native.function import native
from .episode import EnvState, Transition
from .starts import split
from .task import BatchTask


class BatchEpisodes:
    """A task's episodes in one engine and precision."""

    def __init__(self, task: BatchTask, engine: str, dtype: np.dtype) -> None:
        self.task, self.dtype = task, dtype
        self._advance = task.engines[engine](dtype)
        self._played = self._play if task.events else native(self._play, blocks=True)

    def begin(self, key: Array) -> tuple[EnvState, Array]:
        """States and observations (..., k) of new episodes, from keys (...)."""
        pair = split(key)
        q, v = self.task.start(pair[..., 1])
        q, v = q.astype(self.dtype), v.astype(self.dtype)
        return EnvState(q, v, jnp.zeros(key.shape, jnp.int32), pair[..., 0]), self.task.observe(q, v)

    def play(self, state: EnvState, action: Array) -> Transition:
        """Play one control period."""
        played = functools.partial(self._played, None)
        if not self.task.events:
            for _ in state.steps.shape:
                played = jax.vmap(played)
        q, v, observation, reward, ended = played(state.q, state.v, action)
        return Transition(state._replace(q=q, v=v, steps=state.steps + 1), observation, reward, ended, {})

    def _play(self, _: None, q: Array, v: Array, action: Array) -> tuple[Array, ...]:
        """Play any lanes for a period; return q, v, observation, reward and whether it ended."""
        task, push = self.task, self.task.push(action)
        q_next, v_next = self._advance(q, v, push)
        reward = task.reward(q, v, push, q_next, v_next)
        return q_next, v_next, task.observe(q_next, v_next), reward, task.ended(q_next, v_next)
