"""The viewer's nodes in a viser scene: a frame for every link, with its shapes in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...collision.poses import rotation_from_z, rotation_matrix
from ..show.colours import GROUND, IVORY, Colour
from ..show.drawing import Drawing, Drawn
from ..show.meshes import Floats, Ints, RenderMesh
from ..show.planes import Patch

if TYPE_CHECKING:
    from ..live.debug import DebugLines

ARROW, LENGTH, THICK = (255, 148, 33), 0.13, 0.003  # of arrows; length of the strongest and thickness in scene sizes
LOOK_FROM = np.array([0.36, -0.80, 0.46])  # direction of the camera from the middle of the scene
FOV = np.radians(40)
FACETED = 200  # vertices below which a mesh is one of flat faces: boxes, hulls


def link_path(name: str) -> str:
    """Path of a link's frame in viser's scene; a slash in a name is written %2F, else it would mean another frame."""
    return "/links/" + name.replace("%", "%25").replace("/", "%2F")


class Nodes:
    """The nodes.  handles: of all shapes, solid and wire.  low, high (3,): the box of the motion [m]."""

    def __init__(self, server: Any, drawing: Drawing, ground: Sequence[Patch], low: Floats, high: Floats) -> None:
        self.server, self.drawing = server, drawing
        self.size = float(np.linalg.norm(high - low))
        scene = server.scene
        scene.set_up_direction("+z")
        self.links = [scene.add_frame(link_path(name), show_axes=False) for name in drawing.names]
        scene.add_frame("/world", show_axes=False)
        self.solid: list[tuple[Drawn, Any]] = []
        self.wire: list[tuple[Drawn, Any]] = []
        for k, shape in enumerate(drawing.shapes):
            self._add_shape(f"{self._parent(shape)}/shape{k}", shape)
        for k, patch in enumerate(ground):
            self._add_patch(f"/world/plane{k}", patch)
        if not ground:
            self._add_grid("/world/grid", np.array([0, 0, low[2] - 0.02 * self.size]), np.array([0.0, 0.0, 1.0]), 0.0)
        self.arrow_handle: Any = None
        self.trail_handle: Any = None
        self.debug_handle: Any = None
        middle = (low + high) / 2
        self.camera = middle + LOOK_FROM * (0.62 * self.size / np.tan(FOV / 2)), middle
        camera = server.initial_camera
        camera.position, camera.look_at, camera.fov = (*self.camera, FOV)
        camera.near, camera.far = 0.01 * self.size, 100 * self.size

    def _parent(self, shape: Drawn) -> str:
        return "/world" if shape.link < 0 else link_path(self.drawing.names[shape.link])

    def _add_shape(self, name: str, shape: Drawn) -> None:
        scene, mesh = self.server.scene, self.drawing.meshes[shape.mesh]
        pose = {"position": shape.position, "wxyz": shape.quaternion}
        if shape.solid:
            for k, (faces, colour) in enumerate(faces_by_colour(mesh, shape.pattern, shape.colour)):
                flat = len(mesh.vertices) < FACETED
                handle = scene.add_mesh_simple(
                    f"{name}/solid{k}", mesh.vertices, faces, color=_bytes(colour), flat_shading=flat, **pose
                )
                self.solid.append((shape, handle))
        if shape.wire:
            colour = _bytes(tuple(0.5 * c for c in shape.colour))  # type: ignore[arg-type]
            handle = scene.add_line_segments(
                f"{name}/wire", mesh.edges, colour, thickness=1.5, thickness_units="screen", visible=False, **pose
            )
            self.wire.append((shape, handle))

    def _add_patch(self, name: str, patch: Patch) -> None:
        corners, plane = patch.corners, patch.plane
        if patch.endless:
            self._add_grid(name, plane.normal * plane.offset, plane.normal, 0.9)
            return
        fan = np.arange(1, len(corners) - 1)
        faces = np.stack([np.zeros_like(fan), fan, fan + 1], axis=1)
        self.server.scene.add_mesh_simple(
            name, corners, faces, color=_bytes(plane.colour), side="front", cast_shadow=False
        )

    def _add_grid(self, name: str, position: Floats, normal: Floats, opacity: float) -> None:
        """An endless grid; its squares are a tenth of the scene, of 1, 2 or 5 times a power of ten [m]."""
        power = 10.0 ** np.floor(np.log10(self.size / 10))
        cell = next(k * power for k in (1, 2, 5, 10) if k * power >= self.size / 10)
        self.server.scene.add_grid(
            name, infinite_grid=True, cell_size=cell, section_size=5 * cell, fade_distance=8 * self.size,
            position=position, wxyz=rotation_from_z(normal), plane_color=_bytes(GROUND), plane_opacity=opacity,
            shadow_opacity=0.35,
        )  # fmt: skip

    def set_poses(self, position: Floats, quaternion: Floats) -> None:
        """Set the poses of all links: position (nl, 3) [m], quaternion (nl, 4)."""
        for handle, p, q in zip(self.links, position, quaternion, strict=True):
            handle.position, handle.wxyz = p, q
        self._tie(position, quaternion)

    def _tie(self, position: Floats, quaternion: Floats) -> None:
        """Draw rods and springs between links, as lines."""

        def in_world(link: int, at: Floats) -> Floats:
            return at if link < 0 else position[link] + rotation_matrix(quaternion[link]) @ at

        ties = self.drawing.ties
        if ties:
            ends = [(in_world(tie.a, tie.at_a), in_world(tie.b, tie.at_b)) for tie in ties]
            colours = np.array([_bytes(tie.colour) for tie in ties], np.uint8)
            self.server.scene.add_line_segments(
                "/ties", np.array(ends, np.float32), np.repeat(colours[:, None], 2, 1), thickness=3.0,
                thickness_units="screen",
            )  # fmt: skip

    def show(self, lane: int, wireframe: bool) -> None:
        """Show the shapes of one lane, with the wireframe of collision shapes or without."""
        for shape, handle in self.solid:
            handle.visible = shape.lane in (None, lane)
            handle.opacity = 0.3 if wireframe else None
        for shape, handle in self.wire:
            handle.visible = wireframe and shape.lane in (None, lane)

    def arrows(self, points: Floats, impulses: Floats, strongest: float) -> None:
        """Draw impulses (n, 3) [N s] at points (n, 3) [m]; strongest: the size of the longest arrow."""
        if not len(points):
            if self.arrow_handle is not None:
                self.arrow_handle.visible = False
            return
        size = np.linalg.norm(impulses, axis=1, keepdims=True)
        length = LENGTH * self.size * np.sqrt(size / strongest)
        tips = points + impulses / np.maximum(size, 1e-300) * length
        thick = THICK * self.size
        self.arrow_handle = self.server.scene.add_arrows(
            "/arrows", np.stack([points, tips], axis=1).astype(np.float32), ARROW, shaft_radius=thick,
            head_radius=2.4 * thick, head_length=6 * thick,
        )  # fmt: skip

    def trails(self, paths: Floats, links: Sequence[int]) -> None:
        """Draw the past paths (n, F, 3) [m] of links, one per link."""
        if not len(links) or paths.shape[1] < 2:
            if self.trail_handle is not None:
                self.trail_handle.visible = False
            return
        segments = np.stack([paths[:, :-1], paths[:, 1:]], axis=2)
        colours = np.array([_bytes(self.colour(link)) for link in links], np.uint8)
        spread = np.broadcast_to(colours[:, None, None], segments.shape)
        self.trail_handle = self.server.scene.add_line_segments(
            "/trails", segments.reshape(-1, 2, 3).astype(np.float32), spread.reshape(-1, 2, 3), thickness=2.0,
            thickness_units="screen",
        )  # fmt: skip

    def debug(self, lines: DebugLines | None) -> None:
        """Draw the lines of `carom.Live.debug_lines`, or remove them for None."""
        if lines is None or not len(lines.ends):
            if self.debug_handle is not None:
                self.debug_handle.visible = False
            return
        colours = np.repeat((255 * lines.colours).astype(np.uint8)[:, None], 2, 1)
        self.debug_handle = self.server.scene.add_line_segments(
            "/debug", lines.ends.astype(np.float32), colours, thickness=1.5, thickness_units="screen"
        )

    def follow(self, link: int, at: Floats | None, before: tuple[int, Floats] | None) -> tuple[int, Floats] | None:
        """Move cameras with the followed link, which is at `at` (3,) [m].  before: the last return value."""
        if at is not None and before is not None and before[0] == link:
            for client in self.server.get_clients().values():
                client.camera.position = client.camera.position + (at - before[1])  # its target moves with it
        return None if at is None else (link, at)

    def colour(self, link: int) -> Colour:
        return next((s.colour for s in self.drawing.shapes if s.link == link), (0.5, 0.5, 0.5))


def faces_by_colour(mesh: RenderMesh, pattern: str, colour: Colour) -> list[tuple[Ints, Colour]]:
    """The faces of each colour of a pattern, as in the page's shader, but face by face."""
    if pattern == "plain":
        return [(mesh.faces, colour)]
    middle = mesh.vertices[mesh.faces].mean(axis=1)
    d = middle / np.maximum(np.linalg.norm(middle, axis=1, keepdims=True), 1e-300)
    spot = np.abs(d[:, 0]) > 0.9
    second = {
        "quarters": d[:, 0] * d[:, 1] > 0,
        "solid": spot,
        "stripe": spot | (np.abs(d[:, 2]) > 0.52),
        "cue": np.abs(d).max(axis=1) > 0.96,
    }[pattern]
    darker: Colour = tuple(0.88 * c for c in colour)  # type: ignore[assignment]
    other = {"quarters": darker, "cue": (0.78, 0.16, 0.14)}.get(pattern, IVORY)
    return [(mesh.faces[~second], colour), (mesh.faces[second], other)]


def _bytes(colour: Sequence[float]) -> tuple[int, int, int]:
    r, g, b = (round(255 * c) for c in colour)
    return r, g, b
