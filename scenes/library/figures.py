"""A figure of 15 links: the humanoid that stands free, and the ragdoll that falls. World W, z up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...collision.poses import from_axis_angle
from ...collision.shapes import Box, Capsule, Shape, Sphere
from ..builder import SceneBuilder
from ..joint_specs import Floating, Joint, Revolute, Spherical
from ..spec import SceneSpec
from .chains import X, Y
from .facts import Entry, Play, at_most

if TYPE_CHECKING:
    from .playing import Played

BALL = Spherical(damping=2.0, armature=0.02)


def _hinge(axis: tuple[float, float, float], lower: float, upper: float) -> Revolute:
    return Revolute(axis, limits=(lower, upper), damping=0.5, armature=0.01)


def _bone(radius: float, half_length: float, depth: float) -> Capsule:
    """A capsule that hangs below the link's joint, its middle at this depth [m]."""
    return Capsule(radius, half_length, position=(0, 0, -depth))


# name, parent, joint, position of the joint in the parent [m], shape in the link's own frame, mass [kg]
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
    """A free-floating figure of 15 links and 30 degrees of freedom, including six of its pelvis; 75 kg.

    x forward, y left, z up. Hips, shoulders and waist are spherical, the other joints revolute.
    """
    b = SceneBuilder()
    b.add_plane(friction=0.8)
    _figure(b, Floating(), _as_it_is, position=(0, 0, 1.0))
    return b.build()


def ragdoll(*, height: float = 1.3, lean: float = 0.4) -> SceneSpec:
    """The humanoid, limp, that falls on the ground z = 0 from rest; its limbs pass through each other.

    height: of its pelvis at the start [m]; lean: its rotation forwards [rad].
    """
    b = SceneBuilder(gap_band=1e-6)
    b.add_plane(friction=0.8)
    leaning = from_axis_angle(Y, lean)
    _figure(
        b, Floating(), lambda shape: replace(shape, mask=0b01, group=0b10), position=(0, 0, height), quaternion=leaning
    )
    return b.build()


def _as_it_is(shape: Shape) -> Shape:
    return shape


def _figure(b: SceneBuilder, root: Floating, dressed: Callable[[Shape], Shape], **pose: Any) -> None:
    """Add all links of the figure; dressed: a function from each shape to the one that is used."""

    def add(name: str, parent: str, joint: Joint, shape: Shape, mass: float, **frame: Any) -> None:
        b.add_link(name, parent, joint=joint, shapes=[dressed(shape)], mass=mass, **frame)

    add("pelvis", "world", root, Box((0.09, 0.15, 0.09)), 12.0, **pose)
    for name, parent, joint, position, shape, mass in _TRUNK:
        add(name, parent, joint, shape, mass, position=position)
    for side, sign in (("left", 1), ("right", -1)):
        for name, parent, joint, (x, y, z), shape, mass in _LIMBS:
            on = parent if parent in ("pelvis", "torso") else f"{side}_{parent}"
            add(f"{side}_{name}", on, joint, shape, mass, position=(x, sign * y, z))


# -- facts --------------------------------------------------------------------------------------------


def _beyond(p: Played) -> float:
    """Largest excess of any joint beyond its limits, at any frame [rad]."""
    worst, t = 0.0, p.model.topology
    for name, joint, dof in zip(t.names, t.joints, t.v_start, strict=False):
        if joint == "revolute":
            angle = p.joint(name)
            worst = max(worst, angle.max() - float(p.model.upper[dof]), float(p.model.lower[dof]) - angle.min())
    return worst


_RAGDOLL = Play(
    rough=True,
    duration=4.0,
    impacts="simultaneous",  # sequential impacts would pass through the limbs hundreds of times
    facts=(
        # overlaps are pushed out at half the rest speed: 75 kg at 0.007 m/s, of some 600 J
        at_most("energy gained, in parts of the kinetic [J/J]", 1e-5, lambda p: p.energy_gain),
        at_most("how far a joint is beyond its limits [rad]", 1e-5, _beyond),  # ten gap bands
        at_most("kinetic energy at the end [J]", 0.1, lambda p: p.kinetic[-1]),
    ),
)

ENTRIES = {
    "humanoid": Entry(humanoid, "a free figure of 15 links and 30 degrees of freedom"),
    "ragdoll": Entry(ragdoll, "the humanoid, limp, falls on the ground", (_RAGDOLL,)),
}
