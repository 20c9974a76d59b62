"""Laws of rest of one's own: springs of any form, held to what is known of them."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.contact.resting.models import RESTING
from carom.engine.native import key
from carom.engine.results import SimulationError

G, MASS, K_HERTZ = 9.81, 2.0, 1e5


def hertz(K, u, mu, e, gap, h):
    """Hertz's spring, without friction, which gives back a share e^2 of its work."""
    force = K_HERTZ * (-gap) ** 1.5 * jnp.where(u[2] < 0, 1, e * e)
    return jnp.stack([0 * force, 0 * force, force * h])


def springs(K, u, mu, e, gap, h):
    """What "penalty" is."""
    swift = 0.3 / h
    p_n = jnp.maximum((-swift * swift * gap - 2 * swift * u[2]) / K[2, 2] * h, 0)
    p_t = -u[:2] * jnp.minimum(mu * p_n / jnp.linalg.norm(u[:2]).clip(1e-300), 0.3 / K[2, 2])
    return jnp.append(p_t, p_n)


@pytest.fixture
def law():
    """Registers one for a test."""
    names = []

    def register(name, push):
        carom.register_resting_law(name, push)
        names.append(name)
        return name

    yield register
    for name in names:
        del RESTING[name]
        key._only_here.discard(name)


def ball(height=0.0, velocity=(0.0, 0.0, 0.0), gravity=G):
    """A ball over a plane."""
    b = carom.SceneBuilder(gravity=(0, 0, -gravity))
    b.add_plane(friction=0.5)
    b.add_body("ball", [carom.Sphere(0.1)], mass=MASS, position=(0, 0, 0.1 + height), linear_velocity=velocity,
               friction=0.5)  # fmt: skip
    return carom.compile_scene(b, overlaps="ignore")


@pytest.mark.slow
def test_a_ball_sinks_in_until_its_spring_bears_it(law):
    """Until its weight is k depth^(3/2); on the way nothing strikes."""

    def damped(K, u, mu, e, gap, h):
        return hertz(K, u, mu, 1.0, gap, h) * (1 - 10 * u[2])

    model, state = ball()
    run = carom.rollout(model, state, duration=1.0, frame_dt=0.1, max_dt=1e-3, resting=law("damped", damped))
    depth = (MASS * G / K_HERTZ) ** (2 / 3)
    np.testing.assert_allclose(0.1 - run.q[-5:, 2], depth, rtol=1e-6)
    assert int(run.events.count) == 0


def test_a_bounce_is_hertz_s(law):
    """Depth and time of an elastic impact (Johnson, Contact Mechanics, 11.1), and restitution, by lane."""
    model, state = ball(0.001, (0.3, 0, -1), gravity=0)
    e = jnp.array([1.0, 0.5])
    run = carom.rollout(model.replace(pair_restitution=e[:, None]), carom.tile(state, 2), duration=0.08, frame_dt=1e-4,
                        max_dt=1e-4, resting=law("hertz_bounces", hertz))  # fmt: skip
    deepest = (5 * MASS / (4 * K_HERTZ)) ** 0.4
    np.testing.assert_allclose(0.1 - run.q[:, :, 2].min(1), deepest, rtol=0.01)
    np.testing.assert_allclose(run.v[:, -1, 5], e, rtol=0.01)
    np.testing.assert_allclose(run.v[:, -1, 3], 0.3, rtol=1e-12)  # no friction
    inside = (run.q[0, :, 2] < 0.1).sum() * 1e-4
    np.testing.assert_allclose(inside, 2.9432 * deepest, rtol=0.01)


@pytest.mark.slow
def test_a_run_is_that_of_the_law_it_repeats(law):
    """Springs of contacts and of a joint's limit, told twice: Carom's own, and one's own."""
    b = carom.SceneBuilder()
    b.add_plane(friction=0.5)
    b.add_body("box", [carom.Box((0.1, 0.2, 0.3))], position=(1, 0, 0.31), linear_velocity=(1, 0.3, 0),
               angular_velocity=(0, 1, 3), friction=0.3)  # fmt: skip
    b.add_link("arm", parent="world", joint=carom.Revolute(axis=(0, 1, 0), limits=(-0.5, 0.5)), position=(0, 5, 2),
               shapes=[carom.Capsule(0.02, 0.25, position=(0, 0, -0.25))], mass=1.0, q0=0.4)  # fmt: skip
    model, state = carom.compile_scene(b)
    lanes = carom.tile(state, 2)
    lanes = dataclasses.replace(lanes, v=lanes.v.at[:, 3].set(jnp.arange(2.0)))
    name = law("springs", springs)
    own, theirs = (carom.rollout(model, lanes, duration=0.2, frame_dt=0.1, resting=x) for x in (name, "penalty"))
    np.testing.assert_allclose(own.q, theirs.q, atol=1e-9)
    assert float(abs(own.q[:, -1] - own.q[:, 0]).max()) > 0.1


@pytest.mark.slow
def test_what_it_asks_for_is_put_on_the_cone(law):
    """One that would stop all slip slows a ball by mu g at most, and one that pulls does not."""

    def pulls(K, u, mu, e, gap, h):
        return jnp.stack([-100 * u[0], -100 * u[1], 0 * h - 1])

    def grips(K, u, mu, e, gap, h):
        return springs(K, u, mu, e, gap, h) * jnp.array([1e6, 1e6, 1])

    options = carom.Options(max_dt=1e-3, time_control="fixed")
    model, state = ball(-0.001, (1, 0, 0))
    run = carom.rollout(model, state, duration=0.1, frame_dt=0.1, options=options, resting=law("pulls", pulls))
    np.testing.assert_allclose(run.q[-1, :3], [0.1, 0, 0.099 - G * 0.01 / 2], atol=1e-12)
    model, state = ball(0.0, (1, 0, 0))
    run = carom.rollout(model, state, duration=0.05, frame_dt=0.01, options=options, resting=law("grips", grips))
    np.testing.assert_allclose(run.v[5, 3] - run.v[3, 3], -0.5 * G * 0.02, rtol=0.02)


@pytest.mark.slow
def test_what_is_no_number_is_told(law):
    model, state = ball()
    name = law("nothing", lambda K, u, mu, e, gap, h: jnp.full(3, jnp.nan))
    with pytest.raises(SimulationError, match="NOT_FINITE"):
        carom.rollout(model, state, duration=0.1, frame_dt=0.1, resting=name)


def test_its_code_has_no_lasting_name(law):
    """Another process may have another law of this name."""
    assert key.program_key(carom.rollout, ("penalty",), ()) is not None
    assert key.program_key(carom.rollout, (law("my_springs", springs),), ()) is None


@pytest.mark.parametrize(
    ("name", "push", "said"),
    [
        ("penalty", springs, "register_resting_law: there is a law 'penalty' already"),
        ("two words", springs, "register_resting_law: name is 'two words'"),
        ("short", lambda K, u, mu, e, gap, h: u[:2], r"register_resting_law: .* must return one array \(3,\)"),
    ],
)
def test_what_is_no_law_is_refused(name, push, said):
    with pytest.raises(ValueError, match=said):
        carom.register_resting_law(name, push)
    assert "short" not in RESTING
