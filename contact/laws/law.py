"""A law of impact: a function from the collision matrix and the velocity of approach to the impulse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...engine.algebra.vec3 import Scalar, Sym3, Vec3
from ..sliding.ending import Ending
from ..sliding.slide import slide


@dataclass(frozen=True)
class Law:
    """A law of impact.

    impulse: (K [1/kg], u [m/s], mu, e, e_t) -> (p [N s], result code), components of one shape in the contact frame
        (t1, t2, n); 0 if the bodies do not approach (u.z >= 0).
    says: one line for people who choose a law.
    tangential: whether it depends on e_t.
    loses: whether it never gains energy.
    """

    name: str
    impulse: Callable[[Sym3, Vec3, Scalar, Scalar, Scalar], tuple[Vec3, Scalar]]
    says: str
    tangential: bool = False
    loses: bool = False


def integrated_law(name: str, ending: Ending, says: str, loses: bool = False) -> Law:
    """Return a law whose friction is integrated through the impact; it has no tangential restitution."""
    return Law(name, lambda K, u, mu, e, e_t: slide(ending, K, u, mu, e), says, loses=loses)
