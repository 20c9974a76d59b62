"""rapier3d's world of a scene: free bodies, trees with reduced coordinates, planes."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from scipy.spatial.transform import Rotation

from .peers import materials, mutual, record_states


class RapierWorld:
    """rapier3d's step of the same scenes, one thread, bodies kept awake.

    Joints are in reduced coordinates, which hold as exactly as Carom's and MuJoCo's. Its joints by impulses are faster
    (a ragdoll's step 5 times), but drift apart and have no armature.
    """

    def __init__(self, model: Any, h: float) -> None:
        self.model, self.h = jax.tree.map(lambda x: np.array(x, np.float64), model), h

    def start(self, q: np.ndarray, v: np.ndarray) -> None:
        """Set the state; `run` starts with a copy of it."""
        import rapier3d as rapier

        self.world, self.handles = _rapier_world(rapier, self.model, self.h, q, v)
        self.copy, self.restore = self.world.snapshot(), rapier.PhysicsWorld.restore

    def run(self, steps: int) -> None:
        """Run a number of steps from the start."""
        self.world = self.restore(self.copy)
        self.world.set_num_threads(1)
        self.advance(steps)

    def advance(self, steps: int) -> None:
        """Run a number of further steps."""
        step = self.world.step
        for _ in range(steps):
            step()

    def trajectory(self, steps: int) -> tuple[np.ndarray, np.ndarray]:
        """Return coordinates (steps + 1, nq) and velocities (steps + 1, nv) from the start."""
        return record_states(self, steps)

    def state(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the present q (nq,) and v (nv,), from the bodies' poses and velocities."""
        model, topology = self.model, self.model.topology
        q, v = np.zeros(topology.nq), np.zeros(topology.nv)
        rotations, spins = [Rotation.identity()], [np.zeros(3)]  # of the links; the world is last
        for link, (joint, parent) in enumerate(zip(topology.joints, topology.parents, strict=True)):
            body = self.world.rigid_bodies[self.handles[link]]
            r = body.rotation
            rotation, spin = Rotation.from_quat((r.i, r.j, r.k, r.w)), _xyz(body.angvel)
            frame = Rotation.from_quat(model.joint_quaternion[link], scalar_first=True)
            relative, own = (rotations[parent] * frame).inv() * rotation, rotation.inv().apply(spin - spins[parent])
            at, dof = topology.q_start[link], topology.v_start[link]
            if joint == "floating":
                q[at : at + 3], q[at + 3 : at + 7] = _xyz(body.translation), rotation.as_quat(scalar_first=True)
                arm = rotation.apply(model.com[link])
                v[dof : dof + 6] = *spin, *(_xyz(body.linvel) - np.cross(spin, arm))
            elif joint == "spherical":
                q[at : at + 4], v[dof : dof + 3] = relative.as_quat(scalar_first=True), own
            else:
                q[at], v[dof] = relative.as_rotvec() @ model.axis[link], own @ model.axis[link]
            rotations.insert(-1, rotation)
            spins.insert(-1, spin)
        return q, v


def _rapier_world(rapier: Any, model: Any, h: float, q: np.ndarray, v: np.ndarray) -> tuple[Any, list[Any]]:
    """Return a world of a model (numpy, f64) in a state q (nq,), v (nv,), and the handles of its links' bodies."""
    topology, world = model.topology, rapier.PhysicsWorld(gravity=_floats(model.gravity))
    world.integration_parameters.dt = h
    shapes: dict[int, list[Any]] = {link: [] for link in range(-1, topology.n_links)}
    for shape, (link, own) in enumerate(zip(topology.shape_links, materials(model), strict=True)):
        shapes[link].append(_collider(rapier, model, shape, own))
    for plane in shapes[-1]:
        world.add_collider(plane)
    ground, handles = world.add_body(rapier.RigidBody.fixed()), []
    for link, joint in enumerate(topology.joints):
        moments, axes = np.linalg.eigh(model.inertia[link])
        axes = axes * np.linalg.det(axes)  # right-handed
        rotation = Rotation.from_matrix(axes).as_quat(scalar_first=True)
        weight = rapier.MassProperties(
            _floats(model.com[link]), float(model.mass[link]), _floats(moments), rapier.Rotation3(*_floats(rotation))
        )
        body = rapier.RigidBody.dynamic().can_sleep(False).additional_mass_properties(weight)
        at, dof = topology.q_start[link], topology.v_start[link]
        if joint == "floating":
            p, rotation, spin = q[at : at + 3], q[at + 3 : at + 7], v[dof : dof + 3]
            arm = Rotation.from_quat(rotation, scalar_first=True).apply(model.com[link])
            velocity = v[dof + 3 : dof + 6] + np.cross(spin, arm)
            body = body.position(_pose(rapier, p, rotation)).angvel(_floats(spin)).linvel(_floats(velocity))
        handles.append(world.add_body(body, shapes[link]))
        if joint != "floating":
            parent = topology.parents[link]
            below = ground if parent < 0 else handles[parent]
            world.multibody_joints.insert(below, handles[-1], _joint(rapier, model, link))
    _set_joints(world, model, handles, q, v)
    return world, handles


def _set_joints(world: Any, model: Any, handles: list[Any], q: np.ndarray, v: np.ndarray) -> None:
    """Set coordinates, velocities, armature and damping of the joints of bodies that have some."""
    topology = model.topology
    for link, joint in enumerate(topology.joints):
        if (where := world.multibody_joints.rigid_body_link(handles[link])) is None:
            continue  # a free body
        tree, dof = world.multibody_joints.get_multibody(where.multibody), topology.v_start[link]
        own = tree.get_link(where.id)
        here = slice(dof, topology.v_start[link + 1])
        values = {"armature": model.armature[here], "damping": model.damping[here], "generalized_velocity": v[here]}
        if joint == "floating":
            values["generalized_velocity"] = v[[dof + k for k in (3, 4, 5, 0, 1, 2)]]
        else:
            displacements = np.zeros(tree.ndofs)
            coordinate = q[topology.q_start[link] : topology.q_start[link + 1]]
            rotation = (
                Rotation.from_quat(coordinate, scalar_first=True).as_rotvec() if joint == "spherical" else coordinate
            )
            displacements[own.assembly_id : own.assembly_id + own.ndofs] = rotation
            tree.apply_displacements(displacements.tolist())
        for name, numbers in values.items():
            whole = getattr(tree, name)()
            whole[own.assembly_id : own.assembly_id + own.ndofs] = numbers.tolist()
            getattr(tree, f"set_{name}")(whole)
        tree.forward_kinematics(world.rigid_bodies, True)
        tree.update_rigid_bodies(world.rigid_bodies, True)


def _joint(rapier: Any, model: Any, link: int) -> Any:
    """Return a link's joint; the axis of a revolute one is the x axis of both of its frames."""
    joint = model.topology.joints[link]
    mask, along = rapier.JointAxesMask, Rotation.identity()
    if joint == "revolute":
        along = Rotation.align_vectors(model.axis[link][None], [[1.0, 0.0, 0.0]])[0]
    frame = Rotation.from_quat(model.joint_quaternion[link], scalar_first=True) * along
    locked = {"revolute": mask.LOCKED_REVOLUTE_AXES, "spherical": mask.LOCKED_SPHERICAL_AXES}[joint]
    made = rapier.GenericJoint.builder(locked)
    made = made.local_frame1(_pose(rapier, model.joint_position[link], frame.as_quat(scalar_first=True)))
    made = made.local_frame2(_pose(rapier, np.zeros(3), along.as_quat(scalar_first=True)))
    dof = model.topology.v_start[link]
    if np.isfinite(model.lower[dof]):
        made = made.limits(rapier.JointAxis.ANG_X, float(model.lower[dof]), float(model.upper[dof]))
    return made.build()


def _collider(rapier: Any, model: Any, shape: int, rubs: tuple[float, float]) -> Any:
    kind, size = model.topology.shape_kinds[shape], model.shape_size[shape].tolist()
    pose = _pose(rapier, model.shape_position[shape], model.shape_quaternion[shape])
    if kind == "plane":
        rule = rapier.CoefficientCombineRule
        made = rapier.Collider.halfspace(pose.transform_vector((0.0, 0.0, 1.0))).translation(pose.translation)
        made = made.friction_combine_rule(rule.MAX).restitution_combine_rule(rule.MIN)
    else:
        if kind == "sphere":
            made = rapier.Collider.ball(size[0])
        elif kind == "capsule":
            made = rapier.Collider.capsule_z(size[1], size[0])
        else:
            made = rapier.Collider.cuboid(*size)
        moving, all_groups = rapier.Group.GROUP_0, rapier.Group.ALL
        groups = rapier.InteractionGroups(moving, all_groups if mutual(model.topology) else ~moving)
        made = made.position(pose).density(0.0).collision_groups(groups)
    return made.friction(rubs[0]).restitution(rubs[1])


def _pose(rapier: Any, p: np.ndarray, rotation: np.ndarray) -> Any:
    return rapier.Isometry3(_floats(p), rapier.Rotation3(*_floats(rotation)))


def _floats(x: np.ndarray) -> tuple[float, ...]:
    return tuple(float(number) for number in x)


def _xyz(x: Any) -> np.ndarray:
    return np.array([x.x, x.y, x.z])
