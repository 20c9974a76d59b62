"""Rows of Proximities on the host: their number in a scene, and filling in those of a lane."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ...engine.results import NOT_FINITE, OK, PAIRS_FULL
from ...engine.topology import Topology
from ..proximities import Proximities
from .shapes import Floats

FEWEST, PER_SHAPE = 1024, 32  # rows there is room for, at least and per shape
CURVED = frozenset({"plane", "heightfield", "sphere", "ellipsoid"})  # kinds that touch a plane at one point, if at all


class HostRow(NamedTuple):
    """pair: row of `topology.pairs`.  gap [m]; normal, point_a, point_b (3,) as in Proximities."""

    pair: int
    gap: float
    normal: Floats
    point_a: Floats
    point_b: Floats


class HostPairTable(NamedTuple):
    """row: index of a pair (i, j), i < j, in `topology.pairs`.  with_plane: rows of the pairs that have a plane.

    capacity: N, rows there is room for.
    """

    row: dict[tuple[int, int], int]
    with_plane: list[int]
    capacity: int


@lru_cache(maxsize=16)
def pair_table(topology: Topology) -> HostPairTable:
    kinds = [(topology.shape_kinds[a], topology.shape_kinds[b]) for a, b in topology.pairs]
    flat = [pair == ("box", "box") or ("plane" in pair and not CURVED.issuperset(pair)) for pair in kinds]
    most = sum(4 if several else 1 for several in flat)
    row = {pair: k for k, pair in enumerate(topology.pairs)}
    return HostPairTable(row, [k for k, pair in enumerate(kinds) if "plane" in pair], min(most, room(topology)))


def room(topology: Topology) -> int:
    return max(FEWEST, PER_SHAPE * len(topology.shape_kinds))


def blank(batch: tuple[int, ...], rows: int, dtype: np.dtype) -> Proximities:
    """Lanes (*batch) of inactive rows, to be filled."""
    none, far = np.full((*batch, rows), -1, np.int32), np.full((*batch, rows), np.inf, dtype)
    normal, point_a, point_b = (np.zeros((*batch, rows, 3), dtype) for _ in range(3))
    code, needed = np.full(batch, OK, np.int32), np.zeros(batch, np.int32)
    return Proximities._make((none, np.zeros((*batch, rows), bool), far, normal, point_a, point_b, code, needed))


def fill(made: Proximities, lane: tuple[int, ...], rows: list[HostRow], finite: bool) -> None:
    """Write a lane's rows into `made`; if there is no room for all, write the closest and the code PAIRS_FULL."""
    into = Proximities(*(x[(*lane, ...)] for x in made))  # views
    full = len(rows) > len(into.pair)
    into.code[...] = NOT_FINITE if not finite else PAIRS_FULL if full else OK
    into.needed[...] = len(rows)
    if full:
        rows = sorted(rows, key=lambda row: row.gap)[: len(into.pair)]
    into.active[: len(rows)] = True
    for name, column in zip(HostRow._fields, zip(*rows, strict=True), strict=False):  # no rows, no columns
        getattr(into, name)[: len(rows)] = column
