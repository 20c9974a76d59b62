"""The needed part of a graph, from its results backwards, with each loop's carry and branch's result by itself."""

from __future__ import annotations

from collections.abc import Iterator

from .first_rows import limit_rows
from .graph import Node, Region, Value
from .sinking import sink


def prune(top: Region) -> list[Region]:
    """Remove everything that is not needed; return the regions that remain, outer ones first."""
    _mark(top)
    regions = list(_regions(top))
    for region in regions:
        region.items = [x for x in region.items if x.live]
        for node in region.items:
            if isinstance(node, Node) and node.op in ("loop", "cond"):
                _trim(node)
    sink(regions)
    limit_rows(top)
    for region in reversed(regions):
        _outside(region)
    for region in regions:
        region.items = _in_order(region)
    return regions


def _mark(top: Region) -> None:
    waiting: list[Value] = []

    def demand(value: Value) -> None:
        value = value.base
        if value.op != "const" and not value.live:
            value.live = True
            waiting.append(value)

    for value in top.results:
        demand(value)
    while waiting:
        value = waiting.pop()
        if value.op == "input" and value.region is not None and value.region.owner is not None:
            demand(value.region.owner.results[value.region.inputs.index(value)])
        if value.op == "result":
            node: Node = value.param
            k = node.results.index(value)
            if node.op == "loop":
                _, test, body = node.regions
                for needed in (node.args[k], body.results[k], test.results[0]):
                    demand(needed)
            elif node.op == "cond":
                demand(node.args[0])
                for region in node.regions:
                    demand(region.results[k])
            else:
                for a in node.args:
                    demand(a)
            node.live = True
        for a in value.args:
            demand(a)


def _regions(region: Region) -> Iterator[Region]:
    yield region
    for node in region.items:
        if isinstance(node, Node) and node.live:
            for inner in node.regions:
                yield from _regions(inner)


def _trim(node: Node) -> None:
    """Remove the carries and results that are not needed."""
    kept = [k for k, value in enumerate(node.results) if value.live]
    node.results = [node.results[k] for k in kept]
    if node.op == "loop":
        _, test, body = node.regions
        node.args = [node.args[k] for k in kept]
        test.inputs, body.inputs = ([r.inputs[k] for k in kept] for r in (test, body))
        body.results = [body.results[k] for k in kept]
    else:
        for region in node.regions:
            region.results = [region.results[k] for k in kept]


def _in_order(region: Region) -> list[Value | Node]:
    """The items, each after those it reads: the count of its limit may be computed after it."""
    makers: dict[Value, Value | Node] = {}
    for item in region.items:
        makers.update(dict.fromkeys(item.results if isinstance(item, Node) else [item], item))
    ordered: dict[Value | Node, None] = {}
    begun: set[Value | Node] = set()
    waiting = region.items[::-1]
    while waiting:
        item = waiting[-1]
        if item in ordered:
            waiting.pop()
            continue
        begun.add(item)
        before = [makers[a.base] for a in reads(item) if a.base in makers]
        before = [x for x in before if x not in ordered and x is not item]
        assert begun.isdisjoint(before), "the count of a limit depends on what it limits"
        if not before:
            ordered[waiting.pop()] = None
        waiting += before
    return list(ordered)


def reads(item: Value | Node) -> list[Value]:
    if isinstance(item, Node):
        return [*item.args, *item.leaves, *item.outside]
    return [*item.args, *item.limit.counts] if item.limit else list(item.args)


def _outside(region: Region) -> None:
    """Record values that a region reads from outside: of its owner, or of a loop's `before`, which its body reads."""
    if region.owner is None:
        return
    home = region.owner.region
    for value in [a for x in region.items for a in reads(x)] + region.results:
        value = value.base
        if value.region is None or value.region is region:
            continue
        if value.region.depth <= home.depth:
            region.owner.outside.add(value)
        elif region.before is not None and value.region is region.before:
            region.before.body_reads.add(value)
