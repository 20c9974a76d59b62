"""The joint table, one row per joint type: widths, placement and motion subspace.

A row's `move(R0, par, q, cos_sin)` places the child: R0 is the orientation of the joint frame in the
world, q the joint's coordinates, cos_sin the (cos, sin) of those that are angles. It returns R (orientation
of the child in the world), d (from the joint frame's origin to the child's, world axes) and S (one Motion
per degree of freedom, world axes, at the child's origin): the child moves with S qd relative to its parent.

Accelerations need the rate of S (Featherstone 3.40-3.41, Kim 41): a = a_parent + S qdd + V x (S qd) + c_J,
where c_J (`bias`) is the rest of the rate of S qd as seen from the child.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .algebra.rotation import Quat, cotc, rodrigues
from .algebra.spatial import IDENTITY, Motion
from .algebra.vec3 import Mat3, Scalar, Vec3, pytree
from .algebra.zero import ZERO

Coordinates = tuple[Scalar, ...]
Turns = tuple[tuple[Scalar, Scalar], ...]  # (cos, sin) of each angle


@pytree
class JointParams:
    """axis and axis2 in the joint frame, unit; pitch [m/rad]."""

    axis: Vec3
    axis2: Vec3
    pitch: Scalar


@dataclass(frozen=True)
class JointType:
    """One row of the table.

    nq, nv: widths in q and v.  angles: how many of the first coordinates are angles.
    move: see the module.  bias(S, qd): c_J.
    advance(q, v, h): coordinates after moving with constant v for the time h.
    rate(q, v): dq/dt.  normalize(q): q with unit quaternions.
    bracket(a, b): the Lie bracket of a and b, see `kinematics.bracket`.
    pull(q, f): joint forces that do the work of forces f along the displacement.
    displacement(q): the displacement from neutral as a vector of nv numbers (springs act on it).
    neutral: coordinates at which the child's frame is the joint frame.
    reads: fields of JointParams that `move` reads.
    """

    nq: int
    nv: int
    angles: int
    move: Callable[[Mat3, JointParams, Coordinates, Turns], tuple[Mat3, Vec3, tuple[Motion, ...]]]
    neutral: tuple[float, ...]
    bias: Callable[[tuple[Motion, ...], Coordinates], Motion] = lambda S, qd: ZERO
    advance: Callable[[Coordinates, Coordinates, Scalar], Coordinates] = lambda q, v, h: tuple(
        a + b * h for a, b in zip(q, v, strict=True)
    )
    rate: Callable[[Coordinates, Coordinates], Coordinates] = lambda q, v: v
    bracket: Callable[[Coordinates, Coordinates], Coordinates] = lambda a, b: tuple(x * 0 for x in a)
    normalize: Callable[[Coordinates], Coordinates] = lambda q: q
    displacement: Callable[[Coordinates], Coordinates] = lambda q: q
    pull: Callable[[Coordinates, Coordinates], Coordinates] = lambda q, f: f
    reads: tuple[str, ...] = ()
    units: tuple[Motion, ...] = ()

    def subspace(self, S: tuple[Motion, ...]) -> tuple[Motion, ...]:
        """The columns of S; those of a floating joint are constants and do not pass through fences."""
        return self.units or S


def _fixed(R0, par, q, cos_sin):
    return R0, ZERO, ()


def _revolute(R0, par, q, cos_sin):
    return R0 @ rodrigues(par.axis, *cos_sin[0]), ZERO, (Motion(R0 @ par.axis, ZERO),)


def _prismatic(R0, par, q, cos_sin):
    a = R0 @ par.axis
    return R0, a * q[0], (Motion(ZERO, a),)


def _screw(R0, par, q, cos_sin):
    a = R0 @ par.axis
    return R0 @ rodrigues(par.axis, *cos_sin[0]), a * (par.pitch * q[0]), (Motion(a, a * par.pitch),)


def _cylindrical(R0, par, q, cos_sin):
    a = R0 @ par.axis
    return R0 @ rodrigues(par.axis, *cos_sin[0]), a * q[1], (Motion(a, ZERO), Motion(ZERO, a))


def _universal(R0, par, q, cos_sin):
    R1 = R0 @ rodrigues(par.axis, *cos_sin[0])
    return R1 @ rodrigues(par.axis2, *cos_sin[1]), ZERO, (Motion(R0 @ par.axis, ZERO), Motion(R1 @ par.axis2, ZERO))


def _universal_bias(S, qd):
    return Motion(S[0].w.cross(S[1].w) * (qd[0] * qd[1]), ZERO)


def _planar(R0, par, q, cos_sin):
    # the plane's axes stay with the parent, the child turns about the normal at its own origin
    n, x = R0 @ par.axis, R0 @ par.axis2
    y = n.cross(x)
    return (
        R0 @ rodrigues(par.axis, *cos_sin[0]),
        x * q[1] + y * q[2],
        (Motion(n, ZERO), Motion(ZERO, x), Motion(ZERO, y)),
    )


def _planar_bias(S, qd):
    return Motion(ZERO, (S[1].v * qd[1] + S[2].v * qd[2]).cross(S[0].w) * qd[0])


def _spherical(R0, par, q, cos_sin):
    R = R0 @ Quat(*q).matrix()
    return R, ZERO, tuple(Motion(column, ZERO) for column in R.columns)


def _spherical_advance(q, v, h):
    return _normalize(_components(Quat(*q) * Quat.exp(Vec3(*v) * h)))


def _spherical_bracket(a, b):
    return Vec3(*a).cross(Vec3(*b)).xyz


def _spherical_rate(q, v):
    return _components(Quat(*q) * Quat.of(ZERO, Vec3(*v) * 0.5))


def _floating(R0, par, q, cos_sin):
    # q and v are in world axes whatever the joint frame is; the parent is the world
    return Quat(*q[3:]).matrix(), Vec3(*q[:3]), ()


_AXES = IDENTITY.rows
_UNITS = tuple(Motion(e, ZERO) for e in _AXES) + tuple(Motion(ZERO, e) for e in _AXES)


def _floating_bias(S, qd):
    return Motion(ZERO, Vec3(*qd[3:]).cross(Vec3(*qd[:3])))


def _floating_advance(q, v, h):
    p = Vec3(*q[:3]) + Vec3(*v[3:]) * h
    return (p.x, p.y, p.z, *_normalize(_components(Quat.exp(Vec3(*v[:3]) * h) * Quat(*q[3:]))))


def _floating_bracket(a, b):
    # rotations about the axes of the world commute the other way round than those about the child's
    still = tuple(x * 0 for x in a[3:])
    return (*Vec3(*b[:3]).cross(Vec3(*a[:3])).xyz, *still)


def _floating_rate(q, v):
    return (*v[3:], *_components(Quat.of(ZERO, Vec3(*v[:3]) * 0.5) * Quat(*q[3:])))


def _components(q: Quat) -> Coordinates:
    return (q.w, q.x, q.y, q.z)


def _normalize(q: Coordinates) -> Coordinates:
    return _components(Quat(*q).to_unit())


def _pull(phi: Coordinates, f: Coordinates, side: float) -> Coordinates:
    # d phi/dt = J^-1 w with J the Jacobian of the exponential, right (side -1) for w in child axes, left (+1) for
    # w in world axes; so the torque is J^-T f
    axis, force = Vec3(*phi), Vec3(*f)
    half = axis.cross(force)
    n = force + half * (side / 2) + axis.cross(half) * cotc(axis.dot(axis))
    return (n.x, n.y, n.z)


def _log(q: Coordinates) -> Coordinates:
    phi = Quat(*q).log()
    return (phi.x, phi.y, phi.z)


JOINTS: dict[str, JointType] = {
    "fixed": JointType(0, 0, 0, _fixed, ()),
    "revolute": JointType(1, 1, 1, _revolute, (0.0,), reads=("axis",)),
    "prismatic": JointType(1, 1, 0, _prismatic, (0.0,), reads=("axis",)),
    "screw": JointType(1, 1, 1, _screw, (0.0,), reads=("axis", "pitch")),
    "cylindrical": JointType(2, 2, 1, _cylindrical, (0.0, 0.0), reads=("axis",)),
    "universal": JointType(2, 2, 2, _universal, (0.0, 0.0), bias=_universal_bias, reads=("axis", "axis2")),
    "planar": JointType(3, 3, 1, _planar, (0.0, 0.0, 0.0), bias=_planar_bias, reads=("axis", "axis2")),
    "spherical": JointType(
        4, 3, 0, _spherical, (1.0, 0.0, 0.0, 0.0), advance=_spherical_advance, rate=_spherical_rate,
        bracket=_spherical_bracket, normalize=_normalize, displacement=_log, pull=lambda q, f: _pull(_log(q), f, -1.0),
    ),
    "floating": JointType(
        7, 6, 0, _floating, (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0), bias=_floating_bias, advance=_floating_advance,
        rate=_floating_rate, bracket=_floating_bracket, normalize=lambda q: (*q[:3], *_normalize(q[3:])),
        displacement=lambda q: (*_log(q[3:]), *q[:3]), pull=lambda q, f: (*_pull(_log(q[3:]), f[:3], 1.0), *f[3:]),
        units=_UNITS,
    ),
}  # fmt: skip
