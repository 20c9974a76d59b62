"""Room for contacts and near pairs, made where a run needs it.

A program has room for a number of contacts and of near pairs that is fixed when it is compiled. A lane that finds more
stops before it loses one (`step.py`) and says how many there are. It is then run again, from its start, by a program
that has room for the next power of two. What a lane does depends on no other lane, and is what it would have done with
this room from the beginning.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.core
import numpy as np

from ..engine.results import CONTACTS_FULL, PAIRS_FULL
from .batch import at_hand
from .rules import Rules

ROOMS: dict[int, str] = {CONTACTS_FULL: "max_contacts", PAIRS_FULL: "max_pairs"}
Needed = Callable[[Any], tuple[Any, Any, Any]]
Run = Callable[[Rules, Any], Any]  # (rules, numbers of lanes, or None for all of them) -> result


def in_enough_room(run: Run, rules: Rules, needed: Needed) -> Any:
    """The result of a run whose lanes all had room, as far as nobody has said how much there is to be.

    needed: of a result, its codes, and the contacts and near pairs that lanes have met, (lanes,) or () each.
    """
    return _in_room(run, rules, needed, given_rooms(rules), None)


def given_rooms(rules: Rules) -> frozenset[str]:
    """The names of the rooms that somebody has set."""
    return frozenset(name for name in ROOMS.values() if getattr(rules, name) is not None)


def with_more(rules: Rules, code: int, contacts: int, pairs: int, given: frozenset[str] = frozenset()) -> Rules:
    """Rules with enough room for a lane that ended so; the same ones if there was enough, or it was given."""
    name = ROOMS.get(code)
    if name is None or name in given:
        return rules
    most = contacts if code == CONTACTS_FULL else pairs
    return replace(rules, **{name: 1 << (most - 1).bit_length()})


def _in_room(run: Run, rules: Rules, needed: Needed, given: frozenset[str], lanes: Any) -> Any:
    result = run(rules, lanes)
    code, *counts = needed(result)
    if isinstance(code, jax.core.Tracer):  # inside jit nobody knows yet
        return result
    codes = at_hand(code)[0]
    if not np.isin(codes, list(ROOMS)).any():
        return result
    groups: dict[Rules, list[int]] = {}
    for lane, end in enumerate(zip(*(x.ravel().tolist() for x in (codes, *at_hand(*counts))), strict=True)):
        ended, contacts, pairs = end
        if (more := with_more(rules, ended, contacts, pairs, given)) != rules:
            groups.setdefault(more, []).append(lane)
    for more, some in groups.items():
        if codes.ndim == 0:
            return _in_room(run, more, needed, given, None)
        which = np.array(some)
        again = _in_room(run, more, needed, given, which if lanes is None else lanes[which])
        result = jax.tree.map(lambda x, new, which=which: _replaced(x, which, new), result, again)
    return result


def _replaced(x: Any, lanes: np.ndarray, new: Any) -> Any:
    if isinstance(x, np.ndarray):
        x[lanes] = new
        return x
    return x.at[lanes].set(new)
