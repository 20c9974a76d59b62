"""Public functions as machine code: `native_jit` for single calls, `lanewise` for batches.

Called with arrays they run as programs of their own. Called inside a traced program (a user's `jit`, `vmap` or `grad`,
or another native program) they are a part of it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeVar

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..algebra.fence import lane_programs
from ..model import Model
from ..packed import Packed, is_traced, lanes_of, pack_model, unpack_model
from .blocks import side_by_side
from .function import native

R = TypeVar("R", covariant=True)


class CompiledFunction(Protocol[R]):
    """A compiled function.  straight: a call with arrays as machine code without XLA, numpy's arrays in and out."""

    straight: Callable[..., Any]
    lower: Callable[..., Any]

    def __call__(self, *args: Any, **named: Any) -> R: ...


def native_jit(function: Callable[..., R], static_argnames: Sequence[str] = ()) -> CompiledFunction[R]:
    """Compile a function as `jax.jit` does, but to machine code if it is called with arrays."""
    plain = jax.jit(function, static_argnames=tuple(static_argnames))

    def body(static: tuple[tuple[str, Any], ...], args: tuple[Any, ...], named: dict[str, Any]) -> R:
        return function(*map(unpack_model, args), **named, **dict(static))

    body.__module__, body.__qualname__ = function.__module__, function.__qualname__
    program = native(body)

    @functools.wraps(function)
    def call(*args: Any, **named: Any) -> R:
        if _needs_jax((args, named)):
            return plain(*args, **named)
        static = tuple((name, named.pop(name)) for name in static_argnames if name in named)
        return program(static, tuple(_pack_shared(x) if isinstance(x, Model) else x for x in args), named)

    def straight(*args: Any, **named: Any) -> Any:
        return program.straight((), tuple(_pack_shared(x) if isinstance(x, Model) else x for x in args), named)

    made: Any = call
    made.lower, made.straight = plain.lower, straight
    return made


def lanewise(function: Callable[..., R]) -> Callable[..., R]:
    """Compile function(model, *arrays (..., n)) -> arrays that begin with the same axes of lanes.

    Called with arrays, lanes run in blocks of as many as a vector holds: operations apply to a whole block. A single
    lane also runs as a block, so that its result is the same.
    """
    plain = jax.jit(function)

    def body(static: tuple[()], model: Packed | Model, arrays: tuple[Array, ...]) -> R:
        return function(unpack_model(model), *arrays)

    body.__module__, body.__qualname__ = function.__module__, function.__qualname__
    program = native(body, alike=True)

    @jax.jit
    def in_blocks(model: Packed | Model, *arrays: Array) -> R:
        """model: packed if all lanes share it."""
        parameters = {} if isinstance(model, Packed) else model.parameters
        own = {name: x for name, x in parameters.items() if x.ndim > Model.base_ndim(name)}
        axes = (x.shape[: x.ndim - Model.base_ndim(name)] for name, x in own.items())
        lanes = np.broadcast_shapes(*axes, *(x.shape[:-1] for x in arrays))
        count, dtype = math.prod(lanes), arrays[0].dtype
        wide = side_by_side(dtype)
        blocks = -(-count // wide)

        def cut(x: Array, own: int) -> Array:
            x = jnp.broadcast_to(x, (*lanes, *x.shape[x.ndim - own :])).reshape(count, *x.shape[x.ndim - own :])
            rest = jnp.broadcast_to(x[-1:], (blocks * wide - count, *x.shape[1:]))
            return jnp.concatenate([x, rest]).reshape(blocks, wide, *x.shape[1:])

        varied = {name: cut(x, Model.base_ndim(name)) for name, x in own.items()}

        def block(varied: dict[str, Array], arrays: tuple[Array, ...]) -> R:
            return program((), model if isinstance(model, Packed) else replace(model, **varied), arrays)

        made = jax.vmap(block, axis_size=blocks)(varied, tuple(cut(x, 1) for x in arrays))
        return jax.tree.map(
            lambda x: x.reshape(blocks * wide, *x.shape[2:])[:count].reshape(*lanes, *x.shape[2:]), made
        )

    @functools.wraps(function)
    def call(model: Model, *arrays: Array | np.ndarray) -> R:
        if _needs_jax(arrays) or is_traced(model) or not lane_programs():
            return plain(model, *arrays)
        try:
            return in_blocks(_pack_shared(model), *arrays)
        except (TypeError, ValueError):
            jax.eval_shape(plain, model, *arrays)  # raises the error for the arguments as the caller has them
            raise

    call.lower = plain.lower  # type: ignore[attr-defined]
    return call


def _pack_shared(model: Model) -> Packed | Model:
    """Return the model in the form for a program of many lanes."""
    return model if lanes_of(model) else pack_model(model)


def _needs_jax(arguments: object) -> bool:
    """Return whether it is called inside a program, or must run operation by operation."""
    if jax.config.jax_disable_jit:  # pyright: ignore[reportAttributeAccessIssue]
        return True
    leaves = jax.tree.leaves(arguments, is_leaf=lambda x: isinstance(x, Model))
    return any(is_traced(x) if isinstance(x, Model) else isinstance(x, jax.core.Tracer) for x in leaves)
