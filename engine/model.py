"""Model: what does not change while time passes. Static topology, and parameters as arrays.

The topology is hashable plain data: two scenes that differ only in numbers share one compiled
program. Every parameter may carry leading batch axes (one value per lane); `Model.base_ndim` says
how many trailing axes a parameter has of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import jax
from jax import Array

from .display import Row, count, counts, lanes_text, names, numbers, shown
from .joints import JOINTS
from .parameters import AXES, COMBINED, checked, gripped, is_array, pair_numbers, unread


@dataclass(frozen=True)
class Group:
    """Links of equal depth and joint type: one vectorised kernel call.

    joint: key of JOINTS.  links: link indices, (n,).  depth: joints between the link and the world, less one.
    parents: parent of each link (-1: the world).
    """

    joint: str
    depth: int
    links: tuple[int, ...]
    parents: tuple[int, ...]

    @property
    def n(self) -> int:
        return len(self.links)


@dataclass(frozen=True)
class Loop:
    """What ties two links together besides the tree: a joint that closes a loop, a relation, or a spring.

    kind: key of `engine.loops.kinds.KINDS`.  a, b: the links, -1 is the world.
    dofs: the degrees of freedom of a gear (a's, b's) and of a drive (a's, -1); else ().
    course: a function of time added to `Model.loop_course`, None for none; it must be made of jnp's functions.
    acts: whether it has a spring, a damper, a constant force or limits.
    """

    kind: str
    a: int
    b: int
    dofs: tuple[int, ...] = ()
    course: Callable[[Any], Any] | None = None
    acts: bool = False


@dataclass(frozen=True)
class Topology:
    """The static half of a model: integers and names only, hashed by content.

    names: of the links.  parents: parent of each link, smaller than its own index; -1 is the world.
    joints: joint type of each link, keys of `engine.joints.JOINTS`.
    shape_kinds, shape_links: kind of each shape and the link that carries it (-1: the world).
    shape_points: slice (start, stop) of `Model.points` owned by each shape (hulls, meshes, heightfields).
    shape_faces: outlines of each hull's faces: its points' numbers, counter-clockwise seen from outside.
    shape_grid: (rows, columns) of each heightfield, (0, 0) of other shapes.
    shape_window: rows and columns of a heightfield's cells that are looked at about a body, (0, 0) of other shapes.
    pairs: (shape, shape) that may touch, each once, smaller index first.
    ruled: pairs whose friction, restitution and tangential restitution are those of a rule between materials: three
    tuples of their rows in `pairs`.
    driven: whether some static's surface moves, see `Model.shape_twist`.
    gripped: degrees of freedom with Coulomb loss, and those with a rigid motor (`Model.motor_kd` infinite): what may
    hold a joint. `Model.replace` keeps it.
    loops: see `Loop`.  hold: how they are held: "projection" (exact, drift taken off after each step), "baumgarte"
    (exact, drift fed back) or "penalty" (stiff springs).
    """

    names: tuple[str, ...]
    parents: tuple[int, ...]
    joints: tuple[str, ...]
    shape_kinds: tuple[str, ...] = ()
    shape_links: tuple[int, ...] = ()
    shape_points: tuple[tuple[int, int], ...] = ()
    shape_faces: tuple[tuple[tuple[int, ...], ...], ...] = ()
    shape_grid: tuple[tuple[int, int], ...] = ()
    shape_window: tuple[tuple[int, int], ...] = ()
    pairs: tuple[tuple[int, int], ...] = ()
    ruled: tuple[tuple[int, ...], ...] = ((), (), ())
    driven: bool = False
    gripped: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    loops: tuple[Loop, ...] = ()
    hold: str = "projection"

    def __hash__(self) -> int:
        return self._hash  # a thousand bodies have half a million pairs, and every jitted call asks

    @cached_property
    def _hash(self) -> int:
        return hash(tuple(getattr(self, f.name) for f in fields(self)))

    @property
    def n_links(self) -> int:
        return len(self.parents)

    @cached_property
    def q_start(self) -> tuple[int, ...]:
        """First coordinate of each link, and nq at the end."""
        return _running_sum(JOINTS[j].nq for j in self.joints)

    @cached_property
    def v_start(self) -> tuple[int, ...]:
        """First degree of freedom of each link, and nv at the end."""
        return _running_sum(JOINTS[j].nv for j in self.joints)

    @property
    def nq(self) -> int:
        return self.q_start[-1]

    @property
    def nv(self) -> int:
        return self.v_start[-1]

    @cached_property
    def depth(self) -> tuple[int, ...]:
        depth: list[int] = []
        for parent in self.parents:
            depth.append(0 if parent < 0 else depth[parent] + 1)
        return tuple(depth)

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Groups by (depth, joint type), parents first; rows ordered as their parents are.

        That order makes most children's rows equal to their parents' rows, so that a parent's value is
        found by position, without a gather.
        """
        place: dict[int, tuple[int, int]] = {-1: (-1, 0)}
        groups: list[Group] = []
        for depth in range(max(self.depth, default=-1) + 1):
            level = [i for i, d in enumerate(self.depth) if d == depth]
            level.sort(key=lambda i: (place[self.parents[i]], i))
            for joint in sorted({self.joints[i] for i in level}):
                links = tuple(i for i in level if self.joints[i] == joint)
                for row, i in enumerate(links):
                    place[i] = (len(groups), row)
                parents = tuple(self.parents[i] for i in links)
                groups.append(Group(joint, depth, links, parents))
        return tuple(groups)

    @cached_property
    def place(self) -> tuple[tuple[int, int], ...]:
        """(group, row) of each link."""
        where = {i: (g, row) for g, group in enumerate(self.groups) for row, i in enumerate(group.links)}
        return tuple(where[i] for i in range(self.n_links))

    def ancestors(self, link: int) -> tuple[int, ...]:
        """The link itself and all links between it and the world, from the link down to the root."""
        chain: list[int] = []
        while link >= 0:
            chain.append(link)
            link = self.parents[link]
        return tuple(chain)

    def link(self, name: str | int) -> int:
        """Index of a link given by name or by index; -1 and 'world' are the world."""
        if name in ("world", -1):
            return -1
        if isinstance(name, str):
            if name not in self.names:
                raise ValueError(f"no link named {name!r}; the links are {', '.join(self.names)}")
            return self.names.index(name)
        if not -1 <= name < self.n_links:
            raise ValueError(f"link index {name} is outside 0..{self.n_links - 1}")
        return int(name)


def _described(model: Model) -> tuple[str, list[Row]]:
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


@shown(_described)
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Model:
    """A scene ready to run. nl links, nv degrees of freedom, ns shapes, np pairs.

    Links (frame of the link unless said otherwise):
        mass (nl,) [kg]; com (nl, 3) [m]; inertia (nl, 3, 3) about the centre of mass, link axes [kg m^2].
    Joints (joint frame in the parent's frame; the axes in the joint frame):
        joint_position (nl, 3) [m]; joint_quaternion (nl, 4) w x y z, unit; axis (nl, 3) unit;
        axis2 (nl, 3) unit: second axis of a universal, x axis of a planar joint; pitch (nl,) [m/rad].
    Degrees of freedom:
        armature (nv,) rotor inertia reflected to the joint [kg m^2, kg]; damping (nv,) [N m s/rad, N s/m];
        loss (nv,) Coulomb friction [N m, N]; stiffness (nv,) [N m/rad, N/m] and rest (nv,) of the spring;
        motor_gain, motor_kp, motor_kd, motor_effort, motor_target (nv,): the motor's torque is
        clip(gain u - kp q - kd v, -effort, effort) with u the control, or the target where none is given. Where gain
        and kd are infinite the motor is rigid: v is u as long as that takes no more than the effort;
        lower, upper (nv,) limits, -inf and inf where there are none [rad, m]; limit_restitution (nv,).
    World: gravity (3,) [m/s^2]; gap_band () [m, rad]: how near is touching; rest_speed () [m/s, rad/s]: contacts
        that close more slowly than this rest, they do not bounce.
    Shapes (pose in the link's frame):
        shape_size (ns, 3) [m], by kind: sphere (r, 0, 0), box half extents, capsule and cylinder
        (r, half length, 0), ellipsoid radii, plane zeros (normal is the pose's z axis);
        shape_position (ns, 3) [m]; shape_quaternion (ns, 4);
        friction (ns,), restitution (ns,), tangential_restitution (ns,): a run reads those of the pairs, which `replace`
        combines from these;
        points (m, 3): vertices of hulls and meshes, all shapes end to end [m];
        shape_twist (ns, 6): angular velocity and velocity of the shape's origin, world axes, of statics whose
        surfaces move in place as conveyors and turntables do [rad/s, m/s].
    Loops (nk of them, see `engine/loops/kinds.py`; axes of both frames coincide when the joint is at zero):
        loop_position (nk, 2, 3) [m], loop_quaternion (nk, 2, 4): frames on a and on b;
        loop_size (nk,): length, radius or ratio;  loop_course (nk, 5): offset, rate, amplitude, frequency, phase of
        what a distance, gear or drive keeps to: offset + rate t + amplitude sin(2 pi frequency t + phase);
        loop_spring (nk, 2, 4): stiffness, rest, damping and constant force along up to two coordinates;
        loop_stiff, loop_damp (nk, 2): of the penalty, for what shifts and what turns [N/m, N m; N s/m, N m s];
        loop_limits (nk, 2, 2): (lower, upper) of up to two coordinates, held by penalty.
        baumgarte () [1/s]: rate at which errors are fed back.
    Pairs: pair_friction (np,), pair_restitution (np,), pair_tangential_restitution (np,): of a pair without a rule
        the geometric mean of its shapes' friction, and the smaller restitutions.
    """

    topology: Topology = field(metadata={"static": True})
    mass: Array
    com: Array
    inertia: Array
    joint_position: Array
    joint_quaternion: Array
    axis: Array
    axis2: Array
    pitch: Array
    armature: Array
    damping: Array
    loss: Array
    stiffness: Array
    rest: Array
    motor_gain: Array
    motor_kp: Array
    motor_kd: Array
    motor_effort: Array
    motor_target: Array
    lower: Array
    upper: Array
    limit_restitution: Array
    gravity: Array
    gap_band: Array
    rest_speed: Array
    shape_size: Array
    shape_position: Array
    shape_quaternion: Array
    friction: Array
    restitution: Array
    tangential_restitution: Array
    points: Array
    shape_twist: Array
    pair_friction: Array
    pair_restitution: Array
    pair_tangential_restitution: Array
    loop_position: Array
    loop_quaternion: Array
    loop_size: Array
    loop_course: Array
    loop_spring: Array
    loop_stiff: Array
    loop_damp: Array
    loop_limits: Array
    baumgarte: Array

    def replace(self, **changes: Any) -> Model:
        """A copy with some parameters changed, e.g. `model.replace(mass=masses)` with masses (nl,) or (lanes, nl).

        friction, restitution and tangential_restitution of shapes change those of their pairs; pairs that have a rule
        between materials keep what the rule says. Raises ValueError for a shape that does not fit, and for what would
        change nothing.
        """
        known = {f.name for f in fields(self)}
        for name in changes:
            if name not in known:
                raise ValueError(f"Model has no parameter {name!r}; it has {', '.join(sorted(known))}")
        topology = changes.get("topology", self.topology)
        for name in changes.keys() - {"topology"}:
            changes[name] = checked(name, changes[name], getattr(self, name), topology)
            if topology is self.topology and (reason := unread(name, topology)):
                raise ValueError(f"Model.replace: {name} would change nothing: {reason}")
        for name in COMBINED.keys() & changes.keys():
            if (own := f"pair_{name}") not in changes:
                changes[own] = pair_numbers(name, changes[name], getattr(self, own), topology)
        changed = replace(self, **changes)
        held = gripped(topology, changed.loss, changed.motor_kd, changes.keys())
        return changed if held == topology.gripped else replace(changed, topology=replace(topology, gripped=held))

    @property
    def parameters(self) -> dict[str, Array]:
        """Its arrays by their names."""
        return {name: x for name, x in vars(self).items() if name != "topology"}

    @staticmethod
    def base_ndim(name: str) -> int:
        """How many trailing axes the parameter has when it is not batched."""
        return len(AXES[name])


def _running_sum(widths: Any) -> tuple[int, ...]:
    total = [0]
    for width in widths:
        total.append(total[-1] + width)
    return tuple(total)
