"""Runs of chains as recordings of their twins, which pages and plots draw.

A recording holds the twin's scene, frames in its coordinates, and a row for each stop: a joint in a ground is its ball
on that plane; an angle at its limit, the limit of its hinge.
"""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from os import PathLike
from typing import Any

import jax.numpy as jnp
import numpy as np
from numpy.typing import DTypeLike

from ..collision.poses import Array
from ..engine.model import Model
from ..engine.planar.model import ChainDrive
from ..integrators.planar.rollout import ChainControl, ChainRollout, chain_rollout
from ..integrators.recording import Events
from .chains.compile import checked_chain
from .chains.spec import ChainSpec
from .chains.twin import chain_twin, twin_coordinates
from .recordings.recording import NOT_KEPT, Recording

LAW = "sticking"


def record_chain(
    spec: ChainSpec,
    path: str | PathLike[str] | None = None,
    *,
    title: str = "chain",
    dtype: DTypeLike | None = None,
    control: ChainControl | Mapping[str, Any] | None = None,
    **keywords: Any,
) -> Recording:
    """Run a chain and record it; path: that of the recording's file, if any.

    control: as in `chain_rollout`, or fields of a constant ChainDrive by name.  keywords: its others.
    """
    from .compile import compile_scene
    from .recordings.file import write_recording

    known = signature(chain_rollout).parameters
    for name in keywords:
        if name not in known:
            raise ValueError(f"{title}: {name} is not for planar chains, whose joints stick: leave it out")
    chain, state = compile_scene(spec, dtype)
    drive = drive_of(control, state.x.dtype) if isinstance(control, Mapping) else control
    result = chain_rollout(chain, state, control=drive, **keywords, throw=False)
    kept = {"scheme": "average"} | {name: x for name, x in keywords.items() if name not in NOT_KEPT}
    if control is not None:
        kept["control"] = dict(control) if isinstance(control, Mapping) else {"function": repr(control)}
    recording = recording_of_chain(spec, result, title=title, keywords=kept)
    if path is not None:
        write_recording(recording, path)
    return recording


def drive_of(fields: Mapping[str, Any], dtype: np.dtype) -> ChainDrive:
    """The ChainDrive of plain data."""
    return ChainDrive(**{name: jnp.asarray(x, dtype) for name, x in fields.items()})


def recording_of_chain(spec: ChainSpec, result: ChainRollout, *, title: str, keywords: Mapping[str, Any]) -> Recording:
    """Record a rollout of one chain as its twin would have recorded it.

    If several joints strike at once there is one row, that of the first.
    """
    from ..integrators.snapshots import model_hash
    from .compile import compile_scene
    from .recordings.provenance import provenance

    n = len(spec.joints)
    x, v = (np.asarray(a)[..., :n, :] for a in (result.x, result.v))
    if x.ndim != 3:
        raise ValueError(f"recording_of_chain: the places are {x.shape}; give the rollout of one chain, not of a batch")
    twin = chain_twin(spec)
    q, rates = twin_coordinates(x, v)
    q[:, 2:] = np.unwrap(q[:, 2:], axis=0)
    model = compile_scene(twin, x.dtype, overlaps="ignore")[0]
    counts = {name: np.asarray(number) for name, number in result.stats._asdict().items()}
    stats = {"rollbacks": counts["halvings"], "resting": counts["impacts"] * 0, "max_penetration": x[0, 0, 0] * 0}
    return Recording(
        twin, title, np.asarray(result.t), q, rates, _events(spec, model, result), np.asarray(result.code),
        counts | stats | {"useful": np.ones_like(stats["max_penetration"])}, keywords, {}, model_hash(model),
        provenance(x.dtype) | {"chain": f"planar chain of {n} joints"},
    )  # fmt: skip


def _events(spec: ChainSpec, model: Model, result: ChainRollout) -> Events:
    """Stops as impacts of the twin."""
    from .show.motion import contact_frames

    log, count = result.events, int(result.events.count)
    names = ("t", "joint", "limit", "ground", "place", "velocity", "push", "energy_before", "energy_after")
    rows = (np.asarray(getattr(log, name))[:count] for name in names)
    t, joint, limit, ground, position, velocity, push, before, after = rows
    at_limit = limit != 0
    link = joint + 1  # see `chain_twin`
    chain, _ = checked_chain(spec)
    g = len(chain.normal)
    normal = np.where(at_limit[:, None], 0, chain.normal[ground] if g else np.zeros((count, 2)))
    rows = {pair: row for row, pair in enumerate(model.topology.pairs)}
    pair = [-1 if is_limit else rows[i, g + 2 * k] for is_limit, i, k in zip(at_limit, ground, joint, strict=True)]
    bodies = np.stack([link, np.where(at_limit, link + 1, -1)], -1)
    frames = contact_frames(_in_space(normal))
    struck = np.einsum("eij,ej->ei", frames, _in_space(velocity))
    struck = np.where(at_limit[:, None], velocity[:, :1] * [0, 0, 1], struck)
    given = np.einsum("eij,ej->ei", frames, _in_space(push))
    given = np.where(at_limit[:, None], push[:, :1] * [0, 0, 1], given)
    columns: dict[str, Any] = {
        "t": t, "bodies": bodies, "pair": np.array(pair, int), "dof": np.where(at_limit, joint + 2, -1),
        "point": np.where(at_limit[:, None], 0, _in_space(position)), "normal": _in_space(normal), "u_before": struck,
        "u_after": struck * 0, "impulse": given, "energy_before": before, "energy_after": after,
        "code": np.zeros(count, int), "count": np.array(count), "missed": np.asarray(log.missed),
    }  # fmt: skip
    return Events(**columns, law=LAW)


def _in_space(a: Array) -> Array:
    """Vectors (..., 3) of the space of vectors (..., 2) of the chain's plane."""
    return np.stack([a[..., 0], np.zeros_like(a[..., 0]), a[..., 1]], -1)
