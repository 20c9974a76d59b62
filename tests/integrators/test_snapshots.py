"""What `docs/snapshots.md` promises: repeats, restarts, lanes, the order of bodies, fingerprints."""

import functools
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.engine.topology import Loop
from carom.integrators.snapshots import model_hash
from carom.tests.integrators.bouncing import LANES, lanes, ran, two_balls


@functools.cache
def batch() -> Any:
    return ran(lanes())


def same_bits(one: Any, other: Any) -> None:
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(a, b)


def frame(run: Any, k: int) -> carom.State:
    """The state in frame k of every lane."""
    return jax.tree.map(
        lambda x: x[..., k, :] if x.ndim > run.code.ndim + 1 else x[..., k], carom.State(run.q, run.v, run.t)
    )


# -- repeat, restore ------------------------------------------------------------------------------------


def test_the_same_again() -> None:
    """1. The same program, model and state: the same bits, in every field."""
    same_bits(ran(lanes()), batch())


def test_save_run_on_restore_run_again() -> None:
    """2. From a frame in the middle, through impacts and rests: the rest of the run once more, to the bit."""
    half = 30
    again = ran(frame(batch(), half))
    later = ran(batch().state)
    for name in ("t", "q", "v"):
        np.testing.assert_array_equal(getattr(again, name)[:, : half + 1], getattr(batch(), name)[:, half:])
        np.testing.assert_array_equal(getattr(again, name)[:, half:], getattr(later, name)[:, : half + 1])
    for k in range(LANES):
        whole = np.asarray(batch().events.t[k][: int(batch().events.count[k])])
        mine = np.asarray(again.events.t[k][: int(again.events.count[k])])
        cut = float(batch().t[k, half])
        np.testing.assert_array_equal(mine[mine <= float(batch().t[k, -1])], whole[whole > cut])
        assert (whole > cut).any()


def test_a_saved_state_is_only_numbers() -> None:
    """What goes through NumPy, as through a file, comes back to the same run."""
    saved = [np.asarray(x).tobytes() for x in jax.tree.leaves(frame(batch(), 30))]
    shapes = [x.shape for x in jax.tree.leaves(frame(batch(), 30))]
    loaded = [jnp.asarray(np.frombuffer(x).reshape(shape)) for x, shape in zip(saved, shapes, strict=True)]
    same_bits(ran(carom.State(*loaded)), ran(frame(batch(), 30)))


@functools.cache
def slider() -> tuple[carom.Model, carom.State]:
    """2 kg on a rail between stops, e = 0.5."""
    b = carom.SceneBuilder(gravity=(0, 0, 0))
    joint = carom.Prismatic((1, 0, 0), limits=(-1, 0.5), restitution=0.5)
    b.add_link("slider", joint=joint, mass=2.0, inertia=(1, 1, 1), v0=1.0)
    return carom.compile_scene(b)


def test_twice_the_time_is_one_time_after_the_other() -> None:
    """2. Frames of 1/60 s, no sum of which is without rounding; a push that holds it at its stop."""
    model, state = slider()
    run = functools.partial(carom.rollout, model, frame_dt=1 / 60, control=jnp.array([4.0]), max_events=16)
    whole, first = run(state, duration=2.0), run(state, duration=1.0)
    second = run(first.state, duration=1.0)
    for name in ("t", "q", "v"):
        np.testing.assert_array_equal(getattr(first, name), getattr(whole, name)[:61])
        np.testing.assert_array_equal(getattr(second, name), getattr(whole, name)[60:])
    same_bits(second.state, whole.state)
    counts = int(first.events.count), int(second.events.count)
    assert min(counts) > 0
    joined = np.concatenate([x.events.t[:n] for x, n in zip((first, second), counts, strict=True)])
    np.testing.assert_array_equal(joined, whole.events.t[: sum(counts)])


# -- lanes, order -----------------------------------------------------------------------------------------


@pytest.mark.exhaustive
def test_lane_against_single_run() -> None:
    """3. To rounding, which four bounces multiply."""
    for k in (0, LANES - 1):
        alone = ran(jax.tree.map(lambda x, k=k: x[k], lanes()))
        rows = int(alone.events.count)
        assert rows == int(batch().events.count[k])
        for name in ("t", "q", "v"):
            np.testing.assert_allclose(getattr(batch(), name)[k], getattr(alone, name), rtol=0, atol=1e-9)
        np.testing.assert_allclose(batch().events.t[k][:rows], alone.events.t[:rows], rtol=0, atol=1e-9)
        np.testing.assert_array_equal(batch().events.pair[k][:rows], alone.events.pair[:rows])


def test_neighbours_do_not_matter() -> None:
    """3. Lanes that change places, and one among other neighbours: the same bits."""
    turned = jax.tree.map(lambda x: x[::-1], lanes())
    run, expected = ran(turned), batch()
    for name in ("t", "q", "v", "events"):
        same_bits(jax.tree.map(lambda x: x[::-1], getattr(run, name)), getattr(expected, name))
    many = carom.tile(frame(batch(), 0), 1)
    alike = ran(jax.tree.map(lambda x: jnp.broadcast_to(x[0, 1], x.shape[1:]), many))
    for name in ("t", "q", "v"):
        np.testing.assert_array_equal(
            getattr(alike, name),
            np.broadcast_to(getattr(expected, name)[1], alike.q.shape[:2] + getattr(alike, name).shape[2:]),
        )


def test_order_of_bodies() -> None:
    """4. The same two balls, added the other way round: to rounding, after impacts with each other and the floor."""
    _, state = two_balls()
    swap = lambda x, n: jnp.concatenate([x[..., n:], x[..., :n]], -1)  # noqa: E731
    start = lanes()
    other = ran(carom.State(swap(start.q, 7), swap(start.v, 6), start.t))
    assert state.q.shape == (14,)
    np.testing.assert_allclose(swap(other.q, 7), batch().q, rtol=0, atol=1e-9)
    np.testing.assert_allclose(swap(other.v, 6), batch().v, rtol=0, atol=1e-8)
    rows = np.arange(batch().events.t.shape[-1]) < np.asarray(batch().events.count)[:, None]
    np.testing.assert_array_equal(other.events.count, batch().events.count)
    np.testing.assert_allclose(np.asarray(other.events.t)[rows], np.asarray(batch().events.t)[rows], rtol=0, atol=1e-9)
    meets = (np.asarray(batch().events.bodies) >= 0).all(-1) & rows
    assert meets.any(), "the balls never met: nothing is tested here"


# -- fingerprints -------------------------------------------------------------------------------------------


def state_of(q: Any, v: Any, t: Any) -> carom.State:
    """Of whatever arrays."""
    return carom.State(q, v, t)


def test_equal_states_have_equal_hashes() -> None:
    """5. Of one state and of a batch; of the numbers alone, wherever they come from."""
    one = carom.state_hash(frame(batch(), 30))
    assert one == carom.state_hash(state_of(*(np.asarray(x) for x in jax.tree.leaves(frame(batch(), 30)))))
    assert isinstance(one, list)
    assert len(set(one)) == LANES
    single = [carom.state_hash(jax.tree.map(lambda x, k=k: x[k], frame(batch(), 30))) for k in range(LANES)]
    assert single == one
    assert all(len(x) == 32 and set(x) <= set("0123456789abcdef") for x in single)


@pytest.mark.parametrize("name", ["q", "v", "t"])
def test_one_bit_is_another_hash(name: str) -> None:
    _, state = two_balls()
    fields = {k: np.array(getattr(state, k), ndmin=1) for k in ("q", "v", "t")}
    fields[name][-1] = np.nextafter(fields[name][-1], 9)
    fields["t"] = fields["t"].reshape(())
    assert carom.state_hash(state_of(**fields)) != carom.state_hash(state)


def test_hash_is_that_of_the_bits_everywhere() -> None:
    """A golden number: the bytes of q, v, t, little-endian. It may change only with the contract."""
    state = state_of(np.array([1.0, -2.0]), np.array([0.5]), np.array(3.0))
    import hashlib

    expected = hashlib.blake2b(np.array([1.0, -2.0, 0.5, 3.0], "<f8").tobytes(), digest_size=16).hexdigest()
    assert carom.state_hash(state) == expected
    big = state_of(*(np.asarray(x, ">f8") for x in (state.q, state.v, state.t)))
    assert carom.state_hash(big) == expected
    assert carom.state_hash(state_of(*(np.asarray(x, "f4") for x in (state.q, state.v, state.t)))) != expected


def test_equal_models_have_equal_hashes_and_one_bit_is_another() -> None:
    """6. Names, topology, and the dtype, shape and bits of every parameter."""
    model, _ = two_balls()
    told = model_hash(model)
    assert len(told) == 32
    assert model_hash(two_balls()[0]) == told
    others = [replace(model, topology=replace(model.topology, names=("a", "b")))]
    for name, x in vars(model).items():
        if name not in ("topology", "baumgarte") and x.size:  # without loops nothing is fed back
            bit = np.array(x)
            bit.flat[-1] = np.nextafter(bit.flat[-1], 9)
            others += [replace(model, **{name: bit}), replace(model, **{name: np.asarray(x, np.float32)})]
    others.append(model.replace(mass=model.mass[None]))
    assert len({told, *map(model_hash, others)}) == 1 + len(others)


def test_hashes_of_loops_know_their_functions_by_what_they_do() -> None:
    def tied(course, baumgarte: float = 0.0):
        loop = Loop("drive", 0, -1, (0, -1), course)
        topology = replace(model.topology, loops=(loop,))
        return replace(model, topology=topology, loop_course=np.zeros((1, 5)), baumgarte=np.array(baumgarte))

    model, _ = two_balls()
    kinds = [tied(None), tied(lambda t: 2 * t), tied(lambda t: 3 * t), tied(None, 1.0)]
    assert len({model_hash(model), *map(model_hash, kinds)}) == 5
    assert model_hash(tied(lambda t: 2 * t)) == model_hash(kinds[1])
