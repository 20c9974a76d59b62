"""Loops other than the joints of `joint_specs.py`: frozen plain data, unchecked until compiled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from ..collision.plain import Numbers, make_plain


@dataclass(frozen=True)
class Distance:
    """Two points keep their distance, like the ends of a massless rod.  length [m]; None: that at the start."""

    kind: ClassVar[str] = "distance"
    length: float | None = None


@dataclass(frozen=True)
class Spring:
    """A spring between two points: it pulls with stiffness (distance - length) + damping (its rate).

    stiffness [N/m]; length [m], None: that at the start; damping [N s/m].
    """

    kind: ClassVar[str] = "spring"
    stiffness: float
    length: float | None = None
    damping: float = 0.0


@dataclass(frozen=True)
class Rolling:
    """Rolling without slip on the plane through frame b's origin, normal to its z axis; by default link b's own frame.

    A ball about frame a's origin rolls, or with an axis (in frame a) a thin disc that rotates about it.  radius [m].
    The plane holds it on both sides: it neither slips nor leaves.
    """

    kind: ClassVar[str] = "rolling"
    radius: float
    axis: Numbers | None = None

    def __post_init__(self) -> None:
        make_plain(self)


@dataclass(frozen=True)
class Gear:
    """The joints of two links rotate, or slide, together: q_a = ratio q_b + offset.

    ratio [1, or rad/m, m/rad]; offset [rad, m], None: that at the start; dof_a, dof_b: index of the degree of freedom
    of joints that have several.
    """

    kind: ClassVar[str] = "gear"
    ratio: float
    offset: float | None = None
    dof_a: int = 0
    dof_b: int = 0


@dataclass(frozen=True)
class Driven:
    """The joint of link a follows time: q = start + rate t + amplitude sin(2 pi frequency t + phase) + function(t).

    start [rad, m], None: the one with q = q0 of the link at t = 0; rate [rad/s, m/s]; amplitude [rad, m];
    frequency [Hz]; phase [rad]; function: of time, made of jax.numpy's functions, not for files; dof: of the joint.
    """

    kind: ClassVar[str] = "driven"
    start: float | None = None
    rate: float = 0.0
    amplitude: float = 0.0
    frequency: float = 0.0
    phase: float = 0.0
    function: Callable[[Any], Any] | None = None
    dof: int = 0
