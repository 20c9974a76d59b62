"""Target velocities of a step that is a window: contacts that may touch before its end act from its start.

    at the start   u_n >= e |u_n before| of contacts that would close their gap and bounce, else >= -gap/h
    at the end     u_n(h) >= -gap/h

The first is Moreau's law of simultaneous impacts, applied a little early, with Stewart and Trinkle's condition (1996)
for contacts that do not bounce: they arrive when the step ends. Both bounds hold for the mean of both velocities, which
moves the bodies, so that gaps close to second order in h and no farther. Newton's restitution may gain energy if there
is friction; then no contact bounces. Contacts that are deep move apart at a limited speed. See `integrators/window.py`.

If many contacts rest, small gaps and depths have a target that is linear in the gap and no faster than in a step of
STEP. So the targets of a face's corners are velocities that a rigid body can have, and the corners go on sharing their
load. With -gap/h for corners that hover by a micrometre, the others had to take over from window to window, and no pile
came to rest.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from ...engine.algebra.safe import safe_div
from ...engine.algebra.vec3 import Vec3
from ...engine.model import Model
from ..cone.solve import SEVERAL
from ..contacts import Contacts
from ..determine import ENVELOPE, SLOW, touch_distance, would_bounce
from ..events import SimultaneousImpacts
from .targets import STEP

TOLERANCE = 1e-3  # part of the speed that gravity adds in a step: error allowed in velocities at its end
HOVERS = 0.25  # part of the speed that gravity adds in a step, times the step: small gaps if many contacts rest
OUT, OUT_FASTEST = 0.2, 0.05  # share of the depth that a step removes; the fastest speed at which it does [m/s]
GAIN = 1e-6  # part of the energy that impulses take: a smaller gain is rounding error


class WindowTargets(NamedTuple):
    """Target velocities of the contacts in a window.

    is_window: (*batch) whether the step is a window.
    may_touch: (C, *batch) contacts that may touch before its end.
    closes: (C, *batch) contacts that would close their gap.
    plastic: (C, *batch) least normal velocity at the start, without bounce [m/s].
    bouncing: (C, *batch) least normal velocity at the start, with bounce [m/s].
    end: (C, *batch) least normal velocity at the end [m/s].
    tolerance: (*batch) error allowed in velocities at the end, 0 in other steps [m/s].
    """

    is_window: Array
    may_touch: Array
    closes: Array
    plastic: Array
    bouncing: Array
    end: Array
    tolerance: Array

    @staticmethod
    def of(model: Model, contacts: Contacts, u_n: Array, h: Array | float, window: Array) -> WindowTargets:
        """Compute the targets.

        u_n: (C, *batch) normal velocities at the start [m/s].
        h: length of the step [s].
        window: (*batch) whether the step is a window.
        """
        near = contacts.active & (contacts.gap <= ENVELOPE * model.gap_band)
        fall = jnp.linalg.norm(model.gravity, axis=-1) * h * h
        many = near.sum(0) > SEVERAL
        small, time = jnp.where(many, HOVERS * fall, 0), jnp.where(many, jnp.maximum(h, STEP), h)
        out = jnp.minimum(safe_div(-OUT * contacts.gap, time, window, OUT_FASTEST), OUT_FASTEST)
        end = safe_div(-contacts.gap, h, window & (contacts.gap > small), out)
        plastic = jnp.minimum(end, 0)
        way = touch_distance(model, contacts.gap, jnp.where(contacts.active, jnp.maximum(-u_n, 0), 0), h)
        may_touch = contacts.active & window & (contacts.gap <= jnp.maximum(way, ENVELOPE * model.gap_band))
        closes = may_touch & (u_n < plastic - SLOW * model.rest_speed)
        bounces = closes & would_bounce(model, contacts, u_n)
        bouncing = jnp.where(bounces, -contacts.restitution * u_n, plastic)
        tolerance = jnp.where(window, TOLERANCE * jnp.linalg.norm(model.gravity, axis=-1) * h, 0)
        return WindowTargets(window, may_touch, closes, plastic, bouncing, end, tolerance)


class WindowStart(NamedTuple):
    """The start of a window, as solved so far.

    impacts: the impacts at the start.
    plastic: (*batch) whether no contact may bounce.
    """

    impacts: SimultaneousImpacts
    plastic: Array

    @staticmethod
    def none(like: Array) -> WindowStart:
        still = Vec3(jnp.zeros_like(like), jnp.zeros_like(like), jnp.zeros_like(like))
        return WindowStart(SimultaneousImpacts(still, still, still), jnp.zeros_like(like[0], bool))

    def start_target(self, targets: WindowTargets) -> Array:
        """Return the least normal velocities at the start, (C, *batch) [m/s]."""
        return jnp.where(targets.is_window, jnp.where(self.plastic, targets.plastic, targets.bouncing), 0)

    def after_solve(
        self, step: Array, targets: WindowTargets, solved: SimultaneousImpacts
    ) -> tuple[WindowStart, Array]:
        """Return the start after one more solve, and whether () to solve it again because bounces gained energy.

        step: () whether the solve was for the whole step, not for its start.
        """
        taken = -jnp.where(targets.may_touch, solved.p.dot(solved.u + solved.after), 0)
        size = jnp.where(targets.may_touch, jnp.abs(solved.p.z * solved.u.z), 0)
        gains = ~step & targets.is_window & ~self.plastic & (taken.sum(0) < -GAIN * size.sum(0))
        impacts = jax.tree.map(lambda old, new: jnp.where(step | ~targets.closes, old, new), self.impacts, solved)
        return WindowStart(impacts, self.plastic | gains), gains.any()
