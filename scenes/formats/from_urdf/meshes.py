"""Mesh files that a URDF names: `package://name/path`, `file://path`, or a path relative to the URDF."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

PACKAGE = "package://"


def find_mesh(written: str, urdf: str, package_dirs: Sequence[str | os.PathLike[str]]) -> str | None:
    """The absolute path of a mesh file, None if there is no such file.

    Search order: package_dirs, the folders of ROS_PACKAGE_PATH, the URDF's folder and all folders above it; finally
    without the package's name, for packages whose folder has another name.
    """
    path = written.removeprefix("file://")
    inner = path.removeprefix(PACKAGE)
    folders = list(_folders(urdf, package_dirs))
    names = [inner, inner.partition("/")[2]] if path.startswith(PACKAGE) else [inner]
    for name in filter(None, names):
        for folder in folders:
            if (candidate := folder / name).is_file():  # an absolute name stands for itself
                return str(candidate)
    return None


def _folders(urdf: str, package_dirs: Sequence[str | os.PathLike[str]]) -> Iterator[Path]:
    for folder in (*package_dirs, *filter(None, os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep))):
        yield Path(folder).absolute()
        yield Path(folder).absolute().parent  # the package's own folder was given
    yield from Path(urdf).resolve().parents
