"""A single scene's rollout as one machine function: the same numbers, and a way out where that fails."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.engine.algebra.fence import one_function
from carom.integrators import rollout as module

RUN: dict[str, Any] = {"duration": 0.05, "frame_dt": 0.025, "max_dt": 0.005}
cpu_only = pytest.mark.skipif(jax.default_backend() != "cpu", reason="the tag speaks to XLA's CPU compiler")


def scene():
    model, state = carom.compile_scene(carom.load("double_pendulum"))
    return model, carom.State(state.q, state.v + 1.0, state.t)


@cpu_only
def test_same_numbers_as_in_pieces(monkeypatch):
    model, state = scene()
    calls = counted(monkeypatch, "_without_contacts_fused")
    one = carom.rollout(model, state, **RUN)
    assert len(calls) == 1
    assert not module._IN_PIECES
    monkeypatch.setattr(module, "available", lambda: False)
    pieces = carom.rollout(model, state, **RUN)
    assert len(calls) == 1
    np.testing.assert_allclose(one.q, pieces.q, atol=1e-14)  # multiply-adds may be contracted differently
    np.testing.assert_allclose(one.v, pieces.v, atol=1e-13)


@cpu_only
def test_one_function_is_what_the_compiler_is_asked_for():
    """It is told in the text of the program."""
    program = jax.jit(lambda x: one_function(jax.jit(lambda x: x + 1)(x)))
    assert "xla_cpu_small_call" in program.lower(jnp.ones(3)).as_text()


@cpu_only
def test_a_program_that_does_not_compile_to_one_function_runs_in_pieces(monkeypatch):
    model, state = scene()
    tries = []

    def refuse(*arguments):
        tries.append(arguments)
        raise jax.errors.JaxRuntimeError("UNIMPLEMENTED: not in one function")

    monkeypatch.setattr(module, "_without_contacts_fused", refuse)
    monkeypatch.setattr(module, "_IN_PIECES", set())
    for _ in range(2):
        result = carom.rollout(model, state, **RUN)
        assert jnp.isfinite(result.q).all()
    assert len(tries) == 1, "what failed once must not be compiled again at every call"


def test_a_batch_and_a_control_function_run_in_pieces(monkeypatch):
    model, state = scene()
    monkeypatch.setattr(module, "_without_contacts_fused", lambda *arguments: pytest.fail("one function for these?"))
    carom.rollout(model, carom.tile(state, 2), **RUN)
    carom.rollout(model, state, control=lambda model, state, t: jnp.zeros(2), **RUN)
    jax.jit(lambda s: carom.rollout(model, s, **RUN).q)(state)


def counted(monkeypatch, name):
    """The arguments of all calls of a program of the module."""
    calls, program = [], getattr(module, name)

    def call(*arguments):
        calls.append(arguments)
        return program(*arguments)

    monkeypatch.setattr(module, name, call)
    return calls


@cpu_only
@pytest.mark.exhaustive  # compiles twice as long as in pieces
def test_a_run_with_contacts_is_one_function_if_asked(monkeypatch):
    """`fuse`: the same events and states, of a single scene and of lanes; without it no one asks the compiler."""
    model, state = slider()
    calls = counted(monkeypatch, "_with_contacts_fused")
    how = {"duration": 1.0, "frame_dt": 0.1, "max_events": 8}
    for start in (state, carom.tile(state, 2)):
        pieces = carom.rollout(model, start, **how)
        before = len(calls)
        fused = carom.rollout(model, start, fuse=True, **how)
        assert len(calls) == before + 1
        np.testing.assert_array_equal(fused.events.count, pieces.events.count)
        assert (np.asarray(fused.events.count) >= 1).all()
        np.testing.assert_allclose(fused.q, pieces.q, atol=1e-13)
        np.testing.assert_allclose(fused.events.t, pieces.events.t, atol=1e-13)


def slider():
    b = carom.SceneBuilder(gravity=(0, 0, 0))
    joint = carom.Prismatic((1, 0, 0), limits=(-1, 0.5), restitution=0.5)
    b.add_link("slider", joint=joint, mass=2.0, inertia=(1, 1, 1), v0=1.0)
    return carom.compile_scene(b)
