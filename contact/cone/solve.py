"""All contacts of one instant together: normal impulses >= 0 and Coulomb's cone, by Newton's method.

    u = J V + drift,  V = V_free + Y p      0 <= p_n  _|_  u_n - target >= 0      |p_t| <= mu p_n, opposed to slip

Contacts that share no tree are solved one by one (`alone.py`). All others are searched for together (`search.py`): a
few by their impulses (`few.py`), many by the velocities of the trees (`many.py`).

Nothing is remembered between calls. Where the law has no solution, because targets contradict each other by less than
1e-5 of the largest velocity there is to change (1e-3 in float32), what is nearest to it is the answer. What is farther
off after `max_iterations` is put into the cones and scaled down to
gain no energy, and SOLVER_UNFINISHED is returned.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.lax import stop_gradient

from ...engine.algebra.bounded import filled
from ...engine.algebra.fence import lane_programs
from ...engine.algebra.vec3 import Sym3, Vec3
from ...engine.results import OK, SOLVER_UNFINISHED
from ..jacobian import ContactJacobian
from . import coulomb
from .alone import solve_alone
from .blocks import listed, put_back
from .consistent import consistent
from .elimination import plan
from .few import FEW, delassus, few, first
from .implicit import Given, changes
from .many import Ends, Many, pushed, velocities
from .search import System, accuracy, largest, search

TOLERANCE = {4: 3e-5, 8: 1e-10}  # by the bytes of a number: of the largest velocity that there is to change
ROUNDING = 8  # rounding errors of the largest sum that makes a velocity
SEVERAL = 32  # contacts: of more it would take too long to find out where they contradict each other
MAX_TURNS = 120  # of 1000 random heaps of 1 to 4 bodies 2 take more than 60; 98 % take less than 15


class Solved(NamedTuple):
    """p: (C, *batch) impulses in the contact frames, 0 where not active [N s].  V: (T + 1, w, *batch) velocities after
    them.  code: (*batch) OK or SOLVER_UNFINISHED.  left: (*batch) by how much velocities are off the law [m/s]."""

    p: Vec3
    V: Array
    code: Array
    left: Array


def solve_cone(
    rows: ContactJacobian,
    V: Array,
    target: Array,
    mu: Array,
    active: Array,
    slides: Array | None = None,
    given: Array | None = None,
    rough: Array | None = None,
    sticks: Array | None = None,
    asked: Array | None = None,
    *,
    tolerance: float | None = None,
    max_iterations: int = MAX_TURNS,
) -> Solved:
    """Impulses of the active contacts that obey Coulomb's law together.

    V: (T + 1, w, *batch) free velocities of the trees, a row of zeros last.  target: (C, *batch) the least normal
    velocity afterwards [m/s].  mu: (C, *batch).  active: (C, *batch) bool; what is not active may hold anything.
    slides: (C, *batch) bool, contacts that are known to slip: where they are redundant, they then share the load in a
    way that depends on nothing but where they are.
    given: (C, *batch) normal impulses of rows that have J.z = Y.z = 0 and no target: what moves along n is 0 whatever
    presses, so their p_n stays what is given, and bounds what acts across. 0 for contacts; None: there are no others.
    rough: (*batch) [m/s] what any velocity may be off by; None: 0.
    sticks: (C, *batch) bool, contacts that are not to slip unless they must: where a few of them depend on each other,
    they are asked for what can be (`consistent.py`). None: all are asked for what is told.
    asked: (*batch) [m/s] how far many contacts may stay from the law where their targets do not let them come nearer.
    None: no farther than others.
    tolerance: of the largest velocity that there is to change, 1e-10 (float64) or 3e-5 (float32) by default.

    Lanes of a batch are solved one after another on a CPU, elsewhere side by side.
    """
    if tolerance is None:
        tolerance = TOLERANCE[V.dtype.itemsize]
    arguments: Any = (rows, V, target, mu, active, jnp.zeros_like(active) if slides is None else slides)
    arguments += given, rough, sticks, asked
    if V.ndim == 2:
        return _searched(tolerance, max_iterations, *arguments)
    batch = V.shape[2:]
    first: Any = lambda x: jnp.moveaxis(x.reshape(*x.shape[: x.ndim - len(batch)], math.prod(batch)), -1, 0)  # noqa: E731
    lanes = jax.tree.map(first, arguments)
    one = lambda lane: _searched(tolerance, max_iterations, *lane)  # noqa: E731
    solved = jax.lax.map(one, lanes) if lane_programs() else jax.vmap(one)(lanes)
    return jax.tree.map(lambda x: jnp.moveaxis(x, 0, -1).reshape(*x.shape[1:], *batch), solved)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _searched(tolerance: float, max_iterations: int, *arguments: Any) -> Solved:
    """One lane."""
    return _solve(*arguments, tolerance=tolerance, max_iterations=max_iterations)


def _derivative(tolerance: float, max_iterations: int, primals: Any, tangents: Any) -> tuple[Solved, Solved]:
    """The law holds on, whatever changes (`implicit.py`)."""
    solved = _searched(tolerance, max_iterations, *primals)
    rows, _, target, mu, active, *_ = primals
    d_rows, dV, d_target, d_mu, *_ = filled(tangents, primals)
    rows, target, mu, d_rows, d_target, d_mu = _clean((rows, target, mu, d_rows, d_target, d_mu), active)
    which, count = listed(active)
    dp, dV = changes(rows, target, mu, Given(d_rows, dV, d_target, d_mu), solved.p, solved.V, which, count)
    code = np.zeros(solved.code.shape, jax.dtypes.float0)
    return solved, Solved(dp, dV, code, jnp.zeros_like(solved.left))  # type: ignore[arg-type]


_searched.defjvp(_derivative, symbolic_zeros=True)


@functools.partial(jax.jit, static_argnames=("tolerance", "max_iterations"))
def _solve(
    rows: ContactJacobian,
    V: Array,
    target: Array,
    mu: Array,
    active: Array,
    slides: Array,
    given: Array | None,
    rough: Array | None,
    sticks: Array | None,
    asked: Array | None,
    *,
    tolerance: float,
    max_iterations: int,
) -> Solved:
    alone = solve_alone(rows, V, target, mu, active, tolerance, given)
    return jax.lax.cond(
        alone.settled,
        lambda: Solved(alone.p, alone.V, jnp.int32(OK), jnp.zeros((), V.dtype)),
        lambda: _together(rows, V, target, mu, active, slides, tolerance, max_iterations, given, rough, sticks, asked),
    )


class _Problem(NamedTuple):
    """Of all contacts (C,), zeros where they are not active, K 1.

    ends: of all contacts.  free: u without impulses, less the targets.  pressed: normal impulses to begin with.
    slides: contacts known to slip.
    rounding: () what u may be off by [m/s].
    rough: () [m/s] what any velocity may be off by, or None.
    sticks: contacts not to slip, or None.
    asked: () [m/s] what may be left where many ask for what cannot be, or None.
    """

    ends: Ends
    K: Sym3
    mu: Array
    free: Vec3
    pressed: Array
    slides: Array
    rounding: Array
    rough: Array | None
    sticks: Array | None
    asked: Array | None = None


def _together(
    rows: ContactJacobian,
    V: Array,
    target: Array,
    mu: Array,
    active: Array,
    slides: Array,
    tolerance: float,
    max_iterations: int,
    given: Array | None = None,
    rough: Array | None = None,
    sticks: Array | None = None,
    asked: Array | None = None,
) -> Solved:
    sticks = None if sticks is None else sticks & active
    problem = _problem(rows, V, target, mu, active, slides, given)
    problem = problem._replace(rough=rough, sticks=sticks, asked=asked)
    searched = functools.partial(_with_few, len(V) - 1), functools.partial(_with_many, V)
    both = [functools.partial(f, problem, tolerance, max_iterations) for f in searched]
    if len(active) <= FEW:
        p, code, left = both[0]()
    else:
        p, code, left = jax.lax.cond(problem.ends.count <= FEW, *both)
    return Solved(p, pushed(problem.ends, V, p), code, left)


def _problem(
    rows: ContactJacobian, V: Array, target: Array, mu: Array, active: Array, slides: Array, given: Array | None
) -> _Problem:
    ends = Ends(rows.tree, rows.J, rows.Y, *listed(active))
    K, drift, target, mu = _clean((rows.K, rows.drift, target, mu), active)
    K = K + Sym3.scalar(jnp.where(active, 0, jnp.ones_like(mu)))
    own = velocities(ends, V)
    size = velocities(ends._replace(J=jax.tree.map(jnp.abs, rows.J)), jnp.abs(V))
    rounding = ROUNDING * jnp.finfo(V.dtype).eps * largest(size)
    free = own + Vec3(drift.x, drift.y, drift.z - target)
    pressed = jnp.zeros_like(mu) if given is None else _clean(given, active)
    return _Problem(ends, K, mu, free, pressed, slides & active, rounding, None, None)


def _with_few(trees: int, problem: _Problem, tolerance: float, max_iterations: int) -> tuple[Vec3, Array, Array]:
    """Impulses (C,), a code, and what is left."""
    ends = problem.ends
    which = first(ends.which)
    there = jnp.arange(FEW) < ends.count
    K, mu, free, pressed, slides = jax.tree.map(
        lambda x: jnp.where(there, x[which], 0), (problem.K, problem.mu, problem.free, problem.pressed, problem.slides)
    )
    K = K + Sym3.scalar(jnp.where(there, 0, jnp.ones_like(mu)))
    system = few(ends, which, K, mu, free, trees)
    if problem.sticks is not None:
        sticks = there & problem.sticks[which]
        system = system._replace(free=consistent(system.W, free, sticks, ends.count, largest(free)))
    p, code, left = _ended(system, _search(system, pressed, slides > 0, problem, tolerance, max_iterations))
    none = jnp.zeros_like(problem.mu)
    return put_back(Vec3(none, none, none), p, which, ends.count), code, left


def _consistent(trees: int, problem: _Problem) -> Vec3:
    """free (C,) without contradictions, if the contacts are no more than SEVERAL."""
    ends, sticks = problem.ends, problem.sticks
    if sticks is None:
        return problem.free
    which = ends.which[:SEVERAL]
    there = jnp.arange(len(which)) < ends.count

    def agreed() -> Vec3:
        own: Vec3 = jax.tree.map(lambda x: jnp.where(there, x[which], 0), problem.free)
        new = consistent(delassus(ends, which, trees), own, there & sticks[which], ends.count, largest(own))
        return put_back(problem.free, new, which, ends.count)

    return jax.lax.cond(ends.count <= len(which), agreed, lambda: problem.free)


def _with_many(V: Array, problem: _Problem, tolerance: float, max_iterations: int) -> tuple[Vec3, Array, Array]:
    """Impulses (C,), a code, and what is left."""
    ends = problem.ends
    order = plan(ends.tree, ends.which, ends.count, len(V) - 1)
    free = _consistent(len(V) - 1, problem)
    system = Many(problem.K, problem.mu, free, ends, order, jnp.zeros_like(V))
    return _ended(system, _search(system, problem.pressed, problem.slides, problem, tolerance, max_iterations))


def _search(
    system: System, pressed: Array, slides: Array, problem: _Problem, tolerance: float, max_iterations: int
) -> tuple[Vec3, Array, Array]:
    none = jnp.zeros_like(pressed)
    asked = None if problem.asked is None else jnp.where(problem.ends.count > SEVERAL, problem.asked, 0)
    near = accuracy(tolerance, problem.rounding, problem.rough, asked)
    return search(system, Vec3(none, none, pressed), slides, near, max_iterations)


def _ended(system: System, found: tuple[Vec3, Array, Array]) -> tuple[Vec3, Array, Array]:
    """Impulses in their cones, a code, and what is left.  found: as `search` does."""
    (p, well, left) = found
    p = coulomb.projected(p, system.mu)
    gain, curve = p.dot(system.free).sum(0), p.dot(system.moved(p)).sum(0)
    least = jnp.clip(-gain / jnp.where(curve > 0, curve, 1), 0, 1)  # of kinetic energy, p scaled by it
    code = jnp.where(well, OK, SOLVER_UNFINISHED).astype(jnp.int32)
    return p * jnp.where(well, 1, stop_gradient(least)), code, stop_gradient(left)


def _clean(x: Any, active: Array) -> Any:
    """x (C, ...), zero in contacts that are not active: they may hold NaN."""

    def only(x: Array) -> Array:
        if x.dtype == jax.dtypes.float0:
            return x
        return jnp.where(active.reshape(len(active), *(1,) * (x.ndim - 1)), x, 0)

    return jax.tree.map(only, x)
