"""Values, names and paths of any size, in readable messages."""

from __future__ import annotations

from collections.abc import Iterable

FEW = 10  # names in a list
LENGTH = 200  # characters of a value, a name or a path
MESSAGE = 2000  # characters of a whole message


def abridge(text: str, most: int = LENGTH) -> str:
    """A text unchanged, or the beginning and the end of a long one, with dots between them."""
    if len(text) <= most:
        return text
    head = most * 2 // 3
    return f"{text[:head]} ... {text[head - most :]}"


def brief(value: object) -> str:
    """A value as Python writes it, in few characters."""
    try:
        return abridge(" ".join(repr(value).split()))
    except ValueError:
        return "a whole number of thousands of digits"  # which Python does not write
    except RecursionError:
        return "a list in lists, too deep to show"
    except Exception:  # objects may raise anything
        return f"a {type(value).__name__}"


def list_names(names: Iterable[str], most: int = FEW) -> str:
    """The first names, and the number of the others."""
    names = list(names)
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(abridge(name) for name in names[:most]) + more
