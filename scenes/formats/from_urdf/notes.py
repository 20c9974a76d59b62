"""The growing report of an import: the parts that were read, and at the end those that were not."""

from __future__ import annotations

from collections import Counter

from ..report import ImportReport, Item, Outcome
from .nodes import XmlElement

# parts of a robot's file for other programs, by the name of an element or attribute
TO_OTHERS = {
    "visual": "what is seen has no bearing on motion: the shapes that collide are drawn",
    "material": "colours have no bearing on motion",
    "transmission": "gears between motors and joints: joints are driven directly",
    "gazebo": "settings of another simulator, its friction among them",
    "safety_controller": "for a controller",
    "calibration": "for a controller",
    "ros2_control": "for a controller",
    "velocity": "for a controller: nothing bounds a joint's speed",
    "effort": "the joint has no bound of effort: only revolute, continuous and prismatic ones have",
    "sensor": "nothing is sensed",
    "limit": "a joint that is fixed has none",
    "dynamics": "a joint that is fixed has none",
    "axis": "a joint that is fixed or floating has none",
    "mimic": "a joint that is fixed follows no other",
    "lower": "only revolute and prismatic joints have limits",
    "upper": "only revolute and prismatic joints have limits",
    "name": "nothing is called by it",
}


class Notes:
    def __init__(self) -> None:
        self._rows: list[tuple[int, Item]] = []
        self._mended: set[tuple[int, str]] = set()

    def add(self, outcome: Outcome, node: XmlElement, what: str, why: str = "") -> None:
        self._rows.append((node.line, Item(outcome, what, why)))

    def mend(self, node: XmlElement, what: str, why: str) -> None:
        """Note an error that is tolerated, once for all readings."""
        if (id(node), what + why) not in self._mended:
            self._mended.add((id(node), what + why))
            self.add("approximated", node, what, why)

    def ignore_unread(self, root: XmlElement) -> None:
        """Note unread parts: one item for all elements or attributes with the same text."""
        rest = list(root.unread())
        counts = Counter(written for _, _, written in rest)
        first = {written: (line, name) for line, name, written in reversed(rest)}
        for written, (line, name) in first.items():
            many = f"{written}, {counts[written]} times" if counts[written] > 1 else written
            self._rows.append((line, Item("ignored", many, TO_OTHERS.get(name, "Carom knows nothing of the kind"))))

    def of(self, outcome: Outcome) -> list[tuple[int, Item]]:
        return sorted((row for row in self._rows if row[1].outcome == outcome), key=lambda row: row[0])

    def report(self, source: str) -> ImportReport:
        return ImportReport(source, tuple(item for _, item in sorted(self._rows, key=lambda row: row[0])))
