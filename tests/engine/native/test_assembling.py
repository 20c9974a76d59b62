"""A large program is cut into parts, which other processes assemble: the code is the same."""

from __future__ import annotations

import re
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from carom.engine.native import assembling, code, machine


@pytest.fixture(scope="module")
def text() -> str:
    """The text of a program of several functions with tables."""

    def function(x):
        for k in range(40):
            x = jnp.where(x > k, jnp.sin(x) + jnp.cumsum(x) * 1e-3, jnp.cos(x)[jnp.asarray(np.arange(20)[::-1] // 2)])
            x = jax.lax.fori_loop(0, 3, lambda _, y: jnp.sqrt(jnp.abs(y) + 1), x)
        return [x]

    return code.lane_text(jax.make_jaxpr(function)(jnp.linspace(0.0, 3.0, 20)), [0]).text + "\n"


def result(packed: bytes) -> np.ndarray:
    """Run the code on zeros in its arena."""
    loaded = machine.LoadedCode(*assembling.unpack(packed))
    arena = np.zeros(1 << 20, np.uint8)
    start = -arena.ctypes.data % 64
    loaded.call("entry", arena.ctypes.data + start)
    return arena[start : start + (1 << 19)]


def with_entry(text: str) -> str:
    return (
        text + "define void @entry(i64 %A) {\n  %p = inttoptr i64 %A to ptr\n  call void @lane(ptr %p)\n  ret void\n}\n"
    )


@pytest.mark.parametrize(("part", "processors"), [(1, 1), (20_000, 1), (20_000, 3)])
def test_parts_are_the_whole(text, part, processors, monkeypatch):
    whole = with_entry(text)
    monkeypatch.setattr(assembling, "_processors", lambda: processors)
    one = assembling.assemble_parts(whole, machine.target())
    assert len(assembling.unpack(one)) == 1
    monkeypatch.setattr(assembling, "PART", part)
    several = assembling.assemble_parts(whole, machine.target())
    assert len(assembling.unpack(several)) > 2
    assert result(one).any()
    np.testing.assert_array_equal(result(several), result(one))


def test_every_function_is_in_one_part(text, monkeypatch):
    monkeypatch.setattr(assembling, "PART", 20_000)
    names = lambda text: re.findall(r"^define .*@(\w+)\(", text, re.M)  # noqa: E731
    parts = assembling.cut(with_entry(text))
    assert len(parts) > 2
    assert sorted(name for part in parts for name in names(part)) == sorted(names(with_entry(text)))


@pytest.mark.parametrize("python", ["", "/bin/blender", "/nowhere/python"])
def test_without_help(text, python, monkeypatch):
    """Within another program, or if processes cannot be started, this one does all the work."""
    monkeypatch.setattr(assembling, "PART", 20_000)
    expected = assembling.assemble_parts(text, machine.target())
    monkeypatch.setattr(sys, "executable", python)
    monkeypatch.setattr(assembling, "_processors", lambda: 3)
    assert assembling.assemble_parts(text, machine.target()) == expected
