"""Facts of the library's scenes, as plain data: entries, the ways to play them, and the facts of each.

A fact is a number of theory or of a publication, never the result of a run; a bound is a fact that expects zero.
`playing.py` plays scenes and measures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

Measure = Callable[[Any], Any]  # a number from a `playing.Played`, or a `playing_chains.PlayedChain`


@dataclass(frozen=True)
class Fact:
    """A fact.  says: the measured quantity, with its unit.  expected, tolerance: absolute, in that unit.

    measure: takes it from a played scene.  source: a heading of `docs/references.md`, a publication and its year, or
    "derived".
    """

    says: str
    expected: float
    tolerance: float
    measure: Measure = field(repr=False)
    source: str = "derived"


def at_most(says: str, tolerance: float, measure: Measure, source: str = "derived") -> Fact:
    """A bound on a quantity that is never negative."""
    return Fact(says, 0.0, tolerance, measure, source)


@dataclass(frozen=True)
class Play:
    """One way to play a scene, and its facts.

    parameters: keywords of the function that builds the scene.  rough: whether contacts may jam so that some of their
    impulses do not settle to the last digit.  The other fields are keywords of `carom.rollout`.
    """

    facts: tuple[Fact, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    duration: float = 2.0
    frame_dt: float = 1 / 60
    max_dt: float = 1 / 240
    scheme: str = "exact"
    law: str = "stronge"
    impacts: str = "sequential"
    max_events: int | None = None
    rough: bool = False

    @property
    def keywords(self) -> dict[str, Any]:
        """Keywords of `carom.rollout`."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("facts", "parameters", "rough")}

    @property
    def title(self) -> str:
        """Title among the plays of the scene: parameters, and keywords that are not the usual ones."""
        used = {f.name: getattr(self, f.name) for f in fields(self) if f.name in ("law", "impacts", "scheme")}
        unusual = {name: value for name, value in used.items() if value != getattr(Play(), name)}
        return ", ".join(f"{name}={_short(value)}" for name, value in {**self.parameters, **unusual}.items())


@dataclass(frozen=True)
class ChainPlay:
    """One way to play a planar chain, fields as in `Play`.  drive: fields of a constant `ChainDrive`."""

    facts: tuple[Fact, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    duration: float = 2.0
    frame_dt: float = 1 / 60
    max_dt: float = 1 / 240
    drive: Mapping[str, Any] = field(default_factory=dict)
    rough: bool = False

    @property
    def keywords(self) -> dict[str, Any]:
        """Keywords of `carom.chain_rollout`; a drive as plain data, see `running_chains.py`."""
        used = {"duration": self.duration, "frame_dt": self.frame_dt, "max_dt": self.max_dt}
        return used | ({"control": dict(self.drive)} if self.drive else {})

    @property
    def title(self) -> str:
        """Title among the plays of the chain."""
        return ", ".join(f"{name}={_short(value)}" for name, value in self.parameters.items())


@dataclass(frozen=True)
class Entry:
    """An entry.  build: makes the scene; its keywords are the scene's parameters.  description: one line.

    plays: the ways to play it, the usual one first.
    """

    build: Callable[..., Any]
    description: str
    plays: tuple[Play | ChainPlay, ...] = (Play(),)

    @property
    def play(self) -> Play | ChainPlay:
        """The usual way."""
        return self.plays[0]

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Facts of all plays."""
        return tuple(fact for play in self.plays for fact in play.facts)


def _short(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
