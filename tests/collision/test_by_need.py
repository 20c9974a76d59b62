"""Pairs that are far apart are kept from kernels that search: near ones have the same rows, bounds hold of the rest."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.collision.detect import detect_with_bounds
from carom.collision.proximities import Proximities
from carom.engine.native.function import native

SIDE = 1.2  # of the room they are thrown into [m]
LOOK = 0.01  # of each shape [m]
CORNERS = 0.1 * np.array([[1.0, 0, -1], [-1, 1, -1], [-1, -1, -1], [0, 0, 2]])
FACES = np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]])


@pytest.fixture(scope="module")
def thrown():
    """Pairs of many kinds, and where they are in some lanes."""
    b = carom.SceneBuilder()
    b.add_plane()
    shapes = [carom.Box((0.1, 0.2, 0.15)), carom.Capsule(0.1, 0.2), carom.Mesh((CORNERS, FACES)), carom.Sphere(0.1)]
    shapes += [carom.Box((0.02, 0.3, 0.05)), carom.Mesh((2 * CORNERS, FACES))]
    for k, shape in enumerate(shapes * 2):
        b.add_body(f"b{k}", [shape], mass=1.0, position=(0, 0, 2.0 + k))
    model, state = carom.compile_scene(b.build(), overlaps="ignore")
    rng = np.random.default_rng(20261122)
    q = np.asarray(state.q).reshape(1, -1, 7).repeat(6, 0)
    q[..., :3] = rng.uniform(-SIDE / 2, SIDE / 2, q[..., :3].shape)
    turns = rng.normal(size=q[..., 3:].shape)
    q[..., 3:] = turns / np.linalg.norm(turns, axis=-1, keepdims=True)
    return model, jnp.asarray(q.reshape(6, -1))


@functools.partial(jax.jit, static_argnums=(2, 3))
def looked(model, q, look: float, max_pairs: int | None):
    def lane(static, model, q):
        each = jnp.full(len(model.topology.shape_kinds), look)
        return detect_with_bounds(model, q, each, max_pairs=max_pairs)

    return jax.vmap(lambda x: native(lane)((look, max_pairs), model, x))(q)


def by_pair(rows: Proximities, lane: int) -> dict[int, list[list]]:
    found: dict[int, list[list]] = {}
    fields = (np.asarray(x)[lane] for x in (rows.gap, rows.normal, rows.point_a, rows.point_b))
    for pair, active, *row in zip(np.asarray(rows.pair)[lane], np.asarray(rows.active)[lane], *fields, strict=True):
        if active:
            found.setdefault(int(pair), []).append(row)
    return found


@pytest.mark.parametrize("max_pairs", [None, 40])
def test_near_pairs_have_their_rows_and_far_pairs_a_bound(thrown, max_pairs):
    model, q = thrown
    near, bounds = looked(model, q, LOOK, max_pairs)
    every = carom.detect(model, q, margin=jnp.inf if max_pairs else None, max_pairs=max_pairs)
    kept = 0
    for lane in range(len(q)):
        exact, seen, least = (by_pair(x, lane) for x in (every, near, bounds))
        assert set(least) == set(exact)
        assert set(seen) <= set(exact)
        for pair, rows in exact.items():
            gap = rows[0][0]
            if pair in seen:
                assert least[pair][0][0] == seen[pair][0][0]
                for mine, theirs in zip(seen[pair], rows, strict=True):
                    for x, y in zip(mine, theirs, strict=True):
                        np.testing.assert_allclose(x, y, atol=1e-9)
            else:
                kept += 1
                bound, normal, a, b = least[pair][0]
                assert 2 * LOOK < bound <= gap + 1e-12
                assert np.dot(a - b, normal) == pytest.approx(bound, abs=1e-12)
                # what is exact lies behind both planes
                assert np.dot(rows[0][2] - a, normal) >= -1e-9
                assert np.dot(rows[0][3] - b, normal) <= 1e-9
    assert kept > len(q)


def test_a_run_is_the_same_whether_all_pairs_are_looked_at_or_few(monkeypatch):
    """Steps may end at other times; where they lead is the same."""
    from carom.integrators import sensitivity

    b = carom.SceneBuilder()
    b.add_plane()
    for k in range(4):
        b.add_body(f"b{k}", [carom.Box((0.1, 0.1, 0.1))], mass=1.0, position=(0.5 * k, 0, 0.4 + 0.3 * k))
    model, state = carom.compile_scene(b.build())
    monkeypatch.setenv("CAROM_CACHE", "off")
    run = functools.partial(carom.rollout, model, state, duration=0.6, frame_dt=0.1)
    few = run()
    monkeypatch.setattr(sensitivity, "ASIDE", 1e3)
    jax.clear_caches()
    every = run()
    jax.clear_caches()
    assert few.events.count == every.events.count > 8
    np.testing.assert_allclose(few.q, every.q, atol=1e-9)
    np.testing.assert_allclose(few.events.t, every.events.t, atol=1e-9)
