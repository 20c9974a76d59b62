"""Heightfields: spheres over grounds with exact answers, over random ones, across cells, beside and far above them.

Nearer than half a cell the gap is exact; farther away it is a lower bound, and half a cell at least.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.tests.oracles.minkowski import Solid, columns_gap

GRID, CELL = (9, 8), (0.5, 0.4)
RADIUS = 0.3  # what the window of cells was chosen for
SEEN = min(CELL) / 2  # [m] up to which a gap is exact
EXACT = 1e-12
FCL = 1e-6  # FCL's tolerance at sizes of 4 m
LANES = 128  # placements a call, so that there is one program
UPRIGHT = (1.0, 0.0, 0.0, 0.0)
UP = np.array([0.0, 0.0, 1.0])
X, Y = ((np.arange(n) - (n - 1) / 2) * d for n, d in zip(GRID, CELL, strict=True))
EDGE = np.array([X[-1], Y[-1]])


@pytest.fixture
def rng():
    return np.random.default_rng(20261122)


BALL = carom.Sphere(RADIUS)


@functools.cache
def over_ground(*shapes, grid=GRID):
    """Bodies over a heightfield, which they alone may touch."""
    b = carom.SceneBuilder()
    b.add_static("ground", [carom.Heightfield(np.zeros(grid), CELL)])
    for k, shape in enumerate(shapes):
        b.add_body(f"body {k}", [shape])
        for other in range(k):
            b.exclude(f"body {k}", f"body {other}")
    return carom.compile_scene(b.build())[0]


@functools.cache
def _gaps():
    return jax.jit(lambda model, q: carom.detect(model, q).gap[..., 0])


def with_heights(model, heights):
    """heights (..., nx, ny) in place of its own."""
    flat = heights.reshape(*heights.shape[:-2], -1)
    points = np.broadcast_to(np.asarray(model.points), (*flat.shape, 3)).copy()
    points[..., 2] = flat
    return model.replace(points=jnp.asarray(points))


def gaps(heights, centers, radius=RADIUS, model=None):
    """Gaps (n,) of spheres at centers (n, 3) [m] over heights (nx, ny) or (n, nx, ny), all of one radius [m]."""
    model, found = over_ground(BALL) if model is None else model, []
    heights = np.broadcast_to(heights, (len(centers), *heights.shape[-2:]))
    for start in range(0, len(centers), LANES):
        rows = np.minimum(np.arange(start, start + LANES), len(centers) - 1)  # the last one over and over
        own = with_heights(model, heights[rows])
        own = own.replace(shape_size=own.shape_size.at[1, 0].set(radius))
        q = np.concatenate([centers[rows], np.tile(UPRIGHT, (LANES, 1))], 1)
        found.append(np.asarray(_gaps()(own, jnp.asarray(q)))[: len(centers) - start])
    return np.concatenate(found)


def true_gap(heights, center, radius=RADIUS):
    """By the oracle [m]; while apart, and in overlaps that the centre is not part of."""
    nx, ny = heights.shape
    x, y = ((np.arange(n) - (n - 1) / 2) * d for n, d in zip((nx, ny), CELL, strict=True))
    points = np.stack([*np.meshgrid(x, y, indexing="ij"), heights], -1).reshape(-1, 3)
    ground = Solid("heightfield", np.array([*CELL, nx]), points, np.zeros(3), np.array(UPRIGHT))
    ball = Solid("sphere", np.array([radius, 0, 0]), np.zeros((0, 3)), np.asarray(center), np.array(UPRIGHT))
    return columns_gap(ground, ball, below=50.0)


def assert_bounded(got, want):
    """Exact where it is near, and a lower bound elsewhere that says that half a cell is free."""
    near = want <= SEEN
    assert 0.1 < near.mean() < 1.0
    np.testing.assert_allclose(got[near], want[near], atol=EXACT)
    assert (got[~near] <= want[~near] + EXACT).all()
    assert (got[~near] >= SEEN - EXACT).all()


def inside(rng, count, low, high):
    """Centres (count, 3) over the middle of the grid, from low to high above zero [m]."""
    return np.concatenate([rng.uniform(-0.5, 0.5, (count, 2)) * EDGE, rng.uniform(low, high, (count, 1))], 1)


def test_a_ball_has_a_row_for_each_side_it_may_touch():
    """One on flat ground, also where it lies on the edges of cells; two in a valley; one beside a ridge."""
    model, steep = over_ground(BALL), np.tile(abs(X)[:, None], GRID[1])
    on_edge, in_valley = np.array([X[4], Y[3]]), np.array([0.01, 0.1])

    def normals(heights, place, z):
        q = jnp.array([*place, z, *UPRIGHT])
        near = carom.detect(with_heights(model, heights), q)
        return np.asarray(near.normal)[np.asarray(near.gap) < 0.05]

    np.testing.assert_allclose(normals(np.zeros(GRID), on_edge, RADIUS), [-UP], atol=EXACT)
    np.testing.assert_allclose(normals(np.zeros(GRID), (on_edge[0] + 1e-5, 0.1), RADIUS + 1e-3), [-UP], atol=EXACT)
    both = normals(steep, in_valley, RADIUS * np.sqrt(2))
    np.testing.assert_allclose(both, np.array([[1, 0, -1], [-1, 0, -1]]) / np.sqrt(2), atol=EXACT)
    np.testing.assert_allclose(
        normals(-steep, (0.3, 0.1), RADIUS * np.sqrt(2) - 0.3), [np.array([-1, 0, -1]) / np.sqrt(2)]
    )


# -- closed forms ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_flat_ground(rng):
    centers = inside(rng, LANES, 0.41, 1.9)
    assert_bounded(gaps(np.full(GRID, 0.4), centers), centers[:, 2] - 0.4 - RADIUS)


@pytest.mark.parametrize("slope", [(0.5, 0.0), (-0.3, 0.8)])
def test_inclined_ground(rng, slope):
    heights = slope[0] * X[:, None] + slope[1] * Y
    up = np.array([-slope[0], -slope[1], 1.0]) / np.sqrt(1 + slope[0] ** 2 + slope[1] ** 2)
    centers = inside(rng, LANES, 0.0, 0.0)
    centers[:, 2] = centers[:, :2] @ slope
    apart = rng.uniform(0.01, 0.9, LANES)  # of the centre, along the normal
    assert_bounded(gaps(heights, centers + apart[:, None] * up), apart - RADIUS)


@pytest.mark.parametrize("steep", [0.4, 2.0])
def test_a_ridge_and_a_valley(rng, steep):
    up = np.array([steep, 1.0]) / np.hypot(steep, 1.0)  # of the ridge's right side, (x, z)
    centers = inside(rng, LANES, 0.0, 0.0)
    # around the ridge: towards its edge where neither side's normal reaches, else towards a side
    turn, apart = rng.uniform(-1.2, 1.2, LANES), rng.uniform(0.01, 0.8, LANES)
    centers[:, 0], centers[:, 2] = np.sin(turn) * apart, np.cos(turn) * apart
    over_side = abs(centers[:, 0]) * up[0] + centers[:, 2] * up[1]
    by_side = abs(centers[:, 0]) * up[1] > centers[:, 2] * up[0]
    want = np.where(by_side, over_side, apart) - RADIUS
    above = over_side > 0.01
    assert (by_side & above).any()
    assert (~by_side).any()
    assert_bounded(gaps(-steep * np.tile(abs(X)[:, None], GRID[1]), centers)[above], want[above])
    # in the valley both sides are near
    sides = rng.uniform(0.05, 0.8, LANES)
    centers[:, 2] = steep * abs(centers[:, 0]) + sides * np.hypot(1, steep)
    assert_bounded(gaps(steep * np.tile(abs(X)[:, None], GRID[1]), centers), sides - RADIUS)


# -- random ground ---------------------------------------------------------------------------------------------------


def rough(rng, count, size=0.4):
    return size * rng.normal(size=(count, *GRID))


def above(rng, heights):
    """A centre (3,) over each ground, from in contact to far above."""
    centers = inside(rng, len(heights), 0.0, 0.0)
    i, j = (np.searchsorted(axis, centers[:, k]) for k, axis in enumerate((X, Y)))
    k = np.arange(len(heights))
    corners = np.stack([heights[k, i - a, j - b] for a in (0, 1) for b in (0, 1)])
    centers[:, 2] = corners.max(0) + rng.uniform(0.0, 1.0, len(heights))  # over the cell, whatever its triangles
    return centers


def test_random_ground_against_fcl(rng):
    heights = rough(rng, 48)
    centers = above(rng, heights)
    got = gaps(heights, centers)
    q = jnp.asarray(np.concatenate([centers, np.tile(UPRIGHT, (48, 1))], 1))
    fcl = np.asarray(carom.detect(with_heights(over_ground(BALL), heights), q, backend="fcl").gap[:, 0])
    near = fcl <= SEEN
    assert (fcl < 0).any()
    assert 0.1 < near.mean() < 0.9
    assert abs(got - fcl)[near].max() < FCL
    assert (got - fcl)[~near].max() < FCL
    assert got[~near].min() > SEEN - EXACT


@pytest.mark.slow
def test_two_bodies_over_a_ground_of_each_lane(rng):
    heights = rough(rng, LANES)
    centers = above(rng, heights), above(rng, heights)
    turn = np.tile(UPRIGHT, (LANES, 1))
    q = jnp.asarray(np.concatenate([centers[0], turn, centers[1], turn], 1))
    model = over_ground(BALL, carom.Sphere(RADIUS, friction=0.1))
    near = carom.detect(with_heights(model, heights), q)
    for pair, c in enumerate(centers):
        first = np.argmax(np.asarray(near.pair) == pair, 1)
        got = np.take_along_axis(np.asarray(near.gap), first[:, None], 1)[:, 0]
        np.testing.assert_allclose(got, gaps(heights, c), atol=EXACT)


@pytest.mark.slow
@pytest.mark.parametrize(
    "shape", [carom.Capsule(0.15, 0.2), carom.Box((0.1, 0.2, 0.3)), carom.Cylinder(0.2, 0.2)], ids=lambda s: s.kind
)
def test_turned_bodies_against_fcl(rng, shape):
    heights = rough(rng, 200)
    turn = rng.normal(size=(200, 4))
    q = np.concatenate([above(rng, heights), turn / np.linalg.norm(turn, axis=1, keepdims=True)], 1)
    model = with_heights(over_ground(shape), heights)
    got, fcl = (np.asarray(carom.detect(model, jnp.asarray(q), backend=b).gap[:, 0]) for b in ("device", "fcl"))
    apart = fcl > 1e-3  # how deep a body is in one column is not how deep it is in the ground
    near = apart & (fcl <= SEEN)
    assert near.sum() > 10
    assert abs(got - fcl)[near].max() < 10 * FCL
    assert (got - fcl)[apart].max() < 10 * FCL


@pytest.mark.parametrize("slope", [0.0, 0.4])
def test_a_sweep_across_cells_has_no_jump(rng, slope):
    """Along any line the gap changes by no more than the motion: it is the distance, or as steady a bound."""
    ground, steps = rough(rng, 1, 0.15), 4 * LANES
    along = np.linspace(-1.4, 1.4, steps)[:, None]  # over some edges and beyond
    way = np.array([*EDGE, slope])
    track = along * way + 0.45 * UP
    got = gaps(ground, track)
    assert got.min() < 0 < SEEN < got.max()
    assert abs(np.diff(got)).max() <= np.linalg.norm(way) * (along[1] - along[0])[0] + EXACT


def test_a_spike_out_of_sight_is_reckoned_with(rng):
    """Beside spikes on low ground, where all that is near may be beyond the window."""
    heights = np.where(rng.uniform(size=(LANES, *GRID)) < 0.1, 2.0, -2.0)
    centers = inside(rng, LANES, -1.0, 1.0)
    want = np.array([true_gap(h, c) for h, c in zip(heights, centers, strict=True)])
    apart = want > 0  # how deep a ball is in one column is not how deep it is in the ground
    assert_bounded(gaps(heights, centers)[apart], want[apart])


def test_far_above_the_bound_grows_with_the_height():
    tall = np.zeros(GRID)
    tall[4, 4] = 0.7
    heights = np.array([1.5, 3.0, 10.0, 1000.0])
    got = gaps(tall, np.stack([np.full(4, 0.1), np.full(4, 0.1), heights], 1))
    assert (got >= heights - RADIUS - 0.7 - EXACT).all()  # above the highest vertex all is free
    assert (got <= heights - RADIUS + EXACT).all()


# -- beside, larger, enlarged ----------------------------------------------------------------------------------------


def test_beyond_the_edge(rng):
    count = 48
    heights = rough(rng, count, 0.2)
    side, out = rng.uniform(-1, 1, count), rng.uniform(0.0, 1.0, count) ** 2
    centers = np.stack([np.sign(side) * (EDGE[0] + 0.01 + out), side * EDGE[1], rng.uniform(-1, 0.8, count)], 1)
    centers[::2, :2] = centers[::2, 1::-1] * (EDGE / EDGE[::-1])  # past the other edges
    centers[::2, 1] = np.sign(centers[::2, 1]) * (EDGE[1] + 0.01 + out[::2])
    centers[::5, :2] = np.sign(centers[::5, :2]) * (EDGE + 0.01 + out[::5, None])  # past corners
    assert (abs(centers[:, :2]) > EDGE).any(1).all()
    want = np.array([true_gap(h, c) for h, c in zip(heights, centers, strict=True)])
    assert_bounded(gaps(heights, centers), want)


@pytest.mark.slow
def test_a_body_larger_than_the_grid(rng):
    grid, radius, count = (3, 3), 2.0, 24
    model = over_ground(carom.Sphere(radius), grid=grid)
    assert model.topology.shape_window[0] == (2, 2)  # all cells
    heights = 0.2 * rng.normal(size=(count, *grid))
    centers = rng.normal(size=(count, 3)) * (1, 1, 0.2) + 2.3 * UP
    want = np.array([true_gap(h, c, radius) for h, c in zip(heights, centers, strict=True)])
    assert want.min() < 0.1 < 0.5 < want.max()
    assert_bounded(gaps(heights, centers, radius, model), want)


@pytest.mark.parametrize("radius", [0.4, 0.9])
def test_a_body_that_outgrew_its_window_is_told_no_more_than_is_true(rng, radius):
    count = 32
    heights = rough(rng, count)
    centers = above(rng, heights) + radius * UP
    want = np.array([true_gap(h, c, radius) for h, c in zip(heights, centers, strict=True)])
    got = gaps(heights, centers, radius)
    assert (got <= want + EXACT).all()
    high = centers + 3.0 * UP  # above the highest vertex there is nothing to overlook
    clear = high[:, 2] - radius - heights.max((1, 2))
    assert (gaps(heights, high, radius) >= clear - EXACT).all()
