"""gymnasium's own files, if it is installed, and its coordinates.

q is MuJoCo's qpos unchanged. v differs at the root: here a free joint has its angular velocity first and in world
axes, there last and in its own axes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from .....engine.algebra.rotation import Quat
from .....engine.algebra.vec3 import Vec3
from .....integrators.options import Options
from ....formats.mjcf import import_mjcf
from ....formats.report import Imported
from ...scene_task import Period

ROOT_Q, ROOT_V = 7, 6  # coordinates and degrees of freedom of a free root


def options(timestep: float) -> Options:
    """Options with at most MuJoCo's steps [s], and impacts located between them."""
    return Options(max_dt=timestep, scheme="semi_implicit")


@functools.cache
def import_asset(file: str, task: str) -> Imported:
    """The scene of one of gymnasium's files."""
    package = find_spec("gymnasium")
    if package is None or package.origin is None:
        raise ImportError(f"{task} is made from gymnasium's {file}, which is not installed: pip install 'carom[rl,io]'")
    return import_mjcf(Path(package.origin).parent / "envs" / "mujoco" / "assets" / file)


def bounds(file: Imported) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and highest coordinates (nq,) within the joints' limits; a free root has none."""
    low, high = [], []
    for link in file.scene.links:
        joint = link.joint  # type: ignore[union-attr]
        n = {"floating": ROOT_Q, "fixed": 0}.get(joint.kind, 1)
        lower, upper = getattr(joint, "limits", None) or (-np.inf, np.inf)
        low += [lower] * n
        high += [upper] * n
    return np.array(low), np.array(high)


def start(file: Imported, scale: float, *, normal: bool) -> Callable[[Array, Array, Array], tuple[Array, Array]]:
    """Gymnasium's starts: q uniform within +-scale of the file's, v normal or uniform with the scale.

    Departure: q stays within the limits of its joints, which are stiff springs there and rigid here.
    """
    low, high = bounds(file)
    free = file.scene.links[0].joint.kind == "floating"  # type: ignore[union-attr]

    def begin(key: Array, q: Array, v: Array) -> tuple[Array, Array]:
        shift, speed = jax.random.split(key)
        q = q + jax.random.uniform(shift, q.shape, q.dtype, -scale, scale)
        if normal:
            v = v + scale * jax.random.normal(speed, v.shape, v.dtype)
        else:
            v = v + jax.random.uniform(speed, v.shape, v.dtype, -scale, scale)
        q = jnp.clip(q, low.astype(q.dtype), high.astype(q.dtype))
        if not free:
            return q, v
        quaternion = q[3:ROOT_Q] / jnp.sqrt((q[3:ROOT_Q] ** 2).sum())
        q = jnp.concatenate([q[:3], quaternion, q[ROOT_Q:]])
        rotated = Quat.of_array(quaternion).rotate(Vec3(*v[3:ROOT_V]))
        return q, jnp.concatenate([jnp.stack(rotated.xyz), v[:3], v[ROOT_V:]])

    return begin


def qvel(s: Period) -> Array:
    """MuJoCo's qvel (nv,), for a scene with a free root."""
    rotated = Quat.of_array(s.q[3:ROOT_Q]).conjugate().rotate(Vec3(*s.v[:3]))
    return jnp.concatenate([s.v[3:ROOT_V], jnp.stack(rotated.xyz), s.v[ROOT_V:]])


def square(x: Array) -> Array:
    """The sum of squares."""
    return (x * x).sum()


def finite(s: Period) -> Array:
    return jnp.isfinite(s.q).all() & jnp.isfinite(s.v).all()
