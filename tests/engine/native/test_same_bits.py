"""Code for any processor has the same bits: vectors of 16, 32 and 64 bytes, with and without fused multiply-adds.

x86-64's levels run as they are, AArch64's code in qemu.
"""

from unittest import mock

import numpy as np
import pytest
from jax import lax

from carom.tests.oracles import aarch64
from carom.tests.oracles.bits import AARCH64, HERE, X86, bits_of, missing
from carom.tests.oracles.native_and_xla import Native, assert_same_bits
from carom.tests.oracles.random_programs import arguments, together


def needed(processor: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(bool(missing(processor)), reason=f"needs {missing(processor)}")


EMULATED = needed(AARCH64)
OTHERS = pytest.mark.parametrize("processor", [pytest.param(p, marks=needed(p)) for p in (*X86, AARCH64)])
SCENES = pytest.mark.parametrize(
    ("scene", "seconds", "impacts"),
    [
        pytest.param("bouncing_ball", 2.0, 3, marks=pytest.mark.slow),
        pytest.param("pool_break", 5.0, 100, marks=pytest.mark.exhaustive),
        pytest.param("stack", 5.0, 0, marks=pytest.mark.exhaustive),
        pytest.param("ragdoll", 5.0, 5, marks=pytest.mark.exhaustive),
    ],
)


@OTHERS
@SCENES
def test_every_processor_has_the_bits_of_this_machine(scene: str, seconds: float, impacts: int, processor: str) -> None:
    here, there = bits_of(scene, seconds), bits_of(scene, seconds, processor)
    assert there.digests == here.digests
    assert here.impacts >= impacts


@SCENES
def test_code_that_is_not_optimised_has_the_same_bits(scene: str, seconds: float, impacts: int) -> None:
    """Tests run it, users the other."""
    here, there = bits_of(scene, seconds), bits_of(scene, seconds, HERE, level=0)
    assert there.digests == here.digests
    assert here.impacts >= impacts


def by_qemu(function, *args) -> None:
    """As users run it: tests are optimised less."""
    with mock.patch.dict("os.environ", {"CAROM_NATIVE_LEVEL": "2"}):
        here = Native(function)(*args)
        with aarch64.emulated():
            assert_same_bits(Native(function)(*args), here)


@EMULATED
@pytest.mark.slow
def test_hard_cases_on_aarch64() -> None:
    """Where the two families' instructions differ: NaN and -0 in extremes, conversions out of range, shifts by too
    much, ties, division by 0, denormals."""
    odd = np.array(
        [np.nan, np.inf, -np.inf, -0.0, 0.0, 5e-324, -1e-310, 2.5, -3.5, 1e10, -1e300, 1.7e308, 300, -1, 1e19]
    )
    x, y = (a.ravel() for a in np.meshgrid(odd, odd))
    k = np.array([0, 1, -1, 31, 32, 63, 64, -(2**31), 2**31 - 1, 7], np.int32)
    n, m = (a.ravel() for a in np.meshgrid(k, k))
    by_qemu(elementwise, x, y, n, m)


def elementwise(x, y, n, m):
    kinds = ("int8", "int16", "int32", "int64", "uint8", "uint32", "float32")
    return [
        x + y, x - y, x * y, x * y + x, x / y, lax.rem(x, y), lax.max(x, y), lax.min(x, y), lax.clamp(x, y, -x),
        lax.sign(x), lax.floor(x), lax.ceil(x), lax.round(x), lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN),
        lax.sqrt(x), lax.rsqrt(x), x == y, x < y, x <= y, x != y, lax.is_finite(x), abs(x), -x, lax.cbrt(x),
        *(x.astype(kind) for kind in kinds), x.astype("float32").astype("float64"),
        lax.sin(x), lax.cos(x), lax.exp(x), lax.log(x), lax.atan2(x, y), lax.pow(x, y), lax.tanh(x), lax.log1p(x),
        lax.div(n, m), lax.rem(n, m), n // m, n % m, n * m, lax.shift_left(n, m), lax.shift_right_logical(n, m),
        lax.shift_right_arithmetic(n, m), lax.population_count(n), lax.clz(n), n.astype(float) * x[0],
    ]  # fmt: skip


@EMULATED
@pytest.mark.exhaustive
@pytest.mark.parametrize("first", range(400_000, 400_200, 20))
def test_random_programs_on_aarch64(first: int) -> None:
    seeds = range(first, first + 20)
    by_qemu(together(seeds), *(x for seed in seeds for x in arguments(seed)))
