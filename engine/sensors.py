"""Sensors of a scene as plain hashable data: the quantity and the location of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Kind(NamedTuple):
    """A kind of sensor.  at: its location, "site", "joint" or "bodies".  size: count of its numbers; 0: that depends.
    impulsive: whether impacts have a reading of their own, apart from smooth forces.
    sums: whether it reads the time between frames, not the instant at their end."""

    at: str
    size: int
    sums: bool = False
    impulsive: bool = False


KINDS = {
    "position": Kind("site", 3), "orientation": Kind("site", 4),
    "linear_velocity": Kind("site", 3), "angular_velocity": Kind("site", 3),
    "velocimeter": Kind("site", 3), "gyro": Kind("site", 3), "rangefinder": Kind("site", 0),
    "accelerometer": Kind("site", 3, True, True),
    "force": Kind("site", 3, True, True), "torque": Kind("site", 3, True, True),
    "joint_position": Kind("joint", 0), "joint_velocity": Kind("joint", 0),
    "joint_effort": Kind("joint", 0, True, True),
    "touch": Kind("bodies", 1, True, True), "contact": Kind("bodies", 1, True),
}  # fmt: skip


@dataclass(frozen=True)
class Site:
    """A named frame on a link, -1 the world; `Model.site_position` and `Model.site_quaternion` say where."""

    name: str
    link: int


@dataclass(frozen=True)
class Sensor:
    """kind: key of KINDS.  site: its number, -1 of a sensor that has none.
    link, other: of a joint or of bodies, -1 the world; other is None where any body counts.
    rays: (R, 3) directions in the site's frame.  reach: their length [m]."""

    name: str
    kind: str
    site: int = -1
    link: int = -1
    other: int | None = None
    rays: tuple[tuple[float, float, float], ...] = ()
    reach: float = float("inf")
