"""A function that is called again with the arguments it had before is not translated again."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest

from carom.engine.native import compiler, graph


def operations(f: Callable[..., list[jax.Array]], monkeypatch: pytest.MonkeyPatch) -> int:
    """Translate f of two vectors; return how often the graph was asked for the result of an operation."""
    asked, compute = [], graph.Graph.compute
    monkeypatch.setattr(graph.Graph, "compute", lambda *given: asked.append(given[1]) or compute(*given))
    compiler.compiled_text(jax.make_jaxpr(f)(jnp.ones(3), jnp.ones(3)), [0, 0])
    monkeypatch.undo()
    return len(asked)


@jax.jit
def stage(x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.sqrt(x * x + y * y) / (1 + x)


def test_the_same_arguments(monkeypatch):
    once = operations(lambda x, y: [stage(x, y)], monkeypatch)
    assert operations(lambda x, y: [stage(x, y), stage(x, y)], monkeypatch) == once
    assert operations(lambda x, y: [stage(x, y), stage(y, x)], monkeypatch) == 2 * once


def test_within_a_branch(monkeypatch):
    """Results known before it are used in it; results known in one branch are not known in the other, or after it."""

    def branches(first: bool, last: bool) -> Callable[..., list[jax.Array]]:
        def f(x: jax.Array, y: jax.Array) -> list[jax.Array]:
            before = stage(x, y) if first else x
            both = jax.lax.cond(x[0] > 0, lambda: stage(x, y), lambda: stage(x, y) + 1)
            return [before, both, stage(x, y) if last else y]

        return f

    once = operations(lambda x, y: [stage(x, y)], monkeypatch)
    known = operations(branches(True, False), monkeypatch)
    assert operations(branches(False, False), monkeypatch) == known + once
    assert operations(branches(False, True), monkeypatch) == known + 2 * once


def test_a_loop_that_is_called_twice_runs_once():
    @jax.jit
    def total(x: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(0, 5, lambda k, y: y + x * k, jnp.zeros(3))

    text, *_ = compiler.compiled_text(jax.make_jaxpr(lambda x: [total(x) + total(x)])(jnp.ones(3)), [0])
    alone, *_ = compiler.compiled_text(jax.make_jaxpr(lambda x: [total(x) + total(x * 2)])(jnp.ones(3)), [0])
    assert 0 < text.count("phi") < alone.count("phi")
