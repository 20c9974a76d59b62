"""Every wrong scene dies in compile_scene with who, which field, the value and the fix: all of them in one table."""

# ruff: noqa: E501  a row of the table a line
# pyright: reportArgumentType=false

from typing import Any

import jax
import numpy as np
import pytest
import trimesh

from carom.collision.shapes import (
    Box,
    Capsule,
    ConvexHull,
    Ellipsoid,
    Heightfield,
    Mesh,
    Plane,
    Sphere,
)
from carom.scenes.builder import SceneBuilder
from carom.scenes.compile import compile_scene
from carom.scenes.compiling.check import SceneError
from carom.scenes.joint_specs import (
    Cylindrical,
    Fixed,
    Floating,
    Motor,
    Planar,
    Prismatic,
    Revolute,
    Screw,
    Spherical,
    Universal,
)

NAN, INF = float("nan"), float("inf")
HINGE = Revolute((0, 1, 0))
BALL = [Sphere(0.1)]
SOLID = {"mass": 1.0, "com": (0, 0, -0.5), "inertia": (1.0, 1.0, 1.0)}
CIRCLE = [(np.cos(a), np.sin(a), 0.0) for a in np.linspace(0, 6, 20)]
MANY = np.random.default_rng(0).normal(size=(100, 3))
MANY /= np.linalg.norm(MANY, axis=1, keepdims=True)
OPEN_MESH = trimesh.Trimesh([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)], [(0, 2, 1), (0, 1, 3), (0, 3, 2)])


def body(**fields):
    """A ball with one thing wrong."""

    def build(b):
        b.add_body("ball", **{"shapes": BALL, "mass": 1.0} | fields)

    return build


def link(joint: Any = HINGE, **fields):
    """A link on a hinge with one thing wrong."""

    def build(b):
        b.add_link("arm", joint=joint, **SOLID | fields)

    return build


def static(*shapes, **fields):
    def build(b):
        b.add_body("ball", BALL)
        b.add_static("rock", shapes, **fields)

    return build


def calls(*steps, **world):
    """Several builder calls: (method, positional arguments, keywords)."""

    def build(b):
        for method, args, keywords in steps:
            getattr(b, method)(*args, **keywords)

    build.world = world
    return build


A_BALL = ("add_body", ("ball", BALL), {})
A_STEEL_BALL = ("add_body", ("ball", BALL), {"material": "steel"})


def hang(name, parent, **fields):
    return ("add_link", (name, parent), {"joint": HINGE} | SOLID | fields)


# what is wrong: (scene, who, field, value, and words of the fix)
WRONG = {
    # bodies: mass, centre of mass, inertia
    "negative mass": (body(mass=-1.0), 'body "ball"', "mass", "-1.0", "give mass in kg, or density"),
    "zero mass of a body": (body(mass=0.0), 'body "ball"', "mass", "0.0", "must be positive"),
    "NaN mass": (body(mass=NAN), 'body "ball"', "mass", "nan", "give one number"),
    "mass as text": (body(mass="heavy"), 'body "ball"', "mass", "'heavy'", "made of numbers"),
    "no mass, no shapes": (body(shapes=[], mass=None), 'body "ball"', "mass", "None", "give mass in kg and inertia, or"),
    "no inertia, no shapes": (body(shapes=[]), 'body "ball"', "inertia", "None", "give inertia about the centre of"),
    "inertia without mass": (body(mass=None, inertia=(1, 1, 1)), 'body "ball"', "mass", "None", "leave inertia out"),
    "zero density": (body(mass=None, density=0.0), 'body "ball"', "density", "0.0", "kg/m^3"),
    "asymmetric inertia": (
        body(inertia=((1, 0.5, 0), (0, 1, 0), (0, 0, 1))), 'body "ball"', "inertia", "((1, 0.5", "give Ixy = Iyx"),
    "indefinite inertia": (body(inertia=(1, 1, -1)), 'body "ball"', "inertia", "(1, 1, -1)", "check signs and units"),
    "rod as a free body": (body(inertia=(1, 1, 0)), 'body "ball"', "inertia", "(1, 1, 0)", "positive definite"),
    "triangle inequality": (body(inertia=(1, 1, 3)), 'body "ball"', "inertia", "(1, 1, 3)", "1 + 1 < 3"),
    "inertia of 4 numbers": (body(inertia=(1, 1, 1, 1)), 'body "ball"', "inertia", "(1, 1, 1, 1)", "give 3 numbers"),
    "inertia not finite": (body(inertia=(1, 1, INF)), 'body "ball"', "inertia", "inf", "must be finite"),
    "com of 2 numbers": (body(com=(0, 0)), 'body "ball"', "com", "(0, 0)", "give 3 numbers in m"),
    "inertia on a massless link": (link(mass=0), 'link "arm"', "inertia", "(1.0, 1.0, 1.0)", "leave it out"),
    "too heavy": (body(mass=1e13), 'body "ball"', "mass", "10000000000000.0", "may be larger than 1e+12 kg"),
    # bodies: pose and velocity
    "far out": (body(position=(0, 0, 1e200)), 'body "ball"', "position", "(0, 0, 1e+200)", "may be larger than 1e+12 m"),
    "too fast": (body(linear_velocity=(-1e40, 0, 0)), 'body "ball"', "linear_velocity", "(-1e+40, 0, 0)", "1e+12 m/s"),
    "position of 2 numbers": (body(position=(0, 0)), 'body "ball"', "position", "(0, 0)", "shape must be (3,)"),
    "NaN position": (body(position=(0, NAN, 0)), 'body "ball"', "position", "(0, nan, 0)", "give 3 numbers in m"),
    "zero quaternion": (body(quaternion=(0,) * 4), 'body "ball"', "quaternion", "(0, 0, 0, 0)", "give w x y z"),
    "long quaternion": (body(quaternion=(1, 1, 0, 0)), 'body "ball"', "quaternion", "(1, 1, 0, 0)", "not 1.41421"),
    "infinite velocity": (body(linear_velocity=(INF, 0, 0)), 'body "ball"', "linear_velocity", "(inf, 0, 0)", "m/s"),
    "scalar spin": (body(angular_velocity=1.0), 'body "ball"', "angular_velocity", "1.0", "give 3 numbers in rad/s"),
    # shapes
    "a huge ball": (body(shapes=[Sphere(1e200)]), 'body "ball", shape 0 (sphere)', "radius", "1e+200", "larger than 1e+12 m"),
    "negative radius": (body(shapes=[Sphere(-0.1)]), 'body "ball", shape 0 (sphere)', "radius", "-0.1", "in m"),
    "flat box": (body(shapes=[Box((1, 0, 1))]), "shape 0 (box)", "half_extents", "(1, 0, 1)", "must be positive"),
    "no half length": (body(shapes=[Capsule(1, 0)]), "shape 0 (capsule)", "half_length", "0", "must be positive"),
    "two radii": (body(shapes=[Ellipsoid((1, 2))]), "shape 0 (ellipsoid)", "radii", "(1, 2)", "give 3 numbers"),
    "not a shape": (body(shapes=[3]), 'body "ball", shape 0', "kind", "3", "one of the shapes sphere, box"),
    "shape class": (body(shapes=[Sphere]), 'body "ball", shape 0', "kind", "Sphere", "e.g. Sphere(0.1)"),
    "shape, no list": (body(shapes=Sphere(1)), 'body "ball"', "shapes", "Sphere", "give shapes=[Sphere(0.1)]"),
    "shape turned wrongly": (
        body(shapes=[Sphere(1, quaternion=(2, 0, 0, 0))]), "shape 0 (sphere)", "quaternion", "(2,", "length must be 1"),
    "negative friction without shapes": (
        body(shapes=[], inertia=(1, 1, 1), friction=-1), 'body "ball"', "friction", "-1", "must not be negative"),
    "negative friction": (body(friction=-0.1), 'body "ball"', "friction", "-0.1", "must not be negative"),
    "restitution above 1": (body(restitution=1.1), 'body "ball"', "restitution", "1.1", "between 0 and 1"),
    "friction of a shape": (
        body(shapes=[Sphere(1), Sphere(1, friction=-2)]), "shape 1 (sphere)", "friction", "-2", "0 for none"),
    "empty material": (body(material=""), 'body "ball"', "material", "''", "give a text"),
    "moving plane": (body(shapes=[Plane()]), 'body "ball", shape 0 (plane)', "kind", "'plane'", "use add_static"),
    "moving heightfield": (
        body(shapes=[Heightfield([[0, 0], [0, 0]], 1)]), "shape 0 (heightfield)", "kind", "'heightfield'", "add_static"),
    "three points": (body(shapes=[ConvexHull(np.eye(3))]), "shape 0 (hull)", "points", "((1.0", "4 or more, not 3"),
    "coplanar points": (body(shapes=[ConvexHull(CIRCLE)]), "shape 0 (hull)", "points", "((1.0", "enclose a volume"),
    "hull too large": (body(shapes=[ConvexHull(MANY)]), "shape 0 (hull)", "points", "100 vertices", "at most 64"),
    "NaN point": (
        body(shapes=[ConvexHull([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, NAN)])]),
        "shape 0 (hull)", "points", "nan", "give n x 3 numbers"),
    "mesh file missing": (body(shapes=[Mesh("no.stl")]), "shape 0 (mesh)", "source", "'no.stl'", "no such file"),
    "mesh file unreadable": (body(shapes=[Mesh(__file__)]), "shape 0 (mesh)", "source", ".py'", "give an STL, OBJ"),
    "open mesh": (body(shapes=[Mesh(OPEN_MESH)]), "shape 0 (mesh)", "source", "open surface", "repair the mesh"),
    "mesh of scale 0": (body(shapes=[Mesh(OPEN_MESH, 0.0)]), "shape 0 (mesh)", "scale", "0.0", "0.001 for milli"),
    "heights in a row": (
        static(Heightfield([0, 1, 2], 1)), 'static "rock", shape 0 (heightfield)', "heights", "(0, 1, 2)", "n x n"),
    "heightfield too thin": (static(Heightfield([[0, 1]], 1)), "(heightfield)", "heights", "((0, 1),)", "2 x 2 or more"),
    "cell of 3 numbers": (
        static(Heightfield([[0, 0], [0, 0]], (1, 1, 1))), "(heightfield)", "cell", "(1, 1, 1)", "give 2 numbers in m"),
    "static turned wrongly": (static(Sphere(1), quaternion=(0, 0, 0, 3)), 'static "rock"', "quaternion", "3)", "not 3"),
    "plane without normal": (
        calls(A_BALL, ("add_plane", ((0, 0, 0),), {})), "plane 0", "normal", "(0, 0, 0)", "give a direction"),
    "NaN plane": (
        calls(A_BALL, ("add_plane", ((0, 0, 1), NAN), {"name": "floor"})), 'plane "floor"', "offset", "nan", "in m"),
    # joints
    "not a joint": (link(joint="hinge"), 'link "arm"', "joint", "'hinge'", "e.g. joint=Revolute((0, 0, 1))"),
    "joint class": (link(joint=Spherical), 'link "arm"', "joint", "Spherical", "e.g. joint=Revolute((0, 0, 1))"),
    "zero axis": (link(Revolute((0, 0, 0))), 'link "arm", joint (revolute)', "axis", "(0, 0, 0)", "give a direction"),
    "axis of 2 numbers": (link(Prismatic((0, 1))), "joint (prismatic)", "axis", "(0, 1)", "give 3 numbers"),
    "parallel axes": (
        link(Universal((1, 0, 0), (2, 0, 0))), "joint (universal)", "axis2", "(2, 0, 0)", "turn it away from axis"),
    "planar axis2": (link(Planar(axis2=(0, 0, 1))), "joint (planar)", "axis2", "(0, 0, 1)", "must not be parallel"),
    "NaN pitch": (link(Screw((0, 0, 1), NAN)), "joint (screw)", "pitch", "nan", "in m/rad"),
    "limits reversed": (
        link(Revolute((0, 1, 0), limits=(1, -1))), "joint (revolute)", "limits", "(1, -1)", "swap them"),
    "limits of 3 numbers": (
        link(Revolute((0, 1, 0), limits=(0, 1, 2))), "joint (revolute)", "limits", "(0, 1, 2)", "give 2 numbers"),
    "one pair for two dofs": (
        link(Cylindrical((0, 0, 1), limits=(-1, 1))), "joint (cylindrical)", "limits", "(-1, 1)", "2 of (lower, upper)"),
    "NaN limits": (link(Revolute((0, 1, 0), limits=(NAN, 1))), "joint (revolute)", "limits", "nan", "give 2 numbers"),
    "limit restitution": (
        link(Revolute((0, 1, 0), restitution=2)), "joint (revolute)", "restitution", "2", "between 0 and 1"),
    "negative damping": (link(Revolute((0, 1, 0), damping=-1)), "joint (revolute)", "damping", "-1", "0 for none"),
    "negative armature": (link(Revolute((0, 1, 0), armature=-1)), "joint (revolute)", "armature", "-1", "0 for none"),
    "negative loss": (link(Spherical(loss=(0, 0, -1))), "joint (spherical)", "loss", "(0, 0, -1)", "0 for none"),
    "negative stiffness": (link(Prismatic((1, 0, 0), stiffness=-1)), "joint (prismatic)", "stiffness", "-1", "0 for"),
    "damping of 2 numbers": (link(Spherical(damping=(1, 1))), "joint (spherical)", "damping", "(1, 1)", "give 3 num"),
    "rest of 2 numbers": (link(Spherical(rest=(1, 1))), "joint (spherical)", "rest", "(1, 1)", "give 3 numbers"),
    "damping of a weld": (link(Fixed(damping=1.0)), "joint (fixed)", "damping", "1.0", "leave it out"),
    "motor of a weld": (link(Fixed(motor=Motor())), "joint (fixed)", "motor", "Motor(", "no degree of freedom"),
    "spring on floating": (link(Floating(stiffness=5.0)), "joint (floating)", "stiffness", "5.0", "no spring"),
    "armature on floating": (link(Floating(armature=2.0)), "joint (floating)", "armature", "2.0", "no rotor"),
    "position motor on floating": (
        link(Floating(motor=Motor("position", kp=1))), "joint (floating)", "motor.kind", "'position'", 'use "velocity"'),
    # motors
    "position motor without kp": (
        link(Revolute((0, 1, 0), motor=Motor("position", kd=1))), "joint (revolute)", "motor.kp", "None", "give kp"),
    "velocity motor without kd": (
        link(Revolute((0, 1, 0), motor=Motor("velocity"))), "joint (revolute)", "motor.kd", "None", "give kd"),
    "torque motor with kp": (
        link(Revolute((0, 1, 0), motor=Motor("torque", kp=1))), "joint (revolute)", "motor.kp", "1", "change kind"),
    "rigid position motor": (
        link(Revolute((0, 1, 0), motor=Motor("position", kp=1, kd=float("inf")))), "joint (revolute)", "motor.kd", "inf",
        "only a velocity motor"),
    "rigid motor without bound": (
        link(Revolute((0, 1, 0), motor=Motor("velocity", kd=float("inf")))), "joint (revolute)", "motor.effort", "inf",
        "bound it"),
    "unknown motor": (
        link(Revolute((0, 1, 0), motor=Motor("positoin"))), "joint (revolute)", "motor.kind", "'positoin'",
        "did you mean 'position'?"),
    "not a motor": (link(Revolute((0, 1, 0), motor=3.0)), "joint (revolute)", "motor", "3.0", "it must be a Motor"),
    "no effort": (link(Revolute((0, 1, 0), motor=Motor(effort=0))), "joint (revolute)", "motor.effort", "0", "N m or N"),
    "three motors for two dofs": (
        link(Cylindrical((0, 0, 1), motor=(None, None, None))), "joint (cylindrical)", "motor", "(None,", "must be 2"),
    # start
    "q0 outside limits": (
        link(Revolute((0, 1, 0), limits=(-1, 1)), q0=1.5), 'link "arm"', "q0", "1.5", "within the limits (-1, 1)"),
    "zero outside limits": (
        link(Revolute((0, 1, 0), limits=(0.5, 1))), 'link "arm"', "q0", "0.0", "give q0 inside, or widen them"),
    "q0 too long": (link(q0=(0.1, 0.2)), 'link "arm"', "q0", "(0.1, 0.2)", "shape must be (1,), not (2,)"),
    "v0 too short": (link(Spherical(), v0=1.0), 'link "arm"', "v0", "1.0", "shape must be (3,), not ()"),
    "NaN v0": (link(v0=NAN), 'link "arm"', "v0", "nan", "give one number in rad/s"),
    "q0 not a quaternion": (
        link(Spherical(), q0=(1, 1, 0, 0)), 'link "arm"', "q0 (quaternion)", "(1.0, 1.0, 0.0, 0.0)", "length must be 1"),
    "floating placed twice": (
        link(Floating(), position=(0, 0, 1), q0=(0, 0, 2, 1, 0, 0, 0)), 'link "arm"', "q0", "(0, 0, 2", "one of the two"),
    # names and the tree
    "duplicate name": (calls(A_BALL, A_BALL), 'body "ball"', "name", "'ball'", "rename one"),
    "static with a body's name": (
        calls(A_BALL, ("add_plane", (), {"name": "ball"})), 'plane "ball"', "name", "'ball'", "a body has it already"),
    "world named twice": (calls(("add_body", ("world", BALL), {})), 'body "world"', "name", "'world'", "choose another"),
    "no name": (calls(("add_body", ("", BALL), {})), "body 0", "name", "''", "give a text"),
    "unknown parent": (
        calls(hang("upper", "world"), hang("lower", "uper")), 'link "lower"', "parent", "'uper'", "did you mean 'upper'?"),
    "parents in a circle": (
        calls(hang("a", "c"), hang("b", "a"), hang("c", "b")), 'link "a"', "parent", "'c'",
        "joint loop without a closure (a -> c -> b -> a)"),
    "own parent": (calls(hang("a", "a")), 'link "a"', "parent", "'a'", "let one of them hang on 'world'"),
    "floating on a link": (
        calls(hang("a", "world"), hang("b", "a", joint=Floating())), 'link "b"', "parent", "'a'", "let it hang on 'world'"),
    "massless end of a chain": (
        calls(hang("a", "world"), hang("b", "a", mass=0.0, inertia=None)), 'link "b"', "mass", "0.0",
        "no link further out has mass"),
    "point mass on its axis": (
        link(Revolute((0, 0, 1)), inertia=(0, 0, 0)), 'link "arm"', "inertia", "0.0", "shift com off the axis"),
    "point mass on a ball joint": (link(Spherical(), inertia=(0, 0, 0)), 'link "arm"', "inertia", "0.0", "armature"),
    "empty scene": (calls(("add_plane", (), {})), "scene", "links", "()", "use add_body or add_link"),
    "gravity of 2 numbers": (calls(A_BALL, gravity=(0, -9.81)), "scene", "gravity", "(0, -9.81)", "3 numbers in m/s^2"),
    "NaN gravity": (calls(A_BALL, gravity=(0, 0, NAN)), "scene", "gravity", "(0, 0, nan)", "must not be NaN"),
    # pairs
    "unknown material": (
        calls(A_STEEL_BALL, ("set_pair", ("steel", "stel"), {"friction": 1})), "pair rule 0", "material", "'stel'",
        "did you mean 'steel'?"),
    "material where there is none": (
        calls(A_BALL, ("set_pair", ("steel", "felt"), {"friction": 1})), "pair rule 0", "material", "'steel'", "none is known"),
    "pair friction": (
        calls(A_STEEL_BALL, ("set_pair", ("steel", "steel"), {"friction": -1})), "pair rule 0", "friction", "-1", "0 for"),
    "pair restitution": (
        calls(A_STEEL_BALL, ("set_pair", ("steel", "steel"), {"restitution": 2})), "pair rule 0", "restitution", "2", "0"),
    "pair says nothing": (
        calls(A_STEEL_BALL, ("set_pair", ("steel", "steel"), {})), "pair rule 0", "friction", "None", "give one of friction,"),
    "pair twice": (
        calls(A_STEEL_BALL, *[("set_pair", ("steel", "steel"), {"friction": 1})] * 2), "pair rule 1", "materials",
        "('steel', 'steel')", "keep one"),
    "unknown exclusion": (
        calls(A_BALL, ("exclude", ("ball", "bal"), {})), "exclusion 0", "name", "'bal'", "did you mean 'ball'?"),
    "exclusion of itself": (
        calls(A_BALL, ("exclude", ("ball", "ball"), {})), "exclusion 0", "names", "('ball', 'ball')", "must differ"),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_scene_is_rejected_by_name_field_value_and_fix(wrong):
    build, who, field, value, fix = WRONG[wrong]
    builder = SceneBuilder(**getattr(build, "world", {}))
    build(builder)
    with pytest.raises(SceneError) as caught:
        compile_scene(builder)
    text = str(caught.value)
    start, rest = text.split(f": {field} is ", 1)
    shown, must = rest.split("; ", 1)
    assert start.endswith(who) or start.startswith(who)
    assert value in shown
    assert fix in must
    assert ": " in must or "?" in must, "the message must say what to do"


def test_the_messages_differ():
    messages = set()
    for build, *_ in WRONG.values():
        builder = SceneBuilder(**getattr(build, "world", {}))
        build(builder)
        with pytest.raises(SceneError) as caught:
            compile_scene(builder)
        messages.add(str(caught.value))
    assert len(messages) == len(WRONG) >= 100


def test_one_message_in_full():
    build = body(mass=-1.0)
    builder = SceneBuilder()
    build(builder)
    with pytest.raises(ValueError) as caught:  # noqa: PT011  the whole text is compared
        compile_scene(builder)
    assert str(caught.value) == (
        'body "ball": mass is -1.0; it must be positive: give mass in kg, or density and let the shapes decide'
    )


@pytest.mark.parametrize("dtype", ["int32", "float16", "quick"])
def test_wrong_dtype(dtype):
    builder = SceneBuilder()
    builder.add_body("ball", BALL)
    with pytest.raises(SceneError, match=f"dtype is '{dtype}'; it must be float32 or float64"):
        compile_scene(builder, dtype)


def test_float64_without_x64_says_how_to_get_it():
    builder = SceneBuilder()
    builder.add_body("ball", BALL)
    with jax.enable_x64(False), pytest.raises(SceneError, match=r"jax.config.update\(\"jax_enable_x64\", True\)"):
        compile_scene(builder, "float64")


def test_not_a_scene():
    with pytest.raises(SceneError, match=r"give a SceneSpec, a SceneBuilder, or carom\.load"):
        compile_scene("pool_break")  # pyright: ignore[reportCallIssue, reportArgumentType]


def test_what_a_dtype_cannot_hold():
    builder = SceneBuilder()
    builder.add_body("planet", [Sphere(1e10)], density=1e12)
    compile_scene(builder, "float64")
    with pytest.raises(
        SceneError, match=r"scene: mass is 4\.18.*e\+42; it is too large for float32: choose other units"
    ):
        compile_scene(builder, "float32")
