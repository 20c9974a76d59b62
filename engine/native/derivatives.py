"""Derivatives of native programs: each is a program of its own, in forward mode and in reverse mode.

Jax splits the forward derivative into the program and `native_tangent`, which is linear in the tangents; the transpose
of that is the program of the reverse derivative.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
from jax import Array
from jax.extend.core import Primitive, Var
from jax.interpreters import ad, batching, mlir
from jax.interpreters import partial_eval as pe

from .batching import batch
from .primitive import lower_to_xla, native_p
from .program import Derivative, Program, differentiable, jvp_in_derivative, no_tangent

tangent_p = Primitive("native_tangent")  # the derivative of a program, without the results of the program itself
tangent_p.multiple_results = True


def _jvp(
    primals: Sequence[Array], tangents: Sequence[Array | ad.Zero], *, program: Program, batched: tuple[bool, ...]
) -> tuple[list[Array], list[Array | ad.Zero]]:
    # an open array that is written may vary even if it does not vary before
    varying = tuple(
        not isinstance(t, ad.Zero) or (open == 2 and differentiable(x))
        for t, x, open in zip(tangents, primals, program.open, strict=True)
    )
    given = [ad.instantiate_zeros(t) for t, yes in zip(tangents, varying, strict=True) if yes]
    to_transpose = any(isinstance(t, pe.JaxprTracer) for t in given)
    if to_transpose and any(program.open):  # jax must differentiate the function
        some = iter(given)
        whole = [next(some) if yes else no_tangent(p) for p, yes in zip(primals, varying, strict=True)]
        plain = jax.jit(functools.partial(lower_to_xla, program=program, batched=batched))
        return jvp_in_derivative(plain, tuple(primals), tuple(whole))
    derived = program.derivative(varying)
    lanes = batched + tuple(b for b, yes in zip(batched, varying, strict=True) if yes)
    if to_transpose:
        made = native_p.bind(*primals, program=program, batched=batched)
        dots = iter(tangent_p.bind(*primals, *given, program=derived, batched=lanes))
    else:
        out = native_p.bind(*primals, *given, program=derived, batched=lanes)
        made, dots = out[: len(program.results)], iter(out[len(program.results) :])
    return made, [next(dots) if differentiable(x) else ad.Zero(jax.typeof(x).to_tangent_aval()) for x in made]


ad.primitive_jvps[native_p] = _jvp


def _tangents(*args: Array, program: Derivative, batched: tuple[bool, ...]) -> list[Array]:
    return native_p.bind(*args, program=program, batched=batched)[len(program.primal.results) :]


@tangent_p.def_abstract_eval
def _abstract_tangents(*avals: Any, program: Derivative, batched: tuple[bool, ...]) -> list[Any]:
    return program.results_of(avals, batched)[len(program.primal.results) :]


tangent_p.def_impl(_tangents)
mlir.register_lowering(tangent_p, mlir.lower_fun(_tangents, multiple_results=True))


def _transpose(cotangents: Sequence[Any], *args: Any, program: Derivative, batched: tuple[bool, ...]) -> list[Any]:
    """Return the cotangents of the tangents that are undefined, None for all other arguments."""
    n = len(program.primal.avals)
    wanted = tuple(ad.is_undefined_primal(x) for x in args[n:])
    lanes = any(batched)
    given = [ad.instantiate_zeros(x) for x in cotangents]
    made = iter(
        native_p.bind(*args[:n], *given, program=program.transpose(wanted), batched=batched[:n] + (lanes,) * len(given))
    )
    back = []
    for yes, own in zip(wanted, batched[n:], strict=True):
        x = next(made) if yes else None
        back.append(x if x is None or own or not lanes else x.sum(0))  # an argument of all lanes
    return [None] * n + back


ad.primitive_transposes[tangent_p] = _transpose


def _primals_of(program: Program, unknown: Sequence[bool]) -> int:
    """Return the number of a derivative's primal arguments if only tangents are unknown, otherwise 0."""
    n = len(program.primal.avals) if isinstance(program, Derivative) and not any(program.open) else 0
    return n if any(unknown) and not any(unknown[:n]) else 0


def _split(trace: Any, *tracers: Any, program: Program, batched: tuple[bool, ...]) -> list[Any]:
    """Evaluate what is known of a derivative, its results, and leave its tangents for later: part of a transpose."""
    n = _primals_of(program, [not x.is_known() for x in tracers])
    if not (n and isinstance(program, Derivative)):
        return trace.default_process_primitive(native_p, tracers, {"program": program, "batched": batched})
    given = [x.pval.get_known() for x in tracers[:n]]
    made = native_p.bind(*given, program=program.primal, batched=batched[:n])
    return [*made, *trace.default_process_primitive(tangent_p, tracers, {"program": program, "batched": batched})]


def _split_recomputed(
    saveable: object, unknown: Sequence[bool], at_hand: Sequence[bool], equation: Any
) -> tuple[Any, Any, list[bool], list[bool], list[Any]]:
    """Split a derivative under `jax.checkpoint` into its results, which are known, and all of it, to compute later.

    Returns both equations; of each result, whether it is unknown and whether the second has it; and what that needs.
    """
    program, batched, count = equation.params["program"], equation.params["batched"], len(equation.outvars)
    needed = [x for x, there in zip(equation.invars, at_hand, strict=True) if isinstance(x, Var) and not there]
    n = _primals_of(program, unknown)
    if not any(unknown):
        return equation, None, [False] * count, [False] * count, []
    if not (n and isinstance(program, Derivative)):
        return None, equation, [True] * count, [True] * count, needed
    first = len(program.primal.results)
    own = {"program": program.primal, "batched": batched[:n]}
    known = equation.replace(invars=equation.invars[:n], outvars=equation.outvars[:first], params=own)
    return known, equation, [False] * first + [True] * (count - first), [True] * count, needed


pe.custom_partial_eval_rules[native_p] = _split
pe.partial_eval_jaxpr_custom_rules[native_p] = _split_recomputed


def _batch_tangents(
    args: Sequence[Any], dims: Sequence[Any], *, program: Derivative, batched: tuple[bool, ...]
) -> tuple[list[Any], list[int | None]]:
    first = len(program.primal.results)
    out, axes = batch(args, dims, program=program, batched=batched)
    return out[first:], axes[first:]


batching.primitive_batchers[tangent_p] = _batch_tangents
