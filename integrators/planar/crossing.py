"""Time at which a joint hits a ground, or an angle its limit: Wawrzynski (2005), sections 7.1 and 12.1.

Accelerations are constant in a step, so a joint moves on a parabola and its time of impact is a root of a quadratic.
Difference: it is found before the step, from its start, instead of after it and from its end; the parabola is the same.
An angle is no parabola: the search for its root starts from the report's root.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from ...engine.algebra.fence import fence
from ...engine.algebra.safe import safe_div, safe_sqrt
from ...engine.algebra.vec2 import Vec2
from ...engine.planar.accelerations import Posture, about_middle, joint_alpha
from ...engine.planar.links import Links, Rows, only, shift_rows
from ...engine.planar.model import OPEN
from .lane import Holds

CORRECTIONS = 4  # Newton steps for an angle's time, each with twice the digits


class Crossings(NamedTuple):
    """The next crossings.

    at: times from now [s], infinite for never.
    ground: the ground that each joint meets.
    side: the limit that each angle meets, 1 or -1.
    lost: (*batch) whether an angle passes its limit within the step at an unknown time.
    """

    at: Holds
    ground: Array
    side: Array
    lost: Array


def falling(gap: Array, rate: Array, a: Array) -> Array:
    """Return the first time t >= 0 at which gap + rate t + a t^2/2 is zero and decreases, infinite for never.

    A negative gap counts as zero.
    """
    gap = jnp.maximum(gap, 0)
    square = rate**2 - 2 * a * gap
    root = safe_sqrt(square)
    t = safe_div(2 * gap, root - rate, rate < 0, safe_div(rate + root, -a, otherwise=jnp.inf))
    return jnp.where(square >= 0, t, jnp.inf)


def grounds(rows: Rows, now: Posture, a: Vec2) -> tuple[Array, Array]:
    """Return the time at which each joint meets a ground [s], and the ground."""
    at = jnp.full(rows.mass.shape, jnp.inf, rows.mass.dtype)
    number = jnp.full(rows.mass.shape, -1, jnp.int32)
    may = rows.there & ~rows.guided & (now.stuck < 0)
    for k in range(len(rows.ground.x)):
        z0, z = rows.ground[k], rows.normal[k]
        t = jnp.where(may, falling((now.x - z0).dot(z), now.v.dot(z), a.dot(z)), jnp.inf)
        at, number = jnp.where(t < at, t, at), jnp.where(t < at, k, number)
    return at, number


def state_after(now: Posture, a: Vec2, h: Array) -> Posture:
    """Return the state after a time h (*batch) with these accelerations (section 3, step 3)."""
    return now._replace(x=now.x + now.v * h + a * (0.5 * h**2), v=now.v + a * h)


class Parabola(NamedTuple):
    """A vector d + w t + c t^2/2, (n, *batch)."""

    d: Vec2
    w: Vec2
    c: Vec2

    def at(self, t: Array) -> tuple[Vec2, Vec2]:
        """Return the vector and its rate, each row at its own time t."""
        return self.d + self.w * t + self.c * (0.5 * t**2), self.w + self.c * t

    def before(self, world: float) -> Parabola:
        """Return the row before each; for the first one (world, 0)."""
        d, w, c = (shift_rows(x, -1) for x in self)
        return Parabola(Vec2(d.x.at[0].set(world), d.y), w, c)


def bends(rows: Rows, now: Posture, a: Vec2) -> tuple[Parabola, Parabola]:
    """Return the links before and behind each joint; before joint 0 the x axis."""
    behind = Parabola(*(only(rows.linked, shift_rows(x, 1) - x) for x in (now.x, now.v, a)))
    return behind.before(1.0), behind


@fence
def angle(ways: tuple[Parabola, Parabola], t: Array) -> tuple[Array, Array]:
    """Return each joint's angle in (-pi, pi] and its rate, each at its own time t [rad, rad/s]."""
    (d, w), (e, u) = (way.at(t) for way in ways)
    square = tuple(jnp.where(x.dot(x) > 0, x.dot(x), 1) for x in (d, e))
    return jnp.arctan2(d.cross(e), d.dot(e)), e.cross(u) / square[1] - d.cross(w) / square[0]


def past(rows: Rows, side: Array | int, angle: Array) -> Array:
    """Return the excess of each angle over its upper (1) or lower (-1) limit [rad]; minus infinity without a limit."""
    return side * (about_middle(rows, angle) - jnp.where(side > 0, rows.upper, rows.lower))


@fence
def newton_step(angle: Array, rate: Array, t: Array, h: Array, rows: Rows, level: Array, side: Array | int) -> Array:
    """Return a better time in [0, h] at which the angle is `level` beyond its limit, by one Newton step."""
    closing = side * rate
    return jnp.clip(t - safe_div(past(rows, side, angle) - level, closing), 0, h)


def limits(rows: Rows, now: Posture, a: Vec2, link: Links, h: Array) -> tuple[Array, Array, Array]:
    """Return when each angle meets a limit within h (*batch) [s], the side, and whether some time was not found."""
    ways = bends(rows, now, a)
    zero = jnp.zeros_like(rows.mass)
    (first, rate), last = angle(ways, zero), angle(ways, zero + h)[0]
    alpha = joint_alpha(link.L, a)
    at, side, lost = zero + jnp.inf, jnp.zeros(zero.shape, jnp.int32), zero > 0
    for sign in (1, -1):
        start, end = past(rows, sign, first), past(rows, sign, last)
        level = jnp.maximum(start, 0)  # an angle that was held may be beyond its limit by rounding error
        near = (now.shut == OPEN) & (jnp.abs(start) < jnp.pi / 2)
        beyond = near & (end > level)
        guess = jnp.where(near, falling(-start, -sign * rate, -sign * alpha), jnp.inf)
        sought = beyond | (guess <= h)
        t = jax.lax.cond(sought.any(), find_crossing, lambda *x: x[1], ways, guess, h, rows, level, sign)
        t = jnp.where(sought, jnp.where(guess <= 0, 0, t), jnp.inf)
        at, side = jnp.minimum(t, at), jnp.where(t < at, sign, side)
        lost = lost | (beyond & ~jnp.isfinite(t))
    return at, side, lost.any(0)


def find_crossing(
    ways: tuple[Parabola, Parabola], guess: Array, h: Array, rows: Rows, level: Array, side: Array | int
) -> Array:
    """Find the time in [0, h] at which each angle is `level` beyond its limit; infinite if not found (Newton)."""
    t = jnp.minimum(guess, h)
    for _ in range(CORRECTIONS):
        t = newton_step(*angle(ways, t), t, h, rows, level, side)
    there, rate = angle(ways, t)
    near = jnp.abs(past(rows, side, there) - level) < 1e3 * jnp.finfo(t.dtype).eps
    return jnp.where(near & (side * rate >= 0), t, jnp.inf)


def crossings(rows: Rows, now: Posture, a: Vec2, link: Links, h: Array, turning: bool) -> Crossings:
    """Return the crossings within h (*batch). The first one is always found, later ones may be missing."""
    at, ground = grounds(rows, now, a)
    if not turning:
        never, none = jnp.full_like(at, jnp.inf), jnp.zeros_like(ground)
        return Crossings(Holds(at, never), ground, none, none[0] > 0)
    shut_at, side, lost = limits(rows, now, a, link, h)
    return Crossings(Holds(at, shut_at), ground, side, lost)
