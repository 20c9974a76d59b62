"""Sensors: MuJoCo reads the same at the same states, and what is known of a body that stands, falls or bounces."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom

G = 9.81
ROBOT = """<mujoco>
<option timestep="1e-3"/>
<worldbody>
  <body name="base" pos="0 0 3"><freejoint/><site name="s0" pos="0.1 0.2 -0.1" euler="30 40 50"/>
    <geom type="box" size=".2 .1 .1" mass="3"/>
    <body name="upper" pos="0.2 0 0"><joint name="hinge" axis="0 1 0" ref="20"/>
      <site name="s1" pos="0.3 0 0" euler="0 70 0"/>
      <geom name="capsule" type="capsule" fromto="0 0 0 0.5 0 0" size=".05" mass="1"/>
      <body name="lower" pos="0.5 0 0"><joint name="slide" type="slide" axis="1 0 0.3"/>
        <site name="s2" pos="0.1 0 0.1" euler="10 0 80"/>
        <geom type="sphere" size=".08" pos="0.1 0.05 0" mass="0.7"/></body>
      <body name="stub" pos="0 0.2 0"><site name="s3"/><geom type="box" size=".03 .05 .04" mass=".4"/></body>
    </body>
  </body>
  <site name="fixed" pos="0 0 0.5"/>
  <body name="wall" pos="4 0 3" euler="0 20 10"><geom type="box" size=".5 5 5"/></body>
</worldbody>
<contact><exclude body1="base" body2="upper"/><exclude body1="base" body2="lower"/><exclude body1="base" body2="stub"/>
<exclude body1="upper" body2="lower"/><exclude body1="stub" body2="lower"/></contact>
<sensor>%s</sensor>
<keyframe><key qpos="%s" qvel="%s"/></keyframe>
</mujoco>"""
INSTANT = "".join(
    [f'<{kind} name="{kind}{k}" site="s{k}"/>' for kind in ("gyro", "velocimeter") for k in range(4)]
    + [
        f'<{kind} name="{kind} {of} {name}" objtype="{of}" objname="{name}"/>'
        for kind in ("framepos", "framequat", "framelinvel", "frameangvel")
        for of, name in (("site", "s2"), ("body", "lower"), ("xbody", "upper"), ("geom", "capsule"), ("site", "fixed"))
    ]
    + ['<jointpos name="q" joint="hinge"/><jointvel name="v" joint="slide"/><rangefinder name="ray" site="s1"/>']
    + ['<rangefinder name="none" site="s0"/>']
)
MEAN = "".join(
    f'<{kind} name="{kind}{k}" site="s{k}"/>' for kind in ("accelerometer", "force", "torque") for k in range(3)
)


def _robot(tmp_path, sensors, seed):
    """MuJoCo's model and data, and Carom's model and state, at the same random state."""
    mujoco = pytest.importorskip("mujoco")
    rng = np.random.default_rng(seed)
    turn = rng.normal(size=4)
    turn /= np.linalg.norm(turn)
    q = (*rng.uniform(-0.5, 0.5, 2), 3.0, *turn, *rng.uniform(-0.5, 0.5, 2))
    v = rng.uniform(-2, 2, 8)
    path = tmp_path / "robot.xml"
    path.write_text(ROBOT % (sensors, " ".join(map(repr, map(float, q))), " ".join(map(repr, map(float, v)))))
    m = mujoco.MjModel.from_xml_path(str(path))
    d = mujoco.MjData(m)
    mujoco.mj_resetDataKeyframe(m, d, 0)
    mujoco.mj_forward(m, d)
    imported = carom.import_mjcf(path, keyframe=0)
    return m, d, imported, carom.compile_scene(imported.scene)


@pytest.mark.parametrize("seed", range(3))
def test_mujoco_reads_the_same_at_an_instant(tmp_path, seed):
    m, d, imported, (model, state) = _robot(tmp_path, INSTANT, seed)
    assert not [item for item in imported.report.of("ignored") if "sensor" in item.what]
    _, report = carom.step(model, state, dt=1e-9, report="sensors")
    ours = report["sensors"]
    assert len(ours) == m.nsensor
    hits = 0
    for i in range(m.nsensor):
        name = m.sensor(i).name
        theirs, mine = d.sensor(name).data, np.asarray(ours[name])
        if "quat" in name and theirs[0] < 0:
            theirs = -theirs
        np.testing.assert_allclose(mine, theirs, atol=2e-7, err_msg=name)  # a nanosecond later
        hits += name == "ray" and theirs[0] > 0
    assert hits in (0, 1)


@pytest.mark.parametrize("seed", range(3))
def test_mujoco_feels_the_same(tmp_path, seed):
    """Its acceleration at an instant is ours over a microsecond."""
    m, d, _, (model, state) = _robot(tmp_path, MEAN, seed)
    _, report = carom.step(model, state, dt=1e-6, report="sensors")
    for i in range(m.nsensor):
        name = m.sensor(i).name
        theirs, mine = d.sensor(name).data, np.asarray(report["sensors"][name])
        np.testing.assert_allclose(mine, theirs, rtol=2e-4, atol=2e-4, err_msg=name)
        np.testing.assert_allclose(report["sensors"][f"{name}.impulse"], 0, atol=1e-12)
        assert np.abs(theirs).max() > 1e-3 or name in ("force0", "torque0")  # nothing holds what is free


def _ball(e=0.5):
    b = carom.SceneBuilder()
    b.add_plane(name="floor", restitution=e)
    b.add_body("ball", [carom.Sphere(0.1)], mass=2.0, position=(0, 0, 0.6), restitution=e)
    b.add_body("other", [carom.Sphere(0.1)], mass=1.0, position=(1, 0, 0.1), restitution=e)
    b.add_site("imu", "ball", (0.05, 0, 0), (0, 1, 0, 0))  # upside down
    b.add_site("eye", "ball", (0, 0, 0), (0, 1, 0, 0))
    b.add_sensor("imu", "accelerometer", "imu")
    b.add_sensor("height", "rangefinder", "eye", rays=[(0, 0, 1), (0, 0, -1)], max_distance=0.3)
    b.add_sensor("touch", "touch", link="ball")
    b.add_sensor("floor", "contact", link="ball", other="world")
    b.add_sensor("others", "contact", link="ball", other="other")
    return b


def test_what_falls_bounces_and_stands():
    model, state = carom.compile_scene(_ball())
    ran = carom.rollout(model, state, duration=3.0, frame_dt=0.05, report="sensors")
    seen, t = jax.tree.map(np.asarray, ran.report["sensors"]), np.asarray(ran.t)
    fall = np.sqrt(2 * 0.5 / G)
    speed = G * fall
    frame = int(np.searchsorted(t, fall))
    np.testing.assert_allclose(seen["imu"][1:frame], 0, atol=1e-9)  # it floats
    np.testing.assert_allclose(seen["imu.impulse"][frame], [0, 0, -1.5 * speed], atol=1e-9)
    np.testing.assert_allclose(seen["touch.impulse"][frame], 2.0 * 1.5 * speed, atol=1e-9)
    np.testing.assert_allclose(seen["imu"][-1], [0, 0, -G], atol=1e-9)  # it stands, upside down
    np.testing.assert_allclose(seen["touch"][-1], 2.0 * G, atol=1e-8)
    assert not seen["floor"][:frame].any()
    assert seen["floor"][frame] == 1
    assert seen["floor"][-1] == 1
    assert not seen["others"].any()
    height = np.asarray(ran.q[:, 6] if float(ran.q[0, 6]) == 0.6 else ran.q[:, 2])
    near = height <= 0.3
    np.testing.assert_allclose(seen["height"][near, 0], height[near], atol=1e-9)
    assert (seen["height"][~near, 0] == -1).all()
    assert (seen["height"][:, 1] == -1).all()


def test_in_single_precision_readings_are_single():
    """What hangs still and is struck by nothing: every kind that is summed."""
    b = carom.SceneBuilder()
    b.add_body("ball", [carom.Sphere(0.1)], mass=2.0, position=(0, 0, 0.1))
    b.add_plane()
    hinge = carom.Revolute((0, 1, 0), motor=carom.Motor("velocity", kd=np.inf, effort=100.0))
    b.add_link("arm", joint=hinge, position=(0, 0, 2), mass=1.5, com=(0.5, 0, 0), inertia=(0, 0.1, 0.1))
    b.add_site("grip", "arm")
    for kind in ("accelerometer", "force", "torque"):
        b.add_sensor(kind, kind, "grip")
    b.add_sensor("effort", "joint_effort", link="arm")
    b.add_sensor("touch", "touch", link="ball")
    model, state = carom.compile_scene(b, dtype="float32")
    seen = carom.rollout(model, state, duration=0.1, frame_dt=0.1, report="sensors").report["sensors"]
    assert {x.dtype for x in seen.values()} == {jnp.dtype("float32")}
    means = {name: np.asarray(seen[name][-1]) for name in ("accelerometer", "force", "torque", "effort", "touch")}
    np.testing.assert_allclose(means["accelerometer"], (0, 0, G), atol=1e-4)
    np.testing.assert_allclose(np.abs(means["force"]), (0, 0, 1.5 * G), atol=1e-4)
    np.testing.assert_allclose(np.abs(means["torque"]), (0, 0.75 * G, 0), atol=1e-4)
    np.testing.assert_allclose(np.abs(means["effort"]), [0.75 * G], atol=1e-4)
    np.testing.assert_allclose(means["touch"], [2 * G], atol=1e-3)


def test_a_hanging_weight():
    b = carom.SceneBuilder()
    b.add_link("rod", joint=carom.Revolute((0, 1, 0)), mass=1.0, com=(0.5, 0, 0), inertia=(0, 0, 0), q0=np.pi / 2)
    b.add_link("bob", joint=carom.Fixed(), parent="rod", position=(1, 0, 0), mass=2.0, inertia=(0.1, 0.1, 0.1))
    b.add_site("end", "bob", (0, 0.2, 0))
    b.add_sensor("pull", "force", "end")
    b.add_sensor("twist", "torque", "end")
    b.add_sensor("hinge", "joint_effort", link="rod")
    model, state = carom.compile_scene(b)
    _, report = carom.step(model, state, dt=0.01, report="sensors")
    seen = report["sensors"]
    np.testing.assert_allclose(seen["pull"], [-2 * G, 0, 0], atol=1e-9)  # x points down
    np.testing.assert_allclose(seen["twist"], [0, 0, 0.2 * -2 * G], atol=1e-9)
    np.testing.assert_allclose(seen["hinge"], 0, atol=1e-9)


def test_effort_is_what_motor_and_stop_give():
    """A slider that a force motor drives into its stop: weightless, so the motor's force, and the stop's impulse."""
    b = carom.SceneBuilder(gravity=(0, 0, 0))
    motor = carom.Motor("torque", target=3.0)
    b.add_link("slider", joint=carom.Prismatic((1, 0, 0), limits=(-1, 0.5), motor=motor), mass=2.0, inertia=(1, 1, 1))
    b.add_sensor("effort", "joint_effort", link="slider")
    model, state = carom.compile_scene(b)
    ran = carom.rollout(model, state, duration=1.5, frame_dt=0.1, report="sensors")
    seen = jax.tree.map(np.asarray, ran.report["sensors"])
    arrival = np.sqrt(2 * 0.5 * 2.0 / 3.0)
    frame = int(np.searchsorted(np.asarray(ran.t), arrival))
    np.testing.assert_allclose(seen["effort"][1:frame], 3.0, atol=1e-8)
    np.testing.assert_allclose(seen["effort.impulse"][frame], -3.0 * arrival, atol=1e-8)
    np.testing.assert_allclose(seen["effort"][-1], 0, atol=1e-8)  # the stop holds what the motor pushes


def test_sites_of_every_lane():
    model, state = carom.compile_scene(_ball())
    places = jnp.linspace(0, 0.1, 3)[:, None, None] * jnp.ones((1, 2, 3))
    poses = carom.site_poses(model.replace(site_position=places), carom.tile(state, 3).q)
    assert poses.position.shape == (3, 2, 3)
    np.testing.assert_allclose(
        poses.position[:, 0], np.array([0, 0, 0.6]) + np.linspace(0, 0.1, 3)[:, None], atol=1e-12
    )
    batch = carom.rollout(model, carom.tile(state, 3), duration=0.5, frame_dt=0.1, report="sensors")
    alone = carom.rollout(model, state, duration=0.5, frame_dt=0.1, report="sensors")
    for name, x in alone.report["sensors"].items():
        np.testing.assert_array_equal(batch.report["sensors"][name][1], x, err_msg=name)
    parts = carom.rollout(model, carom.tile(state, 3), duration=0.5, frame_dt=0.1, report="sensors", chunk=2)
    for name, x in parts.report["sensors"].items():
        assert isinstance(x, np.ndarray)
        np.testing.assert_array_equal(x, batch.report["sensors"][name], err_msg=name)


def test_a_file_holds_them(tmp_path):
    scene, path = _ball().build(), tmp_path / "ball.toml"
    carom.save_scene(scene, path)
    assert "[[sensor]]" in path.read_text()
    assert carom.load(path) == scene


def test_a_scene_without_sensors_is_the_same_model():
    scene = _ball().build()
    from dataclasses import replace

    plain, _ = carom.compile_scene(replace(scene, sites=(), sensors=()))
    sited, _ = carom.compile_scene(scene)
    assert carom.model_hash(plain) != carom.model_hash(sited)
    assert (plain.topology.sites, plain.topology.sensors) == ((), ())


@pytest.mark.parametrize(
    ("add", "says"),
    [
        (lambda b: b.add_site("imu"), "site \"imu\": name is 'imu'; another site has it"),
        (lambda b: b.add_site("a", "bal"), "did you mean 'ball'"),
        (lambda b: b.add_site("a", "ball", quaternion=(0, 0, 0, 0)), 'site "a": quaternion'),
        (lambda b: b.add_sensor("a", "gyros", "imu"), "did you mean 'gyro'"),
        (lambda b: b.add_sensor("a", "gyro"), "a gyro needs one: name a site"),
        (lambda b: b.add_sensor("a", "gyro", "imo"), "did you mean 'imu'"),
        (lambda b: b.add_sensor("a", "gyro", "imu", link="ball"), "a gyro has none"),
        (lambda b: b.add_sensor("a", "touch"), "a touch needs one: name a body or link"),
        (lambda b: b.add_sensor("a", "joint_position", link="world"), "no joint that moves"),
        (lambda b: b.add_sensor("a", "gyro", "imu", max_distance=1), "only a rangefinder has it"),
        (lambda b: b.add_sensor("a", "rangefinder", "imu", rays=[(0, 0, 0)]), "each must have a direction"),
        (lambda b: b.add_sensor("a", "rangefinder", "imu", max_distance=-1), "max_distance is -1"),
        (lambda b: (b.add_site("w"), b.add_sensor("a", "force", "w")), "not of the world"),
    ],
)
def test_what_is_refused(add, says):
    b = _ball()
    add(b)
    with pytest.raises(carom.SceneError, match=re.escape(says)):
        carom.compile_scene(b)


def test_joints_that_are_no_coordinates_are_not_sensed():
    b = carom.SceneBuilder()
    b.add_link("rod", joint=carom.Revolute((0, 1, 0)), mass=1.0, com=(0.5, 0, 0), inertia=(0.1, 0.1, 0.1))
    b.add_sensor("angle", "joint_position", link="rod")
    carom.compile_scene(b)
    with pytest.raises(carom.SceneError, match="coordinates='reduced'"):
        carom.compile_scene(b, coordinates="maximal")
