"""Triggers of a live world: who comes in and who goes out, found again by whoever plays a frame again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import carom

R, G, TOP, BOTTOM = 0.1, 9.81, 2.0, 1.0
ZONE = carom.Box((0.5, 0.5, (TOP - BOTTOM) / 2))
MIDDLE = (0.0, 0.0, (TOP + BOTTOM) / 2)


@pytest.fixture(scope="module")
def made() -> carom.Live:
    """Two balls that fall, and a platform that hangs in the air and turns about z."""
    b = carom.SceneBuilder()
    b.add_plane(restitution=0.5)
    b.add_body("ball", [carom.Sphere(R)], mass=1.0, position=(0, 0, 3))
    b.add_body("other", [carom.Sphere(R)], mass=1.0, position=(9, 0, 3))
    b.add_link(
        "platform", joint=carom.Revolute((0, 0, 1)), position=(5, 0, 1), mass=1.0, shapes=[carom.Box((1, 1, 0.1))]
    )
    return carom.Live(b, dtype="float64", probes=[ZONE], pool={"ball": 1})


@pytest.fixture
def world(made: carom.Live) -> carom.Live:
    for trigger in list(made._triggers):
        made.remove_trigger(trigger)
    made._callbacks.clear()
    made.reset()
    while "ball.1" in made.bodies:
        made.remove_body("ball.1")
    return made


def listening(world: carom.Live, log: list[tuple[str, str, float]], **where: Any) -> carom.Trigger:
    def note(what: str) -> Callable[[str], None]:
        return lambda body: log.append((what, body, world.time))

    return world.add_trigger(ZONE, on_enter=note("in"), on_leave=note("out"), **{"position": MIDDLE, **where})


def test_a_ball_falls_through(world: carom.Live) -> None:
    """In the frames in which its parabola says so."""
    log: list[tuple[str, str, float]] = []
    trigger = listening(world, log)
    assert trigger.inside == ()
    comes, goes = (np.sqrt(2 * (3 - z) / G) for z in (TOP + R, BOTTOM - R))
    while world.time < 0.7:
        world.step()
        assert trigger.inside == (("ball",) if comes < world.time < goes else ())
    assert [entry[:2] for entry in log] == [("in", "ball"), ("out", "ball")]
    for (_, _, told), crossed in zip(log, (comes, goes), strict=True):
        assert crossed <= told < crossed + world.dt


def test_a_frame_that_is_played_again_tells_again(world: carom.Live) -> None:
    log: list[tuple[str, str, float]] = []
    trigger = listening(world, log)
    saves = []
    while world.time < 0.7:
        saves.append(world.save_state())
        world.step()
    first = list(log)
    world.load_state(saves[round(0.55 / world.dt)])
    assert trigger.inside == ("ball",)
    assert log == first
    world.load_state(saves[0])
    assert trigger.inside == ()
    assert log == first
    log.clear()
    while world.time < 0.7:
        world.step()
    assert log == first


def test_what_is_put_there_by_hand_is_told_of_by_the_next_frame(world: carom.Live) -> None:
    log: list[tuple[str, str, float]] = []
    trigger = listening(world, log)
    world.teleport("other", MIDDLE)
    spare = world.add_body("ball", (0.3, 0.3, MIDDLE[2]))
    assert log == []
    world.step()
    assert {entry[:2] for entry in log} == {("in", "other"), ("in", spare)}
    assert set(trigger.inside) == {"other", spare}
    log.clear()
    world.remove_body(spare)
    world.step()
    assert [entry[:2] for entry in log] == [("out", spare)]
    world.remove_trigger(trigger)
    world.teleport("other", (9, 0, 3))
    world.step()
    assert len(log) == 1


def test_a_body_carries_it(world: carom.Live) -> None:
    """A region beside the platform's edge goes round with it, and what carries it is not in it."""
    log: list[tuple[str, str, float]] = []
    trigger = listening(world, log, position=(2.0, 0, 0), body="platform")
    world.teleport("other", (5, 2, 1.2))
    world.step()
    assert trigger.inside == ()
    world.set_joint("platform", q=[np.pi / 2])
    world.teleport("other", (5, 2, 1.2))
    world.step()
    assert trigger.inside == ("other",)
    assert log == [("in", "other", world.time)]


def test_a_callback_must_not_step(world: carom.Live) -> None:
    refused = []

    def step_again(contact: carom.Contact) -> None:
        with pytest.raises(RuntimeError, match="step after it returns"):
            world.step()
        refused.append(contact.a)

    world.on_contact(step_again)
    while not refused:
        world.step()
    world.step()


def test_wrong_triggers_are_refused(world: carom.Live) -> None:
    for wrong, why in (
        (lambda: world.add_trigger(None), "shape is None"),  # type: ignore[arg-type]
        (lambda: world.add_trigger(ZONE, body="nobody"), "body is 'nobody'"),
        (lambda: world.add_trigger(ZONE, on_enter=3), "on_enter is 3"),  # type: ignore[arg-type]
        (lambda: world.add_trigger(ZONE, (0, 0)), "position is"),
    ):
        with pytest.raises((ValueError, TypeError), match=why):
            wrong()
    trigger = world.add_trigger(ZONE)
    world.remove_trigger(trigger)
    with pytest.raises(ValueError, match="no such trigger"):
        world.remove_trigger(trigger)
