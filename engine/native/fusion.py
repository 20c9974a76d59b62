"""What is computed where it is read: the terms of a reduction, the new elements of an update.

An elementwise value that only one such node reads, every element once, need not be an array of its own.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from .graph import MEMORY, Node, Region, Value
from .liveness import reads
from .plan import SMALL

MOST = 24  # operations that move into a node


def fuse(region: Region) -> None:
    """Moves values into the nodes of a region that read them."""
    uses = Counter(a.base for item in region.items for a in reads(item))
    uses.update(2 * [v.base for v in region.results])
    moved: set[Value] = set()
    for node in region.items:
        if isinstance(node, Node) and node.op in _SOURCES:
            source = node.args[_SOURCES[node.op]]
            inner = _expression(source, node, uses)
            if inner and _fits(node, source, inner):
                _move(node, source, inner)
                moved.update(inner)
    region.items = [x for x in region.items if x not in moved]


_SOURCES = {"reduce": 0, "fold": 0, "put": 1}  # which argument of a node may be computed there


def _expression(source: Value, node: Node, uses: Counter[Value]) -> list[Value]:
    """The operations that make the source and that nothing else reads, arguments first."""
    made: list[Value] = []

    def visit(value: Value) -> None:
        alone = uses[value] == 1 and value.region is node.region and value.size == source.size
        simple = value.op not in ("input", "const", "view", "result", "build", "gather")
        if not (alone and simple) or len(made) >= MOST:
            return
        if value.op in MEMORY and node.op != "put":
            return
        for k, a in enumerate(value.args):
            if not (value.op in MEMORY and k == 0):
                visit(a)
        made.append(value)

    if source.size > SMALL:
        visit(source)
    return made if made and made[-1] is source else []


def _leaves(inner: list[Value]) -> list[Value]:
    known = set(inner)
    return list({a.id: a for value in inner for a in value.args if a not in known}.values())


def _fits(node: Node, source: Value, inner: list[Value]) -> bool:
    if node.op == "put":
        return _in_place(node, inner)
    if node.op == "fold":  # in strips, from its first element to its last
        return all(a.uniform or a.start is not None for a in _leaves(inner))
    count, size = node.param[1].shape
    rows = np.arange(source.size)
    return source.size == count * size and (
        np.array_equal(node.param[1].reshape(-1), rows) or np.array_equal(node.param[1].T.reshape(-1), rows)
    )


def _in_place(node: Node, inner: list[Value]) -> bool:
    """Whether an update may be computed while it is written: what it reads of the array is what it writes over."""
    array, _, *indices = node.args
    table, terms = node.param
    if (table != table[0] + np.arange(len(table))).any():
        return False
    for value in inner:
        if value.op == "window" and value.args[0] is array:
            same = list(value.args[1:]) == indices and value.param[1] == terms and np.array_equal(value.param[0], table)
            if not same:
                return False
        elif value.op == "window" and value.args[0].base is array.base:
            return False
    return not any(a.base is array.base for a in _leaves(inner) if a is not array) and not any(
        a is array for value in inner if value.op != "window" for a in value.args
    )


def _move(node: Node, source: Value, inner: list[Value]) -> None:
    node.source = source
    node.inner = inner
    for value in inner:
        value.inline = True
    array = node.args[0] if node.op == "put" else None
    node.leaves = [a for a in _leaves(inner) if a is not array]
    node.args = [a for a in node.args if a is not source]
