"""Steps: simulated seconds per second of whole runs, their ticks and quality, compared with MuJoCo and rapier3d.

"By CPU" is the ratio of simulated seconds per CPU second of all threads, which does not depend on other programs.
It prints plain lines, since it also runs on a machine with a GPU, without peers and rich.
"""

from __future__ import annotations

import functools
import os
import sys
from dataclasses import replace
from time import perf_counter
from typing import Any

import jax
import numpy as np

import carom
from carom.engine.results import LEAST_GRAVE, OK

from .cases import DTYPES
from .step_cases import CASES, QUALITIES, Measured, Run, StepCase
from .timing import in_turn, left_to_xla, wait

LANES = (1, 1024)
WATCHED = 16  # lanes of a batch whose frames are checked
FEW = 64  # lanes of a batch that MuJoCo runs: their number does not change its speed
THREADS = 2  # threads on which it runs them
OURS, XLA = "Carom", "XLA"


def suite(
    scenes: list[str], sizes: list[int], dtypes: list[str], duration: float | None, rounds: int, peers: bool, xla: bool
) -> int:
    """Print a table for each scene. The exit status says whether all lanes finished with the right energy.

    xla: also run a single scene as XLA's program."""
    print(f"{jax.devices()[0].device_kind} x {len(jax.devices())}, jax {jax.__version__}{_load()}")
    right = True
    for name in scenes:
        case = CASES[name] if duration is None else replace(CASES[name], duration=duration)
        right &= _scene(name, case, sizes, dtypes, rounds, peers, xla)
    if not right:
        print("lanes failed or gained energy, see above: the figures are worth nothing")
    return 0 if right else 1


def _load() -> str:
    """Return a text of the machine's load average, if known."""
    return f", load average {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""


def _scene(name: str, case: StepCase, sizes: list[int], dtypes: list[str], rounds: int, peers: bool, xla: bool) -> bool:
    steps = f"{case.scheme}, steps of at most 1/{1 / case.max_dt:g} s"
    print(f"\n{name}: {case.duration:g} s, {steps}{_load()}", flush=True)
    measured, theirs = Measured(case), _Peers(case) if peers else None
    others = theirs.names if theirs else []
    columns = [f"{'lanes':>6} dtype {'compile s':>9} {'ticks':>6} useful {'us/tick':>8} {'sim s/s':>9}"]
    columns += [f"{'XLA us/tick':>12} {'ratio':>6}"] if xla else []
    columns += [f"{other + ' us':>12} {'s/s':>9} {'ratio':>6} {'by CPU':>6}" for other in others]
    print(" ".join([*columns, *(f"{QUALITIES[key][0]:>12}" for key in case.quality), " right"]), flush=True)
    right = True
    for lanes in sizes:
        for label in dtypes:
            print(f"{name}, {lanes} lanes, {label} ...", file=sys.stderr, flush=True)
            line, fine = _row(case, measured, theirs, lanes, label, rounds, xla)
            right &= fine
            print(line, flush=True)
    for other in others:
        print(theirs.line(other, measured), flush=True)  # type: ignore[union-attr]
    return right


def _row(
    case: StepCase, measured: Measured, theirs: _Peers | None, lanes: int, label: str, rounds: int, xla: bool
) -> tuple[str, bool]:
    model, state = case.model_and_state(DTYPES[label])
    states = case.states(state, lanes)
    if lanes == 1:
        states = jax.tree.map(lambda x: x[0], states)
    call = functools.partial(carom.rollout, model, states, throw=False, **case.keywords)
    jax.clear_caches()
    start = perf_counter()
    result = call()
    wait(result)
    first = perf_counter() - start
    calls: dict[str, Any] = {OURS: call}
    if xla and lanes == 1:  # XLA's program would run many lanes side by side
        calls[XLA] = functools.partial(_as_xla, call)
    if theirs:
        calls |= theirs.calls(lanes)
    timed = in_turn(calls, rounds)
    seconds = {who: t.median for who, t in timed.items()}
    ticks, useful = np.atleast_1d(result.stats.ticks).astype(float), float(np.mean(result.stats.useful))
    rate, tick = lanes * case.duration / seconds[OURS], seconds[OURS] * 1e6 / ticks.sum()
    run, codes = _watch_lanes(measured, result), np.atleast_1d(result.code)
    fine = (codes < LEAST_GRAVE).all() and QUALITIES[case.quality[0]][1](run) <= case.worst[label]
    cells = [
        f"{lanes:6d} {label:>5} {max(0.0, first - seconds[OURS]):9.1f} {ticks.mean():6.0f} {useful:6.2f}"
        f" {tick:8.1f} {rate:9.4g}"
    ]
    if xla:
        times = seconds[XLA] / seconds[OURS] if XLA in calls else None
        cells += [f"{'':19}" if times is None else f"{times * tick:12.1f} {times:6.3g}"]
    for who in theirs.names if theirs else ():
        simulated = theirs.lanes(who, lanes) * case.duration / seconds[who]  # type: ignore[union-attr]
        step = 1e6 * case.steps[who] / simulated
        ratio = rate / simulated
        by_cpu = ratio * (timed[OURS].median / timed[OURS].cpu) / (timed[who].median / timed[who].cpu)
        cells += [f"{step:12.1f} {simulated:9.4g} {ratio:6.2g} {by_cpu:6.2g}"]
    cells += [f"{QUALITIES[key][1](run):12.1e}" for key in case.quality]
    failed = f" codes {dict(zip(*np.unique(codes[codes != OK], return_counts=True), strict=True))}"
    return " ".join(cells) + ("   yes" if fine else "    no") + (failed if (codes != OK).any() else ""), bool(fine)


def _as_xla(call: Any) -> Any:
    """Make the same call as XLA's program."""
    with left_to_xla():
        return call()


def _watch_lanes(measured: Measured, result: Any) -> Run:
    """Measure the frames of some lanes; the overlap is that of all accepted states."""
    q, v = (np.asarray(x) for x in (result.q, result.v))
    if q.ndim == 2:
        q, v = q[None], v[None]
    deepest = np.atleast_1d(np.asarray(result.stats.max_penetration, np.float64))
    return replace(measured(q[:WATCHED], v[:WATCHED]), overlap=deepest[:, None])


class _Peers:
    """MuJoCo and rapier3d in the states of a case."""

    def __init__(self, case: StepCase) -> None:
        from .peers import MujocoWorld
        from .rapier_world import RapierWorld

        self.case, (model, state) = case, case.model_and_state(np.float64)
        states = case.states(state, FEW)
        self.q, self.v = np.asarray(states.q), np.asarray(states.v)
        mujoco = functools.partial(MujocoWorld, integrator=case.integrator, file=case.file)
        makers = {"MuJoCo": mujoco, "rapier3d": RapierWorld}
        self.worlds = {name: makers[name](model, h) for name, h in case.steps.items()}
        self.counts = {name: max(1, round(case.duration / h)) for name, h in case.steps.items()}
        for name, world in self.worlds.items():
            world.start(self.q[0], self.v[0])
            if case.driven:
                world.drive(case.torques(), round(case.frame / case.steps[name]))

    @property
    def names(self) -> list[str]:
        return list(self.worlds)

    def lanes(self, name: str, lanes: int) -> int:
        """Return the number of these lanes that a peer runs."""
        return min(lanes, FEW) if name == "MuJoCo" else 1

    def calls(self, lanes: int) -> dict[str, Any]:
        calls = {name: functools.partial(world.run, self.counts[name]) for name, world in self.worlds.items()}
        if lanes > 1:
            few = self.lanes("MuJoCo", lanes)
            world = self.worlds["MuJoCo"]
            calls["MuJoCo"] = world.batch(self.q[:few], self.v[:few], self.counts["MuJoCo"], THREADS)
        return calls

    def line(self, name: str, measured: Measured) -> str:
        """Return a line on the quality of the first lane's run: energy at frames as Carom's, overlaps at every step."""
        q, v = self.worlds[name].trajectory(self.counts[name])
        run, every = measured(q[None], v[None]), max(1, round(self.case.frame / self.case.steps[name]))
        run = replace(run, kinetic=run.kinetic[:, ::every], potential=run.potential[:, ::every])
        shown = ", ".join(f"{QUALITIES[key][0]} {QUALITIES[key][1](run):.1e}" for key in self.case.quality)
        integrator = f", {self.case.integrator}" if name == "MuJoCo" else ""
        return f"{name:>9}: steps of 1/{1 / self.case.steps[name]:g} s{integrator}: {shown}"
