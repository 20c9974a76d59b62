"""A chain's links at an instant, and the external forces on its joints: Wawrzynski (2005), sections 2 to 4, and section
12.2, which corrects the drift of lengths by rounding and finite steps.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import jax.numpy as jnp
from jax import Array

from ..algebra.safe import safe_sqrt
from ..algebra.vec2 import Vec2
from .model import Chain, ChainDrive

T = TypeVar("T", Array, Vec2)


class Rows(NamedTuple):
    """A chain in the form for kernels: leaves (n, *batch), grounds (g, *batch); see `Chain`.  there: whether the joint
    exists.  linked: whether a link leads from it to the next."""

    mass: Array
    length: Array
    gravity: Vec2
    there: Array
    linked: Array
    guided: Array
    line: Vec2
    active: Array
    lower: Array
    upper: Array
    roll: Array
    drag: Array
    ground: Vec2
    normal: Vec2


class Links(NamedTuple):
    """The link behind each joint, zero for none, (n, *batch).

    r: unit vector along it.  L: r*/l.  l: its present length [m].  rate: r . (v_(i+1) - v_i) [m/s].
    omega: its angular velocity [rad/s].  across: (3), the square of the velocity across it over l [m/s^2].
    """

    r: Vec2
    L: Vec2
    l: Array
    rate: Array
    omega: Array
    across: Array


def rows_of(chain: Chain, batch: tuple[int, ...]) -> Rows:
    def rows(a: Array) -> Array:
        return jnp.moveaxis(jnp.broadcast_to(a, (*batch, a.shape[-1])), -1, 0)

    def vectors(a: Array) -> Vec2:
        return Vec2.of(jnp.broadcast_to(a, (*batch, *a.shape[-2:])))

    n = chain.n
    number = jnp.arange(n).reshape(n, *(1 for _ in batch))
    there, linked = number < chain.joints, number < chain.joints - 1
    length = jnp.concatenate([rows(chain.length), jnp.ones((1, *batch), chain.length.dtype)])
    return Rows(
        jnp.where(there, rows(chain.mass), 1),
        jnp.where(linked, length, 1),
        Vec2(chain.gravity[..., 0], chain.gravity[..., 1]),
        jnp.broadcast_to(there, (n, *batch)),
        jnp.broadcast_to(linked, (n, *batch)),
        rows(chain.guided) & there,
        only(there, vectors(chain.line)),
        rows(chain.active) & linked,
        jnp.where(linked, rows(chain.lower), -jnp.inf),
        jnp.where(linked, rows(chain.upper), jnp.inf),
        jnp.where(linked, rows(chain.roll), 0),
        jnp.where(there, rows(chain.drag), 0),
        vectors(chain.ground),
        vectors(chain.normal),
    )


def only(yes: Array, v: Vec2) -> Vec2:
    """Return v if yes, else zero, even if v is not finite."""
    return Vec2(jnp.where(yes, v.x, 0), jnp.where(yes, v.y, 0))


def shift_rows(x: T, by: int) -> T:
    """Shift rows (n, ...): row i is x's row i + by, zero outside."""
    if isinstance(x, Vec2):
        return Vec2(shift_rows(x.x, by), shift_rows(x.y, by))
    none = jnp.zeros_like(x[:1])
    return jnp.concatenate([x[1:], none] if by > 0 else [none, x[:-1]])


def links(chain: Rows, x: Vec2, v: Vec2) -> Links:
    """The links of a chain.  x, v: of all joints, zero for those that do not exist."""
    d, w = only(chain.linked, shift_rows(x, 1) - x), only(chain.linked, shift_rows(v, 1) - v)
    square = jnp.where(chain.linked, d.dot(d), 1)
    l = jnp.sqrt(square)
    r = d * (1 / l)
    omega = d.cross(w) / square
    return Links(r, r.left * (1 / l), l, r.dot(w), omega, omega**2 * l)


def stretch(chain: Rows, links: Links, settle: Array | float) -> Array:
    """e of (3), plus (33), which restores a link's length with the time constant `settle` [s], infinite for never.

    Departure: (3) takes the whole difference of velocities; its part along the link is an error, and counts in (33).
    """
    error = jnp.where(chain.linked, links.l - chain.length, 0)
    return links.across + error / settle**2 + 2 * links.rate / settle


class DriveRows(NamedTuple):
    """A ChainDrive in the form for kernels, leaves (n, *batch), zero if nothing acts."""

    torque: Array
    force: Vec2
    acceleration: Vec2
    angular: Array


def drive_rows(rows: Rows, drive: ChainDrive) -> DriveRows:
    none, batch = jnp.zeros_like(rows.mass), rows.mass.shape[1:]

    def numbers(a: Array | None) -> Array:
        if a is None:
            return none
        return jnp.where(rows.linked, jnp.moveaxis(jnp.broadcast_to(a, (*batch, len(none))), -1, 0), 0)

    def vectors(a: Array | None) -> Vec2:
        if a is None:
            return Vec2(none, none)
        return only(rows.there, Vec2.of(jnp.broadcast_to(a, (*batch, len(none), 2))))

    return DriveRows(numbers(drive.torque), vectors(drive.force), vectors(drive.acceleration), numbers(drive.angular))


def outside(chain: Rows, links: Links, v: Vec2, drive: DriveRows) -> Vec2:
    """F^e: gravity (4.1), torques (4.2), rolling and quadratic drag (4.3), and the given forces [N]."""
    torque = drive.torque - chain.roll * (links.omega - shift_rows(links.omega, -1))
    after = links.L * torque  # its effect on the joint after it; the joint before gets that of the link before
    before = shift_rows(links.L, -1) * torque
    square = v.dot(v)
    speed = safe_sqrt(square)
    weight = Vec2(chain.gravity.x * chain.mass, chain.gravity.y * chain.mass)
    drag = v * (chain.drag * speed)
    return drive.force + weight - drag + shift_rows(after, -1) + shift_rows(before, 1) - after - before
