"""What an MJCF file holds and what becomes of it: noted while it is read, told in groups."""

from __future__ import annotations

from collections.abc import Collection

from ..report import Item, Outcome

SHOWN = 4  # names of a group


class Ledger:
    """Notes by outcome, noun and reason, in the order of the first of each.

    drop: kinds of things that are left out where they would be refused.
    """

    def __init__(self, drop: Collection[str] = ()) -> None:
        self.drop = frozenset(drop)
        self.refused: dict[str, str] = {}  # kind -> the first of it, and why
        self._names: dict[tuple[Outcome, str, str], list[str]] = {}

    def note(self, outcome: Outcome, noun: str, name: str, why: str = "") -> None:
        self._names.setdefault((outcome, noun, why), []).append(name)

    def refuse(self, kind: str, noun: str, name: str, why: str) -> None:
        """Carom has nothing like it: refused, or left out where that was asked for."""
        if kind in self.drop:
            self.note("approximated", noun, name, f"left out, as asked for: {why}")
        else:
            self.refused.setdefault(kind, f"{noun} {name!r}: {why}")
            self.note("refused", noun, name, why)

    def items(self) -> tuple[Item, ...]:
        return tuple(Item(outcome, _told(noun, names), why) for (outcome, noun, why), names in self._names.items())


def _told(noun: str, names: list[str]) -> str:
    if len(names) == 1:
        return f"{noun} {names[0]!r}" if names[0] else noun
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{len(names)} x {noun}: {', '.join(map(repr, names[:SHOWN]))}{more}"
