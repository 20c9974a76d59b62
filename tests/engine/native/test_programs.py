"""Random programs answer what XLA answers, with anything in memory before, and in every lane what it answers alone."""

from typing import Any

import numpy as np
import pytest

from carom.engine.native import machine
from carom.tests.oracles.native_and_xla import Native, assert_close, assert_same_bits, gradient, step_by_step, xla
from carom.tests.oracles.random_programs import arguments, program, together

TOGETHER = 20  # programs in one
FATAL = {104_630}  # XLA ends the process when it compiles a division of whole constants by 0 (jaxlib 0.10.2)


def check(first: int, count: int, statements: int = 8, nested: int = 2, special: bool = False) -> None:
    """Programs of seeds first, first + 1, ...: a failure names the seed, for `program(seed, statements, nested)`.

    Where XLA answers something else, it is asked once more, step by step: it fuses some updates of an array by itself
    turned round so that they read what they wrote (jaxlib 0.10.2; seed 100799, and `test_found.py`).
    """
    seeds = [seed for seed in range(first, first + count) if seed not in FATAL]
    function = together(seeds, statements, nested)
    args = [x for seed in seeds for x in arguments(seed, special=special)]
    checked = Native(function, checked=True)
    theirs, mine = xla(function, *args), checked(*args, poison=True)
    each = len(theirs) // len(seeds)
    names = [f"seed {seed} ({statements}, {nested}), result {k}" for seed in seeds for k in range(each)]
    for k, seed in enumerate(seeds):
        part = slice(each * k, each * k + each)
        try:
            agree(mine[part], theirs[part], names[part])
        except AssertionError:
            given = arguments(seed, special=special)
            agree(mine[part], step_by_step(program(seed, statements, nested), *given), names[part])
    outside, machine.OUTSIDE[:] = list(machine.OUTSIDE), []
    assert not outside, f"seeds {first} ...: values looked at outside of their arrays, and how far {outside[:5]}"
    plain = Native(function)
    for poison in (False, True):
        for name, a, b in zip(names, plain(*args, poison=poison), mine, strict=True):
            assert_same_bits([a], [b], f"{name}, {'poisoned' if poison else 'as users run it'}")


def agree(mine: list[np.ndarray], theirs: list[np.ndarray], names: list[str]) -> None:
    for name, a, b in zip(names, mine, theirs, strict=True):
        assert_close(a, b, 0.0, name)


def check_lanes(first: int, count: int) -> None:
    """Lanes together, one after another in one piece of memory, and each alone."""
    seeds = range(first, first + count)
    native = Native(together(seeds))
    args = [x for seed in seeds for x in arguments(seed, lanes=5)]
    shared = [k % 5 == 1 for k in range(len(args))]  # one argument of each program is the same for all
    args = [x[0] if one else x for x, one in zip(args, shared, strict=True)]
    together_ = native(*args, lanes=[None if one else 0 for one in shared])
    for lane in range(5):
        alone = native(*(x if one else x[lane] for x, one in zip(args, shared, strict=True)))
        for k, (a, b) in enumerate(zip(together_, alone, strict=True)):
            assert_same_bits([a[lane]], [b], f"result {k} of seeds {first} ..., lane {lane}")


def check_derivative(seed: int) -> None:
    """Tangents add up in other orders, and grow: they are compared with the largest of their array."""
    function, args = program(seed, 6), arguments(seed)
    dots = [np.ones_like(x) if x.dtype.kind == "f" else np.zeros(x.shape, [("float0", "V")]) for x in args]
    dots = [d if x.dtype.kind == "f" else _no_tangent(x) for d, x in zip(dots, args, strict=True)]
    mine, theirs = Native(function).derivative(args, dots), _derivative(function, args, dots)
    for k, (a, b) in enumerate(zip(mine, theirs, strict=True)):
        most = np.abs(b[np.isfinite(b)]).max(initial=1.0)
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12 * most, err_msg=f"seed {seed}, {k}")


def check_gradient(seed: int, lanes: int | None = None) -> None:
    """In reverse mode, of one lane or of several that share one argument; also the gradients of lanes."""
    function, args = program(seed, 6, bounded=True), arguments(seed, lanes)
    axes = None if lanes is None else [None if k == 1 else 0 for k in range(len(args))]
    args = args if lanes is None else [x[0] if axis is None else x for x, axis in zip(args, axes or (), strict=True)]
    mine, theirs = Native(function).gradient(args, axes), gradient(function, args, axes)
    for k, (a, b) in enumerate(zip(mine, theirs, strict=True)):
        most = np.abs(b[np.isfinite(b)]).max(initial=1.0)
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12 * most, err_msg=f"seed {seed}, {lanes} lanes, {k}")


def _no_tangent(x: np.ndarray) -> np.ndarray:
    import jax

    return np.zeros(x.shape, jax.dtypes.float0)


def _derivative(function, args, dots):
    import jax

    from carom.tests.oracles.native_and_xla import leaves

    return leaves(jax.jit(lambda a, d: jax.jvp(function, a, d))(tuple(args), tuple(dots)))


def by_hand(firsts: range) -> list[Any]:
    """The first of many with the slow tests, the others with those that are run by hand."""
    return [pytest.param(k, marks=pytest.mark.exhaustive if k > firsts[0] else pytest.mark.slow) for k in firsts]


@pytest.mark.parametrize("first", range(0, 160, TOGETHER))
def test_programs(first: int) -> None:
    check(first, TOGETHER)


@pytest.mark.parametrize("seed", range(1000, 1040, 10))
def test_longer_programs(seed: int) -> None:
    check(seed, 10, statements=16, nested=3)


@pytest.mark.parametrize("first", by_hand(range(50_000, 51_000, 40)))
def test_programs_of_special_numbers(first: int) -> None:
    for seed in range(first, first + 40, TOGETHER):
        check(seed, TOGETHER, special=True)


def test_lanes() -> None:
    check_lanes(2000, 10)


@pytest.mark.parametrize("seed", range(3000, 3005))
def test_derivatives(seed: int) -> None:
    check_derivative(seed)


@pytest.mark.parametrize("lanes", [None, 3])
@pytest.mark.parametrize("seed", range(4000, 4005))
def test_gradients(seed: int, lanes: int | None) -> None:
    check_gradient(seed, lanes)


@pytest.mark.parametrize("first", by_hand(range(100_000, 109_000, 100)))
def test_many_programs(first: int) -> None:
    for seed in range(first, first + 100, TOGETHER):
        check(seed, TOGETHER)


@pytest.mark.parametrize("first", by_hand(range(200_000, 201_000, 25)))
def test_many_longer_programs(first: int) -> None:
    for seed in range(first, first + 25, 5):
        check(seed, 5, statements=24, nested=3)


@pytest.mark.parametrize("first", by_hand(range(300_000, 300_200, 20)))
def test_lanes_and_derivatives_of_many(first: int) -> None:
    check_lanes(first, 20)
    for seed in range(first, first + 20):
        check_derivative(seed)
        check_gradient(seed)
