"""Collision: one call for a batch of pairs against FCL's loop, the broad phase by size, and whole scenes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

import carom
from carom.engine.results import OK

from .cases import DTYPES, SCENES, SIDES, SIZE, PairCase, broad_case, lattice_scene, pair_case, parts
from .peers import FclPairs
from .timing import compile_seconds, in_turn

SAMPLE = 2000  # placements that FCL computes
GOALS = {"sphere-sphere": 20, "capsule-capsule": 10, "box-box": 3}  # times as fast as FCL, f32, one device; hulls: 1
# FCL's gaps usually have errors of 1e-6, and of 1.5e-4 at worst if shapes are turned at random; those of f32 are 1e-6.
# A wrong kernel has larger errors, even if only in one placement of two hundred
MEDIAN, LARGE, SHARE = 1e-5 * SIZE, 1e-3 * SIZE, 1e-3
WAYS = ("matrix", "cells")
STYLE: dict[str, Any] = {"box": SIMPLE, "padding": 0, "collapse_padding": True, "pad_edge": False}


def cpu(pairs: int, rounds: int, only: str) -> int:
    """Print the tables for the CPU, of the parts that `only` names; the exit status says whether the physics agreed."""
    console = Console(width=120)  # as wide as the table, also in a file
    names, broad, scenes = parts(only)
    agreed = _narrow(console, names, pairs, rounds) if names else True
    agreed &= _broad(console, rounds) if broad else True
    agreed &= _scenes(console, rounds) if scenes else True
    if not agreed:
        console.print("[red]the detector is wrong, see above: the figures are worth nothing")
    return 0 if agreed else 1


# -- narrow phase ----------------------------------------------------------------------------------------------------


def _narrow(console: Console, names: list[str], pairs: int, rounds: int) -> bool:
    sample = min(SAMPLE, pairs)
    title = f"carom.detect, {pairs} placements of a pair in one call, and FCL's loop over {sample} of them: us a pair"
    table = Table(**STYLE, title=title)
    for column in ("pair", "overlap", "dtype", "compile s", "1 device", "2 devices", "FCL", "Python's", "ratio"):
        table.add_column(column, justify="right", no_wrap=True)
    for column in ("without Python", "goal", "gaps differ: median", "max", "wrong"):
        table.add_column(column, justify="right")
    agreed = True
    for name in names:
        peer = FclPairs(pair_case(name, jnp.float64, pairs), sample)
        calls = peer.calls() / sample
        for label, dtype in DTYPES.items():
            case = pair_case(name, dtype, pairs)
            console.log(f"{name} {label}: compiling")
            one, seconds = compile_seconds(carom.detect, case.model, case.q)
            two, spread = _over_devices(case)
            check = _against(one(case.model, case.q), peer)
            agreed &= check.fine
            console.log(f"{name} {label}: timing")
            timed = in_turn(
                {
                    "one": functools.partial(one, case.model, case.q),
                    "two": functools.partial(two, *spread),
                    "fcl": peer.run,
                    "python": peer.cheapest,
                },
                rounds,
            )
            us = {k: t.median * 1e6 / (pairs if k in ("one", "two") else sample) for k, t in timed.items()}
            python = us["python"] * calls
            table.add_row(
                name, f"{check.overlap:.0%}", label, f"{seconds:.1f}",
                f"{us['one']:.3f}", f"{us['two']:.3f}", f"{us['fcl']:.2f}", f"{python:.2f}",
                f"{us['fcl'] / us['one']:.1f}", f"{(us['fcl'] - python) / us['one']:.1f}", f">= {GOALS.get(name, 1)}",
                f"{check.median:.0e}", f"{check.largest:.0e}", f"{check.wrong}",
            )  # fmt: skip
    console.print(table)
    console.print(
        "FCL is asked through python-fcl as one has to ask it for the same: the distance with the nearest points, and\n"
        "where shapes overlap (column overlap) also for contacts. Its objects have their poses beforehand. Python's\n"
        "part is the time of as many of its cheapest calls (do two far balls meet?). Ratios: FCL / one device.\n"
        f"Gaps in m, of shapes of {SIZE:g} m that are apart; wrong: off by more than {LARGE:g} m, or of the other sign."
    )
    return agreed


def _over_devices(case: PairCase) -> tuple[Callable, tuple[Any, ...]]:
    """Return detect with its placements spread over all CPU devices, and the spread arguments."""
    mesh = jax.make_mesh((len(jax.devices()),), ("lane",))
    lane, every = PartitionSpec("lane"), PartitionSpec()
    run = jax.jit(jax.shard_map(carom.detect, mesh=mesh, in_specs=(every, lane), out_specs=lane))
    arguments = (
        jax.device_put(case.model, NamedSharding(mesh, every)),
        jax.device_put(case.q, NamedSharding(mesh, lane)),
    )
    return run.lower(*arguments).compile(), arguments


@dataclass(frozen=True)
class Check:
    """Comparison of gaps with FCL's.

    overlap: part of all placements.
    median, largest: difference of the gaps [m] if FCL finds no overlap.
    wrong: number of large differences in the sample.
    fine: whether the figures are valid.
    """

    overlap: float
    median: float
    largest: float
    wrong: int
    fine: bool


def _against(near: carom.Proximities, peer: FclPairs) -> Check:
    """Compare Carom's first rows with the gaps of FCL's last run; in overlap only their signs, since FCL has no gap."""
    ours, theirs = np.asarray(near.gap, np.float64)[:, 0], np.array(peer.gaps)
    sample = ours[: len(theirs)]
    apart = theirs > 0
    differ = np.abs(sample - theirs)[apart]
    wrong = int(np.sum(~(differ <= LARGE)) + np.sum(~(sample[~apart] <= LARGE)))
    median, largest = (float(f(differ)) if len(differ) else 0.0 for f in (np.median, np.max))
    complete = bool(np.asarray(near.active)[:, 0].all()) and bool((np.asarray(near.code) == OK).all())
    fine = complete and median <= MEDIAN and wrong <= SHARE * len(theirs)
    return Check(float(np.mean(ours < 0)), median, largest, wrong, fine)


# -- broad phase and scenes ------------------------------------------------------------------------------------------


def _broad(console: Console, rounds: int) -> bool:
    """Time both methods of the broad phase; they must find the same candidates."""
    table = Table(**STYLE, title="broad phase of balls in a lattice, one scene, f32")
    for column in ("bodies", "candidates", "way", "compile s", "us a call", "ns a body"):
        table.add_column(column, justify="right", no_wrap=True)
    agreed = True
    for side in SIDES:
        n, calls, rows = side**3, {}, []
        compiled = {}
        for way in WAYS:
            near, *arguments = broad_case(side, way, jnp.float32)
            run, compiled[way] = compile_seconds(near, *arguments)
            calls[way] = functools.partial(run, *arguments)
            rows.append(calls[way]())
        agreed &= np.array_equal(rows[0].row, rows[1].row)
        for way, timed in in_turn(calls, rounds).items():
            us = timed.median * 1e6
            table.add_row(
                f"{n}", f"{int(rows[0].needed)}", way, f"{compiled[way]:.1f}", f"{us:.0f}", f"{us * 1e3 / n:.0f}"
            )
    console.print(table)
    return agreed


def _scenes(console: Console, rounds: int) -> bool:
    """Time carom.detect for one whole scene."""
    table = Table(**STYLE, title="carom.detect, one scene of balls and boxes in a lattice: ms a call")
    for column in ("bodies", "pairs", "rows", "active", "dtype", "compile s", "ms a call", "us a body"):
        table.add_column(column, justify="right", no_wrap=True)
    agreed = True
    for side in SCENES:
        for label, dtype in DTYPES.items():
            console.log(f"scene of {side**3} bodies, {label}: compiling")
            model, q = lattice_scene(side, dtype)
            run, seconds = compile_seconds(carom.detect, model, q)
            near = run(model, q)
            agreed &= int(near.code) == OK
            ms = in_turn({"detect": functools.partial(run, model, q)}, rounds)["detect"].median * 1e3
            rows = (f"{len(model.topology.pairs)}", f"{near.gap.size}", f"{int(near.active.sum())}")
            table.add_row(f"{side**3}", *rows, label, f"{seconds:.1f}", f"{ms:.2f}", f"{ms * 1e3 / side**3:.2f}")
    console.print(table)
    return agreed
