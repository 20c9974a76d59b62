"""A WebAssembly module of one object file: memory and a stack of its own, functions to call from outside, no imports.

It does the work of a linker for one file and no imports: data get their addresses in memory, which are written into the
code. The format: WebAssembly's core specification, section 5 (modules); the conventions of object files,
https://github.com/WebAssembly/tool-conventions/blob/main/Linking.md. Memory: a forbidden page, the stack, which grows
down, data, and from `heap` on the caller's memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from .portable import Target

TARGET = Target(
    "wasm32-unknown-unknown", "generic", "+simd128,+bulk-memory,+nontrapping-fptoint,+sign-ext", reloc="static"
)
PAGE = 1 << 16
STACK = 1 << 18  # bytes
LOCALS = 50_000  # variables of a function: browsers refuse more
FIRST = 1024  # first byte that may be read or written
MAGIC = b"\0asm\1\0\0\0"
# sections
CUSTOM, TYPE, IMPORT, FUNCTION, MEMORY, GLOBAL, EXPORT, CODE, DATA = 0, 1, 2, 3, 5, 6, 7, 10, 11
# of imports and exports
AS_FUNCTION, AS_TABLE, AS_MEMORY, AS_GLOBAL = range(4)
# parts of an object's section `linking`, and kinds of its symbols
SEGMENTS, SYMBOLS = 5, 8
IS_FUNCTION, IS_DATA, IS_SECTION = 0, 1, 3
UNDEFINED, NAMED = 0x10, 0x40
# relocations: addresses of data in the code and in data, as LEB128 of 5 bytes, signed, and as 4 bytes
ADDRESS_LEB, ADDRESS_SLEB, ADDRESS_I32 = 3, 4, 5
UNCHANGED = {0, 6, 7}  # indices of functions, types and globals do not change: there is one file


class WasmModule(NamedTuple):
    """A module.  code: the module's bytes.  heap: the first byte of memory that the module does not use."""

    code: bytes
    heap: int


def module_of(code: bytes, exported: Iterable[str]) -> WasmModule:
    """Link a module.  code: that of an object file by LLVM.  exported: names of functions."""
    file = _Object(code)
    addresses, top = [], FIRST + STACK
    for (_, data), align in zip(file.segments, file.alignments, strict=True):
        top = (top + (1 << align) - 1) >> align << align
        addresses.append(top)
        top += len(data)
    heap = -(-top // PAGE) * PAGE
    _check_locals(file.sections[CODE])
    body = {number: bytearray(file.sections[number]) for number in (CODE, DATA) if number in file.sections}
    for section, at, kind, symbol, more in file.relocations:
        if kind in UNCHANGED:
            continue
        if kind not in (ADDRESS_LEB, ADDRESS_SLEB, ADDRESS_I32):
            raise ValueError(f"a relocation of kind {kind}, which this linker does not know")
        segment, offset = file.data[symbol]
        address = addresses[segment] + offset + more
        wide = 4 if kind == ADDRESS_I32 else 5
        # the addend of a register may be negative
        bits = (address % 2**32).to_bytes(4, "little")
        body[section][at : at + wide] = bits if kind == ADDRESS_I32 else _encode_padded(address, kind == ADDRESS_SLEB)
    segments = _vector(
        b"\0\x41"
        + _encode_signed(address)
        + b"\x0b"
        + _encode_unsigned(len(data))
        + bytes(body[DATA][at : at + len(data)])
        for address, (at, data) in zip(addresses, file.segments, strict=True)
    )
    exports = [_name("memory") + bytes([AS_MEMORY, 0])]
    exports += [_name(name) + bytes([AS_FUNCTION]) + _encode_unsigned(file.functions[name]) for name in exported]
    stack = b"\x7f\1\x41" + _encode_signed(FIRST + STACK) + b"\x0b"  # a variable i32
    made = {
        TYPE: file.sections[TYPE], FUNCTION: file.sections[FUNCTION],
        MEMORY: _vector([b"\0" + _encode_unsigned(heap // PAGE)]),
        GLOBAL: _vector([stack]), EXPORT: _vector(exports), CODE: bytes(body[CODE]), DATA: segments,
    }  # fmt: skip
    return WasmModule(MAGIC + b"".join(bytes([n]) + _encode_unsigned(len(x)) + x for n, x in made.items()), heap)


def _check_locals(section: bytes) -> None:
    reader = _Reader(section)
    for number in range(reader.read_unsigned()):
        body = _Reader(reader.bytes(reader.read_unsigned()))
        count = 0
        for _ in range(body.read_unsigned()):
            count += body.read_unsigned()
            body.byte()
        if count > LOCALS:
            raise ValueError(
                f"function {number} has {count} variables, and browsers refuse more than {LOCALS}: the "
                "code is not optimised; set CAROM_NATIVE_LEVEL to 2, or leave it unset"
            )


class _Object:
    """A parsed object file.  sections: number -> content.  segments: of data, the offset of each in its
    section, and its bytes.  alignments: of these, as powers of 2.  functions: name -> index.  data: symbol's index ->
    (segment, offset).  relocations: (section, offset, kind, symbol, addend)."""

    def __init__(self, code: bytes) -> None:
        assert code.startswith(MAGIC)
        self.sections: dict[int, bytes] = {}
        self.functions: dict[str, int] = {}
        self.data: dict[int, tuple[int, int]] = {}
        self.alignments: list[int] = []
        self.relocations: list[tuple[int, int, int, int, int]] = []
        order: list[int] = []
        reader = _Reader(code, len(MAGIC))
        while reader.at < len(code):
            number = reader.byte()
            content = reader.bytes(reader.read_unsigned())
            order.append(number)
            if number == CUSTOM:
                inner = _Reader(content)
                name = inner.name()
                if name == "linking":
                    self._linking(inner)
                elif name.startswith("reloc."):
                    section = order[inner.read_unsigned()]
                    self.relocations += [(section, *x) for x in _relocations(inner)] if section != CUSTOM else []
            else:
                self.sections[number] = content
        self._check_imports()
        self.segments = list(_segments(self.sections[DATA])) if DATA in self.sections else []

    def _check_imports(self) -> None:
        """Check that the object file imports only memory, a stack's pointer and a table, no function."""
        reader = _Reader(self.sections.get(IMPORT, b"\0"))
        for _ in range(reader.read_unsigned()):
            reader.name()
            name, kind = reader.name(), reader.byte()
            if kind == AS_FUNCTION:
                raise ValueError(f"the program calls {name}, which a page does not have")
            if kind == AS_GLOBAL:
                assert name == "__stack_pointer", name
                reader.bytes(2)
                continue
            if kind == AS_TABLE:
                reader.byte()
            if reader.byte() & 1:
                reader.read_unsigned()
            reader.read_unsigned()

    def _linking(self, reader: _Reader) -> None:
        reader.read_unsigned()  # version
        while reader.at < len(reader.data):
            kind = reader.byte()
            inner = _Reader(reader.bytes(reader.read_unsigned()))
            if kind == SEGMENTS:
                for _ in range(inner.read_unsigned()):
                    inner.name()
                    self.alignments.append(inner.read_unsigned())
                    inner.read_unsigned()
            if kind == SYMBOLS:
                for number in range(inner.read_unsigned()):
                    self._symbol(number, inner)

    def _symbol(self, number: int, reader: _Reader) -> None:
        kind, flags = reader.byte(), reader.read_unsigned()
        if kind == IS_DATA:
            reader.name()
            if not flags & UNDEFINED:
                self.data[number] = reader.read_unsigned(), reader.read_unsigned()
                reader.read_unsigned()
            return
        index = reader.read_unsigned()
        if kind != IS_SECTION and (not flags & UNDEFINED or flags & NAMED):
            name = reader.name()
            if kind == IS_FUNCTION:
                self.functions[name] = index


def _relocations(reader: _Reader) -> Iterator[tuple[int, int, int, int]]:
    for _ in range(reader.read_unsigned()):
        kind, at, symbol = reader.byte(), reader.read_unsigned(), reader.read_unsigned()
        yield at, kind, symbol, reader.read_signed() if kind in (ADDRESS_LEB, ADDRESS_SLEB, ADDRESS_I32) else 0


def _segments(section: bytes) -> Iterator[tuple[int, bytes]]:
    reader = _Reader(section)
    for _ in range(reader.read_unsigned()):
        assert reader.read_unsigned() == 0  # active, of the first memory
        assert reader.byte() == 0x41  # i32.const
        reader.read_signed()
        assert reader.byte() == 0x0B
        size = reader.read_unsigned()
        yield reader.at, reader.bytes(size)


class _Reader:
    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data, self.at = data, at

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def bytes(self, size: int) -> bytes:
        self.at += size
        return self.data[self.at - size : self.at]

    def read_unsigned(self) -> int:
        return self._leb128()[0]

    def read_signed(self) -> int:
        made, bits = self._leb128()
        return made - (made >> (bits - 1) << bits)

    def _leb128(self) -> tuple[int, int]:
        """Read a number, and the count of bits in which it was written."""
        made = bits = 0
        while True:
            x = self.byte()
            made |= (x & 127) << bits
            bits += 7
            if x < 128:
                return made, bits

    def name(self) -> str:
        return self.bytes(self.read_unsigned()).decode()


def _encode_unsigned(n: int) -> bytes:
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes([*out, n])


def _encode_signed(n: int) -> bytes:
    """Encode a number that is not negative as signed LEB128."""
    out = bytearray()
    while n > 63:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes([*out, n])


def _encode_padded(n: int, signed: bool) -> bytes:
    """Encode a number as LEB128 of 5 bytes."""
    n = n if signed else n % 2**32
    return bytes([*(n >> 7 * k & 127 | 128 for k in range(4)), n >> 28 & 127])


def _name(text: str) -> bytes:
    return _encode_unsigned(len(text)) + text.encode()


def _vector(items: Iterable[bytes]) -> bytes:
    items = list(items)
    return _encode_unsigned(len(items)) + b"".join(items)
