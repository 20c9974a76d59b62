"""Response of a tree to impulses: the change of all joint velocities, without the inertia matrix.

Mirtich (1996), sections 4.3-4.4, by the passes of the articulated-body algorithm: impulses instead of
forces, velocity changes instead of accelerations, no velocity-dependent terms. Positions do not change.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from ..algebra.spatial import Force
from ..algebra.vec3 import Vec3
from ..algebra.zero import ZERO
from ..forest import Forest
from ..model import Model
from ..shaped import Float, Real
from .aba import Columns, Factor, factorize, solve
from .bodies import inertias
from .kinematics import AT_REST, LinkPoses, propagate_poses

NONE = Force(ZERO, ZERO)


def respond(
    forest: Forest, poses: list[LinkPoses], factors: list[Factor], impulses: Sequence[Force], joints: Sequence[Columns]
) -> list[Columns]:
    """Velocity change of all degrees of freedom, one entry per group.

    impulses: wrench impulses on the links at their origins, world axes [N m s, N s], one entry per group.
    joints: impulses along the degrees of freedom, one entry per group. ZERO parts cost nothing.
    """
    still = [AT_REST] * len(poses)
    return solve(forest, poses, factors, [NONE - x for x in impulses], list(joints), still, AT_REST)


def impulse_response(
    model: Model,
    q: Float[ArrayLike, "*#batch nq"],
    link: int | str,
    point: Real[ArrayLike, "*#batch 3"] | Sequence[float] = (0.0, 0.0, 0.0),
    impulse: Real[ArrayLike, "*#batch 3"] | Sequence[float] = (0.0, 0.0, 0.0),
    moment: Real[ArrayLike, "*#batch 3"] | Sequence[float] = (0.0, 0.0, 0.0),
) -> Float[Array, "*#batch nv"]:
    """Change of the joint velocities when a link is struck: M^-1 J^T (moment, impulse).

    link: index or name.  point: (..., 3) in the link's frame [m].
    impulse: (..., 3) [N s] at the point and moment: (..., 3) [N m s], both in world axes.
    """
    q = jnp.asarray(q)
    point, impulse, moment = (jnp.asarray(x, q.dtype) for x in (point, impulse, moment))
    return _impulse_response(model, q, point, impulse, moment, link=model.topology.link(link))


@functools.partial(jax.jit, static_argnames="link")
def _impulse_response(model: Model, q: Array, point: Array, impulse: Array, moment: Array, link: int) -> Array:
    forest = Forest.of(model, q=q, point=point, impulse=impulse, moment=moment)
    if link < 0:
        return jnp.zeros((*forest.batch, forest.topology.nv), q.dtype)
    poses = propagate_poses(forest, model, q)
    factors = factorize(forest, model, poses, inertias(forest, model, poses))
    arm = forest.row(link, [x.pose.R for x in poses]) @ Vec3.of(point)
    struck = Force(Vec3.of(moment), Vec3.of(impulse)).from_point(arm)
    impulses = forest.only(link, struck, NONE)
    joints = [(ZERO,) * len(forest.per_dof(model.armature, group)) for group in forest.groups]
    return forest.join_dofs(respond(forest, poses, factors, impulses, joints))
