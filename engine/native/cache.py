"""Machine code on disk: compiled once, for every process to come.

`~/.cache/carom/native` (or `$XDG_CACHE_HOME/carom/native`, or `$CAROM_CACHE`) holds a file for each program, named by
its key. A file begins with a digest of all that follows, its key included: one that was cut off, changed, or put under
another name is not run, nor one that somebody else could have written. Files are written beside and moved into place,
so two processes do not disturb each other and a process that is killed leaves nothing half written. Beyond MOST bytes,
those that were used longest ago go. `CAROM_CACHE=off` does without.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import tempfile
from pathlib import Path
from typing import Any

MAGIC = b"carom native 1\n"
MOST = 512 << 20


def folder() -> Path | None:
    """Where the files are; None if there is to be no cache."""
    named = os.environ.get("CAROM_CACHE")
    if named == "off":
        return None
    if named:
        return Path(named).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "carom" / "native"


def find(key: str) -> tuple[dict[str, Any], bytes] | None:
    """What was stored under a key: a description, and object code."""
    place = folder()
    if place is None:
        return None
    path = place / key
    try:
        with open(path, "rb") as file:
            if not _only_mine(os.fstat(file.fileno())):
                return None
            data = file.read()
    except OSError:
        return None
    start = len(MAGIC) + 32
    if data[: len(MAGIC)] != MAGIC or data[len(MAGIC) : start] != _digest(key, data[start:]):
        return None
    size = int.from_bytes(data[start : start + 8], "little")
    description = json.loads(data[start + 8 : start + 8 + size])
    with contextlib.suppress(OSError):
        os.utime(path)
    return description, data[start + 8 + size :]


def store(key: str, description: dict[str, Any], code: bytes) -> None:
    """Never raises: without a cache all works, only later."""
    place = folder()
    if place is None:
        return
    text = json.dumps(description).encode()
    body = len(text).to_bytes(8, "little") + text + code
    try:
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        _make_room(place, len(body))
        handle, name = tempfile.mkstemp(dir=place, prefix=".new-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(MAGIC + _digest(key, body) + body)
            os.replace(name, place / key)
        except OSError:
            os.unlink(name)
    except OSError:
        return


def _digest(key: str, body: bytes) -> bytes:
    return hashlib.sha256(key.encode() + body).digest()


def _only_mine(status: os.stat_result) -> bool:
    """Whether nobody else could have written it."""
    if not hasattr(os, "getuid"):
        return True
    return status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _make_room(place: Path, size: int) -> None:
    """Files used longest ago go until there is room for one of this size; what a killed process left goes too."""
    entries = []
    for entry in os.scandir(place):
        with contextlib.suppress(OSError):
            status = entry.stat()
            entries.append((status.st_mtime, status.st_size, entry.path))
    total = size + sum(n for _, n, _ in entries)
    for _, n, path in sorted(entries):
        if total <= MOST:
            break
        with contextlib.suppress(OSError):
            os.unlink(path)
            total -= n
