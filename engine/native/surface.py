"""Functions that people call with arrays, as machine code: `compiled` for a call as it stands, `lanewise` for batches.

Called with arrays they run as programs of their own. Called inside a program that is being traced (a user's `jit`,
`vmap` or `grad`, or another native program) they are a part of that.
"""

from __future__ import annotations

import functools
import math
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np

from .primitive import VECTOR, native


def compiled(function: Callable[..., Any], static_argnames: Sequence[str] = ()) -> Callable[..., Any]:
    """As `jax.jit`, but machine code where it is called with arrays."""
    plain = jax.jit(function, static_argnames=tuple(static_argnames))

    def body(static: tuple[tuple[str, Any], ...], args: Any, named: Any) -> Any:
        return function(*args, **named, **dict(static))

    body.__module__, body.__qualname__ = function.__module__, function.__qualname__
    program = native(body)

    @functools.wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        if _traced((args, named)):
            return plain(*args, **named)
        static = tuple((name, named.pop(name)) for name in static_argnames if name in named)
        return program(static, args, named)

    call.lower = plain.lower  # type: ignore[attr-defined]
    return call


def lanewise(function: Callable[..., Any]) -> Callable[..., Any]:
    """function(model, *arrays (..., n)) -> arrays that begin with the same axes of lanes.

    Called with arrays, lanes run in blocks of as many as a vector holds: operations are of a whole block. A lane alone
    runs as a block too, so that it is computed the same.
    """
    plain = jax.jit(function)

    def body(static: tuple[()], model: Any, arrays: Any) -> Any:
        return function(model, *arrays)

    body.__module__, body.__qualname__ = function.__module__, function.__qualname__
    program = native(body)

    @jax.jit
    def in_blocks(model: Any, *arrays: Any) -> Any:
        lanes = np.broadcast_shapes(_lanes_of(model), *(x.shape[:-1] for x in arrays))
        count, dtype = math.prod(lanes), arrays[0].dtype
        wide = VECTOR // np.dtype(dtype).itemsize
        blocks = -(-count // wide)

        def cut(x: Any, own: int) -> Any:
            x = jnp.broadcast_to(x, (*lanes, *x.shape[x.ndim - own :])).reshape(count, *x.shape[x.ndim - own :])
            rest = jnp.broadcast_to(x[-1:], (blocks * wide - count, *x.shape[1:]))
            return jnp.concatenate([x, rest]).reshape(blocks, wide, *x.shape[1:])

        parameters = {name: x for name, x in vars(model).items() if hasattr(x, "ndim")}
        own = {name: x for name, x in parameters.items() if x.ndim > type(model).base_ndim(name)}
        varied = {name: cut(x, type(model).base_ndim(name)) for name, x in own.items()}

        def block(varied: Any, arrays: Any) -> Any:
            return program((), model.replace(**varied), arrays)

        made = jax.vmap(block)(varied, tuple(cut(x, 1) for x in arrays))
        return jax.tree.map(
            lambda x: x.reshape(blocks * wide, *x.shape[2:])[:count].reshape(*lanes, *x.shape[2:]), made
        )

    @functools.wraps(function)
    def call(model: Any, *arrays: Any) -> Any:
        if _traced(arrays) or _model_traced(model) or jax.default_backend() != "cpu":
            return plain(model, *arrays)
        try:
            return in_blocks(model, *arrays)
        except (TypeError, ValueError):
            jax.eval_shape(plain, model, *arrays)  # says what is wrong with the arguments as they were given
            raise

    call.lower = plain.lower  # type: ignore[attr-defined]
    return call


def _lanes_of(model: Any) -> tuple[int, ...]:
    base = type(model).base_ndim
    return np.broadcast_shapes(
        *(
            x.shape[: x.ndim - base(name)]
            for name, x in vars(model).items()
            if hasattr(x, "ndim") and x.ndim > base(name)
        )
    )


_concrete: dict[
    int, weakref.ref[Any]
] = {}  # models of which it is known, by their ids: looking takes as long as a call


def _model_traced(model: Any) -> bool:
    seen = _concrete.get(id(model))
    if seen is not None and seen() is model:
        return False
    if _traced(model):
        return True
    key = id(model)
    _concrete[key] = weakref.ref(model, lambda _: _concrete.pop(key, None))
    return False


def _traced(arguments: Any) -> bool:
    """Whether it is called inside a program, or to be run operation by operation."""
    if jax.config.jax_disable_jit:  # pyright: ignore[reportAttributeAccessIssue]
        return True
    return any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(arguments))
