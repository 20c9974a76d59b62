"""Forward dynamics: a batch of random states against Pinocchio, and one scene in a loop."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

import carom
from carom.engine.model import Model
from carom.engine.state import State
from carom.integrators.schemes import SCHEMES
from carom.scenes.library.registry import library_scene

from .cases import CASES, DTYPES, Case, dynamics_case
from .timing import compile_seconds, in_turn

AGREEMENT = {"f32": 2e-3, "f64": 1e-9}  # worst lane of thousands, relative to its largest acceleration
STEPS, STEP = 1000, 1e-3  # [s]
STYLE: dict[str, Any] = {"box": SIMPLE, "padding": 0, "collapse_padding": True, "pad_edge": False}


def cpu(lanes: int, rounds: int, only: str) -> int:
    """Print the tables for the CPU, of scenes that `only` names; the exit status says whether the physics agreed."""
    from .peers import PinocchioBatch

    console = Console(width=120)  # as wide as the table, also into a file
    table = Table(
        box=SIMPLE,
        padding=0,
        collapse_padding=True,
        pad_edge=False,
        title=f"aba, {lanes} random states: us an evaluation (ratio: Pinocchio / Carom)",
    )
    columns = ("case", "dtype", "compile s", "one device", "pin 1 thread", "ratio", "two devices", "pin 2 threads")
    for column in (*columns, "ratio", "difference"):
        table.add_column(column, justify="right", no_wrap=True)
    agreed = True
    names = [name for name in CASES if only in name]
    for name in names:
        peer = None
        for label, dtype in DTYPES.items():
            case = dynamics_case(name, dtype, lanes)
            peer = PinocchioBatch(dynamics_case(name, jnp.float64, lanes)) if peer is None else peer
            console.log(f"{name} {label}: {case.model.topology.nv} degrees of freedom, compiling")
            one, seconds = compile_seconds(carom.aba, case.model, case.q, case.v, case.tau)
            two, sharded = _over_devices(case)
            difference = _difference(one(case.model, case.q, case.v, case.tau), peer)
            agreed &= difference < AGREEMENT[label]
            console.log(f"{name} {label}: timing")
            timed = in_turn(
                {
                    "one": lambda case=case, one=one: one(case.model, case.q, case.v, case.tau),
                    "pin1": functools.partial(peer.run, 1),
                    "two": lambda two=two, sharded=sharded: two(*sharded),
                    "pin2": functools.partial(peer.run, 2),
                },
                rounds,
            )
            us = {k: t.median / lanes * 1e6 for k, t in timed.items()}
            row = [f"{seconds:.1f}", f"{us['one']:.3f}", f"{us['pin1']:.3f}", f"{us['pin1'] / us['one']:.2f}"]
            row += [f"{us['two']:.3f}", f"{us['pin2']:.3f}", f"{us['pin2'] / us['two']:.2f}", f"{difference:.0e}"]
            table.add_row(f"{name} ({case.model.topology.nv} dof)", label, *row)
    console.print(table)
    _one_scene(console, names, rounds)
    if not agreed:
        console.print("[red]the accelerations differ from Pinocchio's: the figures above are worth nothing")
    return 0 if agreed else 1


def _over_devices(case: Case) -> tuple[Callable, tuple[Any, ...]]:
    """aba with its lanes spread over all CPU devices, and the spread arguments."""
    mesh = jax.make_mesh((len(jax.devices()),), ("lane",))
    lane, every = PartitionSpec("lane"), PartitionSpec()
    run = jax.jit(jax.shard_map(carom.aba, mesh=mesh, in_specs=(every, lane, lane, lane), out_specs=lane))
    spread = [jax.device_put(x, NamedSharding(mesh, lane)) for x in (case.q, case.v, case.tau)]
    arguments = (jax.device_put(case.model, NamedSharding(mesh, every)), *spread)
    return run.lower(*arguments).compile(), arguments


def _difference(ours: Any, peer: Any) -> float:
    """Worst lane's largest difference, relative to that lane's largest acceleration."""
    peer.run(1)
    theirs = peer.accelerations()
    return float((np.abs(np.asarray(ours) - theirs).max(1) / np.abs(theirs).max(1)).max())


def _one_scene(console: Console, names: list[str], rounds: int) -> None:
    """A user's own jitted loop around a scheme, and `carom.rollout`, which also records frames."""
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
