"""detect, the entry: which rows there are, what the options do, and what is refused."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.engine.results import NOT_FINITE, OK, PAIRS_FULL
from carom.tests.collision import small_scenes
from carom.tests.collision.small_scenes import anyhow, assert_well_formed, first_gaps, heap, lane, rows_by_pair

LANES = 24
EXACT = small_scenes.EXACT
# FCL's own, of shapes of size 0.3 m: 1e-6 apart; the search for the way out of an overlap is coarser
FCL_APART, FCL_DEEP = 1e-6, 1e-4
OUTSIDE = 1e-9  # bounding spheres of spheres: where rounding decides whether they meet, none of the samples is


@pytest.fixture(scope="module")
def rng():
    return np.random.default_rng(20261120)


@pytest.fixture(scope="module")
def placed(rng):
    """Coordinates of the heap, and every row of every lane."""
    q = anyhow(rng, LANES)
    return q, carom.detect(heap(), q)


# -- rows ------------------------------------------------------------------------------------------------------------


def test_rows_are_what_proximities_says(placed):
    q, every = placed
    near = carom.detect(heap(), q, margin=0.1)
    for k in range(LANES):
        assert_well_formed(lane(every, k), heap(), q[k])
        assert_well_formed(lane(near, k), heap(), q[k])
    assert (np.asarray(near.gap)[np.asarray(near.active)] < 0).any()
    assert (np.asarray(near.gap)[np.asarray(near.active)] > 0).any()
    assert not near.active.all()


def test_every_pair_has_the_oracles_gap(placed):
    q, near = placed
    for k in range(LANES):
        want = small_scenes.true_gaps(heap(), q[k])
        np.testing.assert_allclose(first_gaps(lane(near, k), len(want)), want, atol=EXACT)


def test_a_is_the_pairs_first_shape_whichever_kind_was_added_first():
    t = heap().topology
    assert t.shape_kinds == ("plane", "box", "sphere", "sphere", "box")
    assert {(1, 2), (2, 4)} <= set(t.pairs)  # box and sphere, sphere and box
    apart = np.array([[x, 0, 1.0, 1, 0, 0, 0] for x in (0.0, 1.0, 2.0, 3.0)]).reshape(-1)
    near = carom.detect(heap(), jnp.asarray(apart))
    for pair, rows in rows_by_pair(lane(near, ())).items():
        a, b = t.pairs[pair]
        want = (0, 0, -1.0) if a == 0 else (np.sign(a - b), 0, 0)
        assert near.normal[rows[0]] @ np.array(want) > 0.9, (a, b)  # from B to A


def test_the_order_of_bodies_is_the_order_of_rows_only(placed):
    q, near = placed
    names = ("blue", "last", "first", "red")
    where = [list(small_scenes.SHAPES).index(name) for name in names]
    model = heap(names)
    shuffled = carom.detect(model, q.reshape(LANES, -1, 7)[:, jnp.array(where)].reshape(LANES, -1))
    number = [0, *(1 + i for i in where)]  # of each of the new scene's shapes in the old one
    for k in range(LANES):
        old, new = lane(near, k), lane(shuffled, k)
        by_shapes = {heap().topology.pairs[pair]: rows for pair, rows in rows_by_pair(old).items()}
        for pair, rows in rows_by_pair(new).items():
            a, b = (number[shape] for shape in model.topology.pairs[pair])
            turned = a > b
            like = by_shapes.pop((b, a) if turned else (a, b))
            assert len(like) == len(rows)
            np.testing.assert_allclose(new.gap[rows[0]], old.gap[like[0]], atol=EXACT)
            sign = -1 if turned else 1
            np.testing.assert_allclose(new.normal[rows[0]], sign * old.normal[like[0]], atol=1e-9)
        assert not by_shapes


def test_a_plane_added_last_is_shape_a():
    b = carom.SceneBuilder()
    b.add_body("ball", [carom.Sphere(0.1)], position=(0, 0, 1))
    b.add_plane()
    model, state = carom.compile_scene(b.build())
    near = carom.detect(model, state.q)
    np.testing.assert_allclose((near.gap[0], *near.normal[0]), (0.9, 0, 0, -1), atol=EXACT)


# -- which pairs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["device", "fcl"])
def test_what_may_not_touch_is_never_reported(backend):
    b = carom.SceneBuilder()
    for name, group, mask in (("a", 1, 1), ("b", 1, 1), ("c", 1, 1), ("ghost", 2, 2)):
        b.add_body(name, [carom.Sphere(0.1, group=group, mask=mask), carom.Sphere(0.2, group=group, mask=mask)])
    b.exclude("a", "b")
    model, state = carom.compile_scene(b.build())
    t = model.topology
    q = np.asarray(state.q).reshape(-1, 7) + np.arange(4)[:, None] * np.array([0.01, 0, 0, 0, 0, 0, 0])
    near = carom.detect(model, jnp.asarray(q.reshape(-1)), backend=backend)  # all in one heap
    met = {frozenset(t.shape_links[shape] for shape in t.pairs[pair]) for pair in rows_by_pair(lane(near, ()))}
    assert {frozenset(t.names[i] for i in links) for links in met} == {frozenset("ac"), frozenset("bc")}
    assert len(t.pairs) == 8


@pytest.mark.parametrize("backend", ["device", "fcl"])
@pytest.mark.parametrize("shapes", [(), (carom.Sphere(0.1),)], ids=["no shape", "one shape"])
def test_a_scene_without_pairs_has_no_rows(backend, shapes):
    b = carom.SceneBuilder()
    b.add_body("alone", shapes, mass=1.0, inertia=(1, 1, 1))
    model, state = carom.compile_scene(b.build())
    near = carom.detect(model, jnp.tile(state.q, (3, 1)), backend=backend)
    assert [x.shape for x in near] == [(3, 0)] * 3 + [(3, 0, 3)] * 3 + [(3,)] * 2
    assert (near.code == OK).all()


# -- options ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("margin", [0.0, 0.15, -0.05, np.inf])
def test_margin_leaves_out_what_is_farther(placed, margin):
    q, every = placed
    near = carom.detect(heap(), q, margin=margin)
    on = np.asarray(every.gap) <= margin
    on &= np.asarray(every.active)
    np.testing.assert_array_equal(near.active, on)
    assert on.any()
    for got, all_of_it, blank in zip(near[:6], every[:6], (-1, False, np.inf, 0, 0, 0), strict=True):
        kept = on[..., None] if got.ndim == 3 else on
        np.testing.assert_array_equal(got, np.where(kept, all_of_it, blank))


def test_margin_may_be_traced_and_differ_by_lane(placed):
    q, every = placed
    margins = jnp.linspace(-0.1, 0.5, LANES)
    near = jax.jit(lambda margin: carom.detect(heap(), q, margin=margin))(margins)
    on = np.asarray(every.active) & (np.asarray(every.gap) <= np.asarray(margins)[:, None])
    np.testing.assert_array_equal(near.active, on)


@pytest.mark.parametrize("backend", ["Device", "", "mujoco", None])
def test_an_unknown_backend_is_named(backend):
    text = re.escape(f'backend is {backend!r}; it must be "device" or "fcl"')
    with pytest.raises(ValueError, match=text):
        carom.detect(heap(), jnp.zeros(28), backend=backend)


def test_coordinates_of_another_scene_are_refused():
    with pytest.raises(ValueError, match=re.escape("q has shape (27,); this model needs (..., 28)")):
        carom.detect(heap(), jnp.zeros(27))


def test_a_mesh_that_is_no_hull_is_fcls():
    box = np.array([(x, y, z) for x in (-0.1, 0.1) for y in (-0.1, 0.1) for z in (-0.1, 0.1)])
    faces = [(0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1), (2, 3, 7), (2, 7, 6), (0, 2, 6),
             (0, 6, 4), (1, 5, 7), (1, 7, 3)]  # fmt: skip
    b = carom.SceneBuilder()
    b.add_body("ball", [carom.Sphere(0.1)], position=(0.5, 0, 0))
    b.add_body("mesh", [carom.Mesh((box, faces), convex="none")])
    model, state = carom.compile_scene(b.build())
    message = 'no kernel for a sphere and a mesh: use backend="fcl", or Mesh(..., convex="hull" or "pieces")'
    with pytest.raises(ValueError, match=re.escape(message)):
        carom.detect(model, state.q)
    near = carom.detect(model, state.q, backend="fcl")
    assert near.gap[0] == pytest.approx(0.3, abs=FCL_APART)


# -- room for near pairs ---------------------------------------------------------------------------------------------

SPHERES = 50  # with the plane 1275 pairs: more than are all looked at


@pytest.fixture(scope="module")
def crowd(rng):
    """Spheres of many sizes above a plane, coordinates of some lanes, and all gaps (lanes, pairs) by closed form."""
    radius = rng.uniform(0.03, 0.15, SPHERES)
    b = carom.SceneBuilder()
    b.add_plane()
    for k, r in enumerate(radius):
        b.add_body(f"ball {k}", [carom.Sphere(r)])
    model, _ = carom.compile_scene(b.build())
    q = anyhow(rng, 6, bodies=SPHERES, spread=0.4)
    center, pairs = np.asarray(q).reshape(6, SPHERES, 7)[..., :3], np.array(model.topology.pairs)
    a, b = pairs.T - 1
    apart = np.linalg.norm(center[:, a] - center[:, b], axis=-1) - radius[a] - radius[b]
    gaps = np.where(a < 0, center[:, b, 2] - radius[b], apart)
    assert len(pairs) > 1024
    assert abs(gaps).min() > OUTSIDE
    return model, q, gaps, pairs


@pytest.mark.parametrize("margin", [None, 0.05])
def test_a_large_scene_has_the_near_pairs_of_brute_force(crowd, margin):
    model, q, gaps, pairs = crowd
    near = carom.detect(model, q, margin=margin)
    assert (near.code == OK).all()
    for k, want in enumerate(gaps):
        one = lane(near, k)
        got = first_gaps(one, len(pairs))
        some = want <= (0.0 if margin is None else margin)
        assert len(one.gap) < len(pairs)
        np.testing.assert_allclose(got[some], want[some], atol=EXACT)
        # without a margin the plane's pairs, few enough, are all told
        told = some | (pairs[:, 0] == 0) if margin is None else some
        np.testing.assert_array_equal(np.isfinite(got), told)


def test_max_pairs_says_how_many_it_needs_and_they_are_enough(crowd):
    model, q, gaps, pairs = crowd
    few = 8
    near = carom.detect(model, q, margin=0.0, max_pairs=few)
    in_group = np.stack([(gaps <= 0)[:, pairs[:, 0] == 0].sum(1), (gaps <= 0)[:, pairs[:, 0] > 0].sum(1)], 1)
    needed = in_group.max(1)
    full = needed > few
    assert full.any()
    np.testing.assert_array_equal(near.code, np.where(full, PAIRS_FULL, OK))
    np.testing.assert_array_equal(np.asarray(near.needed)[full], needed[full])
    assert (np.asarray(near.needed)[~full] == 0).all()
    for k in np.flatnonzero(full):  # what is there is right
        got = first_gaps(lane(near, k), len(pairs))
        on = np.isfinite(got)
        np.testing.assert_allclose(got[on], gaps[k][on], atol=EXACT)
    enough = carom.detect(model, q, margin=0.0, max_pairs=int(near.needed.max()))
    assert (enough.code == OK).all()
    np.testing.assert_array_equal(np.asarray(enough.active).sum(1), (gaps <= 0).sum(1))


@pytest.mark.parametrize("max_pairs", [0, -1])
def test_room_for_no_pair_is_refused(max_pairs):
    with pytest.raises(ValueError, match=f"max_pairs is {max_pairs}; it must be positive"):
        carom.detect(heap(), jnp.zeros(28), max_pairs=max_pairs)


def test_candidates_found_by_the_lane_meet_like_all_pairs_do(placed):
    q, every = placed
    near = carom.detect(heap(), q, margin=0.0, max_pairs=1)  # of each group one: another pair in each lane
    assert near.gap.shape[1] < every.gap.shape[1]
    fine = np.asarray(near.code) == OK
    assert 0 < fine.sum() < LANES
    seen = set()
    for k in range(LANES):
        all_of_it, some = lane(every, k), lane(near, k)
        assert_well_formed(some, heap(), q[k])
        got = rows_by_pair(some)
        seen |= got.keys()
        touching = {pair for pair, rows in rows_by_pair(all_of_it).items() if all_of_it.gap[rows[0]] <= 0}
        assert got.keys() == touching if fine[k] else got.keys() <= touching
        for pair, rows in got.items():
            want = all_of_it.gap[rows_by_pair(all_of_it)[pair]]
            np.testing.assert_allclose(some.gap[rows], want[want <= 0], atol=EXACT)
    assert len(seen) > 4  # not the same few in all lanes


# -- the other detector ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_both_detectors_agree_on_an_articulated_scene(rng):
    model, state = carom.compile_scene(carom.load("humanoid"))
    lanes = 4
    v = rng.normal(size=(lanes, model.topology.nv))
    q = carom.integrate_q(model, jnp.tile(state.q, (lanes, 1)), v, 1.0)  # turned and bent anyhow
    q = q.at[:, 2].set(0.1)  # waist deep in the ground
    device, fcl = carom.detect(model, q), carom.detect(model, q, backend="fcl")
    pairs = len(model.topology.pairs)
    for k in range(lanes):
        got, want = (first_gaps(lane(near, k), pairs) for near in (device, fcl))
        assert np.isfinite(want).all()
        assert (want < 0).any()
        assert abs(got - want)[want > 0].max() < FCL_APART
        assert abs(got - want).max() < FCL_DEEP
        assert_well_formed(lane(device, k), model, q[k])


def test_what_is_not_finite_is_coded_by_both(placed):
    q, _ = placed
    q = q.at[3, 0].set(jnp.nan).at[5, 16].set(jnp.inf)
    for backend in ("device", "fcl"):
        code = np.asarray(carom.detect(heap(), q, backend=backend).code)
        assert code.dtype == np.int32
        np.testing.assert_array_equal(np.flatnonzero(code == NOT_FINITE), [3, 5])
