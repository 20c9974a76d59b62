"""Forward dynamics on the default accelerator. Imports nothing that a machine with a GPU may lack."""

from __future__ import annotations

import functools

import jax

import carom

from .cases import CASES, DTYPES, dynamics_case
from .timing import compile_seconds, in_turn


def dynamics(lanes: int, rounds: int) -> int:
    """Print evaluations a second of `carom.aba` for each case and precision."""
    print(f"{jax.devices()[0].device_kind}, jax {jax.__version__}, {lanes} lanes", flush=True)
    for name in CASES:
        for label, dtype in DTYPES.items():
            case = dynamics_case(name, dtype, lanes)
            arguments = (case.model, case.q, case.v, case.tau)
            run, seconds = compile_seconds(carom.aba, *arguments)
            timed = in_turn({"aba": functools.partial(run, *arguments)}, rounds)
            rate = lanes / timed["aba"].median / 1e6
            print(f"{name:9} {label}: {rate:9.2f} M evaluations/s, compile {seconds:.1f} s", flush=True)
    return 0
