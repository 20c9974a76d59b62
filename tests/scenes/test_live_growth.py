"""Worlds that get more spare bodies while they run: as before in all that was there, with more to bring in."""

from __future__ import annotations

import time
from unittest import mock

import numpy as np
import pytest

import carom
from carom.engine.native import program
from carom.scenes.live.pool import PoolError
from carom.scenes.live.saves import SaveError

BALL = carom.Sphere(0.1)
MORE = {"ball": 2, "shot": (carom.BodySpec("shot", shapes=(BALL,), mass=0.1), 2)}


def scene(**keywords: object) -> carom.SceneBuilder:
    b = carom.SceneBuilder(filtering=True, **keywords)  # pyright: ignore[reportArgumentType]
    b.add_plane(name="floor", friction=0.4)
    b.add_body("box", [carom.Box((0.2, 0.2, 0.2), friction=0.5)], mass=2.0, position=(0, 0, 0.2))
    b.add_body("ball", [BALL], mass=1.0, position=(1, 0, 0.5), restitution=0.6)
    b.add_link(
        "arm", joint=carom.Revolute((0, 1, 0), motor=carom.Motor("velocity", kd=2.0)), position=(0, 2, 1),
        mass=1.0, shapes=[carom.Box((0.3, 0.05, 0.05))],
    )  # fmt: skip
    b.add_loop("ball", (0, 0, 0), "box", (0, 0, 0), joint=carom.Distance(), name="rope", active=True)
    return b


def world(**keywords: object) -> carom.Live:
    return carom.Live(scene(), pool={"ball": 1}, dtype="float64", **keywords)  # pyright: ignore[reportArgumentType]


def test_what_was_there_goes_on() -> None:
    grows, stays = world(), world()
    for w in (grows, stays):
        w.motor("arm", 0.7)
        w.set_material("floor", friction=0.05)
        w.set_layers("box", group=0b10)
        w.ignore_collision("ball", "box")
        w.detach("rope")
        w.add_body("ball", (0.1, 0, 0.9), linear_velocity=(0, 0, -1))
        w.apply_impulse("box", (1.0, 0.2, 0))
        for _ in range(20):
            w.step()
    grows.apply_force("box", (0, 3.0, 0))
    stays.apply_force("box", (0, 3.0, 0))
    bodies, before = grows.bodies, grows.poses()
    grows.add_spares(MORE, wait=True)
    assert grows.bodies == bodies
    assert grows.attached == ()
    assert not grows.growing
    assert grows.poses().tobytes() == before.tobytes()
    for _ in range(60):
        grows.step()
        stays.step()
        assert grows.bodies == stays.bodies
        np.testing.assert_allclose(grows.poses(), stays.poses(), rtol=0, atol=1e-9)
        assert [(c.a, c.b, c.phase) for c in grows.contact_events()] == [
            (c.a, c.b, c.phase) for c in stays.contact_events()
        ]
    assert not any({c.a, c.b} == {"ball", "box"} for c in grows.contact_events())
    np.testing.assert_allclose(grows.model.friction[: len(stays.model.friction)], stays.model.friction)


def test_new_ones_meet_what_was_changed_before_they_came() -> None:
    w = world(warm=False)
    w.set_material("floor", friction=0.0)
    w.set_pair_material("box", "floor", friction=0.3)
    w.set_layers("floor", mask=0b10)
    w.add_spares({"ball": 1}, wait=True)
    owners = w._parts.bodies.owners
    row = {frozenset((owners[i], owners[j])): k for k, (i, j) in enumerate(w.model.topology.pairs)}
    friction, touches = (np.asarray(getattr(w.model, x)) for x in ("pair_friction", "pair_touches"))
    for body, mu in (("ball.1", 0.0), ("ball.2", 0.0), ("box", 0.3)):
        assert friction[row[frozenset((body, "floor"))]] == mu
        assert touches[row[frozenset((body, "floor"))]] == 0
    assert friction[row[frozenset(("ball.2", "box"))]] == 0.5
    assert touches[row[frozenset(("ball.2", "box"))]] == 1
    w.reset()
    assert np.asarray(w.model.pair_touches).all()


def test_new_ones_come_in_behind_those_that_there_were() -> None:
    w = world()
    assert w.add_body("ball", (0, 1, 1)) == "ball.1"
    with pytest.raises(PoolError, match="add_spares"):
        w.add_body("ball", (0, -1, 1))
    w.add_spares(MORE, wait=True)
    assert [w.add_body("ball", (0, -k, 1)) for k in (1, 2)] == ["ball.2", "ball.3"]
    w.remove_body("ball.1")
    assert w.add_body("ball", (3, 0, 1)) == "ball.1"
    for _ in range(120):
        w.step()
    np.testing.assert_allclose([w.pose(f"ball.{k}")[2] for k in (1, 2, 3)], 0.1, atol=1e-3)
    w.reset()
    assert "ball.1" not in w.bodies
    assert "ball.3" not in w.bodies


def test_it_may_grow_again() -> None:
    w = world(warm=False)
    w.add_spares({"ball": 1, "shot": (carom.BodySpec("shot", shapes=(BALL,), mass=0.25), 1)}, wait=True)
    w.add_spares({"ball": 1, "shot": 1}, wait=True)
    assert [w.add_body("ball", (0, -k, 1)) for k in range(3)] == ["ball.1", "ball.2", "ball.3"]
    assert [w.add_body("shot", (5, k, 1)) for k in range(2)] == ["shot.1", "shot.2"]
    assert w.model.mass[w.model.topology.link("shot.2")] == 0.25


def test_the_game_goes_on_until_they_are_there() -> None:
    w, seen = world(), []
    w.on_contact(lambda contact: seen.append(contact.phase), "ball")
    trigger = w.add_trigger(carom.Box((5, 5, 5)))
    w.add_spares(MORE)
    assert w.growing
    with pytest.raises(RuntimeError, match="growing already"):
        w.add_spares({"ball": 1})
    until = time.monotonic() + 300
    while w.growing and time.monotonic() < until:
        w.step()
    assert not w.growing
    for _ in range(60):
        w.step()
    assert "begin" in seen
    assert w.add_body("ball", (0, 1, 1)) == "ball.1"
    assert w.add_body("ball", (0, 1, 2)) == "ball.2"
    w.step()
    assert {"ball.1", "ball.2", "box"} <= set(trigger.inside)


def test_saves_of_the_smaller_world_can_be_loaded() -> None:
    w = world()
    w.add_body("ball", (0, 1, 1))
    for _ in range(10):
        w.step()
    saved, poses = w.save_state(), w.poses()
    for _ in range(5):
        w.step()
    then = w.poses()
    w.add_spares(MORE, wait=True)
    w.add_body("ball", (0, -1, 1))
    later = w.save_state()
    w.load_state(saved)
    assert w.poses().tobytes() == poses.tobytes()
    assert "ball.2" not in w.bodies
    for _ in range(5):
        w.step()
    np.testing.assert_allclose(w.poses(), then, rtol=0, atol=1e-10)
    w.load_state(later)
    assert "ball.2" in w.bodies
    with pytest.raises(SaveError, match="another model"):
        world().load_state(later)
    with pytest.raises(SaveError, match="no save"):
        w.load_state(saved[:9])


def test_those_that_sleep_sleep_on() -> None:
    w = world()
    w.remove_body(w.add_body("ball", (0, 1, 1)))
    for _ in range(600):
        w.step()
    held, slept, island = w.contact_events(), w.asleep, w._now.asleep.island
    assert "arm" in slept
    w.add_spares(MORE, wait=True)
    assert (w._now.asleep.island[: len(island)] == island).all()
    assert w.asleep == slept
    w.step()
    assert {(c.a, c.b) for c in w.contact_events()} == {(c.a, c.b) for c in held}
    w.set_joint("arm", q=0.1)
    assert "arm" not in w.asleep


def test_what_cannot_be_is_refused_at_the_call() -> None:
    w = world(warm=False)
    for pool, said in (({"nobody": 1}, "no free body"), ({"ball": 0}, "whole number"), ([], "must be a dict")):
        with pytest.raises(PoolError, match=said):
            w.add_spares(pool)  # pyright: ignore[reportArgumentType]
    assert not w.growing


def test_what_goes_wrong_later_leaves_the_world_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    w = world(warm=False)
    monkeypatch.setattr("carom.scenes.live.parts.compile_scene", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        w.add_spares({"ball": 1}, wait=True)
    assert not w.growing
    w.step()


def test_spares_of_two_kinds_go_through_each_other_as_their_kinds_do() -> None:
    b = carom.SceneBuilder(gravity=(0, 0, 0))
    for k, name in enumerate("ab"):
        b.add_body(name, [BALL], mass=1.0, position=(0, 5, k))
    b.exclude("a", "b")
    w = carom.Live(b, pool={"a": 1, "b": 1}, warm=False)
    w.add_body("a", (0, 0, 0), linear_velocity=(1, 0, 0))
    w.add_body("b", (0.3, 0, 0))
    for _ in range(60):
        w.step()
    assert not w.contact_events()
    assert w.velocity("b.1")[3] == 0


def test_more_contacts_are_compiled_for_before_they_come() -> None:
    """A slab on sixteen posts fills its world's room; a second one on top of it is more than that."""
    b = carom.SceneBuilder()
    for i in range(16):
        b.add_static(f"post{i}", [carom.Box((0.04, 0.04, 0.1))], position=(0.2 * (i % 4), 0.2 * (i // 4), -0.1))
    b.add_body("slab", [carom.Box((0.4, 0.4, 0.1))], mass=5.0, position=(0.3, 0.3, 0.1))
    grows = carom.Live(b, pool={"slab": 1}, dtype="float64")
    stepper = grows._parts.stepper
    assert not stepper._ahead
    grows.step()
    (ahead,) = stepper._ahead.values()
    ahead.result()
    grows.add_body("slab", (0.3, 0.3, 0.3))
    before = stepper._rules.max_contacts
    with mock.patch.object(program, "compile_code", side_effect=AssertionError("a frame waited for the compiler")):
        for _ in range(3):
            grows.step()
    assert before == 64
    assert stepper._rules.max_contacts == 128
    given = carom.Live(b, pool={"slab": 1}, dtype="float64", max_contacts=128)
    given.step()
    given.add_body("slab", (0.3, 0.3, 0.3))
    for _ in range(3):
        given.step()
    assert given.hash() == grows.hash()
    assert not given._parts.stepper._ahead
