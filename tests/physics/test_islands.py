"""Islands that strike at the same tick have times of their own in derivatives; and what has no derivative says so."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.engine import results
from carom.integrators.islands import islands

G, RADIUS, END, ALONG = 9.81, 0.1, 0.7, 8.0
RESTITUTION = np.array([0.8, 0.5, 0.0])  # two bounce, the third stays and slips
START = np.array([1.0, 1.0, 1.0, 0.1])  # m: the heights of their falls; friction
RUN: dict[str, Any] = {"duration": END, "frame_dt": END, "max_dt": 0.1, "max_contacts": 3, "max_impacts": 4}


@functools.cache
def scene() -> Any:
    b = carom.SceneBuilder(gravity=(0, 0, -G))
    b.add_plane(friction=1.0, restitution=1.0)
    for k, e in enumerate(RESTITUTION):
        b.add_body(
            f"ball{k}", shapes=[carom.Sphere(RADIUS)], mass=1.0 + k, position=(0, k, 1), friction=1.0, restitution=e,
            linear_velocity=(ALONG, 0, 0),
        )  # fmt: skip
        for other in range(k):
            b.exclude(f"ball{k}", f"ball{other}")
    return carom.compile_scene(b)


@jax.jit
def ends(x: jax.Array) -> tuple[jax.Array, Any]:
    """How far and how high each ball is at the end (3, 2)."""
    model, state = scene()
    q = state.q.reshape(3, 7).at[:, 2].set(x[:3] + RADIUS).ravel()
    model = model.replace(
        pair_friction=jnp.full_like(model.pair_friction, x[3]), gap_band=jnp.full_like(model.gap_band, 1e-12)
    )
    run = carom.rollout(model, carom.State(q, state.v, state.t), throw=False, max_events=0, **RUN)
    return run.state.q.reshape(3, 7)[:, jnp.array([0, 2])], (run.code, run.stats.impacts)


def formula(x: jax.Array) -> jax.Array:
    """Each lands with u, leaves with e u, and loses mu (1 + e) u of its speed; what stays goes on losing mu g."""
    u, mu, e = jnp.sqrt(2 * G * x[:3]), x[3], jnp.asarray(RESTITUTION)
    left = END - u / G
    stays = e == 0
    slip = ALONG - mu * (1 + e) * u
    far = ALONG * u / G + slip * left - jnp.where(stays, mu * G * left * left / 2, 0)
    return jnp.stack([far, RADIUS + jnp.where(stays, 0, e * u * left - G * left * left / 2)], -1)


@pytest.mark.slow
def test_what_lands_together_has_times_of_its_own() -> None:
    """By each height and the friction: what the formula says, and differences of runs in which they land one by one."""
    scene()  # not inside jit
    x = jnp.asarray(START)
    place, (code, impacts) = ends(x)
    assert (int(code), int(impacts)) == (results.OK, 3)
    np.testing.assert_allclose(place, formula(x), rtol=0, atol=1e-9)
    slope = jax.jit(lambda x, d: jax.jvp(lambda x: ends(x)[0], (x,), (d,))[1])
    forward = np.stack([slope(x, d) for d in jnp.eye(4)], -1)
    # what slips on does so in steps of order 2
    np.testing.assert_allclose(forward, jax.jacfwd(formula)(x), rtol=0, atol=1e-8)
    step = 1e-4  # differences: 1e-12 m of the gap band over the step, and the third derivative
    apart = np.stack([(ends(x + d)[0] - ends(x - d)[0]) / (2 * step) for d in jnp.eye(4) * step], -1)
    np.testing.assert_allclose(forward, apart, rtol=0, atol=1e-6)


@pytest.mark.slow
def test_second_derivatives_are_refused() -> None:
    """In forward over forward and forward over reverse."""
    scene()

    def height(h: jax.Array, **how: Any) -> jax.Array:
        model, state = scene()
        run = carom.rollout(model, carom.State(state.q.at[2].set(h), state.v, state.t), throw=False, **RUN, **how)
        return run.state.q[2]

    once = lambda h: jax.jvp(height, (h,), (1.0,))[1]  # noqa: E731
    with pytest.raises(TypeError, match="runs in which bodies can touch have first derivatives only"):
        jax.jvp(once, (1.1,), (1.0,))
    with pytest.raises(TypeError, match="take differences of first derivatives"):
        jax.hessian(lambda h: height(h, reverse=True, max_ticks=16))(1.1)


def test_islands_are_what_touches() -> None:
    """Of six trees 0-3 and 3-5 touch, 2 touches the world, 1 and 4 are near and do not."""
    b = carom.SceneBuilder()
    for k in range(6):
        b.add_body(f"body{k}", mass=1.0, inertia=(1, 1, 1))
    model, _ = carom.compile_scene(b)
    tree = jnp.array([[3, 0], [5, 3], [2, 6], [1, 4]])
    touching = jnp.array([True, True, True, False])
    np.testing.assert_array_equal(islands(model.topology, tree, touching), [0, 1, 2, 0, 4, 0])
    # lanes are last
    lanes = jnp.stack([touching, ~touching], -1)
    both = islands(model.topology, jnp.stack([tree, tree], -1), lanes)
    np.testing.assert_array_equal(both.T, [[0, 1, 2, 0, 4, 0], [0, 1, 2, 3, 1, 5]])


def test_springs_tie_islands() -> None:
    b = carom.SceneBuilder()
    for name in "abc":
        b.add_body(name, mass=1.0, inertia=(1, 1, 1), position=("abc".index(name), 0, 0))
    b.add_loop("a", link_b="c", frame_b=(0, 0, 0), joint=carom.Spring(1.0, length=1.0))
    model, _ = carom.compile_scene(b)
    np.testing.assert_array_equal(islands(model.topology, jnp.zeros((0, 2), int), jnp.zeros(0, bool)), [0, 1, 0])
