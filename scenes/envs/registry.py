"""The environments by name: `carom.make_env` finds them, `carom.register_task` adds to them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from difflib import get_close_matches
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ..compiling.precision import checked_dtype
from .environment import Environment
from .registration import ENVS
from .scene_task import Task
from .task import BatchTask
from .tasks.acrobot import acrobot
from .tasks.cart_pendulums import cart_double_pendulum, cart_triple_pendulum
from .tasks.cart_pole import cart_pole, cart_pole_swing_up
from .tasks.hopper import hopper
from .tasks.juggler import juggler
from .tasks.of_gymnasium.ant import ant
from .tasks.of_gymnasium.arms import pusher, reacher
from .tasks.of_gymnasium.humanoid import humanoid
from .tasks.of_gymnasium.pendulums import inverted_double_pendulum, inverted_pendulum
from .tasks.of_gymnasium.runners import half_cheetah, walker2d
from .tasks.of_gymnasium.runners import hopper as hopper_v5
from .tasks.pendulum import pendulum
from .tasks.quadruped import quadruped
from .tasks.weightlifter import weightlifter

TASKS: dict[str, Callable[..., BatchTask]] = {
    "pendulum": pendulum,
    "acrobot": acrobot,
    "weightlifter": weightlifter,
    "cart_pole": cart_pole,
    "cart_pole_swing_up": cart_pole_swing_up,
    "cart_double_pendulum": cart_double_pendulum,
    "cart_triple_pendulum": cart_triple_pendulum,
    "hopper": hopper,
}


ON_SCENES: dict[str, Callable[..., Task]] = {
    "juggler": juggler,
    "quadruped": quadruped,
}
OF_GYMNASIUM: dict[str, Callable[..., Task]] = {
    "carom/Ant-v5": ant,
    "carom/HalfCheetah-v5": half_cheetah,
    "carom/Hopper-v5": hopper_v5,
    "carom/Walker2d-v5": walker2d,
    "carom/Humanoid-v5": humanoid,
    "carom/InvertedPendulum-v5": inverted_pendulum,
    "carom/InvertedDoublePendulum-v5": inverted_double_pendulum,
    "carom/Reacher-v5": reacher,
    "carom/Pusher-v5": pusher,
}
OWN: dict[str, Callable[..., Task]] = {}  # what people have registered


def make_env(name: str, *, engine: str | None = None, dtype: DTypeLike | None = None, **parameters: Any) -> Environment:
    """An environment by its name, e.g. make_env("cart_pole", engine="tree", friction=False).

    engine: one of the task's, None for its first.  dtype: None for jax's default.  parameters: the task's own.
    """
    tasks = TASKS | ON_SCENES | OF_GYMNASIUM | OWN
    if name not in tasks:
        matches = get_close_matches(name, tasks, n=1)
        hint = f"did you mean {matches[0]!r}?" if matches else f"there are {', '.join(tasks)}"
        raise ValueError(f"no environment named {name!r}: {hint}")
    known = inspect.signature(tasks[name]).parameters
    for given in () if any(x.kind == x.VAR_KEYWORD for x in known.values()) else parameters:
        if given not in known:
            raise TypeError(f"make_env: {name!r} has no parameter {given!r}; it has {', '.join(known) or 'none'}")
    return _make(tasks[name], engine, checked_dtype("make_env", dtype), **parameters)


@cache
def _make(task: Callable[..., Task | BatchTask], engine: str | None, dtype: np.dtype, **parameters: Any) -> Environment:
    """One environment for equal arguments: it holds no state, and is compiled once."""
    return Environment(task(**parameters), engine, dtype)


def register_task(task: Task | Callable[..., Task]) -> str:
    """Register a task at `carom.make_env`, and at gymnasium if that is installed, by the task's name, which is
    returned. A function that returns a task, with a default for each parameter, gives its parameters to both.

    A registered task is replaced by another of the same name.
    """
    example = task() if not isinstance(task, Task) else task
    if not isinstance(example, Task):
        raise TypeError(f"register_task takes a carom.Task, or a function that returns one: not {example!r}")
    name = example.name
    if name in {*TASKS, *ON_SCENES, *OF_GYMNASIUM, *ENVS}:
        raise ValueError(f"register_task: {name!r} is one of Carom's own tasks: give yours another name")
    OWN[name] = (lambda: example) if isinstance(task, Task) else task
    if find_spec("gymnasium") is not None:
        from .gym_registry import register

        register(name, name, example.max_steps)
    return name
