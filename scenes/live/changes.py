"""Changes of a world's model while it runs: materials, layers, conveyors, joints that are cut and joined.

Numbers of the model change, never its topology, so nothing is compiled. Changes are inputs: a save has none of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...collision.poses import Array
from ...contact.held_joints import lock_held_joints
from ...engine.algebra.rotation import Quat
from ...engine.algebra.vec3 import Scalar, Vec3
from ...engine.loops.projection import project
from ...engine.loops.wrenches import loop_wrenches
from ...engine.model import Model
from ...engine.native.surface import native_jit
from ...engine.parameters import AXES
from ...engine.state import State
from ...engine.topology import Topology
from ..compiling.check import bits
from ..compiling.pairs import CHECKS, meet
from ..spec import LoopSpec, SceneSpec
from ..wording import brief
from . import arguments
from .touching import Bodies

APART = ("distance", "spring")  # kinds that hold their ends apart, so that their links may touch
REACH = {8: 100.0, 4: 20.0}  # by bytes of a number: radii of gyration from a free body's centre of mass to a joint


class Changes:
    """The present model of a world: `model`. Methods check their arguments before they change anything."""

    def __init__(self, scene: SceneSpec, model: Model, bodies: Bodies) -> None:
        topology = model.topology
        self._compiled, self._owners = model, np.array(bodies.owners, str)
        self._pairs = np.array(topology.pairs, np.int32).reshape(-1, 2)
        self._loops = {loop_name(spec, k): k for k, spec in enumerate(scene.loops) if spec.active is not None}
        self.model, self._layers, self._ignored = model, _layers(model), set[frozenset[str]]()

    def reset(self) -> None:
        """Restore the scene's model."""
        self.model, self._layers, self._ignored = self._compiled, _layers(self._compiled), set()

    def take_over(self, old: Changes) -> None:
        """Take over the changes of a smaller world, whose parts are the first of this one's.

        Numbers of shapes are first, since pairs with new bodies depend on them, then those of the old pairs."""
        number = {tuple(pair): k for k, pair in enumerate(self._pairs)}
        where = [number[tuple(pair)] for pair in old._pairs]
        changed = {name: x for name, x in old.model.parameters.items() if x is not getattr(old._compiled, name)}
        for of_pairs in (False, True):
            names = [name for name in changed if (AXES[name][0] == "np") == of_pairs and name != "pair_touches"]
            changes = {name: np.array(getattr(self.model, name)) for name in names}
            for name, x in changes.items():
                x[where if of_pairs else slice(len(changed[name]))] = changed[name]
            self._replace(changes)
        self._layers[: len(old._layers)], self._ignored = old._layers, set(old._ignored)
        if self.model.topology.filtered:
            self._replace({"pair_touches": self._touches(self.model.loop_active)})

    # -- materials -------------------------------------------------------------------------------------------

    def material(self, body: str, given: Mapping[str, float | None]) -> None:
        """Set numbers of all shapes of a body; None leaves one unchanged."""
        mine = self._owners == body
        self._replace(
            {
                name: np.where(mine, x, getattr(self.model, name))
                for name, x in _check_material("set_material", given).items()
            }
        )

    def pair_material(self, a: str, b: str, given: Mapping[str, float | None]) -> None:
        """Set numbers of all pairs of two bodies."""
        mine = self._between(a, b)
        if not mine.any():
            raise ValueError(f"set_pair_material: no shape of {a!r} can touch one of {b!r}: the scene keeps them apart")
        new = {f"pair_{name}": x for name, x in _check_material("set_pair_material", given).items()}
        self._replace({name: np.where(mine, x, getattr(self.model, name)) for name, x in new.items()})

    def surface(self, body: str, linear: Array, angular: Array, origin: Array) -> None:
        """Set the velocity of the surface of a static [m/s, rad/s], at its origin (3,), in the world's precision."""
        if not self.model.topology.driven:
            raise ValueError(
                f"set_surface_velocity: no surface of this scene moves: give {body!r}, or another static, a "
                "linear_velocity or an angular_velocity in the scene, (0, 0, 1e-9) where it starts at rest"
            )
        at, mine = np.asarray(self.model.shape_position), self._owners == body
        vectors = (x.astype(at.dtype) for x in (linear, angular, origin))
        twist = np.stack(np.broadcast_arrays(*surface_twist(at, *vectors)), -1)
        self._replace({"shape_twist": np.where(mine[:, None], twist, self.model.shape_twist)})

    # -- who touches whom ------------------------------------------------------------------------------------

    def shapes_in(self, mask: int) -> Array:
        """Shapes with a layer of the mask in their group, (ns,) bool."""
        return self._layers[:, 0] & np.uint32(bits("raycast", "mask", mask)) != 0

    def layers(self, body: str, group: int | None, mask: int | None) -> None:
        """Set the group and the mask of all shapes of a body; None leaves one unchanged."""
        self._require_filtering("set_layers")
        new = self._layers.copy()
        for k, (name, value) in enumerate((("group", group), ("mask", mask))):
            if value is not None:
                new[self._owners == body, k] = bits("set_layers", name, value)
        self._layers = new
        self._replace({"pair_touches": self._touches(self.model.loop_active)})

    def ignore(self, a: str, b: str, ignored: bool) -> None:
        """Set whether two bodies ignore each other."""
        self._require_filtering("ignore_collision")
        if a == b:
            raise ValueError(f"ignore_collision: a and b are both {a!r}: nothing touches itself; give two")
        both = frozenset((a, b))
        self._ignored = self._ignored | {both} if ignored else self._ignored - {both}
        self._replace({"pair_touches": self._touches(self.model.loop_active)})

    def _require_filtering(self, call: str) -> None:
        if not self.model.topology.filtered:
            raise ValueError(
                f"{call}: the pairs of this world are fixed: give SceneBuilder, or the file, filtering=True"
            )

    def _touches(self, active: Array | jax.Array) -> Array:
        """Array (np,), 1 for pairs that may touch."""
        i, j = self._pairs.T
        touches = meet(self._layers[:, 0], self._layers[:, 1], i, j)
        for a, b in self._ignored:
            touches &= ~self._between(a, b)
        for k, (a, b) in attached_pairs(self.model.topology).items():
            if active[k]:
                touches &= ~self._between(a, b)
        return touches

    def _between(self, a: str, b: str) -> Array:
        """Pairs of a shape of each, (np,) bool."""
        of = self._owners[self._pairs]
        return ((of == (a, b)) | (of == (b, a))).all(1)

    # -- joints ----------------------------------------------------------------------------------------------

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the joints that can be cut, of which those that hold are `attached`."""
        return tuple(self._loops)

    @property
    def attached(self) -> tuple[str, ...]:
        """Names of the joints that hold."""
        active = np.asarray(self.model.loop_active)
        return tuple(name for name, k in self._loops.items() if active[k])

    def attached_to(self, link: int) -> list[str]:
        """Names of the attached joints that hold a link."""
        loops = self.model.topology.loops
        return [name for name in self.attached if link in (loops[self._loops[name]].a, loops[self._loops[name]].b)]

    def number(self, joint: str) -> int:
        """Index of a joint that can be cut."""
        if not self._loops:
            raise ValueError(f"{brief(joint)}: this world has no joint that can be cut: give add_loop(active=True)")
        return self._loops[arguments.one_of("joint", joint, self._loops)]

    def attach(self, joint: str, poses: Array, point: Array | None) -> None:
        """Join two links at their present poses; poses: (nl, 7) of all; point: (3,), None: the frame on link_a."""
        k, kind = self.number(joint), self.model.mass.dtype
        given = np.asarray(poses, kind), np.int32(k), np.asarray(np.zeros(3) if point is None else point, kind)
        ends = attach_ends.straight(self.model, *given, np.bool_(point is not None))
        if ends.length == 0 and self.model.topology.loops[k].kind == "distance":
            raise ValueError(f"attach: the two points of {joint!r} are in one place: a rod needs them apart")
        reach = REACH[kind.itemsize]
        if ends.reach > reach:
            raise ValueError(
                f"attach: {joint!r} would hold a body {ends.reach:.3g} radii of gyration from its centre of mass, on a "
                f"lever without mass; up to {reach:g} can be followed: give a point on the body, or near it"
            )
        self._switch(k, True, ends.numbers)

    def detach(self, joint: str) -> None:
        """Cut a joint."""
        self._switch(self.number(joint), False, {})

    def _switch(self, k: int, holds: bool, changes: dict[str, Array]) -> None:
        active = np.array(self.model.loop_active)
        active[k] = holds
        if self.model.topology.filtered:
            changes = changes | {"pair_touches": self._touches(active)}
        self._replace(changes | {"loop_active": active})

    def _replace(self, changes: Mapping[str, Array]) -> None:
        """Change numbers of the model; equal ones change nothing, so that a game may set them in every frame without
        waking bodies."""
        old, kind = self.model, self.model.mass.dtype
        new = old.replace(**{name: np.asarray(x, kind) for name, x in changes.items()}) if changes else old
        pairs = ((x, getattr(old, name)) for name, x in new.parameters.items())
        if any(x is not y and not np.array_equal(x, y) for x, y in pairs):
            self.model = new


class Ends(NamedTuple):
    """Frames of all loops after the links of one of them are joined.

    position: (nk, 2, 3) [m].  quaternion: (nk, 2, 4).  course: (nk, 5).  length: () distance of the frames [m].
    reach: () distance of the joint from the centres of mass of free bodies that it holds, in their radii of gyration.
    """

    position: jax.Array
    quaternion: jax.Array
    course: jax.Array
    length: jax.Array
    reach: jax.Array

    @property
    def numbers(self) -> dict[str, jax.Array]:
        """Changed numbers of the model."""
        return {"loop_position": self.position, "loop_quaternion": self.quaternion, "loop_course": self.course}


@native_jit
def attach_ends(model: Model, poses: jax.Array, k: jax.Array, point: jax.Array, given: jax.Array) -> Ends:
    """Join loop k at the present poses of its links.

    poses: (nl, 7) x y z of the origin [m], w x y z.  point: (3,) position in the world [m], if `given`,
    () bool; else that of the frame on link a. A rod's length is the distance of its frames, a spring stays as it is;
    other joints have their frame on link b at that on a.
    """
    loops = model.topology.loops
    links = jnp.asarray(np.array([(loop.a, loop.b) for loop in loops], np.int32))[k]
    apart, rod = (jnp.asarray(np.array([x.kind in some for x in loops]))[k] for some in (APART, APART[:1]))
    world = jnp.asarray([[0, 0, 0, 1, 0, 0, 0]], poses.dtype)
    a, b = jnp.concatenate([poses, world])[links]  # link -1 is the world
    (A, B), (p, r) = (tuple(Quat.of_array(x[3:]) for x in (a, b)), tuple(Vec3.of(x[:3]) for x in (a, b)))
    at, quaternion = model.loop_position[k], model.loop_quaternion[k]
    own = A.matrix().T @ (Vec3.of(point) - p)
    own = Vec3(*(jnp.where(given, x, y) for x, y in zip(own.xyz, at[0], strict=True)))
    here = p + A.matrix() @ own
    arm = here - r - B.matrix() @ Vec3.of(at[1])
    length = jnp.sqrt(arm.dot(arm))
    other = jnp.where(apart, at[1], jnp.stack((B.matrix().T @ (here - r)).xyz))
    C = B.conjugate() * A * Quat.of_array(quaternion[0])
    relative = jnp.where(apart, quaternion[1], jnp.stack([C.w, C.x, C.y, C.z]))
    return Ends(
        model.loop_position.at[k].set(jnp.stack([jnp.stack(own.xyz), other])),
        model.loop_quaternion.at[k, 1].set(relative),
        model.loop_course.at[k, 0].set(jnp.where(rod, length, model.loop_course[k, 0])),
        length,
        jnp.maximum(_reach(model, links[0], jnp.stack(own.xyz)), _reach(model, links[1], other)),
    )


def _reach(model: Model, link: jax.Array, point: jax.Array) -> jax.Array:
    """Distance () of a point (3,) from a free body's centre of mass, body axes, in radii of gyration; else 0.

    The square of the radius is half the trace of the inertia, by mass."""
    free = jnp.asarray(np.array([joint == "floating" for joint in model.topology.joints] + [False]))[link]
    arm, size = point - model.com[link], jnp.trace(model.inertia[link]) / (2 * model.mass[link])
    return jnp.where(free & (size > 0), jnp.sqrt((arm * arm).sum() / size), 0)


@native_jit
def loop_pulls(
    model: Model, q: jax.Array, v: jax.Array, t: jax.Array, motors: jax.Array, forces: jax.Array
) -> jax.Array:
    """Force (nk, 3) of each loop on its link a, world axes [N].

    motors: (nv,) the commands to them.  forces: (nv,) other forces along the degrees of freedom [N m, N]."""
    model, forces = lock_held_joints(model, q, v, t, motors, forces)
    return loop_wrenches(model, State(q, v, t), motors, forces)[:, 3:]


@native_jit
def velocities_after_attaching(model: Model, q: jax.Array, v: jax.Array, t: jax.Array) -> tuple[jax.Array, jax.Array]:
    """q and v after the joints' impulse that makes all loops hold, in the metric of the masses."""
    return project(model, q, v, t)


def surface_twist(
    at: Array | jax.Array, linear: Array | jax.Array, angular: Array | jax.Array, origin: Array | jax.Array
) -> tuple[Scalar, ...]:
    """Six columns, angular [rad/s] and linear [m/s], of the surfaces of shapes at `at` (ns, 3), by the velocities of
    their static at its origin; linear, angular, origin: (3,)."""
    w = Vec3.of(angular)
    v = Vec3.of(linear) + w.cross(Vec3.of(at) - Vec3.of(origin))
    return *w.xyz, *v.xyz


def loop_name(spec: LoopSpec, number: int) -> str:
    """Name of a loop in a world, or the index of one without a name."""
    return spec.name or f"loop {number}"


def attached_pairs(topology: Topology) -> dict[int, tuple[str, str]]:
    """Pairs of links of loops that can be cut, and whose links do not touch while the loop holds."""
    return {
        k: (topology.names[loop.a], topology.names[loop.b])
        for k, loop in enumerate(topology.loops)
        if loop.switched and loop.kind not in APART and min(loop.a, loop.b) >= 0
    }


def _layers(model: Model) -> Array:
    return np.array(model.topology.shape_layers, np.uint32).reshape(-1, 2)


def _check_material(call: str, given: Mapping[str, float | None]) -> dict[str, Array]:
    return {name: CHECKS[name](call, name, value) for name, value in given.items() if value is not None}
