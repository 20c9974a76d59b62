"""Changes of bodies by hand between frames: pushes, and teleports.

They are programs, so that an exported world (`scenes/export/`) does the same to the last bit.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array

from ...engine.algebra.rotation import Quat
from ...engine.algebra.vec3 import Mat3, Vec3
from ...engine.model import Model
from ...engine.native.surface import native_jit


def centre(model: Model, rotation: Mat3, link: Array | np.ndarray) -> Vec3:
    """Vector from a link's origin to its centre of mass, world axes [m]."""
    return rotation @ Vec3.of(model.com[link])


@native_jit
def with_push(
    model: Model,
    poses: Array,
    wrenches: Array,
    link: Array,
    force: Array,
    torque: Array,
    point: Array,
    at_centre: Array,
    own: Array,
) -> Array:
    """Wrenches on links with a push on one of them added.

    poses: (nl, 7) x y z of the origin [m], w x y z.
    wrenches: (nl, 6) moment about each link's origin [N m] and force [N], world axes.
    link: () its index.  force: (3,) [N], torque: (3,) [N m], point: (3,) point of the force [m].
    at_centre: () bool, the force acts at the centre of mass, not at the point.
    own: () bool, all three are in the link's axes, the point from its origin; else in the world's.
    """
    pose = poses[link]
    rotation, origin = Quat.of_array(pose[3:]).matrix(), Vec3.of(pose[:3])
    F, M, p = (_either(own, rotation @ x, x) for x in map(Vec3.of, (force, torque, point)))
    arm = _either(at_centre, centre(model, rotation, link), _either(own, p, p - origin))
    M = M + arm.cross(F)
    return wrenches.at[link].add(jnp.stack([*M.xyz, *F.xyz]))


@native_jit
def put_there(
    model: Model, link: Array, position: Array, quaternion: Array, linear: Array, angular: Array
) -> tuple[Array, Array]:
    """Coordinates (7,) and velocities (6,) of a free body.

    link: () its index.  position: (3,) of its origin [m].  quaternion: (4,) of about length 1.
    linear: (3,) of its centre of mass [m/s].  angular: (3,) [rad/s], world axes both.
    """
    rotation = Quat.of_array(quaternion).to_unit()
    w = Vec3.of(angular)
    v = Vec3.of(linear) - w.cross(centre(model, rotation.matrix(), link))
    q = jnp.concatenate([position, jnp.stack([rotation.w, rotation.x, rotation.y, rotation.z])])
    return q, jnp.stack([*w.xyz, *v.xyz])


def leaves_plane(off: Array) -> Array:
    """Return whether the deviations of `put_in_plane` are more than rounding, () bool."""
    return (off > float(np.finfo(off.dtype).eps) ** 0.5).any()


@native_jit
def put_in_plane(
    model: Model, link: Array, position: Array, quaternion: Array, linear: Array, angular: Array
) -> tuple[Array, Array, Array]:
    """Coordinates (3,) and velocities (3,) of a body on a planar joint of the world, and the arguments' deviations
    from its plane (4,): position [m], attitude (the sine of half the angle), the two velocities [m/s, rad/s].

    The arguments are those of `put_there`.
    """
    frame, rotation = Quat.of_array(model.joint_quaternion[link]), Quat.of_array(quaternion).to_unit()
    own, R = Vec3.of(model.axis[link]), frame.matrix()
    n, x = R @ own, R @ Vec3.of(model.axis2[link])
    y = n.cross(x)
    p = Vec3.of(position) - Vec3.of(model.joint_position[link])
    left = frame.conjugate() * rotation  # about `own`, where it is in the plane
    along = left.vector.dot(own)
    swing = left.vector - own * along
    w = Vec3.of(angular)
    v = Vec3.of(linear) - w.cross(centre(model, rotation.matrix(), link))
    spin = w.dot(n)
    tilt = w - n * spin
    q = jnp.stack([2 * jnp.arctan2(along, left.w), p.dot(x), p.dot(y)])
    off = jnp.stack([jnp.abs(p.dot(n)), jnp.sqrt(swing.dot(swing)), jnp.abs(v.dot(n)), jnp.sqrt(tilt.dot(tilt))])
    return q, jnp.stack([spin, v.dot(x), v.dot(y)]), off


def _either(which: Array, yes: Vec3, no: Vec3) -> Vec3:
    return Vec3(*(jnp.where(which, x, y) for x, y in zip(yes.xyz, no.xyz, strict=True)))
