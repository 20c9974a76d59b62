"""Arguments of a program that are arrays of any length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax


@jax.tree_util.register_pytree_node_class
class Open:
    """An argument that is an array of rows, (rows, ...), whose number a program need not know. The program gets the
    array, but must not read its length."""

    written = 1

    def __init__(self, array: Any) -> None:
        self.array = array

    def tree_flatten(self) -> tuple[tuple[Any], None]:
        return (self.array,), None

    @classmethod
    def tree_unflatten(cls, _: None, children: Sequence[Any]) -> Open:
        return cls(children[0])


@jax.tree_util.register_pytree_node_class
class OpenRecord(Open):
    """An open array whose rows the program writes, and which it returns in an OpenRecord."""

    written = 2


def open_leaves(args: object) -> list[int]:
    """The `written` of each leaf in an open array; 0 for other leaves."""
    is_open = lambda x: isinstance(x, Open)  # noqa: E731
    marks = jax.tree.map(lambda x: jax.tree.map(lambda _: x.written, x) if is_open(x) else 0, args, is_leaf=is_open)
    return jax.tree.leaves(marks)
