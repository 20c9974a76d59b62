"""The parameters of a model: the shape of each, and its conversion in `Model.replace`."""

from __future__ import annotations

from collections.abc import Iterable
from types import ModuleType
from typing import TYPE_CHECKING, Any

import jax.core
import jax.numpy as jnp
import numpy as np

from .algebra.vec3 import Scalar
from .joints import JOINTS

if TYPE_CHECKING:
    from .topology import Topology

# axes of each parameter without lanes: nl links, nv degrees of freedom, ns shapes, np pairs, nk loops, m points,
# nf sites, filtered: the pairs where they are filtered, else 0
AXES: dict[str, tuple[str | int, ...]] = {
    "mass": ("nl",), "com": ("nl", 3), "inertia": ("nl", 3, 3),
    "joint_position": ("nl", 3), "joint_quaternion": ("nl", 4), "axis": ("nl", 3), "axis2": ("nl", 3), "pitch": ("nl",),
    "armature": ("nv",), "damping": ("nv",), "loss": ("nv",), "stiffness": ("nv",), "rest": ("nv",),
    "motor_gain": ("nv",), "motor_kp": ("nv",), "motor_kd": ("nv",), "motor_effort": ("nv",), "motor_target": ("nv",),
    "lower": ("nv",), "upper": ("nv",), "limit_restitution": ("nv",),
    "gravity": (3,), "gap_band": (), "rest_speed": (),
    "shape_size": ("ns", 3), "shape_position": ("ns", 3), "shape_quaternion": ("ns", 4),
    "friction": ("ns",), "restitution": ("ns",), "tangential_restitution": ("ns",),
    "points": ("m", 3), "shape_twist": ("ns", 6),
    "pair_friction": ("np",), "pair_restitution": ("np",), "pair_tangential_restitution": ("np",),
    "pair_touches": ("filtered",),
    "loop_position": ("nk", 2, 3), "loop_quaternion": ("nk", 2, 4), "loop_size": ("nk",), "loop_course": ("nk", 5),
    "loop_spring": ("nk", 2, 4), "loop_stiff": ("nk", 2), "loop_damp": ("nk", 2), "loop_limits": ("nk", 2, 2),
    "loop_active": ("nk",),
    "baumgarte": (), "site_position": ("nf", 3), "site_quaternion": ("nf", 4),
}  # fmt: skip


_NOT_NEGATIVE = (
    "mass", "armature", "damping", "loss", "motor_effort", "gap_band", "rest_speed", "shape_size", "friction",
    "pair_friction",
)  # fmt: skip
# least and greatest value; other parameters may have any value
_RANGES: dict[str, tuple[float, float]] = {
    **dict.fromkeys(_NOT_NEGATIVE, (0.0, np.inf)),
    **dict.fromkeys(("restitution", "pair_restitution", "limit_restitution"), (0.0, 1.0)),
    **dict.fromkeys(("tangential_restitution", "pair_tangential_restitution"), (-1.0, 1.0)),
}
_UNIT = ("joint_quaternion", "axis", "axis2", "shape_quaternion", "loop_quaternion", "site_quaternion")


def _root(xp: ModuleType, a: Scalar, b: Scalar) -> Scalar:
    """sqrt(a b), with a finite derivative at 0."""
    product = a * b
    return xp.where(product > 0, xp.sqrt(xp.where(product > 0, product, 1)), 0)


# how to combine the numbers of two shapes into that of their pair; xp: numpy, or jax.numpy
COMBINED = {
    "friction": _root,
    "restitution": lambda xp, a, b: xp.minimum(a, b),
    "tangential_restitution": lambda xp, a, b: xp.minimum(a, b),
}


def is_array(x: object) -> bool:
    """Return whether it is a parameter's value; a model may also hold axes for vmap, or shardings, instead."""
    return hasattr(x, "shape") and hasattr(x, "dtype")


def check_parameter(name: str, value: Any, old: Any, topology: Topology) -> Any:
    """Check the value that replaces an old one; return it in the parameter's shape, with leading axes for lanes."""
    if not is_array(old):
        return value
    if not is_array(value):
        value = jnp.asarray(value, old.dtype)
    axes = AXES[name]
    own = tuple(_lengths(topology)[axis] if isinstance(axis, str) else axis for axis in axes)
    if tuple(value.shape[value.ndim - len(own) :]) != own:
        lanes = ", ".join(map(str, ("lanes", *own)))
        raise ValueError(f"Model.replace: {name} has shape {tuple(value.shape)}; it must be {own}, or ({lanes})")
    if _is_known(value):
        numbers = np.asarray(value)
        comparable = _is_known(old) and tuple(old.shape[old.ndim - len(own) :]) == own  # not if the topology changes
        wrong, why = _flaw(name, numbers, np.asarray(old) if comparable else numbers)
        if wrong.any():
            first = tuple(np.argwhere(wrong)[0].tolist())
            at = f"[{', '.join(map(str, first))}]" if first else ""
            said = f"{numbers[first]:g}" if numbers[first].ndim == 0 else np.array2string(numbers[first], precision=6)
            raise ValueError(f"Model.replace: {name}{at} is {said}; {why}")
    return value


def _flaw(name: str, value: np.ndarray, old: np.ndarray) -> tuple[np.ndarray, str]:
    """Entries, or rows of entries, that make no sense, bool; and the reason."""
    if np.isnan(value).any():
        return np.isnan(value), "it must be a number"
    if name in _RANGES:
        least, most = _RANGES[name]
        limits = "it must not be negative" if most == np.inf else f"it must be from {least:g} to {most:g}"
        return (value < least) | (value > most), limits
    if name in _UNIT:  # a joint without axes has zeros there
        length, rows = np.linalg.norm(value, axis=-1), old.reshape(-1, *value.shape[value.ndim - len(AXES[name]) :])
        slack = np.sqrt(np.finfo(value.dtype).eps)
        given = np.broadcast_to((rows != 0).any((0, -1)), length.shape)
        return given & ~(np.abs(length - 1) <= slack), "its length must be 1: divide it by its length"
    if name == "inertia":
        return ~_is_inertia(value), "it must be symmetric and without negative principal moments [kg m^2]"
    return np.zeros((), bool), ""


def _is_inertia(inertia: np.ndarray) -> np.ndarray:
    """Return whether matrices (..., 3, 3) are symmetric and positive semidefinite to rounding, by principal minors."""
    scale = np.abs(inertia).max((-2, -1), initial=0)
    slack = 64 * np.finfo(inertia.dtype).eps
    unit = np.where(np.isfinite(inertia), inertia, 0) / np.where(scale > 0, scale, 1)[..., None, None]
    asymmetry = np.abs(unit - np.swapaxes(unit, -1, -2)).max((-2, -1), initial=0)
    diagonal = np.einsum("...ii->...i", unit)
    pairs = [diagonal[..., i] * diagonal[..., j] - unit[..., i, j] ** 2 for i, j in ((0, 1), (0, 2), (1, 2))]
    minors = np.stack([*np.moveaxis(diagonal, -1, 0), *pairs, np.linalg.det(unit)], -1)
    return np.isfinite(scale) & (asymmetry <= slack) & (minors >= -slack).all(-1)


def check_limits(lower: object, upper: object) -> None:
    """Raise ValueError where a joint's lower limit is above the upper one."""
    if is_array(lower) and is_array(upper) and _is_known(lower) and _is_known(upper):
        wrong = np.argwhere(np.asarray(lower) > np.asarray(upper))
        if len(wrong):
            dof = wrong[0][-1]
            raise ValueError(f"Model.replace: lower is above upper at degree of freedom {dof}; give both")


def pair_numbers(name: str, values: Any, old: Any, topology: Topology) -> Any:
    """Return a number of all pairs (..., np) from those of the shapes (..., ns); pairs with a rule keep the old one."""
    if not is_array(old):
        return values
    i, j = np.array(topology.pairs, np.int32).reshape(-1, 2).T
    new = COMBINED[name](jnp, values[..., i], values[..., j])
    ruled = topology.ruled[list(COMBINED).index(name)]
    return jnp.where(np.isin(np.arange(len(i)), ruled), old, new) if ruled else new


def gripped_dofs(
    topology: Topology, loss: object, motor_kd: object, changed: Iterable[str]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return `Topology.gripped` after some parameters are changed. A loss whose values are not known yet may be at any
    degree of freedom except those of floating joints."""
    losing, rigid = topology.gripped
    names = set(changed)
    if names & {"topology", "loss", "motor_kd"}:
        if _is_known(loss):
            losing = _dofs(np.asarray(loss) != 0)
        elif "loss" in names and is_array(loss):
            losing = _dofs(np.repeat([joint != "floating" for joint in topology.joints], np.diff(topology.v_start)))
        rigid = _dofs(np.isinf(np.asarray(motor_kd))) if _is_known(motor_kd) else rigid
    return losing, rigid


def _is_known(x: object) -> bool:
    return is_array(x) and not isinstance(x, jax.core.Tracer)


def _dofs(some: np.ndarray) -> tuple[int, ...]:
    """Degrees of freedom where (..., nv) is true in some lane."""
    return tuple(np.flatnonzero(some.reshape(-1, some.shape[-1]).any(0)).tolist()) if some.size else ()


def _readers(name: str) -> list[str]:
    """Types of joints that read a parameter which not all of them read."""
    if name in ("lower", "upper", "limit_restitution"):
        return sorted(kind for kind, joint in JOINTS.items() if joint.nq == joint.nv > 0)
    return sorted(kind for kind, joint in JOINTS.items() if name in joint.reads)


def _lengths(topology: Topology) -> dict[str, int]:
    points = topology.shape_points
    return {
        "nl": topology.n_links, "nv": topology.nv, "ns": len(topology.shape_kinds), "np": len(topology.pairs),
        "nk": len(topology.loops), "m": points[-1][1] if points else 0, "nf": len(topology.sites),
        "filtered": len(topology.pairs) if topology.filtered else 0,
    }  # fmt: skip


def unread(name: str, topology: Topology) -> str:
    """Return the reason why no run of the model reads the parameter; empty if runs do."""
    readers = _readers(name)
    if readers and not {*readers} & {*topology.joints}:
        return f"no joint has one: {name} is read by joints {', '.join(readers)}"
    if name in ("joint_position", "joint_quaternion") and set(topology.joints) <= {"floating"}:
        return "all links are free: their place is in the state's q"
    if name == "shape_twist" and not topology.driven:
        return "no static moves; give one a linear_velocity or an angular_velocity in the scene"
    if name == "baumgarte" and topology.hold != "baumgarte":
        return f"loops are held by {topology.hold}; give baumgarte= in the scene"
    if name in ("loop_stiff", "loop_damp") and topology.hold != "penalty":
        return f"loops are held by {topology.hold}; compile the scene with coordinates='penalty'"
    if name == "pair_touches" and not topology.filtered:
        return "pairs are not filtered; give filtering=True in the scene"
    if name == "loop_active" and not any(loop.switched for loop in topology.loops):
        return "no loop can be switched; give one active= in the scene"
    if name in ("loop_spring", "loop_limits") and not any(loop.acts for loop in topology.loops):
        return "no loop has a spring, a damper, a force or limits in the scene"
    return ""
