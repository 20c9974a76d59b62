"""Triggers: regions that report bodies that enter and leave."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import jax
import numpy as np

from ...collision.poses import Array
from ...collision.shapes import Shape
from ...engine.algebra.rotation import Quat
from ...engine.algebra.vec3 import Scalar, Vec3
from ...engine.shaped import Float

Callback = Callable[[str], object]
Inside = tuple[str, ...]


@dataclass(eq=False)
class Trigger:
    """A region of a world, see `Live.add_trigger`. It stops and pushes nothing.

    shape: the region.  place: its pose, in the axes of `body` if that carries it, else in the world.
    on_enter, on_leave: called with a body's name, or None.
    """

    shape: Shape
    place: Float[np.ndarray, " 7"]
    body: str | None
    on_enter: Callback | None
    on_leave: Callback | None
    _inside: Inside = field(default=(), init=False)

    @property
    def inside(self) -> Inside:
        """Bodies and links that are in it, wholly or in part, the deepest first; neither the one that carries it nor
        statics."""
        return self._inside

    def update(self, inside: Inside) -> tuple[list[str], list[str]]:
        """Names of the bodies that entered, and of those that left, since the last update."""
        came = [name for name in inside if name not in self._inside]
        went = [name for name in self._inside if name not in inside]
        self._inside = inside
        return came, went


def compose_poses(pose: Array | jax.Array, body: Array | jax.Array) -> tuple[Scalar, ...]:
    """Compose poses (7,): `pose` of a frame in the axes of a body, and `body` of that body in the world.

    Return the frame's pose in the world, seven numbers."""
    rotation = Quat.of_array(body[3:])
    position, composed = Vec3.of(body[:3]) + rotation.matrix() @ Vec3.of(pose[:3]), rotation * Quat.of_array(pose[3:])
    return *position.xyz, composed.w, *composed.vector.xyz
