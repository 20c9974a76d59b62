"""One step of a scene with contacts, of a length given beforehand: the program's table of contents.

    detect      collision     what is near what
    determine   contact       what touches, and which joints stand at their limits
    respond     contact       impacts: new velocities at once
    rest        contact       impulses of what rests or slides, over the step
    propose     integrators   motion over the step

Impacts are not located in time yet: a body may be as deep in another as one step takes it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from ..collision.detect import detect
from ..contact.contacts import Contacts
from ..contact.determine import ENVELOPE, determine
from ..contact.events import Impacts
from ..contact.respond import respond
from ..contact.resting.models import resting_named
from ..contact.rows import rows_of
from ..engine.algebra.vec3 import Vec3
from ..engine.model import Model
from ..engine.state import State
from .motion.forces import Step, acceleration, column
from .schemes import scheme_named


class Stepped(NamedTuple):
    """A step's result: the state; the contacts it began with; the impacts; the resting contacts' impulses
    (C, *batch) in the contact frames [N s]; code (*batch)."""

    state: State
    contacts: Contacts
    impacts: Impacts
    impulse: Vec3
    code: Array


def step(
    model: Model,
    state: State,
    h: Step,
    control: Array | None = None,
    *,
    scheme: str = "exact",
    law: str = "stronge",
    impacts: str = "sequential",
    resting: str = "solve",
    max_contacts: int | None = None,
    max_pairs: int | None = None,
) -> Stepped:
    """One step of length h [s] of one scene, or of lanes along one leading axis."""
    move, rest = scheme_named(scheme), resting_named(resting)
    model = model.replace(rest_speed=rest.slow(model, h))
    with jax.named_scope("detect"):
        near = detect(model, state.q, margin=_margin(model), max_pairs=max_pairs)
    with jax.named_scope("determine"):
        contacts = determine(model, state.q, near, max_contacts=max_contacts)
        rows = rows_of(model, state.q, contacts)
    with jax.named_scope("respond"):
        struck = respond(model, state.q, state.v, contacts, rows, law=law, impacts=impacts)
    with jax.named_scope("rest"):
        v_free = struck.v + acceleration(model, state.q, struck.v, h, control) * column(h)
        held = rest.carry(model, contacts, rows, struck.v, v_free, h)
    with jax.named_scope("propose"):
        after = move(model, State(state.q, held.v, state.t), h, control, held.spread)
    code = _first(contacts.code, struck.code, held.code)
    return Stepped(after, contacts, struck.impacts, held.impulse, code)


def _margin(model: Model) -> Any:
    return ENVELOPE * model.gap_band


def _first(*codes: Array) -> Array:
    """The first code that is not OK."""
    return jnp.select([code != 0 for code in codes], codes, 0)
