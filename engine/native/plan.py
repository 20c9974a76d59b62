"""The plan of a program: the function of each part, the values that must be in memory, and how long each is needed.

LLVM's time grows faster than a function's length, so a long region is cut into functions of bounded weight, and a loop
or branch too heavy for one keeps only its skeleton in place. Between functions values pass through memory; within one,
small values stay in registers.
"""

from __future__ import annotations

import itertools

from .graph import MEMORY, Cluster, Node, Region, Value

LIMIT = 700  # operations per function
END = 1 << 60  # later than every part of a region


class Plan:
    def __init__(self, top: Region, regions: list[Region], small: int) -> None:
        self._small = small
        self._numbers = itertools.count()
        self.main = next(self._numbers)
        self.functions: dict[Region, int] = {}
        self.last: dict[Region, dict[Value, int]] = {region: {} for region in regions}
        _weigh(top)
        self._cut(top, self.main)
        for region in regions:
            for part in region.order:
                self._reads(part)
            function = self.functions[region]
            for value in region.results:
                self._use(value, region, END, function, None)

    def _all_in(self, region: Region, function: int) -> None:
        self.functions[region] = function
        for part in region.order:
            part.function = function
            if isinstance(part, Node):
                for inner in part.regions:
                    self._all_in(inner, function)

    def _cut(self, region: Region, function: int) -> None:
        if region.weight <= LIMIT:
            return self._all_in(region, function)
        self.functions[region], group, room = function, -1, 0
        for part in region.order:
            if part.weight > LIMIT and isinstance(part, Node) and part.regions:
                part.function, group = function, -1
                for inner in part.regions:
                    self._cut(inner, function)
                continue
            if group < 0 or room < part.weight:
                group, room = next(self._numbers), LIMIT
            room -= part.weight
            part.function = group
            if isinstance(part, Node):
                for inner in part.regions:
                    self._all_in(inner, group)

    def _reads(self, part: Node | Cluster) -> None:
        if isinstance(part, Cluster):
            for value in part.values:
                for k, a in enumerate(value.args):
                    self._use(a, part.region, part.index, part.function, part, value.op in MEMORY and k == 0)
            for count in part.limit.counts if part.limit else ():
                self._use(count, part.region, part.index, part.function, part)
            return
        for value in part.inner:
            for k, a in enumerate(value.args):
                if not a.inline:
                    self._use(a, part.region, part.index, part.function, part, value.op in MEMORY and k == 0)
        for k, a in enumerate(part.args):
            # these read whole arrays from memory; a join reads its arguments element by element
            memory = part.op in ("reduce", "running", "scatter") or (part.op in ("put", "put_if") and k == 0)
            self._use(a, part.region, part.index, part.function, part, memory)

    def _use(
        self, value: Value, region: Region, index: int, function: int, part: Node | Cluster | None, memory: bool = False
    ) -> None:
        base = value.base
        if base.op == "const":
            return
        here: Region | None = region
        while here is not None:
            last_reads = self.last[here]
            last_reads[base] = max(last_reads.get(base, -1), index)
            if here is base.region:
                break
            before = here.owner.regions[0] if here.owner is not None else None
            if before is not None and before is base.region:  # computed before the loop: needed until it ends
                self.last[before][base] = END
                break
            assert here.owner is not None
            index, here = here.owner.index, here.owner.region
        if memory or self._home(base) != function or base.size > self._small:
            own = isinstance(part, Cluster) and base.cluster is part and value is base and not memory
            base.stored = base.stored or not own
        elif value is not base and value.size > self._small and not value.uniform:
            base.stored = True

    def _home(self, value: Value) -> int:
        """The function in which it is in a register."""
        if value.op == "input":
            assert value.region is not None
            return self.functions[value.region] if value.region.owner is not None else -1
        return value.cluster.function


def _weigh(region: Region) -> None:
    for part in region.order:
        if isinstance(part, Cluster):
            part.weight = len(part.values)
        else:
            for inner in part.regions:
                _weigh(inner)
            part.weight = (
                4 * max(1, len(part.args)) + len(part.inner) + sum(r.weight + 3 * len(r.results) for r in part.regions)
            )
    region.weight = sum(part.weight for part in region.order)
