"""Inverse dynamics with loops: the efforts of motors that give the accelerations (Kim 2012, section 3.1).

    tau_r = M a + b                                  what the tree alone would need; less the passive forces, the load
    A_p^T lambda = load_p                            (57): the constraints carry the load of joints without motors
    tau_a = load_a - A_a^T lambda                    (58)
    lambda = (A_p^T)^+ load_p + N s                  (59-61): N spans what pulls at motors only
    s = (A_a^T N)^+ (load_a - A_a^T (A_p^T)^+ load_p)      (62-64): the least efforts; s = 0: the least lambda

Departures: columns are masked, not cut out, so that the choice of joints with motors is data; the projector P on the
null space of A_p^T replaces the basis N, as N (A_a^T N)^+ = (A_a^T P)^+ for orthonormal N; A may be of any rank (parts
below `DEPENDENT` count as dependent). Passive forces may act at motors too; in Kim they act elsewhere only.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike, DTypeLike

from .. import results
from ..algebra.pseudo_inverse import apply, beside, pseudo_inverse, rank, size, times
from ..dynamics.rnea import rnea
from ..forest import Forest
from ..model import Model
from ..shaped import Bool, Float, Int, Real
from .jacobian import closed

Minimize = Literal["constraint_force", "torque"]
DEPENDENT = 3.0  # times the root of the rounding, of A's size: A M^-1 A^T does not resolve smaller singular values of A


class Inverse(NamedTuple):
    """Efforts that give the accelerations: M a + b = passive force + torque + A^T constraint_force + residual.

    torque: of the motors, 0 without a motor [N m, N].
    constraint_force: the multipliers of the loops' rows, in the loops' order [N, N m].
    residual: missing force at joints without a motor: rounding, otherwise `code` says so [N m, N].
    redundancy: number of independent ways in which motors can strain against each other; 0: torques are unique.
    code: see `engine.results`.
    """

    torque: Float[Array, "*batch nv"]
    constraint_force: Float[Array, "*batch m"]
    residual: Float[Array, "*batch nv"]
    redundancy: Int[Array, "*batch"]
    code: Int[Array, "*batch"]


class Split(NamedTuple):
    """torque, constraint_force, residual and redundancy, as in `Inverse`."""

    torque: Array
    constraint_force: Array
    residual: Array
    redundancy: Array


def constrained_inverse(
    model: Model,
    q: Float[ArrayLike, "*#batch nq"],
    v: Float[ArrayLike, "*#batch nv"],
    a: Float[ArrayLike, "*#batch nv"],
    t: Real[ArrayLike, "*#batch"] = 0.0,
    *,
    actuated: Bool[ArrayLike, "*#batch nv"],
    passive_force: ArrayLike = 0.0,
    minimize: Minimize = "constraint_force",
    tolerance: float | None = None,
) -> Inverse:
    """Efforts of the motors for the accelerations a, which must obey the loops, as q and v must.

    Loops count as held exactly, however the model holds them. If there is no solution, `code` says so, see `Inverse`.

    t [s].  actuated: which degrees of freedom have motors.
    passive_force: (..., nv) other forces: `passive_forces(model, q, v)`, `loop_forces` of springs [N m, N].
    minimize: the vector of least norm if the motors are redundant, "constraint_force" or "torque"; numbers in N and in
        N m count alike.
    tolerance: part of the forces, and of the accelerations, that may be missing; default: the root of the rounding.
    """
    q, v, a = (jnp.asarray(x) for x in (q, v, a))
    t, passive = (jnp.asarray(x, q.dtype) for x in (t, passive_force))
    return _inverse(
        model, q, v, a, t, jnp.asarray(actuated, bool), passive, is_torque(minimize), part(tolerance, q.dtype)
    )


def is_torque(minimize: Minimize) -> bool:
    """Return whether torques are minimized, not constraint forces."""
    if minimize not in get_args(Minimize):
        raise ValueError(f"minimize is {minimize!r}; it must be one of {', '.join(get_args(Minimize))}")
    return minimize == "torque"


def part(tolerance: float | None, dtype: DTypeLike) -> float:
    """The tolerance, or the root of the rounding for None."""
    return float(jnp.finfo(dtype).eps) ** 0.5 if tolerance is None else tolerance


@jax.jit
def _inverse(model: Model, q, v, a, t, actuated, passive, least_torque, tolerance) -> Inverse:
    forest = Forest.of(model, q=q, v=v, a=a, actuated=actuated)
    A, bias, _, _ = closed(model, q, v, t)
    needed = rnea(model, q, v, a)
    split = share(A, needed - passive, actuated, least_torque)
    scale = jnp.maximum(abs(needed), abs(passive)).max(-1, initial=0) + model.mass.sum(-1)  # and 1 m/s^2 of all masses
    lacking = abs(split.residual).max(-1, initial=0) > tolerance * scale
    code = jnp.where(lacking, results.MOTORS_TOO_FEW, results.OK)
    code = jnp.where(is_satisfied(A, bias, v, a, tolerance), code, results.LOOPS_FORBID)
    code = jnp.where(jnp.isfinite(needed).all(-1) & jnp.isfinite(A).all((-2, -1)), code, results.NOT_FINITE)
    return Inverse(*split, jnp.broadcast_to(code, forest.batch).astype(jnp.int32))


def share(A: Array, load: Array, actuated: Array, least_torque: ArrayLike) -> Split:
    """Share a load (..., nv) between motors and constraints A (..., m, nv): load = torque + A^T lambda + residual.

    least_torque: bool, whether to minimize the torques, or else lambda, if there is a choice.
    """
    small = DEPENDENT * jnp.finfo(A.dtype).eps ** 0.5 * size(A)
    passive = jnp.where(actuated[..., None, :], 0, A).mT
    inverse = pseudo_inverse(passive, small)
    force = apply(inverse, jnp.where(actuated, 0, load))
    left = load - apply(A.mT, force)
    torque, residual = jnp.where(actuated, left, 0), jnp.where(actuated, 0, left)
    torque, force, redundancy = strain(A, actuated, beside(inverse, passive), torque, force, small, least_torque)
    return Split(torque, force, residual, redundancy)


def strain(
    A: Array, held: Array, P: Array, torque: Array, force: Array, small: Array, least_torque: ArrayLike
) -> tuple[Array, Array, Array]:
    """Torques (..., nv) and lambda (..., m) from those with the least lambda, and the redundancy (62-64).

    held: (..., nv) degrees of freedom that may pull.  P: (..., m, m) projector on the lambda that pull at these only.
    """
    pull = times(jnp.where(held[..., None, :], A, 0).mT, P)
    inverse = pseudo_inverse(pull, small)
    s = jnp.where(least_torque, apply(inverse, torque), 0)
    return torque - apply(pull, s), force + s, rank(pull, inverse)


def is_satisfied(A: Array, bias: Array, v: Array, a: Array, tolerance: ArrayLike) -> Array:
    """Return whether A a + bias = 0 (...) to a part of its terms, or of 1 rad/s^2, m/s^2."""
    off = abs(apply(A, a) + bias).max(-1, initial=0)
    pace = abs(a).max(-1, initial=0) + jnp.square(v).max(-1, initial=0) + 1
    return off <= tolerance * (abs(A).sum(-1).max(-1, initial=0) * pace + abs(bias).max(-1, initial=0))
