"""Loops of scenes: where they close, what files say of them, what is wrong with them, how they are drawn."""

# ruff: noqa: E501  a row of the tables a line

import inspect
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom import Distance, Driven, Gear, Revolute, Rolling, SceneBuilder, Screw, Spherical, Spring, Universal
from carom.collision.poses import rotation_matrix
from carom.engine.loops.jacobian import closed
from carom.scenes.compile import compile_scene
from carom.scenes.compiling.check import SceneError
from carom.scenes.formats.errors import FileError
from carom.scenes.formats.settings import apply_setting
from carom.scenes.formats.toml import locate_error, parse_toml, to_toml
from carom.scenes.show.drawing import drawing_of


@pytest.fixture(autouse=True)
def op_by_op():
    with jax.disable_jit():  # scenes of two links: nothing is worth compiling
        yield


HINGE = Revolute((0, 1, 0))


def two_arms(**loop: Any) -> SceneBuilder:
    """A bar from the origin along x, another that hangs on it; and the loop, of the second by default."""
    b = SceneBuilder()
    b.add_link("first", joint=HINGE, mass=1.0, com=(0.5, 0, 0), inertia=(0.1, 0.1, 0.1))
    b.add_link("second", "first", joint=HINGE, position=(1, 0, 0), mass=1.0, com=(0.5, 0, 0), inertia=(0.1, 0.1, 0.1),
               q0=0.7)  # fmt: skip
    b.add_body("free", mass=1.0, inertia=(0.1, 0.1, 0.1), position=(0, 0, 3))
    b.add_link("ball", joint=Spherical(), position=(5, 0, 0), mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.add_link("welded", joint=carom.Fixed(), position=(5, 0, 0), mass=1.0, inertia=(0.1, 0.1, 0.1))
    if loop:
        b.add_loop(loop.pop("link_a", "second"), **loop)
    return b


# -- where they close --------------------------------------------------------------------------------------


def test_a_loop_closes_where_its_first_frame_is():
    """Frames on b are by default those on a at the start; skew axes too. Where the second one is given, joints move
    to it as little as can be."""
    b = two_arms()
    for joint in (HINGE, Universal((1, 0, 0), (0.4, 0.3, 1)), Screw((1, 1, 0), 0.2), Spherical(), carom.Fixed()):
        for link_a, link_b in (("second", "world"), ("free", "second"), ("world", "free")):
            b.add_loop(link_a, ((0.2, -0.1, 0.3), (0.5, 0.1, -0.7, 0.5)), link_b, joint=joint)
    with jax.disable_jit(False):
        _, state = compile_scene(b)
    np.testing.assert_array_equal(state.q, compile_scene(two_arms())[1].q)  # nothing had to move
    with jax.disable_jit(False):
        model, state = compile_scene(two_arms(frame_a=(1, 0, 0), frame_b=(1.5, 0, 0.2), joint=HINGE))
    reached = carom.fk(model, state.q)
    np.testing.assert_allclose(
        reached.position[1] + reached.rotation[1] @ np.array([1, 0, 0]), [1.5, 0, 0.2], atol=1e-11
    )


def test_axes_that_are_not_square_stay_as_they_are():
    """The cross of a universal joint: axis2 in link b's frame meets axis in link a's at the angle it was made with."""
    joint, frame = Universal((1, 0.2, 0), (0.3, 0.4, 1)), ((0.1, 0.2, 0.3), (0.5, -0.5, 0.5, 0.5))
    model, state = compile_scene(two_arms(link_a="free", frame_a=frame, joint=joint))
    found = closed(model, state.q, state.v)
    spin = np.asarray(found.A)[3, 2:5]  # the row of the angle: about what turning of the first link breaks it
    R = rotation_matrix(np.array(frame[1]))
    axis, axis2 = (R @ np.array(x) / np.linalg.norm(x) for x in (joint.axis, joint.axis2))
    np.testing.assert_allclose(spin, np.cross(axis, axis2), atol=1e-12)


def test_what_is_driven_starts_where_it_stands():
    scene = two_arms(
        joint=Driven(rate=2.0, amplitude=0.1, frequency=0.5, phase=0.3, function=lambda t: 0.5 * jnp.cos(t))
    )
    model, state = compile_scene(scene)
    assert state.q[1] == pytest.approx(0.7, abs=1e-12)
    assert state.v[1] == pytest.approx(2.0 + 0.1 * np.pi * np.cos(0.3), abs=1e-12)
    found = closed(model, state.q, state.v, 0.4)
    course = 0.7 + 2 * 0.4 + 0.1 * (np.sin(np.pi * 0.4 + 0.3) - np.sin(0.3)) + 0.5 * (np.cos(0.4) - 1)
    assert found.error[0] == pytest.approx(0.7 - course, abs=1e-12)


# -- what is wrong ------------------------------------------------------------------------------------------

WRONG: dict[str, tuple[dict[str, Any], str, str]] = {
    "unknown link": ({"link_b": "frist", "joint": HINGE}, "link_b", 'name of a link, or "world"'),
    "one link": ({"link_b": "second", "joint": HINGE}, "link_b", "another link than link_a"),
    "no joint": ({"joint": 3}, "joint", "it must be one of spherical, revolute"),
    "a class": ({"joint": Spherical}, "joint", "it must be one of spherical, revolute"),
    "floating": ({"joint": carom.Floating()}, "joint", "it must be one of spherical, revolute"),
    "damped": ({"joint": Revolute((0, 1, 0), damping=1.0)}, "damping", "what closes a loop has none"),
    "limited": ({"joint": Revolute((0, 1, 0), limits=(-1, 1))}, "limits", "what closes a loop has none"),
    "driven itself": ({"joint": Revolute((0, 1, 0), motor=carom.Motor())}, "motor", "what closes a loop has none"),
    "half a frame": ({"frame_a": (1, 0), "joint": HINGE}, "position_a", "3"),
    "long quaternion": ({"frame_a": ((0, 0, 0), (2, 0, 0, 0)), "joint": HINGE}, "quaternion_a", "length"),
    "rod to nowhere": ({"joint": Distance()}, "position_b", "a rod needs a second point"),
    "rod of no length": ({"frame_b": (1, 0, 0), "joint": Distance()}, "length", "use Spherical"),
    "short rod": ({"frame_b": (9, 0, 0), "joint": Distance(0.5)}, "joint", "the loop must close at the start"),
    "negative rod": ({"frame_b": (9, 0, 0), "joint": Distance(-1.0)}, "length", "positive"),
    "negative spring": ({"frame_b": (9, 0, 0), "joint": Spring(-1.0)}, "stiffness", "negative"),
    "flat wheel": ({"link_a": "free", "joint": Rolling(0.0)}, "radius", "positive"),
    "gear of the world": ({"joint": Gear(2.0)}, "link_b", "not the world"),
    "gear of a ball": ({"link_b": "ball", "joint": Gear(2.0)}, "link_b", "a spherical joint has no single angle"),
    "gear of a weld": ({"link_b": "welded", "joint": Gear(2.0)}, "joint.dof_b", "0 degrees of freedom: name a link"),
    "third angle": ({"link_b": "first", "joint": Gear(2.0, dof_a=2)}, "joint.dof_a", "count from 0"),
    "gear that holds": ({"link_b": "first", "joint": Gear(0.0)}, "ratio", "it must not be 0"),
    "gear with itself": ({"link_b": "second", "joint": Gear(2.0)}, "link_b", "name another link"),
    "gear of infinity": ({"link_b": "first", "joint": Gear(np.inf)}, "ratio", "finite"),
    "drive of two": ({"link_b": "first", "joint": Driven()}, "link_b", "leave link_b out"),
    "math": ({"joint": Driven(function=lambda t: float(t))}, "function", "by jax.numpy"),
    "vector": ({"joint": Driven(function=lambda t: jnp.ones(2) * t)}, "function", "one number"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_named(case):
    loop, field, text = WRONG[case]
    with jax.disable_jit(False), pytest.raises(SceneError, match=r'^loop "tie"') as raised:
        compile_scene(two_arms(name="tie", **loop))
    assert raised.value.field == field
    assert text in str(raised.value)


@pytest.mark.slow
def test_two_drives_against_each_other():
    b = two_arms(joint=Driven(rate=1.0))
    b.add_loop("second", joint=Driven(rate=2.0))
    with pytest.raises(SceneError, match=r"able to move as it is told to: its ends part at 0\.5"):
        compile_scene(b)


def test_wrong_scenes():
    with pytest.raises(SceneError, match="it must hold LoopSpec"):
        compile_scene(carom.SceneSpec(links=two_arms().build().links, loops=(HINGE,)))  # pyright: ignore
    with pytest.raises(SceneError, match="baumgarte"):
        compile_scene(replace(two_arms().build(), baumgarte=-1.0))


# -- files and pictures --------------------------------------------------------------------------------------

TOML = inspect.cleandoc("""
    gravity = [0.0, 0.0, -9.81]
    baumgarte = 5.0

    [[body]]
    name = "arm"
    mass = 1.0
    inertia = [1, 1, 1]

    [body.joint]
    kind = "revolute"
    axis = [0, 1, 0]

    [[loop]]
    name = "drive"
    link_a = "arm"

    [loop.joint]
    kind = "driven"
    rate = 2.0

    [[loop]]
    link_a = "arm"
    position_a = [1, 0, 0]
    position_b = [2, 0, 0]

    [loop.joint]
    kind = "spring"
    stiffness = 3.0
""")

IN_FILES = {
    "no such kind": ('"driven"', '"drive"', 'line 18: loop "drive", joint: kind is "drive"; there is no such kind: did you mean "driven"'),
    "field of another": ("rate = 2.0", "radius = 2.0", 'line 19: loop "drive", joint (driven): radius is 2.0; there is no such key'),
    "function": ("rate = 2.0", 'function = "sin"', 'line 19: loop "drive", joint (driven): function is "sin"; a file holds no functions: give rate'),
    "floating": ('"driven"', '"floating"', 'line 18: loop "drive", joint: kind is "floating"; there is no such kind'),
    "no stiffness": ("stiffness = 3.0", "", "loop 1, joint (spring): stiffness is missing; add stiffness, one number"),
    "no link": ('link_a = "arm"\n\n', "\n", 'line 13: loop "drive": link_a is missing; add link_a, a text in quotes'),
    "a list": ("position_a = [1, 0, 0]", 'position_a = "x"', 'line 23: loop 1: position_a is "x"; it must be made of numbers'),
    "unknown link": ('link_a = "arm"\nposition', 'link_a = "am"\nposition', 'line 22: loop 1: link_a is \'am\''),
    "too few": ("position_b = [2, 0, 0]", "position_b = [2, 0]", "line 24: loop 1: position_b is (2, 0)"),
    "negative": ("stiffness = 3.0", "stiffness = -3.0", "line 28: loop 1, joint (spring): stiffness is -3.0"),
}  # fmt: skip


def test_loops_in_files():
    scene = parse_toml(TOML)
    assert scene.loops[0].joint == Driven(rate=2.0)
    assert to_toml(scene).strip() == TOML.replace("gravity = [0.0, 0.0, -9.81]\n", "")
    model, state = compile_scene(scene)
    assert (model.topology.hold, float(model.baumgarte), float(state.v[0])) == ("baumgarte", 5.0, 2.0)
    faster = apply_setting(scene, "loop.drive.joint.rate", 3.0)
    assert faster.loops[0].joint == Driven(rate=3.0)
    assert apply_setting(scene, "loop.1.joint.length", 0.5).loops[1].joint == Spring(3.0, 0.5)


@pytest.mark.parametrize("case", IN_FILES)
def test_what_is_wrong_in_files_has_a_line(tmp_path, case):
    old, new, text = IN_FILES[case]
    assert old in TOML
    path = tmp_path / "s.toml"
    path.write_text(TOML.replace(old, new))
    try:
        scene = parse_toml(path.read_text(), path)
        with pytest.raises(SceneError) as raised:
            compile_scene(scene)
        error = locate_error(path, raised.value)
    except FileError as found:
        error = found
    assert text in str(error)


def test_rods_and_springs_are_lines_and_bones_reach_to_loops():
    b = two_arms(frame_a=(1, 0, 0), frame_b=(1, 0, 2), joint=Spring(2.0))
    b.add_loop("second", (0.5, 0, 0), "free", (0, 0, 0.1), joint=Distance())
    b.add_loop("second", (0, 0, 0.25), joint=Spherical())
    b.add_loop("second", link_b="first", joint=Gear(1.0))
    scene = b.build()
    drawing = drawing_of(scene, compile_scene(scene)[0])
    spring, rod = drawing.ties
    assert (spring.a, spring.b, rod.a, rod.b) == (1, -1, 1, 2)
    np.testing.assert_allclose([spring.at_a, spring.at_b, rod.at_b], [(1, 0, 0), (1, 0, 2), (0, 0, 0.1)])
    bones = {tuple(np.round(2 * s.position, 6)) for s in drawing.shapes if s.link == 1}
    assert {(0, 0, 0.25), (1, 0, 0), (0.5, 0, 0)} <= {tuple(float(x) for x in bone) for bone in bones}
