"""Sleeping islands: trees that a frame left unchanged are not computed until something approaches or acts on them.

A frame that leaves an island of resting bodies unchanged, to the last bit, will do so again as long as nothing else is
near and nothing else acts. This island sleeps: it does not move, and its contacts are neither detected nor solved. It
costs as much as a static shape.

A world may also let islands sleep that move a little: their trees touch something, are slower than a given speed at
both ends of a frame, and hardly accelerate in it. This is not exact: their velocities become 0.

An island wakes when a tree that is awake enters the envelope of one of its bodies (`ENVELOPE` in
`contact/determine.py`).
The step that led there is accepted without resolving its impacts, and the lane detects contacts again at the same
state, now with the whole island; then all impacts are resolved together. A force on a body of an island, or a change of
its position, also wakes the island (`scenes/live/asleep.py`).

An island is identified by its lowest tree: `island` (T, *batch) holds it for each tree that sleeps, -1 for others.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..contact.cone.blocks import block, indices_of, put
from ..contact.contact_jacobian import ContactJacobian
from ..contact.contacts import Contacts
from ..contact.determine import in_envelope
from ..engine.algebra.fence import lane_programs
from ..engine.dynamics.trees import trees_of
from ..engine.model import Model
from ..engine.state import State
from ..engine.topology import Topology
from .islands import islands

ACCELERATION = 1 / 16  # part of that speed: largest change of velocity in a frame of an island that may sleep


def dofs_asleep(topology: Topology, island: Array) -> Array:
    """Return the degrees of freedom of trees that sleep, (nv, *batch) bool."""
    return island[trees_of(topology).of_dof] >= 0


def shapes_still(topology: Topology, island: Array) -> Array:
    """Return static shapes and shapes of trees that sleep, (ns, *batch) bool."""
    tree = trees_of(topology).of_link[np.array(topology.shape_links, int)]  # for link -1 the world, which is last
    return jnp.concatenate([island >= 0, jnp.ones_like(island[:1], bool)])[tree]


def restore_sleeping(topology: Topology, island: Array, before: State, q: Array, v: Array) -> tuple[Array, Array]:
    """Return q (*batch, nq) and v (*batch, nv) after a step, with the values before it for trees that sleep."""
    tree = trees_of(topology).of_link[:-1]
    ends = []
    for start, old, new in ((topology.q_start, before.q, q), (topology.v_start, before.v, v)):
        asleep = jnp.moveaxis(island[np.repeat(tree, np.diff(start))] >= 0, 0, -1)
        ends.append(jnp.where(asleep, old, new))
    return ends[0], ends[1]


def wake_islands(island: Array, contacts: Contacts, rows: ContactJacobian) -> tuple[Array, Array]:
    """Return the islands that still sleep (T, *batch) with these contacts, and whether (*batch) one wakes."""
    padded = jnp.concatenate([island, jnp.full_like(island[:1], -1)])
    touched = jnp.where(contacts.active[:, None], jnp.take_along_axis(padded[None], rows.tree, 1), -1)  # (C, 2, *batch)

    def wake() -> Array:
        called = _is_listed(touched, len(island))
        mine = jnp.take_along_axis(called, jnp.maximum(island, 0), 0)
        return jnp.where(mine, -1, island)

    some = (touched >= 0).any((0, 1))
    return jax.lax.cond(some.any(), wake, lambda: island), some


def put_to_sleep(
    model: Model,
    island: Array,
    before: State,
    after: State,
    contacts: Contacts,
    rows: ContactJacobian,
    quiet: Array,
    speed: float,
    motors: Array,
) -> Array:
    """Return the islands that sleep (T, *batch) after a frame with these states at its start and end.

    island: islands that slept at its end.
    contacts, rows: contacts at its end, and their Jacobian.
    quiet: (T, *batch) bool, trees on which nothing else acts.
    speed: trees that touch something and are slower sleep [m/s, rad/s]; 0: only those that the frame left unchanged.
    motors: (*batch, nv) commands; slow motion of a tree with a command is intended, and goes on.
    """
    topology = model.topology
    tree = trees_of(topology).of_link[:-1]

    def all_of(same: Array, start: tuple[int, ...]) -> Array:
        """Return whether all entries (*batch, n) of each tree are true, (T, *batch)."""
        own = np.repeat(tree, np.diff(start))
        entries = [np.flatnonzero(own == k) for k in range(len(island))]
        widest = max(len(x) for x in entries)
        index = np.array([np.pad(x, (0, widest - len(x)), constant_values=len(own)) for x in entries])  # (T, widest)
        padded = jnp.concatenate([jnp.moveaxis(same, -1, 0), jnp.ones((1, *same.shape[:-1]), bool)])
        return padded[index].all(1)

    still = all_of(before.q == after.q, topology.q_start) & quiet
    still = still & all_of((before.v == after.v) & (after.v == 0), topology.v_start)
    if speed:
        v, dv = abs(after.v), abs(after.v - before.v)
        slow = all_of(
            (v < speed) & (abs(before.v) < speed) & (dv < ACCELERATION * speed) & (motors == 0), topology.v_start
        )
        touching = jnp.where(in_envelope(model, contacts)[:, None], rows.tree, -1)  # (C, 2, *batch)
        still |= slow & quiet & _is_listed(touching, len(island))

    def sleep() -> Array:
        own = islands(topology, rows.tree, in_envelope(model, contacts))
        restless = (own[None] == own[:, None]) & ~still[None]  # (T, T, *batch)
        return jnp.where((island < 0) & ~restless.any(1), own, island)

    return jax.lax.cond((still & (island < 0)).any(), sleep, lambda: island)


def _is_listed(numbers: Array, n: int) -> Array:
    """Return which of the numbers 0 to n - 1 occur in an array (C, 2, *batch), as (n, *batch) bool."""
    if lane_programs() and numbers.ndim == 2:
        which, count = indices_of((numbers >= 0).any(1))

        def mark(k: Array, named: Array) -> Array:
            row = block(numbers, block(which, k))
            for side in range(len(row)):
                named = put(named, jnp.array(True), jnp.where(row[side] < 0, n, row[side]))
            return named

        return jax.lax.fori_loop(0, count, mark, jnp.zeros(n + 1, bool))[:n]
    names = jnp.arange(n, dtype=jnp.int32).reshape(-1, 1, 1, *(1,) * (numbers.ndim - 2))
    return (numbers[None] == names).any((1, 2))
