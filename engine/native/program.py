"""`Program`: a function of arrays, traced for their shapes, and its compiled forms: code, a kernel, derivatives."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, TypeVar

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jax import Array, ShapeDtypeStruct
from jax.core import ShapedArray
from jax.extend import core as jex

from . import cache, structure
from .blocks import side_by_side
from .code import MachineCode, compile_code
from .runner import of_gpu
from .stages import stage
from .types import Shaped, Unsupported
from .warp.code import GpuKernel, compile_kernel

ROWS = 10007  # rows of an open array while a program is traced: no other axis has this length
NO_MESH = jax.sharding.AbstractMesh((), ())
T = TypeVar("T")
CodeOrKernel = TypeVar("CodeOrKernel", MachineCode, GpuKernel)
log = logging.getLogger("carom.native")
_in_derivative: ContextVar[bool] = ContextVar("within the derivative of a native program", default=False)
in_native: ContextVar[bool] = ContextVar("within a native program", default=False)


class Program:
    """A function of arrays, traced for their shapes.  function: takes flat arrays, returns a flat list.  avals: of one
    lane; those of open arrays have ROWS rows.  open: of each, 0 if it is not open, 1 if it is read, 2 if it is also
    written; then it is also a result, in the same order."""

    def __init__(
        self, name: str, function: Callable[..., list[Array]], avals: Sequence[ShapeDtypeStruct], open: Sequence[int],
        key: str | None, blocks: bool = False, alike: bool = False,
    ) -> None:  # fmt: skip
        self.name, self.function, self.avals, self.open = name, function, tuple(avals), tuple(open)
        self.wide = wide_of(self.avals) if blocks else None  # lanes of a block; None: the function is of one lane
        self.key = key if key is None or self.wide is None else f"{key}{self.wide}"
        self._block = () if self.wide is None else (self.wide,)
        self.alike = blocks or alike
        self.tree: Any = None  # of the function's results
        self._derivatives: dict[tuple[bool, ...], Derivative] = {}

    @functools.cached_property
    def closed_jaxpr(self) -> jex.ClosedJaxpr:
        with stage(self.name, "tracing"), jax.sharding.use_abstract_mesh(NO_MESH):  # a lane is outside any shard_map
            return _trace(self.function, [jax.ShapeDtypeStruct((*self._block, *a.shape), a.dtype) for a in self.avals])

    def within(self, batched: tuple[bool, ...], avals: Sequence[Shaped]) -> jex.ClosedJaxpr:
        """Return the jaxpr as a part of another program."""
        if any(self.open):
            raise Unsupported("a program of open arrays within another")
        return _trace(functools.partial(self.plain, batched), avals)

    @functools.cached_property
    def code(self) -> MachineCode | None:
        """Machine code; None if there is none, which is logged once per program."""
        return self._compile(compile_code, self.key)

    @functools.cached_property
    def kernel(self) -> GpuKernel | None:
        """The kernel for a GPU."""
        return self._compile(functools.partial(compile_kernel, of_gpu(self.alike)), self._kernel_key)

    @property
    def _kernel_key(self) -> str | None:
        return self.key_of(of_gpu(self.alike).name)

    def key_of(self, what: str) -> str | None:
        """Return the key of something that is made from this program."""
        return self.key and hashlib.sha256(f"{self.key} {what}".encode()).hexdigest()

    def _compile(
        self, compile: Callable[[str, jex.ClosedJaxpr, Sequence[int], bool], CodeOrKernel], key: str | None
    ) -> CodeOrKernel | None:
        try:
            made = compile(self.name, self.closed_jaxpr, self.open, key is None)
        except (Unsupported, ImportError) as why:
            log.warning("%s runs as XLA's program: %s", self.name, why)
            return None
        signature = self._signature()
        self.__dict__.pop("closed_jaxpr", None)  # it is large, and no longer needed
        if key is not None and signature is not None:
            cache.store(key, {**made.description(), **signature}, made.code)
            if isinstance(self, Derivative):  # the next process differentiates the program without tracing it
                self.primal.store_signature()
        return made

    def _signature(self) -> dict[str, Any] | None:
        """Return what a caller must know, for the cache: results and their tree; None if the tree cannot be written."""
        shapes = [(x.shape, x.dtype.name) for x in self.results]
        with contextlib.suppress(structure.Foreign):
            return {"results": shapes, "tree": None if self.tree is None else structure.write(self.tree)}

    def store_signature(self) -> None:
        """Store the signature without code."""
        key = self.key_of("signature")
        signature = None if key is None or cache.find(key) is not None else self._signature()
        if key is not None and signature is not None:
            cache.store(key, signature, b"")

    def recall(self) -> bool:
        """Load results and their tree from the cache, with code or a kernel, if they are there."""
        signature = self.key_of("signature")
        for name, kind, key in (
            ("code", MachineCode, self.key), ("kernel", GpuKernel, self._kernel_key), ("", None, signature),
        ):  # fmt: skip
            entry = None if key is None or (kind is None and "results" in self.__dict__) else cache.find(key)
            if entry is not None:
                known, code = entry
                shapes, tree = known.pop("results"), known.pop("tree")
                self.results = tuple(jax.ShapeDtypeStruct(tuple(shape), np.dtype(dtype)) for shape, dtype in shapes)
                self.tree = None if tree is None else structure.read(tree)
                if kind is not None:
                    setattr(self, name, kind(code, **known))
        return "results" in self.__dict__

    @functools.cached_property
    def results(self) -> tuple[ShapeDtypeStruct, ...]:
        """Results of one lane; those of open arrays have ROWS rows."""
        return tuple(jax.ShapeDtypeStruct(x.shape[len(self._block) :], x.dtype) for x in self.closed_jaxpr.out_avals)

    def results_of(self, avals: Sequence[Shaped], batched: tuple[bool, ...]) -> list[ShapedArray]:
        """Results of all lanes of these arguments."""
        lanes = lanes_of(avals, batched)
        lead = () if lanes is None else (lanes,)
        rows = iter(
            a.shape[1 if yes else 0] for a, yes, open in zip(avals, batched, self.open, strict=True) if open == 2
        )
        made = []
        for x in self.results:
            shape = (next(rows), *x.shape[1:]) if x.shape[:1] == (ROWS,) else x.shape
            made.append(jax.core.ShapedArray((*lead, *shape), x.dtype))
        return made

    def plain(self, batched: tuple[bool, ...], *leaves: Array) -> list[Array]:
        """Call the function in the form for jax."""
        if not any(batched):
            return self.function(*leaves)
        if self.wide is None:
            return jax.vmap(self.function, in_axes=[0 if yes else None for yes in batched])(*leaves)
        return self.function(*broadcast_lanes(leaves, batched))

    def derivative(self, varying: tuple[bool, ...]) -> Derivative:
        """The program of its derivative.  varying: of each argument, whether it has a tangent."""
        if varying not in self._derivatives:
            self._derivatives[varying] = Derivative(self, varying)
        return self._derivatives[varying]


class Derivative(Program):
    """Program of a derivative: (arguments, tangents of those that vary) -> (results, tangents of those that are not
    integers). No tangent changes the results.

    primal: the program that is differentiated.
    varying: of each of its arguments, whether it has a tangent.
    """

    def __init__(self, primal: Program, varying: tuple[bool, ...]) -> None:
        self.primal, self.varying = primal, varying
        self._transposes: dict[tuple[bool, ...], Program] = {}
        given = [(a, is_open) for a, is_open, yes in zip(primal.avals, primal.open, varying, strict=True) if yes]

        def function(*leaves: Array) -> list[Array]:
            primals, some = leaves[: len(primal.avals)], iter(leaves[len(primal.avals) :])
            tangents = [next(some) if yes else no_tangent(x) for x, yes in zip(primals, varying, strict=True)]
            out, dots = jvp_in_derivative(primal.function, primals, tuple(tangents))
            return [*out, *(d for x, d in zip(out, dots, strict=True) if differentiable(x))]

        avals, opens = (*primal.avals, *(a for a, _ in given)), (*primal.open, *(yes for _, yes in given))
        name, key = f"the derivative of {primal.name}", primal.key_of(str(varying))
        super().__init__(name, function, avals, opens, key, primal.wide is not None, primal.alike)
        if not self.recall():
            self.results = (*primal.results, *(x for x in primal.results if differentiable(x)))

    def transpose(self, wanted: tuple[bool, ...]) -> Program:
        """Program of the reverse derivative: (arguments, cotangents of the results that are not integers) -> cotangents
        of the tangents that are wanted."""
        if wanted not in self._transposes:
            primal, some = self.primal, iter(wanted)
            vary = tuple(yes and next(some) for yes in self.varying)

            def function(*leaves: Array) -> list[Array]:
                given, cotangents = leaves[: len(primal.avals)], leaves[len(primal.avals) :]

                def results(*chosen: Array) -> list[Array]:
                    new = iter(chosen)
                    whole = [next(new) if yes else x for x, yes in zip(given, vary, strict=True)]
                    return [x for x in primal.function(*whole) if differentiable(x)]

                chosen = [x for x, yes in zip(given, vary, strict=True) if yes]
                return vjp_in_derivative(results, chosen, cotangents)

            avals = (*primal.avals, *(x for x in primal.results if differentiable(x)))
            name, key = f"the reverse derivative of {primal.name}", self.key_of(f"back {wanted}")
            made = Program(name, function, avals, (0,) * len(avals), key, primal.wide is not None, primal.alike)
            if not made.recall():
                made.results = tuple(x for x, yes in zip(primal.avals, vary, strict=True) if yes)
            self._transposes[wanted] = made
        return self._transposes[wanted]


def _trace(function: Callable[..., list[Array]], avals: Sequence[Shaped]) -> jex.ClosedJaxpr:
    def inside(*leaves: Array) -> list[Array]:
        token = in_native.set(True)
        try:
            return function(*leaves)
        finally:
            in_native.reset(token)

    return jax.make_jaxpr(inside)(*(jax.ShapeDtypeStruct(a.shape, a.dtype) for a in avals))


def in_derivative() -> bool:
    """Return whether the derivative of a native program is being traced."""
    return _in_derivative.get()


def jvp_in_derivative(
    function: Callable[..., T], primals: tuple[Array, ...], tangents: tuple[Array | np.ndarray, ...]
) -> tuple[T, T]:
    token = _in_derivative.set(True)
    try:
        return jax.jvp(function, primals, tangents)
    finally:
        _in_derivative.reset(token)


def vjp_in_derivative(
    function: Callable[..., list[Array]], primals: Sequence[Array], cotangents: Sequence[Array]
) -> list[Array]:
    token = _in_derivative.set(True)
    try:
        return list(jax.vjp(function, *primals)[1](list(cotangents)))
    finally:
        _in_derivative.reset(token)


def differentiable(x: Shaped) -> bool:
    return jnp.issubdtype(x.dtype, jnp.inexact)


def no_tangent(x: Array) -> np.ndarray:
    return np.zeros(x.shape, x.dtype if differentiable(x) else jax.dtypes.float0)


def wide_of(avals: Sequence[Shaped]) -> int:
    """Number of lanes that run side by side, by its widest numbers."""
    return min((side_by_side(a.dtype) for a in avals if differentiable(a)), default=side_by_side(np.float64))


def broadcast_lanes(args: Sequence[Array], batched: tuple[bool, ...]) -> tuple[Array, ...]:
    """Give all arguments a first axis of lanes."""
    lanes = lanes_of(args, batched)
    return tuple(x if yes else jnp.broadcast_to(x, (lanes, *x.shape)) for x, yes in zip(args, batched, strict=True))


def lanes_of(avals: Sequence[Shaped], batched: tuple[bool, ...]) -> int | None:
    return next((a.shape[0] for a, yes in zip(avals, batched, strict=True) if yes), None)
