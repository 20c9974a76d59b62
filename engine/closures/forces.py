"""Forces of loops that are not constraint forces: springs, dampers, limits, and the penalty joints.

Mikhaylyuk & Strashnov (2013): a row that is held by penalty pulls with -(alpha G + beta dG/dt) along its Jacobian (9);
a limit does so beyond its end (21, 25), chi = G - end there and 0 between the ends. Departure: the limits of turns are
taken of the angle, where the paper takes its sine, and so may lie anywhere within half a turn.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from ..algebra.fence import fence
from ..algebra.spatial import Force, Motion
from ..algebra.vec3 import Vec3
from ..algebra.zero import is_zero
from ..dynamics.kinematics import move, place
from ..dynamics.wrenches import along_joints
from ..forest import Forest
from ..model import Model
from ..rows import sum_into, take
from .kinds import KINDS, RELATIONS, Row
from .measured import Group, course, groups_of, numbers, of_links, row_rate, standing, wrapped

NONE = Vec3(0.0, 0.0, 0.0)
STILL = Motion(NONE, NONE)


@jax.jit
def loop_forces(model: Model, q: Array, v: Array, t: Array | float) -> Array:
    """Joint forces (..., nv) of all loops that act or are held by penalty; q (..., nq), v (..., nv), t (...)."""
    topology = model.topology
    forest = Forest.of(model, q=q, v=v)
    if not (topology.hold == "penalty" or any(loop.acts for loop in topology.loops)):
        return jnp.zeros((*forest.batch, topology.nv), forest.dtype)
    t = jnp.broadcast_to(jnp.asarray(t, q.dtype), forest.batch)
    placed = place(forest, model, q)
    velocities = forest.by_link([x.V for x in move(forest, placed, v)])
    links: list[int] = []
    pushes: list[Force] = []
    for group, stand in zip(groups_of(topology), standing(forest, model, placed), strict=True):
        V = tuple(of_links(velocities, ends, STILL) for ends in (group.a, group.b))
        pull = _pulls(forest, model, group, stand, V, t)
        for row, size in pull:
            for side, ends in enumerate((group.a, group.b)):
                links += ends
                pushes.append(_push(row, size if side == 0 else -size, (row.x_a, row.x_b)[side], stand.origins[side]))
    return along_joints(forest, placed, _summed(forest, links, pushes))


def _pulls(forest: Forest, model: Model, group: Group, stand: Any, V: Any, t: Array) -> list[tuple[Row, Array]]:
    """Rows with the multipliers (n, *batch) that springs, limits and penalties put on them."""
    acts = any(forest.topology.loops[k].acts for k in group.loops)
    pulls = []
    if acts:
        spring, ends, alpha, beta = (
            numbers(forest, x, own, group.loops)
            for x, own in ((model.loop_spring, 3), (model.loop_limits, 3), (model.loop_stiff, 2), (model.loop_damp, 2))
        )
        for k, row in enumerate(stand.left):
            turns = int(is_zero(row.f))
            x, rate = row.error, row_rate(row, V, stand.origins)
            pulls.append((row, _pull(x, rate, spring[..., k, :], ends[..., k, :], alpha[..., turns], beta[..., turns])))
    if forest.topology.hold == "penalty" and group.kind not in RELATIONS:
        alpha, beta = (numbers(forest, x, 2, group.loops) for x in (model.loop_stiff, model.loop_damp))
        goal = course(forest, model, group, t) if KINDS[group.kind].timed else (0.0, 0.0)
        for k, row in enumerate(stand.rows):
            turns = int(k >= KINDS[group.kind].shifts)
            off, rate = row.error - goal[0], row_rate(row, V, stand.origins) - goal[1]
            off = wrapped(off) if group.kind == "driven_turn" else off
            pulls.append((row, -(alpha[..., turns] * off + beta[..., turns] * rate)))
    return pulls


@fence
def _pull(x, rate, spring, ends, alpha, beta):
    stiffness, rest, damping, force = (spring[..., k] for k in range(4))
    lower, upper = ends[..., 0], ends[..., 1]
    chi = jnp.minimum(x - jnp.where(x < lower, lower, x), 0) + jnp.maximum(x - jnp.where(x > upper, upper, x), 0)
    limit = jnp.where(chi != 0, alpha * chi + beta * rate, 0)
    return force - stiffness * (x - rest) - damping * rate - limit


@fence
def _push(row: Row, size, at, origin):
    """The wrench about a link's origin that a multiplier puts on it."""
    f = NONE if is_zero(row.f) else row.f * size
    moment = NONE if is_zero(row.f) else (at - origin).cross(f)
    return Force(moment if is_zero(row.m) else moment + row.m * size, f)


def _summed(forest: Forest, links: list[int], pushes: list[Force]) -> list[Force]:
    """The wrenches on each link, one entry a group; those on the world go nowhere."""
    moving = [k for k, link in enumerate(links) if link >= 0]
    order = sorted(moving, key=lambda k: links[k])
    full = jax.tree.map(lambda *x: jnp.concatenate([jnp.broadcast_to(y, (len(y), *forest.batch)) for y in x]), *pushes)
    rows = [links[k] for k in order]
    by_link = jax.tree.map(lambda x: sum_into(take(x, order), rows, forest.topology.n_links), full)
    return [
        jax.tree.map(lambda x, g=group: x[g.links[0]] if g.n == 1 else take(x, g.links), by_link)
        for group in forest.groups
    ]
