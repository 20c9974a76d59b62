"""The record of a run of chains: the states at its frames, and a row for every stop, in buffers of fixed size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ...engine.algebra.vec2 import Vec2
from ...engine.planar.accelerations import joint_rates
from ...engine.planar.links import Rows
from ...engine.planar.model import ChainState
from ...engine.shaped import Float, Int
from ..recording import put
from .lane import ChainLane
from .tick import ChainImpact

COLUMNS = (1, 1, 1, 1, 1, 2, 2, 2, 2, 1, 1, 1)  # columns of the fields of `ChainEvents`, in its order


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ChainEvents:
    """The stops of a run in order; arrays (..., E), of which the first `count` rows are real.

    t: time [s].
    joint: the joint that struck, the first if several did at once.
    limit: 0 if it struck a ground, 1 if its angle struck the upper limit, -1 for the lower.
    ground: index of the ground, -1 at a limit.
    struck: number of joints that struck at once.
    place: position of the joint [m].
    velocity: velocity of the joint before [m/s]; at a limit the rate of its angle and 0 [rad/s].
    push: impulse of the ground on the joint [N s]; at a limit angular impulse on its link and 0 [N m s].
    impulse: impulse of all grounds, guides and lines, the change of the chain's momentum [N s].
    moment: change of its angular momentum about the origin [N m s].
    energy_before, energy_after: kinetic energy [J].
    count: number of rows that are real.
    missed: number of stops without a row.
    """

    t: Float[Array, "*batch E"]
    joint: Int[Array, "*batch E"]
    limit: Int[Array, "*batch E"]
    ground: Int[Array, "*batch E"]
    struck: Int[Array, "*batch E"]
    place: Float[Array, "*batch E 2"]
    velocity: Float[Array, "*batch E 2"]
    push: Float[Array, "*batch E 2"]
    impulse: Float[Array, "*batch E 2"]
    moment: Float[Array, "*batch E"]
    energy_before: Float[Array, "*batch E"]
    energy_after: Float[Array, "*batch E"]
    count: Int[Array, "*batch"]
    missed: Int[Array, "*batch"]


class ChainRecord(NamedTuple):
    """Buffers of a run.

    frames: (*batch, F, 6 n + 1) x, v, stuck, shut and t of each frame.
    rows: (*batch, E, 16) the stops.
    written: (*batch) number of rows written.
    missed: (*batch) number of stops without a row.
    room: () F and E as arrays, see `integrators.recording`.
    """

    frames: Array
    rows: Array
    written: Array
    missed: Array
    room: tuple[Array, Array]

    @property
    def logs(self) -> bool:
        """Return whether stops are recorded."""
        return self.rows.shape[-2] > 0


def new_record(state: ChainState, frames: int, max_events: int) -> ChainRecord:
    """Return empty buffers for `frames` frames and `max_events` stops."""
    batch, dtype = state.t.shape, state.x.dtype
    blank = jnp.full((*batch, frames, 6 * state.x.shape[-2] + 1), jnp.nan, dtype)
    none = jnp.zeros(batch, jnp.int32)
    room = jnp.int32(frames), jnp.int32(max_events)
    return ChainRecord(blank, jnp.zeros((*batch, max_events, sum(COLUMNS)), dtype), none, none, room)


def record_first_frame(record: ChainRecord, lane: ChainLane) -> ChainRecord:
    """Return the record with the lane's state as the first frame."""
    first = jnp.zeros(lane.t.shape, jnp.int32)
    return record._replace(frames=put(record.frames, first, frame_row(lane), record.room[0]))


def frame_row(lane: ChainLane) -> Array:
    """Return a row (*batch, 6 n + 1) of `ChainRecord.frames`."""
    x, v, stuck, shut = lane.now
    columns = [x.x, x.y, v.x, v.y, stuck.astype(x.x.dtype), shut.astype(x.x.dtype), lane.t[None]]
    return jnp.moveaxis(jnp.concatenate(columns), 0, -1)


def record_tick(record: ChainRecord, rows: Rows, was: ChainLane, lane: ChainLane, struck: ChainImpact) -> ChainRecord:
    """Return the record after a tick. A frame is written when it is reached, and again after stops at that time."""
    slots, room = record.room
    written = (lane.clock.frame > was.clock.frame) | lane.at_frame
    frames = put(record.frames, jnp.where(written, lane.clock.frame - 1, slots), frame_row(lane), slots)
    at = jnp.where(struck.yes, jnp.minimum(record.written, room), room)
    logged = struck.yes & (at < room)
    put_rows = put(record.rows, at, event_row(rows, lane, struck), room) if record.logs else record.rows
    return ChainRecord(frames, put_rows, record.written + logged, record.missed + (struck.yes & ~logged), record.room)


def event_row(rows: Rows, lane: ChainLane, struck: ChainImpact) -> Array:
    """Return a row (*batch, 16) of `ChainRecord.rows`."""
    which, p, n = struck.which, struck.p, len(rows.mass)
    number = jnp.arange(n).reshape(n, *(1 for _ in lane.t.shape))
    joint = jnp.where(which.stuck | which.shut, number, n).min(0)
    mine = number == joint
    at_ground = (which.stuck & mine).any(0)

    def of(a: Array) -> Array:
        return jnp.where(mine, a, 0).sum(0)

    limit = jnp.where(at_ground, 0, of(p.tried.shut))
    ground = jnp.where(at_ground, of(p.tried.stuck), -1)
    rate = of(joint_rates(p.link))
    before, place, push = (Vec2(of(a.x), of(a.y)) for a in (struck.before, p.tried.x, p.reaction))
    by_world = p.response.torque[0]  # an external torque if joint 0 is held at a limit
    columns = [
        lane.t,
        joint.astype(lane.t.dtype),
        limit.astype(lane.t.dtype),
        ground.astype(lane.t.dtype),
        which.number().astype(lane.t.dtype),
        place.x,
        place.y,
        jnp.where(at_ground, before.x, rate),
        jnp.where(at_ground, before.y, 0),
        jnp.where(at_ground, push.x, of(p.response.torque)),
        jnp.where(at_ground, push.y, 0),
        p.reaction.x.sum(0),
        p.reaction.y.sum(0),
        p.tried.x.cross(p.reaction).sum(0) + by_world,
        kinetic(rows, struck.before),
        kinetic(rows, struck.after),
    ]
    return jnp.stack(columns, -1)


def kinetic(rows: Rows, v: Vec2) -> Array:
    return 0.5 * (rows.mass * v.dot(v)).sum(0)


def frames_of(record: ChainRecord, n: int) -> dict[str, Array]:
    """Return t, x, v, stuck, shut of the frames; NaN (and -1, 0) in those that a lane did not reach."""
    *numbers, t = (record.frames[..., k * n : (k + 1) * n] for k in range(7))
    x, y, u, w, stuck, shut = numbers
    lost = jnp.isnan(t)
    return {
        "t": t[..., 0],
        "x": jnp.stack([x, y], -1),
        "v": jnp.stack([u, w], -1),
        "stuck": jnp.where(lost, -1, stuck).astype(jnp.int32),
        "shut": jnp.where(lost, 0, shut).astype(jnp.int32),
    }


def events_of(record: ChainRecord) -> ChainEvents:
    columns = jnp.split(record.rows, np.cumsum(COLUMNS)[:-1], -1)
    t, *names, place, velocity, push, impulse, moment, before, after = (
        x[..., 0] if x.shape[-1] == 1 else x for x in columns
    )
    joint, limit, ground, struck = (x.astype(jnp.int32) for x in names)
    return ChainEvents(
        t, joint, limit, ground, struck, place, velocity, push, impulse, moment, before, after, record.written,
        record.missed,
    )  # fmt: skip
