"""Checkpoints: a batch that is saved, and goes on as if nothing had been."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom

LANES = 5


def _play(env, now, steps):
    state, observation = now
    for k in range(steps):
        action = jnp.full((LANES,), k % 2)
        state, observation, _, ended, cut = env.step(state, action)
        state, observation = env.restarted(state, observation, ended | cut)
    return state, observation


def test_a_batch_of_episodes_goes_on_bit_for_bit(tmp_path):
    env = carom.make_env("cart_pole")
    now = _play(env, env.reset(jax.random.split(jax.random.key(3), LANES)), 30)
    carom.save_checkpoint(tmp_path / "run.npz", now)
    fresh = env.reset(jax.random.split(jax.random.key(0), LANES))
    back = carom.load_checkpoint(tmp_path / "run.npz", fresh)
    first, second = (_play(env, start, 200) for start in (now, back))
    assert (jax.random.key_data(first[0].key) != jax.random.key_data(now[0].key)).any()  # new episodes have begun
    for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
        a, b = (jax.random.key_data(x) if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else x for x in (a, b))
        np.testing.assert_array_equal(a, b)


def test_a_batch_of_scenes_goes_on_bit_for_bit(tmp_path):
    model, state = carom.compile_scene(carom.load("bouncing_ball"))
    lanes = carom.tile(state, LANES)
    lanes = carom.State(lanes.q, lanes.v.at[:, 5].add(jnp.arange(LANES) / 7), lanes.t)
    half = carom.rollout(model, lanes, duration=0.5).state
    carom.save_checkpoint(tmp_path / "half.npz", {"state": half, "done": 30})
    back = carom.load_checkpoint(tmp_path / "half.npz", {"state": lanes, "done": 0})
    assert int(back["done"]) == 30
    ends = [carom.rollout(model, start, duration=0.5).state for start in (half, back["state"])]
    assert carom.state_hash(ends[0]) == carom.state_hash(ends[1])
    assert len(set(carom.state_hash(ends[0]))) == LANES


def test_a_learner_reads_observations_without_a_copy():
    """By DLPack, as torch.from_dlpack does."""
    env = carom.make_env("cart_pole")
    _, observation = env.reset(jax.random.split(jax.random.key(0), LANES))
    seen = np.from_dlpack(observation)
    assert seen.ctypes.data == observation.unsafe_buffer_pointer()
    np.testing.assert_array_equal(seen, observation)


def test_files_that_are_none(tmp_path):
    like, path = {"a": jnp.zeros(3), "b": jax.random.key(1)}, tmp_path / "x.npz"
    with pytest.raises(FileNotFoundError):
        carom.load_checkpoint(path, like)
    path.write_bytes(b"nothing")
    with pytest.raises(carom.FileError, match=r"x\.npz.*no checkpoint of Carom's"):
        carom.load_checkpoint(path, like)
    np.savez(path, a=np.zeros(3))
    with pytest.raises(carom.FileError, match="no checkpoint of Carom's"):
        carom.load_checkpoint(path, like)
    carom.save_checkpoint(path, like)
    whole = path.read_bytes()
    assert jax.random.key_data(carom.load_checkpoint(path, like)["b"]).tolist() == [0, 1]
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(carom.FileError, match="cut off"):
        carom.load_checkpoint(path, like)
    path.write_bytes(whole)
    for other, says in (
        ({"a": jnp.zeros(3)}, r"of \['b'\] the file has one, and `like` does not"),
        (like | {"c": 1}, r"of \['c'\] the file has none"),
        (like | {"a": jnp.zeros(4)}, r"\['a'\] is float64 \(3,\) there, and float64 \(4,\) in `like`"),
    ):
        with pytest.raises(carom.FileError, match=says):
            carom.load_checkpoint(path, other)
    with pytest.raises(TypeError, match=r"\['a'\] is object; it must be an array or a number"):
        carom.save_checkpoint(path, {"a": object()})
    assert path.read_bytes() == whole
