"""Billiards: a stroke with follow, stun or draw, and the break. Balls 57.15 mm, 0.17 kg; cloth z = 0, world z up."""

from __future__ import annotations

import math

import numpy as np

from ...collision.shapes import Sphere
from ..builder import SceneBuilder
from ..spec import SceneSpec
from .facts import Entry, Fact, Play, at_most

RADIUS, MASS, G = 0.028575, 0.17, 9.81
LENGTH, WIDTH = 2.54, 1.27  # between the cushions [m]


def billiard_stroke(
    spin: float = 0.0, *, speed: float = 1.0, friction: float = 0.2, restitution: float = 1.0, partner: bool = True
) -> SceneSpec:
    """A cue ball that starts along x at `speed` [m/s], touching the ball that it strikes (partner) or alone.

    spin: R w/v about the axis of rolling: 1 follow, 0 stun, -1 draw.  friction: of the cloth; the balls have none
    between them.  restitution: between the balls.
    Slip ends after 2 |v - R w|/(7 mu g) with v_f = (5 v + 2 R w)/7; m v R + I w never changes. A head-on hit leaves the
    cue ball (1 - e) v/2 and its spin, the other (1 + e) v/2 and none: with e = 1 they finally roll with 2 spin v/7 and
    5 v/7.
    """
    b = SceneBuilder()
    b.add_plane(material="cloth", friction=friction)
    w = (0.0, spin * speed / RADIUS, 0.0)
    b.add_body(
        "cue", [Sphere(RADIUS)], mass=MASS, position=(0.0, 0.0, RADIUS), linear_velocity=(speed, 0.0, 0.0),
        angular_velocity=w, material="ball",
    )  # fmt: skip
    b.set_pair("cloth", "ball", friction=friction, restitution=0.0)
    if partner:
        b.add_body("object", [Sphere(RADIUS)], mass=MASS, position=(2 * RADIUS, 0.0, RADIUS), material="ball")
        b.set_pair("ball", "ball", friction=0.0, restitution=restitution)
    return b.build()


def pool_break(speed: float = 8.0, angle: float = 0.0, *, gap: float = 1e-4, spin: float = 0.0) -> SceneSpec:
    """The break: a cue ball at a quarter of the table's length, fifteen balls in a triangle with its tip at the other.

    speed [m/s] and angle [rad, from the table's axis x] of the cue ball, which starts with R w = spin v about the
    axis of rolling.  gap: between racked balls [m].  The middle of the table is the origin; cushions are planes.
    """
    b = SceneBuilder()
    b.add_plane(name="cloth", material="cloth")
    for name, normal, half in (
        ("west", (1, 0, 0), LENGTH / 2), ("east", (-1, 0, 0), LENGTH / 2),
        ("south", (0, 1, 0), WIDTH / 2), ("north", (0, -1, 0), WIDTH / 2),
    ):  # fmt: skip
        b.add_plane(normal, -half, name=name, material="cushion")
    ahead, across = math.cos(angle), math.sin(angle)
    w = spin * speed / RADIUS
    b.add_body(
        "cue", [Sphere(RADIUS)], mass=MASS, position=(-LENGTH / 4, 0.0, RADIUS), material="ball",
        linear_velocity=(speed * ahead, speed * across, 0.0), angular_velocity=(-w * across, w * ahead, 0.0),
    )  # fmt: skip
    apart, number = 2 * RADIUS + gap, 0
    for row in range(5):
        for k in range(row + 1):
            number += 1
            position = (LENGTH / 4 + row * apart * math.sqrt(3) / 2, (k - row / 2) * apart, RADIUS)
            b.add_body(f"ball{number}", [Sphere(RADIUS)], mass=MASS, position=position, material="ball")
    b.set_pair("ball", "ball", friction=0.05, restitution=0.95)
    b.set_pair("ball", "cloth", friction=0.2, restitution=0.5)
    b.set_pair("ball", "cushion", friction=0.2, restitution=0.8)
    return b.build()


# -- facts --------------------------------------------------------------------------------------------

_ENDS = 1e-9  # residual of the solver of resting contacts at a velocity of 1 m/s
_SLIP, _ROLL = 2 / (7 * 0.2 * G), 5 / 7  # v = 1 m/s, mu = 0.2: when slip ends [s], and the speed then [m/s]


def _about_cloth(p):
    """m v R + I w of the cue ball in parts of m v at its start (F,) [m]."""
    inertia = 0.4 * MASS * RADIUS**2
    return (MASS * RADIUS * p.velocity("cue")[:, 0] + inertia * p.spin("cue")[:, 1]) / (MASS * RADIUS)


_ALONE = Play(
    parameters={"partner": False},
    duration=1.0,
    frame_dt=0.05,
    facts=(
        Fact("speed once it rolls [m/s]", _ROLL, _ENDS, lambda p: p.velocity("cue")[-1, 0]),
        Fact("R w once it rolls [m/s]", _ROLL, _ENDS, lambda p: p.spin("cue")[-1, 1] * RADIUS),
        Fact(
            "place after 0.1 s, still slipping [m]", 0.1 - 0.2 * G * 0.1**2 / 2, _ENDS,
            lambda p: p.position("cue")[2, 0],
        ),
        Fact(
            "place after 1 s: 12 v^2/(49 mu g) of slip, then rolling [m]", 12 / (49 * 0.2 * G) + _ROLL * (1 - _SLIP),
            1e-6, lambda p: p.position("cue")[-1, 0],
        ),
        at_most("drift of v + I w/(m R) [m/s]", _ENDS, lambda p: np.ptp(_about_cloth(p))),
    ),
)  # fmt: skip


def _stroke(name: str, spin: float) -> Play:
    return Play(
        parameters={"spin": spin},
        duration=1.0,
        frame_dt=0.1,
        facts=(
            Fact(f"{name}: the cue ball rolls with [m/s]", 2 * spin / 7, _ENDS, lambda p: p.velocity("cue")[-1, 0]),
            Fact(f"{name}: the other rolls with [m/s]", _ROLL, _ENDS, lambda p: p.velocity("object")[-1, 0]),
        ),
    )


def _overlap(p) -> float:
    """Largest overlap of balls with balls, cushions and the cloth [m]."""
    worst = RADIUS - p.positions[..., 2].min()
    for axis, half in ((0, LENGTH / 2), (1, WIDTH / 2)):
        worst = max(worst, np.abs(p.positions[..., axis]).max() + RADIUS - half)
    i, j = np.triu_indices(16, 1)
    apart = np.linalg.norm(p.positions[:, i] - p.positions[:, j], axis=-1).min()
    return max(0.0, worst, 2 * RADIUS - apart)


_REACH = LENGTH / 2 - 2 * RADIUS  # from the cue ball's surface to that of the first in the rack
_REACHED = (8 - math.sqrt(8**2 - 2 * 0.2 * G * _REACH)) / (0.2 * G)
_BREAK = Play(
    duration=3.0,
    facts=(
        # it starts without spin and slips all the way: v t - mu g t^2/2. Touching is a gap of 1e-9 m, at 8 m/s
        Fact("time of the first impact [s]", _REACHED, 1e-9, lambda p: p.event("t")[0]),
        Fact("its approach [m/s]", 0.2 * G * _REACHED - 8, 1e-9, lambda p: p.event("u_before")[0, 2]),
        Fact("its rebound [m/s]", 0.95 * (8 - 0.2 * G * _REACHED), 1e-9, lambda p: p.event("u_after")[0, 2]),
        at_most("energy gained, in parts of the kinetic [J/J]", 1e-9, lambda p: p.energy_gain),
        at_most("overlap of balls, cushions and cloth [m]", 1e-8, _overlap),  # ten gap bands
    ),
)

ENTRIES = {
    "billiard_stroke": Entry(
        billiard_stroke,
        "a cue ball slips, rolls and strikes another: follow, stun, draw",
        (_ALONE, _stroke("follow", 1.0), _stroke("stun", 0.0), _stroke("draw", -1.0)),
    ),
    "pool_break": Entry(pool_break, "sixteen balls, 0.1 mm apart in the rack; cloth and cushions", (_BREAK,)),
}
