"""Every parameter of a model has its effect: changed by `replace`, it changes a run, or is refused."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.engine.parameters import AXES
from carom.integrators.rollout import broadcast_state
from carom.scenes.joint_specs import Motor

UNIT = ("joint_quaternion", "axis", "axis2", "shape_quaternion", "loop_quaternion", "site_quaternion")


@functools.cache
def bounces() -> Any:
    """A ball that is thrown onto a belt, and a tetrahedron onto the ground."""
    b = carom.SceneBuilder()
    how: dict[str, Any] = {"friction": 0.3, "restitution": 0.5, "tangential_restitution": 0.2}
    b.add_plane(name="ground", **how)
    b.add_static("belt", [carom.Box((0.5, 0.5, 0.1))], linear_velocity=(0.3, 0, 0), **how)
    fall: dict[str, Any] = {"linear_velocity": (0.5, 0, -1), "angular_velocity": (3, 2, 1), **how}
    b.add_body("ball", [carom.Sphere(0.1)], mass=1.0, com=(0.02, 0, 0), position=(0, 0, 0.4), **fall)
    corners = ((0.1, 0, 0), (-0.1, 0.1, 0), (-0.1, -0.1, 0), (0, 0, 0.15))
    b.add_body("hull", [carom.ConvexHull(corners)], position=(1, 0, 0.4), **fall)
    for one, two in (("ball", "hull"), ("belt", "hull"), ("ground", "ball")):
        b.exclude(one, two)
    return *carom.compile_scene(b), {"duration": 0.3, "law": "chatterjee_ruina"}


@functools.cache
def joints() -> Any:
    """A tree with springs, motors and limits that it runs into."""
    b = carom.SceneBuilder()
    sprung: dict[str, Any] = {"damping": 0.1, "armature": 0.05, "loss": 0.05, "stiffness": 1.0, "rest": 0.1}
    bounds: dict[str, Any] = {"limits": (-0.2, 0.2), "restitution": 0.5}
    own: dict[str, Any] = {"mass": 1.0, "com": (0.1, 0, 0.05), "inertia": (0.02, 0.03, 0.04)}
    motor = Motor("velocity", kd=0.5, effort=2.0, target=0.5)
    turn = carom.Universal((1, 0, 0), (0, 1, 0), motor=(motor, Motor("position", kp=3.0, target=0.2)), **sprung)
    b.add_link("arm", joint=turn, v0=(1, -1), **own)
    b.add_link("nut", "arm", joint=carom.Screw((0, 0, 1), 0.1, **bounds, **sprung), v0=3.0, position=(0.3, 0, 0), **own)
    b.add_link("wing", "arm", joint=carom.Revolute((0, 1, 0), **bounds), v0=-3.0, position=(0, 0.2, 0), **own)
    return *carom.compile_scene(b), {"duration": 0.3, "max_dt": 0.02}


@functools.cache
def filtered() -> Any:
    """A ball that falls onto the ground, and pairs that may be switched."""
    b = carom.SceneBuilder(filtering=True)
    b.add_plane(restitution=0.5)
    b.add_body("ball", [carom.Sphere(0.1)], mass=1.0, position=(0, 0, 0.2))
    return *carom.compile_scene(b), {"duration": 0.3}


def loops(**how: Any) -> Any:
    """Two pendulums with a rod between them that may be cut, and a spring, and a nut on a screw."""
    b = carom.SceneBuilder(baumgarte=how.pop("baumgarte", None))
    own: dict[str, Any] = {"mass": 1.0, "com": (0, 0, -0.5), "inertia": (0.1, 0.1, 0.1)}
    hinge = carom.Revolute((0, 1, 0), limits=(-0.3, 0.3), stiffness=1.0) if how else carom.Revolute((0, 1, 0))
    b.add_link("a", joint=hinge, v0=1.0, **own)
    b.add_link("b", joint=hinge, position=(1, 0, 0), v0=1.0, **own)
    b.add_loop("a", (0, 0, -1), "b", (0, 0, -1.2), joint=carom.Distance(), active=True)
    b.add_loop("a", (0, 0.1, -0.5), "world", (0.3, 0, -1), joint=carom.Spring(20.0, 0.1, 0.5))
    b.add_body("nut", mass=1.0, inertia=(0.1, 0.1, 0.1), position=(0, 2, 0))
    b.add_loop("nut", joint=carom.Screw((0, 0, 1), 0.2))
    return *carom.compile_scene(b, **how), {"duration": 0.1, "scheme": "semi_implicit"}


@functools.cache
def sensed() -> Any:
    """A ball that turns, and a sensor that feels it off its centre."""
    b = carom.SceneBuilder()
    b.add_body("ball", [carom.Sphere(0.1)], angular_velocity=(1, 2, 3))
    b.add_site("imu", "ball", (0.05, 0.02, 0.01), (0.8, 0.6, 0, 0))
    b.add_sensor("acceleration", "accelerometer", "imu")
    return *carom.compile_scene(b), {"duration": 0.1, "report": "sensors"}


SCENES = {
    "bounces": bounces,
    "filtered": filtered,
    "joints": joints,
    "baumgarte": functools.cache(lambda: loops(baumgarte=5.0)),
    "penalty": functools.cache(lambda: loops(coordinates="penalty")),
    "sensors": sensed,
}
PLACE = (
    dict.fromkeys(AXES, "joints")
    | {name: "bounces" for name in AXES if name.startswith(("shape_", "pair_"))}
    | dict.fromkeys(("friction", "restitution", "tangential_restitution"), "bounces")
    | {"pair_touches": "filtered"}
    | dict.fromkeys(("points", "gap_band", "rest_speed"), "bounces")
    | {name: "baumgarte" for name in AXES if name.startswith("loop_")}
    | {"baumgarte": "baumgarte"}
    | dict.fromkeys(("loop_stiff", "loop_damp", "loop_limits"), "penalty")
    | dict.fromkeys(("site_position", "site_quaternion"), "sensors")
)


@functools.cache
def usual(scene: str) -> Any:
    model, state, how = SCENES[scene]()
    return carom.rollout(model, state, throw=False, **how)


def other(name: str, x: Any) -> Any:
    if name == "rest_speed":
        return x + 10  # nothing bounces any more
    if name == "gap_band":
        return x * 1e3
    if name in ("pair_touches", "loop_active"):
        return 1 - x
    x = jnp.where(jnp.isfinite(x), 1.1 * x + 0.01, 0.3)
    return x / jnp.linalg.norm(x, axis=-1, keepdims=True) if name in UNIT else x


@pytest.mark.parametrize("name", AXES)
def test_a_parameter_that_is_changed_changes_a_run(name: str) -> None:
    model, state, how = SCENES[PLACE[name]]()
    x = getattr(model, name)
    assert x.size
    changed = carom.rollout(model.replace(**{name: other(name, x)}), state, throw=False, **how)
    before = usual(PLACE[name])
    mine, usually = (jax.tree.leaves((run.state.q, run.report)) for run in (changed, before))
    assert all(np.isfinite(x).all() for x in usually)
    assert max(np.abs(np.asarray(x) - np.asarray(y)).max() for x, y in zip(mine, usually, strict=True)) > 1e-12


def test_every_field_is_a_parameter() -> None:
    model, _, _ = bounces()
    assert list(model.parameters) == list(AXES)
    lengths = {"nl": 2, "nv": 12, "ns": 4, "np": 2, "filtered": 0, "nk": 0, "m": 4, "nf": 0}
    for name, x in model.parameters.items():
        assert x.shape == tuple(lengths.get(axis, axis) for axis in AXES[name])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("scene", "name", "why"),
    [
        ("joints", "shape_twist", "no static moves"),
        ("joints", "baumgarte", "loops are held by projection; give baumgarte= in the scene"),
        ("baumgarte", "loop_stiff", "loops are held by baumgarte; compile the scene with coordinates='penalty'"),
        ("joints", "loop_damp", "loops are held by projection"),
        ("joints", "loop_limits", "no loop has a spring"),
        ("joints", "loop_active", "no loop can be switched; give one active= in the scene"),
        ("bounces", "pair_touches", "pairs are not filtered; give filtering=True in the scene"),
        ("bounces", "loop_spring", "no loop has a spring"),
        ("bounces", "axis", "no joint has one: axis is read by joints cylindrical, planar, prismatic"),
        ("bounces", "upper", "no joint has one: upper is read by joints cylindrical"),
        ("bounces", "joint_position", "all links are free: their place is in the state's q"),
        ("baumgarte", "pitch", "no joint has one: pitch is read by joints screw"),
    ],
)
def test_a_parameter_without_effect_is_refused(scene: str, name: str, why: str) -> None:
    model, _, _ = SCENES[scene]()
    with pytest.raises(ValueError, match=f"Model.replace: {name} would change nothing: {why}"):
        model.replace(**{name: getattr(model, name)})


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("mass", (5,), r"mass has shape \(5,\); it must be \(2,\), or \(lanes, 2\)"),
        ("mass", (5, 1), r"mass has shape \(5, 1\); it must be \(2,\)"),
        ("mass", (), r"mass has shape \(\); it must be \(2,\)"),
        ("inertia", (2, 3), r"inertia has shape \(2, 3\); it must be \(2, 3, 3\), or \(lanes, 2, 3, 3\)"),
        ("gravity", (1,), r"gravity has shape \(1,\); it must be \(3,\), or \(lanes, 3\)"),
    ],
)
def test_a_wrong_shape_is_named(name: str, shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=rf"^Model.replace: {message}"):
        bounces()[0].replace(**{name: np.ones(shape)})


TURNED = np.array([[0.0, 2.0, 0.0]] * 3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"axis": TURNED}, r"axis\[0\] is \[0. 2. 0.\]; its length must be 1: divide it by its length"),
        ({"joint_quaternion": np.ones((3, 4))}, r"joint_quaternion\[0\] is \[1. 1. 1. 1.\]; its length must be 1"),
        ({"lower": np.full(4, np.nan)}, r"lower\[0\] is nan; it must be a number"),
        ({"mass": np.array([1, np.nan, 1])}, r"mass\[1\] is nan; it must be a number"),
        ({"lower": np.full(4, 1.0)}, "lower is above upper at degree of freedom 2; give both"),
        ({"inertia": -np.ones((2, 3, 3, 3))}, r"inertia\[0, 0\] is .*; it must be symmetric and without negative"),
        ({"inertia": np.tile(np.eye(3) + np.eye(3, k=1), (3, 1, 1))}, r"inertia\[0\] is .*; it must be symmetric"),
        ({"inertia": np.full((3, 3, 3), np.inf)}, r"inertia\[0\] is .*; it must be symmetric"),
    ],
)
def test_a_wrong_number_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^Model.replace: (?s:{message})"):
        joints()[0].replace(**changes)


def test_right_numbers_are_taken() -> None:
    """Limits that change together, limits without end, inertias of a plate and of a rod, and of nothing."""
    model = joints()[0]
    model.replace(lower=np.full(4, 1.0), upper=np.full(4, 2.0))
    model.replace(lower=np.full(4, -np.inf), upper=np.full(4, np.inf))
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    for moments in ((0.1, 0.1, 0.2), (0, 1e-9, 1e-9), (0, 0, 0), (1e3, 1e3, 1e-9)):
        inertia = rotation @ np.diag(moments) @ rotation.T
        for kind in (np.float32, np.float64):
            model.replace(inertia=np.tile(inertia.astype(kind), (3, 1, 1)))


@pytest.mark.parametrize("scene", SCENES)
def test_one_state_goes_with_lanes_of_any_parameter(scene: str) -> None:
    model, state, _ = SCENES[scene]()
    for name in (name for name, place in PLACE.items() if place == scene):
        x = getattr(model, name)
        lanes = broadcast_state(model.replace(**{name: jnp.stack([x, x, x])}), state)
        assert [len(y) for y in jax.tree.leaves(lanes)] == [3, 3, 3], name


def test_plain_numbers_are_taken() -> None:
    model = bounces()[0].replace(gravity=(0, 0, -1), gap_band=1e-6)
    assert model.gravity.dtype == model.gap_band.dtype == model.mass.dtype
    axes = jax.tree.map(lambda _: None, model).replace(friction=0)
    assert (axes.friction, axes.pair_friction, axes.mass) == (0, 0, None)


# -- numbers of shapes and of pairs -----------------------------------------------------------------------


def ruled() -> carom.Model:
    """Three balls on a plane; of plane and first ball a rule says the friction."""
    b = carom.SceneBuilder()
    b.add_plane(friction=0.4, restitution=0.3, material="felt")
    for k, material in enumerate(("ivory", None, None)):
        b.add_body(f"ball {k}", [carom.Sphere(0.1)], mass=1.0, position=(k, 0, 0.1), friction=0.1, material=material)
    b.set_pair("felt", "ivory", friction=0.77)
    return carom.compile_scene(b)[0]


def test_pairs_follow_their_shapes() -> None:
    model = ruled()
    assert model.topology.pairs == ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))
    mu = np.array([[0.4, 0.1, 0.1, 0.1], [0.9, 0.4, 0.1, 0.0]])
    changed = model.replace(friction=mu, restitution=jnp.array([0.5, 0.2, 0.7, 1.0]))
    np.testing.assert_allclose(changed.pair_friction[0], model.pair_friction, rtol=1e-15)
    np.testing.assert_allclose(changed.pair_friction[1], [0.77, 0.3, 0, 0.2, 0, 0], rtol=1e-15)
    np.testing.assert_allclose(changed.pair_restitution, [0.2, 0.5, 0.5, 0.2, 0.2, 0.7], rtol=1e-15)
    both = model.replace(friction=mu[1], pair_friction=jnp.full(6, 0.5))
    np.testing.assert_array_equal(both.pair_friction, 0.5)


def test_derivatives_go_through_the_shapes() -> None:
    """Also where a shape is smooth."""
    model = ruled()
    slope = jax.grad(lambda mu: model.replace(friction=mu).pair_friction.sum())(jnp.array([0.4, 0.1, 0.1, 0.0]))
    assert np.isfinite(slope).all()
    np.testing.assert_allclose(slope[0], np.sqrt(0.1 / 0.4) / 2, rtol=1e-15)  # with the third alone: one is ruled
