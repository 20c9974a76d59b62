"""Windows: what touches within a millisecond is resolved together, and nothing passes, is gained or is lost by that."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import carom
from carom.contact.cone.few import FEW
from carom.engine.native.function import native
from carom.integrators.clock import Frames
from carom.integrators.lanes import Window
from carom.integrators.motion.forces import Drive
from carom.integrators.rules import Rules
from carom.integrators.step import first_lane, tick
from carom.integrators.window import in_window
from carom.scenes.live.pace import Pace
from carom.scenes.live.world import Live

WINDOW, STEP = 1e-3, 1 / 240
G, R = 9.81, 0.05


def _heap(restitution=0.2):
    """Six balls and boxes that fall into a corner, onto each other."""
    b, rng = carom.SceneBuilder(), np.random.default_rng(4)
    for normal in ((0.0, 0.0, 1.0), (0.6, 0.0, 0.8), (0.0, 0.6, 0.8)):
        b.add_plane(normal, friction=0.5, restitution=restitution)
    for k in range(6):
        shape = carom.Sphere(R) if k % 2 else carom.Box((0.04, 0.05, 0.06))
        place = np.array([0.25, 0.25, 0.2 + 0.2 * k]) + rng.uniform(-0.03, 0.03, 3)
        turn = rng.normal(size=4)
        turn /= np.linalg.norm(turn)
        b.add_body(
            f"body{k}", (shape,), mass=0.2 + 0.1 * k, position=tuple(place), quaternion=tuple(turn),
            friction=0.5, restitution=restitution,
        )  # fmt: skip
    return carom.compile_scene(b.build())


def _tower():
    """Eight balls over each other, a little askew, that come down."""
    b = carom.SceneBuilder()
    b.add_plane(restitution=0.3)
    for k in range(8):
        b.add_body(f"ball{k}", (carom.Sphere(R),), mass=1.0, restitution=0.3, friction=0.5,
                   position=(0.03 * (k % 3), 0.02 * (k % 2), 0.06 + 0.101 * k))  # fmt: skip
    return b.build()


def _energies(model, run):
    states = (carom.State(run.q[k], run.v[k], run.t[k]) for k in range(len(run.t)))
    return np.array([float(e.kinetic + e.potential) for e in (carom.energy(model, state) for state in states)])


@pytest.fixture(scope="module")
def heap():
    model, state = _heap()
    return model, state, carom.rollout(model, state, duration=1.0, frame_dt=0.02, window=WINDOW)


def test_a_heap_takes_a_tick_a_window(heap):
    *_, run = heap
    assert run.code == carom.Code.OK
    assert 50 < int(run.stats.windows) <= int(run.stats.ticks) < 1.1 / WINDOW
    assert int(run.events.count) == int(run.stats.impacts) > 50
    assert (np.diff(np.asarray(run.events.t)[: int(run.events.count)]) >= 0).all()


def test_it_gains_no_energy(heap):
    """But what comes out of each other, as deep as a window lets turning bodies in."""
    model, _, run = heap
    energy = _energies(model, run)
    assert (np.diff(energy) < 1e-3 * (energy[0] - energy[-1])).all()
    assert energy[-1] < 0.5 * energy[0]


def test_nothing_is_deeper_than_a_window_lets_it_turn(heap):
    *_, run = heap
    fastest = np.abs(np.asarray(run.v)).max()
    assert 0 < float(run.stats.max_penetration) < fastest * WINDOW


def test_in_parts_and_in_a_batch_it_is_the_same(heap):
    model, state, run = heap
    half = carom.rollout(model, state, duration=0.5, frame_dt=0.02, window=WINDOW)
    np.testing.assert_array_equal(half.q, run.q[: len(half.t)])
    pair = carom.rollout(model, carom.tile(state, 2), duration=0.5, frame_dt=0.02, window=WINDOW)
    for lane in range(2):
        np.testing.assert_array_equal(pair.q[lane], half.q)


def _bouncing(restitution, window, duration=1.2):
    b = carom.SceneBuilder()
    b.add_plane(restitution=restitution, friction=0.0)
    b.add_body("ball", (carom.Sphere(R),), mass=1.0, position=(0.0, 0.0, 1.0), restitution=restitution, friction=0.0)
    model, state = carom.compile_scene(b.build())
    return carom.rollout(model, state, duration=duration, frame_dt=0.1, max_dt=0.1, window=window)


def test_where_events_are_far_apart_nothing_changes():
    exact, windows = _bouncing(0.8, None), _bouncing(0.8, 1e-6)
    assert int(windows.stats.windows) == 0
    np.testing.assert_array_equal(exact.q, windows.q)


@pytest.mark.parametrize("window", [4e-3, 1e-3, 2.5e-4])
def test_a_bounce_is_early_by_less_than_a_window(window):
    """Drops whose time of flight ends anywhere in a window."""
    fall = np.sqrt(2 * (1.0 - R) / G)
    run = _bouncing(1.0, window)
    speed, early = G * fall, []
    for t, z in zip(np.asarray(run.t), np.asarray(run.q)[:, 2], strict=True):
        if t > fall:
            since = t - fall
            early.append(z - R - (speed * since - G * since**2 / 2))
    assert int(run.stats.windows) <= 2
    assert np.abs(early).max() < 2 * speed * window
    assert abs(float(run.events.t[0]) - fall) < window
    np.testing.assert_allclose(float(run.events.u_after[0, 2]), -float(run.events.u_before[0, 2]), rtol=1e-9)


def test_equal_balls_that_meet_at_once_part_as_moreau_says():
    """Two that touch, struck by a third, e = 1: (-1/3, 2/3, 2/3) v, in a window as at one instant."""
    b = carom.SceneBuilder(gravity=(0.0, 0.0, 0.0))
    for k, x in enumerate((-0.1002, 0.0, 0.1)):
        speed = (1.0, 0.0, 0.0) if k == 0 else (0.0, 0.0, 0.0)
        b.add_body(f"ball{k}", (carom.Sphere(R),), mass=1.0, position=(x, 0.0, 0.0), linear_velocity=speed,
                   restitution=1.0, friction=0.0)  # fmt: skip
    model, state = carom.compile_scene(b.build())
    run = carom.rollout(model, state, duration=0.02, window=4e-3, max_dt=4e-3)
    np.testing.assert_allclose(run.v[-1, 3::6], [-1 / 3, 2 / 3, 2 / 3], atol=1e-6)


def test_a_bullet_does_not_pass_a_plate_within_a_window():
    b = carom.SceneBuilder(gravity=(0.0, 0.0, 0.0))
    b.add_static("plate", [carom.Box((0.0005, 1.0, 1.0))], restitution=0.5)
    b.add_body("bullet", (carom.Sphere(0.002),), mass=0.01, position=(-0.5, 0.0, 0.0), restitution=0.5,
               linear_velocity=(800.0, 3.0, 0.0))  # fmt: skip
    model, state = carom.compile_scene(b.build())
    run = carom.rollout(model, state, duration=0.01, frame_dt=1e-3, window=5e-3)
    assert run.code == carom.Code.OK
    assert (np.asarray(run.q[:, 0]) < 0).all()
    np.testing.assert_allclose(run.v[-1, 3], -400.0, rtol=1e-6)


def test_what_is_deep_comes_out_and_stays():
    b = carom.SceneBuilder()
    b.add_plane()
    b.add_body("box", [carom.Box((0.1, 0.1, 0.1))], mass=1.0, position=(0.0, 0.0, 0.0995))
    model, state = carom.compile_scene(b.build(), overlaps="ignore")
    run = carom.rollout(model, state, duration=0.5, window=WINDOW)
    height = np.asarray(run.q[:, 2])
    assert height.max() < 0.1 + 1e-4
    np.testing.assert_allclose(height[-1], 0.1, atol=1e-7)


@pytest.mark.parametrize("spin", [1.0, 30.0, 200.0])
def test_what_rolls_and_is_deep_comes_out_and_rolls_on(spin):
    """As fast as before, but for what it takes to roll without slip on a shorter arm and on the whole one again."""
    b, depth = carom.SceneBuilder(), 0.1 * R
    b.add_plane(friction=0.6)
    b.add_body("ball", [carom.Sphere(R)], mass=2.0, position=(0.0, 0.0, R - depth),
               linear_velocity=(spin * R, 0.0, 0.0), angular_velocity=(0.0, spin, 0.0))  # fmt: skip
    model, state = carom.compile_scene(b.build(), overlaps="ignore")
    run = carom.rollout(model, state, duration=0.5, window=WINDOW)
    assert run.code == carom.Code.OK
    assert 80 < int(run.stats.windows) < 150  # it comes out at 5 cm/s, and needs no windows any more
    np.testing.assert_allclose(run.q[-1, 2], R, atol=1e-8)
    assert float(run.v[-1, 1]) == pytest.approx(spin, rel=0.02)
    assert float(run.v[-1, 3]) == pytest.approx(spin * R, rel=0.02)
    assert abs(float(run.v[-1, 3] - run.v[-1, 1] * R)) < 1e-6 * spin


def test_the_windows_up_to_a_frame_are_equal():
    """None is a short rest of the others, in which contacts would be closed at a high speed."""
    search = SimpleNamespace(window=Window(*(jnp.asarray(x) for x in (WINDOW, True, jnp.inf, False))))
    for left, count in ((1 / 60, 17), (WINDOW, 1), (WINDOW * (1 + 1e-15), 1), (1.01 * WINDOW, 2), (0.3 * WINDOW, 1)):
        lane: Any = SimpleNamespace(
            search=search, clock=SimpleNamespace(left=jnp.asarray(left)), fresh=jnp.asarray(False)
        )
        h, here = in_window(lane, jnp.asarray(1e-5), jnp.asarray(1.0))
        assert here, left
        assert float(h) == pytest.approx(left / count, rel=1e-12)


def test_boxes_that_land_tilted_on_an_edge_hardly_overlap():
    """Two edges touch first; in the same window the faces meet at a speed that this impact causes."""
    lanes, half, rng = 32, 0.1, np.random.default_rng(0)
    b = carom.SceneBuilder()
    b.add_plane(friction=0.5)
    for name in ("low", "high"):
        b.add_body(name, [carom.Box((half,) * 3)], mass=8.0, position=(0.0, 0.0, half if name == "low" else 0.32))
    model, state = carom.compile_scene(b.build(), dtype=jnp.float64)
    q, v = (np.tile(np.asarray(x), (lanes, 1)) for x in (state.q, state.v))
    angle, way, turn = rng.uniform(0.01, 0.04, lanes), rng.uniform(0, 2 * np.pi, lanes), rng.uniform(0.3, 1.2, lanes)
    tilt = Rotation.from_rotvec(angle[:, None] * np.stack([np.cos(way), np.sin(way), 0 * way], 1))
    high = tilt * Rotation.from_rotvec(turn[:, None] * np.array([0.0, 0.0, 1.0]))
    q[:, 7:9], q[:, 10:] = rng.uniform(-0.06, 0.06, (lanes, 2)), np.roll(high.as_quat(), 1, 1)
    v[:, -1] = -3.0
    states = replace(carom.tile(state, lanes), q=jnp.asarray(q), v=jnp.asarray(v))
    run = carom.rollout(model, states, duration=0.1, window=STEP, max_dt=STEP)
    assert (np.asarray(run.code) == carom.Code.OK).all()
    deepest = np.asarray(run.stats.max_penetration)
    assert np.median(deepest) < 1e-4
    assert deepest.max() < 2e-3  # in a window a corner may go 12 mm: with one contact for the pair it did


def test_towers_in_windows_come_to_rest():
    """Nine towers of five boxes, a little crooked and struck: they land, rock, and stand, all exactly."""
    b, rng = carom.SceneBuilder(), np.random.default_rng(3)
    b.add_plane(friction=0.6)
    for k in range(45):
        place = np.array([k % 3, k // 3 % 3, k // 9]) * (0.5, 0.5, 0.2) + (*rng.uniform(-0.01, 0.01, 2), 0.1001)
        b.add_body(f"box{k}", [carom.Box((0.1,) * 3)], mass=8.0, friction=0.6, position=tuple(place))
    model, state = carom.compile_scene(b.build(), dtype=jnp.float64)
    state = replace(state, v=jnp.asarray(0.1 * rng.normal(size=len(state.v))))
    run = carom.rollout(model, state, duration=2.0, window=STEP, max_dt=STEP)
    assert run.code == carom.Code.OK
    assert run.stats.windows > 10
    np.testing.assert_array_equal(run.v[-1], 0)
    heights = np.sort(np.asarray(run.q[-1]).reshape(-1, 7)[:, 2])
    np.testing.assert_allclose(heights, np.repeat(0.1 + 0.2 * np.arange(5), 9), atol=1e-4)


def test_a_world_whose_ticks_are_used_up_goes_on_in_windows():
    spec = _tower()
    world, lags = (Live(spec, max_ticks=4, window=window, dtype=jnp.float64) for window in (WINDOW, None))
    for _ in range(60):
        world.step()
        lags.step()
        assert world.behind == 0
        assert world.windows <= 2 * world.dt / WINDOW + 4
    assert world.missed == 0
    np.testing.assert_allclose(world.time, 1.0, atol=1e-9)
    assert lags.behind + lags.missed > 0.1
    assert lags.time + lags.behind + lags.missed == pytest.approx(1.0, abs=1e-6)
    assert min(world.pose(f"ball{k}")[2] for k in range(8)) > R - 1e-4


@pytest.mark.parametrize("depth", [1e-6, 1e-5])
def test_a_world_needs_no_windows_for_what_has_sunk_in_by_little(depth):
    """As windows leave it: each frame would go on in windows, as long as anything turns."""
    b = carom.SceneBuilder()
    b.add_plane(friction=0.6)
    b.add_body("ball", [carom.Sphere(R)], mass=2.0, position=(0.0, 0.0, R - depth),
               linear_velocity=(20 * R, 0.0, 0.0), angular_velocity=(0.0, 20.0, 0.0))  # fmt: skip
    world = Live(b.build(), dtype=jnp.float64)
    for _ in range(60):
        world.step()
        assert world.windows == 0
    assert world.pose("ball")[2] == pytest.approx(R, abs=1e-9)


def test_a_world_on_a_budget_is_never_late():
    """As small a budget as can be: windows as long as half of the fewest ticks make them."""
    spec = _tower()
    world = Live(spec, budget=1e-9, dtype=jnp.float64)
    for _ in range(120):
        world.step()
        assert world.behind == 0
        assert world.windows <= 4
    np.testing.assert_allclose(world.time, 2.0, atol=1e-9)
    assert min(world.pose(f"ball{k}")[2] for k in range(8)) > 0.9 * R
    with pytest.raises(ValueError, match=r"budget is 0\.0; it must be a positive number of seconds"):
        Live(spec, budget=0.0)


@pytest.mark.parametrize("window", [WINDOW, None])
@pytest.mark.parametrize("tick", [1e-5, 1e-4, 1e-3, 1.0])
def test_a_budget_is_kept_by_what_ticks_took(tick, window):
    pace, dt = Pace(4e-3), 1 / 60
    assert pace.room(dt, 64, window) == (64, window)  # nothing is known
    pace.took(10 * tick, 10)
    ticks, length = pace.room(dt, 64, window)
    windows = 0 if length is None else int(np.ceil(dt / length))
    assert (length is None) == (window is None)
    assert 1 <= ticks <= 64
    assert length is None or length >= WINDOW
    assert ticks + windows <= max(4, 4e-3 / tick)
    pace.took(tick, 1)
    assert pace.tick == pytest.approx(tick)
    pace.took(3 * tick, 1)
    assert pace.tick == pytest.approx(2 * tick)  # what is slower counts at once


@pytest.mark.parametrize(("wrong", "why"), [
    ({"window": 0.0}, "window is 0.0"),
    ({"window": float("nan")}, "window is nan"),
    ({"window": 1e-3, "time_control": "fixed"}, "time_control='rollback'"),
    ({"window": 1e-3, "resting": "penalty"}, "resting='solve'"),
])  # fmt: skip
def test_what_cannot_have_windows_says_so(wrong, why):
    model, state = _heap()
    with pytest.raises(ValueError, match=why):
        carom.rollout(model, state, duration=0.1, **wrong)
    with pytest.raises(ValueError, match=why):
        carom.step(model, state, dt=0.1, **wrong)


def test_derivatives_are_refused():
    model, state = _heap()

    def end(z):
        run = carom.rollout(model, replace(state, q=state.q.at[2].set(z)), duration=0.01, window=WINDOW, throw=False)
        return run.q[-1, 2]

    with pytest.raises(TypeError, match="windows has no derivatives"):
        jax.jvp(end, (state.q[2],), (jnp.ones(()),))
    with pytest.raises(ValueError, match="leave out one of them"):
        carom.rollout(model, state, duration=0.1, window=WINDOW, reverse=True, max_ticks=100)


def _pile():
    """18 boxes that fall onto each other: more contacts at a time than are solved for as a few."""
    b, rng = carom.SceneBuilder(), np.random.default_rng(5)
    b.add_plane(friction=0.5, restitution=0.1)
    for k in range(18):
        place = np.array([0.21 * (k % 3), 0.21 * (k // 3 % 2), 0.11 + 0.22 * (k // 6)]) + rng.uniform(-0.02, 0.02, 3)
        b.add_body(f"box{k}", (carom.Box((0.1, 0.1, 0.1)),), mass=1.0, position=tuple(place), friction=0.5)
    return carom.compile_scene(b.build(), overlaps="ignore")


def test_a_frame_knows_nothing_of_earlier_ones():
    """What the contacts bear from one window to the next is forgotten where a run may be gone on with."""
    model, state = _pile()
    how: Any = {"frame_dt": 0.01, "window": 2.5e-3}
    whole = carom.rollout(model, state, duration=0.4, **how)
    assert int(whole.stats.contacts) > FEW
    assert int(whole.stats.windows) > 80
    first = carom.rollout(model, state, duration=0.2, **how)
    again = carom.rollout(model, first.state, duration=0.2, **how)
    np.testing.assert_array_equal(again.q, whole.q[20:])


def test_what_contacts_bear_is_the_weight():
    """`Ready.load` of boxes that came to rest in windows."""
    model, state = _pile()
    end = carom.rollout(model, state, duration=1.5, frame_dt=0.5, window=2.5e-3).state
    rules, h = Rules.of(carom.Options(max_contacts=200), True), jnp.asarray(2.5e-3)
    frames = Frames(jnp.asarray(1.0), jnp.asarray(1.0), jnp.int32(1))
    drive = Drive(None, None)

    @native
    def ready(rules, model, end):
        start = first_lane(rules, model, end, frames, lambda *_: drive, window=h)
        one = lambda _, lane: tick(rules, model, lane, frames, h, lambda *_: drive).lane  # noqa: E731
        after = jax.lax.fori_loop(0, 3, one, start).ready
        return after.contacts, after.load

    contacts, load = ready(rules, model, end)
    assert load is not None
    floor = contacts.active & ((contacts.link_a < 0) | (contacts.link_b < 0))
    up = contacts.frame.zz * jnp.where(contacts.link_a < 0, -1, 1)
    np.testing.assert_allclose(jnp.where(floor, load.z * up, 0).sum(), 18 * G, rtol=1e-3)
