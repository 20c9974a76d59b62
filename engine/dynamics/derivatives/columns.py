"""The effect of each degree of freedom on the links beyond it: the columns of the Jacobians of the dynamics.

Kim (2012), tables 5-7, seeds one scalar p at a time. If all coordinates are seeded at once and what he lists as zero is
left out, the recursions close (Carpentier & Mansard 2018; Singh, Russell & Wensing 2022, for joints of several degrees
of freedom). In spatial coordinates of the ground, all of a tree at the origin of its root, the displacement of column s
rotates everything beyond by s; its other effect on velocity and acceleration is the same for all links i beyond:

    dV_i = s x V_i + s'            s'  = W x s
    dA_i = s x A_i + s' x V_i + s''   s'' = C x s + W x s'
    dF_i = s x* F_i + I_i s'' + B_i s'     summed over the carried links: F, I, B of the composite

W and C are the velocity and the acceleration (-g included) of the parts that the displacement leaves in place: the
parent and some columns of the same joint (`BEFORE`). A velocity gives dF_i = I_i y + B_i s, with y = s' + ds/dt,
instead. B x = dI/dt x + x x* L, with L the momentum, depends on the angular part of x only. With a column j that is
beyond k or k itself, I, B and F of the composite that j carries, and tau = s . F,

    dtau_j/dq_k = (I s_j) . s''_k + (B^T s_j) . s'_k        dtau_j/dv_k = (I s_j) . y_k + (B^T s_j) . s_k
    dtau_k/dq_j = s_k . (I s''_j + B s'_j + s_j x* F)       dtau_k/dv_j = s_k . (I y_j + B s_j)

the cross term applies also between columns of one joint if j leaves k in place, and M_jk = (I s_j) . s_k.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from ...algebra.fence import fence
from ...algebra.spatial import Force, Motion, RigidInertia
from ...algebra.vec3 import Mat3, Scalar, Sym3, Vec3, pytree
from ...forest import Forest
from ...joints import JOINTS
from ...model import Model
from ..bodies import gravity
from ..kinematics import AT_REST, LinkPoses

# columns of the joint itself that the displacement along each column leaves in place; () where there are none.
# A spherical joint's columns are the child's axes, which all rotate; a floating joint's are the world's, which do not.
BEFORE: dict[str, tuple[tuple[int, ...], ...]] = {
    "universal": ((), (0,)),
    "planar": ((1, 2), (), ()),
    "floating": (tuple(range(6)),) * 3 + ((3, 4, 5),) * 3,
}


def before(joint: str) -> tuple[tuple[int, ...], ...]:
    """Columns of the joint that a displacement of each column leaves in place; see BEFORE."""
    return BEFORE.get(joint, ((),) * JOINTS[joint].nv)


class Column(NamedTuple):
    """One degree of freedom, seen from its root's origin: s, s', s'' and y."""

    s: Motion
    s1: Motion
    s2: Motion
    y: Motion


class ColumnForces(NamedTuple):
    """A column times its composite: I s, the angular part of B^T s, and dF by its displacement and by its velocity."""

    I: Force
    B: Vec3
    q: Force
    v: Force


@pytree
class Composite:
    """A link with everything it carries, or alone: inertia, the rate of its rotational part, momentum L, wrench F."""

    inertia: RigidInertia
    rate: Sym3
    L: Force
    F: Force

    def __add__(self, o: Composite) -> Composite:
        return Composite(self.inertia + o.inertia, self.rate + o.rate, self.L + o.L, self.F + o.F)

    def coriolis(self, x: Motion) -> Force:
        """B x."""
        f = x.w.cross(self.L.f)
        return Force(self.rate @ x.w + x.w.cross(self.L.n), f + f)

    def coriolis_dual(self, x: Motion) -> Vec3:
        """The angular part of B^T x; there is no other."""
        f = self.L.f.cross(x.v)
        return self.rate @ x.w + self.L.n.cross(x.w) + f + f


@functools.cache
def _outward(joint: str):
    row, left = JOINTS[joint], before(joint)

    @fence
    def outward(V_parent: Motion, A_parent: Motion, S, offset, qd, qdd):
        """The columns, and velocity and acceleration of the link, all at the root's origin."""
        S, n = [s.at(-offset) for s in row.subspace(S)], range(row.nv)
        along = [s * rate for s, rate in zip(S, qd, strict=True)]
        # ds/dt = (velocity of the carrier of s) x s
        rates = [sum((along[l] for l in n if k not in left[l]), start=V_parent).ad(S[k]) for k in n]
        change = [S[k] * qdd[k] + rates[k] * qd[k] for k in n]
        columns = []
        for k in n:
            W = sum((along[l] for l in left[k]), start=V_parent)
            C = sum((change[l] for l in left[k]), start=A_parent)
            s1 = W.ad(S[k])
            columns.append(Column(*(x.instantiate_zeros() for x in (S[k], s1, C.ad(S[k]) + W.ad(s1), s1 + rates[k]))))
        V, A = sum(along, start=V_parent), sum(change, start=A_parent)
        return tuple(columns), V.instantiate_zeros(), A.instantiate_zeros()

    return outward


@fence
def _alone(body, offset, V, A):
    """One link as a composite."""
    I = body.from_point(offset)
    L = I @ V
    F = I @ A + V.ad_dual(L) * -1
    # dI/dt = V x* I - I V x: w x I - I w x = X + X^T, and - (v h^T + h v^T) + 2 v.h
    x, y, z = (V.w.cross(column) for column in I.I.full.columns)
    turning = Mat3.from_columns(x, y, z)
    velocities = Mat3.from_rows(*(V.v * s for s in I.h.xyz))
    half = turning - velocities
    rate = Sym3.upper(half + half.T) + Sym3.scalar(2 * V.v.dot(I.h))
    return Composite(I, rate, L, F)


@fence
def _add_children(child, others):
    return child + others


@functools.cache
def _inward(joint: str):
    @fence
    def inward(composite, columns, armature, qdd):
        responses, tau = [], []
        for (s, s1, s2, y), inertia, rate in zip(columns, armature, qdd, strict=True):
            I = composite.inertia
            rotated = s.ad_dual(composite.F) * -1
            responses.append(
                ColumnForces(
                    I @ s,
                    composite.coriolis_dual(s),
                    I @ s2 + composite.coriolis(s1) + rotated,
                    I @ y + composite.coriolis(s),
                )
            )
            tau.append(s.dot(composite.F) + inertia * rate)
        return tuple(responses), tuple(tau)

    return inward


class Columns(NamedTuple):
    """Per group: columns, responses, and forces along the degrees of freedom."""

    columns: list[tuple[Column, ...]]
    responses: list[tuple[ColumnForces, ...]]
    tau: list[tuple[Scalar, ...]]


def columns(
    forest: Forest,
    model: Model,
    poses: list[LinkPoses],
    bodies: list[RigidInertia],
    qd: list[tuple[Scalar, ...]],
    qdd: list[tuple[Scalar, ...]],
) -> Columns:
    """Compute the columns: velocities outwards, then wrenches inwards.  qd, qdd: one entry per group."""
    roots: list[Vec3] = []
    velocities: list[tuple[Motion, Motion]] = []
    made: list[tuple[Column, ...]] = []
    composites: list[Composite] = []
    for g, group in enumerate(forest.groups):
        p = poses[g].pose.p
        roots.append(forest.from_parents(g, roots, p))
        V_parent, A_parent = forest.from_parents(g, velocities, (AT_REST, gravity(model)))
        offset = p - roots[g]
        own, V, A = _outward(group.joint)(V_parent, A_parent, poses[g].S, offset, qd[g], qdd[g])
        velocities.append((V, A))
        made.append(own)
        composites.append(_alone(bodies[g], offset, V, A))
    responses: list[tuple[ColumnForces, ...]] = [()] * len(made)
    tau: list[tuple[Scalar, ...]] = [()] * len(made)
    for g in reversed(range(len(made))):
        group = forest.groups[g]
        armature = forest.per_dof(model.armature, group)
        responses[g], tau[g] = _inward(group.joint)(composites[g], made[g], armature, qdd[g])
        h = forest.matching_group(g)
        if h is not None:
            composites[h] = _add_children(composites[g], composites[h])
        else:
            forest.to_parents(g, composites[g], composites)
    return Columns(made, responses, tau)
