"""Runs of scenes as recordings, in memory."""

from __future__ import annotations

from typing import Any

from numpy.typing import DTypeLike

from ..chains.spec import refuse_chain
from ..library.registry import SCENES
from ..recordings.recording import Recording
from ..sources import load
from ..spec import SceneSpec


def record_run(scene: Any, *, title: str = "", dtype: DTypeLike | None = None, **keywords: Any) -> Recording:
    """Run a scene, and return the recording.

    scene: a SceneSpec, a SceneBuilder, or an argument of `carom.load`.  title: a name for people.
    dtype: of `carom.compile_scene`.  keywords: of `carom.rollout`; for a scene of the library, the others are those
    with which the library plays it.
    """
    from ...integrators.rollout import rollout
    from ..compile import compile_scene

    spec, title, keywords = resolve_scene(scene, title, keywords)
    model, state = compile_scene(spec, dtype)
    return Recording.of(spec, rollout(model, state, **keywords), title=title, keywords=keywords, model=model)


def resolve_scene(scene: Any, title: str, keywords: dict[str, Any]) -> tuple[SceneSpec, str, dict[str, Any]]:
    """A scene as plain data, its title, and the keywords with those of the library."""
    from ...integrators.options import spread

    usual: dict[str, Any] = {}
    if isinstance(scene, str):
        usual = SCENES[scene].play.keywords if scene in SCENES else {}
        scene, title = load(scene), title or scene
    spec = scene.build() if hasattr(scene, "build") else scene
    refuse_chain(spec, title or "scene")
    return spec, title or "scene", {**usual, **spread(keywords)}
