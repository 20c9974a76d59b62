"""Fusion: the terms of a reduction and the new elements of an update are computed where they are read.

An elementwise value that only one reduction or update reads, every element once, need not be an array of its own.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from .graph import MEMORY, Graph, Node, Region, Value
from .liveness import reads
from .patterns import row_kind

MOST = 24  # operations that move into a node


def fuse(graph: Graph, region: Region, small: int) -> None:
    """Move values into the nodes of a region that read them."""
    uses = Counter(a.base for item in region.items for a in reads(item))
    uses.update(2 * [v.base for v in region.results])
    uses.update(region.body_reads)
    fused: set[Value] = set()
    for node in region.items:
        if isinstance(node, Node) and node.op in _SOURCES:
            source = node.args[_SOURCES[node.op]]
            inner = _expression(source, node, uses) if source.size > small else []
            if inner and _FITS[node.op](graph, node, source, inner):
                fused.update(inner)
    region.items = [x for x in region.items if x not in fused]


_SOURCES = {"reduce": 0, "fold": 0, "put": 1}  # which argument of a node may be computed there


def _expression(source: Value, node: Node, uses: Counter[Value]) -> list[Value]:
    """The operations from which the source is computed and that nothing else reads, arguments first."""
    made: list[Value] = []

    def visit(value: Value) -> None:
        alone = uses[value] == 1 and value.region is node.region and value.size == source.size and not value.limit
        simple = value.op not in ("input", "const", "view", "result", "build", "gather")
        if not (alone and simple) or len(made) >= MOST:
            return
        if value.op in MEMORY and node.op != "put":
            return
        for k, a in enumerate(value.args):
            if not (value.op in MEMORY and k == 0):
                visit(a)
        made.append(value)

    visit(source)
    return made if made and made[-1] is source else []


def _leaves(inner: list[Value]) -> list[Value]:
    known = set(inner)
    return list({a.id: a for value in inner for a in value.args if a not in known}.values())


def _into_fold(graph: Graph, node: Node, source: Value, inner: list[Value]) -> bool:
    """Fuse into a fold, in strips from the first element to the last."""
    if any(a.start is None and not a.uniform for a in _leaves(inner)):
        return False
    _move(node, source, inner)
    return True


def _into_reduce(graph: Graph, node: Node, source: Value, inner: list[Value]) -> bool:
    """Fuse into a reduction: in the order of the results, term after term, or of the terms, result after result,
    whichever lets views be read in rows. Other views of a loop's constants are stored in that order before the loop."""
    op, terms = node.param
    if source.size != terms.size:
        return False
    count, size = terms.shape
    for order, by_results, ahead in ((terms, True, False), (terms.T, False, False), (terms, True, True)):
        order_of_elements = order.reshape(-1)
        views = [graph.view(a, order_of_elements) for a in _leaves(inner) if not a.uniform]
        views = [v for v in views if v.op == "view" and not v.uniform and v.start is None]
        lengths = [n for n in range(size, 2, -1) if size % n == 0] if by_results else [count]
        if ahead:
            kept = [v for v in views if not row_kind(v, size) and graph.earliest([v], node.region) is not node.region]
            views = [v for v in views if v not in kept]
        length = next((n for n in lengths if all(row_kind(v, n) for v in views)), 0)
        if length:
            again = _reorder(
                graph, inner, order_of_elements, {v: _materialize(graph, v, node.region) for v in kept} if ahead else {}
            )
            node.length, straight = length, np.arange(terms.size)
            node.param = op, straight.reshape(count, size) if by_results else straight.reshape(size, count).T
            _move(node, source, again)
            return True
    return False


def _materialize(graph: Graph, view: Value, region: Region) -> Value:
    """Return a view as an array of its own, stored before the loop."""
    graph.region = region
    copy = graph.whole(view)
    copy.live = True
    return copy


def _reorder(
    graph: Graph, inner: list[Value], order_of_elements: np.ndarray, written: dict[Value, Value]
) -> list[Value]:
    """Return the same operations for elements in another order.  written: replacements of some views."""
    made: dict[Value, Value] = {}

    def argument(a: Value) -> Value:
        view = a if a.uniform else graph.view(a, order_of_elements)
        return written.get(view, view)

    for value in inner:
        args = [made.get(a) or argument(a) for a in value.args]
        made[value] = Value(value.op, value.size, value.type, args, value.param, value.region)
        made[value].live = True
    return list(made.values())


def _into_put(graph: Graph, node: Node, source: Value, inner: list[Value]) -> bool:
    """Fuse into an update: the elements that the source reads of the array must be those that the update overwrites."""
    array, _, *indices = node.args
    table, terms = node.param
    if (table != table[0] + np.arange(len(table))).any():
        return False
    for value in inner:
        if value.op == "window" and value.args[0] is array:
            same = list(value.args[1:]) == indices and value.param[1] == terms and np.array_equal(value.param[0], table)
            if not same:
                return False
        elif any(a.base is array.base for a in value.args):
            return False
    _move(node, source, inner)
    return True


_FITS = {"reduce": _into_reduce, "fold": _into_fold, "put": _into_put}


def _move(node: Node, source: Value, inner: list[Value]) -> None:
    node.source, node.inner = inner[-1], inner
    for value in inner:
        value.inline = True
    array = node.args[0] if node.op == "put" else None
    node.leaves = [a for a in _leaves(inner) if a is not array]
    node.args = [a for a in node.args if a is not source]
