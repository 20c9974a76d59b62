"""Islands asleep in a live world: what they cost nobody sees, what holds them is told, and who wakes them."""

import numpy as np
import pytest

import carom
from carom.scenes.live.saves import SaveError

DT, G = 1 / 60, 9.81
SHOT = carom.BodySpec("shot", (carom.Sphere(0.08),), mass=2.0, restitution=0.3)


def stacks() -> carom.SceneSpec:
    """Two stacks of two boxes, 2 m apart, and a door that nobody touches."""
    b = carom.SceneBuilder()
    b.add_plane(friction=0.6)
    for k, x in enumerate((0.0, 2.0)):
        for level in range(2):
            place = (x, 0.0, 0.15 * (1 + 2 * level))
            b.add_body(f"box{2 * k + level}", [carom.Box((0.15,) * 3)], mass=1.0, position=place, friction=0.6)
    b.add_link(
        "door", joint=carom.Revolute((0.0, 0.0, 1.0), damping=0.2), position=(0.0, 5.0, 1.0),
        shapes=[carom.Box((0.03, 0.4, 0.95), position=(0.0, 0.45, 0.0))], mass=8.0,
    )  # fmt: skip
    return b.build()


@pytest.fixture(scope="module")
def made() -> carom.Live:
    return carom.Live(stacks(), pool={"shot": (SHOT, 1)})


@pytest.fixture
def world(made: carom.Live) -> carom.Live:
    """In which all that there is has fallen asleep."""
    made.reset()
    for _ in range(30):
        made.step()
    assert set(sleepers(made)) == {"box0", "box1", "box2", "box3", "door"}
    return made


def sleepers(world: carom.Live) -> list[str]:
    islands = zip(world.model.topology.names, world._now.asleep.island, strict=True)  # each is a tree of its own
    found = [name for name, island in islands if island >= 0]
    assert world.asleep == tuple(name for name in found if name in world.bodies)
    return found


def shoot(world: carom.Live) -> None:
    """A little off the middle: which way a box turns that is struck in the middle is a question of rounding."""
    world.add_body("shot", (-1.0, 0.02, 0.4), linear_velocity=(8.0, 0.0, 1.0))


def test_those_that_touch_sleep_together(world):
    island = dict(zip(world.model.topology.names, world._now.asleep.island.tolist(), strict=True))
    assert island["box0"] == island["box1"] != island["box2"] == island["box3"]
    assert island["shot.1"] == -1


def test_what_holds_them_is_told(world):
    world.add_body("shot", (-5.0, 0.0, 4.0))  # so that the world as a whole is awake
    world.step()
    told = {(c.a, c.b): c for c in world.contact_events()}
    for low, high in (("box0", "box1"), ("box2", "box3")):
        ground = next(c for (a, b), c in told.items() if a == low and b not in (high,))
        between = told[min(low, high), max(low, high)]
        np.testing.assert_allclose(ground.impulse, (0, 0, 2 * G * DT), atol=1e-7)
        np.testing.assert_allclose(np.abs(between.impulse[2]), G * DT, rtol=1e-6)
        assert ground.phase == between.phase == "stay"


def test_what_touches_is_told_again_after_a_change_that_is_none(world):
    world.step()
    before = [(c.a, c.b, c.phase) for c in world.contact_events()]
    world.teleport("box0")
    assert world.contact_events() == []
    world.step()
    assert len(before) == 4
    assert [(c.a, c.b, c.phase) for c in world.contact_events()] == before


def test_a_shot_wakes_whom_it_meets_and_nobody_else(world):
    shoot(world)
    for _ in range(8):
        world.step()
    assert sleepers(world) == ["box2", "box3", "door"]
    assert world.velocity("box1")[3] > 0.5  # it was struck
    assert world.pose("box0")[2] > 0.149


def test_they_move_as_those_that_never_sleep(world):
    saved = world.save_state()
    shoot(world)
    for _ in range(12):
        world.step()
    sleeping = world.state
    world.load_state(saved)
    world._now.asleep = world._parts.start.asleep
    may, world._parts.stepper._sleeps = world._parts.stepper._sleeps, False
    shoot(world)
    for _ in range(12):
        world.step()
    world._parts.stepper._sleeps = may
    np.testing.assert_allclose(world.state.q, sleeping.q, atol=1e-6)
    np.testing.assert_allclose(world.state.v, sleeping.v, atol=1e-5)


def test_frames_loaded_and_played_again_are_the_same_bits(world):
    shoot(world)
    saves, contacts = [], []
    for _ in range(40):
        saves.append(world.save_state())
        world.step()
        contacts.append(world.contact_events())
    for start in (0, 7, 20):
        world.load_state(saves[start])
        world._parts.stepper._resting_rows.clear()
        for k in range(start, 40):
            assert world.save_state() == saves[k]
            world.step()
            for old, new in zip(contacts[k], world.contact_events(), strict=True):
                assert (old.a, old.b, old.phase, old.impacts) == (new.a, new.b, new.phase, new.impacts)
                np.testing.assert_array_equal(old.impulse, new.impulse)


@pytest.mark.parametrize(
    "push",
    [
        lambda world: world.apply_force("box3", (0.0, 0.0, 0.1)),
        lambda world: world.teleport("box2", linear_velocity=(0.0, 0.0, -0.01)),
        lambda world: world.apply_impulse("box2", (0.0, 0.0, -0.01)),
    ],
    ids=["force", "velocity", "impulse"],
)
def test_who_is_pushed_wakes_with_those_it_touches(world, push):
    push(world)
    before = world._now.asleep.after_pushes(world._pushes, world._motors)
    assert [n for n, i in zip(world.model.topology.names, before.island, strict=True) if i >= 0] == [
        "box0",
        "box1",
        "door",
    ]
    world.step()
    world.step()
    assert {"box0", "box1", "door"} <= set(sleepers(world))


def test_orders_to_motors_wake_it(world):
    world.motor("door", 1.0)
    for _ in range(5):
        world.step()
    assert "door" not in sleepers(world)
    world.reset()


def test_who_loses_its_support_falls(world):
    world.teleport("box0", (0.0, -3.0, 0.15))
    for _ in range(10):
        world.step()
    assert world.pose("box1")[2] < 0.4


def test_a_save_that_was_damaged_is_refused(world):
    data = bytearray(world.save_state())
    island = len(data) - world.state.v.nbytes - 4 * len(world._now.asleep.island)
    for wrong in (99, 1):
        data[island : island + 4] = np.int32(wrong).tobytes()
        with pytest.raises(SaveError, match="sleep"):
            world.load_state(bytes(data))
