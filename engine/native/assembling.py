"""Object code of a large program, made by several processes.

llvmlite lets one thread of a process at a time into LLVM, so parts of the text go to processes that have nothing else
to do. How a text is cut depends on nothing but the text: the code is the same on every machine.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from . import machine

PART = 1 << 20  # characters of a part: a fifth of a second to start a process, half a second or more of work
_FUNCTION = re.compile(r"^define internal (void @\w+\(ptr noalias align 64 %A\)) #0 \{\n.*?^\}\n", re.M | re.S)
_TABLES = re.compile(r"^@tables = internal (constant \[\d+ x i8\]) .*\n", re.M)
_SHARED = re.compile(r"^(?:declare|attributes) .*\n", re.M)


def assemble_parts(text: str, target: Any) -> bytes:
    """Assemble LLVM's text of a program into the object code of its parts.

    target: `machine.target()`, which is what other processes assemble for.
    """
    parts = cut(text)
    helpers = min(_processors() - 1, len(parts) - 1)
    if helpers < 1 or not os.path.basename(sys.executable or "").startswith("python"):
        return pack([machine.assemble(part, target) for part in parts])
    with ThreadPoolExecutor(helpers) as pool:
        waiting = [pool.submit(_with_help, part) for part in parts]
        mine = {k: machine.assemble(parts[k], target) for k in reversed(range(len(parts))) if waiting[k].cancel()}
        return pack(
            [
                mine[k] if k in mine else waiting[k].result() or machine.assemble(part, target)
                for k, part in enumerate(parts)
            ]
        )


def cut(text: str) -> list[str]:
    """Cut a text into texts of modules that call each other's functions."""
    functions = list(_FUNCTION.finditer(text))
    groups: list[list[re.Match[str]]] = [[]]
    size = 0
    for function in functions:
        if groups[-1] and size + len(function[0]) > PART:
            groups.append([])
            size = 0
        groups[-1].append(function)
        size += len(function[0])
    if len(groups) == 1:
        return [text]
    rest = _FUNCTION.sub("", text)
    shared = "".join(_SHARED.findall(rest))
    parts = []
    for k, group in enumerate(groups):
        others = "".join(f"declare hidden {f[1]}\n" for other in groups if other is not group for f in other)
        own = "".join(f[0].replace("define internal", "define hidden", 1) for f in group)
        if k == 0:
            parts.append(_TABLES.sub(lambda x: x[0].replace("internal", "hidden", 1), rest) + others + own)
        else:
            tables = _TABLES.sub(r"@tables = external hidden \1, align 64\n", _TABLES.search(rest)[0])  # type: ignore[index]
            parts.append(tables + shared + others + own)
    return parts


def pack(objects: Sequence[bytes]) -> bytes:
    return b"".join(len(x).to_bytes(8, "little") + x for x in objects)


def unpack(packed: bytes) -> list[bytes]:
    objects = []
    while packed:
        size = 8 + int.from_bytes(packed[:8], "little")
        objects.append(packed[8:size])
        packed = packed[size:]
    return objects


def _with_help(text: str) -> bytes | None:
    """The object code, made by another process; None if that fails."""
    try:
        done = subprocess.run(
            [sys.executable, "-P", machine.__file__], input=text.encode(), capture_output=True, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout


def _processors() -> int:
    named = os.environ.get("CAROM_NATIVE_PROCESSES")
    if named:
        return int(named)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
