"""Runs in which nothing can touch: the same bits alone, as lanes, inside jit and under vmap; derivatives both ways."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom

LANES, DT = 11, 0.05  # no whole number of blocks
G, LENGTH = 9.81, 0.5


@functools.cache
def pendulums() -> tuple[carom.Model, carom.State, jax.Array]:
    """A point mass on a rod with a motor; lanes at angles of their own, and torques for four periods."""
    b = carom.SceneBuilder()
    joint = carom.Revolute(axis=(0, 1, 0), motor=carom.Motor(effort=1.0))
    b.add_link("rod", joint=joint, mass=1.0, com=(0, 0, -LENGTH), inertia=(0, 0, 0), q0=0.3)
    model, start = carom.compile_scene(b, dtype="float64")
    many = carom.tile(start, LANES)
    state = carom.State(jnp.linspace(-1, 2, LANES)[:, None], many.v, many.t)
    return model, state, jnp.asarray(np.random.default_rng(0).uniform(-1, 1, (LANES, 4, 1)))


def run(state: carom.State, control: jax.Array, model: Any = None) -> Any:
    made = carom.rollout(
        pendulums()[0] if model is None else model, state, duration=4 * DT, frame_dt=DT, control=control
    )
    return made.t, made.q, made.v, made.state


def test_a_lane_is_the_same_bits_anywhere() -> None:
    """Also with a model of its own."""
    model, state, torques = pendulums()
    lanes = run(state, torques)
    one = jax.tree.map(lambda x: x[3], state)
    for other in (
        jax.jit(run)(state, torques),
        jax.jit(jax.vmap(run))(state, torques),
        jax.tree.map(lambda x: jnp.broadcast_to(x, (LANES, *x.shape)), run(one, torques[3])),
    ):
        for x, y in zip(jax.tree.leaves(lanes), jax.tree.leaves(other), strict=True):
            np.testing.assert_array_equal(x[3], y[3])
    masses = jnp.linspace(0.5, 2, LANES)[:, None]
    mapped = jax.vmap(lambda m, s, u: run(s, u, model.replace(mass=m)))(masses, state, torques)
    own = run(state, torques, model.replace(mass=masses))
    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=0, atol=1e-13), mapped, own)
    steps = jax.vmap(lambda s, u: carom.step(model, s, dt=DT, control=u[0]))(state, torques)
    np.testing.assert_array_equal(steps.q, lanes[1][:, 1])


@pytest.mark.slow
def test_derivatives_both_ways() -> None:
    """Of the end by the start, and by the torque of the first period: forward is reverse, and differences agree."""
    _, state, torques = pendulums()
    one, own = jax.tree.map(lambda x: x[3], state), torques[3]

    def end(q: Any, u: Any) -> Any:
        return run(carom.State(q, one.v, one.t), u)[1][-1]

    forward, reverse = (f(end, (0, 1))(one.q, own) for f in (jax.jacfwd, jax.jacrev))
    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-12), forward, reverse)
    d = 1e-6
    np.testing.assert_allclose(forward[0], (end(one.q + d, own) - end(one.q - d, own))[:, None] / (2 * d), rtol=1e-8)
    lanes = jax.vmap(jax.grad(lambda q, u: end(q, u)[0]))(state.q, torques)
    np.testing.assert_allclose(lanes[3], reverse[0][0], rtol=1e-9)
