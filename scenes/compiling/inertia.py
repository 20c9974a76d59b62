"""Mass, centre of mass and inertia of a link: given, or from its shapes; impossible ones are rejected."""

from __future__ import annotations

import numpy as np

from ...collision.mass import MassProperties, combine
from ...collision.plain import Numbers
from ...collision.poses import Array
from ..spec import BodySpec, LinkSpec
from .check import number, numbers, positive, reject
from .shape_rows import ShapeRow

ROUNDING = 1e-6  # relative: inertias come from files with six digits
ZERO_MASS = MassProperties(0.0, np.zeros(3), np.zeros((3, 3)))


def link_mass(where: str, spec: BodySpec | LinkSpec, rows: list[ShapeRow], jointed: bool) -> MassProperties:
    """Mass properties of one link in its own frame.

    jointed: the link is not free, so that it may be massless, a point mass or an ideal rod; `tree_mass.check_tree`
    checks that its joint moves some inertia when the whole tree is known.
    """
    mass = _given_mass(where, spec, jointed)
    if mass == 0:
        return _massless(where, spec)
    inertia = None if spec.inertia is None else _checked_inertia(where, spec.inertia, jointed)
    com = None if spec.com is None else numbers(where, "com", spec.com, (3,), "m")
    if inertia is None:
        body = _from_shapes(where, spec, mass, rows)
        return MassProperties(body.mass, body.com if com is None else com, body.inertia)
    if mass is None:
        reject(where, "mass", None, "it must be given together with inertia: give mass in kg, or leave inertia out")
    return MassProperties(mass, np.zeros(3) if com is None else com, inertia)


def _given_mass(where: str, spec: BodySpec | LinkSpec, jointed: bool) -> float | None:
    if spec.mass is None:
        return None
    if jointed and number(where, "mass", spec.mass, "kg") == 0:
        return 0.0
    return float(
        positive(where, "mass", spec.mass, unit="kg", fix="give mass in kg, or density and let the shapes decide")
    )


def _massless(where: str, spec: BodySpec | LinkSpec) -> MassProperties:
    if spec.inertia is not None and np.any(numbers(where, "inertia", spec.inertia, np.shape(spec.inertia))):
        reject(where, "inertia", spec.inertia, "a link of mass 0 has none: leave it out, or use the joint's armature")
    return ZERO_MASS


def _from_shapes(where: str, spec: BodySpec | LinkSpec, mass: float | None, rows: list[ShapeRow]) -> MassProperties:
    if not rows and mass is None:
        reject(where, "mass", None, "there are no shapes to take it from: give mass in kg and inertia, or shapes")
    if not rows:
        fix = "give inertia about the centre of mass in kg m^2 (zeros for a point mass on a joint), or shapes"
        reject(where, "inertia", None, f"there are no shapes to take it from: {fix}")
    body = combine(row.mass() for row in rows if row.weighs)
    return body if mass is None else body.with_mass(mass)


def _checked_inertia(where: str, value: Numbers, jointed: bool) -> Array:
    if np.ndim(value) == 1:  # its diagonal
        inertia = np.diag(numbers(where, "inertia", value, (3,), "kg m^2"))
    else:
        inertia = numbers(where, "inertia", value, (3, 3), "kg m^2")
    scale = np.abs(inertia).max()
    if np.abs(inertia - inertia.T).max() > ROUNDING * scale:
        reject(where, "inertia", value, "it must be symmetric: give Ixy = Iyx, Ixz = Izx, Iyz = Izy")
    inertia = (inertia + inertia.T) / 2
    a, b, c = np.linalg.eigvalsh(inertia)
    if a < -ROUNDING * scale or (a <= 1e-12 * scale and not jointed):
        moments = f"its principal moments are {a:.6g}, {b:.6g}, {c:.6g}"
        reject(where, "inertia", value, f"it must be positive definite, but {moments}: check signs and units")
    if a + b < c * (1 - ROUNDING):
        moments = f"{a:.6g} + {b:.6g} < {c:.6g}"
        fix = "no mass distribution has such moments, check that they are about the centre of mass"
        reject(where, "inertia", value, f"it must satisfy the triangle inequality, but {moments}: {fix}")
    return inertia
