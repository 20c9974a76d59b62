"""A recording as one self-contained HTML file: it opens without a network, plays, and is drawn with WebGL2.

The page's own parts lie in `web/`. Its arrays are one deflated block of bytes in base64; positions are 32-bit, and
quaternions 16-bit numbers of 1/32767.
"""

from __future__ import annotations

import base64
import html
import json
import os
import zlib
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...engine.topology import Topology
from ..formats.atomic import replacing
from ..recordings.recording import Recording
from .colours import GROUND, PATTERNS
from .drawing import Drawing, DrawnPlane, drawing_of
from .meshes import Floats, RenderMesh, cylinder
from .motion import RecordedMotion, extent, model_of, motion_of, turns_between
from .planes import Patch, patches, with_patches

LANES = 16  # lanes of a batch that a page holds
POSES = 400_000  # links times frames times lanes; of longer runs every n-th frame is taken
IMPACTS = 20_000
SCRIPTS = ("math", "page", "shaders", "renderer", "scene", "camera", "stage", "panel", "player", "main")
QUATERNION = 32767


def write_page(
    recording: Recording,
    path: str | os.PathLike[str],
    *,
    lane: int | Sequence[int] | None = None,
    title: str | None = None,
) -> None:
    """Write the page to `path`, at once or not at all.

    lane: lane or lanes of a batch; None: the first sixteen, the most that a page holds.
    title: None: the recording's.
    """
    lanes = _choose_lanes(recording, lane)
    text = page_text(recording, lanes, recording.title if title is None else title)
    with replacing(path) as file:
        file.write(text.encode())


def page_text(recording: Recording, lanes: Sequence[int], title: str) -> str:
    """The text of the whole file."""
    block = Block()
    return page_of(replay_data(recording, lanes, title, block), block)


def replay_data(recording: Recording, lanes: Sequence[int], title: str, block: Block) -> dict[str, Any]:
    """Data of the page's program; its arrays go into the block."""
    model = model_of(recording)
    every = frames_apart(recording, model.topology.n_links, len(lanes))
    motion = motion_of(recording, model, lanes, every)
    drawing = drawing_of(recording.scene, model, lanes)
    return {
        "title": title,
        "subtitle": _subtitle(recording, motion),
        "notes": _notes(recording, motion, every),
        **drawing_data(drawing, motion, block),
        **motion_data(motion, model.topology, block),
    }


def frames_apart(recording: Recording, links: int, lanes: int = 1) -> int:
    """Distance of the recording's frames that are in a page."""
    return max(-(-recording.q.shape[-2] * links * lanes // POSES), 1)


def page_of(data: dict[str, Any], block: Block, own: str = "", looks: str = "", more: str = "") -> str:
    """A recording's page.  own: program, looks: style sheet and more: elements of a page with more functions."""
    parts = files(__package__ or __name__) / "web"
    *first, main = SCRIPTS
    return fill_gaps(
        (parts / "page.html").read_text("utf-8"),
        {
            "title": html.escape(data["title"]),
            "style": style() + looks,
            "more": more,
            "script": "\n".join((scripts(first), own, scripts([main]))),
            "data": as_json(data),
            "arrays": packed_bytes(bytes(block.bytes)),
        },
    )


def scripts(names: Sequence[str]) -> str:
    """Parts of the page's program, one after the other."""
    parts = files(__package__ or __name__) / "web"
    return "\n".join((parts / f"{name}.js").read_text("utf-8") for name in names)


def style() -> str:
    """The page's style sheet."""
    return (files(__package__ or __name__) / "web" / "style.css").read_text("utf-8")


def as_json(data: object) -> str:
    """Data as JSON for an element of a page."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def packed_bytes(data: bytes) -> str:
    """Data deflated, in base64."""
    return base64.b64encode(zlib.compress(data, 9)).decode("ascii")


def fill_gaps(page: str, filled: dict[str, str]) -> str:
    """Fill the gaps {{name}} of a page; inserted text is not searched again."""
    pieces = page.split("{{")
    return pieces[0] + "".join(filled[name] + rest for name, rest in (piece.split("}}", 1) for piece in pieces[1:]))


def _choose_lanes(recording: Recording, lane: int | Sequence[int] | None) -> list[int]:
    count = recording.lanes
    if lane is None:
        return list(range(min(count or 1, LANES)))
    lanes = [lane] if isinstance(lane, int) else [int(k) for k in lane]
    known = f"0 to {(count or 1) - 1}" if count != 1 and count is not None else "0, the only one"
    for k in lanes:
        if not 0 <= k < (count or 1):
            raise ValueError(f"write_page: lane is {k}; the recording's lanes are {known}")
    if not 0 < len(lanes) <= LANES:
        raise ValueError(f"write_page: {len(lanes)} lanes; a page holds 1 to {LANES}: choose some of them")
    return lanes


class Block:
    """Arrays end to end, each on a multiple of four bytes."""

    def __init__(self) -> None:
        self.bytes = bytearray()

    def add(self, array: ArrayLike, dtype: str) -> dict[str, Any]:
        """Add an array, little-endian, and return its position."""
        values = np.ascontiguousarray(array, dtype=f"<{dtype}")
        at = len(self.bytes)
        self.bytes += values.tobytes()
        self.bytes += bytes(-len(self.bytes) % 4)
        return {"dtype": dtype, "shape": list(values.shape), "at": at}


def drawing_data(drawing: Drawing, motion: RecordedMotion, block: Block) -> dict[str, Any]:
    """Data of a page's `Scene` to draw bodies and grounds."""
    low, high = extent(drawing, motion.position, motion.quaternion)
    ground = patches(drawing.planes, low, high)
    arrow = cylinder(1.0, 0.5), cylinder(1.0, 0.5, 0.0)  # shaft and head, from z = 0 to 1
    stood = [mesh._replace(vertices=mesh.vertices + np.array([0, 0, 0.5])) for mesh in arrow]
    return {
        "names": list(drawing.names),
        "owners": list(drawing.owners),
        "loose": all(parent < 0 for parent in drawing.parents),
        "meshes": [_mesh(mesh, block) for mesh in (*drawing.meshes, *stood)],
        "shapes": [
            {
                "link": s.link, "mesh": s.mesh, "p": _short(s.position), "q": _short(s.quaternion),
                "colour": _short(s.colour), "pattern": PATTERNS.index(s.pattern), "solid": s.solid, "wire": s.wire,
                "lane": None if s.lane is None else motion.lanes.index(s.lane),
            }
            for s in drawing.shapes
        ],
        "ties": [
            {"a": tie.a, "p": _short(tie.at_a), "b": tie.b, "q": _short(tie.at_b), "colour": _short(tie.colour)}
            for tie in drawing.ties
        ],
        "patches": [_patch(p) for p in ground] or [_patch(_floor(low, high), True)],
        "extent": [_short(corner) for corner in with_patches(ground, low, high)],
    }  # fmt: skip


def _mesh(mesh: RenderMesh, block: Block) -> dict[str, Any]:
    few = len(mesh.vertices) < 2**16
    return {
        "vertices": block.add(mesh.vertices, "f4"),
        "normals": block.add(mesh.normals, "f4"),
        "faces": block.add(mesh.faces, "u2" if few else "u4"),
        "edges": block.add(mesh.edges, "f4"),
    }


def _patch(patch: Patch, lines: bool = False) -> dict[str, Any]:
    colour = None if patch.plane.colour == GROUND else _short(patch.plane.colour)
    corners = [_short(corner) for corner in patch.corners]
    return {
        "corners": corners, "normal": _short(patch.plane.normal), "endless": patch.endless, "colour": colour,
        "lines": lines,
    }  # fmt: skip


def _floor(low: Floats, high: Floats) -> Patch:
    """A grid below everything, for scenes without a plane."""
    plane = DrawnPlane(np.array([0.0, 0.0, 1.0]), float(low[2] - 0.02 * np.linalg.norm(high - low)), GROUND)
    return patches([plane], low, high)[0]


def motion_data(motion: RecordedMotion, topology: Topology, block: Block) -> dict[str, Any]:
    """Data of motion and impacts."""
    hits, starts = motion.hits, np.cumsum([0, *(min(len(h.t), IMPACTS) for h in motion.hits)])

    def all_of(name: str, dtype: str) -> dict[str, Any]:
        return block.add(np.concatenate([getattr(h, name)[:IMPACTS] for h in hits]), dtype)

    whole = {name: all_of(name, "i4") for name in ("bodies", "pair", "dof")}
    return {
        "units": ["N s" if slides else "N m s" for slides in _slides(topology)],
        "shapeLinks": list(topology.shape_links),
        "pairs": [list(pair) for pair in topology.pairs],
        "lanes": list(motion.lanes),
        "t": block.add(motion.t, "f4"),
        "position": block.add(motion.position, "f4"),
        "quaternion": block.add(np.round(motion.quaternion * QUATERNION), "i2"),
        "turns": block.add(turns_between(motion), "i1"),
        "kinetic": block.add(motion.kinetic, "f4"),
        "potential": block.add(motion.potential, "f4"),
        "impacts": {"starts": starts.tolist()}
        | whole
        | {name: all_of(name, "f4") for name in ("t", "point", "impulse", "size", "loss")},
    }


def _slides(topology: Topology) -> list[bool]:
    """Return whether each degree of freedom is a translation, not a rotation."""
    shifts = {"prismatic": (0,), "cylindrical": (1,), "planar": (1, 2), "floating": (3, 4, 5)}
    widths = np.diff(topology.v_start)
    return [k in shifts.get(joint, ()) for joint, n in zip(topology.joints, widths, strict=True) for k in range(n)]


def _subtitle(recording: Recording, motion: RecordedMotion) -> str:
    lanes = "" if recording.lanes is None else f"{recording.lanes} lanes · "
    bodies = f"{motion.position.shape[2]} bodies" if motion.position.shape[2] != 1 else "1 body"
    return f"{lanes}{bodies} · {motion.t[-1]:.3g} s · law {recording.events.law}"


def _notes(recording: Recording, motion: RecordedMotion, every: int) -> list[str]:
    """Notes on the parts that the page leaves out, and on failures."""
    notes = []
    if recording.lanes is not None and len(motion.lanes) < recording.lanes:
        notes.append(f"{len(motion.lanes)} of {recording.lanes} lanes are in this page")
    if every > 1:
        notes.append(f"one frame of {every} is in this page")
    for lane, reached, hits in zip(motion.lanes, motion.reached, motion.hits, strict=True):
        which = "" if recording.lanes is None else f"lane {lane} "
        if reached < len(motion.t):
            notes.append(f"{which}stopped at {motion.t[max(reached - 1, 0)]:.3g} s")
        if len(hits.t) > IMPACTS:
            notes.append(f"{which}has {len(hits.t)} impacts, of which the first {IMPACTS} are in this page")
    missed = int(np.sum(recording.events.missed))
    if missed:
        notes.append(f"{missed} impacts were not logged: there was no room")
    return notes[:6]


def _short(numbers: ArrayLike) -> list[float]:
    return [float(f"{x:.7g}") for x in np.asarray(numbers, float)]
