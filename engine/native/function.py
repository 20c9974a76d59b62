"""`native(function)`: a function of a lane as machine code, with lanes and with derivatives."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol, TypeVar

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from . import batching, derivatives  # noqa: F401  # rules of the primitive
from .key import meanings, program_key
from .open_arrays import open_leaves
from .primitive import native_p
from .program import ROWS, Program, in_native, wide_of
from .straight import Straight

R = TypeVar("R", covariant=True)
_compile_lock = threading.RLock()  # LLVM compiles in one thread at a time


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
