"""The constraint Jacobian A: A a + bias = 0 for the accelerations, A v + dG/dt = 0 for the velocities (Kim 55, 71)."""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from ..algebra.fence import fence
from ..algebra.spatial import Motion, Transform
from ..algebra.vec3 import Scalar, Vec3, skew
from ..algebra.zero import is_zero
from ..dynamics.kinematics import LinkPoses, LinkVelocities, bias_accelerations, propagate_poses, propagate_velocities
from ..dynamics.trees import dof_motions
from ..forest import Forest
from ..model import Model
from ..shaped import Float
from ..topology import Topology
from .evaluation import (
    STILL,
    WORLD,
    LoopGroup,
    LoopRows,
    activity,
    by_loop,
    errors,
    evaluate_loops,
    evaluate_rows,
    groups_of,
    has_target,
    numbers,
    of_links,
    rates,
    row_rate,
    targets,
)
from .kinds import RELATIONS, Row, row_count


class Closed(NamedTuple):
    """m constraints, loop by loop.  A: the Jacobian;  bias: the part of their acceleration due to dA/dt v and to time;
    error: G [m, rad], of directions the sine, 0 for opposite ones too;  rate: dG/dt = A v minus the rate of drives."""

    A: Float[Array, "*batch m nv"]
    bias: Float[Array, "*batch m"]
    error: Float[Array, "*batch m"]
    rate: Float[Array, "*batch m"]


@jax.jit
def closed(
    model: Model, q: Float[Array, "*#batch nq"], v: Float[Array, "*#batch nv"], t: Float[Array, "*#batch"] | float = 0.0
) -> Closed:
    """The constraints of a model's loops at q, v and t."""
    forest = Forest.of(model, q=q, v=v)
    t = jnp.broadcast_to(jnp.asarray(t, q.dtype), forest.batch)
    order = by_loop(model.topology)
    poses = propagate_poses(forest, model, q)
    loops = evaluate_loops(forest, model, poses)
    A, error = jacobian(forest, model, poses, loops)[order], errors(forest, model, loops, q, t)
    velocities = propagate_velocities(forest, poses, v)
    rate = rates(forest, model, loops, velocities, v, t)
    rows = [jnp.moveaxis(x[order], 0, -1) for x in (bias(forest, model, poses, velocities, t), error, rate)]
    return Closed(jnp.moveaxis(A, (0, 1), (-2, -1)), *rows)


def bias(forest: Forest, model: Model, poses: list[LinkPoses], velocities: list[LinkVelocities], t: Array) -> Array:
    """Second derivatives of G without joint accelerations, (m, *batch), at the time t (*batch).

    A kind's rows are differentiated along the motion of the two links they join, not of the whole tree.
    """
    T, V = forest.by_link([x.pose for x in poses]), forest.by_link([x.V for x in velocities])
    changes = forest.by_link(bias_accelerations(forest, poses, velocities))
    rows = []
    for group in groups_of(forest.topology):
        values: list[Scalar] = [0.0] * row_count(group.kind)
        if group.kind not in RELATIONS:
            known = ((T, WORLD), (V, STILL), (changes, STILL))
            ends = [[of_links(x, links, still) for x, still in known] for links in (group.a, group.b)]
            arrays = ((model.loop_position, 3), (model.loop_quaternion, 3), (model.loop_size, 1))
            values = list(_bias(group.kind)(ends, *(numbers(forest, x, own, group.loops) for x, own in arrays)))
        if has_target(group.kind):
            change = jax.jvp(lambda t, g=group: targets(forest, model, g, t)[1], (t,), (jnp.ones_like(t),))[1]
            values = [values[0] - change]
        if (active := activity(forest, model, group)) is not None:
            values = [x * active for x in values]
        rows += [jnp.broadcast_to(x, (len(group.loops), *forest.batch)) for x in values]
    return jnp.concatenate([jnp.zeros((0, *forest.batch), forest.dtype), *rows])


@functools.cache
def _bias(kind: str):
    @fence
    def bias(ends, at, quaternions, size):
        def rate(poses: tuple[Transform, ...], velocities: tuple[Motion, ...]) -> list[Scalar]:
            rows, _ = evaluate_rows(kind, poses[0], poses[1], at, quaternions, size)
            return [row_rate(row, velocities, tuple(T.p for T in poses)) for row in rows]

        poses, velocities, changes = zip(*ends, strict=True)
        # a spatial acceleration is the rate of the velocity at a fixed point: the origin itself moves with the link
        pace = tuple(Motion(a.w, a.v + V.w.cross(V.v)) for a, V in zip(changes, velocities, strict=True))
        moved = tuple(Transform(skew(V.w) @ T.R, V.v) for T, V in zip(poses, velocities, strict=True))
        moved = jax.tree.map(lambda x, y: jnp.broadcast_to(y, x.shape), poses, moved)
        return jax.jvp(rate, (poses, velocities), (moved, pace))[1]

    return bias


def jacobian(forest: Forest, model: Model, poses: list[LinkPoses], loops: list[LoopRows]) -> Array:
    """Jacobian A (m, nv, *batch) of the rows by the degrees of freedom."""
    motions, points = dof_motions(forest, poses)
    columns = [jnp.zeros((0, forest.topology.nv, *forest.batch), forest.dtype)]
    for group, placed_loops in zip(groups_of(forest.topology), loops, strict=True):
        moves = [_moves(forest.topology, end, forest.rank) for end in (group.a, group.b)]
        if group.kind in RELATIONS:
            columns.append(_relation(forest, model, group))
        columns += [_column(row, motions, points, *moves) for row in placed_loops.rows]
    return jnp.concatenate(columns)


@fence
def _column(row: Row, s: Motion, at: Vec3, by_a: ArrayLike, by_b: ArrayLike) -> Array:
    """One row by all degrees of freedom, (n, nv, *batch); by_a, by_b (n, nv, 1...): whether they move a and b."""
    each = lambda x: x[:, None] if jnp.ndim(x) else x  # noqa: E731  # some forces are along the world's axes
    f, m, x_a, x_b = jax.tree.map(each, (row.f, row.m, row.x_a, row.x_b))
    s, at = jax.tree.map(lambda x: x[None], (s, at))
    turning = 0.0 if is_zero(m) else m.dot(s.w)
    parts = [turning if is_zero(f) else f.dot(s.at(x - at).v) + turning for x in (x_a, x_b)]
    return jnp.where(by_a, parts[0], 0) - jnp.where(by_b, parts[1], 0)


def _moves(topology: Topology, links: tuple[int, ...], rank: int) -> np.ndarray:
    """Return whether each degree of freedom moves each link, (n, nv, 1...)."""
    owner = np.repeat(np.arange(topology.n_links), np.diff(topology.v_start))
    rows = [np.isin(owner, topology.ancestors(link)) for link in links]
    return np.array(rows).reshape(len(links), topology.nv, *(1,) * rank)


def _relation(forest: Forest, model: Model, group: LoopGroup) -> Array:
    """Rows of relations (n, nv, *batch): 1 at q_i's degree of freedom, -size at q_j's."""
    nv, lanes = forest.topology.nv, (1,) * forest.rank
    dofs = [forest.topology.loops[k].dofs for k in group.loops]
    entries = lambda n: np.array([np.arange(nv) == d[n] for d in dofs]).reshape(-1, nv, *lanes)  # noqa: E731
    A = jnp.asarray(entries(0), forest.dtype)
    if group.kind == "gear":
        A = A - numbers(forest, model.loop_size, 1, group.loops)[:, None] * entries(1)
    return jnp.broadcast_to(A, (len(dofs), nv, *forest.batch))
