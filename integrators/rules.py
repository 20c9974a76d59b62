"""Rules: static choices for a whole run. Each combination is a separate program."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import jax.core
import numpy as np
from jax import Array

from ..contact.laws.table import law_named
from ..contact.resting.models import resting_named
from ..engine.model import Model
from ..engine.packed import once_a_model
from .options import NAMES, USUAL, Options


@dataclass(frozen=True)
class Rules:
    """The static choices of a run: those of `Options`, and

    limits: whether any joint has limits.
    max_near: capacity for near pairs of shapes of two kinds, if their kernel searches and all pairs are candidates;
        None for all.
    max_logged: number of impacts of one instant that are recorded in the log, None for all.
    report: names of reported quantities besides states and impacts (`readouts/`). If there are any, all impacts are
        recorded and all bodies share one clock.
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
    max_near: int | None = None
    max_logged: int | None = 256
    clocks: str = "auto"
    report: tuple[str, ...] = ()

    def adapt_rest_speed(self, model: Model, h: Array) -> Model:
        """Return the model with the rest speed for steps of length h [s]; some resting models need a higher one."""
        return model.replace(rest_speed=resting_named(self.resting).slow(model, h))

    def check(self, model: Model) -> None:
        """Raise ValueError if the model has parameters that these rules do not use."""
        if returns_slip(model) and not (law_named(self.law).tangential and self.impacts == "sequential"):
            raise ValueError(
                f"the scene has a tangential_restitution, which law={self.law!r}, impacts={self.impacts!r} does not "
                "read: use law='chatterjee_ruina', impacts='sequential'"
            )
        if self.impacts == "simultaneous" and self.law != USUAL.law:
            raise ValueError(
                f"impacts='simultaneous' has a law of its own, Moreau's, and does not read law={self.law!r}: leave law "
                "out, or use impacts='sequential'"
            )
        if any(model.topology.gripped) and not resting_named(self.resting).holds:
            raise ValueError(
                f"the scene has joints with loss, or with rigid motors, which resting={self.resting!r} does not read: "
                "use resting='solve'"
            )

    @staticmethod
    def of(options: Options, limits: bool) -> Rules:
        """Return the rules of these options; the same object for the same options."""
        try:
            return _once(options, limits)
        except TypeError:  # a traced number has no hash
            return _from_options(options, limits)


def _from_options(options: Options, limits: bool) -> Rules:
    return Rules(limits=limits, **{name: getattr(options, name) for name in STATIC})


_once = functools.lru_cache(256)(_from_options)
STATIC = tuple(name for name in NAMES if name in Rules.__dataclass_fields__)


@once_a_model
def returns_slip(model: Model) -> bool:
    """Return whether a pair is known to have a tangential restitution."""
    numbers = model.pair_tangential_restitution
    return not isinstance(numbers, jax.core.Tracer) and bool(np.asarray(numbers).any())
