"""Jacobians: the velocity of a point of a link as a linear map of the joint velocities."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from ..algebra.vec3 import Vec3
from ..forest import Forest
from ..model import Model
from ..shaped import Float, Real
from .kinematics import propagate_poses
from .trees import dof_motions


def jacobian(
    model: Model,
    q: Float[ArrayLike, "*#batch nq"],
    link: int | str,
    point: Real[ArrayLike, "*#batch 3"] | Sequence[float] = (0.0, 0.0, 0.0),
) -> Float[Array, "*#batch 6 nv"]:
    """J (..., 6, nv): J v = (angular velocity of the link, velocity of its point), both in world axes.

    link: index or name.  point: (..., 3) in the link's frame [m].
    """
    q = jnp.asarray(q)
    return _jacobian(model, q, jnp.asarray(point, q.dtype), link=model.topology.link(link))


@functools.partial(jax.jit, static_argnames="link")
def _jacobian(model: Model, q: Array, point: Array, link: int) -> Array:
    forest = Forest.of(model, q=q, point=point)
    topology = forest.topology
    if link < 0:
        return jnp.zeros((*forest.batch, 6, topology.nv), q.dtype)
    poses = propagate_poses(forest, model, q)
    x = forest.row(link, [p.pose for p in poses]) @ Vec3.of(point)
    motions, points = dof_motions(forest, poses)
    s = motions.at(x - points)
    rows = [jnp.moveaxis(row, 0, -1) for row in (*s.w.xyz, *s.v.xyz)]
    owner = np.repeat(np.arange(topology.n_links), np.diff(topology.v_start))
    return jnp.where(np.isin(owner, topology.ancestors(link)), jnp.stack(rows, -2), 0)
