"""Windows: steps whose contacts are resolved together, without a search for the times of impact.

Events may be too many to simulate one by one, as in a heap that collapses. A run with a window, for example of 1 ms,
takes ordinary steps if they may be that long. If something touches earlier, the step is a window: contacts that may
touch before its end act from its start, and no time of impact is searched for (`contact/resting/window_targets.py`). So
a second takes at most 1/window windows, each of order 1; all other steps are as exact as without windows.

Nothing passes through anything: no window is longer than `safe_step.py` and `passage.py` allow any step to be. Bodies
that rotate may overlap at its end, by terms of order 2. Contacts that are deep or still close there are left to the
next window, not to the law of single impacts, because their time was not located. The same holds at the start of a run,
so that a run in parts gives the same result. If windows are only used because ticks run out, as in a frame of
`carom.Live`, the next frame starts with ordinary steps, in which these small overlaps disappear.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array
from jax.lax import stop_gradient

from ..contact.contacts import Contacts
from ..contact.gather_scatter import gather
from ..engine.algebra.safe import safe_div
from ..engine.algebra.vec3 import Vec3
from .lanes import Lane, Search
from .proposal import Proposal


def in_window(lane: Lane, h: Array, longest: Array) -> tuple[Array, Array | None]:
    """Return the step to try (*batch) [s], and whether it is a window (None in runs without windows).

    h: (*batch) the step to try without windows [s].
    longest: (*batch) the longest step in which nothing passes through anything [s].
    """
    window, left = lane.search.window, lane.clock.left
    if window is None:
        return h, None
    rounding = 1 - 16 * jnp.finfo(left.dtype).eps
    even = left / jnp.maximum(jnp.ceil(left * rounding / window.length), 1)  # equal windows, without a short last one
    most = stop_gradient(jnp.minimum(even, jnp.minimum(longest, window.sure)))
    most = jnp.where(most >= left * rounding, left, most)
    here = (window.wanted | window.open) & ~lane.fresh & (window.open | (h < most * rounding))
    return jnp.where(here, most, h), here


def after_window(
    lane: Lane,
    search: Search,
    window: Array | None,
    accepted: Array,
    closes: Array,
    sunk: Array,
    deep: Array,
    sure: Array,
) -> Search:
    """Return the search after a step, with the state for windows updated.

    search: the search after the step.
    window: (*batch) whether the step was a window.
    closes: (*batch) whether a contact closes at its end.
    sunk: (*batch) whether a contact overlaps there.
    deep: (*batch) whether it overlaps too deeply, or closes too fast, for ordinary steps.
    sure: (*batch) the longest step in which nothing passes through anything, inf if nothing did in this one [s].
    """
    before = lane.search.window
    if window is None or before is None:
        return search
    known = jnp.where(accepted, jnp.inf, jnp.minimum(before.sure, sure))
    begun = lane.fresh & jnp.where(before.wanted, sunk | closes, deep)
    left = accepted & (begun | (window & (sunk | closes)))
    return search._replace(window=before._replace(sure=known, open=left))


def left_to_window(lane: Lane, search: Search, window: Array | None) -> Array:
    """Return whether contacts that close at the end of a step are left to the next window, (*batch).

    search: the search after the step.
    """
    if window is None or search.window is None:
        return jnp.zeros_like(lane.done)
    return window | (lane.fresh & search.window.open)


def load_after(
    lane: Lane, tried: Proposal, contacts: Contacts, partner: tuple[Array, Array] | None, ends: Array
) -> Vec3 | None:
    """Return `Ready.load` after an accepted step.

    contacts: contacts at its end.
    partner: see `ContactErrors`.
    ends: (*batch) whether a frame ends there.
    """
    if lane.search.window is None:
        return None
    if partner is None:
        return jax.tree.map(jnp.zeros_like, contacts.point)
    was, matched = partner
    rate = safe_div(1, tried.h)
    force = lane.ready.contacts.frame.T @ (tried.impulse * rate)
    here = contacts.frame @ jax.tree.map(lambda x: gather(x, was, 0), force)
    return jax.tree.map(lambda x: jnp.where(matched & ~ends, x, 0), here)
