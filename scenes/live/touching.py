"""Contacts of a frame: one record for each pair of bodies, of its impacts and its resting contacts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...collision.poses import Array
from ...engine.shaped import Float
from ...engine.topology import Topology
from ...integrators.frame import Frame
from ..owners import shape_owners
from ..spec import SceneSpec

BEGIN, STAY, END, BOUNCE = "begin", "stay", "end", "bounce"
LEAST = 1e-20  # weight of a contact without impulse: it has a position too


@dataclass(frozen=True)
class Contact:
    """Two bodies that touched in a frame.

    a, b: names of bodies or links; b may be a static's, see `owners.py` for statics without a name.
    phase: "begin", "stay" or "end"; "bounce" if it began and ended within the frame.
    impulse: on a, over the frame, world axes [N s].  point: in the world [m] and normal: unit, from b to
    a: means of the frame.  speed: closing speed of the hardest impact [m/s]; 0 without an impact.
    impacts: their number.
    """

    a: str
    b: str
    phase: str
    impulse: Float[np.ndarray, " 3"]
    point: Float[np.ndarray, " 3"]
    normal: Float[np.ndarray, " 3"]
    speed: float
    impacts: int


@dataclass(frozen=True)
class Bodies:
    """Names of links, and of the owner of each shape."""

    topology: Topology
    owners: tuple[str, ...]

    @staticmethod
    def of(scene: SceneSpec, topology: Topology) -> Bodies:
        """The names in a scene's model."""
        return Bodies(topology, shape_owners(scene, topology))

    @cached_property
    def couples(self) -> tuple[list[tuple[str, str]], Array, Array]:
        """Couples of bodies, a static last; for each row of `topology.pairs` (np,) its couple's index, and 1, or -1 if
        its second shape's body is the couple's first."""
        still = [self.topology.shape_links[a] < 0 for a, _ in self.topology.pairs]
        named = [
            (self.owners[b], self.owners[a]) if swap else (self.owners[a], self.owners[b])
            for swap, (a, b) in zip(still, self.topology.pairs, strict=True)
        ]
        couples = sorted(set(named))
        number = {couple: k for k, couple in enumerate(couples)}
        return couples, np.array([number[couple] for couple in named], np.int64), np.where(still, -1.0, 1.0)


@dataclass(frozen=True)
class SleepingContacts:
    """Contacts that held islands in a frame while they slept, n rows like those of `integrators.frame.Touching`.
    here: (n,) bool, whether the island still sleeps at its end."""

    pair: Array
    point: Array
    normal: Array
    impulse: Array
    here: Array


def contacts_of(bodies: Bodies, frame: Frame, asleep: SleepingContacts) -> list[Contact]:
    """Contacts of a `integrators.frame.Frame` with arrays of numpy, ordered by the bodies' names."""
    couples, couple_of, side = bodies.couples
    hits = frame.impacts
    struck = (hits.pair >= 0) & (np.arange(len(hits.pair)) < hits.count)
    resting = [frame.before, frame.after, frame.during, asleep]
    pair = np.concatenate([hits.pair[struck], *(x.pair.ravel() for x in resting)])
    vectors = [
        np.concatenate([getattr(hits, name)[struck], *(getattr(x, name).reshape(-1, 3) for x in resting)])
        for name in ("impulse", "point", "normal")
    ]
    real = pair >= 0
    impulse, point, normal = (np.asarray(x[real], np.float64) for x in vectors)
    couple, sign = couple_of[pair[real]], side[pair[real], None]
    touched, row = np.unique(couple, return_inverse=True)
    weight = np.abs((impulse * normal).sum(1))[:, None] + LEAST
    sums = np.zeros((len(touched), 10))
    np.add.at(sums, row, np.concatenate([sign * impulse, weight * point, sign * weight * normal, weight], 1))
    sums[:, 3:9] /= sums[:, 9:]
    sums[:, 6:9] /= np.maximum(np.linalg.norm(sums[:, 6:9], axis=1, keepdims=True), LEAST)
    speed, count, first = np.zeros(len(touched)), np.zeros(len(touched), int), row[: struck.sum()]
    np.maximum.at(speed, first, -hits.u_before[struck, 2])
    np.add.at(count, first, 1)
    ends = ((frame.before.pair, asleep.pair), (frame.after.pair, asleep.pair[asleep.here]))
    there = np.zeros((2, len(couples)), bool)
    for mine, pairs in zip(there, ends, strict=True):
        for pair in pairs:
            mine[couple_of[pair[pair >= 0]]] = True
    before, after = there[:, touched]
    return [
        Contact(a, b, _phase(*phase), x[:3], x[3:6], x[6:9], float(u), int(n))
        for (a, b), phase, x, u, n in zip(
            (couples[k] for k in touched), zip(before, after, strict=True), sums, speed, count, strict=True
        )
    ]


def _phase(before: bool, after: bool) -> str:
    if before:
        return STAY if after else END
    return BEGIN if after else BOUNCE
