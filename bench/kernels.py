"""Kernels analysed without a GPU: their resources, the instructions of a tick, and the predicted speed."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from carom.engine.native.arena import THREADS
from carom.engine.native.runner import Runner, of_gpu
from carom.engine.native.warp.code import GpuKernel
from carom.tests.oracles.gpu import as_on_gpu
from carom.tests.oracles.programs import equations

from .gpu_cases import GpuCase, case

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
SECONDS = 0.05

# an H200: multiprocessors, instructions per cycle of each, cycles per second, bytes per second from its L2 cache
H200 = 132 * 4 * 1.755e9, 5.5e12
USED = 0.4  # part of its instructions: few programs that wait for loads issue more
BYTES = 64  # bytes of an access: half a line


def kernel_of(case: GpuCase) -> GpuKernel:
    """Return the kernel of the run of one lane."""
    jaxpr = jax.make_jaxpr(case.run)(case.state).jaxpr
    programs = [e.params["program"] for e in equations(jaxpr) if e.primitive.name == "native"]
    kernel = max(programs, key=lambda p: len(p.avals)).kernel
    assert kernel is not None, f"{case.name} is no kernel"
    return kernel


def alike(one: GpuCase) -> bool:
    """Return whether all lanes take the same path through the program."""
    return one.keywords.get("scheme", "exact") != "exact" and not one.model.topology.pairs


def suite(scenes: list[str]) -> int:
    """Print the resources of each kernel by NVIDIA's assembler, the instructions of a tick, and the predicted speed."""
    from carom.tests.oracles import ptxas, warp

    print(f"arena: memory of a lane; ticks/s: predicted for an H200, {USED:g} of its instructions being issued")
    print(f"{'scene':>12} {'':4} {'arena KB':>9} {'PTX KB':>7}", end="")
    print("".join(f" {a + ' registers, spilled B, code KB':>38}" for a in ARCHITECTURES), end="")
    print(f" {'instructions':>13} {'accesses':>9} {'shuffles':>9} {'waits':>7} {'ticks/s':>9}")
    for name in scenes:
        one = case(name, SECONDS)
        with as_on_gpu():
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
        runner = of_gpu(alike(one))
        beside = THREADS if runner is Runner.THREAD else 1
        with as_on_gpu(), warp.launched(1, tally=tally, runner=runner):
            ran = one.run(one.lanes(beside))
        done, ticks = tally.executed(), max(1, int(ran.stats.ticks.sum()))
        total, accesses = sum(done.values()) / ticks, (done["load"] + done["store"]) / ticks
        most = min(USED * H200[0] / total, H200[1] / (accesses * BYTES))
        shuffles, waits = done["warp_shuffle"] / ticks, done["warp_sync"] / ticks
        print(f" {total:13.0f} {accesses:9.0f} {shuffles:9.0f} {waits:7.0f} {most:9.0f}", flush=True)
    return 0
