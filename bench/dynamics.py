"""Forward dynamics: a batch of random states against Pinocchio and XLA's program, single calls, one scene in a loop."""

from __future__ import annotations

import functools
import os
from time import perf_counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

import carom
from carom.engine.model import Model
from carom.engine.state import State
from carom.integrators.schemes import SCHEMES
from carom.scenes.library.registry import library_scene

from .cases import CASES, DTYPES, dynamics_case
from .timing import compile_seconds, in_turn

AGREEMENT = {"f32": 2e-3, "f64": 1e-9}  # worst lane of thousands, relative to its largest acceleration
STEPS, STEP = 1000, 1e-3  # [s]
STYLE: dict[str, Any] = {"box": SIMPLE, "padding": 0, "collapse_padding": True, "pad_edge": False}


def cpu(lanes: int, rounds: int, only: str) -> int:
    """Print the tables for the CPU, of scenes that `only` names; the exit status says whether the physics agreed.

    It uses a thread for each core that this process may run on."""
    from .peers import PinocchioBatch

    console, threads = Console(width=120), cores()  # as wide as the table, also in a file
    title = f"aba, {lanes} random states, {threads} thread{'s' * (threads > 1)}, load average {os.getloadavg()[0]:.1f}"
    table = Table(**STYLE, title=f"{title}: us an evaluation")
    columns = ("case", "dtype", "compile s", "Carom", "Pinocchio", "ratio", "XLA's compile s", "XLA", "ratio")
    for column in (*columns, "difference"):
        table.add_column(column, justify="right", no_wrap=True)
    agreed = True
    names = [name for name in CASES if only in name]
    for name in names:
        peer = PinocchioBatch(dynamics_case(name, jnp.float64, lanes))
        for label, dtype in DTYPES.items():
            case = dynamics_case(name, dtype, lanes)
            console.log(f"{name} {label}: {case.model.topology.nv} degrees of freedom, compiling")
            given = case.model, case.q, case.v, case.tau
            begin = perf_counter()
            difference = _difference(carom.aba(*given), peer)
            seconds = perf_counter() - begin
            xla, theirs = compile_seconds(carom.aba, *given)  # as in a user's own program
            agreed &= difference < AGREEMENT[label]
            console.log(f"{name} {label}: timing")
            timed = in_turn(
                {
                    "Carom": functools.partial(carom.aba, *given),
                    "Pinocchio": functools.partial(peer.run, threads),
                    "XLA": functools.partial(xla, *given),
                },
                rounds,
            )
            us = {k: t.median / lanes * 1e6 for k, t in timed.items()}
            row = [f"{seconds:.1f}", f"{us['Carom']:.3f}", f"{us['Pinocchio']:.3f}"]
            row += [f"{us['Pinocchio'] / us['Carom']:.2f}", f"{theirs:.1f}", f"{us['XLA']:.3f}"]
            row += [f"{us['XLA'] / us['Carom']:.2f}", f"{difference:.0e}"]
            table.add_row(f"{name} ({case.model.topology.nv} dof)", label, *row)
    console.print(table)
    _one_call(console, names, rounds)
    _one_scene(console, names, rounds)
    if not agreed:
        console.print("[red]the accelerations differ from Pinocchio's: the figures above are worth nothing")
    return 0 if agreed else 1


def cores() -> int:
    """Return the number of cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _difference(ours: Any, peer: Any) -> float:
    """Return the worst lane's largest difference, relative to that lane's largest acceleration."""
    peer.run(1)
    theirs = peer.accelerations()
    return float((np.abs(np.asarray(ours) - theirs).max(1) / np.abs(theirs).max(1)).max())


def _one_call(console: Console, names: list[str], rounds: int) -> None:
    """Time calls from Python, with one state each."""
    calls: dict[str, Any] = {}
    for label, dtype in DTYPES.items():
        for name in names:
            case = dynamics_case(name, dtype, 2)
            calls[f"carom.aba of {name}, {label}"] = functools.partial(
                carom.aba, case.model, case.q[0], case.v[0], case.tau[0]
            )
        model, state = carom.compile_scene(library_scene("bouncing_ball"), dtype=dtype)
        calls[f"carom.step of a ball, {label}"] = functools.partial(carom.step, model, state, dt=STEP)
    console.log("single calls: compiling and timing")
    timed = in_turn(calls, rounds)
    console.print("one call from Python: us")
    for name, t in timed.items():
        console.print(f"  {name}: {t.median * 1e6:.1f}")


def _one_scene(console: Console, names: list[str], rounds: int) -> None:
    """Time a user's own jitted loop around a scheme, and `carom.rollout`, which also records frames."""
    table = Table(**STYLE, title=f"one scene, {STEPS} steps: us a step")
    for column in ("case", "scheme", "dtype", "compile s", "jitted loop", "carom.rollout"):
        table.add_column(column, justify="right", no_wrap=True)
    for name in names:
        for scheme in ("semi_implicit", "exact"):
            for label, dtype in DTYPES.items():
                model, state = carom.compile_scene(library_scene(name), dtype=dtype)
                loop, seconds = compile_seconds(functools.partial(_loop, scheme), model, state)
                calls = {
                    "loop": functools.partial(loop, model, state),
                    "rollout": functools.partial(_rollout, scheme, model, state),
                }
                us = {k: t.median / STEPS * 1e6 for k, t in in_turn(calls, max(3, rounds // 3)).items()}
                table.add_row(name, scheme, label, f"{seconds:.1f}", f"{us['loop']:.1f}", f"{us['rollout']:.1f}")
    console.print(table)


def _rollout(scheme: str, model: Model, state: State) -> State:
    run = carom.rollout(model, state, duration=STEPS * STEP, frame_dt=STEPS * STEP / 10, max_dt=STEP, scheme=scheme)
    return run.state


def _loop(scheme: str, model: Model, state: State) -> State:
    h = jnp.asarray(STEP, state.q.dtype)
    return jax.lax.fori_loop(0, STEPS, lambda _, s: SCHEMES[scheme](model, s, h), state)
