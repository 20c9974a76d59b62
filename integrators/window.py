"""Windows: steps in which what touches is not looked for in time, but resolved together.

Events may be too many to be followed one by one, as where a heap comes down. A run that is given a window, of 1 ms say,
takes ordinary steps if they may be that long. If something touches earlier, the step is a window: contacts that may
touch before its end act from its start, and no time of impact is searched for (`contact/resting/window_targets.py`). So
a second takes at most 1/window windows, each of order 1; all other steps are as exact as without windows.

Nothing passes through anything: no window is longer than `safe_step.py` and `passage.py` allow any step to be. What
turns may overlap at its end, by terms of order 2. What is deep, or closes there still, is for the next window, not for
the law of single impacts: its time was not located. So it is where a run begins: one in parts is the same. Where
windows are taken but for want of ticks, as in a frame of `carom.Live`, the next frame begins with steps as ever: what
has sunk in by so little comes out in these.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array
from jax.lax import stop_gradient

from .lanes import Lane, Search


def in_window(lane: Lane, h: Array, longest: Array) -> tuple[Array, Array | None]:
    """The step to try (*batch) [s], and whether it is a window; None where there are no windows.

    h: (*batch) to try without them.  longest: (*batch) in which nothing passes through anything [s].
    """
    window, left = lane.search.window, lane.clock.left
    if window is None:
        return h, None
    rounding = 1 - 16 * jnp.finfo(left.dtype).eps
    most = stop_gradient(jnp.minimum(window.length, jnp.minimum(longest, window.sure)))
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
    """What is known after a step.

    search: what else is known.  window: (*batch) whether it was one.
    closes, sunk: (*batch) whether something does, or has, at its end.
    deep: (*batch) whether it has so far, or so fast, that steps of another kind would not do.
    sure: (*batch) the longest step in which nothing passes, as this one tells; inf where nothing did [s].
    """
    before = lane.search.window
    if window is None or before is None:
        return search
    known = jnp.where(accepted, jnp.inf, jnp.minimum(before.sure, sure))
    begun = lane.fresh & jnp.where(before.wanted, sunk | closes, deep)
    left = accepted & (begun | (window & (sunk | closes)))
    return search._replace(window=before._replace(sure=known, open=left))


def left_to_window(lane: Lane, search: Search, window: Array | None) -> Array:
    """Whether (*batch) what closes at the end of a step is for the next window.  search: after the step."""
    if window is None or search.window is None:
        return jnp.zeros_like(lane.done)
    return window | (lane.fresh & search.window.open)
