"""Bounds of the speeds of shapes' points at one instant."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ...engine.algebra.vec3 import Vec3
from ...engine.dynamics.kinematics import propagate_poses, propagate_velocities
from ...engine.forest import Forest
from ...engine.model import Model
from ...engine.rows import take
from ..bounds import bounding_spheres, norm


@jax.jit  # traced once for all its calls
def shape_speeds(model: Model, q: Array, v: Array) -> Array:
    """Bounds (ns, *batch) of the speed of each shape's points, at q (*batch, nq) and v (*batch, nv) [m/s]; 0 for
    statics."""
    topology, forest = model.topology, Forest.of(model, q=q, v=v)
    moves = np.array(topology.shape_links, int) >= 0
    if not moves.any():
        return jnp.zeros((len(moves), *forest.batch), q.dtype)
    links = forest.by_link([x.V for x in propagate_velocities(forest, propagate_poses(forest, model, q), v)])
    twist = jax.tree.map(lambda x: take(x, np.where(moves, topology.shape_links, 0).tolist()), links)
    ball = bounding_spheres(model)
    # upper bound of the distance of the shape's points from the link's origin
    away = norm(Vec3.of(model.shape_position)) + norm(Vec3.of(ball.center)) + ball.radius
    away = jnp.where(moves, away, 0)
    away = jnp.moveaxis(away, -1, 0).reshape(len(moves), *(1,) * (len(forest.batch) + 1 - away.ndim), *away.shape[:-1])
    mobile = moves.reshape(-1, *(1,) * len(forest.batch))
    return jnp.where(mobile, norm(twist.v) + norm(twist.w) * away, 0)
