"""Planar chains of Wawrzynski's report (2005): hanging, falling and sticking ones, and the anomalies of section 12.2.

Lengths, masses and forces are ours: the report's figures have none. Its joint 1 is joint 0 here.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import numpy as np

from ..chains.spec import ChainJoint, ChainSpec, Ground
from .facts import ChainPlay, Entry, Fact, at_most
from .playing_chains import PlayedChain

if TYPE_CHECKING:
    from jax import Array


def hanging_chain(n: int = 3, *, length: float = 1.0, mode: int = 1, swing: float = 0.01) -> ChainSpec:
    """n equal masses that hang below a fixed joint on links of this length [m], let go in the shape of a mode.

    mode: 1 is the slowest.  swing: largest displacement of a mass [m].
    """
    # masses and lengths of one: the tension of link k is n - k
    tension = np.arange(n, 0, -1.0)
    stiff = np.diag(tension + np.append(tension[1:], 0)) - np.diag(tension[1:], 1) - np.diag(tension[1:], -1)
    shape = np.linalg.eigh(stiff)[1][:, mode - 1]
    out = np.diff(swing * shape / shape[np.abs(shape).argmax()], prepend=0.0)
    angles = np.diff(np.arcsin(out / length) - math.pi / 2, prepend=0.0)
    return ChainSpec.of((length,) * n, angles=angles).with_joint(0, guided=True)


def mode_rate(k: int, n: int, length: float = 1.0) -> float:
    """Angular frequency of a hanging chain's mode k [rad/s]: zeros of Laguerre's polynomial L_n."""
    return math.sqrt(9.81 / length * np.sort(np.polynomial.laguerre.lagroots(np.eye(n + 1)[n]))[k - 1])


def dropped_chain(*, links: int = 6, length: float = 0.2, slope: float = 0.15, height: float = 0.1) -> ChainSpec:
    """A straight chain that falls on the ground, its first joint ahead, and sticks joint after joint.

    length: of a link [m].  slope: of the chain [rad].  height: of its first joint [m]. From higher and steeper starts,
    joints that have struck are torn off again, scrape and rattle.
    """
    angles = (slope,) + (0.0,) * (links - 1)
    return ChainSpec.of((length,) * links, angles=angles, base=(0.0, height), grounds=[Ground()])


def scraping() -> ChainSpec:
    """Figure 4: joint 0 at the ground, joint 1 at its upper limit, joint 2 pulled by a force, all at rest.

    No set of active constraints agrees with its forces. With the force (230, -100) N: without any joint 0 falls; with
    the ground, joint 1 rotates beyond its limit; with both, the ground pulls; with the limit, the limit pulls. In fact,
    joint 0 would scrape along.
    """
    chain = ChainSpec.of((1.0, 1.0), masses=(1.0, 8.0, 6.0), angles=(0.3, -0.3), grounds=[Ground()])
    return chain.with_joint(1, limits=(-3.0, -0.3))


def rattling(*, speed: float = 1.4) -> ChainSpec:
    """Figure 5: joint 0 near the ground, the angle of joint 2 near its lower limit, towards which a torque presses.

    The ground throws the last joint apart from joint 1, the torque brings it back, faster and faster.
    speed: downward speed of the whole chain [m/s].
    """
    positions = ((0.0, 0.005), (0.35, 0.45), (0.4, 1.12), (0.225, 0.95))
    joints = [ChainJoint(mass) for mass in (1.0, 8.0, 2.0, 0.5)]
    chain = ChainSpec(joints, positions=positions, velocities=((0.0, -speed),) * 4, grounds=[Ground()])
    return chain.with_joint(2, limits=(2.41, 3.0))


def straight_arm(*, short: float = 1e-3, rise: float = 0.01) -> ChainSpec:
    """Figure 6: joints 0 and 2 stick in the ground, joint 1 between them is almost on their line, and the links are a
    little too short. The correction of their lengths is a small part of joint 1's acceleration.

    short: missing part of the length.  rise: angle of the links [rad].
    """
    link = 0.5
    x, y = (1 - short) * link * math.cos(rise), (1 - short) * link * math.sin(rise)
    chain = ChainSpec.of((link, link), positions=((0, 0), (x, y), (2 * x, 0)), grounds=[Ground()])
    return chain.with_joint(0, 2, stuck=0)


def stiff_arm(*, half: bool = False) -> ChainSpec:
    """Section 12.2, rigidity: inner joints are active, so that a part of the chain is one rigid body, which does not
    respond to forces. Joint 0 is fixed too, so that both ends keep the length of link 0.

    half: the rigid part ends in one fixed joint instead of two, and would rotate about it.
    """
    if half:
        bent = ChainSpec.of((0.5, 0.5), angles=(0.9, -1.2))
        return bent.with_joint(0, 2, guided=True).with_joint(1, active=True)
    chain = ChainSpec.of((0.4,) * 5, angles=(0.9, -0.7, 0.4, -0.6, -0.5))
    return chain.with_joint(0, 4, 5, guided=True).with_joint(2, 3, 4, active=True)


ChainName = Literal["hanging_chain", "dropped_chain", "scraping", "rattling", "straight_arm", "stiff_arm"]
PULL = {"force": ((0.0, 0.0), (0.0, 0.0), (230.0, -100.0))}  # [N] of figure 4
PRESS = {"torque": (0.0, 0.0, -27.0, 0.0)}  # [N m] of figure 5
SWING, PERIODS = 1e-3, 1.25  # [m], small; and periods, after which the masses pass through the middle


def _mode_facts(k: int) -> ChainPlay:
    rate, period = mode_rate(k, 3), 2 * math.pi / mode_rate(k, 3)

    def angular_frequency(p: PlayedChain) -> Array:
        mass = np.abs(p.x[0, :, 0]).argmax()
        return (2 * math.pi * PERIODS - math.asin(p.x[-1, mass, 0] / p.x[0, mass, 0])) / p.result.t[-1]

    facts = (Fact(f"angular frequency of mode {k} [rad/s]", rate, 1e-4 * rate, angular_frequency),)
    return ChainPlay(facts, {"mode": k, "swing": SWING}, PERIODS * period, PERIODS * period, max_dt=1 / 480)


def _energy_gains(p: PlayedChain) -> float:
    """Largest gain of kinetic energy at any stop [J]."""
    return max((p.event("energy_after") - p.event("energy_before")).max(), 0.0)


def _work(p: PlayedChain) -> float:
    """Energy beyond that at the start [J]."""
    return (p.energy - p.energy[0]).max()


def _fall_facts(height: float) -> tuple[Fact, ...]:
    """Facts of a chain that is dropped from this height [m] and finally lies on the ground."""
    return (
        Fact("joint 0 strikes the ground at [s]", math.sqrt(2 * height / 9.81), 1e-9, lambda p: p.event("t")[0]),
        Fact("joints that have struck", 7, 0, lambda p: len(set(p.event("joint").tolist()))),
        at_most("energy that a stop adds [J]", 1e-9, _energy_gains),
        at_most("depth below the ground [m]", 1e-6, lambda p: -p.x[..., 1].min()),
        at_most("speed at the end [m/s]", 1e-6, lambda p: p.speed[-1].max()),
    )


IN_ORDER = Fact(
    "whether joints strike in their order, once each", 1, 0, lambda p: np.array_equal(p.event("joint"), np.arange(7))
)
DROPPED = (
    ChainPlay((*_fall_facts(0.1), IN_ORDER)),
    ChainPlay(_fall_facts(0.3), {"slope": 0.5, "height": 0.3}, rough=True),
)
SCRAPING = ChainPlay(
    (
        at_most("energy that a stop adds [J]", 1e-9, _energy_gains),
        at_most("depth below the ground [m]", 1e-6, lambda p: -p.x[..., 1].min()),
    ),
    duration=0.5,
    drive=PULL,
    rough=True,
)
RATTLING = ChainPlay(
    (
        Fact("whether it rattles", 1, 0, lambda p: p.result.stats.rattles > 0),
        at_most("energy that a stop adds [J]", 1e-9, _energy_gains),
        at_most("energy that the torque adds [J], of at most 27 N m times 0.6 rad", 16, _work),
    ),
    duration=0.5,
    drive=PRESS,
    rough=True,
)
STRAIGHT_RISE = math.sqrt(0.5**2 - (0.5 * (1 - 1e-3) * math.cos(0.01)) ** 2)
STRAIGHT = ChainPlay(
    (
        Fact("height of joint 1 with links of full length [m]", STRAIGHT_RISE, 1e-6, lambda p: p.x[-1, 1, 1]),
        at_most("speed of any joint on the way [m/s]", 2.0, lambda p: p.speed.max(), "12.2"),
    )
)
STILL = (at_most("way of any joint [m]", 1e-9, lambda p: np.abs(p.x - p.x[0]).max(), "12.2"),)

ENTRIES: dict[ChainName, Entry] = {
    "hanging_chain": Entry(
        hanging_chain,
        "planar chain: equal masses on a string, in a mode of theirs",
        (ChainPlay(), *map(_mode_facts, (1, 2, 3))),
    ),
    "dropped_chain": Entry(dropped_chain, "planar chain: falls on the ground, sticks joint after joint", DROPPED),
    "scraping": Entry(
        scraping, "planar chain: Wawrzynski's figure 4, no set of holds agrees with the forces", (SCRAPING,)
    ),
    "rattling": Entry(rattling, "planar chain: Wawrzynski's figure 5, impacts faster and faster", (RATTLING,)),
    "straight_arm": Entry(
        straight_arm, "planar chain: Wawrzynski's figure 6, links too short in a straight arm", (STRAIGHT,)
    ),
    "stiff_arm": Entry(
        stiff_arm,
        "planar chain: Wawrzynski's rigidity, a part that does not answer forces",
        (ChainPlay(STILL), ChainPlay(STILL, {"half": True})),
    ),
}
