"""Readings of the sensors of a scene: at an instant, from its state, or summed over the time between frames.

An accelerometer measures the change of its velocity less that by gravity; a joint's sensor measures the wrench that its
link needs less that of contacts (`quantities.py`). The effect of impacts is summed separately.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from ...collision.queries.rays import cast_rays
from ...contact.impulses import ContactImpulses
from ...engine.algebra.rotation import Quat
from ...engine.algebra.vec3 import Mat3
from ...engine.dynamics import wrenches
from ...engine.dynamics.kinematics import fk
from ...engine.dynamics.rnea import rnea
from ...engine.dynamics.sites import site_poses, site_velocities
from ...engine.model import Model
from ...engine.sensors import KINDS, Sensor
from ...engine.topology import Topology
from .quantities import joint_forces, joint_impulse, lanes_first
from .step_summary import StepSummary, VelocityJump, weightless


def summed_sensors(topology: Topology) -> tuple[Sensor, ...]:
    """Return the sensors that are summed over the time between frames."""
    return tuple(sensor for sensor in topology.sensors if KINDS[sensor.kind].sums)


def size(sensor: Sensor, topology: Topology) -> int:
    """Return the number of values of a reading."""
    if KINDS[sensor.kind].at == "joint":
        start = topology.q_start if sensor.kind == "joint_position" else topology.v_start
        return start[sensor.link + 1] - start[sensor.link]
    return KINDS[sensor.kind].size or len(sensor.rays)


def width(topology: Topology) -> int:
    """Return the number of values of all sensors that are summed."""
    return sum(size(sensor, topology) for sensor in summed_sensors(topology))


def of_step(model: Model, step: StepSummary) -> Array:
    """Return the contribution (*batch, width) of the smooth part of a step to each sensor."""
    kinds = {sensor.kind for sensor in summed_sensors(model.topology)}
    felt = wrench = efforts = None
    if "accelerometer" in kinds:
        change = site_velocities(model, step.after.q, step.ended) - site_velocities(model, step.before.q, step.began)
        felt = change[..., 3:] - (model.gravity * step.h[..., None])[..., None, :]
    if kinds & {"force", "torque"}:
        wrench = joint_forces(model, step)
    if "joint_effort" in kinds:
        h = step.h[..., None]
        part = jnp.where(h > 0, h, 1)
        tau = rnea(model, step.q, step.v, (step.ended - step.began) / part) * h
        efforts = tau - wrenches.joint_forces(model, step.q, lanes_first(step.rest.links) + step.loops.links)
    return _columns(model, step.q, felt, wrench, efforts, step.rest)


def of_jumps(model: Model, step: StepSummary) -> Array:
    """Return the contribution (*batch, width) of a step's impacts to each sensor."""
    return functools.reduce(jnp.add, [_of_jump(model, jump) for jump in step.jumps])


def _of_jump(model: Model, jump: VelocityJump) -> Array:
    kinds = {sensor.kind for sensor in summed_sensors(model.topology)}
    felt = wrench = efforts = None
    if "accelerometer" in kinds:
        felt = site_velocities(model, jump.q, jump.dv)[..., 3:]
    if kinds & {"force", "torque"}:
        wrench = joint_impulse(model, jump)
    if "joint_effort" in kinds:
        tau = rnea(weightless(model), jump.q, jnp.zeros_like(jump.dv), jump.dv)
        efforts = tau - wrenches.joint_forces(model, jump.q, lanes_first(jump.impulses.links) + jump.loops.links)
    return _columns(model, jump.q, felt, wrench, efforts, jump.impulses)


def _columns(model: Model, q: Array, felt: Any, wrench: Any, efforts: Any, pushed: ContactImpulses) -> Array:
    """Concatenate the readings.

    felt: (*batch, nf, 3) at sites, world axes.  wrench: (*batch, nl, 6) through joints.  efforts: (*batch, nv).
    """
    topology, columns = model.topology, []
    poses, origins = (site_poses(model, q), fk(model, q).position) if topology.sites else (None, None)
    for sensor in summed_sensors(topology):
        if sensor.kind == "joint_effort":
            columns.append(efforts[..., topology.v_start[sensor.link] : topology.v_start[sensor.link + 1]])
        elif sensor.kind in ("touch", "contact"):
            columns.append(_normal(topology, sensor, pushed)[..., None])
        else:
            assert poses is not None
            assert origins is not None
            link, R = topology.sites[sensor.site].link, poses.rotation[..., sensor.site, :, :]
            if sensor.kind == "accelerometer":
                x = felt[..., sensor.site, :]
            else:
                x = wrench[..., link, 3:]
                if sensor.kind == "torque":
                    arm = poses.position[..., sensor.site, :] - origins[..., link, :]
                    x = wrench[..., link, :3] - jnp.cross(arm, x)
            columns.append((R * x[..., :, None]).sum(-2))  # in the site's axes
    return jnp.concatenate(columns, -1)


def _normal(topology: Topology, sensor: Sensor, pushed: ContactImpulses) -> Array:
    """Return the sum (*batch) of the normal impulses of the pairs that a sensor measures."""
    links = topology.shape_links
    bodies = [(links[i], links[j]) for i, j in topology.pairs]
    mine = [sensor.link in pair and (sensor.other is None or sensor.other in pair) for pair in bodies]
    if sensor.link == sensor.other:
        mine = [False] * len(mine)
    weights = jnp.array(mine, pushed.normals.dtype).reshape(-1, *(1,) * (pushed.normals.ndim - 1))
    return (pushed.normals * weights).sum(0)


def readings_by_name(sensor: Sensor, means: Array, sums: Array) -> dict[str, Array]:
    """Return readings by name, from the mean (..., k) of the smooth part and the sum (..., k) over impacts."""
    if not KINDS[sensor.kind].impulsive:
        return {sensor.name: jnp.where(jnp.isnan(means), means, (means != 0) | (sums != 0))}
    return {sensor.name: means, f"{sensor.name}.impulse": sums}


@jax.jit
def at_instant(model: Model, q: Array, v: Array) -> dict[str, Array]:
    """Return the readings (..., k) of all other sensors by name, at the state q (..., nq), v (..., nv)."""
    topology = model.topology
    others = [sensor for sensor in topology.sensors if not KINDS[sensor.kind].sums]
    readings: dict[str, Array] = {}
    poses = site_poses(model, q) if topology.sites else None
    V = site_velocities(model, q, v) if topology.sites else None
    for sensor in others:
        if KINDS[sensor.kind].at == "joint":
            x, start = (q, topology.q_start) if sensor.kind == "joint_position" else (v, topology.v_start)
            readings[sensor.name] = x[..., start[sensor.link] : start[sensor.link + 1]]
            continue
        assert poses is not None
        assert V is not None
        position, R = poses.position[..., sensor.site, :], poses.rotation[..., sensor.site, :, :]
        w, u = V[..., sensor.site, :3], V[..., sensor.site, 3:]
        inside = lambda x, R=R: (R * x[..., :, None]).sum(-2)  # noqa: E731
        match sensor.kind:
            case "position":
                readings[sensor.name] = position
            case "orientation":
                quaternion = Quat.from_matrix(Mat3(*(R[..., i, j] for i in range(3) for j in range(3))))
                x = jnp.stack([quaternion.w, quaternion.x, quaternion.y, quaternion.z], -1)
                readings[sensor.name] = jnp.where(x[..., :1] < 0, -x, x)
            case "linear_velocity" | "angular_velocity":
                readings[sensor.name] = u if sensor.kind == "linear_velocity" else w
            case "velocimeter" | "gyro":
                readings[sensor.name] = inside(u if sensor.kind == "velocimeter" else w)
            case _:
                readings[sensor.name] = _ranges(model, sensor, q, position, R)
    return readings


def _ranges(model: Model, sensor: Sensor, q: Array, position: Array, R: Array) -> Array:
    """Return the distance (..., R) at which each ray hits a shape [m], -1 if it hits none."""
    topology = model.topology
    rays = jnp.array(sensor.rays, q.dtype)
    directions = (R[..., None, :, :] * rays[:, None, :]).sum(-1)
    origins = jnp.broadcast_to(position[..., None, :], directions.shape)
    among = jnp.array([link != topology.sites[sensor.site].link for link in topology.shape_links], bool)
    hits = cast_rays(model, q, origins, directions, max_distance=sensor.reach, among=among)
    return jnp.where(jnp.isfinite(hits.distance), hits.distance, -1)
