"""The summary of a run: energy, impacts, times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .chains import chain_stats, print_chain_stats
from .output import say, table

if TYPE_CHECKING:
    from ..recordings.recording import Recording
    from .progress import Shown

ROWS = 11  # times at which a single run's energy is printed
TOTALS = ("ticks", "rollbacks", "impacts", "resting")


def summary(name: str, recording: Recording, progress: Shown, dtype: str) -> dict[str, Any]:
    """The summary as plain data: numbers summed over all lanes; energies of the first lane."""
    import numpy as np

    from ..recordings.reading import Reading

    one = Reading(recording if recording.lanes is None else recording.lane(0))
    t, (kinetic, potential) = one.t[0], (x[0] for x in one.energies)
    reached = np.flatnonzero(np.isfinite(t))
    chosen = reached[np.unique(np.linspace(0, len(reached) - 1, min(len(reached), ROWS)).round().astype(int))]
    events = recording.events
    times = np.asarray(events.t)[np.arange(events.t.shape[-1]) < np.asarray(events.count)[..., None]]
    totals = {key: int(np.sum(recording.stats[key])) for key in TOTALS}
    return {
        "scene": name, "lanes": recording.lanes, "frames": recording.t.shape[-1],
        "duration": float(np.nanmax(recording.t)),
        "dtype": dtype, "scheme": recording.keywords.get("scheme", "exact"), "law": recording.events.law, **totals,
        "impacts_by_lane": np.atleast_1d(recording.stats["impacts"]).tolist(),
        "first_impact": float(times.min()) if len(times) else None,
        "last_impact": float(times.max()) if len(times) else None,
        "max_penetration": float(np.max(recording.stats["max_penetration"])),
        "energy": [
            {"t": float(t[k]), "kinetic": float(kinetic[k]), "potential": float(potential[k])} for k in chosen
        ],
        "chain": chain_stats(recording.stats),
        "codes": np.atleast_1d(recording.code).tolist(), "model_hash": recording.model_hash,
        "seconds_to_first_piece": round(progress.first, 3), "seconds_after": round(progress.seconds, 3),
        "rate": progress.rate,
    }  # fmt: skip


def print_summary(result: dict[str, Any]) -> None:
    rows = (
        tuple(f"{x:.6g}" for x in (row["t"], row["kinetic"], row["potential"], row["kinetic"] + row["potential"]))
        for row in result["energy"]
    )
    table("t [s]", "kinetic [J]", "potential [J]", "total [J]", rows=rows)
    when = ""
    if result["first_impact"] is not None:
        when = f", from {result['first_impact']:.6g} to {result['last_impact']:.6g} s"
    lanes = result["lanes"]
    if lanes is not None:
        by = sorted(result["impacts_by_lane"])
        say(f"{lanes} lanes (energies: of lane 0); impacts in a lane: {by[0]} to {by[-1]}, median {by[len(by) // 2]}")
    steps = f"{result['impacts']} impacts{when}; {result['ticks']} steps, {result['rollbacks']} of them taken back"
    if result["chain"]:
        say(steps)
        print_chain_stats(result["chain"])
    else:
        rests = f"{result['resting']} times a contact rested; overlap at most {result['max_penetration']:.2g}"
        say(f"{steps}; {rests}")
    rate = ""
    if result["rate"]:
        unit = "s" if lanes is None else "lane-seconds"
        rate = f", then {result['rate'] * (lanes or 1):.3g} {unit} simulated a second"
    say(
        f"{result['scene']}: {result['frames']} frames, {result['dtype']}, {result['scheme']}; "
        f"{result['seconds_to_first_piece']:.1f} s to compile and start{rate}",
        style="bold",
    )
