"""Chains of links on joints: pendulums, a serial arm. They hang or stand in world W, z up."""

from __future__ import annotations

import math

from ...collision.poses import from_axis_angle
from ..builder import SceneBuilder
from ..joint_specs import Floating, Revolute
from ..spec import SceneSpec
from .facts import Entry

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


def rod_inertia(mass: float, length: float, radius: float = 0.0) -> tuple[float, float, float]:
    """Diagonal of the inertia of a uniform rod along z about its middle [kg m^2]."""
    side = mass * (length**2 / 12 + radius**2 / 4)
    return (side, side, mass * radius**2 / 2)


def chain(
    n: int = 10,
    *,
    free: bool = False,
    alternate: bool = False,
    length: float = 0.2,
    mass: float = 0.5,
    angle: float = 0.3,
) -> SceneSpec:
    """n uniform rods hung end to end on revolute joints about y, each at `angle` from the one before [rad].

    free: the first rod floats instead of hanging on the world.  alternate: every other joint turns about x.
    length [m] and mass [kg] are those of one rod. Frames at the upper ends; rods along -z.
    """
    b = SceneBuilder()
    inertia = rod_inertia(mass, length, length / 10)
    for i in range(n):
        joint = Floating() if free and i == 0 else Revolute(X if alternate and i % 2 else Y)
        b.add_link(
            f"link{i}",
            parent=f"link{i - 1}" if i else "world",
            joint=joint,
            position=(0.0, 0.0, -length if i else 0.0),
            mass=mass,
            com=(0.0, 0.0, -length / 2),
            inertia=inertia,
            q0=None if free and i == 0 else angle,
        )
    return b.build()


def pendulum(*, length: float = 1.0, mass: float = 1.0, angle: float = 0.5) -> SceneSpec:
    """One uniform rod hung on a revolute joint about y, at an angle from hanging straight down [rad]."""
    return chain(1, length=length, mass=mass, angle=angle)


def double_pendulum(*, length: float = 1.0, mass: float = 1.0, angle: float = 0.5) -> SceneSpec:
    """Two uniform rods hung on revolute joints about y; `angle` is that of each joint [rad]."""
    return chain(2, length=length, mass=mass, angle=angle)


def arm7() -> SceneSpec:
    """A seven-joint arm with axes z, y, z, y, ..., tilted joint frames, skew inertias, armature and damping.

    The numbers have no pattern, so that no term of the dynamics vanishes by symmetry.
    """
    b = SceneBuilder()
    for i in range(7):
        # fractional parts of multiples of irrational numbers: scattered in (-1, 1), the same on every machine
        r = [2 * math.modf((i + 1) * root)[0] - 1 for root in (math.sqrt(2), math.sqrt(3), math.sqrt(5), math.sqrt(7))]
        mass = 4.0 - 0.5 * i
        size = (0.05 + 0.01 * r[0], 0.06 + 0.01 * r[1], 0.12 + 0.02 * r[2])
        b.add_link(
            f"link{i}",
            parent=f"link{i - 1}" if i else "world",
            joint=Revolute(Z if i % 2 == 0 else Y, limits=(-2.9, 2.9), damping=0.5, armature=0.01, loss=0.1),
            position=(0.03 * r[0], 0.03 * r[1], 0.25 + 0.03 * r[2]),
            quaternion=from_axis_angle((r[1], r[2], r[3] + 2.0), 0.4 * r[0]),
            com=(0.02 * r[3], 0.02 * r[0], 0.1 + 0.02 * r[1]),
            inertia=_skew_inertia(mass, size),
            mass=mass,
            q0=0.5 * r[3],
        )
    return b.build()


def _skew_inertia(mass: float, size: tuple[float, float, float]) -> tuple[tuple[float, ...], ...]:
    """Inertia of a box with these half extents [m], rotated a little about z, then about x."""
    a, b, c = (mass * (sum(s * s for s in size) - size[k] ** 2) / 3 for k in range(3))
    cz, sz, cx, sx = math.cos(0.2), math.sin(0.2), math.cos(0.15), math.sin(0.15)
    R = ((cz, -sz, 0.0), (cx * sz, cx * cz, -sx), (sx * sz, sx * cz, cx))
    return tuple(tuple(sum(R[i][k] * m * R[j][k] for k, m in enumerate((a, b, c))) for j in range(3)) for i in range(3))


ENTRIES = {
    "pendulum": Entry(pendulum, "one uniform rod on a hinge"),
    "double_pendulum": Entry(double_pendulum, "two uniform rods on hinges"),
    "chain": Entry(chain, "n uniform rods end to end, hung or free"),
    "arm7": Entry(arm7, "a seven-joint arm with tilted frames and skew inertias"),
}
