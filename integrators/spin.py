"""The longest step that follows contacts of balls whose centre of mass is not in the middle.

A step takes the contact Jacobian midway. If a body's centre of mass is beside the line of the contact's normal, the arm
between them turns with the spin, as on a tippe top. What the arm turns within a step is an error of friction's moment
that always points the same way. Only spheres are followed: what spins on a corner or a rim soon does so on another.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..contact.contacts import Contacts
from ..contact.curvature import ContactKinematics
from ..contact.gather_scatter import gather
from ..engine.algebra.rotation import Quat
from ..engine.algebra.safe import safe_div, safe_sqrt
from ..engine.algebra.vec3 import Vec3
from ..engine.model import Model
from ..engine.rows import take
from ..engine.state import State
from ..engine.topology import Topology

SPIN = 0.2  # [rad] largest angle by which an arm turns in a step
ASIDE = 1e-3  # part of the arm: a centre of mass that is nearer to the line of the normal is on it


def followed_step(
    model: Model, state: State, contacts: Contacts, kinematics: ContactKinematics, max_dt: Array
) -> Array:
    """Return the longest step (C, *batch) that follows each contact, inf if it need not be followed [s].

    max_dt: () or (*batch), the longest step [s].
    """
    topology, batch, never = model.topology, contacts.gap.shape[1:], jnp.full_like(contacts.gap, jnp.inf)
    bodies = _free_balls(topology)
    if not bodies or not topology.pairs:
        return never

    def of_bodies(x: Array, starts: tuple[int, ...], n: int) -> Array:
        rows = [starts[i] + k for i in bodies for k in range(n)]
        return jnp.moveaxis(take(x, rows, -1).reshape(*x.shape[:-1], len(bodies), n), -2, 0)

    q, v = of_bodies(state.q, topology.q_start, 7), of_bodies(state.v, topology.v_start, 6)
    com = jnp.moveaxis(jnp.broadcast_to(take(model.com, bodies, -2), (*batch, len(bodies), 3)), -2, 0)
    spin, offset = Vec3.of(v), Quat.of_array(q[..., 3:]).rotate(Vec3.of(com))

    def look() -> Array:
        table = jnp.asarray(_ball_of_shapes(topology)[np.array(topology.pairs, int)])
        moving = spin, Vec3.of(q) + offset, Vec3.of(v[..., 3:]) + spin.cross(offset)
        numbers = (table[jnp.maximum(contacts.pair, 0), side] for side in range(2))
        return functools.reduce(jnp.minimum, (_of_side(k, moving, contacts, kinematics) for k in numbers))

    fast = (spin.dot(spin) * max_dt**2 > SPIN**2).any()
    return jax.lax.cond(fast, look, lambda: never)


def _of_side(body: Array, moving: tuple[Vec3, Vec3, Vec3], contacts: Contacts, kinematics: ContactKinematics) -> Array:
    """Return the longest step (C, *batch) for the bodies on one side of the contacts.

    body: (C, *batch) their numbers, -1 for what is no sphere of a free body.
    moving: angular velocities, centres of mass and their velocities, components (n, *batch).
    """
    spin, center, velocity = jax.tree.map(lambda x: gather(x, jnp.maximum(body, 0), 0), moving)
    n, arm = contacts.frame.rows[2], contacts.point - center
    height, fast = n.dot(arm), spin.dot(spin)
    change = kinematics.point - velocity - kinematics.normal * height
    at, soon = (x - n * n.dot(x) for x in (arm, change))  # where it is beside the normal, and how that changes
    there = contacts.active & ~contacts.is_limit & (body >= 0)

    def rate(x: Vec3, least: Array) -> Array:
        turning, size = spin.cross(x), x.dot(x)
        return safe_div(turning.dot(turning), size, there & (size > least))

    least = ASIDE**2 * arm.dot(arm)
    return safe_div(SPIN, safe_sqrt(jnp.maximum(rate(at, least), rate(soon, least * fast))), otherwise=jnp.inf)


@functools.cache
def _free_balls(topology: Topology) -> tuple[int, ...]:
    """Return links that float, carry no other, and have a sphere."""
    parents = set(topology.parents)
    round_ones = {
        link for link, kind in zip(topology.shape_links, topology.shape_kinds, strict=True) if kind == "sphere"
    }
    floats = (i for i, joint in enumerate(topology.joints) if joint == "floating")
    return tuple(i for i in floats if i in round_ones and i not in parents)


def _ball_of_shapes(topology: Topology) -> np.ndarray:
    """Return the number of each shape's link among `_free_balls`, -1 for what is no sphere of one."""
    balls = _free_balls(topology)
    number = np.full(topology.n_links + 1, -1, np.int32)  # the last link is the world
    number[list(balls)] = np.arange(len(balls))
    return np.where(np.array(topology.shape_kinds) == "sphere", number[np.array(topology.shape_links, int)], -1)
