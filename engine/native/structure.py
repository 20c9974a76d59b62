"""The structure of a program's results as plain data, so that a process with its machine code need not trace it.

It handles tuples, lists, dicts, and the classes of this package: named tuples and dataclasses with plain static fields.
"""

from __future__ import annotations

import dataclasses
import importlib
from typing import Any

import jax


class Foreign(Exception):
    """A structure that cannot be written down."""


def write(tree: Any) -> Any:
    """Return a tree structure as JSON."""
    return _write(jax.tree.unflatten(tree, range(tree.num_leaves)))


def read(data: Any) -> Any:
    """Return a tree structure from JSON."""
    return jax.tree.structure(_read(data))


def _write(x: Any) -> Any:
    if x is None or type(x) is int:
        return x
    kind = f"{type(x).__module__}:{type(x).__qualname__}"
    if type(x) in (tuple, list):
        return [type(x).__name__, [_write(one) for one in x]]
    if type(x) is dict:
        return ["dict", [[name, _write(one)] for name, one in x.items()]]
    if not kind.startswith(_PACKAGE):
        raise Foreign(kind)
    if isinstance(x, tuple):
        return [kind, [_write(one) for one in x]]
    if dataclasses.is_dataclass(x):
        static = {f.name: getattr(x, f.name) for f in dataclasses.fields(x) if f.metadata.get("static")}
        if not all(isinstance(one, str | int | float | bool | None) for one in static.values()):
            raise Foreign(kind)
        return [
            kind,
            {f.name: _write(getattr(x, f.name)) for f in dataclasses.fields(x) if f.name not in static},
            static,
        ]
    if hasattr(x, "tree_flatten"):
        return [kind, _write(x.tree_flatten()[0])]
    raise Foreign(kind)


_PACKAGE = __name__.split(".")[0] + "."
_PLAIN = {"tuple": tuple, "list": list}


def _read(data: Any) -> Any:
    if data is None or isinstance(data, int):
        return data
    kind, parts, *static = data
    if kind in _PLAIN:
        return _PLAIN[kind](_read(one) for one in parts)
    if kind == "dict":
        return {name: _read(one) for name, one in parts}
    module, name = kind.split(":")
    if not module.startswith(_PACKAGE):
        raise Foreign(kind)
    target: Any = importlib.import_module(module)
    for part in name.split("."):
        target = getattr(target, part)
    if static:
        return target(**{name: _read(one) for name, one in parts.items()}, **static[0])
    if hasattr(target, "tree_unflatten"):
        return target.tree_unflatten(None, _read(parts))
    return target(*(_read(one) for one in parts))
