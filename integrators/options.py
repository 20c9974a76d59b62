"""Options of time stepping, the same for `rollout`, `step`, `Live` and tasks."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, TypedDict, Unpack

import jax.core
import numpy as np

from ..contact.laws.table import law_named
from ..contact.respond import impacts_named
from ..contact.resting.models import resting_named
from .schemes import scheme_named

TIME_CONTROLS = ("rollback", "likely", "fixed")
CLOCKS = ("auto", "islands", "one")
SHORTEST = 1e-9  # [s] shortest window
MOST_ROOM = 2**20  # contacts, near pairs of a kind, impacts of one instant
WHOLE = 2**31 - 1  # the largest integer of a program, for example of ticks
MOST_LOG = 2**24  # rows of a lane's log: 3 GB in float64


def check_seconds(name: str, value: Any, least: float = 0.0) -> None:
    """Check that a value, if known, is a length of time."""
    if isinstance(value, jax.core.Tracer):
        return
    try:
        fits = math.isfinite(value) and value > 0 and value >= least
    except TypeError:
        fits = False
    if not fits:
        most = f" of at least {least:g}" if least else ""
        raise ValueError(f"{name} is {value!r}; it must be a positive number of seconds{most}")


def check_count(name: str, value: object, least: int = 0, most: int = WHOLE) -> None:
    """Check that a number of things, if given and known, is within the range of a program."""
    if value is None or isinstance(value, jax.core.Tracer):
        return
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= most:
        raise ValueError(f"{name} is {value!r}; it must be a whole number from {least} to {most}, or None")


class OptionKeywords(TypedDict, total=False):
    """The fields of `Options` as keywords of functions that take options; they override `options`."""

    max_dt: float
    window: float | None
    scheme: str
    time_control: str
    law: str
    impacts: str
    resting: str
    clocks: str
    max_ticks: int | None
    max_events: int | None
    max_contacts: int | None
    max_pairs: int | None
    max_impacts: int | None


@dataclass(frozen=True)
class Options:
    """Options of time stepping, for `rollout`, `step`, `Live`, `record`, `sweep` and tasks.

    These take `options=`, and any of the fields as a keyword, which overrides `options`. Options are hashable;
    `.replace(law="newton")` returns a changed copy.

    max_dt: longest step [s]; for a rollout at least a millionth of frame_dt.
        Impacts are located in time for any max_dt. It bounds the steps of trees, of driven free bodies and of resting
        contacts, which are of order 4, 4 and 2 in it. Free flight has no step error.
    window: shortest step that a touch may cause [s], at least 1e-9; shorter if it does not divide a frame evenly.
        None: every impact is located in time. Otherwise, if an impact is nearer than this, a step of this length is
        taken, and contacts that may touch in it are resolved together at its start, by the law of simultaneous
        impacts; `stats.windows` counts these steps. Nothing passes through anything either way. No derivatives. With
        1e-3 a heap of hundreds of bodies comes to rest in reasonable time.
    scheme: motion scheme: exact | rk4 | lie_midpoint | semi_implicit.
    time_control: "rollback" goes back to the exact time at which bodies touch, and nothing passes through anything;
        "likely" is another name of it; "fixed" takes steps of max_dt, and bodies may overlap by as much as they move in
        a step.
    law: law of impacts, see `carom.resolve_impact`.
    impacts: order of several impacts at one instant: "sequential" (one by one, fastest first) or "simultaneous" (all at
        once by Moreau's law, which leaves no choice of `law`).
    resting: model of resting contact: "solve", or for comparison "microcollisions" or "penalty", or one of your own,
        see `carom.register_resting_law`.
    clocks: "one": any impact ends the step of all bodies. "islands": free bodies that cannot meet for some time
        advance, roll back and rest separately, each island with its own clock; the result is the same except for
        rounding. Motors, springs, joints, conveyors, windows, functions, derivatives, another scheme or law="newton"
        need one clock. "auto": islands if there are 32 bodies or more.
    max_ticks: number of steps tried after which a lane is stopped. None: for a rollout 1000 per frame and 20 for each
        of its longest steps, for a step 1000 per sixtieth of a second and at least 1000. At most 2^31 - 1.
    max_events: length of a lane's log of impacts. 0: no log. None: as long as needed, up to a million rows in all;
        inside jit at most 1024 per lane. At most 2^24. A step has no log.
    max_contacts: capacity for contacts. None: as needed; inside jit 8 for each free body, 4 for a ball, and for trees
        1.25 times the contacts of their shapes on a floor; a lane that needs more stops with a result code.
    max_pairs: capacity for near pairs of a kind, see `detect`. None: as needed.
    max_impacts: limit at one instant, after which contacts that still close are stopped without bounce, with a result
        code. None: 2 for each contact of the default capacity, at least 256.
    """

    max_dt: float = 1 / 240
    window: float | None = None
    scheme: str = "exact"
    time_control: str = "rollback"
    law: str = "stronge"
    impacts: str = "sequential"
    resting: str = "solve"
    clocks: str = "auto"
    max_ticks: int | None = None
    max_events: int | None = None
    max_contacts: int | None = None
    max_pairs: int | None = None
    max_impacts: int | None = None

    def replace(self, **changes: Unpack[OptionKeywords]) -> Options:
        """Return a copy with these fields changed."""
        return _with_changes(self, changes) if changes else self

    @staticmethod
    def of(options: Options | None, keywords: OptionKeywords) -> Options:
        """Return the options of a call: `options`, overridden by its keywords."""
        if options is not None and not isinstance(options, Options):
            raise TypeError(f"options is {options!r}; it must be carom.Options(...)")
        return _with_changes(USUAL if options is None else options, keywords) if keywords else options or USUAL

    def __post_init__(self) -> None:
        check_seconds("max_dt", self.max_dt)
        for name in ("scheme", "time_control", "law", "impacts", "resting", "clocks"):
            if not isinstance(getattr(self, name), str):
                raise ValueError(f"{name} is {getattr(self, name)!r}; it must be a name, in quotation marks")
        scheme_named(self.scheme)
        law_named(self.law)
        impacts_named(self.impacts)
        resting_named(self.resting)
        for name, known in (("time_control", TIME_CONTROLS), ("clocks", CLOCKS)):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} is {getattr(self, name)!r}; it must be one of {', '.join(known)}")
        check_count("max_ticks", self.max_ticks, 1)
        check_count("max_events", self.max_events, 0, MOST_LOG)
        for name in ("max_contacts", "max_pairs", "max_impacts"):
            check_count(name, getattr(self, name), 1, MOST_ROOM)
        if self.window is None:
            return
        check_seconds("window", self.window, SHORTEST)
        if self.resting != "solve" or self.time_control == "fixed":
            raise ValueError(
                f"window needs resting='solve' and time_control='rollback', not resting={self.resting!r}, "
                f"time_control={self.time_control!r}: others do not look for the times of impacts"
            )


NAMES = tuple(Options.__dataclass_fields__)
USUAL = Options()


def spread(keywords: dict[str, Any]) -> dict[str, Any]:
    """Return the keywords of a call, with the fields of its `options` among them."""
    given = {name: x for name, x in keywords.items() if name != "options"}
    options = keywords.get("options")
    return given if options is None else vars(Options.of(options, {})) | given


def _with_changes(options: Options, changes: OptionKeywords) -> Options:
    for word in changes:
        if word not in NAMES:
            near = get_close_matches(word, NAMES, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(NAMES)}"
            raise TypeError(f"no option {word!r}: {hint}")
    try:
        return _once(options, **changes)
    except TypeError:  # a list or a traced number has no hash
        return replace(options, **changes)


@functools.lru_cache(256, typed=True)
def _once(options: Options, **changes: Unpack[OptionKeywords]) -> Options:
    """Return the same object for the same changes, since checks take longer than a short step."""
    return replace(options, **changes)
