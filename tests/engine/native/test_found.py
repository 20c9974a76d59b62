"""What the random programs found, as small as it can be."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import Mesh, PartitionSpec

from carom.engine.native.function import native
from carom.tests.oracles.native_and_xla import Native, Refused, assert_close, no_fallback, xla

X = np.arange(40.0)


def same(function, *args) -> None:
    for mine, theirs in zip(Native(function)(*args, poison=True), xla(function, *args), strict=True):
        assert_close(mine, theirs, 0.0)


@pytest.mark.parametrize(
    "ask",
    [
        lambda c: lax.dynamic_update_slice(c, 100 * c[5:8], (c[0].astype(int),)),
        lambda c: lax.cond(c[1] > 3, lambda: c, lambda: 20 * c),
        lambda c: lax.fori_loop(0, c[0].astype(int) + 2, lambda _, x: 2 * x, c),
    ],
    ids=["update", "branch", "loop"],
)
def test_what_a_loop_is_asked_does_not_change_its_carry(ask) -> None:
    """The body reads what the test wrote over."""
    same(lambda x: lax.while_loop(lambda c: jnp.sum(ask(c)) < 5000, lambda c: c + 1, x), X)


@pytest.mark.parametrize("shape", [(8,), (64,), (8, 8), (50, 1), (7, 3), (3, 70)])
def test_loops_under_vmap_end_each_at_its_time(shape) -> None:
    """Their test is of all of them at once; one that has ended keeps what it has."""

    def halved(x):
        going = lambda c: (c[0] < 20) & ~c[2].all()  # noqa: E731
        turn = lambda c: (c[0] + 1, c[1] * 0.5, c[2] | (c[1] < 2))  # noqa: E731
        return lax.while_loop(going, turn, (jnp.int32(0), x, x != x))

    x = (np.random.default_rng(0).uniform(1, 2, shape).T * 4.0 ** (np.arange(shape[0]) % 6)).T
    same(jax.vmap(halved), x)
    turns = Native(jax.vmap(halved))(x)[0]
    assert len(set(turns.tolist())) > 1


@pytest.mark.parametrize("size", [3, 5, 7, 9, 15])
def test_division_of_arrays_that_fill_no_vector(size: int) -> None:
    """Behind their last element there is nothing to divide by."""
    x, y = np.arange(10, 10 + size, dtype=np.int32), np.arange(1, size + 1, dtype=np.int32)
    same(lambda x: (lax.div(x, jnp.asarray(y)), lax.rem(x, jnp.asarray(y)), x // jnp.flip(x)), x)


@pytest.mark.parametrize("size", [3, 5, 7, 9, 15])
def test_places_of_arrays_that_fill_no_vector(size: int) -> None:
    """Behind their last element there is nowhere to look."""
    at = np.arange(size, dtype=np.int32)
    same(lambda x, i: x.at[jnp.flip(i) * 2].get(mode="clip"), X, at)


def test_constants_out_of_range() -> None:
    """They are converted when the program is compiled, by the same rule as when it runs."""
    odd = np.array([np.nan, 1e20, -1e20, np.inf, 300.0, -1.0])
    same(
        lambda x: [lax.convert_element_type(odd, kind) + x.astype(kind) for kind in ("int32", "int64", "uint8")],
        np.int32(0),
    )


def test_fewer_bits_are_fewer_or_refused() -> None:
    x = np.linspace(0, 1, 20)
    same(lambda x: lax.reduce_precision(x, 8, 23), x)
    with pytest.raises(Refused):
        Native(lambda x: lax.reduce_precision(x, 8, 7))(x)


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3)])
def test_running_sums_of_nothing(shape: tuple[int, ...]) -> None:
    same(lambda x: (lax.cumsum(x, 0), lax.cummax(x, len(shape) - 1)), np.zeros(shape))


def test_an_array_updated_by_itself_turned_round() -> None:
    """In place it would read what it wrote, as a fusion of XLA's was seen to."""
    whole = X.copy()
    whole[3:28] = X[:25][::-1]
    made = Native(lambda x: jnp.cumsum(lax.dynamic_update_slice(x + 0, jnp.flip((x + 0)[:25]), (3,))))(X, poison=True)
    np.testing.assert_array_equal(made[0], np.cumsum(whole))


def test_a_program_that_jax_has_traced_outside_of_another() -> None:
    """A jitted function is traced once: with a program in it where it was called by itself first."""

    @native
    def inner(_: None, x: jax.Array) -> jax.Array:
        return jnp.sin(x)

    part = jax.jit(lambda x: jax.vmap(lambda row: inner(None, row))(x) + inner(None, x))

    @native
    def outer(_: None, x: jax.Array) -> jax.Array:
        return 2 * part(x)

    x = jnp.arange(12.0).reshape(3, 4)
    with no_fallback():
        np.testing.assert_array_equal(part(x) * 2, outer(None, x))


def test_a_program_within_shard_map() -> None:
    """Arrays made there know of its mesh; those of a lane's program do not."""

    @native
    def plus_two(_: None, x: jax.Array) -> jax.Array:
        return x + jnp.full_like(x[0], 2.0)

    lane = PartitionSpec("lane")
    mesh = Mesh(jax.devices()[:1], ("lane",))
    lanes = jax.shard_map(
        jax.vmap(lambda row: plus_two(None, row)), mesh=mesh, in_specs=lane, out_specs=lane, check_vma=False
    )
    x = jnp.arange(12.0).reshape(3, 4)
    with no_fallback():
        np.testing.assert_array_equal(jax.jit(lanes)(x), x + 2)


@pytest.mark.parametrize("reads", ["handed on", "added"])
def test_what_is_computed_before_a_loop_is_read_in_it_and_summed_before_it(reads: str) -> None:
    """The sum does not swallow the array that the body still reads."""

    def body(_, c):
        x, total, last = c
        square = x * x
        return x, total + jnp.sum(square), square if reads == "handed on" else last + square

    same(lambda x: lax.fori_loop(0, 3, body, (x, jnp.float64(0), jnp.zeros_like(x))), X)
