"""One operation of jax on random arrays, for every primitive that the compiler translates.

Sizes lie on both sides of the compiler's thresholds. Floats are multiples of 1/8, whose sums are exact in any order, or
what is special; so most answers can be compared exactly.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st
from jax import lax
from jax.extend.core.primitives import empty2_p

from carom.engine.forward_only import forward_only
from carom.engine.native.function import native

SIZES = (1, 2, 3, 8, 15, 16, 17, 24, 33, 64, 100)
TERMS = (0, 1, 5, 16, 17, 40, 200)
MOST = 1500  # elements of an array
FLOATS, SIGNED, UNSIGNED = ("float64", "float32"), ("int32", "int64"), ("uint32",)
INTS = (*SIGNED, *UNSIGNED)
NUMBERS = (*FLOATS, *INTS)
ALL = (*NUMBERS, "bool")
SMALL_INTS = ("int8", "uint8", "int16")


class OperationCase:
    """constants: which arguments the program knows when it is compiled.  rtol: 0 where answers are the same bits."""

    def __init__(
        self, name: str, function: Callable[..., Any], args: Sequence[Any], constants: Sequence[bool], rtol: float = 0.0
    ) -> None:
        self.name, self.function, self.constants, self.rtol = name, function, tuple(constants), rtol
        self.args = tuple(np.asarray(x) for x in args)

    def __repr__(self) -> str:
        args = [f"{x.dtype}{list(x.shape)}{'!' if c else ''}" for x, c in zip(self.args, self.constants, strict=True)]
        return f"{self.name}({', '.join(args)})"

    @property
    def given(self) -> tuple[np.ndarray, ...]:
        return tuple(x for x, c in zip(self.args, self.constants, strict=True) if not c)

    def of_given(self, given: Sequence[Any]) -> Any:
        rest = iter(given)
        return self.function(*(x if c else next(rest) for x, c in zip(self.args, self.constants, strict=True)))


class Source:
    """What a case is made from: hypothesis draws shapes, types and parameters; numpy, from a seed of its, numbers."""

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        self.draw = draw
        self.random = np.random.default_rng(draw(st.integers(0, 1 << 16)))

    def pick(self, options: Sequence[Any]) -> Any:
        return self.draw(st.sampled_from(list(options)))

    def count(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def flag(self) -> bool:
        return self.draw(st.booleans())

    def shape(self, least: int = 0, most: int = 4) -> tuple[int, ...]:
        shape: list[int] = []
        for _ in range(self.count(least, most)):
            fits = [n for n in SIZES if n * int(np.prod(shape, dtype=int)) <= MOST]
            shape.insert(self.count(0, len(shape)), self.pick(fits))
        return tuple(shape)

    def array(
        self, shape: Sequence[int], dtype: str, special: bool = True, low: float = -8, high: float = 8
    ) -> np.ndarray:
        kind, shape = np.dtype(dtype).kind, tuple(shape)
        if kind == "b":
            return self.random.random(shape) < 0.5
        if kind == "f":
            x = (np.floor(self.random.uniform(low, high, shape) * 8) / 8).astype(dtype)
            odd = [np.nan, np.inf, -np.inf, -0.0, 0.0, np.finfo(dtype).tiny / 4, np.finfo(dtype).max / 2, 1.0]
        else:
            limits = np.iinfo(dtype)
            x = self.random.integers(0 if kind == "u" else int(low), int(high), shape, endpoint=True).astype(dtype)
            odd = [limits.min, limits.max, 0, limits.min + 1, limits.max // 3, 1]
            odd += [-1] if kind == "i" else []
        if not special or not self.flag():
            return x
        where = self.random.random(shape) < 0.3
        return np.where(where, self.random.choice(np.array(odd, dtype), shape), x)

    def index(self, shape: Sequence[int], most: int, dtypes: Sequence[str] = (*INTS, *SMALL_INTS)) -> np.ndarray:
        """Mostly within 0 ... most, and out of it on both sides."""
        dtype = self.pick(dtypes)
        limits = np.iinfo(dtype)
        x = self.random.integers(-3 if self.flag() else 0, most + (4 if self.flag() else 1), tuple(shape))
        far = self.random.choice(np.array([limits.min, limits.max], dtype), tuple(shape))
        x = np.clip(x, limits.min, limits.max).astype(dtype)
        return np.where(self.random.random(tuple(shape)) < 0.05, far, x)


Maker = Callable[
    [Source, str],
    tuple[Callable[..., Any], Sequence[np.ndarray]] | tuple[Callable[..., Any], Sequence[np.ndarray], float],
]
MAKERS: dict[str, Maker] = {}


def makes(*names: str) -> Callable[[Maker], Maker]:
    def enter(maker: Maker) -> Maker:
        MAKERS.update(dict.fromkeys(names, maker))
        return maker

    return enter


def _flushed(x: np.ndarray) -> np.ndarray:
    x = np.asarray(x)
    return (
        np.where(np.abs(x) < np.finfo(x.dtype).tiny, np.copysign(0, x), x).astype(x.dtype) if x.dtype.kind == "f" else x
    )


@st.composite
def cases(draw: Callable[[Any], Any], name: str) -> OperationCase:
    source = Source(draw)
    function, args, *rtol = MAKERS[name](source, name)
    constants = [source.count(0, 4) == 0 for _ in args]
    # XLA flushes denormal numbers as it runs; what is folded before that keeps them
    args = [_flushed(x) if constant else x for x, constant in zip(args, constants, strict=True)]
    return OperationCase(name, function, args, constants, *rtol)


# element by element

_OF = {
    "add": NUMBERS,
    "sub": NUMBERS,
    "mul": NUMBERS,
    "div": NUMBERS,
    "rem": NUMBERS,
    "max": ALL,
    "min": ALL,
    "and": (*INTS, "bool"),
    "or": (*INTS, "bool"),
    "xor": (*INTS, "bool"),
    "eq": ALL,
    "ne": ALL,
    "lt": ALL,
    "le": ALL,
    "gt": ALL,
    "ge": ALL,
    "lt_to": NUMBERS,
    "le_to": NUMBERS,
    "eq_to": NUMBERS,
    "shift_left": (*INTS, *SMALL_INTS),
    "shift_right_logical": (*INTS, *SMALL_INTS),
    "shift_right_arithmetic": (*INTS, *SMALL_INTS),
    "neg": (*FLOATS, *INTS),
    "abs": (*FLOATS, *SIGNED),
    "sign": NUMBERS,
    "not": (*INTS, "bool"),
    "population_count": INTS,
    "clz": INTS,
    "square": NUMBERS,
    "is_finite": FLOATS,
    "floor": FLOATS,
    "ceil": FLOATS,
    "sqrt": FLOATS,
    "rsqrt": FLOATS,
}
_LAX = {
    "and": lax.bitwise_and,
    "or": lax.bitwise_or,
    "xor": lax.bitwise_xor,
    "not": lax.bitwise_not,
}
_BINARY = (
    "add",
    "sub",
    "mul",
    "div",
    "rem",
    "max",
    "min",
    "and",
    "or",
    "xor",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "shift_left",
    "shift_right_logical",
    "shift_right_arithmetic",
)


@makes(*_BINARY)
def _binary(source: Source, name: str) -> Any:
    shape, dtype = source.shape(), source.pick(_OF[name])
    other = tuple(1 if source.count(0, 3) == 0 else n for n in shape)
    high = np.iinfo(dtype).bits + 2 if name.startswith("shift") else 8
    args = [source.array(shape, dtype), source.array(other, dtype, high=high)]
    if name == "div" and dtype in FLOATS:
        args[1] = _ordinary(args[1], 1e30)
    operation = _LAX.get(name) or getattr(lax, name)
    if source.flag():
        args, swap = args[::-1], True
    else:
        swap = False
    if name.startswith("shift") and swap:
        args = args[::-1]
    return (
        lambda x, y: operation(*jnp.broadcast_arrays(x, y)),
        args,
        1e-15 if name == "div" else 0.0,
    )  # XLA's is by 1 / y


@makes("lt_to", "le_to", "eq_to")
def _total_order(source: Source, name: str) -> Any:
    shape, dtype = source.shape(), source.pick(_OF[name])
    bind = (
        {"lt_to": lax.lt_to_p, "le_to": lax.le_to_p, "eq_to": lax.eq_to_p}
        if hasattr(lax, "lt_to_p")
        else _total_orders()
    )
    return lambda x, y: bind[name].bind(x, y), [source.array(shape, dtype), source.array(shape, dtype)]


@functools.cache
def _total_orders() -> dict[str, Any]:
    from jax._src.lax import lax as inside

    return {name: getattr(inside, f"{name}_p") for name in ("lt_to", "le_to", "eq_to")}


@makes("neg", "abs", "sign", "not", "population_count", "clz", "square", "is_finite", "floor", "ceil", "sqrt", "rsqrt")
def _unary(source: Source, name: str) -> Any:
    operation = _LAX.get(name) or getattr(lax, name)
    return operation, [source.array(source.shape(), source.pick(_OF[name]))], 1e-15 if name in ("rsqrt",) else 0.0


_WITHIN = {"asin": 1.0, "acos": 1.0, "sinh": 8.0, "cosh": 8.0, "log1p": 8.0}


@makes(
    "sin",
    "cos",
    "tan",
    "atan",
    "asin",
    "acos",
    "exp",
    "exp2",
    "log",
    "log1p",
    "expm1",
    "tanh",
    "sinh",
    "cosh",
    "cbrt",
    "erf",
)
def _library(source: Source, name: str) -> Any:
    x = source.array(source.shape(), source.pick(FLOATS), low=-_WITHIN.get(name, 8), high=_WITHIN.get(name, 8))
    return getattr(lax, name), [_ordinary(x, 1e30 if name in ("sin", "cos", "tan") else np.inf)], 1e-12


def _ordinary(x: np.ndarray, most: float = np.inf) -> np.ndarray:
    """Without denormals, which only the library's functions look at, and without what is larger than `most`."""
    odd = (np.abs(x) > most) | ((x != 0) & (np.abs(x) < 1e-30))
    return np.where(odd, x.dtype.type(0.5), x)


@makes("atan2", "pow")
def _library_of_two(source: Source, name: str) -> Any:
    shape, dtype = source.shape(), source.pick(FLOATS)
    x, y = _ordinary(source.array(shape, dtype)), _ordinary(source.array(shape, dtype))
    if name == "pow" and source.flag():
        y = source.array(shape, source.pick(SIGNED), False)
    return getattr(lax, name), [x, y], 1e-12


@makes("integer_pow")
def _integer_pow(source: Source, _: str) -> Any:
    dtype = source.pick(NUMBERS)
    exponent = source.count(-4 if dtype in FLOATS else 0, 7)
    return lambda x: lax.integer_pow(x, exponent), [source.array(source.shape(), dtype)], 1e-14


@makes("round")
def _round(source: Source, _: str) -> Any:
    method = source.pick(list(lax.RoundingMethod))
    return lambda x: lax.round(x, method), [source.array(source.shape(), source.pick(FLOATS)) * 4]


@makes("clamp")
def _clamp(source: Source, _: str) -> Any:
    shape, dtype = source.shape(), source.pick(NUMBERS)
    limits = () if source.flag() else shape
    return lax.clamp, [source.array(limits, dtype), source.array(shape, dtype), source.array(limits, dtype)]


@makes("select_n")
def _select(source: Source, _: str) -> Any:
    shape, dtype, count = source.shape(), source.pick(ALL), source.count(1, 4)
    which = source.array(() if source.flag() else shape, "bool") if count == 2 and source.flag() else None
    if which is None:
        which = source.random.integers(0, count, () if source.flag() else shape).astype("int32")
    return lax.select_n, [which, *(source.array(shape, dtype) for _ in range(count))]


@makes("convert_element_type")
def _convert(source: Source, _: str) -> Any:
    old, new = source.pick((*ALL, *SMALL_INTS)), source.pick((*ALL, *SMALL_INTS))
    x = source.array(source.shape(), old)
    if np.dtype(old).kind == "f" and source.flag():
        x = x * source.pick((1e-3, 1e3, 1e9, 1e18, 1e300 if old == "float64" else 1e30))
    return lambda x: lax.convert_element_type(x, new), [x]


@makes("reduce_precision")
def _reduce_precision(source: Source, _: str) -> Any:
    dtype = source.pick(FLOATS)
    bits = (11, 52) if dtype == "float64" and source.flag() else (8, 23)
    x = source.array(source.shape(), dtype) * source.pick((1 / 3, 1e-3, 1.0))
    return lambda x: lax.reduce_precision(x, *bits), [x.astype(dtype)]


@makes("bitcast_convert_type")
def _bitcast(source: Source, _: str) -> Any:
    pairs = [
        ("float64", "int64"),
        ("float32", "int32"),
        ("float32", "uint32"),
        ("int32", "uint32"),
        ("int64", "float64"),
    ]
    old, new = source.pick(pairs)
    x = source.array(source.shape(), old)
    if np.dtype(old).kind == "f":  # a NaN has many bits
        x = np.where(np.isnan(x) | (np.abs(x) < 1e-30), x.dtype.type(1.5), x)
    return lambda x: lax.bitcast_convert_type(x, new), [x]


@makes("add_any")
def _add_any(source: Source, _: str) -> Any:
    from jax._src.ad_util import add_any_p

    shape, dtype = source.shape(), source.pick(FLOATS)
    return add_any_p.bind, [source.array(shape, dtype), source.array(shape, dtype)]


# shapes


@makes(
    "reshape",
    "squeeze",
    "expand_dims",
    "stop_gradient",
    "copy",
    "copy_p",
    "device_put",
    "optimization_barrier",
    "forward_only",
)
def _same(source: Source, name: str) -> Any:
    shape, dtype = source.shape(), source.pick(ALL)
    if name == "squeeze":
        shape = (1, *shape, 1)
    functions = {
        "reshape": lambda x: x.reshape(x.shape[::-1]),
        "squeeze": lambda x: lax.squeeze(x, (0,)),
        "copy": jnp.copy,
        "copy_p": jnp.copy,
        "expand_dims": lambda x: lax.expand_dims(x, (0,)),
        "device_put": jax.device_put,
        "stop_gradient": lax.stop_gradient,
        "optimization_barrier": lax.optimization_barrier,
        "forward_only": lambda x: forward_only(x, "forward"),
    }
    return functions[name], [source.array(shape, dtype)]


@makes("broadcast_in_dim")
def _broadcast(source: Source, _: str) -> Any:
    out = source.shape(1)
    dims = [k for k in range(len(out)) if source.flag()]
    shape = tuple(out[k] if source.flag() else 1 for k in dims)
    return lambda x: lax.broadcast_in_dim(x, out, dims), [source.array(shape, source.pick(ALL))]


@makes("slice")
def _slice(source: Source, _: str) -> Any:
    shape = source.shape(1)
    starts = [source.count(0, n - 1) for n in shape]
    stops = [source.count(a + (source.count(0, 9) != 0), n) for a, n in zip(starts, shape, strict=True)]
    steps = [source.count(1, 3) for _ in shape]
    return lambda x: lax.slice(x, starts, stops, steps), [source.array(shape, source.pick(ALL))]


@makes("transpose")
def _transpose(source: Source, _: str) -> Any:
    shape = source.shape(1)
    order = source.draw(st.permutations(range(len(shape))))
    return lambda x: lax.transpose(x, order), [source.array(shape, source.pick(ALL))]


@makes("rev")
def _reverse(source: Source, _: str) -> Any:
    shape = source.shape(1)
    axes = [k for k in range(len(shape)) if source.flag()]
    return lambda x: lax.rev(x, axes), [source.array(shape, source.pick(ALL))]


@makes("empty")
def _empty(source: Source, _: str) -> Any:
    x = source.array(source.shape(1), source.pick(NUMBERS))
    return lambda x: lax.dynamic_update_slice(lax.empty(x.shape, x.dtype), x, (0,) * x.ndim), [x]


@makes("empty2")
def _zero(source: Source, _: str) -> Any:
    dtype = source.pick(NUMBERS)

    def added(x: Any) -> Any:
        return x + lax.broadcast(empty2_p.bind(dtype=x.dtype, memory_space=jax.typeof(x).memory_space), x.shape)

    return added, [source.array(source.shape(), dtype)]


@makes("custom_linear_solve")
def _solve(source: Source, _: str) -> Any:
    n = source.count(1, 6)
    scale = 2.0 ** source.array((n,), "int32", False).clip(-8, 8)

    def solved(scale: Any, b: Any) -> Any:
        return lax.custom_linear_solve(lambda x: scale * x, b, lambda _, b: b / scale, lambda _, b: b / scale)

    return solved, [scale, source.array((n,), "float64", False)]


@makes("iota")
def _iota(source: Source, _: str) -> Any:
    shape, dtype = source.shape(1), source.pick(NUMBERS)
    axis = source.count(0, len(shape) - 1)
    return lambda x: lax.broadcasted_iota(dtype, shape, axis) + x, [source.array((), dtype, False)]


@makes("split")
def _split(source: Source, _: str) -> Any:
    shape = source.shape(1)
    axis = source.count(0, len(shape) - 1)
    first = source.count(0, shape[axis])
    return lambda x: lax.split(x, (first, shape[axis] - first), axis), [source.array(shape, source.pick(ALL))]


@makes("unstack")
def _unstack(source: Source, _: str) -> Any:
    shape = (source.count(1, 5), *source.shape(0, 2))
    axis = source.count(0, len(shape) - 1)
    shape = tuple(np.roll(shape, axis)) if shape[axis] > 5 else shape
    return lambda x: jnp.unstack(x, axis=axis), [source.array(shape, source.pick(ALL))]


@makes("tile")
def _tile(source: Source, _: str) -> Any:
    shape = source.shape(1, 2)
    times = [source.count(0 if source.count(0, 9) == 0 else 1, 3) for _ in shape]
    return lambda x: lax.tile(x, times) if hasattr(lax, "tile") else jnp.tile(x, times), [
        source.array(shape, source.pick(ALL))
    ]


@makes("concatenate", "stack")
def _concatenate(source: Source, name: str) -> Any:
    shape, dtype = source.shape(0 if name == "stack" else 1, 3), source.pick(ALL)
    axis = source.count(0, len(shape) - (name != "stack"))
    args = []
    for _ in range(source.count(1, 4)):
        n = None if name == "stack" else source.count(0, 20)
        args.append(source.array(shape if n is None else (*shape[:axis], n, *shape[axis + 1 :]), dtype))
    turned = source.flag()  # a view among the pieces
    put = (lambda xs: jnp.stack(xs, axis)) if name == "stack" else (lambda xs: lax.concatenate(xs, axis))
    return lambda *xs: put([*xs, jnp.flip(xs[0]), xs[0]] if turned else xs), args


@makes("pad")
def _pad(source: Source, _: str) -> Any:
    shape, dtype = source.shape(0, 3), source.pick(ALL)
    config = []
    for n in shape:
        inner = source.count(0, 2)
        full = n + (n - 1) * inner
        low = source.count(-min(3, full), 3)
        config.append((low, source.count(-min(3, full + low) if full + low > 0 else 0, 3), inner))
    return lambda x, y: lax.pad(x, y, config), [source.array(shape, dtype), source.array((), dtype)]


# reductions


def _with_axes(source: Source) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """A shape, one of whose axes has as many elements as reductions distinguish, and axes, that one among them."""
    shape = [*source.shape(0, 2)]
    while int(np.prod(shape, dtype=int)) > 100:
        shape.pop()
    axis = source.count(0, len(shape))
    shape.insert(axis, source.pick(TERMS))
    return tuple(shape), tuple(k for k in range(len(shape)) if k == axis or source.count(0, 3) == 0)


@makes("reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_and", "reduce_or", "reduce_xor")
def _reduce(source: Source, name: str) -> Any:
    from jax._src.lax import lax as inside

    shape, axes = _with_axes(source)
    logic = name in ("reduce_and", "reduce_or", "reduce_xor")
    dtype = source.pick((*INTS, "bool") if logic else NUMBERS)
    x = source.array(shape, dtype)
    if np.dtype(dtype).kind == "f" and name in ("reduce_sum", "reduce_prod"):
        x = np.where(np.abs(x) > 1e30, np.where(np.isinf(x), x, x.dtype.type(1)), x)
        x = np.where(np.isfinite(x) & (name == "reduce_prod"), x.dtype.type(1) + (x > 0) - (x < -4) / 2, x).astype(
            dtype
        )
    primitive = getattr(inside, f"{name}_p")
    return lambda x: _bound(primitive, x, axes), [x]


def _bound(primitive: Any, x: Any, axes: tuple[int, ...]) -> Any:
    keywords: dict[str, Any] = {"axes": axes}
    if primitive.name == "reduce_sum":
        keywords["out_sharding"] = None
    return primitive.bind(jnp.asarray(x), **keywords)


@makes("argmax", "argmin")
def _argument(source: Source, name: str) -> Any:
    shape, axes = _with_axes(source)
    shape = tuple(max(n, 1) for n in shape)
    dtype = source.pick(("int32", "int64"))
    x = source.array(shape, source.pick(ALL), low=-1, high=1)
    return lambda x: getattr(lax, name)(x, axes[0], dtype), [x]


@makes("cumsum", "cumprod", "cummax", "cummin")
def _running(source: Source, name: str) -> Any:
    shape, axes = _with_axes(source)
    axis, reverse, dtype = axes[0], source.flag(), source.pick(NUMBERS)
    x = source.array(shape, dtype, special=name in ("cummax", "cummin") or dtype in INTS)
    if name == "cumprod" and dtype in FLOATS:
        x = np.where(x > 0, 2, 0.5).astype(dtype)
    return lambda x: getattr(lax, name)(x, axis, reverse), [x]


@makes("dot_general")
def _dot(source: Source, _: str) -> Any:
    batch, contracted = [tuple(source.pick((1, 2, 3)) for _ in range(source.count(0, 1))) for _ in range(2)]
    if contracted and source.flag():
        contracted = (source.pick((0, 5, 16, 17, 40)),)
    left, right = (tuple(source.pick((1, 3, 6)) for _ in range(source.count(0, 1))) for _ in range(2))
    dtype = source.pick((*FLOATS, "int32"))
    x, y = (
        source.array((*batch, *left, *contracted), dtype, False),
        source.array((*batch, *contracted, *right), dtype, False),
    )
    n, m, k = len(batch), len(left), len(contracted)
    dims: Any = ((tuple(range(n + m, n + m + k)), tuple(range(n, n + k))), (tuple(range(n)),) * 2)
    return lambda x, y: lax.dot_general(x, y, dims), [x, y]


# places known at run time


@makes("dynamic_slice")
def _dynamic_slice(source: Source, _: str) -> Any:
    shape = source.shape(1)
    sizes = [source.count(1, n) if source.flag() else min(n, source.count(1, 3)) for n in shape]
    starts = [source.index((), n, INTS) for n in shape]
    return lambda x, *at: lax.dynamic_slice(x, _one_type(at), sizes), [source.array(shape, source.pick(ALL)), *starts]


def _one_type(at: Sequence[Any]) -> list[Any]:
    kind = jnp.result_type(*at)
    return [jnp.asarray(a).astype(kind) for a in at]


@makes("dynamic_update_slice")
def _dynamic_update_slice(source: Source, _: str) -> Any:
    shape, dtype = source.shape(1), source.pick(ALL)
    sizes = [source.count(1, n) if source.flag() else min(n, source.count(1, 3)) for n in shape]
    starts = [source.index((), n, INTS) for n in shape]
    first = source.flag()  # the array is read again after it is changed, or made by the program itself

    def function(x: Any, y: Any, *at: Any) -> Any:
        made = jnp.where(x == x[::-1], x, jnp.flip(x)) if first else x
        after = lax.dynamic_update_slice(made, y, _one_type(at))
        return (after, made) if first else after

    return function, [source.array(shape, dtype), source.array(sizes, dtype), *starts]


def _modes(source: Source, scatter: bool) -> Any:
    modes = [lax.GatherScatterMode.CLIP, lax.GatherScatterMode.FILL_OR_DROP, lax.GatherScatterMode.PROMISE_IN_BOUNDS]
    return source.pick(modes)


@makes("gather")
def _gather(source: Source, _: str) -> Any:
    shape, dtype, mode = source.shape(1, 3), source.pick(ALL), _modes(source, False)
    batch = source.shape(0, 1)
    mapped = [k for k in range(len(shape)) if source.flag()] or [0]
    mapped = source.draw(st.permutations(mapped))
    sizes = [n if k not in mapped and source.flag() else source.count(1, min(n, 3)) for k, n in enumerate(shape)]
    dropped = tuple(k for k in range(len(shape)) if sizes[k] == 1 and source.flag())
    kept = len(shape) - len(dropped)
    offsets = tuple(range(len(batch), len(batch) + kept)) if source.flag() else tuple(range(kept))
    dims = lax.GatherDimensionNumbers(offsets, dropped, tuple(mapped))
    # far ones of 64 bits, XLA takes for others
    index = np.stack([source.index(batch, shape[k] - sizes[k], ("int32",)) for k in mapped], -1)
    index = index.astype(source.pick(("int32", "int64")))
    if mode == lax.GatherScatterMode.PROMISE_IN_BOUNDS:
        index = np.clip(index, 0, [shape[k] - sizes[k] for k in mapped]).astype(index.dtype)
    fill = None if source.flag() or dtype == "bool" else 7
    return (
        lambda x, i: lax.gather(x, i, dims, sizes, mode=mode, fill_value=fill),
        [source.array(shape, dtype), index],
    )


_SCATTERS = {
    "scatter": lax.scatter,
    "scatter-add": lax.scatter_add,
    "scatter-mul": lax.scatter_mul,
    "scatter-min": lax.scatter_min,
    "scatter-max": lax.scatter_max,
}


@makes(*_SCATTERS)
def _scatter(source: Source, name: str) -> Any:
    shape, dtype, mode = source.shape(1, 3), source.pick(NUMBERS), _modes(source, True)
    batch = source.shape(0, 1)
    mapped = [k for k in range(len(shape)) if source.flag()] or [0]
    mapped = source.draw(st.permutations(mapped))
    sizes = [n if k not in mapped and source.flag() else source.count(1, min(n, 3)) for k, n in enumerate(shape)]
    dropped = tuple(k for k in range(len(shape)) if sizes[k] == 1 and source.flag())
    window = [n for k, n in enumerate(sizes) if k not in dropped]
    dims = lax.ScatterDimensionNumbers(tuple(range(len(batch), len(batch) + len(window))), dropped, tuple(mapped))
    index = np.stack([source.index(batch, shape[k] - sizes[k], ("int32",)) for k in mapped], -1)
    if mode == lax.GatherScatterMode.PROMISE_IN_BOUNDS:
        index = np.clip(index, 0, [shape[k] - sizes[k] for k in mapped]).astype(index.dtype)
    plain = name in ("scatter-add", "scatter-mul") and dtype in FLOATS
    x, y = source.array(shape, dtype, not plain), source.array((*batch, *window), dtype, not plain)
    if name == "scatter-mul" and dtype in FLOATS:
        y = np.sign(y)
    again = source.flag()

    def function(x: Any, i: Any, y: Any) -> Any:
        made = -x if again else x
        after = _SCATTERS[name](made, i, y, dims, mode=mode)
        return (after, made) if again and source_reads else after

    source_reads = source.flag()
    return function, [x, index, y]


# calls, loops and branches: what is in them is in `random_programs.py`


def _body(x: Any, y: Any) -> Any:
    return x * 2 + jnp.flip(y), y - x


@makes(
    "jit", "pjit", "closed_call", "core_call", "remat2", "checkpoint", "custom_jvp_call", "custom_vjp_call", "native"
)
def _call(source: Source, name: str) -> Any:
    shape = source.shape()
    calls: dict[str, Callable[..., Any]] = {
        "remat2": jax.checkpoint(_body),
        "checkpoint": jax.checkpoint(_body),
        "custom_jvp_call": jax.custom_jvp(_body),
        "custom_vjp_call": jax.custom_vjp(_body),
        "native": lambda x, y: native(lambda _, *args: _body(*args))(None, x, y),
    }
    if name == "custom_jvp_call":
        calls[name].defjvp(lambda primals, tangents: (_body(*primals), _body(*tangents)))  # type: ignore[attr-defined]
    if name == "custom_vjp_call":
        calls[name].defvjp(lambda x, y: (_body(x, y), None), lambda _, dots: dots)  # type: ignore[attr-defined]
    return calls.get(name, jax.jit(_body)), [
        source.array(shape, "float64", False),
        source.array(shape, "float64", False),
    ]


@makes("while", "scan", "cond")
def _control(source: Source, name: str) -> Any:
    shape = source.shape()
    args = [
        source.array(shape, "float64", False),
        source.array(shape, "float64", False),
        source.array((), "int32", False),
    ]
    count, reverse = source.count(0, 5), source.flag()
    bodies: dict[str, Callable[..., Any]] = {
        "while": lambda x, y, n: lax.while_loop(lambda c: c[2] < 3, lambda c: (*_body(*c[:2]), c[2] + 1), (x, y, n)),
        "scan": lambda x, y, n: lax.scan(
            lambda c, k: ((_body(*c)), (c[0] + k, c[1])), (x, y), jnp.arange(1.0 * count), reverse=reverse
        ),
        "cond": lambda x, y, n: lax.switch(n, [lambda: (x, y), lambda: (y, x), lambda: _body(x, y)]),
    }
    return bodies[name], args


EVERY = tuple(itertools.chain(MAKERS))
