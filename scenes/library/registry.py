"""The library by name, for `carom.load("name")`, `carom list` and `carom check`. One file per family.

Planar chains have a table of their own, since functions of scenes need not take them.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from ..wording import brief, list_names
from . import (
    balls,
    billiards,
    blocks,
    bodies,
    chains,
    figures,
    five_bar,
    heaps,
    hopper,
    linkages,
    mechanisms,
    planar_chains,
    platforms,
    rods,
    rolling,
    simbench,
    wawrzynski,
)
from .facts import Entry
from .multi import articulated, free, inner, limits, strikes

_MULTI = free.ENTRIES | articulated.ENTRIES | strikes.ENTRIES | inner.ENTRIES | limits.ENTRIES

SCENES: dict[str, Entry] = (
    chains.ENTRIES
    | figures.ENTRIES
    | bodies.ENTRIES
    | balls.ENTRIES
    | billiards.ENTRIES
    | rolling.ENTRIES
    | blocks.ENTRIES
    | heaps.ENTRIES
    | rods.ENTRIES
    | linkages.ENTRIES
    | five_bar.ENTRIES
    | mechanisms.ENTRIES
    | platforms.ENTRIES
    | {name: _MULTI[name] for name in sorted(_MULTI)}
    | simbench.ENTRIES
    | wawrzynski.ENTRIES
    | hopper.ENTRIES
)

CHAINS: dict[str, Entry] = {**planar_chains.ENTRIES}


def library_scene(name: str, **parameters: Any) -> Any:
    """A scene of the library, e.g. library_scene("chain", n=4, free=True): a SceneSpec, or a ChainSpec."""
    return library_entry(name).build(**parameters)


def library_entry(name: str) -> Entry:
    """A scene's entry, or an error that suggests a name."""
    known = SCENES | CHAINS
    if name not in known:
        near = get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"the library has {list_names(known)}; `carom list` shows all"
        raise ValueError(f"no scene named {brief(name)}: {hint}")
    return known[name]
