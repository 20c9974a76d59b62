"""LLVM's text of a lane's program for one thread of a GPU, beside 31 others.

The arenas of a warp's 32 lanes are interleaved: each element of one is beside the same element of the others,
and element t of 32 is thread t's. So the data at byte b of an arena begin at byte 32 b, and the data that 32 threads
read together are one stretch of memory. Tables of constants and open arrays are not interleaved.
"""

from __future__ import annotations

import re

from ..arena import THREADS
from ..types import Unsupported
from .dialect import NO_UNROLLING, Dialect

_ADDRESS = re.compile(r"getelementptr inbounds (\w+), ptr (\S+), (i32|i64|<\d+ x i32>) (\S+|<.+>)")
_LOAD = re.compile(r"load (?:<(\d+) x (\w+)>|(\w+)), ptr (\S+), align \d+")
_STORE = re.compile(r"store (?:<(\d+) x (\w+)>|(\w+)) (.+), ptr (\S+), align \d+")
_GATHER = re.compile(r"(call <(\d+) x (\w+)> @llvm\.masked\.gather\S+\(<\d+ x ptr>) (\S+), (.+)")
_LABEL = re.compile(r"label %([\w.]+)")


def beside(text: str, dialect: Dialect) -> str:
    """Rewrite text: that of a program, `void lane(ptr %A)` and its parts, emitted for a thread (`Runner.THREAD`)."""
    return _Beside(dialect).text(text)


class _Beside:
    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.out: list[str] = []
        self.count = 0
        self.inside: set[str] = set()  # pointers into the arena, and vectors of them
        self.labels: set[str] = set()  # of the function, so far

    def text(self, text: str) -> str:
        for line in text.split("\n"):
            if line.startswith("  "):
                result, _, rest = line.strip().rpartition(" = ") if line.startswith("  %") else ("", "", line.strip())
                self._instruction(result, rest)
            elif line.startswith("define"):
                self.out.append(line)
                self.inside, self.labels = {"%A"}, set()
            elif line == "entry:":
                self.out += [line, f"  %t = {self.dialect.thread}"]
            elif not line.startswith("attributes #0"):
                self.out.append(line)
                if line.endswith(":"):
                    self.labels.add(line[:-1])
        return "\n".join([*self.out, self.dialect.head, NO_UNROLLING])

    def _instruction(self, result: str, rest: str) -> None:
        op = rest.split(" ", 1)[0]
        if op == "getelementptr":
            rest = self._address(result, rest)
        elif (op == "load" and self._rewrite_load(result, rest)) or (op == "store" and self._rewrite_store(rest)):
            return
        elif op == "call":
            rest = self._rewrite_call(rest)
        elif op == "br" and any(label in self.labels for label in _LABEL.findall(rest)):
            rest += ", !llvm.loop !0"
        self.out.append(f"  {result} = {rest}" if result else f"  {rest}")

    def _address(self, result: str, rest: str) -> str:
        match = _ADDRESS.fullmatch(rest)
        if match is None:
            raise Unsupported(rest)
        type, base, kind, index = match.groups()
        if base not in self.inside:
            return rest
        self.inside.add(result)
        return f"getelementptr inbounds [{THREADS} x {type}], ptr {base}, {kind} {index}"

    def _rewrite_load(self, result: str, rest: str) -> bool:
        match = _LOAD.fullmatch(rest)
        if match is None:
            raise Unsupported(rest)
        width, element, alone, pointer = match.groups()
        if pointer not in self.inside:
            return False
        type, count = element or alone, int(width or 1)
        x = "poison"
        for k in range(count):
            one = result if alone else self._new()
            self.out.append(f"  {one} = load {type}, ptr {self._of_thread(type, pointer, k)}")
            if element:
                x, before = (result if k == count - 1 else self._new()), x
                self.out.append(f"  {x} = insertelement <{count} x {type}> {before}, {type} {one}, i32 {k}")
        return True

    def _rewrite_store(self, rest: str) -> bool:
        match = _STORE.fullmatch(rest)
        if match is None:
            raise Unsupported(rest)
        width, element, alone, x, pointer = match.groups()
        if pointer not in self.inside:
            return False
        type, count = element or alone, int(width or 1)
        for k in range(count):
            one = x
            if element:
                one = self._new()
                self.out.append(f"  {one} = extractelement <{count} x {type}> {x}, i32 {k}")
            self.out.append(f"  store {type} {one}, ptr {self._of_thread(type, pointer, k)}")
        return True

    def _rewrite_call(self, rest: str) -> str:
        if "@llvm.masked.gather" in rest:
            match = _GATHER.fullmatch(rest)
            assert match is not None
            call, width, type, pointers, more = match.groups()
            if pointers not in self.inside:
                return rest
            own = self._new()
            self.out.append(f"  {own} = getelementptr inbounds {type}, <{width} x ptr> {pointers}, i32 %t")
            return f"{call} {own}, {more}"
        if "@llvm." in rest or "@part" in rest:
            return rest
        if rest.split("@")[1].split("(")[0] in self.dialect.functions:
            return rest
        raise Unsupported(f"{rest.split('(')[0]} on a GPU")

    def _of_thread(self, type: str, pointer: str, k: int) -> str:
        """Address of this thread's element k behind a pointer into the arena."""
        if k:
            there = self._new()
            self.out.append(f"  {there} = getelementptr inbounds [{THREADS} x {type}], ptr {pointer}, i32 {k}")
            pointer = there
        own = self._new()
        self.out.append(f"  {own} = getelementptr inbounds {type}, ptr {pointer}, i32 %t")
        return own

    def _new(self) -> str:
        self.count += 1
        return f"%w{self.count}"
