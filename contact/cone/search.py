"""Newton's method for Coulomb's law at all contacts of an instant, made global by a line search.

    u = free + W p        0 <= p_n  _|_  u_n >= 0        |p_t| <= mu p_n, opposed to slip        u_n: less its target

Every turn guesses from p and u how each contact behaves (`coulomb.py`), and makes its law linear, p' = q - D du; a
`System` solves that together with du = W (p' - p) and knows how. W = J M^-1 J^T is singular where contacts are
redundant: four corners of a face share a load in many ways. D's compliance makes up for it. It is proportional to the
distance from the law, and so vanishes as fast. It resists the change of p, so what is left after a turn is about
soft K / (soft K + w), w being an eigenvalue of W. A light body under a heavy one makes w as small as the ratio of their
masses: where the guess was right and yet much is left, the next turn has less compliance.

The first guess is that all stick that do not fly apart: what rests usually does, and two to six turns are enough,
whatever the height of a stack. (Sweeps over the contacts, Gauss and Seidel's method and its accelerations, have not
settled ten boxes to 1e-10 after 300: each carries the load one box further.)

A guess that is wrong leads far away, where contacts are nearly redundant: what one of them cannot bear grows without
end until another slips. So a step is halved until `coulomb.merit` is less than the largest of the last `MEMORY` turns
(Grippo, Lampariello and Lucidi 1986: a merit that has to fall each time is caught in kinks). Halves cost no linear
equations, u being linear in p. Nothing proves that a short step along this direction lowers the merit: Coulomb's law is
no gradient. Where it does not, and where guesses run in circles, every `CIRCLE`-th turn is some sweeps instead.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jax import Array
from jax.lax import stop_gradient

from ...engine.algebra.vec3 import Sym3, Vec3
from . import coulomb

LOOSE = {4: 1e-3, 8: 1e-6}  # of the largest velocity may be left where a turn changes it by no more than STILL
STILL = 1e-4  # part of the distance
APART = 0.3  # of the largest velocity: what opens faster is open at first
SOFTNESS = 0.01  # compliance, in units of K, for each unit of distance from the law
FIRST, SOFTEST = {4: 3e-4, 8: 1e-6}, 0.1  # of the first turn, and the most
STIFFEST = {4: 3e-4, 8: 1e-6}  # below, the rounding of the elimination is larger than what this changes
EASE = 1e-2  # of the compliance is left from turn to turn where guesses are right and the distance falls slowly
SLOWLY = 0.8  # of the distance, or more, is left after a turn that gains little
HARDEST = {4: 1e-6, 8: 1e-13}  # below, what the compliance tells apart is rounding
ESCALATE = 10  # turns after which SOFTNESS grows tenfold, again and again
MEMORY, HALVES = 4, 10  # turns that a step is compared with; times that it is halved at most
CIRCLE, SWEEPS = 9, 16


class System(Protocol):
    """What joins the contacts. It also knows their K and mu (C), and `free`, u without impulses, less the targets."""

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
        """p after SWEEPS sweeps of `coulomb.relaxed`, one contact after the other."""
        ...


class Turn(NamedTuple):
    """A state of the search.

    u: less the targets.  distance: () from the law [m/s].  merits: (MEMORY,) of the last turns [J].
    busy: () bool: neither near enough, nor as near as it gets. Targets may contradict each other a little, as those of
    two corners of an edge that close different gaps; then impulses would only grow against each other.
    guess: how each contact behaves (closed, sticking), (C,) bool.  ease: () a factor of the compliance.
    """

    number: Array
    p: Vec3
    u: Vec3
    distance: Array
    merits: Array
    busy: Array
    guess: tuple[Array, Array]
    ease: Array


def search(system: System, given: Vec3, slides: Array, tolerance: float, rounding: Array, max_turns: int) -> Turn:
    """The last turn.

    given: impulses (C) to begin with.  slides: (C,) bool, contacts that are known to slip.
    tolerance: part of the largest velocity there is to change that may be left.  rounding: () [m/s], as well.
    """
    scale = largest(system.free)
    limit = tolerance * scale + rounding
    start = _start(system, given, slides, scale, limit)

    def turn(now: Turn) -> Turn:
        circles = now.number % CIRCLE == CIRCLE - 1
        p = jax.lax.cond(circles, lambda: system.sweeps(now.p), lambda: _newton(system, now, scale))
        u = system.free + system.moved(p)
        p, u, whole = _shortened(system, now, p, u, circles | (now.number == 0))
        return _judged(system, p, u, whole, now, scale, limit)

    return jax.lax.while_loop(lambda x: x.busy & (x.number < max_turns), turn, start)


def largest(u: Vec3) -> Array:
    return jnp.maximum(jnp.maximum(jnp.abs(u.x), jnp.abs(u.y)), jnp.abs(u.z)).max(0)


def _start(system: System, p: Vec3, slides: Array, scale: Array, limit: Array) -> Turn:
    u = system.free + system.moved(p)
    distance = coulomb.distance(system.K, p, u, system.mu).max(0)
    closed, stick = coulomb.closed_and_sticking(u, system.mu, APART * scale)
    merits = jnp.full((MEMORY,), coulomb.merit(system.K, p, u, system.mu))
    guess = closed, stick & ~slides
    return Turn(jnp.int32(0), p, u, distance, merits, ~(distance <= limit), guess, jnp.ones_like(distance))


def _newton(system: System, now: Turn, scale: Array) -> Vec3:
    law = coulomb.linear(system.K, now.p, now.u, system.mu, now.guess, _softness(now, scale))
    return system.newton(law, now.p)


def _softness(now: Turn, scale: Array) -> Array:
    digits = scale.dtype.itemsize
    unit = jnp.where(scale > 0, scale, 1)
    factor = jnp.minimum(SOFTNESS * 10.0 ** (now.number // ESCALATE), 3.0).astype(scale.dtype)
    soft = jnp.clip(factor * jnp.minimum(now.distance / unit, 1), STIFFEST[digits], SOFTEST)
    soft = jnp.maximum(soft * now.ease, HARDEST[digits])
    return stop_gradient(jnp.where(now.number == 0, FIRST[digits], soft).astype(scale.dtype))


def _shortened(system: System, now: Turn, p: Vec3, u: Vec3, whole: Array) -> tuple[Vec3, Vec3, Array]:
    """p and u on the way from the present ones, at the first half that is good enough, or the best; whether that is the
    whole way, as it has to be where `whole` says so."""
    most = now.merits.max()
    far: Any = lambda part: (now.p + (p - now.p) * part, now.u + (u - now.u) * part)  # noqa: E731
    merit = lambda p, u: coulomb.merit(system.K, p, u, system.mu)  # noqa: E731

    def halve(state: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        k, part, best, least = state
        part = part * 0.5
        value = merit(*far(part))
        better = value < least
        return k + 1, part, jnp.where(better, part, best), jnp.where(better, value, least)

    one = jnp.ones_like(most)
    begin = (jnp.int32(0), one, one, merit(p, u))
    _, _, part, _ = jax.lax.while_loop(lambda s: ~whole & (s[3] > most) & (s[0] < HALVES), halve, begin)
    return *jax.tree.map(lambda x, y: jnp.where(part < 1, x, y), far(part), (p, u)), part == 1


def _judged(system: System, p: Vec3, u: Vec3, whole: Array, before: Turn, scale: Array, limit: Array) -> Turn:
    distance = coulomb.distance(system.K, p, u, system.mu).max(0)
    merit = coulomb.merit(system.K, p, u, system.mu)
    moving = coulomb.behaviour(system.K, p, u, system.mu)
    near = distance <= LOOSE[distance.dtype.itemsize] * scale
    stalled = near & whole & (before.ease < 1) & (jnp.abs(distance - before.distance) <= STILL * distance)
    same = (moving[0] == before.guess[0]).all(0) & (moving[1] == before.guess[1]).all(0)
    slow = (distance > SLOWLY * before.distance) & (distance <= before.distance)
    ease = jnp.where(same, before.ease * jnp.where(slow, EASE, 1), 1)
    merits = jnp.append(before.merits[1:], merit)
    return Turn(before.number + 1, p, u, distance, merits, ~(distance <= limit) & ~stalled, moving, ease)
