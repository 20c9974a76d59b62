"""Sides of cylinders and capsules along edges and each other: the ends of the stretch where they touch are rows."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from carom.tests.oracles.minkowski import Solid
from carom.tests.oracles.pair_scene import Sample, pair_scene
from carom.tests.oracles.placements import NO_POINTS, Placement
from carom.tests.oracles.surfaces import residual

EXACT = 1e-9
COUNT = 32
HALF = np.array([0.5, 0.7, 0.4])  # of the block
LYING = Rotation.from_euler("x", -90, degrees=True)  # z along y


def solid(kind, size, position, turn, points=NO_POINTS):
    return Solid(kind, np.array(size, float), points, np.array(position, float), turn.as_quat(scalar_first=True))


def on_an_edge(name, kind, rng, skew):
    """A side on the upper edge of a block along y, its normal between the two faces; the ends of the stretch on it."""
    r, h = rng.uniform(0.1, 0.5, 2)
    lean, along = rng.uniform(0.3, 1.2), rng.uniform(-0.9, 0.9) * (HALF[1] + h)
    out = np.array([np.sin(lean), 0, np.cos(lean)])
    turn = Rotation.from_rotvec(out * skew) * LYING
    rod = solid(kind, (r, h, 0), np.array([HALF[0], along, HALF[2]]) + r * out, turn)
    cube = next(p for p in pair_scene(("plane", name)).points if len(p)) if name == "cube" else NO_POINTS
    block = solid("hull" if len(cube) else "box", HALF, (0, 0, 0), Rotation.identity(), cube * HALF)
    axis = turn.apply([0, 0, 1])
    reach = h * abs(axis[1])
    ends = np.clip([along - reach, along + reach], -HALF[1], HALF[1])
    edge = np.stack([np.full(2, HALF[0]), ends, np.full(2, HALF[2])], 1)
    off = edge - rod.position
    gaps = np.linalg.norm(off - np.outer(off @ axis, axis), axis=1) - r
    return block, rod, ends, gaps


def detected(names, placements):
    return Sample(names, placements, pair_scene(names).detect(placements), np.full(len(placements), np.nan))


@pytest.mark.parametrize("skew", [0.0, 1e-7, 5e-5])
@pytest.mark.parametrize("names", [("box", "cylinder"), ("capsule", "box"), ("cylinder", "cube"), ("capsule", "cube")])
def test_a_side_on_an_edge_touches_at_both_ends(names, skew):
    rng, block = np.random.default_rng(4), next(n for n in names if n in ("box", "cube"))
    kind = next(n for n in names if n != block)
    cases = [on_an_edge(block, kind, rng, skew) for _ in range(COUNT)]
    ordered = names[0] == block
    placements = [Placement("edge", *((a, b) if ordered else (b, a))) for a, b, _, _ in cases]
    s = detected(names, placements)
    on, points = s.rows.active, s.rows.point_a if ordered else s.rows.point_b
    for k, (_, _, ends, gaps) in enumerate(cases):
        assert on[k].sum() >= 2, (k, s.rows.gap[k])
        for y, gap in zip(ends, gaps, strict=True):
            near = np.abs(np.where(on[k], points[k, :, 1] - y, np.inf)).argmin()
            assert abs(points[k, near, 1] - y) < 1e-6 + 2 * skew
            assert abs(s.rows.gap[k, near] - gap) < EXACT + skew**3, (k, skew)
    _on_surfaces(s, placements, skew)


@pytest.mark.parametrize("names", [("cylinder", "cylinder"), ("capsule", "cylinder")])
@pytest.mark.parametrize("skew", [0.0, 5e-5])
def test_sides_touch_along_their_common_stretch(names, skew):
    rng, placements, ends = np.random.default_rng(5), [], []
    for _ in range(COUNT):
        (r, h), (r2, h2) = rng.uniform(0.2, 0.6, (2, 2))
        way = rng.uniform(-0.9, 0.9) * (h + h2)
        turn = Rotation.from_rotvec([skew, 0, 0])
        first = solid(names[0], (r, h, 0), (0, 0, 0), Rotation.identity())
        placements.append(Placement("side", first, solid(names[1], (r2, h2, 0), (r + r2, 0, way), turn)))
        reach = h2 * np.cos(skew)
        ends.append([max(-h, way - reach), min(h, way + reach)])
    s = detected(names, placements)
    on = s.rows.active
    for k, (low, high) in enumerate(ends):
        z = s.rows.point_a[k, on[k], 2]
        np.testing.assert_allclose([z.min(), z.max()], [low, high], rtol=0, atol=1e-9 + 2 * skew)
    assert np.where(on, s.rows.gap, 0).max() < 1e-9 + skew**2 * 2
    _on_surfaces(s, placements, skew)


def _on_surfaces(s, placements, skew):
    """A point at the end of a skew side may be a little beyond its rim, and the closest gap is exact to 5e-9."""
    on, within = s.rows.active, EXACT + 1e-3 * skew
    for side, points in (("a", s.rows.point_a), ("b", s.rows.point_b)):
        off = np.stack([residual(getattr(p, side), x) for p, x in zip(placements, points, strict=True)])
        s.demand(f"a point is off {side}", np.where(on, abs(off), 0.0).max(1), within, off=off)
    apart = s.rows.point_a - s.rows.point_b - np.where(on, s.rows.gap, 0.0)[..., None] * s.rows.normal
    s.demand("a - b is not gap normal", np.where(on, np.linalg.norm(apart, axis=-1), 0.0).max(1), 5 * EXACT)
    s.demand("another is closer", np.where(on, s.rows.gap[:, :1] - s.rows.gap, 0.0).max(1), EXACT)


def test_lines_that_cross_touch_at_the_crossing():
    """Their ends would touch only after a turn: steps need not look for that."""
    rng = np.random.default_rng(6)
    cases = [on_an_edge("box", "cylinder", rng, 0.01) for _ in range(COUNT)]
    s = detected(("box", "cylinder"), [Placement("crossing", a, b) for a, b, _, _ in cases])
    np.testing.assert_array_equal(s.rows.active.sum(1), 1)


def test_a_capsule_on_the_flat_of_a_cylinder_lies_on_two_points():
    turn = Rotation.from_euler("y", 90, degrees=True)
    capsule = solid("capsule", (0.1, 0.3, 0), (0.1, 0.05, 0.5), turn)
    table = solid("cylinder", (0.8, 0.4, 0), (0, 0, 0), Rotation.identity())
    s = detected(("capsule", "cylinder"), [Placement("flat", capsule, table)])
    touching = np.sort(s.rows.point_a[0, s.rows.active[0] & (abs(s.rows.gap[0]) < 1e-9), 0])
    np.testing.assert_allclose(touching[[0, -1]], [-0.2, 0.4], atol=1e-6)
