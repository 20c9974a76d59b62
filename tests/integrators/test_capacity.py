"""Room for contacts and logged impacts is made where a run needs it, and no lane loses one before."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.contact.determine import default_capacity
from carom.engine.results import CONTACTS_FULL, EVENTS_FULL, OK, SimulationWarning
from carom.integrators import capacity
from carom.integrators.capacity import ROWS
from carom.integrators.rules import Rules

APART = np.array([0.0, 7.0, 14.0, 21.0]).astype(int)  # where the coordinates of the four boxes begin


@pytest.fixture(scope="module")
def tiles():
    """Four boxes on a plane, side against side: 36 contacts, and room for 32."""
    b = carom.SceneBuilder()
    b.add_plane(friction=0.6, restitution=0.0)
    for k, (x, y) in enumerate(((0, 0), (0.2, 0), (0, 0.2), (0.2, 0.2))):
        b.add_body(f"{k}", [carom.Box((0.1, 0.1, 0.1))], mass=1.0, position=(x, y, 0.1), friction=0.6, restitution=0.0)
    model, state = carom.compile_scene(b.build())
    assert default_capacity(model.topology) == 32
    return model, state


def test_a_lane_that_needs_room_gets_it_and_others_do_not_change(tiles):
    model, state = tiles
    far = carom.State(state.q.at[APART].add(jnp.arange(4) * 0.5), state.v, state.t)  # 16 contacts
    alone = [carom.rollout(model, start, duration=0.1) for start in (state, far)]
    assert [int(run.stats.contacts) for run in alone] == [36, 16]
    assert np.abs(alone[0].q - state.q).max() <= 1e-12
    both = jax.tree.map(lambda *x: jnp.stack(x), far, state, far)
    batch = carom.rollout(model, both, duration=0.1)
    for lane, run in enumerate((alone[1], alone[0], alone[1])):
        np.testing.assert_array_equal(batch.q[lane], run.q)
        np.testing.assert_array_equal(batch.v[lane], run.v)
    np.testing.assert_array_equal(batch.code, OK)
    given = carom.rollout(model, state, duration=0.1, max_contacts=64)
    np.testing.assert_array_equal(given.q, alone[0].q)


def test_a_step_and_a_world_make_room_too(tiles):
    model, state = tiles
    after = carom.step(model, state, dt=1 / 60)
    assert float(after.t) == pytest.approx(1 / 60)
    assert np.abs(after.q - state.q).max() <= 1e-12
    jitted = jax.jit(lambda s: carom.rollout(model, s, duration=0.1))(state)
    assert int(jitted.code) == CONTACTS_FULL  # nothing can be compiled there; the lane stops where it was
    np.testing.assert_array_equal(jitted.state.q, state.q)
    assert np.isnan(jitted.q[1:]).all()


def test_a_tree_begins_with_little_room_and_the_result_is_the_same():
    """A table of eight feet on a lift: 32 contacts when it is down, and room for 24 at first."""
    b = carom.SceneBuilder()
    b.add_plane(friction=0.6, restitution=0.0)
    feet = [carom.Box((0.1, 0.1, 0.1), position=(0.5 * k, 0.5 * row, 0)) for k in range(4) for row in range(2)]
    b.add_link("table", joint=carom.Prismatic((0, 0, 1)), position=(0, 0, 0.1), mass=1.0, shapes=feet, q0=(0.05,))
    model, state = carom.compile_scene(b.build())
    assert default_capacity(model.topology) == 40
    run = carom.rollout(model, state, duration=0.3)
    assert int(run.stats.contacts) == 32
    assert float(run.state.q[0]) == pytest.approx(0, abs=1e-9)
    np.testing.assert_array_equal(run.q, carom.rollout(model, state, duration=0.3, max_contacts=40).q)
    np.testing.assert_array_equal(run.q, jax.jit(lambda s: carom.rollout(model, s, duration=0.3).q)(state))
    began = [rules.max_contacts for (scene, _), rules in capacity._NEEDED.items() if scene == model.topology]
    assert began == [32]  # of the next run
    steps = (lambda: carom.step(model, run.state, dt=1 / 60)), jax.jit(lambda: carom.step(model, run.state, dt=1 / 60))
    for step in steps:
        capacity._NEEDED.clear()
        after = step()
        assert float(after.t) == pytest.approx(0.3 + 1 / 60)  # there was room: a lane without it stays
        assert np.abs(after.q).max() <= 1e-9


@pytest.mark.slow
def test_a_tree_begins_with_few_near_pairs_and_the_result_is_the_same():
    """Six balls on a lift above six rollers across: 36 pairs that are searched, and rows of 32 at first."""
    b = carom.SceneBuilder()
    turned = (0.5**0.5, 0, 0.5**0.5, 0)
    balls = [carom.Sphere(0.1, position=(0.18 * (k - 2.5), 0, 0)) for k in range(6)]
    rollers = [carom.Cylinder(0.1, 0.6, position=(0, 0.01 * (k - 2.5), 0), quaternion=turned) for k in range(6)]
    for name, z, shapes in (("low", 0.0, rollers), ("high", 0.215, balls)):
        b.add_link(f"{name} slide", joint=carom.Prismatic((1, 0, 0)), mass=1.0, inertia=np.eye(3))
        lift = carom.Prismatic((0, 0, 1), damping=1e4 if name == "low" else 0.0)
        place = {"position": (0, 0, z), "mass": 1.0, "inertia": np.eye(3)}
        b.add_link(name, f"{name} slide", joint=lift, shapes=shapes, **place)
    model, state = carom.compile_scene(b.build())
    few, many = (carom.rollout(model, state, duration=0.2, max_pairs=most) for most in (None, 1024))
    first = capacity._usual(Rules(), model.topology)
    assert first.max_near == capacity.FEW_NEAR
    assert few.stats.impacts > 0
    for x, y in zip(jax.tree.leaves(few.state), jax.tree.leaves(many.state), strict=True):
        np.testing.assert_array_equal(x, y)
    assert [rules.max_near for (scene, _), rules in capacity._NEEDED.items() if scene == model.topology] == [64]


def test_few_candidates_let_nothing_pass():
    """A ball at 200 m/s crosses 10 m in a step. It is in none of the pairs that are near at its start."""
    b = carom.SceneBuilder(gravity=(0, 0, 0))
    b.add_body("shot", [carom.Sphere(0.1)], linear_velocity=(200, 0, 0))
    b.add_body("target", [carom.Sphere(0.1)], position=(3, 0, 0))
    b.add_body("far", [carom.Sphere(0.1)], position=(0, 9, 0))
    model, state = carom.compile_scene(b.build())
    for most in (1, 2, None):
        run = carom.rollout(model, state, duration=0.1, frame_dt=0.05, max_dt=0.05, max_pairs=most)
        assert int(run.stats.impacts) == 1


@pytest.mark.slow
def test_room_that_was_asked_for_is_an_error_with_the_number(tiles):
    model, state = tiles
    with pytest.raises(RuntimeError, match=r"t = 0 s: .*max_contacts.*\(36 needed\)"):
        carom.rollout(model, state, duration=0.1, max_contacts=20)


@pytest.mark.slow
def test_a_live_world_makes_room(tiles):
    del tiles
    b = carom.SceneBuilder()
    b.add_plane(friction=0.6, restitution=0.0)
    for k, (x, y) in enumerate(((0, 0), (0.2, 0), (0, 0.2), (0.2, 0.2))):
        b.add_body(f"{k}", [carom.Box((0.1, 0.1, 0.1))], mass=1.0, position=(x, y, 0.1), friction=0.6, restitution=0.0)
    world = carom.Live(b)
    before = np.array(world.state.q)
    for _ in range(3):
        world.step()
    assert world.time == pytest.approx(3 / 60)
    assert np.abs(world.state.q - before).max() <= 1e-5


def real_rows(run, lane: Any = ...):
    """The log of a lane, without its blank rows."""
    count = int(run.events.count[lane])
    return {name: np.asarray(x)[lane][:count] for name, x in vars(run.events).items() if np.ndim(x) > run.t.ndim - 1}


@pytest.fixture(scope="module")
def hopping():
    """Three balls that hop for good, on a floor that takes nothing: 80 impacts a second."""
    b = carom.SceneBuilder()
    b.add_plane(restitution=1.0)
    for k in range(3):
        place = (float(k), 0.0, 0.05 + 1e-3 * (k + 1))
        b.add_body(f"{k}", [carom.Sphere(0.05)], mass=1.0, position=place, restitution=1.0)
    return carom.compile_scene(b.build())


def test_the_log_grows_and_is_the_one_of_a_larger_room(hopping):
    model, state = hopping
    high = carom.State(state.q.at[2].add(1.0).at[9].add(1.0).at[16].add(1.0), state.v, state.t)
    batch = jax.tree.map(lambda *x: jnp.stack(x), high, state)
    run, given, both = (
        carom.rollout(model, start, duration=15.0, max_events=room)
        for start, room in ((state, None), (state, 4096), (batch, None))
    )
    np.testing.assert_array_equal(both.code, OK)
    assert int(run.events.count) == int(run.stats.impacts) > ROWS
    assert int(run.events.missed) == 0
    assert (np.diff(real_rows(run)["t"]) >= 0).all()
    for lane in (run, both):
        rows = real_rows(lane, ... if lane is run else 1)
        for name, x in real_rows(given).items():
            np.testing.assert_array_equal(rows[name], x)
    few = int(both.events.count[0])
    assert few == int(both.stats.impacts[0]) < ROWS
    assert (np.asarray(both.events.bodies)[0, few:] == -1).all()  # blank
    with pytest.warns(SimulationWarning, match="EVENTS_FULL"):
        given = carom.rollout(model, state, duration=15.0, max_events=16)
    assert int(given.events.count) == 16
    assert int(given.events.missed) == int(run.events.count) - 16
    np.testing.assert_array_equal(given.q, run.q)


def test_a_log_has_a_largest_size(hopping, monkeypatch):
    monkeypatch.setattr(capacity, "MOST_ROWS", 1100)
    model, state = hopping
    run = carom.rollout(model, state, duration=15.0, throw=False)
    assert int(run.code) == EVENTS_FULL
    assert int(run.events.count) == 1100
    assert int(run.events.missed) == int(run.stats.impacts) - 1100


@pytest.fixture
def few_of_one_instant(monkeypatch):
    """Programs record 64 impacts of one instant at first."""
    of = Rules.of
    monkeypatch.setattr(Rules, "of", lambda *given: replace(of(*given), max_logged=64))


def test_all_impacts_of_one_instant_are_logged(few_of_one_instant):
    """Nine balls in a row strike nine: every blow is passed on through the row, 81 impacts."""
    b = carom.SceneBuilder(gravity=(0, 0, 0))
    for k in range(18):
        at, v = (0.1 * k, 0.0) if k < 9 else (0.1 * k + 0.05, -1.0)
        b.add_body(
            f"{k}", [carom.Sphere(0.05)], mass=1.0, position=(at, 0, 0), linear_velocity=(v, 0, 0), restitution=1.0
        )
    model, state = carom.compile_scene(b.build(), overlaps="ignore")
    run = carom.rollout(model, state, duration=0.1)
    assert int(run.events.count) == int(run.stats.impacts) == 81
    assert int(run.events.missed) == 0
    assert [rules.max_logged for (scene, _), rules in capacity._NEEDED.items() if scene == model.topology] == [None]
    v = np.asarray(run.v[-1]).reshape(18, 6)[:, 3]
    np.testing.assert_allclose(v, [-1.0] * 9 + [0.0] * 9, atol=1e-9)


@pytest.mark.slow
def test_a_given_log_holds_all_impacts_of_an_instant(few_of_one_instant):
    """Seventy balls that strike the floor at once."""
    b = carom.SceneBuilder()
    b.add_plane(restitution=0.5)
    for k in range(70):
        b.add_body(f"{k}", [carom.Sphere(0.05)], mass=1.0, position=(0.2 * k, 0.0, 0.1), restitution=0.5)
    model, state = carom.compile_scene(b.build())
    run, few = (
        carom.rollout(model, state, duration=0.15, frame_dt=0.15, max_events=room, throw=False) for room in (100, 69)
    )
    assert (int(run.events.count), int(run.events.missed)) == (70, 0)
    assert (int(few.events.count), int(few.events.missed), int(few.code)) == (69, 1, EVENTS_FULL)
