"""What is seen at the end of a step, and what derivatives are: the time of an impact moves with all it depends on.

A step that ends where something strikes ends at the root of a gap, g(h, x) = 0, whatever search found it. The search
has no derivative here (`time_control.py`); its result has, by the implicit function theorem: with g' = u_n the rate at
which the gap closes and dg what the gap changes by at fixed h,

    dh = -dg / u_n

and the end moves on by dh along the flow. The velocities then jump by the law of impact, and the rest of the run
starts dh later. Together that is the saltation matrix of hybrid systems (Aizerman and Gantmacher 1958; Leine and
Nijmeijer 2004, section 8.4), which is written nowhere: the chain rule makes it of these three.

Where several contacts strike at once, the one that closes fastest sets the time, as it is resolved first.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from ..collision.detect import detect
from ..collision.proximities import Proximities
from ..contact.contacts import Contacts
from ..contact.determine import determine, phases
from ..contact.rows import Rows, relative, rows_of
from ..engine.algebra.bounded import filled, is_zero
from ..engine.dynamics.kinematics import coordinate_rates
from ..engine.dynamics.trees import to_blocks, trees_of
from ..engine.model import Model
from ..engine.state import State
from .lanes import Lane
from .motion.forces import acceleration, column
from .prepare import reach
from .proposal import Proposal
from .rules import Rules


class Seen(NamedTuple):
    """What there is at some coordinates: what is near, what touches, and the rows of that."""

    near: Proximities
    contacts: Contacts
    rows: Rows


def seen(rules: Rules, model: Model, q: Array) -> Seen:
    """At the coordinates q (*batch, nq)."""
    with jax.named_scope("detect"):
        margin = reach(model)
        near = detect(model, q, margin=jnp.inf if margin is None else margin, max_pairs=rules.max_pairs)
    with jax.named_scope("determine"):
        contacts = determine(model, q, near, max_contacts=rules.max_contacts, limits=rules.limits)
        return Seen(near, contacts, rows_of(model, q, contacts))


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def seen_in_time(rules: Rules, model: Model, lane: Lane, tried: Proposal) -> tuple[Proposal, Seen]:
    """The end of a proposal and what is seen there. Where something strikes, the end is when it does."""
    return tried, seen(rules, model, tried.state.q)


def _moved(rules: Rules, primals: Any, tangents: Any) -> Any:
    model, lane, tried = primals
    fields, tree = jax.tree.flatten(model)
    slopes = jax.tree.leaves(tangents[0], is_leaf=is_zero)
    varied = [k for k, d in enumerate(slopes) if not is_zero(d)]

    def look(q: Array, *own: Array) -> Seen:
        new = dict(zip(varied, own, strict=True))
        return seen(rules, jax.tree.unflatten(tree, [new.get(k, x) for k, x in enumerate(fields)]), q)

    d: Proposal = filled(tangents[2], tried)
    numbers, changes = [fields[k] for k in varied], [slopes[k] for k in varied]
    there, linear = jax.linearize(look, tried.state.q, *numbers)
    if rules.time_control != "fixed":  # there, steps end where they end
        gap = linear(jnp.zeros_like(d.state.q), *changes).contacts.gap if varied else None
        d = _shifted(model, lane, tried, there, d, gap)
    return (tried, there), (d, linear(d.state.q, *changes))


def _shifted(model: Model, lane: Lane, tried: Proposal, there: Seen, d: Proposal, gap: Any) -> Proposal:
    """The changes d of a proposal, with its end moved on to where what strikes there touches.

    gap: what the gaps (C, *batch) change by because surfaces do, at fixed q; None: they do not.
    """
    state, trees = tried.state, trees_of(model.topology)
    u_n = relative(there.rows, to_blocks(trees, state.v)).z
    now = phases(model, there.contacts, u_n).impact & ~lane.fresh  # a run does not start before it does
    first = jnp.argmin(jnp.where(now, u_n, jnp.inf), 0)
    here = now & (jnp.arange(len(now)).reshape(-1, *(1,) * (now.ndim - 1)) == first)
    still = there.rows._replace(drift=jax.tree.map(jnp.zeros_like, there.rows.drift))
    opens = relative(still, to_blocks(trees, _displacement(model, state.q, d.state.q))).z
    opens = opens if gap is None else opens + gap
    dh = (jnp.where(here, opens, 0) / jnp.where(here, -u_n, 1)).sum(0)
    ready, h = lane.ready, jnp.where(lane.fresh, 1, tried.h)
    dv = acceleration(model, state, h, ready.told.motors, tried.spread)
    rates = coordinate_rates(model, state.q, state.v), dv
    strikes = column(now.any(0))
    q, v = (x + jnp.where(strikes, rate, 0) * column(dh) for x, rate in zip((d.state.q, d.state.v), rates, strict=True))
    return d._replace(state=State(q, v, d.state.t + dh), h=d.h + dh)


def _displacement(model: Model, q: Array, dq: Array) -> Array:
    """The joint velocities (*batch, nv) whose coordinate rates at q are dq: those are orthogonal, but for lengths."""
    unit = jnp.ones((*q.shape[:-1], model.topology.nv), q.dtype)
    rates, back = jax.vjp(lambda v: coordinate_rates(model, q, v), unit)
    return back(dq)[0] / back(rates)[0]


seen_in_time.defjvp(_moved, symbolic_zeros=True)
