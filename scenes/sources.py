"""Where scenes come from: `carom.load`."""

from __future__ import annotations

from typing import Any

from .library.registry import library_scene
from .spec import SceneSpec


def load(source: str, **parameters: Any) -> SceneSpec:
    """A scene of the library by its name, e.g. load("chain", n=4); `carom list` shows the names.

    parameters: keywords of the function that builds the scene.
    """
    return library_scene(source, **parameters)
