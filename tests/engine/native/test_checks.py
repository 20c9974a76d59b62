"""CAROM_NATIVE_CHECK tells of what goes wrong: errors are planted in the compiler, and must be seen."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from carom.engine.native import machine
from carom.engine.native.emit import nodes, program, reading
from carom.tests.oracles.native_and_xla import Native, xla

X = np.arange(40.0)


def unbounded(f, width, indices, terms, array=None):
    """`addresses.offset` of one index, which is kept within nothing."""
    (type, x), (stride, _) = indices[0], terms[0]
    return x if stride == 1 else f.let(f"mul {type.llvm} {x}, {stride}")


@pytest.mark.parametrize(
    "look",
    [
        lambda x, i: lax.dynamic_slice(jnp.flip(x) + 1, (i,), (20,)),
        lambda x, i: lax.dynamic_update_slice(x + 1, x[:20], (i,)),
        lambda x, i: (x + 1).at[i + jnp.zeros(20, jnp.int32)].add(1.0, mode="clip"),
        lambda x, i: (x + 1).at[i + jnp.arange(20, dtype=jnp.int32)].get(mode="clip"),
    ],
    ids=["window", "put", "scatter", "gather"],
)
def test_places_outside_are_told(look: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    Native(look, checked=True)(X, np.int32(39))
    assert machine.OUTSIDE == []
    for module in (reading, nodes):
        if hasattr(module, "offset"):
            monkeypatch.setattr(module, "offset", unbounded)
    Native(look, checked=True)(X, np.int32(45))
    outside, machine.OUTSIDE[:] = list(machine.OUTSIDE), []
    assert outside
    assert all(far >= X.nbytes for _, far in outside)


def test_what_is_read_after_its_end_is_nan(monkeypatch: pytest.MonkeyPatch) -> None:
    def function(x):
        a = jnp.cumsum(x)
        b = jnp.cumsum(jnp.flip(a))
        return b + a

    before = Native(function, checked=True)(X)
    np.testing.assert_array_equal(before, xla(function, X))
    die = program.EmittedProgram._will_die

    def early(self, value):  # as soon as it is made
        self.plan.last[value.region][value] = -1
        die(self, value)

    monkeypatch.setattr(program.EmittedProgram, "_will_die", early)
    assert np.isnan(Native(function, checked=True)(X)[0]).all()
