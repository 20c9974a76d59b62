"""Quat and the exponential map of SO(3), safe at zero angle in value and in derivative.

Every coefficient of the exponential maps is an even function of the angle, so it is computed from the
angle's square: by its Taylor series below 1/2 rad, in closed form above. No square root is taken near
near zero, so no derivative has a NaN (the double `where`: the branch not taken gets a harmless 1).
"""

from __future__ import annotations

from collections.abc import Callable
from math import factorial

import jax.numpy as jnp
import numpy as np
from jax import Array

from .vec3 import Mat3, Scalar, Vec3, pytree
from .zero import is_zero

_SMALL = 0.25  # [rad^2] below this the series is used; 8 terms reach 1e-19 there


def sinc(t2: Scalar) -> Scalar:
    """Value of sin(t)/t, given t^2."""
    return _even(t2, [(-1) ** k / factorial(2 * k + 1) for k in range(9)], lambda t: jnp.sin(t) / t)


def cosc(t2: Scalar) -> Scalar:
    """Value of (1 - cos t)/t^2, given t^2."""
    terms = [(-1) ** k / factorial(2 * k + 2) for k in range(9)]
    return _even(t2, terms, lambda t: 2 * (jnp.sin(t / 2) / t) ** 2)


def sinc3(t2: Scalar) -> Scalar:
    """Value of (t - sin t)/t^3, given t^2."""
    terms = [(-1) ** k / factorial(2 * k + 3) for k in range(9)]
    return _even(t2, terms, lambda t: (t - jnp.sin(t)) / t**3)


def cotc(t2: Scalar) -> Scalar:
    """Value of (1 - (t/2) cot(t/2))/t^2, given t^2, for the inverse of the left Jacobian."""
    bernoulli = [1 / 12, 1 / 720, 1 / 30240, 1 / 1209600, 1 / 47900160, 691 / 1307674368000, 1 / 74724249600]
    return _even(t2, bernoulli, lambda t: (1 - t / 2 * jnp.cos(t / 2) / jnp.sin(t / 2)) / t**2)


def _even(t2: Scalar, series: list[float], closed_form: Callable[[Scalar], Scalar], small: float = _SMALL) -> Scalar:
    near = t2 < small
    value = series[-1]
    x = jnp.where(near, t2, 0.0)
    for coefficient in reversed(series[:-1]):
        value = value * x + coefficient
    return jnp.where(near, value, closed_form(jnp.sqrt(jnp.where(near, 1.0, t2))))


@pytree
class Quat:
    """A unit quaternion w x y z: the rotation from child to parent axes, `R_PC`."""

    w: Scalar
    x: Scalar
    y: Scalar
    z: Scalar

    @property
    def vector(self) -> Vec3:
        return Vec3(self.x, self.y, self.z)

    @staticmethod
    def of(w: Scalar, v: Vec3) -> Quat:
        """The quaternion of a scalar and a vector part."""
        return Quat(w, v.x, v.y, v.z)

    @staticmethod
    def of_array(a: Array | np.ndarray) -> Quat:
        """The quaternion of an array (..., 4)."""
        return Quat(a[..., 0], a[..., 1], a[..., 2], a[..., 3])

    def __mul__(self, o: Quat) -> Quat:
        a, b = self.vector, o.vector
        return Quat.of(self.w * o.w - a.dot(b), self.w * b + o.w * a + a.cross(b))

    def conjugate(self) -> Quat:
        return Quat(self.w, -self.x, -self.y, -self.z)

    def to_unit(self) -> Quat:
        s = 1 / jnp.sqrt(self.w * self.w + self.vector.dot(self.vector))
        return Quat.of(self.w * s, self.vector * s)

    def matrix(self) -> Mat3:
        """The rotation matrix of a unit quaternion."""
        w, x, y, z = self.w, self.x, self.y, self.z
        return Mat3(
            1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
            2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
            2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y),
        )  # fmt: skip

    def rotate(self, v: Vec3) -> Vec3:
        if is_zero(v):
            return v
        t = 2 * self.vector.cross(v)
        return v + self.w * t + self.vector.cross(t)

    @staticmethod
    def exp(phi: Vec3) -> Quat:
        """Rotation by the vector phi [rad]."""
        t2 = phi.dot(phi) / 4
        return Quat.of(1 - t2 * cosc(t2), phi * (sinc(t2) / 2))

    def log(self) -> Vec3:
        """The rotation vector, length at most pi."""
        flip = jnp.where(self.w < 0, -1.0, 1.0)
        w, v = self.w * flip, self.vector * flip
        n2 = v.dot(v)
        near = n2 < 0.01 * w * w
        x2 = jnp.where(near, n2, 0.0) / jnp.where(near, w * w, 1.0)
        series = 1 / 19
        for k in reversed(range(9)):
            series = 1 / (2 * k + 1) - series * x2
        n = jnp.sqrt(jnp.where(near, 1.0, n2))
        return v * (2 * jnp.where(near, series / jnp.where(near, w, 1.0), jnp.arctan2(n, w) / n))

    @staticmethod
    def from_matrix(R: Mat3) -> Quat:
        """Shepperd's method: divide by the largest of the four components; w >= 0 is not enforced."""
        four = (
            1 + R.xx + R.yy + R.zz,
            1 + R.xx - R.yy - R.zz,
            1 - R.xx + R.yy - R.zz,
            1 - R.xx - R.yy + R.zz,
        )  # 4 w^2, 4 x^2, 4 y^2, 4 z^2
        wx, wy, wz = R.zy - R.yz, R.xz - R.zx, R.yx - R.xy
        xy, xz, yz = R.yx + R.xy, R.xz + R.zx, R.zy + R.yz
        rows = ((four[0], wx, wy, wz), (wx, four[1], xy, xz), (wy, xy, four[2], yz), (wz, xz, yz, four[3]))
        best, largest = rows[0], four[0]
        for row, square in zip(rows[1:], four[1:], strict=True):
            better = square > largest
            best = tuple(jnp.where(better, a, b) for a, b in zip(row, best, strict=True))
            largest = jnp.where(better, square, largest)
        s = 0.5 / jnp.sqrt(largest)
        return Quat(*(a * s for a in best))


def rodrigues(axis: Vec3, c: Scalar, s: Scalar) -> Mat3:
    """Rotation matrix about a unit axis by the angle of cosine c and sine s (Rodrigues)."""
    a, k = axis, axis * (1 - c)
    return Mat3(
        a.x * k.x + c, a.x * k.y - s * a.z, a.x * k.z + s * a.y,
        a.y * k.x + s * a.z, a.y * k.y + c, a.y * k.z - s * a.x,
        a.z * k.x - s * a.y, a.z * k.y + s * a.x, a.z * k.z + c,
    )  # fmt: skip


def about(axis: Vec3, angle: Scalar) -> Mat3:
    """Rotation matrix about a unit axis by an angle [rad]."""
    return rodrigues(axis, jnp.cos(angle), jnp.sin(angle))
