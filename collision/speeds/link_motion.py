"""Bounds of the future motion of every link, as long as nothing touches, from parabolas and energies.

A tree here is a moving link with all links that hang on it. Links welded to the world do not move, and links that hang
on them are separate trees. Bounds are per tree, so that one fast body does not affect the others.

A tree falls freely if no joint force acts on its root, and the root floats, or moves in a plane along which gravity
acts. Its centre of mass moves on a parabola, and the motion relative to that feels no gravity: with e = sqrt(2E), E the
kinetic energy of the relative motion and the energy of its springs, e changes only through motors. For every other tree
e is from all its kinetic energy. Then, with M the tree's mass (Cauchy-Schwarz; T >= M v_com^2/2, so
v_com <= e/sqrt(M)):

    dE/dt = M g.v_com + sum F_j qd_j - losses <= e (|g| sqrt(M) + sum |F_j| mu_j),  so  e(t) <= e(0) + growth t

where |qd_j| <= mu_j e (`tree_speeds`) and the first term is missing in free fall. The world does no work on a fixed
base. Damping, loss, limits and dissipative impacts within the tree take energy away. Position motors are springs of
energy up to what their effort allows, and the part of kd in a clipped force always brakes:
clip(f - kd v) v <= clip(f) v.
On joints with quaternions a position motor is just a force, and a spring is assumed not to pass half a turn.

Links coupled by loops count as one tree, which never falls freely here; constraint forces do no work on it.
If they do (a driven joint), or if springs between links hold energy (loops that act, penalty joints), nothing
is known: such links are `assumed` to move at most `ASSUMED` times as fast as now (`shape_bounds.py`).

A free body's angular velocity changes while it tumbles, but 2T and |L| do not. With s_k = 1/I_k between 1/I_max and
1/I_min, (s_k - 1/I_min)(s_k - 1/I_max) <= 0; weighted with L_k^2 and summed over the three axes,

    w^2 <= 2T (1/I_min + 1/I_max) - L^2/(I_min I_max).

The bound is reached, at the ends of the polhode; sqrt(2T/I_min) is larger (references.md, Bounds on speed), |L|/I_min
larger still.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from ...engine.algebra.fence import fence
from ...engine.algebra.rotation import Quat
from ...engine.algebra.safe import safe_sqrt
from ...engine.algebra.vec3 import Sym3, Vec3
from ...engine.dynamics.kinematics import propagate_poses, propagate_velocities
from ...engine.dynamics.passive import displacement
from ...engine.forest import Forest
from ...engine.joints import JOINTS
from ...engine.model import Model
from ...engine.rows import sum_into, take
from ...engine.state import State
from ...engine.topology import Loop, Topology
from .tree_speeds import TreeSpeeds, inverse, principal_extremes, times, tree_speeds


class LinkMotion(NamedTuple):
    """Per link, for t >= 0 until something touches; zero for links that cannot move.

    velocity: components (..., nl) of the centre of mass of a tree in free fall now, world axes [m/s]; 0 otherwise.
    center: components (..., nl) of the link's centre of mass in the world [m].
    falls: (..., nl) 1 if `velocity` changes with gravity, else 0.
    energy_root: (..., nl) e = sqrt(2E) [sqrt(J)].  growth: (..., nl) largest rate of e [sqrt(J)/s].
    spin: (..., nl) bound, for all time, on the angular speed of a body on which no torque acts [rad/s].
    drift: (..., nl) present speed of the centre of mass relative to `velocity` [m/s].
    angular_speed: (..., nl) at present [rad/s].
    single, assumed: (nl,) bool, static: a tree of one link; a link of which nothing is known.
    speeds: speeds of points per e.
    """

    velocity: Vec3
    center: Vec3
    falls: Array
    energy_root: Array
    growth: Array
    spin: Array
    drift: Array
    angular_speed: Array
    single: np.ndarray
    assumed: np.ndarray
    speeds: TreeSpeeds


ACROSS = 1e-6  # of gravity, at most, across a plane in which a body falls freely
BODY = ("mass", "com", "inertia")  # parameters that `body_motion` reads


@functools.cache
def trees(topology: Topology) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The tree of each link, -1 if it cannot move, and the root link of each tree."""
    tree: list[int] = []
    roots: list[int] = []
    for i, (parent, joint) in enumerate(zip(topology.parents, topology.joints, strict=True)):
        above = -1 if parent < 0 else tree[parent]
        if above < 0 and joint != "fixed":
            roots.append(i)
            above = len(roots) - 1
        tree.append(above)
    for loop in topology.loops:
        one, other = sorted((tree[loop.a], tree[loop.b])) if min(loop.a, loop.b) >= 0 else (-1, -1)
        if 0 <= one < other:
            roots.pop(other)
            tree = [one if k == other else k - (k > other) for k in tree]
    return tuple(tree), tuple(roots)


def link_motion(model: Model, state: State, control: Array | None = None, forces: Array | None = None) -> LinkMotion:
    """Bound the motion of every link.  control: (..., nv) the command to the motors while the bounds hold; None: their
    targets.  forces: (..., nv) largest external forces [N m, N]."""
    topology = model.topology
    forest = Forest.of(model, q=state.q, v=state.v)
    tree, roots = trees(topology)
    of_dofs = tuple(tree[i] for i, j in enumerate(topology.joints) for _ in range(JOINTS[j].nv))
    n, full = len(roots), (*forest.batch, topology.nv)
    mass = jnp.broadcast_to(model.mass, (*forest.batch, topology.n_links))
    M = _sum_by(mass, tree, n)

    # joint forces: springs and position motors by their energy, other motors by their largest force
    stored, force = _joint_energy(model, state, control)
    force = force if forces is None else force + jnp.abs(forces)
    acted = (force != 0) | (model.motor_kp != 0) | (model.motor_kd != 0) | (model.damping != 0)
    acted |= (model.loss != 0) | (model.stiffness != 0) | (model.armature != 0)
    tied = {tree[end] for loop in topology.loops for end in (loop.a, loop.b)}
    free = _falls_freely(model, roots, jnp.broadcast_to(acted, full)) & ~np.isin(np.arange(n), list(tied))

    # the common motion of each tree in free fall, and the energy of the rest
    poses = propagate_poses(forest, model, state.q)
    velocities = propagate_velocities(forest, poses, state.v)
    bodies = [body_motion(x.pose, y.V, *(forest.parameter(model, name, group) for name in BODY))
              for group, x, y in zip(forest.groups, poses, velocities, strict=True)]  # fmt: skip
    center, velocity = (Vec3(*(forest.join_links([b[k] for b in bodies]) for k in ks)) for ks in ((0, 1, 2), (3, 4, 5)))
    turning, spin, angular_speed = (forest.join_links([b[k] for b in bodies]) for k in (6, 7, 8))
    share = jnp.where(free, inverse(M, 0.0), 0.0)
    common = Vec3(*(_spread(share * _sum_by(mass * u, tree, n), tree) for u in (velocity.x, velocity.y, velocity.z)))
    relative = velocity - common
    kinetic = _sum_by((mass * relative.dot(relative) + turning) / 2, tree, n)
    joints = _sum_by(jnp.broadcast_to(stored + model.armature * state.v**2 / 2, full), of_dofs, n)
    energy_root = safe_sqrt(2 * (kinetic + joints))

    # how fast e, the root of that energy, may grow
    speeds = tree_speeds(forest, model, _spread(share, tree))
    power = _sum_by(jnp.broadcast_to(times(speeds.rates, force), full), of_dofs, n)
    weight = safe_sqrt((model.gravity**2).sum(-1))[..., None] * safe_sqrt(M)
    growth = power + jnp.where(free, 0.0, weight)

    single = np.isin(tree, np.flatnonzero(np.bincount([t for t in tree if t >= 0], minlength=n) == 1))
    falls = _spread(free.astype(mass.dtype), tree)
    e, drift = _spread(energy_root, tree), safe_sqrt(relative.dot(relative))
    assumed = np.isin(
        tree, [tree[end] for loop in topology.loops if _works(topology, loop) for end in (loop.a, loop.b)]
    )
    assumed &= np.array(tree) >= 0
    return LinkMotion(
        common, center, falls, e, _spread(growth, tree), spin, drift, angular_speed, single, assumed, speeds
    )


@fence
def body_motion(pose, V, mass, com, inertia):
    """Center and its velocity, 2 T of the rotation, and the angular speed: its bound if nothing acts, and now."""
    arm = pose.R @ Vec3.of(com)
    c, u = pose.p + arm, V.v + V.w.cross(arm)
    I, w = Sym3.of(inertia), pose.R.T @ V.w
    L = I @ w
    turning, low, high = L.dot(w), *principal_extremes(I)
    a, b = inverse(low), inverse(high)
    now = w.dot(w)
    square = turning * (a + b) * (1 + 8 * jnp.finfo(jnp.result_type(now)).eps) - L.dot(L) * a * b
    spin = safe_sqrt(jnp.where(low > 0, jnp.maximum(square, now), jnp.inf))
    return c.x, c.y, c.z, u.x, u.y, u.z, turning, spin, safe_sqrt(now)


def _joint_energy(model: Model, state: State, control: Array | None) -> tuple[Array, Array]:
    """Energy of springs and position motors [J], and largest force of the other motors [N m, N], each (..., nv)."""
    stretch = displacement(model, state.q)
    springs = jnp.where(model.stiffness == 0, 0.0, model.stiffness * (stretch - model.rest) ** 2) / 2
    command = model.motor_target if control is None else control
    command = jnp.where(jnp.isinf(model.motor_gain) & (command == 0), 0.0, model.motor_gain * command)
    kp, effort = model.motor_kp, model.motor_effort
    driven = kp > 0
    # clip(kp x, -effort, effort) is the slope of kp s (x - s/2) with s = min(x, effort/kp)
    away = jnp.abs(stretch - command * inverse(kp, 0.0))
    s = jnp.minimum(away, times(effort, inverse(kp, 0.0)))
    motors = jnp.where(driven, kp * s * (away - s / 2), 0.0)
    force = jnp.minimum(jnp.abs(command), effort)
    scalar = np.array([j not in _QUATERNIONS for j in model.topology.joints for _ in range(JOINTS[j].nv)], bool)
    quaternion_motors = jnp.minimum(jnp.abs(command) + kp * jnp.pi, effort)
    return springs + jnp.where(scalar, motors, 0.0), jnp.where(driven, jnp.where(scalar, 0.0, quaternion_motors), force)


_QUATERNIONS = frozenset({"spherical", "floating"})


def _works(topology: Topology, loop: Loop) -> bool:
    """Return whether a loop does, or may do, work on its links."""
    return loop.acts or topology.hold == "penalty" or loop.kind in ("drive", "driven_turn", "driven_shift")


def _falls_freely(model: Model, roots: tuple[int, ...], acted: Array) -> Array:
    """Return whether the root floats, or moves in a plane along which gravity acts, and no force acts on any of its
    degrees of freedom, (..., trees)."""
    topology, lanes = model.topology, acted.shape[:-1]
    loose, order = [jnp.zeros((*lanes, 1), bool)], [0] * len(roots)
    for joint in ("floating", "planar"):
        mine = [i for i in roots if topology.joints[i] == joint and (joint == "floating" or topology.in_plane[i])]
        if mine:
            dofs = np.array([topology.v_start[i] + np.arange(JOINTS[joint].nv) for i in mine])
            free = ~acted[..., dofs.reshape(-1)].reshape(*lanes, *dofs.shape).any(-1)
            loose.append(free & _along_gravity(model, mine) if joint == "planar" else free)
            first = sum(x.shape[-1] for x in loose[:-1])
            number = {i: first + k for k, i in enumerate(mine)}
            order = [number.get(i, k) for i, k in zip(roots, order, strict=True)]
    table = jnp.concatenate(loose, -1)
    return table[..., np.array(order, int)]


def _along_gravity(model: Model, links: list[int]) -> Array:
    """Return whether gravity acts along the planes in which some links move, (..., n)."""
    index = np.array(links)
    normal = Quat.of_array(model.joint_quaternion[..., index, :]).matrix() @ Vec3.of(model.axis[..., index, :])
    g = Vec3.of(model.gravity[..., None, :])
    return jnp.abs(normal.dot(g)) <= ACROSS * safe_sqrt(g.dot(g))


def _sum_by(x: Array, tree: tuple[int, ...], n: int) -> Array:
    """Sums (..., n) of the entries (..., k) of each tree; entries of tree -1 are left out."""
    order = [i for i in np.argsort(tree, kind="stable").tolist() if tree[i] >= 0]
    if not order:
        return jnp.zeros((*x.shape[:-1], n), x.dtype)
    return jnp.moveaxis(sum_into(jnp.moveaxis(take(x, order, -1), -1, 0), [tree[i] for i in order], n), 0, -1)


def _spread(x: Array, tree: tuple[int, ...]) -> Array:
    """Entries (..., k): the value of each one's tree, 0 for tree -1."""
    if not x.shape[-1]:
        return jnp.zeros((*x.shape[:-1], len(tree)), x.dtype)
    moving = np.array(tree) >= 0
    spread = take(x, np.where(moving, tree, 0).tolist(), -1)
    return spread if moving.all() else jnp.where(moving, spread, 0.0)
