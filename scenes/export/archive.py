"""Static libraries: object files in an `ar` archive with an index of their symbols.

Two dialects: System V's, which linkers of ELF and COFF read (its index has big-endian offsets and names, long names of
members lie in a table), and BSD's, which Apple's reads (the index has pairs of offsets in little-endian, each member's
name lies in front of its bytes). Files have no date and no author: the same code gives the same bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

MAGIC = b"!<arch>\n"
HEAD = 60  # bytes of a member's head

Members = Mapping[str, tuple[bytes, Sequence[str]]]


def archive(members: Members, apple: bool = False) -> bytes:
    """Make an archive.  members: name of an object file -> (its bytes, the functions that it defines)."""
    return _bsd(members) if apple else _system_v(members)


def _system_v(members: Members) -> bytes:
    symbols = [(symbol, k) for k, (_, some) in enumerate(members.values()) for symbol in some]
    names = b"".join(f"{symbol}\0".encode() for symbol, _ in symbols)
    table = b"".join(f"{name}/\n".encode() for name in members)
    at = len(MAGIC) + _whole(4 + 4 * len(symbols) + len(names)) + _whole(len(table))
    offsets, bodies, title = [], b"", 0
    for name, (code, _) in members.items():
        offsets.append(at)
        body = _member(f"/{title}", code)
        bodies, at, title = bodies + body, at + len(body), title + len(name) + 2
    index = struct.pack(f">{1 + len(symbols)}I", len(symbols), *(offsets[k] for _, k in symbols)) + names
    return MAGIC + _member("/", index) + _member("//", table) + bodies


def _bsd(members: Members) -> bytes:
    symbols = [(f"_{symbol}\0".encode(), k) for k, (_, some) in enumerate(members.values()) for symbol in some]
    names = b"".join(symbol for symbol, _ in symbols)
    names += bytes(-len(names) % 8)
    at = len(MAGIC) + len(_named_member("__.SYMDEF", bytes(8 + 8 * len(symbols) + len(names))))
    offsets, bodies = [], b""
    for name, (code, _) in members.items():
        offsets.append(at)
        body = _named_member(name, code)
        bodies, at = bodies + body, at + len(body)
    pairs, far = b"", 0
    for symbol, k in symbols:
        pairs, far = pairs + struct.pack("<II", far, offsets[k]), far + len(symbol)
    index = struct.pack("<I", len(pairs)) + pairs + struct.pack("<I", len(names)) + names
    return MAGIC + _named_member("__.SYMDEF", index) + bodies


def _named_member(name: str, body: bytes) -> bytes:
    """A member with its name in front of its bytes, which begin and end at multiples of 8."""
    written = name.encode() + b"\0"
    written += bytes(-(HEAD + len(written)) % 8)
    return _member(f"#1/{len(written)}", written + body + bytes(-len(body) % 8))


def _member(title: str, body: bytes) -> bytes:
    head = f"{title:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(body):<10}`\n".encode()
    return head + body + b"\n" * (len(body) % 2)


def _whole(size: int) -> int:
    """Number of bytes of a member with its head."""
    return HEAD + size + size % 2
