"""What a run of a library scene answers, as digests of its bits, by code for one processor.

`python -m carom.tests.oracles.bits SCENE SECONDS PROCESSOR`: a line of JSON.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np

import carom
from carom.engine.native.runner import Runner
from carom.scenes.library.registry import library_entry
from carom.tests.oracles import aarch64, warp
from carom.tests.oracles.native_and_xla import no_fallback

HERE = "this machine"
X86 = ("x86-64-v2", "x86-64-v3", "x86-64-v4")  # vectors of 16, 32 and 64 bytes; the last two have fused multiply-adds
FLAGS = {
    "x86-64-v2": {"sse4_2", "popcnt"},
    "x86-64-v3": {"avx2", "fma", "bmi2"},
    "x86-64-v4": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
}
WARP = "a GPU's warp"  # 32 threads, one element of a vector each; run by an emulator
THREAD = "a GPU's thread"  # one of 32 beside each other; run by the same
AARCH64 = "aarch64"  # vectors of 16 bytes, fused multiply-adds; run by qemu
FIELDS = ("t", "q", "v", "events", "rest")


@dataclasses.dataclass(frozen=True)
class Bits:
    """digests: of each of FIELDS; the last is the result code, the statistics and the last state.  cpu_seconds: of a
    run after the first, None in an emulator."""

    digests: dict[str, str]
    impacts: int
    ticks: int
    cpu_seconds: float | None


def missing(processor: str) -> str:
    """What this machine lacks to run code for a processor."""
    if processor == AARCH64:
        return " and ".join(aarch64.missing())
    if processor in (WARP, THREAD):
        return warp.missing()
    if processor in X86:
        return ", ".join(sorted(FLAGS[processor] - _features()))
    return ""


@functools.cache
def _features() -> set[str]:
    """Of an x86-64 processor, as Linux calls them."""
    if platform.machine() != "x86_64" or sys.platform != "linux":
        return set()
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return set(next(line for line in lines if line.startswith("flags")).split())


@functools.cache
def bits_of(scene: str, seconds: float, processor: str = HERE, level: int = 2) -> Bits:
    """Of the scene's usual play, in a process that compiles its programs anew. level: how much LLVM optimises."""
    surroundings = {**os.environ, "CAROM_CACHE": "off", "CAROM_NATIVE_LEVEL": str(level)}
    surroundings.pop("CAROM_NATIVE_CPU", None)
    if processor in X86:
        surroundings["CAROM_NATIVE_CPU"] = processor
    command = [sys.executable, "-m", "carom.tests.oracles.bits", scene, str(seconds), processor]
    ran = subprocess.run(command, env=surroundings, stdout=subprocess.PIPE, text=True, check=True)
    return Bits(**json.loads(ran.stdout.splitlines()[-1]))


def run(scene: str, seconds: float, processor: str) -> Bits:
    """In this process."""
    entry = library_entry(scene)
    play: Any = entry.play
    model, state = carom.compile_scene(entry.build(**play.parameters))
    keywords: Any = {**play.keywords, "duration": seconds, "throw": False}
    rollout = lambda: carom.rollout(model, state, **keywords)  # noqa: E731
    cpu_seconds = None
    emulators = {
        AARCH64: aarch64.emulated, WARP: lambda: warp.launched(1),
        THREAD: lambda: warp.launched(1, runner=Runner.THREAD),
    }  # fmt: skip
    with no_fallback(), emulators.get(processor, contextlib.nullcontext)():
        made = jax.block_until_ready(rollout())
        if processor not in emulators:
            began = time.process_time()
            jax.block_until_ready(rollout())
            cpu_seconds = time.process_time() - began
    parts = (made.t, made.q, made.v, made.events, (made.code, made.stats, made.state))
    digests = {name: _digest(part) for name, part in zip(FIELDS, parts, strict=True)}
    return Bits(digests, int(made.events.count), int(made.stats.ticks), cpu_seconds)


def _digest(tree: Any) -> str:
    digest = hashlib.sha256()
    for x in jax.tree.leaves(tree):
        digest.update(np.asarray(x).tobytes())
    return digest.hexdigest()


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    _, scene, seconds, processor = sys.argv
    print(json.dumps(dataclasses.asdict(run(scene, float(seconds), processor))))
