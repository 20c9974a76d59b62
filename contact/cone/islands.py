"""Islands of contacts: contacts that moving trees join, directly or through other contacts.

The accuracy required in one island must not depend on the velocities in another. Values spread along the contacts until
none grows. There is no table of contacts by trees, which a heap would fill with zeros.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array
from jax.lax import fori_loop

from .blocks import block, put
from .many import ActiveRows


def largest_in_islands(contacts: ActiveRows, x: Array, trees: int) -> Array:
    """Return the largest entries of x (C, k), >= 0, in the island of each active contact.

    trees: number of moving trees.
    """
    if trees == 1:
        return jnp.broadcast_to(x.max(0), x.shape)

    def join(n: Array, carry: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        """Give one contact and its two trees the largest entries of all three."""
        x, most, grew, back = carry
        c = block(contacts.which, jnp.where(back, contacts.count - 1 - n, n))
        ends = [block(contacts.tree, c, jnp.int32(i)) for i in range(contacts.tree.shape[1])]
        new = block(x, c)
        for end in ends:
            new = jnp.maximum(new, block(most, end))
        for end in ends:
            old = block(most, end)
            there = jnp.where(end < trees, new, old)  # the last row, of the world, stays 0
            grew, most = grew | (there > old).any(), put(most, there, end)
        return put(x, new, c), most, grew, back

    def sweep(carry: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        x, most, _, back = carry
        return fori_loop(0, contacts.count, join, (x, most, jnp.array(False), ~back))

    none = jnp.zeros((trees + 1, x.shape[1]), x.dtype)
    return jax.lax.while_loop(lambda s: s[2], sweep, (x, none, jnp.array(True), jnp.array(True)))[0]
