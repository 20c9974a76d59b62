"""What changes in the model of a world while it runs: materials, layers, conveyors, joints that are cut and joined.

Numbers of the model change, never its topology, so nothing is compiled. All of it is input: a save holds none of it.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from ...collision.poses import Array, quaternion_product, rotation_matrix
from ...engine.closures.projection import projected
from ...engine.model import Model
from ...engine.native.surface import compiled
from ...engine.parameters import AXES
from ..compiling.check import bits
from ..compiling.pairs import CHECKS, meet
from ..formats.wording import shown
from ..spec import LoopSpec, SceneSpec
from . import arguments
from .touching import Bodies

APART = ("distance", "spring")  # what holds its ends apart, so that they may touch


class Changes:
    """The model of a world as it is now: `model`. Methods check what they are given before they change anything."""

    def __init__(self, scene: SceneSpec, model: Model, bodies: Bodies) -> None:
        topology = model.topology
        self._compiled, self._owners = model, np.array(bodies.owners, str)
        self._pairs = np.array(topology.pairs, np.int32).reshape(-1, 2)
        self._loops = {loop_name(spec, k): k for k, spec in enumerate(scene.loops) if spec.active is not None}
        self.model, self._layers, self._ignored = model, _layers(model), set[frozenset[str]]()

    def reset(self) -> None:
        """Back to the scene's."""
        self.model, self._layers, self._ignored = self._compiled, _layers(self._compiled), set()

    def take_over(self, old: Changes) -> None:
        """What was changed in a smaller world, of which this one has everything first."""
        changes, pairs = {}, {tuple(pair): k for k, pair in enumerate(self._pairs)}
        where = [pairs[tuple(pair)] for pair in old._pairs]
        for name, x in old.model.parameters.items():
            if x is not getattr(old._compiled, name):
                changes[name] = np.array(getattr(self.model, name))
                rows = where if AXES[name][0] in ("np", "filtered") else slice(len(x))
                changes[name][rows] = x
        self._layers[: len(old._layers)], self._ignored = old._layers, set(old._ignored)
        self._replace(changes)

    # -- materials -------------------------------------------------------------------------------------------

    def material(self, body: str, given: dict[str, Any]) -> None:
        """Numbers of all shapes of a body; None where one stays."""
        mine = self._owners == body
        self._replace(
            {name: np.where(mine, x, getattr(self.model, name)) for name, x in _checked("set_material", given).items()}
        )

    def pair_material(self, a: str, b: str, given: dict[str, Any]) -> None:
        """Numbers of all pairs of two bodies."""
        mine = self._between(a, b)
        if not mine.any():
            raise ValueError(f"set_pair_material: no shape of {a!r} can touch one of {b!r}: the scene keeps them apart")
        new = {f"pair_{name}": x for name, x in _checked("set_pair_material", given).items()}
        self._replace({name: np.where(mine, x, getattr(self.model, name)) for name, x in new.items()})

    def surface(self, body: str, linear: Array, angular: Array, origin: Array) -> None:
        """Velocity of the surface of a static [m/s, rad/s], at its origin (3,)."""
        if not self.model.topology.driven:
            raise ValueError(
                f"set_surface_velocity: no surface of this scene moves: give {body!r}, or another static, a "
                "linear_velocity or an angular_velocity in the scene, (0, 0, 1e-9) where it starts at rest"
            )
        at, mine = np.asarray(self.model.shape_position), self._owners == body
        twist = np.concatenate([np.broadcast_to(angular, at.shape), linear + np.cross(angular, at - origin)], -1)
        self._replace({"shape_twist": np.where(mine[:, None], twist, self.model.shape_twist)})

    # -- who touches whom ------------------------------------------------------------------------------------

    def shapes_in(self, mask: int) -> Array:
        """(ns,) bool, shapes with a layer of the mask in their group."""
        return self._layers[:, 0] & np.uint32(bits("raycast", "mask", mask)) != 0

    def layers(self, body: str, group: int | None, mask: int | None) -> None:
        """The group and the mask of all shapes of a body; None where one stays."""
        self._filtered("set_layers")
        new = self._layers.copy()
        for k, (name, value) in enumerate((("group", group), ("mask", mask))):
            if value is not None:
                new[self._owners == body, k] = bits("set_layers", name, value)
        self._layers = new
        self._replace({"pair_touches": self._touches(self.model.loop_active)})

    def ignore(self, a: str, b: str, ignored: bool) -> None:
        """Whether two bodies go through each other."""
        self._filtered("ignore_collision")
        both = frozenset((a, b))
        self._ignored = self._ignored | {both} if ignored else self._ignored - {both}
        self._replace({"pair_touches": self._touches(self.model.loop_active)})

    def _filtered(self, call: str) -> None:
        if not self.model.topology.filtered:
            raise ValueError(
                f"{call}: the pairs of this world are fixed: give SceneBuilder, or the file, filtering=True"
            )

    def _touches(self, active: Any) -> Array:
        """(np,) 1 of pairs that may touch."""
        i, j = self._pairs.T
        touches = meet(self._layers[:, 0], self._layers[:, 1], i, j)
        for a, b in self._ignored:
            touches &= ~self._between(a, b)
        topology = self.model.topology
        for k in self._loops.values():
            loop = topology.loops[k]
            if active[k] and loop.kind not in APART and min(loop.a, loop.b) >= 0:
                touches &= ~self._between(topology.names[loop.a], topology.names[loop.b])
        return touches

    def _between(self, a: str, b: str) -> Array:
        """(np,) bool, pairs of a shape of each."""
        of = self._owners[self._pairs]
        return ((of == (a, b)) | (of == (b, a))).all(1)

    # -- joints ----------------------------------------------------------------------------------------------

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the joints that can be cut, of which those that hold are `attached`."""
        return tuple(self._loops)

    @property
    def attached(self) -> tuple[str, ...]:
        """Those that hold."""
        active = np.asarray(self.model.loop_active)
        return tuple(name for name, k in self._loops.items() if active[k])

    def attached_to(self, link: int) -> list[str]:
        """Of these, what holds a link."""
        loops = self.model.topology.loops
        return [name for name in self.attached if link in (loops[self._loops[name]].a, loops[self._loops[name]].b)]

    def number(self, joint: str) -> int:
        """Of a joint that can be cut."""
        if not self._loops:
            raise ValueError(f"{shown(joint)}: this world has no joint that can be cut: give add_loop(active=True)")
        return self._loops[arguments.one_of("joint", joint, self._loops)]

    def attach(self, joint: str, poses: Array, point: Array | None) -> None:
        """Join two links where they are now: poses (nl, 7) of all; point: (3,) where, None: at the frame on link_a."""
        k = self.number(joint)
        loop, model = self.model.topology.loops[k], self.model
        at, turn = (np.array(x, np.float64) for x in (model.loop_position, model.loop_quaternion))
        (p_a, q_a), (p_b, q_b) = (_pose(poses, link) for link in (loop.a, loop.b))
        changes: dict[str, Any] = {}
        if point is not None:
            at[k, 0] = rotation_matrix(q_a).T @ (point - p_a)
        here = p_a + rotation_matrix(q_a) @ at[k, 0]
        if loop.kind in APART:
            length = float(np.linalg.norm(here - p_b - rotation_matrix(q_b) @ at[k, 1]))
            if loop.kind == "distance":
                if length == 0:
                    raise ValueError(f"attach: the two points of {joint!r} are in one place: a rod needs them apart")
                changes["loop_course"] = np.array(model.loop_course)
                changes["loop_course"][k, 0] = length
        else:
            at[k, 1] = rotation_matrix(q_b).T @ (here - p_b)
            turn[k, 1] = quaternion_product(q_b * (1, -1, -1, -1), quaternion_product(q_a, turn[k, 0]))
        self._switch(k, True, changes | {"loop_position": at, "loop_quaternion": turn})

    def detach(self, joint: str) -> None:
        """Cut a joint."""
        self._switch(self.number(joint), False, {})

    def _switch(self, k: int, holds: bool, changes: dict[str, Any]) -> None:
        active = np.array(self.model.loop_active)
        active[k] = holds
        if self.model.topology.filtered:
            changes["pair_touches"] = self._touches(active)
        self._replace(changes | {"loop_active": active})

    def _replace(self, changes: dict[str, Any]) -> None:
        """The same model where it has these numbers already: a game may say in every frame what is so, and who sleeps
        sleeps on."""
        old, kind = self.model, self.model.mass.dtype
        new = old.replace(**{name: np.asarray(x, kind) for name, x in changes.items()}) if changes else old
        pairs = ((x, getattr(old, name)) for name, x in new.parameters.items())
        if any(x is not y and not np.array_equal(x, y) for x, y in pairs):
            self.model = new


@compiled
def joined_velocities(model: Model, q: jax.Array, v: jax.Array, t: jax.Array) -> tuple[jax.Array, jax.Array]:
    """q and v once all loops hold: what a blow of the joints leaves, in the metric of the masses."""
    return projected(model, q, v, t)


def loop_name(spec: LoopSpec, number: int) -> str:
    """What a world calls a loop: its name, or of one without a name its number."""
    return spec.name or f"loop {number}"


def _pose(poses: Array, link: int) -> tuple[Array, Array]:
    if link < 0:
        return np.zeros(3), np.eye(4)[0]
    pose = np.asarray(poses[link], np.float64)
    return pose[:3], pose[3:]


def _layers(model: Model) -> Array:
    return np.array(model.topology.shape_layers, np.uint32).reshape(-1, 2)


def _checked(call: str, given: dict[str, Any]) -> dict[str, Any]:
    return {name: CHECKS[name](call, name, value) for name, value in given.items() if value is not None}
