"""A function as machine code of carom's own, and as XLA's program: the same arguments, and what both answer."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest import mock

import jax
import jax.core
import jax.numpy as jnp
import numpy as np

from carom.engine.native.function import native

DENORMAL = {np.dtype(np.float64): 2.3e-308, np.dtype(np.float32): 1.2e-38}  # below: 0, on either side or on both


class Refused(AssertionError):
    """The compiler left a program to XLA."""


@contextlib.contextmanager
def no_fallback() -> Iterator[None]:
    def refuse(record: logging.LogRecord) -> None:
        raise Refused(record.getMessage())

    log = logging.getLogger("carom.native")
    handler = logging.Handler()
    handler.emit = refuse
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


class Native:
    """A function compiled once: how it answers with and without poison, lane by lane or all lanes in one call.

    checked: it tells what it looks at outside of its arrays (`machine.OUTSIDE`), and dead arrays are filled with NaN.
    """

    def __init__(self, function: Callable[..., Any], checked: bool = False) -> None:
        self._surroundings = {"CAROM_CACHE": "off", **({"CAROM_NATIVE_CHECK": "1"} if checked else {})}

        @native
        def program(_: None, *args: Any) -> Any:
            return function(*args)

        self._program = program

    def __call__(self, *args: Any, poison: bool = False, lanes: Sequence[int | None] | None = None) -> list[np.ndarray]:
        """lanes: of each argument, its axis of lanes, as `jax.vmap` takes them."""

        def once(*args: Any) -> Any:  # traced anew each time, for poison is asked for where it is lowered
            run = lambda *args: self._program(None, *args)  # noqa: E731
            return (run if lanes is None else jax.vmap(run, in_axes=tuple(lanes)))(*args)

        asked = {"CAROM_NATIVE_POISON": "1"} if poison else {}
        with no_fallback(), mock.patch.dict("os.environ", {**self._surroundings, **asked}):
            return leaves(jax.jit(once)(*args))

    def derivative(self, args: Sequence[Any], dots: Sequence[Any]) -> list[np.ndarray]:
        with no_fallback(), mock.patch.dict("os.environ", self._surroundings):
            return leaves(
                jax.jit(lambda a, d: jax.jvp(lambda *x: self._program(None, *x), a, d))(tuple(args), tuple(dots))
            )

    def gradient(self, args: Sequence[Any], lanes: Sequence[int | None] | None = None) -> list[np.ndarray]:
        with no_fallback(), mock.patch.dict("os.environ", {**self._surroundings, "CAROM_NATIVE_POISON": "1"}):
            return gradient(lambda *x: self._program(None, *x), args, lanes)


def gradient(
    function: Callable[..., Any], args: Sequence[Any], lanes: Sequence[int | None] | None = None
) -> list[np.ndarray]:
    """The gradient of a weighted sum of the results by the floats among the arguments, in reverse mode.

    lanes: of each argument, its axis of lanes, as `jax.vmap` takes them; one that all share has one gradient.
    """
    mapped = function if lanes is None else jax.vmap(function, in_axes=tuple(lanes))

    def total(*args: Any) -> Any:
        results = [x for x in jax.tree.leaves(mapped(*args)) if jnp.issubdtype(x.dtype, jnp.inexact)]
        return sum((x * jnp.cos(jnp.arange(1.0, x.size + 1).reshape(x.shape))).sum() for x in results)

    floats = tuple(k for k, x in enumerate(args) if x.dtype.kind == "f")
    return leaves(jax.jit(jax.grad(total, argnums=floats))(*args))


def xla(function: Callable[..., Any], *args: Any) -> list[np.ndarray]:
    return leaves(jax.jit(lambda *args: function(*args))(*args))


def step_by_step(function: Callable[..., Any], *args: Any) -> list[np.ndarray]:
    """XLA's answers, each primitive at the top being a program of its own: what it fuses cannot go wrong."""
    closed = jax.make_jaxpr(function)(*args)
    return leaves(jax.core.eval_jaxpr(closed.jaxpr, closed.consts, *jax.tree.leaves(args)))


def leaves(tree: Any) -> list[np.ndarray]:
    return [np.asarray(x) for x in jax.tree.leaves(tree) if x.dtype != jax.dtypes.float0]


def assert_close(mine: np.ndarray, theirs: np.ndarray, rtol: float, of: str = "") -> None:
    """Whole numbers exactly; floats to `rtol` [relative; f32 as much coarser as its precision is], NaN where NaN is."""
    assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype), of
    if mine.dtype.kind != "f":
        return _all(mine, theirs, mine == theirs, of)
    small = DENORMAL[mine.dtype]
    if mine.dtype == np.float32:
        rtol = rtol and max(rtol * 1e7, 1e-6)
    a, b = _flushed(mine, small), _flushed(theirs, small)
    with np.errstate(invalid="ignore"):
        _all(mine, theirs, (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= rtol * np.abs(b)), of)


def _all(mine: np.ndarray, theirs: np.ndarray, good: np.ndarray, of: str) -> None:
    if not good.all():
        wrong = [f"{at}: {mine[at]!s}, not {theirs[at]!s}" for at in map(tuple, np.argwhere(~good)[:5].tolist())]
        raise AssertionError(f"{of}: {int((~good).sum())} of {good.size} are wrong: {'; '.join(wrong)}")


def _flushed(x: np.ndarray, small: float) -> np.ndarray:
    return np.where(np.abs(x) < small, 0, x)


def assert_same_bits(one: Sequence[np.ndarray], other: Sequence[np.ndarray], of: str = "") -> None:
    for a, b in zip(one, other, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype), of
        bits = f"u{a.dtype.itemsize}"
        same = a.view(bits) == b.view(bits)
        if a.dtype.kind == "f":  # NaNs have many bits
            same = same | (np.isnan(a) & np.isnan(b))
        _all(a, b, same, of)
