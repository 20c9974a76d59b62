"""Chains of links on joints: pendulums, a serial arm, a branching humanoid. They hang or stand in world W, z up."""

from __future__ import annotations

import math

from ...collision.poses import from_axis_angle
from ...collision.shapes import Box, Capsule, Sphere
from ..builder import SceneBuilder
from ..joint_specs import Floating, Revolute, Spherical
from ..spec import SceneSpec

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
    """Of a box with these half extents [m] that is turned a little about z, then about x."""
    a, b, c = (mass * (sum(s * s for s in size) - size[k] ** 2) / 3 for k in range(3))
    cz, sz, cx, sx = math.cos(0.2), math.sin(0.2), math.cos(0.15), math.sin(0.15)
    R = ((cz, -sz, 0.0), (cx * sz, cx * cz, -sx), (sx * sz, sx * cz, cx))
    return tuple(tuple(sum(R[i][k] * m * R[j][k] for k, m in enumerate((a, b, c))) for j in range(3)) for i in range(3))


BALL = Spherical(damping=2.0, armature=0.02)


def _hinge(axis: tuple[float, float, float], lower: float, upper: float) -> Revolute:
    return Revolute(axis, limits=(lower, upper), damping=0.5, armature=0.01)


def _bone(radius: float, half_length: float, depth: float) -> Capsule:
    """A capsule that hangs below the link's joint, its middle at this depth [m]."""
    return Capsule(radius, half_length, position=(0, 0, -depth))


# name, parent, joint, place of the joint in the parent [m], shape in the link's own frame, mass [kg]
_TRUNK = (
    ("torso", "pelvis", BALL, (0, 0, 0.10), Box((0.09, 0.15, 0.22), position=(0, 0, 0.24)), 24.0),
    ("head", "torso", _hinge(Y, -0.8, 0.8), (0, 0, 0.50), Sphere(0.11, position=(0, 0, 0.12)), 5.0),
)
_LIMBS = (
    ("thigh", "pelvis", BALL, (0, 0.09, -0.08), _bone(0.07, 0.16, 0.21), 8.5),
    ("shank", "thigh", _hinge(Y, 0.0, 2.6), (0, 0, -0.42), _bone(0.05, 0.16, 0.20), 3.5),
    ("foot", "shank", _hinge(Y, -0.8, 0.6), (0, 0, -0.42), Box((0.12, 0.05, 0.03), position=(0.06, 0, -0.04)), 1.1),
    ("upper_arm", "torso", BALL, (0, 0.22, 0.40), _bone(0.045, 0.11, 0.15), 2.2),
    ("forearm", "upper_arm", _hinge(Y, -2.6, 0.0), (0, 0, -0.30), _bone(0.035, 0.10, 0.13), 1.3),
    ("hand", "forearm", _hinge(X, -1.2, 1.2), (0, 0, -0.27), Box((0.02, 0.04, 0.09), position=(0, 0, -0.08)), 0.5),
)


def humanoid() -> SceneSpec:
    """A free-floating figure of 15 links and 30 degrees of freedom, the six of its pelvis counted; 75 kg.

    x forward, y left, z up. Hips, shoulders and waist are spherical, the other joints revolute.
    """
    b = SceneBuilder()
    b.add_plane(friction=0.8)
    b.add_link("pelvis", joint=Floating(), position=(0, 0, 1.0), shapes=[Box((0.09, 0.15, 0.09))], mass=12.0)
    for name, parent, joint, position, shape, mass in _TRUNK:
        b.add_link(name, parent, joint=joint, position=position, shapes=[shape], mass=mass)
    for side, sign in (("left", 1), ("right", -1)):
        for name, parent, joint, (x, y, z), shape, mass in _LIMBS:
            on = parent if parent in ("pelvis", "torso") else f"{side}_{parent}"
            b.add_link(f"{side}_{name}", on, joint=joint, position=(x, sign * y, z), shapes=[shape], mass=mass)
    return b.build()
