"""Model: the constants of a scene, a static topology and parameters as arrays.

The topology is hashable plain data: two scenes that differ only in numbers share one compiled
program. Every parameter may carry leading batch axes (one value per lane); `Model.base_ndim` says
how many trailing axes a parameter has of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

import jax
from jax import Array

from .display import Row, count, counts, display_as, lanes_text, names, numbers
from .parameters import AXES, COMBINED, check_limits, check_parameter, gripped_dofs, is_array, pair_numbers, unread
from .shaped import Float
from .topology import Topology


def _describe(model: Model) -> tuple[str, list[Row]]:
    topology = model.topology
    shapes = {name: x.shape for name, x in model.parameters.items() if is_array(x)}
    lanes = {shape[: len(shape) - len(AXES[name])] for name, shape in shapes.items()} - {()}
    sizes = count(topology.n_links, "link"), count(topology.nv, "degree") + " of freedom"
    sizes += count(len(topology.shape_kinds), "shape"), count(len(topology.pairs), "pair") + " that may touch"
    rows = [("links", names(topology.names)), ("joints", counts(topology.joints))]
    rows += [("shapes", counts(topology.shape_kinds))] if topology.shape_kinds else []
    if topology.loops:
        rows += [("loops", f"{counts(loop.kind for loop in topology.loops)}, held by {topology.hold}")]
    own = [name for name, shape in shapes.items() if len(shape) > len(AXES[name])]
    rows += [("by lane", names(own))] if own else []
    return ", ".join(sizes) + lanes_text(max(lanes, default=())), [*rows, ("gravity [m/s^2]", numbers(model.gravity))]


@display_as(_describe)
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Model:
    """A scene ready to run. nl links, nv degrees of freedom, ns shapes, np pairs.

    Links (frame of the link unless said otherwise):
        mass [kg]; com [m]; inertia: about the centre of mass, link axes [kg m^2].
    Joints (joint frame in the parent's frame; the axes in the joint frame):
        joint_position [m]; joint_quaternion w x y z, unit; axis, unit;
        axis2, unit: second axis of a universal, x axis of a planar joint; pitch [m/rad].
    Degrees of freedom:
        armature: rotor inertia reflected to the joint [kg m^2, kg]; damping [N m s/rad, N s/m];
        loss: Coulomb friction [N m, N]; stiffness [N m/rad, N/m] and rest of the spring;
        motor_gain, motor_kp, motor_kd, motor_effort, motor_target: the motor's torque is
        clip(gain u - kp q - kd v, -effort, effort) with u the control, or the target without a control. If gain and kd
        are infinite the motor is rigid: v is u as long as that takes no more than the effort;
        lower, upper: limits, -inf and inf for none [rad, m]; limit_restitution.
    World: gravity [m/s^2]; gap_band [m, rad]: largest gap that counts as touching; rest_speed [m/s, rad/s]:
        contacts that close more slowly than this rest and do not bounce.
    Shapes (pose in the link's frame):
        shape_size [m], by kind: sphere (r, 0, 0), box half extents, capsule and cylinder
        (r, half length, 0), ellipsoid radii, plane zeros (normal is the pose's z axis);
        shape_position [m]; shape_quaternion;
        friction, restitution, tangential_restitution: a run reads those of the pairs, which `replace`
        combines from these;
        points: vertices of hulls and meshes, all shapes end to end [m];
        shape_twist: angular velocity and velocity of the shape's origin, world axes, of statics whose
        surfaces move in place, as those of conveyors and turntables [rad/s, m/s].
    Loops (nk of them, see `engine/loops/kinds.py`; axes of both frames coincide when the joint is at zero):
        loop_position [m], loop_quaternion: frames on a and on b;
        loop_size: length, radius or ratio;  loop_course: offset, rate, amplitude, frequency, phase of
        the target of a distance, gear or drive: offset + rate t + amplitude sin(2 pi frequency t + phase);
        loop_spring: stiffness, rest, damping and constant force along up to two coordinates;
        loop_stiff, loop_damp: of the penalty, for translations and rotations [N/m, N m; N s/m, N m s];
        loop_limits: (lower, upper) of up to two coordinates, held by penalty;
        loop_active: 1 if a loop that can be switched holds, 0 if it is cut.
        baumgarte [1/s]: rate at which errors are fed back.
    Pairs: pair_friction, pair_restitution, pair_tangential_restitution: without a rule
        the geometric mean of the shapes' friction, and the smaller restitutions; pair_touches: 1 for a pair that
        may touch now, 0 for others, in scenes that filter their pairs, else empty.
    Sites: site_position [m] and site_quaternion: named frames, in their links' frames.
    """

    topology: Topology = field(metadata={"static": True})
    mass: Float[Array, "*#batch nl"]
    com: Float[Array, "*#batch nl 3"]
    inertia: Float[Array, "*#batch nl 3 3"]
    joint_position: Float[Array, "*#batch nl 3"]
    joint_quaternion: Float[Array, "*#batch nl 4"]
    axis: Float[Array, "*#batch nl 3"]
    axis2: Float[Array, "*#batch nl 3"]
    pitch: Float[Array, "*#batch nl"]
    armature: Float[Array, "*#batch nv"]
    damping: Float[Array, "*#batch nv"]
    loss: Float[Array, "*#batch nv"]
    stiffness: Float[Array, "*#batch nv"]
    rest: Float[Array, "*#batch nv"]
    motor_gain: Float[Array, "*#batch nv"]
    motor_kp: Float[Array, "*#batch nv"]
    motor_kd: Float[Array, "*#batch nv"]
    motor_effort: Float[Array, "*#batch nv"]
    motor_target: Float[Array, "*#batch nv"]
    lower: Float[Array, "*#batch nv"]
    upper: Float[Array, "*#batch nv"]
    limit_restitution: Float[Array, "*#batch nv"]
    gravity: Float[Array, "*#batch 3"]
    gap_band: Float[Array, "*#batch"]
    rest_speed: Float[Array, "*#batch"]
    shape_size: Float[Array, "*#batch ns 3"]
    shape_position: Float[Array, "*#batch ns 3"]
    shape_quaternion: Float[Array, "*#batch ns 4"]
    friction: Float[Array, "*#batch ns"]
    restitution: Float[Array, "*#batch ns"]
    tangential_restitution: Float[Array, "*#batch ns"]
    points: Float[Array, "*#batch m 3"]
    shape_twist: Float[Array, "*#batch ns 6"]
    pair_friction: Float[Array, "*#batch np"]
    pair_restitution: Float[Array, "*#batch np"]
    pair_tangential_restitution: Float[Array, "*#batch np"]
    pair_touches: Float[Array, "*#batch filtered"]
    loop_position: Float[Array, "*#batch nk 2 3"]
    loop_quaternion: Float[Array, "*#batch nk 2 4"]
    loop_size: Float[Array, "*#batch nk"]
    loop_course: Float[Array, "*#batch nk 5"]
    loop_spring: Float[Array, "*#batch nk 2 4"]
    loop_stiff: Float[Array, "*#batch nk 2"]
    loop_damp: Float[Array, "*#batch nk 2"]
    loop_limits: Float[Array, "*#batch nk 2 2"]
    loop_active: Float[Array, "*#batch nk"]
    baumgarte: Float[Array, "*#batch"]
    site_position: Float[Array, "*#batch nf 3"]
    site_quaternion: Float[Array, "*#batch nf 4"]

    def replace(self, **changes: Any) -> Model:
        """Return a copy with some parameters changed, e.g. `model.replace(mass=masses)`, masses (nl,) or (lanes, nl).

        friction, restitution and tangential_restitution of shapes change those of their pairs; pairs that have a rule
        between materials keep the rule's numbers. Raises ValueError for an array of the wrong shape, for a
        nan, a negative mass, damping or friction, a restitution above 1, an axis or a quaternion whose length is not 1,
        an inertia that is not symmetric or has a negative moment, a lower limit above the upper one, and for a
        parameter that no joint, shape or loop of the model reads. Inside jit, values are not checked.
        """
        known = {f.name for f in fields(self)}
        for name in changes:
            if name not in known:
                raise ValueError(f"Model has no parameter {name!r}; it has {', '.join(sorted(known))}")
        topology = changes.get("topology", self.topology)
        for name in changes.keys() - {"topology"}:
            changes[name] = check_parameter(name, changes[name], getattr(self, name), topology)
            if topology is self.topology and (reason := unread(name, topology)):
                raise ValueError(f"Model.replace: {name} would change nothing: {reason}")
        for name in COMBINED.keys() & changes.keys():
            if (own := f"pair_{name}") not in changes:
                changes[own] = pair_numbers(name, changes[name], getattr(self, own), topology)
        changed = replace(self, **changes)
        if changes.keys() & {"lower", "upper"}:
            check_limits(changed.lower, changed.upper)
        grips = gripped_dofs(topology, changed.loss, changed.motor_kd, changes.keys())
        return changed if grips == topology.gripped else replace(changed, topology=replace(topology, gripped=grips))

    @property
    def parameters(self) -> dict[str, Array]:
        """The parameters' arrays by name."""
        return {name: x for name, x in vars(self).items() if name != "topology"}

    @staticmethod
    def base_ndim(name: str) -> int:
        """Number of trailing axes of the parameter when it is not batched."""
        return len(AXES[name])
