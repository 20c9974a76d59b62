"""Islands of an instant: the trees that touch each other, directly or through others, or that springs couple.

Islands do not influence each other at an instant. The world connects no trees.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..contact.cone.blocks import block, indices_of, put
from ..engine.algebra.fence import lane_programs
from ..engine.dynamics.trees import trees_of
from ..engine.topology import Topology


def islands(topology: Topology, tree: Array, touching: Array) -> Array:
    """Return the lowest tree of each tree's island (T, *batch).

    tree: (C, 2 or 1, *batch) the trees of each contact, as in `ContactJacobian`.
    touching: (C, *batch) bool, contacts that connect their trees.
    """
    if lane_programs() and touching.ndim == 1 and tree.shape[1] == 2:
        return _of_one_lane(topology, tree, touching)
    n, lanes = trees_of(topology).n, (1,) * (touching.ndim - 1)
    number = jnp.arange(n, dtype=jnp.int32).reshape(n, *lanes)
    of_contact = (tree[:, :, None] == number).any(1)  # (C, T, *batch)
    coupled = np.array(_loop_couplings(topology)).reshape(-1, n, *lanes)
    ties = jnp.concatenate(
        [of_contact & touching[:, None], jnp.broadcast_to(coupled, (len(coupled), *of_contact.shape[1:]))]
    )

    def spread(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        lowest, _ = carry
        of_tie = jnp.where(ties, lowest, n).min(1, initial=n)
        new = jnp.minimum(lowest, jnp.where(ties, of_tie[:, None], n).min(0, initial=n))
        return new, (new != lowest).any()

    own = jnp.broadcast_to(number, of_contact.shape[1:])
    return jax.lax.while_loop(lambda carry: carry[1], spread, (own, jnp.array(True)))[0]


def _of_one_lane(topology: Topology, tree: Array, touching: Array) -> Array:
    """Compute `islands` tie by tie, until no tree changes its island."""
    coupled = [[k for k, is_tied in enumerate(row) if is_tied] for row in _loop_couplings(topology)]
    ties = jnp.concatenate([tree.astype(jnp.int32), jnp.array(coupled, jnp.int32).reshape(-1, 2)])
    real = jnp.concatenate([touching, jnp.ones(len(coupled), bool)]) & (ties < trees_of(topology).n).all(1)
    which, count = indices_of(real)

    def tie(k: Array, own: Array) -> Array:
        a, b = block(ties, block(which, k))
        lowest = jnp.minimum(block(own, a), block(own, b))
        return put(put(own, lowest, a), lowest, b)

    def spread(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        own = jax.lax.fori_loop(0, count, tie, carry[0])
        return own, (own != carry[0]).any()

    start = jnp.arange(trees_of(topology).n, dtype=jnp.int32), jnp.array(True)
    return jax.lax.while_loop(lambda carry: carry[1], spread, start)[0]


def _loop_couplings(topology: Topology) -> list[list[bool]]:
    """Return a row for each loop whose forces act between two trees; it marks these trees."""
    of_link, n = trees_of(topology).of_link, trees_of(topology).n
    ends = [{int(of_link[loop.a]), int(of_link[loop.b])} - {n} for loop in topology.loops if min(loop.a, loop.b) >= 0]
    return [[k in pair for k in range(n)] for pair in ends if len(pair) == 2]
