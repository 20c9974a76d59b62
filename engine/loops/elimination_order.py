"""The order in which the joints of floating bodies are eliminated, decided by the graph alone.

Joints that share a body are neighbours. Eliminating a joint connects its neighbours; those with few neighbours go first
(minimum degree), and joints that are not neighbours go together, level by level: a chain of n joints takes about
log2 n levels, each one vectorised stage.
"""

from __future__ import annotations

import functools
from itertools import combinations
from typing import NamedTuple

from ..topology import Topology
from .kinds import row_count

FEW = 2  # neighbours: joints with at most so many are always eligible, else a chain would be eliminated from its ends


class Level(NamedTuple):
    """Joints eliminated together; each edge connects one of them, the pivot, to one that stays. All numbers count from
    the first joint, or edge, that is left at this level, or after it.

    pivots: their number.  pivot: of each edge.  later: the joint of each edge that stays, numbered after the level.
    one, other: pairs of edges of one pivot;  edge: the edge after the level that connects their later joints.
    """

    pivots: int
    pivot: tuple[int, ...]
    later: tuple[int, ...]
    one: tuple[int, ...]
    other: tuple[int, ...]
    edge: tuple[int, ...]


class Order(NamedTuple):
    """loops: the numbers of loops with rows, in order of elimination.  edges: (later, earlier), by the earlier's level.

    shared: (edge, end of the later, end of the earlier) for each body that the two share.
    """

    loops: tuple[int, ...]
    edges: tuple[tuple[int, int], ...]
    shared: tuple[tuple[int, int, int], ...]
    levels: tuple[Level, ...]


@functools.lru_cache(maxsize=256)
def order_of(topology: Topology) -> Order:
    """The order for a topology whose links all float."""
    numbers = [k for k, loop in enumerate(topology.loops) if row_count(loop.kind)]
    ends = {k: (topology.loops[k].a, topology.loops[k].b) for k in numbers}
    by_body: dict[int, list[int]] = {}
    for k in numbers:
        for body in ends[k]:
            if body >= 0:
                by_body.setdefault(body, []).append(k)
    near: dict[int, set[int]] = {k: set() for k in numbers}
    for group in by_body.values():
        for k in group:
            near[k].update(set(group) - {k})
    levels, after = _eliminate(near)
    loops = [k for level in levels for k in level]
    place = {k: n for n, k in enumerate(loops)}
    edges = [(place[u], place[p]) for level in levels for p in level for u in sorted(after[p], key=place.__getitem__)]
    number = {edge: n for n, edge in enumerate(edges)}
    shared = [
        (n, s, t)
        for n, (u, p) in enumerate(edges)
        for s, body in enumerate(ends[loops[u]])
        for t, same in enumerate(ends[loops[p]])
        if body == same >= 0
    ]
    return Order(tuple(loops), tuple(edges), tuple(shared), tuple(_number_levels(levels, edges, number)))


def _eliminate(near: dict[int, set[int]]) -> tuple[list[list[int]], dict[int, set[int]]]:
    """Return the levels, and the neighbours of each joint when it is eliminated."""
    levels, after = [], {}
    near = {k: set(others) for k, others in near.items()}
    while near:
        limit = max(FEW, min(map(len, near.values())))
        level: list[int] = []
        taken: set[int] = set()
        for k in sorted(near, key=lambda k: (len(near[k]), k)):
            if len(near[k]) <= limit and k not in taken:
                level.append(k)
                taken |= near[k]
        for k in level:
            after[k] = near.pop(k)
            for u in after[k]:
                near[u] |= after[k] - {u}
                near[u].discard(k)
        levels.append(level)
    return levels, after


def _number_levels(
    levels: list[list[int]], edges: list[tuple[int, int]], number: dict[tuple[int, int], int]
) -> list[Level]:
    numbered, joint, edge = [], 0, 0
    for level in levels:
        last = joint + len(level)
        own = [n for n in range(edge, len(edges)) if edges[n][1] < last]
        rest = edge + len(own)
        pairs = [(a, b) for a, b in combinations(own, 2) if edges[a][1] == edges[b][1]]
        ties = []
        for a, b in pairs:  # the earlier of the two that stay comes first in an edge's pair of numbers (later, earlier)
            u, v = edges[a][0], edges[b][0]
            ties.append((b, a, number[v, u] - rest) if v > u else (a, b, number[u, v] - rest))
        numbered.append(
            Level(
                len(level),
                tuple(edges[n][1] - joint for n in own),
                tuple(edges[n][0] - last for n in own),
                *(tuple(x[k] - (edge if k < 2 else 0) for x in ties) for k in range(3)),
            )
        )
        joint, edge = last, rest
    return numbered
