"""The derivative of the correction of a step's end.

In the directions that are corrected, the shift and the kick of `correction.py` are, with J and Y of the end,

    shift = Y l,  J shift = -gap;   kick = Y p,  J kick = -u

and with W = J Y, whose inverse is that of `least_changes.py`, their tangents are

    d shift = dY l + Y dl,  W dl = -d gap - dJ shift - J dY l

and the same for kick, p and u. The directions count as constant, and so do the changes of gaps and velocities because
normals turn, which are of higher order.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from ..contact.contact_jacobian import ContactJacobian, apply_impulses, relative_velocity
from ..engine.algebra.bounded import instantiate_zeros
from ..engine.algebra.vec3 import Vec3
from .clocks import Clocks
from .least_changes import change_solver

Pair = tuple[Vec3, Vec3]  # of the shift and of the kick


class Corrected(NamedTuple):
    """A correction that was found.

    directions: (C, *batch) bool, the directions in which it acts.
    gaps: (C, *batch) bool, the contacts whose gap it removes.
    velocities: (C, *batch) bool, the directions whose velocity it removes.
    shift: (T + 1, w, *batch) displacement [rad, m].
    kick: (T + 1, w, *batch) change of velocity [rad/s, m/s].
    """

    clocks: Clocks
    directions: Vec3
    gaps: Array
    velocities: Vec3
    shift: Array
    kick: Array


@jax.custom_jvp
def with_derivative(corrected: Corrected, rows: ContactJacobian, gap: Array, V: Array) -> tuple[Array, Array]:
    """Return shift and kick as functions of the end of the step.

    rows: Jacobian of the contacts there.
    gap: (C, *batch) their gaps [m].
    V: (T + 1, w, *batch) velocities, in tree blocks.
    """
    return corrected.shift, corrected.kick


@with_derivative.defjvp
def _derivative(
    primals: tuple[Corrected, ContactJacobian, Array, Array], tangents: tuple[Any, ...]
) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    corrected, moving_rows, gap, V = primals
    d_moving_rows = instantiate_zeros(tangents[1], moving_rows)
    d_gap, d_V = instantiate_zeros(tangents[2], gap), instantiate_zeros(tangents[3], V)
    rows, d_rows = moving_rows.still, d_moving_rows.still
    still, none = jnp.zeros_like(V), jnp.zeros_like(gap)
    # linear in the tangents, so that they may be transposed
    move, push = functools.partial(relative_velocity, every=True), functools.partial(apply_impulses, every=True)
    solve = change_solver(corrected.clocks, rows, corrected.directions, still)

    def only(directions: Vec3, u: Vec3) -> Vec3:
        return jax.tree.map(lambda way, x: jnp.where(way, x, 0), directions, u)

    def find_impulses(u: Pair) -> Pair:
        (_, l), (_, p) = solve(*(-x for x in u))
        return l, p

    def act(rows: ContactJacobian, p: Pair) -> tuple[tuple[Array, Array], Pair]:
        changes = push(rows, still, p[0]), push(rows, still, p[1])
        return changes, (
            only(corrected.directions, move(rows, changes[0])),
            only(corrected.directions, move(rows, changes[1])),
        )

    p = find_impulses((move(rows, corrected.shift), move(rows, corrected.kick)))
    _, d_u = jax.jvp(move, (moving_rows, V), (d_moving_rows, d_V))
    _, (changes, (du_l, du_p)) = jax.jvp(lambda rows: act(rows, p), (rows,), (d_rows,))
    wanted = Vec3(none, none, jnp.where(corrected.gaps, -d_gap, 0)) - du_l, only(corrected.velocities, -d_u) - du_p
    dp = jax.lax.custom_linear_solve(lambda p: act(rows, p)[1], wanted, lambda _, u: find_impulses(u), symmetric=True)
    d_shift, d_kick = (x + y for x, y in zip(changes, act(rows, dp)[0], strict=True))
    return (corrected.shift, corrected.kick), (d_shift, d_kick)
