"""WebAssembly: the bits of this machine, denormals and all, and a linker that knows its format."""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from jax import lax

from carom.engine.native.flushed import flush_denormals
from carom.engine.native.portable import link_objects
from carom.engine.native.wasm import TARGET, module_of
from carom.tests.oracles import wasm
from carom.tests.oracles.native_and_xla import Native, assert_same_bits
from carom.tests.oracles.random_programs import arguments, program

NEEDS_NODE = pytest.mark.skipif(wasm.NODE is None, reason="needs node")
ODD = [np.nan, np.inf, -np.inf, -0.0, 0.0, 2.5, -3.5, 1e10, -1e300, 1.7e308, 300, -1, 1e19, 3e-308, -2.3e-308, 1e-160]


def elementwise(x, y, n, m):
    kinds = ("int8", "int32", "int64", "uint32", "float32")
    return [
        x + y, x - y, x * y, x * y + x, x / y, lax.max(x, y), lax.min(x, y), lax.clamp(x, y, -x),
        lax.sign(x), lax.floor(x), lax.ceil(x), lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), (x * y) == 0,
        lax.sqrt(x), lax.rsqrt(x), x == y, x < y, lax.is_finite(x), abs(x), -x, lax.cbrt(x), (x * y).sum(),
        lax.integer_pow(x, -3),
        *(x.astype(kind) for kind in kinds), x.astype("float32").astype("float64"), x.astype("float32") * 1e-3,
        lax.sin(x), lax.cos(x), lax.exp(x), lax.log(x), lax.atan2(x, y), lax.pow(x, y), lax.tanh(x), lax.log1p(x),
        lax.div(n, m), lax.rem(n, m), n * m, lax.shift_left(n, m), lax.shift_right_logical(n, m),
        lax.shift_right_arithmetic(n, m), lax.population_count(n), lax.clz(n), n.astype(float) * x[0],
    ]  # fmt: skip


@NEEDS_NODE
def test_hard_cases() -> None:
    """Products and differences that are denormal are 0, of their sign, before anything reads them."""
    x, y = (a.ravel() for a in np.meshgrid(np.array(ODD), np.array(ODD)))
    k = np.array([0, 1, -1, 31, 32, 63, 64, -(2**31), 2**31 - 1, 7], np.int32)
    n, m = (a.ravel() for a in np.meshgrid(k, k))
    made = wasm.answers(elementwise, x, y, n, m)
    assert_same_bits(made, Native(elementwise)(x, y, n, m))
    with np.errstate(all="ignore"):
        small = (x * y != 0) & (np.abs(x * y) < np.finfo(float).tiny)
    assert small.any()
    assert (made[2][small] == 0).all()


@NEEDS_NODE
@pytest.mark.exhaustive
def test_random_programs() -> None:
    """Those without remainders, which are C's library's."""
    compared = 0
    for seed in range(500_000, 500_060):
        function, args = program(seed), arguments(seed)
        with contextlib.suppress(NotImplementedError):
            made = answered(function, args)
            assert_same_bits(made, Native(function)(*args), str(seed))
            compared += 1
    assert compared > 30


def answered(function: Callable[..., Any], args: Sequence[Any]) -> list[np.ndarray]:
    try:
        return wasm.answers(function, *args)
    except ValueError as why:
        raise (NotImplementedError if "calls fmod" in str(why) else AssertionError) from why


def test_what_is_not_there_is_named() -> None:
    body = "  %y = call double @erf(double %x)\n  ret double %y\n"
    text = f"declare double @erf(double)\ndefine double @f(double %x) {{\n{body}}}"
    with pytest.raises(ValueError, match="the program calls erf, which a page does not have"):
        module_of(link_objects([text], TARGET), ["f"])


def test_denormals_are_written_out() -> None:
    line = "  %v1 = fmul <4 x float> %a, %b"
    text = flush_denormals(f"{line}\n  %v2 = fneg float %v1").split("\n")
    assert text[0] == "  %v1.raw = fmul <4 x float> %a, %b"
    assert text[4] == "  %v1 = select <4 x i1> %v1.low, <4 x float> %v1.zero, <4 x float> %v1.raw"
    assert text[5] == "  %v2 = fneg float %v1"
    assert flush_denormals("  %v3 = add i32 %x, %y") == "  %v3 = add i32 %x, %y"
