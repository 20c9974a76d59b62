"""Resting contact as literal trains of micro-collisions, for comparison with `solve.py`.

Mirtich (1996), section 3.3, as far as public sources tell (IHMC's simulation construction set): a contact that closes
slowly gets the impulse that reverses its whole relative velocity, p = -2 K^-1 u, if it is in the friction cone;
otherwise the impact law with e = 1 gives it, so that the body stays within the envelope. During a step all bodies fly
freely. A block on a slope creeps, and piles need short steps.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from ...engine.algebra.vec3 import Vec3
from ...engine.dynamics.trees import from_blocks, to_blocks, trees_of
from ...engine.model import Model
from ..contact_jacobian import ContactJacobian, apply_impulses, relative_velocity
from ..contacts import Contacts
from ..determine import phases
from ..gather_scatter import gather
from ..laws.table import impulse, law_named
from .solve import Midway, Rest

ROUNDS = 4  # passes over the contacts, one contact after another


def microcollisions(
    model: Model,
    contacts: Contacts,
    rows: ContactJacobian,
    v: Array,
    v_free: Array,
    h: Array | float,
    midway: Midway,
    grips: None = None,
    window: None = None,
) -> Rest:
    """Resolve a few rounds of micro-collisions before a step of free flight; v_free, h and midway are not used."""
    del v_free, h, midway, grips, window
    trees, law = trees_of(model.topology), law_named("stronge")
    V = to_blocks(trees, v)
    resting = phases(model, contacts, relative_velocity(rows, V).z).resting
    room = len(contacts.gap)
    last = jnp.max(jnp.where(resting, jnp.arange(room).reshape(-1, *(1,) * (V.ndim - 2)), -1)) + 1

    def collide(i, carry):
        V, total = carry
        c = jnp.broadcast_to(jnp.int32(i % last), contacts.code.shape)[None]
        one, mu, rests = jax.tree.map(lambda x: gather(x, c, x.ndim - V.ndim + 1), (rows, contacts.friction, resting))
        u = relative_velocity(one, V)
        reversing = one.K.inverse() @ u * -2.0
        sideways = reversing.x * reversing.x + reversing.y * reversing.y
        fits = (reversing.z >= 0) & (sideways <= (mu * reversing.z) ** 2)
        bounced, _ = impulse(law, one.K, u, mu, 1.0, 0.0)
        p = jax.tree.map(lambda a, b: jnp.where(rests & (u.z < 0), jnp.where(fits, a, b), 0), reversing, bounced)
        total = jax.tree.map(lambda t, x: t + jnp.where(_is(c, room), x, 0), total, p)
        return apply_impulses(one, V, p), total

    none = jnp.zeros_like(contacts.gap)
    V, total = jax.lax.fori_loop(0, ROUNDS * last, collide, (V, Vec3(none, none, none)))
    return Rest(from_blocks(trees, V), jnp.zeros_like(v), total, jnp.zeros_like(contacts.code))


def _is(c: Array, room: int) -> Array:
    return jnp.arange(room).reshape(-1, *(1,) * (c.ndim - 1)) == c
