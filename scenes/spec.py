"""A scene as plain data: the builder records it, files hold it, `compile_scene` checks it.

Frozen dataclasses of numbers, strings and tuples: equal scenes compare equal. SI units, world z up,
quaternions w x y z. Nothing is checked here; only `compile_scene` rejects bad input.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..collision.plain import Numbers, make_plain
from ..collision.shapes import ALL_LAYERS, Shape
from ..engine.display import Row, count, counts, display_as, names
from .joint_specs import Joint


@dataclass(frozen=True)
class BodySpec:
    """A free body: a link on a floating joint, its frame the body's frame.

    shapes: in the body's frame.
    position (3,) of the body's origin in W [m]; quaternion (4,) body to W.
    linear_velocity (3,) of the centre of mass, world axes [m/s]; angular_velocity (3,), world axes [rad/s].
    mass [kg]; None: from the shapes and their density.
    density: of shapes that have none of their own [kg/m^3]; None: 1000.
    com (3,) in the body's frame [m]; None: from the shapes, or zero when inertia is given.
    inertia: (3, 3) about com, body axes, or its diagonal (3,) [kg m^2]; None: from the shapes, scaled to mass.
    friction, restitution, tangential_restitution, material: of shapes that have none of their own; None: 0.5, 0, 0 and
    no material.
    plane: "xy", "xz" or "yz": the body moves in this plane of the world and rotates about its normal alone, on a planar
    joint with the coordinates angle (from the first axis towards the second) and these two [rad, m]; None: it is free.
    """

    name: str
    shapes: Sequence[Shape] = ()
    position: Numbers = (0.0, 0.0, 0.0)
    quaternion: Numbers = (1.0, 0.0, 0.0, 0.0)
    linear_velocity: Numbers = (0.0, 0.0, 0.0)
    angular_velocity: Numbers = (0.0, 0.0, 0.0)
    mass: float | None = None
    density: float | None = None
    com: Numbers | None = None
    inertia: Numbers | None = None
    friction: float | None = None
    restitution: float | None = None
    tangential_restitution: float | None = None
    material: str | None = None
    plane: str | None = None

    def __post_init__(self) -> None:
        make_plain(self)


@dataclass(frozen=True)
class LinkSpec:
    """A link on a joint. Mass, shapes and materials as in BodySpec, in the link's frame.

    parent: name of a link, a body or "world".
    position (3,) [m], quaternion (4,): the joint frame in the parent's frame; the link's frame is the joint
    frame after the joint's motion. On a floating joint they are the pose at the start, unless q0 gives it.
    mass: 0 is allowed between joints, if some link further out has mass or the joint has armature.
    inertia: zeros make a point mass, if the joint still moves its inertia.
    q0: joint coordinates at the start; None: zero (quaternions: no rotation).
    v0: joint velocities at the start; a number for one dof; None: zero.
    """

    name: str
    joint: Joint
    parent: str = "world"
    shapes: Sequence[Shape] = ()
    position: Numbers = (0.0, 0.0, 0.0)
    quaternion: Numbers = (1.0, 0.0, 0.0, 0.0)
    mass: float | None = None
    density: float | None = None
    com: Numbers | None = None
    inertia: Numbers | None = None
    q0: Numbers | None = None
    v0: Numbers | None = None
    friction: float | None = None
    restitution: float | None = None
    tangential_restitution: float | None = None
    material: str | None = None

    def __post_init__(self) -> None:
        make_plain(self)


@dataclass(frozen=True)
class PlaneSpec:
    """The static halfspace n . x <= offset.  normal (3,) in W, of any length, n its unit vector; offset [m].

    friction, restitution, tangential_restitution, material, group, mask: as in Shape.
    """

    normal: Numbers = (0.0, 0.0, 1.0)
    offset: float = 0.0
    name: str | None = None
    friction: float | None = None
    restitution: float | None = None
    tangential_restitution: float | None = None
    material: str | None = None
    group: int = 1
    mask: int = ALL_LAYERS

    def __post_init__(self) -> None:
        make_plain(self)


@dataclass(frozen=True)
class StaticSpec:
    """Static geometry fixed in W.  position (3,) [m] and quaternion (4,) of the frame that carries the shapes.

    linear_velocity (3,) [m/s] at the position and angular_velocity (3,) [rad/s], world axes: the velocity of the
    surface, while the geometry stays in place, like a conveyor belt or a turntable.
    """

    name: str | None = None
    shapes: Sequence[Shape] = ()
    position: Numbers = (0.0, 0.0, 0.0)
    quaternion: Numbers = (1.0, 0.0, 0.0, 0.0)
    linear_velocity: Numbers = (0.0, 0.0, 0.0)
    angular_velocity: Numbers = (0.0, 0.0, 0.0)
    friction: float | None = None
    restitution: float | None = None
    tangential_restitution: float | None = None
    material: str | None = None

    def __post_init__(self) -> None:
        make_plain(self)


@dataclass(frozen=True)
class PairSpec:
    """Friction and restitutions between two materials, instead of the combination rule's; None: the rule's."""

    material_a: str
    material_b: str
    friction: float | None = None
    restitution: float | None = None
    tangential_restitution: float | None = None

    def __post_init__(self) -> None:
        make_plain(self)


@dataclass(frozen=True)
class LoopSpec:
    """A tie between two links besides the tree of joints: see `SceneBuilder.add_loop`.

    link_a, link_b: names, or "world".  joint: a joint that closes the loop (springs, motors and limits stay with the
    tree's joints), or Distance, Spring, Rolling, Gear, Driven.
    position_a (3,) [m], quaternion_a (4,): the joint's frame on link a;  position_b, quaternion_b: on link b; None:
    the pose of the frame on a at the start.
    active: whether a loop that a world may cut and join (see `carom.Live.attach`) holds at the start; None: it always
    holds.
    """

    link_a: str
    joint: Any
    link_b: str = "world"
    position_a: Numbers = (0.0, 0.0, 0.0)
    quaternion_a: Numbers = (1.0, 0.0, 0.0, 0.0)
    position_b: Numbers | None = None
    quaternion_b: Numbers | None = None
    name: str | None = None
    active: bool | None = None

    def __post_init__(self) -> None:
        make_plain(self)


@dataclass(frozen=True)
class SiteSpec:
    """A named frame on a link, for sensors and for queries of its pose.

    link: name of a body or link, or "world".  position (3,) [m] and quaternion (4,): in the link's frame.
    """

    name: str
    link: str = "world"
    position: Numbers = (0.0, 0.0, 0.0)
    quaternion: Numbers = (1.0, 0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        make_plain(self)


@dataclass(frozen=True)
class SensorSpec:
    """A sensor, which `report="sensors"` reads: see `SceneBuilder.add_sensor`.

    kind: the measured quantity.  site: name of its site.  link: name of its joint's link or of its body; other: name of
    the body that must touch it, None for any.  rays: (R, 3) directions of a rangefinder in the site's frame; None: one,
    along z.  max_distance: range of its rays [m]; None: infinite.
    """

    name: str
    kind: str
    site: str | None = None
    link: str | None = None
    other: str | None = None
    rays: Numbers | None = None
    max_distance: float | None = None

    def __post_init__(self) -> None:
        make_plain(self)


def _describe(scene: SceneSpec) -> tuple[str, list[Row]]:
    free = [link.name for link in scene.links if isinstance(link, BodySpec)]
    hung = [link.name for link in scene.links if isinstance(link, LinkSpec)]
    head = ", ".join((count(len(free), "free body"), count(len(hung), "link"), count(len(scene.statics), "static")))
    rows = [("free bodies", names(free)), ("links", names(hung))]
    rows += [("statics", names(static.name or type(static).__name__ for static in scene.statics))]
    rows += [("loops", counts(getattr(loop.joint, "kind", "?") for loop in scene.loops))] if scene.loops else []
    rows += [("sites", names(site.name for site in scene.sites))] if scene.sites else []
    rows += [("sensors", names(sensor.name for sensor in scene.sensors))] if scene.sensors else []
    rules = [f"{rule.material_a} on {rule.material_b}" for rule in scene.pairs]
    rules += [f"{' and '.join(map(str, pair))} never touch" for pair in scene.exclusions]
    rows += [("rules", names(rules))] if rules else []
    return head, [*(row for row in rows if row[1]), ("gravity [m/s^2]", str(scene.gravity))]


@display_as(_describe)
@dataclass(frozen=True)
class SceneSpec:
    """A whole scene.

    gravity (3,) in W [m/s^2].  links: bodies and links, as added.  statics: planes and static geometry.
    loops: ties that close loops of links.  baumgarte [1/s]: rate at which errors of the loops are fed back into
    accelerations; None: they are removed after each step, to rounding.
    pairs: rules between materials.  exclusions: pairs of names (of bodies, links, statics, or "world": all
    statics) that never touch.
    gap_band [m]: largest gap that counts as touching; None: 1e-9 in double precision, 1e-5 in single, times the size of
    the largest moving shape if that is above a metre. rest_speed [m/s]: contacts that close more slowly rest and do not
    bounce; None: the speed of a fall through ten bands.
    sites: named frames on links.  sensors: those that `report="sensors"` reads.
    filtering: whether layers, masks and ignored pairs may change while a world runs (`carom.Live.set_layers`); pairs
    that may not touch at first cost as much as others.
    """

    gravity: Numbers = (0.0, 0.0, -9.81)
    links: tuple[BodySpec | LinkSpec, ...] = ()
    statics: tuple[PlaneSpec | StaticSpec, ...] = ()
    pairs: tuple[PairSpec, ...] = ()
    exclusions: tuple[tuple[str, str], ...] = ()
    gap_band: float | None = None
    rest_speed: float | None = None
    loops: tuple[LoopSpec, ...] = ()
    baumgarte: float | None = None
    sites: tuple[SiteSpec, ...] = ()
    sensors: tuple[SensorSpec, ...] = ()
    filtering: bool = False

    def __post_init__(self) -> None:
        make_plain(self)
