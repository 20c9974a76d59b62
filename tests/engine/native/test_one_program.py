"""One program serves all frames, durations, steps and lanes of a scene's structure; and a lane's bits are its own."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.engine.native.stages import watch_stages

LANES = 37


def balls() -> tuple[carom.Model, carom.State]:
    b = carom.SceneBuilder()
    b.add_plane(friction=0.3, restitution=0.8)
    for k in range(3):
        b.add_body(f"ball{k}", [carom.Sphere(0.1)], mass=1.0, position=(0.25 * k, 0, 0.2 + 0.1 * k), restitution=0.8)
    model, state = carom.compile_scene(b)
    return model, carom.State(state.q, state.v.at[3:6].set(jnp.array([1.0, 0.2, 0.0])), state.t)


def stages_of(work: Any) -> set[str]:
    seen: set[str] = set()
    with watch_stages(lambda program, stage, seconds: seen.add(stage)):
        work()
    return seen


def test_nothing_is_compiled_again() -> None:
    model, state = balls()
    carom.rollout(model, state, duration=0.2, frame_dt=0.05)
    heavier = model.replace(mass=2 * model.mass, friction=jnp.full_like(model.friction, 0.1))

    def others() -> None:
        carom.rollout(model, state, duration=0.3, frame_dt=0.05)
        carom.rollout(model, state, duration=0.31, frame_dt=1 / 60, max_dt=1 / 500, max_events=7)
        carom.rollout(heavier, carom.tile(state, 3), duration=0.1)

    assert not stages_of(others)
    carom.step(model, state, dt=0.01)
    assert not stages_of(lambda: carom.step(heavier, carom.tile(state, 4), dt=0.02, max_dt=1 / 300))


@pytest.mark.parametrize("chunk", [None, 10])
def test_a_lane_is_the_same_alone_and_anywhere_in_a_batch(chunk: int | None) -> None:
    model, state = balls()
    states = carom.tile(state, LANES)
    push = np.random.default_rng(0).normal(size=states.v.shape)
    states = carom.State(states.q, states.v + 0.5 * push, states.t)
    how: dict[str, Any] = {"duration": 0.6, "frame_dt": 0.1, "max_events": 64}
    batch = carom.rollout(model, states, chunk=chunk, **how)
    assert int(np.asarray(batch.events.count).min()) >= 3
    for lane in (0, 5, LANES - 1):
        alone = carom.rollout(model, jax.tree.map(lambda x, lane=lane: x[lane], states), **how)
        for mine, theirs in zip(jax.tree.leaves(alone), jax.tree.leaves(batch), strict=True):
            np.testing.assert_array_equal(np.asarray(mine), np.asarray(theirs)[lane])
    turned = carom.rollout(model, jax.tree.map(lambda x: x[::-1], states), **how)
    np.testing.assert_array_equal(np.asarray(turned.q), np.asarray(batch.q)[::-1])


def test_lanes_in_blocks_are_the_same_alone() -> None:
    """Where nothing touches, and of dynamics asked for by themselves."""
    model, state = carom.compile_scene(carom.load("chain"))
    states = carom.tile(state, 11)
    states = carom.State(states.q + 0.1 * np.random.default_rng(1).normal(size=states.q.shape), states.v, states.t)
    batch = carom.rollout(model, states, duration=0.1, frame_dt=0.05)
    forces = carom.aba(model, states.q, states.v, states.v)
    for lane in (0, 7, 10):
        alone = carom.rollout(model, jax.tree.map(lambda x, lane=lane: x[lane], states), duration=0.1, frame_dt=0.05)
        np.testing.assert_array_equal(alone.q, batch.q[lane])
        one = carom.aba(model, states.q[lane], states.v[lane], states.v[lane])
        np.testing.assert_array_equal(one, forces[lane])


@pytest.mark.slow
def test_a_control_that_holds_numbers_of_the_program_around_it() -> None:
    model, state = balls()

    def ends(push: jax.Array) -> jax.Array:
        forces = lambda model, state, t: jnp.zeros(model.topology.nv).at[3].set(push)  # noqa: E731
        return carom.rollout(model, state, duration=0.05, frame_dt=0.05, forces=forces).q[-1]

    np.testing.assert_allclose(jax.jit(ends)(jnp.asarray(0.5)), ends(jnp.asarray(0.5)), atol=1e-12)
