"""A scene as a static library with a C header: what `carom export SCENE --library FOLDER` writes."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...engine.native.portable import INEXACT, TARGETS, Target, library_functions, objects, this_machine
from ...engine.packed import Packed, packed
from ...engine.topology import Topology
from ..formats.atomic import replacing
from ..live.world import Live
from .archive import archive
from .fields import Fields, fields_of
from .functions import Compiled, compiled, functions_of
from .glue import Layout, basics_text, function_text
from .header import header_text
from .programs import Programs


class Pointer(NamedTuple):
    """A function that says where an array is.  name: the function's.  place: in the world [bytes].
    constant: the caller must not write it.  says: what it holds.  whole: of whole numbers."""

    name: str
    place: int
    constant: bool
    says: str
    whole: bool = False


@dataclass(frozen=True)
class Exported:
    """A world, translated: of no machine yet.  name: an identifier of C, in front of every other."""

    name: str
    topology: Topology
    dt: float
    fields: Fields
    functions: tuple[Compiled, ...]
    layout: Layout
    pointers: tuple[Pointer, ...]

    @staticmethod
    def of(live: Live, name: str) -> Exported:
        """Of a world as it was when it was made."""
        fields = fields_of(live)
        programs = Programs(live, fields)
        functions = tuple(compiled(function, fields) for function in functions_of(programs))
        layout = Layout.of(fields, functions)
        return Exported(name, live.model.topology, live.dt, fields, functions, layout, _pointers(live, fields, layout))

    def texts(self, target: Target, heap: bool = True) -> dict[str, tuple[str, list[str]]]:
        """Modules for a machine: name of each -> its text, and the functions that it defines."""
        pointers = {p.name: p.place for p in self.pointers}
        own = ["size", "init", "reset", "save", *pointers, *(("create", "free") if heap else ())]
        basics = basics_text(self.name, self.fields, self.layout, pointers, heap)
        texts = {self.name: (basics, [f"{self.name}_{x}" for x in own])}
        for made in self.functions:
            whole = f"{self.name}_{made.function.name}"
            texts[whole] = function_text(self.name, made, self.fields, self.layout, target.triple), [whole]
        return texts

    def library(self, target: Target, cpu: str | None = None) -> bytes:
        """The static library for a machine."""
        texts = self.texts(target)
        code = objects({name: text for name, (text, _) in texts.items()}, target, cpu)
        for name, one in code.items():
            if called := library_functions(one, INEXACT):
                raise ValueError(
                    f"{name} calls {', '.join(called)} of C's library, which are not the same everywhere: this scene "
                    "cannot be exported"
                )
        return archive(
            {f"{name}.o": (code[name], symbols) for name, (_, symbols) in texts.items()}, "apple" in target.triple
        )


def export_library(
    scene: Any,
    folder: str | os.PathLike[str],
    *,
    name: str | None = None,
    targets: Sequence[str] = (),
    cpu: str | None = None,
    **live: Any,
) -> list[Path]:
    """Write a scene as a static library, a C header, a readme and an example into a folder; returns the files.

    scene: a `Live`, or what it takes, then made with the keywords `live`: dtype, dt, law, window, pool, ...
    name: an identifier of C, in front of every other; None: the scene's.
    targets: names such as "x86_64-linux" (docs/export.md lists them); none: this machine's.
    cpu: the least processor, by LLVM's name, as x86-64-v2; None: each target's default.
    A world in C has the room for contacts that it is exported with: play the `Live` a while before, or give it
    max_contacts, where the default is too small.
    """
    chosen = {key: _target(key) for key in targets or (this_machine(),)}
    called = identifier(name or (scene if isinstance(scene, str) else "world"))
    made = Exported.of(live_of(scene, live), called)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    written, needed = [], {}
    for key, target in chosen.items():
        code = made.library(target, cpu)
        place = folder if len(chosen) == 1 else folder / key
        place.mkdir(exist_ok=True)
        needed[key] = library_functions(code)
        written.append(_write(place / target.library.format(called), code))
    parts = files(__package__ or __name__) / "parts"
    example = (parts / "example.c").read_text("utf-8").replace("WORLD", called)
    readme = (parts / "readme.txt").read_text("utf-8").replace("WORLD", called)
    for key, names in needed.items():
        if names:
            readme += f"\n{key}: links with C's mathematics library (-lm), for {', '.join(names)}, which are exact.\n"
    written += [_write(folder / f"{called}.h", header_text(made).encode())]
    written += [_write(folder / "example.c", example.encode()), _write(folder / "readme.txt", readme.encode())]
    return written


def live_of(scene: Any, keywords: dict[str, Any]) -> Live:
    """The world to export."""
    if not isinstance(scene, Live):
        return Live(scene, warm=False, **keywords)
    if keywords:
        raise ValueError(
            f"{', '.join(keywords)}: a Live that is made has these already; give a scene, or leave them out"
        )
    return scene


def identifier(name: str) -> str:
    """Of C, from a scene's name or file."""
    made = re.sub(r"\W", "_", Path(name).stem, flags=re.ASCII).lower()
    return made if made[:1].isalpha() else f"world_{made}"


def _target(name: str) -> Target:
    if name not in TARGETS:
        raise ValueError(f"the target {name!r} is unknown: give {', '.join(TARGETS)}")
    return TARGETS[name]


def _pointers(live: Live, fields: Fields, layout: Layout) -> tuple[Pointer, ...]:
    wide, known, at, parameters = fields.all["q"].start.dtype.itemsize, {}, 0, packed(live.model)
    assert isinstance(parameters, Packed)
    for name, shape in parameters.shapes:
        known[name] = layout.places["parameters"] + wide * at
        at += int(np.prod(shape, dtype=int))
    places = layout.places
    return (
        Pointer("time", places["t"], True, "[s]"),
        Pointer("poses", places["pose"], True, "7 a body: x y z of its origin [m], w x y z"),
        Pointer("velocities", places["velocity"], True, "6 a body: angular [rad/s], of its centre of mass [m/s]"),
        Pointer("asleep", places["asleep"], True, "one a body: 1 where it sleeps", True),
        Pointer("motors", places["motors"], False, "one a degree of freedom: what it is told"),
        Pointer("friction", known["pair_friction"], False, "one a pair of shapes"),
        Pointer("restitution", known["pair_restitution"], False, "one a pair of shapes"),
    )


def _write(path: Path, data: bytes) -> Path:
    with replacing(path) as file:
        file.write(data)
    return path
