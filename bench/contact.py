"""Contact: impacts by law, the cost of an impact in a step, and a stack of boxes against MuJoCo's and rapier3d's."""

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

from .cases import DTYPES
from .contact_cases import (
    BOXES,
    DRIFT,
    SIDEWAYS,
    STEP,
    ImpactCase,
    ball_case,
    ball_is_right,
    by_law,
    check_impacts,
    drift,
    impact_case,
    one_step,
    parts,
    stack_case,
    stand,
)
from .timing import compile_seconds, in_turn

FEW = 16  # impacts that SciPy integrates too, for laws that integrate friction
INTEGRATED, AGREEMENT = ("newton", "poisson", "stronge"), {"f32": 1e-3, "f64": 1e-8}  # in units of |u| and |p|
STEPS, SOME, STANDS = 24, 8, 240  # steps timed in one scene; checked in a batch; checked in one scene
GOALS = {"scene": 1.5, "lane": 0.5}  # times the peers' step
PEERS_STAND = 0.05  # [m] the peers' stacks may sag: their contacts are springs
STYLE: dict[str, Any] = {"box": SIMPLE, "padding": 0, "collapse_padding": True, "pad_edge": False}


def cpu(lanes: int, impacts: int, rounds: int, only: str) -> int:
    """Print the tables for the CPU, of the parts that `only` names; the exit status tells if the physics is right."""
    console = Console(width=120)  # as wide as the table, also in a file
    laws, ball, stack = parts(only)
    right = _laws(console, laws, impacts, rounds) if laws else True
    right &= _ball(console, lanes, rounds) if ball else True
    right &= _stack(console, lanes, rounds) if stack else True
    if not right:
        console.print("[red]the impulses are wrong, see above: the figures are worth nothing")
    return 0 if right else 1


def _table(title: str, columns: tuple[str, ...]) -> Table:
    table = Table(**STYLE, title=title)
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def _verdict(fine: bool) -> str:
    return "yes" if fine else "[red]no"


# -- impacts ---------------------------------------------------------------------------------------------------------


def _laws(console: Console, laws: list[str], count: int, rounds: int) -> bool:
    title = f"carom.resolve_impact, {count} random impacts in one call: millions a second"
    columns = ("law", "dtype", "compile s", "1 device", "2 devices", "gain energy", "most", "off the ODE", "right")
    table, right = _table(title, columns), True
    for law in laws:
        for label, dtype in DTYPES.items():
            console.log(f"{law} {label}: compiling")
            case = impact_case(dtype, count)
            one, seconds = compile_seconds(by_law(law), *case)
            two, spread = _over_devices(by_law(law), case)
            out = one(*case)
            check, off = check_impacts(law, label, case, out), _off(law, case, out)
            fine = check.fine and not off > AGREEMENT[label]
            right &= fine
            calls = {"one": functools.partial(one, *case), "two": functools.partial(two, *spread)}
            rate = {k: count / t.median / 1e6 for k, t in in_turn(calls, rounds).items()}
            table.add_row(
                law, label, f"{seconds:.1f}", f"{rate['one']:.2f}", f"{rate['two']:.2f}", f"{check.gain:.1%}",
                f"{check.largest:.0e}", "" if off != off else f"{off:.0e}", _verdict(fine),
            )  # fmt: skip
    console.print(table)
    console.print(
        "gain energy: part of the impacts; most: energy gained by the worst, of |p| |u|, negative where all lose.\n"
        f"off the ODE: of {FEW} impulses integrated by SciPy, the worst. right: every u = u0 + K p >= 0 along the\n"
        "normal, p in its cone, and Stronge's law gains no energy."
    )
    return right


def _over_devices(run: Callable, arguments: ImpactCase) -> tuple[Callable, tuple[Any, ...]]:
    """Return a function with its lanes spread over all CPU devices, and the spread arguments."""
    mesh = jax.make_mesh((len(jax.devices()),), ("lane",))
    lane = PartitionSpec("lane")
    spread = tuple(jax.device_put(x, NamedSharding(mesh, lane)) for x in arguments)
    everywhere = jax.jit(jax.shard_map(run, mesh=mesh, in_specs=lane, out_specs=lane, check_vma=False))
    return everywhere.lower(*spread).compile(), spread


def _off(law: str, case: ImpactCase, out: Any) -> float:
    """Return the largest difference from SciPy's solution of a few impacts, relative to |p|; nan for algebraic laws."""
    from carom.tests.oracles.impact_ode import impact_by_ode

    if law not in INTEGRATED:
        return float("nan")
    worst = 0.0
    for k in range(min(FEW, len(case.u))):
        K, u, mu, e = (np.asarray(x[k], np.float64) for x in case)
        p = impact_by_ode(K, u, float(mu), float(e), law)
        worst = max(worst, float(np.linalg.norm(np.asarray(out.impulse[k], np.float64) - p) / np.linalg.norm(p)))
    return worst


# -- cost of an impact in a step -------------------------------------------------------------------------------------


def _ball(console: Console, lanes: int, rounds: int) -> bool:
    """Time the same compiled step for a ball in the air, at rest, and striking the ground."""
    title = f"a step of a ball over the ground, one scene and {lanes} lanes: us a step and lane"
    columns = (
        "lanes",
        "dtype",
        "compile s",
        "in the air",
        "at rest",
        "striking",
        "rest adds",
        "impact adds",
        "right",
    )
    table, right = _table(title, columns), True
    for label, dtype in DTYPES.items():
        for number in (None, lanes):
            console.log(f"ball {label}, {number or 1} lanes: compiling")
            model, states = ball_case(dtype, number)
            run, seconds = compile_seconds(one_step, model, states["rest"])
            fine = all(ball_is_right(label, name, state, run(model, state)) for name, state in states.items())
            right &= fine
            calls = {name: functools.partial(run, model, state) for name, state in states.items()}
            us = {name: t.median * 1e6 / (number or 1) for name, t in in_turn(calls, rounds).items()}
            adds = (us["rest"] - us["air"], us["struck"] - us["air"])
            numbers = (f"{x:.2f}" for x in (*us.values(), *adds))
            table.add_row(f"{number or 1}", label, f"{seconds:.1f}", *numbers, _verdict(fine))
    console.print(table)
    console.print("A call of single_step a step. All lanes of a batch are in the air, or rest, or strike.")
    return right


# -- the stack -------------------------------------------------------------------------------------------------------


def _stack(console: Console, lanes: int, rounds: int) -> bool:
    from .peers import MujocoWorld
    from .rapier_world import RapierWorld

    model, state = stack_case(jnp.float64)
    peers = {"MuJoCo": MujocoWorld(model, STEP), "rapier3d": RapierWorld(model, STEP)}
    q, v = np.asarray(state.q), np.asarray(state.v)
    right, sunk = True, {}
    for name, peer in peers.items():
        peer.start(q, v)
        peer.run(STANDS)
        sunk[name] = float(np.abs(peer.state()[0] - q).max())
        right &= sunk[name] < PEERS_STAND
    title = f"a stack of {BOXES} boxes, h = 1/240 s: us a step and lane"
    columns = ("lanes", "dtype", "compile s", "Carom", *peers, "Carom / MuJoCo", "/ rapier3d", "goal")
    table = _table(title, (*columns, "drift m", "right"))
    for label, dtype in DTYPES.items():
        for number in (None, lanes):
            console.log(f"stack {label}, {number or 1} lanes: compiling")
            model, state = stack_case(dtype, number)
            run, seconds = compile_seconds(stand, model, state, jnp.int32(0))
            after, code = run(model, state, jnp.int32(SOME if number else STANDS))
            drifted = drift(state, after)
            fine = drifted < DRIFT and not np.asarray(code).any()
            right &= fine
            steps = 1 if number else STEPS
            calls = {"Carom": functools.partial(run, model, state, jnp.int32(steps))}
            calls |= {name: functools.partial(peer.advance, STEPS) for name, peer in peers.items()}
            counts = {name: STEPS if name in peers else steps * (number or 1) for name in calls}
            us = {name: t.median * 1e6 / counts[name] for name, t in in_turn(calls, rounds).items()}
            table.add_row(
                f"{number or 1}", label, f"{seconds:.1f}", f"{us['Carom']:.1f}",
                *(f"{us[name]:.1f}" for name in peers), *(f"{us['Carom'] / us[name]:.2f}" for name in peers),
                f"<= {GOALS['lane' if number else 'scene']}", f"{drifted:.0e}", _verdict(fine),
            )  # fmt: skip
    console.print(table)
    sags = ", ".join(f"{name} {sag:.1e} m" for name, sag in sunk.items())
    console.print(
        f"Carom: a jitted loop over steps. Peers: one thread, awake, timed after {STANDS} steps; by then their boxes\n"
        f"have moved: {sags}; they stand if less than {PEERS_STAND:g} m.\n"
        f"drift: after {STANDS} steps of one scene, {SOME} of a batch, its boxes up to {SIDEWAYS:g} m off the middle.\n"
        f"right: it is less than {DRIFT:g} m, and no lane has a result code."
    )
    return right
