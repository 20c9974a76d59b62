"""The folder of an unfinished sweep: a manifest, and a file for each finished shard.

Files appear complete or not at all, so that files are valid after any kill; the same command computes the missing
ones. Several processes may fill one folder.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..formats.atomic import replacing
from ..formats.errors import FileError
from ..wording import brief

Array = np.ndarray
MANIFEST = "manifest.json"
NAME = re.compile(r"shard-(\d+)\.npz")


class ShardFolder:
    """The folder.  path: it is made; an existing one must belong to the same sweep, else FileError."""

    def __init__(self, path: Path, manifest: Mapping[str, Any]) -> None:
        self.path = path
        manifest = json.loads(json.dumps(manifest))
        file = path / MANIFEST
        if os.path.exists(file):
            _check_same(path, _read(file), manifest)
            return
        if os.path.isdir(path) and any(NAME.fullmatch(name) for name in os.listdir(path)):
            raise FileError(path, f"it has shards, but no {MANIFEST}: remove the folder, and begin again")
        os.makedirs(path, exist_ok=True)
        with replacing(file) as out:
            out.write((json.dumps(manifest, indent=2) + "\n").encode())

    def finished_shards(self) -> set[int]:
        """Numbers of the finished shards; those that were cut off are not finished."""
        numbers = {int(match[1]) for name in os.listdir(self.path) if (match := NAME.fullmatch(name))}
        return {number for number in numbers if zipfile.is_zipfile(self._file(number))}

    def write(self, number: int, arrays: Mapping[str, Array]) -> None:
        with replacing(self._file(number)) as out:
            np.savez(out, allow_pickle=False, **{name: np.asarray(x) for name, x in arrays.items()})

    def read(self, number: int) -> dict[str, Array]:
        file = self._file(number)
        try:
            with np.load(file, allow_pickle=False) as arrays:
                return dict(arrays)
        except (OSError, ValueError, zipfile.BadZipFile, EOFError) as error:
            raise FileError(file, f"it cannot be read ({error}): remove it, and give the command again") from None

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    def _file(self, number: int) -> Path:
        return self.path / f"shard-{number:06d}.npz"


def _read(file: Path) -> dict[str, Any]:
    try:
        manifest = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise FileError(file, f"it is no manifest of a sweep ({error}): remove its folder, and begin again") from None
    return manifest if isinstance(manifest, dict) else {}


def _check_same(path: Path, there: Mapping[str, Any], here: Mapping[str, Any]) -> None:
    different = []
    for name in dict.fromkeys([*here, *there]):
        old, new = there.get(name), here.get(name)
        if old != new and isinstance(old, dict) and isinstance(new, dict):
            inner = [key for key in dict.fromkeys([*new, *old]) if old.get(key) != new.get(key)]
            different += [f"{name}.{key} was {brief(old.get(key))}, and is {brief(new.get(key))}" for key in inner]
        elif old != new:
            different.append(f"{name} was {brief(old)}, and is {brief(new)}")
    if different:
        raise FileError(
            path, f"it belongs to another sweep: {'; '.join(different)}. Give the command that it was begun with, or "
            "remove the folder",
        )  # fmt: skip
