"""Geoms of a compiled MJCF model as shapes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....collision.meshes.hulls import MAX_HULL_VERTICES
from ....collision.poses import Array, rotation_matrix
from ....collision.shapes import Box, Capsule, ConvexHull, Cylinder, Ellipsoid, Heightfield, Mesh, Shape, Sphere
from ...spec import PlaneSpec, StaticSpec
from .compiled import Compiled
from .contact import ContactProperties
from .ledger import Ledger
from .links import BodyFrame

PLANE, HFIELD, SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, MESH, SDF = range(9)  # mjtGeom
NOUNS = ("plane", "heightfield", "sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh", "signed distance field")


def shapes_of(file: Compiled, body: int, origin: Array, contact: ContactProperties, ledger: Ledger) -> list[Shape]:
    """Shapes of a body in the frame of its link, whose origin is in the body's axes (3,); planes are left out."""
    first, count = file.m.body_geomadr[body], file.m.body_geomnum[body]
    geoms = [g for g in range(first, first + count) if g in contact.layers and file.m.geom_type[g] != PLANE]
    return [shape for g in geoms if (shape := _shape(file, g, origin, contact, ledger)) is not None]


def statics_of(
    file: Compiled, frames: list[BodyFrame], contact: ContactProperties, ledger: Ledger
) -> tuple[tuple[PlaneSpec | StaticSpec, ...], dict[int, list[str]]]:
    """Static geometry, and its names by body."""
    m, statics, owners = file.m, [], {}
    for b in (b for b in range(m.nbody) if not file.moves(b)):
        own: list[PlaneSpec | StaticSpec] = []
        for g in range(m.body_geomadr[b], m.body_geomadr[b] + m.body_geomnum[b]):
            if m.geom_type[g] == PLANE and g in contact.layers:
                frame = frames[b].compose(m.geom_pos[g], m.geom_quat[g])
                normal = rotation_matrix(frame.quaternion)[:, 2]
                name = f"{_static_name(file, b)}/{file.name('geom', g)}"
                own.append(PlaneSpec(normal, float(normal @ frame.position), name, **contact.of(g)))
                ledger.note("taken", "plane", file.name("geom", g))
        shapes = shapes_of(file, b, np.zeros(3), contact, ledger)
        if shapes:
            own.append(StaticSpec(_static_name(file, b), shapes, frames[b].position, frames[b].quaternion))
        statics += own
        owners[b] = [static.name for static in own]
    return tuple(statics), owners


def _static_name(file: Compiled, b: int) -> str:
    return file.name("body", b) if b else "worldbody"  # "world" is Carom's name of the world itself


def _shape(file: Compiled, g: int, origin: Array, contact: ContactProperties, ledger: Ledger) -> Shape | None:
    m, kind, name = file.m, file.m.geom_type[g], file.name("geom", g)
    common = contact.of(g) | {"position": m.geom_pos[g] - origin, "quaternion": m.geom_quat[g]}
    size = m.geom_size[g]
    if kind == SDF or (kind == HFIELD and file.moves(m.geom_bodyid[g])):
        ledger.refuse("sdf", NOUNS[kind], name, "there is no such shape, or none that moves")
        return None
    if kind not in (HFIELD, MESH):
        ledger.note("taken", NOUNS[kind], name)
    if kind == SPHERE:
        return Sphere(size[0], **common)
    if kind == CAPSULE:
        return Capsule(size[0], size[1], **common)
    if kind == CYLINDER:
        return Cylinder(size[0], size[1], **common)
    if kind == ELLIPSOID:
        return Ellipsoid(size, **common)
    if kind == BOX:
        return Box(size, **common)
    return (_heightfield if kind == HFIELD else _mesh)(m, m.geom_dataid[g], name, common, ledger)


def _heightfield(m: Any, k: int, name: str, common: dict[str, Any], ledger: Ledger) -> Shape:
    """A heightfield; MuJoCo's rows run along y, its heights from 0 to 1."""
    rows, columns = m.hfield_nrow[k], m.hfield_ncol[k]
    rx, ry, top, _ = m.hfield_size[k]
    heights = m.hfield_data[m.hfield_adr[k] :][: rows * columns].reshape(rows, columns).T * float(top)
    ledger.note("approximated", "heightfield", name, "it is solid all the way down")
    return Heightfield(heights, (2 * rx / (columns - 1), 2 * ry / (rows - 1)), **common)


def _mesh(m: Any, k: int, name: str, common: dict[str, Any], ledger: Ledger) -> Shape:
    """The mesh's convex hull, which collides in MuJoCo too and is part of the compiled model."""
    vertices = m.mesh_vert[m.mesh_vertadr[k] :][: m.mesh_vertnum[k]].astype(float)
    faces = m.mesh_face[m.mesh_faceadr[k] :][: m.mesh_facenum[k]]
    if m.mesh_graphadr[k] >= 0:  # numbers of vertices and faces, then of each vertex's edges, vertices, edges, faces
        graph = m.mesh_graph[m.mesh_graphadr[k] :]
        nv, nf = graph[:2]
        faces = graph[2 + 3 * nv + 3 * nf :][: 3 * nf].reshape(nf, 3)
    used, faces = np.unique(faces, return_inverse=True)
    faces = faces.reshape(-1, 3)
    if len(used) <= MAX_HULL_VERTICES and m.mesh_graphadr[k] >= 0:
        ledger.note("taken", "mesh", name, "its convex hull, as in MuJoCo")
        return ConvexHull(vertices[used], **common)
    why = f"its convex hull, as in MuJoCo, of {MAX_HULL_VERTICES} vertices at most"
    ledger.note("approximated", "mesh", name, why)
    return Mesh((vertices[used], faces), convex="hull", **common)
