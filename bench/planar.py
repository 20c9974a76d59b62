"""Planar chains: the cost of the recursion for 4 to 256 joints, compared with the general tree and Pinocchio."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table

import carom
from carom.engine.planar.accelerations import ChainMotion, chain_accelerations
from carom.engine.planar.angles import chain_angular, chain_state
from carom.engine.planar.model import Chain, ChainState

from .cases import Case
from .dynamics import STYLE
from .peers import PinocchioBatch
from .timing import compile_seconds, in_turn

SIZES = (4, 8, 16, 32, 64, 128, 256)
TREES = 16  # joints of the longest chain to compile as a tree: a program without loops
SAMPLE = 64  # lanes that Pinocchio computes: its time per lane does not depend on their number
AGREEMENT = 1e-8  # worst lane, relative to its largest angular acceleration
COLUMNS = {
    "one I": "part I, one chain",
    "one II": "part II, one chain",
    "many I": "part I, {} lanes",
    "many II": "part II, {} lanes",
    "aba": "carom.aba, {} lanes",
    "pin": "Pinocchio's aba",
}


def cpu(lanes: int, rounds: int, path: str | None) -> int:
    """Print the table, f64; the exit status says whether the physics agreed. path: a plot to write, .svg or .png."""
    console = Console(width=120)
    table = Table(**STYLE, title="chains hung by joint 0, f64, one device: us a chain, the best round")
    for column in ("joints", "compile s", *COLUMNS, "pin / many I", "difference"):
        table.add_column(column, justify="right", no_wrap=True)
    found: dict[str, dict[int, float]] = {name: {} for name in COLUMNS}
    agreed = True
    for n in SIZES:
        us, compiling, difference = one_size(n, lanes, rounds)
        agreed &= difference < AGREEMENT
        for name, x in us.items():
            found[name][n] = x
        row = [f"{us[name]:.2f}" if name in us else "" for name in COLUMNS]
        table.add_row(f"{n}", f"{compiling:.1f}", *row, f"{us['pin'] / us['many I']:.1f}", f"{difference:.0e}")
        console.log(f"{n} joints done")
    console.print(table)
    for name in ("one I", "one II", "many I", "many II"):
        start, slope, worst = line(found[name])
        console.print(
            f"{COLUMNS[name].format(lanes)}: {start:.2f} us + {slope:.4f} us a joint, within {worst:.0%} of every size"
        )
    if path:
        plot(path, found, lanes)
    if not agreed:
        console.print("[red]the accelerations differ from Pinocchio's: the figures above are worth nothing")
    return 0 if agreed else 1


def one_size(n: int, lanes: int, rounds: int) -> tuple[dict[str, float], float, float]:
    """Return us per chain by column, seconds to compile part I for all lanes, and the difference from Pinocchio.

    Times are the best of many short rounds, since other work on the machine only adds time.
    """
    chain, many, case = chains(n, lanes)
    one = chain_state(chain, case.q[0], case.v[0])
    hanging = chain.replace(active=jnp.arange(n) % 3 == 1)  # every third angle is given
    calls: dict[str, Callable[[], Any]] = {}
    seconds = 0.0
    programs: dict[str, tuple[Callable, Any]] = {
        "one I": (functools.partial(evaluate, chain), one),
        "one II": (functools.partial(evaluate, hanging), one),
        "many II": (functools.partial(evaluate, hanging), many),
        "many I": (functools.partial(evaluate, chain), many),
    }
    for name, (program, state) in programs.items():
        compiled, seconds = compile_seconds(program, state)
        calls[name] = functools.partial(compiled, state)
    a = calls["many I"]()
    if n <= TREES:
        aba, _ = compile_seconds(carom.aba, case.model, case.q, case.v, case.tau)
        calls["aba"] = functools.partial(aba, case.model, case.q, case.v, case.tau)
    some = Case(case.name, case.model, *(x[:SAMPLE] for x in (case.q, case.v, case.tau)))
    peer = PinocchioBatch(some)
    calls["pin"] = functools.partial(peer.run, 1)
    timed = in_turn(calls, rounds, seconds=0.005)
    each = {"one I": 1, "one II": 1, "pin": len(some.q)}
    us = {name: t.best / each.get(name, lanes) * 1e6 for name, t in timed.items()}
    few = slice(0, 4)
    first = ChainState(many.x[few], many.v[few], many.t[few], many.stuck[few], many.shut[few])
    mine, true = np.asarray(chain_angular(chain, first, a[few])), peer.a.T[few]  # a tree of revolutes has the same q
    return us, seconds, float((np.abs(mine - true).max(1) / np.abs(true).max(1)).max())


def evaluate(chain: Chain, state: ChainState) -> Any:
    motion: ChainMotion = chain_accelerations(chain, state)
    return motion.a


def chains(n: int, lanes: int) -> tuple[Chain, ChainState, Case]:
    """Return a chain hung by joint 0 at random states, and the same as a tree of revolute joints."""
    rng = np.random.default_rng(n)
    mass, length = rng.uniform(0.5, 2, n), rng.uniform(0.5, 1.5, n - 1)
    nothing, never, wide = jnp.zeros(n), jnp.zeros(n, bool), jnp.full(n, jnp.inf)
    chain = Chain(
        jnp.asarray(mass), jnp.asarray(length), jnp.array([0.0, -9.81]), jnp.array(n), jnp.arange(n) == 0,
        jnp.zeros((n, 2)), never, -wide, wide, nothing, nothing, jnp.zeros((0, 2)), jnp.zeros((0, 2)),
    )  # fmt: skip
    b = carom.SceneBuilder(gravity=(0, -9.81, 0))
    for i in range(n - 1):
        b.add_link(
            f"{i}",
            parent=f"{i - 1}" if i else "world",
            joint=carom.Revolute(axis=(0, 0, 1)),
            position=(length[i - 1], 0, 0) if i else (0, 0, 0),
            mass=mass[i + 1],
            com=(length[i], 0, 0),
            inertia=np.zeros((3, 3)),
        )
    tree, _ = carom.compile_scene(b.build())
    q, v = (jnp.asarray(rng.normal(size=(lanes, n - 1))) for _ in range(2))
    return chain, chain_state(chain, q, v), Case(f"{n} joints", tree, q, v, jnp.zeros_like(q))


def line(us: dict[int, float]) -> tuple[float, float, float]:
    """Fit us = start + slope n with the least relative errors, and return both and the worst error."""
    n, y = np.array(list(us)), np.array(list(us.values()))
    start, slope = np.linalg.lstsq(np.stack([1 / y, n / y], 1), np.ones(len(n)), rcond=None)[0]
    return start, slope, float(np.abs((start + slope * n) / y - 1).max())


def plot(path: str, found: dict[str, dict[int, float]], lanes: int) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.subplots()
    for name, us in found.items():
        axes.loglog(list(us), list(us.values()), marker="o", markersize=3, label=COLUMNS[name].format(lanes))
    guide = [found["many I"][SIZES[-1]] * n / SIZES[-1] * 0.6 for n in SIZES]
    axes.loglog(SIZES, guide, color="0.6", linestyle=":", label="linear")
    axes.set(xlabel="joints", ylabel="us a chain", xticks=SIZES, xticklabels=[str(n) for n in SIZES])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    figure.legend(loc="outside right center", fontsize=8, frameon=False)
    figure.savefig(path)
