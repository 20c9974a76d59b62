"""docs/scenes.md: its example runs, its errors are the ones users get, its tables have every field and default."""

import re
from dataclasses import Field, fields
from pathlib import Path

import pytest

from carom.collision.shapes import Shape
from carom.engine.sensors import KINDS
from carom.scenes.compile import compile_scene
from carom.scenes.compiling.check import SceneError
from carom.scenes.formats.errors import FileError
from carom.scenes.formats.settings import apply_setting, parse_setting, variation_values
from carom.scenes.formats.toml import locate_error, parse_toml, read_toml
from carom.scenes.formats.toml_values import is_required, key_of, spell
from carom.scenes.joint_specs import Joint, Motor
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

PAGE = (Path(__file__).parents[2] / "docs" / "scenes.md").read_text()
(EXAMPLE,) = re.findall(r"^```toml\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
SECTIONS = dict(part.split("\n", 1) for part in PAGE.split("\n## ")[1:])
ERRORS = re.findall(r"^    scene\.toml, (.*)$", SECTIONS["What is wrong"], flags=re.MULTILINE)

TABLES = {
    "The scene": SceneSpec, "A free body: `[[body]]`": BodySpec, "A link: `[[body]]` with `[body.joint]`": LinkSpec,
    "Joints: `kind =`": Joint, "Motors: `motor = { kind = ... }`": Motor, "Shapes: `kind =`": Shape,
    "A plane: `[[static]]` with `normal`": PlaneSpec, "Static geometry: `[[static]]` with shapes": StaticSpec,
    "What happens between materials: `[[pair]]`": PairSpec, "Loops: `[[loop]]` with `[loop.joint]`": LoopSpec,
    "Sites: `[[site]]`": SiteSpec, "Sensors: `[[sensor]]`": SensorSpec,
}  # fmt: skip


def rows(title: str, header: str) -> list[list[str]]:
    """Cells of the table of a section whose first column has this header."""
    table = SECTIONS[title].split(f"| {header} |", 1)[1].split("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def default(field: Field) -> str:
    """As the page writes it: nothing where None stands for what the last column says."""
    if is_required(field):
        return "required"
    return "" if field.default is None else f"`{spell(field.default)}`"


@pytest.mark.parametrize("title", TABLES)
def test_tables_have_every_key_and_its_default(title):
    expected = {f"`{key_of(field)}`": default(field) for field in fields(TABLES[title])}
    assert {key: usual for key, _, usual, _ in rows(title, "key")} == expected


@pytest.mark.parametrize(("title", "base"), [("Joints: `kind =`", Joint), ("Shapes: `kind =`", Shape)])
def test_tables_have_every_kind_and_its_keys(title, base):
    shared = {field.name for field in fields(base)}
    kinds = {kind.kind: {field.name for field in fields(kind)} - shared for kind in base.__subclasses__()}
    found = {kind.strip("`"): set(re.findall(r"`(\w+)`", keys)) for kind, keys, _ in rows(title, "kind")}
    assert found == kinds


def test_every_kind_of_loop_is_there():
    table = rows("Loops: `[[loop]]` with `[loop.joint]`", "kind")
    found = {kind.strip("`"): set(re.findall(r"`(\w+)`", keys)) for kind, keys, _ in table}
    kinds = (Distance, Spring, Rolling, Gear, Driven)
    assert found == {kind.kind: {field.name for field in fields(kind)} - {"function"} for kind in kinds}
    (text,) = re.findall(r"^```\n(\[\[loop.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
    assert parse_toml(text).loops[0].position_b == (0.8, 0, 0)


def test_every_kind_of_sensor_is_there():
    found = {kind.strip("`"): at.removeprefix("a ") for kind, at, _ in rows("Sensors: `[[sensor]]`", "kind")}
    assert found == {kind: KINDS[kind].at for kind in KINDS}
    (text,) = re.findall(r"^```\n(\[\[site.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
    scene = parse_toml(f'{text}[[body]]\nname = "ball"\nmass = 1.0\ninertia = [1, 1, 1]\n')
    assert compile_scene(scene)[0].topology.sensors[0].site == 0


def test_the_example_compiles():
    model, state = compile_scene(parse_toml(EXAMPLE))
    assert model.topology.names == ("ball", "rod")
    assert state.v[3] == 2.0  # the ball's, along x [m/s]
    assert float(model.pair_friction.min()) == 0.2  # between ivory and felt


def test_the_errors_are_those_that_users_get(tmp_path):
    path = tmp_path / "scene.toml"
    path.write_text(EXAMPLE.replace("restitution = 0.8", "restituton = 0.8"))
    with pytest.raises(FileError) as caught:
        read_toml(path)
    assert str(caught.value) == f"{tmp_path}/scene.toml, {ERRORS[0]}"
    path.write_text(EXAMPLE.replace("radius = 0.1\n", "radius = -0.1\n"))
    with pytest.raises(SceneError) as caught:
        compile_scene(read_toml(path))
    assert str(locate_error(path, caught.value)) == f"{tmp_path}/scene.toml, {ERRORS[1]}"


def test_save_and_load(tmp_path):
    scene = load("pool_break")
    save_scene(scene, tmp_path / "mine.toml")
    assert load(tmp_path / "mine.toml") == scene


def test_the_settings_lead_somewhere():
    scene = parse_toml(EXAMPLE)
    settings = re.findall(r"^\| `(.*?)` \| (.*) \|$", SECTIONS["One change at a time"], flags=re.MULTILINE)
    assert len(settings) == 9
    for text, what in settings:
        if "--vary" in what:
            path, values = variation_values(text, 3)
            assert values == pytest.approx([0.1, 0.5, 0.9])
            assert apply_setting(scene, path, values[0]) != scene
        else:
            assert apply_setting(scene, *parse_setting(text)) != scene
