"""The ledger of an MJCF file's contents and their outcomes: noted while it is read, reported in groups."""

from __future__ import annotations

from collections.abc import Collection

from ..report import Item, Outcome

SHOWN = 4  # names that are listed of a group


class Ledger:
    """Notes by outcome, noun and reason, in the order of the first of each.

    drop: kinds of elements that are left out instead of refused.
    """

    def __init__(self, drop: Collection[str] = ()) -> None:
        self.drop = frozenset(drop)
        self.refused: dict[str, str] = {}  # kind -> the first element of it, and why
        self._names: dict[tuple[Outcome, str, str], list[str]] = {}

    def note(self, outcome: Outcome, noun: str, name: str, why: str = "") -> None:
        self._names.setdefault((outcome, noun, why), []).append(name)

    def refuse(self, kind: str, noun: str, name: str, why: str) -> None:
        """Refuse an element that Carom does not have, or leave it out if `drop` names its kind."""
        if kind in self.drop:
            self.note("approximated", noun, name, f"left out, as asked for: {why}")
        else:
            self.refused.setdefault(kind, f"{noun} {name!r}: {why}")
            self.note("refused", noun, name, why)

    def items(self) -> tuple[Item, ...]:
        return tuple(Item(outcome, _summary(noun, names), why) for (outcome, noun, why), names in self._names.items())


def _summary(noun: str, names: list[str]) -> str:
    if len(names) == 1:
        return f"{noun} {names[0]!r}" if names[0] else noun
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{len(names)} x {noun}: {', '.join(map(repr, names[:SHOWN]))}{more}"
