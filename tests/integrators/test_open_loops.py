"""Loops that are open because lengths have changed: runs say so, and `close_loops` closes them."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.engine.results import SimulationWarning


@pytest.fixture(scope="module")
def four_bar():
    return carom.compile_scene(carom.load("four_bar"), dtype="float64")


def longer(model, factor):
    return model.replace(loop_position=factor * model.loop_position)


@pytest.mark.parametrize("factor", [1.02, 3.0])
def test_a_changed_length_is_closed_and_runs_on(four_bar, factor):
    model, state = longer(four_bar[0], factor), four_bar[1]
    with pytest.warns(SimulationWarning, match=r"loops of the initial state are open by .*close_loops"):
        carom.rollout(model, state, duration=0.1)
    closed = carom.close_loops(model, state)
    ends = carom.closed(model, closed.q, closed.v)
    assert max(float(jnp.abs(ends.error).max()), float(jnp.abs(ends.rate).max())) < 1e-12
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = carom.rollout(model, closed, duration=0.5)
    energies = [float(carom.energy(model, carom.State(run.q[k], run.v[k], run.t[k])).total) for k in (0, -1)]
    np.testing.assert_allclose(*energies, rtol=1e-6)


def test_what_cannot_close_stays_open(four_bar):
    model = four_bar[0].replace(loop_position=100 * four_bar[0].loop_position)
    closed = carom.close_loops(model, four_bar[1])
    assert not float(jnp.abs(carom.closed(model, closed.q, closed.v).error).max()) < 1


def test_its_derivatives_are_differences(four_bar):
    def q(factor):
        return carom.close_loops(longer(four_bar[0], factor), four_bar[1]).q

    slope, h = (q(1.1 + 1e-5) - q(1.1 - 1e-5)) / 2e-5, 1.1
    np.testing.assert_allclose(jax.jacfwd(q)(h), slope, rtol=1e-7)
    np.testing.assert_allclose(jax.jacrev(q)(h), slope, rtol=1e-7)


def test_a_scene_without_loops_stays(four_bar):
    model, state = carom.compile_scene(carom.load("pendulum"))
    assert carom.close_loops(model, state) is state
