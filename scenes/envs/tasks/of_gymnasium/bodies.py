"""Quantities of bodies in MuJoCo's form: about the centre of mass of the whole tree, in world axes, angular first."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array

from .....engine.dynamics.kinematics import fk, link_velocities
from .....engine.model import Model
from .....engine.topology import Topology
from ...scene_task import Period
from .files import square


def body_links(topology: Topology) -> np.ndarray:
    """The links that are bodies of the file, in its order; others are the massless links between a body's joints."""
    return np.array([k for k, name in enumerate(topology.names) if "/" not in name])


def center_of_mass(model: Model, q: Array) -> Array:
    """Centre of mass (3,) of all links [m]."""
    at = fk(model, q)
    com = at.position + jnp.einsum("kij,kj->ki", at.rotation, model.com)
    return (model.mass[:, None] * com).sum(0) / model.mass.sum()


def body_inertias(model: Model, q: Array) -> Array:
    """MuJoCo's cinert (bodies, 10): xx, yy, zz, xy, xz, yz [kg m^2], mass times centre of mass (3) [kg m], mass."""
    at, links = fk(model, q), body_links(model.topology)
    R, m = at.rotation[links], model.mass[links]
    d = at.position[links] + jnp.einsum("kij,kj->ki", R, model.com[links]) - center_of_mass(model, q)
    in_world = jnp.einsum("kia,kab,kjb->kij", R, model.inertia[links], R)
    away = (d * d).sum(-1)[:, None, None] * jnp.eye(3, dtype=d.dtype) - d[:, :, None] * d[:, None, :]
    inertia = in_world + m[:, None, None] * away
    rows, columns = (0, 1, 2, 0, 0, 1), (0, 1, 2, 1, 2, 2)
    return jnp.concatenate([inertia[:, rows, columns], m[:, None] * d, m[:, None]], -1)


def body_velocities(model: Model, q: Array, v: Array) -> Array:
    """MuJoCo's cvel (bodies, 6): angular velocity, and velocity of the body's point at the centre of mass."""
    w, u = jnp.split(link_velocities(model, q, v), 2, -1)
    away = center_of_mass(model, q) - fk(model, q).position
    return jnp.concatenate([w, u + jnp.cross(w, away)], -1)[body_links(model.topology)]


def run_terms(
    s: Period, velocity: Array, forward: float, control: float, contact: Array, survive: Array
) -> dict[str, Array]:
    """Gymnasium's terms of a run along x.  velocity: (2,) [m/s].  forward, control: weights of the speed and of the
    actions' squares.  contact: cost of contacts.  survive: reward of the period itself."""
    return {
        "x_position": s.q[0], "y_position": s.q[1], "distance_from_origin": jnp.sqrt(square(s.q[:2])),
        "x_velocity": velocity[0], "y_velocity": velocity[1],
        "reward_forward": forward * velocity[0], "reward_ctrl": -control * square(s.action),
        "reward_contact": -contact, "reward_survive": survive,
    }  # fmt: skip


def run_reward(parts: dict[str, Array]) -> Array:
    """The sum of the terms, as in gymnasium."""
    return parts["reward_forward"] + parts["reward_survive"] + (parts["reward_ctrl"] + parts["reward_contact"])


def contact_wrenches(model: Model, q: Array, report: dict[str, Array], dt: float) -> Array:
    """MuJoCo's cfrc_ext (bodies, 6): moment and force of all contacts, impacts as their mean over the period."""
    wrench = report["contact_forces"] + report["contact_impulses"] / dt
    away = fk(model, q).position - center_of_mass(model, q)
    moment = wrench[:, :3] + jnp.cross(away, wrench[:, 3:])
    return jnp.concatenate([moment, wrench[:, 3:]], -1)[body_links(model.topology)]
