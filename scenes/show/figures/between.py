"""The motion of a single run between its frames, as far as frames and impacts determine it.

Lines through the frames alone cut off the tips: a ball that bounces between two frames never touches the floor.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...recordings.reading import Reading
from ..motion import hits_of

FLEW = 1e-3  # error allowed for a link that flew freely, as part of its fall in the interval plus its way

Array = np.ndarray


class Path(NamedTuple):
    """The path of a link's centre of mass. An impact has two rows, before and after.

    t: (N,) [s].  position, velocity: (N, 3) [m, m/s]."""

    t: Array
    position: Array
    velocity: Array


def free_paths(reading: Reading) -> dict[int, Path]:
    """The paths of free links that flew to an impact between frames: their frames, and their impacts in between."""
    topology, model = reading.model.topology, reading.model
    floating = [k for k, joint in enumerate(topology.joints) if joint == "floating"]
    hits = hits_of(reading.recording)
    if topology.loops or not len(hits.t) or not floating:
        return {}
    gravity, mass = (np.broadcast_to(np.asarray(x), (1, *np.shape(x)))[0] for x in (model.gravity, model.mass))
    t, center = reading.t[0], reading.centers(reading.q)[0]
    paths = {}
    for link in floating:
        sides = [hits.bodies[:, side] == link for side in (0, 1)]
        impulse = np.where(sides[0][:, None], hits.impulse, -hits.impulse)
        mine = sides[0] | sides[1]
        if not mine.any():
            continue
        arm = center[:, link] - reading.q[0][:, topology.q_start[link] :][:, :3]
        own = reading.v[0][:, topology.v_start[link] :][:, :6]
        velocity = own[:, 3:] + np.cross(own[:, :3], arm)
        kicks = hits.t[mine], impulse[mine] / mass[link]
        paths[link] = _path(t, center[:, link], velocity, *kicks, gravity)
    return paths


def _path(t: Array, position: Array, velocity: Array, when: Array, change: Array, gravity: Array) -> Path:
    """The path of a link.  when: (E,) impacts [s].  change: (E, 3) of velocity [m/s]."""
    rows = [Path(t, position, velocity)]
    at = np.searchsorted(t, when, "right") - 1
    for k in np.unique(at[(at >= 0) & (at < len(t) - 1)]):
        if not np.isfinite(position[k : k + 2]).all():
            continue
        now, c, u, new = t[k], position[k], velocity[k], []
        for time, jump in zip(when[at == k], change[at == k], strict=True):
            dt = time - now
            c, u, now = c + u * dt + gravity * dt**2 / 2, u + gravity * dt, time
            new += [(time, c, u), (time, c, u + jump)]
            u = u + jump
        dt = t[k + 1] - now
        off = np.linalg.norm(c + u * dt + gravity * dt**2 / 2 - position[k + 1])
        whole = t[k + 1] - t[k]
        if off <= FLEW * (np.linalg.norm(gravity) * whole**2 / 2 + np.linalg.norm(velocity[k]) * whole):
            rows.append(Path(*(np.array(column) for column in zip(*new, strict=True))))
    columns = [np.concatenate(column) for column in zip(*rows, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    return Path(*(x[order] for x in columns))


class Energies(NamedTuple):
    """The energies (N,) [J], and t [s], at frames, and before and after each impact. See `EnergyLedger`."""

    t: Array
    kinetic: Array
    potential: Array
    impacts: Array
    rest: Array


def energies(reading: Reading) -> Energies:
    """Energies of a single run. Losses of sliding and dampers between two frames are spread evenly over their time."""
    t, ledger, impacts = reading.t[0], reading.ledger, reading.impacts
    reached = np.isfinite(ledger.rest[0])
    frames = Energies(t, ledger.kinetic[0], ledger.potential[0], ledger.impacts[0], ledger.rest[0])
    inside = (impacts.t > t[0]) & (impacts.t < np.max(t[reached], initial=t[0]))
    if not inside.any():
        return frames
    taken = np.cumsum(impacts.kinetic[:, 0] - impacts.kinetic[:, 1])[inside]
    kinetic, when = impacts.kinetic[inside], impacts.t[inside]
    lost = np.stack([taken - kinetic[:, 0] + kinetic[:, 1], taken], 1)
    rest = np.interp(when, t[reached], ledger.rest[0][reached])[:, None] + np.zeros((1, 2))
    potential = ledger.total[0, 0] - rest - lost - kinetic
    between = Energies(*(x.ravel() for x in (np.repeat(when, 2), kinetic, potential, lost, rest)))
    columns = [np.concatenate(column) for column in zip(frames, between, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    return Energies(*(x[order] for x in columns))
