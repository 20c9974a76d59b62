"""A planar chain as plain data: point masses on rigid links, in a plane with x to the right and y up. SI units.

Joints and links are numbered from 0; link i leads from joint i to joint i + 1. Values are checked by
`compile_scene`, which alone rejects bad input.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...collision.plain import Numbers, make_plain, plain


@dataclass(frozen=True)
class ChainJoint:
    """A joint of a chain, which is a point mass.

    mass [kg].  guided: its acceleration is given from outside; by default it keeps its velocity.
    line: (2,) normal of the straight line it is bound to, which passes through its start; None: none.
    active: the acceleration of its angle is given from outside.
    limits: (lower, upper) of its angle [rad], in [-pi, pi]; inf for an open end; None: none.
    roll: torque against the rate of its angle [N m s].  drag: force against its velocity, by its square [kg/m].
    stuck: number of the ground it sticks in at the start, which must pass through it; None: none.
    The last joint has no angle: neither limits nor roll, nor can it be active.
    """

    mass: float = 1.0
    guided: bool = False
    line: Numbers | None = None
    active: bool = False
    limits: Any = None
    roll: float = 0.0
    drag: float = 0.0
    stuck: int | None = None

    def __post_init__(self) -> None:
        make_plain(self)


@dataclass(frozen=True)
class Ground:
    """A straight ground, in which joints stick that hit it.  point: (2,) on it [m].  normal: (2,) to its free side, of
    any length."""

    point: Numbers = (0.0, 0.0)
    normal: Numbers = (0.0, 1.0)

    def __post_init__(self) -> None:
        make_plain(self)


@dataclass(frozen=True)
class ChainSpec:
    """A chain of n joints and its start.

    lengths: (n - 1,) of the links [m]; None: the distances of the positions.
    angles, rates: (n - 1,) of joints 0 to n - 2 [rad, rad/s]; None: zeros. The angle of joint i goes from link i - 1 to
    link i, counter-clockwise; that of joint 0 from the x axis to link 0.
    base, base_velocity: (2,) position and velocity of joint 0 [m, m/s].
    positions, velocities: (n, 2) of all joints [m, m/s], instead of angles and rates, base and base_velocity. They may
    deviate from the lengths of the links by a hundredth, which the run then corrects.
    gravity: (2,) [m/s^2].  room: joints to allocate, so that chains of fewer joints share one program; None: n.
    """

    joints: Sequence[ChainJoint]
    lengths: Numbers | None = None
    angles: Numbers | None = None
    rates: Numbers | None = None
    base: Numbers = (0.0, 0.0)
    base_velocity: Numbers = (0.0, 0.0)
    positions: Numbers | None = None
    velocities: Numbers | None = None
    grounds: Sequence[Ground] = ()
    gravity: Numbers = (0.0, -9.81)
    room: int | None = None

    def __post_init__(self) -> None:
        make_plain(self)

    @staticmethod
    def of(lengths: Numbers, masses: Numbers = 1.0, **fields: Any) -> ChainSpec:
        """A chain whose joints differ only in mass [kg]: one number for all, or one each; one more than lengths.

        fields: other fields of ChainSpec; for those of single joints see `with_joint`.

        carom.ChainSpec.of((0.5, 0.5), masses=(1, 1, 2), angles=(0, 0.3)).with_joint(0, guided=True)
        """
        n = np.size(lengths) + 1
        given: Any = plain(masses)
        each = given if isinstance(given, tuple) else (given,) * n
        if len(each) != n:
            must = f"there must be one number, or {n}: one for each joint, of which there is one more than lengths"
            raise ValueError(f"ChainSpec.of: masses is {given}; {must}")
        return ChainSpec([ChainJoint(mass) for mass in each], np.ravel(lengths), **fields)

    def with_joint(self, *numbers: int, **changes: Any) -> ChainSpec:
        """The chain with fields of these joints changed; -1 is the last."""
        joints = list(self.joints)
        for k in numbers:
            if not -len(joints) <= k < len(joints):
                raise ValueError(f"with_joint: there is no joint {k}; this chain has joints 0 to {len(joints) - 1}")
            joints[k] = replace(joints[k], **changes)
        return replace(self, joints=joints)


def refuse_chain(scene: object, taker: str) -> None:
    """Raise if only scenes of links and joints are allowed.  taker: the function that needs one."""
    if isinstance(scene, ChainSpec):
        fix = "use carom.chain_rollout, or chain_twin(spec), which is the same chain as a scene"
        raise ValueError(f"{taker}: a planar chain is not a scene of links and joints: {fix}")
