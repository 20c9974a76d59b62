"""The least changes of velocities, or displacements, that remove errors of contacts.

Few directions are solved directly (`contact/cone/least.py`), many by conjugate gradients.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from ..contact.cone.least import DAMPING, select_directions
from ..contact.cone.least import least_change as least_change_of_few
from ..contact.contact_jacobian import ContactJacobian, apply_impulses, relative_velocity
from ..engine.algebra.bounded import loop
from ..engine.algebra.safe import safe_div
from ..engine.algebra.vec3 import Vec3
from .clocks import Clocks

SWEEPS = 40  # iterations of conjugate gradients
ENOUGH = 1e-4  # relative residual at which they stop


def change_solver(
    clocks: Clocks, rows: ContactJacobian, directions: Vec3, still: Array
) -> Callable[..., Sequence[tuple[Array, Vec3]]]:
    """Return a function from errors of contacts (C, *batch) to the least change that removes them, and its impulses.

    directions: directions of the errors.  The change is (T + 1, w, *batch), in tree blocks.
    still: (T + 1, w, *batch) zeros.
    """
    wanted = functools.partial(jax.tree.map, lambda way, x: jnp.where(way, -x, 0), directions)

    def many(*offs: Vec3) -> Sequence[tuple[Array, Vec3]]:
        each = jax.tree.map(lambda *x: jnp.stack(x), *offs)
        changes = jax.lax.map(lambda off: _least_change(clocks, rows, wanted(off), directions, still), each)
        return [jax.tree.map(lambda x, k=k: x[k], changes) for k in range(len(offs))]

    if still.ndim > 2:
        return many
    few = select_directions(rows, directions, len(still) - 1)
    direct = lambda *offs: [least_change_of_few(few, wanted(off), still) for off in offs]  # noqa: E731
    return lambda *offs: jax.lax.cond(few.fits, direct, many, *offs)


class _ConjugateGradient(NamedTuple):
    """State of conjugate gradients.

    left: residual.
    along: search direction.
    change: (T + 1, w, *batch) solution, in tree blocks.
    p: impulses of the solution.
    """

    left: Vec3
    along: Vec3
    change: Array
    p: Vec3


def _least_change(
    clocks: Clocks, rows: ContactJacobian, wanted: Vec3, directions: Vec3, like: Array
) -> tuple[Array, Vec3]:
    """Return the least change (T + 1, w, *batch), in tree blocks, with a wanted change of u, and its impulses.

    rows: Jacobian without drift.
    wanted: (C, *batch) change of u [m/s].
    directions: (C, *batch) bool, the directions that count.

    J Y may be singular (four corners on a floor), so DAMPING K is added to it. One step of refinement follows.
    """
    first = _solve_damped(clocks, rows, wanted, directions, like)
    left = jax.tree.map(
        lambda way, x, u: jnp.where(way, x - u, 0), directions, wanted, relative_velocity(rows, first.change)
    )
    second = _solve_damped(clocks, rows, left, directions, like)
    return first.change + second.change, first.p + second.p


def _solve_damped(
    clocks: Clocks, rows: ContactJacobian, wanted: Vec3, directions: Vec3, like: Array
) -> _ConjugateGradient:
    """Compute `_least_change` without refinement, by conjugate gradients on J Y + DAMPING K."""
    none = jnp.zeros_like(wanted.z)

    def sweep(given: tuple[Clocks, ContactJacobian, Vec3, Array], x: _ConjugateGradient) -> _ConjugateGradient:
        clocks, rows, directions, enough = given
        total, each = (functools.partial(f, rows.tree) for f in (clocks.total, clocks.of_contacts))
        change, K = apply_impulses(rows, jnp.zeros_like(x.change), x.along), rows.K
        soft = Vec3(K.xx * x.along.x, K.yy * x.along.y, K.zz * x.along.z) * DAMPING
        gives = jax.tree.map(lambda way, u: jnp.where(way, u, 0), directions, relative_velocity(rows, change) + soft)
        old, curve = total(x.left.dot(x.left)), total(x.along.dot(gives))
        go = (old > enough) & (curve > 0)
        part = safe_div(old, curve, go)
        left = x.left - gives * each(part)
        more = safe_div(total(left.dot(left)), old, go)
        along = jax.tree.map(lambda y, z: jnp.where(each(go), y + z * each(more), z), left, x.along)
        return _ConjugateGradient(left, along, x.change + change * clocks.of_blocks(part), x.p + x.along * each(part))

    def busy(given: tuple[Clocks, ContactJacobian, Vec3, Array], x: tuple[Array, _ConjugateGradient]) -> Array:
        left = x[1].left
        return (x[0] < SWEEPS) & (clocks.total(given[1].tree, left.dot(left)) > given[3]).any()

    given = clocks, rows, directions, clocks.total(rows.tree, wanted.dot(wanted)) * ENOUGH**2
    start = jnp.zeros((), jnp.int32), _ConjugateGradient(wanted, wanted, jnp.zeros_like(like), Vec3(none, none, none))
    return loop(SWEEPS, busy, lambda given, x: (x[0] + 1, sweep(given, x[1])), given, start)[1]
