"""Time of a tick by its stages: those of integrators/step.py, compiled separately by XLA and timed in mid-run."""

from __future__ import annotations

import functools
from collections.abc import Callable
from inspect import signature
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from carom.collision.detect import detect_with_bounds
from carom.contact.contact_jacobian import jacobian_at
from carom.contact.determine import determine
from carom.contact.respond import respond
from carom.engine.model import Model
from carom.engine.state import State
from carom.integrators.clock import Frames, advance_clock
from carom.integrators.contact_error import expect_contacts, max_gap_error
from carom.integrators.lanes import Lane, select
from carom.integrators.motion.forces import Drive
from carom.integrators.options import Options
from carom.integrators.prepare import prepare_step
from carom.integrators.proposal import propose
from carom.integrators.recording import Record
from carom.integrators.rollout import has_limits
from carom.integrators.rules import Rules
from carom.integrators.sensitivity import detection_ranges, search_range
from carom.integrators.step import first_lane, tick
from carom.integrators.time_control import decide, step_to_try

from .cases import DTYPES
from .step_cases import CASES, FRAME, StepCase
from .timing import compile_seconds, in_turn

LANES = (1, 64)
TICKS = 8  # ticks that are timed, one after another in mid-run
PATIENCE = 4000  # most ticks before these
FRAMES, EVENTS = 60, 64  # frames and events of the record that is written


def _no_drive(*_: Any) -> Drive:
    """Return the drive of the scene, without motor commands and external forces."""
    return Drive()


def stages(rules: Rules) -> dict[str, Callable[..., Any]]:
    """Return the stages by name. Arguments are named after results of earlier stages, or after the initial values."""

    def try_step(model: Any, lane: Any, max_dt: Any) -> Any:
        return propose(rules, model, lane, *step_to_try(lane, max_dt))

    def off(model: Any, lane: Any, propose: Any) -> Any:
        return max_gap_error(model, lane, propose.h, expect_contacts(model, lane, propose))

    def find(model: Any, lane: Any, propose: Any, max_dt: Any) -> Any:
        state = propose.state
        look = detection_ranges(rules, model, state.q, state.v, max_dt, off(model, lane, propose))
        return detect_with_bounds(
            model, state.q, look.close, reach=look.reach, max_pairs=rules.max_pairs, max_near=rules.max_near
        )

    def touching(model: Any, lane: Any, propose: Any, detect: Any) -> Any:
        q, room = propose.state.q, rules.max_contacts
        near = jnp.minimum(off(model, lane, propose), search_range(q) * model.gap_band)
        return determine(model, q, detect[0], max_contacts=room, limits=rules.limits, reach=near)

    def rows(model: Any, propose: Any, determine: Any) -> Any:
        return jacobian_at(model, propose.state.q, determine)

    def verdict(model: Any, lane: Any, frames: Any, propose: Any, determine: Any, rows: Any, max_dt: Any) -> Any:
        knew = expect_contacts(model, lane, propose)
        return decide(rules, model, lane, propose, determine, rows, knew, max_dt), *advance_clock(
            lane.clock, lane.ready.state.t, propose.h, frames
        )

    def strike(model: Any, lane: Any, propose: Any, determine: Any, rows: Any, decide: Any) -> Any:
        here = determine._replace(active=determine.active & decide[0].accepted & ~lane.done)
        return respond(model, propose.state.q, propose.state.v, here, rows, law=rules.law, impacts=rules.impacts)

    def prepare(
        model: Any, max_dt: Any, propose: Any, detect: Any, determine: Any, rows: Any, decide: Any, respond: Any
    ) -> Any:
        after = State(propose.state.q, respond.v, decide[2])
        near, bounds = detect
        return prepare_step(rules, model, after, near, bounds, determine, rows, _no_drive(), max_dt)

    def choose(lane: Any, decide: Any, prepare: Any) -> Any:
        verdict, clock, _ = decide
        new = lane._replace(ready=prepare, search=verdict.search, clock=clock)
        return select(verdict.accepted & ~lane.done, new, lane._replace(search=verdict.search))

    def record(record: Any, lane: Any, determine: Any, respond: Any, select: Any) -> Any:
        state = select.ready.state
        return record.with_frame(lane.clock.frame, state).with_impacts(state.t, determine, respond.impacts)

    return {
        "propose": try_step, "detect": find, "determine": touching, "rows": rows, "decide": verdict,
        "respond": strike, "prepare": prepare, "select": choose, "write": record,
    }  # fmt: skip


def profile(scenes: list[str], sizes: list[int], dtypes: list[str], rounds: int) -> int:
    """Print the stages of each scene. The exit status says whether together they give the result of the tick."""
    right = True
    for name in scenes:
        if CASES[name].middle:
            right &= all([_scene(name, CASES[name], lanes, label, rounds) for lanes in sizes for label in dtypes])
        else:
            print(f"\n{name}: nothing touches, its run has no such ticks", flush=True)
    return 0 if right else 1


def _scene(name: str, case: StepCase, lanes: int, label: str, rounds: int) -> bool:
    model, state = case.model_and_state(DTYPES[label])
    state = case.states(state, lanes)
    if lanes == 1:
        state = jax.tree.map(lambda x: x[0], state)
    rules = _rules(case, model)
    dtype = state.q.dtype
    max_dt = jnp.asarray(case.max_dt, dtype)
    model = rules.adapt_rest_speed(model, max_dt)
    frames = Frames.of([FRAME] * (1 + round(case.duration / FRAME)), dtype)
    whole = functools.partial(_tick, rules)
    lane = first_lane(rules, model, state, frames, _no_drive)
    ticked, seconds = compile_seconds(whole, model, lane, frames, max_dt)
    ticks = 0
    while float(jnp.mean(lane.ready.state.t)) < case.middle and ticks < PATIENCE:
        lane, ticks = ticked(model, lane, frames, max_dt), ticks + 1
    samples: list[dict[str, Any]] = []
    for _ in range(TICKS):
        record = Record.new(lane.ready.state, FRAMES, EVENTS)
        samples.append({"model": model, "lane": lane, "frames": frames, "max_dt": max_dt, "record": record})
        lane = ticked(model, lane, frames, max_dt)
    compiling, calls, idle = {"all: the tick": seconds}, {}, {}
    for stage, function in stages(rules).items():
        given = [tuple(x[name] for name in signature(function).parameters) for x in samples]
        run, compiling[stage] = compile_seconds(function, *given[0])
        calls[stage] = functools.partial(_each, run, given)
        idle[stage] = functools.partial(_each, jax.jit(lambda *_: 0).lower(*given[0]).compile(), given)
        for x, arguments in zip(samples, given, strict=True):
            x[stage] = run(*arguments)
    everything = [(model, x["lane"], frames, max_dt) for x in samples]
    calls["all: the tick"] = functools.partial(_each, ticked, everything)
    agree = _agree(calls["all: the tick"](), samples)
    us = {stage: t.median * 1e6 / TICKS for stage, t in in_turn(calls, rounds).items()}
    called = {stage: t.median * 1e6 / TICKS for stage, t in in_turn(idle, rounds).items()}
    us |= {stage: max(0.0, us[stage] - time) for stage, time in called.items()}
    total = sum(us[stage] for stage in called)
    t = float(jnp.mean(samples[0]["lane"].ready.state.t))
    print(f"\n{name}, {lanes} lanes, {label}: a tick at t = {t:.2f} s, after {ticks} ticks: us, us a lane, part")
    for stage, time in us.items():
        part = f"{time / total:5.0%}" if stage in called else " " * 5
        print(f"  {stage:14} {time:10.1f} {time / lanes:9.2f} {part} compile {compiling[stage]:.1f} s")
    print(
        "  (calling is taken off each stage)" if agree else "  the stages together do not do what the tick does",
        flush=True,
    )
    return agree


def _rules(case: StepCase, model: Model) -> Rules:
    chosen = {name: case.keywords[name] for name in ("scheme", "law", "impacts") if name in case.keywords}
    return Rules.of(Options(**chosen), has_limits(model))


def _tick(rules: Rules, model: Model, lane: Lane, frames: Any, max_dt: Any) -> Lane:
    return tick(rules, model, lane, frames, max_dt, _no_drive).lane


def _each(run: Any, given: list[tuple[Any, ...]]) -> list[Any]:
    return [run(*arguments) for arguments in given]


def _agree(lanes: list[Lane], samples: list[dict[str, Any]]) -> bool:
    """Return whether velocities agree, up to the rounding of programs that are divided differently."""
    close = {"float32": 1e-3, "float64": 1e-7}
    return all(
        np.allclose(lane.ready.state.v, x["select"].ready.state.v, rtol=0, atol=close[lane.ready.state.v.dtype.name])
        for lane, x in zip(lanes, samples, strict=True)
    )
