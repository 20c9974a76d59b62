"""Descriptions of joints: frozen plain data, unchecked until the scene is compiled.

Degrees of freedom, in order: cylindrical (angle, shift), universal (angle about axis, about axis2), planar
(angle, x, y), spherical (3, rotation in the child's axes), floating (3 angular, 3 linear, world axes).
Axes are given in the joint frame and need not have length one. Angles [rad], shifts [m].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ..collision.plain import Numbers, make_plain

Limits = Any  # (lower, upper); for several dofs a tuple of these, None for a dof without


@dataclass(frozen=True)
class Motor:
    """torque on a dof = clip(gain u - kp q - kd v, -effort, effort), with u the control, or target without one.

    kind: "torque": u is the torque [N m, N];  "position": u is the target q, needs kp, gain = kp;
    "velocity": u is the target v, needs kd, gain = kd. With kd infinite it is rigid: v is u exactly, as long as
    its effort, which must be finite, suffices; with u = 0 it is a brake.
    kp [N m/rad, N/m]; kd [N m s/rad, N s/m]; effort > 0 [N m, N], inf: unlimited; target in the units of u.
    Each number may be one per dof of the joint.
    """

    kind: str = "torque"
    kp: Numbers | None = None
    kd: Numbers | None = None
    effort: Numbers = float("inf")
    target: Numbers = 0.0

    def __post_init__(self) -> None:
        make_plain(self)


@dataclass(frozen=True, kw_only=True)
class Joint:
    """Parameters of all joints' dofs; a number holds for every dof, a tuple has one for each.

    damping [N m s/rad, N s/m]; armature: rotor inertia reflected to the joint [kg m^2, kg];
    loss: Coulomb friction, which holds a joint at rest [N m, N]; stiffness [N m/rad, N/m] and rest [rad, m]: a spring;
    motor: a Motor, or a tuple with one Motor or None per dof.
    """

    kind: ClassVar[str] = ""
    damping: Numbers = 0.0
    armature: Numbers = 0.0
    loss: Numbers = 0.0
    stiffness: Numbers = 0.0
    rest: Numbers = 0.0
    motor: Motor | Sequence[Motor | None] | None = None

    def __post_init__(self) -> None:
        make_plain(self)


@dataclass(frozen=True)
class Fixed(Joint):
    """No motion: the child is welded to its parent."""

    kind: ClassVar[str] = "fixed"


@dataclass(frozen=True)
class Revolute(Joint):
    """A rotation about axis.  limits: (lower, upper) [rad] or None;  restitution: of the limits, 0..1."""

    kind: ClassVar[str] = "revolute"
    axis: Numbers
    limits: Limits = None
    restitution: Numbers = 0.0


@dataclass(frozen=True)
class Prismatic(Joint):
    """A slide along axis.  limits: (lower, upper) [m] or None;  restitution: of the limits, 0..1."""

    kind: ClassVar[str] = "prismatic"
    axis: Numbers
    limits: Limits = None
    restitution: Numbers = 0.0


@dataclass(frozen=True)
class Screw(Joint):
    """A rotation q about axis with a slide pitch * q along it.  pitch [m/rad];  limits of q [rad] or None."""

    kind: ClassVar[str] = "screw"
    axis: Numbers
    pitch: float
    limits: Limits = None
    restitution: Numbers = 0.0


@dataclass(frozen=True)
class Cylindrical(Joint):
    """A rotation about axis and a slide along it.  limits: (pair or None [rad], pair or None [m]), or None."""

    kind: ClassVar[str] = "cylindrical"
    axis: Numbers
    limits: Limits = None
    restitution: Numbers = 0.0


@dataclass(frozen=True)
class Universal(Joint):
    """Rotations about axis (fixed in the parent), then axis2 (fixed in the child).  limits: two pairs or Nones."""

    kind: ClassVar[str] = "universal"
    axis: Numbers = (1.0, 0.0, 0.0)
    axis2: Numbers = (0.0, 1.0, 0.0)
    limits: Limits = None
    restitution: Numbers = 0.0


@dataclass(frozen=True)
class Planar(Joint):
    """A slide in the plane normal to axis and a rotation about it.

    axis2: direction of the x coordinate, without its part along axis; None: the image of x under the
    smallest rotation that takes z to axis.  limits: three pairs or Nones (angle, x, y), or None.
    """

    kind: ClassVar[str] = "planar"
    axis: Numbers = (0.0, 0.0, 1.0)
    axis2: Numbers | None = None
    limits: Limits = None
    restitution: Numbers = 0.0


@dataclass(frozen=True)
class Spherical(Joint):
    """Any rotation: a quaternion.  rest and a position target: rotation vectors (3,)."""

    kind: ClassVar[str] = "spherical"


@dataclass(frozen=True)
class Floating(Joint):
    """Free of its parent, which must be the world: no spring, no position motor."""

    kind: ClassVar[str] = "floating"
