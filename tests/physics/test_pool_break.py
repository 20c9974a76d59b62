"""Breaks of sixteen balls, each lane another: their ledgers of energy and momentum close, impact by impact."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.contact.contacts import tangents
from carom.engine.algebra.vec3 import Vec3
from carom.engine.results import OK
from carom.scenes.library.registry import library_scene

pytestmark = pytest.mark.slow  # half a minute to compile

LANES = 12
LEFT = 1e-8  # of the energy: what balls that rest on the cloth move up and down, at far less than the rest speed
RUN: dict[str, Any] = {"duration": 0.6, "max_dt": 1 / 60, "max_events": 512}


@functools.cache
def breaks() -> tuple[carom.Model, carom.State, Any]:
    """Cue balls of random speeds and directions; no friction, so that impulses of impacts are all there is."""
    model, state = carom.compile_scene(library_scene("pool_break"))
    model = model.replace(pair_friction=jnp.zeros_like(model.pair_friction))
    states = carom.tile(state, LANES)
    random = np.random.default_rng(5)
    speed, angle = random.uniform(5, 9, LANES), random.uniform(-0.05, 0.05, LANES)
    v, cue = np.array(states.v), model.topology.v_start[model.topology.names.index("cue")]
    v[:, cue + 3], v[:, cue + 4] = speed * np.cos(angle), speed * np.sin(angle)
    states = carom.State(states.q, jnp.asarray(v), states.t)
    return model, states, carom.rollout(model, states, **RUN)


def test_all_lanes_are_well_and_differ() -> None:
    _, _, result = breaks()
    assert (result.code == OK).all()
    assert result.stats.useful.min() >= 0.6
    assert (result.stats.impacts >= 20).all()
    assert len(np.unique(np.asarray(result.q[:, -1, 0]))) == LANES


def test_energy_ledger() -> None:
    """What all impacts took is what is missing at the end, and before each there is what the last one left."""
    model, states, result = breaks()
    energy = jax.vmap(lambda s: carom.energy(model, s).kinetic)
    first, last = np.asarray(energy(states)), np.asarray(energy(result.state))
    for lane in range(LANES):
        n = int(result.events.count[lane])
        before, after = (np.asarray(x[lane, :n]) for x in (result.events.energy_before, result.events.energy_after))
        assert (after <= before * (1 + 1e-14)).all()
        np.testing.assert_allclose(before, np.append(first[lane], after[:-1]), rtol=LEFT)
        np.testing.assert_allclose(last[lane], after[-1], rtol=LEFT)


def test_momentum_ledger() -> None:
    """What the balls' momentum along the table changes by is what the cushions pushed."""
    model, states, result = breaks()
    events = result.events
    n = Vec3.of(events.normal)
    push = np.stack((tangents(n).T @ Vec3.of(events.impulse)).xyz, -1)  # on A
    bodies, real = np.asarray(events.bodies), np.arange(events.t.shape[1]) < np.asarray(events.count)[:, None]
    on_balls = np.where(bodies[..., :1] == -1, -push, np.where(bodies[..., 1:] == -1, push, 0))
    total = np.where(real[..., None], on_balls, 0).sum(1)[:, :2]
    moved = [np.asarray(s.v).reshape(LANES, 16, 6)[:, :, 3:5] for s in (states, result.state)]
    change = np.einsum("b,lbk->lk", np.asarray(model.mass), moved[1] - moved[0])
    np.testing.assert_allclose(change, total, atol=1e-12)


def test_a_lane_is_its_single_run() -> None:
    model, states, result = breaks()
    for lane in (0, LANES - 1):
        alone = carom.rollout(model, jax.tree.map(lambda x, k=lane: x[k], states), **RUN)
        count = int(alone.events.count)
        assert count == result.events.count[lane]
        np.testing.assert_allclose(result.events.t[lane, :count], alone.events.t[:count], atol=1e-9)
        np.testing.assert_allclose(result.q[lane], alone.q, atol=1e-8)
