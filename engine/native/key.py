"""The key of a program's machine code: a digest of everything it depends on, computed without tracing it.

It depends on the package's source, the versions of its compilers, the processor, the program's name and static
arguments, and the shapes and types of its other arguments, never on numbers. Objects without a lasting name (e.g. a
user's function) have no key: then the compiled text is the key.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import os
import types
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

import jax
import numpy as np

from .machine import level, processor
from .open_arrays import Open

ROOT = Path(__file__).resolve().parents[2]
FLOORS = ("engine", "collision", "contact", "integrators", "scenes")


_only_here: set[str] = set()
_renewed: list[str] = []  # names whose meaning was changed


class Nameless(Exception):
    """An object without a lasting name."""


def only_here(name: str) -> None:
    """Mark a name that is valid in this process only: in another one it may mean something else. Marking it again
    gives it another meaning from then on, and programs are compiled again."""
    if name in _only_here:
        _renewed.append(name)
        jax.clear_caches()
    _only_here.add(name)


def meanings() -> int:
    """Return a number that changes when a name gets another meaning."""
    return len(_renewed)


def program_key(function: Callable[..., Any], static: Hashable, args: object) -> str | None:
    """The key of a program; None if it has none."""
    digest = hashlib.sha256(surroundings().encode())
    try:
        _static(digest, function)
        _static(digest, static)
        _argument(digest, args)
    except Nameless:
        return None
    return digest.hexdigest()


def text_key(text: str) -> str:
    return hashlib.sha256((surroundings() + text).encode()).hexdigest()


def surroundings() -> str:
    checked = bool(os.environ.get("CAROM_NATIVE_CHECK")), level(), processor()
    return f"{_built()} {checked} {jax.config.jax_enable_x64} {jax.config.jax_numpy_dtype_promotion}"  # pyright: ignore


@functools.cache
def _built() -> str:
    """Digest of the source and the versions."""
    import jaxlib
    import llvmlite

    digest = hashlib.sha256()
    for path in sorted(p for floor in FLOORS for p in (ROOT / floor).rglob("*.py")):
        digest.update(str(path.relative_to(ROOT)).encode() + path.read_bytes())
    versions = [package.__version__ for package in (jax, jaxlib, llvmlite, np)]
    return f"{digest.hexdigest()} {versions}"


def _static(digest: Any, x: object) -> None:
    """Digest the content of a static argument."""
    if isinstance(x, str) and x in _only_here:
        raise Nameless(x)
    if x is None or isinstance(x, bool | int | float | complex | str | bytes):
        digest.update(f"{type(x).__name__} {x!r};".encode())
    elif isinstance(x, np.ndarray | np.generic):
        x = np.asarray(x)
        digest.update(f"array {x.dtype.str} {x.shape};".encode() + x.tobytes())
    elif isinstance(x, enum.Enum | np.dtype):
        digest.update(f"{type(x).__qualname__} {x};".encode())
    elif isinstance(x, tuple | list):
        digest.update(f"{type(x).__qualname__} {len(x)};".encode())
        for one in x:
            _static(digest, one)
    elif isinstance(x, dict):
        digest.update(f"dict {len(x)};".encode())
        for name in sorted(x):
            _static(digest, (name, x[name]))
    elif dataclasses.is_dataclass(x) and not isinstance(x, type):
        digest.update(f"{type(x).__module__}:{type(x).__qualname__};".encode())
        for field in dataclasses.fields(x):
            _static(digest, (field.name, getattr(x, field.name)))
    elif isinstance(x, functools.partial):
        _static(digest, ("partial", x.func, x.args, x.keywords))
    elif isinstance(x, types.FunctionType | type) and _ours(x):
        digest.update(f"{x.__module__}:{x.__qualname__};".encode())
    else:
        raise Nameless(repr(x))


def _ours(x: types.FunctionType | type) -> bool:
    """Return whether it is a function or class of this package, found by its name."""
    return x.__module__.split(".")[0] == __name__.split(".")[0] and "<" not in x.__qualname__


def _argument(digest: Any, x: Any) -> None:
    """Digest the shape and type of an argument, and the content of its static parts."""
    if isinstance(x, Open):
        digest.update(f"open {x.written} {x.array.dtype} {x.array.shape[1:]};".encode())
    elif hasattr(x, "shape") and hasattr(x, "dtype"):
        digest.update(f"{x.dtype} {x.shape};".encode())
    elif isinstance(x, bool | int | float):
        digest.update(f"{type(x).__name__};".encode())
    elif isinstance(x, tuple | list):
        digest.update(f"{type(x).__qualname__} {len(x)};".encode())
        for one in x:
            _argument(digest, one)
    elif isinstance(x, dict):
        digest.update(f"dict {sorted(x)};".encode())
        for name in sorted(x):
            _argument(digest, x[name])
    elif dataclasses.is_dataclass(x) and not isinstance(x, type):
        digest.update(f"{type(x).__module__}:{type(x).__qualname__};".encode())
        for field in dataclasses.fields(x):
            (_static if field.metadata.get("static") else _argument)(digest, getattr(x, field.name))
    elif x is None:
        digest.update(b"none;")
    else:
        raise Nameless(repr(x))
