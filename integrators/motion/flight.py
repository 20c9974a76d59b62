"""Free flight: the centre of mass on a parabola, the rotation from the angular momentum, both without step error.

The angular momentum about the centre of mass is known at all times: L = L0 + P t/h under a constant moment with angular
impulse P over the step, and constant without. Only the attitude R has to be integrated (Hairer, Lubich, Wanner 2006,
section VII.5): R' = [w] R with w = R J^-1 R^T L. Let J^-1 = a + B, a its middle eigenvalue, and M = L0 + P/2. Then

    R(t) = exp(t a M) Q(t),   Q' = [Q B Q^T (M + s) + a s] Q,   s = exp(-t a M) P (t/h - 1/2)

The first factor has a closed form. Without a moment, Q is constant if three moments of inertia are equal, and turns
uniformly if two are (the symmetric top). Q is integrated as a quaternion, by Cooper and Verner's method of order 8
(Hairer, Norsett, Wanner 1993, section II.5). The number of passes leaves only rounding error: none for a ball, one if Q
turns by less than 0.06 rad in the step, and so on. There are no cases, and no division by differences of moments.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.lax import stop_gradient

from ...engine.algebra.bounded import loop, partial_jvp
from ...engine.algebra.rotation import Quat
from ...engine.algebra.safe import safe_div
from ...engine.algebra.vec3 import Scalar, Sym3, Vec3
from ...engine.algebra.zero import ZERO

# -- Cooper and Verner's method of order 8, 11 stages -----------------------------------------------

S = math.sqrt(21)
NODES = (0.0, 1 / 2, (7 + S) / 14, (7 - S) / 14, 1.0)
NODE = (0, 1, 1, 2, 2, 1, 3, 3, 1, 2, 4)  # index of each stage's node
STAGES = (
    (),
    (1 / 2,),
    (1 / 4, 1 / 4),
    (1 / 7, (-7 - 3 * S) / 98, (21 + 5 * S) / 49),
    ((11 + S) / 84, 0, (18 + 4 * S) / 63, (21 - S) / 252),
    ((5 + S) / 48, 0, (9 + S) / 36, (-231 + 14 * S) / 360, (63 - 7 * S) / 80),
    ((10 - S) / 42, 0, (-432 + 92 * S) / 315, (633 - 145 * S) / 90, (-504 + 115 * S) / 70, (63 - 13 * S) / 35),
    (1 / 14, 0, 0, 0, (14 - 3 * S) / 126, (13 - 3 * S) / 63, 1 / 9),
    (1 / 32, 0, 0, 0, (91 - 21 * S) / 576, 11 / 72, (-385 - 75 * S) / 1152, (63 + 13 * S) / 128),
    (1 / 14, 0, 0, 0, 1 / 9, (-733 - 147 * S) / 2205, (515 + 111 * S) / 504, (-51 - 11 * S) / 56,
     (132 + 28 * S) / 245),
    (0, 0, 0, 0, (-42 + 7 * S) / 18, (-18 + 28 * S) / 45, (-273 - 53 * S) / 72, (301 + 53 * S) / 72,
     (28 - 28 * S) / 45, (49 - 7 * S) / 18),
)  # fmt: skip
WEIGHTS = (1 / 20, 0, 0, 0, 0, 0, 0, 49 / 180, 16 / 45, 49 / 180, 1 / 20)

# the error of a pass of x radians is 1.4e-5 x^9: the longest leave 3e-16 in double and 3e-8 in single precision
LONGEST_PASS = {8: 0.0625, 4: 0.5}  # [rad], by bytes per number
MOST_PASSES = 256  # passes in one step; with this number, passes grow longer


class Body(NamedTuple):
    """A free body, or several side by side; world axes. All components broadcast to one shape.

    attitude: rotation from the body's axes to the world.
    w: angular velocity [rad/s].
    center: centre of mass [m].
    u: its velocity [m/s].
    """

    attitude: Quat
    w: Vec3
    center: Vec3
    u: Vec3


class Spin(NamedTuple):
    """The rotation of a body in a step, in a time that runs from 0 to 1.

    a: the middle eigenvalue of h J^-1 [1/(N m s)].
    B: h J^-1 - a, in the body's axes [1/(N m s)].
    M: mean angular momentum, world axes [N m s].
    P: angular impulse, world axes [N m s].
    passes: number of passes of the integrator.
    """

    a: Scalar
    B: Sym3
    M: Vec3
    P: Vec3
    passes: Array


def fly_body(body: Body, mass: Array, inertia: Sym3, gravity: Vec3, moment: Vec3, push: Vec3, h: Scalar) -> Body:
    """Return the body after a step of length h [s].

    inertia: about the centre of mass, in the body's axes [kg m^2].  gravity [m/s^2].
    moment, push: angular impulse about the centre of mass and impulse, spread over the step, world axes [N m s, N s].
    """
    gained = gravity * h + push * (1 / mass)
    center, u = body.center + (body.u + gained * 0.5) * h, body.u + gained

    inverse = inertia.inverse()
    # by J: its two larger moments are similar; J^-1 of a needle would leave no digit of the middle eigenvalue
    a = 1 / _middle(stop_gradient(inertia))
    B, j = _less(inverse, a), (inertia.xx + inertia.yy + inertia.zz) / 3
    L = body.w * j + _apply_in_world(body.attitude, _less(inertia, j), body.w)
    M = L + moment * 0.5
    spin = Spin(a * h, B * h, M, moment, _passes(*stop_gradient((a * h, B * h, body.attitude, L, moment))))
    rest = _attitude_at_end(spin, body.attitude)
    attitude = (Quat.exp(M * spin.a) * rest).to_unit()
    # as a change, so that uniform rotation is exact to the last bit
    w = body.w + moment * a + (_apply_in_world(attitude, B, L + moment) - _apply_in_world(body.attitude, B, L))
    return Body(attitude, w, center, u)


def _less(x: Sym3, a: Scalar) -> Sym3:
    """Return X - a."""
    return Sym3(x.xx - a, x.yy - a, x.zz - a, x.xy, x.xz, x.yz)


def _middle(x: Sym3) -> Scalar:
    """Return the middle eigenvalue (Smith 1961)."""
    third = (x.xx + x.yy + x.zz) / 3
    rest = _less(x, third)
    p = jnp.sqrt(_square(rest) / 6)
    one, two, three = (rest * safe_div(1, p, otherwise=1)).full.rows
    angle = jnp.arccos(jnp.clip(one.dot(two.cross(three)) / 2, -1, 1)) / 3
    return third + 2 * p * jnp.sin(angle - math.pi / 6)


def _square(x: Sym3) -> Scalar:
    """Return the sum of the squares of the eigenvalues."""
    return x.xx * x.xx + x.yy * x.yy + x.zz * x.zz + 2 * (x.xy * x.xy + x.xz * x.xz + x.yz * x.yz)


def _apply_in_world(attitude: Quat, x: Sym3, v: Vec3) -> Vec3:
    """Return R X R^T v."""
    return attitude.rotate(x @ attitude.conjugate().rotate(v))


def _passes(a: Scalar, B: Sym3, attitude: Quat, L: Vec3, P: Vec3) -> Array:
    """Return the number of passes that leave only rounding error, from the largest possible turn of Q in the step.

    B's eigenvalues are b, c and 0, and x, y are the components of L along the axes of b and c. b x^2 + c y^2 = L B L is
    conserved, and b c <= 0, so (b x)^2 + (c y)^2 <= |B| |L B L| + 2 |b c| L^2.
    """
    square, trace, eps = _square(B), B.xx + B.yy + B.zz, jnp.finfo(L.x.dtype).eps
    norm = jnp.sqrt(square)
    norm = jnp.where(norm > 16 * eps * jnp.abs(a), norm, 0)  # that of a ball is rounding error
    gain = jnp.sqrt(P.dot(P))
    most = jnp.sqrt(L.dot(L)) + gain
    kept = jnp.abs(L.dot(_apply_in_world(attitude, B, L))) + 2 * norm * gain * most
    products = jnp.where(norm > 0, jnp.maximum(square - trace * trace, 0), 0)
    angle = jnp.sqrt(norm * kept + products * most * most) + jnp.abs(a) * gain * 0.5
    count = jnp.clip(jnp.ceil(angle / LONGEST_PASS[angle.dtype.itemsize]), 0, MOST_PASSES)
    return jnp.where(angle > 0, count, 0).astype(jnp.int32)  # 0 if the angle is NaN


@jax.custom_jvp
def _attitude_at_end(spin: Spin, attitude: Quat) -> Quat:
    """Return Q at the end of the step."""
    return _integrate_attitude(_pass, spin, attitude)


def _derivative(primals: tuple[Spin, Quat], tangents: tuple[Any, Any]) -> tuple[Quat, Quat]:
    """Compute the derivative with at least one pass, also for a ball, whose moments may be varied.

    The stages are a loop here: written out, they would take minutes to compile in reverse mode.
    """

    def one_at_least(spin: Spin, attitude: Quat) -> Quat:
        return _integrate_attitude(_short_pass, spin._replace(passes=jnp.maximum(spin.passes, 1)), attitude)

    end, d = partial_jvp(one_at_least, primals, tangents)
    spin, attitude = primals
    return jax.tree.map(lambda x, y: jnp.where(spin.passes > 0, x, y), end, attitude), d


_attitude_at_end.defjvp(_derivative, symbolic_zeros=True)


def _integrate_attitude(
    one: Callable[[Spin, tuple[Array, Array]], tuple[Array, Array]], spin: Spin, attitude: Quat
) -> Quat:
    q = jnp.stack(jnp.broadcast_arrays(attitude.w, attitude.x, attitude.y, attitude.z, spin.M.x)[:4])
    return Quat(*loop(MOST_PASSES, _has_passes_left, one, spin, (jnp.int32(0), q))[1])


def _has_passes_left(spin: Spin, carry: tuple[Array, Array]) -> Array:
    return (carry[0] < spin.passes).any()


def _pass(spin: Spin, carry: tuple[Array, Array]) -> tuple[Array, Array]:
    """Take one pass of the bodies that have passes left; q (4, ...)."""
    k, q = carry
    dt, s = _moments(spin, k, q)
    slopes: list[Array] = []
    for row, node in zip(STAGES, NODE, strict=True):
        slopes.append(_slope(spin, q + _weighted_sum(row, slopes) * dt, s[node]))
    return k + 1, jnp.where(k < spin.passes, q + _weighted_sum(WEIGHTS, slopes) * dt, q)


def _short_pass(spin: Spin, carry: tuple[Array, Array]) -> tuple[Array, Array]:
    """Take one pass as `_pass` does, by a shorter and slower program."""
    k, q = carry
    dt, s = _moments(spin, k, q)
    ones, n = (1,) * q.ndim, len(STAGES)

    def stage(slopes: Array, inputs: tuple[Array, Array, Array]) -> tuple[Array, None]:
        i, row, s = inputs
        slope = _slope(spin, q + (row.reshape(n, *ones) * slopes).sum(0) * dt, s)
        return jax.lax.dynamic_update_index_in_dim(slopes, slope, i, 0), None

    rows = jnp.asarray([[*row, *[0.0] * (n - len(row))] for row in STAGES], q.dtype)
    slopes, _ = jax.lax.scan(stage, jnp.zeros((n, *q.shape), q.dtype), (jnp.arange(n), rows, s[jnp.asarray(NODE)]))
    total = (jnp.asarray(WEIGHTS, q.dtype).reshape(n, *ones) * slopes).sum(0)
    return k + 1, jnp.where(k < spin.passes, q + total * dt, q)


def _moments(spin: Spin, k: Array, q: Array) -> tuple[Array, Array]:
    """Return the length of a pass, as a part of the step, and s at its nodes (5, 3, ...)."""
    dt = 1 / jnp.maximum(spin.passes, 1).astype(q.dtype)
    t = (k.astype(q.dtype) + jnp.asarray(NODES, q.dtype).reshape(-1, *(1,) * (q.ndim - 1))) * dt
    s = Quat.exp(spin.M * (-spin.a * t)).rotate(spin.P) * (t - 0.5)
    return dt, jnp.stack([jnp.broadcast_to(x, (len(NODES), *q.shape[1:])) for x in s.xyz], 1)


def _slope(spin: Spin, q: Array, at: Array) -> Array:
    """Return dQ/dt (4, ...).

    Stages are off the unit sphere. They are normalized for B, since that of a thin rod is sensitive to any shear.
    """
    attitude, s = Quat(*q), Vec3(*at)
    rate = _apply_in_world(attitude.to_unit(), spin.B, spin.M + s) + s * spin.a
    d = Quat.of(ZERO, rate * 0.5) * attitude
    return jnp.stack([d.w, d.x, d.y, d.z])


def _weighted_sum(weights: tuple[float, ...], slopes: list[Array]) -> Array | float:
    return sum((slope * weight for weight, slope in zip(weights, slopes, strict=True) if weight), start=0.0)
