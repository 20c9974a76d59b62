"""Wrenches of loops on the links they join: forces and moments of constraints, springs, limits, gears and drives."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..algebra.fence import fence
from ..algebra.safe import safe_div
from ..algebra.spatial import Force, Motion
from ..algebra.vec3 import Vec3
from ..dynamics.kinematics import LinkPoses, fk, propagate_poses, propagate_velocities
from ..dynamics.passive import motor_forces, passive_forces
from ..dynamics.trees import dof_motions
from ..forest import Forest
from ..model import Model
from ..rows import sum_by_target, take
from ..shaped import Float
from ..state import State
from ..topology import Topology
from .active_forces import active_multipliers, full, loop_forces, wrenches_of
from .evaluation import STILL, LoopGroup, by_loop, evaluate_loops, groups_of, of_links, row_loops
from .forward import constrained, exact
from .kinds import RELATIONS

NO_FORCE = Force(Vec3(0.0, 0.0, 0.0), Vec3(0.0, 0.0, 0.0))


@jax.jit
def loop_wrenches(
    model: Model,
    state: State,
    control: Float[Array, "*#batch nv"] | None = None,
    forces: Float[Array, "*#batch nv"] | None = None,
) -> Float[Array, "*#batch nk 6"]:
    """Moment about frame a's origin [N m] and force [N] of each loop on its link a, world axes.

    Link b gets the opposite at the same point. A gear or a drive rotates, or pushes, link a along its joint.
    control: the command to the motors; None: their targets.
    forces: more forces along the degrees of freedom, or None. Contact forces count only if they are given
    here: contacts act by impulses, in steps.
    If loops are redundant, their forces are not determined: these are the smallest of all solutions.
    """
    q, v = state.q, state.v
    t = jnp.broadcast_to(jnp.asarray(state.t, q.dtype), Forest.of(model, q=q, v=v).batch)
    force = _multipliers(model, q, v, t, control, 0.0 if forces is None else forces)
    return wrenches_by_loop(model, q, v, t, force, True)


def wrenches_by_loop(model: Model, q: Array, v: Array, t: Array, force: Array, acting: bool) -> Array:
    """Wrenches (*batch, nk, 6) of each loop, in the form of `loop_wrenches`.

    force: (m, *batch) multipliers, rows as in `evaluation.py`.
    acting: whether springs, limits and penalties act too.
    """
    topology = model.topology
    forest = Forest.of(model, q=q, v=v)
    poses = propagate_poses(forest, model, q)
    velocities = forest.by_link([x.V for x in propagate_velocities(forest, poses, v)])
    parts = [jnp.zeros((0, 6, *forest.batch), forest.dtype)]
    for group, loop_rows in zip(groups_of(topology), evaluate_loops(forest, model, poses), strict=True):
        sizes = _sizes(topology, force, group)
        if group.kind in RELATIONS:
            wrench = _along_joint(forest, poses, group, sizes[0])
        else:
            row_forces = [*zip(loop_rows.rows, sizes, strict=False)]
            if acting:
                V = tuple(of_links(velocities, ends, STILL) for ends in (group.a, group.b))
                row_forces += active_multipliers(forest, model, group, loop_rows, V, t)
            wrench = wrenches_of(row_forces, loop_rows.origins)[0] if row_forces else NO_FORCE
        rows = [jnp.broadcast_to(x, (len(group.loops), *forest.batch)) for x in (*wrench.n.xyz, *wrench.f.xyz)]
        parts.append(jnp.stack(rows, 1))
    order = np.argsort([k for group in groups_of(topology) for k in group.loops])
    return _about_frames(model, q, jnp.moveaxis(jnp.concatenate(parts)[order], (0, 1), (-2, -1)))


def loop_wrenches_on_links(model: Model, q: Array, v: Array, t: Array, force: Array, acting: bool) -> Array:
    """Wrenches (..., nl, 6) of all loops on the links they join: moment about the link's origin, force; world axes.

    force: (m, *batch) multipliers, rows as in `evaluation.py`.
    acting: whether springs, limits and penalties act too.

    Gears and drives of joints are not among them: they act along a joint as its motor does.
    """
    topology = model.topology
    forest = Forest.of(model, q=q, v=v)
    poses = propagate_poses(forest, model, q)
    velocities = forest.by_link([x.V for x in propagate_velocities(forest, poses, v)])
    links, wrenches = [], []
    for group, loop_rows in zip(groups_of(topology), evaluate_loops(forest, model, poses), strict=True):
        if group.kind in RELATIONS:
            continue
        row_forces = [*zip(loop_rows.rows, _sizes(topology, force, group), strict=False)]
        if acting:
            V = tuple(of_links(velocities, ends, STILL) for ends in (group.a, group.b))
            row_forces += active_multipliers(forest, model, group, loop_rows, V, t)
        if row_forces:
            links += group.a + group.b
            wrenches += [full(forest, len(group.loops), side) for side in wrenches_of(row_forces, loop_rows.origins)]
    if not links:
        return jnp.zeros((*forest.batch, topology.n_links, 6), forest.dtype)
    by_link = jax.tree.map(lambda *x: sum_by_target(jnp.concatenate(x), links, topology.n_links), *wrenches)
    return jnp.moveaxis(jnp.stack([*by_link.n.xyz, *by_link.f.xyz], 1), (0, 1), (-2, -1))


def _sizes(topology: Topology, force: Array, group: LoopGroup) -> list[Array]:
    """Multipliers (n, *batch) of each row of a group, from those of all rows (m, *batch)."""
    each = [force[np.flatnonzero(np.array(row_loops(topology)) == k)] for k in group.loops]
    return [jnp.stack(rows) for rows in zip(*each, strict=True)]


def _multipliers(model: Model, q: Array, v: Array, t: Array, control: Array | None, forces: Array | float) -> Array:
    """Multipliers (m, *batch), rows as in `evaluation.py`; zeros if penalty forces act instead."""
    tau = passive_forces(model, q, v) + motor_forces(model, q, v, control) + loop_forces(model, q, v, t) + forces
    if not exact(model.topology):
        return jnp.zeros((len(row_loops(model.topology)), *tau.shape[:-1]), tau.dtype)
    force = jnp.moveaxis(constrained(model, q, v, t, tau).force, -1, 0)
    return force[np.argsort(by_loop(model.topology))]


def _along_joint(forest: Forest, poses: list[LinkPoses], group: LoopGroup, size: Array) -> Force:
    """The wrench with work `size` along a degree of freedom: a moment if it rotates, else a force (n, *batch)."""
    motions, _ = dof_motions(forest, poses)
    dofs = [forest.topology.loops[k].dofs[0] for k in group.loops]
    return _working(jax.tree.map(lambda x: take(x, dofs), motions), size)


@fence
def _working(s: Motion, size: Array) -> Force:
    turn, shift = s.w.dot(s.w), s.v.dot(s.v)
    rotates = turn > 0
    moment = safe_div(size, turn)
    force = jnp.where(rotates, 0, size / jnp.where(rotates, 1, shift))
    return Force(s.w * moment, s.v * force)


def _about_frames(model: Model, q: Array, wrenches: Array) -> Array:
    """Move wrenches (..., loops, 6) from the links' origins to those of frames a."""
    links = np.array([loop.a for loop in model.topology.loops], int)
    arm, rotation = model.loop_position[..., 0, :], fk(model, q).rotation
    offset = (rotation[..., np.maximum(links, 0), :, :] @ arm[..., None])[..., 0]
    arm = jnp.where((links < 0)[:, None], arm, offset)
    moment, force = wrenches[..., :3], wrenches[..., 3:]
    return jnp.concatenate([moment - jnp.cross(arm, force), force], -1)
