"""What an episode is, and what a control period of it gives."""

from __future__ import annotations

from typing import Any, NamedTuple

from jax import Array


class EnvState(NamedTuple):
    """All that an episode is.

    q: (..., nq), v: (..., nv).
    steps: (...) int32 taken.
    key: (...) from which the lane's next episodes are drawn.
    parameters: of the model, by name, what is this episode's own.
    command: what the task's `command` drew for this episode.
    """

    q: Array
    v: Array
    steps: Array
    key: Array
    parameters: Any = ()
    command: Any = ()


class Played(NamedTuple):
    """A control period later: reward (...), ended (...) bool, info {name: (..., ...)}."""

    state: EnvState
    observation: Array
    reward: Array
    ended: Array
    info: dict[str, Array]
