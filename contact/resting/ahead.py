"""A step that is a window: what may touch before its end takes part from its start (`integrators/window.py`).

    at the start   u_n >= e |u_n before| of what would close its gap and then bounce, else >= -gap/h
    at the end     u_n(h) >= -gap/h

The first is Moreau's law of simultaneous impacts a little early, with Stewart and Trinkle's condition (1996) for what
does not bounce: it arrives when the step ends. Both bounds hold for the mean of both velocities, which is what moves
bodies, so that gaps close to second order in h, and no farther. Newton's restitution may gain energy where there is
friction; then nothing bounces. What is deep comes out, at a speed that falls no faster than weight takes it.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from ...engine.algebra.vec3 import Vec3
from ...engine.model import Model
from ..contacts import Contacts
from ..determine import ENVELOPE, SLOW, way_to_touch, would_bounce
from ..events import Together
from .goals import to_close

ROUGH = 1e-3  # of the speed that weight takes in a step: so much may velocities be off at its end
OUT, OUT_FASTEST = 0.2, 0.05  # of the depth in a step; [m/s]
GAIN = 1e-6  # of the energy that impulses take: less is rounding


class Ahead(NamedTuple):
    """here: (*batch) whether the step is a window.  takes_part: (C, *batch) what may touch before its end.
    strikes: (C, *batch) what would close its gap.  arrives, bounces: (C, *batch) the least normal velocities without
    and with bounce [m/s].  goal: (C, *batch) the least ones at the end [m/s].
    rough: (*batch) what these may be off by, 0 in other steps [m/s]."""

    here: Array
    takes_part: Array
    strikes: Array
    arrives: Array
    bounces: Array
    goal: Array
    rough: Array

    @staticmethod
    def of(model: Model, contacts: Contacts, u_n: Array, h: Array | float, window: Array) -> Ahead:
        """u_n: (C, *batch) normal velocities at the start.  window: (*batch) whether the step, h [s], is one."""
        near = contacts.active & (contacts.gap <= ENVELOPE * model.gap_band)
        speed = to_close(model, contacts.gap, near, ENVELOPE) / jnp.where(window, h, 1)
        arrives = -jnp.maximum(speed, 0)
        goal = jnp.where(speed > 0, arrives, jnp.minimum(-OUT * speed, OUT_FASTEST))
        way = way_to_touch(model, contacts.gap, jnp.where(contacts.active, jnp.maximum(-u_n, 0), 0), h)
        part = contacts.active & window & (contacts.gap <= jnp.maximum(way, ENVELOPE * model.gap_band))
        strikes = part & (u_n < arrives - SLOW * model.rest_speed)
        away = strikes & would_bounce(model, contacts, u_n)
        bounces = jnp.where(away, -contacts.restitution * u_n, arrives)
        rough = jnp.where(window, ROUGH * jnp.linalg.norm(model.gravity, axis=-1) * h, 0)
        return Ahead(window, part, strikes, arrives, bounces, goal, rough)


class Early(NamedTuple):
    """struck: what a window began with.  plain: (*batch) whether nothing may bounce."""

    struck: Together
    plain: Array

    @staticmethod
    def none(like: Array) -> Early:
        still = Vec3(jnp.zeros_like(like), jnp.zeros_like(like), jnp.zeros_like(like))
        return Early(Together(still, still, still), jnp.zeros_like(like[0], bool))

    def target(self, ahead: Ahead) -> Array:
        """At the start, (C, *batch) [m/s]."""
        return jnp.where(ahead.here, jnp.where(self.plain, ahead.arrives, ahead.bounces), 0)

    def after(self, step: Array, ahead: Ahead, met: Together) -> tuple[Early, Array]:
        """After a solve, of the step () or of its start, with what it did; and () whether to solve the start again."""
        taken = -jnp.where(ahead.takes_part, met.p.dot(met.u + met.after), 0)
        size = jnp.where(ahead.takes_part, jnp.abs(met.p.z * met.u.z), 0)
        gains = ~step & ahead.here & ~self.plain & (taken.sum(0) < -GAIN * size.sum(0))
        struck = jax.tree.map(lambda old, new: jnp.where(step | ~ahead.strikes, old, new), self.struck, met)
        return Early(struck, self.plain | gains), gains.any()
