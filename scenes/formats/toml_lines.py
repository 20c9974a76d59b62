"""Lines of the parts of a TOML file, which the standard library's reader does not return.

A second, simple reader for a text that `tomllib` has accepted, so that it need not check anything: it only follows
headers, keys, arrays and inline tables (TOML 1.0), and notes their starts.
"""

from __future__ import annotations

import re
import tomllib

Keys = tuple[str | int, ...]  # e.g. ("body", 0, "shapes", 1, "radius"): keys, and indices into arrays

_BLANK = re.compile(r"(?:\s|#[^\n]*)*")
_KEY = re.compile(r"[ \t]*([A-Za-z0-9_-]+|\"(?:\\.|[^\"\\])*\"|'[^']*')[ \t]*")
_TEXT = re.compile(
    r'"""(?:\\.|[^\\])*?"""(?:"{0,2})' + r"|'''.*?'''(?:'{0,2})" + r'|"(?:\\.|[^"\\])*"' + r"|'[^'\n]*'", re.DOTALL
)
_OTHER = re.compile(r"[^,\]}\n#]+")  # numbers, dates, true and false


def line_of(text: str, keys: Keys) -> int | None:
    """The line, from 1 on, of a key, a table or an item, or of the nearest enclosing one that has a line."""
    starts = _Scan(text).starts
    while keys and keys not in starts:
        keys = keys[:-1]
    return text.count("\n", 0, starts[keys]) + 1 if keys else None


class _Scan:
    """A scan of a text.  starts: position of each key, table and item."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.starts: dict[Keys, int] = {}
        self.counts: dict[Keys, int] = {}  # how many tables of each array of tables have begun
        table: Keys = ()
        while self._skip() < len(text):
            if text[self.at] == "[":
                table = self._header()
            else:
                self._pair(table)

    def _skip(self) -> int:
        """Skip blanks, line ends and comments."""
        return self._take(_BLANK)

    def _take(self, pattern: re.Pattern[str]) -> int:
        match = pattern.match(self.text, self.at)
        if match:
            self.at = match.end()
        return self.at

    def _key(self) -> tuple[str, ...]:
        """A key, its parts between dots."""
        parts = []
        while match := _KEY.match(self.text, self.at):
            part, self.at = match[1], match.end()
            parts.append(tomllib.loads(f"key = {part}")["key"] if part[0] in "\"'" else part)
            if self.text[self.at] != ".":
                break
            self.at += 1
        return tuple(parts)

    def _header(self) -> Keys:
        start, array = self.at, self.text.startswith("[[", self.at)
        self.at += 2 if array else 1
        *outer, last = self._key()
        self.at += 2 if array else 1
        table: Keys = ()
        for part in outer:
            self.starts.setdefault((*table, part), start)
            table = self._newest((*table, part))
        table = (*table, last)
        if array:
            self.starts.setdefault(table, start)
            self.counts[table] = self.counts.get(table, 0) + 1
            table = self._newest(table)
        self.starts[table] = start
        return table

    def _newest(self, table: Keys) -> Keys:
        """The last table of an array of tables."""
        return (*table, self.counts[table] - 1) if table in self.counts else table

    def _pair(self, table: Keys) -> None:
        """key = value"""
        start, parts = self._skip(), self._key()
        for n in range(len(parts)):
            self.starts.setdefault((*table, *parts[: n + 1]), start)
        self.at += 1
        self._value((*table, *parts))

    def _value(self, keys: Keys) -> None:
        self._skip()
        opening = self.text[self.at]
        if opening not in "[{":
            self._take(_TEXT if opening in "\"'" else _OTHER)
            return
        self.at += 1
        n = 0
        while self.text[self._skip()] not in "]}":
            if opening == "[":
                self.starts[(*keys, n)] = self.at
                self._value((*keys, n))
            else:
                self._pair(keys)
            n += 1
            if self.text[self._skip()] == ",":
                self.at += 1
        self.at += 1
