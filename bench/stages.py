"""Where the time of a tick goes: its stages, as integrators/step.py has them, compiled apart and timed in mid-run."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from carom.collision.detect import detect
from carom.contact.determine import determine
from carom.contact.respond import respond
from carom.contact.rows import rows_of
from carom.engine.model import Model
from carom.engine.state import State
from carom.integrators.clock import later
from carom.integrators.lanes import Lane, select
from carom.integrators.prepare import prepared, reach
from carom.integrators.proposal import proposal
from carom.integrators.recording import Record
from carom.integrators.rollout import has_limits
from carom.integrators.rules import Rules
from carom.integrators.step import first_lane, tick
from carom.integrators.time_control import decide, step_to_try

from .cases import DTYPES
from .step_cases import CASES, FRAME, Case
from .timing import compile_seconds, in_turn

LANES = {"cpu": (1, 64), "gpu": (1024, 8192)}
TICKS = 8  # that are timed, one after another in mid-run
PATIENCE = 4000  # ticks to get there
FRAMES, EVENTS = 60, 64  # of the record that is written


def _untold(*_: Any) -> None:
    """What the motors are told."""


def stages(rules: Rules) -> dict[str, Callable[[dict[str, Any]], Any]]:
    """Each from all that came before, by name; "model", "lane", "intervals", "max_dt" and "record" come first."""

    def see(x: Any) -> Any:
        margin = reach(x["model"])
        margin = jnp.inf if margin is None else margin
        return detect(x["model"], x["propose"].state.q, margin=margin, max_pairs=rules.max_pairs)

    def choose(x: Any) -> Any:
        verdict = decide(rules, x["model"], x["lane"], x["propose"], x["determine"], x["rows"])
        return verdict, *later(x["lane"].clock, x["propose"].h, x["intervals"])

    def strike(x: Any) -> Any:
        model, state, contacts = x["model"], x["propose"].state, x["determine"]
        accepted = x["decide"][0].accepted & ~x["lane"].done
        here = contacts._replace(active=contacts.active & accepted)
        return respond(model, state.q, state.v, here, x["rows"], law=rules.law, impacts=rules.impacts)

    def prepare(x: Any) -> Any:
        after = State(x["propose"].state.q, x["respond"].v, x["decide"][2])
        return prepared(
            rules, x["model"], after, x["detect"], x["determine"], x["rows"], None, x["max_dt"]
        )  # fmt: skip

    def choice(x: Any) -> Any:
        lane, (verdict, clock, _) = x["lane"], x["decide"]
        new = lane._replace(ready=x["prepare"], search=verdict.search, clock=clock)
        return select(verdict.accepted & ~lane.done, new, lane._replace(search=verdict.search))

    def write(x: Any) -> Any:
        state = x["select"].ready.state
        record = x["record"].with_frame(x["lane"].clock.frame, state)
        return record.with_impacts(state.t, x["determine"], x["respond"].impacts)

    return {
        "propose": lambda x: proposal(rules, x["model"], x["lane"], step_to_try(x["lane"], x["max_dt"])),
        "detect": see,
        "determine": lambda x: determine(
            x["model"], x["propose"].state.q, x["detect"], max_contacts=rules.max_contacts, limits=rules.limits
        ),
        "rows": lambda x: rows_of(x["model"], x["propose"].state.q, x["determine"]),
        "decide": choose,
        "respond": strike,
        "prepare": prepare,
        "select": choice,
        "record": write,
    }


def profile(scenes: list[str], sizes: list[int], dtypes: list[str], rounds: int) -> int:
    """Print the stages of each scene; the exit status: whether together they do what the tick does."""
    right = True
    for name in scenes:
        if CASES[name].middle:
            right &= all([_scene(name, CASES[name], lanes, label, rounds) for lanes in sizes for label in dtypes])
        else:
            print(f"\n{name}: nothing touches, its run has no such ticks", flush=True)
    return 0 if right else 1


def _scene(name: str, case: Case, lanes: int, label: str, rounds: int) -> bool:
    model, state = case.compiled(DTYPES[label])
    state = case.states(state, lanes)
    if lanes == 1:
        state = jax.tree.map(lambda x: x[0], state)
    rules = _rules(case, model)
    dtype = state.q.dtype
    max_dt = jnp.asarray(case.max_dt, dtype)
    model = rules.paced(model, max_dt)
    intervals = jnp.full(1 + round(case.duration / FRAME), FRAME, dtype)
    whole = functools.partial(_tick, rules)
    lane = first_lane(rules, model, state, intervals, _untold)
    ticked, seconds = compile_seconds(whole, model, lane, intervals, max_dt)
    turns = 0
    while float(jnp.mean(lane.ready.state.t)) < case.middle and turns < PATIENCE:
        lane, turns = ticked(model, lane, intervals, max_dt), turns + 1
    known: list[dict[str, Any]] = []
    for _ in range(TICKS):
        record = Record.new(lane.ready.state, FRAMES, EVENTS)
        known.append({"model": model, "lane": lane, "intervals": intervals, "max_dt": max_dt, "record": record})
        lane = ticked(model, lane, intervals, max_dt)
    compiling, calls = {"all: the tick": seconds}, {}
    for stage, function in stages(rules).items():
        given = [dict(x) for x in known]
        run, compiling[stage] = compile_seconds(function, given[0])
        calls[stage] = functools.partial(_each, run, given)
        for x in known:
            x[stage] = run(x)
    empty = jax.jit(lambda x: x["max_dt"], keep_unused=True).lower(known[0]).compile()
    calls["an empty call"] = functools.partial(_each, empty, known)
    calls["all: the tick"] = lambda: [ticked(model, x["lane"], intervals, max_dt) for x in known]
    agree = _agree(calls["all: the tick"](), known)
    us = {stage: t.median * 1e6 / TICKS for stage, t in in_turn(calls, rounds).items()}
    alone = {stage: max(0.0, us[stage] - us["an empty call"]) for stage in stages(rules)}
    t = float(jnp.mean(known[0]["lane"].ready.state.t))
    print(f"\n{name}, {lanes} lanes, {label}: a tick at t = {t:.2f} s, after {turns} ticks: us, and us a lane")
    for stage, time in us.items():
        part = f"{alone[stage] / sum(alone.values()):5.0%}" if stage in alone else " " * 5
        seconds = f"compile {compiling[stage]:.1f} s" if stage in compiling else ""
        print(f"  {stage:14} {time:10.1f} {time / lanes:9.2f} {part} {seconds}")
    print("  the stages together do not do what the tick does" if not agree else "", flush=True)
    return agree


def _rules(case: Case, model: Model) -> Rules:
    told = case.keywords
    return Rules(told["scheme"], law=told["law"], impacts=told["impacts"], limits=has_limits(model))


def _tick(rules: Rules, model: Model, lane: Lane, intervals: Any, max_dt: Any) -> Lane:
    return tick(rules, model, lane, intervals, max_dt, _untold).lane


def _each(run: Any, given: list[dict[str, Any]]) -> list[Any]:
    return [run(x) for x in given]


def _agree(lanes: list[Lane], known: list[dict[str, Any]]) -> bool:
    """To the rounding of programs that are cut differently."""
    close = {"float32": 1e-3, "float64": 1e-7}
    return all(
        np.allclose(lane.ready.state.v, x["select"].ready.state.v, rtol=0, atol=close[lane.ready.state.v.dtype.name])
        for lane, x in zip(lanes, known, strict=True)
    )
