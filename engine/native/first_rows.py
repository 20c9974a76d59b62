"""Rows hidden by a mask are not computed.

Of `where(row < count, x, 0)`, or `there & (row < count)`, only the first `count` rows of x or `there` matter, and of
the values from which these are computed row by row. Loops over such arrays end at the count. So an array with room for
many rows costs only as much as its real rows, if its readers are masked.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .graph import MEMORY, Limit, Node, Region, Value
from .types import BOOL, I32

AT_A_TIME = 64  # rows: a multiple of this is computed, so that vectors of all widths end there


def limit_rows(top: Region) -> None:
    """Set `Value.limit` for values of which only the first rows are needed."""
    readers: dict[Value, list[tuple[Value | None, int, Value]]] = {}
    _collect(top, readers)
    masks: dict[Value, Limit | None] = {}

    def mask(value: Value) -> Limit | None:
        """The rows beyond which a value is always false."""
        if value not in masks:
            masks[value] = _mask(value, mask)
        return masks[value]

    def demand(reader: Value | None, k: int, arg: Value) -> Limit | None:
        """The rows of an argument that its reader needs; None: all of them."""
        if reader is None or reader.op == "build" or (reader.op in MEMORY and k == 0):
            return None
        limit = reader.limit
        if limit is None and reader.op == "select_n" and k == 2 and len(reader.args) == 3:
            limit = mask(reader.args[0])
        if limit is None and reader.op == "and" and reader.type == BOOL and mask(arg) is None:
            limit = mask(reader.args[1 - k])
        return limit and _through(limit, arg)

    def visit(region: Region) -> None:
        for item in reversed(region.items):
            if isinstance(item, Node):
                for inner in item.regions:
                    visit(inner)
            elif item.op != "build" and item.size > AT_A_TIME:
                item.limit = _common([demand(*use) for use in readers.get(item, ())], item)

    visit(top)


def _collect(region: Region, readers: dict[Value, list[tuple[Value | None, int, Value]]]) -> None:
    def read_by(reader: Value | None, args: list[Value]) -> None:
        for k, a in enumerate(args):
            readers.setdefault(a.base, []).append((reader, k, a))

    read_by(None, region.results)
    for item in region.items:
        if isinstance(item, Node):
            read_by(None, item.args)
            for inner in item.regions:
                _collect(inner, readers)
        else:
            read_by(item, list(item.args))


def _mask(value: Value, mask: Callable[[Value], Limit | None]) -> Limit | None:
    if value.op == "view":
        within = mask(value.base)
        return within and _view_limit(within, value)
    if value.op == "and" and value.type == BOOL:
        return mask(value.args[0]) or mask(value.args[1])
    if value.op not in ("lt", "gt"):
        return None
    number, count = value.args if value.op == "lt" else value.args[::-1]
    if number.op != "const" or count.op == "const" or not count.uniform or count.type != I32 or number.size < 2:
        return None
    rows = int(number.param[-1]) + 1
    width = number.size // max(rows, 1)
    if rows < 1 or number.size % rows or (number.param != np.arange(number.size) // width).any():
        return None
    return Limit((count,), width)


def _view_limit(limit: Limit, view: Value) -> Limit | None:
    """The limit of a mask for a view that repeats its rows."""
    widths = _row_by_row(view, view.base.size // limit.width)
    return widths and limit._replace(width=widths[1])


def _through(limit: Limit, arg: Value) -> Limit | None:
    """The limit of what a reader sees through an argument: the value itself, or a view of it row by row."""
    if arg.op != "view":
        return limit
    widths = _row_by_row(arg, arg.size // limit.width)
    return widths and limit._replace(width=widths[0])


def _row_by_row(view: Value, rows: int) -> tuple[int, int] | None:
    """The widths of rows of a view's base and of the view, if each of its rows is taken from the same row of the base;
    else None."""
    if rows < 2 or view.base.size % rows or view.size % rows:
        return None
    of_base, own = view.base.size // rows, view.size // rows
    same = (view.param // of_base == np.arange(view.size) // own).all()
    return (of_base, own) if same else None


def _common(limits: list[Limit | None], item: Value) -> Limit | None:
    """The common limit of all readers of an item, if its counts are known where the item is computed."""
    if not limits or item.region is None:
        return None
    common: Limit | None = limits[0]
    for limit in limits[1:]:
        common = common and limit and common.union(limit)
    if common is None or item.size // common.width <= AT_A_TIME:
        return None
    return common if all(_is_visible(count.base.region, item.region) for count in common.counts) else None


def _is_visible(home: Region | None, region: Region) -> bool:
    """Return whether values of one region can be read in another, which must be within it."""
    here: Region | None = region
    while here is not None and here is not home:
        here = here.parent
    return here is not None
