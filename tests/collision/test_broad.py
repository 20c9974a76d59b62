"""Broad phase against brute force: no near pair is lost, none is listed twice, room that lacks is reported."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from carom.collision.broad import ALL_PAIRS, candidates, default_capacity, pair_plan, plan_pairs
from carom.collision.culling.bitset import first_set
from carom.collision.culling.cells import near_in_cells
from carom.engine.algebra.vec3 import Vec3
from carom.engine.compaction import pack
from carom.engine.topology import Topology

WAYS = ["matrix", "cells"]


@functools.cache
def table(n, keep=1.0, seed=0):
    """Pairs (np, 2) of n shapes, some left out."""
    pairs = np.stack(np.triu_indices(n, 1), -1).astype(np.int32)
    return pairs[np.random.default_rng(seed).random(len(pairs)) < keep]


@functools.cache
def spheres(n, keep, way, max_pairs=None):
    """A plan of n moving spheres, and its pairs; max_pairs -1: one less than there are, so that the way is taken."""
    pairs = table(n, keep)
    room = len(pairs) - 1 if max_pairs == -1 else max_pairs
    return plan_pairs(("sphere",) * n, tuple(range(n)), pairs, room, way), pairs


search = jax.jit(candidates, static_argnums=0)


def find(p, center, radius, margin=0.0, up=None, dtype=None):
    """Candidates of shapes at center (ns, 3, *batch); z axes up (ns, 3, *batch)."""
    center, radius = jnp.asarray(center, dtype), jnp.asarray(radius, dtype)
    up = jnp.zeros_like(center) if up is None else jnp.asarray(up, dtype)
    axes = [Vec3(*(x[:, k] for k in range(3))) for x in (center, up)]
    return search(p, axes[0], radius, axes[1], jnp.asarray(margin, dtype))


def rows_of(p, found):
    """All candidates' rows of the pair table, one set for all groups; checks the lists' form on the way."""
    every = []
    for group, (row, needed) in zip(p.groups, found, strict=True):
        row = np.asarray(row)
        assert row.shape[0] == group.capacity
        assert (np.diff(row[row < group.n]) > 0).all(), "ascending, each once"
        assert (row[np.argmax(row == group.n) :] == group.n).all() if (row == group.n).any() else True
        assert ((row >= 0) & (row <= group.n)).all()
        _, _, pair = group.shapes_of(row)
        np.testing.assert_array_equal(np.asarray(pair), np.append(group.pair, -1)[row])
        assert (row < group.n).sum() == min(int(needed), group.capacity) or int(needed) > group.capacity
        every += group.pair[row[row < group.n]].tolist()
    assert len(every) == len(set(every))
    return set(every)


def brute(pairs, center, radius, margin=0.0):
    """Rows of the pairs whose spheres' gap is at most the margin, and those on the edge of it, where a rounding
    decides."""
    center, radius = np.asarray(center, float), np.asarray(radius, float)
    a, b = pairs.T
    gap = np.linalg.norm(center[a] - center[b], axis=-1) - radius[a] - radius[b] - margin
    edge = 1e-5 * (radius[a] + radius[b] + margin)  # the widening, 8 roundings in f32, is 1e-6
    return set(np.flatnonzero(gap <= 0).tolist()), set(np.flatnonzero(np.abs(gap) < edge).tolist())


N = 150


def scene(kind, rng):
    """Centres (N, 3) and radii (N,), with a few dozen to some hundreds of near pairs."""
    center, radius = rng.normal(size=(N, 3)), rng.uniform(0.05, 0.3, N)
    if kind == "clustered":
        center = rng.normal(size=(5, 3))[rng.integers(0, 5, N)] * 3 + 0.2 * rng.normal(size=(N, 3))
    elif kind == "identical":
        center, radius = rng.normal(size=(20, 3))[rng.integers(0, 20, N)], np.full(N, 0.1)
    elif kind == "forty at one point":
        center[:40], radius = center[0], np.full(N, 0.2)
    elif kind == "far":
        center = center + np.array([1e6, -1e6, 1e6])
    elif kind == "two ends of the world":
        center = center + rng.choice([-1e6, 0, 3e7], size=(N, 1))
    elif kind == "negative":
        center = center - 40.0
    elif kind == "lattice":  # neighbours touch exactly, and cells' borders lie between them
        center, radius = np.stack(np.meshgrid(*[np.arange(-3, 3)] * 3), -1).reshape(-1, 3)[:N] * 0.5, np.full(N, 0.25)
    elif kind == "line":  # much longer than the cells' period
        center = np.stack([np.arange(N) * 7.0 - 500, np.zeros(N), np.zeros(N)], -1) * 3
        center[1::2] = center[::2] + 0.1 * rng.normal(size=(N // 2, 3))
    elif kind == "points":
        center, radius = np.round(center, 1), np.full(N, 1e-6)
    elif kind == "one large":
        radius[7] = 30.0
    return center, radius


SCENES = [
    "heap", "clustered", "identical", "forty at one point", "far", "two ends of the world", "negative", "lattice",
    "line", "points", "one large",
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", SCENES)
def test_candidates_are_those_of_brute_force(kind, way, dtype):
    rng = np.random.default_rng(SCENES.index(kind))
    center, radius = (x.astype(dtype) for x in scene(kind, rng))
    p, pairs = spheres(N, 0.7, way, -1)
    assert [group.way for group in p.groups] == [way]
    for margin in (0.0, 0.05):
        want, edge = brute(pairs, center, radius, np.dtype(dtype).type(margin))
        found = find(p, center, radius, margin, dtype=dtype)
        got = rows_of(p, found)
        assert want - edge <= got <= want | edge
        assert int(found[0].needed) == len(got)
        assert got


@pytest.mark.parametrize("seed", range(20))
def test_cells_and_matrix_agree_to_the_pair(seed):
    rng = np.random.default_rng(100 + seed)
    n = 70
    size = rng.choice([0.01, 1.0, 100.0])
    center = (rng.uniform(-1, 1, (n, 3)) * rng.uniform(2, 5) + rng.normal(size=3) * rng.choice([0, 1e2, 1e5])) * size
    radius = rng.uniform(0, 1, n) * size
    got = [find(spheres(n, 1.0, way, -1)[0], center, radius, 0.1 * size, dtype="float32")[0] for way in WAYS]
    np.testing.assert_array_equal(got[0].needed, got[1].needed)
    np.testing.assert_array_equal(got[0].row, got[1].row)
    assert got[0].needed > 0


def test_all_three_ways_agree_in_what_is_near():
    center, radius = scene("heap", np.random.default_rng(3))
    every, pairs = spheres(N, 0.7, None, len(table(N, 0.7)))
    assert [group.way for group in every.groups] == ["every"]
    all_rows = rows_of(every, find(every, center, radius))
    assert all_rows == set(range(len(pairs)))
    want, edge = brute(pairs, center, radius)
    assert not edge
    for way in WAYS:
        p, _ = spheres(N, 0.7, way, -1)
        assert rows_of(p, find(p, center, radius)) == all_rows & want


@pytest.mark.parametrize("way", WAYS)
def test_a_list_too_short_says_how_long_it_must_be(way):
    rng = np.random.default_rng(4)
    n = 200
    center, radius = rng.normal(size=(n, 3)) * 2, np.full(n, 0.3)
    want, _ = brute(table(n, 0.9), center, radius)
    (short, _), (enough, _) = (spheres(n, 0.9, way, room) for room in (len(want) // 2, len(want)))
    found = find(short, center, radius)[0]
    assert int(found.needed) > short.groups[0].capacity
    if way == "matrix":
        assert int(found.needed) == len(want)
        assert found.row.tolist() == sorted(want)[: len(want) // 2]
    assert set(found.row.tolist()) <= want | {short.groups[0].n}
    assert rows_of(enough, find(enough, center, radius)) == want
    again, _ = spheres(n, 0.9, way, int(found.needed))
    assert rows_of(again, find(again, center, radius)) == want


def test_a_cell_too_full_says_how_much_room_would_do():
    n = 300
    center = np.random.default_rng(6).normal(size=(n, 3)) * 100.0
    center[:40] = (
        0.05 + 1e-4 * center[:40]
    )  # forty points in one cell: 780 pairs, which would fit were it not for the cell
    radius = np.full(n, 0.2)
    p, pairs = spheres(n, 1.0, "cells", 2000)
    found = find(p, center, radius)[0]
    assert int(found.needed) == 40 * n
    again, _ = spheres(n, 1.0, "cells", int(found.needed))
    assert rows_of(again, find(again, center, radius)) == brute(pairs, center, radius)[0]


@pytest.mark.parametrize("way", ["every", *WAYS])
@pytest.mark.parametrize("batch", [(3,), (2, 3)])
def test_lanes_are_scenes_of_their_own(way, batch):
    rng = np.random.default_rng(8)
    n = 40
    center, radius = rng.normal(size=(n, 3, *batch)), rng.uniform(0.05, 0.4, size=(n, *batch))
    margin = rng.uniform(0, 0.1, batch)
    p, _ = spheres(n, 0.8, *((None, 1000) if way == "every" else (way, 300)))
    found = find(p, center, radius, margin)[0]
    assert found.row.shape == (p.groups[0].capacity, *batch)
    assert found.needed.shape == batch
    for lane in np.ndindex(*batch):
        one = find(p, center[..., *lane], radius[:, *lane], margin[lane])[0]
        np.testing.assert_array_equal(found.row[:, *lane], one.row)
        np.testing.assert_array_equal(found.needed[lane], one.needed)
    if way != "every":
        assert len(np.unique(found.needed)) > 1  # the lanes differ


@pytest.mark.parametrize("way", WAYS)
def test_radii_may_be_shared_by_all_lanes_and_vmap_is_the_same(way):
    rng = np.random.default_rng(9)
    n = 30
    center, radius = rng.normal(size=(n, 3, n)), rng.uniform(0.1, 0.4, n)  # as many lanes as shapes
    p, _ = spheres(n, 1.0, way, 200)
    full = find(p, center, np.repeat(radius[:, None], n, 1))[0]
    shared = find(p, center, radius)[0]
    mapped = jax.vmap(lambda c: find(p, c, radius)[0], in_axes=-1, out_axes=-1)(jnp.asarray(center))
    for other in (shared, mapped):
        np.testing.assert_array_equal(full.row, other.row)
        np.testing.assert_array_equal(full.needed, other.needed)


@pytest.mark.parametrize("way", WAYS)
def test_renumbered_bodies_have_renumbered_candidates(way):
    rng = np.random.default_rng(10)
    center, radius = scene("clustered", rng)
    p, pairs = spheres(N, 1.0, way, -1)
    old = rng.permutation(N)  # new number k is the old number old[k]
    before = {frozenset(pairs[row].tolist()) for row in rows_of(p, find(p, center, radius))}
    after = {frozenset(old[pairs[row]].tolist()) for row in rows_of(p, find(p, center[old], radius[old]))}
    assert before == after
    assert before


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_takes_nobody_with_it(way, poison):
    rng = np.random.default_rng(11)
    center, radius = scene("heap", rng)
    p, pairs = spheres(N, 1.0, way, -1)
    bad = rng.choice(N, 60, replace=False)
    center[bad, rng.integers(0, 3, 60)] = poison
    found = find(p, center, radius)
    want, _ = brute(pairs[~np.isin(pairs, bad).any(1)], center, radius)
    got = rows_of(p, found)
    clean = {k: row for k, row in enumerate(np.flatnonzero(~np.isin(pairs, bad).any(1)).tolist())}
    assert got == {clean[k] for k in want}
    assert int(found[0].needed) == len(want)


@pytest.mark.parametrize("way", WAYS)
def test_derivatives_pass_by(way):
    center, radius = (jnp.asarray(x) for x in scene("heap", np.random.default_rng(17)))
    p, _ = spheres(N, 0.7, way, -1)

    def total(c):
        row, _ = find(p, c, radius)[0]
        a, b, pair = p.groups[0].shapes_of(row)
        return jnp.sum(jnp.where(pair >= 0, jnp.sum((c[a] - c[b]) ** 2, -1), 0))

    value, slope = jax.jvp(total, (center,), (center,))
    np.testing.assert_allclose(slope, 2 * value, rtol=1e-12)  # quadratic, where the pairs are taken as they are
    assert value > 0


# planes, heightfields, kinds


def mixed(n_planes, rng, kind="plane"):
    """Kinds, centres, radii, z axes and pairs of planes (or heightfields) among spheres, in any order."""
    n = n_planes + 60
    kinds = np.array([kind] * n_planes + ["sphere"] * 60)[rng.permutation(n)]
    center, radius, up = rng.normal(size=(n, 3)) * 2, rng.uniform(0.1, 0.3, n), rng.normal(size=(n, 3))
    up /= np.linalg.norm(up, axis=1, keepdims=True)
    pairs = table(n)
    return kinds, center, radius, up, pairs[(kinds[pairs] == "sphere").any(1)]


def test_planes_are_near_what_is_above_and_all_that_is_below():
    rng = np.random.default_rng(12)
    kinds, center, radius, up, pairs = mixed(30, rng)
    radius[kinds == "plane"] = np.inf  # not read
    p = plan_pairs(tuple(kinds), (0,) * len(kinds), pairs, 500)
    assert {("plane", "sphere"), ("sphere", "plane")} <= {group.kinds for group in p.groups if group.way == "matrix"}
    margin = 0.1
    rows = rows_of(p, find(p, center, radius, margin, up))
    for row, (a, b) in enumerate(pairs):
        if kinds[a] == kinds[b]:
            gap = np.linalg.norm(center[a] - center[b]) - radius[a] - radius[b]
        else:
            plane, ball = (a, b) if kinds[a] == "plane" else (b, a)
            gap = up[plane] @ (center[ball] - center[plane]) - radius[ball]
        assert (row in rows) == (gap <= margin), (kinds[a], kinds[b], gap)


@pytest.mark.slow
def test_heightfields_are_near_what_is_below_them():
    rng = np.random.default_rng(13)
    kinds, center, radius, up, pairs = mixed(30, rng, "heightfield")
    p = plan_pairs(tuple(kinds), (0,) * len(kinds), pairs, 500)
    rows = rows_of(p, find(p, center, radius, 0.0, up))
    for row, (a, b) in enumerate(pairs):
        if kinds[a] == kinds[b]:
            continue
        field, ball = (a, b) if kinds[a] == "heightfield" else (b, a)
        depth = np.linspace(0, 50, 20001)[:, None]  # a ball of the field's radius, drawn out downwards
        column = center[field] - depth * up[field]
        gap = np.linalg.norm(column - center[ball], axis=1).min() - radius[field] - radius[ball]
        if abs(gap) > 1e-3:  # of the sampled depths
            assert (row in rows) == (gap < 0)


@pytest.mark.slow
def test_groups_partition_the_pairs_by_kind():
    rng = np.random.default_rng(14)
    n = 60
    kinds = tuple(rng.choice(["sphere", "box"], n))
    pairs = table(n, 0.6)
    p = plan_pairs(kinds, (0,) * n, pairs)
    assert len(p.groups) == 4
    assert sorted(np.concatenate([group.pair for group in p.groups]).tolist()) == list(range(len(pairs)))
    for group in p.groups:
        np.testing.assert_array_equal(np.stack([group.a, group.b], -1), pairs[group.pair])
        assert {(kinds[a], kinds[b]) for a, b in zip(group.a, group.b, strict=True)} == {group.kinds}
    center, radius = rng.normal(size=(n, 3)), np.full(n, 0.2)
    want, _ = brute(pairs, center, radius)
    for way in WAYS:
        some = plan_pairs(kinds, tuple(range(n)), pairs, 60, way)
        assert rows_of(some, find(some, center, radius)) == want


def test_statics_stay_out_of_the_cells():
    n = 50
    center, radius = np.random.default_rng(15).normal(size=(n, 3)), np.full(n, 0.1)
    center[0], radius[0] = 0.0, 50.0  # a floor of boxes' kind: it would fill every cell
    pairs = table(n)
    p = plan_pairs(("box",) * n, (-1, *range(n - 1)), pairs, 200, "cells")
    assert sorted(group.way for group in p.groups) == ["cells", "every"]
    found = find(p, center, radius)
    assert rows_of(p, found) == brute(pairs, center, radius)[0]
    assert all(int(needed) <= group.capacity for group, (_, needed) in zip(p.groups, found, strict=True))


# plans


def topology(n, kind="sphere"):
    pairs = tuple(map(tuple, table(n).tolist()))
    names, links = tuple(map(str, range(n))), tuple(range(n))
    return Topology(names, (-1,) * n, ("floating",) * n, shape_kinds=(kind,) * n, shape_links=links, pairs=pairs)


def test_plans_are_made_once_and_small_scenes_take_every_pair():
    small, large = topology(45), topology(47)  # 990 and 1081 pairs
    assert pair_plan(small) is pair_plan(small)
    assert pair_plan(small) is not pair_plan(small, 7)
    assert len(small.pairs) <= ALL_PAIRS < len(large.pairs)
    assert [group.way for group in pair_plan(small).groups] == ["every"]
    assert [(group.way, group.capacity) for group in pair_plan(large).groups] == [("matrix", 8 * 47)]
    assert [group.capacity for group in pair_plan(topology(47, "box")).groups] == [16 * 47]
    assert [group.capacity for group in pair_plan(small, 7).groups] == [7]
    assert default_capacity(("sphere", "sphere"), np.array([(0, 1)]), np.ones(2, bool), ALL_PAIRS + 1) == 64


def test_many_static_shapes_need_no_room_for_each():
    """There is room for 16 candidates of each moving shape and, among static ones, as many more as there are."""
    for statics, each in ((4, 20), (20, 32), (5000, 32)):
        n = statics + 50
        pairs = np.array([(a, b) for a in range(n) for b in range(max(a + 1, statics), n)], np.int32)
        plan = plan_pairs(("box",) * n, (-1,) * statics + tuple(range(50)), pairs)
        assert len(pairs) > ALL_PAIRS
        assert [group.capacity for group in plan.groups] == [50 * each]


@pytest.mark.parametrize("n", [0, 1])
def test_nothing_to_pair(n):
    p = pair_plan(topology(n))
    assert p.groups == ()
    assert find(p, np.zeros((n, 3)), np.ones(n)) == []


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("lanes", [(), (3,)])
def test_pairs_of_shapes_that_do_not_move_are_left_out(lanes, way):
    p, pairs = spheres(N, 0.9, way, -1)
    rng = np.random.default_rng(5)
    center, radius = rng.normal(size=(N, 3, *lanes)), rng.uniform(0.05, 0.3, N)
    still = rng.random((N, *lanes)) < 0.7
    axes = Vec3(*(jnp.asarray(center[:, k]) for k in range(3)))
    (found,) = jax.jit(candidates, static_argnums=0)(p, axes, jnp.asarray(radius), axes, 0.0, jnp.asarray(still))
    for lane in np.ndindex(*lanes):
        own = (..., *lane)
        near, edge = brute(pairs, center[own], radius)
        rest = still[own][pairs]  # (np, 2)
        wanted = {row for row in near if not rest[row].all()}
        got = rows_of(p, [type(found)(found.row[own], found.needed[own])])
        assert got ^ wanted <= edge
        assert 20 < len(wanted) < len(near) - 20


def test_no_room_at_all_is_refused():
    with pytest.raises(ValueError, match="max_pairs is 0; it must be positive"):
        pair_plan(topology(3), 0)


@pytest.mark.parametrize("way", WAYS)
def test_a_table_need_not_be_sorted(way):
    pairs = table(N, 0.05)[::-1]
    center, radius = scene("heap", np.random.default_rng(16))
    p = plan_pairs(("sphere",) * N, tuple(range(N)), pairs, 400, way)
    assert rows_of(p, find(p, center, radius)) == brute(pairs, center, radius)[0]


@pytest.mark.slow
def test_two_shapes():
    p = near_in_cells(Vec3(*jnp.zeros((3, 2))), jnp.ones(2), jnp.asarray(0.0), 1, 1)
    assert (int(p.n_pairs), int(p.fullest)) == (1, 2)
    assert {int(p.first[0]), int(p.second[0])} == {0, 1}


# bits


@pytest.mark.parametrize("size", [1, 31, 32, 33, 1000, 5000])
@pytest.mark.parametrize("density", [0.0, 0.01, 0.5, 1.0])
def test_first_set_is_nonzero(size, density):
    mask = np.random.default_rng(size).random(size) < density
    want = np.flatnonzero(mask)
    for capacity in (1, 40, 6000):
        word, bit, found = first_set(pack(jnp.asarray(mask)), capacity)
        assert int(found) == len(want)
        np.testing.assert_array_equal((32 * word + bit)[: len(want)], want[:capacity])
        assert ((np.asarray(word) * 32 + np.asarray(bit)) >= 0).all()
