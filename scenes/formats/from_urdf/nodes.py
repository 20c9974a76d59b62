"""XML with its lines and a record of the parts that were read: nothing is dropped in silence."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import isfinite
from typing import NoReturn
from xml.parsers.expat import ExpatError, ParserCreate

from ..errors import FileError
from .xacro_files import expand_macros

MARK = b"\xef\xbb\xbf"  # mark of UTF-8 at the start of a file
DECLARATION = re.compile(rb"<\?xml\s[^>]*\?>")
ENCODING = re.compile(rb"""encoding\s*=\s*["']([\w.-]+)""")
MACRO = "xacro:"  # prefix of elements that stand for others


@dataclass(eq=False)
class XmlElement:
    """One element. Its methods note the parts they read: `unread` lists the rest."""

    path: str
    line: int
    tag: str
    attributes: dict[str, str]
    children: list[XmlElement] = field(default_factory=list)
    read_names: set[str] = field(default_factory=set)  # attributes that were read
    known: set[int] = field(default_factory=set)  # children that were read, by id
    mend: Mend | None = None  # is told of tolerated errors; None: none is tolerated

    def fail(self, message: str) -> NoReturn:
        raise FileError(self.path, message, self.line)

    def text(self, name: str) -> str:
        """A required attribute."""
        value = self.optional(name)
        if not value:
            self.fail(f'<{self.tag}> has no {name}: write <{self.tag} {name}="...">')
        return value

    def optional(self, name: str) -> str | None:
        self.read_names.add(name)
        return self.attributes.get(name)

    def numbers(
        self, name: str, n: int, default: tuple[float, ...] | None = None, finite: bool = True
    ) -> tuple[float, ...]:
        """n numbers of an attribute; the default if it is missing, None: it is required."""
        value = self.optional(name)
        if value is None and default is not None:
            return default
        wanted = "one number" if n == 1 else f"{n} numbers with blanks between them"
        if self.mend is None and n == 3 and value and ("," in value or len(value.split()) > n):
            wanted += " (lenient=True takes commas, and the first 3 of more)"
        said = f"{name} of <{self.tag}> is {_text(value)}: give {wanted}"
        try:
            values = tuple(float(word) for word in self._words(name, self.text(name), n))
        except ValueError:
            self.fail(said)
        if len(values) != n or any(x != x or (finite and not isfinite(x)) for x in values):
            self.fail(f"{said}, finite")
        return values

    def _words(self, name: str, text: str, n: int) -> list[str]:
        words = text.replace(",", " ").split()
        if self.mend and "," in text and len(words) == n:
            self.mend(self, f"{name} of <{self.tag}>", f"commas in {_text(text)} are taken for blanks")
            return words
        if self.mend and "," not in text and len(words) > n == 3:
            self.mend(self, f"{name} of <{self.tag}>", f"of {_text(text)} the first 3 numbers count")
            return words[:n]
        return text.split()

    def number(self, name: str, default: float | None = None, finite: bool = True) -> float:
        return self.numbers(name, 1, None if default is None else (default,), finite)[0]

    def all(self, tag: str) -> list[XmlElement]:
        matching = [child for child in self.children if child.tag == tag]
        self.known |= {id(child) for child in matching}
        return matching

    def first(self, tag: str) -> XmlElement | None:
        """The only child with this tag, if there is one."""
        matching = self.all(tag)
        if len(matching) > 1 and self.mend:
            self.mend(matching[1], f"<{self.tag}{self._label()}>", f"of {len(matching)} <{tag}> the first counts")
            self.children = [child for child in self.children if child not in matching[1:]]
        elif len(matching) > 1:
            matching[1].fail(f"<{self.tag}> has {len(matching)} <{tag}>, and which one counts is not said: keep one")
        return matching[0] if matching else None

    def only(self, tag: str) -> XmlElement:
        child = self.first(tag)
        if child is None:
            self.fail(f"<{self.tag}{self._label()}> has no <{tag}>: add one")
        return child

    def unread(self) -> Iterator[tuple[int, str, str]]:
        """Line, name and text of every attribute and element that was not read."""
        for name in self.attributes:
            if name not in self.read_names:
                yield self.line, name, f"<{self.tag} {name}>"
        for child in self.children:
            if id(child) in self.known:
                yield from child.unread()
            else:
                yield child.line, child.tag, f"<{self.tag}><{child.tag}>"

    def _label(self) -> str:
        return f' name="{self.attributes["name"]}"' if "name" in self.attributes else ""


Mend = Callable[[XmlElement, str, str], None]  # the element, the error, and what was done about it


def read_xml(path: str | os.PathLike[str], root_tag: str, mend: Mend | None = None) -> XmlElement:
    """The root element of a file.

    mend: is called with tolerated errors, and lets xacro expand macros; None: errors raise FileError.
    """
    path = os.fspath(path)
    try:
        with open(path, "rb") as file:
            content = file.read()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise FileError(path, f"it cannot be read ({why}): give the path of a file") from None
    root = _parse(path, content, mend)
    macro = next((child for child in root.children if child.tag.startswith(MACRO)), None)
    if macro is not None or path.lower().endswith(".xacro"):
        if mend is None:
            what = "it is a xacro file" if macro is None else f"it holds <{macro.tag}>, a macro"
            (macro or root).fail(f"{what}: give lenient=True, by which the package xacro expands it")
        root = _parse(path, expand_macros(path), mend, has_lines=False)
        mend(root, "the file", "its macros are expanded by xacro: there are no lines to tell")
    if root.tag != root_tag:
        root.fail(f"it begins with <{root.tag}>, and must begin with <{root_tag}>: give another file")
    return root


def _parse(path: str, content: bytes, mend: Mend | None, has_lines: bool = True) -> XmlElement:
    mended: list[str] = []
    encoding = None
    if mend:
        declaration = DECLARATION.search(content)
        if declaration and content[: declaration.start()] not in (b"", MARK):
            blanks = re.sub(rb"[^\n]", b" ", declaration[0])
            content = content[: declaration.start()] + blanks + content[declaration.end() :]
            named = ENCODING.search(declaration[0])
            encoding = named[1].decode() if named else None
            mended.append("the XML declaration is not at its start: its place does not matter")
        if content.endswith((b"\0", b"\x1a")):
            content = content.rstrip(b"\0\x1a")
            mended.append("bytes that are no text at its end are left out")
    try:
        parser = ParserCreate(encoding)
    except (LookupError, ValueError):
        raise FileError(path, f"its encoding is {encoding!r}, which is none: write utf-8") from None
    parser.buffer_text = True
    open_nodes: list[XmlElement] = []
    roots: list[XmlElement] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        node = XmlElement(path, parser.CurrentLineNumber if has_lines else 0, tag, attributes, mend=mend)
        (open_nodes[-1].children if open_nodes else roots).append(node)
        open_nodes.append(node)

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda tag: open_nodes.pop()
    try:
        parser.Parse(content, True)
    except (ExpatError, LookupError, ValueError) as error:
        text, line = str(error).split(":")[0], getattr(error, "lineno", None)
        fix = "mend it there or on the line before"
        if "not at start" in text:
            fix = "let the file begin with it, or give lenient=True"
        raise FileError(path, f"it is not XML: {text}; {fix}", line) from None
    if mend:
        for why in mended:
            mend(roots[0], "the file", why)
    return roots[0]


def _text(value: str | None) -> str:
    return repr(value) if value is None or len(value) < 100 else repr(value[:100]) + "..."
