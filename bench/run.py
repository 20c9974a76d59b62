"""`python -m bench.run SUITE`: tables that compare every figure with its peer's.

Our own machine code runs on all cores with jax's default of one CPU device. If batches of XLA's programs are timed, two
devices are configured, as by a user who wants both cores; the single-device columns use one.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

ROUNDS = {
    "start": 1, "dynamics": 15, "derivatives": 9, "collision": 7, "contact": 5, "step": 3, "live": 1, "planar": 60,
    "envs": 5, "bits": 1, "export": 1, "scale": 2, "kernels": 1, "gpu": 1,
}  # fmt: skip
LANES = {"contact": 1024, "planar": 256}  # planar: all numbers of the longest chains stay in the cache
SINGLE = ("dynamics", "step", "live", "scale")  # suites with one CPU device


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.run", description=__doc__)
    suites = (
        "start: the first frame of a scene, the first time and the second, against XLA's program, MuJoCo and rapier3d; "
        "dynamics: forward dynamics against Pinocchio; derivatives: its Jacobians by q, v and tau, likewise; "
        "collision: pairs against FCL, broad phase, whole scenes; "
        "contact: impacts by law, what an impact adds to a step, a stack of boxes against MuJoCo and rapier3d; "
        "step: whole runs of an arm, a stack, a break of pool balls, a ragdoll and robots against XLA's program, "
        "MuJoCo and rapier3d; "
        "live: frames of games, their median and the slowest of a hundred; "
        "planar: chains of 4 to 256 joints against the general tree and Pinocchio; "
        "envs: control environments against gymnasium's; "
        "scale: how the cost grows with bodies, contacts and lanes, beside MuJoCo's; "
        "bits: whether code for other processors answers the same bits; "
        "export: worlds in C, their size, start and frames, and whether they print Python's hash; "
        "kernels: what a GPU's kernels need, without a GPU; gpu: on a GPU, whether its answers are the CPU's, and how "
        "fast they come"
    )
    parser.add_argument("suite", choices=list(ROUNDS), help=suites)
    parser.add_argument(
        "--lanes", type=int, help="states in the batch (default 4096; contact 1024; planar 256; step 1 and 1024)"
    )
    parser.add_argument(
        "--pairs", type=int, default=100_000, help="collision: placements of a pair, an even number (default 100000)"
    )
    parser.add_argument(
        "--impacts", type=int, default=65536, help="contact: random impacts, an even number (default 65536)"
    )
    only = (
        "dynamics, derivatives: scenes, collision: pairs, broad phase or scenes with this in the name; "
        "contact: laws, ball or stack; envs: tasks"
    )
    parser.add_argument("--only", default="", metavar="TEXT", help=only)
    parser.add_argument(
        "--scene",
        default="",
        metavar="TEXT",
        help="start, step, live, bits, export, scale, kernels, gpu: scenes with this in the name",
    )
    parser.add_argument("--frames", type=int, default=2000, help="live: frames to play (default 2000)")
    parser.add_argument(
        "--dtype", choices=["f32", "f64"], help="step: this precision alone; kernels, gpu, export (default f32)"
    )
    parser.add_argument(
        "--checked", type=int, default=0, help="export: frames of random play with sanitizers, fewer under valgrind"
    )
    parser.add_argument("--files", nargs="*", default=[], metavar="PATH", help="kernels, gpu: scenes of files, too")
    parser.add_argument(
        "--duration", type=float, help="step, bits, gpu: simulated seconds (default 1 to 3, by scene; 5; 0.5)"
    )
    parser.add_argument("--no-peers", action="store_true", help="start, step: Carom alone")
    parser.add_argument(
        "--no-xla", action="store_true", help="start, step: not XLA's programs, each a minute or more to compile"
    )
    parser.add_argument("--profile", action="store_true", help="step: where the time of a tick goes")
    parser.add_argument("--plot", metavar="PATH", help="planar, scale: draw time over size, .svg or .png")
    parser.add_argument("--cores", type=int, help="dynamics: run on so many cores, Pinocchio too (default all)")
    parser.add_argument("--sizes", type=int, nargs="*", help="gpu: lanes (default 1024 8192 65536)")
    folder = "gpu: kernels for sm_90 and the CPU's answers, made ahead without a GPU; and where they were put"
    parser.add_argument("--prepare", type=Path, metavar="FOLDER", help=folder)
    parser.add_argument("--prepared", type=Path, metavar="FOLDER", help=argparse.SUPPRESS)
    parser.add_argument("--alone", help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, help="rounds of A B A B (default 1 to 60, by suite)")
    parser.add_argument("--device", choices=["cpu", "gpu"], default="cpu", help="without peers")
    options = parser.parse_args(arguments)
    for name in ("pairs", "impacts"):
        count = getattr(options, name)
        if count < 2 or count % 2:
            parser.error(f"--{name} is {count}; it must be even, half of them for each CPU device")
    rounds = options.rounds or ROUNDS[options.suite]
    lanes = options.lanes or LANES.get(options.suite, 4096)

    if options.cores and hasattr(os, "sched_setaffinity"):  # before jax makes its threads
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.cores])

    import jax

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_enable_compilation_cache", False)  # compile times are cold
    os.environ.setdefault("CAROM_CACHE", "off")  # and so are those of our own code
    if options.suite in ("kernels", "gpu"):
        jax.config.update("jax_enable_x64", options.dtype == "f64")
    if options.device == "cpu" and (options.suite != "gpu" or options.prepare):
        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_num_cpu_devices", 1 if options.suite in SINGLE else 2)
    if options.suite == "start":
        from . import start

        return start.suite(options.scene, not options.no_xla, not options.no_peers)
    if options.suite == "step":
        return _step(options, rounds)
    if options.suite == "live":
        from . import live

        return live.suite([name for name in live.SCENES if options.scene in name], options.frames)
    if options.suite == "scale":
        from . import scale

        return scale.suite([name for name in scale.CURVES if options.scene in name], rounds, options.plot)
    if options.suite == "bits":
        from . import bits

        return bits.suite([name for name in bits.SCENES if options.scene in name], options.duration or 5.0)
    if options.suite == "export":
        from . import export

        scenes = [name for name in export.SCENES if options.scene in name]
        return export.suite(scenes, options.dtype or "f32", options.checked)
    if options.suite in ("kernels", "gpu"):
        return _gpu(options)
    if options.suite == "planar":
        from . import planar

        return planar.cpu(lanes, rounds, options.plot)
    if options.suite == "envs":
        from . import envs

        return envs.cpu(rounds, options.only)
    if options.device == "gpu":
        from . import accelerator

        if options.suite == "collision":
            return accelerator.collision(options.pairs, rounds, options.only)
        if options.suite == "contact":
            return accelerator.contact(lanes, options.impacts, rounds, options.only)
        if options.suite == "derivatives":
            parser.error("derivatives are timed on the CPU, beside Pinocchio's")
        return accelerator.dynamics(lanes, rounds, options.only)
    if options.suite == "derivatives":
        from . import derivatives

        return derivatives.cpu(lanes, rounds, options.only)
    if options.suite == "collision":
        from . import collision

        return collision.cpu(options.pairs, rounds, options.only)
    if options.suite == "contact":
        from . import contact

        return contact.cpu(lanes, options.impacts, rounds, options.only)
    from . import dynamics

    return dynamics.cpu(lanes, rounds, options.only)


def _gpu(options: argparse.Namespace) -> int:
    from . import gpu, kernels, prepared
    from .gpu_cases import SCENES

    scenes = [name for name in SCENES if options.scene in name] + options.files
    if options.suite == "kernels":
        return kernels.suite(scenes)
    seconds = options.duration or 0.5
    if options.prepare:
        return prepared.prepare(scenes, seconds, options.prepare)
    sizes = tuple(options.sizes or gpu.LANES)
    if options.alone:
        return gpu.alone(options.alone, sizes, seconds, options.prepared)
    more = ["--dtype", options.dtype] if options.dtype else []
    return gpu.suite(scenes, sizes, seconds, options.prepared, more)


def _step(options: argparse.Namespace, rounds: int) -> int:
    from . import stages, step

    scenes = [name for name in step.CASES if options.scene in name]
    if not scenes:
        raise SystemExit(f"no scene has {options.scene!r} in its name; there are {', '.join(step.CASES)}")
    part = stages if options.profile else step
    sizes: list[int] = list(part.LANES)
    if options.lanes:
        sizes = [1, options.lanes] if options.lanes > 1 else [options.lanes]
    dtypes = [options.dtype] if options.dtype else list(step.DTYPES)
    if options.profile:
        return stages.profile(scenes, sizes, dtypes, rounds)
    peers, xla = not options.no_peers, not options.no_xla
    return step.suite(scenes, sizes, dtypes, options.duration, rounds, peers, xla)


if __name__ == "__main__":
    sys.exit(main())
