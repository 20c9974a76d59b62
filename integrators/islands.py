"""Islands of an instant: the trees that touch each other, directly or through others, or that springs couple.

What happens at an instant to one island does not concern another. The world ties nothing.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..engine.dynamics.trees import trees_of
from ..engine.topology import Topology


def islands(topology: Topology, tree: Array, touching: Array) -> Array:
    """The lowest tree of each tree's island (T, *batch).

    tree: (C, 2 or 1, *batch) the trees of each contact, as in `ContactJacobian`.
    touching: (C, *batch) bool, contacts that connect their trees.
    """
    n, lanes = trees_of(topology).n, (1,) * (touching.ndim - 1)
    number = jnp.arange(n, dtype=jnp.int32).reshape(n, *lanes)
    of_contact = (tree[:, :, None] == number).any(1)  # (C, T, *batch)
    coupled = np.array(_coupled(topology)).reshape(-1, n, *lanes)
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


def _coupled(topology: Topology) -> list[list[bool]]:
    """A row for each loop whose forces act between trees: which these are."""
    of_link, n = trees_of(topology).of_link, trees_of(topology).n
    ends = [{int(of_link[loop.a]), int(of_link[loop.b])} - {n} for loop in topology.loops if min(loop.a, loop.b) >= 0]
    return [[k in pair for k in range(n)] for pair in ends if len(pair) == 2]
