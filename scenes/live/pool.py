"""Spare bodies: declared when the world is made, and parked far outside of it until they are needed.

The coordinates alone tell whether a body is parked, so a save needs only a state. Its tree sleeps. Where a loop that
is cut makes it part of a tree with bodies that do not wait, a force equal to its weight holds it (`stepping.py`), and
after every frame it is put back to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, count, product
from typing import Any

import jax
import numpy as np

from ...collision.poses import Array, rotation_matrix
from ...collision.shapes import STATIC_ONLY
from ...engine.dynamics.trees import trees_of
from ...engine.model import Model
from ...engine.topology import Topology
from ..compiling.flat import PLANES
from ..spec import BodySpec, PlaneSpec, SceneSpec
from ..wording import brief

AWAY, APART = 2.0**17, 2.0**10  # [m] of the first parked body from the world, and of one from the next

Pool = Mapping[str, int | tuple[BodySpec, int]]


class PoolError(ValueError):
    """An invalid pool, or no spare body left; the text says what to change."""


@dataclass(frozen=True)
class Spares:
    """Spare bodies.  names: kind -> names of the spare bodies.  parked: (nq,) coordinates at which they wait.
    owned: (n, 4) link, first coordinate, first velocity and number of coordinates of each spare body, in the order of
    their links."""

    names: Mapping[str, tuple[str, ...]]
    parked: Array
    owned: Array

    @staticmethod
    def of(model: Model, q: Array, names: Mapping[str, tuple[str, ...]]) -> Spares:
        """q: (nq,) at the start, where all of them are parked."""
        topology = model.topology
        links = sorted(topology.link(name) for some in names.values() for name in some)
        starts, dofs = topology.q_start, topology.v_start
        rows = [(link, starts[link], dofs[link], starts[link + 1] - starts[link]) for link in links]
        return Spares(names, q, np.array(rows, np.int64).reshape(-1, 4))

    def waiting(self, q: Any) -> Array:
        """Bodies that are parked in the coordinates q (nq,), (n,) bool."""
        if not len(self.owned):
            return np.zeros(0, bool)
        return (q[self.coordinates] == self._parked).all(1)

    @cached_property
    def coordinates(self) -> Array:
        """Indices (n, 7) of each body's coordinates, padded by the last one."""
        return self.owned[:, 1, None] + np.minimum(np.arange(7), self.owned[:, 3, None] - 1)

    @cached_property
    def _parked(self) -> Array:
        return self.parked[self.coordinates]

    def links_waiting(self, q: Array | jax.Array) -> Array:
        """The links of the parked bodies."""
        return self.owned[self.waiting(q), 0]

    def shares_trees(self, topology: Topology) -> bool:
        """Return whether loops tie a spare body to another link: it may then wait while its tree moves."""
        of_link = trees_of(topology).of_link[:-1]
        return any((of_link == of_link[link]).sum() > 1 for link in self.owned[:, 0])


def with_spares(scene: SceneSpec, pools: Sequence[Pool]) -> tuple[SceneSpec, dict[str, tuple[str, ...]]]:
    """The scene with its spare bodies, parked, and their names; `ball` has the spares ball.1, ball.2 and so on.

    pools: in order: bodies of a later one come after all others, which keep their indices."""
    kinds = {link.name: link for link in scene.links if isinstance(link, BodySpec)}
    links, names = list(scene.links), dict[str, tuple[str, ...]]()
    ways = dict[str | None, Array]()  # in which direction bodies of a plane are parked
    number_of = count()
    for pool in pools:
        if not isinstance(pool, Mapping):
            raise PoolError(f'pool is {brief(pool)}; it must be a dict, such as {{"ball": 8}}')
        for kind, given in pool.items():
            body, number = given if isinstance(given, tuple) and len(given) == 2 else (kinds.get(kind), given)
            if not (isinstance(kind, str) and isinstance(body, BodySpec)):
                raise PoolError(
                    f"pool: {brief(kind)} is no free body of the scene: name one that add_body made, or give "
                    "(BodySpec, number)"
                )
            if isinstance(number, bool) or not isinstance(number, int) or number < 1:
                had = f"pool: {kind!r} has {brief(number)} spare bodies"
                raise PoolError(f"{had}; it must be a whole number of at least 1")
            kinds[kind] = body
            before = names.get(kind, ())
            more = tuple(f"{kind}.{len(before) + k}" for k in range(1, number + 1))
            still = replace(body, linear_velocity=(0, 0, 0), angular_velocity=(0, 0, 0))
            if body.plane is None:
                still = replace(still, quaternion=(1, 0, 0, 0))
            if body.plane not in ways:
                ways[body.plane] = _way_out(scene, body.plane)
            for name in more:
                away = ways[body.plane] * (AWAY + next(number_of) * APART)
                links.append(replace(still, name=name, position=np.asarray(body.position, float) + away))
            names[kind] = before + more
    alike = lambda name: (name, *names.get(name, ()))  # noqa: E731
    exclusions = tuple((x, y) for a, b in scene.exclusions for x in alike(a) for y in alike(b))
    return replace(scene, links=tuple(links), exclusions=exclusions), names


def _grounds(scene: SceneSpec) -> Iterator[Array]:
    """Normals of infinite grounds."""
    for static in scene.statics:
        if isinstance(static, PlaneSpec):
            yield np.asarray(static.normal, float)
            continue
        for shape in static.shapes:
            if shape.kind in STATIC_ONLY:
                rotations = (rotation_matrix(np.asarray(x.quaternion, float)) for x in (static, shape))
                yield np.linalg.multi_dot([*rotations, np.array([0.0, 0.0, 1.0])])


def _way_out(scene: SceneSpec, plane: str | None) -> Array:
    """A unit vector (3,) along which no ground is in the way, as upward as possible.  plane: its plane, or None.

    The directions that enter no halfspace are a cone; if there are any, its edges, where two planes meet, or the
    planes' normals and directions in the planes, are among them.
    """
    normals, up = [normal / np.linalg.norm(normal) for normal in _grounds(scene)], -np.asarray(scene.gravity, float)
    tries = [np.array(x, float) for x in product((-1, 0, 1), repeat=3) if any(x)] + [up, *normals, sum(normals, up * 0)]
    tries += [s * np.cross(a, b) for a, b in combinations(normals, 2) for s in (1, -1)]
    tries += [x - n * (n @ x) for x in tries[:26] for n in normals]
    if plane in PLANES:
        x, y = PLANES[plane]
        tries = [x * (x @ z) + y * (y @ z) for z in tries]
    units = [x / np.linalg.norm(x) for x in tries if np.linalg.norm(x) > 1e-6]
    free = [x for x in units if all(n @ x > -1e-12 for n in normals)]
    if not free:
        raise PoolError(
            "pool: the scene's planes close it in on all sides, and leave no place outside for spare bodies: make some "
            "of the walls boxes, by add_static"
        )
    return max(free, key=lambda x: (min((n @ x for n in normals), default=0.0) > 1e-6, up @ x))
