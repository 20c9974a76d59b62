"""The library by name: what `carom.load("name")`, `carom list` and `carom check` look up. One file a family."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from ..spec import SceneSpec
from . import (
    balls,
    billiards,
    blocks,
    bodies,
    chains,
    figures,
    five_bar,
    heaps,
    linkages,
    mechanisms,
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
)


def library_scene(name: str, **parameters: Any) -> SceneSpec:
    """A scene of the library, e.g. library_scene("chain", n=4, free=True)."""
    return library_entry(name).build(**parameters)


def library_entry(name: str) -> Entry:
    """A scene's entry, or an error that suggests a name."""
    if name not in SCENES:
        near = get_close_matches(name, SCENES, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"the library has {', '.join(SCENES)}"
        raise ValueError(f"no scene named {name!r}: {hint}")
    return SCENES[name]
