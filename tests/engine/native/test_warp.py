"""A lane's program as a kernel: the text that a GPU's driver gets, run on 32 threads that take turns.

Between two places where they wait for each other the threads run in an order that is drawn, and the answers are those
of the CPU's code, bit for bit. What remains to be seen on a GPU is NVIDIA's compiler and the calls of its driver.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import carom
from carom.engine.native import code, paths
from carom.engine.native.arena import THREADS
from carom.engine.native.function import native
from carom.engine.native.open_arrays import OpenRecord
from carom.engine.native.program import Program
from carom.engine.native.runner import VARIABLE, Runner, of_gpu
from carom.engine.native.types import Unsupported
from carom.engine.native.warp import driver
from carom.engine.native.warp.code import compile_kernel, kernel_of
from carom.engine.native.warp.dialect import nvidia
from carom.engine.native.warp.ptx import ptx_of
from carom.scenes.library.registry import SCENES
from carom.tests.oracles import ptxas, warp
from carom.tests.oracles.bits import THREAD, WARP, bits_of
from carom.tests.oracles.gpu import as_on_gpu, forget_kernels
from carom.tests.oracles.native_and_xla import Native, assert_same_bits, leaves, no_fallback
from carom.tests.oracles.random_programs import arguments, together

of_both = pytest.mark.parametrize("runner", [Runner.WARP, Runner.THREAD], ids=["warp", "thread"])
by_threads = pytest.param(Runner.THREAD, marks=pytest.mark.exhaustive, id="thread")
rather_by_warps = pytest.mark.parametrize("runner", [pytest.param(Runner.WARP, id="warp"), by_threads])
emulated = pytest.mark.skipif(bool(warp.missing()), reason=f"needs {warp.missing()}")
assembled = pytest.mark.skipif(ptxas.assembler() is None, reason="needs ptxas: pip install nvidia-cuda-nvcc")


def both(function: Callable[..., Any], *args: Any, runner: Runner, warps: int = 1, seed: int = 1, **how: Any) -> None:
    """By the CPU's code and as a kernel."""
    here = Native(function)(*args, **how)
    with warp.launched(warps, seed, runner=runner) as emulator, no_fallback():
        there = Native(function)(*args, **how)
        assert emulator.warp_waits() > 0, "the threads went different ways, or no kernel ran"
    assert_same_bits(there, here)


@emulated
@of_both
@pytest.mark.parametrize("first", range(0, 40, 8))
@pytest.mark.parametrize("poison", [False, True])
def test_random_programs(first: int, poison: bool, runner: Runner) -> None:
    seeds = range(first, first + 8)
    given = (x for seed in seeds for x in arguments(seed))
    both(together(seeds), *given, runner=runner, seed=1 + first, poison=poison)


@emulated
@rather_by_warps
@pytest.mark.slow
@pytest.mark.parametrize("first", range(500_000, 500_200, 20))
def test_more_random_programs(first: int, runner: Runner) -> None:
    seeds = range(first, first + 20)
    both(together(seeds), *(x for seed in seeds for x in arguments(seed)), runner=runner, seed=first)


def mixed(x: Any, y: Any, k: Any) -> Any:
    z = x @ y
    few = jnp.stack([z[0, 0], z[1, 1], z[2, 2], z[3, 0], z[0, 3]])
    return z.T + 1, z.sum(0), z.sum(), few[::-1], (z > 0.5)[:, :3], jnp.cumsum(z, 1), z[k], z.at[k, 2].set(few[1]), k


@emulated
@of_both
@pytest.mark.parametrize("warps", [1, 3, 8])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_warps_take_lanes(warps: int, dtype: type, runner: Runner) -> None:
    """Fewer warps than lanes, as many, and more; arguments of each lane and of all. 71 threads' lanes are two warps'
    and a part of one."""
    count = 7 if runner is Runner.WARP else 71
    random = np.random.default_rng(7)
    x, y = random.random((count, 20, 20)).astype(dtype), random.random((20, 20)).astype(dtype)
    k = np.arange(count, dtype=np.int32) % 20
    both(mixed, x, y, k, runner=runner, warps=warps, lanes=(0, None, 0))


@emulated
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_order_of_threads_shows(seed: int) -> None:
    random = np.random.default_rng(8)
    both(mixed, random.random((20, 20)), random.random((20, 20)), np.int32(5), runner=Runner.WARP, seed=seed)


@emulated
def test_threads_that_do_not_wait_are_noticed() -> None:
    """The emulator's own test: without the places where threads wait for each other something else comes out."""
    x = np.random.default_rng(9).random((20, 20))
    here = Native(mixed)(x, x, np.int32(5))
    hasty = warp.EMULATED._replace(sync="")
    with mock.patch.object(warp, "EMULATED", hasty), warp.launched(1):
        there = Native(mixed)(x, x, np.int32(5))
    with pytest.raises(AssertionError):
        assert_same_bits(there, here)


@emulated
@of_both
def test_open_arrays_are_written_where_they_are(runner: Runner) -> None:
    def filled(_: None, log: OpenRecord, x: jax.Array) -> OpenRecord:
        row = lambda k, rows: lax.dynamic_update_index_in_dim(rows, x * k, k, 0)  # noqa: E731
        return OpenRecord(lax.fori_loop(1, 5, row, log.array))

    def run() -> list[np.ndarray]:
        program = native(lambda *args: filled(*args))  # a program of its own each time
        logs, x = jnp.full((4, 9, 3), -1.0), jnp.arange(12.0).reshape(4, 3)
        return leaves(jax.vmap(lambda log, x: program(None, OpenRecord(log), x).array)(logs, x))

    here = run()
    with warp.launched(3, runner=runner), no_fallback():
        assert_same_bits(run(), here)
    assert (here[0][:, 5:] == -1).all()
    assert (here[0][1, 4] == 4 * np.arange(3, 6)).all()


PLAYS = [
    ("bouncing_ball", 0.6, 1),
    pytest.param("pool_break", 0.3, 20, marks=pytest.mark.slow),
    pytest.param("stack", 0.05, 0, marks=pytest.mark.slow),
    pytest.param("ragdoll", 0.5, 5, marks=pytest.mark.slow),
    *(pytest.param(name, 0.3, 0, marks=pytest.mark.exhaustive) for name in SCENES),
]


@emulated
@rather_by_warps
@pytest.mark.parametrize(("scene", "seconds", "impacts"), PLAYS)
def test_library_scenes_have_the_bits_of_the_cpu(scene: str, seconds: float, impacts: int, runner: Runner) -> None:
    here, there = bits_of(scene, seconds), bits_of(scene, seconds, {Runner.WARP: WARP, Runner.THREAD: THREAD}[runner])
    assert there.digests == here.digests
    assert here.impacts >= impacts


@emulated
@of_both
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_blocks_have_the_same_bits(dtype: type, runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of lanes of scenes without contacts, as wide as a warp or of one lane: 37 are a block and a part of one."""
    model, state = carom.compile_scene(carom.load("double_pendulum"), dtype=dtype)
    lanes = carom.tile(state, 37)
    lanes = dataclasses.replace(lanes, v=lanes.v + jnp.arange(37.0, dtype=dtype)[:, None] / 7)

    def run(scheme: str) -> list[np.ndarray]:
        jax.clear_caches()
        return leaves(carom.rollout(model, lanes, duration=0.05, frame_dt=0.01, max_dt=0.005, scheme=scheme))

    for scheme in ("semi_implicit", "rk4"):
        here = run(scheme)
        with monkeypatch.context() as patch, warp.launched(2, runner=runner) as emulator, no_fallback():
            patch.setattr(
                "carom.integrators.free.side_by_side", lambda dtype: 1 if runner is Runner.THREAD else THREADS
            )
            assert_same_bits(run(scheme), here)
            assert emulator.warp_waits() > 0


def text_of(function: Callable[..., Any], *args: Any, runner: Runner = Runner.THREAD) -> str:
    closed = jax.make_jaxpr(function)(*args)
    return ptx_of(kernel_of(code.lane_text(closed, [0] * len(args), runner), nvidia(runner)))


@of_both
def test_nothing_is_contracted(runner: Runner) -> None:
    """Who may, makes one operation of a product and a sum, with other last digits."""
    for dtype in (jnp.float32, jnp.float64):
        ptx = text_of(
            lambda x, y: (x * y + x, x @ y, jnp.sqrt(x) / y), jnp.ones((9, 9), dtype), jnp.ones((9, 9), dtype),
            runner=runner,
        )  # fmt: skip
        made = re.findall(r"\b((?:add|sub|mul|div|sqrt|fma|mad)\.\S*f(?:32|64))\b", ptx)
        assert {"add", "mul", "div", "sqrt"} <= {op.split(".")[0] for op in made}
        assert all(".rn." in op and op.split(".")[0] not in ("fma", "mad") for op in made), set(made)


@of_both
def test_denormal_numbers_count_as_0_in_single_precision(runner: Runner) -> None:
    text = text_of(lambda x: x * x + x, jnp.ones(9, jnp.float32), runner=runner)
    made = re.findall(r"\b(?:add|sub|mul)\.\S*f32\b", text)
    assert made
    assert all(".ftz." in op for op in made)


@of_both
def test_what_a_gpu_has_no_function_for_is_refused(runner: Runner) -> None:
    with pytest.raises(Unsupported, match="fmod"):
        text_of(lambda x, y: lax.rem(x, y), jnp.ones(3), jnp.ones(3), runner=runner)


def test_who_runs_a_lane_may_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert of_gpu(alike=True) is Runner.THREAD
    assert of_gpu(alike=False) is Runner.WARP
    for asked, runner in (("warp", Runner.WARP), ("thread", Runner.THREAD)):
        monkeypatch.setenv(VARIABLE, asked)
        assert of_gpu(alike=True) is of_gpu(alike=False) is runner
    monkeypatch.setenv(VARIABLE, "block")
    with pytest.raises(ValueError, match="CAROM_GPU_LANES is 'block'; it may be thread or warp"):
        of_gpu(alike=True)


def test_a_kernel_comes_back_from_the_cache(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAROM_CACHE", str(tmp_path))
    closed = jax.make_jaxpr(lambda x: x @ x)(jnp.ones((5, 5)))
    first = compile_kernel(Runner.WARP, "once", closed, [0], keep=True)
    with mock.patch("carom.engine.native.warp.code.ptx_of", side_effect=AssertionError("compiled again")):
        again = compile_kernel(Runner.WARP, "twice", closed, [0], keep=True)
    assert again == first


def test_a_program_recalls_its_kernel_without_tracing(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAROM_CACHE", str(tmp_path))
    avals, key = [jax.ShapeDtypeStruct((5, 5), np.float32)], 64 * "a"
    first = Program("first", lambda x: [x @ x, x[0]], avals, [0], key)
    assert not first.recall()
    assert first.kernel is not None

    def refuse(x: Any) -> list[Any]:
        raise AssertionError("traced again")

    second = Program("second", refuse, avals, [0], key)
    assert second.recall()
    assert second.kernel == first.kernel
    assert second.results == first.results


@emulated
def test_a_batch_on_a_gpu_is_one_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lowered for CUDA with a driver that only answers: one call for the run of all lanes, and no loop of XLA's."""
    monkeypatch.setenv("CAROM_CACHE", "off")
    monkeypatch.setattr("carom.engine.native.warp.code.driver", warp.emulator)
    monkeypatch.setattr(
        "carom.engine.native.warp.code.load", lambda ptx, name, block: [driver.LoadedKernel(1, 16, 3, memory=1 << 36)]
    )
    model, state = carom.compile_scene(carom.load("bouncing_ball"))
    run = jax.jit(lambda lanes: carom.rollout(model, lanes, duration=0.1, frame_dt=0.1))
    with as_on_gpu():
        forget_kernels(run, carom.tile(state, 50 * THREADS))
        text = run.trace(carom.tile(state, 50 * THREADS)).lower(lowering_platforms=("cuda",)).as_text()
    calls = re.findall(r"stablehlo\.custom_call @(\w+)", text)
    assert len(calls) == 1
    assert calls[0].endswith("_gpu")
    assert "stablehlo.while" not in text
    assert "tensor<3x16x" in text, "a block on each multiprocessor, an arena for each of its warps"


def test_what_a_program_runs_as_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert paths.path_on("cpu") == "machine code"
    assert paths.path_on("tpu") == "XLA's program"
    assert paths.path_on("cuda") == (
        "a kernel" if driver.device_count() else "XLA's program (no driver of NVIDIA's was found)"
    )
    monkeypatch.setattr(paths, "device_count", lambda: 2)
    assert paths.path_on("cuda") == "a kernel"


@assembled
@of_both
@pytest.mark.slow
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100"])
def test_the_assembler_takes_it(architecture: str, runner: Runner) -> None:
    """No more registers than let 16 or 32 warps run on a multiprocessor, and few of them in memory."""
    x = jnp.ones((20, 20), jnp.float32)
    made = ptxas.assembled(text_of(mixed, x, x, 3, runner=runner), architecture)
    assert made.registers <= (64 if runner is Runner.WARP else 128)
    assert made.stores <= 64
