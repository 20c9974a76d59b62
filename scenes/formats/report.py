"""The report of an import: the outcome of everything in a robot's file; nothing is dropped in silence."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import inf
from typing import Literal, NamedTuple

from ...engine.display import Row, display_as, names
from ..spec import SceneSpec

Outcome = Literal["taken", "approximated", "ignored", "refused"]


class Item(NamedTuple):
    """what: an element of the file, e.g. "joint 'elbow'".  why: its replacement, or the reason of refusal; "" if taken.

    approximated: the scene has a similar element.  ignored: it does not affect motion or contact (a camera).
    refused: it would change the motion, and Carom does not have it; no scene is made.
    """

    outcome: Outcome
    what: str
    why: str = ""


class Actuator(NamedTuple):
    """An actuator of the file, which adds scale x + offset to the control of one degree of freedom.

    name: the file's, or that of its joint.  link, dof: the degree of freedom, counted within the link's joint: its
        column of v is `model.topology.v_start[model.topology.names.index(link)] + dof`.
    lower, upper: of x, its input; infinite if the file has no range.
    scale, offset: in the units of the motor's u, see `Model`: gear and gain of the file.
    """

    name: str
    link: str
    dof: int = 0
    lower: float = -inf
    upper: float = inf
    scale: float = 1.0
    offset: float = 0.0


def _describe(report: ImportReport) -> tuple[str, list[Row]]:
    rows = [(name, names(item.what for item in report.of(name))) for name in ("refused", "approximated", "ignored")]
    return f"{report.source}: {report.summary}", [row for row in rows if row[1]]


@display_as(_describe)
@dataclass(frozen=True)
class ImportReport:
    """The report of an import.  source: the file.  items, actuators: in the file's order; only MJCF has actuators."""

    source: str
    items: tuple[Item, ...] = ()
    actuators: tuple[Actuator, ...] = ()

    def of(self, outcome: Outcome) -> tuple[Item, ...]:
        return tuple(item for item in self.items if item.outcome == outcome)

    @property
    def summary(self) -> str:
        """Counts by outcome, e.g. "7 approximated, 2 ignored, 31 taken"."""
        counts = Counter(item.outcome for item in self.items)
        return ", ".join(f"{n} {outcome}" for outcome, n in sorted(counts.items())) or "nothing in it"


class Imported(NamedTuple):
    """A scene read from a robot's file, and the report on everything in the file."""

    scene: SceneSpec
    report: ImportReport
