"""The start of a planar chain: positions and velocities of its joints, from angles or as given."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...collision.poses import Array
from ..compiling import check
from .spec import ChainSpec

OFF = 0.01  # relative tolerance of positions to the lengths of links, and of velocities to rigid links


class Start(NamedTuple):
    """A start.  lengths: (n - 1,) of the links [m].  x, v: (n, 2) [m, m/s].  angles: (n - 1,) in (-pi, pi] [rad]."""

    lengths: Array
    x: Array
    v: Array
    angles: Array


def start(spec: ChainSpec, n: int) -> Start:
    """The start of a chain of n joints."""
    lengths = None if spec.lengths is None else check.positive("chain", "lengths", spec.lengths, (n - 1,), "m")
    if spec.positions is not None:
        return _by_positions(spec, n, lengths)
    if spec.velocities is not None:
        fix = "give positions too, or rates and base_velocity"
        check.reject("chain", "velocities", spec.velocities, f"they go with positions: {fix}")
    if lengths is None:
        if n > 1:
            must = f"it must be known: give {n - 1} numbers in m, or positions of the joints"
            check.reject("chain", "lengths", None, must)
        lengths = np.zeros(0)
    zeros = np.zeros(n - 1)
    angles = zeros if spec.angles is None else check.numbers("chain", "angles", spec.angles, (n - 1,), "rad")
    rates = zeros if spec.rates is None else check.numbers("chain", "rates", spec.rates, (n - 1,), "rad/s")
    x0 = check.numbers("chain", "base", spec.base, (2,), "m")
    v0 = check.numbers("chain", "base_velocity", spec.base_velocity, (2,), "m/s")
    phi, omega = np.cumsum(angles), np.cumsum(rates)
    along = np.stack([np.cos(phi), np.sin(phi)], -1) * lengths[:, None]
    across = np.stack([-along[:, 1], along[:, 0]], -1) * omega[:, None]
    x, v = (np.concatenate([a[None], a + np.cumsum(steps, 0)]) for a, steps in ((x0, along), (v0, across)))
    return Start(lengths, x, v, np.arctan2(np.sin(angles), np.cos(angles)))


def _by_positions(spec: ChainSpec, n: int, lengths: Array | None) -> Start:
    rest = {"base": (0.0, 0.0), "base_velocity": (0.0, 0.0), "angles": None, "rates": None}
    for field, unset in rest.items():
        if getattr(spec, field) != unset:
            fix = f"leave out {field}, or positions"
            check.reject("chain", field, getattr(spec, field), f"positions and velocities say all there is: {fix}")
    x = check.numbers("chain", "positions", spec.positions, (n, 2), "m")
    v = np.zeros((n, 2))
    if spec.velocities is not None:
        v = check.numbers("chain", "velocities", spec.velocities, (n, 2), "m/s")
    step = np.diff(x, axis=0)
    apart = np.linalg.norm(step, axis=1)
    for k, d in enumerate(apart):
        if d == 0:
            check.reject("chain", "positions", spec.positions, f"joints {k} and {k + 1} are in one place: part them")
        if lengths is not None and abs(d - lengths[k]) > OFF * lengths[k]:
            fix = "leave out lengths, or move the joints"
            must = f"joints {k} and {k + 1} are {d:.6g} m apart, link {k} is {lengths[k]:.6g} m long: {fix}"
            check.reject("chain", "positions", spec.positions, must)
    r = step / apart[:, None]
    stretch = (r * np.diff(v, axis=0)).sum(-1)
    for k in np.flatnonzero(np.abs(stretch) > OFF * np.abs(v).max(initial=0)):
        must = f"they stretch link {k} by {stretch[k]:.6g} m/s: give velocities that keep lengths, or angles and rates"
        check.reject("chain", "velocities", spec.velocities, must)
    before = np.concatenate([[[1.0, 0.0]], r[:-1]])[: n - 1]
    angles = np.arctan2(before[:, 0] * r[:, 1] - before[:, 1] * r[:, 0], (before * r).sum(-1))
    return Start(apart if lengths is None else lengths, x, v, angles)
