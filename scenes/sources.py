"""Sources of scenes: `carom.load`, `carom.save_scene`, and what functions take as a scene."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias, overload

from .builder import SceneBuilder
from .chains.spec import ChainSpec, refuse_chain
from .formats.errors import FileError
from .formats.report import Imported
from .library.planar_chains import ChainName
from .library.registry import CHAINS, SCENES, library_scene
from .spec import SceneSpec
from .wording import brief

SceneLike: TypeAlias = SceneSpec | SceneBuilder | Imported | ChainSpec | str | PathLike[str]


@overload
def load(source: ChainName, **parameters: Any) -> ChainSpec: ...
@overload
def load(source: str | PathLike[str], **parameters: Any) -> SceneSpec: ...
def load(source: str | PathLike[str], **parameters: Any) -> SceneSpec | ChainSpec:
    """Load a scene of the library by its name, e.g. load("chain", n=4), or a .toml, .urdf, .xacro or MJCF .xml file.

    Returns a SceneSpec; of the library's planar chains, e.g. load("dropped_chain"), a ChainSpec.
    parameters: keywords of the function that builds the library's scene; `carom list` shows the names. For robots those
    of `carom.import_urdf` and `carom.import_mjcf`, which also return a report on everything in the file; here parts
    that could not be read unchanged raise a warning.
    Raises FileError, with the line of the error, and ValueError for a name that is not in the library.
    """
    path = os.fspath(source)
    if path in SCENES or path in CHAINS:
        return library_scene(path, **parameters)
    suffix = Path(path).suffix.lower()
    if suffix not in _READERS and not os.path.exists(path) and os.path.basename(path) == path:
        return library_scene(path)  # which says that there is none
    if os.path.isdir(path):
        raise FileError(path, f"it is a folder: give a scene's file in it, of type {', '.join(_READERS)}")
    if not os.path.isfile(path):
        raise FileError(path, f"there is no such file{_hint(path)}")
    if suffix not in _READERS:
        raise FileError(path, f"no scene is read from {suffix or 'a file without suffix'}: give {', '.join(_READERS)}")
    return _READERS[suffix](path, **parameters)


def scene_of(source: SceneLike) -> SceneSpec | ChainSpec:
    """Return the scene itself: what a SceneBuilder builds, that of an import, or that of `load`."""
    if isinstance(source, SceneBuilder):
        return source.build()
    if isinstance(source, Imported):
        return source.scene
    if isinstance(source, (str, PathLike)):
        return load(source)
    if not isinstance(source, (SceneSpec, ChainSpec)):
        fix = "it must be a SceneSpec, a SceneBuilder, what an import returns, a name of the library, or a file's path"
        raise TypeError(f"scene is {brief(source)}: {fix}")
    return source


def scene_of_links(source: SceneLike, taker: str) -> SceneSpec:
    """Return the scene itself; raise if it is a planar chain.  taker: the function that needs links and joints."""
    scene = scene_of(source)
    refuse_chain(scene, taker)
    assert isinstance(scene, SceneSpec)
    return scene


def save_scene(scene: SceneSpec | SceneBuilder, path: str | PathLike[str]) -> None:
    """Write a scene (or that of a SceneBuilder) as a TOML file, which `load` reads back. Raises FileError."""
    from .formats.toml import write_toml

    if Path(path).suffix.lower() != ".toml":
        raise FileError(path, "scenes are written as TOML: give a name that ends in .toml")
    write_toml(scene.build() if isinstance(scene, SceneBuilder) else scene, path)


def _hint(path: str) -> str:
    near = get_close_matches(Path(path).stem, SCENES | CHAINS, n=1, cutoff=0.75)
    here = f"give a path that is absolute, or relative to {os.getcwd()!r}"
    return f": {here}; the library has a scene {near[0]!r}, without a suffix" if near else f": {here}"


def _toml(path: str, **parameters: Any) -> SceneSpec:
    from .formats.toml import read_toml

    if parameters:
        given = ", ".join(parameters)
        raise FileError(path, f"a TOML file takes no parameters, but {given} came with it: change the file")
    return read_toml(path)


def _urdf(path: str, **parameters: Any) -> SceneSpec:
    from .formats.urdf import import_urdf

    return _warn(import_urdf(path, **parameters))


def _mjcf(path: str, **parameters: Any) -> SceneSpec:
    from .formats.mjcf import import_mjcf

    return _warn(import_mjcf(path, **parameters))


def _warn(imported: Imported) -> SceneSpec:
    scene, report = imported
    if report.of("approximated"):
        reader = "import_urdf" if report.source.lower().endswith((".urdf", ".xacro")) else "import_mjcf"
        text = f"{report.source}: {report.summary}; carom.{reader}(path).report says what was approximated, and how"
        warnings.warn(text, stacklevel=4)
    return scene


# readers import heavy libraries, each only when its files are read
_READERS: dict[str, Callable[..., SceneSpec]] = {
    ".toml": _toml, ".urdf": _urdf, ".xacro": _urdf, ".xml": _mjcf, ".mjcf": _mjcf,
}  # fmt: skip
