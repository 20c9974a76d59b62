"""Task: a scene to control, and functions of one lane that say what is seen, what pays, and when an episode ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ...engine.model import Model
from ...engine.state import State
from ...integrators.options import Options
from ..builder import SceneBuilder
from ..compile import compile_scene
from ..formats.report import Actuator, Imported
from ..sources import load
from ..spec import SceneSpec
from .actuators import action_box, chosen, scene_actuators
from .task import Box, Segment


class Period(NamedTuple):
    """One control period of one lane, which a task's functions are given. No array has an axis of lanes.

    model: of the lane's episode, what `randomise` changed included.
    before: the state when the period began.
    state: the state at its end; at the start of an episode both are that of the start.
    action: (n,) as it was given; what acts is clipped to the actuators' ranges.  Zeros at the start of an episode.
    command: what the task's `command` drew for this episode; () without one.
    steps: () int32 periods of the episode so far; 0 at its start.
    bits: what `key` is made of.
    report: of the period, by name; {} if the task asks for none.
    """

    model: Model
    before: State
    state: State
    action: Array
    command: Any
    steps: Array
    bits: Array
    report: dict[str, Array]

    @property
    def q(self) -> Array:
        """(nq,) at the end."""
        return self.state.q

    @property
    def v(self) -> Array:
        """(nv,) at the end."""
        return self.state.v

    @property
    def t(self) -> Array:
        """() time at the end [s]."""
        return self.state.t

    @property
    def key(self) -> Array:
        """A random key, another one each period."""
        return jax.random.wrap_key_data(self.bits)


@dataclass(frozen=True, eq=False, kw_only=True)
class Task:
    """A task on a scene. Its functions are of one lane: arrays have no axes for lanes. They are traced by jax.

    name: what `carom.register_task` makes it known by, e.g. "my/Ant-v0".
    scene: a SceneSpec, a SceneBuilder, what `carom.import_mjcf` or `carom.import_urdf` returns, or a name or path that
        `carom.load` takes.
    reward: Period -> () what the period pays.
    dt: the control period [s].  max_steps: of one episode; then it is truncated.
    observe: Period -> (k,); None: q and v.
    ended: Period -> () bool, whether the episode ends here, failed or achieved; None: never.
    start: (key, q, v) -> (q, v) of a new episode, from those of the scene; None: these themselves.
    actuators: names of what the actions drive, in their order; None: all motors. Those of an MJCF file are its
        actuators, with its gear and control range; other scenes name motors by their links, and u is the motor's own.
    randomise: (key, model) -> model of a new episode, e.g. `lambda key, model: model.replace(mass=...)`.
    command: key -> anything made of arrays, drawn for each episode, e.g. a velocity to keep.
    info: Period -> {name: array}, what gymnasium gives out as info.
    report: names of what `carom.step` is to report, one or several, which `Period.report` then holds. At the start of
        an episode sensors of an instant read that, and all that is of a period is 0.
    options: of each step, e.g. `carom.Options(max_dt=0.01, scheme="semi_implicit")`.
    sketch: (nq,) of one lane, NumPy -> what to draw, see `Segment`; None: the scene's shapes from the side.
    window: what of the plane is drawn, (x_min, x_max, y_min, y_max) [m]; None: as large as the scene at its start.
    """

    name: str
    scene: SceneSpec | SceneBuilder | Imported | str | PathLike[str]
    reward: Callable[[Period], Array]
    dt: float = 0.05
    max_steps: int = 1000
    observe: Callable[[Period], Array] | None = None
    ended: Callable[[Period], Array] | None = None
    start: Callable[[Array, Array, Array], tuple[Array, Array]] | None = None
    actuators: Sequence[str] | None = None
    randomise: Callable[[Array, Model], Model] | None = None
    command: Callable[[Array], Any] | None = None
    info: Callable[[Period], dict[str, Array]] | None = None
    report: str | Sequence[str] = ()
    options: Options = Options()  # noqa: RUF009  # which is frozen
    description: str = ""
    sketch: Callable[[np.ndarray], list[Segment]] | None = None
    window: tuple[float, float, float, float] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.options, Options):
            raise TypeError(f"{self.name}: options is {self.options!r}; it must be carom.Options(...)")

    def observation(self, s: Period) -> Array:
        """(k,) what is observed."""
        return jnp.concatenate([s.q, s.v]) if self.observe is None else self.observe(s)

    def end(self, s: Period) -> Array:
        """() bool, whether the episode ends."""
        return jnp.zeros((), bool) if self.ended is None else self.ended(s)

    @cached_property
    def _loaded(self) -> tuple[SceneSpec, tuple[Actuator, ...]]:
        """The scene, and all actuators it has."""
        given: Any = self.scene
        if isinstance(given, SceneBuilder):
            given = given.build()
        if isinstance(given, (str, PathLike)) and Path(fspath(given)).suffix.lower() in (".xml", ".mjcf"):
            from ..formats.mjcf import import_mjcf

            given = import_mjcf(given)
        if isinstance(given, Imported):
            return given.scene, given.report.actuators or scene_actuators(given.scene)
        scene = given if isinstance(given, SceneSpec) else load(given)
        if not isinstance(scene, SceneSpec):
            raise ValueError(f"{self.name}: scene must be a scene of bodies, not {type(scene).__name__}")
        return scene, scene_actuators(scene)

    def compiled(self, dtype: Any) -> tuple[Model, State]:
        """The scene's model, and its state."""
        return compile_scene(self._loaded[0], dtype=dtype)

    @cached_property
    def driven(self) -> tuple[Actuator, ...]:
        """What the actions drive."""
        return chosen(self._loaded[1], self.actuators, self.name)

    @property
    def actions(self) -> Box:
        return action_box(self.driven)
