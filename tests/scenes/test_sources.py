"""What functions take as a scene: every form is the same scene."""

from pathlib import Path

import pytest

import carom
from carom.scenes.formats.report import Imported, ImportReport
from carom.scenes.sources import scene_of, scene_of_links


def drop() -> carom.SceneBuilder:
    b = carom.SceneBuilder()
    b.add_body("ball", [carom.Sphere(0.1)], position=(0, 0, 1))
    return b


def test_each_form_is_the_same_scene(tmp_path: Path):
    built = drop().build()
    carom.save_scene(built, tmp_path / "drop.toml")
    imported = Imported(built, ImportReport("drop.urdf"))
    forms = [built, drop(), imported, tmp_path / "drop.toml", str(tmp_path / "drop.toml")]
    assert [scene_of_links(form, "test") == built for form in forms] == [True] * len(forms)
    assert scene_of("stack") == carom.load("stack")
    assert scene_of("hanging_chain") == carom.load("hanging_chain")


def test_what_is_no_scene_is_refused_by_name():
    with pytest.raises(TypeError, match="scene is 3: it must be a SceneSpec, a SceneBuilder"):
        scene_of(3)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="sweep: a planar chain is not a scene of links and joints"):
        scene_of_links("hanging_chain", "sweep")
