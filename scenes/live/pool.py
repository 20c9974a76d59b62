"""Spare bodies: declared when the world is made, and parked far outside of it until they are wanted.

Whether a body is parked is seen from its coordinates alone, so a save needs nothing more than a state. What is parked
is held there by a force equal to its weight, and set back after every frame to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, count, product
from typing import Any

import numpy as np

from ...collision.poses import Array, rotation_matrix
from ...collision.shapes import STATIC_ONLY
from ...engine.model import Model
from ..formats.wording import shown
from ..spec import BodySpec, PlaneSpec, SceneSpec

AWAY, APART = 2.0**17, 2.0**10  # [m] of the first parked body from the world, and of one from the next

Pool = Mapping[str, int | tuple[BodySpec, int]]


class PoolError(ValueError):
    """A pool that cannot be, or spare bodies that are used up; the text says what to change."""


@dataclass(frozen=True)
class Spares:
    """names: of the spare bodies of each kind, kind -> names.  parked: (nq,) coordinates where they wait.
    owned: (n, 3) link, first coordinate and first velocity of each spare body, in the order of their links."""

    names: Mapping[str, tuple[str, ...]]
    parked: Array
    owned: Array

    @staticmethod
    def of(model: Model, q: Array, names: Mapping[str, tuple[str, ...]]) -> Spares:
        """q: (nq,) at the start, where all of them are parked."""
        topology = model.topology
        links = sorted(topology.link(name) for some in names.values() for name in some)
        rows = [(link, topology.q_start[link], topology.v_start[link]) for link in links]
        return Spares(names, q, np.array(rows, np.int64).reshape(-1, 3))

    def waiting(self, q: Any) -> Array:
        """(n,) bool, which of them are parked in the coordinates q (nq,)."""
        if not len(self.owned):
            return np.zeros(0, bool)
        index = self.owned[:, 1, None] + np.arange(7)
        return (q[index] == self.parked[index]).all(1)

    def links_waiting(self, q: Any) -> Array:
        """The links of those that are parked."""
        return self.owned[self.waiting(q), 0]


def with_spares(scene: SceneSpec, pools: Sequence[Pool]) -> tuple[SceneSpec, dict[str, tuple[str, ...]]]:
    """The scene with its spare bodies, parked, and their names; `ball` has the spares ball.1, ball.2 and so on.

    pools: one after another: what a later one adds comes behind all else, and what was there stays where it is."""
    kinds = {link.name: link for link in scene.links if isinstance(link, BodySpec)}
    links, names = list(scene.links), dict[str, tuple[str, ...]]()
    places = _places(scene) if any(pools) else iter(())
    for pool in pools:
        if not isinstance(pool, Mapping):
            raise PoolError(f'pool is {shown(pool)}; it must be a dict, such as {{"ball": 8}}')
        for kind, given in pool.items():
            body, number = given if isinstance(given, tuple) and len(given) == 2 else (kinds.get(kind), given)
            if not (isinstance(kind, str) and isinstance(body, BodySpec)):
                raise PoolError(
                    f"pool: {shown(kind)} is no free body of the scene: name one that add_body made, or give "
                    "(BodySpec, number)"
                )
            if not isinstance(number, int) or number < 1:
                had = f"pool: {kind!r} has {shown(number)} spare bodies"
                raise PoolError(f"{had}; it must be a whole number of at least 1")
            kinds.setdefault(kind, body)
            before = names.get(kind, ())
            more = tuple(f"{kind}.{len(before) + k}" for k in range(1, number + 1))
            still = replace(body, linear_velocity=(0, 0, 0), angular_velocity=(0, 0, 0), quaternion=(1, 0, 0, 0))
            links += [replace(still, name=x, position=np.asarray(body.position, float) + next(places)) for x in more]
            names[kind] = before + more
    alike = lambda name: (name, *names.get(name, ()))  # noqa: E731
    exclusions = tuple((x, y) for a, b in scene.exclusions for x in alike(a) for y in alike(b))
    return replace(scene, links=tuple(links), exclusions=exclusions), names


def _places(scene: SceneSpec) -> Iterator[Array]:
    """How far to move bodies away, one after another along a direction in which no ground is in the way (3,) [m]."""
    normals = [normal / np.linalg.norm(normal) for normal in _grounds(scene)]
    way = _way_out(normals, -np.asarray(scene.gravity, float))
    for k in count():
        yield way * (AWAY + k * APART)


def _grounds(scene: SceneSpec) -> Iterator[Array]:
    """Normals of what goes on for ever."""
    for static in scene.statics:
        if isinstance(static, PlaneSpec):
            yield np.asarray(static.normal, float)
            continue
        for shape in static.shapes:
            if shape.kind in STATIC_ONLY:
                turned = (rotation_matrix(np.asarray(x.quaternion, float)) for x in (static, shape))
                yield np.linalg.multi_dot([*turned, np.array([0.0, 0.0, 1.0])])


def _way_out(normals: list[Array], up: Array) -> Array:
    """A unit vector along which no plane is met, upwards as far as can be.

    The directions that leave no halfspace are a cone; if there are any, its edges, where two planes meet, or the
    planes' own normals and what lies in them, are some.
    """
    tries = [np.array(x, float) for x in product((-1, 0, 1), repeat=3) if any(x)] + [up, *normals, sum(normals, up * 0)]
    tries += [s * np.cross(a, b) for a, b in combinations(normals, 2) for s in (1, -1)]
    tries += [x - n * (n @ x) for x in tries[:26] for n in normals]
    units = [x / np.linalg.norm(x) for x in tries if np.linalg.norm(x) > 1e-6]
    free = [x for x in units if all(n @ x > -1e-12 for n in normals)]
    if not free:
        raise PoolError(
            "pool: the scene's planes close it in on all sides, and leave no place outside for spare bodies: make some "
            "of the walls boxes, by add_static"
        )
    return max(free, key=lambda x: (min((n @ x for n in normals), default=0.0) > 1e-6, up @ x))
