"""Fingerprints of states: equal if and only if the states are, bit by bit. `docs/snapshots.md` has the contract."""

from __future__ import annotations

import hashlib

import numpy as np

from ..engine.state import State


def state_hash(state: State) -> str | list[str]:
    """A fingerprint of a state, 32 hexadecimal digits; of a batch a list with one for each lane.

    It is made of the bits of q, v and t in their own dtype, and of nothing else: the same on every machine.
    """
    parts = [np.asarray(x) for x in (state.q, state.v, state.t)]
    if parts[2].ndim == 0:
        return _digest(parts)
    return [_digest([x[k] for x in parts]) for k in range(len(parts[2]))]


def _digest(parts: list[np.ndarray]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for x in parts:
        digest.update(np.ascontiguousarray(x, x.dtype.newbyteorder("<")).tobytes())
    return digest.hexdigest()
