"""The joints' frames as frames of loops: x is the joint's axis, on the parent and on the link."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..algebra.rotation import Quat
from ..algebra.vec3 import Mat3, Vec3
from ..model import Model


def positions(model: Model, links: np.ndarray) -> Array:
    """Positions (..., joints, 2, 3) of the joints on which these links hang [m]."""
    at = model.joint_position[..., links, :]
    return jnp.stack([at, jnp.zeros_like(at)], -2)


def quaternions(model: Model, links: np.ndarray) -> Array:
    """Quaternions (..., joints, 2, 4): on the parent, of the joint frame, rotated; on the link, of the same frame at
    zero."""
    x, axis2 = (Vec3.of(a[..., links, :]) for a in (model.axis, model.axis2))
    universal = np.array([model.topology.joints[i] == "universal" for i in links], bool)
    other = _either(universal, axis2, _least(x))
    y = _across(other, x)
    # the link carries axis2 of a universal joint: there it is y, and x is the direction nearest to axis
    x_b, y_b = _either(universal, _across(x, other), x), _either(universal, other, y)
    on_parent = Quat.of_array(model.joint_quaternion[..., links, :]) * _frame(x, y)
    return jnp.stack([_array(on_parent), _array(_frame(x_b, y_b))], -2)


def _frame(x: Vec3, y: Vec3) -> Quat:
    return Quat.from_matrix(Mat3.from_columns(x, y, x.cross(y)))


def _either(which: np.ndarray, a: Vec3, b: Vec3) -> Vec3:
    return jax.tree.map(lambda a, b: jnp.where(which, a, b), a, b)


def _least(x: Vec3) -> Vec3:
    """The axis of the frame that is farthest from x."""
    a, b, c = (jnp.abs(s) for s in x.xyz)
    first = (a <= b) & (a <= c)
    second = ~first & (b <= c)
    return Vec3(*(s.astype(a.dtype) for s in (first, second, ~first & ~second)))


def _across(x: Vec3, n: Vec3) -> Vec3:
    """The unit vector orthogonal to n that is nearest to x."""
    y = x - n * n.dot(x)
    return y / jnp.sqrt(y.dot(y))


def _array(q: Quat) -> Array:
    return jnp.stack(jnp.broadcast_arrays(q.w, q.x, q.y, q.z), -1)
