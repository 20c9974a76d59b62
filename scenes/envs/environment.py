"""Environment: a task that is played, one lane or thousands, as pure jitted functions.

env = carom.make_env("cart_pole")
state, observation = env.reset(jax.random.split(jax.random.key(0), 4096))
state, observation, reward, terminated, truncated = env.step(state, actions)
state, observation = env.restarted(state, observation, terminated | truncated)
"""

from __future__ import annotations

import functools
from difflib import get_close_matches
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from ...engine.native.primitive import native
from ..compiling.precision import checked_dtype
from .starts import split
from .task import Discrete, Task

AT_ONCE = 128  # lanes; of more, new episodes are begun where they are wanted alone


class EnvState(NamedTuple):
    """All that an episode is. q: (..., nq), v: (..., nv), steps: (...) int32 taken, key: (...) of the next episode."""

    q: Array
    v: Array
    steps: Array
    key: Array


class Step(NamedTuple):
    """What `Environment.step` gives: reward (...), terminated and truncated (...) bool."""

    state: EnvState
    observation: Array
    reward: Array
    terminated: Array
    truncated: Array


class Environment:
    """A task in one engine. `reset`, `step` and `restarted` are jitted, and may be used inside jit, scan and vmap."""

    def __init__(self, task: Task, engine: str | None = None, dtype: Any = None) -> None:
        self.task = task
        self.engine = next(iter(task.engines)) if engine is None else engine
        if self.engine not in task.engines:
            near = get_close_matches(self.engine, task.engines, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(task.engines)}"
            raise ValueError(f"{task.name} has no engine {engine!r}: {hint}")
        self.dtype = checked_dtype("make_env", dtype)
        self._advance = task.engines[self.engine](self.dtype)
        self._played = self._play if task.events else native(self._play, blocks=True)
        self.reset = jax.jit(self._reset)
        self.step = jax.jit(self._step)
        self.restarted = jax.jit(self._restarted)

    def _reset(self, key: Array) -> tuple[EnvState, Array]:
        """The beginning of an episode for every key, (...) -> state and observation (..., k)."""
        if not (isinstance(key, Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key)):
            raise TypeError(f"reset takes a key, or an array of keys one a lane, as of jax.random.key: not {key!r}")
        return self._begun(key)

    def _begun(self, key: Array) -> tuple[EnvState, Array]:
        pair = split(key)
        q, v = self.task.start(pair[..., 1])
        q, v = q.astype(self.dtype), v.astype(self.dtype)
        return EnvState(q, v, jnp.zeros(key.shape, jnp.int32), pair[..., 0]), self.task.observe(q, v)

    def _step(self, state: EnvState, action: Array) -> Step:
        """One control period later. An episode that has ended goes on, until it is restarted."""
        (q, v, steps, key), action = state, self._checked(action, state.steps.shape)
        played = functools.partial(self._played, None)
        if not self.task.events:
            for _ in steps.shape:
                played = jax.vmap(played)
        q, v, observation, reward, ended = played(q, v, action)
        steps = steps + 1
        return Step(EnvState(q, v, steps, key), observation, reward, ended, steps >= self.task.max_steps)

    def _play(self, _: None, q: Array, v: Array, action: Array) -> tuple[Array, ...]:
        """(q, v, observation, reward, whether it ended) a period later, of any lanes."""
        task, push = self.task, self.task.push(action)
        q_next, v_next = self._advance(q, v, push)
        paid = task.reward(q, v, push, q_next, v_next)
        return q_next, v_next, task.observe(q_next, v_next), paid, task.ended(q_next, v_next)

    def _restarted(self, state: EnvState, observation: Array, done: Array) -> tuple[EnvState, Array]:
        """The same, where done (...) an episode newly begun."""
        now = state, observation

        def begin() -> tuple[EnvState, Array]:
            new = self._begun(state.key) if done.size <= AT_ONCE else self._begun_where(done, now)
            return jax.tree.map(lambda a, b: jnp.where(_like(done, a), a, b), new, now)

        return jax.lax.cond(done.any(), begin, lambda: now)

    def _begun_where(self, done: Array, now: tuple[EnvState, Array]) -> tuple[EnvState, Array]:
        """`now` with new episodes for the lanes that are done: drawing one costs as much as four steps.

        They are drawn for a sixteenth of all lanes at a time. No derivative passes: none is needed of a loop whose
        length nobody knows.
        """
        lanes, some = done.shape, done.size // 16
        number = jnp.cumsum(done.reshape(-1))  # of the done, up to each lane
        now = jax.lax.stop_gradient(jax.tree.map(lambda x: x.reshape(done.size, *x.shape[done.ndim :]), now))

        def fill(i: Array, now: tuple[EnvState, Array]) -> tuple[EnvState, Array]:
            at = jnp.searchsorted(number, i * some + jnp.arange(1, some + 1))  # beyond the last lane: none is left
            new = self._begun(now[0].key.at[at].get(mode="clip"))
            return jax.tree.map(lambda x, y: x.at[at].set(y, mode="drop"), now, new)

        now = jax.lax.fori_loop(0, -(-number[-1] // some), fill, now)
        return jax.tree.map(lambda x: x.reshape(*lanes, *x.shape[1:]), now)

    def _checked(self, action: Any, lanes: tuple[int, ...]) -> Array:
        action, space = jnp.asarray(action), self.task.actions
        if action.shape != (*lanes, *space.shape):
            raise ValueError(
                f"{self.task.name}: actions of shape {action.shape}, for {space} and lanes {lanes} they must have "
                f"shape {(*lanes, *space.shape)}"
            )
        if isinstance(space, Discrete):
            if not jnp.issubdtype(action.dtype, jnp.integer):
                raise TypeError(f"{self.task.name}: actions are integers below {space.n}, not {action.dtype}")
            return action
        return action.astype(self.dtype)


def _like(done: Array, x: Array) -> Array:
    """done (...) as wide as x (..., k)."""
    return done.reshape(done.shape + (1,) * (x.ndim - done.ndim))
