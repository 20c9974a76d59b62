"""Capacities for contacts, near pairs and logged impacts, raised when a run needs it.

The capacities of a program for contacts and near pairs are fixed when it is compiled. A lane that finds more stops
before it loses one (`step.py`) and reports how many there are. It is then run again, from its start, by a program whose
capacity is the next power of two. The result of a lane depends on no other lane, and is the same as with this capacity
from the beginning. So runs begin with room for the contacts and near pairs that trees usually have, not for all.

A lane whose log is full goes on and counts its impacts. It is run again, by the same program, with a log that is long
enough, provided that the logs of all lanes together have at most `MOST_ROWS` rows. A lane with more impacts at one
instant than a program records (`Rules.max_logged`) is run again by a program that records all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple, TypeVar

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from ..contact.determine import default_capacity
from ..engine.results import CONTACTS_FULL, PAIRS_FULL, any_of
from ..engine.topology import Topology
from .batch import at_hand
from .rules import Rules

T = TypeVar("T")
CAPACITIES: dict[int, str] = {CONTACTS_FULL: "max_contacts", PAIRS_FULL: "max_pairs"}
ROWS = 1024  # rows of a lane's log at first
MOST_ROWS = 2**20  # rows of the logs of all lanes together: 170 MB in float64
FEW, LEAST = 1 / 4, 24  # first capacity: part of the contacts of all shapes of trees on a floor; least number
FEW_NEAR = 32  # near pairs of shapes of two kinds, in scenes with trees: most pairs of a robot's links are never near
SCENES = 256  # number of scenes whose needed capacities are remembered

_NEEDED: dict[tuple[Topology, Rules], Rules] = {}


class LogCapacity(NamedTuple):
    """Length of each lane's log.

    rows: present length.
    most: largest length.
    """

    rows: int
    most: int

    @staticmethod
    def of(lanes: int, given: int | None) -> LogCapacity:
        """Return the capacity.  given: rows of each lane that the user asked for; None: the default."""
        most = max(1, MOST_ROWS // max(lanes, 1)) if given is None else given
        return LogCapacity(min(ROWS, most) if given is None else given, most)


NO_LOG = LogCapacity(0, 0)


class CapacityNeeds(NamedTuple):
    """Capacities that lanes needed, (lanes,) or ().

    code: result codes.
    contacts: the most contacts at one time.
    pairs: the most near pairs of a group.
    logged: impacts in the log.
    missed: impacts that are not in the log.
    """

    code: ArrayLike
    contacts: ArrayLike
    pairs: ArrayLike
    logged: ArrayLike = 0
    missed: ArrayLike = 0


Run = Callable[[Rules, int, np.ndarray | None], T]  # (rules, rows of a log, indices of lanes or None for all) -> result


def with_enough_capacity(
    run: Run[T],
    rules: Rules,
    met: Callable[[T], CapacityNeeds],
    log: LogCapacity = NO_LOG,
    scene: Topology | None = None,
) -> T:
    """Run with capacities that are enough for all lanes, except those that the user has set, and return the result.

    met: result -> capacities that its lanes needed.
    scene: later runs of this scene with the same rules begin with the capacities that this one needed. None: inside
        jit, where no run is repeated.
    """
    first = rules if scene is None else _NEEDED.get((scene, rules)) or _usual(rules, scene)
    needed: list[Rules] = []
    result = _run_with_capacity(run, first, log, met, given_capacities(rules), None, needed)
    if first is not rules and isinstance(met(result).code, jax.core.Tracer):  # inside jit, with a constant model
        return run(rules, log.rows, None)
    if needed and scene is not None:
        if len(_NEEDED) >= SCENES:
            _NEEDED.clear()
        _NEEDED[scene, rules] = needed[-1]
    return result


def _usual(rules: Rules, topology: Topology) -> Rules:
    """Return rules with the usual capacity of the scene for contacts and near pairs, unless the user has set it."""
    few, default = max(default_capacity(topology, FEW), LEAST), default_capacity(topology)
    if rules.max_contacts is None and few < default:
        rules = replace(rules, max_contacts=few)
    if rules.max_pairs is None and len(topology.pairs) > FEW_NEAR and max(topology.parents) >= 0:
        rules = replace(rules, max_near=FEW_NEAR)
    return rules


def given_capacities(rules: Rules) -> frozenset[str]:
    """Return the names of the capacities that the user has set."""
    return frozenset(name for name in CAPACITIES.values() if getattr(rules, name) is not None)


def raise_capacity(rules: Rules, code: int, contacts: int, pairs: int, given: frozenset[str] = frozenset()) -> Rules:
    """Return rules with enough capacity for a lane with this code and these needs.

    They are the same rules if the capacity was enough, or set by the user.
    """
    if code == PAIRS_FULL and rules.max_near is not None:
        return replace(rules, max_near=_power_of_two(pairs))
    name = CAPACITIES.get(code)
    if name is None or name in given:
        return rules
    return replace(rules, **{name: _power_of_two(contacts if code == CONTACTS_FULL else pairs)})


def raise_log_capacity(rules: Rules, log: LogCapacity, logged: int, missed: int) -> tuple[Rules, LogCapacity]:
    """Return rules and log with enough capacity for a lane with these logged and missed impacts.

    If it was not full, the rules record more impacts of one instant; otherwise it gets longer, up to its largest
    length. Both stay the same if no impact was missed, or if neither helps.
    """
    if not missed:
        return rules, log
    if logged < log.rows:
        return replace(rules, max_logged=None), log
    return rules, log._replace(rows=min(log.most, _power_of_two(logged + missed)))


def _run_with_capacity(
    run: Run[T],
    rules: Rules,
    log: LogCapacity,
    met: Callable[[T], CapacityNeeds],
    given: frozenset[str],
    lanes: np.ndarray | None,
    needed: list[Rules],
) -> T:
    """Run, and run lanes again whose capacity was exceeded.

    needed: collects the rules with which most lanes were run again.
    """
    result = run(rules, log.rows, lanes)
    ends = met(result)
    if isinstance(ends.code, jax.core.Tracer):  # inside jit the values are unknown
        return result
    codes, missed = at_hand(ends.code, ends.missed)
    if not any_of(codes) and not any_of(missed):  # more checks would take longer than a short step
        return result
    can_log_more = log.rows and (log.rows < log.most or rules.max_logged is not None)
    if not any((codes == code).any() for code in CAPACITIES) and not (can_log_more and missed.any()):
        return result
    groups: dict[tuple[Rules, LogCapacity], list[int]] = {}
    each = np.broadcast_arrays(*at_hand(*ends))
    for lane, (code, contacts, pairs, *impacts) in enumerate(zip(*(x.ravel().tolist() for x in each), strict=True)):
        more = raise_log_capacity(raise_capacity(rules, code, contacts, pairs, given), log, *impacts)
        if more != (rules, log):
            groups.setdefault(more, []).append(lane)
    for more, some in groups.items():
        if 2 * len(some) >= codes.size and more[0] != rules:
            needed.append(more[0])
        if codes.ndim == 0:
            return _run_with_capacity(run, *more, met, given, None, needed)
        which = np.array(some)
        again = _run_with_capacity(run, *more, met, given, which if lanes is None else lanes[which], [])
        result = jax.tree.map(lambda x, new, which=which: _replace_lanes(x, which, new), result, again)
    return result


def _replace_lanes(x: Array | np.ndarray, lanes: np.ndarray, new: Array | np.ndarray) -> Array | np.ndarray:
    if x.shape[1:] != new.shape[1:]:  # logs of different lengths
        rows = max(x.shape[1], new.shape[1])
        x, new = _lengthen(x, rows), _lengthen(new, rows)
    if isinstance(x, np.ndarray):
        x[lanes] = new
        return x
    return x.at[lanes].set(new)


def _lengthen(x: Array | np.ndarray, rows: int) -> Array | np.ndarray:
    """Return x (lanes, E, ...) lengthened to E = rows with blank rows (`Record.new`)."""
    more = [(0, 0), (0, rows - x.shape[1])] + [(0, 0)] * (x.ndim - 2)
    blank = 0 if jnp.issubdtype(x.dtype, jnp.floating) else -1
    return (np if isinstance(x, np.ndarray) else jnp).pad(x, more, constant_values=blank)


def _power_of_two(n: int) -> int:
    """Return the least power of two that is at least n."""
    return 1 << (n - 1).bit_length()
