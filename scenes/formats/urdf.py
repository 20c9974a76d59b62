"""Robots from URDF files, with a report on everything in the file.

The file is read as XML with its lines; parts that no reader needs are in the report, so that nothing is dropped in
silence. (yourdfpy, which reads URDF too, drops lines and unknown elements.)
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from ..compiling.check import SceneError
from ..joint_specs import Fixed, Floating
from ..spec import LinkSpec, SceneSpec, StaticSpec
from .errors import FileError
from .from_urdf.frames import Pose
from .from_urdf.joints import JointReader
from .from_urdf.links import ShapeReader, read_inertial
from .from_urdf.masses import sound_masses
from .from_urdf.nodes import XmlElement, read_xml
from .from_urdf.notes import Notes
from .from_urdf.start import overlaps, set_down
from .from_urdf.tree import Branch, nearest, read_tree
from .report import Imported

WORLD = "world"
NO_MOVE = Pose(np.zeros(3), np.eye(4)[0])
SHOWN = 3  # refusals that a message lists


def import_urdf(
    path: str | os.PathLike[str],
    *,
    floating: bool = False,
    ground: bool = False,
    mimic: Literal["gear", "free", "fixed"] = "gear",
    meshes: Literal["hull", "pieces", "none"] = "hull",
    inertias: Literal["refuse", "nearest"] = "refuse",
    self_contact: bool = True,
    q0: Mapping[str, float] | None = None,
    package_dirs: Sequence[str | os.PathLike[str]] = (),
    lenient: bool = False,
) -> Imported:
    """Import a robot as a scene, with a report on everything in its file.

    floating: the root link is free, like a walking robot's, and starts at the world's origin. Otherwise it is fixed
    there, as the format means it. A root link that is called "world" is the world.
    ground: add a plane z = 0, named "ground"; a floating robot is set down on it.
    mimic: "gear" ties joints that follow another one to it by a gear, a loop of the joint's name; "free" lets each
    move on its own, "fixed" fixes it where it starts.
    meshes: collision geometry of a mesh: its convex hull, convex pieces, or the triangles (FCL backend only).
    inertias: a moving body with an impossible inertia (links on fixed joints count with their carrier) is a reason to
    refuse the robot; "nearest" takes the nearest possible one.
    self_contact: whether the robot's links may touch each other; links that a joint joins, and links that overlap at
    the start, never do.
    q0: joint's name -> its coordinate at the start [rad, m]; others start at 0, or at the limit nearest to it.
    package_dirs: folders to search for `package://`, besides ROS_PACKAGE_PATH and all above the file.
    lenient: accept errors that other readers accept, each with an item in the report: commas between numbers, more
    than three numbers instead of three, limits the wrong way round, a repeated element (the first one counts), an XML
    declaration that is not at the start; and expand xacro's macros by the package xacro, which evaluates the
    expressions of the file.

    A link keeps its name, and a joint has the name of the link that it carries. Raises FileError.
    """
    _check("mimic", mimic, ("gear", "free", "fixed"))
    _check("meshes", meshes, ("hull", "pieces", "none"))
    _check("inertias", inertias, ("refuse", "nearest"))
    notes, given = Notes(), dict(q0 or {})
    robot = read_xml(path, "robot", notes.mend if lenient else None)
    robot.optional("name")
    tree = read_tree(robot)
    joints = {branch.joint.text("name"): branch.joint for branch in tree if branch.joint is not None}
    for name in given:
        if name not in joints:
            raise ValueError(f"q0 names joint {name!r}, and {robot.path} has none: {nearest(name, list(joints))}")
    shapes = ShapeReader(notes, package_dirs, meshes, self_contact)
    reader = JointReader(joints, notes, mimic, given)
    links, statics = _links(tree, reader, shapes, floating)
    nodes = {branch.name: branch.link for branch in tree}
    links = sound_masses(links, nodes, notes, inertias)
    scene = SceneSpec(links=links, statics=tuple(statics), loops=tuple(reader.gears))
    notes.ignore_unread(robot)
    _refuse(robot, notes)
    scene = _at_start(scene, ground, nodes, robot, notes)
    if shapes.missing:
        text = f"{robot.path}: {shapes.missing} collision shapes are left out, the report of import_urdf says why"
        warnings.warn(text, stacklevel=2)
    return Imported(scene, notes.report(robot.path))


def _check(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ValueError(f"{name} is {value!r}; it must be one of {', '.join(known)}")


def _links(
    tree: list[Branch], joints: JointReader, shapes: ShapeReader, floating: bool
) -> tuple[list[LinkSpec], list[StaticSpec]]:
    """All links, parents first; and the statics, which are fixed to the world."""
    notes = joints.notes
    links: list[LinkSpec] = []
    statics: list[StaticSpec] = []
    still: dict[str, Pose] = {}  # links that cannot move, and their poses in the world
    for name, parent, link, joint in tree:
        contact = _contact(link, notes)
        body: dict[str, Any] = {**read_inertial(link), **contact, "shapes": shapes.read(link)}
        if joint is None:
            what, why = f'link "{name}" (the root)', "free" if floating else "fixed to the world"
            notes.add("taken", link, f"{what}: {'the world' if name == WORLD else why}")
            if not floating:
                still[name] = NO_MOVE
            if name != WORLD:
                links.append(LinkSpec(name, Floating() if floating else Fixed(), **body))
            elif floating:
                link.fail(f'the root link is "{WORLD}", which is fixed: leave floating out, or rename the link')
            elif body["shapes"]:
                statics.append(StaticSpec("world_link", body["shapes"], **contact))
            continue
        if name == WORLD:
            link.fail(f'link "{WORLD}" hangs on another link, but is the name of the fixed world: rename it')
        at_joint, at = joints.read(joint), still.get(parent)
        if isinstance(at_joint.joint, Floating) and at is None:
            notes.add("refused", joint, f'joint "{joint.text("name")}"', "a floating joint must hang on what is fixed")
        elif isinstance(at_joint.joint, Floating) and at is not None:
            parent, at_joint = WORLD, at_joint._replace(pose=at @ at_joint.pose)
        elif isinstance(at_joint.joint, Fixed) and at is not None:
            still[name] = at @ at_joint.pose
        notes.add("taken", link, f'link "{name}"')
        position, quaternion = at_joint.pose
        links.append(
            LinkSpec(name, at_joint.joint, parent, position=position, quaternion=quaternion, q0=at_joint.q0, **body)
        )
    return links, statics


def _contact(link: XmlElement, notes: Notes) -> dict[str, Any]:
    """Friction and restitution in PyBullet's form, in <contact>."""
    contact = link.first("contact")
    if contact is None:
        return {}
    properties = {}
    for ours, theirs in (("friction", "lateral_friction"), ("restitution", "restitution")):
        node = contact.first(theirs)
        if node is not None:
            properties[ours] = node.number("value")
    if properties:
        why = "friction of two shapes is the geometric mean of theirs, restitution the smaller"
        notes.add("approximated", contact, f'contact of link "{link.text("name")}"', why)
    return properties


def _refuse(robot: XmlElement, notes: Notes) -> None:
    """Raise if a refused item would change the robot's motion."""
    refused = notes.of("refused")
    if refused:
        reasons: dict[str, list[tuple[int, str]]] = {}
        for line, item in refused:
            reasons.setdefault(item.why, []).append((line, item.what))
        text = "; ".join(f"{_first_names([what for _, what in places])}: {why}" for why, places in reasons.items())
        raise FileError(robot.path, f"it is not imported. {text}", refused[0][0])


def _first_names(names: list[str]) -> str:
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")


def _at_start(
    scene: SceneSpec, ground: bool, lines: Mapping[str, XmlElement], robot: XmlElement, notes: Notes
) -> SceneSpec:
    """The scene at its start; errors of compile_scene get their line in the file."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about meshes: the caller's own compile_scene gives them
            scene = set_down(scene) if ground else scene
            met = overlaps(scene)
    except SceneError as error:
        named = re.match(r'link "(.*?)"', str(error))
        where = lines[named[1]] if named and named[1] in lines else robot
        raise FileError(robot.path, str(error), where.line) from None
    for a, b, gap in met:
        how = f"overlap by {-gap:.2g} m" if gap < 0 else "touch"
        why = f"they {how} at the start: no contact between them"
        notes.add("approximated", lines.get(b, robot), f'links "{a}" and "{b}"', why)
    return replace(scene, exclusions=tuple((a, b) for a, b, _ in met))
