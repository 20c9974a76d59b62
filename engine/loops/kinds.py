"""The table of loops, one row per kind: the scalar constraints of each kind between two frames.

The letters are Mikhaylyuk & Strashnov's (2013): frame i sits on link a, frame j on link b, at points P_i and P_j with
unit axes n_i0, n_i1, n_i2 and n_j0, n_j1, n_j2. Joints rotate about n_0 and slide along it (their axis2 is n_1); the
frames coincide when the joint is at zero. Equation numbers are theirs.

A row is G = 0 with dG/dt = f . (v_a(x_a) - v_b(x_b)) + m . (w_a - w_b): by the principle of virtual power a multiplier
lambda pushes a with the force lambda f at x_a and the moment lambda m, and b with the opposite at x_b. So a row's pull
is its Jacobian (4), and T = (m, f) spans what Featherstone calls the constraint force subspace (3.34).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp

from ..algebra.rotation import Quat
from ..algebra.safe import safe_div, safe_sqrt
from ..algebra.spatial import Transform
from ..algebra.vec3 import Scalar, Vec3
from ..algebra.zero import ZERO


class Row(NamedTuple):
    """error: G [m, rad].  f, m: force on a at x_a and moment on a of a unit multiplier, world axes; x_a, x_b [m]."""

    error: Scalar
    f: Vec3
    m: Vec3
    x_a: Vec3
    x_b: Vec3


Rows = tuple[Row, ...]
Ends = tuple[Transform, Transform]  # of frames i and j in the world


@dataclass(frozen=True)
class Kind:
    """A kind of loop.  rows(ends, size): the constraints: `shifts` rows hold points, then `turns` rows hold directions.
    coordinates(ends): the free coordinates, as rows whose `error` is the coordinate; springs and limits act on them.
    timed: whether the target of the row is the loop's function of time, not 0.
    off(ends): for kinds with directions that coincide, the rotation vector that frame j is off [rad]."""

    rows: Callable[[Ends, Scalar], Rows] = lambda ends, size: ()
    shifts: int = 0
    turns: int = 0
    coordinates: Callable[[Ends], Rows] = lambda ends: ()
    timed: bool = False
    off: Callable[[Ends], Vec3] | None = None

    def far_rows(self, ends: Ends, size: Scalar) -> Rows:
        """The constraints of frames that may be far apart: to first order `rows`, but those are also 0 for directions
        that are opposite, and Newton's method goes there from more than a right angle."""
        rows = self.rows(ends, size)
        if self.off is None:
            return rows
        phi, n = self.off(ends), ends[0].R.columns
        axes = (n[k].cross(n[m]) for k, m in _ALIKE[: self.turns])
        return rows[: self.shifts] + tuple(_turn(-phi.dot(axis), axis) for axis in axes)


_AXES = tuple(Vec3(*(float(k == n) for k in range(3))) for n in range(3))


def _point(ends: Ends) -> Rows:
    """P_i = P_j (11)."""
    a, b = ends[0].p, ends[1].p
    d = a - b
    return tuple(Row(x, axis, ZERO, a, b) for x, axis in zip(d.xyz, _AXES, strict=True))


def _across(ends: Ends, *axes: int) -> Rows:
    """P_j stays in planes through P_i, normal to these axes of frame i (16)."""
    (i, j), d = ends, ends[0].p - ends[1].p
    return tuple(Row(d.dot(n), n, ZERO, j.p, j.p) for n in (i.R.columns[k] for k in axes))


def _square(ends: Ends, *pairs: tuple[int, int]) -> Rows:
    """n_i . n_j = 0 for these axes (14, 15, 18)."""
    i, j = (x.R.columns for x in ends)
    return tuple(_turn(i[k].dot(j[n]), i[k].cross(j[n])) for k, n in pairs)


def _turn(error: Scalar, m: Vec3) -> Row:
    return Row(error, ZERO, m, ZERO, ZERO)


_PARALLEL, _ALIKE = ((1, 0), (2, 0)), ((1, 0), (2, 0), (1, 2))  # n_j0 along n_i0; no rotation about it either


def _tilt(ends: Ends) -> Vec3:
    """The shortest rotation that takes n_i0 to n_j0 [rad]; about n_i1 if they are opposite."""
    n, to = ends[0].R.columns, ends[1].R.columns[0]
    across, along = n[0].cross(to), n[0].dot(to)
    sine = safe_sqrt(across.dot(across))
    angle = jnp.arctan2(sine, along)
    opposite = (sine == 0) & (along < 0)
    return across * safe_div(angle, sine, otherwise=1) + n[1] * jnp.where(opposite, angle, 0)


def _rotation(ends: Ends) -> Vec3:
    """The rotation that takes frame i to frame j [rad]."""
    i, j = (Quat.from_matrix(x.R) for x in ends)
    return (j * i.conjugate()).log()


def _angle(ends: Ends, about: int = 0) -> Row:
    """Angle of frame j about an axis of frame i, in (-pi, pi] [rad]."""
    i, j = (x.R.columns for x in ends)
    x, y = (about + 1) % 3, (about + 2) % 3
    return _turn(jnp.arctan2(i[y].dot(j[x]), i[x].dot(j[x])), -i[about])


def _inclination(ends: Ends, cosine: Scalar) -> Row:
    """The cosine between the axes n_i0, n_j1 of a universal joint keeps its value: 0 if they are orthogonal (15)."""
    row = _square(ends, (0, 1))[0]
    return row._replace(error=row.error - cosine)


def _first_turn(ends: Ends) -> Row:
    """First angle of a universal joint with orthogonal axes: of n_j1 about n_i0 from n_i1 [rad]."""
    i, j = (x.R.columns for x in ends)
    return _turn(jnp.arctan2(i[2].dot(j[1]), i[1].dot(j[1])), -i[0])


def _second_turn(ends: Ends) -> Row:
    """Second angle of a universal joint: of frame j about n_j1 [rad]."""
    i, j = (x.R.columns for x in ends)
    return _turn(jnp.arctan2(i[0].dot(j[2]), i[0].dot(j[0])), -j[1])


def _shift(ends: Ends, along: int = 0) -> Row:
    """Coordinate of P_j from P_i along an axis of frame i [m]."""
    (i, j), n = ends, ends[0].R.columns[along]
    return Row((j.p - i.p).dot(n), -n, ZERO, j.p, j.p)


def _length(ends: Ends) -> Row:
    """The distance between P_i and P_j [m]; points that coincide have no direction between them."""
    a, b = ends[0].p, ends[1].p
    d = a - b
    square = d.dot(d)
    length = safe_sqrt(square)
    return Row(length, d * safe_div(1, length, otherwise=1), ZERO, a, b)


def _screw(ends: Ends, pitch: Scalar) -> Rows:
    """The shift equals pitch times the angle; the number of full turns is not known."""
    angle, shift = _angle(ends), _shift(ends)
    turn = 2 * jnp.pi * pitch
    off = shift.error - pitch * angle.error
    error = off - turn * jnp.round(off / jnp.where(turn == 0, 1.0, turn))
    return (Row(error, shift.f, angle.m * -pitch, shift.x_a, shift.x_b),)


def _ball(ends: Ends, radius: Scalar) -> Rows:
    """A ball about P_i rolls on the plane through P_j that has the normal n_j0."""
    (i, j), n = ends, ends[1].R.columns[0]
    return _rolling((i.p - j.p).dot(n) - radius, i.p - n * radius, ends)


def _disc(ends: Ends, radius: Scalar) -> Rows:
    """A thin disc about P_i with the axle n_i0 rolls on the plane through P_j that has the normal n_j0."""
    (i, j), n, axle = ends, ends[1].R.columns[0], ends[0].R.columns[0]
    lean = n.dot(axle)
    upright = 1 - lean * lean
    up = n - axle * lean
    s = safe_sqrt(upright, otherwise=1)
    return _rolling((i.p - j.p).dot(n) - radius * s, i.p - up * (radius / s), ends)


def _rolling(height: Scalar, touch: Vec3, ends: Ends) -> Rows:
    """The point of contact moves with the plane: contact is holonomic, no slip is not integrable."""
    n, x, y = ends[1].R.columns
    return (Row(height, n, ZERO, touch, touch), *(Row(0.0 * height, t, ZERO, touch, touch) for t in (x, y)))


KINDS: dict[str, Kind] = {
    "spherical": Kind(lambda e, s: _point(e), 3),
    "revolute": Kind(lambda e, s: _point(e) + _square(e, *_PARALLEL), 3, 2, lambda e: (_angle(e),), off=_tilt),
    "universal": Kind(lambda e, s: (*_point(e), _inclination(e, s)), 3, 1, lambda e: (_first_turn(e), _second_turn(e))),
    "prismatic": Kind(lambda e, s: _across(e, 1, 2) + _square(e, *_ALIKE), 2, 3, lambda e: (_shift(e),), off=_rotation),
    "cylindrical": Kind(
        lambda e, s: _across(e, 1, 2) + _square(e, *_PARALLEL), 2, 2, lambda e: (_angle(e), _shift(e)), off=_tilt
    ),
    "screw": Kind(
        lambda e, s: _screw(e, s) + _across(e, 1, 2) + _square(e, *_PARALLEL), 3, 2, lambda e: (_angle(e),), off=_tilt
    ),
    "planar": Kind(lambda e, s: _across(e, 0) + _square(e, *_PARALLEL), 1, 2, off=_tilt),
    "fixed": Kind(lambda e, s: _point(e) + _square(e, *_ALIKE), 3, 3, off=_rotation),
    "distance": Kind(lambda e, s: (_length(e),), 1, 0, lambda e: (_length(e),), timed=True),
    "spring": Kind(coordinates=lambda e: (_length(e),)),
    "driven_turn": Kind(lambda e, s: (_angle(e),), 0, 1, timed=True),
    "driven_shift": Kind(lambda e, s: (_shift(e),), 1, 0, timed=True),
    "ball": Kind(_ball, 3, 0),
    "disc": Kind(_disc, 3, 0),
}
RELATIONS = ("gear", "drive")  # of joint coordinates: q_i - size q_j and q_i keep to their course; one row


def row_count(kind: str) -> int:
    """Number of rows of a kind."""
    return 1 if kind in RELATIONS else KINDS[kind].shifts + KINDS[kind].turns
