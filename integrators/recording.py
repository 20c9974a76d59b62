"""The record of a run: the states at its frames and a row for every impact, in buffers of fixed size.

Each lane writes at its own position. The slot of a frame is written at every tick until the frame is reached, so no
branch depends on whether it is reached.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..contact.contacts import Contacts
from ..contact.events import Impacts, contact_events
from ..engine.algebra.fence import lane_programs
from ..engine.shaped import Float, Int
from ..engine.state import State
from ..engine.topology import Topology

FLOATS = (1, 3, 3, 3, 3, 3, 1, 1)  # t, point, normal, u before and after, impulse, energy before and after
WHOLES = (2, 1, 1, 1)  # bodies, pair, dof, code


class Record(NamedTuple):
    """Buffers of a run.

    frames: (*batch, F, nq + nv + 1) q, v and t of each frame.
    floats: floating-point fields of the events.
    wholes: integer fields of the events.
    written: number of events with a row.
    missed: number of events without a row.
    room: F and E as arrays, so that one program serves buffers of any length.
    readings: (*batch, F, n) sums of the reported quantities (`readouts/`) before each frame; None if there are none.
    sums: (*batch, n) sums since the last frame; None if there are none.
    """

    frames: Float[Array, "*batch F width"]
    floats: Float[Array, "*batch E 18"]
    wholes: Int[Array, "*batch E 5"]
    written: Int[Array, "*batch"]
    missed: Int[Array, "*batch"]
    room: tuple[Int[Array, ""], Int[Array, ""]]
    readings: Any = None
    sums: Any = None

    @staticmethod
    def new(state: State, frames: int, max_events: int, reported: int = 0) -> Record:
        """Return empty buffers.  reported: the number of values that are reported with each frame."""
        batch, dtype = state.t.shape, state.q.dtype
        blank = jnp.zeros((*batch, frames, state.q.shape[-1] + state.v.shape[-1] + 1), dtype)
        floats = jnp.zeros((*batch, max_events, sum(FLOATS)), dtype)
        wholes = jnp.full((*batch, max_events, sum(WHOLES)), -1, jnp.int32)
        none = jnp.zeros(batch, jnp.int32)
        sums = jnp.zeros((*batch, reported), dtype) if reported else None
        readings = jnp.zeros((*batch, frames, reported), dtype) if reported else None
        return Record(blank, floats, wholes, none, none, (jnp.int32(frames), jnp.int32(max_events)), readings, sums)

    @property
    def logs(self) -> bool:
        """Return whether events are recorded."""
        return self.floats.shape[-2] > 0

    def with_frame(self, number: Array, state: State) -> Record:
        """Return the record with the state in slot `number` (*batch), or in the last slot."""
        room = self.room[0]
        return self._replace(frames=put(self.frames, jnp.minimum(number, room - 1), _frame(state), room))

    def with_readings(self, number: Array, more: Array, reached: Array, done: Array) -> Record:
        """Return the record with `more` (*batch, n) added in slot `number` (*batch), or in the last slot.

        reached: (*batch) whether the frame is reached, so that new sums begin.
        done: (*batch) lanes that do not change any more.
        """
        sums, room = self.sums + more, self.room[0]
        readings = put(self.readings, jnp.where(done, room, jnp.minimum(number, room - 1)), sums, room)
        return self._replace(readings=readings, sums=jnp.where(reached[..., None], 0, sums))

    def with_impacts(self, t: Array, contacts: Contacts, impacts: Impacts) -> Record:
        """Return the record with the impacts of a tick, at the time t (*batch), or at the times t (C,) of its contacts.

        In the latter case they are inserted in order of time.
        """
        room, many = self.room[1], t.ndim > impacts.count.ndim
        if not self.logs:
            return self._replace(missed=self.missed + impacts.count)
        rows = impacts._replace(count=None)  # type: ignore[arg-type]
        logged = jnp.minimum(jnp.minimum(impacts.count, len(impacts.contact)), room - self.written)

        def write(k: Array, record: Record) -> Record:
            row: Any = jax.tree.map(lambda x: jax.lax.dynamic_slice_in_dim(x, k, 1), rows)
            x: Any = contact_events(contacts, row)._replace(count=None)  # type: ignore[arg-type]
            x = jax.tree.map(lambda x: x.squeeze(logged.ndim), x)
            vectors = (x.point, x.normal, x.u_before, x.u_after, x.impulse)
            when = t[jnp.maximum(row.contact[0], 0)] if many else t
            floats = _concatenate_events((when, *vectors, x.energy_before, x.energy_after), when)
            wholes = _concatenate_events((x.bodies, x.pair, x.dof, x.code), when)
            real = k < logged
            if many:
                return jax.lax.cond(real, lambda: record._insert(floats, wholes), lambda: record)
            at = jnp.where(real, record.written, room)
            floats, wholes = put(record.floats, at, floats, room), put(record.wholes, at, wholes, room)
            return record._replace(floats=floats, wholes=wholes, written=record.written + real)

        record = jax.lax.fori_loop(0, logged.max(), write, self)
        return record._replace(missed=self.missed + impacts.count - logged)

    def _insert(self, floats: Array, wholes: Array) -> Record:
        """Return the record with a row (18,), (5,) inserted in order of time; there must be room for it."""
        room = self.room[1]

        def row(rows: Array, k: Array) -> Array:
            return jax.lax.dynamic_slice(rows, (k, jnp.int32(0)), (1, rows.shape[-1]))[0]

        def later(carry: tuple[Array, Array, Array]) -> Array:
            k, log, _ = carry
            return (k > 0) & (row(log, jnp.maximum(k - 1, 0))[0] > floats[0])

        def back(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            k, *logs = carry
            first, second = (put(log, k, row(log, k - 1), room) for log in logs)
            return k - 1, first, second

        k, *logs = jax.lax.while_loop(later, back, (self.written, self.floats, self.wholes))
        first, second = (put(log, k, x, room) for log, x in zip(logs, (floats, wholes), strict=True))
        return self._replace(floats=first, wholes=second, written=self.written + 1)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Events:
    """The impacts of a run in order; arrays (..., E), of which the first `count` rows are real.

    t: time [s].
    bodies: links A and B, -1 for the world; at a limit the joint's link and its parent.
    pair: row of `topology.pairs`, -1 at a limit.
    dof: the degree of freedom at its limit, else -1.
    point, normal: in the world [m]; the normal is from B to A. Zeros at a limit.
    u_before, u_after, impulse: relative velocities and impulse of A against B, in the contact frame (t1, t2, n)
        [m/s, N s]; at a limit of a revolute joint [rad/s, N m s].
    energy_before, energy_after: kinetic energy of the scene [J]; if islands have their own clocks, with the present
        energy of the others.
    code: result code of the law.
    count: number of rows that are real.
    missed: number of impacts without a row.
    law: law of the impacts.
    """

    t: Float[Array, "*batch E"]
    bodies: Int[Array, "*batch E 2"]
    pair: Int[Array, "*batch E"]
    dof: Int[Array, "*batch E"]
    point: Float[Array, "*batch E 3"]
    normal: Float[Array, "*batch E 3"]
    u_before: Float[Array, "*batch E 3"]
    u_after: Float[Array, "*batch E 3"]
    impulse: Float[Array, "*batch E 3"]
    energy_before: Float[Array, "*batch E"]
    energy_after: Float[Array, "*batch E"]
    code: Int[Array, "*batch E"]
    count: Int[Array, "*batch"]
    missed: Int[Array, "*batch"]
    law: str = field(metadata={"static": True})


def frames_of(topology: Topology, record: Record, reached: Array) -> tuple[Array, Array, Array]:
    """Return t (..., F), q (..., F, nq), v (..., F, nv) of the frames; NaN in those that a lane did not reach."""
    number = jnp.arange(record.frames.shape[-2])
    frames = jnp.where((number < reached[..., None])[..., None], record.frames, jnp.nan)
    q, v, t = jnp.split(frames, (topology.nq, topology.nq + topology.nv), -1)
    return t[..., 0], q, v


def events_of(record: Record, law: str) -> Events:
    """Return the events as users read them."""
    t, *vectors, before, after = jnp.split(record.floats, np.cumsum(FLOATS)[:-1], -1)
    bodies, pair, dof, code = jnp.split(record.wholes, np.cumsum(WHOLES)[:-1], -1)
    point, normal, u_before, u_after, impulse = vectors
    return Events(
        t[..., 0], bodies, pair[..., 0], dof[..., 0], point, normal, u_before, u_after, impulse, before[..., 0],
        after[..., 0], code[..., 0], record.written, record.missed, law,
    )  # fmt: skip


def _frame(state: State) -> Array:
    return jnp.concatenate([state.q, state.v, state.t[..., None]], -1)


def _concatenate_events(columns: Sequence[Array], t: Array) -> Array:
    return jnp.concatenate([x[..., None] if x.ndim == t.ndim else x for x in columns], -1)


def put(rows: Array, at: Array, row: Array, room: Array) -> Array:
    """Put row (*batch, n) into slot `at` (*batch) of rows (*batch, S, n); slot S is ignored. room: () S.

    Rows of lanes in a block are one array, (W S, n), lane after lane.
    """
    if at.ndim and rows.ndim == 2:
        for i in range(len(at)):
            offset = i * room + jnp.minimum(at[i], room - 1).astype(jnp.int32), jnp.int32(0)
            old = jax.lax.dynamic_slice(rows, offset, (1, rows.shape[-1]))
            new = jnp.where(at[i] < room, row[i].astype(rows.dtype), old[0])
            rows = jax.lax.dynamic_update_slice(rows, new[None], offset)
        return rows
    if at.ndim and not lane_programs():
        return rows.at[jnp.arange(len(at)), at].set(row.astype(rows.dtype), mode="drop")

    def one(rows: Array, lane: tuple[Array, ...], at: Array, row: Array) -> Array:
        offset = (*lane, jnp.minimum(at, room - 1).astype(jnp.int32), jnp.int32(0))
        old = jax.lax.dynamic_slice(rows, offset, (*(1,) * (rows.ndim - 1), rows.shape[-1]))
        new = jnp.where(at < room, row.astype(rows.dtype), old.reshape(-1))
        return jax.lax.dynamic_update_slice(rows, new.reshape(old.shape), offset)

    if not at.ndim:
        return one(rows, (), at, row)
    return jax.lax.fori_loop(jnp.int32(0), jnp.int32(len(at)), lambda i, rows: one(rows, (i,), at[i], row[i]), rows)
