"""Files that others load and the format forbids: refused with a reason, or taken with an item in the report."""

import sys
import types
from pathlib import Path

import pytest

from carom.scenes.formats.errors import FileError
from carom.scenes.formats.urdf import import_urdf
from carom.scenes.sources import load
from carom.tests.scenes.test_urdf import HINGE, link, written

GOOD = '<robot name="r">\n' + link("a") + link("b") + HINGE + "</robot>"
MESH = '<collision><geometry><mesh filename="none.stl" scale="1 1 1 1"/></geometry></collision>'
XYZ, LIMITS = "0.3 -0.1 0.2", 'lower="-1" upper="2"'
AXES = '<axis xyz="0 1 0"/><axis xyz="1 0 0"/>'
LATE = "\n\n<?xml version='1.0' encoding='utf-8'?>"
FIRST = "the first 3 of more", "the first 3 numbers count"
# what is odd -> the file, why it is refused, and what lenient=True says it did
ODD = {
    "commas": (GOOD.replace(XYZ, "0.3, -0.1,0.2"), "lenient=True takes commas", "commas in '0.3, -0.1,0.2' are taken"),
    "four numbers": (GOOD.replace(XYZ, XYZ + " 9"), *FIRST),
    "a scale of four": (GOOD.replace("</link>", MESH + "</link>", 1), *FIRST),
    "limits": (GOOD.replace(LIMITS, 'lower="2" upper="-1"'), "or give lenient=True", "2 and -1: swapped"),
    "two axes": (GOOD.replace("<limit", AXES + "<limit"), "keep one", "the first counts"),
    "a late declaration": (LATE + GOOD, "or give lenient=True", "its place does not matter"),
    "zero bytes": (GOOD + "\0\0", "not well-formed", "bytes that are no text"),
}


@pytest.mark.filterwarnings("ignore:.*collision shapes are left out")
@pytest.mark.parametrize("oddity", ODD)
def test_what_the_format_forbids_is_taken_if_asked_for(oddity, tmp_path):
    text, refusal, told = ODD[oddity]
    path, plain = written(tmp_path, text), written(tmp_path / "..", GOOD)
    with pytest.raises(FileError, match=refusal):
        import_urdf(path)
    found = import_urdf(path, lenient=True)
    items = [item for item in found.report.of("approximated") if told in item.why]
    assert len(items) == 1  # however often it was read
    if oddity not in ("two axes", "a scale of four"):
        assert found.scene == import_urdf(plain).scene


@pytest.mark.parametrize("xyz", ["0,3 0,1 0,2", "0.3 x 1", "1,2", "1 2", "1, 2, 3, 4", "1 2 3 nan,", "0.3,,nan,1"])
def test_what_is_not_clear_is_refused_all_the_same(xyz, tmp_path):
    with pytest.raises(FileError, match=r"xyz of <origin> is .*: give 3 numbers"):
        import_urdf(written(tmp_path, GOOD.replace("0.3 -0.1 0.2", xyz)), lenient=True)


def test_a_good_file_is_read_alike(tmp_path):
    path = written(tmp_path, GOOD)
    assert import_urdf(path, lenient=True) == import_urdf(path)


def test_lines_stay(tmp_path):
    lines = []
    for before in ("", LATE):
        with pytest.raises(FileError, match="the type of joint") as error:
            import_urdf(written(tmp_path, before + GOOD.replace('"revolute"', '"hinge"')), lenient=True)
        lines.append(error.value.line)
    assert lines[1] == lines[0] + 2


MACRO = """<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">
<xacro:property name="m" value="${2 * 3}"/>
<link name="a"><inertial><mass value="${m}"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
</link></robot>"""


def macro(folder: Path, text: str = MACRO, name: str = "robot.xacro") -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", ["robot.xacro", "robot.urdf"])
def test_macros_are_expanded_only_if_asked_for(name, tmp_path):
    with pytest.raises(FileError, match=r"it holds <xacro:property>, a macro: give lenient=True"):
        load(macro(tmp_path, name=name))
    with pytest.raises(FileError, match="it is a xacro file: give lenient=True"):
        import_urdf(macro(tmp_path, GOOD))


def test_macros_need_a_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "xacro", None)
    with pytest.raises(FileError, match="which is not installed: pip install xacro"):
        import_urdf(macro(tmp_path), lenient=True)


def test_macros_by_a_package_that_stands_for_xacro(tmp_path, monkeypatch):
    def process_file(path: str) -> types.SimpleNamespace:
        return types.SimpleNamespace(toxml=lambda: made.pop())

    made = [GOOD.replace('"revolute"', '"hinge"'), GOOD]
    monkeypatch.setitem(sys.modules, "xacro", types.SimpleNamespace(process_file=process_file))
    found = import_urdf(macro(tmp_path), lenient=True)
    assert found.scene == import_urdf(written(tmp_path, GOOD)).scene
    assert "expanded by xacro" in found.report.of("approximated")[0].why
    with pytest.raises(FileError, match=r"robot.xacro: the type of joint") as error:
        import_urdf(macro(tmp_path), lenient=True)
    assert not error.value.line  # those of what was expanded would lead nowhere
    with pytest.raises(FileError, match=r"xacro cannot expand it \(IndexError: pop from empty list\)"):
        import_urdf(macro(tmp_path), lenient=True)


@pytest.mark.filterwarnings("ignore:.*approximated")
def test_macros_by_xacro_itself(tmp_path):
    pytest.importorskip("xacro")
    assert load(macro(tmp_path), lenient=True).links[0].mass == 6
    with pytest.raises(FileError, match="xacro cannot expand it"):
        import_urdf(macro(tmp_path, MACRO.replace("2 * 3", "2 * q")), lenient=True)
