"""Result codes: how a lane ended, in numbers inside jit and in words on the host."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Mapping
from enum import IntEnum
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike


class Code(IntEnum):
    """Result code: how a lane ended. A greater code is more severe, and hides the smaller ones of the same lane.

    0: finished.  Below 100: the run is complete, but somewhere less exact than it promises; the mildest of these is
    EVENTS_FULL: only rows of the log are missing.  From 100 on: the run failed or ended early.
    """

    OK = 0
    EVENTS_FULL = 10
    CHAIN_ROUGH = 20
    SOLVER_UNFINISHED = 30
    IMPACT_UNFINISHED = 40
    CHAIN_HELD = 50
    IMPACTS_CAPPED = 60
    ENERGY_GAINED = 70
    TOUCH_UNFINISHED = 80
    STEPS_TOO_LONG = 90
    MOTORS_TOO_FEW = 110
    LOOPS_FORBID = 120
    LOOPS_OPEN = 125
    BLOCKED = 127
    TICKS_CAPPED = 130
    CONTACTS_FULL = 140
    PAIRS_FULL = 150
    NOT_FINITE = 160

    @property
    def grave(self) -> bool:
        """Return whether the code is an error, not a warning."""
        return self >= LEAST_GRAVE


LEAST_GRAVE = 100
LANES_NAMED = 8  # in a message

# the members by their names alone, as kernels write them
(
    OK, EVENTS_FULL, CHAIN_ROUGH, SOLVER_UNFINISHED, IMPACT_UNFINISHED, CHAIN_HELD, IMPACTS_CAPPED, ENERGY_GAINED,
    TOUCH_UNFINISHED, STEPS_TOO_LONG, MOTORS_TOO_FEW, LOOPS_FORBID, LOOPS_OPEN, BLOCKED, TICKS_CAPPED, CONTACTS_FULL,
    PAIRS_FULL, NOT_FINITE,
) = Code  # fmt: skip

MESSAGES = {
    OK: "finished",
    NOT_FINITE: (
        "a coordinate or velocity is not finite: a control, force or parameter is not, the step is too long for these "
        "forces, or the mass matrix is singular; look for NaN in what you give and for massless links, very stiff "
        "springs, heavy loads on light links, or lower max_dt"
    ),
    STEPS_TOO_LONG: (
        "steps were so long that swings of stiff springs, position motors or light links under heavy loads may have "
        "grown instead of going on: lower max_dt (a scene with contacts or joint limits chooses its steps by itself)"
    ),
    PAIRS_FULL: (
        "more pairs of shapes are near each other than there is room for: raise max_pairs to the number needed, or "
        "lower the margin; a run whose max_pairs is None makes room by itself, but not inside jit"
    ),
    IMPACT_UNFINISHED: (
        "an impact was ended by force, without gain of energy: its sliding was still going on after the most steps it "
        "is given, or its impulse is larger than the numbers' precision can follow; K is nearly singular, or friction "
        "is far above 10: look for a body of nearly no inertia, or use float64"
    ),
    ENERGY_GAINED: (
        "an impact gained energy, as Newton's law with friction may (and the cone projection): use law='stronge', "
        "which never does"
    ),
    IMPACTS_CAPPED: (
        "the bodies were still striking each other after the most impacts an instant is given, and were stopped "
        "together without bounce, though some would have bounced: raise max_impacts, or use impacts='simultaneous'"
    ),
    CONTACTS_FULL: (
        "more contacts touch than there is room for, and the lane stopped there: raise max_contacts to the number "
        "needed; a run whose max_contacts is None makes room by itself, but not inside jit"
    ),
    SOLVER_UNFINISHED: (
        "the impulses of simultaneous contacts did not settle to their tolerance: mass ratios above 1000 and contacts "
        "that jam by friction are the usual causes; bring masses nearer to each other, or lower friction"
    ),
    TOUCH_UNFINISHED: (
        "the time at which two bodies touch, or a joint meets its limit, was not found to the gap band, and they "
        "struck deeper: their gap jumps, as where bodies start inside each other or a joint beyond its limit; set them "
        "apart, start within the limits, or raise gap_band"
    ),
    TICKS_CAPPED: (
        "the most ticks of a run were used up before its end: raise max_ticks; a short max_dt, stiff springs, bodies "
        "that strike each other ever faster, and a gap_band too small for the scene are the usual causes"
    ),
    EVENTS_FULL: (
        "more impacts happened than the event log has room for, and the last ones were left out (the motion is "
        "complete): raise max_events to events.count + events.missed, or give max_events=0 for no log; a run whose "
        "max_events is None makes room by itself, up to a million rows in all, but not inside jit; there the first 64 "
        "of one instant are logged, however much room there is"
    ),
    MOTORS_TOO_FEW: (
        "the accelerations need forces where there is no motor, see residual: mark more degrees of freedom as "
        "actuated, or give passive_force; with few motors use constrained_hybrid: it lets the others move as they will"
    ),
    LOOPS_FORBID: (
        "the accelerations break the loops, A a + bias is not 0: give fewer of them, take q and v that satisfy the "
        "loops, or raise tolerance"
    ),
    LOOPS_OPEN: (
        "the loops could not be closed, and the lane stopped there: a mechanism was moved to where its lengths do not "
        "reach, or on past a dead centre; drive it within its stroke, give a motor with an effort in place of Driven, "
        "or cut the loop; where a mechanism is only fast, lower max_dt"
    ),
    BLOCKED: (
        "a link that is moved by Driven or by loops ran into what cannot give way, and the lane stopped there: a wall, "
        "a limit of its joint, or a body that it presses against a wall; drive it where there is room, or use a motor "
        "with an effort, which yields, in place of Driven"
    ),
    CHAIN_HELD: (
        "joints of a chain let go and caught again without end, at one instant or faster and faster, and were kept "
        "where they were (scraping, rattling): see scrapes and rattles in stats; a joint that should slide can be "
        "bound to a line instead"
    ),
    CHAIN_ROUGH: (
        "accelerations of a chain changed too much even within the shortest step: three joints in a line between two "
        "that are held, or forces that jump, are the usual causes; raise tolerance, or settle"
    ),
}

# numbers that codes had before they were ordered by severity; no code of today has one of them
FORMER = {
    1: NOT_FINITE, 2: PAIRS_FULL, 3: IMPACT_UNFINISHED, 4: ENERGY_GAINED, 5: IMPACTS_CAPPED, 6: CONTACTS_FULL,
    7: SOLVER_UNFINISHED, 8: TOUCH_UNFINISHED, 9: TICKS_CAPPED, 11: MOTORS_TOO_FEW, 12: LOOPS_FORBID, 13: CHAIN_HELD,
    14: CHAIN_ROUGH,
}  # fmt: skip


def renumber(code: np.ndarray) -> np.ndarray:
    """Codes (...) with the former numbers replaced."""
    code = np.asarray(code)
    return np.select([code == former for former in FORMER], [*FORMER.values()], code).astype(code.dtype)


def in_words(code: int) -> str:
    """Return the name and text of a code, also of one that this version does not know."""
    if code in MESSAGES:
        return f"{Code(code).name}: {MESSAGES[Code(code)]}"
    weight = "the run is not what was asked for" if code >= LEAST_GRAVE else "somewhere the run is less exact"
    return f"code {code}: this version of Carom has no such code ({weight}): read it with the version that wrote it"


def no_room(code: Array) -> Array:
    """Return whether there was no room for all contacts or near pairs: the lane stops before it loses one."""
    return (code == CONTACTS_FULL) | (code == PAIRS_FULL)


def finite_code(*values: Array) -> Array:
    """Return NOT_FINITE for lanes with an entry (*batch, n) that is not finite, else OK."""
    well = functools.reduce(jnp.logical_and, [jnp.isfinite(x).all(-1) for x in values])
    return jnp.where(well, OK, NOT_FINITE).astype(jnp.int32)


def gravest(*codes: Array | np.ndarray | int) -> Array:
    """Return the most severe code, lane by lane."""
    return functools.reduce(jnp.maximum, codes, jnp.int32(OK)).astype(jnp.int32)


class SimulationWarning(UserWarning):
    """A run is somewhere less exact than it promises; the message says which lane, where and what to change."""


class SimulationError(RuntimeError):
    """A lane did not finish; the message says which one, when and what to change."""


def any_of(x: np.ndarray) -> bool:
    """Return whether any entry is not 0; quicker than numpy for a single number."""
    return bool(x.any() if x.ndim else x)


def raise_for(code: ArrayLike, t: ArrayLike, needed: Mapping[Any, ArrayLike] | None = None) -> None:
    """Raise if a lane's code is an error, warn if one is not OK; the message names the lanes with the most severe code.
    code: (...), t: (...) the last time each lane was well [s].
    needed: code -> (...) number of rows that a lane with this code needs.
    """
    codes = np.asarray(code)
    if not any_of(codes):
        return
    codes = codes.ravel()
    worst = int(codes.max())
    text = _in_words(worst, codes, np.asarray(t).ravel())
    room = (needed or {}).get(worst)
    if room is not None:
        text += f" ({np.asarray(room).ravel()[codes == worst].max()} needed)"
    if worst >= LEAST_GRAVE:
        raise SimulationError(text)
    warnings.warn(text, SimulationWarning, stacklevel=3)


def why(code: Array | np.ndarray, t: Array | np.ndarray) -> str:
    """Return the codes in words: "finished", or a line for each code, the most severe first.

    code: (...), t: (...) the last time each lane was well [s].
    """
    codes, times = np.asarray(code).ravel(), np.asarray(t).ravel()
    reported = [int(one) for one in np.unique(codes)[::-1] if one != OK]
    return "\n".join(_in_words(one, codes, times) for one in reported) or MESSAGES[OK]


def last_well(t: Array | np.ndarray, *values: Array | np.ndarray) -> np.ndarray:
    """Last time at which all values of a lane (..., frames, n) are finite, (...) [s].  t: (..., frames) [s]."""
    well = np.logical_and.reduce([np.isfinite(x).all(-1) for x in values])
    t = np.asarray(t)
    return np.where(well, t, t[..., :1]).max(-1)


def _in_words(code: int, codes: np.ndarray, t: np.ndarray) -> str:
    lanes = np.flatnonzero(codes == code)
    named = ", ".join(map(str, lanes[:LANES_NAMED])) + (", ..." if lanes.size > LANES_NAMED else "")
    count = f" ({lanes.size} of {codes.size} lanes)" if codes.size > 1 else ""
    which = f"lane{'s' if lanes.size > 1 else ''} {named}{count}, after t = {t[lanes[0]]:.6g} s"
    return f"{which}: {in_words(code)}"
