"""Debug lines of a world, for a game to draw: shapes as lines, contacts, triggers, sleep."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ...collision.plain import Numbers
from ...collision.poses import Array, rotation_from_z, rotation_matrix
from ...engine.model import Model
from ...engine.shaped import Float
from ..compiling.geometry import GEOMETRY
from ..compiling.mesh_parts import mesh_parts
from ..show.colours import link_colours
from ..show.drawing import DrawnPlane, drawing_of
from ..show.meshes import RenderMesh, mesh_of
from ..spec import SceneSpec
from .touching import Contact
from .triggers import Trigger, compose_poses

Lines = list[tuple[Array, Array]]  # ends (n, 2, 3) and a colour (3,) or colours (n, 3)

ASLEEP, STATIC, CONTACT = (0.45, 0.5, 0.6), (0.35, 0.35, 0.35), (0.95, 0.25, 0.2)
EMPTY, ENTERED = (0.2, 0.5, 0.3), (0.3, 0.9, 0.4)  # triggers
AROUND = 1.5  # planes are drawn to this many times the extent of moving bodies
GRID = 11  # lines each way


class DebugLines(NamedTuple):
    """Lines.  ends: of straight lines in the world [m].  colours: red, green, blue from 0 to 1."""

    ends: Float[np.ndarray, "n 2 3"]
    colours: Float[np.ndarray, "n 3"]


class Wires:
    """The lines of a world's shapes, in the axes of their owners."""

    def __init__(self, scene: SceneSpec, model: Model) -> None:
        drawing = drawing_of(scene, model)
        topology = model.topology
        self.colours = np.array(link_colours(topology.names, topology.parents), float).reshape(-1, 3)
        wired = [shape for shape in drawing.shapes if shape.wire]
        ends = [_transform(_edges(drawing.meshes[s.mesh]), s.position, s.quaternion) for s in wired]
        self.ends = np.concatenate([np.zeros((0, 2, 3)), *ends])
        self.link = np.repeat([s.link for s in wired], [len(x) for x in ends]).astype(int)
        self.planes = drawing.planes
        moving = self.ends[self.link >= 0]
        self.size = float(np.abs(moving).max(initial=0.0)) or 1.0  # [m] how far the largest body reaches

    def lines(self, poses: Array, hidden: Array, asleep: Array, island: Array | None) -> Lines:
        """The lines.  poses: (nl, 7) of all links.  hidden: links that are not there.  asleep: (nl,) bool.
        island: (nl,) the link whose colour each link has; None: its own."""
        moving = (self.link >= 0) & ~np.isin(self.link, hidden)
        link, ends = self.link[moving], self.ends[moving]
        rotations = rotation_matrix(np.asarray(poses[:, 3:], float).T)
        there = np.einsum("ijn,nkj->nki", rotations[:, :, link], ends) + poses[link, None, :3]
        own = self.colours if island is None else self.colours[island]
        shown = np.where(asleep[:, None], ASLEEP, own)[link]
        corners = there if len(there) else np.array([[-np.ones(3), np.ones(3)]])
        low, high = corners.min((0, 1)), corners.max((0, 1))
        grids = [_grid(plane, (low + high) / 2, AROUND * max((high - low).max() / 2, 1.0)) for plane in self.planes]
        return [(there, shown), (np.concatenate([self.ends[self.link < 0], *grids]), np.array(STATIC))]


def _grid(plane: DrawnPlane, middle: Array, half: float) -> Array:
    """Lines on a plane, half [m] around the foot of a point."""
    x, y, _ = rotation_matrix(rotation_from_z(plane.normal)).T
    foot = middle - plane.normal * (plane.normal @ middle - plane.offset)
    across = np.linspace(-half, half, GRID)[:, None]
    sides = [[foot + across * a - half * b, foot + across * a + half * b] for a, b in ((x, y), (y, x))]
    return np.concatenate([np.stack(side, 1) for side in sides])


def contact_lines(contacts: Iterable[Contact], per_impulse: float, size: float) -> Lines:
    """A cross at each contact, and a line along the impulse on the first body, per_impulse [m / N s] long."""
    ends = []
    for contact in contacts:
        point, impulse = np.asarray(contact.point), np.asarray(contact.impulse)
        ends += [(point - size * axis, point + size * axis) for axis in np.eye(3)]
        ends += [(point, point + per_impulse * impulse)]
    return [(np.array(ends, float).reshape(-1, 2, 3), np.array(CONTACT))]


def trigger_lines(triggers: Iterable[Trigger], pose_of: dict[str, Array]) -> Lines:
    """Lines of the regions, bright if a body is inside; a trigger with a body moves with it."""
    lines: Lines = []
    for trigger in triggers:
        if trigger.body is not None and trigger.body not in pose_of:
            continue
        pose = trigger.place if trigger.body is None else np.array(compose_poses(trigger.place, pose_of[trigger.body]))
        lines.append((_region_edges(trigger, pose), np.array(ENTERED if trigger.inside else EMPTY)))
    return lines


def trigger_edges(trigger: Trigger) -> Array:
    """Edges (n, 2, 3) of a trigger's region, in the axes of the body that carries it, or of the world."""
    return _region_edges(trigger, trigger.place)


def _region_edges(trigger: Trigger, pose: Array) -> Array:
    shape = trigger.shape
    parts = mesh_parts("trigger", shape) if shape.kind == "mesh" else [GEOMETRY[shape.kind]("trigger", shape)]
    edges = np.concatenate([_transform(_edges(mesh_of(part)), shape.position, shape.quaternion) for part in parts])
    return _transform(edges, pose[:3], pose[3:])


def islands(contacts: Iterable[Contact], names: Sequence[str]) -> Array:
    """The lowest index (nl,) of the links that each link touches, directly or through others; statics connect none."""
    number = {name: k for k, name in enumerate(names)}
    first = np.arange(len(names))
    pairs = [(number[c.a], number[c.b]) for c in contacts if c.a in number and c.b in number and c.phase != "end"]
    changed = True
    while changed:
        before = first.copy()
        for a, b in pairs:
            first[[a, b]] = min(first[a], first[b])
        changed = bool((before != first).any())
    return first


def concatenate_lines(lines: Lines) -> DebugLines:
    ends = np.concatenate([np.zeros((0, 2, 3)), *(x for x, _ in lines)])
    colours = [np.broadcast_to(colour, (len(x), 3)) for x, colour in lines]
    return DebugLines(ends, np.concatenate([np.zeros((0, 3)), *colours]))


def _edges(mesh: RenderMesh) -> Array:
    """Edges (n, 2, 3), each once, though two faces share it."""
    ends = mesh.edges
    back = (ends[:, 0] != ends[:, 1]).argmax(1)
    backward = np.take_along_axis(ends[:, 0] - ends[:, 1], back[:, None], 1) > 0
    return np.unique(np.where(backward[..., None], ends[:, ::-1], ends), axis=0)


def _transform(ends: Array, position: Numbers, quaternion: Numbers) -> Array:
    """Lines (n, 2, 3) in the axes in which their frame has this pose."""
    return np.asarray(ends) @ rotation_matrix(np.asarray(quaternion, float)).T + np.asarray(position, float)
