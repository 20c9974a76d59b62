"""Static libraries: object files in an `ar` archive with an index of their symbols.

Two dialects of the index: System V's, which linkers of ELF and COFF read (big-endian offsets, names), and BSD's, which
Apple's reads (pairs of places in little-endian). Nothing in a file says when or by whom it was made: the same code is
the same bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

MAGIC = b"!<arch>\n"
HEAD = 60  # bytes before each member


def archive(members: Mapping[str, tuple[bytes, Sequence[str]]], apple: bool = False) -> bytes:
    """members: name of an object file -> (its bytes, the functions that it defines)."""
    symbols = [(symbol, k) for k, (_, some) in enumerate(members.values()) for symbol in some]
    if apple:
        names = b"".join(f"_{symbol}\0".encode() for symbol, _ in symbols)
        names += bytes(-len(names) % 8)
        index_size = 8 + 8 * len(symbols) + len(names)
        long = [f"{name}\0".encode() for name in members]
        heads = [name + bytes(-len(name) % 8) for name in long]  # a name lies before the member's bytes
    else:
        names = b"".join(f"{symbol}\0".encode() for symbol, _ in symbols)
        index_size = 4 + 4 * len(symbols) + len(names)
        heads = [b""] * len(members)
    table = b"" if apple else b"".join(f"{name}/\n".encode() for name in members)
    start = len(MAGIC) + HEAD + _even(index_size) + (HEAD + _even(len(table)) if table else 0)
    places, bodies = [], []
    at = start
    for (_, (code, _)), head in zip(members.items(), heads, strict=True):
        body = head + code + (bytes(-len(code) % 8) if apple else b"")
        places.append(at)
        bodies.append(body)
        at += HEAD + _even(len(body))
    if apple:
        spots, far = [], 0
        for symbol, k in symbols:
            spots.append(struct.pack("<II", far, places[k]))
            far += len(symbol) + 2
        index = struct.pack("<I", 8 * len(symbols)) + b"".join(spots) + struct.pack("<I", len(names)) + names
        out = MAGIC + _member("__.SYMDEF", index)
        titles = [f"#1/{len(head)}" for head in heads]
    else:
        index = struct.pack(">I", len(symbols)) + b"".join(struct.pack(">I", places[k]) for _, k in symbols) + names
        out = MAGIC + _member("/", index) + _member("//", table)
        ends = [0]
        for name in members:
            ends.append(ends[-1] + len(name) + 2)
        titles = [f"/{end}" for end in ends[:-1]]
    for title, body in zip(titles, bodies, strict=True):
        out += _member(title, body)
    return out


def _member(name: str, body: bytes) -> bytes:
    head = f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(body):<10}`\n".encode()
    return head + body + b"\n" * (len(body) % 2)


def _even(n: int) -> int:
    return n + n % 2
