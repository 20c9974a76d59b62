"""Writes docs/api.md, the reference of all public names, from their docstrings: `python docs/api.py`."""

from __future__ import annotations

import inspect
import re
from enum import Enum
from pathlib import Path
from typing import Any

import carom

HEAD = """# Reference

Every public name of Carom, from its docstring (`python docs/api.py` writes this page). Units are SI, quaternions
`w x y z`, arrays of a batch have their lanes first. `Float[Array, "*batch nv"]` is an array of floating-point numbers
whose last axis has nv; `*batch` are its axes of lanes, none or some, `*#batch` axes that broadcast, `...` any. There
are nq coordinates, nv degrees of freedom, nl links, ns shapes, np pairs, nk loops, nf sites.
"""


def chapters() -> list[tuple[str, list[str]]]:
    """The public names under the comments that group them in the package's table."""
    table = inspect.getsource(carom).split("_HOME = {")[1].split("}")[0]
    found: list[tuple[str, list[str]]] = []
    for line in table.splitlines():
        if comment := re.fullmatch(r"\s*# (.+)", line):
            found.append((comment[1], []))
        elif name := re.match(r'\s*"(\w+)":', line):
            found[-1][1].append(name[1])
    return found


def entry(name: str) -> str:
    """A name's signature, its docstring, and those of its public methods."""
    value = getattr(carom, name)
    parts = [f"### `{name}`", code(f"carom.{name}", value), prose(value)]
    if inspect.isclass(value) and issubclass(value, Enum):
        members = ", ".join(f"`{member.name}` {member.value}" for member in value)
        parts = [f"### `{name}`", f"```\ncarom.{name}(value)\n```", prose(value), members]
    if inspect.isclass(value):
        own = {
            k: v
            for base in reversed(value.__mro__)
            if base.__module__.startswith("carom")
            for k, v in vars(base).items()
        }
        for called, method in own.items():
            function = getattr(method, "__func__", method)
            if isinstance(method, property) and method.__doc__:
                parts += [f"**`.{called}`** {one_line(method)}"]
            elif inspect.isfunction(function) and not called.startswith("_") and function.__doc__:
                parts += [f"#### `.{called}`", code(f".{called}", function), prose(function)]
    return "\n\n".join(part for part in parts if part)


def code(name: str, value: Any) -> str:
    shown = signature(value)
    if len(name + shown) > 110:
        shown = re.sub(r"^\((.*)\)(.*)$", lambda m: "(\n" + lines_of(m[1]) + f"){m[2]}", shown, flags=re.DOTALL)
    return f"```\n{name}{shown}\n```"


def lines_of(arguments: str) -> str:
    """One argument a line; commas inside brackets and quotes stay."""
    depth, quoted, lines = 0, False, [""]
    for letter in arguments:
        quoted ^= letter == '"'
        depth += 0 if quoted else (letter in "[(") - (letter in ")]")
        if letter == "," and not depth and not quoted:
            lines.append("")
        else:
            lines[-1] += letter
    return "".join(f"    {line.strip()},\n" for line in lines)


def signature(value: Any) -> str:
    try:
        shown = str(inspect.signature(value))
    except (TypeError, ValueError):
        return ""
    shown = shown.replace("(self, ", "(").replace("(self)", "()")
    shown = re.sub(r"(: |-> )(?:ForwardRef\()?(['\"])(.*?)\2\)?(?=[,)]| =|$)", r"\1\3", shown)  # annotations are text
    shown = re.sub(r"(\w+\[[\w.]+, )' ?([^']*)'\]", r'\1"\2"]', shown)  # an array's shape
    return re.sub(r"\b(?:\w+\.)+(?=[A-Za-z_])", "", shown)


def prose(value: Any) -> str:
    """A docstring; indented parts and lists of fields keep their lines."""
    return "\n".join(f"{line}  " if line.strip() else "" for line in (inspect.getdoc(value) or "").splitlines())


def one_line(value: Any) -> str:
    return " ".join((inspect.getdoc(value) or "").split())


def page() -> str:
    parts = [HEAD]
    for title, names in chapters():
        parts += [f"## {title[0].upper()}{title[1:]}", *map(entry, names)]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


if __name__ == "__main__":
    Path(__file__).with_name("api.md").write_text(page())
