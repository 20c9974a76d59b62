"""A report on the time of a frame, in words."""

from __future__ import annotations

from collections import Counter

import numpy as np

from ...collision.poses import Array
from ...engine.dynamics.trees import trees_of
from ...integrators.frame import Frame
from .touching import Bodies

MOST = 3  # pairs that are named
SAME = 1e-9  # [s] impacts closer in time are one instant


def explain_frame(
    bodies: Bodies, frame: Frame, dt: float, took: float, waited: float, *, waiting: int, windowed: bool
) -> str:
    """Explain a frame.  frame: the last one, with arrays of numpy.  dt: its length, took: its computation, waited: that
    part of it in which a larger program was made [s].  waiting: number of spare bodies.  windowed: whether the world
    has windows."""
    hits, trees = frame.impacts, trees_of(bodies.topology)
    n, ticks, windows = int(hits.count), int(frame.ticks), int(frame.windows)
    asleep = int((np.asarray(frame.island) >= 0).sum())
    lines = [
        f"frame of {1e3 * dt:.4g} ms, worked out in {1e3 * took:.3g} ms: {ticks} tick{'s' * (ticks != 1)}"
        + (f" of {1e3 * took / ticks:.3g} ms" if ticks and not waited else "")
        + (f", {windows} of them windows" if windows else "")
    ]
    if waited:
        what = "it needed more contacts or near pairs than it had room for: see max_contacts and max_pairs"
        lines.append(f"{waited:.3g} s of that were for a larger program, which is there from now on: {what}")
    pairs = np.asarray(hits.pair)[:n]
    pairs = pairs[pairs >= 0]
    if n:
        times = np.asarray(hits.t)[: len(pairs)]
        instants = 1 + int((np.diff(np.sort(times)) > SAME).sum()) if len(times) else 0
        lines.append(f"impacts: {n} at {instants} instant{'s' * (instants != 1)}: {_busiest_bodies(bodies, pairs)}")
    touching = np.asarray(frame.after.pair)
    touching = touching[touching >= 0]
    lines.append(
        f"contacts: at most {int(frame.contacts)} at a time"
        + (f", {len(touching)} at its end: {_busiest_bodies(bodies, touching)}" if len(touching) else "")
    )
    awake, pool = trees.n - asleep - waiting, f", {waiting} waiting in the pool" if waiting else ""
    lines.append(f"bodies: {awake} awake, {asleep} asleep{pool}")
    if not awake:
        lines.append("everything sleeps: the same frame comes again, and nothing is computed")
    if float(frame.left) > 0:
        other = "give a longer window" if windowed else "give window=1e-3"
        lines.append(f"{1e3 * float(frame.left):.3g} ms were not reached: raise max_ticks, or {other}")
    elif windows:
        lines.append("ticks were used up, and what was left passed in windows: raise max_ticks for more exact impacts")
    return "\n".join(lines)


def _busiest_bodies(bodies: Bodies, pairs: Array) -> str:
    """Names of the bodies that occur most among these rows of `topology.pairs`."""
    couples, couple_of, _ = bodies.couples
    most = Counter(couple_of[pairs].tolist()).most_common()
    shown = [f"{' and '.join(couples[k])} {count}" for k, count in most[:MOST]]
    return ", ".join(shown) + (f", {len(most) - MOST} pairs more" if len(most) > MOST else "")
