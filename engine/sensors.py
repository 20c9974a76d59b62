"""Sensors of a scene as plain hashable data: the quantity and the location of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class SensorKind(NamedTuple):
    """A kind of sensor.  at: its location, "site", "joint" or "bodies".  size: count of its numbers, 0 if that depends.
    impulsive: whether impacts have a reading of their own, apart from smooth forces.
    sums: whether it reads the time between frames instead of the instant at their end."""

    at: str
    size: int
    sums: bool = False
    impulsive: bool = False


KINDS = {
    "position": SensorKind("site", 3), "orientation": SensorKind("site", 4),
    "linear_velocity": SensorKind("site", 3), "angular_velocity": SensorKind("site", 3),
    "velocimeter": SensorKind("site", 3), "gyro": SensorKind("site", 3), "rangefinder": SensorKind("site", 0),
    "accelerometer": SensorKind("site", 3, True, True),
    "force": SensorKind("site", 3, True, True), "torque": SensorKind("site", 3, True, True),
    "joint_position": SensorKind("joint", 0), "joint_velocity": SensorKind("joint", 0),
    "joint_effort": SensorKind("joint", 0, True, True),
    "touch": SensorKind("bodies", 1, True, True), "contact": SensorKind("bodies", 1, True),
}  # fmt: skip


@dataclass(frozen=True)
class Site:
    """A named frame on a link (-1: the world); its pose is in `Model.site_position` and `Model.site_quaternion`."""

    name: str
    link: int


@dataclass(frozen=True)
class Sensor:
    """kind: key of KINDS.  site: index of its site, -1 for a sensor without one.
    link, other: of a joint or of bodies, -1 is the world; other is None where any body counts.
    rays: (R, 3) directions in the site's frame.  reach: their length [m]."""

    name: str
    kind: str
    site: int = -1
    link: int = -1
    other: int | None = None
    rays: tuple[tuple[float, float, float], ...] = ()
    reach: float = float("inf")
