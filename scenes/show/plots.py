"""Recordings as pictures: `plot` draws one kind, `plot_run` the overview that `carom run` writes.

The one file that imports matplotlib, and only its Figure: it shows nothing and changes no settings.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from ..formats.atomic import replacing
from ..recordings.events import EventLog
from ..recordings.reading import Reading
from ..recordings.recording import Recording
from .figures import change, cone, energy, events, laws, motion, phase
from .figures.style import BODY, INK, TITLE

Target = str | PathLike[str] | None

KINDS = {
    "run": "the overview: energy, motion, timeline of impacts, impulses in the cone",
    "energy": "the energy ledger: kinetic, potential, taken by impacts and by sliding",
    "events": "the timeline of impacts, a row for each pair of bodies",
    "cone": "impulses of impacts in the friction cone",
    "motion": "paths of the bodies, or their heights over time",
    "phase": "velocity against coordinate of one degree of freedom",
}
_ONE: dict[str, Callable[..., None]] = {
    "energy": energy.draw, "events": events.draw, "cone": cone.draw, "motion": motion.draw, "phase": phase.draw,
}  # fmt: skip
SUFFIXES = (".png", ".svg", ".pdf")
DPI = 130


def plot(recording: Recording, kind: str, path: Target = None, **options: Any) -> Figure:
    """Draw one kind of picture of a run, see KINDS; a batch is drawn as quantiles, or all its lanes in one.

    path: that of a .png, .svg or .pdf file; None: no file, the Figure is returned (a notebook shows it).
    options: of "phase": of="ball.z".
    """
    if kind == "run":
        return plot_run(recording, path)
    if kind not in _ONE:
        raise ValueError(f"there is no kind of plot {kind!r}; choose one of {', '.join(KINDS)}")
    figure = Figure(figsize=(7.6, 4.2), layout="constrained")
    _ONE[kind](figure.add_subplot(), Reading(recording), **options)
    figure.suptitle(recording.title, fontsize=TITLE, color=INK, fontweight="bold", x=0.01, ha="left")
    return _save(figure, path)


def plot_run(recording: Recording, path: Target = None) -> Figure:
    """Draw the overview of a run. path: as in `plot`."""
    reading = Reading(recording)
    panels = [energy, motion]
    if len(reading.impacts.t):
        sticking = "chain" in recording.provenance  # there is no cone
        panels += [events, cone if reading.impacts.p_t.any() and not sticking else phase]
    elif phase.most_telling(reading) is not None:
        panels += [phase]
    rows = (len(panels) + 1) // 2
    figure = Figure(figsize=(13, 0.4 + 3.6 * rows), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.1)  # type: ignore[union-attr]
    for k, panel in enumerate(panels):
        panel.draw(figure.add_subplot(rows, 2, k + 1), reading)
    figure.suptitle(_headline(recording, reading), fontsize=BODY + 2.5, color=INK, fontweight="bold", x=0.01, ha="left")
    return _save(figure, path)


def plot_laws(recordings: Mapping[str, Recording], title: str, path: Target = None) -> Figure:
    """Draw single runs of one scene under several laws, law -> recording. path: as in `plot`."""
    figure = Figure(figsize=(8, 7.5), layout="constrained")
    panels = figure.subplots(3, 1, sharex=True)
    laws.draw(tuple(panels), {law: Reading(recording) for law, recording in recordings.items()})
    figure.suptitle(f"{title} under {', '.join(recordings)}", fontsize=TITLE + 1, color=INK, fontweight="bold", x=0.01,
                    ha="left")  # fmt: skip
    return _save(figure, path)


def change_svg(old: EventLog, new: EventLog) -> str:
    """Draw the differences of two event logs, as the text of an SVG."""
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    change.draw(above, below, old, new)
    drawn = io.StringIO()
    figure.savefig(drawn, format="svg", metadata={"Date": None})
    return drawn.getvalue()


def _headline(recording: Recording, reading: Reading) -> str:
    lanes = f", {reading.lanes} lanes" if recording.lanes is not None else ""
    law = f", law: {recording.events.law}" if len(reading.impacts.t) else ""
    unfinished = "" if recording.complete else " (not run to its end)"
    return f"{recording.title}: {float(reading.t[0, 0]):.3g} to {_end(reading):.4g} s{lanes}{law}{unfinished}"


def _end(reading: Reading) -> float:
    return float(reading.t[reading.t == reading.t].max())


def _save(figure: Figure, path: Target) -> Figure:
    """Write the figure, drawn in memory first: a failed one leaves no file."""
    if path is not None:
        target = Path(path)
        if target.suffix.lower() not in SUFFIXES:
            raise ValueError(f"a picture's file must end with {', '.join(SUFFIXES)}: {target} does not")
        drawn = io.BytesIO()
        figure.savefig(drawn, format=target.suffix[1:].lower(), dpi=DPI)
        with replacing(target) as file:
            file.write(drawn.getvalue())
    return figure
