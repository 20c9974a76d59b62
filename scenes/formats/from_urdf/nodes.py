"""XML that remembers its lines, and what was read of it: nothing is dropped unseen."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isfinite
from typing import NoReturn
from xml.parsers.expat import ExpatError, ParserCreate

from ..errors import FileError


@dataclass(eq=False)
class Node:
    """One element. Its methods note what they read: `unread` tells the rest."""

    path: str
    line: int
    tag: str
    attributes: dict[str, str]
    children: list[Node] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)  # attributes that were read
    known: set[int] = field(default_factory=set)  # children that were read, by id

    def fail(self, message: str) -> NoReturn:
        raise FileError(self.path, message, self.line)

    def text(self, name: str) -> str:
        """An attribute that must be there."""
        value = self.optional(name)
        if not value:
            self.fail(f'<{self.tag}> has no {name}: write <{self.tag} {name}="...">')
        return value

    def optional(self, name: str) -> str | None:
        self.seen.add(name)
        return self.attributes.get(name)

    def numbers(
        self, name: str, n: int, default: tuple[float, ...] | None = None, finite: bool = True
    ) -> tuple[float, ...]:
        """n numbers of an attribute; the default where it is not written, None: it must be."""
        value = self.optional(name)
        if value is None and default is not None:
            return default
        wanted = "one number" if n == 1 else f"{n} numbers with blanks between them"
        try:
            found = tuple(float(word) for word in self.text(name).split())
        except ValueError:
            self.fail(f"{name} of <{self.tag}> is {value!r}: give {wanted}")
        if len(found) != n or any(x != x or (finite and not isfinite(x)) for x in found):
            self.fail(f"{name} of <{self.tag}> is {value!r}: give {wanted}, finite")
        return found

    def number(self, name: str, default: float | None = None, finite: bool = True) -> float:
        return self.numbers(name, 1, None if default is None else (default,), finite)[0]

    def all(self, tag: str) -> list[Node]:
        found = [child for child in self.children if child.tag == tag]
        self.known |= {id(child) for child in found}
        return found

    def first(self, tag: str) -> Node | None:
        """The only child with this tag, if there is one."""
        found = self.all(tag)
        if len(found) > 1:
            found[1].fail(f"<{self.tag}> has {len(found)} <{tag}>, and which one counts is not said: keep one")
        return found[0] if found else None

    def only(self, tag: str) -> Node:
        found = self.first(tag)
        if found is None:
            self.fail(f"<{self.tag}{self._called()}> has no <{tag}>: add one")
        return found

    def unread(self) -> Iterator[tuple[int, str, str]]:
        """(line, name, how it is written) of every attribute and element that nobody asked for."""
        for name in self.attributes:
            if name not in self.seen:
                yield self.line, name, f"<{self.tag} {name}>"
        for child in self.children:
            if id(child) in self.known:
                yield from child.unread()
            else:
                yield child.line, child.tag, f"<{self.tag}><{child.tag}>"

    def _called(self) -> str:
        return f' name="{self.attributes["name"]}"' if "name" in self.attributes else ""


def read_xml(path: str | os.PathLike[str], root_tag: str) -> Node:
    """The root element of a file."""
    path = os.fspath(path)
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        raise FileError(path, f"it cannot be read ({error.strerror}): give the path of a file") from None
    parser = ParserCreate()
    parser.buffer_text = True
    open_nodes: list[Node] = []
    roots: list[Node] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        node = Node(path, parser.CurrentLineNumber, tag, attributes)
        (open_nodes[-1].children if open_nodes else roots).append(node)
        open_nodes.append(node)

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda tag: open_nodes.pop()
    try:
        parser.Parse(content, True)
    except ExpatError as error:
        text = str(error).split(":")[0]
        raise FileError(path, f"it is not XML: {text}; mend it there or on the line before", error.lineno) from None
    if roots[0].tag != root_tag:
        roots[0].fail(f"it begins with <{roots[0].tag}>, and must begin with <{root_tag}>: give another file")
    return roots[0]
