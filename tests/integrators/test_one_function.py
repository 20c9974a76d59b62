"""A single scene's rollout as one machine function: the same numbers, and a way out where that fails."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.integrators import rollout as module

RUN: dict[str, Any] = {"duration": 0.05, "frame_dt": 0.025, "max_dt": 0.005}
cpu_only = pytest.mark.skipif(jax.default_backend() != "cpu", reason="the tag speaks to XLA's CPU compiler")


def scene():
    model, state = carom.compile_scene(carom.load("double_pendulum"))
    return model, carom.State(state.q, state.v + 1.0, state.t)


@cpu_only
def test_same_numbers_as_in_pieces(monkeypatch):
    model, state = scene()
    whole = carom.rollout(model, state, **RUN)
    assert not module._IN_PIECES
    lowered = module._run_one_function.lower(*_arguments(model, state)).as_text()
    assert "xla_cpu_small_call" in lowered
    monkeypatch.setattr(module, "available", lambda: False)
    pieces = carom.rollout(model, state, **RUN)
    np.testing.assert_allclose(whole.q, pieces.q, atol=1e-14)  # multiply-adds may be contracted differently
    np.testing.assert_allclose(whole.v, pieces.v, atol=1e-13)


@cpu_only
def test_a_program_that_does_not_compile_to_one_function_runs_in_pieces(monkeypatch):
    model, state = scene()
    tries = []

    def refuse(*arguments):
        tries.append(arguments)
        raise jax.errors.JaxRuntimeError("UNIMPLEMENTED: not in one function")

    monkeypatch.setattr(module, "_run_one_function", refuse)
    monkeypatch.setattr(module, "_IN_PIECES", set())
    for _ in range(2):
        result = carom.rollout(model, state, **RUN)
        assert jnp.isfinite(result.q).all()
    assert len(tries) == 1, "what failed once must not be compiled again at every call"


def test_a_batch_and_a_control_function_run_in_pieces(monkeypatch):
    model, state = scene()
    monkeypatch.setattr(module, "_run_one_function", lambda *arguments: pytest.fail("one function for these?"))
    carom.rollout(model, carom.tile(state, 2), **RUN)
    carom.rollout(model, state, control=lambda model, state, t: jnp.zeros(2), **RUN)
    jax.jit(lambda s: carom.rollout(model, s, **RUN).q)(state)


def _arguments(model, state):
    intervals = jnp.full(2, RUN["frame_dt"])
    return model, state, intervals, None, module.scheme_named("exact"), None, 5
