"""Joints of a URDF: kind, axis, limits, damping, friction and effort, start, and the joint that each follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ....collision.poses import Array
from ...joint_specs import Fixed, Floating, Joint, Motor, Planar, Prismatic, Revolute
from ...loop_specs import Gear
from ...spec import LoopSpec
from .frames import Pose, read_origin, rotation, translation
from .nodes import XmlElement
from .notes import Notes
from .tree import nearest

KINDS = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")
ONE_DOF = ("revolute", "continuous", "prismatic")
X_AXIS = (1.0, 0.0, 0.0)  # default axis of a joint


class JointAtPose(NamedTuple):
    """A joint, the pose of its frame in the parent's, and its coordinates at the start (None: neutral)."""

    joint: Joint
    pose: Pose
    q0: float | None = None


@dataclass
class JointReader:
    """Reads joints one by one.

    nodes: all joints by name.  mimic: treatment of joints that follow another, see `import_urdf`.
    given: the caller's coordinates at the start, by the joint's name.  gears: the gears of joints that follow another.
    """

    nodes: Mapping[str, XmlElement]
    notes: Notes
    mimic: str
    given: Mapping[str, float]
    gears: list[LoopSpec] = field(default_factory=list)

    def read(self, node: XmlElement) -> JointAtPose:
        name, kind, pose = node.text("name"), node.text("type"), read_origin(node)
        if kind not in KINDS:
            node.fail(f'the type of joint "{name}" is {kind!r}; it must be one of {", ".join(KINDS)}')
        self.what = f'joint "{name}" ({kind})'
        if kind in ONE_DOF:
            return self._one_dof(node, name, kind, pose)
        if name in self.given:
            node.fail(
                f'q0 names joint "{name}", which is {kind}: give it for revolute, continuous and prismatic joints'
            )
        self.notes.add("taken", node, self.what)
        if kind == "fixed":
            return JointAtPose(Fixed(), pose)
        if kind == "floating":
            return JointAtPose(Floating(**_passive(node)), pose)
        return JointAtPose(Planar(_axis(node), **_passive(node)), pose)

    def _one_dof(self, node: XmlElement, name: str, kind: str, pose: Pose) -> JointAtPose:
        axis, limits, start = _axis(node), self._limits(node), self._start(node, name)
        numbers, slides = _passive(node) | self._motor(node), kind == "prismatic"
        rigid = self._is_fixed(node, name, start, limits)
        if rigid:
            along = np.array(axis) / np.linalg.norm(axis)
            return JointAtPose(Fixed(), pose @ (translation(along * start) if slides else rotation(along, start)))
        return JointAtPose((Prismatic if slides else Revolute)(axis, limits, **numbers), pose, start or None)

    def _is_fixed(self, node: XmlElement, name: str, start: float, limits: tuple[float, float] | None) -> bool:
        """Return whether the joint does not move in Carom; notes its outcome."""
        kind, limit, note = node.text("type"), node.first("limit"), self.notes.add
        follows = node.first("mimic")
        if follows is not None:
            leader = self._leader(node, follows)
            still = self._stops(leader)
            if self.mimic == "gear" and not still:
                ends = (x.only("child").text("link") for x in (node, leader))
                ratio, offset = follows.number("multiplier", 1.0), follows.number("offset", 0.0)
                self.gears.append(LoopSpec(next(ends), Gear(ratio, offset), next(ends), name=name))
                note("taken", node, f"{self.what}, as a gear")
                return False
            why = "it follows a joint that stands still" if still else "it follows another joint"
            what = f"fixed at {start:.6g}" if still or self.mimic == "fixed" else "free to move on its own"
            note("approximated", node, self.what, f"{why}: {what}")
            return still or self.mimic == "fixed"
        if limits is not None and self._stops(node):
            note("approximated", node, self.what, f"its limits are both {limits[0]:g}: fixed there")
            return True
        if kind != "continuous" and limits is None:
            why = "there is no <limit>" if limit is None else "its limits are both 0, as where nobody filled them in"
            note("approximated", node, self.what, f"{why}: it moves without limits")
        elif start != 0 and name not in self.given:
            note("approximated", node, self.what, f"0 is outside its limits: it starts at {start:.6g}")
        else:
            note("taken", node, self.what)
        return False

    def _stops(self, node: XmlElement) -> bool:
        """Return whether a joint cannot move because its limits are equal, or those of one that it follows."""
        limits, follows = self._limits(node), node.first("mimic")
        equal = limits is not None and limits[0] == limits[1]
        return equal if follows is None else self._stops(self._leader(node, follows))

    def _leader(self, node: XmlElement, follows: XmlElement) -> XmlElement:
        """The joint that a joint follows. It may follow another one, but not in a circle."""
        names, ahead = [node.text("name")], follows
        while ahead is not None:
            leader = ahead.text("joint")
            if leader not in self.nodes:
                ahead.fail(f'joint "{names[-1]}" follows "{leader}", and there is no such joint: '
                           + nearest(leader, list(self.nodes)))  # fmt: skip
            if self.nodes[leader].text("type") not in ONE_DOF:
                ahead.fail(f'joint "{names[-1]}" follows "{leader}", which has no coordinate: name one that has')
            if leader in names:
                ahead.fail(
                    f"joints follow each other in a circle, {' > '.join([*names, leader])}: one must follow none"
                )
            names.append(leader)
            ahead = self.nodes[leader].first("mimic")
        return self.nodes[names[1]]

    def _limits(self, node: XmlElement) -> tuple[float, float] | None:
        limit = node.first("limit")
        if limit is None or node.text("type") == "continuous":
            return None
        lower, upper = (limit.number(name, 0.0, finite=False) for name in ("lower", "upper"))
        if lower > upper:
            what = f'the limits of joint "{node.text("name")}" are {lower:g} and {upper:g}'
            if limit.mend is None:
                limit.fail(f"{what}: lower must not exceed upper, swap them, or give lenient=True")
            limit.mend(limit, f'limits of joint "{node.text("name")}"', f"they are {lower:g} and {upper:g}: swapped")
            lower, upper = upper, lower
        return (lower, upper) if lower or upper else None

    def _motor(self, node: XmlElement) -> dict[str, Any]:
        """A motor with the bound of the joint's effort."""
        limit = node.first("limit")
        effort = 0.0 if limit is None else limit.number("effort", 0.0, finite=False)
        if limit is not None and "effort" in limit.attributes and effort <= 0:
            self.notes.add("ignored", limit, f"effort {effort:g} of {self.what}", "a bound is positive: there is none")
        return {"motor": Motor(effort=effort)} if 0 < effort < np.inf else {}

    def _start(self, node: XmlElement, name: str) -> float:
        """Coordinate at the start: the caller's, that from the joint it follows, or the one nearest to 0."""
        follows = node.first("mimic")
        if name in self.given:
            if follows is not None and self.mimic == "gear":
                node.fail(f'q0 names joint "{name}", which follows "{follows.text("joint")}": give that one\'s')
            return self.given[name]
        value = 0.0
        if follows is not None:
            leader, factor = self._leader(node, follows), follows.number("multiplier", 1.0)
            value = factor * self._start(leader, leader.text("name")) + follows.number("offset", 0.0)
            if self.mimic != "free":
                return value
        limits = self._limits(node)
        return value if limits is None else min(max(value, limits[0]), limits[1])


def _axis(node: XmlElement) -> tuple[float, ...]:
    written = node.first("axis")
    if written is None:
        return X_AXIS
    axis: Array = np.array(written.numbers("xyz", 3, X_AXIS))
    if np.linalg.norm(axis) < 1e-12:
        written.fail('the axis of a joint must not be zero: give a direction such as xyz="0 0 1"')
    return tuple(axis.tolist())


def _passive(node: XmlElement) -> dict[str, Any]:
    dynamics = node.first("dynamics")
    if dynamics is None:
        return {}
    numbers = {ours: dynamics.number(theirs, 0.0) for ours, theirs in (("damping", "damping"), ("loss", "friction"))}
    if min(numbers.values()) < 0:
        dynamics.fail(f'damping and friction of joint "{node.text("name")}" must not be negative: give 0 for none')
    return numbers
