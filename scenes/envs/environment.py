"""Environment plays a task, one lane or thousands, by pure jitted functions.

env = carom.make_env("cart_pole")
state, observation = env.reset(jax.random.split(jax.random.key(0), 4096))
state, observation, reward, terminated, truncated = env.step(state, actions)
state, observation = env.restarted(state, observation, terminated | truncated)
"""

from __future__ import annotations

import functools
from difflib import get_close_matches
from math import inf
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike
from numpy.typing import DTypeLike

from ...engine.shaped import Bool, Float
from ..compiling.precision import checked_dtype
from .batch_episodes import BatchEpisodes
from .episode import EnvState
from .scene_episodes import SceneEpisodes
from .scene_task import Task
from .task import BatchTask, BoxSpace, Discrete

AT_ONCE = 128  # lanes; with more, new episodes are begun only where they are wanted


class Step(NamedTuple):
    """Result of `Environment.step`: reward (...), terminated and truncated (...) bool."""

    state: EnvState
    observation: Float[Array, "*batch k"]
    reward: Float[Array, "*batch"]
    terminated: Bool[Array, "*batch"]
    truncated: Bool[Array, "*batch"]


class InformedStep(NamedTuple):
    """Result of `Environment.step_with_info`: a `Step`, and the task's info, {name: (...)}."""

    state: EnvState
    observation: Float[Array, "*batch k"]
    reward: Float[Array, "*batch"]
    terminated: Bool[Array, "*batch"]
    truncated: Bool[Array, "*batch"]
    info: dict[str, Array]


class Environment:
    """A task in one engine. `reset`, `step`, `step_with_info` and `restarted` are jitted, and may be used inside jit,
    scan and vmap. observations, actions: their boxes, for one lane."""

    def __init__(self, task: Task | BatchTask, engine: str | None = None, dtype: DTypeLike | None = None) -> None:
        self.task: Any = task
        engines = ("tree",) if isinstance(task, Task) else tuple(task.engines)
        self.engine = engines[0] if engine is None else engine
        if self.engine not in engines:
            near = get_close_matches(self.engine, engines, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(engines)}"
            raise ValueError(f"{task.name} has no engine {engine!r}: {hint}")
        self.dtype = checked_dtype("make_env", dtype)
        if isinstance(task, Task):
            self._episodes = SceneEpisodes(task, self.dtype)
        else:
            self._episodes = BatchEpisodes(task, self.engine, self.dtype)
        self.actions: BoxSpace | Discrete = task.actions
        self.reset = jax.jit(self._reset)
        self.step = jax.jit(self._step)
        self.step_with_info = jax.jit(self._step_with_info)
        self.restarted = jax.jit(self._restart)

    @functools.cached_property
    def observations(self) -> BoxSpace:
        if isinstance(self.task, BatchTask):
            return self.task.observations
        return BoxSpace.of(*(inf,) * jax.eval_shape(self._begin, jax.random.key(0))[1].size)

    def _reset(self, key: Array) -> tuple[EnvState, Array]:
        """Begin an episode for every key, (...) -> state and observation (..., k)."""
        if not (isinstance(key, Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key)):
            raise TypeError(f"reset takes a key, or an array of keys one a lane, as of jax.random.key: not {key!r}")
        return self._begin(key)

    def _begin(self, key: Array) -> tuple[EnvState, Array]:
        return self._episodes.begin(key)

    def _step(self, state: EnvState, action: Array) -> Step:
        """Advance by one control period. An episode that has ended goes on, until it is restarted."""
        return Step(*self._step_with_info(state, action)[:5])

    def _step_with_info(self, state: EnvState, action: Array) -> InformedStep:
        """Advance by one control period, and return the task's info too."""
        played = self._episodes.play(state, self._check_action(action, state.steps.shape))
        truncated = played.state.steps >= self.task.max_steps
        return InformedStep(*played[:4], truncated, played.info)

    def _restart(self, state: EnvState, observation: Array, done: Array) -> tuple[EnvState, Array]:
        """Begin a new episode in the lanes that are done (...), leave the others."""
        current = state, observation

        def begin() -> tuple[EnvState, Array]:
            new = self._begin(state.key) if done.size <= AT_ONCE else self._restart_where(done, current)
            return jax.tree.map(lambda a, b: jnp.where(_like(done, a), a, b), new, current)

        return jax.lax.cond(done.any(), begin, lambda: current)

    def _restart_where(self, done: Array, current: tuple[EnvState, Array]) -> tuple[EnvState, Array]:
        """Replace episodes of the lanes that are done by new ones: drawing one costs as much as four steps.

        They are drawn for a sixteenth of all lanes at a time. Derivatives are stopped: a loop of unknown length has
        none in reverse, and none is needed.
        """
        lanes, some = done.shape, done.size // 16
        number = jnp.cumsum(done.reshape(-1))  # lanes that are done, up to each lane
        current = jax.lax.stop_gradient(jax.tree.map(lambda x: x.reshape(done.size, *x.shape[done.ndim :]), current))

        def fill(i: Array, current: tuple[EnvState, Array]) -> tuple[EnvState, Array]:
            at = jnp.searchsorted(number, i * some + jnp.arange(1, some + 1))  # beyond the last lane: none is left
            new = self._begin(current[0].key.at[at].get(mode="clip"))
            return jax.tree.map(lambda x, y: x.at[at].set(y, mode="drop"), current, new)

        current = jax.lax.fori_loop(0, -(-number[-1] // some), fill, current)
        return jax.tree.map(lambda x: x.reshape(*lanes, *x.shape[1:]), current)

    def _check_action(self, action: ArrayLike, lanes: tuple[int, ...]) -> Array:
        action, space = jnp.asarray(action), self.actions
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
    """Broadcast done (...) to the width of x (..., k)."""
    return done.reshape(done.shape + (1,) * (x.ndim - done.ndim))
