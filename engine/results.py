"""Result codes: what happened to a lane, said in numbers inside jit and in words on the host."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

OK = 0
NOT_FINITE = 1
PAIRS_FULL = 2
IMPACT_UNFINISHED = 3
ENERGY_GAINED = 4
IMPACTS_CAPPED = 5
CONTACTS_FULL = 6
SOLVER_UNFINISHED = 7
TOUCH_UNFINISHED = 8
TICKS_CAPPED = 9
EVENTS_FULL = 10
MOTORS_TOO_FEW = 11
LOOPS_FORBID = 12
CHAIN_HELD = 13
CHAIN_ROUGH = 14

MESSAGES = {
    OK: "finished",
    NOT_FINITE: (
        "a coordinate or velocity is not finite: the step is too long for these forces, or the mass matrix is "
        "singular; lower max_dt, or look for massless links and very stiff springs"
    ),
    PAIRS_FULL: (
        "more pairs of shapes are near each other than there is room for: raise max_pairs to the number needed, or "
        "lower the margin; a run whose max_pairs is None makes room by itself, but not inside jit"
    ),
    IMPACT_UNFINISHED: (
        "an impact's sliding was still going on after the most steps it is given, and was ended by force: K is nearly "
        "singular, or friction is far above 10; look for a body of nearly no inertia"
    ),
    ENERGY_GAINED: (
        "an impact gained energy, as Newton's law with friction may (and the cone projection): use law='stronge', "
        "which never does"
    ),
    IMPACTS_CAPPED: (
        "the bodies were still striking each other after the most impacts an instant is given, and were stopped "
        "together without bounce: raise max_impacts, or use impacts='simultaneous'"
    ),
    CONTACTS_FULL: (
        "more contacts touch than there is room for, and the lane stopped there: raise max_contacts to the number "
        "needed; a run whose max_contacts is None makes room by itself, but not inside jit"
    ),
    SOLVER_UNFINISHED: (
        "the impulses of simultaneous contacts did not settle to their tolerance: raise max_turns; mass ratios above "
        "1000 and contacts that jam by friction are the usual causes"
    ),
    TOUCH_UNFINISHED: (
        "the time at which two bodies touch was not found to the gap band, and they struck each other deeper: their "
        "gap jumps, as where bodies start inside each other; set them apart, or raise gap_band"
    ),
    TICKS_CAPPED: (
        "the most ticks of a run were used up before its end: raise max_ticks; bodies that strike each other ever "
        "faster, or a gap_band too small for the scene, are the usual causes"
    ),
    EVENTS_FULL: (
        "more impacts happened than the event log has room for, and the last ones were left out (the motion is "
        "complete): raise max_events to the number in events.count, or give max_events=0 for no log; of one instant "
        "the first 64 are logged, however much room there is"
    ),
    MOTORS_TOO_FEW: (
        "the accelerations need forces where there is no motor, see residual: mark more degrees of freedom as "
        "actuated, or give passive_force; with few motors use constrained_hybrid: it lets the others move as they will"
    ),
    LOOPS_FORBID: (
        "the accelerations break the loops, A a + bias is not 0: give fewer of them, take q and v that satisfy the "
        "loops, or raise tolerance"
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


# a run that ends with one of these is not what was asked for; the others say where it is less exact
GRAVE = (NOT_FINITE, PAIRS_FULL, CONTACTS_FULL, TICKS_CAPPED, EVENTS_FULL, MOTORS_TOO_FEW, LOOPS_FORBID)


def no_room(code: Array) -> Array:
    """Whether there was no room for all contacts or near pairs: a lane stops there, before it loses one."""
    return (code == CONTACTS_FULL) | (code == PAIRS_FULL)


def first_code(*codes: Array) -> Array:
    """The first grave code, or else the first that is not OK, lane by lane."""
    grave = [functools.reduce(jnp.logical_or, (code == bad for bad in GRAVE)) for code in codes]
    return jnp.select([*grave, *(code != OK for code in codes)], [*codes, *codes], OK)


class SimulationWarning(UserWarning):
    """Somewhere a run is less exact than it promises; the message says which lane, where and what to change."""


class SimulationError(RuntimeError):
    """A lane did not finish; the message says which, when and what to change."""


def raise_for(code: Any, t: Any, needed: Mapping[int, Any] | None = None) -> None:
    """Raise for the first lane whose code is grave; warn of the first whose code is not OK.

    code: (...), t: (...) the last time each lane was well [s].
    needed: code -> (...) how much room a lane with this code needs.
    """
    codes = np.asarray(code).ravel()
    if not codes.any():
        return
    times = np.asarray(t).ravel()
    grave = np.flatnonzero(np.isin(codes, GRAVE))
    if grave.size:
        raise SimulationError(_said(codes, times, grave, needed))
    light = np.flatnonzero(codes != OK)
    if light.size:
        warnings.warn(_said(codes, times, light, needed), SimulationWarning, stacklevel=3)


def _said(codes: np.ndarray, t: np.ndarray, bad: np.ndarray, needed: Mapping[int, Any] | None) -> str:
    lane = int(bad[0])
    room = (needed or {}).get(int(codes[lane]))
    number = "" if room is None else f" ({int(np.asarray(room).ravel()[lane])} needed)"
    count = f" ({bad.size} of {codes.size} lanes)" if codes.size > 1 else ""
    return f"lane {lane}{count}, after t = {t[lane]:.6g} s: {MESSAGES[int(codes[lane])]}{number}"
