"""The text of one function in LLVM's language, and the values known in its registers."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from ..arena import PADDING, THREADS, Slot
from ..graph import digest
from ..runner import Runner
from ..types import Type, literal, vector


class Module:
    """A module shared by functions: declarations, tables of constants, names."""

    def __init__(self, runner: Runner = Runner.CPU) -> None:
        self.runner, self.small = runner, runner.small
        self.warp = runner is Runner.WARP  # each element of a vector will be a thread's (`warp/`)
        self.declarations: dict[str, str] = {}
        self.functions: list[str] = []
        self.labels = itertools.count()
        self.beyond = 256  # bytes: how far instructions may read beyond the last array
        self.checked = bool(os.environ.get("CAROM_NATIVE_CHECK"))  # `addresses.check_bounds`, `EmittedProgram._bury`
        self._tables: dict[tuple[str, int, bytes], int] = {}
        self._data = bytearray()

    def table(self, data: np.ndarray) -> int:
        """Offset of a constant array in @tables [bytes]; vectors may read beyond its end."""
        key = (data.dtype.str, data.size, digest(data))
        if key not in self._tables:
            self._data += bytes(-len(self._data) % 64)
            self._tables[key] = len(self._data)
            self._data += data.tobytes() + data[-1:].tobytes() * (THREADS if self.warp else PADDING)
        return self._tables[key]

    def text(self) -> str:
        data = bytes(self._data) or bytes(1)
        tables = f'@tables = internal constant [{len(data)} x i8] c"{escape(data)}", align 64'
        return "\n".join([tables, *self.functions, *self.declarations.values(), ATTRIBUTES])


ATTRIBUTES = """attributes #0 = { nounwind noinline "prefer-vector-width"="512" "min-legal-vector-width"="512" }
attributes #1 = { nounwind memory(none) willreturn }"""


def escape(data: bytes) -> str:
    """Return bytes as LLVM's text writes them, \\00 to \\FF: tables may be many megabytes."""
    text = np.full((len(data), 3), ord("\\"), np.uint8)
    text[:, 1:] = np.frombuffer(data.hex().upper().encode(), np.uint8).reshape(-1, 2)
    return text.tobytes().decode()


class Function:
    """A function `void name(ptr %A)`: %A is the arena."""

    def __init__(self, module: Module, name: str, number: int, linkage: str = "internal ") -> None:
        self.module, self.name, self.number, self.linkage = module, name, number, linkage
        # type of indices of arrays: a GPU's registers have 32 bits
        self.index = "i32" if module.runner.on_gpu else "i64"
        self.lines: list[str] = []
        self.block = "entry"
        self._count = itertools.count()
        self._known: list[dict[Hashable, str]] = [{}]

    # instructions

    def let(self, text: str) -> str:
        register = f"%v{next(self._count)}"
        self.lines.append(f"  {register} = {text}")
        return register

    def do(self, text: str) -> None:
        self.lines.append("  " + text)

    def begin(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.block = label

    def call(self, result: str, name: str, args: Sequence[tuple[str, str]], attributes: str = "") -> str:
        """Call a function.  args: (type, value)."""
        declared = f"declare {result} @{name}({', '.join(t for t, _ in args)}) {attributes}"
        self.module.declarations.setdefault(name, declared)
        return self.let(f"call {result} @{name}({', '.join(f'{t} {x}' for t, x in args)})")

    def phi(self, type: str) -> tuple[str, Callable[[Sequence[tuple[str, str]]], None]]:
        """A register whose value depends on the block before, and the function that sets it: (value, block), ..."""
        register, at = f"%v{next(self._count)}", len(self.lines)
        self.lines.append("")

        def set_incoming(ways: Sequence[tuple[str, str]]) -> None:
            pairs = ", ".join(f"[ {x}, %{block} ]" for x, block in ways)
            self.lines[at] = f"  {register} = phi {type} {pairs}"

        return register, set_incoming

    def close(self) -> None:
        self.do("ret void")
        head = f"define {self.linkage}void @{self.name}(ptr noalias align 64 %A) #0 {{\nentry:"
        self.module.functions.append("\n".join([head, *self.lines, "}"]))

    # known values

    def look_up(self, key: Hashable) -> str | None:
        for scope in reversed(self._known):
            if key in scope:
                return scope[key]
        return None

    def keep(self, key: Hashable, register: str) -> str:
        self._known[-1][key] = register
        return register

    def scope_open(self) -> None:
        """Open a scope: values known from here on are forgotten at `scope_close`: control may bypass this code."""
        self._known.append({})

    def scope_close(self) -> None:
        self._known.pop()

    @contextmanager
    def scope(self) -> Iterator[None]:
        self.scope_open()
        yield
        self.scope_close()

    def times(self, index: str, n: int) -> str:
        return self.let(f"mul {self.index} {index}, {n}")

    def as_index(self, x: str) -> str:
        """Extend an i32 to the type of indices."""
        return x if self.index == "i32" else self.let(f"sext i32 {x} to i64")

    def plus(self, index: str, n: str | int) -> str:
        return self.let(f"add {self.index} {index}, {n}")

    # memory and vectors

    def pointer(
        self, base: str, type: Type | None = None, index: str | int = 0, bytes: int = 0, slot: Slot | None = None
    ) -> str:
        """base + bytes + index * size of an element.  slot: the slot that it stays within, if in the arena."""
        if isinstance(index, int):
            bytes, index = bytes + index * (type.bytes if type else 1), ""
        if bytes:
            within = f" ; {slot.offset} {slot.size}" if slot is not None and self.module.warp else ""
            base = self.let(f"getelementptr inbounds i8, ptr {base}, i64 {bytes}{within}")
        if index:
            assert type is not None
            base = self.let(f"getelementptr inbounds {type.stored}, ptr {base}, {self.index} {index}")
        return base

    def load(self, type: Type, width: int, pointer: str, align: int = 0) -> str:
        x = self.let(f"load {vector(type, width, True)}, ptr {pointer}, align {align or type.bytes}")
        if type.kind == "b":
            x = self.let(f"trunc {vector(type, width, True)} {x} to {vector(type, width)}")
        return x

    def store(self, type: Type, width: int, x: str, pointer: str, exact: int | None = None, align: int = 0) -> None:
        """Store a vector.  exact: number of elements that are written."""
        if type.kind == "b":
            x = self.let(f"zext {vector(type, width)} {x} to {vector(type, width, True)}")
        stored = vector(type, width, True)
        if exact is None or exact == width:
            return self.do(f"store {stored} {x}, ptr {pointer}, align {align or type.bytes}")
        if self.module.warp:
            name = f"llvm.masked.store.v{width}{'i8' if type.kind == 'b' else type.suffix}.p0"
            self.module.declarations.setdefault(name, f"declare void @{name}({stored}, ptr, i32, <{width} x i1>)")
            those = f"<{width} x i1> {first_of(width, exact)}"
            return self.do(f"call void @{name}({stored} {x}, ptr {pointer}, i32 {type.bytes}, {those})")
        done = 0
        while done < exact:  # in pieces that are powers of two
            n = 1 << ((exact - done).bit_length() - 1)
            if n == 1:
                part = self.let(f"extractelement {stored} {x}, i32 {done}")
            else:
                part = self.let(f"shufflevector {stored} {x}, {stored} poison, {mask(range(done, done + n))}")
            self.do(
                f"store {vector(type, n, True)} {part}, ptr {self.pointer(pointer, type, done)}, align {type.bytes}"
            )
            done += n

    def scatter(self, type: Type, width: int, x: str, pointer: str, indices: str, exact: int) -> None:
        """Store the first `exact` elements at `indices`, a vector of i32 [elements from the pointer]."""
        if type.kind == "b":
            x = self.let(f"zext {vector(type, width)} {x} to {vector(type, width, True)}")
        stored, P, B = vector(type, width, True), f"<{width} x ptr>", f"<{width} x i1>"
        pointers = self.let(f"getelementptr inbounds {type.stored}, ptr {pointer}, <{width} x i32> {indices}")
        name = f"llvm.masked.scatter.v{width}{'i8' if type.kind == 'b' else type.suffix}.v{width}p0"
        self.module.declarations.setdefault(name, f"declare void @{name}({stored}, {P}, i32, {B})")
        self.do(f"call void @{name}({stored} {x}, {P} {pointers}, i32 {type.bytes}, {B} {first_of(width, exact)})")

    def splat(self, type: Type, width: int, x: str) -> str:
        if width == 1:
            return x
        if not x.startswith("%"):
            return f"<{', '.join([f'{type.llvm} {x}'] * width)}>"
        one = self.let(f"insertelement {vector(type, width)} poison, {type.llvm} {x}, i32 0")
        return self.let(
            f"shufflevector {vector(type, width)} {one}, {vector(type, width)} poison, <{width} x i32> zeroinitializer"
        )

    def freeze(self, type: Type, width: int, x: str) -> str:
        """Freeze x: poison behind the last element of a small array becomes numbers, safe to divide by or to read."""
        return x if width == 1 else self.let(f"freeze {vector(type, width)} {x}")

    def extract(self, type: Type, width: int, x: str, k: int) -> str:
        return x if width == 1 else self.let(f"extractelement {vector(type, width)} {x}, i32 {k}")

    def shuffle(self, type: Type, width: int, x: str, y: str, picks: Sequence[int]) -> str:
        """Elements of x and y, concatenated; -1 for any. The result has len(picks) elements, a power of two."""
        if width == 1:
            return x if len(picks) == 1 else self.splat(type, len(picks), x)
        T = vector(type, width)
        if len(picks) == 1:
            return (
                self.extract(type, width, x, picks[0])
                if picks[0] < width
                else self.extract(type, width, y, picks[0] - width)
            )
        return self.let(f"shufflevector {T} {x}, {T} {y}, {mask(picks)}")

    # loops

    def counted_loop(
        self,
        count: int | str,
        step: int,
        body: Callable[..., Sequence[str] | None],
        carry: Sequence[tuple[str, str]] = (),
    ) -> list[str]:
        """Loop: body(i, *carry) -> next carry, for i = 0, step, ... below count, not 0. carry: (type, first value)."""
        label, before = f"count{next(self.module.labels)}", self.block
        self.do(f"br label %{label}")
        self.begin(label)
        i, set_i = self.phi(self.index)
        phis = [self.phi(t) for t, _ in carry]
        with self.scope():
            after = body(i, *(register for register, _ in phis)) or ()
        more = self.let(f"add nuw nsw {self.index} {i}, {step}")
        again = self.let(f"icmp ult {self.index} {more}, {count}")
        set_i([("0", before), (more, self.block)])
        for (_, set_incoming), (_, first), x in zip(phis, carry, after, strict=True):
            set_incoming([(first, before), (x, self.block)])
        self.do(f"br i1 {again}, label %{label}, label %{label}.end")
        self.begin(f"{label}.end")
        return list(after)


def power_of_two(n: int) -> int:
    """The least power of two that is at least n."""
    return 1 << max(0, n - 1).bit_length()


def mask(picks: Sequence[int] | range) -> str:
    return f"<{len(picks)} x i32> <{', '.join('i32 poison' if k < 0 else f'i32 {k}' for k in picks)}>"


def first_of(width: int, count: int) -> str:
    """A vector of bools, the first `count` of which are true."""
    return f"<{', '.join(f'i1 {str(k < count).lower()}' for k in range(width))}>"


def constant(type: Type, elements: Sequence[float], width: int) -> str:
    """A vector of constants, with poison behind the last."""
    if width == 1:
        return literal(type, elements[0])
    written = [f"{type.llvm} {literal(type, x)}" for x in elements]
    return f"<{', '.join(written + [f'{type.llvm} poison'] * (width - len(written)))}>"
