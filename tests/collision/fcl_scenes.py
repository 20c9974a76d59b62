"""Scenes of two shapes, poses of shapes, and the FCL backend asked about coordinates q."""

import jax.numpy as jnp
import numpy as np

import carom
from carom.collision.fcl_backend import fcl_proximities
from carom.engine.algebra.rotation import Quat


def two(a, b, position_a=(0, 0, 0), position_b=(0, 0, 0), quaternion_a=(1, 0, 0, 0), quaternion_b=(1, 0, 0, 0), **how):
    """Model and q of two bodies with a shape each; quaternions of any length."""
    builder = carom.SceneBuilder()
    for name, shape, p, turn in (("a", a, position_a, quaternion_a), ("b", b, position_b, quaternion_b)):
        turn = np.asarray(turn, float)
        builder.add_body(name, [shape], mass=1.0, position=p, quaternion=turn / np.linalg.norm(turn))
    model, state = carom.compile_scene(builder.build(), **how)
    return model, state.q


def random_q(rng, lanes, spread):
    """(lanes, 14): the first body near the origin, the second up to `spread` [m] away, both turned anyhow."""
    q = rng.normal(size=(lanes, 14))
    q[:, :3] *= 0.1
    q[:, 7:10] *= rng.uniform(0, spread, (lanes, 1)) / np.linalg.norm(q[:, 7:10], axis=1, keepdims=True)
    for at in (3, 10):
        q[:, at : at + 4] /= np.linalg.norm(q[:, at : at + 4], axis=1, keepdims=True)
    return q


def shape_poses(model, q):
    """Positions (..., ns, 3) and rotations (..., ns, 3, 3) of the shapes in the world."""
    poses = carom.fk(model, jnp.asarray(q))
    lead = poses.position.shape[:-2]
    # the world's own pose in the last row, where link -1 finds it
    p = jnp.concatenate([poses.position, jnp.zeros((*lead, 1, 3), q.dtype)], -2)
    R = jnp.concatenate([poses.rotation, jnp.broadcast_to(jnp.eye(3, dtype=q.dtype), (*lead, 1, 3, 3))], -3)
    links = np.array(model.topology.shape_links)
    M = Quat.of_array(model.shape_quaternion).matrix()
    rows = [[M.xx, M.xy, M.xz], [M.yx, M.yy, M.yz], [M.zx, M.zy, M.zz]]
    local = jnp.stack([jnp.stack(row, -1) for row in rows], -2)
    at = jnp.einsum("...ij,...j->...i", R[..., links, :, :], model.shape_position)
    return p[..., links, :] + at, R[..., links, :, :] @ local


def detect(model, q, margin=np.inf):
    return fcl_proximities(model, *shape_poses(model, q), margin)
