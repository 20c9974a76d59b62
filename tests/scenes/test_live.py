"""The world for games: a ball over a floor, a spare one and an arm, against closed forms; one program for all."""

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import pytest

import carom
from carom.engine.results import SimulationError
from carom.scenes.live.pool import PoolError
from carom.scenes.live.saves import HEADER, SaveError
from carom.scenes.live.world import Live

G, R, E, DT = 9.81, 0.1, 0.8, 1 / 60
ARM, M_ARM = 0.5, 2.0  # [m] from its joint to its centre of mass, [kg]
EXACT = 1e-8  # [m, m/s] ten gap bands
OPTIONS: dict[str, Any] = {"max_contacts": 4, "max_events": 16}
PROBE = carom.Sphere(0.3)
COMPILED: list[str] = []


def scene() -> carom.SceneBuilder:
    b = carom.SceneBuilder(gravity=(0, 0, -G))
    b.add_plane(name="floor", restitution=E)
    b.add_body("ball", [carom.Sphere(R)], mass=1.0, position=(0, 0, 1), restitution=E)
    joint = carom.Revolute((0, 1, 0), motor=carom.Motor("torque"))
    b.add_link("arm", joint=joint, position=(5, 0, 2), mass=M_ARM, com=(ARM, 0, 0), inertia=(0.1, 0.1, 0.1))
    return b


@pytest.fixture(autouse=True)
def _room_for_the_next_test() -> None:
    """Not here: what is cleared between tests would be compiled after the warm-up."""


@pytest.fixture(scope="module")
def made() -> Live:
    def told(event: str, duration_secs: float, **_: Any) -> None:
        if "backend_compile" in event:
            COMPILED.append(event)

    jax.monitoring.register_event_duration_secs_listener(told)
    return Live(scene(), pool={"ball": 2}, probes=[PROBE], **OPTIONS)


@pytest.fixture
def world(made: Live) -> Iterator[Live]:
    made.reset()
    made._callbacks.clear()
    before = len(COMPILED)
    yield made
    assert len(COMPILED) == before, "something was compiled after the warm-up"


def play(world: Live, frames: int) -> None:
    for _ in range(frames):
        world.step()


def fallen(t: float) -> tuple[float, float]:
    """Height and velocity of a ball that falls from 1 m and has bounced once at most."""
    drop = 1 - R
    first = np.sqrt(2 * drop / G)
    if t < first:
        return 1 - G * t**2 / 2, -G * t
    up = E * np.sqrt(2 * drop * G)
    return R + up * (t - first) - G * (t - first) ** 2 / 2, up - G * (t - first)


def test_a_ball_bounces_in_the_midst_of_a_frame(world: Live) -> None:
    """On its exact arc, with one record of it in that frame, for who listens to the ball or to all."""
    heard: list[Any] = []
    world.on_contact(heard.append)
    world.on_contact(heard.append, "ball")
    world.on_contact(heard.append, "ball.1")
    frames = 40
    play(world, frames)
    z, vz = fallen(frames * DT)
    np.testing.assert_allclose(world.time, frames * DT, rtol=1e-12)
    np.testing.assert_allclose(world.pose("ball"), [0, 0, z, 1, 0, 0, 0], rtol=0, atol=EXACT)
    np.testing.assert_allclose(world.velocity("ball"), [0, 0, 0, 0, 0, vz], rtol=0, atol=EXACT)
    once, again = heard
    assert once is again
    assert (once.a, once.b, once.phase, once.impacts) == ("ball", "floor", "bounce", 1)
    hit = np.sqrt(2 * (1 - R) * G)
    np.testing.assert_allclose(once.speed, hit, atol=EXACT)
    np.testing.assert_allclose(once.impulse, [0, 0, (1 + E) * hit], rtol=0, atol=EXACT)
    np.testing.assert_allclose(once.point, 0, atol=EXACT)
    np.testing.assert_allclose(once.normal, [0, 0, 1], atol=EXACT)
    assert world.contact_events() == []  # that was some frames ago


def test_what_rests_stays_until_it_leaves(world: Live) -> None:
    world.teleport("ball", position=(0, 0, R))
    assert world.contact_events() == []
    world.step()
    (contact,) = world.contact_events()
    assert contact.phase == "stay"
    np.testing.assert_allclose(contact.impulse, [0, 0, G * DT], rtol=0, atol=EXACT)
    world.apply_impulse("ball", (0, 0, 1.0))
    world.step()
    (contact,) = world.contact_events()
    assert (contact.phase, contact.impacts) == ("end", 0)
    assert world.velocity("ball")[5] > 0.8


def test_forces_hold_for_one_frame(world: Live) -> None:
    """A ball hovers under its weight; a push off the centre turns it; what was asked is forgotten afterwards."""
    start = world.pose("ball").copy()
    for _ in range(5):
        world.apply_force("ball", (0, 0, G / 2))
        world.apply_force("ball", (0, 0, G / 2), frame="body")
        world.step()
    np.testing.assert_allclose(world.pose("ball"), start, rtol=0, atol=1e-12)
    inertia, x, z = 0.4 * R**2, *start[[0, 2]]
    world.apply_force("ball", (0, 0.3, G), (x, 0, z + R))
    world.apply_torque("ball", (0, 0, 0.02))
    world.step()
    wanted = np.array([-0.3 * R / inertia, 0, 0.02 / inertia, 0, 0.3, 0]) * DT
    np.testing.assert_allclose(world.velocity("ball"), wanted, rtol=0, atol=1e-10)
    world.step()
    np.testing.assert_allclose(world.velocity("ball")[3:], [0, wanted[4], -G * DT], rtol=0, atol=1e-10)


def test_an_arm_is_held_struck_and_driven(world: Live) -> None:
    """By a force, an impulse at its tip, which its joint takes a part of, a motor; and put elsewhere."""
    about = 0.1 + M_ARM * ARM**2
    world.apply_force("arm", (0, 0, M_ARM * G))
    world.step()
    np.testing.assert_allclose(world.velocity("arm"), 0, atol=1e-12)
    world.apply_impulse("arm", (7.0, 0, -1.0), (5 + 2 * ARM, 0, 2))
    np.testing.assert_allclose(world.velocity("arm")[:3], [0, 2 * ARM / about, 0], rtol=0, atol=1e-12)
    world.set_joint("arm", q=np.pi / 2, v=0.0)  # straight down
    np.testing.assert_allclose(world.pose("arm")[3:], [np.sqrt(0.5), 0, np.sqrt(0.5), 0], atol=1e-12)
    world.motor("arm", 0.5)
    world.step()
    np.testing.assert_allclose(world.velocity("arm")[1], 0.5 / about * DT, rtol=1e-3)
    world.set_joint("arm", q=np.pi / 2, v=0.0)
    world.set_motors(np.zeros(world.model.topology.nv))
    world.step()
    np.testing.assert_allclose(world.velocity("arm")[1], 0, atol=1e-12)


def test_spare_bodies_come_and_go(world: Live) -> None:
    """What waits is nowhere to be seen, and does not move by a bit; what comes is like the others."""
    assert world.bodies == ("ball", "arm")
    assert world.poses().shape == (2, 7)
    waiting = world.state.q[8:].copy()
    play(world, 3)
    np.testing.assert_array_equal(world.state.q[8:], waiting)
    np.testing.assert_array_equal(world.state.v[7:], 0)
    body = world.add_body("ball", (2, 0, 1), linear_velocity=(1, 0, 0), angular_velocity=(0, 0, 3))
    assert (body, world.add_body("ball", (3, 0, 1))) == ("ball.1", "ball.2")
    assert world.bodies == ("ball", "arm", "ball.1", "ball.2")
    with pytest.raises(PoolError, match="all 2 of 'ball' are in use"):
        world.add_body("ball", (0, 0, 1))
    world.remove_body("ball.2")
    start = world.time
    play(world, 6)
    t = world.time - start
    np.testing.assert_allclose(world.pose(body)[:3], [2 + t, 0, 1 - G * t**2 / 2], rtol=0, atol=EXACT)
    world.remove_body(body)
    np.testing.assert_array_equal(world.state.q[8:], waiting)
    assert world.add_body("ball", (2, 0, 1)) == body
    for wrong, why in (
        (lambda: world.pose("ball.2"), "waits in the pool"),
        (lambda: world.remove_body("ball"), "no body of"),
    ):
        with pytest.raises(PoolError, match=why):
            wrong()
    with pytest.raises(PoolError, match="the pool has no 'cue'; it has ball"):
        world.add_body("cue", (0, 0, 1))


def test_rays_and_overlaps(world: Live) -> None:
    hit = world.raycast((0, 0, 5), (0, 0, -2))
    assert hit is not None
    assert hit.body == "ball"
    np.testing.assert_allclose(hit.distance, 4 - R, atol=1e-12)
    ground = world.raycast((0, 0, 5), (0, 0, -2), ignore=["ball"])
    assert ground is not None
    assert ground.body == "floor"
    assert world.raycast((0, 0, 5), (0, 0, 1)) is None
    assert world.raycast((0, 0, 5), (0, 0, -1), max_distance=3) is None
    body = world.add_body("ball", (0.5, 0, 1))
    many = world.raycasts(np.linspace((-1, 0, 5), (1, 0, 5), 101), (0, 0, -1))
    assert {world.model.topology.shape_links[k] for k in many.shape} == {-1, 0, 2}
    assert world.overlap(PROBE, (0.2, 0, 1)) == ["ball", body]
    assert world.overlap(PROBE, (0.2, 0, 1), ignore=["ball"]) == [body]
    with pytest.raises(ValueError, match="ignore"):
        world.overlap(PROBE, ignore=["bal"])
    assert world.overlap(carom.Sphere(0.02), (0.2, 0, 1)) == []
    assert world.overlap(carom.Sphere(0.02), (0.2, 0, 1), within=0.1) == ["ball"]
    assert world.overlap(PROBE, (0.5, 0, 0.2)) == ["floor"]
    world.remove_body(body)
    assert world.overlap(PROBE, (0.5, 0, 1)) == []


def test_saves_repeat_to_the_last_bit_and_are_small(world: Live) -> None:
    world.add_body("ball", (0.05, 0, 2))  # which falls on the other
    play(world, 20)
    saved, forces = world.save_state(), np.random.default_rng(0).normal(size=(30, 3))
    hashes = []
    for _ in range(2):
        for force in forces:
            world.apply_force("ball", force)
            world.step()
        hashes.append(world.hash())
        world.apply_force("ball", (1e3, 0, 0))  # a load drops what was not done yet
        world.load_state(saved)
    assert hashes[0] == hashes[1]
    assert world.save_state() == saved
    topology = world.model.topology
    assert len(saved) == 16 + 8 * (topology.nq + topology.nv + 1)


def test_a_save_of_something_else_is_refused(world: Live) -> None:
    saved = world.save_state()
    magic, version, wide, behind, mark = HEADER.unpack_from(saved)
    body = saved[HEADER.size :]

    def header(version: int = version, wide: int = wide, behind: float = behind, mark: bytes = mark) -> bytes:
        return HEADER.pack(magic, version, wide, behind, mark) + body

    for wrong, why in (
        (b"", "these 0 bytes are no save"),
        (b"no" + saved[2:], "no save of a world"),
        (header(version=9), "has version 9, and this Carom reads 2"),
        (header(wide=4), 'make the world with dtype="float32"'),
        (header(mark=b"another!"), "of another model"),
        (header(behind=-1.0), "not finite"),
        (saved[:-1], "in place of"),
        (saved + b"x", "something was added"),
        (header(behind=1e30), "is too late"),
        (saved[:-8] + b"\xff" * 8, "not finite"),
        (saved[: HEADER.size] + bytes(len(saved) - HEADER.size), "quaternions that are not of length 1"),
    ):
        with pytest.raises(SaveError, match=why):
            world.load_state(wrong)
    assert world.save_state() == saved


def test_a_frame_takes_no_more_ticks_than_allowed_and_is_made_up_for(made: Live) -> None:
    """One tick looks at the start, one takes a frame in which nothing happens; a bounce needs more than these two.
    The world is behind from then on, and its save knows that: another one, with more ticks, makes up for it at once."""
    slow = Live(scene(), pool={"ball": 2}, max_ticks=2, window=None, warm=False, **OPTIONS)
    frames, behind = 40, []
    for k in range(frames):
        slow.step()
        behind.append(slow.behind)
        np.testing.assert_allclose(slow.time + slow.behind, (k + 1) * DT, atol=1e-6)  # behind is in single precision
    assert behind[:20] == [0.0] * 20
    assert 0 < behind[-1] <= DT
    made.load_state(slow.save_state())
    assert made.behind == slow.behind
    assert made.hash() == slow.hash()
    made.step()
    assert made.behind == 0
    np.testing.assert_allclose(made.time, (frames + 1) * DT, atol=1e-6)
    np.testing.assert_allclose(made.pose("ball")[2], fallen(made.time)[0], atol=EXACT)


def test_errors_name_what_is_wrong(world: Live) -> None:
    for wrong, why in (
        (lambda: world.pose("bal"), "body is 'bal'; it must be one of 'ball', 'arm'"),
        (lambda: world.apply_force("world", (0, 0, 1)), "body is 'world'; it must be one of 'ball', 'arm'"),
        (lambda: world.apply_force("ball", (0, np.nan, 1)), "force is .* 3 finite numbers"),
        (
            lambda: world.apply_force("ball", (0, 0, 1), frame="link"),
            "frame is 'link'; it must be one of 'world', 'body'",
        ),
        (lambda: world.teleport("arm", position=(0, 0, 1)), "'arm' is no free body: move it by set_joint"),
        (lambda: world.teleport("ball", quaternion=(1, 1, 0, 0)), "of length 1.41421; it must have length 1"),
        (lambda: world.set_joint("arm", q=(1, 2)), "q is .* it must be 1 finite number"),
        (lambda: world.apply_force("ball", "up"), "force is 'up'; it must be 3 finite numbers"),
        (
            lambda: world.apply_impulse("ball", (0, 0, 1e39)),
            r"impulse is .*1e\+39\); it must be 3 finite numbers of at most",
        ),
        (lambda: world.teleport("ball", position=(0, -1e200, 0)), "position is .* at most 1e\\+12"),
        (lambda: world.set_joint("arm", v=1e39), "v is .* it must be 1 finite number of at most"),
        (lambda: world.step(-1), "dt is -1; it must be a positive number of seconds"),
        (lambda: world.on_contact(print, "flor"), "body is 'flor'; it must be one of 'floor', 'ball'"),
    ):
        with pytest.raises(ValueError, match=why):
            wrong()


def test_what_is_refused_changes_nothing(world: Any) -> None:
    """Arguments of other types, unknown names, and numbers beyond all bounds, while a force and a motor wait."""
    world.apply_force("ball", (1, 0, 0))
    world.motor("arm", 0.5)
    before = world.save_state(), world._motors.tobytes(), world._pushes.tobytes()
    vectors = "origins is .* vectors \\(R, 3\\) of finite numbers"
    for wrong, why in (
        (lambda: world.step("x"), "dt is 'x'; it must be a positive number of seconds, from 1e-12 to 1000"),
        (lambda: world.step(1e13), "dt is 10{13}.0; .* to 1000"),
        (lambda: world.pose(None), "body is None; it must be one of 'ball', 'arm'"),
        (lambda: world.pose(2), "body is 2; it must be one of 'ball', 'arm'"),
        (lambda: world.motor("floor", 1), "link is 'floor'; it must be one of 'ball', 'arm'"),
        (lambda: world.motor("arm", [[1], [2, 3]]), "value is .* it must be 1 finite number of at most"),
        (lambda: world.set_motors(1e39), "values is 1e\\+39; it must be 19 finite numbers"),
        (lambda: world.set_joint(3, 1), "link is 3; it must be one of"),
        (lambda: world.set_joint("ball.1", v=[0] * 6), "'ball.1' waits in the pool"),
        (lambda: world.set_joint("ball", [0, 0, 1, 0, 0, 0, 0]), "the quaternion in q is .* of length 0; it must have"),
        (lambda: world.add_body(["ball"], (0, 0, 1)), "the pool has no \\['ball'\\]; it has ball"),
        (lambda: world.remove_body(None), "None is no body of the pool"),
        (lambda: world.load_state(None), "None is no save of a world: give the bytes that save_state"),
        (lambda: world.overlap(None), "shape is None; it must be a shape, such as carom.Sphere"),
        (lambda: world.overlap(PROBE, quaternion=(0, 0, 0, 0)), "of length 0; it must have length 1"),
        (lambda: world.overlap(PROBE, within=np.nan), "within is nan; it must be one number of metres"),
        (lambda: world.raycast((0, 0, 5), (0, 0, -1), "far"), "max_distance is 'far'; it must be one number of metres"),
        (
            lambda: world.raycast((0, 0, 5), (0, 0, -1), -1.0),
            "max_distance is -1.0; it must be one number",
        ),
        (lambda: world.raycast((0, 0, 5), (0, 0, 0)), r"direction is \(0, 0, 0\); it must be a vector that is not 0"),
        (lambda: world.raycast((0, 0, 5), (0, 0, -1), ignore="ball"), "ignore is 'ball'; it must be a list of names"),
        (lambda: world.raycast((0, 0, 5), (0, 0, -1), ignore=["bal"]), "a name in ignore is 'bal'; it must be one of"),
        (lambda: world.raycasts(np.ones((4, 3), complex), (0, 0, 1)), vectors),
        (lambda: world.raycasts(np.ones((4, 2)), (0, 0, 1)), vectors),
        (lambda: world.raycasts([["a", "b", "c"]], (0, 0, 1)), vectors),
        (lambda: world.raycasts(np.zeros((2, 3)), np.ones((5, 3))), "2 origins have 5 directions: give as many, or"),
        (lambda: world.on_contact(3), "callback is 3; it must be a function of a Contact"),
    ):
        with pytest.raises((ValueError, TypeError), match=why):
            wrong()
        assert (world.save_state(), world._motors.tobytes(), world._pushes.tobytes()) == before
    world.step()


def test_nobody_else_holds_what_decides(world: Live) -> None:
    """Arrays that were given or returned are not the world's own."""
    told = np.zeros(world.model.topology.nv)
    world.set_motors(told)
    world.motor("arm", 0.5)
    assert not told.any()
    told[:] = np.nan
    world.teleport("ball", position=(0, 0, 2))
    for array in (world.state.q, world.state.v, world.pose("ball")):
        with pytest.raises(ValueError, match="read-only"):
            array[:] = np.nan
    world.step()


def test_a_long_frame_tells_all_that_rested() -> None:
    """A box slides for a frame of 120 steps, which are more than are kept one by one."""
    b = carom.SceneBuilder()
    b.add_plane(friction=0.1)
    b.add_body(
        "box", [carom.Box((0.1, 0.1, 0.1))], mass=2.0, position=(0, 0, 0.1), linear_velocity=(5, 0, 0), friction=0.1
    )
    world = Live(b, dt=0.5, max_dt=1 / 240, max_ticks=400, warm=False)
    world.step()
    (touch,) = world.contact_events()
    np.testing.assert_allclose(touch.impulse, 2.0 * 9.81 * 0.5 * np.array([-0.1, 0, 1]), rtol=0, atol=1e-4)


def test_what_a_dtype_cannot_hold_is_refused_and_leaves_the_world_as_it_was() -> None:
    """In single precision: what throws bodies out of all bounds is told, and forgotten."""
    b = carom.SceneBuilder(gravity=(0, 0, 0))
    b.add_body("ball", [carom.Sphere(0.1)], mass=1.0)
    world = Live(b, dtype="float32", warm=False)
    world.step()
    saved = world.save_state()
    world._pushes[0, 3] = 1e39  # more than any number of calls adds up to
    with pytest.raises(SimulationError):
        world.step()
    assert world.save_state() == saved
    world.step()
    assert np.isfinite(world.state.v).all()
    b.add_body("mote", [carom.Sphere(0.1)], mass=1e-30, position=(5, 0, 0))
    world = Live(b, dtype="float32", warm=False)
    saved = world.save_state()
    with pytest.raises(ValueError, match="numbers that float32 cannot hold; it is as it was"):
        world.apply_impulse("mote", (1e12, 0, 0), (5, 1, 0))
    assert world.save_state() == saved


def test_worlds_that_cannot_be_are_refused() -> None:
    with pytest.raises(PoolError, match="'arm' is no free body of the scene"):
        Live(scene(), pool={"arm": 1}, warm=False)
    closed = scene()
    for k in range(3):
        for side in (1, -1):
            closed.add_plane(np.eye(3)[k] * side, -9.0)
    with pytest.raises(PoolError, match="the scene's planes close it in on all sides"):
        Live(closed, pool={"ball": 1}, warm=False)
    refused: list[tuple[dict[str, Any], str]] = [
        ({"max_ticks": 0}, "max_ticks is 0; it must be a whole number from 1 to"),
        ({"max_events": 2.5}, "max_events is 2.5; it must be a whole number from 0 to"),
        ({"max_contacts": "many"}, "max_contacts is 'many'; it must be a whole number from 1 to"),
        ({"dt": "x"}, "dt is 'x'; it must be a positive number of seconds"),
        ({"window": np.nan}, "window is nan; it must be a positive number of seconds"),
        ({"pool": 3}, "pool is 3; it must be a dict"),
        ({"resting": "penalty", "window": None}, "Live: resting is 'penalty'; worlds know 'solve' alone"),
        ({"probes": [3]}, "a shape in probes is 3; it must be a shape"),
    ]
    for wrong, why in refused:
        with pytest.raises(ValueError, match=why):
            Live(scene(), warm=False, **wrong)


def test_options_are_taken_whole() -> None:
    """Keywords begin with what games want, options with themselves; room they leave open is that of games."""
    options = carom.Options(max_dt=1 / 120, max_ticks=64, max_events=1024, window=1e-3)
    worlds = [Live(scene(), warm=False, options=options), Live(scene(), warm=False, max_dt=1 / 120)]
    worlds.append(Live(scene(), warm=False, options=carom.Options(window=1e-3), max_dt=1 / 120))
    for world in worlds:
        for _ in range(20):
            world.step()
    assert worlds[0].save_state() == worlds[1].save_state() == worlds[2].save_state()


def test_a_body_may_have_the_name_of_what_asks() -> None:
    b = carom.SceneBuilder()
    b.add_body("overlap", [carom.Sphere(0.1)], mass=1.0)
    assert Live(b, warm=False).overlap(PROBE) == ["overlap"]


@pytest.mark.exhaustive
def test_two_thousand_frames_of_a_break_compile_nothing() -> None:
    """In single precision, with all that a game asks; and the balls stay on the table."""
    world = Live("pool_break", dtype="float32", probes=[PROBE])
    before = len(COMPILED)
    for k in range(2000):
        world.apply_force("cue", (0.1 * (k % 3), 0, 0))
        if k % 100 == 99:
            world.raycast((0, 0, 1), (0, 0, -1))
            world.overlap(PROBE)
            world.apply_impulse("cue", (0.1, 0, 0))
            world.load_state(world.save_state())
        world.step()
    assert len(COMPILED) == before
    places = world.poses()
    assert (np.abs(places[:, 0]) < 1.27).all()
    assert (np.abs(places[:, 1]) < 0.635).all()


def test_names_of_before_work_and_say_what_they_are_called_now(world):
    with pytest.warns(DeprecationWarning, match=r"Live\.save is called save_state now"):
        saved = world.save()
    assert saved == world.save_state()
    with pytest.warns(DeprecationWarning, match="raycast"):
        assert world.ray((0, 0, 5), (0, 0, -1)).body == "ball"
    with pytest.raises(AttributeError, match="'Live' object has no attribute 'jump'"):
        world.jump()


def test_a_joint_is_put_within_its_limits() -> None:
    b = carom.SceneBuilder()
    b.add_link("door", joint=carom.Revolute((0, 0, 1), limits=(0.0, 1.5)), mass=1.0, inertia=(1, 1, 1))
    world = carom.Live(b, warm=False)
    world.set_joint("door", 1.5)
    with pytest.raises(ValueError, match=r"q is \[1.6\], beyond the limits of the joint of 'door', \[0.0\] to \[1.5\]"):
        world.set_joint("door", 1.6)


@pytest.mark.parametrize("max_ticks", [2, 64])
def test_records_of_contacts_add_up_to_the_change_of_momentum(max_ticks: int) -> None:
    """A heavy ball falls on a box that stands: the floor answers the blow, in windows too, without an impact."""
    b = carom.SceneBuilder()
    b.add_plane(name="floor")
    masses = {"anvil": 1.0, "hammer": 5.0}
    b.add_body("anvil", [carom.Box((0.2, 0.2, 0.1))], mass=masses["anvil"], position=(0, 0, 0.1))
    b.add_body("hammer", [carom.Sphere(0.1)], mass=masses["hammer"], position=(0, 0, 0.5))
    world = carom.Live(b, dtype="float64", max_ticks=max_ticks)
    hardest = 0.0
    for _ in range(30):
        before = {name: world.velocity(name)[5] for name in masses}
        world.step()
        for name, mass in masses.items():
            own = [c for c in world.contact_events() if name in (c.a, c.b)]
            pushed = sum(c.impulse[2] if c.a == name else -c.impulse[2] for c in own)
            gained = mass * (world.velocity(name)[5] - before[name] + 9.81 * world.dt)
            assert pushed == pytest.approx(gained, abs=1e-4)
            hardest = max(hardest, *(abs(c.impulse[2]) for c in own), 0.0)
    assert hardest > 5
