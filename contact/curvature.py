"""Contact kinematics, and the velocity-product term b of a contact's acceleration: du/dt = J dv/dt + b, with u = J v.

J changes as bodies turn: a wheel rolls, a box pivots about an edge, and the contact point migrates. Two touching
surfaces have the curvatures K_A, K_B (`features.py`); w_A, w_B are the links' angular velocities, m_A, m_B the rates
(-w_y, w_x) of their slopes over the tangent plane, and u is A's slip over B. The material points that touch have the
accelerations a_A, a_B when dv/dt = 0. If the contact moves at y over A, and thus at y + u over B, the gap's second
derivative is

    b_n = (a_A - a_B).n - 2 m_B.u + 2 min_y [ (m_A - m_B).y + y.K_A y / 2 + (y + u).K_B (y + u) / 2 ]

to second order: the heights of both surfaces over the plane are expanded in time and position, and their difference
has its minimum at the contact. (Montana, The Kinematics of Contact and Grasp, IJRR 7(3), 1988, has the same y for
smooth surfaces.) A corner fixes y, an edge leaves it one direction, two edges none. In a direction in which both
surfaces are flat, y is undetermined: the contact is then a fixed point of A. Along the tangents, with fixed axes,

    b_t = a_A + w_A x y - a_B - w_B x (y + u)

so that u rotates only with the bodies. It rotates neither with the frame about its normal (friction is isotropic) nor
with u_n, which is almost 0 in resting contacts. A wheel that rolls upright has b = 0, a pivoting corner w x (w x r).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..collision.bounds import bounding_spheres
from ..collision.narrow import KERNELS, kernel_key
from ..collision.posed import Shapes, rows_first, shapes_at
from ..engine.algebra.bounded import map_first
from ..engine.algebra.fence import fence
from ..engine.algebra.safe import safe_div
from ..engine.algebra.spatial import Transform
from ..engine.algebra.vec3 import Mat3, Scalar, Vec3
from ..engine.dynamics.kinematics import bias_accelerations, propagate_poses, propagate_velocities
from ..engine.dynamics.trees import to_blocks, trees_of
from ..engine.forest import Forest
from ..engine.model import Model
from ..engine.topology import Topology
from .contact_jacobian import ContactJacobian, relative_velocity
from .contacts import Contacts
from .determine import ENVELOPE
from .features import Feature, features, flat_angle, surface_growth
from .gather_scatter import gather

VECTOR = 64  # bytes of one SIMD vector
# Part of a step for which contact kinematics must hold. With longer times, a body that tumbles on its rim at 100 rad/s
# counted as flat and could not step.
BRIEF = 1 / 2**14


class ContactKinematics(NamedTuple):
    """Migration of contacts, components (C, *batch); zeros at limits.

    b: velocity-product term of du/dt, in the contact frames [m/s^2].
    point: velocity of the contact point, world axes [m/s].
    normal: rate of the normal, world axes [1/s].
    """

    b: Vec3
    point: Vec3
    normal: Vec3


def contact_kinematics(
    model: Model,
    q: Array,
    v: Array,
    contacts: Contacts,
    rows: ContactJacobian,
    longest: Array | float = 0.0,
) -> ContactKinematics:
    """Compute contact kinematics at q (*batch, nq) and v (*batch, nv).

    b_n is the second derivative of the gap if dv/dt = 0. Ground (heightfields, meshes) counts as flat.
    longest: (*batch) the longest step, for a small part of which b is to hold [s]. If a disc rocks on its rim, its
    contact runs around the rim, faster if the disc leans less. A rim that leans by less than it turns in BRIEF of the
    step counts as flat: its contacts stay. Where almost parallel lines cross, as an edge and a side do, the contact
    stays if it would run out of the shapes within the step.
    """
    return contact_kinematics_at(model, q, (v,), contacts, rows, longest)[0]


def contact_kinematics_at(
    model: Model,
    q: Array,
    speeds: tuple[Array, ...],
    contacts: Contacts,
    rows: ContactJacobian,
    longest: Array | float = 0.0,
) -> tuple[ContactKinematics, ...]:
    """Compute `contact_kinematics` at several velocities; the first decides which rims count as flat."""
    topology, touch = model.topology, contacts.active & ~contacts.is_limit
    if not topology.pairs:
        still = jax.tree.map(jnp.zeros_like, contacts.point)
        return (ContactKinematics(still, still, still),) * len(speeds)
    # conveyors' surfaces move, their shapes do not
    u = tuple(relative_velocity(rows, to_blocks(trees_of(topology), v)) - rows.drift for v in speeds)
    last = jnp.where(touch, jnp.arange(1, len(touch) + 1, dtype=jnp.int32).reshape(-1, *(1,) * (touch.ndim - 1)), 0)
    links = tuple(_link_motions(model, q, v, contacts.gap.shape[1:]) for v in speeds)
    given = model, shapes_at(model, q).pose, links, jnp.asarray(longest)
    each = VECTOR // q.dtype.itemsize
    of_contacts = contacts._replace(code=None, needed=None)  # type: ignore[arg-type]
    return map_first(each, _kinematics_of_contacts, last.max(), given, (of_contacts, u))


class _Side(NamedTuple):
    """One of the two shapes of each contact.

    kinds: the kinds that occur.
    shape: (C, *batch) numbers of the shapes.
    out: -1 if the contact's normal points into the shape, else 1.
    point: contact point on its surface, in the world [m].
    """

    kinds: frozenset[str]
    shape: Array
    out: float
    point: Vec3


Moves = tuple[Vec3, Vec3, Vec3]  # angular velocity, acceleration and velocity of a contact point, contact frame


def _kinematics_of_contacts(
    given: tuple[Model, Transform, tuple[_LinkMotion, ...], Array], rows: tuple[Contacts, tuple[Vec3, ...]]
) -> tuple[ContactKinematics, ...]:
    (model, pose, motions, longest), (contacts, u) = given, rows
    sides, links, batch = _sides(model.topology, contacts), (contacts.link_a, contacts.link_b), contacts.gap.shape[1:]
    moves = [
        [_at_point(contacts.frame, side.point, _gather_links(each, link)) for each in motions]
        for side, link in zip(sides, links, strict=True)
    ]
    turning = moves[0][0][0] - moves[1][0][0]
    tilt = (jnp.abs(turning.x) + jnp.abs(turning.y)) * (longest * BRIEF)
    radius = bounding_spheres(model).radius[..., None]
    sizes = jnp.broadcast_to(rows_first(radius, batch)[..., 0], (radius.shape[-2], *batch))
    size = jnp.minimum(*(gather(sizes, side.shape, 0) for side in sides))
    fastest = safe_div(size, jnp.broadcast_to(longest, size.shape), otherwise=jnp.inf)
    return _kinematics_of_sides(model, pose, contacts, sides, list(zip(*moves, u, strict=True)), tilt, fastest)


def contact_migration(
    model: Model, pose: Transform, rates: tuple[Array, Transform], contacts: Contacts
) -> tuple[Vec3, Vec3]:
    """Return the velocities of contact points and the rates of normals, world axes, if shapes move and grow.

    It is linear in the rates.
    pose: (ns, *batch) poses of the shapes in the world.
    rates: derivatives of `Model.shape_size` and of the poses.
    """
    d_size, d_pose = rates
    sides, batch = _sides(model.topology, contacts), contacts.gap.shape[1:]
    (x, y, z), (dx, dy, dz) = pose.R.rows, d_pose.R.rows
    spin = Vec3(dz.dot(y), dx.dot(z), dy.dot(x))  # of dR R^T, which is skew
    motions = _LinkMotion(pose.p, spin, d_pose.p, None, None)
    shapes = Shapes(model, pose, batch)
    moves, slip = [], []
    for side in sides:
        links = _gather_links(motions, side.shape)
        w, a, v = _at_point(contacts.frame, side.point, links)
        of_side = side.kinds, side.shape, contacts.frame, side.point, side.out
        turning, growing = surface_growth(shapes, rows_first(d_size, batch), *of_side)
        moves.append((w + turning, a, v + growing))
        slip.append(_at_point(contacts.frame, contacts.point, links)[2] + growing)
    u = slip[0] - slip[1]
    never = jnp.zeros_like(u.z), jnp.full_like(u.z, jnp.inf)
    (migration,) = _kinematics_of_sides(model, pose, contacts, sides, [(*moves, u)], *never)
    midway = contacts.frame.rows[2] * (u.z * 0.5)  # the point is in the middle of the gap, not on A
    return migration.point - midway, migration.normal


def _sides(topology: Topology, contacts: Contacts) -> tuple[_Side, _Side]:
    half = contacts.frame.rows[2] * (jnp.where(contacts.active & ~contacts.is_limit, contacts.gap, 0) * 0.5)
    numbers, kinds = np.array(topology.pairs, np.int32), _kinds(topology)
    a, b = (jnp.asarray(numbers[:, side])[contacts.pair] for side in (0, 1))
    return _Side(kinds[0], a, -1.0, contacts.point + half), _Side(kinds[1], b, 1.0, contacts.point - half)


def _kinematics_of_sides(
    model: Model,
    pose: Transform,
    contacts: Contacts,
    sides: tuple[_Side, _Side],
    motions: Sequence[tuple[Moves, Moves, Vec3]],
    tilt: Array,
    fastest: Array,
) -> tuple[ContactKinematics, ...]:
    """Compute the kinematics of several motions, each of both sides and of A's slip over B.

    tilt: (C, *batch) angle up to which rims count as flat [rad].
    fastest: (C, *batch) largest speed of a contact along a straight edge; one that would be faster stays [m/s].
    """
    touch, frame = contacts.active & ~contacts.is_limit, contacts.frame
    shapes = Shapes(model, pose, touch.shape[1:])
    a, b = (features(shapes, side.kinds, side.shape, frame, side.point, side.out, tilt, touch) for side in sides)
    spins = _surface_spins(model, contacts, [side.shape for side in sides])

    def one(moves_a: Moves, moves_b: Moves, u: Vec3) -> ContactKinematics:
        kinematics = _kinematics(a, b, moves_a, moves_b, spins, u, fastest)
        kinematics = kinematics._replace(point=frame.T @ kinematics.point, normal=frame.T @ kinematics.normal)
        return jax.tree.map(lambda x: jnp.where(touch, x, 0), kinematics)

    return tuple(one(*each) for each in motions)


@functools.lru_cache(maxsize=256)
def _kinds(topology: Topology) -> tuple[frozenset[str], frozenset[str]]:
    """Return the kinds of the shapes A and B of all pairs."""
    first, second = zip(*topology.pairs, strict=True)
    return frozenset(topology.shape_kinds[k] for k in first), frozenset(topology.shape_kinds[k] for k in second)


# -- migration of the contact point, and b ----------------------------------------------------------------


@fence
def _kinematics(
    a: Feature,
    b: Feature,
    A: Moves,
    B: Moves,
    spins: tuple[Scalar, Scalar],
    u: Vec3,
    fastest: Array,
) -> ContactKinematics:
    """Compute the kinematics; all arguments are in the contact frames."""
    (w_a, acc_a, v_a), (w_b, acc_b, _) = A, B
    acc = acc_a - acc_b
    ux, uy = u.x, u.y
    mx, my = w_b.y - w_a.y, w_a.x - w_b.x  # m_A - m_B
    x, y = _migration(a, b, mx, my, ux, uy, fastest)
    X, Y = x + ux, y + uy  # over B
    normal = 2 * (mx * x + my * y + w_b.y * ux - w_b.x * uy)
    normal += a.xx * x * x + 2 * a.xy * x * y + a.yy * y * y + b.xx * X * X + 2 * b.xy * X * Y + b.yy * Y * Y
    s_a, s_b = w_a.z + spins[0], w_b.z + spins[1]
    # the normal turns with B and as the point moves over B; at an edge of B, with A; at two edges, normal to both. At
    # an edge of a face that has this normal, it is the face's
    sharp, (crossed, sine) = (b.corner | b.ridge) & ~b.face, _edge_crossing(a, b)
    crossed &= sharp & ~a.face
    of_a = w_a.y - a.xx * x - a.xy * y, -w_a.x - a.xy * x - a.yy * y
    of_b = w_b.y + b.xx * X + b.xy * Y, -w_b.x + b.xy * X + b.yy * Y
    along_a, along_b = a.ex * of_a[0] + a.ey * of_a[1], b.ex * of_b[0] + b.ey * of_b[1]
    of_both = (along_a * b.ey - along_b * a.ey) / sine, (along_b * a.ex - along_a * b.ex) / sine
    nx, ny = (jnp.where(crossed, z, jnp.where(sharp, x, y)) for x, y, z in zip(of_a, of_b, of_both, strict=True))
    along = Vec3(acc.x - s_a * y + s_b * Y, acc.y + s_a * x - s_b * X, acc.z + normal)
    return ContactKinematics(along, Vec3(v_a.x + x, v_a.y + y, v_a.z), Vec3(nx, ny, jnp.zeros_like(nx)))


def _edge_crossing(a: Feature, b: Feature) -> tuple[Array, Array]:
    """Return whether two edges cross, and the sine of the angle between them, 1 if they do not."""
    sine = a.ex * b.ey - a.ey * b.ex
    crossed = a.ridge & b.ridge & (jnp.abs(sine) > flat_angle(sine.dtype))
    return crossed, jnp.where(crossed, sine, 1)


def _migration(
    a: Feature, b: Feature, mx: Array, my: Array, ux: Array, uy: Array, fastest: Array
) -> tuple[Array, Array]:
    """Return the y that minimizes m.y + y.K_A y / 2 + (y + u).K_B (y + u) / 2, in directions the features allow.

    fastest: largest y along a straight edge.
    """
    xx, xy, yy = a.xx + b.xx, a.xy + b.xy, a.yy + b.yy
    fx, fy = mx + b.xx * ux + b.xy * uy, my + b.xy * ux + b.yy * uy  # the slope at y = 0
    flat = flat_angle(xx.dtype)

    def along(edge: Feature, fx: Array, fy: Array) -> Array:
        """Return the distance to the minimum along an edge, 0 if both surfaces are flat along it."""
        ex, ey = edge.ex, edge.ey
        k = ex * ex * xx + 2 * ex * ey * xy + ey * ey * yy
        s = safe_div(-ex * fx - ey * fy, k)
        straight = edge.xx + edge.yy == 0  # a rim is not: its contact may run around it at any speed
        return jnp.where(straight, not_too_fast(s), s)

    def not_too_fast(s: Array) -> Array:
        return jnp.where(jnp.abs(s) <= fastest, s, 0)

    # both smooth: the inverse of the sum of the curvatures, or its pseudo-inverse if one direction is flat
    trace, det = xx + yy, xx * yy - xy * xy
    full = det > flat * flat * trace * trace
    over = jnp.where(full, det, jnp.where(trace > 0, trace * trace, 1))
    pxx, pxy, pyy = jnp.where(full, yy, xx) / over, jnp.where(full, -xy, xy) / over, jnp.where(full, xx, yy) / over
    x, y = -(pxx * fx + pxy * fy), -(pxy * fx + pyy * fy)
    # along the edge of B, which moves at -u over A
    s = along(b, fx - xx * ux - xy * uy, fy - xy * ux - yy * uy)
    x, y = jnp.where(b.ridge, b.ex * s - ux, x), jnp.where(b.ridge, b.ey * s - uy, y)
    # along the edge of A, up to the crossing if an edge of B crosses it
    crossed, sine = _edge_crossing(a, b)
    meeting = not_too_fast((uy * b.ex - ux * b.ey) / sine)
    s = jnp.where(crossed, meeting, along(a, fx, fy))
    x, y = jnp.where(a.ridge, a.ex * s, x), jnp.where(a.ridge, a.ey * s, y)
    # corners
    x, y = jnp.where(b.corner, -ux, x), jnp.where(b.corner, -uy, y)
    return jnp.where(a.corner, 0, x), jnp.where(a.corner, 0, y)


# -- links and surfaces ---------------------------------------------------------------------------------


class _LinkMotion(NamedTuple):
    """Motion of links, world axes.

    p: origin [m].
    w: angular velocity [rad/s].
    v: velocity of the origin [m/s].
    dw: angular acceleration if dv/dt = 0 [rad/s^2]; None for free bodies, where it is 0.
    a: acceleration of the origin if dv/dt = 0 [m/s^2]; None for free bodies, where it is 0.
    """

    p: Vec3
    w: Vec3
    v: Vec3
    dw: Vec3 | None
    a: Vec3 | None


@functools.partial(jax.jit, static_argnums=3)  # traced once for all its calls
def _link_motions(model: Model, q: Array, v: Array, batch: tuple[int, ...]) -> _LinkMotion:
    """Return the motion of all links, components (nl, *batch)."""
    n, joints = model.topology.n_links, set(model.topology.joints)
    if joints == {"floating"}:
        p, w = (jnp.moveaxis(x.reshape(*x.shape[:-1], n, -1), -2, 0) for x in (q, v))
        return _LinkMotion(Vec3.of(p), Vec3.of(w), Vec3.of(w[..., 3:]), None, None)
    forest = Forest(model.topology, batch, q.dtype)
    poses = propagate_poses(forest, model, q)
    velocities = propagate_velocities(forest, poses, v)
    each = [
        _LinkMotion(x.pose.p, y.V.w, y.V.v, z.w, z.v + y.V.w.cross(y.V.v))
        for x, y, z in zip(poses, velocities, bias_accelerations(forest, poses, velocities), strict=True)
    ]
    return forest.by_link(each)


def _gather_links(links: _LinkMotion, link: Array) -> _LinkMotion:
    """Return the motion of the contacts' links (C, *batch), zeros for the world."""
    pick = lambda x: jnp.where(link < 0, 0, gather(x, jnp.maximum(link, 0), 0))  # noqa: E731
    return jax.tree.map(pick, links)


@fence
def _at_point(frame: Mat3, point: Vec3, link: _LinkMotion) -> Moves:
    """Return angular velocity, acceleration and velocity of the point, in the contact frame."""
    r = point - link.p
    a = link.w.cross(link.w.cross(r))
    if link.a is not None and link.dw is not None:
        a = link.a + link.dw.cross(r) + a
    return frame @ link.w, frame @ a, frame @ (link.v + link.w.cross(r))


def _surface_spins(model: Model, contacts: Contacts, numbers: list[Array]) -> tuple[Scalar, Scalar]:
    """Return the angular velocities of conveyor surfaces about their normals [rad/s]."""
    if not model.topology.driven:
        return 0.0, 0.0
    twist = jnp.moveaxis(model.shape_twist, -2, 0)
    n = contacts.frame.rows[2]
    a, b = (n.dot(Vec3(*(gather(twist[..., k], shape, 0) for k in range(3)))) for shape in numbers)
    return a, b


def share_among_sticking(model: Model, contacts: Contacts, b: Vec3, u: Vec3, h: Array | float) -> Vec3:
    """Average the tangential part of b over the contacts of each pair of shapes that are about to stick.

    Two corners of an edge that both stick cannot have accelerations that would pull the edge apart. The difference
    comes from the rotation of the edge during the step, and would make friction impulses oppose each other. A contact
    slides, and keeps its own b, if its slip in u (C, *batch) [m/s] is more than b adds to it in h [s].
    """
    most = _most_rows(model.topology)
    if most == 1:
        return b
    slides = (u.x * u.x + u.y * u.y) > (b.x * b.x + b.y * b.y) * (h * h)
    near = contacts.active & ~contacts.is_limit & (contacts.gap <= ENVELOPE * model.gap_band) & ~slides
    pair = jnp.where(near, contacts.pair, -1)
    count, x, y = jnp.zeros_like(pair), jnp.zeros_like(b.x), jnp.zeros_like(b.y)
    for shift in range(1 - most, most):  # the contacts of a pair are adjacent rows
        other = jax.tree.map(lambda c, shift=shift: _shift_rows(c, shift), (pair, near, b.x, b.y))
        same = near & other[1] & (other[0] == pair)
        count = count + same
        x, y = (total + jnp.where(same, c, 0) for total, c in zip((x, y), other[2:], strict=True))
    count = jnp.maximum(count, 1)
    return Vec3(jnp.where(near, x / count, b.x), jnp.where(near, y / count, b.y), b.z)


def _shift_rows(x: Array, by: int) -> Array:
    """Return x with row k + by in row k, or zeros if there is none."""
    n = len(x)
    none = jnp.zeros_like(x, shape=(min(abs(by), n), *x.shape[1:]))
    return jnp.concatenate([x[by:], none] if by > 0 else [none, x[: max(n + by, 0)]])


@functools.lru_cache(maxsize=256)
def _most_rows(topology: Topology) -> int:
    """Return the largest number of contacts of any pair of shapes."""
    kinds = {tuple(sorted((topology.shape_kinds[i], topology.shape_kinds[k]))) for i, k in topology.pairs}
    return max((KERNELS[kernel_key(*pair)[0]].rows for pair in kinds), default=1)
