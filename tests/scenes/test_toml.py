"""Scenes as TOML files: what is written is read back to the bit, and what is wrong is found with its line."""

import inspect
import math
import os
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carom.collision.shapes import Box, Mesh, Shape, Sphere
from carom.scenes.builder import SceneBuilder
from carom.scenes.formats.errors import FileError
from carom.scenes.formats.toml import parse_toml, read_toml, to_toml, write_toml
from carom.scenes.formats.toml_values import WIDTH
from carom.scenes.joint_specs import Cylindrical, Joint, Motor
from carom.scenes.library.registry import SCENES
from carom.scenes.loop_specs import Distance, Driven, Gear, Rolling, Spring
from carom.scenes.sources import load, save_scene
from carom.scenes.spec import (
    BodySpec,
    LinkSpec,
    LoopSpec,
    PairSpec,
    PlaneSpec,
    SceneSpec,
    SensorSpec,
    SiteSpec,
    StaticSpec,
)

SHAPES, JOINTS = Shape.__subclasses__(), Joint.__subclasses__()
LOOP_JOINTS = [joint for joint in JOINTS if joint.kind != "floating"]

# to the file and back


@pytest.mark.parametrize("name", SCENES)
def test_library_scenes_come_back_to_the_bit(name):
    entry = SCENES[name]
    for parameters in ({}, *(play.parameters for play in entry.plays)):
        scene = entry.build(**parameters)
        text = to_toml(scene)
        assert parse_toml(text) == scene
        assert to_toml(parse_toml(text)) == text
        assert max(map(len, text.splitlines())) < 1.2 * WIDTH


number = st.integers() | st.floats(allow_nan=False)
numbers = st.recursive(number, lambda inner: st.lists(inner, max_size=30).map(tuple), max_leaves=40)
pair = st.tuples(number, number)
name = st.text()


def made(kind: type) -> st.SearchStrategy:
    """Any instance of a dataclass, its fields by their annotations: a new field is covered, or fails here."""
    given = {f.name: OF[f"{kind.__name__}.{f.name}" if kind is LoopSpec and f.name == "joint" else str(f.type)]
             for f in fields(kind)}  # fmt: skip
    optional = {f.name for f in fields(kind) if f.default is not MISSING}
    required = {key: value for key, value in given.items() if key not in optional}
    return st.fixed_dictionaries(required, optional={key: given[key] for key in optional}).map(lambda kw: kind(**kw))


def one_of(kinds: list[type]) -> st.SearchStrategy:
    return st.deferred(lambda: st.one_of([made(kind) for kind in kinds]))


def some(kinds: list[type], most: int = 2) -> st.SearchStrategy:
    return st.lists(one_of(kinds), max_size=most).map(tuple)


OF = {
    "float": number,
    "float | None": number,
    "Numbers": numbers,
    "Numbers | None": numbers,
    "int": st.integers(),
    "bool": st.booleans(),
    "bool | None": st.none() | st.booleans(),
    "str": name,
    "str | None": name,
    "Limits": pair | st.lists(pair | st.none(), max_size=3).map(tuple),
    "Any": name | st.tuples(numbers, numbers),
    "Joint": one_of(JOINTS),
    "Sequence[Shape]": some(SHAPES),
    "Motor | Sequence[Motor | None] | None": one_of([Motor])
    | st.lists(one_of([Motor]) | st.none(), max_size=3).map(tuple),
    "tuple[BodySpec | LinkSpec, ...]": some([BodySpec, LinkSpec], 3),
    "tuple[PlaneSpec | StaticSpec, ...]": some([PlaneSpec, StaticSpec]),
    "tuple[PairSpec, ...]": some([PairSpec]),
    "tuple[LoopSpec, ...]": some([LoopSpec]),
    "tuple[SiteSpec, ...]": some([SiteSpec]),
    "tuple[SensorSpec, ...]": some([SensorSpec]),
    "LoopSpec.joint": one_of([*LOOP_JOINTS, Distance, Spring, Rolling, Gear, Driven]),
    "Callable[[Any], Any] | None": st.none(),
    "tuple[tuple[str, str], ...]": st.just(()),  # their names must exist: below
}


@given(made(SceneSpec), st.data())
def test_any_scene_comes_back_to_the_bit(scene, data):
    names = ["world", *(spec.name for spec in (*scene.links, *scene.statics) if spec.name is not None)]
    some_pairs = st.lists(st.tuples(st.sampled_from(names), st.sampled_from(names)), max_size=3)
    scene = replace(scene, exclusions=data.draw(some_pairs))
    back = parse_toml(to_toml(scene))
    assert back == scene
    assert to_toml(back) == to_toml(scene)  # which tells 1 from 1.0, and 0.0 from -0.0


def test_special_numbers():
    scene = SceneSpec(gravity=(-0.0, math.inf, 1e-320), gap_band=5e-324, rest_speed=0.1 + 0.2)
    assert repr(parse_toml(to_toml(scene))) == repr(scene)
    assert repr(parse_toml(to_toml(SceneSpec(gap_band=math.nan)))) == repr(SceneSpec(gap_band=math.nan))


def test_what_no_file_can_hold():
    with pytest.raises(TypeError, match="has no place in a TOML file"):
        to_toml(SceneSpec(links=(LinkSpec("arm", joint=object()),)))  # pyright: ignore[reportArgumentType]

    with pytest.raises(TypeError, match=r"function is .*a function has no place in a TOML file: give rate"):
        to_toml(SceneSpec(loops=(LoopSpec("arm", Driven(function=math.sin)),)))


def test_as_a_person_would_write_it():
    b = SceneBuilder(gravity=(0, 0, -1.62))
    b.add_plane(friction=0.3, mask=0xFFFFFFFE)
    b.add_body("ball", [Sphere(0.1), Box((0.1, 0.2, 0.3), position=(0, 0, 1))], mass=2.0)
    joint = Cylindrical((0, 0, 1), limits=(None, (-1, 1)), motor=(Motor("position", kp=9.0), None))
    b.add_link("arm", "ball", joint=joint, mass=1.0)
    b.set_pair("steel", "felt", friction=0.2)
    b.exclude("ball", "arm")
    assert (
        to_toml(b.build())
        == inspect.cleandoc("""
        gravity = [0, 0, -1.62]
        exclude = [["ball", "arm"]]

        [[body]]
        name = "ball"
        mass = 2.0

        [[body.shapes]]
        kind = "sphere"
        radius = 0.1

        [[body.shapes]]
        kind = "box"
        half_extents = [0.1, 0.2, 0.3]
        position = [0, 0, 1]

        [[body]]
        name = "arm"
        parent = "ball"
        mass = 1.0

        [body.joint]
        kind = "cylindrical"
        axis = [0, 0, 1]
        motor = [{ kind = "position", kp = 9.0 }, "none"]
        limits = ["none", [-1, 1]]

        [[static]]
        normal = [0.0, 0.0, 1.0]
        friction = 0.3
        mask = 0xFFFFFFFE

        [[pair]]
        material_a = "steel"
        material_b = "felt"
        friction = 0.2
        """)
        + "\n"
    )


# meshes and their paths

TETRAHEDRON = ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)), ((0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3))


def with_mesh(source) -> SceneSpec:
    return SceneSpec(links=(BodySpec("rock", [Mesh(source)]),), statics=(StaticSpec("wall", [Mesh(source)]),))


def source_of(scene: Any) -> Any:
    on_body, on_wall = (owner.shapes[0].source for owner in (scene.links[0], scene.statics[0]))
    assert on_body == on_wall
    return on_body


def test_mesh_of_arrays_stands_in_the_file():
    text = to_toml(with_mesh(TETRAHEDRON))
    assert "[body.shapes.source]\nvertices = [[0, 0, 0], " in text
    assert source_of(parse_toml(text)) == TETRAHEDRON


def test_mesh_paths_are_relative_to_the_files_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("scenes").mkdir()
    relative, absolute = with_mesh("meshes/a.stl"), with_mesh(f"{tmp_path}/b.stl")
    write_toml(relative, "scenes/s.toml")
    assert 'source = "../meshes/a.stl"' in Path("scenes/s.toml").read_text()
    assert read_toml("scenes/s.toml") == relative
    assert source_of(read_toml(tmp_path / "scenes/s.toml")) == f"{tmp_path}/meshes/a.stl"
    write_toml(absolute, "scenes/s.toml")
    assert read_toml("scenes/s.toml") == absolute
    write_toml(relative, "here.toml")
    assert read_toml("here.toml") == relative
    assert source_of(parse_toml(to_toml(relative), "scenes/s.toml")) == "meshes/a.stl"


# writing: all or nothing


def test_a_file_is_replaced_at_once_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "s.toml"
    save_scene(SCENES["pendulum"].build(), path)
    before = path.read_text()
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(FileError, match=r"s.toml: it cannot be written \(No space left on device\)"):
        save_scene(SCENES["stack"].build(), path)
    assert [file.read_text() for file in tmp_path.iterdir()] == [before]


def test_only_toml_is_written(tmp_path):
    with pytest.raises(FileError, match="give a name that ends in"):
        save_scene(SCENES["pendulum"].build(), tmp_path / "pendulum.urdf")
    with pytest.raises(FileError, match="cannot be written"):
        save_scene(SCENES["pendulum"].build(), tmp_path / "nowhere" / "pendulum.toml")


# what `load` says


def test_load_reads_files_and_the_library(tmp_path):
    b = SceneBuilder()
    b.add_body("ball", [Sphere(0.1)])
    save_scene(b, tmp_path / "ball.TOML")
    assert load(tmp_path / "ball.TOML") == b.build()
    assert load("chain", n=3) == SCENES["chain"].build(n=3)


@pytest.mark.parametrize(
    ("source", "parameters", "message"),
    [
        ("pendulm", {}, "no scene named 'pendulm': did you mean 'pendulum'"),
        ("pendulm.toml", {}, "'; the library has a scene 'pendulum', without a suffix"),
        ("zzz.toml", {}, "zzz.toml: there is no such file: give a path that is absolute, or relative to '"),
        ("rooms/kitchen", {}, "rooms/kitchen: there is no such file"),
        ("scene.json", {}, "scene.json: no scene is read from .json: give .toml, .urdf, .xacro, .xml"),
        ("scene", {}, "scene: no scene is read from a file without suffix"),
        ("scene.toml", {"n": 3}, "scene.toml: a TOML file takes no parameters, but n came with it"),
    ],
)
def test_load_says_what_is_wrong(source, parameters, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for file in ("scene.json", "scene.toml", "scene"):
        Path(file).touch()
    with pytest.raises(ValueError) as caught:  # noqa: PT011  the text is compared
        load(source, **parameters)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"gravity = [0, 0, 0]\nname = '\xff'\n", ", line 2: these bytes are not text in UTF-8"),
        (None, ": it cannot be read (Is a directory)"),
    ],
)
def test_what_is_no_text(data, message, tmp_path):
    path = tmp_path / "s.toml"
    path.write_bytes(data) if data is not None else path.mkdir()
    with pytest.raises(FileError) as caught:
        read_toml(path)
    assert message in str(caught.value)


def test_windows_files(tmp_path):
    path = tmp_path / "s.toml"
    path.write_bytes(b"\xef\xbb\xbf# byte order mark\r\ngravity = [0, 0, -1]\r\n\r\n[[body]]\r\nnme = 'a'\r\n")
    with pytest.raises(FileError, match="line 5: body 0: nme is"):
        read_toml(path)
