"""What a world is told while it runs: who touches whom, conveyors, pairs, and joints that are cut and joined."""

import math
from typing import Any

import jax
import numpy as np
import pytest

import carom

G = 9.81
GHOSTS = 0b10


@pytest.fixture(scope="module")
def world() -> carom.Live:
    """A ball above a block on the floor, a crate on a belt, a spare ball."""
    b = carom.SceneBuilder(gravity=(0, 0, -G), filtering=True)
    b.add_plane(name="floor", friction=0.5, restitution=0.0)
    b.add_static("belt", [carom.Box((5, 0.5, 0.1))], position=(0, 3, 0.1), linear_velocity=(1, 0, 0), friction=0.36)
    b.add_body("ball", [carom.Sphere(0.1)], mass=1.0, position=(0, 0, 0.6))
    b.add_body("block", [carom.Box((0.1, 0.1, 0.1))], mass=3.0, position=(0, 0, 0.1))
    b.add_body("crate", [carom.Box((0.1, 0.1, 0.1), friction=0.36)], mass=1.0, position=(-3, 3, 0.3))
    b.add_loop("ball", (0, 0, -0.15), "block", joint=carom.Fixed(), name="grip", active=False)
    b.add_loop("ball", (0, 0, 0), "world", (0, 0, 2), joint=carom.Distance(), name="rope", active=False)
    b.add_loop("ball.1", (0, 0, 0), "world", (0, 0, 2), joint=carom.Distance(), name="spare", active=False)
    b.add_body("ball.1", [carom.Sphere(0.1)], mass=1.0, position=(9, 0, 0.1))
    return carom.Live(b)


def play(world: carom.Live, frames: int) -> None:
    for _ in range(frames):
        world.step()


def height(world: carom.Live, body: str) -> float:
    return float(world.pose(body)[2])


# -- who touches whom -------------------------------------------------------------------------------------


def test_ignored_bodies_go_through_each_other_and_touch_again(world: carom.Live) -> None:
    world.reset()
    world.ignore_collision("ball", "block")
    play(world, 15)
    assert height(world, "ball") == pytest.approx(0.6 - G / 2 * 0.25**2, abs=1e-5)
    play(world, 45)
    assert height(world, "ball") == pytest.approx(0.1, abs=1e-4)  # the floor is still there
    assert height(world, "block") == pytest.approx(0.1, abs=1e-4)
    world.reset()
    play(world, 60)
    assert height(world, "ball") == pytest.approx(0.3, abs=1e-4)
    world.ignore_collision("block", "ball")  # both sleep or rest by now
    play(world, 60)
    assert height(world, "ball") == pytest.approx(0.1, abs=1e-4)
    world.teleport("ball", (0.19, 0, 0.1))
    world.ignore_collision("ball", "block", False)
    assert not world.contact_events()
    play(world, 60)
    assert np.abs(world.pose("ball")[:2] - world.pose("block")[:2]).max() > 0.1999  # what overlapped came out


def test_layers_say_who_touches_whom(world: carom.Live) -> None:
    world.reset()
    world.set_layers("ball", group=GHOSTS)
    world.set_layers("block", mask=0xFFFFFFFF & ~GHOSTS)
    play(world, 60)
    assert height(world, "ball") == pytest.approx(0.1, abs=1e-4)
    world.set_layers("ball", mask=0)
    play(world, 12)
    assert height(world, "ball") == pytest.approx(0.1 - G / 2 * 0.2**2, abs=1e-4)


def test_rays_and_overlaps_see_layers(world: carom.Live) -> None:
    world.reset()
    world.set_layers("ball", group=GHOSTS)
    down: Any = ((0, 0, 5), (0, 0, -1))
    hits = [world.raycast(*down, mask=mask) for mask in (0xFFFFFFFF, GHOSTS, 1)]
    assert [hit and hit.body for hit in hits] == ["ball", "ball", "block"]
    assert world.raycast(*down, mask=0b100) is None
    near = carom.Sphere(0.5)
    assert world.overlap(near, (0, 0, 0.5), mask=GHOSTS) == ["ball"]
    assert "ball" not in world.overlap(near, (0, 0, 0.5), mask=1)


def test_a_scene_s_layers_are_where_it_starts() -> None:
    """A filtering scene begins as the one that does not filter."""
    runs = []
    for filtering in (False, True):
        b = carom.SceneBuilder(filtering=filtering)
        b.add_plane(mask=1)
        b.add_body("ghost", [carom.Sphere(0.1, group=GHOSTS)], mass=1.0, position=(0, 0, 0.2))
        b.add_body("ball", [carom.Sphere(0.1)], mass=1.0, position=(1, 0, 0.2))
        model, state = carom.compile_scene(b)
        runs.append(np.asarray(carom.rollout(model, state, duration=0.5).state.q))
        assert len(model.topology.pairs) == (3 if filtering else 2)
    assert np.array_equal(*runs)
    assert runs[0][2] < -0.5
    assert runs[0][9] == pytest.approx(0.1, abs=1e-5)


def test_fcl_leaves_them_out_too() -> None:
    b = carom.SceneBuilder(filtering=True)
    b.add_plane()
    for k in range(2):
        b.add_body(f"ball {k}", [carom.Sphere(0.1)], mass=1.0, position=(0.15 * k, 0, 0.2))
    model, state = carom.compile_scene(b, overlaps="ignore")
    model = model.replace(pair_touches=np.array([1.0, 0.0, 1.0]))
    found = [carom.detect(model, state.q, backend=backend) for backend in ("device", "fcl")]
    gaps = [{int(p): float(g) for p, g, on in zip(x.pair, x.gap, x.active, strict=True) if on} for x in found]
    assert gaps[0].keys() == gaps[1].keys() == {0, 2}
    assert gaps[0][2] == pytest.approx(gaps[1][2], abs=1e-4)


# -- surfaces and pairs -----------------------------------------------------------------------------------


def test_a_conveyor_changes_its_speed(world: carom.Live) -> None:
    """Friction takes the crate along: v = mu g t until it goes as the belt does."""
    world.reset()
    play(world, 6)
    assert world.velocity("crate")[3] == pytest.approx(0.36 * G * 0.1, rel=1e-3)
    play(world, 54)
    assert world.velocity("crate")[3] == pytest.approx(1.0, abs=1e-3)
    world.set_surface_velocity("belt", (-1, 0, 0))
    play(world, 6)
    assert world.velocity("crate")[3] == pytest.approx(1.0 - 0.36 * G * 0.1, rel=1e-3)
    world.set_surface_velocity("belt")
    play(world, 60)
    assert np.abs(world.velocity("crate")).max() < 1e-4


def test_a_pair_has_its_own_friction(world: carom.Live) -> None:
    world.reset()
    world.set_pair_material("belt", "crate", friction=0.1)
    play(world, 6)
    assert world.velocity("crate")[3] == pytest.approx(0.1 * G * 0.1, rel=1e-3)
    world.set_material("crate", friction=0.36)  # the geometric mean again
    play(world, 6)
    assert world.velocity("crate")[3] == pytest.approx(0.46 * G * 0.1, rel=1e-3)


# -- joints -----------------------------------------------------------------------------------------------


def test_a_rope_carries_and_is_cut(world: carom.Live) -> None:
    world.reset()
    world.attach("rope")
    assert world.attached == ("rope",)
    play(world, 30)
    assert height(world, "ball") == pytest.approx(0.6, abs=1e-5)
    assert world.joint_force("rope") == pytest.approx((0, 0, G), abs=1e-4)
    world.detach("rope")
    assert world.attached == ()
    play(world, 6)
    assert height(world, "ball") == pytest.approx(0.6 - G / 2 * 0.1**2, abs=1e-5)


def test_a_joint_feels_what_rests_on_its_links_and_what_pushes_them() -> None:
    b = carom.SceneBuilder()
    b.add_body("shelf", [carom.Box((0.5, 0.5, 0.05))], mass=2.0, position=(0, 0, 1))
    b.add_body("crate", [carom.Box((0.1, 0.1, 0.1), friction=0.5)], mass=3.0, position=(0.2, 0, 1.15))
    for k, (x, y) in enumerate(((0.4, 0.4), (-0.4, 0.4), (0.4, -0.4), (-0.4, -0.4))):
        b.add_loop("shelf", (x, y, 0), "world", (x, y, 2), joint=carom.Distance(), name=f"rope {k}", active=True)
    shelf = carom.Live(b, dtype="float64")
    ropes = [f"rope {k}" for k in range(4)]
    alone = sum(shelf.joint_force(rope) for rope in ropes)
    np.testing.assert_allclose(alone, (0, 0, 2 * G), atol=1e-9)  # no frame has passed: nothing rests on it yet
    play(shelf, 30)
    loaded = np.array([shelf.joint_force(rope) for rope in ropes])
    np.testing.assert_allclose(loaded.sum(0), (0, 0, 5 * G), atol=1e-6)
    np.testing.assert_allclose((loaded[0] + loaded[2])[2] * 0.8, (2 * 0.4 + 3 * 0.6) * G, rtol=1e-6)  # the lever
    shelf.apply_force("crate", (0, 0, -7.0))
    shelf.step()
    np.testing.assert_allclose(sum(shelf.joint_force(rope) for rope in ropes), (0, 0, 5 * G + 7), atol=1e-6)


# what holds a hoist of 10 kg, and the pull of its rope in weights of 5 kg
HOISTS: dict[str, tuple[dict[str, Any], float]] = {
    "rigid motor": ({"motor": carom.Motor("velocity", kd=math.inf, effort=5000)}, 1.0),
    "stop": ({"limits": (0, 1)}, 1.0),
    "friction": ({"loss": 1000.0}, 1.0),
    "a motor too weak": ({"motor": carom.Motor("velocity", kd=math.inf, effort=100)}, 100 / (15 * G)),
    "friction too weak": ({"loss": 100.0}, 100 / (15 * G)),
    "nothing": ({}, 0.0),
}


@pytest.mark.parametrize("by", HOISTS)
def test_a_rope_feels_what_holds_the_hoist_it_hangs_from(by: str) -> None:
    joint, pull = HOISTS[by]
    b = carom.SceneBuilder(filtering=True)
    b.add_link("hoist", joint=carom.Prismatic((0, 0, 1), **joint), position=(0, 0, 9), mass=10.0, inertia=(1, 1, 1))
    b.add_body("crate", [carom.Box((0.1, 0.1, 0.1))], mass=5.0, position=(0, 0, 7))
    b.add_loop("hoist", (0, 0, 0), "crate", (0, 0, 0.1), joint=carom.Distance(), name="rope", active=True)
    world = carom.Live(b, dtype="float64")
    play(world, 30)
    assert world.joint_force("rope") == pytest.approx((0, 0, -5 * G * pull), abs=1e-6)
    if by == "rigid motor":
        for _ in range(10):
            world.move_joint("hoist", world.state.q[0] + 0.01)
            world.step()
        assert world.joint_force("rope") == pytest.approx((0, 0, -5 * G), abs=1e-6)


def test_what_is_joined_in_flight_goes_on_together(world: carom.Live) -> None:
    """Momentum is kept, and the two move as one body."""
    world.reset()
    world.teleport("block", (0, 0, 5.0), linear_velocity=(1, 0, 0), angular_velocity=(0, 0, 0))
    world.teleport("ball", (0, 0, 5.25), linear_velocity=(-1, 0, 2), angular_velocity=(0, 3, 0))
    masses = {"ball": 1.0, "block": 3.0}
    before = sum(m * world.velocity(name)[3:] for name, m in masses.items())
    world.attach("grip", (0, 0, 5.1))
    after = sum(m * world.velocity(name)[3:] for name, m in masses.items())
    assert after == pytest.approx(before, abs=1e-5)
    w, w_block = world.velocity("ball")[:3], world.velocity("block")[:3]
    assert w == pytest.approx(w_block, abs=1e-5)
    assert abs(w[1]) > 0.1
    arm = world.pose("ball")[:3] - world.pose("block")[:3]
    apart = world.velocity("ball")[3:] - world.velocity("block")[3:]
    assert apart == pytest.approx(np.cross(w, arm), abs=1e-5)
    play(world, 30)
    assert np.linalg.norm(world.pose("ball")[:3] - world.pose("block")[:3]) == pytest.approx(0.25, abs=1e-4)
    assert not any({c.a, c.b} == {"ball", "block"} for c in world.contact_events())  # what is joined does not touch


@pytest.mark.parametrize(("lever", "falls"), [(0.1, 1.0), (0.3, 1.0), (0.65, 1.0), (0.65, 2.0), (1.2, 1.0)])
def test_a_rope_far_from_the_centre_of_mass_gives_no_energy(lever: float, falls: float) -> None:
    """It stops a ball of 1 kg that fell, and makes it spin, at up to 300 rad/s."""
    b = carom.SceneBuilder(gravity=(0, 0, -G))
    b.add_body("ball", [carom.Sphere(0.1)], mass=1.0, position=(0.5, 0, 0.7))
    b.add_loop("ball", (0, 0, 0), "world", (0, 0, 2), joint=carom.Distance(), name="rope", active=False)
    world = carom.Live(b, dtype="float32", warm=False)
    play(world, round(60 * falls))
    fell = 0.5 * (G * falls) ** 2

    def energy() -> float:
        w, v = np.split(world.velocity("ball"), 2)
        return float(v @ v / 2 + 0.004 * w @ w / 2) + G * height(world, "ball")

    world.attach("rope", world.pose("ball")[:3] + lever * np.array([0.6, 0, 0.8]))
    begins, spins = energy(), 0.0
    for _ in range(120):
        world.step()
        assert energy() < begins + 0.03 * fell
        spins = max(spins, np.linalg.norm(world.velocity("ball")[:3]))
    assert spins > 20
    with pytest.raises(ValueError, match="radii of gyration from its centre of mass"):
        world.attach("rope", world.pose("ball")[:3] + np.array([0.0, 8.0, 0.0]))


def test_joints_are_inputs(world: carom.Live) -> None:
    """Played again with the same calls, the same bits come."""
    world.reset()
    play(world, 3)
    saved, ends = world.save_state(), []
    for _ in range(2):
        world.load_state(saved)
        world.detach("rope")
        play(world, 2)
        world.attach("rope")
        play(world, 5)
        ends.append(world.hash())
    assert ends[0] == ends[1]
    world.reset()
    assert world.attached == ()


@pytest.mark.parametrize(
    ("call", "arguments", "why"),
    [
        ("attach", ("hook",), "joint is 'hook'; it must be one of 'grip', 'rope', 'spare'"),
        ("set_layers", ("nobody",), "body is 'nobody'"),
        ("ignore_collision", ("ball", "nobody"), "b is 'nobody'"),
        ("set_pair_material", ("floor", "belt"), "no shape of 'floor' can touch one of 'belt'"),
        ("ignore_collision", ("ball", "ball"), "a and b are both 'ball'"),
        ("set_surface_velocity", ("floor",), "static is 'floor'; it must be one of 'belt'"),
        ("set_surface_velocity", ("belt", (np.nan, 0, 0)), "linear is"),
    ],
)
def test_what_cannot_be_is_refused(world: carom.Live, call: str, arguments: tuple[Any, ...], why: str) -> None:
    before = world.hash()
    with pytest.raises(ValueError, match=why):
        getattr(world, call)(*arguments)
    assert world.hash() == before


def test_worlds_without_them_say_what_they_need() -> None:
    b = carom.SceneBuilder()
    b.add_plane(name="floor")
    b.add_static("box", [carom.Box((1, 1, 1))], position=(5, 0, 0))
    b.add_body("ball", [carom.Sphere(0.1)], mass=1.0, position=(0, 0, 0.6))
    world = carom.Live(b, warm=False)
    for call, arguments, why in (
        ("set_layers", ("ball",), "filtering=True"),
        ("ignore_collision", ("ball", "floor"), "filtering=True"),
        ("attach", ("rope",), r"add_loop\(active=True\)"),
        ("set_surface_velocity", ("box",), "no surface of this scene moves"),
    ):
        with pytest.raises(ValueError, match=why):
            getattr(world, call)(*arguments)


def test_a_body_that_goes_back_to_the_pool_lets_go() -> None:
    b = carom.SceneBuilder(filtering=True)
    b.add_plane(name="floor")
    b.add_body("ball", [carom.Sphere(0.1)], mass=1.0, position=(0, 0, 0.1))
    b.add_loop("ball.1", (0, 0, 0), "world", (0, 0, 3), joint=carom.Distance(), name="rope", active=False)
    world = carom.Live(b, pool={"ball": 2})
    with pytest.raises(ValueError, match=r"'ball.1' waits in the pool"):
        world.attach("rope")
    for _ in range(2):
        assert world.add_body("ball", (1, 0, 2)) == "ball.1"
        world.attach("rope")
        play(world, 20)
        assert np.linalg.norm(world.pose("ball.1")[:3] - (0, 0, 3)) == pytest.approx(2**0.5, abs=1e-4)
        world.remove_body("ball.1")
        assert world.attached == ()
        play(world, 5)
    assert world.pose("ball")[2] == pytest.approx(0.1, abs=1e-5)


def test_what_is_so_already_wakes_nobody() -> None:
    b = carom.SceneBuilder(filtering=True)
    b.add_plane(name="floor")
    for k in range(2):
        b.add_body(f"box{k}", [carom.Box((0.1, 0.1, 0.1), friction=0.3)], mass=1.0, position=(k, 0, 0.1))
    b.add_loop("box0", (0, 0, 0), "box1", (0, 0, 0), joint=carom.Distance(), name="rope", active=False)
    world = carom.Live(b)
    world.ignore_collision("box0", "box1")
    play(world, 30)
    model = world.model
    assert world._now.asleep.some
    for _ in range(2):
        world.ignore_collision("box1", "box0")
        world.set_layers("box0", group=1)
        world.set_material("box0", friction=0.3)
        world.detach("rope")
        play(world, 1)
    assert world.model is model
    assert world._now.asleep.some
    world.set_layers("box0", mask=0)
    assert world.model is not model
    assert not world._now.asleep.some


def test_what_hangs_still_sleeps_until_it_is_cut() -> None:
    """A rod keeps its length, and follows no time."""
    b = carom.SceneBuilder(gravity=(0, 0, -G))
    b.add_body("lamp", [carom.Sphere(0.1)], mass=1.0, position=(0, 0, 1))
    b.add_loop("lamp", (0, 0, 0.1), "world", (0, 0, 2), joint=carom.Distance(), name="cord", active=True)
    world = carom.Live(b)
    play(world, 10)
    assert world._now.asleep.some
    assert height(world, "lamp") == pytest.approx(1, abs=1e-6)
    world.detach("cord")
    play(world, 6)
    assert height(world, "lamp") == pytest.approx(1 - G / 2 * 0.1**2, abs=1e-5)


def test_nothing_is_compiled_when_a_joint_is_first_joined() -> None:
    b = carom.SceneBuilder()
    b.add_body("lamp", [carom.Sphere(0.1)], mass=1.0, position=(0, 0, 1))
    b.add_loop("lamp", (0, 0, 0.1), "world", (0, 0, 2), joint=carom.Distance(), name="cord", active=False)
    world = carom.Live(b)
    compiled: list[str] = []
    heard = lambda event, *_, **__: compiled.append(event) if "backend_compile" in event else None  # noqa: E731
    jax.monitoring.register_event_duration_secs_listener(heard)
    world.attach("cord")
    world.joint_force("cord")
    world.step()
    assert not compiled


# -- spares that loops tie ------------------------------------------------------------------------------------


def test_who_is_tied_to_a_spare_that_waits_moves_while_the_joint_is_cut() -> None:
    """A load falls, is pushed, hangs from the anvil while that is there, and falls again when it is taken away."""
    b = carom.SceneBuilder(gravity=(0, 0, -G))
    b.add_plane(name="floor", friction=0.5)
    b.add_body("anvil", [carom.Box((0.3, 0.3, 0.1))], mass=50.0, position=(5, 0, 0.1))
    b.add_body("load", [carom.Sphere(0.1)], mass=1.0, position=(0.9, 0, 1.5))
    b.add_loop("anvil.1", (0, 0, 0), "load", (0, 0, 0), joint=carom.Distance(), name="rope", active=False)
    world = carom.Live(b, pool={"anvil": 1}, warm=False)
    play(world, 12)
    assert height(world, "load") == pytest.approx(1.5 - G / 2 * 0.2**2, abs=1e-5)
    world.apply_impulse("load", (1, 0, 0))
    play(world, 12)
    np.testing.assert_allclose(world.pose("load")[:3], (1.1, 0, 1.5 - G / 2 * 0.4**2), atol=1e-5)
    assert world.bodies == ("anvil", "load")
    anvil = world.add_body("anvil", (1.1, 0, 0.1))
    world.attach("rope")
    length = height(world, "load") - height(world, anvil)
    play(world, 30)
    assert np.linalg.norm(world.pose("load")[:3] - world.pose(anvil)[:3]) == pytest.approx(length, abs=1e-5)
    world.remove_body(anvil)
    assert world.attached == ()
    world.teleport("load", (0, 0, 1.5), linear_velocity=(0, 0, 0))
    play(world, 12)
    assert height(world, "load") == pytest.approx(1.5 - G / 2 * 0.2**2, abs=1e-5)


@pytest.mark.parametrize("change", ["load_state", "teleport", "motor"])
def test_a_change_that_is_refused_within_a_frame_changes_nothing(world: carom.Live, change: str) -> None:
    world.reset()
    saved, expected = world.save_state(), []
    for refuses in (False, True):
        world.load_state(saved)
        world.begin_step()
        world.apply_force("crate", (60.0, 0, 0))
        if refuses:
            with pytest.raises(RuntimeError, match="end_step"):
                {
                    "load_state": lambda: world.load_state(saved),
                    "teleport": lambda: world.teleport("ball", (0, 0, 9)),
                    "motor": lambda: world.set_motors(np.zeros(world.model.topology.nv)),
                }[change]()
        world.end_step()
        half = world.poses(0.5)
        world.step()
        expected.append((half.tobytes(), world.hash(), world.behind))
    assert expected[0] == expected[1]
