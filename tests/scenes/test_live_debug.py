"""Lines that show what a world does, and where a frame's time went in words."""

import dataclasses

import numpy as np
import pytest

import carom
from carom.scenes.live.debug import ASLEEP, CONTACT, EMPTY, ENTERED


@pytest.fixture(scope="module")
def made() -> carom.Live:
    b = carom.SceneBuilder()
    b.add_plane(name="floor", restitution=0.5)
    b.add_static("post", [carom.Cylinder(0.1, 0.5)], position=(5, 0, 0.5))
    b.add_body("ball", [carom.Sphere(0.2, restitution=0.5)], mass=2.0, position=(0, 0, 1))
    for k in range(2):
        b.add_body(f"box{k}", [carom.Box((0.2, 0.2, 0.1))], mass=1.0, position=(-2, 0, 0.1 + 0.2 * k))
    return carom.Live(b, pool={"ball": 1}, warm=False)


@pytest.fixture
def world(made: carom.Live) -> carom.Live:
    made.reset()
    for trigger in list(made._triggers):
        made.remove_trigger(trigger)
    return made


def drawn(lines: carom.DebugLines, colour: tuple[float, ...]) -> np.ndarray:
    return lines.ends[(np.abs(lines.colours - colour) < 1e-9).all(1)]


def test_wires_are_where_the_shapes_are(world: carom.Live) -> None:
    lines = world.debug_lines(contacts=False)
    near = np.abs(lines.ends[..., 0]).max(1) < 0.5
    ball = lines.ends[near & (lines.ends[..., 2].min(1) > 0.5)]
    assert np.linalg.norm(ball - (0, 0, 1), axis=-1) == pytest.approx(0.2, abs=1e-6)
    world.teleport("ball", (1, 2, 3))
    moved = world.debug_lines(contacts=False)
    assert np.abs(moved.ends - (1, 2, 3)).sum(-1).max(1).min() < 0.6
    assert np.isfinite(moved.ends).all()
    assert np.abs(moved.ends).max() < 100
    assert moved.ends.shape[0] == moved.colours.shape[0]
    world.add_body("ball", (0, 0, 5))
    assert len(world.debug_lines(contacts=False).ends) == len(moved.ends) + len(ball)


def test_contacts_are_crosses_with_their_impulses(world: carom.Live) -> None:
    world.step()
    contacts = {(c.a, c.b): c for c in world.contact_events()}
    lines = drawn(world.debug_lines(per_impulse=2.0), CONTACT)
    assert len(lines) == 4 * len(contacts)
    last = contacts["box0", "floor"]
    found = [line for line in lines if np.allclose(line[0], last.point, atol=1e-6) and line[1][2] > line[0][2]]
    assert any(np.allclose(line[1] - line[0], 2.0 * last.impulse, atol=1e-6) for line in found)
    assert not len(drawn(world.debug_lines(contacts=False), CONTACT))


def test_who_sleeps_is_grey_and_who_touches_is_one_colour(world: carom.Live) -> None:
    assert not len(drawn(world.debug_lines(), ASLEEP))
    world.step()
    by_island = world.debug_lines(colour="island")
    stack = by_island.ends[..., 0].max(1) < -1.7
    stack &= by_island.ends[..., 2].min(1) > 1e-3
    stack &= np.abs(by_island.colours - CONTACT).max(1) > 1e-3
    assert len(np.unique(by_island.colours[stack], axis=0)) <= 2  # the stack's, and the floor's
    for _ in range(240):
        world.step()
    grey = drawn(world.debug_lines(contacts=False), ASLEEP)
    assert len(grey) == len(world.debug_lines(contacts=False).ends) - len(
        drawn(world.debug_lines(contacts=False), (0.35,) * 3)
    )


def test_triggers_light_up(world: carom.Live) -> None:
    zone = world.add_trigger(carom.Box((0.5, 0.5, 0.2)), (0, 0, 0.2))
    world.add_trigger(carom.Sphere(0.1), (0, 0, 3), body="ball.1" if "ball.1" in world.bodies else "ball")
    assert len(drawn(world.debug_lines(), EMPTY)) > 12
    assert not len(drawn(world.debug_lines(), ENTERED))
    while not zone.inside:
        world.step()
    assert len(drawn(world.debug_lines(), ENTERED)) == 12
    assert not len(drawn(world.debug_lines(triggers=False), ENTERED))
    corners = np.array([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)], float)
    faces = np.array([(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)])
    before = len(drawn(world.debug_lines(), EMPTY))
    world.add_trigger(carom.Mesh((corners, faces)), (9, 9, 9))
    assert len(drawn(world.debug_lines(), EMPTY)) == before + 6


def test_a_frame_is_explained(world: carom.Live) -> None:
    while not any(c.phase == "bounce" for c in world.contact_events()):
        world.step()
    text = world.explain()
    assert "impacts: 1 at 1 instant: ball and floor 1" in text
    assert "awake" in text
    assert "1 waiting in the pool" in text
    assert "ticks of" in text
    for _ in range(600):
        world.step()
    assert "everything sleeps" in world.explain()


@pytest.mark.slow
def test_a_frame_that_ran_out_of_ticks_says_what_to_do() -> None:
    b = carom.SceneBuilder()
    b.add_plane()
    for k in range(6):
        b.add_body(f"ball{k}", [carom.Sphere(0.1, restitution=0.9)], mass=1.0, position=(k, 0, 0.1 + 1e-4 * (k + 1)))
    world = carom.Live(b, max_ticks=2, window=None, clocks="one", warm=False)
    world.step()
    assert "were not reached: raise max_ticks" in world.explain()
    world = carom.Live(b, max_ticks=2, clocks="one", warm=False)
    world.step()
    assert "passed in windows: raise max_ticks" in world.explain()
    assert "larger program" not in world.explain()
    stepper = world._parts.stepper
    stepper._rules = dataclasses.replace(stepper._rules, max_contacts=1)
    world.step()
    assert (
        " s of that were for a larger program, which is there from now on: it needed more contacts" in world.explain()
    )
    assert "ticks of" not in world.explain()  # that time was not spent in ticks


def test_colours_are_two(world: carom.Live) -> None:
    with pytest.raises(ValueError, match="colour is 'rainbow'; it must be one of 'body', 'island'"):
        world.debug_lines(colour="rainbow")


def test_without_a_frame_there_is_nothing_to_explain() -> None:
    b = carom.SceneBuilder()
    b.add_body("ball", [carom.Sphere(0.1)], mass=1.0)
    assert carom.Live(b, warm=False).explain() == "no frame has passed yet"
