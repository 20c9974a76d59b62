"""All contacts of one instant together: normal impulses >= 0 and Coulomb's cone, by Newton's method on the velocities.

    u = J V + drift,  V = V_free + Y p      0 <= p_n  _|_  u_n - target >= 0      |p_t| <= mu p_n, opposed to slip

Every turn guesses from p and u how each contact behaves (`coulomb.py`), makes its law linear, p' = q - D du, and solves
for the velocities, not for the impulses: (1 + Y D J) dV = Y (q - p). That matrix is small, sparse (`elimination.py`)
and regular where W = J M^-1 J^T is not: four corners of a face share a load in many ways. D's compliance makes up for
it. It is proportional to the distance from the law, and so vanishes as fast. It resists the change of p, so what is
left after a turn is about soft K / (soft K + w), w being an eigenvalue of W. A light body under a heavy one makes w as
small as the ratio of their masses: where the guess was right and yet much is left, the next turn has less compliance.

The first guess is that all stick that do not fly apart: what rests usually does, and three to six turns are enough,
whatever the height of a stack. (Sweeps over the contacts, Gauss and Seidel's method and its accelerations, have not
settled ten boxes to 1e-10 after 300: each carries the load one box further.) Where guesses run in circles, as they may
where friction is large, every `CIRCLE`-th turn is some sweeps instead, which end that.

Nothing is remembered between calls. What has not settled after `max_turns` is put into the cones and scaled down to
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
from jax.lax import fori_loop, stop_gradient

from ...engine.algebra.bounded import filled
from ...engine.algebra.fence import fence
from ...engine.algebra.vec3 import Sym3, Vec3
from ...engine.results import OK, SOLVER_UNFINISHED
from ..rows import Rows
from . import coulomb
from .alone import solve_alone
from .elimination import Plan, block, plan, put, solve
from .implicit import Given, changes

TOLERANCE = {4: 3e-5, 8: 1e-10}  # by the bytes of a number: of the largest velocity that there is to change
LOOSE, STILL = (
    {4: 1e-3, 8: 1e-6},
    1e-4,
)  # of that velocity may be left where a turn changes it by no more than this part
APART = 0.3  # of that velocity: what opens faster is open at first
SOFTNESS = 0.01  # compliance, in units of K, for each unit of distance from the law
FIRST, SOFTEST = {4: 3e-4, 8: 1e-4}, 0.1  # of the first turn, and the most
STIFFEST = {4: 3e-4, 8: 1e-6}  # below, the rounding of the elimination is larger than what this changes
EASE = 1e-2  # of the compliance is left from turn to turn where guesses are right and the distance falls slowly
SLOWLY = 0.8  # of the distance, or more, is left after a turn that gains little
HARDEST = {4: 1e-6, 8: 1e-13}  # below, what the compliance tells apart is rounding
ESCALATE = 10  # turns after which SOFTNESS grows tenfold, again and again
CIRCLE, SWEEPS = 9, 16
MAX_TURNS = 120  # of 1000 random heaps of 1 to 4 bodies 2 take more than 60; 98 % take less than 15


class Solved(NamedTuple):
    """p: (C, *batch) impulses in the contact frames, 0 where not active [N s].  V: (T + 1, w, *batch) velocities after
    them.  code: (*batch) OK or SOLVER_UNFINISHED."""

    p: Vec3
    V: Array
    code: Array


class Slots(NamedTuple):
    """Which trees each contact couples. Contacts are visited one after another: all lanes together that agree.

    count: () contacts to visit.  passes: (C,) how many pairs of trees the lanes have.  pair: (C, P, 2) which, in
    places of the plan.  which: (C, *batch) the pair of each lane, -1 where the contact is not active.
    """

    count: Array
    passes: Array
    pair: Array
    which: Array


class Problem(NamedTuple):
    """What does not change from turn to turn; contacts that are not active have J = Y = 0.

    V_free and all velocities of trees are by places of the plan.  rest: what joins J V in u, drift less target.
    scale: (*batch) the largest velocity there is to change, and limit: what of it may be left [m/s].
    """

    slots: Slots
    plan: Plan
    J: Vec3
    Y: Vec3
    K: Sym3
    mu: Array
    V_free: Array
    rest: Vec3
    scale: Array
    limit: Array


class Turn(NamedTuple):
    """A state of the search. u: less the targets.  distance: (*batch) from the law [m/s].  busy: (*batch) bool: neither
    near enough, nor as near as it gets. Targets may contradict each other a little, as those of two corners of an edge
    that close different gaps; then impulses would only grow against each other.
    guess: how each contact behaves (closed, sticking), (C, *batch) bool.  ease: (*batch) a factor of the compliance."""

    number: Array
    p: Vec3
    u: Vec3
    distance: Array
    busy: Array
    guess: tuple[Array, Array]
    ease: Array


def solve_cone(
    rows: Rows,
    V: Array,
    target: Array,
    mu: Array,
    active: Array,
    slides: Array | None = None,
    given: Array | None = None,
    *,
    tolerance: float | None = None,
    max_turns: int = MAX_TURNS,
) -> Solved:
    """Impulses of the active contacts that obey Coulomb's law together.

    V: (T + 1, w, *batch) free velocities of the trees, a row of zeros last.  target: (C, *batch) the least normal
    velocity afterwards [m/s].  mu: (C, *batch).  active: (C, *batch) bool; what is not active may hold anything.
    slides: (C, *batch) bool, contacts that are known to slip: where they are redundant, they then share the load in a
    way that depends on nothing but where they are.
    given: (C, *batch) normal impulses of rows that have J.z = Y.z = 0 and no target: what moves along n is 0 whatever
    presses, so their p_n stays what is given, and bounds what acts across. 0 for contacts; None: there are no others.
    tolerance: of the largest velocity that there is to change, 1e-10 (float64) or 3e-5 (float32) by default.
    """
    if tolerance is None:
        tolerance = TOLERANCE[V.dtype.itemsize]
    arguments: Any = (rows, V, target, mu, active, jnp.zeros_like(active) if slides is None else slides)
    arguments += () if given is None else (given,)
    if V.ndim == 2:
        return _searched(tolerance, max_turns, *arguments)
    # lanes in one axis
    batch = V.shape[2:]
    flat: Any = jax.tree.map(lambda x: x.reshape(*x.shape[: x.ndim - len(batch)], math.prod(batch)), arguments)
    solved = _searched(tolerance, max_turns, *flat)
    return jax.tree.map(lambda x: x.reshape(*x.shape[:-1], *batch), solved)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _searched(tolerance: float, max_turns: int, *arguments: Any) -> Solved:
    """lanes: none or one axis."""
    return _solve(*arguments, tolerance=tolerance, max_turns=max_turns)


def _derivative(tolerance: float, max_turns: int, primals: Any, tangents: Any) -> tuple[Solved, Solved]:
    """The law holds on, whatever changes (`implicit.py`)."""
    solved = _searched(tolerance, max_turns, *primals)
    rows, _, target, mu, active, *_ = primals
    d_rows, dV, d_target, d_mu, *_ = filled(tangents, primals)
    rows, target, mu, d_rows, d_target, d_mu = _clean((rows, target, mu, d_rows, d_target, d_mu), active)
    _, order = _slots(rows.tree, active, len(dV) - 1)
    dp, dV = changes(rows, target, mu, Given(d_rows, dV, d_target, d_mu), solved.p, solved.V, order)
    return solved, Solved(dp, dV, np.zeros(solved.code.shape, jax.dtypes.float0))  # type: ignore[arg-type]


_searched.defjvp(_derivative, symbolic_zeros=True)


def _solve(
    rows: Rows,
    V: Array,
    target: Array,
    mu: Array,
    active: Array,
    slides: Array,
    given: Array | None = None,
    *,
    tolerance: float,
    max_turns: int,
) -> Solved:
    alone = solve_alone(rows, V, target, mu, active, tolerance, given)
    code = jnp.zeros(active.shape[1:], jnp.int32)
    return jax.lax.cond(
        alone.settled,
        lambda: Solved(alone.p, alone.V, code),
        lambda: _together(rows, V, target, mu, active, slides, tolerance, max_turns, given),
    )


def _together(
    rows: Rows,
    V: Array,
    target: Array,
    mu: Array,
    active: Array,
    slides: Array,
    tolerance: float,
    max_turns: int,
    given: Array | None = None,
) -> Solved:
    slots, order = _slots(rows.tree, active, len(V) - 1)
    V_free = V[order.tree]
    J, Y, drift, target, mu = _clean((rows.J, rows.Y, rows.drift, target, mu), active)
    K = _clean(rows.K, active) + Sym3.scalar(jnp.where(active, 0, jnp.ones_like(mu)))
    size = _velocities(slots, jax.tree.map(jnp.abs, J), jnp.abs(V_free))
    rounding = 8 * jnp.finfo(V.dtype).eps * _largest(size)
    rest = Vec3(drift.x, drift.y, drift.z - target)
    none = jnp.zeros_like(mu)
    scale = _largest(_velocities(slots, J, V_free) + rest)
    problem = Problem(slots, order, J, Y, K, mu, V_free, rest, scale, tolerance * scale + rounding)
    pressed = none if given is None else _clean(given, active)
    start = _judged(problem, Vec3(none, none, pressed), None)
    closed, stick = start.guess
    start = start._replace(guess=(closed, stick & ~slides))

    def turn(state: Turn) -> Turn:
        circles = state.number % CIRCLE == CIRCLE - 1
        new = jax.lax.cond(circles, lambda s: _sweeps(problem, s), lambda s: _newton(problem, s), state)
        p = jax.tree.map(lambda new, old: jnp.where(state.busy, new, old), new, state.p)
        return _judged(problem, p, state)

    end = jax.lax.while_loop(lambda x: x.busy.any() & (x.number < max_turns), turn, start)
    return _ended(problem, start, end)


def _largest(u: Vec3) -> Array:
    return jnp.maximum(jnp.maximum(jnp.abs(u.x), jnp.abs(u.y)), jnp.abs(u.z)).max(0)


# -- the problem ----------------------------------------------------------------------------------


def _slots(tree: Array, active: Array, n: int) -> tuple[Slots, Plan]:
    """Who meets whom, over all lanes, and the order of elimination it suggests."""
    number = jnp.arange(1, len(tree) + 1, dtype=jnp.int32).reshape(-1, *(1,) * (active.ndim - 1))
    count = jnp.where(active, number, 0).max()
    if active.ndim == 1:
        passes, which = active.astype(jnp.int32), active.astype(jnp.int32) - 1
        pair = tree[:, None]
    else:
        code = tree[:, 0] * (n + 1) + tree[:, 1]

        def distinct(state):
            k, todo, passes, pair, which = state
            one = jnp.where(todo, code, -1).max(1)
            hit = todo & (code == one[:, None])
            row = jnp.stack([one // (n + 1), one % (n + 1)], 1)
            pair = put(pair, jnp.where((one >= 0)[:, None], row, n), k)
            return k + 1, todo & ~hit, passes + (one >= 0), pair, jnp.where(hit, k, which)

        none = jnp.zeros(len(tree), jnp.int32)
        pair = jnp.full((tree.shape[-1], len(tree), 2), n, jnp.int32)
        start = (jnp.int32(0), active, none, pair, jnp.full(active.shape, -1, jnp.int32))
        _, _, passes, pair, which = jax.lax.while_loop(lambda s: s[1].any(), distinct, start)
        pair = jnp.swapaxes(pair, 0, 1)

    def meet(c: Array, coupled: Array) -> Array:
        def one(k: Array, coupled: Array) -> Array:
            a, b = pair[c, k, 0], pair[c, k, 1]
            return put(put(coupled, jnp.array(True), a, b), jnp.array(True), b, a)

        return fori_loop(0, passes[c], one, coupled)

    coupled = fori_loop(0, count, meet, jnp.zeros((n + 1, n + 1), bool))
    order = plan(coupled[:n, :n])
    return Slots(count, passes, order.rank[pair], which), order


def _clean(x: Any, active: Array) -> Any:
    """x (C, ..., *batch), zero in contacts that are not active: they may hold NaN."""
    lanes = active.shape[1:]

    def only(x: Array) -> Array:
        if x.dtype == jax.dtypes.float0:
            return x
        return jnp.where(active.reshape(len(active), *(1,) * (x.ndim - active.ndim), *lanes), x, 0)

    return jax.tree.map(only, x)


def _judged(problem: Problem, p: Vec3, before: Turn | None) -> Turn:
    u = _velocities(problem.slots, problem.J, _applied(problem, problem.V_free, p)) + problem.rest
    distance = coulomb.distance(problem.K, p, u, problem.mu).max(0)
    far = ~(distance <= problem.limit)
    moving = coulomb.behaviour(problem.K, p, u, problem.mu)
    if before is None:  # the first guess: all stick that do not fly apart
        guess = coulomb.closed_and_sticking(u, problem.mu, APART * problem.scale)
        return Turn(jnp.int32(0), p, u, distance, far, guess, jnp.ones_like(distance))
    stalled = (distance <= LOOSE[distance.dtype.itemsize] * problem.scale) & (
        jnp.abs(distance - before.distance) <= STILL * distance
    )
    same = (moving[0] == before.guess[0]).all(0) & (moving[1] == before.guess[1]).all(0)
    slow = (distance > SLOWLY * before.distance) & (distance <= before.distance)
    ease = jnp.where(same, before.ease * jnp.where(slow, EASE, 1), 1)
    return Turn(before.number + 1, p, u, distance, far & ~stalled, moving, ease)


def _ended(problem: Problem, start: Turn, end: Turn) -> Solved:
    """Impulses in their cones, and the velocities that go with just these."""
    p = coulomb.projected(end.p, problem.mu)
    well = ~end.busy
    u0, change = start.u, _velocities(problem.slots, problem.J, _applied(problem, jnp.zeros_like(problem.V_free), p))
    gain, curve = (sum((a * b).sum(0) for a, b in zip(p.xyz, x.xyz, strict=True)) for x in (u0, change))
    least = jnp.clip(-gain / jnp.where(curve > 0, curve, 1), 0, 1)  # of kinetic energy, p scaled by it
    p = p * jnp.where(well, 1, stop_gradient(least))
    V = _applied(problem, problem.V_free, p)
    return Solved(p, V[problem.plan.rank], jnp.where(well, OK, SOLVER_UNFINISHED).astype(jnp.int32))


# -- a turn ---------------------------------------------------------------------------------------


def _newton(problem: Problem, state: Turn) -> Vec3:
    law = coulomb.linear(problem.K, state.p, state.u, problem.mu, state.guess, _softness(problem, state))
    DJ = law.across(problem.J)
    r = _applied(problem, jnp.zeros_like(problem.V_free), law.p - state.p)
    dV = solve(problem.plan, _coupled(problem, DJ), r)
    return law.p - law.across(_velocities(problem.slots, problem.J, dV))


def _softness(problem: Problem, state: Turn) -> Array:
    digits = problem.scale.dtype.itemsize
    scale = jnp.where(problem.scale > 0, problem.scale, 1)
    factor = jnp.minimum(SOFTNESS * 10.0 ** (state.number // ESCALATE), 3.0).astype(scale.dtype)
    soft = jnp.clip(factor * jnp.minimum(state.distance / scale, 1), STIFFEST[digits], SOFTEST)
    soft = jnp.maximum(soft * state.ease, HARDEST[digits])
    return stop_gradient(jnp.where(state.number == 0, FIRST[digits], soft).astype(scale.dtype))


def _coupled(problem: Problem, DJ: Vec3) -> Array:
    """1 + Y D J in blocks (T + 1, T + 1, w, w, *batch)."""
    n, w, *lanes = problem.V_free.shape
    diagonal = jnp.eye(n, dtype=bool).reshape(n, n, *(1,) * (2 + len(lanes)))
    unit = jnp.eye(w, dtype=DJ.x.dtype).reshape(w, w, *(1,) * len(lanes))
    H = jnp.where(diagonal, jnp.broadcast_to(unit, (n, n, w, w, *lanes)), 0)

    def add(c: Array, k: Array, pair: Array, mask: Array, H: Array) -> Array:
        i, j = k // 2, k % 2

        def both_move(H: Array) -> Array:
            y, g = jax.tree.map(lambda x: block(x, c, i), problem.Y), jax.tree.map(lambda x: block(x, c, j), DJ)
            return put(H, block(H, pair[i], pair[j]) + _coupling(y, g, mask), pair[i], pair[j])

        world = n - 1  # what couples with it is 0
        return jax.lax.cond((pair[i] < world) & (pair[j] < world), both_move, lambda H: H, H)

    return _visit(problem.slots, 4, add, H)


@fence
def _coupling(Y: Vec3, DJ: Vec3, mask: Array) -> Array:
    """Y D J between two trees, (w, w, *batch); Y and DJ of (w, *batch)."""
    return jnp.where(mask, Y.x[:, None] * DJ.x + Y.y[:, None] * DJ.y + Y.z[:, None] * DJ.z, 0)


def _sweeps(problem: Problem, state: Turn) -> Vec3:
    """Gauss and Seidel's method for some sweeps: one contact after the other, all others held."""
    p = coulomb.projected(state.p, problem.mu)
    V = _applied(problem, problem.V_free, p)

    def relax(c: Array, _, pair: Array, mask: Array, carry: tuple[Vec3, Array]) -> tuple[Vec3, Array]:
        p, V = carry
        J, Y, K, mu, old, offset = jax.tree.map(
            lambda x: block(x, c), (problem.J, problem.Y, problem.K, problem.mu, p, problem.rest)
        )
        new = coulomb.relaxed(K, old, _row(J, V, pair) + offset, mu)
        new = jax.tree.map(lambda a, b: jnp.where(mask, a, b), new, old)
        dV = Y.x * (new.x - old.x) + Y.y * (new.y - old.y) + Y.z * (new.z - old.z)
        for i in range(2):
            V = put(V, block(V, pair[i]) + dV[i], pair[i])
        return jax.tree.map(lambda x, y: put(x, y, c), p, new), V

    return fori_loop(0, SWEEPS, lambda _, carry: _visit(problem.slots, 1, relax, carry), (p, V))[0]


# -- contacts and trees -----------------------------------------------------------------------------


def _visit(slots: Slots, parts: int, body: Any, carry: Any) -> Any:
    """carry = body(contact, part of it, trees, mask of lanes, carry) for each contact and each two trees it couples.

    A body replaces one block: with two, XLA would copy all that the loop carries.
    """

    def part(n: Array, carry: Any) -> Any:
        c, k = n // parts, n % parts

        def one(i: Array, carry: Any) -> Any:
            return body(c, k, block(slots.pair, c, i), block(slots.which, c) == i, carry)

        if slots.which.ndim == 1:
            return one(jnp.int32(0), carry)
        return fori_loop(0, slots.passes[c], one, carry)

    return fori_loop(0, parts * slots.count, part, carry)


def _velocities(slots: Slots, J: Vec3, V: Array) -> Vec3:
    """J V, (C, *batch); V by places of the plan."""

    def read(c: Array, _, pair: Array, mask: Array, u: Vec3) -> Vec3:
        mine = _row(jax.tree.map(lambda x: block(x, c), J), V, pair)
        return jax.tree.map(lambda x, y: put(x, jnp.where(mask, y, block(x, c)), c), u, mine)

    none = jnp.zeros((len(J.x), *V.shape[2:]), V.dtype)
    return _visit(slots, 1, read, Vec3(none, none, none))


def _applied(problem: Problem, V: Array, p: Vec3) -> Array:
    """V + Y p, by places of the plan."""

    def push(c: Array, i: Array, pair: Array, mask: Array, V: Array) -> Array:
        Y, mine = jax.tree.map(lambda x: block(x, c, i), problem.Y), jax.tree.map(lambda x: block(x, c), p)
        change = Y.x * mine.x + Y.y * mine.y + Y.z * mine.z
        return put(V, block(V, pair[i]) + jnp.where(mask, change, 0), pair[i])

    return _visit(problem.slots, 2, push, V)


def _row(J: Vec3, V: Array, pair: Array) -> Vec3:
    """J V of one contact; J of (2, w, *batch)."""
    a, b = block(V, pair[0]), block(V, pair[1])
    return jax.tree.map(lambda x: (x[0] * a + x[1] * b).sum(0), J)
