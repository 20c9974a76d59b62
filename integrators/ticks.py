"""The loop over ticks, the only loop over time: a run, a frame of a game and a run of planar chains share it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

import jax
import jax.numpy as jnp
from jax import Array

from ..engine.algebra import bounded


class EndingLane(Protocol):
    """A lane, or lanes along one axis.  done: bool, whether it has reached its last frame."""

    @property
    def done(self) -> Array: ...


L = TypeVar("L", bound=EndingLane)
T = TypeVar("T")


def run_ticks(
    one: Callable[[Array, L, T], tuple[L, T]],
    lane: L,
    record: T,
    most: Array | int,
    *,
    reverse: bool = False,
    a_check: int = 1,
) -> tuple[Array, L, T]:
    """Iterate lane, record = one(number of the tick, lane, record) until every lane is done; return the number, too.

    most: () most ticks.
    reverse: the loop can be differentiated in reverse mode; most is then a Python number.
    a_check: ticks between two checks whether all lanes are done; those of a lane that is done change nothing.
    """

    def busy(carry: tuple[Array, L, T]) -> Array:
        ticks, lane, _ = carry
        return (ticks < most) & ~lane.done.all()

    def body(carry: tuple[Array, L, T]) -> tuple[Array, L, T]:
        ticks, lane, record = carry
        return ticks + 1, *one(ticks, lane, record)

    start = (jnp.int32(0), lane, record)
    if reverse:
        return bounded.iterate(busy, body, start, int(most))
    some = body if a_check == 1 else lambda carry: jax.lax.fori_loop(0, a_check, lambda _, x: body(x), carry)
    return jax.lax.while_loop(busy, some, start)
