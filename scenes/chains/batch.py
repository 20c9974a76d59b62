"""Batches of chains, which may differ in everything, even in lengths and numbers of joints and grounds."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from ...engine.planar.model import OPEN, Chain, ChainState

FAR = 1e9  # [m] depth of the grounds that fill up a lane with fewer


def stack_chains(chains: Sequence[tuple[Chain, ChainState]]) -> tuple[Chain, ChainState]:
    """Stack single chains of `compile_scene` as the lanes of one batch, with room for the longest.

    Lanes of fewer joints leave the last ones unused; `Chain.joints` is the number of used ones.

    chains, states = carom.stack_chains([carom.compile_scene(spec) for spec in specs])
    """
    if not chains:
        raise ValueError("stack_chains: there are no chains; give at least one (chain, state)")
    for k, (chain, _) in enumerate(chains):
        if chain.mass.ndim != 1:
            raise ValueError(
                f"stack_chains: chain {k} is a batch, its masses are {chain.mass.shape}; give single chains"
            )
    n = max(chain.n for chain, _ in chains)
    g = max(len(chain.ground) for chain, _ in chains)
    far, upward = jnp.array([0.0, -FAR]), jnp.array([0.0, 1.0])

    def lane(chain: Chain, state: ChainState) -> tuple[Chain, ChainState]:
        def up(x: Array, fill: ArrayLike, size: int = n) -> Array:
            rest = jnp.broadcast_to(jnp.asarray(fill, x.dtype), (size - len(x), *x.shape[1:]))
            return jnp.concatenate([x, rest])

        zeros = {name: up(getattr(chain, name), 0) for name in ("guided", "line", "active", "roll", "drag")}
        wider = chain.replace(
            mass=up(chain.mass, 1), length=up(chain.length, 1, n - 1), lower=up(chain.lower, -jnp.inf),
            upper=up(chain.upper, jnp.inf), ground=up(chain.ground, far, g), normal=up(chain.normal, upward, g),
            **zeros,
        )  # fmt: skip
        x, v = up(state.x, 0), up(state.v, 0)
        return wider, ChainState(x, v, state.t, up(state.stuck, -1), up(state.shut, OPEN))

    return jax.tree.map(lambda *rows: jnp.stack(rows), *(lane(*pair) for pair in chains))
