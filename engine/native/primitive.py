"""`native(function)`: a lane's program as a primitive of jax.

On a CPU it is lowered to one call of machine code made from its jaxpr; under `vmap` that call loops over lanes. On an
NVIDIA GPU it is one kernel, in which each warp takes lane after lane. Programs that this compiler does not
translate, other platforms, and machines without llvmlite get XLA's lowering of the same jaxpr.
The derivative is a program of its own, in forward mode and in reverse mode. Jax splits the forward derivative into
the program and `native_tangent`, which is linear in the tangents; the transpose of that is the program of the reverse
derivative.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol, TypeVar

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import ShapedArray
from jax.extend.core import Primitive, Var
from jax.interpreters import ad, batching, mlir
from jax.interpreters import partial_eval as pe
from jax.typing import ArrayLike

from .code import MachineCode
from .handler import HEAD, POISON
from .key import meanings, program_key
from .open_arrays import open_leaves
from .program import (
    ROWS,
    Derivative,
    Program,
    broadcast_lanes,
    differentiable,
    in_native,
    jvp_in_derivative,
    lanes_of,
    log,
    no_tangent,
    wide_of,
)
from .stages import stage
from .straight import Straight
from .types import Shaped
from .warp.code import GpuKernel
from .warp.driver import DriverError

R = TypeVar("R", covariant=True)
_compile_lock = threading.RLock()  # LLVM compiles in one thread at a time


native_p = Primitive("native")
native_p.multiple_results = True
tangent_p = Primitive("native_tangent")  # the derivative of a program, without the results of the program itself
tangent_p.multiple_results = True


@native_p.def_abstract_eval
def _abstract(*avals: ShapedArray, program: Program, batched: tuple[bool, ...]) -> list[ShapedArray]:
    return program.results_of(avals, batched)


@native_p.def_impl
def _run(*args: Array, program: Program, batched: tuple[bool, ...]) -> list[Array]:
    return _jit(program, batched)(*args)


@functools.lru_cache(4096)
def _jit(program: Program, batched: tuple[bool, ...]) -> Callable[..., list[Array]]:
    return jax.jit(lambda *args: native_p.bind(*args, program=program, batched=batched))


def _lower_to_xla(*args: Array, program: Program, batched: tuple[bool, ...]) -> list[Array]:
    return program.plain(batched, *args)


def _lower_to_cpu(*args: Array, program: Program, batched: tuple[bool, ...]) -> Sequence[Array]:
    return _run_code(program.code, args, program, batched)


def _lower_to_gpu(*args: Array, program: Program, batched: tuple[bool, ...]) -> Sequence[Array]:
    kernel = program.kernel
    try:
        if kernel is not None:
            with stage(program.name, "making the GPU's code"):
                kernel.register()
    except DriverError as why:
        log.warning("%s runs as XLA's program: %s", program.name, why)
        kernel = None
    return _run_code(kernel, args, program, batched)


def _run_code(
    code: MachineCode | GpuKernel | None, args: Sequence[Array], program: Program, batched: tuple[bool, ...]
) -> Sequence[Array]:
    if code is None:
        return program.plain(batched, *args)
    kinds = program.results_of(args, batched)
    if program.wide is None:
        return _call(code, args, batched, program.open, kinds)
    if not any(batched):
        kinds = [jax.core.ShapedArray((1, *x.shape), x.dtype) for x in kinds]
        return [x[0] for x in _in_blocks(code, program.wide, [x[None] for x in args], kinds)]
    return _in_blocks(code, program.wide, broadcast_lanes(args, batched), kinds)


def _in_blocks(
    code: MachineCode | GpuKernel, wide: int, args: Sequence[Array], kinds: list[ShapedArray]
) -> list[Array]:
    """Run lanes in blocks. Arguments and results have lanes first; copies of the last lane pad the last block."""
    lanes = len(args[0])
    blocks = -(-lanes // wide)

    def cut(x: Array) -> Array:
        rest = jnp.broadcast_to(x[-1:], (blocks * wide - lanes, *x.shape[1:]))
        return jnp.concatenate([x, rest]).reshape(blocks, wide, *x.shape[1:])

    whole = [jax.core.ShapedArray((blocks, wide, *x.shape[1:]), x.dtype) for x in kinds]
    made = _call(code, [cut(x) for x in args], (True,) * len(args), (0,) * len(args), whole)
    return [x.reshape(blocks * wide, *x.shape[2:])[:lanes] for x in made]


def _call(
    code: MachineCode | GpuKernel,
    args: Sequence[Array],
    batched: tuple[bool, ...],
    open_flags: Sequence[int],
    kinds: list[ShapedArray],
) -> Sequence[Array]:
    """Call the code.  kinds: those of the results, with lanes first if an argument has them."""

    def bytes_of(array: Shaped, is_lanes: bool = True) -> int:
        return int(np.prod(array.shape[is_lanes:], dtype=np.int64)) * array.dtype.itemsize

    lanes = lanes_of(args, batched)
    strides = [bytes_of(a) if yes else 0 for a, yes in zip(args, batched, strict=True)]
    strides += [bytes_of(x, lanes is not None) for x in kinds]
    rows = [
        a.shape[1 if yes else 0] if is_open else 0 for a, yes, is_open in zip(args, batched, open_flags, strict=True)
    ]
    flags = POISON if os.environ.get("CAROM_NATIVE_POISON") else 0
    layout = np.array([1 if lanes is None else lanes, flags, code.grain, *strides, *rows], np.int64)
    assert len(layout) == HEAD + len(strides) + len(rows)
    aliases = {1 + k: j for j, k in enumerate(code.opens) if k is not None}
    # as int32: jax without 64 bits would truncate its numbers
    name, more = code.register(), code.scratch(1 if lanes is None else lanes)
    call = jax.ffi.ffi_call(name, [*kinds, *more], input_output_aliases=aliases)
    return call(layout.view(np.int32), *args)[: len(kinds)]


mlir.register_lowering(native_p, mlir.lower_fun(_lower_to_xla, multiple_results=True))
mlir.register_lowering(native_p, mlir.lower_fun(_lower_to_cpu, multiple_results=True), platform="cpu")
mlir.register_lowering(native_p, mlir.lower_fun(_lower_to_gpu, multiple_results=True), platform="cuda")


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
        plain = jax.jit(functools.partial(_lower_to_xla, program=program, batched=batched))
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


def _batch(
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


def _batch_tangents(
    args: Sequence[Any], dims: Sequence[Any], *, program: Derivative, batched: tuple[bool, ...]
) -> tuple[list[Any], list[int | None]]:
    first = len(program.primal.results)
    out, axes = _batch(args, dims, program=program, batched=batched)
    return out[first:], axes[first:]


batching.primitive_batchers[native_p] = _batch
batching.primitive_batchers[tangent_p] = _batch_tangents


def _as_array(x: ArrayLike, wide: bool) -> np.ndarray:
    """Convert the array as jax would, with or without 64 bits."""
    array = np.asarray(x, order="C")
    return array if wide or array.dtype.itemsize < 8 else array.astype(jax.dtypes.canonicalize_dtype(array.dtype))


def _on_cpu() -> bool:
    """Return whether programs called from the outside run as machine code on this machine."""
    return jax.default_backend() == "cpu" and not (in_native.get() or jax.config.jax_disable_jit)  # pyright: ignore


class Native(Protocol[R]):
    """A native function.  straight: a call without XLA, with numpy's arrays in and out, outside of other programs."""

    straight: Callable[..., Any]

    def __call__(self, static: Hashable, *args: Any) -> R: ...


def native(function: Callable[..., R], *, blocks: bool = False, alike: bool = False) -> Native[R]:
    """Compile function(static, *args), static hashable and args pytrees of arrays, to machine code if possible.

    Arrays in `Open` may be of any length: all lengths share one program.
    blocks: under `vmap`, lanes run side by side in blocks of as many as a vector holds, a single lane as a block of
        copies. The function then takes lanes, along one axis in front of every array, and no open ones. A loop in it
        continues until the last lane of a block is done; it must not change lanes that are done.
    alike: lanes, or blocks of them, take the same branches: on a GPU each is run by a thread, not by a warp.
    """
    programs: dict[Hashable, Program] = {}
    straights: dict[Hashable, tuple[Straight, Any]] = {}

    def find_program(
        static: Hashable, args: tuple[Any, ...], leaves: Sequence[Array | np.ndarray], tree: Any
    ) -> Program | None:
        """The program for these arguments; None for a user's function that closes over numbers of an outer program."""
        opens = tuple(open_leaves(args))
        avals = tuple(
            jax.ShapeDtypeStruct((ROWS, *x.shape[1:]) if is_open else x.shape, x.dtype)
            for x, is_open in zip(leaves, opens, strict=True)
        )
        shapes, wide = tuple((a.shape, a.dtype) for a in avals), wide_of(avals) if blocks else None
        key = (static, meanings(), tree, opens, shapes, wide, jax.config.jax_enable_x64)  # pyright: ignore
        if key not in programs:
            shape: dict[str, Any] = {}

            def flat(*leaves: Array) -> list[Array]:
                out, shape["tree"] = jax.tree.flatten(function(static, *jax.tree.unflatten(tree, leaves)))
                return out

            code_key = program_key(function, static, args)
            program = Program(function.__qualname__, flat, avals, opens, code_key, blocks, alike)
            if not program.recall():
                if any(isinstance(c, jax.core.Tracer) for c in program.closed_jaxpr.consts):
                    return None
                program.tree = shape["tree"]
            programs[key] = program
        return programs[key]

    def call_traced(static: Hashable, *args: Any) -> R:
        """Call it as a part of a program that jax is tracing."""
        leaves, tree = jax.tree.flatten(args)
        leaves = [jnp.asarray(x) for x in leaves]
        program = find_program(static, args, leaves, tree)
        if program is None:
            return function(static, *args)
        out = native_p.bind(*leaves, program=program, batched=(False,) * len(leaves))
        return jax.tree.unflatten(program.tree, out)

    call_jitted = jax.jit(call_traced, static_argnums=0)

    @functools.wraps(function)
    def call(static: Hashable, *args: Any) -> R:
        if in_native.get() or jax.config.jax_disable_jit:  # pyright: ignore[reportAttributeAccessIssue]
            return function(static, *args)
        traced = any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(args))
        return call_traced(static, *args) if traced else call_jitted(static, *args)

    def straight(static: Hashable, *args: Any) -> Any:
        leaves, tree = jax.tree.flatten(args)
        wide = jax.config.jax_enable_x64  # pyright: ignore
        leaves = [_as_array(x, wide) for x in leaves]
        key = static, meanings(), tree, wide, tuple([(x.shape, x.dtype) for x in leaves])
        if key not in straights:
            with _compile_lock:
                program = (
                    find_program(static, args, leaves, tree)
                    if _on_cpu() and not (blocks or any(open_leaves(args)))
                    else None
                )
                if program is None or program.code is None:
                    return jax.tree.map(np.asarray, call(static, *args))
                straights[key] = Straight(program.code, len(leaves), program.results), program.tree
        program, tree = straights[key]
        return jax.tree.unflatten(tree, program(leaves))

    made: Any = call
    made.straight = straight
    return made
