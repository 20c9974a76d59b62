"""Marks, at which warps of a block come together: where they are in a program, and that no answer depends on them."""

from __future__ import annotations

import ctypes
import re
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from carom.engine.native import code
from carom.engine.native.arena import THREADS
from carom.engine.native.runner import Runner
from carom.engine.native.warp import marks
from carom.engine.native.warp.code import kernel_of
from carom.engine.native.warp.dialect import Dialect, nvidia
from carom.engine.native.warp.marks import insert_marks
from carom.engine.native.warp.ptx import ptx_of
from carom.tests.oracles import warp
from carom.tests.oracles.native_and_xla import Native, assert_same_bits, no_fallback

emulated = pytest.mark.skipif(bool(warp.missing()), reason=f"needs {warp.missing()}")

PROGRAM = """define void @part1(ptr %A) {
entry:
  a
  b
  c
  ret void
}
define void @lane(ptr %A) {
entry:
  before
  br label %loop1
loop1:
  %v1 = phi i32 [ 0, %entry ], [ %v2, %long.end ]
  first
  br label %short
short:
  d
  e
  br i1 %x, label %short, label %short.end
short.end:
  call void @part1(ptr %A)
  br label %long
long:
  %v3 = phi i32 [ 0, %short.end ], [ %v4, %long ]
  f
  g
  h
  i
  br i1 %x, label %long, label %long.end
long.end:
  j
  br i1 %x, label %loop1, label %loop1.end
loop1.end:
  after
  ret void
}"""


def places(every: int) -> tuple[list[str], int]:
    """What comes behind each mark."""
    with mock.patch.object(marks, "EVERY", every):
        text, count = insert_marks(PROGRAM, Dialect("", "", "", (), "", "", "", mark="mark PHASE of COUNT"))
    lines = text.split("\n")
    assert [line for line in lines if not line.startswith("  mark")] == PROGRAM.split("\n")
    found = {line.split(" ")[3]: lines[k + 1].strip() for k, line in enumerate(lines) if line.startswith("  mark")}
    assert all(line.endswith(f" of {count}") for line in lines if line.startswith("  mark"))
    return [found[str(k)] for k in range(count)], count


def test_marks_are_in_the_loop_in_the_order_of_the_program() -> None:
    assert places(100) == (["first"], 1), "its top"
    assert places(3) == (["first", "call void @part1(ptr %A)", "c", "j"], 4), "none in loops within it"


def long(x: Any) -> Any:
    """A loop that is most of the program, and a short one in it."""

    def turn(k: Any, x: Any) -> Any:
        y = jnp.sin(x @ x.T) / (1 + k) + x
        return lax.fori_loop(0, 3, lambda _, y: jnp.cos(y) * y, y)

    return lax.fori_loop(0, 4, turn, x)


@emulated
def test_marks_are_passed_once_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(3).random((5, 20, 20), np.float32)
    here = Native(long)(x, lanes=(0,))
    monkeypatch.setattr(marks, "EVERY", 100)
    passed = np.ctypeslib.as_array((ctypes.c_uint64 * (THREADS << 12)).in_dll(warp.emulator(), "warp_marks"))
    passed[:] = 0
    with warp.launched(3) as emulator, no_fallback():
        there = Native(long)(x, lanes=(0,))
        assert emulator.warp_waits() > 0
    assert_same_bits(there, here)
    counts = passed.reshape(THREADS, -1)
    counts = counts[:, counts.any(0)]
    assert counts.shape[1] > 2
    assert (counts == 4 * len(x)).all()


def test_who_waits_does_so_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """In NVIDIA's own words: no way back to the look but with time left."""
    monkeypatch.setattr(marks, "EVERY", 100)
    made = code.lane_text(jax.make_jaxpr(long)(jnp.ones((20, 20), jnp.float32)), [0], Runner.WARP)
    ptx = ptx_of(kernel_of(made, nvidia(Runner.WARP)))
    assert ".maxntid 1024" in ptx
    window, patience = (rf"setp\.lt\.and\.u32 p, {x}, (\d+), " for x in "xu")
    phases = [int(x) for x in re.findall(r"st\.volatile\.shared\.u32 \[w\], (\d+);", ptx)]
    assert sorted(phases) == list(range(len(phases)))
    assert len(phases) > 2
    assert set(re.findall(window, ptx)) == {str(max(1, len(phases) // 4))}
    assert set(re.findall(patience, ptx)) == {"80000"}
