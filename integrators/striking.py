"""The impacts at the end of a tick's step, and those at its start if it was a window."""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from ..contact.contact_jacobian import ContactJacobian
from ..contact.contacts import Contacts
from ..contact.determine import would_bounce
from ..contact.events import Impacts
from ..contact.impact import impact_log
from ..contact.respond import ImpactResponse, respond
from ..engine.dynamics.energy import energy as energy_of
from ..engine.model import Model
from ..engine.results import IMPACTS_CAPPED, OK, gravest
from ..engine.state import State
from .lanes import Lane
from .proposal import Proposal
from .rules import Rules


class TimedImpacts(NamedTuple):
    """Impacts at the start of a window.

    t: (*batch) time at its start [s].
    contacts: the contacts there.
    impacts: their impacts.
    """

    t: Array
    contacts: Contacts
    impacts: Impacts


@functools.partial(jax.jit, static_argnums=0)
def resolve_impacts(
    rules: Rules,
    model: Model,
    state: State,
    contacts: Contacts,
    rows: ContactJacobian,
    u_n: Array,
    now: Array,
    ended: Array,
) -> ImpactResponse:
    """Resolve the impacts at the end of a step.

    u_n: (C, *batch) normal velocities of the contacts before them [m/s].
    now: (*batch) whether impacts are resolved.
    ended: (*batch) or (C, *batch) whether contacts that close are left to the next step, which stops them
        (`contact/resting/`).
    """
    with jax.named_scope("respond"):
        here = contacts._replace(active=contacts.active & now & ~ended)
        struck = respond(
            model, state.q, state.v, here, rows, law=rules.law, impacts=rules.impacts, max_impacts=rules.max_impacts,
            max_logged=rules.max_logged, u_n=u_n,
        )  # fmt: skip
        bounces = (contacts.active & would_bounce(model, contacts, u_n) & ended & now).any(0)
        capped = jnp.where(bounces, IMPACTS_CAPPED, OK).astype(jnp.int32)
        return struck._replace(code=gravest(struck.code, capped))


def impacts_at_window_start(model: Model, lane: Lane, tried: Proposal, accepted: Array) -> Impacts | None:
    """Return the impacts at the start of a window; None in runs without windows."""
    if tried.window_impacts is None or tried.window is None:
        return None
    energy = jnp.broadcast_to(energy_of(model, lane.ready.state).kinetic, accepted.shape)
    return impact_log((tried.window_impacts.p.z > 0) & (accepted & tried.window), tried.window_impacts, energy)
