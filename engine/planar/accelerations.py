"""What a planar chain does at an instant: its accelerations under forces, and what its velocities become when a joint
runs into the ground or an angle into its limit. Wawrzynski (2005), sections 3, 7.1 and 12.1."""

from __future__ import annotations

from typing import NamedTuple

import jax.core
import jax.numpy as jnp
from jax import Array

from ..algebra.vec2 import Sym2, Vec2
from . import active, chain
from .chain import Motion
from .links import Links, Rows, given_rows, links, only, outside, rows_of, shifted, stretch
from .model import OPEN, Chain, ChainDrive, ChainState


class ChainMotion(NamedTuple):
    """Of every joint (..., n, 2) or (..., n).

    a: acceleration [m/s^2].  force: F^d, of the link before it [N].  reaction: of what guides or holds it, ground, line
    or hand [N].  torque: tau^w, what gives an active joint its angular acceleration or holds it at a limit [N m].
    After an impact: changes of velocity, and impulses.
    """

    a: Array
    force: Array
    reaction: Array
    torque: Array


class Instant(NamedTuple):
    """The rows of `chain` and what is known of a state: x, v (zero where no joint is), links, and F^e or zero."""

    rows: Rows
    x: Vec2
    v: Vec2
    links: Links


def instant(model: Chain, state: ChainState) -> Instant:
    rows = rows_of(model, state.t.shape)
    x, v = (only(rows.there, Vec2.of(a)) for a in (state.x, state.v))
    return Instant(rows, x, v, links(rows, x, v))


def turns(model: Chain) -> bool:
    """Whether an angular acceleration may have to be given, as far as is known: else part I suffices."""
    given = (model.active, model.lower, model.upper)
    if any(isinstance(x, jax.core.Tracer) for x in given):
        return True
    return bool(model.active.any() or jnp.isfinite(model.lower).any() or jnp.isfinite(model.upper).any())


def solve(
    now: Instant, held: Array, hold: Vec2, F: Vec2, e: Array, shut: Array, alpha: Array, turning: bool
) -> tuple[Motion, Vec2]:
    """Accelerations, and the reactions of what holds joints.

    held: (n, *batch) joints whose acceleration is `hold`.  F: F^e.  e: of each link.  shut: joints whose angular
    acceleration is alpha.
    """
    rows, _, _, link = now
    over = jnp.where(rows.there & ~held, 1 / rows.mass, 0)
    W = (Sym2(jnp.ones_like(over), jnp.ones_like(over), jnp.zeros_like(over)) - Sym2.outer(rows.line)) * over
    u = W @ F + only(held, hold)
    rounding = 1024 * jnp.finfo(over.dtype).eps
    light = jnp.where(rows.there, 1 / rows.mass, 0)
    pair = light + shifted(light, 1)
    joints = chain.Joint(link.r, W, u, e, rounding * pair)
    if turning:
        square = link.L.dot(link.L) * pair
        least = rounding * (square + shifted(square, -1))
        moved = active.motion(joints, active.Turning(link.L, shut, alpha, least))
    else:
        moved = chain.motion(joints)
    return moved, moved.a * rows.mass - F - moved.F + shifted(moved.F, 1)


def accelerations(
    now: Instant, state: ChainState, drive: ChainDrive, settle: Array | float, turning: bool
) -> tuple[Motion, Vec2]:
    """With what sticks and what is shut held where it is."""
    rows, _, v, link = now
    batch = state.t.shape
    stuck, shut = flags(state)
    held = rows.guided | stuck
    given = jnp.zeros_like(rows.mass)
    if drive.angular is not None:
        given = jnp.moveaxis(jnp.broadcast_to(drive.angular, (*batch, len(rows.mass))), -1, 0)
    alpha = jnp.where(shut != OPEN, back_to_limit(now, shut, settle), jnp.where(rows.active, given, 0))
    hold = only(rows.guided & ~stuck, given_rows(drive.acceleration, rows, batch))
    F, e = outside(rows, link, v, drive, batch), stretch(rows, link, settle)
    return solve(now, held, hold, F, e, rows.active | (shut != OPEN), alpha, turning)


def impulses(now: Instant, state: ChainState, turning: bool) -> tuple[Motion, Vec2]:
    """Z1 to Z3: changes of velocity when all that is stuck or shut in `state` comes to a stop within no time.

    What is guided or driven from outside keeps its velocity.
    """
    rows, _, v, link = now
    stuck, shut = flags(state)
    none = jnp.zeros_like(rows.mass)
    alpha = jnp.where(shut != OPEN, -joint_rates(link), 0)
    return solve(
        now, rows.guided | stuck, only(stuck, -v), Vec2(none, none), none, rows.active | (shut != OPEN), alpha, turning
    )


def flags(state: ChainState) -> tuple[Array, Array]:
    """stuck and shut, (n, *batch)."""
    return jnp.moveaxis(state.stuck >= 0, -1, 0), jnp.moveaxis(state.shut, -1, 0)


def joint_rates(link: Links) -> Array:
    """omega^z [rad/s]."""
    return link.omega - shifted(link.omega, -1)


def before(link: Links) -> Vec2:
    """r_(i-1): of the link before each joint; of the world, the x axis, before joint 0."""
    r = shifted(link.r, -1)
    return Vec2(r.x.at[0].set(1), r.y)


def joint_angles(link: Links) -> Array:
    """theta_i in (-pi, pi] [rad]."""
    earlier = before(link)
    return jnp.arctan2(earlier.cross(link.r), earlier.dot(link.r))


def back_to_limit(now: Instant, shut: Array, settle: Array | float) -> Array:
    """Angular acceleration that leads a shut joint back to its limit, (33) [rad/s^2]."""
    limit = jnp.where(shut > 0, now.rows.upper, now.rows.lower)
    error = jnp.where(shut != OPEN, joint_angles(now.links) - limit, 0)
    return -error / settle**2 - 2 * joint_rates(now.links) / settle


def arrays(moved: Motion, reaction: Vec2) -> ChainMotion:
    return ChainMotion(moved.a.array, moved.F.array, reaction.array, jnp.moveaxis(moved.torque, 0, -1))


def chain_accelerations(
    model: Chain, state: ChainState, drive: ChainDrive | None = None, *, settle: float = float("inf")
) -> ChainMotion:
    """Accelerations, forces of links and grounds, and torques that hold angles, of one chain or of a batch.

    settle: time constant with which links that are too long or too short, and angles beside the limits that hold them,
    are led back [s].
    """
    return arrays(*accelerations(instant(model, state), state, drive or ChainDrive(), settle, turns(model)))


def chain_impulses(model: Chain, state: ChainState) -> ChainMotion:
    """What stops all that is stuck or shut, without bounce: changes of velocity [m/s], impulses [N s, N m s]."""
    return arrays(*impulses(instant(model, state), state, turns(model)))
