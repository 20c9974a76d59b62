"""Scenes of bodies that compile quickly, placed anyhow, and what every detector's answer to them must be like."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from scipy.spatial.transform import Rotation

import carom
from carom.tests.collision.fcl_scenes import shape_poses
from carom.tests.oracles.minkowski import Solid, gap
from carom.tests.oracles.surfaces import residual

EXACT = 1e-12  # closed forms at unit size, and 1 m away from the origin
# boxes before and after spheres, so that both orders of the two kinds are there; each stands off its body's origin
SHAPES = {
    "first": carom.Box((0.1, 0.2, 0.3), position=(0.05, 0, 0), quaternion=(0.8, 0.6, 0, 0)),
    "red": carom.Sphere(0.1, position=(0, 0.02, 0)),
    "blue": carom.Sphere(0.2),
    "last": carom.Box((0.3, 0.2, 0.1), position=(0, 0, 0.1)),
}


@functools.cache
def heap(names=tuple(SHAPES), dtype=None):
    """A plane and these bodies; the two boxes may not touch, which spares the compiler their kernel."""
    b = carom.SceneBuilder()
    b.add_plane()
    for name in names:
        b.add_body(name, [SHAPES[name]])
    if {"first", "last"} <= set(names):
        b.exclude("first", "last")
    return carom.compile_scene(b.build(), dtype=dtype)[0]


def anyhow(rng, *lanes, bodies=4, spread=0.3):
    """(*lanes, 7 bodies): positions about 0.3 m above the ground, turned anyhow; as many as the heap has."""
    p = rng.normal(size=(*lanes, bodies, 3)) * spread + (0, 0, 0.3)
    turn = rng.normal(size=(*lanes, bodies, 4))
    turn /= np.linalg.norm(turn, axis=-1, keepdims=True)
    return jnp.asarray(np.concatenate([p, turn], -1).reshape(*lanes, -1))


def solids(model, q):
    """The oracle's solids of one lane, q (nq,): poses by forward kinematics."""
    t, size, points = model.topology, np.asarray(model.shape_size), np.asarray(model.points)
    position, rotation = (np.asarray(x) for x in shape_poses(model, q))
    return [
        Solid(kind, size[k], points[slice(*t.shape_points[k])], position[k],
              Rotation.from_matrix(rotation[k]).as_quat(scalar_first=True))
        for k, kind in enumerate(t.shape_kinds)
    ]  # fmt: skip


def true_gaps(model, q):
    """(pairs,) of one lane [m], by the oracle."""
    found = solids(model, q)
    return np.array([gap(found[a], found[b])[0] for a, b in model.topology.pairs])


def lane(near, k):
    """One lane's rows."""
    return jax.tree.map(lambda x: np.asarray(x)[k], near)


def rows_by_pair(near):
    """The active rows of one lane, {pair: rows}."""
    found = {}
    for k in np.flatnonzero(near.active):
        found.setdefault(int(near.pair[k]), []).append(k)
    return found


def first_gaps(near, pairs):
    """(pairs,) gap of each pair's first row in one lane; inf where it has none [m]."""
    gaps = np.full(pairs, np.inf)
    for pair, rows in rows_by_pair(near).items():
        gaps[pair] = near.gap[rows[0]]
    return gaps


def assert_well_formed(near, model, q, tolerance=EXACT):
    """The contract of Proximities for one lane."""
    on, gap_, found = near.active, near.gap, solids(model, q)
    assert (near.pair[~on] == -1).all()
    assert np.isposinf(gap_[~on]).all()
    for field in (near.normal, near.point_a, near.point_b):
        assert (field[~on] == 0).all()
        assert np.isfinite(field).all()
    assert np.isfinite(gap_[on]).all()
    np.testing.assert_allclose(np.linalg.norm(near.normal[on], axis=-1), 1, atol=tolerance)
    between = near.point_a[on] - near.point_b[on]
    np.testing.assert_allclose(between, gap_[on, None] * near.normal[on], atol=tolerance)
    for pair, rows in rows_by_pair(near).items():
        assert rows[-1] - rows[0] < 4, "a pair's rows are not together"
        assert gap_[rows[0]] <= gap_[rows].min() + tolerance, "the first row is not the closest"
        a, b = model.topology.pairs[pair]
        first = rows[0]  # of each pair's other points see test_narrow_gaps
        assert abs(residual(found[a], near.point_a[first])) <= tolerance
        assert abs(residual(found[b], near.point_b[first])) <= tolerance
