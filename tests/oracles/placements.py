"""Random and degenerate placements of two shapes, every number of each drawn anew."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from scipy.spatial.transform import Rotation

from .minkowski import BOX, Array, Solid, gap

Names: TypeAlias = tuple[str, str]
Points: TypeAlias = tuple[Any, Any]  # corners or grids (k, 3) of the two shapes [m]
NO_POINTS = np.zeros((0, 3))
UPRIGHT = np.array([1.0, 0, 0, 0])
SHAPES = ("plane", "heightfield", "sphere", "capsule", "box", "cylinder", "ellipsoid", "hull")
STATIC = SHAPES[:2]
# each pair once, what cannot move first: 33 of them
PAIRS = [(a, b) for i, a in enumerate(SHAPES) for b in SHAPES[i:] if b not in STATIC]
RANDOM = ("apart", "far", "touching", "shallow", "deep")
GRID, CELL = (6, 5), (0.5, 0.6)


def _round_hull(count: int) -> Array:
    """Points (count, 3) on the unit sphere, all of them corners of their hull."""
    x = np.random.default_rng(count).normal(size=(count, 3))
    return x / np.linalg.norm(x, axis=1)[:, None]


def prism(sides: int) -> Array:
    """Points (2 sides, 3) of an upright prism 1 m tall, corners at random on an ellipse [m]; the first ones below."""
    turn = (np.arange(sides) + np.random.default_rng(sides).uniform(0.1, 0.9, sides)) * 2 * np.pi / sides
    outline = np.stack([np.cos(turn), 0.8 * np.sin(turn)], 1)
    return np.concatenate([np.insert(outline, 2, z, 1) for z in (-0.5, 0.5)])


PRISMS = (5, 6, 8, 12, 20)
# corners of the hulls [m]; a placement maps them linearly, which leaves the faces what they are
HULLS = {
    "hull": _round_hull(14),
    "hull8": _round_hull(8),
    "hull40": _round_hull(40),
    "cube": BOX,
    "tetrahedron": np.array([[1.0, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]),
    **{f"prism{sides}": prism(sides) for sides in PRISMS},
}


@dataclass(frozen=True)
class Placement:
    """label: how the two stand to each other."""

    label: str
    a: Solid
    b: Solid


def kind_of(name: str) -> str:
    return "hull" if name in HULLS else name


def random_rotation(rng: np.random.Generator) -> Array:
    """A matrix (3, 3)."""
    q, r = np.linalg.qr(rng.normal(size=(3, 3)))
    q = q * np.sign(np.diag(r))
    return q if np.linalg.det(q) > 0 else q[:, ::-1]


def random_quaternion(rng: np.random.Generator) -> Array:
    q = rng.normal(size=4)
    return q / np.linalg.norm(q)


def random_solid(rng: np.random.Generator, name: str, points: Array = NO_POINTS) -> Solid:
    """A shape of random size (unit size: extents of 0.3 to 1 m) and orientation about the origin.

    points: the corners of a hull, or the grid of a heightfield whose heights are drawn anew.
    """
    kind, size = kind_of(name), rng.uniform(0.3, 1.0, 3)
    if kind == "sphere":
        size = size * [1, 0, 0]
    if kind in ("capsule", "cylinder"):
        size = size * [1, 1, 0]
    if kind in ("plane", "hull"):
        size = np.zeros(3)
    if kind == "hull":
        points = points @ (np.diag(rng.uniform(0.4, 1.0, 3)) + rng.uniform(-0.15, 0.15, (3, 3)))
    if kind == "heightfield":
        size = np.array([*CELL, GRID[0]])
        points = np.concatenate([points[:, :2], rng.uniform(-0.2, 0.2, (len(points), 1))], 1)
    if kind == "plane":
        return Solid(kind, size, points, rng.normal(size=3), random_quaternion(rng))
    return Solid(kind, size, points, np.zeros(3), random_quaternion(rng))


def shifted(p: Placement, by: Array) -> Placement:
    """With the second solid moved by a vector (3,) [m]."""
    return replace(p, b=replace(p.b, position=p.b.position + by))


def near(rng: np.random.Generator, p: Placement, target: float) -> Placement:
    """With the second solid moved along the normal until the gap is the target, or deeper than it by another way."""
    signed, n = gap(p.a, p.b, 2_000)
    return shifted(p, -n * (target - signed))


def random_placement(
    rng: np.random.Generator, label: str, names: tuple[str, str], points: tuple[Any, Any]
) -> Placement:
    """Two random shapes, placed as the label says."""
    a, b = (random_solid(rng, name, corners) for name, corners in zip(names, points, strict=True))
    if a.kind == "heightfield":
        return _over_ground(rng, label, a, b)
    p = Placement(label, a, replace(b, position=a.position + rng.uniform(-0.3, 0.3, 3)))
    if label == "deep":
        return p
    reach = {
        "apart": rng.uniform(0.01, 2.0),
        "far": rng.uniform(5.0, 50.0),
        "touching": rng.choice([-1, 1]) * 10 ** rng.uniform(-6, -3),
        "shallow": -0.01 * rng.uniform(0.2, 1.0),
    }[label]
    side = rng.normal(size=3)
    away = 4.0 * side / np.linalg.norm(side)
    if a.kind == "plane":
        away = 4.0 * a.rotation[:, 2] + np.cross(a.rotation[:, 2], away)
    return near(rng, shifted(p, away), reach)


def _over_ground(rng: np.random.Generator, label: str, field: Solid, b: Solid) -> Placement:
    """Above a heightfield, tilted as that is, or in it."""
    reach = {"apart": 0.5, "far": 8.0, "touching": 0.0, "shallow": -0.01, "deep": -0.3}[label] * rng.uniform(0.3, 1.0)
    xy = rng.uniform(-0.5, 0.5, 2)
    bottom = b.support(-field.rotation[:, 2])
    position = field.rotation @ np.array([*xy, 0.2 + bottom + reach])
    return Placement(label, field, replace(b, position=field.position + position))


def random_placements(rng: np.random.Generator, names: Names, points: Points, count: int) -> list[Placement]:
    """count placements, all labels in turn."""
    return [random_placement(rng, RANDOM[i % len(RANDOM)], names, points) for i in range(count)]


def degenerate_placements(rng: np.random.Generator, names: Names, points: Points) -> list[Placement]:
    """Where a normal is not unique or a feature is hit exactly."""
    a, b = (random_solid(rng, name, corners) for name, corners in zip(names, points, strict=True))
    a, upright = replace(a, position=np.zeros(3), quaternion=UPRIGHT), replace(b, quaternion=UPRIGHT)
    turned = replace(b, quaternion=random_quaternion(rng))
    found = [
        Placement("concentric", a, turned),
        Placement("concentric, aligned", a, upright),
        Placement("concentric, crossed", a, replace(b, quaternion=_turn("y", np.pi / 2))),
        Placement("parallel axes", a, replace(upright, position=rng.uniform(-0.5, 0.5, 3))),
        Placement("upside down", a, replace(b, quaternion=np.array([0.0, 1.0, 0, 0]))),
    ]
    for k, axis in enumerate(np.eye(3)):
        reach = _reach(a, axis) + upright.support(-axis)
        for shift in (0.0, 0.01, -0.01):
            found.append(Placement(f"face to face {'xyz'[k]}", a, replace(upright, position=axis * (reach + shift))))
        found.append(Placement(f"on the axis {'xyz'[k]}", a, replace(upright, position=axis * 0.1)))
    # an eighth turn up: edges that meet at right angles in their middles, and edges that lie on each other
    over = a if a.kind in STATIC else replace(a, quaternion=_turn("x", np.pi / 4))
    for label, axis in (("edges crossed", "y"), ("edges parallel", "x")):
        above = _touch(over, replace(b, quaternion=_turn(axis, np.pi / 4)), np.array([0, 0, 1.0]))
        for shift in (0.0, 0.01, -0.01):
            found.append(Placement(label, over, replace(above, position=above.position + np.array([0.05, 0, shift]))))
    # a corner (or the point that a random direction reaches) of each on the other's, exactly
    towards = np.array([0, 0, 1.0]) if a.kind in STATIC else rng.normal(size=3)
    found.append(Placement("vertex on vertex", a, _touch(a, turned, towards)))
    if kind_of(names[0]) == kind_of(names[1]) and a.points.shape == b.points.shape:
        same = replace(b, size=a.size, points=a.points)
        found.append(Placement("identical", a, replace(same, position=a.position, quaternion=a.quaternion)))
        found.append(
            Placement("identical, shifted", a, replace(same, quaternion=UPRIGHT, position=np.array([0.2, 0, 0])))
        )
    return found


def _reach(s: Solid, axis: Array) -> float:
    """How far the solid goes along an axis; the ground's own height for what has no end."""
    if s.kind == "plane":
        return 0.0
    return float(s.points[:, 2].max()) if s.kind == "heightfield" else float(s.support(axis))


def _turn(axis: str, angle: float) -> Array:
    """Quaternion of a turn about an axis [rad]."""
    return Rotation.from_euler(axis, angle).as_quat(scalar_first=True)


def _touch(a: Solid, b: Solid, direction: Array) -> Solid:
    """b moved to where its point farthest against a direction meets a's farthest along it."""
    n = direction / np.linalg.norm(direction)
    meet = np.zeros(3) if a.kind == "plane" else farthest(a, n)
    return replace(b, position=b.position + meet - farthest(b, -n))


def farthest(s: Solid, n: Array) -> Array:
    """The point of the solid farthest along a unit direction (3,), or the middle of them [m]."""
    if s.kind == "heightfield":
        return s.points[np.argmax(s.points @ n)]
    corners, L, ball = s.parts
    along = corners @ n
    point = corners[along > along.max() - 1e-9].mean(0) + ball * n
    width = 0.0 if L is None else np.linalg.norm(L.T @ n)
    return point if L is None or width < 1e-9 else point + L @ (L.T @ n) / width
