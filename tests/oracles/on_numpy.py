"""A traced function run op by op in numpy: nothing is compiled, for functions that are called once or twice.

XLA compiles every operation once for each shape, op by op (`jax.disable_jit`) too, which takes seconds for a robot of
forty links; tracing one takes 0.2 s. What numpy has no rule for below goes to JAX.
"""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.extend.core import Literal


def on_numpy(f: Callable[..., Any], *args: Any) -> Any:
    """f(*args), numpy arrays in the place of JAX's."""
    closed, shape = jax.make_jaxpr(f, return_shape=True)(*args)
    out = _run(closed.jaxpr, closed.consts, [np.asarray(x) for x in jax.tree.leaves(args)])
    return jax.tree.unflatten(jax.tree.structure(shape), out)


def _run(jaxpr: Any, consts: Any, args: Any) -> list[Any]:
    values = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args], strict=True))

    def read(x: Any) -> Any:
        return np.asarray(x.val) if isinstance(x, Literal) else values[x]

    for eqn in jaxpr.eqns:
        inputs, inner = [read(x) for x in eqn.invars], eqn.params.get("jaxpr") or eqn.params.get("call_jaxpr")
        if eqn.primitive.name in RULES:
            outputs = [RULES[eqn.primitive.name](*inputs, **eqn.params)]
        elif eqn.primitive.name in CALLS:
            outputs = _run(inner.jaxpr, inner.consts, inputs)
        else:
            bound = eqn.primitive.bind(*inputs, **eqn.params)
            outputs = [np.asarray(x) for x in (bound if eqn.primitive.multiple_results else [bound])]
        values.update(zip(eqn.outvars, outputs, strict=True))
    return [read(x) for x in jaxpr.outvars]


def _broadcast(x: Any, *, shape: Any, broadcast_dimensions: Any, **_: Any) -> Any:
    own = [1] * len(shape)
    for size, at in zip(np.shape(x), broadcast_dimensions, strict=True):
        own[at] = size
    return np.broadcast_to(np.reshape(x, own), shape)


def _slice(x: Any, *, start_indices: Any, limit_indices: Any, strides: Any) -> Any:
    steps = strides or (1,) * len(start_indices)
    return x[tuple(slice(*part) for part in zip(start_indices, limit_indices, steps, strict=True))]


CALLS = ("jit", "pjit", "closed_call", "custom_jvp_call")
RULES: dict[str, Callable[..., Any]] = {
    "add": lambda a, b, **_: a + b,
    "sub": lambda a, b, **_: a - b,
    "mul": lambda a, b, **_: a * b,
    "div": lambda a, b, **_: a / b,
    "neg": lambda a, **_: -a,
    "sin": lambda a, **_: np.sin(a),
    "cos": lambda a, **_: np.cos(a),
    "sqrt": lambda a, **_: np.sqrt(a),
    "slice": _slice,
    "squeeze": lambda x, *, dimensions, **_: np.squeeze(x, dimensions),
    "broadcast_in_dim": _broadcast,
    "transpose": lambda x, *, permutation, **_: np.transpose(x, permutation),
    "reshape": lambda x, *, new_sizes, **_: np.reshape(x, new_sizes),
    "convert_element_type": lambda x, *, new_dtype, **_: np.asarray(x, new_dtype),
    "select_n": lambda which, no, yes, **_: np.where(which, yes, no),
    "concatenate": lambda *xs, dimension, **_: np.concatenate(xs, dimension),
    "reduce_sum": lambda x, *, axes, **_: np.sum(x, axes),
}
