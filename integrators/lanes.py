"""Lanes: what a tick carries to the next, for one scene or for many side by side.

A lane stands at an accepted state, knows what touches there, and looks for the next state to accept. Only `State` is
what a rollback restores: all else follows from it, and is kept so that it need not be found again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from ..collision.passage import Rooms
from ..contact.contacts import Contacts
from ..contact.curvature import ContactKinematics
from ..contact.jacobian import ContactJacobian
from ..contact.readout import Pushed
from ..engine.algebra.vec3 import Vec3
from ..engine.dynamics.trees import trees_of
from ..engine.model import Model
from ..engine.state import State
from .clock import Clock
from .clocks import ONE, Clocks
from .motion.forces import Drive


class Ready(NamedTuple):
    """An accepted state with all that is known of it.

    contacts, rows: of the state.  u: (C, *batch) how its contacts move, in their frames [m/s].  course: where they go.
    drive: what acts from outside until the next state.
    dv: (*batch, nv) accelerations without contacts.
    longest: of each clock, (*batch) or (T,), the step that passes through nothing unseen [s].  touch: the same, when
    something is expected to touch [s].
    rooms: what a step from here may do unseen, of links of trees; None where there are none.
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
    rooms: Rooms | None


class Correction(NamedTuple):
    """What the end of a step is put right by, so that contacts that it carried touch there and go on (`put_right.py`).

    shift, kick: (T + 1, w, *batch) displacement and change of velocity, in tree blocks.
    times: of each clock how often that was looked for.
    pushed: by which contacts the velocity changes; None where no run reports it.
    """

    shift: Array
    kick: Array
    times: Array
    pushed: Pushed | None = None

    @staticmethod
    def none(model: Model, t: Array, left: Array, reports: bool) -> Correction:
        """Of a lane at the time t (*batch), whose clocks have some time left.  reports: whether the run does."""
        trees = trees_of(model.topology)
        still = jnp.zeros((trees.n + 1, trees.w, *t.shape), t.dtype)
        none = Pushed.none(model, t.astype(still.dtype)) if reports else None
        return Correction(still, still, jnp.zeros(left.shape, jnp.int32), none)


class Window(NamedTuple):
    """Of windows (`window.py`), (*batch).

    length: no step is made shorter than this for what touches [s].
    wanted: whether they may be taken.
    sure: the longest step in which nothing passes through anything, as far as is known [s].
    open: whether the last one left something that closes, or is deep.
    """

    length: Array
    wanted: Array
    sure: Array
    open: Array


class Search(NamedTuple):
    """What was learned from the steps tried so far, of each clock: (*batch), or (T,) where trees have their own.

    high: the shortest step from the accepted state that was too long, inf if none was [s].
    aim: the step to try next, inf for the longest allowed [s].
    rejected: how many steps from the accepted state were rejected.
    correction: of the step tried last.
    fine: the longest step that is likely to be fine enough for rolling contacts, inf if any may be [s].
    short: how many accepted steps in a row were too short to be useful (`time_control.py`).
    window: of windows; None where there are none.
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
        """Nothing was tried yet."""
        inf = jnp.full(like.shape, jnp.inf, like.dtype)
        none = jnp.zeros(like.shape, jnp.int32)
        window = None if window is None else window._replace(sure=inf, open=none > 0)
        return Search(inf, inf, none, jax.tree.map(jnp.zeros_like, correction), inf, none, window)


class Counts(NamedTuple):
    """What a lane has met so far.

    ticks: (*batch) in which the lane was not done.
    rollbacks: (*batch) of these, the ones that were taken back.
    impacts: (*batch).
    resting: (*batch) resting contacts, added up over accepted steps.
    depth: (*batch) the deepest overlap of an accepted state [m, rad].
    contacts: (*batch) the most contacts at one time.
    pairs: (*batch) near pairs of the fullest group, where there was no room for all; 0 where there was.
    windows: (*batch) accepted steps that were windows.
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
        """After a tick of the lanes that were busy.

        accepted, busy: (*batch) bool.
        full: (*batch) whether there was no room for all contacts or near pairs, and the lane stops.
        resting: (C, *batch) bool.
        window: (*batch) whether the step was a window; None where there are none.
        contacts: at the end of the tick.
        pairs: (*batch) near pairs, where there was no room for all.
        """
        seen = accepted | full
        there = jnp.maximum(contacts.active.sum(0, dtype=jnp.int32), contacts.needed)
        return Counts(
            self.ticks + busy,
            self.rollbacks + (busy & ~accepted),
            self.impacts + jnp.where(accepted, impacts, 0),
            self.resting + jnp.where(accepted, resting.sum(0, dtype=jnp.int32), 0),
            jnp.where(accepted, self.deepest(contacts), self.depth),
            jnp.where(seen, jnp.maximum(self.contacts, there), self.contacts),
            jnp.where(seen, jnp.maximum(self.pairs, pairs), self.pairs),
            self.windows if window is None else self.windows + (accepted & window),
        )

    def deepest(self, contacts: Contacts) -> Array:
        return jnp.maximum(self.depth, jnp.where(contacts.active, -contacts.gap, 0).max(0, initial=0))


class Lane(NamedTuple):
    """code: (*batch) the first result code that is not OK.  done: (*batch) whether nothing is left to do.
    fresh: (*batch) whether nothing but its state is known yet.
    late: (T, *batch) zeros; their derivative is by how much each tree's time is behind the clock's [s].
    asleep: (*batch) whether the last tick led to where it began, so that all others do until the drive changes.
    island: (T, *batch) which trees sleep, see `islands_asleep.py`; None where none ever do.
    clocks: which trees go by which clock.
    tried: the last proposal; None where it is of no further use."""

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
        """Whether (*batch) windows may be taken from here on; of lanes that have them."""
        window: Any = self.search.window
        return self._replace(search=self.search._replace(window=window._replace(wanted=wanted)))


def select(yes: Array, new: Lane, old: Lane) -> Lane:
    """`new` in lanes where yes (*batch), else `old`: states have their lanes first, contacts have them last."""
    wide = yes[..., None]

    def first(x: Array, y: Array) -> Array:
        return jnp.where(wide if x.ndim > yes.ndim else yes, x, y)

    def last(x: Array, y: Array) -> Array:
        return jnp.where(yes, x, y)

    def ready() -> Any:
        for name, a, b in zip(Ready._fields, new.ready, old.ready, strict=True):
            yield jax.tree.map(first if name in ("state", "drive", "dv", "rooms") else last, a, b)

    rest = jax.tree.map(last, new._replace(ready=None), old._replace(ready=None))  # type: ignore[arg-type]
    return rest._replace(ready=Ready(*ready()))
