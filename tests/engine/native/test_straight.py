"""A program called without XLA has XLA's way's bits, from many threads too."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.engine.native.function import native
from carom.engine.native.surface import native_jit
from carom.scenes.live.standing import link_states


@native
def several(static: int, x: Any, more: dict[str, Any]) -> Any:
    total = jax.lax.fori_loop(0, static, lambda _, s: jnp.sin(s) + x.sum(), more["a"])
    return {"total": total, "which": x > 0}, (more["n"] + 1, x.T)


def given(rng: np.random.Generator, dtype: Any) -> Any:
    x, a = rng.normal(size=(3, 2)).astype(dtype), rng.normal(size=4).astype(dtype)
    return x, {"a": a, "n": np.int32(rng.integers(9))}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_it_has_the_same_bits(dtype: Any) -> None:
    rng = np.random.default_rng(1)
    for _ in range(5):
        args = given(rng, dtype)
        usual, straight = several(3, *args), several.straight(3, *args)
        assert jax.tree.structure(usual) == jax.tree.structure(straight)
        for a, b in zip(jax.tree.leaves(usual), jax.tree.leaves(straight), strict=True):
            assert type(b) is np.ndarray
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            assert np.asarray(a).tobytes() == b.tobytes()


def test_results_are_new_ones() -> None:
    args = given(np.random.default_rng(2), np.float64)
    first = several.straight(2, *args)
    kept = jax.tree.map(np.copy, first)
    several.straight(2, *given(np.random.default_rng(3), np.float64))
    for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(kept), strict=True):
        assert np.array_equal(a, b)


def test_other_shapes_are_other_programs_and_rows_need_not_lie_together() -> None:
    x = np.arange(24.0).reshape(4, 6)
    half = native_jit(lambda x: x / 2)
    for some in (x, x[:, ::2], x.T, x[1], np.float64(3.0)):
        assert np.array_equal(half.straight(some), np.asarray(some) / 2)


def test_numbers_of_64_bits_are_32_where_jax_has_no_more() -> None:
    with jax.enable_x64(False):
        assert several.straight(1, *given(np.random.default_rng(4), np.float64))[0]["total"].dtype == np.float32


def test_threads_do_not_meet() -> None:
    rngs = [np.random.default_rng(seed) for seed in range(4)]

    def work(rng: np.random.Generator) -> bool:
        for _ in range(200):
            args = given(rng, np.float64)
            got = several.straight(50, *args)[0]["total"]
            s = args[1]["a"]
            for _ in range(50):
                s = np.sin(s) + args[0].sum()
            if not np.allclose(got, s, rtol=1e-9, atol=1e-9):
                return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, rngs))


def test_models_go_along() -> None:
    model, state = carom.compile_scene(carom.load("ragdoll"))
    usual, straight = link_states(model, state.q, state.v), link_states.straight(model, state.q, state.v)
    assert np.asarray(usual.pose).tobytes() == straight.pose.tobytes()


def test_without_machine_code_it_is_what_jax_says() -> None:
    with jax.disable_jit():
        args = given(np.random.default_rng(5), np.float64)
        assert np.allclose(several.straight(1, *args)[0]["total"], np.sin(args[1]["a"]) + args[0].sum())
