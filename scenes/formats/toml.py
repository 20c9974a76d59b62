"""Scenes as TOML files. The format is described in docs/scenes.md.

TOML 1.0 (toml.io), read by the standard library. `toml_reading.py` and `toml_writing.py` know the fields of a scene,
`toml_lines.py` finds the lines of errors.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from ..chains.spec import refuse_chain
from ..compiling.check import SceneError
from ..compiling.order import label_of
from ..spec import SceneSpec
from .atomic import replacing
from .errors import FileError
from .toml_limits import LimitError, check_size, load_toml
from .toml_lines import Keys, line_of
from .toml_plain import WrongValue
from .toml_reading import read_scene
from .toml_writing import to_toml

FilePath = str | PathLike[str]


def read_toml(path: FilePath) -> SceneSpec:
    """The scene in a file. Paths of meshes in it are relative to the file's folder. Raises FileError."""
    folder = os.path.dirname(path)
    scene = parse_toml(_text_of(path), path)
    return _with_paths(scene, lambda source: os.path.normpath(os.path.join(folder, source))) if folder else scene


def parse_toml(text: str, path: FilePath = "<text>") -> SceneSpec:
    """The scene in a text, with paths of meshes as written.  path: its name in errors. Raises FileError."""
    try:
        tables = load_toml(text)
    except LimitError as error:
        raise FileError(path, str(error), error.line) from None
    except ValueError as error:
        raise FileError(path, *_syntax(str(error), text)) from None
    try:
        return read_scene(tables)
    except WrongValue as error:
        raise FileError(path, str(error), line_of(text, error.keys)) from None


def write_toml(scene: SceneSpec, path: FilePath) -> None:
    """Write a file from which `read_toml` reads an equal scene; a file of that name is replaced at once or not at all.

    Paths of meshes that are relative to the current folder become relative to the file's; absolute ones stay.
    """
    folder = os.path.dirname(path) or "."

    def relative(source: str) -> str:
        return source if os.path.isabs(source) else Path(os.path.relpath(source, folder)).as_posix()

    refuse_chain(scene, "TOML")
    text = to_toml(_with_paths(scene, relative))
    try:
        with replacing(path) as file:
            file.write(text.encode())
    except OSError as error:
        raise FileError(path, f"it cannot be written ({error.strerror}): give another path") from None


def locate_error(path: FilePath, error: SceneError) -> SceneError | FileError:
    """An error of `compile_scene` about a scene of a TOML file, with the line; else the error itself."""
    if Path(path).suffix.lower() != ".toml":
        return error
    text = _text_of(path)
    keys = _keys(parse_toml(text, path), error)
    return FileError(path, str(error), line_of(text, keys)) if keys else error


def _keys(scene: SceneSpec, error: SceneError) -> Keys:
    """Keys in the tables of the value of an error; empty if it is not about the scene."""
    field = error.field.split(" ")[0].split(".")  # e.g. motor.kp, q0 (quaternion)
    if error.where == "scene":
        return tuple(field)
    owners = {
        "body": [label_of(spec, k) for k, spec in enumerate(scene.links)],
        "static": [label_of(spec, k) for k, spec in enumerate(scene.statics)],
        "pair": [f"pair rule {k}" for k in range(len(scene.pairs))],
        "exclude": [f"exclusion {k}" for k in range(len(scene.exclusions))],
        "loop": [f"loop {k}" if spec.name is None else f'loop "{spec.name}"' for k, spec in enumerate(scene.loops)],
        "site": [f'site "{spec.name}"' for spec in scene.sites],
        "sensor": [f'sensor "{spec.name}"' for spec in scene.sensors],
    }
    keys: Keys = ()
    for key, names in owners.items():
        for k, owner in enumerate(names):
            if f"{error.where}, ".startswith(f"{owner}, "):  # of bodies with the same name the last is the wrong one
                rest = error.where.removeprefix(owner)
                shape = re.match(r", shape (\d+)", rest)
                inner = ("shapes", int(shape[1])) if shape else ("joint",) if rest else ()
                keys = (key, k, *inner, *field)
    return keys


def _text_of(path: FilePath) -> str:
    try:
        check_size(os.path.getsize(path))
        data = Path(path).read_bytes()
    except LimitError as error:
        raise FileError(path, str(error)) from None
    except FileNotFoundError:
        message = f"there is no such file: give a path that is absolute, or relative to {os.getcwd()!r}"
        raise FileError(path, message) from None
    except (OSError, ValueError) as error:  # ValueError: a path with a zero byte in it
        why = getattr(error, "strerror", None) or str(error)
        raise FileError(path, f"it cannot be read ({why}): give the path of a TOML file") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FileError(path, "these bytes are not text in UTF-8: save the file as UTF-8", line) from None


def _syntax(message: str, text: str) -> tuple[str, int | None]:
    """A message about a text that is not TOML, and its line, from tomllib's: "... (at line 3, column 5)"."""
    fix = "this is not TOML: texts need quotes, lists brackets, and each key a value"
    match = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)", message)
    if not match:
        return f"{message}; {fix}", None
    line = int(match[1] or text.count("\n", 0, len(text.rstrip())) + 1)
    shown = text.split("\n")[line - 1].strip()[:80]
    return f"{message[: match.start()]} in {shown!r}; {fix}", line


def _with_paths(scene: SceneSpec, change: Callable[[str], str]) -> SceneSpec:
    """The scene with other paths of meshes."""

    def with_path(owner: Any) -> Any:
        if not any(shape.kind == "mesh" for shape in getattr(owner, "shapes", ())):
            return owner
        return replace(owner, shapes=tuple(map(shape_with_path, owner.shapes)))

    def shape_with_path(shape: Any) -> Any:
        is_path = shape.kind == "mesh" and isinstance(shape.source, str)
        return replace(shape, source=change(shape.source)) if is_path else shape

    return replace(scene, links=tuple(map(with_path, scene.links)), statics=tuple(map(with_path, scene.statics)))
