"""A frame that is worked out on another thread is the one that `step` makes."""

from typing import Any

import numpy as np
import pytest

import carom
from carom.engine.results import SimulationError


@pytest.fixture(scope="module")
def world() -> carom.Live:
    b = carom.SceneBuilder(filtering=True)
    b.add_plane(name="floor", restitution=0.5)
    for k in range(3):
        b.add_body(
            f"box{k}", [carom.Box((0.1, 0.1, 0.1), restitution=0.5)], mass=1.0, position=(0.03 * k, 0, 0.3 + 0.3 * k)
        )
    return carom.Live(b)


def test_it_is_the_same_frame_and_comes_when_it_is_asked_for(world: carom.Live) -> None:
    ends = []
    for threaded in (False, True):
        world.reset()
        for frame in range(30):
            if not threaded:
                world.apply_force("box1", (frame % 3, 0, 0))
                world.step()
                continue
            world.apply_force("box1", (frame % 3, 0, 0))
            before = world.poses()
            world.begin_step()
            assert np.array_equal(world.poses(), before)
            world.end_step()
            world.end_step()  # nothing more to wait for
        ends.append((world.hash(), [(c.a, c.b, c.phase, *c.impulse) for c in world.contact_events()]))
    assert ends[0] == ends[1]


def test_forces_that_come_meanwhile_are_the_next_frame_s(world: carom.Live) -> None:
    ends = []
    for threaded in (False, True):
        world.reset()
        world.begin_step() if threaded else world.step()
        world.apply_force("box2", (0, 30, 0))
        world.end_step()
        world.step()
        ends.append(world.hash())
    assert ends[0] == ends[1]


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        ("step", ()),
        ("begin_step", ()),
        ("reset", ()),
        ("apply_impulse", ("box0", (1, 0, 0))),
        ("teleport", ("box0", (5, 0, 1))),
        ("set_material", ("box0",)),
        ("ignore_collision", ("box0", "box1")),
    ],
)
def test_changes_wait_for_its_end(world: carom.Live, call: str, arguments: tuple[Any, ...]) -> None:
    world.reset()
    world.step()
    expected = world.hash()
    world.reset()
    world.begin_step()
    how = {"friction": 0.1} if call == "set_material" else {}
    with pytest.raises(RuntimeError, match=r"a frame is on its way, of begin_step\(\): call end_step\(\) first"):
        getattr(world, call)(*arguments, **how)
    world.end_step()
    assert world.hash() == expected


def test_a_frame_that_fails_says_so_at_its_end(world: carom.Live) -> None:
    world.reset()
    world.step()
    before = world.hash()
    world._pushes[0, 3] = np.inf
    world.begin_step()
    with pytest.raises(SimulationError):
        world.end_step()
    assert world.hash() == before
    world.step()
