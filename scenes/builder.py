"""SceneBuilder records a scene call by call; `compile_scene` checks it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from ..collision.plain import Numbers, plain
from ..collision.shapes import ALL_LAYERS, Shape
from .joint_specs import Joint
from .loop_specs import Distance, Driven, Gear, Rolling, Spring
from .spec import BodySpec, LinkSpec, LoopSpec, PairSpec, PlaneSpec, SceneSpec, SensorSpec, SiteSpec, StaticSpec

T = TypeVar("T")
ORIGIN, IDENTITY = (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0)


class SceneBuilder:
    """Builds a SceneSpec. Fields and units are those of SceneSpec, BodySpec, LinkSpec, PlaneSpec, StaticSpec.

    b = SceneBuilder()
    b.add_plane()
    b.add_body("ball", [Sphere(0.1)], mass=1.0, position=(0, 0, 1))
    model, state = compile_scene(b.build())
    """

    def __init__(
        self,
        gravity: Numbers = (0.0, 0.0, -9.81),
        *,
        gap_band: float | None = None,
        rest_speed: float | None = None,
        baumgarte: float | None = None,
        filtering: bool = False,
        plane: str | None = None,
    ) -> None:
        """plane: plane of all bodies whose `add_body` names no other; a flat world has "xz"."""
        self._gravity = gravity
        self._touch = (gap_band, rest_speed)
        self._loops: list[LoopSpec] = []
        self._baumgarte = baumgarte
        self._filtering, self._plane = filtering, plane
        self._links: list[BodySpec | LinkSpec] = []
        self._statics: list[PlaneSpec | StaticSpec] = []
        self._pairs: list[PairSpec] = []
        self._exclusions: list[tuple[str, str]] = []
        self._sites: list[SiteSpec] = []
        self._sensors: list[SensorSpec] = []

    def add_plane(
        self,
        normal: Numbers = (0.0, 0.0, 1.0),
        offset: float = 0.0,
        *,
        name: str | None = None,
        friction: float | None = None,
        restitution: float | None = None,
        tangential_restitution: float | None = None,
        material: str | None = None,
        group: int = 1,
        mask: int = ALL_LAYERS,
    ) -> None:
        """Add the static halfspace n . x <= offset [m]."""
        self._statics.append(_spec(PlaneSpec, locals()))

    def add_static(
        self,
        name: str | None = None,
        shapes: Sequence[Shape] = (),
        *,
        position: Numbers = ORIGIN,
        quaternion: Numbers = IDENTITY,
        linear_velocity: Numbers = ORIGIN,
        angular_velocity: Numbers = ORIGIN,
        friction: float | None = None,
        restitution: float | None = None,
        tangential_restitution: float | None = None,
        material: str | None = None,
    ) -> None:
        """Add shapes fixed in the world; velocities move their surface in place, like a conveyor's."""
        self._statics.append(_spec(StaticSpec, locals()))

    def add_body(
        self,
        name: str,
        shapes: Sequence[Shape] = (),
        *,
        position: Numbers = ORIGIN,
        quaternion: Numbers = IDENTITY,
        linear_velocity: Numbers = ORIGIN,
        angular_velocity: Numbers = ORIGIN,
        mass: float | None = None,
        density: float | None = None,
        com: Numbers | None = None,
        inertia: Numbers | None = None,
        friction: float | None = None,
        restitution: float | None = None,
        tangential_restitution: float | None = None,
        material: str | None = None,
        plane: str | None = None,
    ) -> None:
        """Add a free body; velocities in world axes, linear_velocity of its centre of mass [m/s, rad/s].

        plane: "xy", "xz" or "yz", which the body never leaves; None: the builder's."""
        plane = self._plane if plane is None else plane
        self._links.append(_spec(BodySpec, locals()))

    def add_link(
        self,
        name: str,
        parent: str = "world",
        *,
        joint: Joint,
        position: Numbers = ORIGIN,
        quaternion: Numbers = IDENTITY,
        mass: float | None = None,
        density: float | None = None,
        com: Numbers | None = None,
        inertia: Numbers | None = None,
        shapes: Sequence[Shape] = (),
        q0: Numbers | None = None,
        v0: Numbers | None = None,
        friction: float | None = None,
        restitution: float | None = None,
        tangential_restitution: float | None = None,
        material: str | None = None,
    ) -> None:
        """Add a link on a joint; position [m] and quaternion place the joint frame in the parent's frame."""
        self._links.append(_spec(LinkSpec, locals()))

    def add_loop(
        self,
        link_a: str,
        frame_a: Numbers | None = None,
        link_b: str = "world",
        frame_b: Numbers | None = None,
        *,
        joint: Joint | Distance | Spring | Rolling | Gear | Driven,
        name: str | None = None,
        active: bool | None = None,
    ) -> None:
        """Add a second joint between two links, which closes a loop; or a Distance, Spring, Rolling, Gear or Driven.

        frame_a, frame_b: the joint's frame on each link, a position (3,) [m] or (position, quaternion). By default
        frame_a is the link's own frame, and frame_b is frame_a's pose at the start. Gear and Driven have none.
        active: None: it always holds. True or False: whether it holds at the start; `carom.Live` may cut and join it.

        b.add_loop("coupler", (1, 0, 0), "world", joint=Revolute((0, 1, 0)))
        """
        position_a, quaternion_a = _frame(frame_a)
        position_b, quaternion_b = _frame(frame_b)
        a = (position_a or ORIGIN, quaternion_a or IDENTITY)
        self._loops.append(LoopSpec(link_a, joint, link_b, *a, position_b, quaternion_b, name, active))

    def set_pair(
        self,
        material_a: str,
        material_b: str,
        *,
        friction: float | None = None,
        restitution: float | None = None,
        tangential_restitution: float | None = None,
    ) -> None:
        """Set friction and restitutions between two materials, instead of the combination rule's."""
        self._pairs.append(PairSpec(material_a, material_b, friction, restitution, tangential_restitution))

    def exclude(self, name_a: str, name_b: str) -> None:
        """Exclude contact between two bodies, links or statics; "world" stands for all statics."""
        self._exclusions.append((name_a, name_b))

    def add_site(
        self,
        name: str,
        link: str = "world",
        position: Numbers = (0.0, 0.0, 0.0),
        quaternion: Numbers = (1.0, 0.0, 0.0, 0.0),
    ) -> None:
        """Add a named frame on a body, a link, or the world, at a position [m] in its frame."""
        self._sites.append(SiteSpec(name, link, position, quaternion))

    def add_sensor(
        self,
        name: str,
        kind: str,
        site: str | None = None,
        *,
        link: str | None = None,
        other: str | None = None,
        rays: Numbers | None = None,
        max_distance: float | None = None,
    ) -> None:
        """Add a sensor: `carom.rollout(..., report="sensors").report["sensors"][name]` has its readings.

        At the end of each frame, at a site: "position" [m], "orientation" (a quaternion), "linear_velocity" [m/s] and
        "angular_velocity" [rad/s] in world axes; "velocimeter" and "gyro", the same in the site's axes; "rangefinder":
        distances along its rays, along z or as given [m], -1 for a ray that hits nothing within max_distance. Rays
        ignore shapes of its own link. At the joint of a link: "joint_position" and "joint_velocity".

        Means over the time between frames, in the site's axes: "accelerometer", the proper acceleration, which is
        -gravity at rest [m/s^2]; "force" [N] and "torque" [N m] that the joint of the site's link transmits to it. Also
        "joint_effort", along the joint [N m, N]; "touch": sum of the normal forces on a link, only those by `other` if
        that is named [N]; "contact": 1 if these touched at any time since the last frame, else 0.

        These means leave out impacts: a sensor "imu" of a kind that feels impacts has a second reading "imu.impulse",
        the sum of their jumps [m/s, N s, N m s].
        """
        self._sensors.append(SensorSpec(name, kind, site, link, other, rays, max_distance))

    def build(self) -> SceneSpec:
        """Return the scene recorded so far, as plain data."""
        links, statics, pairs = tuple(self._links), tuple(self._statics), tuple(self._pairs)
        exclusions, loops = tuple(self._exclusions), tuple(self._loops)
        band, speed = self._touch
        sensing = tuple(self._sites), tuple(self._sensors)
        return SceneSpec(
            self._gravity,
            links,
            statics,
            pairs,
            exclusions,
            band,
            speed,
            loops,
            self._baumgarte,
            *sensing,
            self._filtering,
        )


def _frame(frame: Any) -> tuple[Any, Any]:
    """Position and quaternion of a frame as users write it; None for parts that are left out."""
    if frame is None:
        return None, None
    nested = len(frame) == 2 and all(np.ndim(part) for part in frame)
    return plain(frame) if nested else (plain(frame), IDENTITY)


def _spec(kind: Callable[..., T], arguments: dict[str, Any]) -> T:
    """The spec of a method's arguments, whose names are those of the spec's fields."""
    return kind(**{name: value for name, value in arguments.items() if name != "self"})
