"""Blocks: on a ramp, in a row that is struck, dominoes. World z up."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from ...collision.poses import from_axis_angle
from ...collision.shapes import Box, Sphere
from ..builder import SceneBuilder
from ..spec import SceneSpec
from .facts import Entry, Fact, Play, at_most

G = 9.81


def block_on_ramp(
    *, slope: float = math.radians(20), friction: float = 0.3, speed: float = 0.0, size: float = 0.25,
    ball: bool = False,
) -> SceneSpec:  # fmt: skip
    """A cube of 1 kg on a plane that falls along +x, or a ball instead; it starts downhill at `speed` [m/s].

    slope [rad]; size: half the cube's side, or the ball's radius [m]. The cube holds if tan slope <= mu, else it
    slides with g (sin slope - mu cos slope); on the level it stops after v^2/(2 mu g). The ball rolls with
    5/7 g sin slope if mu >= 2/7 tan slope.
    """
    b = SceneBuilder()
    up, down = (math.sin(slope), 0.0, math.cos(slope)), (math.cos(slope), 0.0, -math.sin(slope))
    b.add_plane(up, friction=friction)
    shape = Sphere(size) if ball else Box((size,) * 3)
    b.add_body(
        "block", [shape], mass=1.0, position=tuple(size * x for x in up), friction=friction,
        quaternion=from_axis_angle((0.0, 1.0, 0.0), slope), linear_velocity=tuple(speed * x for x in down),
    )  # fmt: skip
    return b.build()


def downhill(slope: float):
    """Functions along(p) and speed(p): the block's distance and speed along the slope (F,) [m, m/s]."""
    down = np.array([math.cos(slope), 0.0, -math.sin(slope)])
    return lambda p: (p.position("block") - p.position("block")[0]) @ down, lambda p: p.velocity("block") @ down


def chain_of_blocks(
    n: int = 5, *, speed: float = 2.0, friction: float = 0.0, side: float = 0.2, restitution: float = 0.0
) -> SceneSpec:
    """n equal cubes of 1 kg on the ground in a row along x, face to face; the first comes at `speed` [m/s].

    It starts touching the second.  friction: of the ground; the blocks have none between them.  side [m].
    With simultaneous impacts and no restitution all go on together with v/n, and stop after (v/n)^2/(2 mu g).
    """
    b = SceneBuilder()
    b.add_plane(material="ground")
    for k in range(n):
        b.add_body(
            f"block{k}", [Box((side / 2,) * 3)], mass=1.0, position=(side * k, 0.0, side / 2), material="block",
            linear_velocity=(0.0 if k else speed, 0.0, 0.0),
        )  # fmt: skip
        for other in range(k - 1):
            b.exclude(f"block{other}", f"block{k}")
    b.set_pair("ground", "block", friction=friction, restitution=0.0)
    b.set_pair("block", "block", friction=0.0, restitution=restitution)
    return b.build()


def dominoes(n: int = 8, *, spacing: float = 0.02, push: float = 4.0) -> SceneSpec:
    """n standing dominoes of 7.5 x 24 x 48 mm, `spacing` [m] from one to the next along x.

    The first begins to fall, turning about its front edge at `push` [rad/s].
    """
    b = SceneBuilder(gap_band=1e-6)
    b.add_plane(friction=0.6)
    half = (0.00375, 0.012, 0.024)
    for k in range(n):
        w = 0.0 if k else push
        b.add_body(
            f"domino{k}", [Box(half)], mass=0.01, position=(spacing * k, 0.0, half[2]), friction=0.2,
            linear_velocity=(w * half[2], 0.0, w * half[0]), angular_velocity=(0.0, w, 0.0),
        )  # fmt: skip
        for other in range(k - 2):
            b.exclude(f"domino{other}", f"domino{k}")
    return b.build()


# -- facts --------------------------------------------------------------------------------------------

_RESTS = 1e-8  # residual of the solver of resting contacts, over some seconds
_RAMP_WAY, _RAMP_SPEED = downhill(math.radians(20))
_ROLL_SPEED = downhill(math.radians(15))[1]
_SLIDES = G * (math.sin(math.radians(20)) - 0.3 * math.cos(math.radians(20)))
_RAMP = (
    Play(
        facts=(
            Fact("way slid in 2 s: g (sin - mu cos) t^2/2 [m]", 2 * _SLIDES, _RESTS, lambda p: _RAMP_WAY(p)[-1]),
            Fact("speed after 2 s [m/s]", 2 * _SLIDES, _RESTS, lambda p: _RAMP_SPEED(p)[-1]),
        )
    ),
    Play(
        parameters={"friction": 0.4},
        duration=10.0,
        frame_dt=0.1,
        facts=(at_most("creep where it holds, 10 s [m]", 1e-6, lambda p: np.abs(_RAMP_WAY(p)).max()),),
    ),
    Play(
        parameters={"slope": math.radians(15), "friction": 1.0, "size": 0.05, "ball": True},
        duration=1.0,
        facts=(
            # Drake's inclined_plane_test asks for 5.5e-4
            Fact("speed of a ball after 1 s [m/s]", 1.813582, 1e-6, lambda p: _ROLL_SPEED(p)[-1]),
            Fact("R w, it rolls [m/s]", 1.813582, 1e-6, lambda p: 0.05 * p.spin("block")[-1, 1]),
        ),
    ),
)

_CHAIN = (
    Play(
        duration=0.5,
        impacts="simultaneous",
        facts=(
            at_most(
                "velocity of each, less v/n [m/s]", 1e-8, lambda p: np.abs(p.velocities[-1] - [0.4, 0, 0]).max()
            ),
            Fact("energy that is left, 1/n of it [J]", 2 / 5, 1e-8, lambda p: p.kinetic[-1]),
        ),
    ),
    Play(
        parameters={"friction": 0.3},
        duration=0.5,
        impacts="simultaneous",
        facts=(
            # a step of 1/240 s may miss the end of sliding by mu g h^2
            Fact(
                "way until they stop: (v/n)^2/(2 mu g) [m]", 0.16 / (0.6 * G), 0.3 * G / 240**2,
                lambda p: (p.positions[-1] - p.positions[0])[:, 0].mean(),
            ),
            at_most("speed at the end [m/s]", 1e-8, lambda p: np.abs(p.velocities[-1]).max()),
        ),
    ),
)  # fmt: skip


def _lean(p):
    """Angle of each domino from upright (n,), at the end [rad]."""
    names = p.model.topology.names
    return np.array([math.acos(min(1.0, p.axes(name)[-1, 2, 2])) for name in names])


def _struck_in_order(p) -> int:
    """Number of dominoes that are struck for the first time after the one before them."""
    bodies, t = p.event("bodies"), p.event("t")
    pairs = [{k, k + 1} for k in range(len(p.model.topology.names) - 1)]
    first = [next((at for at, two in zip(t, bodies, strict=True) if set(two) == pair), np.inf) for pair in pairs]
    return sum(a < b < np.inf for a, b in pairwise(first))


_DOMINOES = Play(
    rough=True,
    duration=1.0,
    impacts="simultaneous",  # a side that falls flat strikes with all its corners
    max_events=8192,
    facts=(
        at_most("how many stand at the end", 0, lambda p: (_lean(p) < math.radians(30)).sum()),
        Fact("how many are struck after the one before them", 6, 0, _struck_in_order),
        at_most("energy gained, in parts of the kinetic [J/J]", 1e-3, lambda p: p.energy_gain),
    ),
)

ENTRIES = {
    "block_on_ramp": Entry(block_on_ramp, "a cube that holds or slides on a slope; a ball that rolls", _RAMP),
    "chain_of_blocks": Entry(chain_of_blocks, "cubes in a row on the ground, struck by the first", _CHAIN),
    "dominoes": Entry(dominoes, "a row of dominoes, the first pushed", (_DOMINOES,)),
}
