"""A scene as a static library with a C header, which `carom export SCENE --library FOLDER` writes."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from ...engine.native.portable import TARGETS, Target, check_cpu, library_functions, this_machine
from ..formats.atomic import replacing
from ..live.world import Live
from ..sources import SceneLike
from .exported import Exported
from .header import header_text


def export_library(
    scene: Live | SceneLike,
    folder: str | os.PathLike[str],
    *,
    name: str | None = None,
    targets: Sequence[str] = (),
    cpu: str | None = None,
    **live: Any,
) -> list[Path]:
    """Write a scene as a static library, a C header, a readme and an example into a folder; returns the files.

    scene: a `Live`, or what it takes, then made with the keywords `live`: dtype, dt, law, window, pool,
        probes, ...
    name: an identifier of C, the prefix of all others; None: the scene's.
    targets: names such as "x86_64-linux" (docs/export.md lists them); none: this machine's.
    cpu: the least processor, by LLVM's name, e.g. x86-64-v2; None: each target's default.
    The capacity for contacts of a world in C is fixed at export: if the default is too small, play the `Live` a while
    before, or give it max_contacts.
    """
    chosen = {key: _target(key) for key in targets or (this_machine(),)}
    if cpu:
        for target in chosen.values():
            check_cpu(target, cpu)
    called = identifier(name or (scene if isinstance(scene, str) else "world"))
    made = Exported.of(live_of(scene, live), called)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    written, needed = [], {}
    for key, target in chosen.items():
        code = made.library(target, cpu)
        target_folder = folder if len(chosen) == 1 else folder / key
        target_folder.mkdir(exist_ok=True)
        needed[key] = library_functions(code)
        written.append(_write(target_folder / target.library.format(called), code))
    parts = files(__package__ or __name__) / "parts"
    example = (parts / "example.c").read_text("utf-8").replace("WORLD", called)
    readme = (parts / "readme.txt").read_text("utf-8").replace("WORLD", called)
    for key, names in needed.items():
        if names:
            readme += f"\n{key}: links with C's mathematics library (-lm), for {', '.join(names)}, which are exact.\n"
    written += [_write(folder / f"{called}.h", header_text(made).encode())]
    written += [_write(folder / "example.c", example.encode()), _write(folder / "readme.txt", readme.encode())]
    return written


# words of C and C++, and names of C's library and of the example: no type can be called so
RESERVED = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl concept const const_cast
consteval constexpr constinit continue decltype default delete do double dynamic_cast else enum explicit export extern
false float for friend goto if inline int long main mutable namespace new noexcept not not_eq nullptr operator or
or_eq private protected public register reinterpret_cast requires restrict return short signed sizeof static
static_assert static_cast struct switch template this thread_local throw true try typedef typeid typename union
unsigned using virtual void volatile wchar_t while xor xor_eq typeof typeof_unqual char8_t char16_t char32_t int8_t
int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t linux unix digits printf
"""


def live_of(scene: Live | SceneLike, keywords: dict[str, Any]) -> Live:
    """The world to export."""
    if not isinstance(scene, Live):
        return Live(scene, warm=False, **keywords)
    if keywords:
        raise ValueError(
            f"{', '.join(keywords)}: a Live that is made has these already; give a scene, or leave them out"
        )
    return scene


def identifier(name: str) -> str:
    """Identifier of C, from a scene's name or file."""
    made = re.sub(r"\W", "_", Path(name).stem, flags=re.ASCII).lower()
    return made if made[:1].isalpha() and made not in RESERVED.split() else f"world_{made}"


def _target(name: str) -> Target:
    if name not in TARGETS:
        raise ValueError(f"the target {name!r} is unknown: give {', '.join(TARGETS)}")
    return TARGETS[name]


def _write(path: Path, data: bytes) -> Path:
    with replacing(path) as file:
        file.write(data)
    return path
