"""Accelerations of a planar chain under forces, and the change of its velocities if a joint hits the ground or an angle
reaches its limit. Wawrzynski (2005), sections 3, 7.1 and 12.1."""

from __future__ import annotations

from typing import NamedTuple

import jax.core
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..algebra.vec2 import Sym2, Vec2
from ..shaped import Float
from . import active, chain
from .chain import ChainSolution
from .links import DriveRows, Links, Rows, drive_rows, links, only, outside, rows_of, shift_rows, stretch
from .model import OPEN, Chain, ChainDrive, ChainState


class ChainMotion(NamedTuple):
    """The motion of every joint.

    a: acceleration [m/s^2].  force: F^d, of the link before it [N].  reaction: of its guide: ground, line or hand
    [N].  torque: tau^w, which gives an active joint its angular acceleration or holds it at a limit [N m].
    After an impact these are changes of velocity, and impulses.
    """

    a: Float[Array, "*batch n 2"]
    force: Float[Array, "*batch n 2"]
    reaction: Float[Array, "*batch n 2"]
    torque: Float[Array, "*batch n"]


class Posture(NamedTuple):
    """A state in the form for kernels, leaves (n, *batch): see `ChainState`."""

    x: Vec2
    v: Vec2
    stuck: Array
    shut: Array


class Demand(NamedTuple):
    """Prescribed values at an instant.  hold: a^w of joints that are held.  F: F^e.  e: of each link, (3).  alpha: of
    angles that are held."""

    hold: Vec2
    F: Vec2
    e: Array
    alpha: Array


def posture_of(rows: Rows, state: ChainState) -> Posture:
    x, v = (only(rows.there, Vec2.of(a)) for a in (state.x, state.v))
    return Posture(x, v, jnp.moveaxis(state.stuck, -1, 0), jnp.moveaxis(state.shut, -1, 0))


def read(model: Chain, state: ChainState) -> tuple[Rows, Posture, Links]:
    """Return a chain and its state in the form for kernels."""
    rows = rows_of(model, state.t.shape)
    now = posture_of(rows, state)
    return rows, now, links(rows, now.x, now.v)


def state_of(posture: Posture, t: Array) -> ChainState:
    stuck, shut = (jnp.moveaxis(a, 0, -1) for a in (posture.stuck, posture.shut))
    return ChainState(posture.x.array, posture.v.array, t, stuck, shut)


def may_hold_angles(model: Chain) -> bool:
    """Return whether an angular acceleration may be prescribed, as far as is known; if not, part I suffices."""
    given = (model.active, model.lower, model.upper)
    if any(isinstance(x, jax.core.Tracer) for x in given):
        return True
    active, lower, upper = (np.asarray(x) for x in given)  # within jit, jnp would make tracers of constants
    return bool(active.any() or np.isfinite(lower).any() or np.isfinite(upper).any())


def pull(rows: Rows, link: Links, now: Posture, drive: DriveRows, settle: Array | float) -> Demand:
    """The prescribed values under forces, with stuck joints and shut angles held."""
    guided = rows.guided & (now.stuck < 0)
    alpha = jnp.where(now.shut != OPEN, back_to_limit(rows, link, now.shut, settle), drive.angular)
    hold, F = only(guided, drive.acceleration), outside(rows, link, now.v, drive)
    return Demand(hold, F, stretch(rows, link, settle), alpha)


def stop(rows: Rows, link: Links, now: Posture) -> Demand:
    """Z1: stuck joints and shut angles stop instantaneously. Guided and driven ones keep their velocity.

    Departure: e is not 0, which would keep the rate at which a link stretches by error: that rate is removed. The
    remaining velocities are then the nearest that all links allow, and a stop never adds energy.
    """
    none = jnp.zeros_like(rows.mass)
    alpha = jnp.where(now.shut != OPEN, -joint_rates(link), 0)
    return Demand(only(now.stuck >= 0, -now.v), Vec2(none, none), link.rate, alpha)


def mobility(rows: Rows, now: Posture) -> tuple[Sym2, Array]:
    """W and `least` of `chain.JointTerms`."""
    light = jnp.where(rows.there, 1 / rows.mass, 0)
    one, none = jnp.ones_like(light), jnp.zeros_like(light)
    W = (Sym2(one, one, none) - Sym2.outer(rows.line)) * jnp.where(rows.guided | (now.stuck >= 0), 0, light)
    return W, 1024 * jnp.finfo(light.dtype).eps * (light + shift_rows(light, 1))


def solve(rows: Rows, link: Links, now: Posture, demand: Demand, turning: bool) -> tuple[ChainSolution, Vec2]:
    """Accelerations, and the reactions of guides. turning: False if no angle is ever held."""
    W, least = mobility(rows, now)
    joints = chain.JointTerms(link.r, W, W @ demand.F + demand.hold, demand.e, least)
    if turning:
        square = link.L.dot(link.L) * least
        shut = rows.active | (now.shut != OPEN)
        motion = active.motion(joints, active.Turning(link.L, shut, demand.alpha, square + shift_rows(square, -1)))
    else:
        motion = chain.motion(joints)
    return motion, only(rows.there, motion.a * rows.mass - demand.F - motion.F + shift_rows(motion.F, 1))


def joint_rates(link: Links) -> Array:
    """omega^z [rad/s]."""
    return link.omega - shift_rows(link.omega, -1)


def joint_alpha(L: Vec2, a: Vec2) -> Array:
    """alpha^z of (13), from L of each link and accelerations of joints [rad/s^2]."""
    alpha = L.dot(shift_rows(a, 1) - a)
    return alpha - shift_rows(alpha, -1)


def before(link: Links) -> Vec2:
    """r_(i-1) of the link before each joint; before joint 0 it is the world's x axis."""
    r = shift_rows(link.r, -1)
    return Vec2(r.x.at[0].set(1), r.y)


def joint_angles(link: Links) -> Array:
    """theta_i in (-pi, pi] [rad]."""
    earlier = before(link)
    there = link.r.dot(link.r) > 0  # at (0, 0), of the last joint, arctan2 has no derivative
    return jnp.arctan2(earlier.cross(link.r), jnp.where(there, earlier.dot(link.r), 1))


def about_middle(rows: Rows, angle: Array) -> Array:
    """Angles within half a turn of the middle between their limits: continuous between the limits [rad]."""
    ends = jnp.maximum(rows.lower, -jnp.pi), jnp.minimum(rows.upper, jnp.pi)
    middle = 0.5 * (ends[0] + ends[1])
    return angle - 2 * jnp.pi * jnp.round((angle - middle) / (2 * jnp.pi))


def back_to_limit(rows: Rows, link: Links, shut: Array, settle: Array | float) -> Array:
    """Angular acceleration that leads a shut joint back to its limit, (33) [rad/s^2]."""
    limit = jnp.where(shut > 0, rows.upper, rows.lower)
    error = jnp.where(shut != OPEN, about_middle(rows, joint_angles(link)) - limit, 0)
    return -error / settle**2 - 2 * joint_rates(link) / settle


def chain_accelerations(
    model: Chain, state: ChainState, drive: ChainDrive | None = None, *, settle: float = float("inf")
) -> ChainMotion:
    """Accelerations, forces of links and grounds, and torques that hold angles, of one chain or of a batch.

    settle: time constant with which errors of links' lengths, and of angles held at limits, are corrected [s].
    """
    rows, now, link = read(model, state)
    demand = pull(rows, link, now, drive_rows(rows, drive or ChainDrive()), settle)
    return _arrays(*solve(rows, link, now, demand, may_hold_angles(model)))


def chain_impulses(model: Chain, state: ChainState) -> ChainMotion:
    """Stop stuck joints and shut angles, without bounce: changes of velocity [m/s], impulses [N s, N m s]."""
    rows, now, link = read(model, state)
    return _arrays(*solve(rows, link, now, stop(rows, link, now), may_hold_angles(model)))


def _arrays(motion: ChainSolution, reaction: Vec2) -> ChainMotion:
    return ChainMotion(motion.a.array, motion.F.array, reaction.array, jnp.moveaxis(motion.torque, 0, -1))
