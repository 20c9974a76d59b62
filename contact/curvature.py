"""The velocity-product part b of a contact's acceleration: du/dt = J dv/dt + b, where u = J v is how it moves.

J turns as bodies do: a wheel rolls, a box pivots about an edge, and its contact goes with it. Let two surfaces meet,
their curvatures K_A, K_B (`features.py`), the links' angular velocities w_A, w_B; over the tangent plane let m_A, m_B
be the rates (-w_y, w_x) of their slopes and u A's slip over B. The material points that meet have the accelerations
a_A, a_B while dv/dt = 0. With the contact moving at y over A, and so at y + u over B, the gap's second derivative is

    b_n = (a_A - a_B).n - 2 m_B.u + 2 min_y [ (m_A - m_B).y + y.K_A y / 2 + (y + u).K_B (y + u) / 2 ]

to second order: the heights of both surfaces over the plane are expanded in time and place, and their difference is
least at the contact. (Montana, The Kinematics of Contact and Grasp, IJRR 7(3), 1988, has the same y for smooth
surfaces.) A corner pins y, an edge leaves it one direction, two edges none. Across where both are flat nothing says
where the contact goes: a row of the detector is then a point of A. Along the tangents, with axes that stand still,

    b_t = a_A + w_A x y - a_B - w_B x (y + u)

so that u turns only with the bodies, not with the frame about its normal (friction does not care), nor with u_n,
which is next to nothing where contacts rest. A wheel that rolls upright has b = 0, a pivoting corner w x (w x r).
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..collision.narrow import KERNELS, ordered
from ..collision.posed import Shapes, shapes_at
from ..engine.algebra.bounded import of_the_first
from ..engine.algebra.fence import fence
from ..engine.algebra.spatial import Transform
from ..engine.algebra.vec3 import Mat3, Vec3
from ..engine.dynamics.kinematics import carry, move, place
from ..engine.dynamics.trees import to_blocks, trees_of
from ..engine.forest import Forest
from ..engine.model import Model
from ..engine.topology import Topology
from .contacts import Contacts
from .determine import ENVELOPE
from .features import Feature, features, flat_angle
from .indexing import gather
from .jacobian import ContactJacobian, relative_velocity

VECTOR = 64  # bytes


class Course(NamedTuple):
    """How contacts move, components (C, *batch); zeros at limits.

    b: the part of du/dt that velocities make, in the contact frames [m/s^2].
    point: velocity of the contact's point [m/s]; normal: of its normal [rad/s]; world axes.
    """

    b: Vec3
    point: Vec3
    normal: Vec3


def contact_course(
    model: Model, q: Array, v: Array, contacts: Contacts, rows: ContactJacobian, *, h: Array | float = 0.0
) -> Course:
    """How contacts move at q (*batch, nq) and v (*batch, nv).

    b_n is the second derivative of the gap where dv/dt = 0. Ground (heightfields, meshes) counts as flat.
    h: the time for which b is wanted (*batch) [s]. A disc that stands and rocks has its contact race around the rim,
    the faster the less it leans; a rim that leans less than it turns in this time has rows that stay where they are.
    """
    return courses(model, q, (v,), contacts, rows, h=h)[0]


def courses(
    model: Model,
    q: Array,
    speeds: tuple[Array, ...],
    contacts: Contacts,
    rows: ContactJacobian,
    *,
    h: Array | float = 0.0,
) -> tuple[Course, ...]:
    """`contact_course` at several velocities, the first of which says what lies flat."""
    topology, touch = model.topology, contacts.active & ~contacts.is_limit
    if not topology.pairs:
        still = jax.tree.map(jnp.zeros_like, contacts.point)
        return (Course(still, still, still),) * len(speeds)
    # conveyors' surfaces move, their shapes do not
    u = tuple(relative_velocity(rows, to_blocks(trees_of(topology), v)) - rows.drift for v in speeds)
    last = jnp.where(touch, jnp.arange(1, len(touch) + 1, dtype=jnp.int32).reshape(-1, *(1,) * (touch.ndim - 1)), 0)
    links = tuple(_link_motions(model, q, v, contacts) for v in speeds)
    given = model, shapes_at(model, q).pose, links, jnp.asarray(h)
    each = VECTOR // q.dtype.itemsize
    of_contacts = contacts._replace(code=None, needed=None)  # type: ignore[arg-type]
    return of_the_first(each, _of_contacts, last.max(), given, (of_contacts, u))


def _of_contacts(
    given: tuple[Model, Transform, tuple[_LinkMotion, ...], Array], rows: tuple[Contacts, tuple[Vec3, ...]]
) -> tuple[Course, ...]:
    (model, pose, motions, h), (contacts, u) = given, rows
    topology, frame = model.topology, contacts.frame
    touch = contacts.active & ~contacts.is_limit
    half = frame.rows[2] * (jnp.where(touch, contacts.gap, 0) * 0.5)
    points = (contacts.point + half, contacts.point - half)
    shape = np.array(topology.pairs, np.int32)
    numbers = [jnp.asarray(shape[:, side])[contacts.pair] for side in (0, 1)]
    shapes, kinds = Shapes(model, pose, touch.shape[1:]), _kinds(topology)
    sides = [
        [_at(frame, point, _of(links, link)) for links in motions]
        for point, link in zip(points, (contacts.link_a, contacts.link_b), strict=True)
    ]
    turning = sides[0][0][0] - sides[1][0][0]
    tilt = (jnp.abs(turning.x) + jnp.abs(turning.y)) * h
    a, b = (features(shapes, kinds[k], numbers[k], frame, points[k], (-1.0, 1.0)[k], tilt, touch) for k in (0, 1))

    def one(moves_a: Any, moves_b: Any, u: Vec3) -> Course:
        course = _course(a, b, moves_a, moves_b, _spins(model, contacts, numbers), u)
        course = course._replace(point=frame.T @ course.point, normal=frame.T @ course.normal)
        return jax.tree.map(lambda x: jnp.where(touch, x, 0), course)

    return tuple(map(one, *sides, u))


@functools.lru_cache(maxsize=256)
def _kinds(topology: Topology) -> tuple[frozenset[str], frozenset[str]]:
    """Kinds of the shapes A and B of all pairs."""
    first, second = zip(*topology.pairs, strict=True)
    return frozenset(topology.shape_kinds[k] for k in first), frozenset(topology.shape_kinds[k] for k in second)


# -- where the contact goes, and what that makes of u ---------------------------------------------------


@fence
def _course(a: Feature, b: Feature, A: Any, B: Any, spins: tuple[Any, Any], u: Vec3) -> Course:
    """All in the contact frames."""
    (w_a, acc_a, v_a), (w_b, acc_b, _) = A, B
    acc = acc_a - acc_b
    ux, uy = u.x, u.y
    mx, my = w_b.y - w_a.y, w_a.x - w_b.x  # m_A - m_B
    x, y = _migration(a, b, mx, my, ux, uy)
    X, Y = x + ux, y + uy  # over B
    normal = 2 * (mx * x + my * y + w_b.y * ux - w_b.x * uy)
    normal += a.xx * x * x + 2 * a.xy * x * y + a.yy * y * y + b.xx * X * X + 2 * b.xy * X * Y + b.yy * Y * Y
    s_a, s_b = w_a.z + spins[0], w_b.z + spins[1]
    # the normal turns with B, and as it moves over B; where B has an edge there, with A; of two edges, across both
    sharp, (crossed, sine) = b.corner | b.ridge, _crossing(a, b)
    of_a = w_a.y - a.xx * x - a.xy * y, -w_a.x - a.xy * x - a.yy * y
    of_b = w_b.y + b.xx * X + b.xy * Y, -w_b.x + b.xy * X + b.yy * Y
    along_a, along_b = a.ex * of_a[0] + a.ey * of_a[1], b.ex * of_b[0] + b.ey * of_b[1]
    of_both = (along_a * b.ey - along_b * a.ey) / sine, (along_b * a.ex - along_a * b.ex) / sine
    nx, ny = (jnp.where(crossed, z, jnp.where(sharp, x, y)) for x, y, z in zip(of_a, of_b, of_both, strict=True))
    along = Vec3(acc.x - s_a * y + s_b * Y, acc.y + s_a * x - s_b * X, acc.z + normal)
    return Course(along, Vec3(v_a.x + x, v_a.y + y, v_a.z), Vec3(nx, ny, jnp.zeros_like(nx)))


def _crossing(a: Feature, b: Feature) -> tuple[Array, Array]:
    """Whether two edges cross, and the sine of the angle between them; 1 where they do not."""
    sine = a.ex * b.ey - a.ey * b.ex
    crossed = a.ridge & b.ridge & (jnp.abs(sine) > flat_angle(sine.dtype))
    return crossed, jnp.where(crossed, sine, 1)


def _migration(a: Feature, b: Feature, mx: Array, my: Array, ux: Array, uy: Array) -> tuple[Array, Array]:
    """y, the least of the brackets: m.y + y.K_A y / 2 + (y + u).K_B (y + u) / 2 where the features let it go."""
    xx, xy, yy = a.xx + b.xx, a.xy + b.xy, a.yy + b.yy
    fx, fy = mx + b.xx * ux + b.xy * uy, my + b.xy * ux + b.yy * uy  # the slope at y = 0
    flat = flat_angle(xx.dtype)

    def along(ex: Array, ey: Array, slope: Array) -> Array:
        """How far the least is along a direction, 0 where it is flat."""
        k = ex * ex * xx + 2 * ex * ey * xy + ey * ey * yy
        return jnp.where(k > 0, -slope / jnp.where(k > 0, k, 1), 0)

    # both smooth: the inverse of the sum of the curvatures, where that is flat in one direction the other's
    trace, det = xx + yy, xx * yy - xy * xy
    full = det > flat * flat * trace * trace
    over = jnp.where(full, det, jnp.where(trace > 0, trace * trace, 1))
    pxx, pxy, pyy = jnp.where(full, yy, xx) / over, jnp.where(full, -xy, xy) / over, jnp.where(full, xx, yy) / over
    x, y = -(pxx * fx + pxy * fy), -(pxy * fx + pyy * fy)
    # along B's edge, which moves at -u over A
    s = along(b.ex, b.ey, b.ex * (fx - xx * ux - xy * uy) + b.ey * (fy - xy * ux - yy * uy))
    x, y = jnp.where(b.ridge, b.ex * s - ux, x), jnp.where(b.ridge, b.ey * s - uy, y)
    # along A's edge; where B's crosses it, to the crossing
    crossed, sine = _crossing(a, b)
    meeting = (uy * b.ex - ux * b.ey) / sine
    s = jnp.where(crossed, meeting, along(a.ex, a.ey, a.ex * fx + a.ey * fy))
    x, y = jnp.where(a.ridge, a.ex * s, x), jnp.where(a.ridge, a.ey * s, y)
    # corners
    x, y = jnp.where(b.corner, -ux, x), jnp.where(b.corner, -uy, y)
    return jnp.where(a.corner, 0, x), jnp.where(a.corner, 0, y)


# -- links and surfaces ---------------------------------------------------------------------------------


class _LinkMotion(NamedTuple):
    """Of links, world axes: origin p [m], angular velocity w [rad/s], velocity v of the origin [m/s]; and while
    dv/dt = 0 their angular acceleration dw [rad/s^2] and the acceleration of their origins a [m/s^2], None where both
    vanish: for free bodies."""

    p: Vec3
    w: Vec3
    v: Vec3
    dw: Vec3 | None
    a: Vec3 | None


def _link_motions(model: Model, q: Array, v: Array, contacts: Contacts) -> _LinkMotion:
    """Of all links, components (nl, *batch)."""
    n, joints = model.topology.n_links, set(model.topology.joints)
    if joints == {"floating"}:
        p, w = (jnp.moveaxis(x.reshape(*x.shape[:-1], n, -1), -2, 0) for x in (q, v))
        return _LinkMotion(Vec3.of(p), Vec3.of(w), Vec3.of(w[..., 3:]), None, None)
    forest = Forest(model.topology, contacts.gap.shape[1:], q.dtype)
    placed = place(forest, model, q)
    moving = move(forest, placed, v)
    each = [
        _LinkMotion(x.pose.p, y.V.w, y.V.v, z.w, z.v + y.V.w.cross(y.V.v))
        for x, y, z in zip(placed, moving, carry(forest, placed, moving), strict=True)
    ]
    return forest.by_link(each)


def _of(links: _LinkMotion, link: Array) -> _LinkMotion:
    """The contacts' links (C, *batch); the world stands still."""
    pick = lambda x: jnp.where(link < 0, 0, gather(x, jnp.maximum(link, 0), 0))  # noqa: E731
    return jax.tree.map(pick, links)


@fence
def _at(frame: Mat3, point: Vec3, link: _LinkMotion) -> tuple[Vec3, Vec3, Vec3]:
    """Angular velocity, and the point's acceleration and velocity, in the contact frame."""
    r = point - link.p
    a = link.w.cross(link.w.cross(r))
    if link.a is not None and link.dw is not None:
        a = link.a + link.dw.cross(r) + a
    return frame @ link.w, frame @ a, frame @ (link.v + link.w.cross(r))


def _spins(model: Model, contacts: Contacts, numbers: list[Array]) -> tuple[Any, Any]:
    """About the normals, the angular velocities of statics' surfaces that move in place [rad/s]."""
    if not model.topology.driven:
        return 0.0, 0.0
    twist = jnp.moveaxis(model.shape_twist, -2, 0)
    n = contacts.frame.rows[2]
    a, b = (n.dot(Vec3(*(gather(twist[..., k], shape, 0) for k in range(3)))) for shape in numbers)
    return a, b


def shared(model: Model, contacts: Contacts, b: Vec3, u: Vec3, h: Array | float) -> Vec3:
    """b with what is across the normal averaged over the contacts of each pair of shapes that are about to stick.

    Two corners of an edge that both stick cannot have accelerations that would pull the edge apart; what differs
    between them belongs to how the edge turns during the step, and would have friction fight itself. A contact slides,
    and keeps its own b, if its slip, of u (C, *batch) [m/s], is more than b makes of it in h [s].
    """
    most = _most_rows(model.topology)
    if most == 1:
        return b
    slides = (u.x * u.x + u.y * u.y) > (b.x * b.x + b.y * b.y) * (h * h)
    near = contacts.active & ~contacts.is_limit & (contacts.gap <= ENVELOPE * model.gap_band) & ~slides
    pair = jnp.where(near, contacts.pair, -1)
    count, x, y = jnp.zeros_like(pair), jnp.zeros_like(b.x), jnp.zeros_like(b.y)
    for shift in range(1 - most, most):  # a pair's rows are one after another
        other = jax.tree.map(lambda c, shift=shift: _shifted(c, shift), (pair, near, b.x, b.y))
        same = near & other[1] & (other[0] == pair)
        count = count + same
        x, y = (total + jnp.where(same, c, 0) for total, c in zip((x, y), other[2:], strict=True))
    count = jnp.maximum(count, 1)
    return Vec3(jnp.where(near, x / count, b.x), jnp.where(near, y / count, b.y), b.z)


def _shifted(x: Array, by: int) -> Array:
    """Row k is x's row k + by, or zeros where there is none."""
    n = len(x)
    none = jnp.zeros_like(x, shape=(min(abs(by), n), *x.shape[1:]))
    return jnp.concatenate([x[by:], none] if by > 0 else [none, x[: max(n + by, 0)]])


@functools.lru_cache(maxsize=256)
def _most_rows(topology: Topology) -> int:
    """Of any pair of shapes."""
    kinds = {tuple(sorted((topology.shape_kinds[i], topology.shape_kinds[k]))) for i, k in topology.pairs}
    return max((KERNELS[ordered(*pair)[0]].rows for pair in kinds), default=1)
