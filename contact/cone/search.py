"""Newton's method for Coulomb's law at all contacts of an instant.

    u = free + W p        0 <= p_n  _|_  u_n >= 0        |p_t| <= mu p_n, opposed to slip        u_n: less its target

Every iteration guesses from p and u how each contact behaves (`coulomb.py`) and linearizes its law, p' = q - D du;
a `System` solves this together with du = W (p' - p). W = J M^-1 J^T is singular if contacts are redundant: four corners
of a face can share a load in many ways. The compliance in D regularizes it. It is proportional to the distance from
the law and vanishes with it. It resists the change of p, so that an iteration leaves about soft K / (soft K + w) of the
distance, with w an eigenvalue of W. Friction is resisted more than normal impulses, so that it takes no load that they
can bear: else what pushes against the side of a box would hold a fifth of its weight. In the first iterations, after a
change of the guess, it is the distance from the first p that is resisted: redundant contacts keep nothing of a wrong
guess. With a light body under a heavy one, w is as small as the ratio of their masses: if the guess was right but much
of the distance remains, the next iteration has less compliance.

The first guess is that all contacts stick, except those that separate quickly, and those that slide faster than
friction is likely to stop (`solve.py`). This is usually right for resting contacts, and three to six iterations are
enough for a stack of any height. (Gauss-Seidel sweeps and their accelerations did not solve ten stacked boxes to 1e-10
in 300 sweeps: each sweep carries the load one box further.)

Guesses may cycle if friction is large. Every `CIRCLE`-th iteration therefore consists of Gauss-Seidel sweeps, which end
the cycle. (A line search on the distance, monotone or not, takes as many iterations, and fails if one body is 1e5 times
as heavy as another.)

Targets may contradict each other slightly: two corners of one edge close different gaps, or the change of J moves them
by different amounts. Then no impulse reduces the distance to 0 (an interior-point method ends at the same distance),
and a smaller compliance only makes contacts press against each other. So the best iteration is kept. It is returned if
its distance is within LOOSE and no iteration out of PATIENCE has halved it.

Of 10 000 solves of a figure that comes to rest on the ground, Newton's method fails in one or two, where redundant
contacts creep. Sweeps from the beginning then solve some of these.

If a velocity tolerance is given, a large system has TRIES iterations of Newton's method. They are enough for bodies
that stand, for which the guesses are right, and leave them so exactly at rest that they sleep. Otherwise BATCHES
iterations of sweeps follow from the best of them. In a heap of 200 boxes that falls, two to four of these, of SWEEPS
each, leave a thousandth of the distance. Newton's steps guess wrong for a tenth of the contacts: they would multiply
the distance by a thousand, and need twenty more to come back.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jax import Array
from jax.lax import stop_gradient

from ...engine.algebra.safe import safe_div
from ...engine.algebra.vec3 import Sym3, Vec3
from . import coulomb

LOOSE = {4: 1e-3, 8: 1e-5}  # part of the contact's scale: residual accepted if iterations make no more progress
ROUGHER, ROUGHEST = 10, 30  # times the velocity tolerance: accepted after PATIENCE and LONG iterations without progress
PATIENCE, LONG, GAIN = 3, 12, 0.5  # iterations; progress is a distance of at most GAIN times the last mark
HOPELESS = 60  # iterations without progress after which no solution is expected any more
APART = 0.3  # part of the contact's scale: contacts that separate faster are open in the first guess
SOFTNESS = 0.003  # compliance, in units of K, for each unit of relative distance from the law
FIRST, SOFTEST = {4: 3e-4, 8: 1e-5}, 0.1  # compliance of the first iteration, and the largest compliance
STIFFEST = {4: 3e-4, 8: 1e-6}  # with less compliance, the rounding of the elimination is larger than its effect
FRICTION_LAST = 300  # times the compliance along the normal: that across. What the law leaves open, normals carry
FORGETS = 4  # iterations in which impulses of a guess that has changed are forgotten
EASE = 1e-2  # factor of the compliance for each iteration with a right guess whose distance falls slowly
SLOWLY = 0.8  # an iteration that leaves more than this part of the distance is slow
HARDEST = {4: 1e-6, 8: 1e-13}  # least compliance; below it only rounding would tell redundant contacts apart
ESCALATE = 10  # iterations after which SOFTNESS grows tenfold, again and again
CIRCLE, SWEEPS = 9, 32
TRIES, BATCHES = 2, 8  # if a velocity tolerance is given: Newton iterations, and then the most iterations of sweeps


class System(Protocol):
    """The coupling of the contacts.

    large: whether an iteration takes as long as several sweeps.
    K: (C) collision matrices [1/kg].
    mu: (C) friction coefficients.
    free: (C) u without impulses, less the targets [m/s].
    """

    @property
    def large(self) -> bool: ...

    @property
    def K(self) -> Sym3: ...
    @property
    def mu(self) -> Array: ...
    @property
    def free(self) -> Vec3: ...

    def velocity_change(self, p: Vec3) -> Vec3:
        """Return W p, the change of u by impulses (C)."""
        ...

    def newton(self, law: coulomb.Linear, p: Vec3) -> Vec3:
        """Solve p' = q - D W (p' - p) for p'."""
        ...

    def sweeps(self, p: Vec3) -> Vec3:
        """Return p after at most SWEEPS Gauss-Seidel sweeps of `coulomb.Relaxation`."""
        ...


class Residual(NamedTuple):
    """Distance of impulses from the law.

    relative: () the largest, relative to the contacts' scales; 0 if all are accepted at once.
    largest: () the largest [m/s].
    small: () bool, whether it is accepted if iterations make no more progress.
    bearable: () bool, whether it is accepted if they make none for long.
    """

    relative: Array
    largest: Array
    small: Array
    bearable: Array


class Nearest(NamedTuple):
    """The best iteration so far.

    p: its impulses.
    distance: its distance from the law.
    mark: () the distance at the last progress, relative.
    idle: () iterations since then.
    """

    p: Vec3
    distance: Residual
    mark: Array
    idle: Array

    def update(self, p: Vec3, distance: Residual) -> Nearest:
        """Return the best iteration after one more."""
        far = distance.relative
        nearer, gains = far < self.distance.relative, far <= GAIN * self.mark
        best: tuple[Vec3, Residual] = jax.tree.map(
            lambda x, y: jnp.where(nearer, x, y), (p, distance), (self.p, self.distance)
        )
        return Nearest(*best, jnp.where(gains, far, self.mark), jnp.where(gains, 0, self.idle + 1))


class Iteration(NamedTuple):
    """A state of the search.

    number: () iterations so far.
    p: (C,) impulses [N s].
    u: (C,) velocities, less the targets [m/s].
    distance: () relative distance from the law.
    busy: () bool, whether to go on.
    guess: (C,) bool, whether each contact is closed, and whether it sticks.
    torn: (C,) bool, contacts that opened although they were guessed to stick.
    ease: () a factor of the compliance.
    nearest: the best iteration, which is the result.
    sweeps: () bool, whether the next iteration consists of sweeps.
    same: () bool, whether the guess is that of the last iteration.
    """

    number: Array
    p: Vec3
    u: Vec3
    distance: Array
    busy: Array
    guess: tuple[Array, Array]
    torn: Array
    ease: Array
    nearest: Nearest
    sweeps: Array
    same: Array


class Accuracy(NamedTuple):
    """The distance from the law that is accepted.

    scale: (C,) the largest velocity to change in the contact's island [m/s].
    at_once: (C,) accepted at once [m/s].
    at_last: (C,) accepted without more progress [m/s].
    after_long: (C,) accepted without progress for long [m/s].
    absolute: () bool, whether a velocity tolerance is given.
    """

    scale: Array
    at_once: Array
    at_last: Array
    after_long: Array
    absolute: Array | bool

    def distance(self, system: System, p: Vec3, u: Vec3) -> Residual:
        """Return the distance of p and u from the law."""
        each = coulomb.distance(system.K, p, u, system.mu)
        relative = jnp.where(each <= self.at_once, 0, safe_div(each, self.scale, otherwise=each))
        return Residual(relative.max(0), each.max(0), (each <= self.at_last).all(0), (each <= self.after_long).all(0))


def accuracy(
    tolerance: Array, scale: Array, rounding: Array, velocity_tolerance: Array | None, conflict_tolerance: Array | None
) -> Accuracy:
    """Return the distances that are accepted.

    tolerance: (C,) relative to `scale`.
    scale: (C,) see `Accuracy` [m/s].
    rounding: (C,) rounding error of u [m/s].
    velocity_tolerance, conflict_tolerance: () [m/s], None: 0.
    """
    absolute, conflict = (0.0 if x is None else x for x in (velocity_tolerance, conflict_tolerance))
    limit = jnp.maximum(tolerance * scale, absolute) + rounding
    loose = jnp.maximum(jnp.maximum(LOOSE[scale.dtype.itemsize] * scale, conflict), limit)
    return Accuracy(
        scale, limit, jnp.maximum(loose, ROUGHER * absolute), jnp.maximum(loose, ROUGHEST * absolute), absolute > 0
    )


def search(
    system: System, start_p: Vec3, slides: Array, allowed: Accuracy, max_iterations: int
) -> tuple[Vec3, Array, Array]:
    """Return impulses (C), whether they obey the law within `allowed`, and their distance from it () [m/s].

    start_p: (C) impulses to start with [N s].
    slides: (C,) bool, contacts that are guessed to slip.
    allowed: the distance that is accepted.
    """
    start = _start(system, start_p, slides, allowed)

    def iteration(now: Iteration) -> Iteration:
        sweeps = now.sweeps | (now.number % CIRCLE == CIRCLE - 1)
        p = jax.lax.cond(sweeps, lambda: system.sweeps(now.p), lambda: _newton(system, now, start_p))
        return _judge(system, p, now, allowed)

    end = jax.lax.while_loop(lambda x: x.busy & (x.number < max_iterations), iteration, start)
    nearest = _sweep(system, start_p, end.nearest, allowed, max_iterations)
    return nearest.p, nearest.distance.bearable, nearest.distance.largest


def _sweep(system: System, start_p: Vec3, nearest: Nearest, allowed: Accuracy, max_iterations: int) -> Nearest:
    """Run sweeps from the beginning if Newton's method found nothing bearable, and return the best iteration."""

    def sweeps(now: tuple[Array, Vec3, Nearest]) -> tuple[Array, Vec3, Nearest]:
        number, p, best = now
        p = system.sweeps(p)
        distance = allowed.distance(system, p, system.free + system.velocity_change(p))
        return number + 1, p, best.update(p, distance)

    def goes_on(now: tuple[Array, Vec3, Nearest]) -> Array:
        number, _, best = now
        return (best.distance.relative > 0) & (best.idle < LONG) & (number < max_iterations)

    first = jnp.int32(0), start_p, nearest._replace(mark=nearest.distance.relative, idle=jnp.int32(0))
    needed = ~(nearest.distance.bearable | allowed.absolute)
    return jax.lax.cond(needed, lambda: jax.lax.while_loop(goes_on, sweeps, first)[2], lambda: nearest)


def largest(u: Vec3) -> Array:
    """Return the largest absolute component of each contact (C,)."""
    return jnp.maximum(jnp.maximum(jnp.abs(u.x), jnp.abs(u.y)), jnp.abs(u.z))


def _start(system: System, p: Vec3, slides: Array, allowed: Accuracy) -> Iteration:
    u = system.free + system.velocity_change(p)
    distance = allowed.distance(system, p, u)
    far = distance.relative
    closed, stick = coulomb.closed_and_sticking(u, system.mu, APART * allowed.scale)
    guess, sweeps = (closed, stick & ~slides), jnp.array(False)
    nearest = Nearest(p, distance, far, jnp.int32(0))
    torn, ease = jnp.zeros_like(closed), jnp.ones_like(far)
    return Iteration(jnp.int32(0), p, u, far, ~(far <= 0), guess, torn, ease, nearest, sweeps, jnp.array(False))


def _newton(system: System, now: Iteration, start_p: Vec3) -> Vec3:
    keeps = now.same | (now.number >= FORGETS)
    center: Vec3 = jax.tree.map(lambda x, y: jnp.where(keeps, x, y), now.p, start_p)
    soft = _softness(now)
    soft_t = jnp.maximum(soft, jnp.minimum(FRICTION_LAST * soft, SOFTEST))
    law = coulomb.linear(system.K, now.p, now.u, system.mu, now.guess, soft, soft_t, center)
    return system.newton(law, now.p)


def _softness(now: Iteration) -> Array:
    dtype = now.distance.dtype
    digits = dtype.itemsize
    factor = jnp.minimum(SOFTNESS * 10.0 ** (now.number // ESCALATE), 3.0).astype(dtype)
    soft = jnp.clip(factor * jnp.minimum(now.distance, 1), STIFFEST[digits], SOFTEST)
    soft = jnp.maximum(soft * now.ease, HARDEST[digits])
    return stop_gradient(jnp.where(now.number == 0, FIRST[digits], soft).astype(dtype))


def _judge(system: System, p: Vec3, before: Iteration, allowed: Accuracy) -> Iteration:
    u = system.free + system.velocity_change(p)
    now = allowed.distance(system, p, u)
    distance = now.relative
    moving = coulomb.behaviour(system.K, p, u, system.mu)
    nearest = before.nearest.update(p, now)
    idle = (nearest.idle >= PATIENCE) | (before.sweeps & (distance > GAIN * before.distance))
    patience = jnp.where(nearest.distance.bearable, LONG, HOPELESS)
    stops = (distance <= 0) | (nearest.distance.small & idle) | (nearest.idle >= patience)
    same = (moving[0] == before.guess[0]).all(0) & (moving[1] == before.guess[1]).all(0)
    slow = (distance > SLOWLY * before.distance) & (distance <= before.distance)
    ease = jnp.where(same, before.ease * jnp.where(slow, EASE, 1), 1)
    # if friction jams, sticking would pull and opening would overlap: a contact that alternates between them slips
    closed, stick = moving
    torn = (before.guess[1] | before.torn) & ~closed
    moving = closed, stick & ~before.torn
    number, sweeps = before.number + 1, before.sweeps
    if system.large:
        begins = allowed.absolute & (number == TRIES)
        sweeps = (begins | sweeps) & (number < TRIES + BATCHES)
        best = nearest.p, nearest.distance.relative
        p, distance = jax.tree.map(lambda x, y: jnp.where(begins, x, y), best, (p, distance))  # sweeps need no u
    return Iteration(number, p, u, distance, ~stops, moving, torn, ease, nearest, sweeps, same)
