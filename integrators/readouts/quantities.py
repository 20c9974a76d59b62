"""The quantities that a run can report: each a sum over the steps and impacts between two frames.

Forces are reported as means over the time between two frames, of what acts smoothly; impulses are those of the impacts
there. Both together are all that was handed over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from ...contact.readout import contact_impulses, link_impulses
from ...engine.dynamics.wrenches import joint_wrenches
from ...engine.model import Model
from ...engine.topology import Topology
from .passage import Passage, Push


class Quantity(NamedTuple):
    """shape: of it, without lanes.  of: what a step adds to it, (*batch, *shape).  mean: whether it is reported as a
    mean over time (a force), not as a sum (an impulse)."""

    shape: Callable[[Topology], tuple[int, ...]]
    of: Callable[[Model, Passage], Array]
    mean: bool


def _links(topology: Topology) -> tuple[int, ...]:
    return topology.n_links, 6


def _pairs(topology: Topology) -> tuple[int, ...]:
    return len(topology.pairs), 3


def _on_links(model: Model, push: Push) -> Array:
    return link_impulses(model, *push)


def _on_pairs(model: Model, push: Push) -> Array:
    return contact_impulses(model, push.contacts, push.p).pair


def _of_jumps(on: Callable[[Model, Push], Array]) -> Callable[[Model, Passage], Array]:
    return lambda model, step: sum((on(model, push) for push, _ in step.jumps), start=jnp.zeros(()))


def joint_forces(model: Model, step: Passage) -> Array:
    """Mean wrench through each joint during the step, times its length: of the mean acceleration, midway."""
    h = step.h[..., None]
    moves = h > 0
    part = jnp.where(moves, h, 1)
    rest = _on_links(model, step.rest) / part[..., None]
    wrench = joint_wrenches(model, step.q, step.v, step.dv / part, rest)
    return jnp.where(moves[..., None], wrench * h[..., None], 0)


def joint_impulses(model: Model, step: Passage) -> Array:
    """Impulse through each joint: what its links beyond need for their jump, less what contacts give them."""
    weightless: Any = model.replace(gravity=jnp.zeros_like(model.gravity))
    still = jnp.zeros_like(step.v)
    each = [joint_wrenches(weightless, push.q, still, jump, _on_links(model, push)) for push, jump in step.jumps]
    return sum(each, start=jnp.zeros(()))


QUANTITIES = {
    "contact_forces": Quantity(_links, lambda model, step: _on_links(model, step.rest), True),
    "contact_impulses": Quantity(_links, _of_jumps(_on_links), False),
    "pair_forces": Quantity(_pairs, lambda model, step: _on_pairs(model, step.rest), True),
    "pair_impulses": Quantity(_pairs, _of_jumps(_on_pairs), False),
    "joint_forces": Quantity(_links, joint_forces, True),
    "joint_impulses": Quantity(_links, joint_impulses, False),
}
