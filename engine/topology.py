"""The structure of a scene without its numbers: links, joints, shapes, pairs and loops, as plain hashable data.

Two scenes that differ only in numbers share one compiled program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import cached_property

from jax import Array

from .joints import JOINTS
from .sensors import Sensor, Site


@dataclass(frozen=True)
class Group:
    """Links of equal depth and joint type: one vectorised kernel call.

    joint: key of JOINTS.  links: link indices, (n,).  depth: joints between the link and the world, less one.
    parents: parent of each link (-1: the world).
    """

    joint: str
    depth: int
    links: tuple[int, ...]
    parents: tuple[int, ...]

    @property
    def n(self) -> int:
        return len(self.links)


@dataclass(frozen=True)
class Loop:
    """A coupling of two links in addition to the tree: a joint that closes a loop, a relation, or a spring.

    kind: key of `engine.loops.kinds.KINDS`.  a, b: the links, -1 is the world.
    dofs: the degrees of freedom of a gear (a's, b's) and of a drive (a's, -1); else ().
    course: a function of time added to `Model.loop_course`, or None; it must be made of jnp's functions.
    acts: whether it has a spring, a damper, a constant force or limits.
    switched: whether `Model.loop_active` says if it holds; a loop that is not switched always holds.
    """

    kind: str
    a: int
    b: int
    dofs: tuple[int, ...] = ()
    course: Callable[[Array], Array] | None = None
    acts: bool = False
    switched: bool = False


@dataclass(frozen=True)
class Topology:
    """The static half of a model: integers and names only, hashed by content.

    names: of the links.  parents: parent of each link, smaller than its own index; -1 is the world.
    joints: joint type of each link, keys of `engine.joints.JOINTS`.
    shape_kinds, shape_links: kind of each shape and the link that carries it (-1: the world).
    shape_points: slice (start, stop) of `Model.points` owned by each shape (hulls, meshes, heightfields).
    shape_faces: outlines of each hull's faces: indices of its points, counter-clockwise seen from outside.
    shape_grid: (rows, columns) of each heightfield, (0, 0) of other shapes.
    shape_window: rows and columns of a heightfield's cells that are tested about a body, (0, 0) of other shapes.
    shape_layers: the group and the mask of each shape in the scene, sets of 32 bits.
    pairs: (shape, shape) that may touch, each once, smaller index first.
    ruled: pairs whose friction, restitution and tangential restitution are those of a rule between materials: three
    tuples of their rows in `pairs`.
    filtered: whether `Model.pair_touches` says which pairs may touch now; else all may.
    driven: whether some static's surface moves, see `Model.shape_twist`.
    gripped: degrees of freedom with Coulomb loss, and those with a rigid motor (`Model.motor_kd` infinite); both may
    hold a joint. `Model.replace` keeps it.
    loops: see `Loop`.  hold: how they are held: "projection" (exact, drift taken off after each step), "baumgarte"
    (exact, drift fed back) or "penalty" (stiff springs).
    sites: named frames on links.  sensors: see `engine/sensors.py`.
    """

    names: tuple[str, ...]
    parents: tuple[int, ...]
    joints: tuple[str, ...]
    shape_kinds: tuple[str, ...] = ()
    shape_links: tuple[int, ...] = ()
    shape_points: tuple[tuple[int, int], ...] = ()
    shape_faces: tuple[tuple[tuple[int, ...], ...], ...] = ()
    shape_grid: tuple[tuple[int, int], ...] = ()
    shape_window: tuple[tuple[int, int], ...] = ()
    shape_layers: tuple[tuple[int, int], ...] = ()
    pairs: tuple[tuple[int, int], ...] = ()
    ruled: tuple[tuple[int, ...], ...] = ((), (), ())
    filtered: bool = False
    driven: bool = False
    gripped: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    loops: tuple[Loop, ...] = ()
    hold: str = "projection"
    sites: tuple[Site, ...] = ()
    sensors: tuple[Sensor, ...] = ()

    def __hash__(self) -> int:
        return self._hash  # cached: a thousand bodies have half a million pairs, and every jitted call needs the hash

    @cached_property
    def _hash(self) -> int:
        return hash(tuple(getattr(self, f.name) for f in fields(self)))

    @property
    def n_links(self) -> int:
        return len(self.parents)

    @cached_property
    def q_start(self) -> tuple[int, ...]:
        """First coordinate of each link, and nq at the end."""
        return _running_sum(JOINTS[j].nq for j in self.joints)

    @cached_property
    def v_start(self) -> tuple[int, ...]:
        """First degree of freedom of each link, and nv at the end."""
        return _running_sum(JOINTS[j].nv for j in self.joints)

    @property
    def nq(self) -> int:
        return self.q_start[-1]

    @property
    def nv(self) -> int:
        return self.v_start[-1]

    @cached_property
    def in_plane(self) -> tuple[bool, ...]:
        """Return whether each link is a body of its own in a plane of the world."""
        rows = zip(self.joints, self.parents, strict=True)
        return tuple(joint == "planar" and parent < 0 for joint, parent in rows)

    @cached_property
    def depth(self) -> tuple[int, ...]:
        depth: list[int] = []
        for parent in self.parents:
            depth.append(0 if parent < 0 else depth[parent] + 1)
        return tuple(depth)

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Groups by (depth, joint type), parents first; rows ordered as their parents are.

        That order makes most children's rows equal to their parents' rows, so that a parent's value is
        read by position, without a gather.
        """
        position: dict[int, tuple[int, int]] = {-1: (-1, 0)}
        groups: list[Group] = []
        for depth in range(max(self.depth, default=-1) + 1):
            level = [i for i, d in enumerate(self.depth) if d == depth]
            level.sort(key=lambda i: (position[self.parents[i]], i))
            for joint in sorted({self.joints[i] for i in level}):
                links = tuple(i for i in level if self.joints[i] == joint)
                for row, i in enumerate(links):
                    position[i] = (len(groups), row)
                parents = tuple(self.parents[i] for i in links)
                groups.append(Group(joint, depth, links, parents))
        return tuple(groups)

    @cached_property
    def group_and_row(self) -> tuple[tuple[int, int], ...]:
        """The group and the row of each link."""
        where = {i: (g, row) for g, group in enumerate(self.groups) for row, i in enumerate(group.links)}
        return tuple(where[i] for i in range(self.n_links))

    def ancestors(self, link: int) -> tuple[int, ...]:
        """The link itself and all links between it and the world, from the link down to the root."""
        chain: list[int] = []
        while link >= 0:
            chain.append(link)
            link = self.parents[link]
        return tuple(chain)

    def link(self, name: str | int) -> int:
        """Index of a link given by name or by index; -1 and 'world' are the world."""
        if name in ("world", -1):
            return -1
        if isinstance(name, str):
            if name not in self.names:
                raise ValueError(f"no link named {name!r}; the links are {', '.join(self.names)}")
            return self.names.index(name)
        if not -1 <= name < self.n_links:
            raise ValueError(f"link index {name} is outside 0..{self.n_links - 1}")
        return int(name)


def _running_sum(widths: Iterable[int]) -> tuple[int, ...]:
    total = [0]
    for width in widths:
        total.append(total[-1] + width)
    return tuple(total)
