"""Golden event logs: the log of an earlier run, kept in a file and compared with the present one."""

from __future__ import annotations

from math import inf
from os import PathLike
from pathlib import Path

from ..formats.atomic import replacing
from ..recordings.events import EventLog, event_log, log_text, read_log
from ..recordings.recording import Recording
from .difference import Difference, Tolerances, differences

SHOWN = 5  # differences in a message; the others are counted


def check_golden(
    recording: Recording, path: str | PathLike[str], tolerances: Tolerances | None = None, *, update: bool = False
) -> None:
    """Compare a run with the golden log at `path`; raises AssertionError with the differences, the first ones first.

    tolerances: None: those for the run's precision.  update: write the log instead; also for a new one.
    """
    __tracebackhide__ = True  # pytest shows the line of the test
    target, log = Path(path), event_log(recording)
    if update:
        write_golden(log, target)
    elif not target.exists():
        raise AssertionError(
            f"there is no golden log {target} yet: look at the run, and if it is right make one, with update=True "
            "(under pytest: --carom-update)"
        )
    else:
        all_differences = changes(read_log(target), log, tolerances)
        if all_differences:
            raise AssertionError(message(all_differences, target, recording.title))


def write_golden(log: EventLog, target: Path) -> None:
    """Write the log as a file, all of it or nothing."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target) as file:
        file.write(log_text(log).encode())


def changes(old: EventLog, new: EventLog, tolerances: Tolerances | None = None) -> list[Difference]:
    """Differences of two logs. tolerances: None: those for the coarser of the two precisions."""
    names = [name for name in {**old.head, **new.head} if name not in ("title", "dtype")]
    other = [
        Difference(-inf, f"{name} was {old.head.get(name)!r}, is {new.head.get(name)!r}", inf)
        for name in names
        if old.head.get(name) != new.head.get(name)
    ]
    coarser = min(str(log.head.get("dtype")) for log in (old, new))  # float32 comes before float64
    return other + differences(old, new, tolerances or Tolerances.usual(coarser))


def message(all_differences: list[Difference], target: Path, title: str) -> str:
    """Message of a test that fails."""
    count = (
        f"{len(all_differences)} differences, the first in time first" if len(all_differences) > 1 else "one difference"
    )
    lines = [f"{title} is not as in {target}; {count}:"]
    lines += [f"  {difference.what}" for difference in all_differences[:SHOWN]]
    if len(all_differences) > SHOWN:
        lines.append(f"  and {len(all_differences) - SHOWN} more")
    lines.append("If the new run is right, make the log again: update=True (under pytest: --carom-update)")
    return "\n".join(lines)
