"""Active forces of loops, which are not constraint forces: springs, dampers, limits and penalties.

Mikhaylyuk & Strashnov (2013): a row held by penalty pulls with -(alpha G + beta dG/dt) along its Jacobian (9);
a limit does so beyond its end (21, 25), with chi = G - end there and 0 between the ends. Departure: the limits of
rotations apply to the angle, not to its sine as in the paper, so they may lie anywhere within half a turn.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from ..algebra.fence import fence
from ..algebra.spatial import Force, Motion
from ..algebra.zero import ZERO, dense, is_zero
from ..dynamics.kinematics import propagate_poses, propagate_velocities
from ..dynamics.wrenches import along_joints
from ..forest import Forest
from ..model import Model
from ..rows import sum_by_target, take
from .evaluation import (
    STILL,
    LoopGroup,
    LoopRows,
    evaluate_loops,
    groups_of,
    numbers,
    of_links,
    row_rate,
    targets,
    wrap_angle,
)
from .kinds import KINDS, RELATIONS, Row

NONE = Force(ZERO, ZERO)


@jax.jit
def loop_forces(model: Model, q: Array, v: Array, t: Array | float) -> Array:
    """Joint forces (..., nv) of all loops that act or are held by penalty.  q (..., nq), v (..., nv), t (...)."""
    topology = model.topology
    forest = Forest.of(model, q=q, v=v)
    if not (topology.hold == "penalty" or any(loop.acts for loop in topology.loops)):
        return jnp.zeros((*forest.batch, topology.nv), forest.dtype)
    t = jnp.broadcast_to(jnp.asarray(t, q.dtype), forest.batch)
    poses = propagate_poses(forest, model, q)
    velocities = forest.by_link([x.V for x in propagate_velocities(forest, poses, v)])
    links: list[int] = []
    wrenches: list[Force] = []
    for group, loop_rows in zip(groups_of(topology), evaluate_loops(forest, model, poses), strict=True):
        V = tuple(of_links(velocities, ends, STILL) for ends in (group.a, group.b))
        row_forces = active_multipliers(forest, model, group, loop_rows, V, t)
        if row_forces:
            links += group.a + group.b
            wrenches += [full(forest, len(group.loops), side) for side in wrenches_of(row_forces, loop_rows.origins)]
    return along_joints(forest, poses, _sum_by_link(forest, links, wrenches))


def active_multipliers(
    forest: Forest, model: Model, group: LoopGroup, loop_rows: LoopRows, V: tuple[Motion, ...], t: Array
) -> list[tuple[Row, Array]]:
    """Rows with the multipliers (n, *batch) that springs, limits and penalties put on them."""
    row_forces = []
    if any(forest.topology.loops[k].acts for k in group.loops):
        spring, ends = (numbers(forest, x, 3, group.loops) for x in (model.loop_spring, model.loop_limits))
        for k, row in enumerate(loop_rows.coordinates):
            x, rate = row.error, row_rate(row, V, loop_rows.origins)
            penalty = coefficients(forest, model, group, row)
            row_forces.append((row, _pull(x, rate, spring[..., k, :], ends[..., k, :], *penalty)))
    for row, off, pace in penalty_rows(forest, model, group, loop_rows, t):
        alpha, beta = coefficients(forest, model, group, row)
        row_forces.append((row, -(alpha * off + beta * (row_rate(row, V, loop_rows.origins) - pace))))
    return row_forces


def penalty_rows(
    forest: Forest, model: Model, group: LoopGroup, loop_rows: LoopRows, t: Array
) -> list[tuple[Row, Array, Array | float]]:
    """Rows that are held by penalty, their errors, and the rates of their targets, (n, *batch)."""
    if forest.topology.hold != "penalty" or group.kind in RELATIONS:
        return []
    target = targets(forest, model, group, t) if KINDS[group.kind].timed else (0.0, 0.0)
    difference = wrap_angle if group.kind == "driven_turn" else lambda off: off
    return [(row, difference(row.error - target[0]), target[1]) for row in loop_rows.rows]


def coefficients(forest: Forest, model: Model, group: LoopGroup, row: Row) -> tuple[Array, Array]:
    """Return alpha and beta (n, *batch) of a row: those of translations, or those of rotations."""
    arrays = (numbers(forest, x, 2, group.loops) for x in (model.loop_stiff, model.loop_damp))
    alpha, beta = (x[..., int(is_zero(row.f))] for x in arrays)
    return alpha, beta


@fence
def _pull(x, rate, spring, ends, alpha, beta):
    stiffness, rest, damping, force = (spring[..., k] for k in range(4))
    chi = beyond(x, ends)
    limit = jnp.where(chi != 0, alpha * chi + beta * rate, 0)
    return force - stiffness * (x - rest) - damping * rate - limit


def beyond(x: Array, ends: Array) -> Array:
    """chi: distance of x below the lower or above the upper end; 0 between them."""
    lower, upper = ends[..., 0], ends[..., 1]
    below, above = x < lower, x > upper
    return jnp.where(below, x - jnp.where(below, lower, 0), jnp.where(above, x - jnp.where(above, upper, 0), 0))


@fence
def wrenches_of(row_forces, origins) -> tuple[Force, Force]:
    """Wrenches of multipliers on links a and b, about their origins: opposite forces at the rows' points."""
    on_a = on_b = NONE
    for row, size in row_forces:
        moment, force = row.m * size, row.f * size
        on_a = Force(moment + (row.x_a - origins[0]).cross(force), force) + on_a
        on_b = Force(moment + (row.x_b - origins[1]).cross(force), force) + on_b
    return on_a, on_b * -1


def full(forest: Forest, n: int, F: Force) -> Force:
    """The wrenches of n loops, with zeros written out."""
    parts = (STILL.v if is_zero(x) else x for x in (F.n, F.f))
    return jax.tree.map(lambda x: dense(x, (n, *forest.batch), forest.dtype), Force(*parts), is_leaf=is_zero)


def _sum_by_link(forest: Forest, links: list[int], wrenches: list[Force]) -> list[Force]:
    """The sum of the wrenches on each link, one entry per group; those on the world are dropped."""
    wrenches_by_link = jax.tree.map(lambda *x: jnp.concatenate(x), *wrenches)
    by_link = jax.tree.map(lambda x: sum_by_target(x, links, forest.topology.n_links), wrenches_by_link)
    return [
        jax.tree.map(lambda x, g=group: x[g.links[0]] if g.n == 1 else take(x, g.links), by_link)
        for group in forest.groups
    ]
