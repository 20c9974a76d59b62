"""Kernels: what they need, taken apart without a GPU, and what a GPU makes of them.

Imports nothing that a machine with a GPU may lack: jax, numpy and llvmlite are enough.
"""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import carom
from carom.engine.native.warp.code import Kernel
from carom.scenes.library.registry import library_entry
from carom.tests.oracles.programs import equations

SCENES = ("arm7", "pool_break", "stack", "ragdoll")
ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
LANES = (1024, 8192, 65536)
STEP = 1 / 240  # [s]
SPREAD = 1e-3  # of velocities, between lanes

# an H200: multiprocessors, instructions a cycle of each, cycles a second, bytes a second from its second cache
H200 = 132 * 4 * 1.755e9, 5.5e12
USED = 0.4  # of its instructions: between loads that are waited for, few programs issue more
BYTES = 64  # of an access: half a line


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    name: str
    model: Any
    state: Any
    seconds: float


def case(name: str, seconds: float) -> Case:
    """A library scene, or a scene's file."""
    if Path(name).suffix:
        spec: Any = carom.load(name)
        model, state = carom.compile_scene(spec)
        return Case(Path(name).stem, model, state, seconds)
    entry = library_entry(name)
    play: Any = entry.play
    model, state = carom.compile_scene(entry.build(**play.parameters))
    return Case(name, model, state, seconds)


def rollout(case: Case, state: Any) -> Any:
    return carom.rollout(case.model, state, duration=case.seconds, frame_dt=case.seconds, max_dt=STEP, throw=False)


def lanes_of(state: Any, lanes: int) -> Any:
    """Lanes whose velocities differ."""
    many = carom.tile(state, lanes)
    return dataclasses.replace(
        many, v=many.v + SPREAD * jax.random.normal(jax.random.key(0), many.v.shape, many.v.dtype)
    )


def kernel_of(case: Case) -> Kernel:
    """Of the run of one lane."""
    jaxpr = jax.make_jaxpr(lambda state: rollout(case, state))(case.state).jaxpr
    programs = [e.params["program"] for e in equations(jaxpr) if e.primitive.name == "native"]
    kernel = max(programs, key=lambda p: len(p.avals)).kernel
    assert kernel is not None, f"{case.name} is no kernel"
    return kernel


def kernels(scenes: list[str]) -> int:
    """Print what NVIDIA's assembler says of each kernel, what a tick executes, and what that lets hope for."""
    from carom.tests.oracles import ptxas, warp

    print(f"arena: memory of a lane; ticks/s: predicted for an H200, {USED:g} of its instructions being issued")
    print(f"{'scene':>12} {'':4} {'arena KB':>9} {'PTX KB':>7}", end="")
    print("".join(f" {a + ' registers, spilled B, code KB':>38}" for a in ARCHITECTURES), end="")
    print(f" {'instructions':>13} {'accesses':>9} {'shuffles':>9} {'waits':>7} {'ticks/s':>9}")
    for name in scenes:
        one = case(name, 0.05)
        kernel = kernel_of(one)
        print(f"{one.name:>12} {jnp.dtype(one.state.v.dtype).name[-2:]:>4}", end="", flush=True)
        print(f" {kernel.arena / 1024:9.0f} {len(kernel.code) / 1024:7.0f}", end="", flush=True)
        for architecture in ARCHITECTURES:
            if ptxas.assembler() is None:
                print(f" {'no ptxas':>38}", end="")
                continue
            made = ptxas.assembled(kernel.code.decode(), architecture)
            figures = f"{made.registers}, {made.stores + made.loads}, {made.size // 1024}"
            print(f" {figures:>38}", end="", flush=True)
        tally = warp.Tally()
        with warp.launched(1, tally=tally):
            jax.clear_caches()
            ran = rollout(one, one.state)
        done, ticks = tally.executed(), max(1, int(ran.stats.ticks))
        total, accesses = sum(done.values()) / ticks, (done["load"] + done["store"]) / ticks
        most = min(USED * H200[0] / total, H200[1] / (accesses * BYTES))
        shuffles, waits = done["warp_shuffle"] / ticks, done["warp_sync"] / ticks
        print(f" {total:13.0f} {accesses:9.0f} {shuffles:9.0f} {waits:7.0f} {most:9.0f}", flush=True)
    return 0


def suite(scenes: list[str], sizes: tuple[int, ...] = LANES, seconds: float = 1.0, checked: int = 64) -> int:
    """On the default device: first whether it answers what the CPU does, then how fast. The exit status says whether
    all answers were right."""
    device, cpu = jax.devices()[0], jax.devices("cpu")[0]
    print(f"{device.device_kind}, jax {jax.__version__}; the CPU's answers on {checked} lanes first", flush=True)
    print(f"{'scene':>12} {'compile s':>9} {'same bits':>9} {'furthest':>9}", end="")
    print(f" {'lanes':>6} {'lane s/s':>9} {'ticks/s':>10} {'KB a lane':>9} codes, energy gained")
    right = True
    for name in scenes:
        one = case(name, seconds)
        run = jax.jit(lambda state, one=one: rollout(one, state))
        began = time.perf_counter()
        some = lanes_of(one.state, checked)
        there = jax.block_until_ready(run(jax.device_put(some, device)))
        compiling = time.perf_counter() - began
        with jax.default_device(cpu):
            here = jax.jit(lambda state, one=one: rollout(one, state))(jax.device_put(some, cpu))
        pairs = [(np.asarray(a), np.asarray(b)) for a, b in zip(*map(jax.tree.leaves, (here, there)), strict=True)]
        same = sum(a.tobytes() == b.tobytes() for a, b in pairs)
        far = float(np.abs(np.asarray(here.state.q) - np.asarray(there.state.q)).max())
        right &= same == len(pairs)
        print(f"{one.name:>12} {compiling:9.1f} {f'{same}/{len(pairs)}':>9} {far:9.1e}", end="", flush=True)
        for k, lanes in enumerate(sizes):
            states = jax.device_put(lanes_of(one.state, lanes), device)
            jax.block_until_ready(run(states))
            began = time.perf_counter()
            made = jax.block_until_ready(run(states))
            took = time.perf_counter() - began
            ticks = int(np.asarray(made.stats.ticks, np.int64).sum())
            energy = np.asarray(jax.vmap(lambda s, one=one: carom.energy(one.model, s).total)(made.state))
            before = np.asarray(jax.vmap(lambda s, one=one: carom.energy(one.model, s).total)(states))
            used = (device.memory_stats() or {}).get("peak_bytes_in_use", 0) / 1024 / lanes
            codes = dict(zip(*np.unique(np.asarray(made.code), return_counts=True), strict=True))
            print("" if k == 0 else " " * 42, end="")
            print(f" {lanes:6d} {lanes * seconds / took:9.0f} {ticks / took:10.0f} {used:9.1f}", end="")
            print(f" { ({int(c): int(n) for c, n in codes.items()}) }, {(energy - before).max():.1e}", flush=True)
    print("the CPU's bits" if right else "not the CPU's bits, see above")
    return 0 if right else 1
