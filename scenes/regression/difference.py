"""Differences of two event logs, with physical tolerances.

Impacts are compared within one lane and one pair of bodies: those at the same time with each other, whatever their
order; of the rest the first with the first, and so on; what is left over is missing, or new.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from ..recordings.events import End, EventLog, LoggedImpact


@dataclass(frozen=True)
class Tolerances:
    """Tolerances.  time [s].  impulse, velocity, energy: parts of the largest of the old log.  position [m, rad, parts
    of a unit quaternion] and, as part of the largest speed, velocity: of the links in the last frame."""

    time: float = 1e-8
    impulse: float = 1e-8
    velocity: float = 1e-8
    energy: float = 1e-8
    position: float = 1e-8

    @staticmethod
    def usual(dtype: str, **changes: float) -> Tolerances:
        """Usual tolerances for runs in this dtype, some changed; for another machine's rounding in few impacts."""
        size = 1e-8 if dtype == "float64" else 1e-3
        known = [f.name for f in fields(Tolerances)]
        for name in changes:
            if name not in known:
                raise ValueError(f"there is no tolerance {name!r}; there are {', '.join(known)}")
        return Tolerances(**({name: size for name in known} | changes))


class Difference(NamedTuple):
    """A difference.  t: of the impact [s], the end's is infinite.  what: in words.  off: in tolerances; infinite if an
    impact is missing or new."""

    t: float
    what: str
    off: float


def differences(old: EventLog, new: EventLog, tolerances: Tolerances) -> list[Difference]:
    """Differences beyond the tolerances, in order of time."""
    all_differences: list[Difference] = []
    scale = _Scale.of(old if old.impacts or old.ends else new, tolerances)
    ours, theirs = _streams(old.impacts), _streams(new.impacts)
    for key in {**ours, **theirs}:
        for a, b in _match_impacts(ours.get(key, []), theirs.get(key, []), scale):
            all_differences += _of_impact(a, b, scale)
    all_differences += _of_ends(old.ends, new.ends, scale)
    return sorted(all_differences, key=lambda d: d.t)


class _Scale(NamedTuple):
    """Absolute tolerances: time [s], impulse [N s], velocity [m/s], energy [J], position [m]."""

    time: float
    impulse: float
    velocity: float
    energy: float
    position: float

    @staticmethod
    def of(log: EventLog, by: Tolerances) -> _Scale:
        impulse = max((abs(x) for i in log.impacts for x in (i.p_n, i.p_t)), default=0.0)
        energy = max((x for i in log.impacts for x in i.kinetic), default=0.0)
        speeds = [abs(x) for i in log.impacts for x in (*i.u_n, *i.u_t)] + [abs(x) for end in log.ends for x in end.v]
        velocity, least = max(speeds, default=0.0), np.finfo(float).tiny
        return _Scale(
            by.time, max(by.impulse * impulse, least), max(by.velocity * velocity, least),
            max(by.energy * energy, least), by.position,
        )  # fmt: skip


def _streams(impacts: Iterable[LoggedImpact]) -> dict[tuple, list[LoggedImpact]]:
    streams: dict[tuple, list[LoggedImpact]] = defaultdict(list)
    for impact in sorted(impacts, key=lambda i: i.t):
        streams[(impact.lane, *impact.bodies)].append(impact)
    return streams


def _match_impacts(
    old: list[LoggedImpact], new: list[LoggedImpact], scale: _Scale
) -> list[tuple[LoggedImpact | None, LoggedImpact | None]]:
    """Pairs of one stream; None for a missing partner."""
    pairs: list[tuple[LoggedImpact | None, LoggedImpact | None]] = []
    times, taken, lone = np.array([i.t for i in new]), np.zeros(len(new), bool), []
    for a in old:
        begin = int(np.searchsorted(times, a.t - scale.time))
        stop = int(np.searchsorted(times, a.t + scale.time, "right"))
        near = [k for k in range(begin, stop) if not taken[k]]
        if near:
            best = min(near, key=lambda k: max(row[3] for row in _fields(a, new[k], scale)))
            taken[best] = True
            pairs.append((a, new[best]))
        else:
            lone.append(a)
    free = [b for b, t in zip(new, taken, strict=True) if not t]
    short = min(len(lone), len(free))
    pairs += zip(lone[:short], free[:short], strict=True)
    return pairs + [(a, None) for a in lone[short:]] + [(None, b) for b in free[short:]]


def _fields(a: LoggedImpact, b: LoggedImpact, scale: _Scale) -> list[tuple[str, float, float, float]]:
    """Name, old value, new value and difference in tolerances of every number of two impacts."""
    rows = [("t", a.t, b.t, scale.time), ("p_n", a.p_n, b.p_n, scale.impulse), ("p_t", a.p_t, b.p_t, scale.impulse)]
    for name, allowed in (("u_n", scale.velocity), ("u_t", scale.velocity), ("kinetic", scale.energy)):
        for when, x, y in zip(("before", "after"), getattr(a, name), getattr(b, name), strict=True):
            rows.append((f"{name} {when}", x, y, allowed))
    return [(name, x, y, abs(y - x) / allowed) for name, x, y, allowed in rows]


UNITS = {"t": "s", "p": "N s", "u": "m/s", "k": "J", "q": "", "v": ""}


def _of_impact(a: LoggedImpact | None, b: LoggedImpact | None, scale: _Scale) -> list[Difference]:
    if a is None or b is None:
        impact, word = (b, "new") if a is None else (a, "missing")
        assert impact is not None
        return [Difference(impact.t, f"{_label(impact)} is {word}: p_n = {impact.p_n:.6g} N s", np.inf)]
    wrong = [row for row in _fields(a, b, scale) if not row[3] <= 1]
    if not wrong:
        return []
    return [Difference(a.t, f"{_label(a)}: " + "; ".join(_text(*row) for row in wrong), max(row[3] for row in wrong))]


def _of_ends(old: tuple[End, ...], new: tuple[End, ...], scale: _Scale) -> list[Difference]:
    ours, theirs = ({(end.lane, end.link): end for end in ends} for ends in (old, new))
    all_differences: list[Difference] = []
    for key in {**ours, **theirs}:
        a, b = ours.get(key), theirs.get(key)
        where = f"the end of {key[1]}" + (f" in lane {key[0]}" if key[0] else "")
        if a is None or b is None or (len(a.q), len(a.v)) != (len(b.q), len(b.v)):
            all_differences.append(Difference(np.inf, f"{where} is {'new' if a is None else 'missing'}", np.inf))
            continue
        rows = [(f"q[{k}]", x, y, abs(y - x) / scale.position) for k, (x, y) in enumerate(zip(a.q, b.q, strict=True))]
        rows += [(f"v[{k}]", x, y, abs(y - x) / scale.velocity) for k, (x, y) in enumerate(zip(a.v, b.v, strict=True))]
        wrong = [row for row in rows if not row[3] <= 1 and not (np.isnan(row[1]) and np.isnan(row[2]))]
        if wrong:
            off = max(np.inf if np.isnan(row[3]) else row[3] for row in wrong)
            all_differences.append(Difference(np.inf, f"{where}: " + "; ".join(_text(*row) for row in wrong), off))
    return all_differences


def _label(impact: LoggedImpact) -> str:
    lane = f" in lane {impact.lane}" if impact.lane else ""
    return f"the impact {' - '.join(impact.bodies)} at t = {impact.t:.9g} s{lane}"


def _text(name: str, old: float, new: float, off: float) -> str:
    unit = " " * bool(UNITS[name[0]]) + UNITS[name[0]]
    return f"{name} was {old:.10g}, is {new:.10g}{unit} (off by {abs(new - old):.2g}, {off:.3g} x allowed)"
