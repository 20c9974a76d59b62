"""The state of an episode, and the outcome of a control period."""

from __future__ import annotations

from typing import Any, NamedTuple

from jax import Array


class EnvState(NamedTuple):
    """The state of an episode.

    q: (..., nq), v: (..., nv).
    steps: (...) int32 number of steps so far.
    key: (...) random key of the lane's next episodes.
    parameters: the model's parameters that are this episode's own, by name.
    command: the command that the task drew for this episode.
    """

    q: Array
    v: Array
    steps: Array
    key: Array
    parameters: Any = ()
    command: Any = ()


class Transition(NamedTuple):
    """Outcome of a control period: reward (...), ended (...) bool, info {name: (..., ...)}."""

    state: EnvState
    observation: Array
    reward: Array
    ended: Array
    info: dict[str, Array]
