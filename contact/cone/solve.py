"""Impulses of all contacts of one instant: Coulomb's law as a cone complementarity problem, by Newton's method.

    u = J V + drift,  V = V_free + Y p      0 <= p_n  _|_  u_n - target >= 0      |p_t| <= mu p_n, opposed to slip

Contacts that share no tree are solved one by one (`alone.py`). The others are solved together (`search.py`). If they
are few, the unknowns are their impulses (`few.py`); if they are many, the velocities of the trees (`many.py`).

A warm start is used only in windows with many contacts (`Ready.load`). The law has no solution if targets contradict
each other; a residual below 1e-5 (float32: 1e-3) of the largest velocity to change in the island is then accepted. If
the residual is larger at the end of the search, the impulses are projected on the cones, scaled down so that they gain
no energy, and returned with the code SOLVER_UNFINISHED.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.lax import stop_gradient

from ...engine.algebra.bounded import instantiate_zeros
from ...engine.algebra.fence import lane_programs
from ...engine.algebra.safe import safe_div
from ...engine.algebra.vec3 import Sym3, Vec3
from ...engine.results import OK, SOLVER_UNFINISHED
from ..contact_jacobian import ContactJacobian
from . import coulomb
from .alone import solve_alone
from .blocks import indices_of, scatter
from .consistent import remove_contradictions
from .elimination import elimination_order
from .few import FEW, ImpulseSystem, delassus, first_few, impulse_system
from .implicit import ParameterChanges, solution_derivative
from .islands import largest_in_islands
from .many import ActiveRows, VelocitySystem, add_impulses, contact_velocities
from .search import Accuracy, System, accuracy, largest, search

TOLERANCE = {4: 3e-5, 8: 1e-10}  # by bytes per number: relative to the largest velocity to change in an island
AT_REST = {4: 1e-6, 8: 1e-10}  # the same for an island in which nothing moves, so that it does not creep in float32
ROUNDING = 8  # rounding error of a velocity, in units of eps times the largest sum that makes it
STOPS = 3  # in units of mu times the largest velocity along n to change: a faster contact is guessed to slip
ATTEMPTS = 3  # largest number of searches if targets may contradict each other
HELD = 0.999  # fraction of mu p_n: a contact with less friction sticks
SEVERAL = 32  # contacts: with more, contradictions between targets are not removed, since that takes too long
MAX_ITERATIONS = 120  # 2 of 1000 random heaps of 1 to 4 bodies take more than 60; 98 % take less than 15

T = TypeVar("T")
FewOrMany = ImpulseSystem | VelocitySystem


class ConeSolution(NamedTuple):
    """p: (C, *batch) impulses in the contact frames, 0 for inactive contacts [N s].
    V: (T + 1, w, *batch) velocities of the trees after the impulses.
    code: (*batch) OK or SOLVER_UNFINISHED.
    residual: (*batch) largest violation of the law, as a velocity [m/s].
    """

    p: Vec3
    V: Array
    code: Array
    residual: Array


def solve_cone(
    rows: ContactJacobian,
    V: Array,
    target: Array,
    mu: Array,
    active: Array,
    slides: Array | None = None,
    fixed_p_n: Array | None = None,
    velocity_tolerance: Array | None = None,
    sticks: Array | None = None,
    conflict_tolerance: Array | None = None,
    start: Vec3 | None = None,
    moves: Array | None = None,
    *,
    max_iterations: int = MAX_ITERATIONS,
) -> ConeSolution:
    """Compute the impulses with which all active contacts obey Coulomb's law.

    rows: the contact Jacobian.
    V: (T + 1, w, *batch) free velocities of the trees, a row of zeros last.
    target: (C, *batch) target velocity, the least normal velocity afterwards [m/s].
    mu: (C, *batch) friction coefficients.
    active: (C, *batch) bool; rows of inactive contacts may hold anything.
    slides: (C, *batch) bool, contacts that are known to slip. If they are redundant, their shares of the load then
        depend only on their positions.
    fixed_p_n: (C, *batch) normal impulse of rows with J.z = Y.z = 0 and no target. u_n of these rows is 0 for any
        impulse, so p_n keeps this value and bounds their friction. 0 for contacts; None: all rows are contacts [N s].
    velocity_tolerance: (*batch) absolute error allowed in any velocity; None: 0 [m/s].
    sticks: (C, *batch) bool, contacts that stick if they can. If a few of them depend on each other, contradictions
        between their targets are removed (`consistent.py`). None: targets are taken as they are.
    conflict_tolerance: (*batch) residual allowed if targets of many contacts contradict each other; None: 0 [m/s].
    start: (C, *batch) impulses with which the search begins if contacts are many; None: 0 [N s].
    moves: (C, *batch) bool, contacts of trees that move. In float32, an island in which none moves is solved more
        accurately, so that it comes to rest. None: all move.

    Lanes of a batch are solved one after another on a CPU, side by side on other devices.
    """
    arguments: tuple[Any, ...] = (rows, V, target, mu, active, jnp.zeros_like(active) if slides is None else slides)
    arguments += fixed_p_n, velocity_tolerance, sticks, conflict_tolerance, start, moves
    if V.ndim == 2:
        return _solve_lane(max_iterations, *arguments)
    batch = V.shape[2:]
    lanes_first = lambda x: jnp.moveaxis(x.reshape(*x.shape[: x.ndim - len(batch)], math.prod(batch)), -1, 0)  # noqa: E731
    lanes = jax.tree.map(lanes_first, arguments)
    one = lambda lane: _solve_lane(max_iterations, *lane)  # noqa: E731
    solved = jax.lax.map(one, lanes) if lane_programs() else jax.vmap(one)(lanes)
    return jax.tree.map(lambda x: jnp.moveaxis(x, 0, -1).reshape(*x.shape[1:], *batch), solved)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _solve_lane(max_iterations: int, *arguments: Any) -> ConeSolution:
    """Solve the cone problem of one lane, see `solve_cone`."""
    return _solve(*arguments, max_iterations=max_iterations)


def _derivative(
    max_iterations: int, primals: tuple[Any, ...], tangents: tuple[Any, ...]
) -> tuple[ConeSolution, ConeSolution]:
    """Compute the derivative by the implicit function theorem (`implicit.py`)."""
    solved = _solve_lane(max_iterations, *primals)
    rows, _, target, mu, active, *_ = primals
    d_rows, dV, d_target, d_mu, *_ = instantiate_zeros(tangents, primals)
    rows, target, mu, d_rows, d_target, d_mu = _zero_inactive((rows, target, mu, d_rows, d_target, d_mu), active)
    which, count = indices_of(active)
    dp, dV = solution_derivative(
        rows, target, mu, ParameterChanges(d_rows, dV, d_target, d_mu), solved.p, solved.V, which, count
    )
    code = np.zeros(solved.code.shape, jax.dtypes.float0)
    return solved, ConeSolution(dp, dV, code, jnp.zeros_like(solved.residual))  # type: ignore[arg-type]


_solve_lane.defjvp(_derivative, symbolic_zeros=True)


@functools.partial(jax.jit, static_argnames="max_iterations")
def _solve(
    rows: ContactJacobian,
    V: Array,
    target: Array,
    mu: Array,
    active: Array,
    slides: Array,
    fixed_p_n: Array | None,
    velocity_tolerance: Array | None,
    sticks: Array | None,
    conflict_tolerance: Array | None,
    start: Vec3 | None,
    moves: Array | None,
    *,
    max_iterations: int,
) -> ConeSolution:
    separate = solve_alone(rows, V, target, mu, active, TOLERANCE[V.dtype.itemsize], fixed_p_n)
    return jax.lax.cond(
        separate.solved,
        lambda: ConeSolution(separate.p, separate.V, jnp.int32(OK), jnp.zeros((), V.dtype)),
        lambda: _solve_together(
            rows, V, target, mu, active, slides, max_iterations, fixed_p_n, velocity_tolerance, sticks,
            conflict_tolerance, start, moves,
        ),
    )  # fmt: skip


class _Problem(NamedTuple):
    """The problem of all contacts (C,); inactive ones have K = 1 and zeros elsewhere.

    contacts: Jacobian of the active contacts.
    K: collision matrices [1/kg].
    mu: friction coefficients.
    free: u without impulses, less the target [m/s].
    scale: the largest velocity to change in the contact's island [m/s].
    rounding: the largest rounding error of u in the island [m/s].
    tolerance: error allowed, relative to `scale`.
    start: impulses to start with [N s].
    slides: contacts that are guessed to slip.
    velocity_tolerance: () see `solve_cone` [m/s].
    sticks: contacts that stick if they can, or None.
    conflict_tolerance: () see `solve_cone` [m/s].
    """

    contacts: ActiveRows
    K: Sym3
    mu: Array
    free: Vec3
    scale: Array
    rounding: Array
    tolerance: Array
    start: Vec3
    slides: Array
    velocity_tolerance: Array | None
    sticks: Array | None
    conflict_tolerance: Array | None = None


def _solve_together(
    rows: ContactJacobian,
    V: Array,
    target: Array,
    mu: Array,
    active: Array,
    slides: Array,
    max_iterations: int,
    fixed_p_n: Array | None = None,
    velocity_tolerance: Array | None = None,
    sticks: Array | None = None,
    conflict_tolerance: Array | None = None,
    start: Vec3 | None = None,
    moves: Array | None = None,
) -> ConeSolution:
    sticks = None if sticks is None else sticks & active
    problem = _problem(rows, V, target, mu, active, slides, fixed_p_n, start, moves)
    problem = problem._replace(
        velocity_tolerance=velocity_tolerance, sticks=sticks, conflict_tolerance=conflict_tolerance
    )
    searched = functools.partial(_with_few, len(V) - 1), functools.partial(_with_many, V)
    both = [functools.partial(f, problem, max_iterations) for f in searched]
    if len(active) <= FEW:
        p, code, residual = both[0]()
    else:
        p, code, residual = jax.lax.cond(problem.contacts.count <= FEW, *both)
    return ConeSolution(p, add_impulses(problem.contacts, V, p), code, residual)


def _problem(
    rows: ContactJacobian,
    V: Array,
    target: Array,
    mu: Array,
    active: Array,
    slides: Array,
    fixed_p_n: Array | None,
    start: Vec3 | None,
    moves: Array | None,
) -> _Problem:
    contacts = ActiveRows(rows.tree, rows.J, rows.Y, *indices_of(active))
    K, drift, target, mu = _zero_inactive((rows.K, rows.drift, target, mu), active)
    K = K + Sym3.scalar(jnp.where(active, 0, jnp.ones_like(mu)))
    own = contact_velocities(contacts, V)
    size = contact_velocities(contacts._replace(J=jax.tree.map(jnp.abs, rows.J)), jnp.abs(V))
    free = own + Vec3(drift.x, drift.y, drift.z - target)
    tolerances = jnp.full_like(mu, TOLERANCE[V.dtype.itemsize])
    if moves is not None:
        tolerances = jnp.where(moves, tolerances, AT_REST[V.dtype.itemsize])
    sizes = [largest(free), ROUNDING * jnp.finfo(V.dtype).eps * largest(size), jnp.abs(free.z), tolerances]
    scale, rounding, along, tolerance = largest_in_islands(contacts, jnp.stack(sizes, 1), len(V) - 1).T
    fast = free.x * free.x + free.y * free.y > (STOPS * mu * along) ** 2
    none = jnp.zeros_like(mu)
    begin: Vec3 = Vec3(none, none, none) if start is None else _zero_inactive(start, active)
    if fixed_p_n is not None:
        begin = begin + Vec3(none, none, _zero_inactive(fixed_p_n, active))
    return _Problem(contacts, K, mu, free, scale, rounding, tolerance, begin, (slides | fast) & active, None, None)


def _with_few(trees: int, problem: _Problem, max_iterations: int) -> tuple[Vec3, Array, Array]:
    """Solve for the impulses of few contacts; return impulses (C,), a code, and the residual."""
    contacts = problem.contacts
    which = first_few(contacts.which)
    there = jnp.arange(FEW) < contacts.count
    measures = problem.scale, problem.rounding, problem.tolerance
    some = problem.K, problem.mu, problem.free, problem.start, problem.slides, measures
    K, mu, free, start, slides, measures = jax.tree.map(lambda x: jnp.where(there, x[which], 0), some)
    scale, rounding, tolerance = measures
    K = K + Sym3.scalar(jnp.where(there, 0, jnp.ones_like(mu)))
    system = impulse_system(contacts, which, K, mu, free, trees)
    sticks = None if problem.sticks is None else there & problem.sticks[which]
    problem = problem._replace(
        scale=scale, rounding=rounding, tolerance=tolerance, start=start, slides=slides > 0, sticks=sticks
    )

    def consistent(sticks: Array) -> Vec3:
        return remove_contradictions(system.W, free, sticks, contacts.count, scale)

    p, code, residual = _search_consistent(system, consistent, problem, _accuracy(problem), max_iterations)
    none = jnp.zeros_like(problem.mu)
    return scatter(Vec3(none, none, none), p, which, contacts.count), code, residual


def _with_many(V: Array, problem: _Problem, max_iterations: int) -> tuple[Vec3, Array, Array]:
    """Solve for the velocities of trees with many contacts; return impulses (C,), a code, and the residual."""
    contacts, trees = problem.contacts, len(V) - 1
    order = elimination_order(contacts.tree, contacts.which, contacts.count, trees)
    allowed = _accuracy(problem)
    system = VelocitySystem(problem.K, problem.mu, problem.free, contacts, order, jnp.zeros_like(V), allowed.at_once)
    which = contacts.which[:SEVERAL]
    there = jnp.arange(len(which)) < contacts.count

    def consistent(sticks: Array) -> Vec3:
        own, scale = jax.tree.map(lambda x: jnp.where(there, x[which], 0), (problem.free, problem.scale))
        W = delassus(contacts, which, trees)
        new = remove_contradictions(W, own, there & sticks[which], contacts.count, scale)
        return scatter(problem.free, new, which, contacts.count)

    return _search_consistent(system, consistent, problem, allowed, max_iterations)


def _search_consistent(
    system: FewOrMany,
    consistent: Callable[[Array], Vec3],
    problem: _Problem,
    allowed: Accuracy,
    max_iterations: int,
) -> tuple[Vec3, Array, Array]:
    """Search with consistent targets; return impulses in their cones, a code, and the residual.

    consistent: sticking contacts (C,) -> `free` (C,) without contradictions.

    The sticking contacts are guessed. If the guess is wrong, a slight slip may be taken for a contradiction, and
    without the slip there is no solution. So there are up to three searches: with the guess, with the original targets,
    and with the contacts that stuck in the better of these two.
    """
    sticks = problem.sticks
    if sticks is None:
        return _finish(system, problem, allowed, max_iterations)
    several = problem.contacts.count > SEVERAL

    def attempt(
        state: tuple[Array, Array, tuple[Vec3, Array, Array]],
    ) -> tuple[Array, Array, tuple[Vec3, Array, Array]]:
        k, sticks, best = state
        free = jax.lax.cond(several | (k == 1), lambda: system.free, lambda: consistent(sticks))
        new = _finish(system._replace(free=free), problem, allowed, max_iterations)
        better = ~(new[2] >= best[2])  # true for NaN too, which must stay visible
        p, code, residual = jax.tree.map(lambda x, y: jnp.where(better, x, y), new, best)
        held = p.x * p.x + p.y * p.y < (HELD * system.mu * p.z) ** 2
        return k + 1, held, (p, code, residual)

    worst = problem.start, jnp.int32(SOLVER_UNFINISHED), jnp.full((), jnp.inf, system.mu.dtype)
    go_on = lambda x: (x[2][1] != OK) & (x[0] < jnp.where(several, 1, ATTEMPTS))  # noqa: E731
    return jax.lax.while_loop(go_on, attempt, (jnp.int32(0), sticks, worst))[2]


def _accuracy(problem: _Problem) -> Accuracy:
    conflict_tolerance = (
        None
        if problem.conflict_tolerance is None
        else jnp.where(problem.contacts.count > SEVERAL, problem.conflict_tolerance, 0)
    )
    return accuracy(problem.tolerance, problem.scale, problem.rounding, problem.velocity_tolerance, conflict_tolerance)


def _finish(system: System, problem: _Problem, allowed: Accuracy, max_iterations: int) -> tuple[Vec3, Array, Array]:
    """Search, and return impulses in their cones, a code, and the residual."""
    p, well, residual = search(system, problem.start, problem.slides, allowed, max_iterations)
    p = coulomb.project(p, system.mu)
    gain, curve = p.dot(system.free).sum(0), p.dot(system.velocity_change(p)).sum(0)
    least = jnp.clip(safe_div(-gain, curve), 0, 1)  # scale of p with the least kinetic energy
    code = jnp.where(well, OK, SOLVER_UNFINISHED).astype(jnp.int32)
    return p * jnp.where(well, 1, stop_gradient(least)), code, stop_gradient(residual)


def _zero_inactive(x: T, active: Array) -> T:
    """Return x (C, ...) with zeros in inactive contacts, which may hold NaN."""

    def only(x: Array) -> Array:
        if x.dtype == jax.dtypes.float0:
            return x
        return jnp.where(active.reshape(len(active), *(1,) * (x.ndim - 1)), x, 0)

    return jax.tree.map(only, x)
