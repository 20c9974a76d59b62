"""Task: a scene to control, and functions of one lane for its observation, its reward and the end of an episode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import DTypeLike

from ...engine.model import Model
from ...engine.shaped import Int
from ...engine.state import State
from ...integrators.options import Options
from ..compile import compile_scene
from ..formats.report import Actuator, Imported
from ..sources import SceneLike, scene_of_links
from ..spec import SceneSpec
from .actuators import action_box, scene_actuators, select_actuators
from .task import BoxSpace, Segment


class Period(NamedTuple):
    """One control period of one lane, the argument of a task's functions. No array has an axis of lanes.

    model: that of the lane's episode, with the changes of `randomise`.
    before: the state at the start of the period.
    state: the state at its end; at the start of an episode both are the same.
    action: (n,) as given; the motors' inputs are clipped to the actuators' ranges.  Zeros at the start of an episode.
    command: the command that the task drew for this episode; () without one.
    steps: () int32 number of periods of the episode so far; 0 at its start.
    bits: the data of `key`.
    report: that of the period, by name; {} if the task requests none.
    """

    model: Model
    before: State
    state: State
    action: Array
    command: Any
    steps: Int[Array, ""]
    bits: Array
    report: dict[str, Array]

    @property
    def q(self) -> Array:
        """Coordinates (nq,) at the end."""
        return self.state.q

    @property
    def v(self) -> Array:
        """Velocities (nv,) at the end."""
        return self.state.v

    @property
    def t(self) -> Array:
        """Time () at the end [s]."""
        return self.state.t

    @property
    def key(self) -> Array:
        """A random key, another one each period."""
        return jax.random.wrap_key_data(self.bits)


@dataclass(frozen=True, eq=False, kw_only=True)
class Task:
    """A task on a scene. Its functions are of one lane: arrays have no axes for lanes. They are traced by jax.

    name: the one in `carom.register_task`, e.g. "my/Ant-v0".
    scene: a SceneSpec, a SceneBuilder, a result of `carom.import_mjcf` or `carom.import_urdf`, or a name or path that
        `carom.load` takes.
    reward: Period -> () the reward of the period.
    dt: the control period [s].  max_steps: of one episode; then it is truncated.
    observe: Period -> (k,); None: q and v.
    ended: Period -> () bool, whether the episode ends here, failed or achieved; None: never.
    start: (key, q, v) -> (q, v) of a new episode, from those of the scene; None: unchanged.
    actuators: names of the motors that the actions drive, in order; None: all motors. Those of an MJCF file are its
        actuators, with its gear and control range; other scenes name motors by their links, and u is the motor's own.
    randomise: (key, model) -> model of a new episode, e.g. `lambda key, model: model.replace(mass=...)`.
    command: key -> anything made of arrays, drawn for each episode, e.g. a velocity to keep.
    info: Period -> {name: array}, gymnasium's info.
    report: name or names of reports of `carom.step`, which `Period.report` then holds. At the start of an episode
        sensors of an instant read that instant, and all values over a period are 0.
    options: of each step, e.g. `carom.Options(max_dt=0.01, scheme="semi_implicit")`.
    sketch: (nq,) of one lane, NumPy -> segments to draw, see `Segment`; None: the scene's shapes from the side.
    window: the visible part of the plane, (x_min, x_max, y_min, y_max) [m]; None: the scene at its start.
    """

    name: str
    scene: SceneLike
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
    options: Options = Options()  # noqa: RUF009  # frozen
    description: str = ""
    sketch: Callable[[np.ndarray], list[Segment]] | None = None
    window: tuple[float, float, float, float] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.options, Options):
            raise TypeError(f"{self.name}: options is {self.options!r}; it must be carom.Options(...)")
        if isinstance(self.max_steps, bool) or not isinstance(self.max_steps, Integral) or self.max_steps < 1:
            raise ValueError(f"{self.name}: max_steps is {self.max_steps!r}; it must be a whole number of at least 1")

    def observation(self, s: Period) -> Array:
        """The observation (k,)."""
        return jnp.concatenate([s.q, s.v]) if self.observe is None else self.observe(s)

    def end(self, s: Period) -> Array:
        """Return whether the episode ends, () bool."""
        return jnp.zeros((), bool) if self.ended is None else self.ended(s)

    @cached_property
    def _loaded(self) -> tuple[SceneSpec, tuple[Actuator, ...]]:
        """The scene, and all its actuators."""
        source = self.scene
        if isinstance(source, (str, PathLike)) and Path(fspath(source)).suffix.lower() in (".xml", ".mjcf"):
            from ..formats.mjcf import import_mjcf

            source = import_mjcf(source)
        if isinstance(source, Imported):
            return source.scene, source.report.actuators or scene_actuators(source.scene)
        scene = scene_of_links(source, self.name)
        return scene, scene_actuators(scene)

    def compiled(self, dtype: DTypeLike | None) -> tuple[Model, State]:
        """The scene's model, and its state."""
        return compile_scene(self._loaded[0], dtype=dtype)

    @cached_property
    def driven(self) -> tuple[Actuator, ...]:
        """The actuators that the actions drive."""
        return select_actuators(self._loaded[1], self.actuators, self.name)

    @property
    def actions(self) -> BoxSpace:
        return action_box(self.driven)
