"""Room for contacts, near pairs and logged impacts, made where a run needs it.

A program has room for a number of contacts and of near pairs that is fixed when it is compiled. A lane that finds more
stops before it loses one (`step.py`) and says how many there are. It is then run again, from its start, by a program
that has room for the next power of two. What a lane does depends on no other lane, and is what it would have done with
this room from the beginning.

A lane whose log is full goes on and counts; it is run again, by the same program, with a log that has room for all,
as long as the logs of all lanes together have no more than `MOST_ROWS`. One with more impacts at one instant than a
program hands on (`Rules.max_logged`) is run again by a program that hands on all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.core
import jax.numpy as jnp
import numpy as np

from ..engine.results import CONTACTS_FULL, PAIRS_FULL, any_of
from .batch import at_hand
from .rules import Rules

ROOMS: dict[int, str] = {CONTACTS_FULL: "max_contacts", PAIRS_FULL: "max_pairs"}
ROWS = 1024  # that a lane's log begins with
MOST_ROWS = 2**20  # of all lanes together: 170 MB in float64
SCENES = 256  # of which it is remembered what room they needed

_NEEDED: dict[Any, Rules] = {}


class Log(NamedTuple):
    """Rows of each lane's log: how many there are, and how many there may be."""

    rows: int
    most: int

    @staticmethod
    def of(lanes: int, given: int | None) -> Log:
        """given: rows a lane that somebody asked for."""
        most = max(1, MOST_ROWS // max(lanes, 1)) if given is None else given
        return Log(min(ROWS, most) if given is None else given, most)


NO_LOG = Log(0, 0)


class Met(NamedTuple):
    """What lanes have met, (lanes,) or () each: codes, contacts, near pairs, impacts that are in the log, and that are
    not."""

    code: Any
    contacts: Any
    pairs: Any
    logged: Any = 0
    missed: Any = 0


Run = Callable[[Rules, int, Any], Any]  # (rules, rows of a log, numbers of lanes, or None for all of them) -> result


def in_enough_room(run: Run, rules: Rules, met: Callable[[Any], Met], log: Log = NO_LOG, scene: Any = None) -> Any:
    """The result of a run whose lanes all had room, as far as nobody has said how much there is to be.

    met: of a result.
    scene: what runs with the same rules are likely to need the same room for (hashable).
    """
    first = _NEEDED.get((scene, rules), rules)
    needed: list[Rules] = []
    result = _in_room(run, first, log, met, given_rooms(rules), None, needed)
    if needed and scene is not None:
        if len(_NEEDED) >= SCENES:
            _NEEDED.clear()
        _NEEDED[scene, rules] = needed[-1]
    return result


def given_rooms(rules: Rules) -> frozenset[str]:
    """The names of the rooms that somebody has set."""
    return frozenset(name for name in ROOMS.values() if getattr(rules, name) is not None)


def with_more(rules: Rules, code: int, contacts: int, pairs: int, given: frozenset[str] = frozenset()) -> Rules:
    """Rules with enough room for a lane that ended so; the same ones if there was enough, or it was given."""
    name = ROOMS.get(code)
    if name is None or name in given:
        return rules
    return replace(rules, **{name: _power_of_two(contacts if code == CONTACTS_FULL else pairs)})


def with_more_rows(rules: Rules, log: Log, logged: int, missed: int) -> tuple[Rules, Log]:
    """A log with enough room for a lane that ended so, or the most there may be; rules with room for more impacts of
    one instant where it was not full. The same ones if nothing was missed, or no room is left."""
    if not missed or log.rows == log.most:
        return rules, log
    if logged < log.rows:
        return replace(rules, max_logged=None), log
    return rules, log._replace(rows=min(log.most, _power_of_two(logged + missed)))


def _in_room(
    run: Run,
    rules: Rules,
    log: Log,
    met: Callable[[Any], Met],
    given: frozenset[str],
    lanes: Any,
    needed: list[Rules],
) -> Any:
    """needed: gets the rules with which most lanes were run again."""
    result = run(rules, log.rows, lanes)
    ends = met(result)
    if isinstance(ends.code, jax.core.Tracer):  # inside jit nobody knows yet
        return result
    codes, missed = at_hand(ends.code, ends.missed)
    if not any_of(codes) and not any_of(missed):  # to ask more takes longer than a short step
        return result
    if not any((codes == code).any() for code in ROOMS) and not (log.rows < log.most and missed.any()):
        return result
    groups: dict[tuple[Rules, Log], list[int]] = {}
    each = np.broadcast_arrays(*at_hand(*ends))
    for lane, (code, contacts, pairs, *impacts) in enumerate(zip(*(x.ravel().tolist() for x in each), strict=True)):
        more = with_more_rows(with_more(rules, code, contacts, pairs, given), log, *impacts)
        if more != (rules, log):
            groups.setdefault(more, []).append(lane)
    for more, some in groups.items():
        if 2 * len(some) >= codes.size and more[0] != rules:
            needed.append(more[0])
        if codes.ndim == 0:
            return _in_room(run, *more, met, given, None, needed)
        which = np.array(some)
        again = _in_room(run, *more, met, given, which if lanes is None else lanes[which], [])
        result = jax.tree.map(lambda x, new, which=which: _replaced(x, which, new), result, again)
    return result


def _replaced(x: Any, lanes: np.ndarray, new: Any) -> Any:
    if x.shape[1:] != new.shape[1:]:  # logs of different lengths
        rows = max(x.shape[1], new.shape[1])
        x, new = _lengthened(x, rows), _lengthened(new, rows)
    if isinstance(x, np.ndarray):
        x[lanes] = new
        return x
    return x.at[lanes].set(new)


def _lengthened(x: Any, rows: int) -> Any:
    """x (lanes, E, ...) with as many rows, the new ones blank (`Record.new`)."""
    more = [(0, 0), (0, rows - x.shape[1])] + [(0, 0)] * (x.ndim - 2)
    blank = 0 if jnp.issubdtype(x.dtype, jnp.floating) else -1
    return (np if isinstance(x, np.ndarray) else jnp).pad(x, more, constant_values=blank)


def _power_of_two(n: int) -> int:
    """The least that is not smaller."""
    return 1 << (n - 1).bit_length()
