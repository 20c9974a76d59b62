"""Friction integrated through one impact: through compression and restitution, until the law ends the impact.

Mirtich (1996, chapter 3) after Holck (2005, section 2.1.4): with the collision matrix K (eq. 2.16) the relative
velocity of the contact points obeys u' = K p' (theorem 2), and sliding friction p' = (-mu cos th, -mu sin th, 1) in the
parameter p_z (lemma 1, theorem 3). After slip stops, the contact sticks or slips along the diverging ray (theorem 4).

Differences: p_z, u_z and W are all singular variables where slip stops, and u_z may change direction more than once, so
an impact can have several compressions (references.md, Several compressions). Here dp_z = r ds with the slip speed
r = |u_t|. The equations are then smooth and autonomous, slip stops as s -> infinity, and Taylor series (series.py) give
long steps with dense output. The direction of slip turns monotonically (c . b - mu c . A c / 2 increases), so
u_z' = K_z . p' changes sign in at most two known directions. Steps end there, so u_z is monotone within each step and
no zero crossing is missed.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from ...engine.algebra.fence import fence
from ...engine.algebra.safe import safe_div, safe_sqrt
from ...engine.algebra.vec3 import Scalar, Sym3, Vec3
from ...engine.results import IMPACT_UNFINISHED, NOT_FINITE, OK
from .ending import Ending
from .series import Series, integrals, sliding_series
from .slip import is_straight, last_slip, slip_of, tolerance
from .straight import ImpactProgress, after_slip, follow
from .zero_crossing import upward_root

# Largest number of steps of one impact. Of 200 000 random impacts the longest took 43 steps, and one in a thousand took
# more than 20. p_z is bounded (references.md, End of compression), so only a nearly singular K or friction far above 10
# could need more.
STEPS = 96
ORDER, ORDER_F32 = 20, 10  # of the series; 14 to 24 and 8 to 12 take the same time, and higher orders take fewer steps
LONGEST = 64.0  # longest step in s, in units of 1 / (the fastest rate)


class _SlideState(NamedTuple):
    """State of the loop over steps.

    now: the impact so far.
    limit: longest next step, in s.
    slides: whether the contact still slips and needs another step.
    steps: number of steps so far.
    """

    now: ImpactProgress
    limit: Scalar
    slides: Scalar
    steps: Scalar


def slide(ending: Ending, K: Sym3, u: Vec3, mu: Scalar, e: Scalar) -> tuple[Vec3, Scalar]:
    """Return the impulse p [N s] of one impact, 0 if the bodies do not approach, and its result code.

    All arguments have components of a common shape, in the contact frame (t1, t2, n).

    ending: the condition by which the law ends the impact.
    K: collision matrix [1/kg].
    u: relative velocity before, u.z < 0 if the bodies approach [m/s].
    mu, e: friction and restitution coefficients.
    """
    p, code, _ = slide_and_count(ending, K, u, mu, e)
    return p, code


def slide_and_count(ending: Ending, K: Sym3, u: Vec3, mu: Scalar, e: Scalar) -> tuple[Vec3, Scalar, Scalar]:
    """Return the results of `slide`, and the number of steps of each impact."""
    numbers = jnp.broadcast_arrays(*jax.tree.leaves((K, u, mu, e)))
    K, (u, mu, e) = Sym3(*numbers[:6]), (Vec3(*numbers[6:9]), numbers[9], numbers[10])
    finite = jnp.isfinite(sum(jnp.abs(x) for x in numbers))
    strikes = finite & (u.z < 0) & (K.zz > 0)

    # units in which |u| and the largest entry of K are 1; lanes without an impact compute a harmless one
    speed = safe_sqrt(u.dot(u), strikes, 1)
    mobility = jnp.where(strikes, jnp.maximum(K.zz, jnp.maximum(K.xx, K.yy)), 1)
    K = jax.tree.map(lambda k, other: jnp.where(strikes, k / mobility, other), K, Sym3(1.0, 1.0, 1.0, 0.0, 0.0, 0.0))
    u = jax.tree.map(lambda x, other: jnp.where(strikes, x / speed, other), u, Vec3(0.0, 0.0, -1.0))
    mu, e = jnp.where(strikes, mu, 0), jnp.where(strikes, e, 0)

    zero = jnp.zeros_like(mu)
    now = ImpactProgress(Vec3(zero, zero, zero), zero, zero, zero, zero > 0, ~strikes)
    start = _SlideState(now, jnp.full_like(mu, LONGEST), _needs_steps(now, K, u, mu), jnp.zeros(mu.shape, jnp.int32))
    more = lambda c: jnp.any(c.slides & (c.steps < STEPS))  # noqa: E731
    end = jax.lax.while_loop(more, lambda c: _step(c, K, u, mu, e, ending), start)

    now = follow(last_slip(end.now, K, u, mu), end.now, K, u, e, ending)
    now = follow(after_slip(K, mu), now, K, u, e, ending)
    p = now.p
    p = Vec3(p.x, p.y, p.z + jnp.maximum(-(u + K @ p).z, 0) / K.zz)  # rounding must not leave an approach
    p = p * jnp.where(strikes, speed / mobility, 0)
    p = Vec3(*(jnp.where(finite, x, jnp.nan) for x in p.xyz))
    return p, jnp.where(finite, jnp.where(end.slides, IMPACT_UNFINISHED, OK), NOT_FINITE).astype(jnp.int32), end.steps


def _needs_steps(now: ImpactProgress, K: Sym3, u_0: Vec3, mu: Scalar) -> Scalar:
    slip = slip_of(u_0 + K @ now.p, K, mu)
    return ~now.ended & ~slip.stopped & ~is_straight(slip, mu)


def _step(c: _SlideState, K: Sym3, u_0: Vec3, mu: Scalar, e: Scalar, ending: Ending) -> _SlideState:
    """Take one step of every lane that slides, to its full length or to the first event."""
    eps = jnp.finfo(jnp.result_type(mu)).eps
    order = ORDER if eps < 1e-10 else ORDER_F32
    slides = c.slides & (c.steps < STEPS)

    start = _start_of_step(c.now, slides, K, u_0, mu)
    series = sliding_series(K, mu, start.r / start.rate, start.c, start.u.z, start.rate, order)
    h = jax.lax.stop_gradient(_trusted_length(series, start.r, c.limit, u_0.z, tolerance(eps)))
    event = _event(integrals(series, h), c.now, start, K, u_0, mu, e, ending)
    s, found = upward_root(_crossing_polynomial(series, event, c.now, start, ending), h)
    s = jnp.where(event.any, s, h)
    return _accept_step(integrals(series, s), s, found, h, event, c, slides, start, K, u_0, mu, e, ending)


class _StepStart(NamedTuple):
    """The start of a step.

    u: relative velocity.
    r: slip speed.
    c: direction of slip.
    turning: sign of the rate of c.
    rate: 1 / (unit of s).
    """

    u: Vec3
    r: Scalar
    c: tuple[Scalar, Scalar]
    turning: Scalar
    rate: Scalar


@fence
def _start_of_step(now: ImpactProgress, slides, K, u_0, mu) -> _StepStart:
    u = u_0 + K @ now.p
    slip = slip_of(u, K, mu)
    keep = lambda a, b: jnp.where(slides, a, b)  # noqa: E731  # lanes that do not slide compute a harmless step
    return _StepStart(u, keep(slip.r, 1), (keep(slip.c[0], 1), keep(slip.c[1], 0)), jnp.sign(slip.g), slip.rate + K.zz)


@fence
def _trusted_length(series: Series, r, limit, u_n, tolerance):
    """Return the step length at which the last two terms of the series reach the tolerance, in units of |u|."""
    n = len(series.q) - 1
    allowed = jnp.log(jnp.minimum(tolerance / r, 1e-3))
    h = limit
    for k in (n - 1, n):
        size = jnp.maximum(jnp.abs(series.q[k]), jnp.maximum(jnp.abs(series.vx[k]), jnp.abs(series.vy[k])))
        size = jnp.maximum(size, jnp.abs(series.W[k]) / (r * jnp.maximum(jnp.abs(u_n), jnp.abs(series.u_z[0]))))
        h = jnp.minimum(h, jnp.exp((allowed - jnp.log(jnp.maximum(size, jnp.finfo(r.dtype).tiny))) * (1 / k)))
    return h


class _Event(NamedTuple):
    """An event that ends a step early.

    lifts: a compression ends.
    falls: another compression begins.
    ends: the impact ends, by the law.
    reverses: u_z' changes sign, so that u_z would not be monotone in a longer step.
    any: one of these occurs.
    aim: direction of slip at which u_z' changes sign.
    target: value of the watched quantity at which the law ends the impact.
    """

    lifts: Scalar
    falls: Scalar
    ends: Scalar
    reverses: Scalar
    any: Scalar
    aim: tuple[Scalar, Scalar]
    target: Scalar


def _advance(now: ImpactProgress, start: _StepStart, done, mu) -> ImpactProgress:
    x, y, z, W = done
    scale = start.r / start.rate
    return now._replace(p=now.p + Vec3(-mu * scale * x, -mu * scale * y, scale * z), W=now.W + W)


@fence
def _rounding_of_u_z(u_0, p, mu):
    """Return the rounding error of u_z."""
    return 4 * jnp.finfo(jnp.result_type(mu)).eps * (jnp.abs(u_0.z) + (1 + mu) * p.z)


def _event(done, now, start, K, u_0, mu, e, ending) -> _Event:
    """Return the first event in a step."""
    last = _advance(now, start, done, mu)
    return _candidate_events(last, now, start, K, u_0, mu, ending.target(e, u_0.z, now.p_c, now.W_c), ending)


def _candidate_events(last, now, start, K, u_0, mu, target, ending):
    end = u_0 + K @ last.p
    dtype = jnp.result_type(mu)
    eps, tiny = jnp.finfo(dtype).eps, jnp.finfo(dtype).tiny
    watched = ending.watched(end.z, last.p.z, last.W)
    return _Event(*_classify_event(end, last.p, watched, now.restoring, start, K, u_0, mu, target, eps, tiny), target)


@fence
def _classify_event(end, p, watched, restoring, start, K, u_0, mu, target, eps, tiny):
    # directions with u_z' = 0, if friction is large enough to press the bodies together
    size = jnp.sqrt(jnp.maximum(K.xz * K.xz + K.yz * K.yz, tiny))
    presses = mu * size > K.zz
    cosine = safe_div(K.zz, mu * size, presses)
    sine = safe_sqrt(1 - cosine * cosine, presses, 1)
    bx, by = K.xz / size, K.yz / size
    left = bx * cosine - by * sine, by * cosine + bx * sine
    right = bx * cosine + by * sine, by * cosine - bx * sine
    length = jnp.sqrt(jnp.maximum(end.x * end.x + end.y * end.y, tiny))
    near = jnp.sqrt(eps) + 64 * eps / start.r

    def test_direction(c):
        x, y = start.c
        ahead = start.turning * (x * c[1] - y * c[0])
        behind = start.turning * (end.y * c[0] - end.x * c[1])
        return presses & (ahead > near) & (behind > near * length), x * c[0] + y * c[1]

    (passes_left, a), (passes_right, b) = test_direction(left), test_direction(right)
    take_left = passes_left & (~passes_right | (a > b))
    aim = tuple(start.turning * jnp.where(take_left, a, b) for a, b in zip(left, right, strict=True))
    reverses = passes_left | passes_right
    falls = ~reverses & restoring & (end.z < -_rounding_of_u_z(u_0, p, mu))
    ends = ~reverses & restoring & ~falls & (watched >= target)
    lifts = ~reverses & ~restoring & (end.z >= 0)
    return lifts, falls, ends, reverses, lifts | falls | ends | reverses, aim


def _crossing_polynomial(
    series: Series, event: _Event, now: ImpactProgress, start: _StepStart, ending: Ending
) -> list[Scalar]:
    """Return a polynomial in s that crosses zero upwards at the event."""
    scale = start.r / start.rate
    p_z = [now.p.z] + [scale * q * (1 / (k + 1)) for k, q in enumerate(series.q[:-1])]
    W = [now.W, *series.W[1:]]
    law = [ending.watched(*x) for x in zip(series.u_z, p_z, W, strict=True)]
    law[0] = law[0] - event.target
    return _event_polynomial(event, now.restoring, series.vx, series.vy, series.u_z, law)


@fence
def _event_polynomial(event, restoring, vx, vy, u_z, law):
    return [
        jnp.where(
            event.reverses,
            y * event.aim[0] - x * event.aim[1],
            jnp.where(event.falls, -u, jnp.where(restoring, w, u)),
        )
        for x, y, u, w in zip(vx, vy, u_z, law, strict=True)
    ]


def _accept_step(done, s, found, h, event: _Event, c: _SlideState, slides, start, K, u_0, mu, e, ending) -> _SlideState:
    """Return the state after the step; if its event was not found or another came first, the old one with a shorter
    limit."""
    now, new = c.now, _advance(c.now, start, done, mu)
    u = u_0 + K @ new.p
    over = ending.watched(u.z, new.p.z, new.W) > event.target
    rounding = _rounding_of_u_z(u_0, new.p, mu)
    before = (event.reverses & jnp.where(now.restoring, over | (u.z < -rounding), u.z > 0)) | (event.falls & over)
    lost = event.any & ~found
    good = slides & ~before & ~lost
    lifts = good & event.lifts
    new = ImpactProgress(
        new.p,
        jnp.where(lifts, jnp.maximum(new.W, 0), new.W),
        jnp.where(lifts, new.p.z, now.p_c),
        jnp.where(lifts, now.W_c + jnp.minimum(new.W, 0), now.W_c),
        (now.restoring | lifts) & ~event.falls,
        event.ends | (lifts & (e == 0)),
    )
    new = jax.tree.map(lambda a, b: jnp.where(good, a, b), new, now)
    limit = jnp.where(lost, 0.5 * h, jnp.where(before, s, LONGEST))
    return _SlideState(new, limit, c.slides & _needs_steps(new, K, u_0, mu), c.steps + slides)
