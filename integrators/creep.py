"""Contacts that stick do not creep: the end of a step is moved back by what they slid within it.

A resting contact's friction is constant over a step, and such that it sticks at the end. If other forces change within
the step, as those of motors do, the bodies slide against each other and come back to rest: by h^3/12 times the rate at
which their accelerations differ, and in the same direction in every step if a motor is commanded step by step. The
displacement of both bodies at the contact point is known, and the end is moved by the least change that takes away
what it has along the tangents. A contact that rolls is left alone: its point migrates.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array
from jax.lax import stop_gradient

from ..contact.contact_jacobian import ContactJacobian
from ..contact.contacts import Contacts
from ..contact.gather_scatter import gather
from ..engine.algebra.bounded import loop
from ..engine.algebra.vec3 import Mat3, Vec3
from ..engine.dynamics.kinematics import fk, integrate_q
from ..engine.dynamics.trees import from_blocks, trees_of
from ..engine.model import Model
from .clocks import Clocks
from .least_changes import change_solver

LITTLE = 0.02  # gap bands: a smaller displacement is left
ROLLS = 1e-3  # sine of the rotation against each other in a step: a contact that rotates more may roll


def without_creep(
    model: Model, clocks: Clocks, rows: ContactJacobian, contacts: Contacts, frame: Mat3, sticks: Array, q: Array,
    after: Array, held: Array | None,
) -> Array:  # fmt: skip
    """Return the coordinates (*batch, nq) at the end of a step, moved back.

    rows, frame: contact Jacobian and frames in the middle of the step.
    contacts: contacts at its start.
    sticks: (C, *batch) bool, contacts that stick all through it.
    q, after: coordinates at both ends.
    held: (*batch, nv) joints that friction or a motor holds, which keep their place; None if the model has none.
    """
    trees = trees_of(model.topology)
    none = jnp.zeros((trees.n + 1, trees.w, *contacts.gap.shape[1:]), q.dtype)
    off, sticks = stop_gradient(_displacement(model, contacts, frame, sticks, q, after))

    def move_back(given: tuple[Clocks, ContactJacobian, Vec3, Array]) -> Array:
        clocks, rows, off, sticks = given
        ((shift, _),) = change_solver(clocks, rows, Vec3(sticks, sticks, sticks), none)(off)
        return shift

    most = jnp.maximum(jnp.abs(off.x), jnp.abs(off.y))
    creeps = (most > LITTLE * model.gap_band).any(0)  # in this lane
    off = jax.tree.map(lambda x: jnp.where(creeps, x, 0), off)
    given, start = (clocks, stop_gradient(rows.still), off, sticks), (creeps.any(), none)
    _, shift = loop(1, lambda _, x: x[0], lambda given, x: (x[0] & False, move_back(given)), given, start)
    shift = from_blocks(trees, shift)
    shift = shift if held is None else jnp.where(held, 0, shift)
    moved = integrate_q(model, after, shift, 1.0)
    return jnp.where(clocks.of_coordinates(model.topology, creeps), moved, after)


def _displacement(
    model: Model, contacts: Contacts, frame: Mat3, sticks: Array, q: Array, after: Array
) -> tuple[Vec3, Array]:
    """Return how far A's point at each contact has moved along that of B, (C, *batch) in `frame` [m], 0 along the
    normal and where nothing sticks, and which contacts stick without rolling."""
    ends = [fk(model, x) for x in (q, after)]
    place = [jnp.moveaxis(x.position, (-2, -1), (0, 1)) for x in ends]
    axes = [jnp.moveaxis(x.rotation, (-3, -2, -1), (0, 1, 2)) for x in ends]
    sides: list[tuple[Vec3, Vec3]] = []  # displacement and rotation
    for link in (contacts.link_a, contacts.link_b):
        row, moves = jnp.maximum(link, 0), link >= 0
        x_0, x_1 = (Vec3(*(gather(x, row, 1)[:, k] for k in range(3))) for x in place)
        R_0, R_1 = (Mat3(*(gather(x, row, 2)[:, j, k] for j in range(3) for k in range(3))) for x in axes)
        local = R_0.T @ (contacts.point - x_0)
        moved = (x_1 - x_0) + (R_1 @ local - R_0 @ local)
        R = R_1 @ R_0.T
        rotation = Vec3(R.zy - R.yz, R.xz - R.zx, R.yx - R.xy) * 0.5
        sides.append(jax.tree.map(lambda x, moves=moves: jnp.where(moves, x, 0), (moved, rotation)))
    (moved_a, rotation_a), (moved_b, rotation_b) = sides
    rotation, off = rotation_a - rotation_b, frame @ (moved_a - moved_b)
    sticks = sticks & (rotation.dot(rotation) <= ROLLS**2)
    none = jnp.zeros_like(off.z)
    return Vec3(jnp.where(sticks, off.x, 0), jnp.where(sticks, off.y, 0), none), sticks
