"""Rules: what is chosen once for a whole run. Static: every choice is a program of its own."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import jax.core
import numpy as np
from jax import Array

from ..contact.laws.table import law_named
from ..contact.respond import impacts_named
from ..contact.resting.models import resting_named
from ..engine.model import Model
from ..engine.packed import once_a_model
from .schemes import scheme_named

TIME_CONTROLS = ("rollback", "likely", "fixed")
CLOCKS = ("auto", "islands", "one")
SHORTEST = 1e-9  # [s] of a window
MOST_ROOM = 2**20  # contacts, near pairs of a kind, impacts of one instant


@dataclass(frozen=True)
class Rules:
    """How a scene with contacts is stepped.

    scheme: of motion, `schemes.py`.  time_control: "rollback" locates impacts in time, and takes no step in which
    anything could pass through anything; "likely" is another name of it; "fixed" takes steps as long as it may, and
    finds bodies as deep in each other as one step takes them.  law: of impacts.  impacts: several at once,
    "sequential" or "simultaneous".  resting: "solve", "microcollisions" or "penalty".
    limits: whether any joint has limits.  max_contacts, max_pairs: room, None for the defaults.  max_impacts: of one
    instant.  max_logged: of these, None for all.  clocks: "one" for all bodies, "islands": one for each island of those
    that cannot meet for a while, or "auto": that where it pays (`cut.py`).  report: names of what is reported besides
    states and impacts (`readouts/`); where there is any, all impacts are handed on and all bodies go by one clock.
    """

    scheme: str = "exact"
    time_control: str = "rollback"
    law: str = "stronge"
    impacts: str = "sequential"
    resting: str = "solve"
    limits: bool = True
    max_contacts: int | None = None
    max_pairs: int | None = None
    max_impacts: int | None = None
    max_logged: int | None = 64
    clocks: str = "auto"
    report: tuple[str, ...] = ()

    def paced(self, model: Model, h: Array) -> Model:
        """The model with the speed below which contacts rest in steps of length h [s]: some ways to rest need more."""
        return model.replace(rest_speed=resting_named(self.resting).slow(model, h))

    def check(self, model: Model) -> None:
        """Raise ValueError where the model has numbers that these rules do not read."""
        if returns_slip(model) and not (law_named(self.law).tangential and self.impacts == "sequential"):
            raise ValueError(
                f"the scene has a tangential_restitution, which law={self.law!r}, impacts={self.impacts!r} does not "
                "read: use law='chatterjee_ruina', impacts='sequential'"
            )
        if any(model.topology.gripped) and not resting_named(self.resting).holds:
            raise ValueError(
                f"the scene has joints with loss, or with rigid motors, which resting={self.resting!r} does not read: "
                "use resting='solve'"
            )

    def check_window(self, window: float | None) -> None:
        """Raise ValueError where there can be no windows."""
        if window is None:
            return
        if not (math.isfinite(window) and window >= SHORTEST):
            raise ValueError(
                f"window is {window!r}; it must be a number of seconds, at least {SHORTEST:g}, or None for no windows"
            )
        if self.resting != "solve" or self.time_control == "fixed":
            raise ValueError(
                f"window needs resting='solve' and time_control='rollback', not resting={self.resting!r}, "
                f"time_control={self.time_control!r}: others do not look for the times of impacts"
            )

    @staticmethod
    def of(*fields: Any) -> Rules:
        """The same one for the same fields: to check them takes longer than a short step."""
        try:
            return _once(*fields)
        except TypeError:  # a list has no hash
            return Rules(*fields)

    def __post_init__(self) -> None:
        for name in ("scheme", "time_control", "law", "impacts", "resting", "clocks"):
            if not isinstance(getattr(self, name), str):
                raise ValueError(f"{name} is {getattr(self, name)!r}; it must be a name, in quotation marks")
        scheme_named(self.scheme)
        law_named(self.law)
        impacts_named(self.impacts)
        resting_named(self.resting)
        if self.time_control not in TIME_CONTROLS:
            raise ValueError(f"time_control is {self.time_control!r}; it must be one of {', '.join(TIME_CONTROLS)}")
        if self.clocks not in CLOCKS:
            raise ValueError(f"clocks is {self.clocks!r}; it must be one of {', '.join(CLOCKS)}")
        for name in ("max_contacts", "max_pairs", "max_impacts"):
            room = getattr(self, name)
            if room is None:
                continue
            if isinstance(room, bool) or not isinstance(room, int | np.integer) or not 1 <= room <= MOST_ROOM:
                raise ValueError(f"{name} is {room!r}; it must be from 1 to {MOST_ROOM}, or None for the default")


@functools.lru_cache(256)
def _once(*fields: Any) -> Rules:
    return Rules(*fields)


@once_a_model
def returns_slip(model: Model) -> bool:
    """Whether a pair has a tangential restitution, as far as is known."""
    numbers = model.pair_tangential_restitution
    return not isinstance(numbers, jax.core.Tracer) and bool(np.asarray(numbers).any())
