"""Robots from URDF files: they move as in Pinocchio; what the report says of each element."""

# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false
# (links and joints of a scene are of several classes; each test knows which)

from pathlib import Path

import numpy as np
import pytest

from carom.collision.shapes import Box, Capsule, Cylinder, Mesh, Sphere
from carom.engine.dynamics.crba import crba
from carom.engine.dynamics.kinematics import fk
from carom.engine.dynamics.rnea import rnea
from carom.engine.loops.forward import constrained
from carom.scenes.compile import compile_scene
from carom.scenes.formats.errors import FileError
from carom.scenes.formats.urdf import import_urdf
from carom.scenes.joint_specs import Motor
from carom.scenes.loop_specs import Gear
from carom.scenes.spec import LoopSpec
from carom.tests.oracles.on_numpy import on_numpy
from carom.tests.oracles.random_trees import random_state
from carom.tests.oracles.robots import UrdfOracle, urdf_files

ROBOTS = urdf_files()
STATES = 2  # of every robot
WHAT = ("mass matrix", "bias force", "positions", "rotations")
TOLERANCE = 1e-9  # what the project promises, relative to the largest entry; rounding leaves 1e-15

# four of different kinds, without meshes: free in the air, on legs, hanging on the world, a hand that is fixed
QUICK = {
    "iris_description/robots/iris_simple.urdf": True,
    "laikago_description/urdf/laikago.urdf": True,
    "asr_twodof_description/urdf/TwoDofs.urdf": False,
    "allegro_hand_description/urdf/allegro_left_hand.urdf": False,
}


def differences(path: Path, floating: bool = False, **options) -> tuple[dict[str, float], int]:
    """From Pinocchio at random states, relative to the largest entry; and how many degrees of freedom there are.

    Bias forces are measured by the largest inertia too: at speeds of one they are made of that, before it cancels.
    """
    scene, _ = import_urdf(path, floating=floating, **options)
    model, _ = compile_scene(scene)
    oracle = UrdfOracle(path, model.topology, floating)
    q, v = random_state(np.random.default_rng(0), model.topology, (STATES,))

    def everything(model, q, v):
        return crba(model, q), rnea(model, q, v, 0 * v), *fk(model, q)[:2]

    theirs = [(oracle.crba(x), oracle.rnea(x, y, 0 * y), *oracle.poses(x)) for x, y in zip(q, v, strict=True)]
    worst, least = {}, [1e-300, max(np.abs(answer[0]).max(initial=0) for answer in theirs), 1e-300, 1e-300]
    for k, ours in enumerate(on_numpy(everything, model, q, v)):
        wanted = np.array([answer[k] for answer in theirs])
        worst[WHAT[k]] = float(np.abs(ours - wanted).max(initial=0) / np.abs(wanted).max(initial=least[k]))
    return worst, model.topology.nv


@pytest.mark.skipif(not ROBOTS, reason="example-robot-data is not installed")
@pytest.mark.parametrize("name", QUICK)
def test_robots_move_as_in_pinocchio(name):
    worst, _ = differences(ROBOTS[name], QUICK[name])
    assert max(worst.values()) < TOLERANCE


# -- everything at once ---------------------------------------------------------------------------------------------

INERTIAL = """<inertial><origin xyz="0.1 -0.2 0.3" rpy="0.4 0.5 -0.6"/><mass value="{mass}"/>
  <inertia ixx="0.3" ixy="0.01" ixz="0.02" iyy="0.4" iyz="-0.03" izz="0.5"/></inertial>"""
ORIGIN = '<origin xyz="0.3 -0.1 0.2" rpy="{rpy}"/>'


def link(name: str, inside: str = "", mass: float = 1.5) -> str:
    return f'<link name="{name}">{INERTIAL.format(mass=mass)}{inside}</link>\n'


def joint(name: str, kind: str, parent: str, child: str, inside: str = "", rpy: str = "0.7 -0.8 0.9") -> str:
    ends = f'<parent link="{parent}"/><child link="{child}"/>'
    return f'<joint name="{name}" type="{kind}">{ORIGIN.format(rpy=rpy)}{ends}{inside}</joint>\n'


LIMIT = '<limit lower="-1" upper="2" effort="30" velocity="4"/>'
SHAPES = """<collision><origin xyz="1 2 3" rpy="0 0 1.5707963267948966"/>
<geometry><box size="0.2 0.4 0.6"/></geometry></collision>
<collision><geometry><cylinder radius="0.1" length="0.5"/></geometry></collision>
<collision><geometry><sphere radius="0.1"/></geometry></collision>
<collision name="c"><geometry><capsule radius="0.1" length="0.5"/></geometry></collision>
<collision><geometry><mesh filename="package://no_such/mesh.stl"/></geometry></collision>
<collision><geometry><sphere radius="0"/></geometry></collision>
<visual><geometry><box size="1 1 1"/></geometry></visual>
<contact><lateral_friction value="0.8"/><restitution value="0.25"/><stiffness value="30"/></contact>"""

EVERYTHING = (
    '<robot name="everything">\n<material name="red"><color rgba="1 0 0 1"/></material>\n'
    + link("base", SHAPES)
    + '<link name="between"/>\n'
    + "".join(link(name) for name in ("arm", "turning", "sliding", "gliding", "tool", "free"))
    + joint(
        "j1", "revolute", "base", "between", f'<axis xyz="1 2 3"/>{LIMIT}<dynamics damping="0.4" friction="0.2" k="1"/>'
    )
    + joint("j2", "fixed", "between", "arm")
    + joint("j3", "continuous", "arm", "turning", '<axis xyz="0 1 0"/><limit effort="0" velocity="1"/>')
    + joint(
        "j4",
        "prismatic",
        "turning",
        "sliding",
        '<limit lower="0.5" upper="1" effort="1" velocity="1"/><safety_controller k_velocity="1"/>',
    )
    + joint("j5", "planar", "arm", "gliding", '<axis xyz="0 0 1"/>')
    + joint("j6", "fixed", "gliding", "tool")
    + joint("j7", "floating", "base", "free")
    + '<transmission name="t"/><gazebo reference="arm"><mu1>0.2</mu1></gazebo><gazebo/>\n</robot>\n'
)


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "robot.urdf"
    path.write_text(text)
    return path


def test_everything_at_once_moves_as_in_pinocchio(tmp_path):
    with pytest.warns(UserWarning, match="1 collision shapes are left out"):
        worst, dofs = differences(written(tmp_path, EVERYTHING.replace("capsule", "cylinder")))
    assert dofs == 1 + 1 + 1 + 3 + 6
    assert max(worst.values()) < TOLERANCE


@pytest.mark.filterwarnings("ignore:.*left out")
def test_every_number_arrives(tmp_path):
    scene = import_urdf(written(tmp_path, EVERYTHING)).scene
    links = {spec.name: spec for spec in scene.links}
    assert list(links) == ["base", "between", "arm", "turning", "sliding", "gliding", "tool", "free"]
    hinge = links["between"].joint
    assert (hinge.axis, hinge.limits, hinge.damping, hinge.loss) == ((1, 2, 3), (-1, 2), 0.4, 0.2)
    assert hinge.motor == Motor(effort=30)
    assert links["turning"].joint.motor is None
    assert links["sliding"].q0 == 0.5
    assert links["between"].mass == 0
    box, cylinder, sphere, capsule = links["base"].shapes
    assert (type(box), type(cylinder), type(sphere), type(capsule)) == (Box, Cylinder, Sphere, Capsule)
    assert box.half_extents == (0.1, 0.2, 0.3)
    assert box.position == (1, 2, 3)
    np.testing.assert_allclose(box.quaternion, (0.5**0.5, 0, 0, 0.5**0.5), atol=1e-15)
    assert (cylinder.half_length, capsule.half_length) == (0.25, 0.25)
    assert (links["base"].friction, links["base"].restitution) == (0.8, 0.25)


@pytest.mark.filterwarnings("ignore:.*left out")
def test_nothing_is_dropped_in_silence(tmp_path):
    items = {item.what: item for item in import_urdf(written(tmp_path, EVERYTHING)).report.items}
    outcomes = {what: item.outcome for what, item in items.items()}
    taken = {what for what, outcome in outcomes.items() if outcome == "taken"}
    assert {f'link "{name}"' for name in ("between", "arm", "turning", "sliding", "gliding", "tool", "free")} <= taken
    assert 'link "base" (the root): fixed to the world' in taken
    assert {'joint "j1" (revolute)', 'joint "j5" (planar)', 'joint "j7" (floating)'} <= taken
    assert {
        f'link "base", collision {k} ({s})' for k, s in enumerate(("box", "cylinder", "sphere", "capsule"))
    } <= taken
    assert outcomes['link "base", collision 4 (mesh package://no_such/mesh.stl)'] == "approximated"
    assert outcomes['link "base", collision 5 (sphere)'] == "ignored"
    assert "0.5" in items['joint "j4" (prismatic)'].why
    ignored = {what for what, outcome in outcomes.items() if outcome == "ignored"}
    assert {"<robot><material>", "<link><visual>", "<robot><transmission>", "<robot><gazebo>, 2 times"} <= ignored
    assert {
        "<limit velocity>, 3 times",
        "<joint><safety_controller>",
        "<dynamics k>",
        "<contact><stiffness>",
    } <= ignored
    assert all(item.why for item in items.values() if item.outcome != "taken")


# -- what is decided for the user -----------------------------------------------------------------------------------

ARM = '<robot name="r">' + link("a") + link("b") + link("c")
HINGE = joint("j", "revolute", "a", "b", LIMIT)
FOLLOWS = '<limit lower="-9" upper="9" effort="1" velocity="1"/><mimic joint="j" multiplier="2" offset="0.5"/>'


def test_a_mimic_joint_may_follow_another(tmp_path):
    """q_n = -q_m + 0.1 = -2 q_j - 0.4."""
    follows = '<limit lower="-9" upper="9" effort="1" velocity="1"/><mimic joint="m" multiplier="-1" offset="0.1"/>'
    links = ARM + link("d") + HINGE + joint("m", "revolute", "b", "c", FOLLOWS)
    path = written(tmp_path, links + joint("n", "prismatic", "c", "d", follows) + "</robot>")
    scene, _ = import_urdf(path, q0={"j": 0.25})
    np.testing.assert_allclose(compile_scene(scene)[1].q, [0.25, 1.0, -0.9])
    for choice in ("free", "fixed"):
        bare = import_urdf(path, mimic=choice, q0={"j": 0.25}).scene.links
        assert bare[1].q0 == 0.25
        assert bare[3].q0 == (-0.9 if choice == "free" else None)
    stuck = links.replace(LIMIT, '<limit lower="0.5" upper="0.5" effort="1" velocity="1"/>')
    path = written(tmp_path, stuck + joint("n", "prismatic", "c", "d", follows) + "</robot>")
    assert {x.joint.kind for x in import_urdf(path).scene.links} == {"fixed"}
    circle = links.replace('joint="j"', 'joint="n"') + joint("n", "prismatic", "c", "d", follows) + "</robot>"
    with pytest.raises(FileError, match="in a circle, m > n > m: one must follow none"):
        import_urdf(written(tmp_path, circle))


def test_mimic_joints_are_geared_or_as_told(tmp_path):
    path = written(tmp_path, ARM + HINGE + joint("m", "revolute", "b", "c", FOLLOWS) + "</robot>")
    scene, report = import_urdf(path, q0={"j": 0.25})
    assert scene.loops == (LoopSpec("c", Gear(2.0, 0.5), "b", name="m"),)
    assert 'joint "m" (revolute), as a gear' in [item.what for item in report.of("taken")]
    model, state = compile_scene(scene)
    np.testing.assert_allclose(state.q, [0.25, 1.0])
    # against Pinocchio's mass matrix: forward dynamics along q_m = 2 q_j + 0.5
    bare = compile_scene(import_urdf(path, mimic="free").scene)[0]
    M, b = np.asarray(crba(bare, state.q)), np.asarray(rnea(bare, state.q, state.v, state.v))
    along = np.array([1.0, 2.0])
    wanted = -along * (along @ b) / (along @ M @ along)
    np.testing.assert_allclose(constrained(model, state.q, state.v, 0.0, state.v).acceleration, wanted, rtol=1e-9)
    with pytest.raises(FileError, match=r'q0 names joint "m", which follows "j": give that one\'s'):
        import_urdf(path, q0={"m": 0.25})
    for choice, kind, q0 in (("free", "revolute", 2 * 0.25 + 0.5), ("fixed", "fixed", None)):
        scene, report = import_urdf(path, mimic=choice, q0={"j": 0.25})
        assert (scene.links[2].joint.kind, scene.links[2].q0, scene.links[1].q0) == (kind, q0, 0.25)
        assert [item.what for item in report.of("approximated")] == ['joint "m" (revolute)']
    worst, _ = differences(path, mimic="fixed")
    assert max(worst.values()) < TOLERANCE
    stuck = joint("j", "revolute", "a", "b", '<limit lower="0.5" upper="0.5" effort="1" velocity="1"/>')
    follower = joint("m", "revolute", "b", "c", FOLLOWS)
    scene, _ = import_urdf(written(tmp_path, ARM + stuck + follower + "</robot>"))
    assert (scene.loops, scene.links[2].joint.kind) == ((), "fixed")


def test_a_joint_whose_limits_are_equal_is_fixed_there(tmp_path):
    for kind in ("revolute", "prismatic"):
        inside = '<axis xyz="0 3 4"/><limit lower="0.5" upper="0.5" effort="1" velocity="1"/>'
        path = written(tmp_path, ARM + HINGE + joint("m", kind, "b", "c", inside) + "</robot>")
        worst, dofs = differences(path)
        assert dofs == 1
        assert max(worst.values()) < TOLERANCE


def test_masses_that_no_body_has(tmp_path):
    """A frame's made-up inertia counts with the link that it is welded to; of a link that moves it is refused."""
    same = " ".join(f'i{axes}="1e-3"' for axes in ("xx", "xy", "xz", "yy", "yz", "zz"))
    made_up = f'<inertial><mass value="0.5"/><inertia {same}/></inertial>'
    for mass in ("0.5", "0"):
        frame = f'<link name="frame">{made_up.replace("0.5", mass)}</link>'
        for ends in (("b", "frame"), ("frame", "b")):
            on = joint("w", "fixed", *ends) + (HINGE if ends[0] == "b" else joint("j", "revolute", "a", "frame", LIMIT))
            text = f'<robot name="r">{link("a")}{link("b", mass=9)}{frame}{on}</robot>'
            worst, _ = differences(written(tmp_path, text))
            assert max(worst.values()) < TOLERANCE
    bad = f'<robot name="r">{link("a")}<link name="b">\n{made_up}</link>{HINGE}</robot>'
    with pytest.raises(FileError, match=r'link "b".*triangle inequality.*inertias="nearest"'):
        import_urdf(written(tmp_path, bad))
    scene, report = import_urdf(written(tmp_path, bad), inertias="nearest")
    low, middle, high = np.linalg.eigvalsh(scene.links[1].inertia)
    assert low + middle == pytest.approx(high)
    assert [item.what for item in report.of("approximated")] == ['inertial of link "b"']


def test_limits_that_nobody_filled_in_are_none(tmp_path):
    for limit in ('<limit effort="1" velocity="1"/>', '<limit lower="0" upper="0" effort="1" velocity="1"/>'):
        path = written(tmp_path, ARM + HINGE + joint("m", "revolute", "b", "c", limit) + "</robot>")
        scene, report = import_urdf(path, q0={"m": 1.0})
        assert (scene.links[2].joint.limits, scene.links[2].q0) == (None, 1.0)
        assert "without limits" in report.of("approximated")[0].why


def test_links_that_overlap_at_the_start_never_touch(tmp_path):
    ball = '<collision><geometry><sphere radius="0.3"/></geometry></collision>'
    chain = [f'<link name="{name}">{INERTIAL.format(mass=1)}{ball}</link>' for name in "abc"]
    hang = joint("j", "revolute", "a", "b", LIMIT, "0 0 0") + joint("k", "revolute", "b", "c", LIMIT, "0 0 0")
    path = written(tmp_path, '<robot name="r">' + "".join(chain) + hang + "</robot>")
    apart = 2 * (0.3**2 + 0.1**2 + 0.2**2) ** 0.5  # of the first and the last ball, more than 0.6
    assert apart > 0.6
    assert import_urdf(path).scene.exclusions == ()
    path.write_text(path.read_text().replace('radius="0.3"', 'radius="0.4"'))
    scene, report = import_urdf(path)
    assert scene.exclusions == (("a", "c"),)
    assert f"overlap by {0.8 - apart:.2g} m" in report.of("approximated")[-1].why
    assert import_urdf(path, self_contact=False).scene.exclusions == ()
    assert compile_scene(import_urdf(path, self_contact=False).scene)[0].topology.pairs == ()


def test_a_free_robot_is_set_down_on_the_ground(tmp_path):
    ball = '<collision><origin xyz="0 0 -0.4"/><geometry><sphere radius="0.1"/></geometry></collision>'
    path = written(tmp_path, '<robot name="r">' + link("a", ball) + link("b") + HINGE + "</robot>")
    scene, _ = import_urdf(path, floating=True, ground=True)
    assert scene.links[0].position == pytest.approx((0, 0, 0.5))
    assert scene.statics[0].name == "ground"
    assert scene.exclusions == ()
    path.write_text('<robot name="r">' + link("a") + link("b", ball) + HINGE + "</robot>")
    fixed, _ = import_urdf(path, ground=True)  # the ball is in the ground
    assert fixed.links[0].position == (0, 0, 0)
    assert fixed.exclusions == (("ground", "b"),)


def test_meshes_are_found_as_robots_name_them(tmp_path):
    import trimesh

    package = tmp_path / "robot_description"
    (package / "meshes").mkdir(parents=True)
    (package / "urdf").mkdir()
    trimesh.creation.box((1, 1, 1)).export(package / "meshes" / "box.stl")
    for name in ("package://robot_description/meshes/box.stl", "package://renamed/meshes/box.stl", "../meshes/box.stl",
                 "meshes/box.stl", f"file://{package}/meshes/box.stl"):  # fmt: skip
        mesh = f'<collision><geometry><mesh filename="{name}" scale="1 1 -2"/></geometry></collision>'
        path = written(package / "urdf", f'<robot name="r">{link("a", mesh)}{link("b")}{HINGE}</robot>')
        (shape,) = import_urdf(path).scene.links[0].shapes
        assert isinstance(shape, Mesh)
        assert Path(shape.source).samefile(package / "meshes" / "box.stl")
        assert shape.scale == (1, 1, -2)
    (package / "meshes" / "box.stl").write_text("no mesh")
    with pytest.warns(UserWarning, match="left out"):
        scene, report = import_urdf(path)
    assert scene.links[0].shapes == ()
    assert "has no triangles" in report.of("approximated")[0].why
