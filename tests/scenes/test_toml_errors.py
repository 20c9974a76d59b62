"""What is wrong in a TOML scene: each mistake with its line, its key, its value and the fix, in one message."""

# ruff: noqa: E501  a row of the tables a line

import tomllib

import pytest

from carom.scenes.compile import compile_scene
from carom.scenes.compiling.check import SceneError
from carom.scenes.formats.errors import FileError
from carom.scenes.formats.toml import locate_error, parse_toml, to_toml
from carom.scenes.formats.toml_lines import line_of
from carom.scenes.library.registry import SCENES

GOOD = """\
gravity = [0, 0, -9.81]
exclude = [
  ["ball", "floor"],
  ["arm", "floor"],
]

[[static]]
name = "floor"
normal = [0, 0, 1]

[[body]]
name = "ball"
mass = 1.0
position = [0, 0, 1]
material = "steel"

[[body.shapes]]
kind = "sphere"
radius = 0.1

[[body]]
name = "arm"
mass = 1.0
inertia = [1, 1, 1]
com = [0, 0, -0.5]

[body.joint]
kind = "revolute"
axis = [0, 1, 0]
limits = [-1, 1]
motor = { kind = "position", kp = 10.0 }

[[pair]]
material_a = "steel"
material_b = "steel"
friction = 0.2
"""

# what stands in the file, what in its place, and the message: line, who, key, value and fix
WRONG = {
    # syntax
    "no value": ("mass = 1.0\npos", "mass =\npos", "line 13: Invalid value in 'mass ='; this is not TOML: texts need quotes"),
    "no quotes": ('"sphere"', "sphere", "line 18: Invalid value in 'kind = sphere'; this is not TOML: texts need quotes"),
    "open string": ('"ball"\nmass', '"ball\nmass', "line 12: Illegal character '\\n'"),
    "no bracket": ("[[static]]", "[[static]", "line 7: Expected ']]' at the end of an array declaration"),
    "key twice": ("friction = 0.2", "friction = 0.2\nfriction = 0.3", "line 37: Cannot overwrite a value"),
    "end of file": ("friction = 0.2\n", "friction = [0.2,", "line 36: Invalid value in 'friction = [0.2,'; this is not TOML"),
    "a huge number": ("radius = 0.1", f"radius = {'9' * 5000}", "s.toml: a whole number in it has thousands of digits"),
    # keys
    "misspelt field": ("mass = 1.0\npos", "mas = 1.0\npos", 'line 13: body "ball": mas is 1.0; there is no such key: did you mean "mass"?'),
    "field of another": ("radius = 0.1", "half_extents = [1, 1, 1]", 'line 19: body "ball", shape 0 (sphere): half_extents is [1, 1, 1]; there is no such key: known are "position", "quaternion"'),
    "top key too late": ('"steel"\n\n[[body.', '"steel"\ngap_band = 1e-6\n\n[[body.', 'line 16: body "ball": gap_band is 1e-06; there is no such key: it is the scene\'s, and stands at the top'),
    "misspelt table": ("[[static]]", "[[statics]]", 'line 7: scene: statics is [{ name = "floor", normal = [0, 0, 1] }]; there is no such key: did you mean "static"?'),
    "field of a joint": ("axis = [0, 1, 0]", "axes = [0, 1, 0]", 'line 29: link "arm", joint (revolute): axes is [0, 1, 0]; there is no such key: did you mean "axis"?'),
    "field of a motor": ("kp = 10.0", "ki = 10.0", 'line 31: link "arm", joint (revolute), motor: ki is 10.0; there is no such key: did you mean "kind"?'),
    # kinds
    "unknown shape": ('"sphere"', '"spere"', 'line 18: body "ball", shape 0: kind is "spere"; there is no such kind: did you mean "sphere"?'),
    "unknown joint": ('"revolute"', '"hinge"', 'line 28: link "arm", joint: kind is "hinge"; there is no such kind: known are "fixed", "revolute"'),
    "shape without kind": ('kind = "sphere"\n', "", 'line 17: body "ball", shape 0: kind is missing; add kind, one of sphere, box'),
    "joint without kind": ('kind = "revolute"\n', "", 'line 27: link "arm", joint: kind is missing; add kind, one of fixed, revolute'),
    "kind as a number": ('"sphere"', "3", 'line 18: body "ball", shape 0: kind is 3; there is no such kind: known are "sphere"'),
    # what is missing
    "no name": ('name = "ball"\n', "", "line 11: body 0: name is missing; add name, a text in quotes"),
    "no radius": ("radius = 0.1\n", "", 'line 17: body "ball", shape 0 (sphere): radius is missing; add radius, one number'),
    "no axis": ("axis = [0, 1, 0]\n", "", 'line 27: link "arm", joint (revolute): axis is missing; add axis, a number or a list of numbers'),
    "no material": ('material_b = "steel"\n', "", "line 33: pair rule 0: material_b is missing; add material_b, a text"),
    "link without joint": ("[body.joint]", 'parent = "ball"\n[[body.shapes]]', 'line 21: link "arm": joint is missing; add joint, a table with its kind'),
    # types
    "text for a number": ("mass = 1.0\npos", 'mass = "heavy"\npos', 'line 13: body "ball": mass is "heavy"; it must be one number'),
    "list for a number": ("radius = 0.1", "radius = [0.1]", "line 19: body \"ball\", shape 0 (sphere): radius is [0.1]; it must be one number"),
    "truth for a number": ("radius = 0.1", "radius = true", 'line 19: body "ball", shape 0 (sphere): radius is true; it must be one number'),
    "date for a number": ("radius = 0.1", "radius = 2005-06-01", "shape 0 (sphere): radius is 2005-06-01; it must be one number"),
    "text in a list": ("position = [0, 0, 1]", 'position = [\n  0,\n  0,  # y\n  "up",\n]', 'line 17: body "ball": position is [0, 0, "up"]; it must be made of numbers'),
    "number for a text": ('material = "steel"', "material = 7", 'line 15: body "ball": material is 7; it must be a text, in quotes: such as material = "steel"'),
    "part of a layer": ("radius = 0.1", "radius = 0.1\nmask = 1.5", "line 20: body \"ball\", shape 0 (sphere): mask is 1.5; it must be a whole number, such as 1 or 0b101"),
    "joint as text": ('[body.joint]\nkind = "revolute"\naxis = [0, 1, 0]\nlimits = [-1, 1]\nmotor =', 'joint = "revolute"\n#', 'line 27: link "arm": joint is "revolute"; it must be a table: e.g. joint = { kind ='),
    "motor as text": ('{ kind = "position", kp = 10.0 }', '"position"', 'line 31: link "arm", joint (revolute): motor is "position"; it must be a table, or a list of one a dof, "none" for'),
    "text for a truth": ("exclude = [", 'filtering = "yes"\nexclude = [', 'line 2: scene: filtering is "yes"; it must be true or false, without quotes'),
    "one limit": ("limits = [-1, 1]", "limits = 1", 'line 30: link "arm", joint (revolute): limits is 1; it must be [lower, upper]'),
    "limits as text": ("limits = [-1, 1]", 'limits = [-1, "free"]', 'line 30: link "arm", joint (revolute): limits is [-1, "free"]; it must be [lower, upper]'),
    "one table for many": ("[[static]]", "[static]", "line 7: scene: static is { name = \"floor\", normal = [0, 0, 1] }; it must be a list of tables: write [[static]] above each"),
    "one shape table": ("[[body.shapes]]", "[body.shapes]", 'line 17: body "ball": shapes is { kind = "sphere", radius = 0.1 }; it must be a list of tables: write [[body.shapes]]'),
    "mesh without faces": ('kind = "sphere"\nradius = 0.1', 'kind = "mesh"\nsource = { vertices = [] }', "line 19: body \"ball\", shape 0 (mesh): source is { vertices = [] }; it must be the path of a mesh file, or"),
    # names
    "unknown name": ('["arm", "floor"]', '["arm", "flor"]', 'line 4: scene: exclude is ["arm", "flor"]; there is no "flor": did you mean "floor"?'),
    "one name": ('["arm", "floor"]', '["arm"]', 'line 4: scene: exclude is ["arm"]; it must be a list of pairs of names'),
    # sizes
    "a long key": ("radius = 0.1", ".".join("a" * 3000) + " = 0.1", "line 19: a.a.a.a"),
    "a long header": ("[body.joint]", "[" + ".".join("a" * 100_000) + "]", "a key has at most 10 parts between dots"),
    "deep lists": ("gravity = [0, 0, -9.81]", "gravity = " + "[" * 3000, "line 1: too many lists and tables are in each"),
    "a wide name": ('["arm", "floor"]', f'["arm", "{"x" * 100_000}"]', 'line 4: scene: exclude is ["arm", "xxx'),
    "names in no list": ('exclude = [\n  ["ball", "floor"],\n  ["arm", "floor"],\n]', 'exclude = "ball"', 'line 2: scene: exclude is "ball"; it must be a list of pairs of names'),
}  # fmt: skip

# what only compile_scene knows
WRONG_TO_COMPILE = {
    "negative mass": ("mass = 1.0\npos", "mass = -1.0\npos", 'line 13: body "ball": mass is -1.0; it must be positive'),
    "negative radius": ("radius = 0.1", "radius = -0.1", 'line 19: body "ball", shape 0 (sphere): radius is -0.1; it must'),
    "two numbers": ("[0, 0, 1]\nmat", "[0, 1]\nmat", 'line 14: body "ball": position is (0, 1); its shape must be (3,)'),
    "zero axis": ("axis = [0, 1, 0]", "axis = [0, 0, 0]", 'line 29: link "arm", joint (revolute): axis is (0, 0, 0); it'),
    "no gain": ("kp = 10.0", "kd = 10.0", 'line 31: link "arm", joint (revolute): motor.kp is None; a position motor needs'),
    "unknown parent": ("[body.joint]", 'parent = "bal"\n[body.joint]', "line 27: link \"arm\": parent is 'bal'; it must be"),
    "zero normal": ("normal = [0, 0, 1]", "normal = [0, 0, 0]", 'line 9: plane "floor": normal is (0, 0, 0); it must not'),
    "one name twice": ("friction = 0.2\n", 'friction = 0.2\n[[body]]\nname = "ball"', "line 38: body \"ball\": name is 'ball'; it must be unique"),
    "unknown material": ('material_b = "steel"', 'material_b = "felt"', "line 33: pair rule 0: material is 'felt'; it must"),
    "pair friction": ("friction = 0.2", "friction = -1", "line 36: pair rule 0: friction is -1; it must not be negative"),
    "itself": ('["arm", "floor"]', '["arm", "arm"]', "line 4: exclusion 1: names is ('arm', 'arm'); they must differ"),
    "gravity": ("gravity = [0, 0, -9.81]", "gravity = -9.81", "line 1: scene: gravity is -9.81; its shape must be (3,)"),
    "left out": ("mass = 1.0\ninertia", "inertia", 'line 21: link "arm": mass is None; it must be given together with'),
    "too large to print": ("mass = 1.0\npos", f"mass = 0x{'f' * 5000}\npos", 'line 13: body "ball": mass is a whole number of thousands of digits'),
    "too large": ("radius = 0.1", "radius = 1e308", 'line 19: body "ball", shape 0 (sphere): radius is 1e+308; no number in it may be larger than 1e+12 m'),
    "too small": ("mass = 1.0\npos", "mass = 5e-324\npos", 'line 13: body "ball": mass is 5e-324; no number in it may be smaller than 1e-60 kg'),
    "too large for a float": ("mass = 1.0\npos", f"mass = 1{'0' * 400}\npos", 'line 13: body "ball": mass is 1000'),
}  # fmt: skip


def wrong_text(table, what):
    old, new, message = table[what]
    assert GOOD.count(old) == 1
    return GOOD.replace(old, new), message


def test_the_good_file_is_good():
    compile_scene(parse_toml(GOOD))


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_in_a_file(what):
    text, message = wrong_text(WRONG, what)
    with pytest.raises(FileError) as caught:
        parse_toml(text, "s.toml")
    assert message in str(caught.value)
    assert str(caught.value).startswith("s.toml")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 3000
    assert caught.value.line is None or f"line {caught.value.line}:" in str(caught.value)


@pytest.mark.parametrize("what", WRONG_TO_COMPILE)
def test_what_is_wrong_in_a_scene_is_found_in_its_file(what, tmp_path):
    text, message = wrong_text(WRONG_TO_COMPILE, what)
    path = tmp_path / "s.toml"
    path.write_text(text)
    with pytest.raises(SceneError) as caught:
        compile_scene(parse_toml(text))
    error = locate_error(path, caught.value)
    assert str(error).startswith(f"{path}, {message}")


def test_what_is_not_about_the_file_stays_as_it_is(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text(GOOD)
    with pytest.raises(SceneError) as caught:
        compile_scene(parse_toml(GOOD), "int8")
    assert locate_error(path, caught.value) is caught.value
    assert locate_error("pool_break", caught.value) is caught.value


# lines

STRANGE = (
    r'''# [[body]] and "quotes' in a comment
title.of."the.thing" = """
[[body]] \""" name = "x" """"
'single.key' = [ 1, # [
  [ 2, "]#", '''
    + "'''\n]\n'''"
    + r""", ], # [[body]]
  { a.b = 1, c = [
    3,
    4 ] },
]
when = 1979-05-27 07:32:00 # a blank in it

[ table . "inner" ] # spaces
key = 'it"""
    + r"""s'
[[list]]
[[list.sub]]
x = {}
[[list.sub]]
[list.sub.deep]
x = inf
[[list]]
[[list.sub]]
x = 0b1
"""
)


def test_lines_of_a_strange_file():
    expected = {
        ("title", "of", "the.thing"): 2, ("single.key",): 4, ("single.key", 1): 5, ("single.key", 1, 2): 5,
        ("single.key", 2, "a", "b"): 8, ("single.key", 2, "c", 1): 10, ("when",): 12, ("table",): 14,
        ("table", "inner"): 14, ("table", "inner", "key"): 15, ("list", 0): 16, ("list", 0, "sub", 0, "x"): 18,
        ("list", 0, "sub", 1): 19, ("list", 0, "sub", 1, "deep", "x"): 21, ("list", 1): 22,
        ("list", 1, "sub", 0, "x"): 24, ("list", 1, "sub", 0, "y", 7): 23, ("nothing",): None,
    }  # fmt: skip
    tomllib.loads(STRANGE)
    assert {keys: line_of(STRANGE, keys) for keys in expected} == expected


def leaves(value, keys=()):
    """Keys of all tables and of all values in tables."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*keys, key)
            yield from leaves(inner, (*keys, key))
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for k, inner in enumerate(value):
            yield (*keys, k)
            yield from leaves(inner, (*keys, k))


@pytest.mark.parametrize("name", ["multi_04", "humanoid", "pool_break"])
def test_lines_of_library_scenes(name):
    text = to_toml(SCENES[name].build())
    lines = text.splitlines()
    for keys in leaves(tomllib.loads(text)):
        line = line_of(text, keys)
        key = next(part for part in reversed(keys) if isinstance(part, str))
        assert line is not None
        assert key in lines[line - 1]
