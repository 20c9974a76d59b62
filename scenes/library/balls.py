"""Balls that bounce: dropped, in a row, and as bullets. Impacts with exact times and velocities."""

from __future__ import annotations

import numpy as np

from ...collision.shapes import Box, Sphere
from ..builder import SceneBuilder
from ..spec import SceneSpec
from .facts import Entry, Fact, Play, at_most

NO_WEIGHT = (0.0, 0.0, 0.0)


def bouncing_ball(*, height: float = 1.0, restitution: float = 0.9, radius: float = 0.1) -> SceneSpec:
    """A ball of 1 kg dropped on the ground z = 0 from rest.  height: of its lowest point [m]; radius [m].

    Impact k = 0, 1, ...: t_k = t_0 + (2 v/g) e (1 - e^k)/(1 - e), t_0 = sqrt(2 h/g), v = sqrt(2 g h); infinitely many
    until t_0 (1 + e)/(1 - e). Slower ones than the rest speed, 1e-4 v here, are not impacts.
    """
    b = SceneBuilder()
    b.add_plane(restitution=restitution, friction=0.0)
    b.add_body("ball", [Sphere(radius)], mass=1.0, position=(0.0, 0.0, height + radius), restitution=restitution)
    return b.build()


def newtons_cradle(
    n: int = 5, *, gap: float = 0.0, restitution: float = 1.0, speed: float = 1.0, radius: float = 0.05
) -> SceneSpec:
    """n equal free balls in a row along x without gravity, 1 kg each; the first comes from 0.1 m at `speed` [m/s].

    gap: between the others at rest [m]; radius [m]. One after another, also with gaps, the impacts pass the
    impulse on: with e = 1 only the last ball leaves, in one sweep it gets ((1 + e)/2)^(n - 1) v. Simultaneous impacts
    (Moreau) let three balls leave at (-1/3, 2/3, 2/3) v.
    """
    b = SceneBuilder(NO_WEIGHT)
    for k in range(n):
        x = (2 * radius + gap) * (k - 1) if k else -2 * radius - 0.1
        moving = (0.0 if k else speed, 0.0, 0.0)
        b.add_body(
            f"ball{k}", [Sphere(radius)], mass=1.0, position=(x, 0.0, 0.0), linear_velocity=moving,
            friction=0.0, restitution=restitution,
        )  # fmt: skip
    return b.build()


def bullet_and_plate(
    *, speed: float = 800.0, distance: float = 1.0, thickness: float = 0.001, restitution: float = 0.5
) -> SceneSpec:
    """A ball of 4 g and 5 mm radius shot along x at a free plate of 1 kg, half a metre wide, hit in its middle.

    distance: from the ball's surface to the plate's [m]; thickness: of the plate [m]. No gravity. It strikes at
    distance/speed, and never goes through: the plate leaves at m (1 + e) v/(m + M).
    """
    radius, mass = 0.005, 0.004
    b = SceneBuilder(NO_WEIGHT)
    start, shot = (-distance - radius - thickness / 2, 0.0, 0.0), (speed, 0.0, 0.0)
    b.add_body("plate", [Box((thickness / 2, 0.25, 0.25))], mass=1.0, restitution=restitution)
    b.add_body(
        "bullet", [Sphere(radius)], mass=mass, position=start, linear_velocity=shot, restitution=restitution
    )  # fmt: skip
    return b.build()


# h = 1 m, e = 0.9, g = 9.81; and the first frame after the ball came to rest
BOUNCES = (0.451523640986, 1.264266194760, 1.995734493157, 2.654055961714, 3.246545283416)
ALL_BOUNCES = 8.578949178729

_BALL = Play(
    duration=10.0,
    facts=(
        *(
            Fact(f"time of impact {k} [s]", t, 1e-9, lambda p, k=k: p.event("t")[k])
            for k, t in enumerate(BOUNCES)
        ),
        Fact("impacts, each 0.9 times as fast, until 1e-4 of the first's speed", 88, 0, lambda p: p.impacts),
        Fact(
            "apex after the first impact: e^2 h [m]", 0.81, 1e-9,
            lambda p: _apex(p.position("ball")[:, 2], p.velocity("ball")[:, 2], p.t, 0.5, 1.2) - 0.1,
        ),
        # contacts touch within ten gap bands
        at_most("height once it rests [m]", 1e-8, lambda p: np.abs(_tail(p, p.position("ball")[:, 2] - 0.1)).max()),
        # a ball that rests is slower than a contact that counts as resting
        at_most("speed once it rests [m/s]", 4.5e-4, lambda p: np.abs(_tail(p, p.velocity("ball"))).max()),
    ),
)  # fmt: skip


def _apex(z, vz, t, first: float, last: float) -> float:
    """Height a ballistic body reaches, from its frames between two times [m]: z + vz^2/(2 g) of each, the mean."""
    flying = (t > first) & (t < last)
    return float(np.mean(z[flying] + vz[flying] ** 2 / (2 * 9.81)))


def _tail(p, x):
    return x[p.t > ALL_BOUNCES]


def _last_velocity(k: int, n: int):
    """The last velocity of ball k along x, of a row of n."""
    return lambda p: p.velocity(f"ball{k % n}")[-1, 0]


_SHARP = 1e-12  # impacts of balls at rest are arithmetic
_CRADLE = (
    Play(
        duration=0.5,
        facts=(
            Fact("velocity of the last ball [m/s]", 1.0, _SHARP, _last_velocity(-1, 5)),
            at_most("velocity of the others [m/s]", _SHARP, lambda p: np.abs(p.velocities[-1, :-1]).max()),
            Fact("impacts", 4, 0, lambda p: p.impacts),
            # touching is a gap of 1e-9 m, at 1 m/s
            Fact("time of the first impact [s]", 0.1, 1.01e-9, lambda p: p.event("t")[0]),
            at_most("time between the first and the last impact [s]", 0, lambda p: np.ptp(p.event("t"))),
        ),
    ),
    Play(
        duration=0.5,
        parameters={"gap": 1e-4},
        facts=(Fact("velocity of the last ball, balls 0.1 mm apart [m/s]", 1.0, _SHARP, _last_velocity(-1, 5)),),
    ),
    Play(
        duration=0.5,
        parameters={"restitution": 0.9},
        facts=(
            Fact("velocity of the last ball: ((1 + e)/2)^4 [m/s]", 0.95**4, _SHARP, _last_velocity(-1, 5)),
            Fact("momentum [kg m/s]", 1.0, _SHARP, lambda p: p.momenta[0][-1, 0]),
        ),
    ),
    Play(
        duration=0.5,
        parameters={"n": 3},
        impacts="simultaneous",
        facts=tuple(
            # residual of the cone solver
            Fact(f"velocity of ball {k}, all at once [m/s]", v, 1e-9, _last_velocity(k, 3))
            for k, v in enumerate((-1 / 3, 2 / 3, 2 / 3))
        ),
    ),
)

_BULLET = Play(
    duration=0.01,
    frame_dt=1e-4,
    facts=(
        # touching is a gap of 1e-9 m, at 800 m/s
        Fact("time of impact [s]", 1 / 800, 1.3e-12, lambda p: p.event("t")[0]),
        Fact("velocity of the plate [m/s]", 0.004 * 1.5 * 800 / 1.004, 1e-9, lambda p: p.velocity("plate")[-1, 0]),
        Fact(
            "velocity of the bullet [m/s]", 800 * (0.004 - 0.5) / 1.004, 1e-9, lambda p: p.velocity("bullet")[-1, 0]
        ),
        at_most(
            "how far the bullet gets into the plate [m]", 1e-9,
            lambda p: max(0, (p.position("bullet") - p.position("plate"))[:, 0].max() + 0.0055),
        ),
        Fact("impacts", 1, 0, lambda p: p.impacts),
    ),
)  # fmt: skip

ENTRIES = {
    "bouncing_ball": Entry(bouncing_ball, "a ball that bounces until it rests", (_BALL,)),
    "newtons_cradle": Entry(newtons_cradle, "a row of free balls, struck by the first", _CRADLE),
    "bullet_and_plate": Entry(bullet_and_plate, "a bullet at 800 m/s against a plate of 1 mm", (_BULLET,)),
}
