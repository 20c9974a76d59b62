"""Marks in a lane's program, at which warps of a block come together, so that they fetch code once for all.

A warp that reaches a mark waits, for a while, for those that are just behind in the program; it does not wait for
those farther behind, nor for any warp for long. So no result can depend on it.
"""

from __future__ import annotations

import functools
import re

from .dialect import COUNT, PHASE, WINDOW, Dialect

# Instructions of the text from mark to mark. On an H200 700, with marks in inner loops, made half_cheetah and stack 5 %
# slower; one mark per tick saved nothing.
EVERY = 1500
# Warps less than a quarter of the marks behind are waited for. An eighth was as fast, a half up to a quarter slower.
SHARE = 4

_LABEL = re.compile(r"label %([\w.]+)")
_PART = re.compile(r"call void @(part\d+)\(")


def insert_marks(text: str, dialect: Dialect) -> tuple[str, int]:
    """Insert marks in a program written by `spread`, in the loop that is most of it: at its top, and after every EVERY
    instructions, counting those of inner loops, which have no marks. Return the text and the number of marks."""
    return _Marks(text.split("\n"), dialect.mark).text()


class _Marks:
    def __init__(self, lines: list[str], mark: str) -> None:
        self.lines, self.mark = lines, mark
        starts = [k for k, line in enumerate(lines) if line.startswith("define")]
        self.functions = {
            lines[k].split("@")[1].split("(")[0]: (k, k + lines[k:].index("}")) for k in starts
        }  # from, to
        self.before: list[int] = []  # lines preceded by a mark
        self.since = 0  # instructions since the last

    def text(self) -> tuple[str, int]:
        loops = self._loops(*self.functions["lane"])
        if loops:
            self.since = EVERY
            self._walk(*max(loops, key=lambda loop: self._weight(*loop)))
        out, count = list(self.lines), len(self.before)
        mark = self.mark.replace(COUNT, str(count)).replace(WINDOW, str(max(1, count // SHARE)))
        for phase, k in enumerate(self.before):
            out[k] = f"  {mark.replace(PHASE, str(phase))}\n{out[k]}"
        return "\n".join(out), count

    def _walk(self, start: int, end: int) -> None:
        undivided = {a: b for a, b in self._loops(start, end) if a > start}
        k = start
        while k < end:
            if k in undivided:
                self.since += self._weight(k, undivided[k])
                k = undivided[k]
                continue
            line = self.lines[k]
            if line.startswith("  ") and " = phi " not in line:
                if self.since >= EVERY:
                    self.before.append(k)
                    self.since = 0
                self.since += 1
                part = _PART.search(line)
                if part:
                    self._walk(*self.functions[part[1]])
            k += 1

    @functools.cache  # noqa: B019
    def _loops(self, start: int, end: int) -> list[tuple[int, int]]:
        """Loops, each from a label to behind the last branch back to it."""
        labels: dict[str, int] = {}
        loops: dict[int, int] = {}
        for k in range(start, end):
            line = self.lines[k]
            if line.endswith(":"):
                labels[line[:-1]] = k
            elif line.startswith("  br "):
                loops |= {labels[label]: k + 1 for label in _LABEL.findall(line) if label in labels}
        return list(loops.items())

    @functools.cache  # noqa: B019
    def _weight(self, start: int, end: int) -> int:
        """Number of instructions, with those of the parts that are called."""
        weight = 0
        for line in self.lines[start:end]:
            weight += line.startswith("  ")
            part = _PART.search(line)
            if part:
                weight += self._weight(*self.functions[part[1]])
        return weight
