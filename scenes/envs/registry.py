"""The environments by name: what `carom.make_env` looks up."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from functools import cache
from typing import Any

from ..compiling.precision import checked_dtype
from .environment import Environment
from .task import Task
from .tasks.acrobot import acrobot
from .tasks.cart_pendulums import cart_double_pendulum, cart_triple_pendulum
from .tasks.cart_pole import cart_pole, cart_pole_swing_up
from .tasks.hopper import hopper
from .tasks.pendulum import pendulum
from .tasks.weightlifter import weightlifter

TASKS: dict[str, Callable[..., Task]] = {
    "pendulum": pendulum,
    "acrobot": acrobot,
    "weightlifter": weightlifter,
    "cart_pole": cart_pole,
    "cart_pole_swing_up": cart_pole_swing_up,
    "cart_double_pendulum": cart_double_pendulum,
    "cart_triple_pendulum": cart_triple_pendulum,
    "hopper": hopper,
}


def make_env(name: str, *, engine: str | None = None, dtype: Any = None, **parameters: Any) -> Environment:
    """An environment by its name, e.g. make_env("cart_pole", engine="tree", friction=False).

    engine: one of the task's, None for its first.  dtype: None for jax's default.  parameters: the task's own.
    """
    if name not in TASKS:
        near = get_close_matches(name, TASKS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(TASKS)}"
        raise ValueError(f"no environment named {name!r}: {hint}")
    return _made(name, engine, checked_dtype("make_env", dtype), **parameters)


@cache
def _made(name: str, engine: str | None, dtype: Any, **parameters: Any) -> Environment:
    """One for all who ask for the same: it holds no state, and is compiled once."""
    return Environment(TASKS[name](**parameters), engine, dtype)
