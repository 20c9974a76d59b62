"""Machine code on disk: compiled once, for all later processes.

`~/.cache/carom/native` (or `$XDG_CACHE_HOME/carom/native`, or `$CAROM_CACHE`) holds a file for each program, named by
its key. A file begins with a digest of its content and its key: a file that was cut off, changed, or renamed
is not run, and neither is one that another user could have written. Files are written under another name and then
renamed, so two processes do not disturb each other and a killed process leaves no partial file. Beyond MOST bytes, the
least recently used files are deleted. `CAROM_CACHE=off` turns the cache off.
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
    """The folder of the files; None without a cache."""
    named = os.environ.get("CAROM_CACHE")
    if named == "off":
        return None
    if named:
        return Path(named).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "carom" / "native"


def find(key: str) -> tuple[dict[str, Any], bytes] | None:
    """Find the description and the object code stored under a key."""
    cache_folder = folder()
    if cache_folder is None:
        return None
    path = cache_folder / key
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
    """Store code under a key. It never raises: without a cache everything works, but starts later."""
    cache_folder = folder()
    if cache_folder is None:
        return
    text = json.dumps(description).encode()
    body = len(text).to_bytes(8, "little") + text + code
    try:
        cache_folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _make_room(cache_folder, len(body))
        handle, name = tempfile.mkstemp(dir=cache_folder, prefix=".new-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(MAGIC + _digest(key, body) + body)
            os.replace(name, cache_folder / key)
        except OSError:
            os.unlink(name)
    except OSError:
        return


def _digest(key: str, body: bytes) -> bytes:
    return hashlib.sha256(key.encode() + body).digest()


def _only_mine(status: os.stat_result) -> bool:
    """Return whether no other user could have written the file."""
    if not hasattr(os, "getuid"):
        return True
    return status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _make_room(cache_folder: Path, size: int) -> None:
    """Delete the least recently used files until there is room for this size, and the leftovers of killed processes."""
    entries = []
    for entry in os.scandir(cache_folder):
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
