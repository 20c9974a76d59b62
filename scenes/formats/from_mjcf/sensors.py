"""Sites and sensors of a compiled MJCF model. Frames of bodies and geoms with sensors become sites of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ...spec import SensorSpec, SiteSpec
from .compiled import HINGE, SLIDE, Compiled
from .ledger import Ledger
from .links import IDENTITY, BodyFrame
from .loops import carrier
from .shapes import PLANE

BODY, XBODY, GEOM, SITE = 1, 2, 5, 6  # mjtObj
AT_FRAMES = {
    "framepos": "position", "framequat": "orientation", "framelinvel": "linear_velocity",
    "frameangvel": "angular_velocity", "velocimeter": "velocimeter", "gyro": "gyro", "rangefinder": "rangefinder",
    "accelerometer": "accelerometer", "force": "force", "torque": "torque",
}  # fmt: skip
OF_JOINTS = {"jointpos": "joint_position", "jointvel": "joint_velocity"}
CAMERA = 7  # mjtObj
DISTANCE = 1  # the bit of a rangefinder's data that is its distance
BEARING = {"accelerometer", "force", "torque"}  # sensors that the world cannot have


class Sensors(NamedTuple):
    sites: tuple[SiteSpec, ...]
    sensors: tuple[SensorSpec, ...]


def read_sensors(
    file: Compiled, body_frames: list[BodyFrame], kinds: Mapping[int, str], unseen: bool, ledger: Ledger
) -> Sensors:
    """Read sites and sensors.  body_frames: of every body, see `links.py`.

    kinds: names of MuJoCo's kinds of sensors, by number.  unseen: whether geoms are left out that MuJoCo's rays hit."""
    sites = {SITE: {s: _site(file, body_frames, SITE, s) for s in range(file.m.nsite)}}
    sensors = []
    for i in range(file.m.nsensor):
        kind, name = kinds[int(file.m.sensor_type[i])], file.name("sensor", i)
        sensor = _sensor(file, body_frames, i, kind, name, sites)
        if isinstance(sensor, str):
            ledger.note("ignored", f"{kind} sensor", name, sensor)
            continue
        sensors.append(sensor)
        if file.m.sensor_cutoff[i]:
            ledger.note("ignored", f"cutoff of {kind} sensor", name, "readings are not cut off")
        why = "it reads all contacts of its body, not those within its site" if kind == "touch" else ""
        if kind == "rangefinder":
            why = "; ".join(_of_rays(file, i, unseen))
        ledger.note("approximated" if why else "taken", f"{kind} sensor", name, why)
    rows = tuple(site for kind in sites.values() for site in kind.values())
    return Sensors(rows, tuple(sensors))


def _of_rays(file: Compiled, i: int, unseen: bool) -> list[str]:
    """How the rays of a rangefinder differ from MuJoCo's."""
    m = file.m
    bounded = (m.geom_size[m.geom_type == PLANE, :2] > 0).all(1).any()
    return [
        *(["its rays go through geoms that touch nothing"] if unseen else []),
        *(["planes have no ends for it"] if bounded else []),
        *(["it reads the distance alone"] if file.value("sensor_intprm", i)[0] not in (0, DISTANCE) else []),
    ]


def _sensor(
    file: Compiled, body_frames: list[BodyFrame], i: int, kind: str, name: str, sites: dict[int, dict[int, SiteSpec]]
) -> SensorSpec | str:
    """The sensor, or the reason why there is none."""
    m = file.m
    of, number = int(m.sensor_objtype[i]), int(m.sensor_objid[i])
    if kind in OF_JOINTS:
        if m.jnt_type[number] not in (HINGE, SLIDE):
            return "Carom's are of hinges and slides"
        return SensorSpec(name, OF_JOINTS[kind], link=carrier(file, number))
    if kind == "touch":
        owner = body_frames[int(m.site_bodyid[number])].owner
        return SensorSpec(name, "touch", link=owner)
    if kind in AT_FRAMES and of == CAMERA:
        return "it is on a camera: Carom's are on sites, bodies and geoms"
    if kind not in AT_FRAMES or of not in (BODY, XBODY, GEOM, SITE):
        return "Carom has no such sensor"
    if m.sensor_refid[i] >= 0:
        return "it is relative to another frame"
    site = sites.setdefault(of, {}).setdefault(number, _site(file, body_frames, of, number))
    if kind in BEARING and site.link == "world":
        return "it is fixed to the world"
    return SensorSpec(name, AT_FRAMES[kind], site.name)


def _site(file: Compiled, body_frames: list[BodyFrame], of: int, i: int) -> SiteSpec:
    """The frame of a site, a geom, or a body: MuJoCo's "body" is its principal axes, "xbody" its own."""
    m = file.m
    match of:
        case x if x == SITE:
            name, body, frame = file.name("site", i), int(m.site_bodyid[i]), (m.site_pos[i], m.site_quat[i])
        case x if x == GEOM:
            name, body, frame = f"{file.name('geom', i)} (geom)", int(m.geom_bodyid[i]), (m.geom_pos[i], m.geom_quat[i])
        case x if x == BODY:
            name, body, frame = f"{file.name('body', i)} (principal axes)", i, (m.body_ipos[i], m.body_iquat[i])
        case _:
            name, body, frame = f"{file.name('body', i)} (body)", i, (np.zeros(3), IDENTITY)
    site_frame = body_frames[body].compose(*frame)
    return SiteSpec(name, site_frame.owner, tuple(site_frame.position.tolist()), tuple(site_frame.quaternion.tolist()))
