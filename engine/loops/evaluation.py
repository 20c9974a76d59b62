"""Loops in a state: the rows of each kind, errors and rates of all rows.

Rows are ordered kind by kind, then row by row, then loop by loop: a kind's loops are computed side by side.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..algebra.fence import fence
from ..algebra.rotation import Quat
from ..algebra.spatial import IDENTITY, Motion, Transform
from ..algebra.vec3 import Mat3, Scalar, Vec3
from ..algebra.zero import is_zero
from ..dynamics.kinematics import LinkPoses, LinkVelocities
from ..forest import Forest
from ..model import Model
from ..rows import take
from ..topology import Topology
from .kinds import KINDS, RELATIONS, Row, Rows, row_count

T = TypeVar("T")


class LoopGroup(NamedTuple):
    """Loops of one kind: their indices, and the links they join."""

    kind: str
    loops: tuple[int, ...]
    a: tuple[int, ...]
    b: tuple[int, ...]


@functools.cache
def groups_of(topology: Topology) -> tuple[LoopGroup, ...]:
    """The loops kind by kind, in the order in which the kinds first occur."""
    kinds = dict.fromkeys(loop.kind for loop in topology.loops)
    by_kind = [[k for k, loop in enumerate(topology.loops) if loop.kind == kind] for kind in kinds]
    ends = [tuple(tuple(getattr(topology.loops[k], end) for k in loops) for end in "ab") for loops in by_kind]
    return tuple(LoopGroup(kind, tuple(own), *ab) for kind, own, ab in zip(kinds, by_kind, ends, strict=True))


@functools.cache
def row_loops(topology: Topology) -> tuple[int, ...]:
    """The loop of each row."""
    return tuple(k for group in groups_of(topology) for _ in range(row_count(group.kind)) for k in group.loops)


def by_loop(topology: Topology) -> np.ndarray:
    """The rows (m,), loop by loop."""
    return np.argsort(row_loops(topology), kind="stable")


def numbers(forest: Forest, array: Array, own: int, loops: Sequence[int]) -> Array:
    """Rows of a parameter per loop, (n, *batch, ...)."""
    lead = jnp.ndim(array) - own
    front = jnp.moveaxis(take(array, loops, lead), lead, 0)
    return front.reshape(front.shape[:1] + (1,) * (forest.rank - lead) + front.shape[1:])


# -- rows in a state --------------------------------------------------------------------------------


class LoopRows(NamedTuple):
    """The loops of one kind in the world, components (n, *batch).

    rows: the kind's constraints.  coordinates: its free coordinates.  origins: of links a and b [m].
    """

    rows: tuple[Row, ...]
    coordinates: tuple[Row, ...]
    origins: tuple[Vec3, Vec3]


NOWHERE = LoopRows((), (), (Vec3(0.0, 0.0, 0.0), Vec3(0.0, 0.0, 0.0)))
WORLD = Transform(Mat3(*(0.0 if is_zero(x) else x for x in vars(IDENTITY).values())), NOWHERE.origins[0])
STILL = Motion(*NOWHERE.origins)


def evaluate_loops(forest: Forest, model: Model, poses: list[LinkPoses], far: bool = False) -> list[LoopRows]:
    """Evaluate the loops in the world, one entry per kind; relations of joint coordinates have no frames.

    far: whether their frames may be far apart (`Kind.far_rows`).
    """
    T = forest.by_link([x.pose for x in poses])

    def of(group: LoopGroup) -> LoopRows:
        if group.kind in RELATIONS:
            return NOWHERE
        arrays = [(model.loop_position, 3), (model.loop_quaternion, 3), (model.loop_size, 1)]
        at, quaternions, size = (numbers(forest, x, own, group.loops) for x, own in arrays)
        a, b = (of_links(T, links, WORLD) for links in (group.a, group.b))
        rows, coordinates = _evaluate_kind(group.kind, far)(a, b, at, quaternions, size)
        if (active := activity(forest, model, group)) is not None:
            rows, coordinates = (tuple(_scale(row, active) for row in x) for x in (rows, coordinates))
        return LoopRows(rows, coordinates, (a.p, b.p))

    return [of(group) for group in groups_of(forest.topology)]


@functools.cache
def _evaluate_kind(kind: str, far: bool):
    return fence(functools.partial(evaluate_rows, kind, far=far))


def evaluate_rows(
    kind: str, a: Transform, b: Transform, at: Array, quaternions: Array, size: Array, far: bool = False
) -> tuple[Rows, Rows]:
    """Evaluate rows and coordinates of loops of a kind between links at a and b, from the model's arrays."""
    local = [Transform(Quat.of_array(quaternions[..., k, :]).matrix(), Vec3.of(at[..., k, :])) for k in range(2)]
    ends = (a @ local[0], b @ local[1])
    rows = KINDS[kind].far_rows if far else KINDS[kind].rows
    return rows(ends, size), KINDS[kind].coordinates(ends)


def activity(forest: Forest, model: Model, group: LoopGroup) -> Array | None:
    """Activity (n, *batch): 1 for loops that hold, 0 for those that are cut; None if all loops always hold.

    A cut loop has rows of zeros, which the factorisation of `proximal.py` leaves out.
    """
    switched = np.array([forest.topology.loops[k].switched for k in group.loops])
    if not switched.any():
        return None
    active = numbers(forest, model.loop_active, 1, group.loops)
    return jnp.where(switched.reshape(-1, *(1,) * (active.ndim - 1)), active, 1)


def _scale(row: Row, active: Array) -> Row:
    return row._replace(error=row.error * active, f=row.f * active, m=row.m * active)


def of_links(values: T, links: tuple[int, ...], world: T) -> T:
    """Take the values (n, *batch) of these links from values of all links (nl, *batch); -1 is the world."""
    still = np.array(links) < 0

    def pick(x: Array, fixed: Scalar) -> Array:
        first = take(x, np.where(still, 0, links).tolist())
        return jnp.where(still.reshape(-1, *(1,) * (x.ndim - 1)), fixed, first) if still.any() else first

    return jax.tree.map(pick, values, world)


# -- errors and rates --------------------------------------------------------------------------------


def errors(forest: Forest, model: Model, loops: list[LoopRows], q: Array, t: Array) -> Array:
    """G of all rows (m, *batch) [m, rad] at coordinates q (*batch, nq) and time t (*batch)."""
    values_by_row = []
    for group, loop_rows in zip(groups_of(forest.topology), loops, strict=True):
        values = [row.error for row in loop_rows.rows]
        if group.kind in RELATIONS:
            values = [_relation(forest, model, group, q, dof_coordinates(forest.topology))]
        if has_target(group.kind):
            off = values[0] - targets(forest, model, group, t)[0]
            values = [wrap_angle(off) if group.kind == "driven_turn" else off]
        values_by_row += [_full(forest, group, x) for x in values]
    return _concatenate(forest, values_by_row)


def rates(
    forest: Forest, model: Model, loops: list[LoopRows], velocities: list[LinkVelocities], v: Array, t: Array
) -> Array:
    """dG/dt of all rows (m, *batch) [m/s, rad/s] at joint velocities v (*batch, nv) and time t (*batch)."""
    twists = forest.by_link([x.V for x in velocities])
    values_by_row = []
    for group, loop_rows in zip(groups_of(forest.topology), loops, strict=True):
        if group.kind in RELATIONS:
            values = [_relation(forest, model, group, v, range(forest.topology.nv))]
        else:
            V = tuple(of_links(twists, links, STILL) for links in (group.a, group.b))
            values = [row_rate(row, V, loop_rows.origins) for row in loop_rows.rows]
        if has_target(group.kind):
            values = [values[0] - targets(forest, model, group, t)[1]]
        values_by_row += [_full(forest, group, x) for x in values]
    return _concatenate(forest, values_by_row)


@fence
def row_rate(row: Row, V, origins):
    """f . (v_a(x_a) - v_b(x_b)) + m . (w_a - w_b)"""
    speed = 0.0
    if not is_zero(row.f):
        a, b = (V[k].at(x - origins[k]).v for k, x in enumerate((row.x_a, row.x_b)))
        speed = row.f.dot(a - b)
    return speed if is_zero(row.m) else speed + row.m.dot(V[0].w - V[1].w)


def _relation(forest: Forest, model: Model, group: LoopGroup, x: Array, indices: Sequence[int]) -> Array:
    """x_i - size x_j of a gear, or x_i of a drive, from coordinates or velocities x (*batch, n): (n, *batch)."""
    dofs = [forest.topology.loops[k].dofs for k in group.loops]
    first = numbers(forest, x, 1, [indices[d[0]] for d in dofs])
    if group.kind == "drive":
        return first
    size = numbers(forest, model.loop_size, 1, group.loops)
    return first - size * numbers(forest, x, 1, [indices[d[1]] for d in dofs])


def wrap_angle(angle: Array) -> Array:
    return angle - 2 * jnp.pi * jnp.round(angle / (2 * jnp.pi))


def _full(forest: Forest, group: LoopGroup, x: Scalar) -> Array:
    return jnp.broadcast_to(x, (len(group.loops), *forest.batch))


def _concatenate(forest: Forest, rows: list[Array]) -> Array:
    return jnp.concatenate([jnp.zeros((0, *forest.batch), forest.dtype), *rows])


@functools.cache
def dof_coordinates(topology: Topology) -> tuple[int, ...]:
    """Index of the coordinate of each degree of freedom; -1 for joints with quaternions."""
    indices: list[int] = []
    for i in range(topology.n_links):
        nq, nv = (x[i + 1] - x[i] for x in (topology.q_start, topology.v_start))
        indices += [topology.q_start[i] + k if nq == nv else -1 for k in range(nv)]
    return tuple(indices)


# -- targets -------------------------------------------------------------------------------------------


def has_target(kind: str) -> bool:
    """Return whether the target of a kind's row is a function of time, not 0."""
    return kind in RELATIONS or KINDS[kind].timed


def targets(forest: Forest, model: Model, group: LoopGroup, t: Array) -> tuple[Array, Array]:
    """Targets of the loops' rows at the time t (*batch), and their rates: (n, *batch); see `Loop`.
    They are 0 for loops that are cut, as their rows are."""
    arrays = numbers(forest, model.loop_course, 2, group.loops)
    if (active := activity(forest, model, group)) is not None:
        arrays = arrays * active[..., None]
    offset, rate, size, frequency, phase = (arrays[..., k] for k in range(5))
    omega = 2 * jnp.pi * frequency
    value = offset + rate * t + size * jnp.sin(omega * t + phase)
    change = rate + size * omega * jnp.cos(omega * t + phase)
    functions = [forest.topology.loops[k].course for k in group.loops]
    if not any(functions):
        return value, change
    still = jnp.zeros_like(t)
    more = [jax.jvp(f, (t,), (jnp.ones_like(t),)) if f else (still, still) for f in functions]
    return value + jnp.stack([x for x, _ in more]), change + jnp.stack([x for _, x in more])
