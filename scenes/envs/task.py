"""BatchTask: a control task as plain functions of arrays of any lanes. `Environment` plays it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from jax import Array
from jax.typing import DTypeLike

Advance = Callable[[Array, Array, Array], tuple[Array, Array]]
Segment = tuple[float, float, float, float, float, tuple[float, float, float]]
Sketch = Callable[[np.ndarray], list[Segment]]


@dataclass(frozen=True)
class BoxSpace:
    """Vectors between two bounds, a number for each component; infinite where there is none."""

    low: tuple[float, ...]
    high: tuple[float, ...]

    @staticmethod
    def of(*bounds: float) -> BoxSpace:
        """A symmetric box, from -bound to bound."""
        return BoxSpace(tuple(-b for b in bounds), bounds)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one member, without lanes."""
        return (len(self.low),)


@dataclass(frozen=True)
class Discrete:
    """The numbers 0 to n - 1."""

    n: int

    @property
    def shape(self) -> tuple[int, ...]:
        return ()


@dataclass(frozen=True, eq=False)
class BatchTask:
    """One control task. Its functions take arrays with any leading lane axes, and are traced.

    q: (..., nq), v: (..., nv), in the coordinates of the task's scene.

    dt: the control period [s].  max_steps: of one episode; then it is truncated.
    start: key -> (q, v) of a new episode.
    observe: (q, v) -> (..., k).
    push: action -> forces along the coordinates during one period (..., nv) [N, N m]; actions beyond their box are
        clipped to it.
    reward: (q, v, push, q_next, v_next) -> (...).
    ended: (q, v) -> (...) bool, whether the episode ends here, failed or achieved.
    engines: name -> factory(dtype) -> advance(q, v, push) -> (q, v) one control period later. The first is the default.
    sketch: (nq,) of one lane, NumPy -> segments: (x0, y0, x1, y1, radius, (red, green, blue)) [m], colours 0 to 1.
    window: the visible part of the plane, (x_min, x_max, y_min, y_max) [m].
    events: whether there are contacts or stops, so that each lane takes its own number of steps: then lanes run one by
        one, else in blocks.
    """

    name: str
    description: str
    dt: float
    max_steps: int
    actions: BoxSpace | Discrete
    observations: BoxSpace
    start: Callable[[Array], tuple[Array, Array]]
    observe: Callable[[Array, Array], Array]
    push: Callable[[Array], Array]
    reward: Callable[[Array, Array, Array, Array, Array], Array]
    ended: Callable[[Array, Array], Array]
    engines: Mapping[str, Callable[[DTypeLike], Advance]]
    sketch: Sketch
    window: tuple[float, float, float, float]
    events: bool = False
