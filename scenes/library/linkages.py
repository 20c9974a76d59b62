"""Linkages whose motion is known in closed form: four-bar, slider-crank, Peaucellier's, Bennett's. World z up.

Bars are uniform and thin, along the x axes of their frames; plane linkages move in x-z. Nothing touches.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ...collision.plain import Numbers
from ...collision.poses import Array, from_axis_angle
from ..builder import SceneBuilder
from ..joint_specs import Prismatic, Revolute
from ..loop_specs import Driven
from ..spec import SceneSpec
from .facts import Entry, Fact, Play, at_most

if TYPE_CHECKING:
    from .playing import Played

X, Z = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)
HINGE = Revolute((0.0, -1.0, 0.0))  # a positive turn goes from x to z


def add_bar(b: SceneBuilder, name: str, parent: str, at: Numbers, length: float, q0: float, *, v0: float = 0.0) -> None:
    """Add a bar of 1 kg and this length [m] that rotates about its end at `at`, in the parent's frame."""
    side = length**2 / 12
    b.add_link(
        name, parent, joint=HINGE, position=at, mass=1.0, com=(length / 2, 0, 0), inertia=(0, side, side), q0=q0, v0=v0
    )


CRANK, COUPLER, ROCKER, GROUND = 0.3, 1.0, 0.8, 1.0  # [m] of the four-bar; the crank can go round


def four_bar(*, angle: float = 1.0, rate: float = 4.0, driven: bool = False) -> SceneSpec:
    """A crank, a coupler and a rocker, whose angle is Freudenstein's (1955).

    angle: of the crank from the ground at the start [rad]; rate: of the crank [rad/s], constant if it is driven.
    """
    b = SceneBuilder()
    rocker = float(rocker_angle(angle))
    tip = np.array([CRANK * math.cos(angle), CRANK * math.sin(angle)])
    end = np.array([GROUND + ROCKER * math.cos(rocker), ROCKER * math.sin(rocker)])
    coupler = math.atan2(end[1] - tip[1], end[0] - tip[0])
    add_bar(b, "crank", "world", (0, 0, 0), CRANK, angle, v0=rate)
    add_bar(b, "coupler", "crank", (CRANK, 0, 0), COUPLER, coupler - angle)
    add_bar(b, "rocker", "world", (GROUND, 0, 0), ROCKER, rocker)
    b.add_loop("coupler", (COUPLER, 0, 0), "rocker", (ROCKER, 0, 0), joint=HINGE)
    if driven:
        b.add_loop("crank", joint=Driven(rate=rate))
    return b.build()


def rocker_angle(crank: Array | float) -> Array:
    """The rocker's angle of the open four-bar: Freudenstein's equation K1 cos r - K2 cos c + K3 = cos(c - r)."""
    K1, K2 = GROUND / CRANK, GROUND / ROCKER
    K3 = (CRANK**2 - COUPLER**2 + ROCKER**2 + GROUND**2) / (2 * CRANK * ROCKER)
    # (K1 - cos c) cos r - sin c sin r = K2 cos c - K3
    along, across = K1 - np.cos(crank), -np.sin(crank)
    return np.arctan2(across, along) + np.arccos((K2 * np.cos(crank) - K3) / np.hypot(along, across))


STROKE, ROD = 0.3, 1.0  # [m] of the slider-crank


def slider_crank(*, angle: float = 0.5, rate: float = 10.0) -> SceneSpec:
    """A crank that rotates from this angle [rad] at this constant rate [rad/s], a connecting rod, a slider along x."""
    b = SceneBuilder()
    add_bar(b, "crank", "world", (0, 0, 0), STROKE, angle, v0=rate)
    add_bar(b, "rod", "crank", (STROKE, 0, 0), ROD, -math.asin(STROKE / ROD * math.sin(angle)) - angle)
    b.add_link("slider", joint=Prismatic(X), mass=1.0, inertia=(0.001,) * 3, q0=float(slider_position(angle)))
    b.add_loop("rod", (ROD, 0, 0), "slider", (0, 0, 0), joint=HINGE)
    b.add_loop("crank", joint=Driven(rate=rate))
    return b.build()


def slider_position(crank: Array | float) -> Array:
    """Position of the slider [m] at this angle of the crank [rad]."""
    return STROKE * np.cos(crank) + np.sqrt(ROD**2 - (STROKE * np.sin(crank)) ** 2)


ARM, SIDE, RADIUS = 1.0, 0.4, 0.5  # [m] of Peaucellier's linkage
LINE = (ARM**2 - SIDE**2) / (2 * RADIUS)  # how far the line is [m]: inversion takes the crank's circle to it


def peaucellier(*, reach: float = 1.4, frequency: float = 0.5) -> SceneSpec:
    """Peaucellier's inversor (1864): a crank makes the far corner of a rhombus go up and down on a straight line.

    reach: amplitude of the crank to either side [rad].  frequency [Hz].
    """
    b = SceneBuilder()
    near, far = 2 * RADIUS, LINE  # from the hinge of the arms to two corners of the rhombus, at the start
    rise = math.acos((ARM**2 + near**2 - SIDE**2) / (2 * ARM * near))
    for side, sign in (("upper", 1), ("lower", -1)):
        corner = ARM * np.array([math.cos(rise), sign * math.sin(rise)])
        add_bar(b, f"{side} arm", "world", (0, 0, 0), ARM, sign * rise)
        for end, x in (("near", near), ("far", far)):
            absolute = math.atan2(-corner[1], x - corner[0])
            add_bar(b, f"{side} {end}", f"{side} arm", (ARM, 0, 0), SIDE, absolute - sign * rise)
    add_bar(b, "crank", "world", (RADIUS, 0, 0), RADIUS, 0.0)
    for name, other, at in (
        ("upper near", "crank", RADIUS), ("lower near", "crank", RADIUS), ("lower far", "upper far", SIDE),
    ):  # fmt: skip
        b.add_loop(name, (SIDE, 0, 0), other, (at, 0, 0), joint=HINGE)
    b.add_loop("crank", joint=Driven(amplitude=reach, frequency=frequency))
    return b.build()


SHORT, TWIST_SHORT, TWIST_LONG = 0.6, math.radians(35), math.radians(70)
LONG = SHORT * math.sin(TWIST_LONG) / math.sin(TWIST_SHORT)  # [m]: Bennett's condition


def bennett(*, angle: float = 1.0, rate: float = 3.0) -> SceneSpec:
    """Bennett's linkage (1903): four hinges in space whose axes do not meet, and which still move.

    Opposite links are equal: their length is proportional to the sine of the twist between their axes. By counting it
    cannot move: three joints, five constraints, of which two are independent. angle, rate: of the driven hinge [rad,
    rad/s].
    """
    b = SceneBuilder()
    angles = angle, float(bennett_angle(angle)), angle
    sides = (SHORT, TWIST_SHORT), (LONG, TWIST_LONG), (SHORT, TWIST_SHORT)
    parent, position, quaternion = "world", (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0)
    for k, ((length, twist), q0) in enumerate(zip(sides, angles, strict=True)):
        side = length**2 / 12
        b.add_link(
            f"link {k}", parent, joint=Revolute(Z), position=position, quaternion=quaternion, mass=1.0,
            com=(length / 2, 0, 0), inertia=(1e-3, side, side), q0=q0, v0=rate if k == 0 else 0.0,
        )  # fmt: skip
        parent, position, quaternion = f"link {k}", (length, 0.0, 0.0), from_axis_angle(X, twist)
    # the fourth link is the ground, seen from its far end
    back = from_axis_angle(X, -TWIST_LONG)
    b.add_loop(parent, (position, quaternion), "world", ((-LONG, 0, 0), back), joint=Revolute(Z))
    b.add_loop("link 0", joint=Driven(rate=rate))
    return b.build()


def bennett_angle(angle: Array | float) -> Array:
    """The hinge after the driven one [rad]: tan(a/2) tan(b/2) = sin((T + t)/2)/sin((T - t)/2) of the twists T, t."""
    ratio = math.sin((TWIST_LONG + TWIST_SHORT) / 2) / math.sin((TWIST_LONG - TWIST_SHORT) / 2)
    half = np.asarray(angle) / 2
    return 2 * np.arctan2(ratio * np.cos(half), np.sin(half))


# -- facts --------------------------------------------------------------------------------------------

_TIGHT = 1e-12  # error of relations that the loops keep, between numbers of about one [m, rad]


def _off_freudenstein(p) -> float:
    return np.abs(p.joint("rocker") - rocker_angle(p.joint("crank"))).max()


_FREUDENSTEIN = at_most("rocker, off Freudenstein's angle [rad]", _TIGHT, _off_freudenstein, "Freudenstein 1955")
_FOUR_BAR = (
    Play((_FREUDENSTEIN, at_most("change of the energy [J/J]", 1e-6, lambda p: p.energy_drift)), duration=10.0),
    Play(
        (
            _FREUDENSTEIN,
            at_most("crank, off 1 + 4 t [rad]", _TIGHT, lambda p: np.abs(p.joint("crank") - 1 - 4 * p.t).max()),
        ),
        {"driven": True},
    ),
)

_SLIDER = Play(
    (
        at_most(
            "slider, off r cos a + sqrt(l^2 - r^2 sin^2 a), a = 0.5 + 10 t [m]", _TIGHT,
            lambda p: np.abs(p.joint("slider") - slider_position(0.5 + 10 * p.t)).max(),
        ),
    )
)  # fmt: skip


def _far_corner(p: Played) -> Array:
    """The rhombus's far corner (F, 2) [m]."""
    first = p.joint("upper arm")
    second = first + p.joint("upper far")
    return np.stack([ARM * np.cos(first) + SIDE * np.cos(second), ARM * np.sin(first) + SIDE * np.sin(second)], 1)


_HEIGHT = LINE * math.tan(0.7)  # the crank turns twice as far as the line of sight from the hinge of the arms
_PEAUCELLIER = Play(
    (
        at_most("distance from the line x = 0.84 m [m]", 1e-11, lambda p: np.abs(_far_corner(p)[:, 0] - LINE).max()),
        Fact("its highest place: 0.84 tan 0.7 [m]", _HEIGHT, 1e-11, lambda p: _far_corner(p)[:, 1].max()),
    )
)  # fmt: skip


def _off_bennett(p) -> float:
    off = p.joint("link 1") - bennett_angle(p.joint("link 0"))
    return np.abs(off - 2 * math.pi * np.round(off / (2 * math.pi))).max()


_BENNETT = Play((at_most("second hinge, off Bennett's relation [rad]", _TIGHT, _off_bennett, "Bennett 1903"),))

ENTRIES: dict[str, Entry] = {
    "four_bar": Entry(four_bar, "a crank, a coupler and a rocker, free or driven", _FOUR_BAR),
    "slider_crank": Entry(slider_crank, "a slider on a connecting rod on an even crank", (_SLIDER,)),
    "peaucellier": Entry(peaucellier, "Peaucellier's linkage: a straight line from a circle", (_PEAUCELLIER,)),
    "bennett": Entry(bennett, "Bennett's linkage: four skew hinges that move all the same", (_BENNETT,)),
}  # fmt: skip
