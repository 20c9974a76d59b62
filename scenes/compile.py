"""compile_scene checks a description, rejects bad input, and returns (Model, State).

Everything is computed in numpy float64 and cast at the end.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, overload

import jax
import numpy as np
from numpy.typing import DTypeLike

from ..collision.host.radii import bounding_radii
from ..collision.mass import MassProperties
from ..collision.poses import Array, rotation_matrix
from ..engine.model import Model
from ..engine.planar.model import Chain, ChainState
from ..engine.state import State
from ..engine.topology import Topology
from .builder import SceneBuilder
from .chains.compile import compile_chain
from .chains.spec import ChainSpec
from .compiling import check
from .compiling.coordinates import checked_coordinates, in_coordinates
from .compiling.flat import flat_joint, flat_velocity
from .compiling.inertia import link_mass
from .compiling.joint_rows import JointRow, joint_row, start_q, start_v
from .compiling.loop_rows import no_loops, with_loops
from .compiling.order import label_of, parent_name, sort_links
from .compiling.overlaps import overlap_text
from .compiling.pairs import pair_table, shape_layers
from .compiling.precision import checked_dtype
from .compiling.sensor_rows import no_sites, with_sensors
from .compiling.shape_rows import ShapeRow, shape_rows
from .compiling.tree_mass import check_tree
from .compiling.windows import windows
from .joint_specs import Floating
from .spec import BodySpec, LinkSpec, SceneSpec

GAP_BAND = {"float32": 1e-5, "float64": 1e-9}  # [m] gap that counts as touching, in scenes of about a metre
STANDARD_GRAVITY = 9.81  # [m/s^2] for the rest speed of scenes without gravity

DOF_FIELDS = (
    "armature", "damping", "loss", "stiffness", "rest", "motor_gain", "motor_kp", "motor_kd", "motor_effort",
    "motor_target", "lower", "upper", "limit_restitution",
)  # fmt: skip


@overload
def compile_scene(scene: ChainSpec, dtype: DTypeLike | None = None) -> tuple[Chain, ChainState]: ...
@overload
def compile_scene(
    scene: SceneSpec | SceneBuilder,
    dtype: DTypeLike | None = None,
    *,
    coordinates: str = "reduced",
    overlaps: str = "warn",
) -> tuple[Model, State]: ...
def compile_scene(
    scene: Any, dtype: DTypeLike | None = None, *, coordinates: str = "reduced", overlaps: str = "warn"
) -> tuple[Model, State] | tuple[Chain, ChainState]:
    """Check a SceneSpec (or SceneBuilder), and compile it to a Model and the State at t = 0; or a ChainSpec to a Chain
    and a ChainState.

    dtype: float32 or float64; None: float64 if jax's x64 mode is on, else float32.
    coordinates: "reduced": those of the joints; "maximal": every link is a body of its own, with its pose in q (as a
    floating joint's), and constraint forces hold the joints; "penalty": the same, with stiff springs.
    overlaps: "warn" names shapes that may touch and overlap at the start, with the depth, in a SceneWarning (surfaces
    of triangles and heightfields are left out); "ignore" does not check.
    Links keep the order in which they were added, except that parents come before their children.
    Quaternions whose length is within 1e-3 of one are normalised, others rejected; axes and normals may have
    any length except zero. Raises SceneError (a ValueError) that names the body, the field, the value and the fix.
    """
    kind, form = checked_dtype("compile_scene", dtype), checked_coordinates(coordinates)
    if overlaps not in ("warn", "ignore"):
        check.reject("compile_scene", "overlaps", overlaps, "it must be 'warn' or 'ignore'")
    spec = scene.build() if hasattr(scene, "build") else scene
    if isinstance(spec, ChainSpec):
        if form != "reduced":
            fix = "leave it out"
            check.reject("compile_scene", "coordinates", coordinates, f"chains are by the places of joints: {fix}")
        return compile_chain(spec, kind)
    if not isinstance(spec, SceneSpec):
        fix = "give a SceneSpec, a SceneBuilder, or carom.load(name or path); of a chain a ChainSpec"
        check.reject("compile_scene", "scene", scene, f"it must be the description of a scene: {fix}")
    gravity = check.numbers("scene", "gravity", spec.gravity, (3,), "m/s^2")
    specs, parents = sort_links(spec)
    links = [_link_row(link) for link in specs]
    joints = [link.joint for link in links]
    check_tree([label_of(link) for link in specs], parents, [link.mass for link in links], joints)
    topology, shape_arrays, owners = _shapes(spec, specs, parents, links)
    arrays = _link_arrays(links) | shape_arrays | {"gravity": gravity, "gap_band": 0.0, "rest_speed": 0.0}
    arrays |= {"baumgarte": 0.0} | no_loops() | no_sites()
    arrays |= {f: np.concatenate([joint.dofs[f] for joint in joints]) for f in DOF_FIELDS}
    on_device = lambda name, x: jax.device_put(check.in_kind("scene", name, x, kind))  # noqa: E731  # jnp.asarray compiles a program for each shape
    model = Model(topology=topology, **{name: on_device(name, array) for name, array in arrays.items()})
    model = model.replace(topology=replace(topology, shape_window=windows(model)), **_touch(spec, model))
    q, v = np.concatenate([link.q for link in links]), np.concatenate([link.v for link in links])
    state = State(q=on_device("q", q), v=on_device("v", v), t=on_device("t", 0.0))
    model, state = with_loops(spec, model, state)
    if overlaps == "warn" and (text := overlap_text(model, np.asarray(state.q), owners)):
        warnings.warn(text, check.SceneWarning, stacklevel=2)
    model, state = in_coordinates(form, spec, model, state)
    return with_sensors(spec, model, form), state


def _touch(spec: SceneSpec, model: Model) -> dict[str, jax.Array]:
    """gap_band () and rest_speed () of the model, as given or their defaults."""
    kind, moving = model.gravity.dtype, np.array(model.topology.shape_links, int) >= 0
    if spec.gap_band is None:
        radius = bounding_radii(model)[moving].max(initial=1.0)
        band = GAP_BAND[kind.name] * radius
    else:
        band = check.positive("scene", "gap_band", spec.gap_band, unit="m")
    if spec.rest_speed is None:
        speed = rest_speed(np.asarray(model.gravity), band)
    else:
        speed = check.non_negative("scene", "rest_speed", spec.rest_speed, unit="m/s")
    return {"gap_band": jax.device_put(np.asarray(band, kind)), "rest_speed": jax.device_put(np.asarray(speed, kind))}


def rest_speed(gravity: Array, band: Array | float) -> Array:
    """Speed after a fall of ten gap bands [m/s]: the default of a scene with gravity (3,)."""
    fall = float(np.linalg.norm(gravity)) or STANDARD_GRAVITY
    return np.sqrt(2 * fall * 10 * band)


@dataclass(frozen=True)
class _LinkRow:
    """One link, checked: its part of the link arrays, of q and of v."""

    mass: MassProperties
    joint: JointRow
    position: Array
    quaternion: Array
    q: Array
    v: Array
    shapes: list[ShapeRow]


def _link_row(spec: BodySpec | LinkSpec) -> _LinkRow:
    where = label_of(spec)
    position = check.numbers(where, "position", spec.position, (3,), "m")
    quaternion = check.quaternion(where, "quaternion", spec.quaternion)
    plane = getattr(spec, "plane", None)
    flat = None if plane is None else flat_joint(where, plane, position, quaternion)
    joint = joint_row(where, flat[0] if flat else getattr(spec, "joint", Floating()))
    if joint.kind == "floating" and parent_name(spec) != "world":
        fix = "let it hang on 'world', or use another joint"
        check.reject(where, "parent", parent_name(spec), f"a floating joint must hang on the world: {fix}")
    shapes = shape_rows(spec)
    mass = link_mass(where, spec, shapes, jointed=joint.kind != "floating")
    if isinstance(spec, BodySpec):
        q, v = np.concatenate([position, quaternion]), _body_velocity(where, spec, mass, quaternion)
        if flat is not None:
            return _LinkRow(mass, joint, *flat[1:], flat_velocity(where, plane, v), shapes)
        return _LinkRow(mass, joint, np.zeros(3), np.eye(4)[0], q, v, shapes)
    if joint.kind != "floating":
        q, v = start_q(where, joint, spec.q0), start_v(where, joint, spec.v0)
        return _LinkRow(mass, joint, position, quaternion, q, v, shapes)
    # a floating joint's coordinates are in world axes: its pose is where it starts, there is no joint frame
    pose = np.concatenate([position, quaternion])
    if spec.q0 is not None and not np.array_equal(pose, (0, 0, 0, 1, 0, 0, 0)):
        check.reject(where, "q0", spec.q0, "a floating link's position and quaternion are its q0: give one of the two")
    q = pose if spec.q0 is None else start_q(where, joint, spec.q0)
    return _LinkRow(mass, joint, np.zeros(3), np.eye(4)[0], q, start_v(where, joint, spec.v0), shapes)


def _body_velocity(where: str, spec: BodySpec, mass: MassProperties, quaternion: Array) -> Array:
    """Angular velocity and velocity of the body's origin (6,), from that of the centre of mass, world axes."""
    w = check.numbers(where, "angular_velocity", spec.angular_velocity, (3,), "rad/s")
    v_com = check.numbers(where, "linear_velocity", spec.linear_velocity, (3,), "m/s")
    return np.concatenate([w, v_com - np.cross(w, rotation_matrix(quaternion) @ mass.com)])


def _link_arrays(links: list[_LinkRow]) -> dict[str, Array]:
    return {
        "mass": np.array([link.mass.mass for link in links]),
        "com": np.array([link.mass.com for link in links]),
        "inertia": np.array([link.mass.inertia for link in links]),
        "joint_position": np.array([link.position for link in links]),
        "joint_quaternion": np.array([link.quaternion for link in links]),
        "axis": np.array([link.joint.axis for link in links]),
        "axis2": np.array([link.joint.axis2 for link in links]),
        "pitch": np.array([link.joint.pitch for link in links]),
    }


def _shapes(
    scene: SceneSpec, specs: tuple[BodySpec | LinkSpec, ...], parents: tuple[int, ...], links: list[_LinkRow]
) -> tuple[Topology, dict[str, Array], list[str]]:
    """The topology, the shape and pair arrays, and the owner of each shape, as messages call it: the world's shapes
    first, then link by link."""
    entries: list[tuple[ShapeRow, int, str | None, str]] = []  # shape, link, name and label of its owner
    for k, static in enumerate(scene.statics):
        entries += [(row, -1, static.name, label_of(static, k)) for row in shape_rows(static, k, moving=False)]
    for k, (spec, link) in enumerate(zip(specs, links, strict=True)):
        entries += [(row, k, spec.name, label_of(spec)) for row in link.shapes]
    rows, on, owners, labels = (list(column) for column in zip(*entries, strict=True)) if entries else ([], [], [], [])
    names, joints = tuple(spec.name for spec in specs), tuple(link.joint.kind for link in links)
    pairs, numbers, ruled = pair_table(scene, names, parents, joints, rows, on, owners)
    geometry = [row.geometry for row in rows]
    ends = np.cumsum([0, *(len(g.points) for g in geometry)]).tolist()
    topology = Topology(
        names, parents, joints, tuple(g.kind for g in geometry), tuple(on), tuple(pairwise(ends)),
        tuple(g.faces for g in geometry), tuple(g.grid for g in geometry), pairs=pairs, ruled=ruled,
        driven=any(row.twist.any() for row in rows), filtered=scene.filtering,
        shape_layers=tuple(map(tuple, shape_layers(rows).tolist())),
    )  # fmt: skip
    return (
        topology,
        {
            "shape_size": _stack([g.size for g in geometry], 3),
            "shape_position": _stack([row.position for row in rows], 3),
            "shape_quaternion": _stack([row.quaternion for row in rows], 4),
            "friction": np.array([row.friction for row in rows]),
            "restitution": np.array([row.restitution for row in rows]),
            "tangential_restitution": np.array([row.tangential_restitution for row in rows]),
            "points": np.concatenate([np.zeros((0, 3)), *(g.points for g in geometry)]),
            "shape_twist": _stack([row.twist for row in rows], 6),
            **numbers,
        },
        labels,
    )


def _stack(rows: list[Array], width: int) -> Array:
    return np.array(rows).reshape(-1, width)
