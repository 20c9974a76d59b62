"""An exported world that is told what surfaces are made of, how they go, where joints are to be and who is in triggers
does what `carom.Live` does, to the last bit."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from carom.scenes.live.world import Live
from carom.tests.oracles.exported import World, everything, missing

DT, REFUSED = 1 / 60, 1000
pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(missing()), reason=f"needs {missing()}")]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Live, World]]:
    live = everything()
    world = World(live, tmp_path_factory.mktemp("world"))
    yield live, world
    world.close()


@pytest.fixture(autouse=True)
def anew(both: tuple[Live, World]) -> None:
    live, world = both
    live.reset()
    world.reset()


def play(live: Live, world: World, frames: int) -> None:
    for _ in range(frames):
        live.step()
        assert world.step(DT) < 100
        assert world.save() == live.save_state()


def number(live: Live, name: str) -> int:
    statics = [x for x in live._parts.touchable if x not in live.model.topology.names]
    return [*live.model.topology.names, *statics].index(name)


def test_pushes_in_the_axes_of_a_body(both: tuple[Live, World]) -> None:
    live, world = both
    odd = number(live, "odd")
    for point in (None, (0.1, 0.2, 0.05)):
        live.apply_force("odd", (3, 1, 12), point, frame="body")
        assert world.call("apply_own_force", odd, (3, 1, 12), point) == 0
        play(live, world, 2)
        live.apply_torque("odd", (0.1, 0.02, 0.3), frame="body")
        assert world.call("apply_own_torque", odd, (0.1, 0.02, 0.3)) == 0
        play(live, world, 2)
        live.apply_impulse("odd", (0.2, 0.1, 0.9), point, frame="body")
        assert world.call("apply_own_impulse", odd, (0.2, 0.1, 0.9), point) == 0
        assert world.save() == live.save_state()
        play(live, world, 10)
    assert live.velocity("odd")[:3].any()


def test_what_surfaces_are_made_of(both: tuple[Live, World]) -> None:
    live, world = both
    ball, floor, belt, crate = (number(live, name) for name in ("ball", "floor", "belt", "crate"))
    play(live, world, 30)
    for body, given in (("floor", (None, 0.9, None)), ("ball", (0.31, 0.83, 0.1)), ("crate", (0.0, None, None))):
        names = "friction", "restitution", "tangential_restitution"
        live.set_material(body, **dict(zip(names, given, strict=True)))
        assert world.call("set_material", number(live, body), *([x] if x is not None else x for x in given)) == 0
        assert world.save() == live.save_state()
        for pairs in ("friction", "restitution"):
            told = np.asarray(getattr(live.model, f"pair_{pairs}"))
            np.testing.assert_array_equal(world.array(pairs, len(told)), told)
        play(live, world, 20)
    live.set_pair_material("crate", "belt", friction=0.77)
    assert world.call("set_pair_material", belt, crate, [0.77], None, None) == 0
    play(live, world, 20)
    assert live.velocity("crate")[3] > 0.5  # it is carried
    for given in (([-0.1], None, None), (None, [1.1], None), (None, None, [-1.5]), ([np.nan], None, None)):
        assert world.call("set_material", ball, *given) == REFUSED
        assert world.call("set_pair_material", ball, floor, *given) == REFUSED
    with pytest.raises(ValueError, match="does not read"):  # the ball has some too
        live.set_material("floor", tangential_restitution=0.5)
    assert world.call("set_material", floor, None, None, [0.5]) == REFUSED
    assert world.call("set_material", 99, [0.5], None, None) == REFUSED
    assert world.call("set_pair_material", floor, belt, [0.5], None, None) == REFUSED  # statics
    assert world.save() == live.save_state()


def test_a_conveyor_changes_its_speed(both: tuple[Live, World]) -> None:
    live, world = both
    belt = number(live, "belt")
    play(live, world, 60)
    live.set_surface_velocity("belt", (-0.7, 0.3, 0), (0.1, 0, 0.9))
    assert world.call("set_surface_velocity", belt, (-0.7, 0.3, 0), (0.1, 0, 0.9)) == 0
    assert world.save() == live.save_state()
    play(live, world, 40)
    assert live.velocity("crate")[3] < 0
    live.set_surface_velocity("belt")
    assert world.call("set_surface_velocity", belt, None, None) == 0
    play(live, world, 60)
    assert abs(live.velocity("crate")[3:]).max() < 0.01
    assert world.call("set_surface_velocity", number(live, "floor"), (1, 0, 0), None) == REFUSED
    assert world.call("set_surface_velocity", number(live, "crate"), (1, 0, 0), None) == REFUSED
    assert world.call("set_surface_velocity", belt, (np.inf, 0, 0), None) == REFUSED
    assert world.save() == live.save_state()


def move(world: World, dof: int, q: float) -> int:
    return world.function("move_joint")(world.world, dof, ctypes.c_float(q))


def test_a_lift_is_where_it_is_told_to_be(both: tuple[Live, World]) -> None:
    live, world = both
    topology = live.model.topology
    dof = topology.v_start[topology.link("lift")]
    motors = world.array("motors", topology.nv)
    motors[dof] = 0.3
    live.motor("lift", 0.3)
    play(live, world, 20)
    for k in range(40):
        live.move_joint("lift", 0.1 + 0.01 * k)
        assert move(world, dof, 0.1 + 0.01 * k) == 0
        play(live, world, 1 + k % 3)
    assert motors[dof] == 0
    assert live.pose("lift")[2] == pytest.approx(0.99, abs=1e-3)
    save = live.save_state()
    live.move_joint("lift", 0.2)
    move(world, dof, 0.2)
    live.load_state(save)  # drops it
    assert world.load(save) == 0
    play(live, world, 5)
    assert live.pose("lift")[2] == pytest.approx(0.99, abs=1e-3)
    assert move(world, dof, np.nan) == move(world, dof - 1, 0.1) == move(world, -1, 0.1) == REFUSED
    assert move(world, topology.nv, 0.1) == REFUSED


def test_triggers_tell_who_comes_in_and_who_goes_out(both: tuple[Live, World]) -> None:
    live, world = both
    names, told, seen = live.model.topology.names, list[tuple[int, str, int]](), set[tuple[int, str, int]]()
    inside, crossed = (world.array(name, 2, len(names), dtype="i4") for name in ("inside", "crossed"))
    for k, trigger in enumerate(live._triggers):
        trigger.on_enter = lambda body, k=k: told.append((k, body, 1))
        trigger.on_leave = lambda body, k=k: told.append((k, body, -1))

    def same() -> None:
        for k, trigger in enumerate(live._triggers):
            assert {names[j] for j in np.flatnonzero(inside[k])} == set(trigger.inside)
        assert {(k, names[j], int(crossed[k, j])) for k, j in np.argwhere(crossed)} == set(told)
        seen.update(told)
        told.clear()

    same()
    save, lift = live.save_state(), number(live, "lift")
    for frame in range(150):
        if frame == 30:
            save = live.save_state()
        if frame == 60:
            live.add_body("ball", (1, 3, 1.5))
            assert world.call("add_body", 0, (1, 3, 1.5), None, None, None) >= 0
        if frame == 100:
            live.remove_body("ball.1")
            assert world.call("remove_body", number(live, "ball.1")) == 0
        if frame == 110:
            live.teleport("odd", (3, 0, 0.9))
            assert world.call("put", number(live, "odd"), (3, 0, 0.9), None, None, None) == 0
        if 120 <= frame < 140:
            live.move_joint("lift", 0.03 * (frame - 120))
            move(world, live.model.topology.v_start[lift], 0.03 * (frame - 120))
        live.step()
        assert world.step(DT) < 100
        assert world.save() == live.save_state()
        same()
    assert seen >= {
        (0, "crate", 1),
        (0, "ball.1", 1),
        (0, "ball.1", -1),
        (1, "ball", 1),
        (1, "odd", 1),
    }
    live.load_state(save)
    assert world.load(save) == 0
    same()
    assert not told
    play(live, world, 3)
    same()
    live.reset()
    world.reset()
    same()
    play(live, world, 3)
    assert world.step(float("nan")) == REFUSED
    for trigger in live._triggers:
        trigger.on_enter = trigger.on_leave = None


def test_a_joint_feels_what_rests_on_its_links_and_what_pushes_them(both: tuple[Live, World]) -> None:
    """Also where they sleep, and nothing once something was changed by hand."""
    live, world = both
    bolt, out = live._changes.number("bolt"), np.zeros(3, np.float32)

    def both_felt() -> np.ndarray[Any, Any]:
        assert world.call("joint_force", bolt, out) == 0
        np.testing.assert_allclose(out, live.joint_force("bolt"), rtol=2e-4, atol=2e-3)
        return out.copy()

    play(live, world, 10)
    assert both_felt()[2] == pytest.approx(5 * 9.81, rel=1e-3)
    live.apply_force("tray", (4, 0, -7))
    assert world.call("apply_force", number(live, "tray"), (4, 0, -7), None) == 0
    play(live, world, 1)
    np.testing.assert_allclose(both_felt(), (-4, 0, 5 * 9.81 + 7), atol=0.05)
    play(live, world, 60)
    assert {"tray", "load"} <= set(live.asleep)
    assert both_felt()[2] == pytest.approx(5 * 9.81, rel=1e-3)
    live.teleport("odd", (-3, 0, 1))
    assert world.call("put", number(live, "odd"), (-3, 0, 1), None, None, None) == 0
    assert both_felt()[2] == pytest.approx(2 * 9.81, rel=1e-3)
