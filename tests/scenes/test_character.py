"""A character walks, climbs, jumps, is carried, pushes; and goes back in time with its world."""

import math

import numpy as np
import pytest

import carom

G, MASS, HEIGHT = 9.81, 70.0, 1.1  # of a capsule of 0.3 and 0.5 m that floats by 0.3


@pytest.fixture(scope="module")
def world() -> carom.Live:
    b = carom.SceneBuilder(gravity=(0, 0, -G))
    b.add_plane(name="floor", friction=0.8)
    for k in range(3):
        size = (0.5, 2, 0.125 * (k + 1))
        b.add_static(f"stair{k}", [carom.Box(size)], position=(3.5 + 0.6 * k, 0, size[2]))
    b.add_static("wall", [carom.Box((0.1, 2, 1))], position=(0, -6, 1), quaternion=(0.5**0.5, 0, 0, 0.5**0.5))
    for name, angle, x in (("gentle", 0.6, 20), ("steep", 1.1, 30)):
        turn = (math.cos(angle / 2), 0, -math.sin(angle / 2), 0)
        b.add_static(name, [carom.Box((5, 2, 0.1))], position=(x, 0, 0), quaternion=turn)
    b.add_body("hero", [carom.Capsule(0.3, 0.5)], mass=MASS, position=(0, 0, HEIGHT), friction=0.0)
    b.add_body("crate", [carom.Box((0.5, 0.5, 0.5))], mass=20.0, position=(-2, 0, 0.5), friction=0.3)
    b.add_body("carton", [carom.Box((0.25, 0.25, 0.25))], mass=2.0, position=(-3, -10, 0.25), friction=0.5)
    b.add_body("ball", [carom.Sphere(0.11)], mass=0.4, position=(-3, -12, 0.11), friction=0.5)
    belt = [carom.Box((3, 1, 0.05))]
    b.add_static("belt", belt, position=(0, 10, 0.05), linear_velocity=(1.2, 0, 0), friction=0.8)
    motor = carom.Motor("velocity", kd=math.inf, effort=1e5)
    lift = [carom.Box((1, 1, 0.05))]
    b.add_link("lift", joint=carom.Prismatic((0, 0, 1), motor=motor), position=(0, 4, 0.1), mass=100.0, shapes=lift)
    return carom.Live(b)


@pytest.fixture
def hero(world: carom.Live) -> carom.Character:
    world.reset()
    return carom.Character(world, "hero")


def play(hero: carom.Character, frames: int) -> None:
    for _ in range(frames):
        hero.update()
        hero.world.step()


def test_it_stands_and_walks_at_the_speed_it_is_told(world: carom.Live, hero: carom.Character) -> None:
    play(hero, 60)
    assert world.pose("hero") == pytest.approx((0, 0, HEIGHT, 1, 0, 0, 0), abs=1e-4)
    hero.walk((0, 1.5, 0), facing=math.pi / 2)
    play(hero, 60)
    assert world.velocity("hero")[3:] == pytest.approx((0, 1.5, 0), abs=1e-3)
    assert world.pose("hero")[3:] == pytest.approx((0.5**0.5, 0, 0, 0.5**0.5), abs=1e-3)
    hero.walk((0, 0, 0))
    play(hero, 30)
    assert np.abs(world.velocity("hero")).max() < 1e-3
    assert hero.ground == "floor"


def test_it_speeds_up_as_fast_as_it_may(world: carom.Live) -> None:
    world.reset()
    slow = carom.Character(world, "hero", acceleration=4.0)
    slow.walk((3, 0, 0))
    play(slow, 30)
    assert world.velocity("hero")[3] == pytest.approx(2.0, abs=1e-2)


def test_it_climbs_stairs_and_stops_at_walls(world: carom.Live, hero: carom.Character) -> None:
    hero.walk((2, 0, 0))
    play(hero, 140)
    hero.walk((0, 0, 0))
    play(hero, 60)
    assert world.pose("hero")[2] == pytest.approx(0.75 + HEIGHT, abs=1e-3)
    assert hero.ground == "stair2"
    world.reset()
    hero.walk((0, -3, 0))
    play(hero, 150)
    assert world.pose("hero")[1] == pytest.approx(-6 + 0.1 + 0.3, abs=1e-2)


def test_it_climbs_slopes_that_are_not_too_steep(world: carom.Live, hero: carom.Character) -> None:
    heights = []
    for x in (19.5, 29.0):
        world.teleport("hero", (x, 0, HEIGHT), linear_velocity=(0, 0, 0))
        hero.walk((1, 0, 0))
        play(hero, 180)
        heights.append(world.pose("hero")[2] - HEIGHT)
    assert heights[0] > 1.0
    assert heights[1] < 0.6


def test_a_jump_is_as_high_as_its_speed_takes_it(world: carom.Live, hero: carom.Character) -> None:
    hero.jump(4.0)
    heights, grounds = [], []
    for _ in range(60):
        play(hero, 1)
        heights.append(world.pose("hero")[2])
        grounds.append(hero.ground)
    assert max(heights) == pytest.approx(HEIGHT + 16 / (2 * G), abs=2e-3)
    assert None in grounds
    assert grounds[-1] == "floor"
    hero.jump(4.0)
    play(hero, 10)
    before = world.velocity("hero")[5]
    hero.jump(4.0)  # not in the air
    play(hero, 1)
    assert world.velocity("hero")[5] == pytest.approx(before - G / 60, abs=1e-3)


def test_what_it_stands_on_carries_it_and_bears_it(world: carom.Live, hero: carom.Character) -> None:
    world.teleport("hero", (0, 4, 0.15 + HEIGHT))
    world.motor("lift", 1.0)
    play(hero, 60)
    assert world.velocity("hero")[5] == pytest.approx(1.0, abs=1e-2)
    assert world.pose("hero")[2] == pytest.approx(world.pose("lift")[2] + 0.05 + HEIGHT, abs=2e-2)
    world.teleport("hero", (-2, 0, 1.0 + HEIGHT), linear_velocity=(0, 0, 0))
    play(hero, 60)
    assert hero.ground == "crate"
    weight = sum(c.impulse[2] for c in world.contact_events() if {c.a, c.b} == {"crate", "floor"}) * 60
    assert weight == pytest.approx((MASS + 20) * G, rel=1e-2)


def test_it_pushes_what_is_in_its_way(world: carom.Live, hero: carom.Character) -> None:
    hero.walk((-1, 0, 0))
    play(hero, 180)
    assert world.pose("crate")[0] < -3.0


@pytest.mark.parametrize(("name", "y"), [("carton", -10), ("ball", -12)])
def test_light_things_are_pushed_and_do_not_lift_it(world: carom.Live, name: str, y: float) -> None:
    world.reset()
    hero = carom.Character(world, "hero")
    world.teleport("hero", (-5, y + 0.1, HEIGHT))
    hero.walk((1.5, 0, 0))
    highest = fastest = 0.0
    for _ in range(150):
        play(hero, 1)
        highest = max(highest, float(world.pose("hero")[2]))
        fastest = max(fastest, float(np.linalg.norm(world.velocity(name)[3:])))
    assert highest < HEIGHT + 0.02
    assert fastest < 2.5 * 1.5
    assert world.pose("hero")[0] > -2


def test_a_turntable_carries_it_round() -> None:
    """By half a radian per second and more: along tangents it would drift outwards by w^2 dt a second."""
    b = carom.SceneBuilder(gravity=(0, 0, -G))
    motor = carom.Motor("velocity", kd=math.inf, effort=1e5)
    table = [carom.Cylinder(4, 0.05, friction=0.8)]
    b.add_link("table", joint=carom.Revolute((0, 0, 1), motor=motor), position=(5, 0, 0), mass=200.0, shapes=table)
    b.add_body("hero", [carom.Capsule(0.3, 0.5)], mass=MASS, position=(6, 0, HEIGHT + 0.05), friction=0.0)
    world = carom.Live(b)
    hero = carom.Character(world, "hero")
    world.motor("table", 1.5)
    play(hero, 600)
    assert hero.ground == "table"
    x, y, _ = world.pose("hero")[:3]
    assert math.hypot(x - 5, y) == pytest.approx(1.0, abs=1e-3)
    assert math.remainder(math.atan2(y, x - 5) - 1.5 * 10, 2 * math.pi) == pytest.approx(0, abs=0.15)  # it lands first


def test_a_conveyor_carries_it(world: carom.Live, hero: carom.Character) -> None:
    world.teleport("hero", (-2, 10, HEIGHT + 0.1))
    play(hero, 90)
    assert hero.ground == "belt"
    assert world.velocity("hero")[3:] == pytest.approx((1.2, 0, 0), abs=1e-2)


def test_it_goes_back_in_time_with_its_world(world: carom.Live, hero: carom.Character) -> None:
    def walked() -> str:
        for frame in range(60):
            hero.walk((math.cos(frame / 9), math.sin(frame / 9), 0))
            if frame == 20:
                hero.jump(3.0)
            play(hero, 1)
        return world.hash()

    saved, first = world.save_state(), walked()
    world.load_state(saved)
    assert walked() == first


def test_up_is_where_gravity_says() -> None:
    """On a wall, the same walk."""
    b = carom.SceneBuilder(gravity=(-G, 0, 0))
    b.add_plane((1, 0, 0))
    turn = (0.5**0.5, 0, 0.5**0.5, 0)  # its axis along x
    b.add_body("hero", [carom.Capsule(0.3, 0.5)], mass=MASS, position=(HEIGHT, 0, 0), quaternion=turn, friction=0.0)
    world = carom.Live(b)
    hero = carom.Character(world, "hero")
    hero.walk((5, 0, 1))
    play(hero, 60)
    assert world.pose("hero")[:3] == pytest.approx((HEIGHT, 0, 1), abs=0.05)
    assert world.velocity("hero") == pytest.approx((0, 0, 0, 0, 0, 1), abs=1e-3)


@pytest.mark.parametrize(
    ("body", "given", "why"),
    [
        ("crate", {}, "'crate' must have one shape, a capsule"),
        ("nobody", {}, "body is 'nobody'"),
        ("hero", {"step": -1.0}, "step is -1.0; it must not be negative"),
    ],
)
def test_what_cannot_walk_is_refused(world: carom.Live, body: str, given: dict, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        carom.Character(world, body, **given)
