"""Bad URDF files: each gets one message, with its line and what to do."""

import pytest

from carom.scenes.formats.errors import FileError
from carom.scenes.formats.urdf import import_urdf
from carom.tests.scenes.test_urdf import HINGE, joint, link, written

GOOD = '<robot name="r">\n' + link("a") + link("b") + HINGE + "</robot>"
BAD = {
    "not XML": (GOOD.replace("</robot>", "</robt>"), r"line 7: it is not XML: mismatched tag"),
    "another format": ("<mujoco/>", r"line 1: it begins with <mujoco>, and must begin with <robot>"),
    "no links": ('<robot name="r"/>', r"there is no <link>"),
    "two roots": (GOOD.replace(HINGE, ""), r'2 roots \("a", "b"\): join them by a joint'),
    "a circle": (GOOD.replace("</robot>", joint("k", "fixed", "b", "a") + "</robot>"), "every link hangs on another"),
    "two parents": (
        GOOD.replace("</robot>", link("c") + joint("k", "fixed", "c", "b") + "</robot>"),
        r'link "b" hangs on joint "j" and on "k"',
    ),
    "no such link": (GOOD.replace('child link="b"', 'child link="bb"'), r'no such link: did you mean "b"\?'),
    "name twice": (GOOD.replace('name="b"', 'name="a"', 1), r'there is a link "a" on line 2 already'),
    "joint type": (GOOD.replace('"revolute"', '"hinge"'), r"type of joint \"j\" is 'hinge'; it must be one of"),
    "not a number": (GOOD.replace('mass value="1.5"', 'mass value="heavy"', 1), r"line 2: value of <mass> is 'heavy'"),
    "not finite": (GOOD.replace('ixx="0.3"', 'ixx="nan"', 1), r"ixx of <inertia> is 'nan': give one number, finite"),
    "two numbers": (GOOD.replace("0.3 -0.1 0.2", "0.3 0.2"), r"xyz of <origin> is '0.3 0.2': give 3 numbers"),
    "limits": (GOOD.replace('lower="-1"', 'lower="3"'), r"limits of joint \"j\" are 3 and 2: .* swap them"),
    "axis": (GOOD.replace("<limit", '<axis xyz="0 0 0"/><limit'), "the axis of a joint must not be zero"),
    "damping": (GOOD.replace("<limit", '<dynamics damping="-1"/><limit'), "must not be negative: give 0"),
    "negative mass": (GOOD.replace('mass value="1.5"', 'mass value="-1"', 1), 'mass of link "a" is -1: give it in kg'),
    "no mass": (GOOD.replace('<mass value="1.5"/>', "", 1), "<inertial> has no <mass>: add one"),
    "no name": (GOOD.replace('link name="a"', "link"), '<link> has no name: write <link name="...">'),
    "moves without mass": (
        GOOD.replace(link("b"), '\n<link name="b"/>'),
        r"line 5: link \"b\": mass is 0.0; no link further out has mass",
    ),
    "size": (
        GOOD.replace("</link>", '<collision><geometry><sphere radius="-1"/></geometry></collision></link>', 1),
        "a size of the sphere is -1",
    ),
    "huge": (
        GOOD.replace("</link>", '<collision><geometry><sphere radius="1e200"/></geometry></collision></link>', 1),
        r"radius is 1e\+200; no number in it may be larger than 1e\+12 m",
    ),
    "far out": (
        GOOD.replace("</link>", '<collision><origin xyz="0 0 1e308"/><geometry><sphere radius="1"/></geometry>'
                     "</collision></link>", 1),
        r"position is .*1e\+308\); no number in it may be larger than 1e\+12 m",
    ),
    "unknown leader": (GOOD.replace("<limit", '<mimic joint="jj"/><limit'), r'follows "jj".*did you mean "j"\?'),
    "free joint inside": (
        GOOD.replace("</robot>", link("c") + joint("k", "floating", "b", "c") + "</robot>"),
        "a floating joint must hang on what is fixed",
    ),
    "called world": (GOOD.replace('"b"', '"world"'), "is the name of the fixed world: rename it"),
}  # fmt: skip


@pytest.mark.parametrize("flaw", BAD)
def test_a_bad_file_gets_one_message_with_its_line(flaw, tmp_path):
    text, message = BAD[flaw]
    path = written(tmp_path, text)
    with pytest.raises(FileError, match=message) as raised:
        import_urdf(path)
    assert str(raised.value).startswith(f"{path}, line ")


def test_a_file_that_is_not_there(tmp_path):
    for path in (tmp_path / "none.urdf", tmp_path):
        with pytest.raises(FileError, match=r"cannot be read .*: give the path of a file"):
            import_urdf(path)


def test_wrong_options(tmp_path):
    path = written(tmp_path, GOOD)
    with pytest.raises(ValueError, match="mimic is 'couple'; it must be one of gear, free, fixed"):
        import_urdf(path, mimic="couple")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match=r"q0 names joint 'jj'.*did you mean \"j\"\?"):
        import_urdf(path, q0={"jj": 1.0})
    with pytest.raises(FileError, match=r"q0 is .*within the limits"):
        import_urdf(path, q0={"j": 7.0})


def test_an_inertia_too_large_has_none_nearest(tmp_path):
    path = written(tmp_path, GOOD.replace('ixx="0.3"', 'ixx="1e308"'))
    with pytest.raises(FileError, match="inertia is"):
        import_urdf(path, floating=True, inertias="nearest")


def test_ten_roots_are_named_however_many_there_are(tmp_path):
    links = "".join(f'<link name="l{k}"/>' for k in range(2000))
    (tmp_path / "r.urdf").write_text(f'<robot name="r">{links}</robot>')
    with pytest.raises(FileError) as caught:
        import_urdf(tmp_path / "r.urdf")
    assert 'there are 2000 roots ("l0", "l1", ' in str(caught.value)
    assert '"l9" and 1990 more)' in str(caught.value)
    assert len(str(caught.value)) < 500
