"""`forward_only`: values that jax differentiates in forward mode; reverse mode raises an error that says what to do."""

from __future__ import annotations

from typing import NoReturn, TypeVar

import jax
import jax.core
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

T = TypeVar("T")

forward_only_p = Primitive("forward_only")
forward_only_p.def_impl(lambda x, *, said: x)
forward_only_p.def_abstract_eval(lambda x, *, said: x)
mlir.register_lowering(forward_only_p, lambda _, x, *, said: [x])
batching.primitive_batchers[forward_only_p] = lambda args, dims, *, said: (
    forward_only_p.bind(*args, said=said),
    dims[0],
)


def _refuse(cotangent: object, x: object, *, said: str) -> NoReturn:
    raise ValueError(said)


ad.deflinear2(forward_only_p, _refuse)


def forward_only(tree: T, said: str) -> T:
    """Return the same arrays.  said: message of the error that reverse mode raises."""

    def one(x: object) -> object:
        differentiable = isinstance(x, jax.core.Tracer) and jnp.issubdtype(x.dtype, jnp.inexact)
        return forward_only_p.bind(x, said=said) if differentiable else x

    return jax.tree.map(one, tree)
