"""Resting and sliding contacts: the impulses that carry them over a step, found together.

A train of micro-collisions (Mirtich 1996, section 3.3; Holck 2.2.2) keeps a body on its support by impulses too small
and too many to follow. Over a step of length h they add up to one impulse p a contact, which is what is solved for:

    u(h) = J (v + h a) + W p,   0 <= p_n _|_ u_n(h) - goal >= 0,   Coulomb: |p_t| <= mu p_n, opposed to u_t(h)

The step then takes p/h as constant forces, so that positions see half of what velocities see: a block slides on an
exact parabola, a block that sticks stays. The goal closes the gap over some steps, -CLOSING gap/h, and no faster than
half the rest speed: what is too deep comes out slowly, still resting, and does not jump.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from ...engine.algebra.vec3 import Vec3
from ...engine.dynamics.trees import from_blocks, to_blocks, trees_of
from ...engine.model import Model
from ..cone.solve import solve_cone
from ..contacts import Contacts
from ..determine import phases
from ..rows import Rows, joint_impulses, relative

CLOSING = 0.2  # of the gap a step closes; twice that would still not oscillate
PUSH = 0.5  # rest speeds: faster, and the contact would no longer count as resting


class Rest(NamedTuple):
    """What resting contacts do to a step.

    v: (*batch, nv) velocities to start the step with.  spread: (*batch, nv) joint impulses to spread over it
    [N m s, N s].  impulse: (C, *batch) of each contact on A, in its frame, both parts together [N s].
    code: (*batch).
    """

    v: Array
    spread: Array
    impulse: Vec3
    code: Array


def solve(model: Model, contacts: Contacts, rows: Rows, v: Array, v_free: Array, h: Array | float) -> Rest:
    """All resting contacts together, for a step of length h [s] whose velocities would end at v_free (*batch, nv)."""
    trees = trees_of(model.topology)
    resting = phases(model, contacts, relative(rows, to_blocks(trees, v)).z).resting
    goal = jnp.minimum(-CLOSING * contacts.gap / h, PUSH * model.rest_speed)
    p, _, code = solve_cone(rows, to_blocks(trees, v_free), goal, contacts.friction, resting)
    p = jax.tree.map(lambda x: jnp.where(resting, x, 0), p)
    return Rest(v, from_blocks(trees, joint_impulses(rows, p, trees.n + 1)), p, code)
