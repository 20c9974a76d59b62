"""Rays against implicit functions of every kind's surface, sampled along the ray, and against linear systems."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import trimesh
from scipy.optimize import brentq
from scipy.spatial.transform import Rotation

import carom
from carom.collision.queries.rays import RayHits, cast_rays
from carom.tests.collision.small_scenes import solids
from carom.tests.oracles.surfaces import residual

EXACT = 1e-9  # [m] closed forms at unit size, seen from 3 m; Brent's method stops at 1e-13
STEPS = 2000  # in which the oracle looks for a change of sign along 6 m
RAYS = 40

CORNERS = np.random.default_rng(3).normal(size=(14, 3)) * 0.3
HEIGHTS = np.random.default_rng(4).normal(size=(5, 4)) * 0.2
KINDS: dict[str, Any] = {
    "sphere": carom.Sphere(0.4),
    "capsule": carom.Capsule(0.2, 0.4),
    "box": carom.Box((0.2, 0.3, 0.5)),
    "cylinder": carom.Cylinder(0.3, 0.4),
    "ellipsoid": carom.Ellipsoid((0.2, 0.4, 0.6)),
    "hull": carom.ConvexHull(CORNERS),
    "heightfield": carom.Heightfield(HEIGHTS, (0.4, 0.5)),
    "plane": None,
}


@pytest.fixture(scope="module")
def scene() -> tuple[Any, Any]:
    """One static of each kind, apart and turned anyhow, and nothing that moves but a ball far away."""
    rng = np.random.default_rng(0)
    b = carom.SceneBuilder()
    for k, (kind, shape) in enumerate(KINDS.items()):
        place = np.array([4.0 * k, 0, 0])
        if shape is None:
            b.add_plane((0.2, 0.1, 1.0), -5.0, name=kind)
        else:
            turn = Rotation.random(rng=rng).as_quat(scalar_first=True)
            b.add_static(kind, [shape], position=place, quaternion=turn)
    b.add_body("ball", [carom.Sphere(0.1)], position=(-5, 0, 0))
    return carom.compile_scene(b)


def rays(rng: np.random.Generator, middle: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Half of them from outside at a point near the middle, half of them from there in any direction."""
    outward = rng.normal(size=(RAYS, 3))
    outward /= np.linalg.norm(outward, axis=1, keepdims=True)
    aim = middle + rng.normal(size=(RAYS, 3)) * 0.15
    inside = np.arange(RAYS) % 2 == 0
    return np.where(inside[:, None], aim, aim + 3 * outward), -outward


def ask(model: Any, q: Any, o: Any, d: Any, farthest: np.ndarray, among: Any) -> RayHits:
    return cast_rays(model, q, o, d, max_distance=farthest, among=among)  # one program for all tests


def first_change(solid: Any, o: np.ndarray, d: np.ndarray) -> float:
    """The first root of the surface's function along a ray of 6 m, inf where its sign stays."""

    def f(t: Any) -> Any:
        return residual(solid, o + np.multiply.outer(t, d))

    t = np.linspace(0, 6, STEPS)
    changes = np.flatnonzero(np.diff(np.sign(f(t))) != 0)
    if not len(changes):
        return np.inf
    root: Any = brentq(f, t[changes[0]], t[changes[0] + 1], xtol=1e-13)
    return float(root)


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_crossing_of_every_kind(scene, kind: str) -> None:
    """The ray meets the surface where its implicit function changes sign first, or the oracle's samples missed a
    graze; the normal is the function's slope."""
    model, state = scene
    every = solids(model, state.q)
    shape = [s.kind for s in every].index(kind)
    middle = np.asarray(every[shape].position)
    o, d = rays(np.random.default_rng(7), middle)
    among = jnp.arange(len(every)) == shape
    hits = ask(model, state.q, o, 2.5 * d, np.full(RAYS, 100.0), among)
    found = np.asarray(hits.distance)
    wanted = np.array([first_change(every[shape], *ray) for ray in zip(o, d, strict=True)])
    seen = np.isfinite(wanted)
    assert seen.sum() >= RAYS / 3
    grazes = ~seen & np.isfinite(found)
    assert grazes.sum() <= 1 or kind == "plane"  # which goes on beyond 6 m
    np.testing.assert_allclose(found[seen], wanted[seen], rtol=0, atol=EXACT)
    p, n = np.asarray(hits.point)[seen], np.asarray(hits.normal)[seen]
    np.testing.assert_allclose(residual(every[shape], p), 0, atol=EXACT)
    eps = 1e-6
    assert (residual(every[shape], p + eps * n) > 0).all()
    assert (residual(every[shape], p - eps * n) < 0).all()
    np.testing.assert_array_equal(np.asarray(hits.shape)[seen], shape)


def test_the_nearest_of_all_shapes_and_no_farther_than_asked(scene) -> None:
    model, state = scene
    names = [s.kind for s in solids(model, state.q)]
    along = jnp.array([[4.0 * 2, 0, 5], [-5, 0, 5], [4.0 * 2, 0, 5], [0, 0, 5]])
    down = jnp.array([[0, 0, -1.0], [0, 0, -3.0], [0, 0, -1.0], [0, 0, 0]])
    padded = [jnp.concatenate([x, jnp.ones((RAYS - 4, 3))]) for x in (along, down)]
    farthest = np.array([9.0, 9.0, 0.1] + [9.0] * (RAYS - 3))
    hits = jax.tree.map(
        lambda x: x[:4], ask(model, state.q, padded[0], padded[1], farthest, jnp.ones(len(names), bool))
    )
    assert names[int(hits.shape[0])] == "box"
    assert int(hits.link[0]) == -1
    assert int(hits.link[1]) == 0
    np.testing.assert_allclose(hits.distance[1], 4.9, atol=EXACT)
    np.testing.assert_allclose(hits.point[1], [-5, 0, 0.1], atol=EXACT)
    np.testing.assert_array_equal(hits.shape[2:], -1)
    np.testing.assert_array_equal(hits.distance[2:], np.inf)
    np.testing.assert_array_equal(hits.point[2:], 0)


def test_a_mesh_that_is_not_convex_and_batches_of_coordinates() -> None:
    """Two lanes, each with its own pose of a ring; against the linear system of each ray and triangle."""
    ring = trimesh.creation.torus(0.5, 0.15, major_sections=12, minor_sections=8)
    b = carom.SceneBuilder(gravity=(0, 0, 0))
    b.add_body("ring", [carom.Mesh(ring, convex="none")], mass=1.0)
    model, _ = carom.compile_scene(b)
    rng = np.random.default_rng(1)
    turns = Rotation.random(2, rng=rng)
    places = rng.normal(size=(2, 3))
    q = np.concatenate([places, turns.as_quat(scalar_first=True)], 1)
    o, d = (np.stack(x) for x in zip(*(rays(rng, place) for place in places), strict=True))
    hits = cast_rays(model, jnp.asarray(q), o, d)
    for lane in range(2):
        corners = turns[lane].apply(ring.vertices) + places[lane]
        wanted = [_first_triangle(corners[ring.faces], *ray) for ray in zip(o[lane], d[lane], strict=True)]
        assert 5 <= np.isfinite(wanted).sum() < RAYS
        np.testing.assert_allclose(hits.distance[lane], wanted, rtol=0, atol=EXACT)


def _first_triangle(corners: np.ndarray, o: np.ndarray, d: np.ndarray) -> float:
    a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
    system = np.stack([b - a, c - a, np.broadcast_to(-d, a.shape)], -1)
    u, v, t = np.linalg.solve(system, (o - a)[..., None])[..., 0].T
    meets = (u >= 0) & (v >= 0) & (u + v <= 1) & (t >= 0)
    return float(t[meets].min(initial=np.inf))
