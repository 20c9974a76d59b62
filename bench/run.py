"""`python -m bench.run dynamics` or `collision`: tables, every figure beside its peer's from the same run.

Two CPU devices are configured, as a user would who wants both cores; the single-device columns use one.
"""

from __future__ import annotations

import argparse
import sys


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.run", description=__doc__)
    suites = "dynamics: forward dynamics against Pinocchio; collision: pairs against FCL, broad phase, whole scenes"
    parser.add_argument("suite", choices=["dynamics", "collision"], help=suites)
    parser.add_argument("--lanes", type=int, default=4096, help="dynamics: random states in the batch (default 4096)")
    parser.add_argument(
        "--pairs", type=int, default=100_000, help="collision: placements of a pair, an even number (default 100000)"
    )
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="collision: pairs, broad phase or scenes with this in the name"
    )
    parser.add_argument("--rounds", type=int, help="rounds of A B A B (default 15, collision 7)")
    parser.add_argument("--device", choices=["cpu", "gpu"], default="cpu", help="gpu: without peers")
    options = parser.parse_args(arguments)
    if options.pairs < 2 or options.pairs % 2:
        parser.error(f"--pairs is {options.pairs}; it must be even, half of them for each CPU device")
    rounds = options.rounds or {"dynamics": 15, "collision": 7}[options.suite]

    import jax

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_enable_compilation_cache", False)  # compile times are cold
    if options.device == "cpu":
        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_num_cpu_devices", 2)
    if options.device == "gpu":
        from . import accelerator

        if options.suite == "collision":
            return accelerator.collision(options.pairs, rounds, options.only)
        return accelerator.dynamics(options.lanes, rounds)
    if options.suite == "collision":
        from . import collision

        return collision.cpu(options.pairs, rounds, options.only)
    from . import dynamics

    return dynamics.cpu(options.lanes, rounds)


if __name__ == "__main__":
    sys.exit(main())
