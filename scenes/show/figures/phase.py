"""The phase portrait: velocity against coordinate of one degree of freedom."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np

from ...recordings.reading import Reading, span
from .between import free_paths
from .style import BLUE, INK, dress, legend_beside

DRAWN = 200  # lanes of a batch that are drawn
STILL = 1e-7  # [m, rad] coordinates that move less are at rest

# joint -> its coordinates that have a rate of their own: (name, index in q, index in v, is an angle)
AXES: dict[str, tuple[tuple[str, int, int, bool], ...]] = {
    "floating": (("x", 0, 3, False), ("y", 1, 4, False), ("z", 2, 5, False)),
    "revolute": (("angle", 0, 0, True),),
    "prismatic": (("shift", 0, 0, False),),
    "screw": (("angle", 0, 0, True),),
    "cylindrical": (("angle", 0, 0, True), ("shift", 1, 1, False)),
    "universal": (("angle", 0, 0, True), ("angle2", 1, 1, True)),
    "planar": (("angle", 0, 0, True), ("x", 1, 1, False), ("y", 2, 2, False)),
}


class Coordinate(NamedTuple):
    """A coordinate.  name: as "ball.z".  q, v: (L, F).  unit: of q."""

    name: str
    q: np.ndarray
    v: np.ndarray
    unit: str


def coordinates(reading: Reading) -> dict[str, Coordinate]:
    """All coordinates of phase portraits, by name."""
    topology = reading.model.topology
    by_name: dict[str, Coordinate] = {}
    for link, (name, joint) in enumerate(zip(topology.names, topology.joints, strict=True)):
        for axis, q, v, angle in AXES.get(joint, ()):
            key, i, j = f"{name}.{axis}", topology.q_start[link] + q, topology.v_start[link] + v
            by_name[key] = Coordinate(key, reading.q[..., i], reading.v[..., j], "rad" if angle else "m")
    return by_name


def most_telling(reading: Reading) -> Coordinate | None:
    """The coordinate that travels far while its velocity changes much; None if nothing moves."""
    every = list(coordinates(reading).values())
    swing = [float(np.nanmax(span(c.q, -1))) for c in every]
    if max(swing, default=0.0) < STILL:
        return None
    widest = {c.unit: max(s for s, other in zip(swing, every, strict=True) if other.unit == c.unit) for c in every}

    def score(k: int) -> float:
        c = every[k]
        change = np.nanmax(span(c.v, -1)) / (np.nanmax(np.abs(c.v)) or 1)
        return float(change * np.sqrt(swing[k] / (widest[c.unit] or 1)))

    return every[max(range(len(every)), key=score)]


def draw(axes: Any, reading: Reading, of: str | None = None) -> None:
    """Draw a phase portrait.  of: a coordinate as "ball.z", "arm.angle"; None: the most telling one."""
    c = most_telling(reading) if of is None else _find_coordinate(coordinates(reading), of)
    if c is None:
        raise ValueError('nothing moves, or only joints without a rate of their own: name a coordinate, of="ball.z"')
    lanes = range(0, reading.lanes, -(-reading.lanes // DRAWN))
    how: dict[str, Any] = {"linewidth": 1.2} if reading.lanes == 1 else {"linewidth": 0.7, "alpha": 0.35}
    for k in lanes:
        axes.plot(*(_whole(reading, c) if reading.lanes == 1 else (c.q[k], c.v[k])), color=BLUE, **how)
    axes.plot(c.q[lanes, 0], c.v[lanes, 0], "o", color=INK, markersize=5, label="start")
    legend_beside(axes)
    many = f" in {reading.lanes} lanes" if reading.lanes > 1 else ""
    dress(axes, f"Phase portrait of {c.name}{many}", f"{c.name} [{c.unit}]", f"its rate [{c.unit}/s]")


def _whole(reading: Reading, c: Coordinate) -> tuple[np.ndarray, np.ndarray]:
    """q and v of a single run, with the impacts between frames if the link's centre of mass is its origin."""
    link, axis = c.name.rsplit(".", 1)
    number = reading.model.topology.names.index(link)
    path = free_paths(reading).get(number)
    if path is None or axis not in "xyz" or np.any(np.asarray(reading.model.com)[..., number, :]):
        return c.q[0], c.v[0]
    return path.position[:, "xyz".index(axis)], path.velocity[:, "xyz".index(axis)]


def _find_coordinate(known: dict[str, Coordinate], name: str) -> Coordinate:
    if name not in known:
        near = get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
        raise ValueError(f"no coordinate {name!r}: {hint}")
    return known[name]
