"""Elementary functions as the compiler runs them, against the C library's in 80-bit floats."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from carom.engine.algebra.elementary import FUNCTIONS
from carom.engine.native.function import native

pytest.importorskip("llvmlite")

ORACLES: dict[str, Callable[..., Any]] = {
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "atan2": np.arctan2, "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log1p": np.log1p,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "cbrt": np.cbrt, "pow": np.power,
}  # fmt: skip
MOST = {"tan": 1.5, "sinh": 1.5, "cosh": 1.2, "tanh": 2.0, "pow": 1.5}  # ulp; of all others 1
EXACT = {
    "add", "sub", "mul", "div", "sqrt", "neg", "abs", "round", "floor", "select_n", "eq", "ne", "lt", "le", "gt", "ge",
    "and", "or", "xor", "not", "convert_element_type", "bitcast_convert_type", "shift_left", "shift_right_arithmetic",
}  # fmt: skip
MANY = 4000
DTYPES = (np.float64, np.float32)
cases = pytest.mark.parametrize("dtype", DTYPES)
of_all = pytest.mark.parametrize("name", sorted(FUNCTIONS))


@functools.cache
def compiled(name: str) -> Callable[..., np.ndarray]:
    primitive = getattr(lax, name)
    run = native(lambda _, *xs: primitive(*xs))
    return lambda *xs: np.asarray(run(None, *xs))


def ulps(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """How far it is from the right one, in ulp of that. Results too small to be normal may be 0."""
    dtype = got.dtype
    with np.errstate(all="ignore"):
        near = want.astype(dtype)
        tiny = np.finfo(dtype).tiny
        unit = np.spacing(np.maximum(np.abs(near), tiny)).astype(np.longdouble)
        far = np.abs(got.astype(np.longdouble) - want) / unit
    same = (got == near) | (np.isnan(got) & np.isnan(near)) | ((np.abs(want) < tiny) & (got == 0))
    return np.where(same, np.where(np.isfinite(near) & (np.abs(want) >= tiny), np.minimum(far, 0.501), 0), far)


def right(name: str, *xs: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return ORACLES[name](*(x.astype(np.longdouble) for x in xs))


def binades(rng: np.random.Generator, dtype: Any, low: int, high: int) -> np.ndarray:
    """Both signs, as many of each size."""
    return (np.ldexp(rng.uniform(1, 2, MANY), rng.integers(low, high, MANY)) * rng.choice([-1, 1], MANY)).astype(dtype)


def arguments(name: str, dtype: Any) -> tuple[np.ndarray, ...]:
    """All binades in which something happens, some ranges in more detail, and what is difficult."""
    rng, wide = np.random.default_rng(20), dtype is np.float64
    info = np.finfo(dtype)
    all_sizes = functools.partial(binades, rng, dtype)
    between = lambda low, high: rng.uniform(low, high, MANY).astype(dtype)  # noqa: E731
    near_one = (1 + all_sizes(-info.nmant, -1)).astype(dtype)
    everything = all_sizes(info.minexp, info.maxexp)
    limit = float(np.log(info.max))
    if name in ("sin", "cos", "tan"):
        largest = 1e5 if wide else 1e4
        turns = rng.integers(-int(largest / 1.6), int(largest / 1.6), MANY)
        near = (turns * (2 * np.arctan(np.longdouble(1)))).astype(dtype)  # to multiples of pi / 2
        return (np.concatenate([between(-largest, largest), between(-7, 7), all_sizes(-60, 13), near]),)
    if name in ("asin", "acos"):
        inside = np.where(np.abs(near_one) <= 1, near_one, 2 - near_one).astype(dtype)
        return (np.concatenate([between(-1, 1), all_sizes(-80, 0), inside, -inside]),)
    if name == "atan2":
        y, x = between(-1, 1), between(-1, 1)
        at = rng.integers(info.minexp + 40, info.maxexp, MANY)
        scaled = [np.ldexp(a, at).astype(dtype) for a in (y, x)]
        pairs = (y, x), scaled, (everything, all_sizes(info.minexp, info.maxexp)), (near_one, 1 + 0 * near_one)
        return tuple(np.concatenate(both) for both in zip(*pairs, strict=True))
    if name == "pow":
        bases = [np.abs(everything), between(0.2, 5), near_one, between(0, 9)]
        logs = [np.log(x.astype(np.longdouble)) for x in bases]
        powers = [(rng.uniform(-1, 1, MANY) * limit / np.where(a == 0, 1, a)).astype(dtype) for a in logs]
        return np.concatenate(bases), np.concatenate(powers)
    if name in ("log", "cbrt"):
        return (np.concatenate([np.abs(everything), between(0.1, 4), np.abs(near_one)]),)
    if name == "log1p":
        return (np.concatenate([np.abs(everything), between(-1, 4), all_sizes(-80, 0)]),)
    if name == "atan":
        return (np.concatenate([everything, between(-3, 3), near_one]),)
    edge = limit if name != "exp2" else limit / np.log(2)
    return (np.concatenate([between(-edge, edge + 1), between(-2, 2), all_sizes(-80, 11)]),)


def special(name: str, dtype: Any) -> tuple[np.ndarray, ...]:
    """Of two arguments, all pairs."""
    info = np.finfo(dtype)
    some = np.array([0, 1, 0.5, 2, 3, 2.5, 1e4, 1e-9, info.tiny, info.max, np.inf, np.nan, 2.0**23 + 1, 2.0**53], dtype)
    some = np.concatenate([some, -some])
    if name in ("sin", "cos", "tan"):
        some = some[~((np.abs(some) > 1e5) & np.isfinite(some))]
    return tuple(x.reshape(-1) for x in np.meshgrid(some, some)) if name in ("atan2", "pow") else (some,)


@cases
@of_all
def test_as_exact_as_promised(name: str, dtype: Any) -> None:
    edges, others = special(name, dtype), arguments(name, dtype)
    xs = tuple(np.concatenate(both) for both in zip(edges, others, strict=True))
    got, want = compiled(name)(*xs), right(name, *xs)
    far = ulps(got, want)
    worst = int(np.argmax(far))
    assert far[worst] <= MOST.get(name, 1), (far[worst], [x[worst] for x in xs])
    count = edges[0].size
    zero = want[:count] == 0
    np.testing.assert_array_equal(np.signbit(got[:count][zero]), np.signbit(want[:count][zero]))


@cases
def test_whole_numbers_as_exponents(dtype: Any) -> None:
    bases, powers = np.meshgrid(
        np.array([0, -0.0, 1, -1, 2, -3, 0.7, np.inf, -np.inf, np.nan], dtype), np.arange(-9, 10)
    )
    got = compiled("pow")(bases.reshape(-1), powers.reshape(-1).astype(np.int32))
    want = right("pow", bases.reshape(-1), powers.reshape(-1))
    assert (ulps(got, want) <= 1).all()
    zero = want == 0
    np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(want[zero]))


@cases
def test_large_angles(dtype: Any) -> None:
    """As far as the reduction is exact, right; then those of a neighbour; and never more than 1."""
    rng = np.random.default_rng(3)
    wide = dtype is np.float64
    last, most = (30, 46) if wide else (13, 20)
    near, far, beyond = (binades(rng, dtype, *k) for k in ((10, last), (last, most), (most, np.finfo(dtype).maxexp)))
    for name in ("sin", "cos"):
        assert ulps(compiled(name)(near), right(name, near)).max() <= 1
        error = np.abs(compiled(name)(far) - right(name, far)) / np.abs(far)
        assert error.max() <= np.finfo(dtype).eps
        assert (np.abs(compiled(name)(far)) <= 1).all()
        np.testing.assert_array_equal(compiled(name)(beyond), 0 * beyond + (name == "cos"))


@cases
def test_identities(dtype: Any) -> None:
    x = arguments("sin", dtype)[0]
    sin, cos, tan = (compiled(name) for name in ("sin", "cos", "tan"))
    np.testing.assert_array_equal(sin(-x), -sin(x))
    np.testing.assert_array_equal(cos(-x), cos(x))
    np.testing.assert_allclose(sin(x) ** 2 + cos(x) ** 2, 1, rtol=4 * np.finfo(dtype).eps)
    np.testing.assert_allclose(tan(x), sin(x) / cos(x), rtol=4 * np.finfo(dtype).eps)
    n = np.arange(-100, 101).astype(dtype)
    np.testing.assert_array_equal(compiled("exp2")(n), np.ldexp(dtype(1), n.astype(int)))
    np.testing.assert_array_equal(compiled("pow")(0 * n + 2, n), np.ldexp(dtype(1), n.astype(int)))
    np.testing.assert_array_equal(compiled("cbrt")(n * n * n), n)
    np.testing.assert_array_equal(compiled("pow")(x, 0 * x + 1), x)


@cases
@of_all
def test_made_of_exact_operations(name: str, dtype: Any) -> None:
    """No loops, calls, or functions of a library; few, for each costs time to compile."""
    like = jax.ShapeDtypeStruct((), dtype)
    equations = jax.make_jaxpr(FUNCTIONS[name])(*[like] * (2 if name in ("atan2", "pow") else 1)).eqns
    assert {e.primitive.name for e in equations} <= EXACT
    assert len(equations) <= {"pow": 175, "atan2": 105}.get(name, 85)


@cases
def test_vectors_of_all_widths_give_the_same_bits(dtype: Any) -> None:
    y, x = (a[:100] for a in arguments("atan2", dtype))
    both = lambda _, y, x: lax.atan2(y, x) + lax.sin(x)  # noqa: E731
    whole = np.asarray(native(both)(None, y, x))
    for n in (1, 3, 16):
        np.testing.assert_array_equal(np.asarray(native(both)(None, y[:n], x[:n])), whole[:n])


@cases
def test_as_xla_computes_the_same(dtype: Any) -> None:
    """Which may fuse products with sums, and so round otherwise."""
    names = ("sin", "acos", "atan2", "exp", "log", "pow")
    args = {name: arguments(name, dtype) for name in names}
    xla = jax.jit(lambda args: {name: FUNCTIONS[name](*xs) for name, xs in args.items()})(
        {name: tuple(map(jnp.asarray, xs)) for name, xs in args.items()}
    )
    for name in names:
        got = compiled(name)(*args[name])
        assert ulps(np.asarray(xla[name]), got.astype(np.longdouble)).max() <= 2, name
