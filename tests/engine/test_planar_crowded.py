"""Planar chains with more demands than freedom: the exceptional situations of sections 6.1, 11.1, 11.2 and 12.2."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from carom.engine.planar.accelerations import chain_accelerations
from carom.engine.planar.angles import chain_angular
from carom.engine.planar.model import Chain, ChainDrive, ChainState
from carom.tests.oracles.random_chains import placed, plain_chain, unit, with_nan

accelerated = jax.jit(chain_accelerations)
MET = 1e-8  # demands of order 1, through forces of up to 1e3


def crowded(room: int = 0) -> tuple[Chain, ChainState, ChainDrive]:
    """Six joints (and room for more) with more demands than freedom, at rest and under way.

    0: both ends of link 1 guided.  1: 5 guided and 2 to 4 active, which leaves joint 1 one way to go, and link 0 of 0,
    guided, shuts that (12.2, half rigid); 1 active besides.  2: 4 guided too (12.2, rigid).  3: 0 and 5 guided, 1, 3
    and 4 active: just as many as there is freedom.  4: joint 3 guided and on a line at once.
    """
    n = 6 + room
    held = np.array([[1, 2], [0, 5], [0, 4, 5], [0, 5], [3]], object)
    turning = [[], [1, 2, 3, 4], [1, 2, 3, 4], [1, 3, 4], []]
    guided, active = (np.array([np.isin(np.arange(n), who) for who in rows]) for rows in (held, turning))
    rng = np.random.default_rng(3)
    lanes = len(turning)
    line = np.zeros((lanes, n, 2))
    line[4, 3] = [0.6, 0.8]
    one = plain_chain(n).replace(joints=jnp.array(6), gravity=jnp.array([0.0, -9.81]))
    model = jax.tree.map(lambda a: jnp.broadcast_to(a, (lanes, *a.shape)), one)
    model = model.replace(guided=jnp.asarray(guided), active=jnp.asarray(active), line=jnp.asarray(line))
    angle, rate = rng.uniform(-1, 1, (2, lanes, n - 1))
    drive = ChainDrive(acceleration=jnp.asarray(rng.normal(size=(lanes, n, 2))), angular=jnp.ones((lanes, n)))
    x, v = placed(np.ones((lanes, n - 1)), angle, rate, *np.zeros((2, lanes, 2)))
    none = jnp.zeros((lanes, n), int)
    return model, ChainState(jnp.asarray(x), jnp.asarray(v), jnp.zeros(lanes), none - 1, none), drive


def missed(model: Chain, state: ChainState, drive: ChainDrive, a) -> dict[str, np.ndarray]:
    """By how much each demand is missed, NaN where there is none: (lanes, joints)."""
    x, v, a = (np.asarray(y) for y in (state.x, state.v, a))
    d, w = np.diff(x, axis=1), np.diff(v, axis=1)
    r, l = unit(d), np.linalg.norm(d, axis=-1)
    length = np.abs((r * -np.diff(a, axis=1)).sum(-1) - (w * w).sum(-1) / l)
    given, hold = np.asarray(drive.angular), np.asarray(drive.acceleration)
    angle = np.abs(chain_angular(model, state, jnp.asarray(a)) - given[:, :-1])
    held = np.abs(a - hold).max(-1)
    return {
        "length": length,
        "angle": np.where(model.active[:, :-1], angle, np.nan),
        "held": np.where(model.guided, held, np.nan),
    }


@pytest.mark.slow
def test_what_can_be_met_is_met():
    """And what cannot is as little as the demands' rank allows; whatever is guided is where it should be (6.1)."""
    model, state, drive = crowded()
    found = accelerated(model, state, drive)
    assert all(np.isfinite(x).all() for x in found)
    too_many = missed(model, state, drive, found.a)
    assert np.nanmax(too_many["held"]) == 0
    count = sum((x > MET).sum(1) for x in (too_many["length"], too_many["angle"]))
    np.testing.assert_array_equal(count, [1, 1, 3, 0, 0])
    assert too_many["length"][0, 1] > MET
    assert not np.asarray(found.force[0, 2]).any()  # no force changes it, so it carries none


def test_what_cannot_move_stands():
    """Demands that repeat each other do not contradict: held at rest in its own gravity, nothing moves."""
    model, state, _ = crowded()
    rest = ChainState(state.x, 0 * state.v, state.t, state.stuck, state.shut)
    found = accelerated(model, rest, ChainDrive(acceleration=jnp.zeros(state.x.shape), angular=jnp.zeros((5, 6))))
    np.testing.assert_allclose(found.a[1:4], 0, atol=MET)
    weight = 9.81 * np.asarray(model.mass).sum(1)[1:4]
    np.testing.assert_allclose(np.asarray(found.reaction).sum(1)[1:4, 1], weight, rtol=1e-9)


@pytest.mark.slow
def test_derivatives_are_finite_everywhere():
    """By every number there is, where demands contradict each other, with NaN in the room."""

    def reach(floats, parts):
        parts = [replace(part, **given) for part, given in zip(parts, floats, strict=True)]
        return sum((x * x).sum() for x in chain_accelerations(*parts))

    parts = with_nan(*crowded(room=1))
    floats = [{k: x for k, x in vars(part).items() if x is not None and x.dtype.kind == "f"} for part in parts]
    slopes = jax.jit(jax.grad(reach))(floats, parts)
    assert [name for given in slopes for name, x in given.items() if not jnp.isfinite(x).all()] == []
