"""Episodes of a `Task`: their starts, and one control period of any lanes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ...engine.model import Model
from ...engine.native.function import native
from ...engine.state import State
from ...integrators.advance import step
from ...integrators.readouts.sensors import at_instant
from ..wording import brief
from .actuators import control
from .episode import EnvState, Transition
from .scene_task import Period, Task

T = TypeVar("T")
LATE = 1e-3  # part of a period: a lane whose clock is further from the period's end has failed


class SceneEpisodes:
    """A task's episodes in one precision."""

    def __init__(self, task: Task, dtype: np.dtype) -> None:
        self.task, self.dtype = task, dtype
        self.model, self.start = task.compiled(dtype)
        self._names = self._find_randomised()
        self._report = self._shapes() if task.report else {}
        self._driven, self._judged = native(self._drive), native(self._judge)

    def begin(self, key: Array) -> tuple[EnvState, Array]:
        """States and observations (..., k) of new episodes, from keys (...)."""
        state = _vmap(self._begin, key.ndim)(key)
        action = jnp.zeros((*key.shape, len(self.task.driven)), self.dtype)
        report = jax.tree.map(lambda x: jnp.zeros((*key.shape, *x.shape), x.dtype), self._report)
        if "sensors" in report:  # sensors of an instant read the start
            report["sensors"] |= _vmap(self._instant, key.ndim)(state)
        return state, self._observe(state, state, action, report).observation

    def _instant(self, state: EnvState) -> dict[str, Array]:
        """The report of an instant, of one lane."""
        return at_instant(self._model(state.parameters), state.q, state.v)

    def play(self, state: EnvState, action: Array) -> Transition:
        """Play one control period."""
        lanes = state.steps.shape
        model, u = self._model(state.parameters), self._map(self._driven, lanes)(state.parameters, action)
        before = State(state.q, state.v, self._time(state.steps))
        if len(lanes) > 1:  # `step` has one axis of lanes
            flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[len(lanes) :]), (before, u, state.parameters))
            before, u, model = *flat[:2], self._model(flat[2])
        report: Any = {"report": self.task.report} if self.task.report else {}
        result: Any = step(model, before, dt=self.task.dt, control=u, throw=False, options=self.task.options, **report)
        after, readings = result if report else (result, {})
        after, readings = jax.tree.map(lambda x: x.reshape(*lanes, *x.shape[min(len(lanes), 1) :]), (after, readings))
        next_state = state._replace(q=after.q, v=after.v, steps=state.steps + 1)
        played = self._observe(state, next_state, action, readings)
        return played._replace(ended=played.ended | self._has_failed(after, self._time(next_state.steps)))

    def _has_failed(self, after: State, end: Array) -> Array:
        """Return whether `step` failed before the time `end` [s], by lane."""
        tolerance = LATE * self.task.dt + 4 * jnp.finfo(self.dtype).eps * jnp.abs(end)
        finite = jnp.isfinite(after.q).all(-1) & jnp.isfinite(after.v).all(-1)
        return ~finite | ~(jnp.abs(after.t - end) <= tolerance)

    def _begin(self, key: Array) -> EnvState:
        """Begin an episode of one lane."""
        own, start, change, command = jax.random.split(key, 4)
        q, v = self.start.q, self.start.v
        if self.task.start is not None:
            q, v = self._check_start(self.task.start(start, q, v))
        parameters = {} if self.task.randomise is None else vars(self.task.randomise(change, self.model))
        drawn = () if self.task.command is None else self.task.command(command)
        return EnvState(
            jnp.asarray(q, self.dtype), jnp.asarray(v, self.dtype), jnp.zeros((), jnp.int32), own,
            {name: jnp.asarray(parameters[name], self.dtype) for name in self._names}, jax.tree.map(jnp.asarray, drawn),
        )  # fmt: skip

    def _check_start(self, given: Any) -> tuple[Array, Array]:
        """Return the result of a task's `start`, if it is q and v."""
        needed = [(self.model.topology.nq,), (self.model.topology.nv,)]
        several = isinstance(given, (tuple, list))
        if not several or [np.shape(x) for x in given] != needed:
            told = f"shapes {[np.shape(x) for x in given]}" if several else type(given).__name__
            raise ValueError(f"{self.task.name}: start gives {told}; it must be (q, v) of shapes {needed}")
        q, v = given
        return q, v

    def _observe(self, before: EnvState, after: EnvState, action: Array, report: dict[str, Array]) -> Transition:
        bits = jax.random.key_data(_vmap(jax.random.fold_in, after.steps.ndim)(after.key, after.steps))
        rest = before.q, before.v, after._replace(key=bits), action, report
        observation, reward, ended, info = self._map(self._judged, after.steps.shape)(*rest)
        return Transition(after, observation, reward, ended, info)

    def _drive(self, _: None, parameters: dict[str, Array], action: Array) -> Array:
        """Control (nv,) of one lane."""
        return control(self._model(parameters), self.task.driven, action)

    def _judge(
        self, _: None, q: Array, v: Array, after: EnvState, action: Array, report: dict[str, Array]
    ) -> tuple[Array, Array, Array, dict[str, Array]]:
        """Observation, reward, whether it ended, and info, of one lane."""
        task, model = self.task, self._model(after.parameters)
        first = jnp.maximum(after.steps - 1, 0)
        before, state = State(q, v, self._time(first)), State(after.q, after.v, self._time(after.steps))
        readings = _Readings(task.name, report)
        s = Period(model, before, state, action, after.command, after.steps, after.key, readings)
        observation, reward = jnp.asarray(task.observation(s), self.dtype), jnp.asarray(task.reward(s), self.dtype)
        ended = task.end(s)
        if not isinstance(ended, bool) and getattr(ended, "dtype", None) != np.bool_:
            raise TypeError(f"{task.name}: ended gives {brief(ended)}; it must be bool, such as s.q[0] > 1")
        ended = jnp.asarray(ended)
        for name, x, shape in (("observe", observation, "(k,)"), ("reward", reward, "()"), ("ended", ended, "()")):
            if x.ndim != (name == "observe"):
                raise ValueError(f"{task.name}: {name} gives shape {x.shape}, it must be {shape}, of one lane")
        info = {} if task.info is None else task.info(s)
        if not isinstance(info, dict):
            raise TypeError(
                f'{task.name}: info gives {type(info).__name__}; it must be a dict, such as {{"x": s.q[0]}}'
            )
        return observation, reward, ended, {name: jnp.asarray(x, self.dtype) for name, x in info.items()}

    def _model(self, parameters: dict[str, Array]) -> Model:
        return replace(self.model, **parameters)

    def _time(self, steps: Array) -> Array:
        return self.start.t + steps.astype(self.dtype) * self.task.dt

    def _map(self, function: Callable[..., T], lanes: tuple[int, ...]) -> Callable[..., T]:
        return _vmap(functools.partial(function, None), len(lanes))

    def _find_randomised(self) -> tuple[str, ...]:
        """Parameters that differ from episode to episode; the model's topology changes with them."""
        randomised: list[str] = []
        if self.task.randomise is None:
            return ()

        def note_changes(key: Array) -> None:
            model = self.task.randomise(key, self.model)  # type: ignore[misc]
            if not isinstance(model, Model):
                raise TypeError(f"{self.task.name}: randomise must return a model, not {type(model).__name__}")
            randomised.extend(name for name, x in model.parameters.items() if x is not self.model.parameters[name])
            self.model = replace(self.model, topology=model.topology)

        jax.eval_shape(note_changes, jax.random.key(0))
        return tuple(randomised)

    def _shapes(self) -> dict[str, Any]:
        """Shapes of the report of one lane."""
        keywords: Any = {"dt": self.task.dt, "report": self.task.report, "throw": False, "options": self.task.options}
        return jax.eval_shape(functools.partial(step, self.model, **keywords), self.start)[1]  # type: ignore[index]


class _Readings(dict[str, Any]):
    """A report by name, with a helpful error for names that are not in it."""

    def __init__(self, task: str, report: dict[str, Any]) -> None:
        super().__init__(report)
        self._task = task

    def __missing__(self, name: str) -> Any:
        there = ", ".join(map(repr, self)) or "nothing"
        raise KeyError(f"{self._task}: report has {there} and no {name!r}: give the task report=[{name!r}]")


def _vmap(function: Callable[..., T], axes: int) -> Callable[..., T]:
    for _ in range(axes):
        function = jax.vmap(function)
    return function
