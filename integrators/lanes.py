"""Lanes: the data that a tick passes to the next, for one scene or for many side by side.

A lane has an accepted state and its contacts, and searches for the next state to accept. A rollback restores only
`State`: everything else follows from it, and is stored only to avoid computing it again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from ..collision.passage import Clearances
from ..contact.contact_jacobian import ContactJacobian
from ..contact.contacts import Contacts
from ..contact.curvature import ContactKinematics
from ..contact.impulses import ContactImpulses
from ..engine.algebra.vec3 import Vec3
from ..engine.compaction import in_front
from ..engine.dynamics.trees import trees_of
from ..engine.model import Model
from ..engine.state import State
from .clock import Clock
from .clocks import ONE, Clocks
from .motion.forces import Drive


class Ready(NamedTuple):
    """An accepted state, and the data prepared for the next step.

    state: the accepted state.
    contacts: its contacts.
    rows: their Jacobian.
    u: (C, *batch) their relative velocities, in their frames [m/s].
    kinematics: their contact kinematics.
    drive: controls and external forces until the next state.
    dv: (*batch, nv) accelerations without contacts [rad/s^2, m/s^2].
    longest: longest step of each clock, (*batch) or (T,), in which nothing passes through anything undetected [s].
    touch: expected time of each clock until the next touch [s].
    clearances: distances that links of trees may move before they are checked; None if no link needs a check.
    load: forces of the contacts in the step that led here; 0 for others, and at the start of a frame, which does not
        depend on earlier ones; None in runs without windows [N].
    """

    state: State
    contacts: Contacts
    rows: ContactJacobian
    u: Vec3
    kinematics: ContactKinematics
    drive: Drive
    dv: Array
    longest: Array
    touch: Array
    clearances: Clearances | None
    load: Vec3 | None = None


class Correction(NamedTuple):
    """Correction of the end of a step: contacts that it carried touch there and move on as intended (`correction.py`).

    shift: (T + 1, w, *batch) displacement, in tree blocks [rad, m].
    kick: (T + 1, w, *batch) change of velocity, in tree blocks [rad/s, m/s].
    times: number of corrections of each clock.
    impulses: impulses of the contacts that change the velocity; None if no run reports them.
    """

    shift: Array
    kick: Array
    times: Array
    impulses: ContactImpulses | None = None

    @staticmethod
    def none(model: Model, t: Array, left: Array, reports: bool) -> Correction:
        """Return no correction, for a lane at the time t (*batch).

        left: time left of each clock.
        reports: whether the run reports impulses.
        """
        trees = trees_of(model.topology)
        still = jnp.zeros((trees.n + 1, trees.w, *t.shape), t.dtype)
        none = ContactImpulses.none(model, t.astype(still.dtype)) if reports else None
        return Correction(still, still, jnp.zeros(left.shape, jnp.int32), none)


class Window(NamedTuple):
    """The search's state for windows (`window.py`), (*batch).

    length: largest length of a window; the windows up to a frame are equal [s].
    wanted: whether windows may be taken.
    sure: the longest step in which nothing passes through anything, as far as known [s].
    open: whether the last window left a contact that closes or is deep.
    """

    length: Array
    wanted: Array
    sure: Array
    open: Array


class Search(NamedTuple):
    """The search for the next step of each clock: (*batch), or (T,) if trees have their own clocks.

    high: the shortest step from the accepted state that was too long, inf if there was none [s].
    aim: the step to try next, inf for the longest allowed [s].
    rejected: the number of rejected steps from the accepted state.
    correction: correction of the step that was tried last.
    fine: the longest step that is likely to be accurate for rolling contacts, inf if any step is [s].
    short: the number of accepted steps in a row that were too short to make progress (`time_control.py`).
    window: the state for windows; None in runs without windows.
    """

    high: Array
    aim: Array
    rejected: Array
    correction: Correction
    fine: Array
    short: Array
    window: Window | None = None

    @staticmethod
    def new(like: Array, correction: Correction, window: Window | None = None) -> Search:
        """Return the start of a search."""
        inf = jnp.full(like.shape, jnp.inf, like.dtype)
        none = jnp.zeros(like.shape, jnp.int32)
        window = None if window is None else window._replace(sure=inf, open=none > 0)
        return Search(inf, inf, none, jax.tree.map(jnp.zeros_like, correction), inf, none, window)


class Counts(NamedTuple):
    """Statistics of a lane, (*batch).

    ticks: ticks in which the lane was not done.
    rollbacks: ticks whose step was rejected.
    impacts: impacts.
    resting: resting contacts, summed over accepted steps.
    depth: the deepest overlap of an accepted state [m, rad].
    contacts: the most contacts at one time.
    pairs: near pairs of the fullest group, if its capacity was exceeded; otherwise 0.
    windows: accepted steps that were windows.
    """

    ticks: Array
    rollbacks: Array
    impacts: Array
    resting: Array
    depth: Array
    contacts: Array
    pairs: Array
    windows: Array

    @staticmethod
    def none(like: Array) -> Counts:
        zero = jnp.zeros(like.shape, jnp.int32)
        return Counts(zero, zero, zero, zero, jnp.zeros_like(like), zero, zero, zero)

    def plus(
        self,
        accepted: Array,
        busy: Array,
        full: Array,
        resting: Array,
        window: Array | None,
        impacts: Array,
        contacts: Contacts,
        pairs: Array,
    ) -> Counts:
        """Return the statistics after a tick.

        accepted, busy: (*batch) bool, whether the step was accepted, and whether the lane was busy.
        full: (*batch) whether the capacity for contacts or near pairs was exceeded, so that the lane stops.
        resting: (C, *batch) bool, resting contacts.
        window: (*batch) whether the step was a window; None in runs without windows.
        contacts: contacts at the end of the tick.
        pairs: (*batch) near pairs, if their capacity was exceeded.
        """
        counted = accepted | full
        there = jnp.maximum(contacts.active.sum(0, dtype=jnp.int32), contacts.needed)
        return Counts(
            self.ticks + busy,
            self.rollbacks + (busy & ~accepted),
            self.impacts + jnp.where(accepted, impacts, 0),
            self.resting + jnp.where(accepted, resting.sum(0, dtype=jnp.int32), 0),
            jnp.where(accepted, self.deepest(contacts), self.depth),
            jnp.where(counted, jnp.maximum(self.contacts, there), self.contacts),
            jnp.where(counted, jnp.maximum(self.pairs, pairs), self.pairs),
            self.windows if window is None else self.windows + (accepted & window),
        )

    def deepest(self, contacts: Contacts) -> Array:
        return jnp.maximum(self.depth, jnp.where(contacts.active, -contacts.gap, 0).max(0, initial=0))


class Lane(NamedTuple):
    """The state of a run between two ticks.

    ready: the accepted state.
    search: the search for the next one.
    clock: time to the next frame.
    counts: statistics.
    code: (*batch) the gravest result code so far.
    done: (*batch) whether the run has ended.
    fresh: (*batch) whether contacts were not detected yet.
    late: (T, *batch) zeros; their derivative is the time by which each tree is behind the clock [s].
    asleep: (*batch) whether the last tick changed nothing, so that no other will until the drive changes.
    island: (T, *batch) trees that sleep, see `islands_asleep.py`; None if no tree ever sleeps.
    clocks: the clock of each tree.
    tried: the last proposal; None if it is not needed again.
    """

    ready: Ready
    search: Search
    clock: Clock
    counts: Counts
    code: Array
    done: Array
    fresh: Array
    late: Array
    asleep: Array
    island: Array | None = None
    clocks: Clocks = ONE
    tried: Any = None

    def in_windows(self, wanted: Array) -> Lane:
        """Return the lane with windows allowed or not (*batch) from now on.  Only for runs with windows."""
        window: Any = self.search.window
        return self._replace(search=self.search._replace(window=window._replace(wanted=wanted)))

    def contacts_in_front(self) -> Lane:
        """Return the same lane; masked values beyond its last contact are not computed (`in_front`)."""
        contacts = self.ready.contacts
        return self._replace(ready=self.ready._replace(contacts=contacts._replace(active=in_front(contacts.active))))


def select(yes: Array, new: Lane, old: Lane) -> Lane:
    """Return `new` in lanes where yes (*batch), else `old`: states have lanes first, contacts have them last."""
    wide = yes[..., None]

    def first(x: Array, y: Array) -> Array:
        return jnp.where(wide if x.ndim > yes.ndim else yes, x, y)

    def last(x: Array, y: Array) -> Array:
        return jnp.where(yes, x, y)

    def ready() -> Iterator[Any]:
        for name, a, b in zip(Ready._fields, new.ready, old.ready, strict=True):
            yield jax.tree.map(first if name in ("state", "drive", "dv", "clearances") else last, a, b)

    rest = jax.tree.map(last, new._replace(ready=None), old._replace(ready=None))  # type: ignore[arg-type]
    return rest._replace(ready=Ready(*ready()))
