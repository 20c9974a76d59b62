"""Bounds of the speeds of a tree's links for a given energy, in any pose of the tree.

Let e = sqrt(2T) with T the kinetic energy of the tree. The bounds here are speeds per e: any point of link i moves
at most `speed_at` times e, in any configuration [derived here; references.md, Bounds on speed has the first of them].

(own) T is at least the link's own energy, (m v_c^2 + w.I w)/2. So |v_c + w x r| <= e sqrt(1/m + r^2/I_min): the
largest value of a linear function on an ellipsoid. Joints take motions away, which only lowers the maximum; this
is all that "K_art <= K_free" says. It gives no bound for a link with no mass, or a point mass at some distance.
(hung) A link hangs on its parent: the joint's origin moves with both of them (except on joints that slide), so
|v_o| <= the parent's bound H there, and |w| <= W_parent + |qd| for one turning degree of freedom qd along s. With
v_c = v_o + w_p x c + qd s x c, and E-norm |(sqrt(I) w, sqrt(m) v_c, sqrt(armature) qd)| <= e,
  |qd| sqrt(s.I s + m |s x c|^2 + armature) <= e + e sqrt(I_max W_p^2 + m (H + W_p |c|)^2).
A link on the world has W_p = H = 0: the bound is exact for a pendulum, point mass or not.
Links take the smaller of the two bounds, from the roots outwards.

Lightly loaded trees have more: if the whole tree falls freely, velocities are taken relative to the tree's centre
of mass (mass M), and T is the energy of that motion. It is orthogonal to the common motion in the mass metric, so
the maximum splits, 1/m + r^2/I_min = 1/M + (1/m - 1/M + r^2/I_min), and the bracket is left for the relative motion.
If nothing is known (a massless link between sliding joints, a gimbal's ring) the bound is inf.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from ...engine.algebra.fence import fence
from ...engine.algebra.safe import safe_div, safe_sqrt
from ...engine.algebra.vec3 import Sym3, Vec3
from ...engine.forest import Forest
from ...engine.joints import JOINTS
from ...engine.model import Model
from ..bounds import norm

Number = Array | np.ndarray | float
TURNING = frozenset({"revolute", "screw", "cylindrical", "planar"})  # one rotation, about a known axis
PINNED = frozenset({"fixed", "revolute", "universal", "spherical"})  # the child's origin is fixed in the parent


class TreeSpeeds(NamedTuple):
    """Per sqrt(2T) of the link's tree, components (..., nl); see the module.

    mobility: 1/m, or 1/m - 1/M [1/kg].  turning: 1/I_min [1/(kg m^2)].
    origin: speed of the link's origin [1/sqrt(kg)].  spin: angular speed [1/(m sqrt(kg))].
    rates: (..., nv) of each degree of freedom, a length or an angle per sqrt(J).
    """

    mobility: Array
    turning: Array
    origin: Array
    spin: Array
    rates: Array


class _Link(NamedTuple):
    """One group's links."""

    com: Vec3
    mobility: Number
    turning: Number
    origin: Number
    spin: Number

    def speed_at(self, point: Vec3, farther: Number = 0.0) -> Array:
        """Largest speed of a point of the link's frame, or of any no more than `farther` from it."""
        from_com, from_origin = norm(point - self.com) + farther, norm(point) + farther
        return speed_at(self.mobility, self.turning, self.origin, self.spin, from_com, from_origin)


_WORLD = _Link(Vec3(0.0, 0.0, 0.0), 0.0, 0.0, 0.0, 0.0)


def tree_speeds(forest: Forest, model: Model, in_fall: Array) -> TreeSpeeds:
    """Bound the speeds.  in_fall: (..., nl) 1/M of the tree's mass if it falls freely and motion is relative to that,
    else 0."""
    links: list[_Link] = []
    rates: list[tuple[Array, ...]] = []
    for g, group in enumerate(forest.groups):
        parent = forest.from_parents(g, links, _WORLD)
        numbers = tuple(forest.parameter(model, name, group) for name in ("mass", "com", "inertia"))
        joint = tuple(forest.parameter(model, name, group) for name in ("joint_position", "axis", "axis2"))
        dofs = tuple(forest.per_dof(getattr(model, name), group) for name in ("armature", "lower", "upper"))
        link, rate = _hang(group.joint)(parent, numbers, forest.rows(in_fall, 1, group.links), joint, dofs)
        links.append(link)
        rates.append(rate)

    def concatenate(pick) -> Array:
        return forest.join_links([pick(link) for link in links])

    return TreeSpeeds(
        mobility=concatenate(lambda link: link.mobility),
        turning=concatenate(lambda link: link.turning),
        origin=concatenate(lambda link: link.origin),
        spin=concatenate(lambda link: link.spin),
        rates=forest.join_dofs(rates),
    )


def speed_at(
    mobility: Number, turning: Number, origin: Number, spin: Number, from_com: Number, from_origin: Number
) -> Array:
    """Largest speed of points no farther than these lengths [m] from the link's centre of mass and from its origin."""
    own = least(safe_sqrt(mobility + times(turning, from_com**2)), safe_sqrt(mobility) + times(spin, from_com))
    return least(own, origin + times(spin, from_origin))


@functools.cache
def _hang(joint: str):
    nv = JOINTS[joint].nv

    @fence
    def hang(parent: _Link, numbers, in_fall, joint_numbers, dofs):
        m, c, I = numbers[0], Vec3.of(numbers[1]), Sym3.of(numbers[2])
        position, axis, axis2 = (Vec3.of(x) for x in joint_numbers)
        armature, lower, upper = dofs
        low, high = principal_extremes(I)
        mobility = jnp.maximum(inverse(m) - in_fall, 0.0)
        turning, arm = inverse(low), norm(c)
        pin = parent.speed_at(position)

        # angular speed: the link's own bound, or its parent's and what the joint adds
        if joint in TURNING:
            drag = times(high, parent.spin**2)
            inertia = axis.dot(I @ axis) + armature[0]
            if joint == "revolute":
                lever = axis.cross(c)
                drag = drag + times(m, (pin + times(parent.spin, arm)) ** 2)
                inertia = inertia + m * lever.dot(lever)
            joint_rate = (1 + safe_sqrt(drag)) * safe_sqrt(inverse(inertia))
        elif joint in ("fixed", "prismatic"):
            joint_rate = 0.0
        elif joint == "floating":
            joint_rate = jnp.inf
        else:
            joint_rate = safe_sqrt(sum(inverse(a) for a in armature))
        spin = least(safe_sqrt(turning), parent.spin + joint_rate)

        # speed of the origin: the link's own bound, its centre's and its rotation, or that of the parent's point there
        hung = pin if joint in PINNED else jnp.inf
        origin = speed_at(mobility, turning, hung, spin, arm, 0.0)

        # rates of the joint: relative motion of the two links, or the rotor's own energy
        between = least(spin + parent.spin, joint_rate)
        if joint == "floating":
            rates = (spin,) * 3 + (origin,) * 3
        elif joint == "prismatic" or joint in TURNING:
            sliding = [] if joint in ("revolute", "screw") else range(0 if joint == "prismatic" else 1, nv)
            shift = safe_sqrt(sum((jnp.maximum(jnp.abs(lower[k]), jnp.abs(upper[k])) ** 2 for k in sliding), start=0.0))
            slide = origin + parent.speed_at(position, shift)
            rates = tuple(slide if k in sliding else between for k in range(nv))
        elif joint == "universal":  # |s1 x s2|, constant: sine of the angle of the two axes
            apart = axis.cross(axis2)
            rates = (between * safe_sqrt(inverse(apart.dot(apart))),) * 2
        else:
            rates = (between,) * nv
        rates = tuple(least(rate, safe_sqrt(inverse(a))) for rate, a in zip(rates, armature, strict=True))
        return _Link(c, mobility, turning, origin, spin), rates

    return hang


def principal_extremes(I: Sym3) -> tuple[Array, Array]:
    """Bounds below the smallest and above the largest eigenvalue, within the square root of the rounding error.

    Smith (1961), "Eigenvalues of a symmetric 3x3 matrix", Comm. ACM 4: q + 2 p cos(phi + 2 pi k/3). Where two
    eigenvalues meet, phi has an error of the order of that root, so the bounds are widened by it.
    """
    q = (I.xx + I.yy + I.zz) / 3
    D = I + Sym3.scalar(-q)
    square = (D.xx**2 + D.yy**2 + D.zz**2 + 2 * (D.xy**2 + D.xz**2 + D.yz**2)) / 6
    p = safe_sqrt(square)
    x, y, z = (D * inverse(p, 0.0)).full.rows
    eps = jnp.finfo(jnp.result_type(q)).eps
    phi = jnp.arccos(jnp.clip(x.dot(y.cross(z)) / 2, -1 + eps, 1 - eps)) / 3  # clipped: arccos has no slope at 1
    slack = 2 * p * eps**0.5 + 4 * eps * q
    low = q + 2 * p * jnp.cos(phi + 2 * jnp.pi / 3) - slack
    return jnp.maximum(low, 0.0), q + 2 * p * jnp.cos(phi) + slack


def least(a: Number, b: Number) -> Array:
    """Return the smaller one, by selection: derivatives of an infinite bound that is not taken stay out."""
    return jnp.where(a < b, a, b)


def times(bound: Number, length: Number) -> Array:
    """bound * length with inf * 0 = 0."""
    none = (length == 0) | (bound == 0)
    return jnp.where(none, 0.0, jnp.where(none, 0.0, bound) * jnp.where(none, 0.0, length))


def inverse(x: Number, at_zero: float = jnp.inf) -> Array:
    """1/x for x > 0, else `at_zero`."""
    return safe_div(1, x, otherwise=at_zero)
