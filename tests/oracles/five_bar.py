"""Kim's planar five-bar (2012, section 3.1): five revolute joints in a row, the last link welded to the ground.

n = 5 coordinates, m = 3 independent constraints: two motors move it in one way, three can strain against each other.
"""

from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from carom.engine.loops.jacobian import closed
from carom.engine.model import Model
from carom.engine.topology import Loop, Topology
from carom.tests.oracles.random_trees import random_model


class Moving(NamedTuple):
    """A model and a state of motion that obeys its loop: q, v, a (5,)."""

    model: Model
    q: jax.Array
    v: jax.Array
    a: jax.Array


def five_bar(seed: int = 0) -> Moving:
    """Bodies, shape, pose, speed and acceleration are random; joints turn about y. In space the weld has 6 rows."""
    rng = np.random.default_rng(seed)
    topology = Topology(tuple("abcde"), (-1, 0, 1, 2, 3), ("revolute",) * 5, loops=(Loop("fixed", 4, -1),))
    corners = np.array([[0, 0, 0], [-0.3, 0, 0.7], [0.4, 0, 1.3], [1.2, 0, 0.8], [1.0, 0, 0]]) + rng.normal(
        size=(5, 3)
    ) * [0.1, 0, 0.1]
    q = rng.normal(size=5)
    total = np.concatenate([[0], np.cumsum(q)])
    sides = np.diff(corners, axis=0, prepend=np.zeros((1, 3)))
    ends = np.stack([turn(total[5], -corners[4]), np.zeros(3)])
    weld = np.array([[np.cos(total[5] / 2), 0, -np.sin(total[5] / 2), 0], [1, 0, 0, 0]])
    model = replace(
        random_model(rng, topology),
        axis=np.tile([0.0, 1, 0], (5, 1)),
        joint_position=np.stack([turn(angle, side) for angle, side in zip(total, sides, strict=False)]),
        joint_quaternion=np.tile([1.0, 0, 0, 0], (5, 1)),
        loop_position=ends[None],
        loop_quaternion=weld[None],
        loop_size=np.zeros(1),
        loop_course=np.zeros((1, 5)),
        loop_spring=np.zeros((1, 2, 4)),
        loop_stiff=np.zeros((1, 2)),
        loop_damp=np.zeros((1, 2)),
        loop_limits=np.zeros((1, 2, 2)),
        loop_active=np.ones(1),
    )
    model, q = jax.tree.map(jnp.asarray, (model, q))
    A = np.asarray(closed(model, q, 0 * q, 0.0).A)
    free = np.linalg.svd(A)[2][3:].T  # the two ways to move
    v = jnp.asarray(free @ rng.normal(size=2))
    rows = closed(model, q, v, 0.0)
    assert abs(rows.error).max() < 1e-14 > abs(rows.rate).max()
    a = free @ rng.normal(size=2) * 3 - np.linalg.pinv(A, rcond=1e-10) @ rows.bias
    return Moving(model, q, v, jnp.asarray(a))


def turn(angle: float, x: np.ndarray) -> np.ndarray:
    """x (3,) in axes that are turned about y by the angle."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([c * x[0] - s * x[2], x[1], s * x[0] + c * x[2]])
