"""Loops that end early, with derivatives in both modes.

JAX cannot differentiate a `while_loop` in reverse: it would have to store the carry of every iteration, and the number
of iterations is unknown. A loop with a bound is a scan that skips the remaining iterations. Two nested scans store
sqrt(most) states each and recompute the rest (Griewank and Walther 2008, chapter 12): the loop runs three times and
needs little memory.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.custom_derivatives import SymbolicZero

G = TypeVar("G")
R = TypeVar("R")
T = TypeVar("T")

checkpoint = functools.partial(jax.checkpoint, prevent_cse=False)  # type: ignore[attr-defined]  # not needed in scans


def iterate(busy: Callable[[T], Array], body: Callable[[T], T], carry: T, most: int) -> T:
    """Iterate carry = body(carry) while busy(carry), a bool (), at most `most` times."""
    few = math.isqrt(max(most - 1, 0)) + 1

    def one(carry: T, k: Array) -> tuple[T, None]:
        return jax.lax.cond((k < most) & busy(carry), body, lambda x: x, carry), None

    def some(carry: T, k: Array) -> tuple[T, None]:
        inner = lambda x: jax.lax.scan(checkpoint(one), x, k + jnp.arange(few))[0]  # noqa: E731
        return jax.lax.cond(busy(carry), inner, lambda x: x, carry), None

    return jax.lax.scan(checkpoint(some), carry, jnp.arange(0, most, few))[0]


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1, 2))
def loop(most: int, busy: Callable[[G, T], Array], body: Callable[[G, T], T], given: G, carry: T) -> T:
    """Iterate carry = body(given, carry) while busy(given, carry), a bool (); it ends within `most` iterations.

    busy and body may close over nothing that is differentiated. It is a `while_loop` except for its derivatives.
    """
    return jax.lax.while_loop(lambda x: busy(given, x), lambda x: body(given, x), carry)


def _derivative(
    most: int,
    busy: Callable[[G, T], Array],
    body: Callable[[G, T], T],
    primals: tuple[G, T],
    tangents: tuple[Any, Any],
) -> tuple[T, T]:
    def iterate_bounded(given: G, carry: T) -> T:
        return iterate(lambda x: busy(given, x), lambda x: body(given, x), carry, most)

    return partial_jvp(iterate_bounded, primals, tangents)


loop.defjvp(_derivative, symbolic_zeros=True)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def map_first(each: int, f: Callable[[G, T], R], count: Array, given: G, rows: T) -> R:
    """Compute f(given, rows), with a row of results for each of `rows` (n, ...), up to the row `count` (); then zeros.

    `each` rows are computed at a time. f may close over nothing that is differentiated, and no row's result may depend
    on other rows.
    """
    f = jax.jit(f)  # traced once, for the shapes and for the loop
    n = jax.tree.leaves(rows)[0].shape[0]
    if n == 0:
        return f(given, rows)
    each = min(each, n)
    # a last stretch that would be too short begins earlier: some rows are computed twice
    some = functools.partial(jax.lax.dynamic_slice_in_dim, slice_size=each, allow_negative_indices=False)
    put = functools.partial(jax.lax.dynamic_update_slice_in_dim, axis=0, allow_negative_indices=False)
    shapes = jax.eval_shape(lambda: f(given, jax.tree.map(lambda x: x[:each], rows)))
    none = jax.tree.map(lambda x: jnp.zeros((n, *x.shape[1:]), x.dtype), shapes)

    def body(carry: tuple[Array, R]) -> tuple[Array, R]:
        k, results = carry
        first = k * each
        new = f(given, jax.tree.map(lambda x: some(x, first), rows))
        return k + 1, jax.tree.map(lambda x, y: put(x, y, first), results, new)

    # in steps of one: XLA takes a loop over 0, 8, ... below 1 for an empty loop
    rounds = (count + each - 1) // each
    return jax.lax.while_loop(lambda x: x[0] < rounds, body, (jnp.int32(0), none))[1]


def _all_at_once(
    each: int, f: Callable[[G, T], R], primals: tuple[Array, G, T], tangents: tuple[Any, Any, Any]
) -> tuple[R, R]:
    """Compute all rows: a loop of unknown length cannot be differentiated in reverse."""
    count, _, rows = primals
    _, d = partial_jvp(lambda _, given, rows: f(given, rows), primals, tangents)
    first = jnp.arange(jax.tree.leaves(rows)[0].shape[0]) < count

    def only(x: Array, d: Array) -> Array:
        if d.dtype == jax.dtypes.float0:
            return d
        return jnp.where(first.reshape(-1, *(1,) * (d.ndim - 1)), d, 0)

    results = map_first(each, f, *primals)
    return results, jax.tree.map(only, results, d)


map_first.defjvp(_all_at_once, symbolic_zeros=True)


def partial_jvp(f: Callable[..., R], primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[R, R]:
    """Compute `jax.jvp` in a rule with symbolic zeros, only along the arguments that vary."""
    leaves, tree = jax.tree.flatten(primals)
    slopes = jax.tree.leaves(tangents, is_leaf=is_zero)
    varied = [k for k, d in enumerate(slopes) if not is_zero(d)]

    def along(*own: Array) -> R:
        new = dict(zip(varied, own, strict=True))
        return f(*jax.tree.unflatten(tree, [new.get(k, x) for k, x in enumerate(leaves)]))

    return jax.jvp(along, [leaves[k] for k in varied], [slopes[k] for k in varied])


def is_zero(d: object) -> bool:
    """Return whether a tangent is known to be zero, as those of integers are."""
    return isinstance(d, SymbolicZero) or getattr(d, "dtype", None) == jax.dtypes.float0


def instantiate_zeros(tangents: Any, primals: T) -> T:
    """Write out the zeros of tangents; tangents of integers do not change."""

    def fill(d: Any, x: Array) -> Array | np.ndarray:
        if not is_zero(d):
            return d
        return jnp.zeros_like(x) if jnp.issubdtype(x.dtype, jnp.floating) else np.zeros(x.shape, jax.dtypes.float0)

    return jax.tree.map(fill, tangents, primals, is_leaf=is_zero)


@jax.custom_jvp
def differentiated_once(x: Any) -> Any:
    """Return x, in a rule whose result has no derivative; a second derivative raises an error that says so."""
    return x


@differentiated_once.defjvp
def _second(primals: tuple[Any], tangents: tuple[Any]) -> NoReturn:
    raise TypeError(
        "runs in which bodies can touch have first derivatives only: a second one (jax.hessian, jax.jvp of jax.jvp) "
        "would leave out how the times of impacts change; take differences of first derivatives"
    )
