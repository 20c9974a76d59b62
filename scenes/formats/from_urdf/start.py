"""The start of a robot: set down on the ground, with pairs that overlap there excluded."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ....collision.fcl_backend import host_proximities
from ....collision.poses import Array, rotation_matrix
from ....engine.model import Model
from ...compile import compile_scene
from ...joint_specs import Floating, Prismatic
from ...spec import LinkSpec, PlaneSpec, SceneSpec
from .frames import Pose, rotation, translation

GROUND = "ground"
NEAR = (
    1e-4  # [m] gaps up to here count as overlap: more than the rounding of CAD data and of FCL, less than any clearance
)


def set_down(scene: SceneSpec) -> SceneSpec:
    """Add a plane z = 0; a floating root is moved so that the lowest shape touches the plane."""
    scene = replace(scene, statics=(*scene.statics, PlaneSpec(name=GROUND)))
    root = scene.links[0]
    if not isinstance(root, LinkSpec) or not isinstance(root.joint, Floating):
        return scene
    height = min((gap for a, b, gap in _gaps(scene, np.inf, only=GROUND)), default=0.0)
    return replace(scene, links=(replace(root, position=(0.0, 0.0, -height)), *scene.links[1:]))


def overlaps(scene: SceneSpec) -> list[tuple[str, str, float]]:
    """Names of links, and of a link and a static, whose shapes overlap at the start; the least gap of each pair [m].

    Links that only touch are included, links that stand on a static are not.
    """
    least: dict[tuple[str, str], float] = {}
    for a, b, gap in _gaps(scene, NEAR):
        least[a, b] = min(gap, least.get((a, b), np.inf))
    still = {static.name for static in scene.statics}
    return [(a, b, gap) for (a, b), gap in least.items() if gap < -NEAR or not still & {a, b}]


def _gaps(scene: SceneSpec, margin: float, only: str | None = None) -> list[tuple[str, str, float]]:
    """Near points at the start, as (carrier, carrier, gap).

    By FCL, and with poses in numpy: nothing is compiled for a single check. Gears hold from the start on, and do not
    decide which links may touch.
    """
    model, _ = compile_scene(replace(scene, loops=()), overlaps="ignore")
    topology = model.topology
    statics = [static.name for static in scene.statics for _ in getattr(static, "shapes", (None,))]
    owners: list[Any] = [topology.names[link] if link >= 0 else None for link in topology.shape_links]
    owners[: len(statics)] = statics
    pairs = [pair for pair in topology.pairs if only is None or only in (owners[pair[0]], owners[pair[1]])]
    position, rotation = _shape_poses(model, _start_poses(scene))
    shapes = model.shape_size, model.points
    near = host_proximities(replace(topology, pairs=tuple(pairs)), position, rotation, *shapes, margin)
    rows = zip(near.pair[near.active].tolist(), near.gap[near.active].tolist(), strict=True)
    return [(owners[pairs[row][0]], owners[pairs[row][1]], gap) for row, gap in rows]


def _start_poses(scene: SceneSpec) -> dict[str, Pose]:
    """Poses of the links of an imported robot in the world; parents come first."""
    poses = {"world": translation(np.zeros(3))}
    link: Any
    for link in scene.links:
        pose = poses[link.parent] @ Pose(np.asarray(link.position), np.asarray(link.quaternion))
        if link.q0 is not None:
            axis = np.asarray(link.joint.axis) / np.linalg.norm(link.joint.axis)
            slides = isinstance(link.joint, Prismatic)
            pose = pose @ (translation(axis * link.q0) if slides else rotation(axis, link.q0))
        poses[link.name] = pose
    return poses


def _shape_poses(model: Model, links: dict[str, Pose]) -> tuple[Array, Array]:
    """Positions (ns, 3) [m] and rotations (ns, 3, 3) of all shapes in the world."""
    names = (*model.topology.names, "world")
    own = zip(np.asarray(model.shape_position, float), np.asarray(model.shape_quaternion, float), strict=True)
    shape_frames = zip(model.topology.shape_links, own, strict=True)
    shape_poses = [links[names[link]] @ Pose(*pose) for link, pose in shape_frames]
    rotations = [rotation_matrix(pose.quaternion) for pose in shape_poses]
    return np.array([pose.position for pose in shape_poses]).reshape(-1, 3), np.array(rotations).reshape(-1, 3, 3)
