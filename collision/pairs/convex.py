"""Cylinders and ellipsoids with everything round or flat: the largest separation over all directions.

    g(n) = -h_A(-n) - h_B(n), the separation of the two shapes' supporting planes along n (from B to A)
    gap  = max g over all unit n: the distance while apart, minus the depth while overlapping

Apart, GJK finds the maximum. Overlapping or nearly so, A is first moved away along n0, the best direction so far, by
as much as separates the two by a margin; GJK's direction n1 for the moved pair then maximises g(n) + s n.n0. That is
one step of the proximal point method (Rockafellar, 1976): it never goes down, and repeated it climbs to the maximum
of the hill on which n0 stands. The start is the best of many directions, so that the hill is the highest one.
Of all directions met, the best is kept: g of any direction is a lower bound of the gap.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from ...engine.algebra.fence import fence, settled
from ...engine.algebra.spatial import Transform
from ...engine.algebra.vec3 import Scalar, Vec3
from ...engine.algebra.zero import is_zero
from ..faces import FACE, meeting_faces
from ..gjk import gjk
from ..manifold import manifold
from ..near import Near, direction, pick, where
from ..solid import ONTO, Solid, Support, radius, supports

STEPS = 20  # of GJK
CLIMBS = 10
MARGIN = 0.1  # of the widths along the normal
DIRECTIONS = 60

Pair = tuple[Vec3, Vec3]


@functools.cache
def convex(kind_a: str, kind_b: str) -> Callable[[Solid, Solid, Transform], tuple[Near, ...]]:
    """The kernel of two kinds."""

    def kernel(a: Solid, b: Solid, X: Transform) -> tuple[Near, ...]:
        support = supports(kind_a, a, kind_b, b, X)
        row = _climb(support, _best(support, _directions(a, b, X)))
        on_a, on_b = ONTO[kind_a](a, row.a), X.R @ ONTO[kind_b](b, X.R.T @ (row.b - X.p)) + X.p
        rows = (row._replace(a=on_a, b=on_b),)
        if kind_a in FACE and kind_b in FACE:
            rows = manifold(rows[0], *meeting_faces(kind_a, a, kind_b, b, X, row.normal))
        return tuple(each.rounded(radius(kind_a, a), radius(kind_b, b)) for each in rows)

    return kernel


def _separation(support: Support, n: Vec3) -> Near:
    """g(n) and the supporting points."""
    a, b = support(n)
    return Near((a - b).dot(n), n, a, b)


def _directions(a: Solid, b: Solid, X: Transform) -> Vec3:
    """Where to look for the highest hill, (directions, *items): spread evenly, along the axes and the faces of both,
    and from centre to centre."""
    k = np.arange(DIRECTIONS) + 0.5
    z, turn = 1 - 2 * k / DIRECTIONS, np.pi * (1 + np.sqrt(5)) * k  # Fibonacci's lattice on the sphere
    ring = np.sqrt(1 - z * z)
    axes = np.concatenate([np.eye(3), -np.eye(3)])
    fixed = np.concatenate([np.stack([ring * np.cos(turn), ring * np.sin(turn), z], -1), axes])
    shape, dtype = X.p.x.shape, X.p.x.dtype

    def listed(m: int) -> list:
        of_b = [getattr(column, "xyz"[m]) for column in X.R.columns]
        centre = getattr(direction(-X.p, Vec3(0.0, 0.0, 1.0)), "xyz"[m])
        rows = [jnp.broadcast_to(jnp.asarray(fixed[:, m], dtype).reshape(-1, *(1,) * len(shape)), (len(fixed), *shape))]
        rows += [jnp.stack(jnp.broadcast_arrays(centre, *of_b, *(-x for x in of_b)))]
        return rows

    rows = [listed(m) for m in range(3)]
    for hull, turned in ((a.hull, lambda n: -n), (b.hull, lambda n: X.R @ n)):
        if not is_zero(hull):
            normal = turned(hull.normal)
            for m, x in enumerate((normal.x, normal.y, normal.z)):
                rows[m].append(jnp.broadcast_to(x, (x.shape[0], *shape)))
    return Vec3(*(jnp.concatenate(x) for x in rows))


def _best(support: Support, n: Vec3) -> Near:
    gap = jax.vmap(lambda n: _separation(support, n).gap)(n)
    return _separation(support, settled(pick(gap, n)))


def _climb(support: Support, start: Near) -> Near:
    """From a direction to the top of its hill: proximal steps, with Anderson's acceleration (1965) of depth two.

    The steps alone shrink the error by s / (s + curvature radius - depth), which is slow in deep overlap.
    """
    margin = MARGIN * _widths(support, start.normal)
    nearly = jnp.sqrt(jnp.finfo(margin.dtype).eps) * margin

    def ahead(n: Vec3) -> Near:
        """One proximal step."""
        shift = n * jnp.maximum(margin - _separation(support, n).gap, 0.0)

        def moved(n: Vec3) -> tuple[Vec3, Vec3]:
            a, b = support(n)
            return a + shift, b

        found = gjk(moved, n, STEPS).row()
        return Near(_separation(support, found.normal).gap, found.normal, found.a - shift, found.b)

    def step(k, carry):
        best, n, older, oldest = carry
        found = ahead(n)
        # a corner of g, where the start may stand exactly, is met only nearly: but it has the points
        points = where(found.gap >= best.gap - nearly, (found.a, found.b), (best.a, best.b))
        best = where(found.gap > best.gap, found, best)._replace(a=points[0], b=points[1])
        now = (found.normal, found.normal - n)
        leap = _accelerated(now, older, oldest)
        safe = _separation(support, leap).gap >= found.gap
        return best, where(safe, leap, found.normal), now, older

    none = (start.normal, start.normal * 0.0)
    best, *_ = jax.lax.fori_loop(0, CLIMBS, step, (start, start.normal, none, none))
    return best


@fence
def _accelerated(now: Pair, older: Pair, oldest: Pair) -> Vec3:
    """The direction at which the residual of the steps, linear in the steps so far, would be least.

    Each is (where the step led, the step): f and r. The two coefficients solve a least-squares problem.
    """
    (f, r), (f1, r1), (f2, r2) = now, older, oldest
    d1, d2 = r - r1, r - r2
    a, b, c = d1.dot(d1), d1.dot(d2), d2.dot(d2)
    x, y = d1.dot(r), d2.dot(r)
    det = a * c - b * b
    two = det > 1e-4 * a * c
    some = a > 0
    safe = jnp.where(two, det, jnp.where(some, a, 1.0))
    c1 = jnp.where(two, c * x - b * y, jnp.where(some, x, 0.0)) / safe
    c2 = jnp.where(two, a * y - b * x, 0.0) / safe
    return direction(f - (f - f1) * c1 - (f - f2) * c2, f)


def _widths(support: Support, n: Vec3) -> Scalar:
    """Half the widths of both shapes along n [m]."""
    (a, b), (a2, b2) = support(n), support(-n)
    return ((a2 - a).dot(n) + (b - b2).dot(n)) / 2
