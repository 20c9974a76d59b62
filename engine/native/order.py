"""The order of a region: elementwise operations of equal size and limit that can share a loop become a cluster.

An operation's stage is the first at which all its arguments are computed. Arguments read at its own index, from the
same loop, may be of the same stage; others are of an earlier one. Then each operation moves to the latest stage that
its readers allow, so that values are used soon, from registers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable

from .graph import MEMORY, Cluster, Node, Region, Value
from .liveness import reads


def arrange(region: Region) -> None:
    readers: dict[Value, list[tuple[Value | Node, bool]]] = defaultdict(list)
    for item in region.items:
        stage = 0
        for value, same in _dependencies(item):
            source = value.base
            if source.region is region and source.op not in ("input", "const"):
                same = same and source.op != "result"
                stage = max(stage, source.stage if same else source.stage + 1)
                readers[source].append((item, same))
        _set_stage(item, stage)
    kept = {value.base for value in region.results}
    for item in reversed(region.items):
        if isinstance(item, Value) and item not in kept and item in readers:
            latest = min(reader.stage if same else reader.stage - 1 for reader, same in readers[item])
            item.stage = max(item.stage, latest)
    groups: dict[tuple[int, int, int, Hashable], list[Value | Node]] = defaultdict(list)
    for item in region.items:
        key = (item.stage, 1, item.id, 0) if isinstance(item, Node) else (item.stage, 0, item.size, _limit(item))
        groups[key].append(item)
    for (_, is_node, size, _), items in sorted(groups.items(), key=lambda group: group[0][:2]):
        if is_node:
            part: Node | Cluster = items[0]  # type: ignore[assignment]
        else:
            part = Cluster(size, items, region)  # type: ignore[arg-type]
            for value in part.values:
                value.cluster = part
        part.index = len(region.order)
        region.order.append(part)


def _set_stage(item: Value | Node, stage: int) -> None:
    item.stage = stage
    if isinstance(item, Node):
        for value in item.results:
            value.stage = stage


def _limit(item: Value) -> Hashable:
    return item.limit and item.limit.key


def _dependencies(item: Value | Node) -> list[tuple[Value, bool]]:
    """The values that an item reads, and whether only at its own index."""
    if isinstance(item, Node):
        return [(value, False) for value in reads(item)]
    counts = [(count, False) for count in item.limit.counts] if item.limit else []
    return counts + [(a, _at_own_index(item, k, a)) for k, a in enumerate(item.args)]


def _at_own_index(item: Value, k: int, arg: Value) -> bool:
    """Return whether an operation reads its k-th argument at its own index, so that they may share a loop."""
    if item.op == "build" or "view" in (item.op, arg.op) or (item.op in MEMORY and k == 0):
        return False
    return arg.size == item.size and _limit(arg) == _limit(item)
