"""What compile_scene makes of good scenes: defaults, conversions, order, dofs, the pair table, materials."""

import jax.numpy as jnp
import numpy as np
import pytest
import trimesh

from carom.collision.mass import shape_mass
from carom.collision.poses import from_axis_angle, rotation_matrix
from carom.collision.shapes import Box, Capsule, ConvexHull, Heightfield, Mesh, Sphere
from carom.engine.joints import JOINTS
from carom.scenes.builder import SceneBuilder
from carom.scenes.compile import compile_scene
from carom.scenes.joint_specs import (
    Cylindrical,
    Fixed,
    Floating,
    Joint,
    Motor,
    Planar,
    Prismatic,
    Revolute,
    Screw,
    Spherical,
    Universal,
)

BALL = [Sphere(0.1)]
HINGE = Revolute((0, 1, 0))
SOLID = {"mass": 1.0, "com": (0, 0, -0.5), "inertia": (1.0, 1.0, 1.0)}
EVERY_JOINT = [
    Fixed(), HINGE, Prismatic((1, 0, 0)), Screw((0, 0, 1), 0.1), Cylindrical((0, 0, 1)), Universal(), Planar(),
    Spherical(), Floating(),
]  # fmt: skip


def compiled(*steps, dtype=None, **world):
    """Model and state after builder calls (method, positional arguments, keywords)."""
    builder = SceneBuilder(**world)
    for method, args, keywords in steps:
        getattr(builder, method)(*args, **keywords)
    return compile_scene(builder, dtype)


def body(name, shapes=BALL, **fields):
    return ("add_body", (name, shapes), fields)


def link(name, parent="world", joint: Joint = HINGE, **fields):
    return ("add_link", (name, parent), {"joint": joint} | SOLID | fields)


def touching(model):
    """Names of what may touch: links by name, the world's shapes as 'world'."""
    names = [*model.topology.names, "world"]
    of = [names[link] for link in model.topology.shape_links]
    return {frozenset((of[i], of[j])) for i, j in model.topology.pairs}


# values and defaults


@pytest.mark.parametrize(("dtype", "want"), [(None, "float64"), ("float32", "float32"), (jnp.float64, "float64")])
def test_dtype(dtype, want):
    model, state = compiled(body("ball"), dtype=dtype)
    leaves = [*(getattr(model, f) for f in ("mass", "inertia", "points", "pair_friction", "gravity")), state.q, state.t]
    assert {leaf.dtype.name for leaf in leaves} == {want}


def test_defaults_of_a_body():
    model, state = compiled(body("ball"))
    np.testing.assert_allclose(model.gravity, (0, 0, -9.81))
    np.testing.assert_allclose(model.mass, 4 / 3 * np.pi * 1e-3 * 1000.0)
    assert (float(model.friction[0]), float(model.restitution[0])) == (0.5, 0.0)
    np.testing.assert_array_equal(state.q, (0, 0, 0, 1, 0, 0, 0))
    np.testing.assert_array_equal(state.v, np.zeros(6))
    assert model.topology.joints == ("floating",)
    assert state.t == 0


def test_mass_scales_the_inertia_of_the_shapes():
    box = Box((0.1, 0.2, 0.3), position=(1.0, 0.0, 0.0))
    model, _ = compiled(body("box", [box], mass=3.0))
    np.testing.assert_allclose(model.com[0], (1, 0, 0))
    np.testing.assert_allclose(model.inertia[0], np.diag([0.13, 0.10, 0.05]), rtol=1e-12)


def test_density_of_a_shape_comes_before_that_of_its_body():
    shapes = [Box((0.5, 0.5, 0.5)), Box((0.5, 0.5, 0.5), position=(1, 0, 0), density=30.0)]
    model, _ = compiled(body("pair", shapes, density=10.0))
    assert float(model.mass[0]) == pytest.approx(40.0)
    np.testing.assert_allclose(model.com[0], (0.75, 0, 0))


def test_given_inertia_puts_the_centre_at_the_origin_unless_com_is_given():
    model, _ = compiled(
        body("a", [Sphere(0.1, position=(1, 0, 0))], mass=1.0, inertia=(1, 2, 2.5)),
        body("b", [], mass=1.0, inertia=np.diag([1, 2, 2.5]), com=(0, 1, 0)),
    )
    np.testing.assert_array_equal(model.com, ((0, 0, 0), (0, 1, 0)))
    np.testing.assert_array_equal(model.inertia[0], model.inertia[1])


def test_velocity_of_the_centre_of_mass_becomes_that_of_the_origin():
    q = from_axis_angle((1, 2, 3), 0.7)
    v_com, w, com = np.array([1.0, 2.0, 3.0]), np.array([0.3, -0.5, 0.9]), np.array([0.1, 0.2, -0.3])
    model, state = compiled(
        body("b", [], mass=1.0, inertia=(1, 1, 1), com=com, quaternion=q, linear_velocity=v_com, angular_velocity=w)
    )
    np.testing.assert_array_equal(state.v[:3], w)
    arm = rotation_matrix(np.asarray(state.q[3:])) @ np.asarray(model.com[0])
    np.testing.assert_allclose(np.asarray(state.v[3:]) + np.cross(w, arm), v_com, rtol=1e-14)


def test_quaternions_are_made_unit():
    rounded = 1 + 5e-4
    model, state = compiled(
        body("ball", [Sphere(0.1, quaternion=(0, rounded, 0, 0))], quaternion=(rounded, 0, 0, 0)),
        link("arm", quaternion=(0, 0, rounded, 0)),
        link("hand", "arm", Spherical(), q0=(0, 0, 0, rounded)),
    )
    np.testing.assert_array_equal(state.q[3:7], (1, 0, 0, 0))
    np.testing.assert_array_equal(state.q[8:], (0, 0, 0, 1))
    np.testing.assert_array_equal(model.joint_quaternion[1], (0, 0, 1, 0))
    np.testing.assert_array_equal(model.shape_quaternion[0], (0, 1, 0, 0))


# joints


def test_every_joint_type_compiles_to_its_widths():
    for joint in EVERY_JOINT:
        model, state = compiled(link("a", joint=joint))
        row = JOINTS[joint.kind]
        assert model.topology.joints == (joint.kind,)
        np.testing.assert_array_equal(state.q, row.neutral)
        for field in ("armature", "damping", "loss", "stiffness", "rest", "lower", "upper", "limit_restitution"):
            assert getattr(model, field).shape == (row.nv,)
        assert state.v.shape == model.motor_gain.shape == model.motor_effort.shape == (row.nv,)


def test_dof_numbers_are_shared_or_given_one_by_one():
    joint = Universal(damping=0.5, armature=(0.1, 0.2), loss=0.3, limits=((-1, 1), None), restitution=(0.4, 0.0))
    model, _ = compiled(link("a", joint=joint))
    np.testing.assert_array_equal(model.damping, (0.5, 0.5))
    np.testing.assert_array_equal(model.armature, (0.1, 0.2))
    np.testing.assert_array_equal(model.lower, (-1, -np.inf))
    np.testing.assert_array_equal(model.upper, (1, np.inf))
    np.testing.assert_array_equal(model.limit_restitution, (0.4, 0.0))


@pytest.mark.parametrize(
    ("motor", "gain", "kp", "kd", "effort", "target"),
    [
        (None, 1, 0, 0, np.inf, 0),
        (Motor(effort=5.0, target=0.5), 1, 0, 0, 5, 0.5),
        (Motor("position", kp=100.0, kd=10.0, target=0.3), 100, 100, 10, np.inf, 0.3),
        (Motor("position", kp=100.0), 100, 100, 0, np.inf, 0),
        (Motor("velocity", kd=7.0, effort=2.0), 7, 0, 7, 2, 0),
    ],
)
def test_motors(motor, gain, kp, kd, effort, target):
    model, _ = compiled(link("a", joint=Revolute((0, 1, 0), motor=motor)))
    got = [float(getattr(model, f"motor_{name}")[0]) for name in ("gain", "kp", "kd", "effort", "target")]
    assert got == [gain, kp, kd, effort, target]


def test_one_motor_per_dof():
    model, _ = compiled(link("a", joint=Cylindrical((0, 0, 1), motor=(None, Motor("velocity", kd=(1.0, 3.0))))))
    np.testing.assert_array_equal(model.motor_gain, (1, 3))
    np.testing.assert_array_equal(model.motor_kd, (0, 3))


def test_axes_are_made_unit_and_planar_axes_orthogonal():
    model, _ = compiled(
        link("a", joint=Revolute((0, 3, 4))),
        link("b", joint=Planar((0, 0, 2), axis2=(1, 0, 1))),
        link("c", joint=Planar((0, 1, 0))),
        link("d", joint=Planar((0, 0, -1))),
        link("e", joint=Universal((2, 0, 0), (1, 1, 0))),
    )
    np.testing.assert_allclose(model.axis, ((0, 0.6, 0.8), (0, 0, 1), (0, 1, 0), (0, 0, -1), (1, 0, 0)), atol=1e-15)
    # c: the quarter turn about -x that takes z to y leaves x where it is; d: half a turn about x
    np.testing.assert_allclose(model.axis2[1:4], ((1, 0, 0),) * 3, atol=1e-15)
    np.testing.assert_allclose(model.axis2[4], (np.sqrt(0.5), np.sqrt(0.5), 0), rtol=1e-15)
    diagonal, _ = compiled(link("a", joint=Planar((1, 1, 1))))
    assert float(diagonal.axis[0] @ diagonal.axis2[0]) == pytest.approx(0, abs=1e-15)


def test_pose_of_a_floating_link_is_where_it_starts():
    q = from_axis_angle((0, 1, 0), 0.5)
    model, state = compiled(link("a", joint=Floating(), position=(1, 2, 3), quaternion=q))
    np.testing.assert_allclose(state.q, (1, 2, 3, *q), rtol=1e-15)
    np.testing.assert_array_equal(model.joint_position[0], (0, 0, 0))
    _, given = compiled(link("a", joint=Floating(), q0=(1, 2, 3, *q)))
    np.testing.assert_array_equal(given.q, state.q)


def test_start_and_joint_frame_of_a_link():
    model, state = compiled(body("ball"), link("a", position=(0, 0, 1), q0=0.3, v0=-2.0), link("b", "a", Spherical()))
    np.testing.assert_array_equal(state.q[7:], (0.3, 1, 0, 0, 0))
    np.testing.assert_array_equal(state.v[6:], (-2, 0, 0, 0))
    np.testing.assert_array_equal(model.joint_position[1], (0, 0, 1))


@pytest.mark.parametrize(
    "fields",
    [{"joint": Prismatic((1, 0, 0))}, {"joint": Revolute((0, 0, 1), armature=0.1)}, {}],
    ids=["prismatic", "armature", "off its axis"],
)
def test_point_masses_are_welcome_where_the_joint_feels_them(fields):
    compiled(link("a", **{"inertia": (0, 0, 0)} | fields))


def test_massless_links_between_joints_and_at_welded_ends():
    nothing = {"mass": 0.0, "inertia": None, "com": None}
    model, _ = compiled(link("a", **nothing), link("b", "a", Revolute((1, 0, 0))), link("tip", "b", Fixed(), **nothing))
    np.testing.assert_array_equal(model.mass, (0, 1, 0))
    compiled(link("a", joint=Revolute((0, 1, 0), armature=0.1), **nothing))


@pytest.mark.parametrize("slack", [0.0, 5e-7])
def test_the_triangle_inequality_allows_for_rounding(slack):
    compiled(link("rod", inertia=(1, 1, 2 * (1 + slack))))


# order


def test_links_keep_their_order():
    steps = [link("c"), body("x"), link("a"), link("b", "a"), link("d", "c"), body("y")]
    model, _ = compiled(*steps)
    assert model.topology.names == ("c", "x", "a", "b", "d", "y")
    assert model.topology.parents == (-1, -1, -1, 2, 0, -1)


def test_a_link_added_before_its_parent_moves_behind_it():
    model, state = compiled(link("tip", "arm", q0=0.2), body("x"), link("arm", "base", q0=0.1), link("base"))
    assert model.topology.names == ("x", "base", "arm", "tip")
    assert model.topology.parents == (-1, -1, 1, 2)
    np.testing.assert_array_equal(state.q[7:], (0, 0.1, 0.2))


def test_links_may_hang_on_bodies():
    model, _ = compiled(body("ship"), link("mast", "ship"))
    assert model.topology.parents == (-1, 0)


# shapes and pairs


def test_shape_rows():
    shapes = [Capsule(0.1, 0.4, position=(0, 0, -0.5)), Box((1, 2, 3))]
    model, _ = compiled(("add_plane", ((0, 3, 4), 2.0), {}), link("a", shapes=shapes), body("b"))
    topology = model.topology
    assert topology.shape_kinds == ("plane", "capsule", "box", "sphere")
    assert topology.shape_links == (-1, 0, 0, 1)
    np.testing.assert_array_equal(model.shape_size, ((0, 0, 0), (0.1, 0.4, 0), (1, 2, 3), (0.1, 0, 0)))
    np.testing.assert_allclose(model.shape_position[0], (0, 1.2, 1.6), rtol=1e-15)
    normal = rotation_matrix(np.asarray(model.shape_quaternion[0]))[:, 2]
    np.testing.assert_allclose(normal, (0, 0.6, 0.8), rtol=1e-15)


def test_points_of_hulls_meshes_and_heightfields():
    corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], float)
    inside = np.vstack([corners, [[0.5, 0.5, 0.5]]])
    cube = trimesh.creation.box()
    ground = Heightfield([[0, 1, 2], [3, 4, 5]], (2.0, 1.0))
    model, _ = compiled(
        ("add_static", ("land", [ground]), {}), body("b", [ConvexHull(inside), Sphere(1), Mesh(cube, convex="none")])
    )
    assert model.topology.shape_points == ((0, 6), (6, 14), (14, 14), (14, 50))
    np.testing.assert_array_equal(model.shape_size[0], (2, 1, 2))
    grid = [(-1, -1, 0), (-1, 0, 1), (-1, 1, 2), (1, -1, 3), (1, 0, 4), (1, 1, 5)]
    np.testing.assert_array_equal(model.points[:6], grid)
    assert {tuple(p) for p in model.points[6:14].tolist()} == {tuple(p) for p in corners.tolist()}
    triangles = np.asarray(model.points[14:]).reshape(12, 3, 3)
    volume = np.einsum("ij,ij->", triangles[:, 0], np.cross(triangles[:, 1], triangles[:, 2])) / 6
    assert volume == pytest.approx(1.0)


def test_an_open_mesh_may_move_when_the_mass_is_given():
    mesh = trimesh.Trimesh([(0, 0, 0), (1, 0, 0), (0, 1, 0)], [(0, 1, 2)])
    model, _ = compiled(body("sheet", [Mesh(mesh, convex="none")], mass=1.0, inertia=(1, 1, 1)))
    assert model.topology.shape_points == ((0, 3),)


def test_static_shapes_stand_in_the_pose_of_their_frame():
    turn = from_axis_angle((0, 0, 1), np.pi / 2)
    static = ("add_static", ("wall", [Sphere(1, position=(1, 0, 0), quaternion=turn)]), {"position": (0, 0, 5)})
    model, _ = compiled((*static[:2], static[2] | {"quaternion": turn}), body("ball"))
    np.testing.assert_allclose(model.shape_position[0], (0, 1, 5), atol=1e-15)
    np.testing.assert_allclose(np.abs(model.shape_quaternion[0]), (0, 0, 0, 1), atol=1e-15)


def test_pairs_leave_out_one_body_joined_bodies_and_statics():
    model, _ = compiled(
        ("add_plane", (), {}),
        ("add_static", ("post", BALL), {}),
        body("ball", BALL * 2),
        link("upper", shapes=BALL),
        link("lower", "upper", shapes=BALL),
        link("tip", "lower", shapes=BALL),
    )
    assert touching(model) == {
        frozenset(pair)
        for pair in [
            ("world", "ball"), ("world", "upper"), ("world", "lower"), ("world", "tip"),
            ("ball", "upper"), ("ball", "lower"), ("ball", "tip"), ("upper", "tip"),
        ]
    }  # fmt: skip
    assert all(i < j for i, j in model.topology.pairs)
    assert len(set(model.topology.pairs)) == len(model.topology.pairs) == 2 * 2 + 3 * 2 + 2 * 3 + 1


def test_welded_links_count_as_one_body():
    model, _ = compiled(
        ("add_plane", (), {}),
        link("base", joint=Fixed(), shapes=BALL),
        link("arm", "base", shapes=BALL),
        link("hand", "arm", Fixed(), shapes=BALL),
        link("finger", "hand", shapes=BALL),
    )
    # base is welded to the world: static; hand and arm are one body, joined to base and to finger
    want = [("world", "arm"), ("world", "hand"), ("world", "finger"), ("base", "finger")]
    assert touching(model) == {frozenset(pair) for pair in want}


def test_exclusions():
    steps = [("add_plane", (), {"name": "floor"}), ("add_static", ("post", BALL), {}), body("a"), body("b"), body("c")]
    model, _ = compiled(
        *steps, ("exclude", ("a", "b"), {}), ("exclude", ("floor", "a"), {}), ("exclude", ("c", "world"), {})
    )
    pairs = {frozenset((i, j)) for i, j in model.topology.pairs}  # shapes: floor, post, a, b, c
    assert pairs == {frozenset(pair) for pair in [(1, 2), (0, 3), (1, 3), (2, 4), (3, 4)]}


def test_friction_is_the_geometric_mean_and_restitution_the_smaller():
    model, _ = compiled(
        ("add_plane", (), {"friction": 0.4, "restitution": 0.8}),
        body("ball", [Sphere(0.1), Sphere(0.1, friction=0.1, restitution=0.9)], friction=0.9, restitution=0.3),
    )
    np.testing.assert_allclose(model.pair_friction, (0.6, 0.2), rtol=1e-15)
    np.testing.assert_array_equal(model.pair_restitution, (0.3, 0.8))


def test_materials_override_the_combination_rule():
    steel = Sphere(0.1, material="steel")
    model, _ = compiled(
        ("add_plane", (), {"material": "felt", "friction": 1.0}),
        body("a", [steel], friction=1.0, restitution=0.5),
        body("b", material="steel", friction=1.0, restitution=0.5),
        body("c", friction=1.0, restitution=0.5),
        ("set_pair", ("steel", "felt"), {"friction": 0.2, "restitution": 0.6}),
        ("set_pair", ("steel", "steel"), {"restitution": 0.95}),
    )
    rules = {
        p: (float(f), float(e))
        for p, f, e in zip(model.topology.pairs, model.pair_friction, model.pair_restitution, strict=True)
    }
    assert rules == {
        (0, 1): (0.2, 0.6), (0, 2): (0.2, 0.6), (0, 3): (1.0, 0.0),
        (1, 2): (1.0, 0.95), (1, 3): (1.0, 0.5), (2, 3): (1.0, 0.5),
    }  # fmt: skip


# the description itself


def test_a_scene_is_plain_comparable_data():
    def build(number):
        b = SceneBuilder(gravity=number([0, 0, -9.81]))
        b.add_body("ball", [Sphere(0.1)], mass=1.0, position=number([0, 0, 1]))
        b.add_link(
            "arm", joint=Revolute(number([0, 1, 0]), limits=number([-1, 1])), mass=1.0, inertia=number(np.eye(3))
        )
        return b.build()

    assert build(np.array) == build(lambda x: np.array(x).tolist()) == build(jnp.array)
    assert hash(build(np.array)) == hash(build(jnp.array))


def test_scenes_that_differ_in_numbers_share_one_topology():
    a, _ = compiled(body("ball", mass=1.0))
    b, _ = compiled(body("ball", mass=2.0), gravity=(0, 0, -1))
    assert a.topology == b.topology
    assert hash(a.topology) == hash(b.topology)


def test_compiling_takes_a_spec_or_a_builder():
    builder = SceneBuilder()
    builder.add_body("ball", BALL)
    one, two = compile_scene(builder)[0], compile_scene(builder.build())[0]
    assert one.topology == two.topology
    assert float(one.mass[0]) == pytest.approx(shape_mass(BALL[0]).mass)
