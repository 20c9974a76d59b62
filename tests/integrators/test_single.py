"""The step with contacts: readouts, codes; what it does is tested in tests/physics and tests/contact."""

import functools

import jax
import numpy as np
import pytest

import carom
from carom.contact.events import contact_events
from carom.contact.impulses import ContactImpulses
from carom.engine.results import OK
from carom.tests.oracles.single_step import single_step
from carom.tests.oracles.stepping import limit_impulses

G, H = 9.81, 1 / 240


@functools.cache
def scene(dtype=None):
    """Two boxes on each other on the ground, a ball that falls on the upper one, an arm held at its limit."""
    b = carom.SceneBuilder()
    b.add_plane()
    for k in range(2):
        box, e = carom.Box((0.5, 0.5, 0.5)), 0.5 * k
        b.add_body(f"box {k}", [box], mass=2.0 + k, position=(0, 0, 0.5 + k), restitution=e)
    b.add_body("ball", [carom.Sphere(0.1)], mass=0.5, position=(0, 0, 2.1), linear_velocity=(0, 0, -1), restitution=0.5)
    joint = carom.Revolute(axis=(0, 1, 0), limits=(-1, 0))
    b.add_link("arm", joint=joint, position=(5, 0, 2), mass=1.0, com=(0.5, 0, 0), inertia=(0.01, 0.1, 0.1))
    return carom.compile_scene(b.build(), dtype=dtype)


@jax.jit
def stepped(model, state):
    after = single_step(model, state, H)
    pushed = ContactImpulses.by(model, state.q, after.contacts, after.impulse)
    limits = limit_impulses(model, after.contacts, after.impulse)
    return after.state, contact_events(after.contacts, after.impacts), (pushed, limits), after.code


@pytest.mark.parametrize("dtype", [pytest.param(np.float32, marks=pytest.mark.exhaustive), np.float64])
@pytest.mark.slow
def test_readout_balances_forces(dtype):
    """What rests is carried: impulses on each link are its weight times h, of each pair those of the links above it."""
    model, state = scene(dtype)
    no_ball = carom.State(state.q.at[16].set(5), state.v.at[17].set(0), state.t)  # the ball is high above
    after, events, (pushed, limits), code = stepped(model, no_ball)
    close = functools.partial(np.testing.assert_allclose, rtol=1e-4 if dtype == np.float32 else 1e-9, atol=1e-6)
    assert (code, events.count) == (OK, 0)
    close(pushed.links[:, 5], np.array([2, 3, 0, 0]) * G * H)
    on = model.topology.shape_links
    links = [(on[a], on[b]) for a, b in model.topology.pairs]
    for k, pair in enumerate(links):
        want = {(-1, 0): 5 * G * H, (0, 1): 3 * G * H}.get(pair, 0)
        close(pushed.normals[k], want)
        close(pushed.pairs[k], [0, 0, -want])  # on A, the one below
    close(limits, np.append(np.zeros(18), -0.5 * G * H))
    close(after.q, no_ball.q.at[16].set(5 - G * H**2 / 2))


@pytest.mark.slow
def test_impact_in_a_step():
    """The ball strikes the upper box, e = 0.5, while the boxes rest: a central blow of 0.5 kg on 3 kg."""
    model, state = scene()
    _, events, _, code = stepped(model, state)
    assert code == OK
    assert events.count >= 1
    assert events.bodies[0].tolist() in ([1, 2], [2, 1])
    np.testing.assert_allclose(np.abs(events.impulse[0]), [0, 0, 1.5 * 1 / (1 / 0.5 + 1 / 3)], atol=1e-12)
    np.testing.assert_allclose(events.point[0], [0, 0, 2], atol=1e-12)
    np.testing.assert_allclose(np.abs(events.normal[0]), [0, 0, 1], atol=1e-12)
    np.testing.assert_allclose(events.u_after[0, 2], 0.5, atol=1e-12)
    real = slice(0, int(events.count))
    np.testing.assert_allclose(events.energy_before[0], 0.25)
    np.testing.assert_array_equal(events.energy_before[real][1:], events.energy_after[real][:-1])
