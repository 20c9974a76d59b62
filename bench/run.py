"""`python -m bench.run dynamics`: one table, every figure beside its peer's from the same run.

Two CPU devices are configured, as a user would who wants both cores; the single-device columns use one.
"""

from __future__ import annotations

import argparse
import sys


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.run", description=__doc__)
    parser.add_argument("suite", choices=["dynamics"], help="dynamics: forward dynamics against Pinocchio")
    parser.add_argument("--lanes", type=int, default=4096, help="random states in the batch (default 4096)")
    parser.add_argument("--rounds", type=int, default=15, help="rounds of A B A B (default 15)")
    parser.add_argument("--device", choices=["cpu", "gpu"], default="cpu", help="gpu: evaluations a second only")
    options = parser.parse_args(arguments)

    import jax

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_enable_compilation_cache", False)  # compile times are cold
    if options.device == "cpu":
        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_num_cpu_devices", 2)
    if options.device == "gpu":
        from . import accelerator

        return accelerator.dynamics(options.lanes, options.rounds)
    from . import dynamics

    return dynamics.cpu(options.lanes, options.rounds)


if __name__ == "__main__":
    sys.exit(main())
