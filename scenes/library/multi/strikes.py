"""Multi 4 and 5: a hinged rod strikes a peg, and a ball. No gravity; the hinge is at the origin, about z."""

from __future__ import annotations

import math

import numpy as np

from ....collision.shapes import Box, Sphere
from ...builder import SceneBuilder
from ...joint_specs import Revolute
from ...spec import SceneSpec
from ..facts import Entry, Fact, Play, at_most

RATE, SWING, THICK, PEG = 2.0, 0.5, 0.02, 0.03  # [rad/s, rad, m, m]


def multi_04(*, reach: float = 1.0, restitution: float = 0.5) -> SceneSpec:
    """A uniform rod, 1 m, 1 kg, that turns at 2 rad/s and meets a fixed peg after half a radian.

    reach: of the peg from the hinge [m]. The rod leaves at -e w; the peg's impulse is P = (1 + e) w I/reach, the hinge
    bears P (1 - 3 reach/2): half of it the other way at the tip, nothing at 2/3.
    """
    b = SceneBuilder((0.0, 0.0, 0.0))
    b.add_static("peg", [Sphere(PEG)], position=_peg_position(reach), friction=0.0, restitution=restitution)
    _rod(b, restitution)
    return b.build()


def multi_05(*, reach: float = 1.0, restitution: float = 0.5, mass: float = 0.5) -> SceneSpec:
    """The rod of multi_04 meets a free ball of this mass [kg] at this reach [m].

    At the tip p = (1 + e) u/(3/m + 1/M), and (1 - e^2) u^2/(3/m + 1/M)/2 is lost; the angular momentum about the hinge
    is conserved.
    """
    b = SceneBuilder((0.0, 0.0, 0.0))
    _rod(b, restitution)
    ball, at = [Sphere(PEG)], _peg_position(reach)
    b.add_body("ball", ball, mass=mass, position=at, friction=0.0, restitution=restitution)
    return b.build()


def _rod(b: SceneBuilder, restitution: float) -> None:
    """Add the rod, along x at the start; its shape is a little longer than the rod, so that the tip is no edge."""
    shape = Box((0.5, THICK, THICK), position=(0.6, 0.0, 0.0))
    b.add_link(
        "rod", joint=Revolute((0.0, 0.0, 1.0)), mass=1.0, com=(0.5, 0.0, 0.0), inertia=(0.0, 1 / 12, 1 / 12),
        shapes=[shape], v0=RATE, friction=0.0, restitution=restitution,
    )  # fmt: skip


def _peg_position(reach: float) -> tuple[float, float, float]:
    """Position of a ball's middle that the rod's side touches at this reach after a rotation by SWING [m]."""
    c, s, off = math.cos(SWING), math.sin(SWING), THICK + PEG
    return (c * reach - s * off, s * reach + c * off, 0.0)


def _hinge(p) -> float:
    """The impulse of the hinge along the normal: the change of the rod's momentum m L w/2, less the peg's [N s]."""
    rate = p.rate("rod")
    return 0.5 * (rate[-1] - rate[0]) + p.event("impulse")[0, 2]


def _peg(reach: float) -> Play:
    impulse = 1.5 * RATE / (3 * reach)
    return Play(
        parameters={"reach": reach},
        duration=0.5,
        facts=(
            # touching is a gap of 1e-9 m, at 2 rad/s
            Fact("time of impact [s]", SWING / RATE, 1e-9 / RATE / reach + 1e-12, lambda p: p.event("t")[0]),
            Fact("rate after [rad/s]", -0.5 * RATE, 1e-9, lambda p: p.rate("rod")[-1]),
            Fact("impulse of the peg [N s]", impulse, 1e-8, lambda p: p.event("impulse")[0, 2]),
            Fact("impulse of the hinge [N s]", impulse * (1 - 1.5 * reach), 1e-8, _hinge),
        ),
    )


_K = 3 / 1 + 1 / 0.5
_BALL = Play(
    duration=0.5,
    facts=(
        Fact("impulse [N s]", 1.5 * RATE / _K, 1e-8, lambda p: p.event("impulse")[0, 2]),
        Fact("they part with e u [m/s]", 0.5 * RATE, 1e-8, lambda p: p.event("u_after")[0, 2]),
        Fact("energy lost [J]", 0.375 * RATE**2 / _K, 1e-8, lambda p: p.kinetic[0] - p.kinetic[-1]),
        Fact("energy lost, as logged [J]", 0.375 * RATE**2 / _K, 1e-8,
             lambda p: (p.event("energy_before") - p.event("energy_after"))[0]),
        at_most("change of the angular momentum about the hinge [kg m^2/s]", 1e-12,
                lambda p: np.ptp(p.momenta[1][:, 2])),
    ),
)  # fmt: skip

ENTRIES = {
    "multi_04": Entry(multi_04, "Multi 4: a hinged rod strikes a peg", (_peg(1.0), _peg(2 / 3))),
    "multi_05": Entry(multi_05, "Multi 5: a hinged rod strikes a free ball", (_BALL,)),
}
