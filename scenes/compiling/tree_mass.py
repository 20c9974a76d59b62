"""No joint may move without inertia: otherwise the mass matrix is singular and accelerations are infinite."""

from __future__ import annotations

import numpy as np

from ...collision.mass import MassProperties
from ...collision.poses import Array
from .check import reject
from .joint_rows import JointRow


def check_tree(wheres: list[str], parents: tuple[int, ...], masses: list[MassProperties], rows: list[JointRow]) -> None:
    """Check links in order, parents first. A leaf's joint must move the leaf's mass; an inner one a mass further out.

    Exact for leaves. An inner link may still be singular in special poses of a tree with massless links; the result
    is then NaN.
    """
    has_mass = np.array([m.mass > 0 for m in masses])
    inner = set(parents)
    for i in reversed(range(len(parents))):
        free = rows[i].dofs["armature"] <= 0
        if not has_mass[i] and free.any():
            fix = "give it mass, put mass on a child, or give the joint armature"
            reject(wheres[i], "mass", 0.0, f"no link further out has mass, so its joint moves without inertia: {fix}")
        if i not in inner and free.any() and _is_singular(rows[i], masses[i]):
            fix = "give inertia about the joint, shift com off the axis, or give the joint armature"
            must = f"its {rows[i].kind} joint moves without inertia: {fix}"
            reject(wheres[i], "inertia", masses[i].inertia, must)
        if parents[i] >= 0:
            has_mass[parents[i]] |= has_mass[i]


def _is_singular(row: JointRow, body: MassProperties) -> bool:
    """Return whether S^T I S + armature has a (nearly) null direction, each dof measured by its own size."""
    S = _subspace(row)
    if not S.shape[1]:
        return False
    D = S.T @ _spatial_inertia(body) @ S + np.diag(row.dofs["armature"])
    size = np.diag(D)
    least = 1e-12 * np.trace(body.inertia_about(np.zeros(3)))
    turning = np.linalg.norm(S[:3], axis=0) > 0
    if (size <= np.where(turning, least, 0.0)).any():
        return True
    return bool(np.linalg.eigvalsh(D / np.sqrt(np.outer(size, size)))[0] < 1e-12)


def _subspace(row: JointRow) -> Array:
    """Motion subspace (6, nv) at q = 0, angular part first, in the joint frame."""
    a, b, zero = row.axis, row.axis2, np.zeros(3)
    columns = {
        "fixed": [],
        "revolute": [(a, zero)],
        "prismatic": [(zero, a)],
        "screw": [(a, row.pitch * a)],
        "cylindrical": [(a, zero), (zero, a)],
        "universal": [(a, zero), (b, zero)],
        "planar": [(a, zero), (zero, b), (zero, np.cross(a, b))],
        "spherical": [(e, zero) for e in np.eye(3)],
        "floating": [(e, zero) for e in np.eye(3)] + [(zero, e) for e in np.eye(3)],
    }[row.kind]
    return np.array([np.concatenate(column) for column in columns]).reshape(-1, 6).T


def _spatial_inertia(body: MassProperties) -> Array:
    """Inertia (6, 6) about the link's origin, angular part first."""
    x, y, z = body.mass * body.com
    mc = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.block([[body.inertia_about(np.zeros(3)), mc], [mc.T, body.mass * np.eye(3)]])
