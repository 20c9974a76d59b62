"""The program of a lane as a graph: values that are flat arrays, and regions, the bodies of loops and branches.

A value has a size and a type but no shape: a slice, a transpose, a broadcast is a *view*, a table of indices of another
value, composed when the graph is built and never stored. An elementwise operation is a value of its own (`op` names the
operation); loops, branches, reductions and updates are a `Node` with results.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .types import Type, Unsupported, type_of

_numbers = itertools.count()
MEMORY = ("gather", "window")  # operations whose first argument is read at other indices than their own
MOST = 4  # counts of a limit


class Value:
    """A flat array.  op: "input" of a region, "const", "view", "result" of a node, "open" (see `Graph`), an operation.

    args: values it is computed from.  param: a constant's data, a view's indices, an operation's parameter, a result's
    node.  region: the one in which it is computed; None for constants.
    """

    __slots__ = (
        "args", "cluster", "id", "inline", "last", "limit", "live", "op", "open", "param", "region", "size", "slot",
        "stage", "start", "stored", "type", "uniform",
    )  # fmt: skip

    def __init__(
        self,
        op: str,
        size: int,
        type: Type,
        args: Sequence[Value] = (),
        param: Any = None,
        region: Region | None = None,
    ) -> None:
        self.op, self.size, self.type, self.args, self.param, self.region = (
            op,
            int(size),
            type,
            tuple(args),
            param,
            region,
        )
        self.id = next(_numbers)
        self.live = self.stored = False  # whether anything needs it; whether it must be in memory
        self.inline = False  # whether it is computed where it is read, see `fusion.py`
        self.stage, self.last = 0, -1  # its order in the region; the last node of the region that reads it
        self.limit: Limit | None = None  # the first rows that are needed, see `first_rows.py`; None: all
        self.cluster: Any = None  # the cluster or node that computes it
        self.slot: Any = None  # where in the arena
        self.open: int | None = None  # of an array of any length, see `Graph`: the argument that it was
        self.uniform, self.start = self._pattern()

    @property
    def base(self) -> Value:
        """The value from which a view takes its elements; else the value itself."""
        return self.args[0] if self.op == "view" else self

    def _pattern(self) -> tuple[bool, int | None]:
        """Return whether all elements are the same one; and, for a view of neighbours, the first one's index."""
        if self.op == "const":
            flat = self.param
            return flat.size > 0 and flat.tobytes() == flat[:1].tobytes() * flat.size, 0
        if self.op != "view":
            return self.size == 1, 0
        indices = self.param
        if not indices.size:
            return False, 0
        steps = indices - indices[0]
        return not steps.any(), int(indices[0]) if (steps == np.arange(len(steps))).all() else None


class Limit(NamedTuple):
    """The first rows of an array, those that are needed (`first_rows.py`).

    counts: numbers (): as many rows as the largest of these are needed.
    width: elements of a row.
    """

    counts: tuple[Value, ...]
    width: int

    @property
    def key(self) -> tuple[tuple[tuple[int, int], ...], int]:
        return tuple((c.base.id, first_index(c)) for c in self.counts), self.width

    def union(self, other: Limit) -> Limit | None:
        """The least limit that allows for both; None if it has too many counts, or they are of different rows."""
        if other.width != self.width:
            return None
        counts = {(c.base.id, first_index(c)): c for c in (*self.counts, *other.counts)}
        return Limit(tuple(counts[k] for k in sorted(counts)), self.width) if len(counts) <= MOST else None


def first_index(count: Value) -> int:
    """The index of a count in the array that it is an element of."""
    return int(count.param[0]) if count.op == "view" else 0


def digest(x: np.ndarray) -> bytes:
    """Return a digest that tells arrays of one type and size apart."""
    return x.tobytes() if x.size <= 8 else hashlib.blake2b(np.ascontiguousarray(x).data, digest_size=16).digest()


class Region:
    """A body of straight-line code.  items: elementwise values and nodes, in an order that can be computed.

    inputs: values that the owner sets before each run.  results: values that the owner reads after it.
    before: of a loop's body, the region in which constants of the loop are computed, else None.  outermost: the
    `before` of the outermost loop it is in; None outside of loops.
    """

    def __init__(self, parent: Region | None, owner: Node | None = None, before: Region | None = None) -> None:
        self.parent, self.owner, self.before = parent, owner, before
        self.depth = 0 if parent is None else parent.depth + 1
        self.outermost: Region | None = None if parent is None else parent.outermost
        self.items: list[Value | Node] = []
        self.inputs: list[Value] = []
        self.results: list[Value] = []
        self.known: dict[Hashable, Value] = {}  # values computed here, by operation and arguments
        self.calls: dict[Hashable, list[Value]] = {}  # results of functions, by function and arguments
        self.order: list[Cluster | Node] = []  # clusters and nodes, see `order.py`
        self.body_reads: set[Value] = set()  # of a `before`: its values that the loop's body reads
        self.weight = 0

    def input(self, size: int, type: Type, open: int | None = None) -> Value:
        value = Value("input", size, type, (), None, self)
        value.open = open
        self.inputs.append(value)
        return value


class Cluster:
    """Elementwise operations of one size in one region (`order.py`).  limit: the first rows needed; None: all."""

    def __init__(self, size: int, values: list[Value], region: Region) -> None:
        self.size, self.values, self.region, self.limit = size, values, region, values[0].limit
        self.index, self.function, self.weight = -1, -1, 0


class Node:
    """An operation that is not elementwise.  op: names its emitter.  args: values it reads.  regions: its bodies.
    outside: values of outer regions that the bodies read.
    source: an argument that is computed within the node, see `fusion.py`; inner: the operations that compute it;
    leaves: the values these read; length: that of the rows it is cut into."""

    def __init__(self, op: str, args: Sequence[Value], param: Any, region: Region) -> None:
        self.op, self.args, self.param, self.region = op, list(args), param, region
        self.regions: list[Region] = []
        self.results: list[Value] = []
        self.outside: set[Value] = set()
        self.source: Value | None = None
        self.inner: list[Value] = []
        self.leaves: list[Value] = []
        self.length = 0
        self.live = False
        self.stage, self.index, self.weight, self.function = 0, -1, 0, -1
        self.id = next(_numbers)

    def result(self, size: int, type: Type, open: int | None = None) -> Value:
        value = Value("result", size, type, (), self, self.region)
        value.open = open
        value.cluster = self
        self.results.append(value)
        return value


class Graph:
    """A builder of graphs, region by region, which keeps them small: equal values are one value, views of views are
    views, and operations move out of loops that do not change their arguments.

    An argument may be *open*: an array of rows whose number the program does not know. It stays in the caller's memory.
    Its rows are read and written at indices that the program computes, and it is passed from loop to loop; no other
    operation is applied to it, and it is never copied.
    """

    def __init__(self) -> None:
        self.top = self.region = Region(None)
        self.constants: dict[tuple[str, int, bytes], Value] = {}
        self.views: dict[tuple[int, bytes], Value] = {}
        self.repeated: dict[tuple[int, int], Value] = {}

    # values

    def const(self, x: ArrayLike) -> Value:
        x = np.ascontiguousarray(x)
        key = (x.dtype.str, x.size, digest(x))
        if key not in self.constants:
            self.constants[key] = Value("const", x.size, type_of(x.dtype), (), x.reshape(-1))
        return self.constants[key]

    def view(self, value: Value, indices: Any) -> Value:
        """The elements at these indices, in order."""
        indices = np.asarray(indices, np.int32).reshape(-1)
        if value.op == "view":
            indices, value = value.param[indices], value.args[0]
        if value.op == "const":
            return self.const(value.param[indices])
        if value.op == "build" and indices.size and (indices == indices[0]).all():
            return self.view(value.args[indices[0]], np.zeros(indices.size, int))
        if value.op == "result" and value.param.op == "join" and indices.size:
            pieces, at, _ = value.param.param
            mine = pieces[indices]
            if (mine == mine[0]).all():
                return self.view(value.param.args[mine[0]], at[indices])
        if value.size == indices.size and (indices == np.arange(value.size)).all():
            return value
        if value.open is not None:
            raise Unsupported("a part of an open array, other than rows at places worked out")
        key = (value.id, digest(indices))
        if key not in self.views:
            self.views[key] = Value("view", indices.size, value.type, (value,), indices, value.region)
        return self.views[key]

    def repeat(self, value: Value, size: int) -> Value:
        """An array of the one element of a value."""
        key = (value.id, size)
        if key not in self.repeated:
            self.repeated[key] = self.view(value, np.zeros(size, np.int32))
        return self.repeated[key]

    def compute(
        self, op: str, size: int, type: Type, args: Sequence[Value], param: Any = None, key: Hashable = None
    ) -> Value:
        """The result of an elementwise operation.  key: replaces a parameter that cannot be hashed."""
        for a in args[op in MEMORY :]:
            if a.open is not None:
                raise Unsupported(f"{op} of an open array")

        def make(region: Region) -> Value:
            value = Value(op, size, type, args, param, region)
            region.items.append(value)
            return value

        ids = tuple([a.id for a in args])  # a list: this is called for every operation
        return self._once((op, size, type.name, ids, param if key is None else key), args, make)

    def _once(self, known: Hashable, args: Sequence[Value], make: Callable[[Region], Value]) -> Value:
        """The value known under this key; else a new one of these arguments, in the earliest region."""
        region: Region | None = self.region
        while region is not None:
            if known in region.known:
                return region.known[known]
            region = region.parent
        home = self.earliest(args, self.region)
        value = home.known[known] = make(home)
        return value

    def call(self, body: Hashable, args: Sequence[Value], make: Callable[[], list[Value]]) -> list[Value]:
        """The results of a function of these arguments, which are known if it was called with them before."""
        if any(a.open is not None for a in args):
            return make()
        key = (body, *(a.id for a in args))
        region: Region | None = self.region
        while region is not None:
            if key in region.calls:
                return region.calls[key]
            region = region.parent
        made = make()
        home = max((x.region for x in made if x.region is not None), key=lambda x: x.depth, default=self.top)
        home.calls[key] = made
        return made

    def earliest(self, args: Sequence[Value], region: Region) -> Region:
        """The outermost region in which a value of these arguments can be computed: before loops. From a branch it is
        moved only before the outermost loop, which has many iterations: constants of a run are computed once."""
        deepest = max((a.region.depth for a in args if a.region is not None), default=0)
        if region.outermost is not None and deepest <= region.outermost.depth:
            return region.outermost
        while region.before is not None and deepest <= region.before.depth:
            region = region.before
        return region

    def node(self, op: str, args: Sequence[Value], param: Any = None, region: Region | None = None) -> Node:
        region = region or self.region
        node = Node(op, args, param, region)
        region.items.append(node)
        return node

    def single_result(self, op: str, args: Sequence[Value], param: Any, key: Hashable, size: int, type: Type) -> Value:
        """The result of a node with one result. key: replaces the parameter."""
        make = lambda region: self.node(op, args, param, region).result(size, type)  # noqa: E731
        return self._once((op, size, type.name, tuple(a.id for a in args), key), args, make)

    def whole(self, value: Value) -> Value:
        """The value as an array of its own, not a view."""
        return self.compute("copy", value.size, value.type, (value,)) if value.op == "view" else value

    def select(self, which: Value, no: Value, yes: Value) -> Value:
        if which.op == "const" and which.uniform:
            return yes if which.param[0] else no
        return no if no is yes else self.compute("select_n", no.size, no.type, (which, no, yes))

    def inside(self, node: Node, before: Region | None, build: Callable[[Region], None]) -> Region:
        """Add a region to a node.  before: the region of a loop's constants; None for branches."""
        outer = self.region
        self.region = Region(before if before is not None else outer, node, before)
        node.regions.append(self.region)
        build(self.region)
        made, self.region = self.region, outer
        return made


def splat(graph: Graph, x: float, size: int, type: Type) -> Value:
    return graph.const(np.full(size, x, type.dtype))
