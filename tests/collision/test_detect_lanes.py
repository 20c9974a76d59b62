"""detect over batches and under jax's transformations: lanes are alone, whatever is batched."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import carom
from carom.engine.results import NOT_FINITE, OK
from carom.tests.collision.small_scenes import EXACT, anyhow, heap, lane, rows_by_pair
from carom.tests.oracles.programs import equations

LANES = 6
STEP = 1e-6  # of finite differences [m]: their own error is STEP^2 apart from rounding, 1e-16 / STEP
DIFFERENCES = 1e-7
KINK = 1e-4  # differences to either side that are farther apart than this straddle a change of feature


@pytest.fixture(scope="module")
def rng():
    return np.random.default_rng(20261121)


@pytest.fixture(scope="module")
def placed(rng):
    q = anyhow(rng, LANES)
    return q, carom.detect(heap(), q)


@pytest.fixture(scope="module")
def single():
    """One lane of the heap, compiled once."""
    return jax.jit(lambda model, q: carom.detect(model, q))


def assert_same(got, want):
    """Bit for bit, shapes and types too."""
    for field, x, y in zip(want._fields, got, want, strict=True):
        assert jnp.shape(x) == jnp.shape(y), field
        assert x.dtype == y.dtype, field
        np.testing.assert_array_equal(x, y, err_msg=field)


def assert_alike(got, want, tolerance=EXACT):
    """To rounding: another program may contract other products and sums."""
    for field, x, y in zip(want._fields, got, want, strict=True):
        assert jnp.shape(x) == jnp.shape(y), field
        np.testing.assert_allclose(x, y, atol=tolerance, rtol=tolerance, err_msg=field)


# -- batches ---------------------------------------------------------------------------------------------------------


def test_one_lane_is_lane_k_of_a_batch(placed, single):
    """To rounding only: a batch of one is another program, in scalars where longer batches are vectors."""
    q, near = placed
    for k in range(LANES):
        assert_alike(single(heap(), q[k]), lane(near, k))


def test_a_lane_does_not_depend_on_the_others(placed):
    q, near = placed
    turned = carom.detect(heap(), q[::-1])
    assert_same(lane(turned, slice(None, None, -1)), lane(near, slice(None)))


def test_batches_nest(placed):
    q, near = placed
    nested = carom.detect(heap(), q.reshape(2, 3, -1))
    assert nested.normal.shape == (2, 3, near.gap.shape[1], 3)
    assert nested.code.shape == nested.needed.shape == (2, 3)
    assert_same(jax.tree.map(lambda x: x.reshape(LANES, *x.shape[2:]), nested), near)


def test_vmap_is_a_batch(placed):
    q, near = placed
    assert_alike(jax.vmap(lambda q: carom.detect(heap(), q))(q), near)


def test_scan_is_a_batch(placed):
    q, near = placed
    _, scanned = jax.lax.scan(lambda none, q: (none, carom.detect(heap(), q)), None, q)
    assert_alike(scanned, near)


def test_parameters_may_differ_by_lane(rng, placed, single):
    q, near = placed
    model = heap()
    size = model.shape_size * rng.uniform(0.5, 1.5, (LANES, 1, 1))
    position = model.shape_position + 0.1 * rng.normal(size=(LANES, *model.shape_position.shape))
    every = carom.detect(model.replace(shape_size=size, shape_position=position), q)
    for k in range(LANES):
        assert_alike(lane(every, k), single(model.replace(shape_size=size[k], shape_position=position[k]), q[k]))
    # and alone they make the batch
    of_one = carom.detect(model.replace(shape_size=size, shape_position=position), q[0])
    assert of_one.gap.shape == near.gap.shape
    assert len(np.unique(np.asarray(of_one.gap)[:, 0])) == LANES


def test_corners_may_differ_by_lane(rng):
    b = carom.SceneBuilder()
    b.add_plane()
    b.add_body("stone", [carom.ConvexHull(rng.normal(size=(9, 3)))])
    model, _ = carom.compile_scene(b.build())
    points = model.points * rng.uniform(0.5, 1.5, (LANES, 1, 3))  # stretched: their faces stay faces
    q = anyhow(rng, LANES, bodies=1)
    near = carom.detect(model.replace(points=points), q)
    turn = Rotation.from_quat(q[:, 3:], scalar_first=True).as_matrix()
    lowest = (np.einsum("lij,lpj->lpi", turn, points)[..., 2] + np.asarray(q)[:, None, 2]).min(1)
    np.testing.assert_allclose(near.gap[:, 0], lowest, atol=EXACT)


# -- what is broken stays where it is --------------------------------------------------------------------------------


def test_a_lane_that_is_not_finite_disturbs_no_other(placed):
    q, near = placed
    broken = carom.detect(heap(), q.at[2, 7:14].set(jnp.nan))
    others = np.delete(np.arange(LANES), 2)
    assert_same(lane(broken, others), lane(near, others))
    np.testing.assert_array_equal(broken.code, np.where(np.arange(LANES) == 2, NOT_FINITE, OK))


@pytest.mark.parametrize("what", ["place", "turn", "size"])
def test_a_shape_that_is_not_finite_disturbs_no_other_pair(placed, what):
    q, near = placed
    t = heap().topology
    shape = t.shape_links.index(1)
    model = heap().replace(shape_size=jnp.tile(heap().shape_size, (LANES, 1, 1)))
    if what == "size":
        model = replace(model, shape_size=model.shape_size.at[2, shape].set(jnp.nan))  # which `model.replace` refuses
        broken = carom.detect(model, q)
    else:
        broken = carom.detect(model, q.at[2, 7 if what == "place" else 11].set(jnp.nan))
    assert broken.code[2] == NOT_FINITE
    got, want = lane(broken, 2), lane(near, 2)
    assert all(np.isfinite(x).all() for x in (got.normal, got.point_a, got.point_b))
    whole = {pair for pair, shapes in enumerate(t.pairs) if shape not in shapes}
    assert rows_by_pair(got).keys() == whole
    for pair, rows in rows_by_pair(got).items():
        assert rows == rows_by_pair(want)[pair]
        for x, y in zip(got[2:6], want[2:6], strict=True):
            np.testing.assert_allclose(x[rows], y[rows], atol=EXACT)


# -- single precision ------------------------------------------------------------------------------------------------


def test_single_precision_stays_single():
    """No double arithmetic in the program of a scene in single precision: jax would go on with it silently."""
    b = carom.SceneBuilder()
    b.add_plane()
    shapes = (carom.Sphere(0.1), carom.Capsule(0.1, 0.2), carom.Box((0.1, 0.2, 0.3)), carom.Cylinder(0.1, 0.2))
    for k, shape in enumerate(shapes):
        b.add_body(f"body {k}", [shape])
    shown, state = carom.compile_scene(b.build(), dtype=jnp.float32)
    for model, q, max_pairs in ((shown, state.q, None), (heap(dtype=jnp.float32), jnp.zeros(28, jnp.float32), 1)):
        program = jax.make_jaxpr(lambda m, q, few=max_pairs: carom.detect(m, q, margin=0.1, max_pairs=few))(model, q)
        assert {x.dtype for x in program.out_avals[2:6]} == {np.dtype(np.float32)}
        made = ((eqn, x.aval) for eqn in equations(program.jaxpr) for x in eqn.outvars)
        # Python's own numbers are double until they meet an array: weak, and folded by the compiler
        double = {str(eqn) for eqn, x in made if getattr(x, "dtype", None) == np.float64 and not x.weak_type}
        assert not double


# -- inside other programs -------------------------------------------------------------------------------------------


def test_inside_a_while_loop():
    b = carom.SceneBuilder()
    b.add_plane(normal=(1, 0, 1))
    b.add_body("ball", [carom.Sphere(0.1)], position=(0, 0, 5))
    model, state = carom.compile_scene(b.build())

    @jax.jit
    def lowered(q):
        """Straight down by the gap until none is left: each time by 1/sqrt(2) of the way."""

        def gap(carry):
            return carry[1].gap[0]

        def lower(carry):
            q = carry[0].at[2].add(-gap(carry))
            return q, carom.detect(model, q)

        return jax.lax.while_loop(lambda carry: gap(carry) > 1e-9, lower, (q, carom.detect(model, q)))

    q, near = lowered(state.q)
    assert q[2] == pytest.approx(0.1 * np.sqrt(2), abs=1e-8)
    assert near.code == OK


def _first_rows(near):
    """(rows,) where a pair's first rows stand, the same in all lanes of a scene whose pairs are all looked at."""
    return np.array([rows[0] for rows in rows_by_pair(lane(near, 0)).values()])


def _tangents(rng, q):
    """Random dq like q, without what would stretch a quaternion: gaps are defined for unit ones."""
    dq = rng.normal(size=q.shape)
    for k in range(3, q.shape[-1], 7):
        turn = np.asarray(q[..., k : k + 4])
        dq[..., k : k + 4] -= (dq[..., k : k + 4] * turn).sum(-1, keepdims=True) * turn
    return jnp.asarray(dq)


@pytest.mark.slow
def test_derivatives_are_finite_differences(rng, placed):
    q, near = placed
    first = _first_rows(near)
    assert len(first) == len(heap().topology.pairs)
    dq = _tangents(rng, q)

    def rows(q):
        near = carom.detect(heap(), q)
        return near.gap[:, first], near.normal[:, first], near.point_a[:, first], near.point_b[:, first]

    slopes = jax.jit(lambda q: jax.jvp(rows, (q,), (dq,)))
    (low, at, high), (_, got, _) = zip(*(slopes(q + k * STEP * dq) for k in (-1, 0, 1)), strict=True)
    # rows of spheres and planes: everything; gaps: of all pairs
    round_pairs = [k for k, pair in enumerate(np.array(near.pair)[0, first]) if _is_round(pair)]
    assert 0 < len(round_pairs) < len(first)
    for x, y, z, slope, some in zip(low, at, high, got, (slice(None), *[round_pairs] * 3), strict=True):
        before, after = (np.asarray(b - a)[:, some] / STEP for a, b in ((x, y), (y, z)))
        smooth = abs(after - before) < KINK
        assert smooth.mean() > 0.9
        assert np.isfinite(slope).all()
        error = abs(np.asarray(slope)[:, some] - (before + after) / 2)
        assert (error - abs(after - before))[smooth].max() < DIFFERENCES
    # backwards: the same numbers, summed
    weights = jnp.asarray(rng.normal(size=got[0].shape))
    backward = jax.jit(jax.grad(lambda q: (rows(q)[0] * weights).sum()))(q)
    assert np.isfinite(backward).all()
    assert float((backward * dq).sum()) == pytest.approx(float((weights * got[0]).sum()), rel=1e-9)


def _is_round(pair):
    kinds = {heap().topology.shape_kinds[shape] for shape in heap().topology.pairs[pair]}
    return kinds <= {"plane", "sphere"}


def test_gradients_are_finite_where_rows_are_left_out(placed):
    q, _ = placed

    def depth(q):
        near = carom.detect(heap(), q, margin=0.0)
        return jnp.where(near.active, near.gap, 0.0).sum()

    slope = jax.jit(jax.grad(depth))(q.at[0, 7:10].set(q[0, 14:17]))  # and where two spheres are nearly concentric
    assert np.isfinite(slope).all()
    assert (slope != 0).any()
