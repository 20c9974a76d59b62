"""Articulated-body algorithm: accelerations of a forest from its forces, O(n).

Kim (2012), table 3 (Featherstone 2008, table 7.1), with two departures:
- a joint of several degrees of freedom is eliminated one column at a time, as if its columns were joints
  of their own at the same point; the block D = S^T I S is never formed. A floating root is one 6x6 block;
- inertias and bias forces make separate passes, so that one factorisation serves many right-hand sides
  (impulse responses, K matrices).

    IA, pA    articulated inertia (I^) and bias force (B^)
    U, D      I^ s and s . U + armature, for one column s of S
    u         tau - s . pA
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.custom_derivatives import SymbolicZero

from ..algebra.fence import fence
from ..algebra.spatial import ArticulatedInertia, Force, Motion, RigidInertia
from ..algebra.vec3 import Mat3, Scalar, Sym3, Vec3
from ..algebra.zero import ZERO, is_zero
from ..forest import Forest
from ..joints import JOINTS
from ..model import Model
from ..native.surface import lanewise
from ..shaped import Float
from .bodies import bias_forces, gravity, hand_inwards, inertias
from .kinematics import AT_REST, LinkPoses, LinkVelocities, propagate_poses, propagate_velocities
from .rnea import rnea_change

Columns = tuple[Scalar, ...]


class Pivot(NamedTuple):
    """One eliminated column: U [kg m^2 rad/rad ...], 1/D."""

    U: Force
    Dinv: Scalar


class Root(NamedTuple):
    """The inverse of a floating root's inertia: M^-1, G = H M^-1 and (A - G H^T)^-1."""

    Minv: Sym3
    G: Mat3
    Sinv: Sym3


class Factor(NamedTuple):
    """A group's articulated inertia and its pivots, one per column, or a Root."""

    IA: ArticulatedInertia
    pivots: Any


# -- inertia: from the tips inwards ------------------------------------------------------------


@fence
def _pivot(IA: ArticulatedInertia, s: Motion, armature: Scalar) -> Pivot:
    U = IA @ s
    return Pivot(U, 1 / (s.dot(U) + armature))


@fence
def _eliminate(IA: ArticulatedInertia, pivot: Pivot) -> ArticulatedInertia:
    return IA - ArticulatedInertia.outer(pivot.U, pivot.Dinv)


@fence
def _root_force(IA: ArticulatedInertia, armature: Columns) -> tuple[ArticulatedInertia, Sym3, Mat3]:
    a = armature
    A = IA.A + Sym3(a[0], a[1], a[2], ZERO, ZERO, ZERO)
    M = IA.M + Sym3(a[3], a[4], a[5], ZERO, ZERO, ZERO)
    Minv = M.inverse()
    return ArticulatedInertia(A, IA.H, M), Minv, IA.H @ Minv


@fence
def _root_moment(IA: ArticulatedInertia, G: Mat3) -> Sym3:
    return IA.A - Sym3.upper(G @ IA.H.T)


_inverse = fence(Sym3.inverse)


def factorize(
    forest: Forest, model: Model, poses: list[LinkPoses], bodies: list[RigidInertia], given: Array | None = None,
    *, by_columns: bool = False,
) -> list[Factor]:  # fmt: skip
    """Return articulated inertias and pivots of all groups (Kim 49); they depend on q only.

    given: degrees of freedom with a prescribed acceleration; they keep their inertia (hybrid dynamics).
    by_columns: eliminate the six columns of floating links one by one, as with `given`.
    """
    IA = [body.as_articulated() for body in bodies]
    factors: list[Any] = [None] * len(IA)
    for g in reversed(range(len(IA))):
        group, (_, r, S) = forest.groups[g], poses[g]
        row = JOINTS[group.joint]
        armature = forest.per_dof(model.armature, group)
        if group.joint == "floating" and given is None and not by_columns:
            I0, Minv, G = _root_force(IA[g], armature)
            factors[g] = Factor(IA[g], Root(Minv, G, _inverse(_root_moment(I0, G))))
            continue
        fixed = forest.per_dof(given, group) if given is not None else (None,) * row.nv
        pivots: list[Any] = [None] * row.nv
        rest = IA[g]
        for k in reversed(range(row.nv)):
            pivots[k] = _release(_pivot(rest, row.subspace(S)[k], armature[k]), fixed[k])
            rest = _eliminate(rest, pivots[k])
        factors[g] = Factor(IA[g], tuple(pivots))
        hand_inwards(forest, g, rest, r, IA)
    return factors


def _release(pivot: Pivot, given: Array | None) -> Pivot:
    """Return the pivot with 1/D = 0 where the column is prescribed: it is not eliminated."""
    return pivot if given is None else Pivot(pivot.U, pivot.Dinv * (1 - given))


# -- forces inwards, accelerations outwards ----------------------------------------------------


@functools.cache
def _gather(joint: str):
    row = JOINTS[joint]

    @fence
    def gather(IA, pivots, S, p, c, tau):
        """u of each column and the bias force left for the parent (Kim 50)."""
        S, u = row.subspace(S), [ZERO] * row.nv
        p = p + IA @ c
        for k in reversed(range(row.nv)):
            u[k] = tau[k] - S[k].dot(p)
            p = p + pivots[k].U * (u[k] * pivots[k].Dinv)
        return tuple(u), p

    return gather


@functools.cache
def _accelerate(joint: str):
    row = JOINTS[joint]

    @fence
    def accelerate(pivots, S, u, a_parent, r, c):
        """qdd of each column and the acceleration of the link (Kim 45, 41)."""
        S, a, qdd = row.subspace(S), a_parent.at(r), []
        for k in range(row.nv):
            qdd.append((u[k] - a.dot(pivots[k].U)) * pivots[k].Dinv)
            a = a + S[k] * qdd[k]
        return tuple(qdd), (a + c).instantiate_zeros()

    return accelerate


@fence
def _release_root(root: Root, IA, p, c, tau, a_world) -> tuple[Columns, Motion]:
    p = p + IA @ (c + a_world)
    n, f = Vec3(*tau[:3]) - p.n, Vec3(*tau[3:]) - p.f
    w = root.Sinv @ (n - root.G @ f)
    v = root.Minv @ f - root.G.T @ w
    return (w.x, w.y, w.z, v.x, v.y, v.z), Motion(w, v) + a_world + c


def solve(
    forest: Forest,
    poses: list[LinkPoses],
    factors: list[Factor],
    biases: list[Force],
    tau: list[Columns],
    c: list[Motion],
    a_world: Motion,
) -> list[Columns]:
    """Accelerations of all degrees of freedom from bias forces and joint forces tau, one entry per group.

    With velocities instead of accelerations and impulses instead of forces (c = 0, a_world = 0) the
    same two passes give the response to impulses.
    """
    p = list(biases)
    u: list[Any] = [None] * len(p)
    for g in reversed(range(len(p))):
        group, (_, r, S), (IA, pivots) = forest.groups[g], poses[g], factors[g]
        if isinstance(pivots, Root):
            continue
        u[g], rest = _gather(group.joint)(IA, pivots, S, p[g], c[g], tau[g])
        hand_inwards(forest, g, rest, r, p)
    a: list[Motion] = []
    qdd: list[Columns] = []
    for g, group in enumerate(forest.groups):
        (_, r, S), (IA, pivots) = poses[g], factors[g]
        if isinstance(pivots, Root):
            rates, ag = _release_root(pivots, IA, p[g], c[g], tau[g], a_world)
        else:
            rates, ag = _accelerate(group.joint)(pivots, S, u[g], forest.from_parents(g, a, a_world), r, c[g])
        a.append(ag)
        qdd.append(rates)
    return qdd


@lanewise
def aba(
    model: Model, q: Float[Array, "*#batch nq"], v: Float[Array, "*#batch nv"], tau: Float[Array, "*#batch nv"]
) -> Float[Array, "*#batch nv"]:
    """Joint accelerations from joint forces tau: M qdd + b = tau.

    Only rigid-body inertia, armature and gravity act besides tau: add
    `passive_forces(model, q, v)` for springs and damping, `motor_forces` for motors. Only a run computes dry friction.
    """
    return _aba(model, q, v, tau)


@jax.custom_jvp
def _aba(model: Model, q: Array, v: Array, tau: Array) -> Array:
    forest = Forest.of(model, q=q, v=v, tau=tau)
    return _forward_dynamics(forest, model, q, v, tau)[0]


def _forward_dynamics(
    forest: Forest, model: Model, q: Array, v: Array, tau: Array
) -> tuple[Array, list[LinkPoses], list[Factor]]:
    poses = propagate_poses(forest, model, q)
    velocities: list[LinkVelocities] = propagate_velocities(forest, poses, v)
    bodies = inertias(forest, model, poses)
    factors = factorize(forest, model, poses, bodies)
    forces = [forest.per_dof(tau, group) for group in forest.groups]
    qdd = solve(
        forest, poses, factors, bias_forces(bodies, velocities), forces, [x.c for x in velocities], gravity(model)
    )
    return forest.join_dofs(qdd), poses, factors


@functools.partial(_aba.defjvp, symbolic_zeros=True)
def _aba_jvp(primals: tuple[Model, Array, Array, Array], tangents: tuple) -> tuple[Array, Array]:
    """M dqdd = dtau - (change of inverse dynamics at fixed qdd): one more solve; no factor is differentiated."""
    model, q, v, tau = primals
    forest = Forest.of(model, q=q, v=v, tau=tau)
    qdd, poses, factors = _forward_dynamics(forest, *primals)
    change = rnea_change(model, q, v, qdd, tangents[:3])
    force = ZERO if isinstance(tangents[3], SymbolicZero) else tangents[3]
    if change is not None:
        force = force - change
    if is_zero(force):
        return qdd, jnp.zeros_like(qdd)
    per_group = [forest.per_dof(force, group) for group in forest.groups]
    still, none = [AT_REST] * len(poses), [Force(ZERO, ZERO)] * len(poses)
    return qdd, forest.join_dofs(solve(forest, poses, factors, none, per_group, still, AT_REST))
