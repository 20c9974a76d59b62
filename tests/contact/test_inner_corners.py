"""Contacts of a body on several flush shapes are those on one shape."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.collision.detect import detect, detect_with_bounds
from carom.contact.determine import determine
from carom.contact.inner_corners import drop_inner_corners

ONE = [carom.Box((2, 2, 0.25), position=(0, 0, -0.25))]
FOUR = [carom.Box((1, 1, 0.25), position=(x, y, -0.25)) for x in (-1, 1) for y in (-1, 1)]
TWO = [carom.Box((1, 2, 0.25), position=(x, 0, -0.25)) for x in (-1, 1)]


def scene(grounds: list[list[Any]], frictions: tuple[float, ...] = (0.4,), dtype: str = "float64", **body: Any) -> Any:
    b = carom.SceneBuilder()
    for k, (shapes, friction) in enumerate(zip(grounds, frictions, strict=True)):
        b.add_static(f"ground{k}", shapes, friction=friction)
    b.add_body("box", [carom.Box((0.3, 0.2, 0.1))], mass=2.0, friction=0.4, **{"position": (0, 0, 0.1), **body})
    return carom.compile_scene(b, dtype=dtype)


@jax.jit
def acting(model: Any, q: Any) -> Any:
    near, _ = detect_with_bounds(model, q, jnp.ones(len(model.topology.shape_kinds), q.dtype))
    return drop_inner_corners(model, determine(model, q, near))


def corners(model: Any, q: Any) -> np.ndarray:
    """Points of the contacts that act, in order of x and y."""
    contacts = acting(model, q)
    points = np.stack(contacts.point.xyz, -1)[np.asarray(contacts.active)]
    return points[np.lexsort(points.round(6).T[:2])]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("tiles", [TWO, FOUR])
def test_a_box_touches_tiles_as_it_touches_one(tiles: list[Any], dtype: str) -> None:
    """At random places over the seams; so turned that each tile meets a quarter or a half of its face."""
    (model, state), (one, _) = scene([tiles], dtype=dtype), scene([ONE], dtype=dtype)
    rng = np.random.default_rng(0)
    assert determine(model, state.q, detect(model, state.q)).active.sum() == 4 * len(tiles)
    for _ in range(8):
        turn = rng.uniform(-0.4, 0.4)
        q = np.array(state.q)
        q[:2], q[3:] = rng.uniform(-0.05, 0.05, 2), (math.cos(turn / 2), 0, 0, math.sin(turn / 2))
        q = jnp.asarray(q, state.q.dtype)
        here = corners(model, q)
        assert len(here) == 4
        np.testing.assert_allclose(here, corners(one, q), atol=1e-12 if dtype == "float64" else 1e-6)


def test_a_corner_at_a_seam_stays_once() -> None:
    model, state = scene([TWO])
    q = state.q.at[0].set(0.3)  # one side of the box is on the seam
    np.testing.assert_allclose(corners(model, q), corners(scene([ONE])[0], q), atol=1e-12)


def test_corners_stay_where_the_ground_changes() -> None:
    """Of two materials each has its own, and so have diagonal neighbours, but for the point where they meet."""
    model, state = scene([TWO[:1], TWO[1:]], (0.4, 0.1))
    assert len(corners(model, state.q)) == 8
    model, state = scene([[FOUR[0], FOUR[3]]])  # diagonal neighbours
    points = corners(model, state.q)
    np.testing.assert_allclose(points[:, 0] * points[:, 1] >= -1e-12, True)
    assert len(points) == 6  # the point where both meet is between the others


def test_it_turns_on_tiles_as_on_one() -> None:
    """Friction acts at the same points. With those on the seam it would end at 3.6 rad/s in place of 2.8."""
    start: dict[str, Any] = {"linear_velocity": (0.3, 0.1, 0.0), "angular_velocity": (0.0, 0.0, 6.0)}
    (model, state), (one, _) = scene([TWO], **start), scene([ONE], **start)
    ends = [carom.rollout(m, state, duration=0.1, frame_dt=0.05, max_events=0).state for m in (model, one)]
    np.testing.assert_allclose(ends[0].q, ends[1].q, atol=1e-9)
    np.testing.assert_allclose(ends[0].v, ends[1].v, atol=1e-7)


def test_lanes_of_a_batch_have_their_own() -> None:
    model, state = scene([FOUR])
    q = jnp.stack([state.q, state.q.at[:2].set(0.9), state.q.at[:2].set(jnp.array([0.9, 0.0]))])

    def count(q: Any) -> Any:
        return drop_inner_corners(model, determine(model, q, detect(model, q))).active.sum(0)

    np.testing.assert_array_equal(count(q), [4, 4, 4])
    np.testing.assert_array_equal(jax.vmap(count)(q), [4, 4, 4])
