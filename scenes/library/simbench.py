"""SimBenchmark's scenes (leggedrobotics, benchmark/include/*.hpp), with the numbers it publishes. World z up."""

from __future__ import annotations

import itertools
import math

import numpy as np

from ...collision.shapes import Box, Sphere
from ..builder import SceneBuilder
from ..joint_specs import Floating, Motor
from ..spec import SceneSpec
from .facts import Entry, Fact, Play, at_most

G = 9.81
SOURCE = "SimBenchmark"  # in docs/references.md


def simbench_rolling(*, angle: float = math.pi / 2, force: float = 150.0) -> SceneSpec:
    """25 balls of 1 kg and 0.5 m on a board of 10 kg that a force pushes over the ground.

    angle: of the force in the ground's plane, from x [rad]; force [N].  Friction 0.4 below the board, 0.8 above.
    The balls roll with f = (F - 0.4 * 35 g)/10/(3.5 + 2.5), the board goes with (F - 0.4 * 35 g - 25 f)/10.
    """
    b = SceneBuilder()
    b.add_plane(material="ground")
    push = Motor(target=(0.0, 0.0, 0.0, force * math.cos(angle), force * math.sin(angle), 0.0))
    b.add_link(
        "board", joint=Floating(motor=push), shapes=[Box((10.0, 10.0, 0.5), group=0b101)], mass=10.0,
        position=(0.0, 0.0, 0.5), material="board",
    )  # fmt: skip
    for x, y in itertools.product(range(-4, 5, 2), repeat=2):
        ball = Sphere(0.5, group=0b10, mask=0b100)  # it meets the board alone
        b.add_body(f"ball {x} {y}", [ball], mass=1.0, position=(x, y, 1.5), material="ball")
    b.set_pair("ground", "board", friction=0.4, restitution=0.0)
    b.set_pair("board", "ball", friction=0.8, restitution=0.0)
    return b.build()


def simbench_bouncing(n: int = 7, *, height: float = 5.0) -> SceneSpec:
    """n x n balls of 10 kg and 0.1 m, 2 m apart, dropped without friction on the ground, e = 1: energy stays.

    height: of their middles [m].
    """
    b = SceneBuilder()
    b.add_plane(friction=0.0, restitution=1.0)
    for x, y in itertools.product(range(n), repeat=2):
        ball = Sphere(0.1, group=0b10, mask=0b01)  # they never meet
        b.add_body(
            f"ball {x} {y}", [ball], mass=10.0, position=(2.0 * x, 2.0 * y, height), friction=0.0, restitution=1.0
        )
    return b.build()


def simbench_666(n: int = 6, *, seed: int = 0) -> SceneSpec:
    """n^3 balls of 10 kg and 0.1 m, 0.21 m apart, the lowest at 0.101 m; each moved by up to 1 mm; no friction, e = 0.

    seed: of those moves.  They fall on each other and on the ground, and run apart.
    """
    b = SceneBuilder(gap_band=1e-6)
    b.add_plane(friction=0.0)
    moves = np.random.default_rng(seed).uniform(0, 0.001, (n**3, 3))
    for k, (z, y, x) in enumerate(itertools.product(range(n), repeat=3)):
        position = tuple((np.array([0.21 * x, 0.21 * y, 0.101 + 0.21 * z]) + moves[k]).tolist())
        b.add_body(f"ball{k}", [Sphere(0.1)], mass=10.0, position=position, friction=0.0)
    return b.build()


# -- facts --------------------------------------------------------------------------------------------

_F1 = 0.4 * 35 * G
BALLS = (150 - _F1) / 10 / (3.5 + 25 / 10)  # accelerations [m/s^2]
BOARD = (150 - _F1 - 25 * BALLS) / 10


def _rolling_error(p) -> float:
    """SimBenchmark's error: mean over time of the squared errors of the board's and the balls' velocities [m^2/s^2]."""
    way = p.velocities[-1, 0, :2] / np.linalg.norm(p.velocities[-1, 0, :2])
    along = p.velocities[..., :2] @ way
    error = (along[:, 0] - BOARD * p.t) ** 2 + (along[:, 1:].mean(1) - BALLS * p.t) ** 2
    return float(error.mean())


def _rolling(angle: float, published: str) -> Play:
    return Play(
        parameters={"angle": angle},
        duration=4.0,
        facts=(
            at_most(f"mean squared error of velocities; {published} [m^2/s^2]", 1e-12, _rolling_error, SOURCE),
            Fact("velocity of the board at 4 s [m/s]", 4 * BOARD, 1e-7, lambda p: _speed(p, 0), SOURCE),
            Fact("velocity of a ball at 4 s [m/s]", 4 * BALLS, 1e-7, lambda p: _speed(p, 1), SOURCE),
        ),
    )


def _speed(p, k: int) -> float:
    return float(np.linalg.norm(p.velocities[-1, k, :2]))


_BOUNCING = Play(
    duration=20.0,
    max_events=0,
    facts=(
        Fact("energy at the start [J]", 24034.5, 1e-10, lambda p: p.energy[0], SOURCE),
        at_most(
            "mean (E - E0)^2; RAI at 1 ms: 0.0186 [J^2]",
            1e-12,
            lambda p: np.mean((p.energy - 24034.5) ** 2),
            SOURCE,
        ),
    ),
)


def _penetration(p) -> float:
    """SimBenchmark's penetration: mean over time of the sum of squared penetrations [m^2]."""
    i, j = np.triu_indices(p.positions.shape[1], 1)
    total = 0.0
    for frame in p.positions:
        balls = np.maximum(0.2 - np.linalg.norm(frame[i] - frame[j], axis=-1), 0)
        total += (balls**2).sum() + (np.maximum(0.1 - frame[:, 2], 0) ** 2).sum()
    return float(total / len(p.positions))


_666 = Play(
    parameters={"n": 3},
    duration=10.0,
    frame_dt=0.1,
    max_events=0,  # thousands, and no fact needs them
    facts=(
        # up to a hundred contacts of ten gap bands each
        at_most(
            "mean sum of squared penetrations; of 216 balls RAI at 1 ms: 1.35e-4 [m^2]",
            1e-8,
            _penetration,
            SOURCE,
        ),
        # balls roll off balls: steps are of second order where contacts turn
        at_most("energy gained, in parts of the kinetic [J/J]", 1e-6, lambda p: p.energy_gain),
    ),
)

ENTRIES = {
    "simbench_rolling": Entry(
        simbench_rolling,
        "SimBenchmark: 25 balls on a board that is pushed",
        (
            _rolling(math.pi / 2, "along y RAI 4.1e-7, ODE 7.6e-9, DART 0.43"),
            _rolling(math.pi / 3, "askew RAI 4.1e-7, MuJoCo 2.4e-3, ODE and DART 3.1"),
        ),
    ),
    "simbench_bouncing": Entry(simbench_bouncing, "SimBenchmark: 49 balls that bounce for ever", (_BOUNCING,)),
    "simbench_666": Entry(simbench_666, "SimBenchmark: a cube of balls that falls apart", (_666,)),
}
