"""A lane's program as a primitive of jax.

On a CPU it is lowered to one call of machine code made from its jaxpr, which loops over lanes. On an NVIDIA GPU it is
one kernel, in which each warp takes lane after lane. Programs that this compiler does not translate, other platforms,
and machines without llvmlite get XLA's lowering of the same jaxpr.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import mlir

from .code import MachineCode
from .handler import HEAD, POISON
from .program import Program, broadcast_lanes, lanes_of, log
from .stages import stage
from .types import Shaped
from .warp.code import GpuKernel
from .warp.driver import DriverError

native_p = Primitive("native")
native_p.multiple_results = True


@native_p.def_abstract_eval
def _abstract(*avals: ShapedArray, program: Program, batched: tuple[bool, ...]) -> list[ShapedArray]:
    return program.results_of(avals, batched)


@native_p.def_impl
def _run(*args: Array, program: Program, batched: tuple[bool, ...]) -> list[Array]:
    return _jit(program, batched)(*args)


@functools.lru_cache(4096)
def _jit(program: Program, batched: tuple[bool, ...]) -> Callable[..., list[Array]]:
    return jax.jit(lambda *args: native_p.bind(*args, program=program, batched=batched))


def lower_to_xla(*args: Array, program: Program, batched: tuple[bool, ...]) -> list[Array]:
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


mlir.register_lowering(native_p, mlir.lower_fun(lower_to_xla, multiple_results=True))
mlir.register_lowering(native_p, mlir.lower_fun(_lower_to_cpu, multiple_results=True), platform="cpu")
mlir.register_lowering(native_p, mlir.lower_fun(_lower_to_gpu, multiple_results=True), platform="cuda")
