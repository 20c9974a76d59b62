"""Lanes of native programs: `vmap` adds an axis of lanes, and two axes become one."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.interpreters import batching

from .primitive import native_p
from .program import Derivative, Program, lanes_of


def batch(
    args: Sequence[Array], dims: Sequence[int | None], *, program: Program, batched: tuple[bool, ...]
) -> tuple[list[Array], list[int | None]]:
    size = next(x.shape[d] for x, d in zip(args, dims, strict=True) if d is not None)
    inner = lanes_of(
        [
            x if d is None else jax.ShapeDtypeStruct(np.delete(x.shape, d), x.dtype)
            for x, d in zip(args, dims, strict=True)
        ],
        batched,
    )
    lanes_first = [x if d is None else jnp.moveaxis(x, d, 0) for x, d in zip(args, dims, strict=True)]
    mapped = [d is not None for d in dims]
    given = list(mapped)
    for k, open in enumerate(program.open):  # a written array belongs to one lane
        if open == 2 and not mapped[k]:
            lanes_first[k], mapped[k] = jnp.broadcast_to(lanes_first[k], (size, *lanes_first[k].shape)), True
    if inner is None:
        out = native_p.bind(*lanes_first, program=program, batched=tuple(mapped))
        return _unbatch_constants(program, given, out)
    flat = []
    for x, outer, own in zip(lanes_first, mapped, batched, strict=True):  # two axes of lanes as one
        if outer or own:
            x = x if outer else x[None]
            x = x if own else x[:, None]
            x = jnp.broadcast_to(x, (size, inner, *x.shape[2:])).reshape(size * inner, *x.shape[2:])
        flat.append(x)
    both = tuple(a or b for a, b in zip(mapped, batched, strict=True))
    out = native_p.bind(*flat, program=program, batched=both)
    return _unbatch_constants(program, given, [x.reshape(size, inner, *x.shape[1:]) for x in out])


def _unbatch_constants(program: Program, mapped: list[bool], out: list[Array]) -> tuple[list[Array], list[int | None]]:
    """Results and their axes of lanes: if only tangents differ between lanes, a derivative's primal results do not."""
    of = program.primal if isinstance(program, Derivative) else None
    same = 0 if of is None or any(mapped[: len(of.avals)]) else len(of.results)
    return [x[0] if k < same else x for k, x in enumerate(out)], [None if k < same else 0 for k in range(len(out))]


batching.primitive_batchers[native_p] = batch
