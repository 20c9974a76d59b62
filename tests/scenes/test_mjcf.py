"""MJCF files become scenes that move as MuJoCo has them move, or are refused with a reason."""

# pyright does not see the names of a compiled module
# pyright: reportAttributeAccessIssue=false

import importlib.util
import math
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from carom.engine.dynamics.passive import motor_forces
from carom.engine.loops.jacobian import closed
from carom.scenes.compile import compile_scene
from carom.scenes.formats.errors import FileError
from carom.scenes.formats.from_mjcf.left_out import KINDS
from carom.scenes.formats.mjcf import import_mjcf
from carom.tests.oracles.mjcf_answers import errors, random_state, velocity_map

# relative to the largest entry; inertias are kept as principal axes, which costs MuJoCo some digits (1e-14 seen)
TOLERANCE = 1e-9
TABLE_STATES = 1  # of each robot in the table; a wrong frame or axis shows in one

# every joint, chains of joints with anchors, ref and springref, massless links, static and moving parents
TREE = """
<mujoco>
  <option gravity="1 2 -8"/>
  <worldbody>
    <body name="base" pos="1 2 3" euler="10 20 30">
      <geom name="base" type="box" size=".1 .2 .3"/>
      <body name="arm" pos=".1 .2 .3" euler="40 50 60">
        <joint name="slide" type="slide" axis="1 2 3" ref=".3" springref=".2" stiffness="3" damping=".4" range="-1 1"/>
        <joint name="hinge" type="hinge" axis="1 -1 2" pos=".3 .1 .2" ref="20" springref="10" stiffness="5"/>
        <joint name="second" axis="0 1 2" pos="-.2 .1 .4" armature=".3" damping=".2" ref="-35" frictionloss=".1"/>
        <geom type="capsule" size=".1 .3" pos=".1 .1 .1" euler="10 20 30"/>
        <body name="hand" pos=".3 -.1 .2" euler="0 30 0">
          <geom type="ellipsoid" size=".1 .2 .15" pos=".1 0 0"/>
          <body name="ball" pos="0 .2 .1">
            <joint name="turn" type="ball" pos=".1 .2 .3" damping=".3" armature=".1" stiffness="2"/>
            <inertial pos=".1 .2 .3" mass="2" fullinertia="1 1.2 1.1 .1 .2 -.1"/>
          </body>
        </body>
      </body>
    </body>
    <body name="cart"><joint name="rail" type="slide" axis="0 1 0" armature="2"/>
      <body name="load" pos="0 0 1"><geom type="cylinder" size=".1 .2"/></body>
    </body>
    <body name="free" pos="3 2 1" euler="0 0 45"><joint type="free" damping=".5"/>
      <body name="lid" pos=".1 .2 .3" euler="20 0 0"><geom type="cylinder" size=".1 .2" pos=".2 0 .1"/></body>
    </body>
  </worldbody>
  <keyframe><key name="away" qpos=".5 .2 .3 0 1 0 0 .4 7 8 9 0 0 1 0" qvel="1 2 3 4 5 6 7 8 9 10 11 12 13"/></keyframe>
</mujoco>
"""


def scene_of(tmp_path: Path, xml: str, **options: Any):
    path = tmp_path / "scene.xml"
    path.write_text(xml)
    return import_mjcf(path, **options), mujoco.MjModel.from_xml_path(str(path))


def compiled(scene):
    with jax.disable_jit():  # operation by operation: nothing to compile
        return compile_scene(scene)


def bare(scene):
    """Without its shapes: what moves does not hang on them."""
    links = tuple(replace(link, shapes=()) for link in scene.links)
    return replace(scene, links=links, statics=(), pairs=(), exclusions=())


def test_a_tree_of_everything(tmp_path):
    imported, m = scene_of(tmp_path, TREE)
    model, _ = compiled(imported.scene)
    assert model.topology.names[:3] == ("arm/slide", "arm/hinge", "arm")
    worst = errors(m, model, np.random.default_rng(1))
    assert max(worst.values()) < TOLERANCE, worst
    assert model.loss[2] == 0.1
    assert not imported.report.of("refused")


def test_it_starts_in_the_file_s_pose_or_in_a_keyframe(tmp_path):
    imported, m = scene_of(tmp_path, TREE)
    np.testing.assert_allclose(compiled(imported.scene)[1].q, m.qpos0, atol=1e-15)
    imported, m = scene_of(tmp_path, TREE, keyframe="away")
    state = compiled(imported.scene)[1]
    np.testing.assert_allclose(state.q, m.key_qpos[0], atol=1e-15)
    np.testing.assert_allclose(velocity_map(m, np.asarray(state.q)) @ state.v, m.key_qvel[0], atol=1e-13)
    with pytest.raises(FileError, match=r"no keyframe 'home'; it has 'away'"):
        scene_of(tmp_path, TREE, keyframe="home")
    nameless = TREE.replace('<key name="away"', "<key")
    numbered, _ = scene_of(tmp_path, nameless, keyframe="0")  # as a command line gives it
    np.testing.assert_array_equal(compiled(numbered.scene)[1].q, state.q)
    with pytest.raises(FileError, match=r"no keyframe '1'; it has 0"):
        scene_of(tmp_path, nameless, keyframe="1")


def test_mocap_bodies_are_statics_where_the_start_has_them(tmp_path):
    text = """<mujoco><worldbody><body name="ball"><freejoint/><geom size=".1"/></body>
      <body name="table" mocap="true" pos="0 0 -3"><geom type="box" size=".3 .3 .1"/>
        <body name="leg" pos="0 0 -1"><geom type="box" size=".1 .1 1"/></body></body></worldbody>
      <keyframe><key name="up" qpos="0 0 5 1 0 0 0" mpos="0 0 1" mquat="0 1 0 0"/></keyframe></mujoco>"""
    for keyframe, height, sign in ((None, -3, -1), ("up", 1, 1)):
        imported, _ = scene_of(tmp_path, text, keyframe=keyframe)
        assert [link.name for link in imported.scene.links] == ["ball"]
        places = {static.name: static.position for static in imported.scene.statics}
        assert places == {"table": pytest.approx((0, 0, height)), "leg": pytest.approx((0, 0, height + sign))}
        assert [item.what for item in imported.report.of("approximated")] == ["mocap body 'table'"]


@pytest.mark.parametrize(
    ("geom", "plane", "data", "why"),
    [
        ("", "0 0 .1", "dist", ""),
        ('contype="0" conaffinity="0"', "0 0 .1", "dist", "its rays go through geoms that touch nothing"),
        ("", "5 5 .1", "dist", "planes have no ends for it"),
        ("", "0 0 .1", "dist normal", "it reads the distance alone"),
    ],
)
def test_the_report_says_what_rays_do_not_see(tmp_path, geom, plane, data, why):
    text = f"""<mujoco><worldbody><geom type="plane" size="{plane}" pos="0 0 -1"/>
      <geom type="box" size=".1 2 2" pos="2 0 0" {geom}/>
      <body><joint axis="0 0 1"/><geom size=".1"/><site name="ahead" euler="0 90 0"/></body>
      </worldbody><sensor><rangefinder name="ray" site="ahead" data="{data}"/></sensor></mujoco>"""
    imported, _ = scene_of(tmp_path, text)
    (item,) = [item for item in imported.report.items if item.what == "rangefinder sensor 'ray'"]
    assert (item.outcome, item.why) == ("approximated" if why else "taken", why)


def test_the_report_says_where_frames_of_sensors_are_missing(tmp_path):
    text = """<mujoco><worldbody><camera name="eye" pos="0 0 2"/>
      <body name="b"><joint axis="0 0 1"/><geom size=".1"/><camera name="own"/></body></worldbody>
      <sensor><framepos name="of" objtype="camera" objname="own"/>
        <framepos name="to" objtype="body" objname="b" reftype="camera" refname="eye"/></sensor></mujoco>"""
    imported, _ = scene_of(tmp_path, text)
    why = {item.what: item.why for item in imported.report.of("ignored")}
    assert why["framepos sensor 'of'"] == "it is on a camera: Carom's are on sites, bodies and geoms"
    assert why["framepos sensor 'to'"] == "it is relative to another frame"


def test_a_start_outside_the_limits(tmp_path):
    body = '<body><joint name="j" range="30 60"/><geom size="1"/></body>'
    imported, _ = scene_of(tmp_path, f"<mujoco><worldbody>{body}</worldbody></mujoco>")
    assert imported.scene.links[0].q0 == np.deg2rad(30)
    assert [item.what for item in imported.report.of("approximated")] == ["start of joint 'j'"]


# spheres in one place: MuJoCo's contacts are the pairs that may touch, and their frictions
CROWD = """
<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1" friction=".3"/>
    <body name="wall"><geom type="box" size="1 1 .1" contype="2" conaffinity="4" friction=".9"/></body>
    <body name="a"><freejoint/><geom size=".1"/></body>
    <body name="b" pos=".01 0 0"><freejoint/><geom size=".1" contype="2" conaffinity="2" friction=".5"/></body>
    <body name="c" pos="0 .01 0"><freejoint/><geom size=".1" contype="4" conaffinity="1" condim="1"/></body>
    <body name="d" pos="0 0 .01"><freejoint/>
      <geom size=".1" contype="3" conaffinity="0" priority="2" friction=".2"/></body>
    <body name="e" pos=".01 .01 0"><freejoint/><geom size=".1" condim="1" priority="2"/></body>
    <body name="f" pos="0 .01 .01"><freejoint/><geom name="f" size=".1" contype="0" conaffinity="0"/></body>
    <body name="g" pos=".01 0 .01"><freejoint/><geom name="g" size=".1" friction="2"/>
      <body name="h" pos=".01 .01 0"><joint axis="1 0 0"/><joint axis="0 1 0"/><geom size=".1" friction="2"/>
        <body name="i"><geom size=".12"/></body>
      </body>
    </body>
  </worldbody>
  <contact><exclude body1="a" body2="e"/><exclude body1="world" body2="b"/><exclude body1="wall" body2="i"/>
    <pair geom1="f" geom2="g" friction=".7"/><pair geom1="f" geom2="floor" condim="1"/></contact>
</mujoco>
"""


def test_who_may_touch_whom_and_with_what_friction(tmp_path):
    imported, m = scene_of(tmp_path, CROWD)
    model, _ = compiled(imported.scene)
    names = [*("worldbody/floor", "wall"), *model.topology.names]
    names = [{"worldbody/floor": "world"}.get(name, name) for name in names]
    link = np.array(model.topology.shape_links)
    of = [names[k] if i < 0 else names[i + 2] for k, i in enumerate(link)]
    mine = {
        frozenset((of[i], of[j])): float(mu)
        for (i, j), mu in zip(model.topology.pairs, model.pair_friction, strict=True)
    }
    data = mujoco.MjData(m)
    mujoco.mj_forward(m, data)
    theirs = {}
    for contact in data.contact:
        pair = frozenset(m.body(m.geom_bodyid[g]).name for g in contact.geom)
        theirs[pair] = contact.friction[0] if contact.dim > 1 else 0.0
    assert len(theirs) > 15
    assert mine.keys() == theirs.keys()
    assert all(abs(mine[pair] - theirs[pair]) < 1e-12 for pair in theirs)
    assert any(item.what.startswith(f"{len(theirs)} x overlap: ") for item in imported.report.of("approximated"))


def test_more_ways_to_touch_than_layers(tmp_path):
    ring = range(33)
    bodies = "".join(
        f"<body pos='{k} 0 0'><freejoint/><geom name='{k}' size='.1' contype='0' conaffinity='0'/></body>" for k in ring
    )
    pairs = "".join(f"<pair geom1='{k}' geom2='{(k + 1) % 33}'/>" for k in ring)
    xml = f"<mujoco><worldbody>{bodies}</worldbody><contact>{pairs}</contact></mujoco>"
    with pytest.raises(FileError, match="33 sets of geoms that touch differently, and Carom has 32 layers"):
        scene_of(tmp_path, xml)
    imported, _ = scene_of(tmp_path, xml, drop=["pair"])
    assert compiled(imported.scene)[0].topology.pairs == ()


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(("inside", "more", "why"), [
    (True, "", "neighbours do not touch"),
    (False, '<exclude body1="a" body2="b"/>', "excluded bodies do not touch"),
    (False, "", None),
])  # fmt: skip
def test_a_pair_that_does_not_touch_here_is_told(tmp_path, inside, more, why, swapped):
    """Pairs of neighbours, and of bodies that the file excludes, touch in MuJoCo."""
    first, second = (
        '<body name="a" pos="0 0 1"><joint/><geom name="a" size=".2"/>',
        ('<body name="b" pos="0 0 .5"><joint/><geom name="b" size=".2"/></body>'),
    )
    bodies = f"{first}{second}</body>" if inside else f"{first}</body>{second}"
    one, two = "ba" if swapped else "ab"
    pair = f'<pair geom1="{one}" geom2="{two}"/>'
    imported, _ = scene_of(tmp_path, f"<mujoco><worldbody>{bodies}</worldbody><contact>{more}{pair}</contact></mujoco>")
    assert [item.why for item in imported.report.of("approximated") if item.what.startswith("pair")] == (
        [why] if why else []
    )
    assert len(compiled(imported.scene)[0].topology.pairs) == (why is None)


ACTUATED = """
<mujoco>
  <option><flag contact="disable"/></option>
  <worldbody>
    <body><joint name="a"/><geom size="1"/></body>
    <body><joint name="b" type="slide"/><geom size="1"/></body>
    <body><joint name="c" actuatorfrcrange="-2 2" actuatorfrclimited="true"/><geom size="1"/></body>
    <body><joint name="d" armature=".2"/><geom size="1"/></body>
    <body><joint name="e"/><geom size="1"/></body>
    <body><joint name="f"/><geom size="1"/></body>
  </worldbody>
  <actuator>
    <motor joint="a" gear="3" ctrlrange="-2 2"/>
    <position joint="b" kp="20" kv="3" gear="-2" forcerange="-15 15" ctrlrange="1 2"/>
    <velocity joint="c" kv="5"/>
    <position joint="d" kp="4" gear="2"/><velocity joint="d" kv="3"/>
    <general joint="e" gainprm="7" biastype="affine" biasprm="3 -2 -1"/>
    <intvelocity joint="f" kp="4" actrange="-1 1"/>
  </actuator>
  <keyframe><key ctrl=".7 2.5 .3 .2 -.4 .6 0"/></keyframe>
</mujoco>
"""


def test_motors(tmp_path):
    imported, m = scene_of(tmp_path, ACTUATED, keyframe=0)
    model, _ = compiled(imported.scene)
    q, v = random_state(m, np.random.default_rng(3))
    data = mujoco.MjData(m)
    mujoco.mj_resetDataKeyframe(m, data, 0)
    for scale in (0.3, 3.0):  # within the limits, and beyond
        data.qpos[:], data.qvel[:] = scale * q, scale * v
        mujoco.mj_forward(m, data)
        with jax.disable_jit():
            mine = motor_forces(model, *map(jnp.asarray, (scale * q, scale * v)))
        np.testing.assert_allclose(mine, data.qfrc_actuator, rtol=1e-12)
    assert abs(data.qfrc_actuator[1]) == 30  # the limit was met
    approximated = {item.what: item.why for item in imported.report.of("approximated")}
    assert approximated == {
        "actuator 'actuator 6'": "its ctrl is a rate, which nothing integrates: u stands for its activation, "
        "the integral",
        "actuated joint 'd'": "position motor in place of 2 actuators, their limits and forces added up",
    }
    (integrated,) = [a for a in imported.report.actuators if a.link == imported.scene.links[5].name]
    assert (integrated.lower, integrated.upper) == (-1, 1)  # of its activation


def test_the_report_says_what_motors_and_pairs_cannot_hold(tmp_path):
    text = """<mujoco><worldbody><geom name="floor" type="plane" size="0 0 .1"/>
      <body pos="0 0 1"><joint name="j"/><geom name="g" size=".1"/></body></worldbody>
      <actuator><position joint="j" kp="50" forcerange="-4 4"/><motor joint="j"/></actuator>
      <contact><pair geom1="g" geom2="floor" friction=".7 .3 .1 .1 .1"/></contact></mujoco>"""
    imported, _ = scene_of(tmp_path, text)
    approximated = {item.what: item.why for item in imported.report.of("approximated")}
    assert approximated["actuated joint 'j'"].endswith("their forces added up, limits left out: some have none")
    assert approximated["pair 'world, body 1'"] == (
        "friction 0.7 along one tangent and 0.3 along the other: the first holds all round"
    )


SHAPES = """
<mujoco>
  <asset>
    <mesh name="wedge" vertex="0 0 0  1 0 0  0 2 0  0 0 3  .1 .1 .1"/>
    <hfield name="ground" nrow="2" ncol="3" size="2 1 5 1" elevation="0 .2 .4  .6 .8 1"/>
  </asset>
  <worldbody>
    <body name="stand" pos="1 2 3" euler="0 0 90">
      <geom name="ground" type="hfield" hfield="ground" pos=".5 0 0"/></body>
    <body name="body" pos="50 0 9"><joint pos=".5 .5 .5"/>
      <geom name="wedge" type="mesh" mesh="wedge" pos="1 1 1" euler="30 40 50"/></body>
  </worldbody>
</mujoco>
"""


@pytest.mark.parametrize("flag", ["constraint", "limit", "frictionloss", "clampctrl"])
def test_what_a_flag_turns_off_is_off(tmp_path: Path, flag: str) -> None:
    xml = f"""<mujoco><option><flag {flag}="disable"/></option><worldbody><body>
      <joint name="j" axis="0 1 0" range="-10 10" frictionloss="2"/><geom size=".1" pos=".3 0 0"/>
      </body></worldbody><actuator><motor joint="j" gear="10" ctrlrange="-1 1"/></actuator></mujoco>"""
    imported, _ = scene_of(tmp_path, xml)
    joint = imported.scene.links[0].joint
    assert (joint.limits is None) == (flag in ("constraint", "limit"))
    assert joint.loss == (0 if flag in ("constraint", "frictionloss") else 2)
    assert joint.motor is not None
    assert joint.motor.effort == (math.inf if flag == "clampctrl" else 10)


def test_meshes_and_heightfields_stand_where_they_stood(tmp_path):
    imported, m = scene_of(tmp_path, SHAPES)
    data = mujoco.MjData(m)
    mujoco.mj_forward(m, data)
    static: Any = imported.scene.statics[0]
    link: Any = imported.scene.links[0]
    ground, wedge = static.shapes[0], link.shapes[0]
    (dx, dy), heights = ground.cell, np.array(ground.heights)
    frame = data.geom_xmat[0].reshape(3, 3)
    for (i, j), height in np.ndenumerate(heights):  # MuJoCo's ray from above meets the ground by each vertex
        corner = 0.999 * np.array([(i - 1) * dx, (j - 0.5) * dy, 0])
        above = data.geom_xpos[0] + frame @ corner + [0, 0, 20]
        depth = mujoco.mj_ray(m, data, above, np.array([0, 0, -1.0]), None, 1, -1, np.zeros(1, np.int32))
        assert abs(20 - depth - height) < 0.01  # beside the vertex, on slopes of four and less
    assert len(np.unique(heights)) == 6
    np.testing.assert_allclose(static.position, data.xpos[1])
    assert ground.position == (0.5, 0.0, 0.0)
    assert len(wedge.points) == 4  # the inner vertex is not on the hull
    file = np.array([[0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 3.0]])
    R = np.empty(9)
    mujoco.mju_quat2Mat(R, np.array(wedge.quaternion))
    mine = np.array(link.position) + np.array(wedge.position) + np.array(wedge.points) @ R.reshape(3, 3).T
    turn = np.empty(4)
    mujoco.mju_euler2Quat(turn, np.deg2rad([30, 40, 50]), "xyz")
    mujoco.mju_quat2Mat(R, turn)
    wanted = np.array([51, 1, 10]) + file @ R.reshape(3, 3).T
    gaps = np.linalg.norm(mine[:, None] - wanted, axis=-1)
    assert gaps.min(axis=0).max() < 1e-6  # single precision again
    assert compiled(imported.scene)[0].topology.shape_kinds == ("heightfield", "hull")


CLOSED = """
<mujoco>
  <option><flag contact="disable"/></option>
  <worldbody>
    <body name="a" pos="0 0 1" euler="10 20 30"><joint name="i" axis="0 1 0" ref="20"/><joint name="ja" axis="1 0 0"/>
      <geom size=".1"/><site name="s" pos=".1 .2 .3" euler="40 0 10"/>
      <body name="b" pos=".5 0 0" euler="0 40 0"><joint name="jb" axis="0 1 0"/><geom size=".1"/></body>
    </body>
    <body name="c" pos="1 0 1" euler="0 0 50"><freejoint/><geom size=".1"/><site name="t" pos=".3 .1 0"/></body>
    <body name="d" pos="2 0 1"><joint name="jd" type="slide" axis="1 0 0" ref=".1"/><geom size=".1"/></body>
  </worldbody>
  <equality>
    <connect name="ball" body1="b" body2="c" anchor=".1 .2 .3"/> <connect body1="a" anchor="0 .1 .2"/>
    <weld body1="d" body2="c" anchor=".1 .2 .3"/> <weld name="ground" body1="c"/>
    <joint name="gear" joint1="jd" joint2="i" polycoef="0 .5 0 0 0"/> <joint joint1="jb" polycoef="0 1 0 0 0"/>
    <weld body1="a" body2="b" active="false"/>
  </equality>
</mujoco>
"""


def test_equalities_are_loops(tmp_path):
    """As MuJoCo's, where all hold: none is off, and their rows span the same of the velocities' space."""
    imported, m = scene_of(tmp_path, CLOSED)
    scene, report = imported
    assert [loop.joint.kind for loop in scene.loops] == ["spherical"] * 2 + ["fixed"] * 2 + ["gear", "driven"]
    assert scene.loops[4].link_b == "a/i"
    told = {item.what: item.outcome for item in report.items}
    assert told["2 x connect: 'ball', 'equality 1'"] == told["joint equality 'gear'"] == "taken"
    assert [item.why for item in report.of("ignored") if "equality" in item.what] == ["it is not active at the start"]
    model, state = compiled(scene)
    found = closed(model, state.q, state.v)
    m.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    data = mujoco.MjData(m)
    mujoco.mj_forward(m, data)
    rows = data.efc_J.reshape(-1, m.nv)[: data.ne] @ velocity_map(m, m.qpos0)
    assert (len(rows), len(found.A)) == (20, 20)
    np.testing.assert_allclose(found.error, 0, atol=1e-12)
    loop = np.repeat(range(6), [3, 3, 6, 6, 1, 1])
    span = lambda x: x.T @ np.linalg.pinv(x.T)  # noqa: E731
    for k in range(6):
        ours, theirs = span(found.A[loop == k]), span(rows[loop == k])
        np.testing.assert_allclose(ours, theirs, atol=1e-9, err_msg=str(scene.loops[k]))


COUPLED = """
<mujoco>
  <option><flag contact="disable"/></option>
  <worldbody>
    <body name="a"><joint name="i" axis="0 1 0" ref="20"/><geom size=".1"/>
      <body name="b" pos=".5 0 0"><joint name="j" axis="0 1 0" ref="-10"/><geom size=".1"/></body></body>
    <body name="c" pos="0 0 1"><joint name="k" type="slide" axis="1 0 0" ref=".2"/><geom size=".1"/></body>
  </worldbody>
  <tendon>
    <fixed name="two" stiffness="3" range="0 1" limited="true">
      <joint joint="i" coef=".5"/><joint joint="j" coef="-1.5"/></fixed>
    <fixed name="one" frictionloss=".1"><joint joint="k" coef="2"/></fixed>
    <fixed name="idle"><joint joint="k" coef="2"/></fixed>
  </tendon>
  <equality>
    <tendon name="gear" tendon1="two" polycoef="{0} 0 0 0 0"/>
    <tendon name="still" tendon1="one" polycoef="{1} 0 0 0 0"/>
  </equality>
</mujoco>
"""


@pytest.mark.parametrize("lengths", [(0, 0), (0.3, -0.1)])
def test_fixed_tendons_of_constant_length_are_gears(tmp_path, lengths):
    """Their springs and limits do nothing. Where the scene starts, MuJoCo's constraints hold."""
    (scene, report), m = scene_of(tmp_path, COUPLED.format(*lengths))
    assert [loop.joint.kind for loop in scene.loops] == ["gear", "driven"]
    told = {item.what: item.outcome for item in report.items}
    assert told["tendon 'idle'"] == "ignored"
    assert told["equality of a fixed tendon 'gear'"] == told["equality of a fixed tendon 'still'"] == "taken"
    model, state = compiled(scene)
    data = mujoco.MjData(m)
    data.qpos[:] = state.q
    mujoco.mj_forward(m, data)
    assert data.ne == 2
    np.testing.assert_allclose(data.efc_pos[:2], 0, atol=1e-12)
    m.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    mujoco.mj_forward(m, data)
    rows, found = data.efc_J.reshape(-1, m.nv)[:2], closed(model, state.q, state.v)
    for ours, theirs in zip(np.asarray(found.A), rows, strict=True):
        assert abs(ours @ theirs) == pytest.approx(np.linalg.norm(ours) * np.linalg.norm(theirs))


WORLD = "<mujoco>{0}<worldbody>{1}<body name='b'>{2}<geom name='g' size='1'/></body></worldbody>{3}</mujoco>"
ANOTHER = "<body name='c'><joint name='k'/><geom size='1'/></body>"
TENDON = "<tendon><fixed name='t' {0}><joint joint='j' coef='1'/></fixed></tendon>"
REFUSED = {
    "equality": WORLD.format(
        "",
        ANOTHER,
        "<joint name='j'/>",
        "<equality><joint name='q' joint1='j' joint2='k' polycoef='0 1 2 0 0'/></equality>",
    ),
    "tendon": WORLD.format("", "", "<joint name='j'/>", TENDON.format("stiffness='2'")),
    "actuator": WORLD.format(
        "", "", "<joint name='j'/>", TENDON.format("") + "<actuator><position tendon='t' kp='1'/></actuator>"
    ),
    "gravcomp": "<mujoco><worldbody><body name='b' gravcomp='1'><joint/><geom size='1'/></body></worldbody></mujoco>",
    "fluid": WORLD.format("<option density='1.2'/>", "", "<joint/>", ""),
    "armature": WORLD.format("", "", "<joint type='free' armature='1'/>", ""),
    "spring": WORLD.format("", "", "<joint type='free' stiffness='1'/>", ""),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_would_move_otherwise_is_refused_until_it_is_dropped(tmp_path, kind):
    with pytest.raises(FileError, match=rf"nothing like.*drop=\['{kind}'\]"):
        scene_of(tmp_path, REFUSED[kind])
    imported, _ = scene_of(tmp_path, REFUSED[kind], drop=[kind])
    assert any(item.why.startswith("left out, as asked for") for item in imported.report.of("approximated"))
    compiled(imported.scene)


def test_nothing_else_can_be_dropped(tmp_path):
    with pytest.raises(ValueError, match="drop has 'gravity': give a list of some of equality, tendon"):
        scene_of(tmp_path, TREE, drop="gravity")


WRONG = [
    ("", None, "empty"),
    ("<mujoco>\n<worldbody>\n<body>", 3, "MISMATCHED"),
    ("<mujoco>\n<worldbody>\n<body><jiont/></body></worldbody></mujoco>", 3, "unrecognized element.*jiont"),
    ("<mujoco>\n<worldbody><geom sise='1'/></worldbody></mujoco>", 2, "unrecognized attribute.*sise"),
    ("<mujoco><worldbody>\n<body><joint/></body></worldbody></mujoco>", 2, "mass and inertia"),
    ("<mujoco><worldbody>\n\n<body><joint/><geom size='-1'/></body></worldbody></mujoco>", 3, "must be positive"),
    (
        "<mujoco><worldbody>\n<body><body><freejoint/><geom size='1'/></body></body></worldbody></mujoco>",
        2,
        "top level",
    ),
    ("<mujoco>\n<include file='missing.xml'/></mujoco>", 2, "missing.xml"),
    ("<mujoco><asset><mesh file='missing.stl'/></asset></mujoco>", None, "missing.stl"),
    ("<mujoco><worldbody><body name='a'/>\n<body name='a'/></worldbody></mujoco>", 2, "repeated name"),
    ("<mujoco><actuator>\n<motor joint='nobody'/></actuator></mujoco>", 2, "nobody"),
]


@pytest.mark.parametrize(("xml", "line", "what"), WRONG)
def test_wrong_files_get_one_message_with_the_line(tmp_path, xml, line, what):
    with pytest.raises(FileError, match=what) as caught:
        scene_of(tmp_path, xml)
    assert caught.value.line == line
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("geom", "why"),
    [
        ("size='1e20'", "radius is .*no number in it may be larger than"),
        ("size='1' pos='1e13 0 0'", "position is .*no number in it may be larger than"),
        ("size='1' friction='-1'", "friction is -1.0; it must not be negative"),
    ],
)
def test_what_cannot_be_a_scene_is_refused_with_the_file(tmp_path, geom, why):
    static = "<geom name='floor' type='plane' size='1 1 1' friction='2'/>"
    with pytest.raises(FileError, match=why):
        scene_of(
            tmp_path, f"<mujoco><worldbody>{static}<body><joint/><geom mass='1' {geom}/></body></worldbody></mujoco>"
        )


def test_a_file_of_another_name(tmp_path):
    (tmp_path / "robot.mjcf").write_text(TREE)
    with pytest.raises(FileError, match=r"ends in \.xml: rename it"):
        import_mjcf(tmp_path / "robot.mjcf")


def test_no_such_file():
    with pytest.raises(FileError, match=r"nowhere\.xml"):
        import_mjcf("nowhere.xml")


def test_the_report_leaves_nothing_out(tmp_path):
    flags = "<option><flag contact='disable' gravity='disable' limit='disable'/></option>"
    site = "<joint name='j' range='1 2'/><site name='s'/><camera/><light/>"
    motor = "<actuator><motor site='s'/></actuator><sensor><gyro site='s'/></sensor>" + TENDON.format("")
    imported, _ = scene_of(tmp_path, WORLD.format(flags, "", site, motor))
    ignored = " ".join(item.what for item in imported.report.of("ignored"))
    for what in (
        "all geoms",
        "actuator 'actuator 0'",
        "tendon 't'",
        "cameras: 1",
        "lights: 1",
    ):
        assert what in ignored
    scene = imported.scene
    assert scene.gravity == (0, 0, 0)
    assert (scene.links[0].shapes, scene.links[0].joint.limits, scene.links[0].q0) == ((), None, 0)


def folder_of(package: str, *parts: str) -> Path:
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent.joinpath(*parts)


GYMNASIUM = folder_of("gymnasium", "envs", "mujoco", "assets")
DIVERSE = ["inverted_double_pendulum.xml", "hopper.xml", "point.xml", "swimmer.xml"]


@pytest.mark.parametrize("name", DIVERSE)
def test_small_robots(name):
    outcome, worst = row(GYMNASIUM / name)
    assert (worst or 0) < TOLERANCE
    assert outcome == ("refused: fluid" if name == "swimmer.xml" else "imported")


@pytest.mark.slow
def test_table_of_gymnasium():
    rows = {path.name: row(path) for path in sorted(GYMNASIUM.glob("*.xml"))}
    show(rows)
    assert len(rows) > 10


@pytest.mark.slow
def test_table_of_menagerie():
    """Of the models that are at hand: the package brings only their list, and downloads them when asked to."""
    menagerie = pytest.importorskip("mujoco_menagerie")
    cache = menagerie.Cache()
    rows = {}
    for robot in menagerie.robots():
        if cache.is_cached(robot) or (cache.root and (cache.root / robot.name).is_dir()):
            files = [robot.path(cache) / entry.file for entry in robot.entry_points if entry.kind == "robot"]
            rows |= {f"{robot.name}/{file.name}": row(file) for file in files}
    if not rows:
        pytest.skip(
            "no model of mujoco-menagerie is here: fetch them (`mujoco-menagerie prefetch`), or set MENAGERIE_ROOT"
        )
    show(rows)


def row(path: Path) -> tuple[str, float | None]:
    """What became of a file, and the largest error of its dynamics; of a refused one with everything dropped."""
    try:
        outcome, imported = "imported", import_mjcf(path)
    except FileError as error:
        if "nothing like" not in str(error):
            return str(error), None
        imported = import_mjcf(path, drop=KINDS)
        outcome = "refused: " + str(error).rsplit("drop=[", 1)[1].split("]")[0].replace("'", "")
    if not imported.scene.links:
        return f"{outcome}, nothing moves", None
    m = mujoco.MjModel.from_xml_path(str(path))
    free = np.repeat(m.jnt_type == 0, np.array([6, 3, 1, 1])[m.jnt_type])
    m.dof_armature[free], m.tendon_armature[:] = 0.0, 0.0  # dropped, where there was any
    mujoco.mj_setConst(m, mujoco.MjData(m))
    worst = errors(m, compiled(bare(imported.scene))[0], np.random.default_rng(0), TABLE_STATES)
    if outcome != "imported":
        del worst["passive"]  # what was dropped acts there
    return outcome, max(worst.values())


def show(rows: dict[str, tuple[str, float | None]]) -> None:
    print()
    for name, (outcome, worst) in rows.items():
        print(f"{name:45} {outcome:40} {'' if worst is None else f'{worst:.1e}'}")
    wrong = {name: worst for name, (_, worst) in rows.items() if worst is not None and worst >= TOLERANCE}
    assert not wrong
    assert all(worst is not None or "nothing moves" in outcome for outcome, worst in rows.values())


def test_warnings_of_mujoco_stand_in_the_report(tmp_path: Path) -> None:
    path = tmp_path / "old.xml"
    body = '<body name="b"><freejoint/><geom size="1"/></body>'
    path.write_text(f'<mujoco><compiler settotalmass="2"/><worldbody>{body}</worldbody></mujoco>')
    said, before = [], mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(said.append)
    try:
        mujoco.MjModel.from_xml_path(str(path))  # newer versions say that the attribute is old
    finally:
        mujoco.set_mju_user_warning(before)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = import_mjcf(path).report
    assert [item.why for item in report.items if "warning of MuJoCo" in item.what] == [
        " ".join(x.split()) for x in said
    ]
