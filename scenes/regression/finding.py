"""The finding of a check: a number, its tolerance, and words for it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """A finding.  name: of the check.  measured, allowed: in `unit`; it holds if measured <= allowed.

    where: time and position of the worst, in words.
    """

    name: str
    measured: float
    allowed: float
    unit: str = ""
    where: str = ""

    @property
    def holds(self) -> bool:
        return bool(self.measured <= self.allowed)  # no for NaN

    def __bool__(self) -> bool:
        return self.holds

    def __str__(self) -> str:
        verdict = "holds" if self.holds else "is violated"
        where = f", {self.where}" if self.where and not self.holds else ""
        unit = f" {self.unit}" if self.unit else ""
        return f"{self.name} {verdict}: {self.measured:.3g}{unit}, allowed {self.allowed:.3g}{unit}{where}"

    def check(self) -> Finding:
        """Raise AssertionError if it does not hold."""
        __tracebackhide__ = True  # pytest shows the line of the test
        if not self.holds:
            raise AssertionError(str(self))
        return self
