"""Platforms on legs: a board that swings on rods, Stewart's platform. World z up; nothing touches."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ...collision.poses import Array, rotation_from_z
from ..builder import SceneBuilder
from ..joint_specs import Prismatic, Spherical, Universal
from ..loop_specs import Distance, Driven
from ..spec import SceneSpec
from .facts import Entry, Fact, Play, at_most

if TYPE_CHECKING:
    from .playing import Played

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


def swing(*, angle: float = math.pi / 3) -> SceneSpec:
    """A board of 1 kg on four rods of 1 m, let go at this angle from the vertical [rad]: it swings like a point, and
    stays level. Three rods suffice: the fourth is redundant, and the share of each is not determined."""
    b = SceneBuilder()
    half = (0.3, 0.2)
    shift = np.array([math.sin(angle), 0.0, -math.cos(angle)])
    b.add_body("board", mass=1.0, inertia=(half[1] ** 2 / 3, half[0] ** 2 / 3, (half[0] ** 2 + half[1] ** 2) / 3),
               position=shift)  # fmt: skip
    for x in (-half[0], half[0]):
        for y in (-half[1], half[1]):
            b.add_loop("board", (x, y, 0.0), "world", (x, y, 0.0), joint=Distance(1.0))
    return b.build()


BASE, TOP, LEG = 1.0, 0.6, 1.3  # [m] radii of the hexapod's joints, and length of its legs at the start


def hexapod(*, stroke: float = 0.2, frequency: float = 0.5, apart: float = 0.0) -> SceneSpec:
    """Stewart's platform: 5 kg on six legs that lengthen by stroke (sin(2 pi f t + k apart) - sin(k apart)), k = 0..5.

    stroke [m]; frequency [Hz]; apart: phase between neighbours [rad]; with 0 it goes straight up and down.
    """
    b = SceneBuilder()
    feet, heads, height = hexapod_ends()
    b.add_body("top", mass=5.0, inertia=(0.5, 0.5, 0.9), position=(0, 0, height))
    for k, (foot, head) in enumerate(zip(feet, heads, strict=True)):
        along = rotation_from_z((head + np.array([0, 0, height]) - foot) / LEG)
        b.add_link(f"foot {k}", joint=Universal(X, Y), position=foot, quaternion=along, mass=0.5, com=(0, 0, LEG / 4),
                   inertia=(0.02, 0.02, 0.001))  # fmt: skip
        b.add_link(f"leg {k}", f"foot {k}", joint=Prismatic(Z), position=(0, 0, LEG), mass=0.5, com=(0, 0, -LEG / 4),
                   inertia=(0.02, 0.02, 0.001))  # fmt: skip
        b.add_loop(f"leg {k}", (0, 0, 0), "top", head, joint=Spherical())
        b.add_loop(f"leg {k}", joint=Driven(amplitude=stroke, frequency=frequency, phase=k * apart))
    return b.build()


def hexapod_ends() -> tuple[Array, Array, float]:
    """Feet (6, 3) in the world, heads (6, 3) on the platform, and its height at the start [m]: heads stand in pairs."""
    angles = np.arange(6) * math.pi / 3
    near = angles + np.where(np.arange(6) % 2 == 0, 1, -1) * math.radians(20)
    feet, heads = (np.stack([r * np.cos(a), r * np.sin(a), 0 * a], 1) for r, a in ((BASE, angles), (TOP, near)))
    return feet, heads, math.sqrt(LEG**2 - float(((heads - feet) ** 2).sum(1)[0]))


# -- facts --------------------------------------------------------------------------------------------
# Loops are closed to rounding after each step; what is left is the error of steps of order 4.

_SWING = Play(
    duration=10.0,
    frame_dt=1 / 30,
    facts=(
        # sin(a/2) = sin(30 deg) sn(K - t sqrt(g)), modulus sin 30 deg: a pendulum of 1 m
        Fact("place along x at 10 s [m]", -0.606668495922, 1e-7, lambda p: p.position("board")[-1, 0]),
        at_most(
            "distance from its circle [m]", 1e-12,
            lambda p: np.abs(np.hypot(p.position("board")[:, 0], p.position("board")[:, 2]) - 1).max(),
        ),
        at_most("turn, half its angle [rad]", 1e-12, lambda p: np.abs(p.coordinates("board")[:, 4:]).max()),
    ),
)  # fmt: skip


def _legs(p: Played) -> Array:
    """Lengths of the legs (F, 6) by the pose of the platform [m]."""
    feet, heads, _ = hexapod_ends()
    ends = p.position("top")[:, None] + np.einsum("fij,kj->fki", p.axes("top"), heads)
    return np.linalg.norm(ends - feet, axis=2)


def _strokes(p: Played, apart: float) -> Array:
    """Target lengths of the legs (F, 6) [m]."""
    phases = apart * np.arange(6)
    return LEG + 0.2 * (np.sin(math.pi * p.t[:, None] + phases) - np.sin(phases))


def _off_heave(p) -> float:
    feet, heads, _ = hexapod_ends()
    reach = ((heads - feet) ** 2).sum(1)[0]
    rise = np.sqrt(_strokes(p, 0.0)[:, 0] ** 2 - reach)
    return np.abs(p.position("top") - np.stack([0 * rise, 0 * rise, rise], 1)).max()


_HEXAPOD = (
    Play(
        (
            at_most("place, off (0, 0, sqrt(L^2 - d^2)) of equal legs [m]", 1e-10, _off_heave),
            at_most("turn, half its angle [rad]", 1e-10, lambda p: np.abs(p.coordinates("top")[:, 4:]).max()),
        )
    ),
    Play(
        (at_most("legs, off their lengths [m]", 1e-11, lambda p: np.abs(_legs(p) - _strokes(p, 1.0)).max()),),
        {"apart": 1.0},
    ),
)

ENTRIES: dict[str, Entry] = {
    "swing": Entry(swing, "a board on four rods, one too many", (_SWING,)),
    "hexapod": Entry(hexapod, "Stewart's platform on six driven legs", _HEXAPOD),
}
