"""Sites: poses and velocities of the named frames of a scene."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..algebra.rotation import Quat
from ..model import Model
from ..shaped import Float
from .kinematics import Poses, fk, link_velocities


@jax.jit
def site_poses(model: Model, q: Float[Array, "*#batch nq"]) -> Poses:
    """Poses of all sites at the coordinates q, in the order of `Topology.sites`.

    position (..., nf, 3) [m]; rotation (..., nf, 3, 3): the site's axes, as columns, in the world.
    """
    links = fk(model, q)
    R = _of_sites(model, links.rotation, jnp.eye(3, dtype=q.dtype))
    own = Quat.of_array(model.site_quaternion).matrix()
    rows = jnp.stack([jnp.stack(row.xyz, -1) for row in own.rows], -2)
    return Poses(_of_sites(model, links.position, jnp.zeros(3, q.dtype)) + _arms(model, R), R @ rows)


@jax.jit
def site_velocities(
    model: Model, q: Float[Array, "*#batch nq"], v: Float[Array, "*#batch nv"]
) -> Float[Array, "*#batch nf 6"]:
    """Angular velocity of each site and velocity of its origin, (..., nf, 6), world axes [rad/s, m/s]."""
    w, v = jnp.split(_of_sites(model, link_velocities(model, q, v), jnp.zeros(6, q.dtype)), 2, -1)
    arms = _arms(model, _of_sites(model, fk(model, q).rotation, jnp.eye(3, dtype=q.dtype)))
    return jnp.concatenate([w, v + jnp.cross(w, arms)], -1)


def _arms(model: Model, R: Array) -> Array:
    """Vectors (..., nf, 3) from the origin of each site's link, whose axes are R (..., nf, 3, 3), to the site."""
    return (R * model.site_position[..., None, :]).sum(-1)


def _of_sites(model: Model, x: Array, world: Array) -> Array:
    """Values of each site's link from x (..., nl, *own); world: (*own), that of the world."""
    links = np.array([site.link for site in model.topology.sites], int)
    axis = x.ndim - world.ndim - 1
    row = jnp.broadcast_to(world, (*x.shape[:axis], 1, *world.shape))
    return jnp.take(jnp.concatenate([x, row], axis), links % (model.topology.n_links + 1), axis)
