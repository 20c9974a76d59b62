"""The quantities that a run can report, each a sum over the steps and impacts between two frames.

Forces are means of the smooth forces over the time between two frames; impulses are sums over the impacts in it. Both
together are the whole momentum that was transferred.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from ...contact.impulses import ContactImpulses
from ...engine.dynamics.wrenches import joint_wrenches
from ...engine.model import Model
from ...engine.topology import Topology
from .step_summary import StepSummary, VelocityJump, weightless


class Quantity(NamedTuple):
    """A quantity that a run can report.

    shape: its shape without lanes.
    of: contribution of a step, (*batch, *shape).
    mean: whether it is reported as a mean over time (a force), not as a sum (an impulse).
    """

    shape: Callable[[Topology], tuple[int, ...]]
    of: Callable[[Model, StepSummary], Array]
    mean: bool


def _links(topology: Topology) -> tuple[int, ...]:
    return topology.n_links, 6


def _pairs(topology: Topology) -> tuple[int, ...]:
    return len(topology.pairs), 3


def _loops(topology: Topology) -> tuple[int, ...]:
    return len(topology.loops), 6


def lanes_first(x: Array) -> Array:
    """Return x (n, k, *batch) as (*batch, n, k)."""
    return jnp.moveaxis(x, (0, 1), (-2, -1))


def _sum_jumps(step: StepSummary) -> ContactImpulses:
    first, *others = (jump.impulses for jump in step.jumps)
    return functools.reduce(ContactImpulses.__add__, others, first)


def joint_forces(model: Model, step: StepSummary) -> Array:
    """Return the mean wrench through each joint in the step, times its length, by the mean acceleration, midway."""
    h = step.h[..., None]
    moves = h > 0
    part = jnp.where(moves, h, 1)
    others = (lanes_first(step.rest.links) + step.loops.links) / part[..., None]
    wrench = joint_wrenches(model, step.q, step.v, (step.ended - step.began) / part, others)
    return jnp.where(moves[..., None], wrench * h[..., None], 0)


def joint_impulse(model: Model, jump: VelocityJump) -> Array:
    """Return the impulse (*batch, nl, 6) through each joint.

    It is the impulse that links beyond it need for their jump, less those of contacts and loops.
    """
    still = jnp.zeros_like(jump.dv)
    return joint_wrenches(
        weightless(model), jump.q, still, jump.dv, lanes_first(jump.impulses.links) + jump.loops.links
    )


def _joint_impulses(model: Model, step: StepSummary) -> Array:
    return functools.reduce(jnp.add, [joint_impulse(model, jump) for jump in step.jumps])


def _loop_impulses(_: Model, step: StepSummary) -> Array:
    return functools.reduce(jnp.add, [jnp.asarray(jump.loops.loops) for jump in step.jumps])


QUANTITIES = {
    "contact_forces": Quantity(_links, lambda _, step: lanes_first(step.rest.links), True),
    "contact_impulses": Quantity(_links, lambda _, step: lanes_first(_sum_jumps(step).links), False),
    "pair_forces": Quantity(_pairs, lambda _, step: lanes_first(step.rest.pairs), True),
    "pair_impulses": Quantity(_pairs, lambda _, step: lanes_first(_sum_jumps(step).pairs), False),
    "joint_forces": Quantity(_links, joint_forces, True),
    "joint_impulses": Quantity(_links, _joint_impulses, False),
    "loop_forces": Quantity(_loops, lambda _, step: jnp.asarray(step.loops.loops), True),
    "loop_impulses": Quantity(_loops, _loop_impulses, False),
}
