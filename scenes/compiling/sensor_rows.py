"""Sites and sensors of a scene: their part of the topology and of the model's arrays."""

from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np

from ...collision.poses import Array
from ...engine.joints import JOINTS
from ...engine.model import Model
from ...engine.sensors import KINDS, Sensor, Site
from ...engine.topology import Topology
from ..spec import SceneSpec, SensorSpec, SiteSpec
from . import check

UP = ((0.0, 0.0, 1.0),)  # default direction of a rangefinder, in its site's frame
FIELDS = {"site": ("site",), "joint": ("link",), "bodies": ("link", "other")}  # fields that say where a sensor is


def no_sites() -> dict[str, Array]:
    """The arrays of a model without sites."""
    return {"site_position": np.zeros((0, 3)), "site_quaternion": np.zeros((0, 4))}


def with_sensors(scene: SceneSpec, model: Model, coordinates: str) -> Model:
    """The model with the scene's sites and sensors; raises SceneError."""
    if not scene.sites and not scene.sensors:
        return model
    topology = model.topology
    _check_names("site", [site.name for site in scene.sites])
    _check_names("sensor", [sensor.name for sensor in scene.sensors])
    sites = tuple(Site(site.name, _link(f'site "{site.name}"', "link", site.link, topology)) for site in scene.sites)
    sensors = tuple(_sensor(spec, sites, topology, coordinates) for spec in scene.sensors)
    arrays = {"site_position": _positions(scene.sites), "site_quaternion": _quaternions(scene.sites)}
    kind = model.mass.dtype
    on_device = {name: jax.device_put(check.in_kind("scene", name, x, kind)) for name, x in arrays.items()}
    return replace(model, topology=replace(topology, sites=sites, sensors=sensors), **on_device)


def _positions(sites: tuple[SiteSpec, ...]) -> Array:
    rows = [check.numbers(f'site "{site.name}"', "position", site.position, (3,), "m") for site in sites]
    return np.array(rows).reshape(-1, 3)


def _quaternions(sites: tuple[SiteSpec, ...]) -> Array:
    rows = [check.quaternion(f'site "{site.name}"', "quaternion", site.quaternion) for site in sites]
    return np.array(rows).reshape(-1, 4)


def _check_names(noun: str, names: list[str]) -> None:
    for k, name in enumerate(names):
        check.text(f"{noun} {k}", "name", name)
        if name in names[:k]:
            check.reject(f'{noun} "{name}"', "name", name, f"another {noun} has it: give each a name of its own")


def _link(where: str, field: str, name: str | None, topology: Topology) -> int:
    if name == "world":
        return -1
    if name not in topology.names:
        known = ("world", *topology.names)
        check.reject_name(where, field, name, known, "it must be the name of a body or link")
    return topology.names.index(name)


def _sensor(spec: SensorSpec, sites: tuple[Site, ...], topology: Topology, coordinates: str) -> Sensor:
    where = f'sensor "{spec.name}"'
    if spec.kind not in KINDS:
        check.reject_name(where, "kind", spec.kind, KINDS, "it must be the kind of a sensor")
    at = KINDS[spec.kind].at
    for field in ("site", "link", "other"):
        given = getattr(spec, field)
        if given is not None and field not in FIELDS[at]:
            check.reject(where, field, given, f"a {spec.kind} has none: leave it out")
        if given is None and field == FIELDS[at][0]:
            fix = "name a site of the scene" if field == "site" else "name a body or link"
            check.reject(where, field, given, f"a {spec.kind} needs one: {fix}")
    if spec.kind != "rangefinder" and (spec.rays is not None or spec.max_distance is not None):
        field = "max_distance" if spec.rays is None else "rays"
        check.reject(where, field, getattr(spec, field), "only a rangefinder has it: leave it out")
    if at == "site":
        return _at_site(spec, where, sites)
    link = _link(where, "link", spec.link, topology)
    if at == "joint":
        _check_joint(where, spec, link, topology, coordinates)
    other = None if spec.other is None else _link(where, "other", spec.other, topology)
    return Sensor(spec.name, spec.kind, link=link, other=other)


def _at_site(spec: SensorSpec, where: str, sites: tuple[Site, ...]) -> Sensor:
    names = [site.name for site in sites]
    if spec.site not in names:
        check.reject_name(where, "site", spec.site, names, "it must be the name of a site")
    number = names.index(spec.site)
    if KINDS[spec.kind].sums and sites[number].link < 0:
        check.reject(where, "site", spec.site, f"a {spec.kind} must be at a site of a body or link, not of the world")
    if spec.kind != "rangefinder":
        return Sensor(spec.name, spec.kind, number)
    rays = check.numbers(where, "rays", UP if spec.rays is None else spec.rays, (-1, 3))
    if not len(rays) or not rays.any(1).all():
        check.reject(where, "rays", spec.rays, "each must have a direction: give (R, 3) numbers that are not all 0")
    reach = np.inf if spec.max_distance is None else check.positive(where, "max_distance", spec.max_distance, unit="m")
    return Sensor(spec.name, spec.kind, number, rays=tuple(map(tuple, rays.tolist())), reach=float(reach))


def _check_joint(where: str, spec: SensorSpec, link: int, topology: Topology, coordinates: str) -> None:
    if coordinates != "reduced":
        check.reject(where, "kind", spec.kind, "it is of a joint, and there are none: compile coordinates='reduced'")
    if link < 0 or not JOINTS[topology.joints[link]].nv:
        check.reject(where, "link", spec.link, "it has no joint that moves: name the link that a joint moves")
