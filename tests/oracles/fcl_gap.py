"""FCL's signed distance of a pair, through python-fcl.

What FCL gets right was measured against `minkowski.gap`, at unit size. `distance` with `enable_signed_distance`
(libccd's GJK, then EPA) is good on both sides of contact: 1e-6 m as a rule, 7e-5 m seldom, rounding for box-box,
box-hull and hull-hull. It stops too early in one of 4500 random placements, of spheres and capsules too: 9 of 41 000
were off by more than 2e-4 m, most by 2e-3 m or less, one by 0.011 m (a sphere and a hull 13 m apart), where oracle and
device agree to 1e-12 m. Where a cylinder's rim lies along an edge it was off by 1.4e-3 m, and of two concentric
spheres, or two cylinders in one place, it never returns: ask it of random placements only. `collide`'s depths are exact
for a sphere with a capsule, box or cylinder and for halfspaces, mostly for two boxes (else 4e-3 m), and off by up to
1 m for all others. `distance` to a halfspace crashes the process, so planes are asked through `collide`, which knows
overlaps only.
"""

from __future__ import annotations

from typing import Any

import fcl
import numpy as np
from scipy.spatial import ConvexHull

from .minkowski import Solid


def gap(a: Solid, b: Solid) -> float:
    """Signed [m]: the distance, or minus the depth of penetration; inf where a plane is not touched."""
    if "plane" in (a.kind, b.kind):
        result = fcl.CollisionResult()
        fcl.collide(_object(a), _object(b), fcl.CollisionRequest(num_max_contacts=8, enable_contact=True), result)
        return min((-contact.penetration_depth for contact in result.contacts), default=np.inf)
    request = fcl.DistanceRequest(enable_nearest_points=True, enable_signed_distance=True)
    return float(fcl.distance(_object(a), _object(b), request, fcl.DistanceResult()))


def _object(s: Solid) -> Any:
    return fcl.CollisionObject(_geometry(s), fcl.Transform(s.rotation, s.position))


def _geometry(s: Solid) -> Any:
    if s.kind == "hull":
        hull = ConvexHull(s.points)
        faces: list[int] = []
        for simplex, equation in zip(hull.simplices, hull.equations, strict=True):
            p, q, r = s.points[simplex]
            outward = np.cross(q - p, r - p) @ equation[:3] > 0
            faces += [3, *(simplex if outward else simplex[::-1])]
        return fcl.Convex(s.points, len(hull.simplices), np.array(faces))
    x, y, z = s.size
    makers = {
        "sphere": lambda: fcl.Sphere(x),
        "capsule": lambda: fcl.Capsule(x, 2 * y),
        "cylinder": lambda: fcl.Cylinder(x, 2 * y),
        "box": lambda: fcl.Box(2 * x, 2 * y, 2 * z),
        "ellipsoid": lambda: fcl.Ellipsoid(x, y, z),
        "plane": lambda: fcl.Halfspace(np.array([0.0, 0.0, 1.0]), 0.0),
    }
    return makers[s.kind]()
