"""Fingerprints of states and models, equal if and only if these are equal bit by bit (see docs/snapshots.md)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

import numpy as np

from ..engine.forest import LOOPS
from ..engine.model import Model
from ..engine.sensors import Sensor, Site
from ..engine.state import State
from ..engine.topology import Loop


def state_hash(state: State) -> str | list[str]:
    """Return a fingerprint of a state, 32 hexadecimal digits; for a batch a list with one for each lane.

    It depends only on the bits of q, v and t in their own dtype, and is the same on every machine.
    """
    parts = [np.asarray(x) for x in (state.q, state.v, state.t)]
    if parts[2].ndim == 0:
        return _digest(map(_bits, parts))
    return [_digest(_bits(x[k]) for x in parts) for k in range(len(parts[2]))]


def model_hash(model: Model) -> str:
    """Return a fingerprint of a model, 32 hexadecimal digits.

    It depends on the topology, and on the name, dtype, shape and bits of every parameter. A model with batched
    parameters has one fingerprint for all lanes.
    """
    unused = {"gripped", "shape_layers"}  # one follows from the parameters, the other is in the pairs
    unused |= set() if model.topology.loops else {"loops", "hold", "baumgarte", *LOOPS}
    unused |= set() if any(loop.switched for loop in model.topology.loops) else {"loop_active"}
    unused |= set() if model.topology.filtered else {"filtered", "pair_touches"}
    unused |= set() if model.topology.sites else {"sites", "site_position", "site_quaternion"}
    unused |= set() if model.topology.sensors else {"sensors"}
    static = {f.name: getattr(model.topology, f.name) for f in fields(model.topology) if f.name not in unused}
    parts = [json.dumps(static, default=_as_json).encode()]  # Python's own hash() changes with the process
    for name, x in sorted(vars(model).items()):
        if name not in {"topology", *unused}:
            x = np.asarray(x)
            parts += [f"{name} {x.dtype.name} {x.shape}".encode(), _bits(x)]
    return _digest(parts)


def _as_json(x: Any) -> Any:
    """Return the JSON form of a numpy number, a loop, or a function of time (by its code)."""
    if isinstance(x, Loop) and not x.switched:
        return {name: value for name, value in vars(x).items() if name != "switched"}
    if isinstance(x, (Loop, Site, Sensor)):
        return vars(x)
    if callable(x):
        code = getattr(x, "__code__", None)
        return [code.co_code.hex(), repr(code.co_consts), repr(code.co_names)] if code else repr(x)
    return x.item()


def _bits(x: np.ndarray) -> bytes:
    return np.ascontiguousarray(x, x.dtype.newbyteorder("<")).tobytes()


def _digest(parts: Iterable[bytes]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(part)
    return digest.hexdigest()
