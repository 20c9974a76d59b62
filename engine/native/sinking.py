"""Values that only one branch reads are computed in it; those that only a loop reads, before it, if it iterates.

jax computes the operands of a branch whether it is taken or not. Most branches of a tick are not taken, e.g. the points
of faces that lie on each other and the correction at a step's end.
"""

from __future__ import annotations

from .graph import Node, Region, Value

ALONE = ("fold", "reduce", "join", "running")  # nodes that only compute their result


def sink(regions: list[Region]) -> None:
    """Move values inwards as far as possible.  regions: all of them, outer ones first."""
    readers: dict[Value, list[Region]] = {}

    def read_by(region: Region, values: list[Value]) -> None:
        for value in values:
            readers.setdefault(value.base, []).append(region)

    for region in regions:
        read_by(region, region.results)
        for item in region.items:
            if isinstance(item, Node):
                read_by(region, item.args)
    for region in reversed(regions):  # readers of a value are behind it, or further in
        kept: list[Value | Node] = []
        sunk: dict[Region, list[Value | Node]] = {}
        for item in reversed(region.items):
            made = item.results if isinstance(item, Node) else [item]
            home = region
            if not isinstance(item, Node) or item.op in ALONE:
                home = _innermost(region, [r for value in made for r in readers.get(value, ())])
            if home is region:
                kept.append(item)
            else:
                sunk.setdefault(home, []).append(item)
                item.region = home
                for value in made:
                    value.region = home
            if not isinstance(item, Node):
                read_by(home, list(item.args))
            elif home is not region:
                for value in item.args:
                    readers[value.base].remove(region)
                read_by(home, item.args)
        region.items = kept[::-1]
        for home, items in sunk.items():
            home.items = items[::-1] + home.items


def _innermost(region: Region, readers: list[Region]) -> Region:
    """The innermost region that runs no more often than this one, in which all readers are."""
    while readers:
        ways = {_towards(region, reader) for reader in readers}
        (way,) = ways if len(ways) == 1 else (None,)
        if way is None or not _at_most_once(way):
            return region
        region = way
    return region


def _towards(region: Region, inner: Region) -> Region | None:
    """The region directly within this one that contains an inner one; None if that is this one."""
    while inner is not region:
        assert inner.parent is not None
        if inner.parent is region:
            return inner
        inner = inner.parent
    return None


def _at_most_once(region: Region) -> bool:
    """Return whether it runs at most once for each run of its owner: a branch, or the `before` of a loop."""
    owner = region.owner
    return owner is not None and (owner.op == "cond" or region is owner.regions[0])
