"""Transform, Motion, Force and inertias: SE(3), its algebra and their duals, as pytrees of components.

Notation of Kim (2012), sections 1.1-1.5: a twist is (w, v), a wrench (m, f) (here Force(n, f), as in
Featherstone), T = (R, p): {A} -> {B} is the pose of frame B in frame A. Equation numbers are Kim's.
"""

from __future__ import annotations

from typing import overload

from .rotation import Quat, cosc, cotc, sinc3
from .vec3 import Mat3, Scalar, Sym3, Vec3, pytree, skew
from .zero import ZERO, is_zero


@pytree
class Motion:
    """A twist: angular velocity w [rad/s] and velocity v of the point at the frame's origin [m/s]."""

    w: Vec3
    v: Vec3

    def __add__(self, o: Motion) -> Motion:
        return self if is_zero(o) else Motion(self.w + o.w, self.v + o.v)

    def __sub__(self, o: Motion) -> Motion:
        return self if is_zero(o) else Motion(self.w - o.w, self.v - o.v)

    def __mul__(self, s: Scalar) -> Motion:
        return Motion(self.w * s, self.v * s)

    __rmul__ = __mul__

    def dot(self, f: Force) -> Scalar:
        """Power of a wrench along this twist [W]."""
        return self.w.dot(f.n) + self.v.dot(f.f)

    def ad(self, o: Motion) -> Motion:
        """ad_self o (27): the rate of o when it is carried along by self."""
        return o if is_zero(o) else Motion(self.w.cross(o.w), self.v.cross(o.w) + self.w.cross(o.v))

    def ad_dual(self, f: Force) -> Force:
        """ad*_self f (29), the transpose of ad; a momentum L carried along changes at -ad*_V L (28)."""
        return Force(f.n.cross(self.w) + f.f.cross(self.v), f.f.cross(self.w))

    def instantiate_zeros(self) -> Motion:
        """Return the same twist with ZERO vectors written out."""
        none = Vec3(0.0, 0.0, 0.0)
        return Motion(none if is_zero(self.w) else self.w, none if is_zero(self.v) else self.v)

    def at(self, r: Vec3) -> Motion:
        """The same motion seen at a point r away from the origin, same axes."""
        return Motion(self.w, self.v + self.w.cross(r))


@pytree
class Force:
    """A wrench: moment n about the frame's origin [N m] and force f [N]; also impulses and momenta."""

    n: Vec3
    f: Vec3

    def __add__(self, o: Force) -> Force:
        return self if is_zero(o) else Force(self.n + o.n, self.f + o.f)

    def __sub__(self, o: Force) -> Force:
        return self if is_zero(o) else Force(self.n - o.n, self.f - o.f)

    def __mul__(self, s: Scalar) -> Force:
        return Force(self.n * s, self.f * s)

    __rmul__ = __mul__

    def from_point(self, r: Vec3) -> Force:
        """Move a wrench given at the point r to the origin, same axes."""
        return Force(self.n + r.cross(self.f), self.f)


@pytree
class RigidInertia:
    """Mass m [kg], first moment h = m c [kg m], inertia I about the frame's origin [kg m^2]: 10 numbers."""

    m: Scalar
    h: Vec3
    I: Sym3

    @staticmethod
    def about_com(m: Scalar, c: Vec3, Ic: Sym3) -> RigidInertia:
        """Inertia from a mass, its centre of mass and its inertia about that (22)."""
        h = c * m
        return RigidInertia(m, h, Ic + Sym3.scalar(h.dot(c)) - Sym3.outer(c) * m)

    def __matmul__(self, V: Motion) -> Force:
        """Momentum of the body (23)."""
        return Force(self.I @ V.w + self.h.cross(V.v), V.v * self.m - self.h.cross(V.w))

    def __add__(self, o: RigidInertia) -> RigidInertia:
        return self if is_zero(o) else RigidInertia(self.m + o.m, self.h + o.h, self.I + o.I)

    def from_point(self, r: Vec3) -> RigidInertia:
        """Move an inertia given at the point r to the origin, same axes."""
        g = self.h + r * self.m  # first moment about the new origin
        twice = Mat3.from_columns(*(self.h * s for s in (r.x, r.y, r.z)))
        cross = twice + twice.T
        I = self.I + Sym3.scalar(r.dot(self.h) + r.dot(g)) - Sym3.upper(cross) - Sym3.outer(r) * self.m
        return RigidInertia(self.m, g, I)

    def as_articulated(self) -> ArticulatedInertia:
        return ArticulatedInertia(self.I, skew(self.h), Sym3.scalar(self.m))


@pytree
class ArticulatedInertia:
    """[[A, H], [H^T, M]]: 21 numbers. A [kg m^2], H [kg m], M [kg]."""

    A: Sym3
    H: Mat3
    M: Sym3

    def __matmul__(self, V: Motion) -> Force:
        return Force(self.A @ V.w + self.H @ V.v, self.H.T @ V.w + self.M @ V.v)

    def __add__(self, o: ArticulatedInertia) -> ArticulatedInertia:
        return self if is_zero(o) else ArticulatedInertia(self.A + o.A, self.H + o.H, self.M + o.M)

    def __sub__(self, o: ArticulatedInertia) -> ArticulatedInertia:
        return ArticulatedInertia(self.A - o.A, self.H - o.H, self.M - o.M)

    @staticmethod
    def outer(U: Force, s: Scalar) -> ArticulatedInertia:
        """s U U^T."""
        n, f = U.n * s, U.f * s
        H = Mat3.from_rows(U.f * n.x, U.f * n.y, U.f * n.z)
        A = Sym3(n.x * U.n.x, n.y * U.n.y, n.z * U.n.z, n.x * U.n.y, n.x * U.n.z, n.y * U.n.z)
        M = Sym3(f.x * U.f.x, f.y * U.f.y, f.z * U.f.z, f.x * U.f.y, f.x * U.f.z, f.y * U.f.z)
        return ArticulatedInertia(A, H, M)

    def from_point(self, r: Vec3) -> ArticulatedInertia:
        """Move an inertia given at the point r to the origin, same axes: X^T I X with X V = V.at(r)."""
        cross = skew(r)
        H = self.H + cross @ self.M
        return ArticulatedInertia(Sym3.upper(self.A.full + cross @ self.H.T - H @ cross), H, self.M)


@pytree
class Transform:
    """T = (R, p): the pose of frame B in frame A; maps coordinates of points from B to A (3)."""

    R: Mat3
    p: Vec3

    @overload
    def __matmul__(self, o: Vec3) -> Vec3: ...
    @overload
    def __matmul__(self, o: Transform) -> Transform: ...
    def __matmul__(self, o: Transform | Vec3) -> Transform | Vec3:
        """Composition, or the action on a point."""
        if isinstance(o, Transform):
            return Transform(self.R @ o.R, self.p + self.R @ o.p)
        return self.p + self.R @ o

    def inverse(self) -> Transform:
        """The inverse transform (4)."""
        return Transform(self.R.T, -(self.R.T @ self.p))

    def Ad(self, V: Motion) -> Motion:
        """Ad_T V (7): a twist in B axes and origin, written in A."""
        w = self.R @ V.w
        return Motion(w, self.R @ V.v + self.p.cross(w))

    def Ad_dual(self, F: Force) -> Force:
        """Ad*_T F (8, 13): a wrench in A axes and origin, written in B."""
        return Force(self.R.T @ (F.n - self.p.cross(F.f)), self.R.T @ F.f)

    def inertia(self, I: RigidInertia) -> RigidInertia:
        """Ad*_T I Ad_T (21): an inertia in frame A, written in B."""
        at = I.from_point(-self.p)
        Rt = self.R.T
        return RigidInertia(at.m, Rt @ at.h, at.I.rotate(Rt))

    @staticmethod
    def exp(xi: Motion) -> Transform:
        """The screw motion by the twist xi in unit time."""
        w, v = xi.w, xi.v
        t2 = w.dot(w)
        p = v + w.cross(v) * cosc(t2) + w.cross(w.cross(v)) * sinc3(t2)
        return Transform(Quat.exp(w).matrix(), p)

    def log(self) -> Motion:
        """The twist whose exponential this is; rotation angle at most pi."""
        w = Quat.from_matrix(self.R).log()
        half = w.cross(self.p)
        return Motion(w, self.p - half * 0.5 + w.cross(half) * cotc(w.dot(w)))


IDENTITY = Mat3(1.0, ZERO, ZERO, ZERO, 1.0, ZERO, ZERO, ZERO, 1.0)
