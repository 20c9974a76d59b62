"""`carom.detect` and `carom.resolve_impact` as machine code: as XLA's programs are; a lane's bits are its own."""

from collections.abc import Callable
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.engine.native.program import Program
from carom.tests.oracles.native_and_xla import no_fallback
from carom.tests.oracles.random_impacts import random_impacts

LANES = 21
SHAPES = {
    "round": (lambda: carom.Sphere(0.5), lambda: carom.Capsule(0.2, 0.3)),
    "boxes": (lambda: carom.Box((0.4, 0.25, 0.15)), lambda: carom.Box((0.2, 0.3, 0.25))),
}


def placements(kind: str) -> tuple[carom.Model, jax.Array]:
    b = carom.SceneBuilder()
    b.add_plane()
    for name, shape in zip("ab", SHAPES[kind], strict=True):
        b.add_body(name, [shape()])
    model, _ = carom.compile_scene(b)
    q = np.random.default_rng(3).normal(size=(LANES, 14))
    q[:, 7:10] = q[:, :3] + 0.6 * q[:, 7:10]
    for k in (3, 10):
        q[:, k : k + 4] /= np.linalg.norm(q[:, k : k + 4], axis=1, keepdims=True)
    return model, jnp.asarray(q)


def impacts(dtype: Any) -> tuple[jax.Array, ...]:
    return tuple(jnp.asarray(x, dtype) for x in random_impacts(LANES, np.random.default_rng(5)))


def resolved(law: str) -> Callable[..., Any]:
    return lambda K, u, mu, e: carom.resolve_impact(K, u, friction=mu, restitution=e, law=law)


def same_anywhere(run: Callable[..., Any], *arrays: jax.Array) -> None:
    """Alone, turned round, in two axes, under a user's jit and vmap."""
    with no_fallback():
        all_of_them = run(*arrays)
        turned = run(*(x[::-1] for x in arrays))
        paired = run(*(x.reshape(3, 7, *x.shape[1:]) for x in arrays))
        mapped = jax.jit(jax.vmap(run))(*arrays)
        alone = {k: run(*(x[k] for x in arrays)) for k in (0, 9, LANES - 1)}
    for mine, *others in zip(*map(jax.tree.leaves, (all_of_them, turned, paired, mapped)), strict=True):
        np.testing.assert_array_equal(mine, others[0][::-1])
        np.testing.assert_array_equal(mine, others[1].reshape(mine.shape))
        np.testing.assert_array_equal(mine, others[2])
    for k, one in alone.items():
        jax.tree.map(lambda mine, x, k=k: np.testing.assert_array_equal(mine, x[k]), one, all_of_them)


def as_xla(run: Callable[..., Any], *arrays: jax.Array) -> Any:
    jax.clear_caches()
    with mock.patch.object(Program, "code", None):
        made = jax.block_until_ready(run(*arrays))
    jax.clear_caches()
    return made


@pytest.mark.parametrize("kind", ["round", pytest.param("boxes", marks=pytest.mark.slow)])
@pytest.mark.slow
def test_proximities(kind: str) -> None:
    model, q = placements(kind)
    same_anywhere(lambda q: carom.detect(model, q, margin=0.5), q)
    mine, theirs = carom.detect(model, q), as_xla(lambda q: carom.detect(model, q), q)
    np.testing.assert_array_equal(mine.pair, theirs.pair)
    np.testing.assert_array_equal(mine.code, theirs.code)
    for name in ("gap", "normal", "point_a", "point_b"):
        np.testing.assert_allclose(getattr(mine, name), getattr(theirs, name), rtol=0, atol=1e-12, err_msg=name)


def test_lanes_of_the_model() -> None:
    """Which lane has which shapes, and what one margin for each lane leaves out."""
    model, q = placements("round")
    larger = model.replace(shape_size=jnp.stack([model.shape_size, 1.1 * model.shape_size]))
    both = carom.detect(larger, q[:, None], margin=0.5)
    assert both.gap.shape[:2] == (LANES, 2)
    for k in range(2):
        one = carom.detect(model.replace(shape_size=larger.shape_size[k]), q, margin=0.5)
        np.testing.assert_array_equal(both.gap[:, k], one.gap)


@pytest.mark.slow
def test_derivatives_of_gaps() -> None:
    """Of the machine code, forward; of XLA's program, in reverse."""
    model, q = placements("round")

    def total(q: jax.Array) -> jax.Array:
        near = carom.detect(model, q)
        return jnp.where(near.active, near.gap, 0).sum()

    d = jnp.asarray(np.random.default_rng(6).normal(size=q.shape))
    with no_fallback():
        forward = jax.jvp(total, (q,), (d,))[1]
    np.testing.assert_allclose((jax.grad(total)(q) * d).sum(), forward, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("law", ["cone_projection", pytest.param("stronge", marks=pytest.mark.slow)])
def test_impacts(law: str, dtype: str) -> None:
    case, run = impacts(dtype), resolved(law)
    same_anywhere(run, *case)
    mine, theirs = run(*case), as_xla(run, *case)
    np.testing.assert_array_equal(mine.code, theirs.code)
    size = np.linalg.norm(theirs.impulse, axis=1, keepdims=True)
    near = 1e-4 if dtype == "float32" else 1e-11
    np.testing.assert_allclose(mine.impulse / size, theirs.impulse / size, rtol=0, atol=near)


@pytest.mark.slow
def test_derivatives_of_impacts() -> None:
    K, u, mu, e = impacts("float64")
    total = lambda u: resolved("cone_projection")(K, u, mu, e).impulse.sum()  # noqa: E731
    d = jnp.asarray(np.random.default_rng(6).normal(size=u.shape))
    with no_fallback():
        forward = jax.jvp(total, (u,), (d,))[1]
    np.testing.assert_allclose((jax.grad(total)(u) * d).sum(), forward, rtol=1e-10)
