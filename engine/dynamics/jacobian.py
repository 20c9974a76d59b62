"""Jacobians: how the joint velocities move a point of a link."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from ..algebra.vec3 import Vec3
from ..forest import Forest
from ..joints import JOINTS
from ..model import Model
from .kinematics import place


def jacobian(model: Model, q: ArrayLike, link: int | str, point: Any = (0.0, 0.0, 0.0)) -> Array:
    """J (..., 6, nv): J v = (angular velocity of the link, velocity of its point), both in world axes.

    q: (..., nq).  link: index or name.  point: (..., 3) in the link's frame [m].
    """
    q = jnp.asarray(q)
    return _jacobian(model, q, jnp.asarray(point, q.dtype), link=model.topology.link(link))


@functools.partial(jax.jit, static_argnames="link")
def _jacobian(model: Model, q: Array, point: Array, link: int) -> Array:
    forest = Forest.of(model, q=q, point=point)
    topology = forest.topology
    if link < 0:
        return jnp.zeros((*forest.batch, 6, topology.nv), q.dtype)
    placed = place(forest, model, q)
    x = forest.row(link, [p.pose for p in placed]) @ Vec3.of(point)
    columns = []
    for group, (pose, _, S) in zip(forest.groups, placed, strict=True):
        S = [s.at(x - pose.p).filled() for s in JOINTS[group.joint].subspace(S)]
        columns.append([(s.w.x, s.w.y, s.w.z, s.v.x, s.v.y, s.v.z) for s in S])
    rows = [forest.join_dofs([[s[k] for s in group] for group in columns]) for k in range(6)]
    owner = np.repeat(np.arange(topology.n_links), np.diff(topology.v_start))
    return jnp.where(np.isin(owner, topology.ancestors(link)), jnp.stack(rows, -2), 0)
