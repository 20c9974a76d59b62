"""MuJoCo's answers for an MJCF model, beside Carom's for the scene that was imported from it.

Coordinates are the same, q is qpos. Velocities differ for free joints only: MuJoCo's are (linear in world axes, angular
in the body's axes), Carom's (angular, linear), both in world axes: qvel = T v, and dT/dt v = 0 (see mujoco_model.py).
"""

# pyright does not see the names of a compiled module
# pyright: reportAttributeAccessIssue=false

import jax
import jax.numpy as jnp
import mujoco
import numpy as np

from carom.engine.dynamics.crba import crba
from carom.engine.dynamics.kinematics import fk
from carom.engine.dynamics.passive import passive_forces
from carom.engine.dynamics.rnea import rnea

FREE, BALL, SLIDE, HINGE = range(4)  # mjtJoint


def random_state(m, rng) -> tuple[np.ndarray, np.ndarray]:
    """q (nq,) and v (nv,), Carom's, of a size that turns everything."""
    q, v = m.qpos0 + rng.normal(size=m.nq), rng.normal(size=m.nv)
    for j in np.flatnonzero(m.jnt_type <= BALL):
        at = m.jnt_qposadr[j] + (3 if m.jnt_type[j] == FREE else 0)
        q[at : at + 4] = rng.normal(size=4)
        q[at : at + 4] /= np.linalg.norm(q[at : at + 4])
    return q, v


def velocity_map(m, q) -> np.ndarray:
    """T (nv, nv)."""
    T = np.eye(m.nv)
    for j in np.flatnonzero(m.jnt_type == FREE):
        at, d = m.jnt_qposadr[j], m.jnt_dofadr[j]
        R = np.empty(9)
        mujoco.mju_quat2Mat(R, q[at + 3 : at + 7])
        T[d : d + 6, d : d + 6] = np.block([[np.zeros((3, 3)), np.eye(3)], [R.reshape(3, 3).T, np.zeros((3, 3))]])
    return T


def theirs(m, model, q, v) -> dict[str, np.ndarray]:
    """Inertia matrix, bias and passive forces in Carom's velocities; frames and centres of mass of moving bodies."""
    m.body_sameframe[:] = 0  # no shortcuts where frames are nearly the same
    data, T = mujoco.MjData(m), velocity_map(m, q)
    data.qpos[:], data.qvel[:] = q, T @ v
    mujoco.mj_forward(m, data)
    M = np.zeros((m.nv, m.nv))
    mujoco.mj_fullM(m, data, M)
    moving, heavy = _moving(m), _heavy(m, model)
    return {
        "inertia": T.T @ M @ T,
        "bias": T.T @ data.qfrc_bias,
        "passive": T.T @ data.qfrc_passive,
        "rotation": data.xmat[moving].reshape(-1, 3, 3),
        "com": data.xipos[heavy],
        "anchor": np.array([_anchor(m, data, b) for b in moving]).reshape(-1, 3),
    }


def ours(m, model, q, v) -> dict[str, np.ndarray]:
    """The same of Carom's model."""
    moving, heavy = _moving(m), _heavy(m, model)
    model, q, v = jax.tree.map(jnp.asarray, (model.replace(loss=0 * model.loss), q, v))  # a constraint to MuJoCo
    with jax.disable_jit():  # operation by operation: compiling takes longer than all the checks
        poses = jax.tree.map(np.asarray, fk(model, q))
        M, b, f = crba(model, q), rnea(model, q, v, jnp.zeros_like(v)), passive_forces(model, q, v)
    link = [_link(m, model, b) for b in moving]
    com = [
        poses.position[k] + poses.rotation[k] @ np.asarray(model.com[k]) for k in (_link(m, model, b) for b in heavy)
    ]
    return {
        "inertia": np.asarray(M),
        "bias": np.asarray(b),
        "passive": np.asarray(f),
        "rotation": poses.rotation[link],
        "com": np.array(com).reshape(-1, 3),
        "anchor": poses.position[link],
    }


def errors(m, model, rng, states: int = 1) -> dict[str, float]:
    """Largest difference of each, relative to its largest entry, over random states.

    Forces are measured by the largest inertia too: at speeds of one that is what they are made of, before it cancels.
    """
    worst: dict[str, float] = {}
    for _ in range(states):
        q, v = random_state(m, rng)
        mine, expected = ours(m, model, q, v), theirs(m, model, q, v)
        for name, wanted in expected.items():
            assert mine[name].shape == wanted.shape, name
            least = np.abs(expected["inertia"]).max() if name in ("bias", "passive") else 1e-6
            error = np.abs(mine[name] - wanted).max(initial=0.0) / np.abs(wanted).max(initial=least)
            worst[name] = max(worst.get(name, 0.0), float(error))
    return worst


def _moving(m) -> list[int]:
    return [b for b in range(m.nbody) if m.body_weldid[b]]


def _heavy(m, model) -> list[int]:
    """Bodies that move and have mass, their own."""
    own = [b for b in _moving(m) if np.isclose(model.mass[_link(m, model, b)], m.body_mass[b], rtol=1e-12)]
    return [b for b in own if m.body_mass[b] > 0]


def _link(m, model, b: int) -> int:
    return model.topology.link(m.body(b).name or f"body {b}")


def _anchor(m, data, b: int) -> np.ndarray:
    """Where the origin of the body's link should be: at the last point that a joint of the body turns about."""
    joints = range(m.body_jntadr[b], m.body_jntadr[b] + m.body_jntnum[b])
    turning = [j for j in joints if m.jnt_type[j] in (BALL, HINGE)]
    # what slides after it turned carries the point along
    if not turning:
        return data.xpos[b]
    return data.xpos[b] + data.xmat[b].reshape(3, 3) @ m.jnt_pos[turning[-1]]
