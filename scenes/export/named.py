"""Bodies that C calls by numbers: links, statics after them, kinds of spare bodies."""

from __future__ import annotations

import numpy as np

from ..live.world import Live


def things(live: Live) -> tuple[str, ...]:
    """Names of the owners of shapes: links, then statics."""
    return tuple(dict.fromkeys((*live.model.topology.names, *live._parts.touchable)))


def kinds(live: Live) -> dict[str, list[int]]:
    """Kinds of spare bodies, and the links of each, in the order in which they are brought in."""
    names = live._parts.start.spares.names
    return {kind: [live.model.topology.link(name) for name in some] for kind, some in names.items()}


def owners(live: Live) -> np.ndarray:
    """Index in `things` of the owner of each shape (ns,)."""
    number = {name: k for k, name in enumerate(things(live))}
    return np.array([number[name] for name in live._parts.bodies.owners], np.int32)
