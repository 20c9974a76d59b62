"""Reports: quantities named by the user, summed during a run and returned as arrays."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ...engine.model import Model
from ...engine.topology import Topology
from ..lanes import Lane
from ..rules import Rules
from ..step import TickResult
from . import sensors
from .quantities import QUANTITIES, Quantity
from .sensors import summed_sensors
from .step_summary import summarize_step

Report = dict[str, Any]

SENSORS = {
    "sensor means": Quantity(lambda topology: (sensors.width(topology),), sensors.of_step, True),
    "sensor sums": Quantity(lambda topology: (sensors.width(topology),), sensors.of_jumps, False),
}
SUMS = tuple(SENSORS)


def reporting(rules: Rules, report: str | Sequence[str], topology: Topology) -> Rules:
    """Return the rules of a run with this report: all impacts are recorded, and all bodies share one clock."""
    names = check_names(report, topology)
    if "sensors" in names:
        names = *(name for name in names if name != "sensors"), *(SUMS if summed_sensors(topology) else ())
    if not names:
        return rules
    if rules.clocks == "islands":
        raise ValueError('report needs clocks="one" or "auto": what islands do between frames is not added up')
    if rules.resting != "solve":
        raise ValueError(f"report needs resting='solve', not {rules.resting!r}, which does not say what it pushes")
    return dataclasses.replace(rules, report=names, max_logged=None, clocks="one")


def check_names(report: str | Sequence[str], topology: Topology) -> tuple[str, ...]:
    """Return the names without repetition, or raise ValueError if one is unknown."""
    names = (report,) if isinstance(report, str) else tuple(dict.fromkeys(report))
    known = (*QUANTITIES, "sensors")
    for name in names:
        if name not in known:
            near = get_close_matches(str(name), known, n=1)
            hint = f"did you mean {near[0]!r}? There are " if near else "there are "
            raise ValueError(f"report has {name!r}, which is no quantity: {hint}{', '.join(known)}")
    if not topology.loops and (name := next((x for x in names if x.startswith("loop_")), None)):
        raise ValueError(f"report has {name!r}, and the scene has no loops: leave it out")
    if "sensors" in names and not topology.sensors:
        raise ValueError('report has "sensors", and the scene has none: give it some, as SceneBuilder.add_sensor does')
    return names


def width(names: Sequence[str], topology: Topology) -> int:
    """Return the number of values per frame."""
    return sum(size for _, _, size in _columns(names, topology))


def readings(names: Sequence[str], model: Model, lane: Lane, ticked: TickResult) -> Array:
    """Return the readings (*batch, width) that a tick adds.  lane: the lane before the tick."""
    step = summarize_step(model, lane, ticked)
    batch = step.h.shape
    rows = [
        jnp.broadcast_to(quantity.of(model, step), (*batch, *quantity.shape(model.topology))).reshape(*batch, size)
        for _, quantity, size in _columns(names, model.topology)
    ]
    return jnp.concatenate(rows, -1)


def make_report(names: Sequence[str], topology: Topology, sums: Array, dt: Array) -> Report:
    """Return the arrays (..., *shape) by name, from sums (..., width) over times dt (...) [s]; 0 if dt is 0."""
    report: Report = {}
    parts = jnp.split(sums, np.cumsum([size for _, _, size in _columns(names, topology)])[:-1], -1) if names else []
    time = jnp.where(dt == 0, 1, dt)[..., None]
    for (name, quantity, _), part in zip(_columns(names, topology), parts, strict=True):
        part = part / time if quantity.mean else part
        report[name] = part.reshape(*part.shape[:-1], *quantity.shape(topology))
    return report


def with_sensors(report: Report, names: Sequence[str], model: Model, q: Array, v: Array, frames: bool) -> Report:
    """Return the report with the readings of all sensors instead of their sums, if "sensors" is among the names.

    q: (..., nq), v: (..., nv) when sensors are read; frames: whether the last axis before these is of frames."""
    if "sensors" not in names:
        return report
    instant = jax.vmap(sensors.at_instant, (None, -2, -2), -2) if frames and q.ndim > 2 else sensors.at_instant
    readings = instant(model, q, v)
    at, topology = 0, model.topology
    for sensor in summed_sensors(topology):
        end = at + sensors.size(sensor, topology)
        means, sums = (report[name][..., at:end] for name in SUMS)
        readings |= sensors.readings_by_name(sensor, means, sums)
        at = end
    kept = {name: x for name, x in report.items() if name not in SENSORS}
    if isinstance(q, np.ndarray):  # all results of a run in chunks are numpy arrays
        readings = jax.device_get(readings)
    ordered = sorted(readings.items(), key=lambda item: item[0])
    return {**kept, "sensors": dict(ordered)}


def _columns(names: Sequence[str], topology: Topology) -> Iterator[tuple[str, Quantity, int]]:
    for name in names:
        quantity = SENSORS[name] if name in SENSORS else QUANTITIES[name]
        yield name, quantity, math.prod(quantity.shape(topology))
