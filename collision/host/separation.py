"""Depth of the overlap of two shapes, from distances between shapes that are apart.

For a unit direction n let g(n) be the gap between the shapes' supporting planes across n (negative: they overlap
by that much along n). For convex shapes the signed distance is the largest g(n) over all n, whether they overlap or
not (Cameron & Culley 1986). Moving A by s n changes g(n) by s, and far enough away a distance detector finds
the best direction of the *moved* pair well: so move, measure, move along the direction found, until both agree.
This is the iterative projection on the contact space of PolyDepth (Je, Tang, Lee, Lee, Kim, ACM Trans. Graph. 31,
2012), which needs only distances and works also for shapes that are not convex, as the way to the next position
without overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from .shapes import Floats

SAMPLES = 400  # directions in which g is sampled before the best ones are refined
TRIED, STARTS = 64, 3  # the best directions, and how many of them, well apart, are refined
APART = 0.9  # cosine of the angle; two directions with a larger one count as one start
WAYS = 8  # directions tried for shapes that are not convex
ROUNDS = 24  # measurements per start, at most; the error falls at least fourfold with each
AGREE = 1e-12  # 1 - cosine between successive directions that ends the search: g is then exact to a part in 1e12


class SignedGap(NamedTuple):
    """Signed gap of two shapes, unit normal (3,) from B to A, and the points a and b (3,) where they are closest."""

    gap: float
    normal: Floats
    a: Floats
    b: Floats


Measure = Callable[[Floats], SignedGap | None]  # the pair with A moved by (3,); None: not apart


def directions(count: int) -> Floats:
    """Unit vectors (count, 3) spread evenly over the sphere (Fibonacci's lattice)."""
    k = np.arange(count) + 0.5
    z, angle = 1 - 2 * k / count, np.pi * (1 + np.sqrt(5)) * k
    r = np.sqrt(1 - z * z)
    return np.stack([r * np.cos(angle), r * np.sin(angle), z], axis=1)


_SPREAD = directions(SAMPLES)


def convex_overlap(measure: Measure, plane_gap: Callable[[Floats], Floats], hints: Floats, apart: float) -> SignedGap:
    """Signed gap of convex shapes that touch or overlap.

    plane_gap: g, of directions (k, 3) -> (k,).  hints: (k, 3) directions to try.  apart: distance by which
    the shapes are moved apart to be measured [m].
    """
    tried = np.concatenate([hints, _SPREAD])
    g = plane_gap(tried)
    order = np.argsort(-g, kind="stable")[:TRIED]
    starts = distinct(tried[order])[:STARTS]
    hits = [_refine(measure, m, max(-float(plane_gap(m[None])[0]), 0.0) + apart, apart) for m in starts]
    best = int(order[0])
    fallback = SignedGap(float(g[best]), tried[best], np.zeros(3), np.zeros(3))
    return max((hit for hit in hits if hit is not None), key=lambda hit: hit.gap, default=fallback)


def overlap(measure: Measure, hints: Iterable[Floats], apart: float, far: float) -> SignedGap:
    """Signed gap of shapes of any form: the shortest way out among those that start along the hints (3,).

    far: a longer way does not count [m].
    """
    best = None
    way = np.array([0.0, 0.0, 1.0])
    for way in hints:
        hit = _way_out(measure, way, apart, far)
        if hit is not None and (best is None or hit.gap > best.gap):
            best = hit
    return best or SignedGap(-far, way, np.zeros(3), np.zeros(3))


def _way_out(measure: Measure, m: Floats, apart: float, far: float) -> SignedGap | None:
    """The gap along a direction m (3,), rotated until it agrees with the normal where the shapes part."""
    s = apart
    while (hit := measure(s * m)) is None:
        s *= 2
        if s > far:
            return None
    # back towards the position where they part: a move by less than the distance cannot make them touch
    for _ in range(ROUNDS):
        if hit.gap <= 2 * apart or s <= apart:
            break
        closer = measure((s - hit.gap + apart) * m)
        if closer is None:
            return None  # over the edge of a heightfield, where its inside ends without a surface
        hit, s = closer, s - hit.gap + apart
    best = SignedGap(hit.gap - s, m, hit.a - s * m, hit.b)
    for _ in range(ROUNDS):
        agreement = float(m @ hit.normal)
        if agreement <= 0:
            return best
        g = hit.gap - s * agreement
        if agreement > 1 - AGREE:
            return SignedGap(g, hit.normal, hit.a - s * m, hit.b)
        m, s = hit.normal, max(-g, 0.0) + apart
        hit = measure(s * m)
        if hit is None or hit.gap > 2 * apart:  # g was only a guess
            return best
        best = SignedGap(hit.gap - s * float(m @ hit.normal), hit.normal, hit.a - s * m, hit.b)
    return best


def distinct(ways: Iterable[Floats]) -> list[Floats]:
    """Unit vectors (3,), up to eight, without those in nearly the direction of an earlier one."""
    chosen: list[Floats] = []
    for way in ways:
        if len(chosen) < WAYS and all(way @ other < APART for other in chosen):
            chosen.append(way)
    return chosen


def _refine(measure: Measure, m: Floats, s: float, apart: float) -> SignedGap | None:
    """The largest g of convex shapes near the direction m (3,), from A moved by s along it, where they are apart."""
    best = None
    for _ in range(ROUNDS):
        hit = measure(s * m)
        if hit is None:
            return best
        agreement = float(m @ hit.normal)
        g = hit.gap - s * agreement
        if best is None or g > best.gap:
            best = SignedGap(g, hit.normal, hit.a - s * m, hit.b)
        if agreement > 1 - AGREE:
            return best
        m, s = hit.normal, max(-g, 0.0) + apart
    return best
