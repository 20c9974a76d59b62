"""`carom.step`: the rollout's last state, in jit, in vmap, and with derivatives that go through impacts."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.engine import results
from carom.tests.integrators.bouncing import RADIUS, G, ball

SAME = 1e-12  # another program: products and sums may be contracted otherwise
E, PUSH, MASS, STOP = 0.5, 4.0, 2.0, 0.5


@functools.cache
def slider() -> tuple[carom.Model, carom.State]:
    """2 kg on a rail, 1 m/s, 0.5 m before its stop, e = 0.5."""
    b = carom.SceneBuilder(gravity=(0, 0, 0))
    joint = carom.Prismatic((1, 0, 0), limits=(-1, STOP), restitution=E)
    b.add_link("slider", joint=joint, mass=MASS, inertia=(1, 1, 1), v0=1.0)
    return carom.compile_scene(b)


def pushed(x: float, v: float, t: float) -> tuple[float, float]:
    """Where it is, and how fast, after t < 2 s under the constant push: one impact, references.md, Stop of a joint."""
    a = PUSH / MASS
    strikes = np.sqrt(v * v + 2 * a * (STOP - x))
    rest = t - (strikes - v) / a
    return STOP - E * strikes * rest + a * rest * rest / 2, -E * strikes + a * rest


@pytest.mark.slow
def test_against_rollout_and_closed_form() -> None:
    """One step through an impact, at the very time: no frame but its end."""
    model, state = slider()
    after = carom.step(model, state, dt=0.6, control=jnp.array([PUSH]))
    run = carom.rollout(model, state, duration=0.6, frame_dt=0.2, control=jnp.array([PUSH]), max_events=4)
    np.testing.assert_allclose(after.q, run.state.q, rtol=0, atol=SAME)
    np.testing.assert_allclose(after.v, run.state.v, rtol=0, atol=SAME)
    assert float(after.t) == pytest.approx(0.6, abs=SAME)
    assert int(run.stats.impacts) == 1
    np.testing.assert_allclose((after.q[0], after.v[0]), pushed(0.0, 1.0, 0.6), rtol=0, atol=SAME)


def test_steps_add_up() -> None:
    """dt is no part of the program: many short steps end where one long one does."""
    model, state = slider()
    for _ in range(6):
        state = carom.step(model, state, dt=0.1, control=jnp.array([PUSH]))
    np.testing.assert_allclose((state.q[0], state.v[0]), pushed(0.0, 1.0, 0.6), rtol=0, atol=SAME)


# -- derivatives --------------------------------------------------------------------------------------------


def bounced(h: np.ndarray, t: float, e: float) -> np.ndarray:
    """Height and speed of the ball's middle at t, after the second bounce, dropped from a gap h: (..., 2)."""
    u = np.sqrt(2 * G * h)
    second = u / G + 2 * e * u / G
    rest = t - second
    return np.stack([RADIUS + e * e * u * rest - G * rest * rest / 2, e * e * u - G * rest], -1)


@pytest.mark.exhaustive  # compiles for a minute; test_gradients has three bounces
def test_derivatives_through_two_bounces() -> None:
    """In jit, in vmap, forward: height and speed at 1 s by the height of the fall, against the formula's own slope.

    Both bounces shift in time as h grows, so holding their times would give another answer.
    """
    model, state = ball(restitution=0.5)
    heights, t = jnp.array([0.8, 1.0, 1.1]), 1.0

    def end(h: jax.Array) -> jax.Array:
        start = carom.State(state.q.at[2].set(h + RADIUS), state.v, state.t)
        after = carom.step(model, start, dt=t, max_contacts=1)
        return jnp.stack([after.q[2], after.v[5]])

    slope = lambda h: jax.jvp(end, (h,), (jnp.ones_like(h),))  # noqa: E731
    value, slopes = jax.jit(jax.vmap(slope))(heights)
    h = np.asarray(heights)
    np.testing.assert_allclose(value, bounced(h, t, 0.5), rtol=0, atol=1e-11)
    d = 1e-6  # differences of the formula: rounding 1e-10
    exact = (bounced(h + d, t, 0.5) - bounced(h - d, t, 0.5)) / (2 * d)
    np.testing.assert_allclose(slopes, exact, rtol=0, atol=1e-8)


# -- what may not be asked ----------------------------------------------------------------------------------


@pytest.mark.slow  # traces for 10 to 20 s
@pytest.mark.parametrize("ran", ["step", "rollout"])
def test_reverse_mode_says_what_to_do(ran: str) -> None:
    """Where the number of ticks is not known beforehand nothing can go back through them."""
    model, state = ball(0.5)

    def later(v: jax.Array) -> jax.Array:
        start = carom.State(state.q, v, state.t)
        if ran == "step":
            return carom.step(model, start, dt=0.01).q[2]
        return carom.rollout(model, start, duration=0.01, frame_dt=0.01).state.q[2]

    with pytest.raises(ValueError, match=rf"{ran}: .*reverse mode .*reverse=True .*max_ticks"):
        jax.make_jaxpr(jax.grad(later))(state.v)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dt": 0.0}, "dt is 0.0; it must be a positive number of seconds"),
        ({"dt": -1.0}, "dt is -1.0"),
        ({"dt": float("nan")}, "dt is nan"),
        ({"max_dt": 0.0}, "max_dt is 0.0; it must be a positive number of seconds"),
        ({"scheme": "euler"}, "scheme 'euler' is unknown"),
        ({"time_control": "none"}, "time_control is 'none'; it must be one of rollback, likely, fixed"),
        ({"law": "coulomb"}, "coulomb"),
        ({"impacts": "all"}, "impacts is 'all'"),
        ({"resting": "none"}, "none"),
        ({"max_contacts": 0}, "max_contacts is 0; it must be a whole number from 1 to 1048576"),
        ({"control": np.zeros(3)}, r"step: control has shape \(3,\); give \(1,\), for the whole of dt"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"dt": 0.1} | arguments
    with pytest.raises(ValueError, match=message):
        carom.step(*slider(), **given)


def test_failure_raises() -> None:
    model, state = slider()
    ill, push = carom.State(state.q, state.v * jnp.nan, state.t), jnp.array([PUSH])
    with pytest.raises(results.SimulationError, match=r"^lane 0, after t = 0 s: .* not finite"):
        carom.step(model, ill, dt=0.1, control=push)
    assert float(carom.step(model, ill, dt=0.1, control=push, throw=False).t) == 0  # it stays where it failed


@pytest.mark.slow  # a program of its own
def test_a_lane_that_fails_is_named() -> None:
    model, state = slider()
    two = carom.tile(state, 2)
    ill = carom.State(two.q, two.v.at[1].set(jnp.nan), two.t)
    with pytest.raises(results.SimulationError, match=r"^lane 1 \(1 of 2 lanes\), after t = 0 s: .* not finite"):
        carom.step(model, ill, dt=0.1)
    after = carom.step(model, ill, dt=0.1, throw=False)
    assert float(after.q[0, 0]) == pytest.approx(0.1, abs=SAME)
    assert float(after.t[1]) == 0  # it stays where it failed
