"""Invariants of every run: each measures its largest violation.

    energy_never_grows(recording).check()      raises AssertionError with the violation, its time and position
    if momentum_kept(recording, linear="xy"):  or test it

Tolerances are parts of the run's own scale: of its largest energy, momentum or impulse. Errors of a law of impact or a
solver in double precision are some 1e-12 of these; in single precision the defaults are FLOAT32 of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...collision.poses import Array
from ..recordings.reading import LIMIT, ImpactTable, Reading
from ..recordings.recording import Recording
from .finding import Finding

if TYPE_CHECKING:
    import jax

    from ...engine.model import Model

TINY = np.finfo(float).tiny
FLOAT64, FLOAT32 = 1e-9, 1e-4
STEPS = 1e-4  # part of the largest kinetic energy: error of the steps, by which a frame may have more than one before


def energy_never_grows(recording: Recording | Reading, tolerance: float | None = None) -> Finding:
    """Check that no impact gains kinetic energy, and that no frame has more energy than an earlier one.

    For scenes without motors and moving statics, which may put energy in. tolerance: of the largest kinetic energy;
    None: rounding for impacts, and STEPS for frames, since the error of a step, of order 4 in max_dt for trees and
    contacts that roll, may have either sign.
    """
    reading, rounded = _read(recording, tolerance)
    steps = max(rounded, STEPS) if tolerance is None else tolerance
    ledger, impacts = reading.ledger, reading.impacts
    total = np.where(np.isnan(ledger.total), np.inf, ledger.total)
    rise = np.nan_to_num(ledger.total - np.minimum.accumulate(total, -1))
    gain = impacts.kinetic[:, 1] - impacts.kinetic[:, 0]
    of_frames, of_impacts = rise.max() / ledger.scale, gain.max(initial=0.0) / ledger.scale
    if of_impacts / rounded >= of_frames / steps:
        worst, allowed, where = of_impacts, rounded, _impact(impacts, gain)
    else:
        worst, allowed, where = of_frames, steps, _frame(reading, rise)
    return Finding("energy never grows", worst, allowed, "of the largest kinetic energy", where)


def energy_kept(
    recording: Recording | Reading, tolerance: float | None = None, *, besides_impacts: bool = False
) -> Finding:
    """Check that all frames have the first's energy; besides_impacts: after adding the losses of the logged impacts.

    For scenes without sliding between impacts, dampers and motors. tolerance: of the largest kinetic energy.
    """
    reading, allowed = _read(recording, tolerance)
    ledger = reading.ledger
    off = np.nan_to_num(np.abs(ledger.rest if besides_impacts else ledger.rest + ledger.impacts)) / ledger.scale
    name = "energy is kept, besides what impacts took" if besides_impacts else "energy is kept"
    return Finding(name, off.max(), allowed, "of the largest kinetic energy", _frame(reading, off))


def momentum_kept(
    recording: Recording | Reading, tolerance: float | None = None, *, linear: str = "xyz", angular: str = "xyz"
) -> Finding:
    """Check that momentum, less the weight's part, and angular momentum about the common centre of mass are constant.

    linear, angular: names of world axes; a scene on a smooth floor keeps linear="xy", angular="z". For scenes of
    free bodies. tolerance: of the largest momentum of a body (angular: times the scene's radius).
    """
    reading, allowed = _read(recording, tolerance)
    P, L, size, radius = _momenta(reading)
    off = np.zeros(P.shape[:2])
    for axes, x, scale in ((linear, P, size), (angular, L, size * radius)):
        for axis in axes:
            drift = x[..., "xyz".index(axis)]
            off = np.maximum(off, np.nan_to_num(np.abs(drift - drift[:, :1])) / scale)
    return Finding("momentum is kept", off.max(), allowed, "of the largest momentum", _frame(reading, off))


def _momenta(reading: Reading) -> tuple[Array, Array, float, float]:
    """Linear momentum less the weight's part, angular about the centre of mass (L, F, 3); and their scales."""
    import jax.numpy as jnp

    from ...engine.dynamics.energy import momentum
    from ...engine.dynamics.kinematics import fk
    from ...engine.state import State

    def of(model: Model, q: jax.Array, v: jax.Array, t: jax.Array) -> tuple[jax.Array, ...]:
        poses, momenta = fk(model, q), momentum(model, State(q, v, t))
        middles = poses.position + (poses.rotation @ model.com[..., None])[..., 0]
        mass = model.mass.sum(-1)[..., None]
        center = (model.mass[..., None] * middles).sum(-2) / mass
        spread = jnp.linalg.norm(middles - center[..., None, :], axis=-1).max(-1)
        potential = mass * model.gravity * t[..., None]
        return (
            momenta.linear - potential,
            momenta.angular - jnp.cross(center, momenta.linear),
            spread,
            0 * t + mass[..., 0],
        )

    P, L, spread, mass = reading.evaluate(of, reading.q, reading.v, reading.t)
    kinetic = float(np.nanmax(reading.ledger.kinetic))
    size = max(float(np.sqrt(2 * kinetic * mass.max())), TINY)  # the most momentum of bodies with this energy
    return P, L, size, max(float(np.nanmax(spread)), 0.01)


def impulses_in_cone(recording: Recording | Reading, tolerance: float | None = None) -> Finding:
    """Check that every impact pushes, with friction at most mu times that. tolerance: of the largest normal impulse."""
    reading, allowed = _read(recording, tolerance)
    impacts = reading.impacts
    out = np.maximum(impacts.p_t - impacts.friction * impacts.p_n, -impacts.p_n)
    worst = max(out.max(initial=0.0), 0.0) / max(np.abs(impacts.p_n).max(initial=0.0), TINY)
    return Finding("impulses are in the friction cone", worst, allowed, "of the largest", _impact(impacts, out))


def complementarity(recording: Recording | Reading, tolerance: float | None = None) -> Finding:
    """Check that impulses act only where bodies close, and stop closing. tolerance: of the largest closing speed."""
    reading, allowed = _read(recording, tolerance)
    impacts = reading.impacts
    acts = np.abs(impacts.p_n) > 0
    wrong = np.maximum(np.where(acts, impacts.u_n[:, 0], 0), -impacts.u_n[:, 1])
    worst = max(wrong.max(initial=0.0), 0.0) / max(np.abs(impacts.u_n).max(initial=0.0), TINY)
    return Finding(
        "impulses act where bodies close, and leave nothing closing", worst, allowed, "of the largest closing speed",
        _impact(impacts, wrong),
    )  # fmt: skip


def no_penetration(
    recording: Recording | Reading, tolerance: float | None = None, *, backend: str = "device"
) -> Finding:
    """Check that shapes overlap in no frame, and in no accepted state between, by more than contact allows.

    tolerance: [m]; None: twenty of the scene's gap bands, within ten of which contacts rest.
    backend: "device", or "fcl" for an independent detector, to its tolerance of 1e-4 of the size.
    """
    from ...collision.detect import detect

    reading = recording if isinstance(recording, Reading) else Reading(recording)
    band = float(np.max(np.asarray(reading.model.gap_band)))
    depth = np.zeros(reading.t.shape)
    if reading.model.topology.pairs:
        gaps = reading.evaluate(lambda model, q: detect(model, q, backend=backend).gap, np.nan_to_num(reading.q))
        depth = np.where(np.isnan(reading.t), 0.0, -np.min(gaps, -1))
    said = float(np.max(np.asarray(reading.recording.stats["max_penetration"]), initial=0.0))
    worst = max(depth.max(), said, 0.0)
    where = _frame(reading, depth) if depth.max() >= said else "between frames, by the run's own statistics"
    return Finding("nothing penetrates", worst, 20 * band if tolerance is None else tolerance, "m", where)


# invariants that hold for every scene without motors
ALWAYS = {
    "energy": energy_never_grows, "cone": impulses_in_cone, "complementarity": complementarity,
    "penetration": no_penetration,
}  # fmt: skip


def _read(recording: Recording | Reading, tolerance: float | None) -> tuple[Reading, float]:
    reading = recording if isinstance(recording, Reading) else Reading(recording)
    return reading, rounding(reading) if tolerance is None else tolerance


def rounding(reading: Reading) -> float:
    """Rounding error of a run's precision, in parts of the largest number."""
    return FLOAT64 if reading.recording.q.dtype == np.float64 else FLOAT32


def _frame(reading: Reading, off: np.ndarray) -> str:
    """Text of the worst of the frames (L, F)."""
    lane, frame = np.unravel_index(np.argmax(off), off.shape)
    return f"at the frame t = {reading.t[lane, frame]:.6g} s{_lane(reading.lanes, int(lane))}"


def _impact(impacts: ImpactTable, off: np.ndarray) -> str:
    """Text of the worst of the impacts (N,)."""
    if not len(off):
        return ""
    k = int(np.argmax(off))
    limit = "of" if impacts.b[k] == LIMIT else "between"
    lanes = int(impacts.lane.max()) + 1
    return f"in the impact {limit} {impacts.pairs[k]} at t = {impacts.t[k]:.9g} s{_lane(lanes, int(impacts.lane[k]))}"


def _lane(lanes: int, lane: int) -> str:
    return f" of lane {lane}" if lanes > 1 else ""
