"""Newton's method for Coulomb's law at all contacts of an instant.

    u = free + W p        0 <= p_n  _|_  u_n >= 0        |p_t| <= mu p_n, opposed to slip        u_n: less its target

Every iteration guesses from p and u how each contact behaves (`coulomb.py`), and makes its law linear, p' = q - D du;
a `System` solves that together with du = W (p' - p) and knows how. W = J M^-1 J^T is singular where contacts are
redundant: four corners of a face share a load in many ways. D's compliance makes up for it. It is proportional to the
distance from the law, and so vanishes as fast. It resists the change of p, so what is left after an iteration is
about soft K / (soft K + w), w being an eigenvalue of W. A light body under a heavy one makes w as small as the ratio
of their masses: where the guess was right and yet much is left, the next iteration has less compliance.

The first guess is that all stick that do not fly apart: what rests usually does, and three to six iterations are
enough, whatever the height of a stack. (Sweeps over the contacts, Gauss and Seidel's method and its accelerations,
have not settled ten boxes to 1e-10 after 300: each carries the load one box further.)

Where guesses run in circles, as they may where friction is large, every `CIRCLE`-th iteration is some sweeps instead,
which end that. (A line search on the distance, monotone or not, takes as many iterations, and fails where one body is
1e5 times as heavy as another.)

Targets may contradict each other a little, as those of two corners of an edge that close different gaps, or which the
change of J moves by different amounts. Then a distance is left that no impulse changes (an interior-point method ends
at the same one), and compliances that are smaller yet only let contacts press each other more. So the nearest
iteration is kept. Where it is within LOOSE, and none of PATIENCE iterations has come half as near again, it is the
answer.

Where a rough one will do, within some speed, iterations of a large system are sweeps as long as each leaves half of
the distance at most: of a heap that hardly moves in a window they leave a hundredth, where the first guess, which
takes all contacts to carry something, makes a hundred times as much of it.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jax import Array
from jax.lax import stop_gradient

from ...engine.algebra.vec3 import Sym3, Vec3
from . import coulomb

LOOSE = {4: 1e-3, 8: 1e-5}  # of the largest velocity may be left where iterations gain no more
ROUGHER = 30  # times what may be left, where iterations gain no more and a rough answer will do
PATIENCE, GAIN = 3, 0.5  # iterations; part of the distance that one of them is to leave at most
APART = 0.3  # of the largest velocity: what opens faster is open at first
SOFTNESS = 0.003  # compliance, in units of K, for each unit of distance from the law
FIRST, SOFTEST = {4: 3e-4, 8: 1e-4}, 0.1  # of the first iteration, and the most
STIFFEST = {4: 3e-4, 8: 1e-6}  # below, the rounding of the elimination is larger than what this changes
EASE = (
    1e-2  # of the compliance is left from iteration to iteration where guesses are right and the distance falls slowly
)
SLOWLY = 0.8  # of the distance, or more, is left after a iteration that gains little
HARDEST = {4: 1e-6, 8: 1e-13}  # below, what the compliance tells apart is rounding
ESCALATE = 10  # iterations after which SOFTNESS grows tenfold, again and again
CIRCLE, SWEEPS = 9, 16


class System(Protocol):
    """What joins the contacts. It also knows their K and mu (C), and `free`, u without impulses, less the targets.

    large: whether a iteration takes as long as some sweeps.
    """

    @property
    def large(self) -> bool: ...

    @property
    def K(self) -> Sym3: ...
    @property
    def mu(self) -> Array: ...
    @property
    def free(self) -> Vec3: ...

    def moved(self, p: Vec3) -> Vec3:
        """W p: what impulses (C) do to u."""
        ...

    def newton(self, law: coulomb.Linear, p: Vec3) -> Vec3:
        """p' with p' = q - D W (p' - p)."""
        ...

    def sweeps(self, p: Vec3) -> Vec3:
        """p after SWEEPS sweeps of `coulomb.Relaxation`, one contact after the other."""
        ...


class Nearest(NamedTuple):
    """The iteration that came nearest to the law.

    p: its impulses.
    distance: () its distance [m/s].
    mark: () a distance of which GAIN counts as progress [m/s].
    idle: () iterations since then.
    """

    p: Vec3
    distance: Array
    mark: Array
    idle: Array

    def seen(self, p: Vec3, distance: Array) -> Nearest:
        """After a iteration."""
        nearer, gains = distance < self.distance, distance <= GAIN * self.mark
        best: Vec3 = jax.tree.map(lambda x, y: jnp.where(nearer, x, y), p, self.p)
        mark, idle = jnp.where(gains, distance, self.mark), jnp.where(gains, 0, self.idle + 1)
        return Nearest(best, jnp.where(nearer, distance, self.distance), mark, idle)


class Iteration(NamedTuple):
    """A state of the search.

    u: less the targets.  distance: () from the law [m/s].
    busy: () bool: neither near enough, nor as near as it gets.
    guess: how each contact behaves (closed, sticking), (C,) bool.  torn: (C,) bool, contacts that opened when they
    were taken to stick.  ease: () a factor of the compliance.
    nearest: the answer, when it ends.  sweeps: () bool, whether the next iteration is some.
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


class Accuracy(NamedTuple):
    """What may be left, of the largest velocity there is to change: everywhere, and where iterations gain no more;
    rounding () [m/s], what may be left anyway () [m/s], and where iterations gain no more () [m/s]."""

    limit: float
    loose: float
    rounding: Array
    rough: Array | float
    asked: Array | float


def accuracy(tolerance: float, rounding: Array, rough: Array | None, asked: Array | None) -> Accuracy:
    """rough, asked: () [m/s], None: 0."""
    left = [0.0 if x is None else x for x in (rough, asked)]
    return Accuracy(tolerance, LOOSE[rounding.dtype.itemsize], rounding, *left)


def search(
    system: System, given: Vec3, slides: Array, near: Accuracy, max_iterations: int
) -> tuple[Vec3, Array, Array]:
    """Impulses (C), whether they obey the law as near as is asked, and how far from it they are () [m/s].

    given: impulses (C) to begin with.  slides: (C,) bool, contacts that are known to slip.
    """
    scale = largest(system.free)
    limit = jnp.maximum(near.limit * scale, near.rough) + near.rounding
    loose = jnp.maximum(jnp.maximum(near.loose * scale, ROUGHER * near.rough), near.asked)
    start = _start(system, given, slides, scale, limit, jnp.asarray(system.large & (near.rough > 0)))

    def iteration(now: Iteration) -> Iteration:
        sweeps = now.sweeps | (now.number % CIRCLE == CIRCLE - 1)
        p = jax.lax.cond(sweeps, lambda: system.sweeps(now.p), lambda: _newton(system, now, scale))
        return _judged(system, p, now, limit, loose)

    end = jax.lax.while_loop(lambda x: x.busy & (x.number < max_iterations), iteration, start)
    return end.nearest.p, end.nearest.distance <= jnp.maximum(limit, loose), end.nearest.distance


def largest(u: Vec3) -> Array:
    return jnp.maximum(jnp.maximum(jnp.abs(u.x), jnp.abs(u.y)), jnp.abs(u.z)).max(0)


def _start(system: System, p: Vec3, slides: Array, scale: Array, limit: Array, sweeps: Array) -> Iteration:
    u = system.free + system.moved(p)
    distance = coulomb.distance(system.K, p, u, system.mu).max(0)
    closed, stick = coulomb.closed_and_sticking(u, system.mu, APART * scale)
    guess = closed, stick & ~slides
    nearest = Nearest(p, distance, distance, jnp.int32(0))
    torn, ease = jnp.zeros_like(closed), jnp.ones_like(distance)
    return Iteration(jnp.int32(0), p, u, distance, ~(distance <= limit), guess, torn, ease, nearest, sweeps)


def _newton(system: System, now: Iteration, scale: Array) -> Vec3:
    law = coulomb.linear(system.K, now.p, now.u, system.mu, now.guess, _softness(now, scale))
    return system.newton(law, now.p)


def _softness(now: Iteration, scale: Array) -> Array:
    digits = scale.dtype.itemsize
    unit = jnp.where(scale > 0, scale, 1)
    factor = jnp.minimum(SOFTNESS * 10.0 ** (now.number // ESCALATE), 3.0).astype(scale.dtype)
    soft = jnp.clip(factor * jnp.minimum(now.distance / unit, 1), STIFFEST[digits], SOFTEST)
    soft = jnp.maximum(soft * now.ease, HARDEST[digits])
    return stop_gradient(jnp.where(now.number == 0, FIRST[digits], soft).astype(scale.dtype))


def _judged(system: System, p: Vec3, before: Iteration, limit: Array, loose: Array) -> Iteration:
    u = system.free + system.moved(p)
    distance = coulomb.distance(system.K, p, u, system.mu).max(0)
    moving = coulomb.behaviour(system.K, p, u, system.mu)
    nearest = before.nearest.seen(p, distance)
    sweeps = before.sweeps & (distance <= GAIN * before.distance)
    idle = (nearest.idle >= PATIENCE) | (before.sweeps & ~sweeps)
    ends = (distance <= limit) | ((nearest.distance <= loose) & idle)
    same = (moving[0] == before.guess[0]).all(0) & (moving[1] == before.guess[1]).all(0)
    slow = (distance > SLOWLY * before.distance) & (distance <= before.distance)
    ease = jnp.where(same, before.ease * jnp.where(slow, EASE, 1), 1)
    # where friction jams, sticking would pull and opening would sink in: what goes from one to the other slips
    closed, stick = moving
    torn = (before.guess[1] | before.torn) & ~closed
    moving = closed, stick & ~before.torn
    return Iteration(before.number + 1, p, u, distance, ~ends, moving, torn, ease, nearest, sweeps)
