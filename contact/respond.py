"""Respond to the impacts of an instant with new velocities. The last stage of this floor.

    near = detect(model, q)                     pairs of shapes that are near
    contacts = determine(model, q, near)        contacts
    response = respond(model, q, v, contacts)   impacts: new velocities, and a row for every impact
Resting contacts are left to the step that follows: `resting/`.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from ..engine.dynamics.energy import energy as energy_of
from ..engine.dynamics.trees import from_blocks, to_blocks, trees_of
from ..engine.model import Model
from ..engine.state import State
from ..engine.topology import Topology
from .contact_jacobian import ContactJacobian, drop_immovable, jacobian_at, relative_velocity
from .contacts import Contacts
from .determine import default_capacity, phases
from .events import Impacts
from .impact import IMPACTS, ResolvedImpacts
from .laws.table import law_named

LEAST_IMPACTS, IMPACTS_EACH = 256, 2  # default limit of impacts at one instant: at least 256, 2 for each contact


class ImpactResponse(NamedTuple):
    """The result of the impacts.

    v: (*batch, nv) velocities after them.
    impacts: the impacts.
    code: (*batch) result code.
    """

    v: Array
    impacts: Impacts
    code: Array


def respond(
    model: Model,
    q: Array,
    v: Array,
    contacts: Contacts,
    rows: ContactJacobian | None = None,
    *,
    law: str = "stronge",
    impacts: str = "sequential",
    max_impacts: int | None = None,
    max_logged: int | None = 256,
    u_n: Array | None = None,
) -> ImpactResponse:
    """Resolve all impacts at the coordinates q (*batch, nq) and velocities v (*batch, nv).

    rows: the contact Jacobian, if it is known.
    law: law of one impact, see `carom.resolve_impact`.
    impacts: order of several impacts, "sequential" or "simultaneous", see `impact.py`.
    max_impacts: limit at one instant; None: `most_impacts`. The code tells if a contact that would bounce still closes
        then.
    max_logged: length of the log of impacts; None: `max_impacts`. `impacts.count` counts all.
    u_n: (C, *batch) normal velocities of the contacts, if they are known [m/s].
    """
    resolve, single = impacts_named(impacts), law_named(law)
    J: ContactJacobian = jacobian_at(model, q, contacts) if rows is None else rows
    if rows is None:
        contacts = drop_immovable(model, contacts, J)
    trees = trees_of(model.topology)
    V = to_blocks(trees, v)
    striking = phases(model, contacts, relative_velocity(J, V).z if u_n is None else u_n).impact.any()
    most = most_impacts(model.topology) if max_impacts is None else max_impacts
    energy = jnp.broadcast_to(energy_of(model, State(q, v, jnp.zeros(()))).kinetic, contacts.code.shape)

    @jax.jit
    def strike(V: Array):
        return resolve(model, single, contacts, J, V, energy, most, most if max_logged is None else max_logged)

    def skip(V: Array):
        room = len(jax.eval_shape(strike, V).log.contact)
        return ResolvedImpacts(V, Impacts.none(room, energy[None]), jnp.zeros_like(contacts.code))

    struck = jax.lax.cond(striking, strike, skip, V)
    return ImpactResponse(from_blocks(trees, struck.V), struck.log, struck.code)


def most_impacts(topology: Topology) -> int:
    """Return the default limit of impacts at one instant."""
    return max(LEAST_IMPACTS, IMPACTS_EACH * default_capacity(topology))


def impacts_named(name: str):
    """Return the response to several impacts by its name, or raise a ValueError that lists the names."""
    if name not in IMPACTS:
        raise ValueError(f"impacts is {name!r}; it must be one of {', '.join(IMPACTS)}")
    return IMPACTS[name]
