"""One step of a scene with contacts, seen from inside: a step of a given length, and what its contacts push.

What strikes strikes at the start of the step, and no impact is looked for on the way. A run through time is `rollout`.
"""

from __future__ import annotations

from typing import NamedTuple, Unpack

import jax.numpy as jnp
from jax import Array

from carom.contact.contacts import Contacts
from carom.contact.events import Impacts
from carom.engine.algebra.vec3 import Vec3
from carom.engine.forest import Forest
from carom.engine.model import Model
from carom.engine.results import gravest
from carom.engine.state import State
from carom.integrators.clock import Frames
from carom.integrators.motion.forces import Drive, Step
from carom.integrators.options import OptionKeywords, Options
from carom.integrators.proposal import propose
from carom.integrators.rules import Rules
from carom.integrators.step import first_lane, tick


class Stepped(NamedTuple):
    """A step's result: the state; the contacts it began with; the impacts; the resting contacts' impulses
    (C, *batch) in the contact frames [N s]; code (*batch)."""

    state: State
    contacts: Contacts
    impacts: Impacts
    impulse: Vec3
    code: Array


def single_step(
    model: Model,
    state: State,
    h: Step,
    control: Array | None = None,
    *,
    forces: Array | None = None,
    **keywords: Unpack[OptionKeywords],
) -> Stepped:
    """One step of length h [s] of one scene, or of lanes along one leading axis.

    control: (*batch, nv) the command to the motors; None: their targets.  forces: (*batch, nv) from outside [N m, N].
    keywords: see `carom.Options`.
    """
    rules = Rules.of(Options.of(None, keywords).replace(time_control="fixed"), True)
    rules.check(model)
    h = jnp.broadcast_to(jnp.asarray(h, state.q.dtype), Forest.of(model, q=state.q, v=state.v).batch)
    model = rules.adapt_rest_speed(model, h)
    drive = Drive(control, forces)
    frames = Frames(h, h, jnp.int32(1))
    lane = first_lane(rules, model, state, frames, lambda *_: drive)
    looked = tick(rules, model, lane, frames, h, lambda *_: drive)
    tried = propose(rules, model, looked.lane, h)
    code = gravest(looked.lane.code, tried.code)
    return Stepped(tried.state, looked.contacts, looked.impacts, tried.impulse, code)
