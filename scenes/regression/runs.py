"""Runs of scenes as recordings, in memory."""

from __future__ import annotations

from typing import Any

from numpy.typing import DTypeLike

from ..library.registry import SCENES
from ..recordings.recording import Recording
from ..sources import SceneLike, scene_of_links
from ..spec import SceneSpec


def record_run(scene: SceneLike, *, title: str = "", dtype: DTypeLike | None = None, **keywords: Any) -> Recording:
    """Run a scene, and return the recording.

    scene: a SceneSpec, a SceneBuilder, an import, or an argument of `carom.load`.  title: a name for people.
    dtype: of `carom.compile_scene`.  keywords: of `carom.rollout`; for a scene of the library, the others are those
    with which the library plays it.
    """
    from ...integrators.rollout import rollout
    from ..compile import compile_scene

    spec, title, keywords = resolve_scene(scene, title, keywords, "record_run")
    model, state = compile_scene(spec, dtype)
    return Recording.of(spec, rollout(model, state, **keywords), title=title, keywords=keywords, model=model)


def resolve_scene(
    scene: SceneLike, title: str, keywords: dict[str, Any], taker: str
) -> tuple[SceneSpec, str, dict[str, Any]]:
    """A scene as plain data, its title, and the keywords with those of the library."""
    from ...integrators.options import spread

    usual: dict[str, Any] = {}
    if isinstance(scene, str):
        usual = SCENES[scene].play.keywords if scene in SCENES else {}
        title = title or scene
    return scene_of_links(scene, taker), title or "scene", {**usual, **spread(keywords)}
