"""`--set` and `--vary`: one number of a scene changed by its path, and what is said where there is none."""

# ruff: noqa: E501  a row of the tables a line

from dataclasses import replace

import numpy as np
import pytest

from carom.collision.shapes import Box, Capsule, Mesh, Sphere
from carom.scenes.builder import SceneBuilder
from carom.scenes.formats.settings import apply_setting, parse_setting, variation_values
from carom.scenes.joint_specs import Cylindrical, Motor, Revolute
from carom.scenes.spec import SceneSpec


def scene() -> SceneSpec:
    b = SceneBuilder()
    b.add_plane(friction=0.3)
    b.add_static("wall", [Box((1, 1, 1))])
    b.add_body("ball", [Sphere(0.1), Sphere(0.2)], mass=1.0, material="steel")
    b.add_body("box1", [Box((1, 1, 1))], mass=1.0)
    b.add_body("box2", [Box((1, 1, 1))], mass=2.0, com=(0, 0, 1))
    b.add_body("a.b", [Box((1, 1, 1))])
    b.add_link("arm", joint=Revolute((0, 1, 0), limits=(-1, 1), motor=Motor("position", kp=1.0)), mass=1.0)
    b.add_link("rod", joint=Cylindrical((0, 0, 1), limits=(None, (0, 1)), motor=(None, Motor())), mass=1.0)
    b.set_pair("steel", "felt", friction=0.2)
    return b.build()


SCENE = scene()
ball, box1, box2, dotted, arm, rod = SCENE.links


def links(*changes) -> SceneSpec:
    """The scene with other links in the places of some."""
    by_name = {link.name: link for link in changes}
    return replace(SCENE, links=tuple(by_name.get(link.name, link) for link in SCENE.links))


def jointed(link, **changes) -> SceneSpec:
    return links(replace(link, joint=replace(link.joint, **changes)))


plane, wall = SCENE.statics
EXPECTED = {
    "gravity=[0, 0, -1.62]": replace(SCENE, gravity=(0, 0, -1.62)),
    "gravity.2=-1.62": replace(SCENE, gravity=(0.0, 0.0, -1.62)),
    "gravity=[.5, 0, -.62]": replace(SCENE, gravity=(0.5, 0, -0.62)),
    "gap_band=1e-6": replace(SCENE, gap_band=1e-6),
    "body.ball.restitution=0.9": links(replace(ball, restitution=0.9)),
    "body.ball.material=felt": links(replace(ball, material="felt")),
    "body.ball.material='rough felt'": links(replace(ball, material="rough felt")),
    "body.ball.shapes.0.radius=0.3": links(replace(ball, shapes=(Sphere(0.3), ball.shapes[1]))),
    "body.ball.shapes.*.density=7800": links(
        replace(ball, shapes=(Sphere(0.1, density=7800), Sphere(0.2, density=7800)))
    ),
    'body.ball.shapes=[{ kind = "capsule", radius = 0.1, half_length = 1 }]': links(
        replace(ball, shapes=(Capsule(0.1, 1),))
    ),
    "body.box2.com.2=0.5": links(replace(box2, com=(0, 0, 0.5))),
    "body.a.b.mass=3": links(replace(dotted, mass=3)),
    "body.box*.mass=4": links(replace(box1, mass=4), replace(box2, mass=4)),
    "body.*.friction=0": links(*(replace(link, friction=0) for link in SCENE.links)),
    "body.arm.joint.damping=0.5": jointed(arm, damping=0.5),
    "body.arm.joint.limits=[-2, 2]": jointed(arm, limits=(-2, 2)),
    "body.arm.joint.limits.1=inf": jointed(arm, limits=(-1, float("inf"))),
    "body.arm.joint.motor.kp=5": jointed(arm, motor=Motor("position", kp=5)),
    'body.arm.joint.motor={ kind = "torque", target = 1 }': jointed(arm, motor=Motor("torque", target=1)),
    'body.arm.joint={ kind = "revolute", axis = [1, 0, 0] }': links(replace(arm, joint=Revolute((1, 0, 0)))),
    'body.rod.joint.limits=["none", [0, 2]]': jointed(rod, limits=(None, (0, 2))),
    "body.rod.joint.limits.1.1=2": jointed(rod, limits=(None, (0, 2))),
    "body.rod.joint.motor.1.target=2": jointed(rod, motor=(None, Motor(target=2))),
    "static.0.friction=0.9": replace(SCENE, statics=(replace(plane, friction=0.9), wall)),
    "static.wall.friction=0.9": replace(SCENE, statics=(plane, replace(wall, friction=0.9))),
    "pair.steel.felt.friction=0.7": replace(SCENE, pairs=(replace(SCENE.pairs[0], friction=0.7),)),
    "pair.felt.steel.friction=0.7": replace(SCENE, pairs=(replace(SCENE.pairs[0], friction=0.7),)),
}


@pytest.mark.parametrize("text", EXPECTED)
def test_a_setting_changes_one_thing(text):
    assert apply_setting(SCENE, *parse_setting(text)) == EXPECTED[text] != SCENE


def test_values_from_python():
    assert apply_setting(SCENE, "gravity", np.array([0, 0, -2.0])) == replace(SCENE, gravity=(0.0, 0.0, -2.0))
    assert apply_setting(SCENE, "body.ball.mass", np.float64(2)) == links(replace(ball, mass=2.0))
    assert apply_setting(SCENE, "body.ball.mass", None) == links(replace(ball, mass=None))
    assert apply_setting(SCENE, "body.ball.shapes.0", Mesh("a.stl")) == links(
        replace(ball, shapes=(Mesh("a.stl"), ball.shapes[1]))
    )
    assert apply_setting(SCENE, "body.arm.joint", Revolute((1, 0, 0))) == links(replace(arm, joint=Revolute((1, 0, 0))))


WRONG = {
    "friction": "'friction' is not a setting: write PATH=VALUE, such as body.ball.restitution=0.9",
    "=3": "'=3' is not a setting",
    "gravity=": "'gravity=' is not a setting",
    "gravity=[0, 0": "gravity: '[0, 0' is no value: write a number, a list such as",
    "gravity=1\ny=2": "is no value",
    "gravty=[0, 0, 0]": "gravty: there is no 'gravty': did you mean \"gravity\"? (there are gravity, body, static, pair,",
    "body.bal.mass=1": "body.bal.mass: there is no 'bal': did you mean \"ball\"? (there are ball, box1, box2, a.b, arm,",
    "body.zzz.mass=1": 'body.zzz.mass: there is no \'zzz\': known are "ball", "box1"',
    "body.cube*.mass=1": "body.cube*.mass: there is no 'cube*': known are",
    "body.ball.mas=1": "body.ball.mas: there is no 'mas': did you mean \"mass\"? (there are name, shapes, position",
    "body.ball.mass=heavy": 'body.ball.mass: mass is "heavy"; it must be one number',
    "body.ball.mass=[1]": "body.ball.mass: mass is [1]; it must be one number",
    "body.ball.mass.0=1": "body.ball.mass.0: there is nothing in it to be called '0', for it is 1.0: set all of it",
    "body.ball.com.0=1": "body.ball.com.0: there is nothing in it to be called '0', for it is None: set all of it",
    "body.ball.shapes.2.radius=1": 'body.ball.shapes.2.radius: there is no \'2\': known are "0", "1"',
    "body.ball=1": "body.ball: 1 cannot stand for all of it: add to the path which field is meant",
    "body.rod.joint.motor.0=1": "body.rod.joint.motor.0: 1 cannot stand for all of it",
    "body.ball.material=3": "body.ball.material: material is 3; it must be a text, in quotes",
    "body.arm.joint.limits.0=low": "body.arm.joint.limits.0: limits is [\"low\", 1]; it must be [lower, upper]",
    "body.arm.joint.motor={ kp = 1, kid = 2 }": "body.arm.joint.motor, motor: kid is 2; there is no such key: did you mean",
    "body.ball.joint.damping=1": "body.ball.joint.damping: there is no 'joint': known are",
    "static.floor.friction=1": 'static.floor.friction: there is no \'floor\': known are "0", "wall"',
    "pair.steel.wood.friction=1": "pair.steel.wood.friction: there is no 'steel.wood'",
}  # fmt: skip


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_with_a_setting(text):
    with pytest.raises(ValueError) as caught:  # noqa: PT011  the text is compared
        apply_setting(SCENE, *parse_setting(text))
    assert WRONG[text] in str(caught.value)


@pytest.mark.parametrize(
    ("text", "lanes", "values"),
    [
        ("body.ball.friction=0.1:0.9", 5, [0.1, 0.3, 0.5, 0.7, 0.9]),
        ("body.ball.friction=2:1", 2, [2.0, 1.0]),
        ("body.ball.friction=-1e-3:+1", 1, [-1e-3]),
        ("gap_band=1e-6,1e-7", 5, [1e-6, 1e-7, 1e-6, 1e-7, 1e-6]),
        ("gravity=[0, 0, 0],[0, 0, -1]", 2, [[0, 0, 0], [0, 0, -1]]),
        ("gap_band=3", 2, [3, 3]),
    ],
)
def test_variations(text, lanes, values):
    path, found = variation_values(text, lanes)
    assert path == text.split("=")[0]
    assert found == pytest.approx(values) if ":" in text else found == values


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gap_band=1:2:3", "gap_band: '1:2:3' is not a range: write low:high, such as 0.1:0.9, or a list a,b,c"),
        ("gap_band=low:high", "'low:high' is not a range"),
        ("gap_band=0:inf", "'0:inf' is not a range"),
        ("gap_band=0:", "gap_band: '' is no value"),
        ("gap_band=1,2,3", "gap_band: 3 values are too many for 2 lanes: leave some out, or add lanes"),
        ("gap_band=,", "gap_band: '[,]' is no value"),
        ("gap_band", "'gap_band' is not a setting: write PATH=VALUE, such as body.ball.friction=0.1:0.9"),
    ],
)
def test_what_is_wrong_with_a_variation(text, message):
    with pytest.raises(ValueError) as caught:  # noqa: PT011  the text is compared
        variation_values(text, 2)
    assert message in str(caught.value)
