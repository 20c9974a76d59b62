"""Contacts in a frame of an exported world: rows that a frame leaves, and one record for each pair of bodies, made
from the rows as `scenes/live/touching.py` does on the host."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import DTypeLike

from ...engine.algebra.vec3 import Vec3
from ...integrators.frame import Frame, Touching
from ..live.touching import LEAST
from ..live.world import Live

BEGIN, STAY, END, BOUNCE = range(4)  # phases
MOST = 1024  # records that a caller gets at most
WHOLES, REALS = 4, 10  # whole and real numbers of a record
IMPACTS, BEFORE, AFTER = range(3)

Kinds = tuple[int, int, int, int]


def touching_of(frame: Frame) -> tuple[Kinds, Array, Array]:
    """Rows of impacts, then of contacts before the frame, after it and during it: the number of each kind; pair (n,),
    -1 for none; and (n, 10) impulse, point, normal, closing speed."""
    hits = frame.impacts
    struck = jnp.arange(len(hits.pair)) < hits.count
    parts: list[Touching] = [Touching(jnp.where(struck, hits.pair, -1), hits.point, hits.normal, hits.impulse)]
    parts += [frame.before, frame.after, frame.during]
    pair = jnp.concatenate([x.pair for x in parts])
    columns = [jnp.concatenate([getattr(x, name) for x in parts]) for name in ("impulse", "point", "normal")]
    speed = jnp.where(struck, jnp.maximum(-hits.u_before[:, 2], 0), 0)
    speed = jnp.pad(speed, (0, len(pair) - len(speed)))
    a, b, c, d = (len(x.pair) for x in parts)
    return (a, b, c, d), pair, jnp.concatenate([*columns, speed[:, None]], 1)


def contacts_of(live: Live, kinds: Kinds, pair: Array, touching: Array) -> tuple[Array, Array]:
    """The number of records, and records (n, 14): a, b, phase, impacts, impulse, point, normal, speed. Four are
    whole numbers, see `as_real`; a, b: numbers of bodies, -1 for the world."""
    couples, couple_of, side = live._parts.bodies.couples
    topology, dtype, n = live.model.topology, touching.dtype, len(couples)
    if not couples:
        return jnp.int32(0), jnp.zeros((1, WHOLES + REALS), dtype)
    number = {name: k for k, name in enumerate(topology.names)}
    links = np.array([[number.get(name, -1) for name in couple] for couple in couples], np.int32)
    real, known = pair >= 0, jnp.maximum(pair, 0)
    couple = jnp.where(real, jnp.asarray(couple_of.astype(np.int32))[known], n)
    sign = jnp.asarray(side.astype(dtype))[known]
    # column by column: the indices of a whole row's numbers would be a table of half a megabyte
    impulse, point, normal = ([touching[:, 3 * k + j] for j in range(3)] for k in range(3))
    weight = abs(sum(x * y for x, y in zip(impulse, normal, strict=True))) + LEAST
    terms = [sign * x for x in impulse] + [weight * x for x in point] + [sign * weight * x for x in normal] + [weight]
    columns = [jnp.zeros(n + 1, dtype).at[couple].add(jnp.where(real, x, 0))[:-1] for x in terms]
    sums, speed = jnp.stack(columns, 1), touching[:, 9]
    fastest = jnp.zeros(n + 1, dtype).at[couple].max(speed)[:-1]
    ends = np.cumsum((0, *kinds))
    met = [jnp.zeros(n + 1, jnp.int32).at[couple[a:b]].add(1)[:-1] for a, b in itertools.pairwise(ends)]
    before, after = met[BEFORE] > 0, met[AFTER] > 0
    phase = jnp.where(before, jnp.where(after, STAY, END), jnp.where(after, BEGIN, BOUNCE))
    total = jnp.maximum(sums[:, 9:], LEAST)
    along = sums[:, 6:9] / total
    length = jnp.maximum(jnp.sqrt((along * along).sum(1, keepdims=True)), LEAST)
    whole = jnp.concatenate([jnp.asarray(links), phase[:, None], met[IMPACTS][:, None]], 1)
    rows = [as_real(whole, dtype), sums[:, :3], sums[:, 3:6] / total, along / length, fastest[:, None]]
    touched, room = jnp.stack(met).any(0), min(n, MOST)
    row = jnp.where(touched, jnp.cumsum(touched.astype(jnp.int32)) - 1, room)
    table = jnp.zeros((room + 1, WHOLES + REALS), dtype)
    table = table.at[jnp.minimum(row, room)].set(jnp.concatenate(rows, 1))[:room]
    return jnp.minimum(touched.astype(jnp.int32).sum(), room), table


def pushes_and_contacts(pushes: Array, pose: Array, count: Array, rows: Array, dt: Array) -> Array:
    """Mean moment about its origin and force on each link (nl, 6) [N m, N] over a frame that took dt [s].

    pushes: (nl, 6) from outside.  pose: (nl, 7) at its end.  count, rows: of `contacts_of`."""
    links, felt = len(pushes), jnp.pad(pushes, ((0, 1), (0, 0)))
    long = jnp.where(dt > 0, dt, jnp.inf).astype(rows.dtype)
    ends = jax.lax.bitcast_convert_type(rows[:, :2], jnp.int64 if rows.dtype.itemsize == 8 else jnp.int32)
    real = jnp.arange(len(rows)) < count
    force, point = rows[:, WHOLES : WHOLES + 3] / long, rows[:, WHOLES + 3 : WHOLES + 6]
    for side, sign in enumerate((1, -1)):
        link = jnp.where(real & (ends[:, side] >= 0), ends[:, side], links).astype(jnp.int32)
        F, arm = Vec3.of(sign * force), Vec3.of(point - pose[jnp.minimum(link, links - 1), :3])
        felt = felt.at[link].add(jnp.stack([*arm.cross(F).xyz, *F.xyz], -1))
    return felt[:links]


def as_real(whole: Array, dtype: DTypeLike) -> Array:
    """Whole numbers in an array of real ones, by their bits, each as wide as a real one."""
    wide = jnp.int64 if np.dtype(dtype).itemsize == 8 else jnp.int32
    return jax.lax.bitcast_convert_type(whole.astype(wide), dtype)
