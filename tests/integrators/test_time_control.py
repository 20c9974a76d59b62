"""Time control: how long a step may be, where it ends, and what is taken back."""

import functools
from types import SimpleNamespace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.spatial.transform import Rotation

import carom
from carom.engine import results
from carom.integrators.time_control import step_to_try
from carom.tests.integrators.bouncing import FRAMES, RADIUS, G, ball, fallen

SAME = 1e-10  # s: an impact's time, whatever the steps

# -- the length of a step -------------------------------------------------------------------------------


@functools.cache
def tries() -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Random lanes, every bound shorter and longer than every other, or inf; and the steps to try in them."""
    rng, n = np.random.default_rng(0), 5000
    draw = lambda: 10.0 ** rng.uniform(-6, 0, n)  # noqa: E731
    maybe = lambda: np.where(rng.random(n) < 0.5, np.inf, draw())  # noqa: E731
    x: dict[str, Any] = {name: draw() for name in ("left", "max_dt")}
    x |= {name: maybe() for name in ("longest", "touch", "high", "aim", "fine")}
    x["aim"] = np.where(
        x["aim"] < np.minimum(np.minimum(x["left"], x["max_dt"]), x["high"]), x["aim"], np.inf
    )  # what was tried was longer
    x["fresh"] = rng.random(n) < 0.1
    lane: Any = SimpleNamespace(
        ready=SimpleNamespace(longest=x["longest"], touch=x["touch"]),
        search=SimpleNamespace(
            high=x["high"], aim=x["aim"], fine=x["fine"], window=None, short=jnp.zeros(n, jnp.int32)
        ),
        clock=SimpleNamespace(left=jnp.asarray(x["left"])),
        fresh=x["fresh"],
    )
    return x, np.asarray(step_to_try(lane, jnp.asarray(x["max_dt"]))[0])


def test_steps_are_never_longer_than_they_may() -> None:
    """Not beyond the frame, max_dt, what is unseen, or what is known to be too long; and always onwards."""
    x, h = tries()
    rounding = 1 + 1e-14  # 16 eps, by which a frame's end may be stretched to reach it
    ready = ~x["fresh"]
    np.testing.assert_array_equal(h[~ready], 0)
    assert (h[ready] > 0).all()
    assert (h <= x["left"]).all()
    assert (h <= x["max_dt"] * rounding).all()
    free = np.isinf(x["aim"]) & ready
    for name in ("longest", "touch", "fine"):
        assert (h <= x[name] * rounding)[free].all(), name
    assert (h < x["high"])[ready & np.isfinite(x["high"])].all()
    np.testing.assert_array_equal(h[ready & np.isfinite(x["aim"])], x["aim"][ready & np.isfinite(x["aim"])])


def test_steps_cut_a_frame_evenly() -> None:
    """Where nothing else bounds it, a step is the frame's rest in the fewest equal parts."""
    x, h = tries()
    alone = ~x["fresh"] & np.isinf(x["aim"] + 0) & np.isinf(x["high"])
    alone &= np.minimum(np.minimum(x["longest"], x["touch"]), x["fine"]) > x["left"]
    parts = x["left"][alone] / h[alone]
    assert alone.sum() > 20
    np.testing.assert_allclose(parts, np.round(parts), rtol=1e-9)
    np.testing.assert_array_equal(np.round(parts), np.ceil(x["left"][alone] / x["max_dt"][alone] * (1 - 1e-13)))


# -- a prediction that is wrong -------------------------------------------------------------------------

OFF, SPIN = 0.05, 9.0  # m, rad/s


@functools.cache
def lopsided(max_dt: float, frame_dt: float = 1 / 240) -> Any:
    """A ball whose middle goes round its centre of mass: it meets the ground sooner than a parabola would."""
    return fallen(*ball(off=OFF, spin=SPIN), frame_dt, max_dt, throw=False)


def root(height: Any) -> float:
    """The first t at which a height (an array of times in, one out) is 0, to rounding."""
    grid = np.linspace(0, 0.8, 8001)
    first = int(np.argmax(height(grid) < 0))
    found: Any = brentq(lambda t: float(height(np.array([t]))[0]), grid[first - 1], grid[first], xtol=1e-15)
    return found


def bottom(t: np.ndarray) -> np.ndarray:
    """Where its lowest point is, until it strikes; it started with its centre of mass at (OFF, 0, 1.1)."""
    return 1.1 - G * t * t / 2 + OFF * np.sin(SPIN * t) - RADIUS  # the middle is at -OFF cos, turning about y


def first_impact(run: Any) -> float:
    assert int(run.code) in (results.OK, results.EVENTS_FULL)
    return float(run.events.t[0])


@pytest.mark.parametrize(
    ("max_dt", "frame_dt"), [(1 / 240, 1 / 60), (1 / 240, 1 / 240), (1 / 300, 1 / 130), (1e-3, 1e-2)]
)
def test_a_spinning_ball_strikes_at_its_time(max_dt: float, frame_dt: float) -> None:
    """The root of its height, whatever the steps and frames: turning has no step error."""
    assert first_impact(lopsided(max_dt, frame_dt)) == pytest.approx(root(bottom), abs=SAME)


@pytest.mark.parametrize("max_dt", [0.05, 0.025, 0.0125])
def test_longer_steps_are_not_off(max_dt: float) -> None:
    """Steps in which it turns by half a radian: it strikes at its time all the same."""
    assert first_impact(lopsided(max_dt, 0.1)) == pytest.approx(root(bottom), abs=SAME)


def test_touching_is_found_by_going_back() -> None:
    """Its prediction is late: steps are taken back, few for each impact, and every impact is within the gap band."""
    run = lopsided(1 / 240, 1 / 60)
    impacts, band = int(run.events.count), float(ball()[0].gap_band)
    assert impacts == int(run.stats.impacts) >= 4
    assert impacts / 4 <= int(run.stats.rollbacks) <= 3 * impacts
    gaps = (
        2 * np.asarray(run.events.point)[:impacts, 2]
    )  # the point is halfway between the surfaces; the ground is at 0
    assert (np.abs(gaps) <= band).all()
    assert (np.asarray(run.events.u_before)[:impacts, 2] < 0).all()
    assert (np.diff(np.asarray(run.events.t)[:impacts]) > 0).all()
    assert float(run.stats.max_penetration) <= band


def test_ticks_are_counted() -> None:
    """A tick is the first, one that reached a frame or a touch or went there in several steps, or one taken back."""
    run = lopsided(1 / 240, 1 / 240)
    accepted = int(run.stats.ticks) - int(run.stats.rollbacks) - 1
    assert FRAMES + int(run.stats.impacts) <= accepted <= FRAMES + 4 * int(run.stats.impacts)
    assert float(run.stats.useful) == 1.0


@pytest.mark.parametrize("max_dt", [0.05, 0.0125])  # a radian a step at the fastest it spins, and a quarter of one
def test_long_steps_of_what_rolls_come_to_an_end(max_dt: float) -> None:
    """It bounces for 10 s, then rolls to and fro with the energy that is left: no ever shorter steps, and no hop."""
    run = lopsided(max_dt, 0.1)
    assert int(run.code) == results.OK
    assert int(run.stats.impacts) < 200
    assert int(run.stats.ticks) < 20_000
    assert float(run.stats.max_penetration) < 10 * float(ball()[0].gap_band)
    rolling = np.asarray(run.t) > 10
    energy = carom.energy(ball(off=OFF, spin=SPIN)[0], carom.State(run.q, run.v, run.t))
    total = np.asarray(energy.kinetic + energy.potential)[rolling]
    assert np.ptp(total) < 1e-2 * np.asarray(energy.kinetic)[rolling].max()  # in 17 s


HALF, TURNS = np.array([0.2, 0.15, 0.1]), np.array([3.0, 5.0, -4.0])


def lowest_corner(t: np.ndarray) -> np.ndarray:
    """Of a box that is thrown up at 0.5 m/s from 1 m and turns evenly."""
    signs = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    corners = np.stack([Rotation.from_rotvec(t[:, None] * TURNS).apply(corner)[:, 2] for corner in signs * HALF])
    return 1 + 0.5 * t - G * t * t / 2 + corners.min(0)


@pytest.mark.slow
def test_a_corner_strikes_at_its_time() -> None:
    """references.md, Instants of impact: whatever the frames, in steps that turn it well enough, within the band."""
    b = carom.SceneBuilder(gravity=(0, 0, -G))
    b.add_plane(friction=0.3, restitution=0.5)
    b.add_body(
        "box", shapes=[carom.Box(tuple(HALF))], mass=1.0, inertia=(0.01, 0.01, 0.01), position=(0, 0, 1),
        linear_velocity=(0.3, 0, 0.5), angular_velocity=tuple(TURNS), friction=0.3, restitution=0.5,
    )  # fmt: skip
    model, state = carom.compile_scene(b)
    for frame_dt, max_dt in ((1 / 20, 1 / 500), (1 / 33, 1 / 480), (0.04, 1 / 1000)):
        run = carom.rollout(model, state, duration=20 * frame_dt, frame_dt=frame_dt, max_dt=max_dt, max_events=64)
        assert first_impact(run) == pytest.approx(root(lowest_corner), abs=SAME)
        gaps = 2 * np.asarray(run.events.point)[: int(run.events.count), 2]
        assert (np.abs(gaps) <= float(model.gap_band)).all()


# -- fixed steps ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("max_dt", "deepest"), [(0.07, 0.06), (0.01, 0.0), (0.03, 0.02)])
def test_fixed_steps_go_too_deep_and_say_so(max_dt: float, deepest: float) -> None:
    """A slider at 1 m/s, 0.5 m before its stop: it is stopped after the step in which it passed it."""
    b = carom.SceneBuilder(gravity=(0, 0, 0))
    joint = carom.Prismatic((1, 0, 0), limits=(-1, 0.5), restitution=0.5)
    b.add_link("slider", joint=joint, mass=2.0, inertia=(1, 1, 1), v0=1.0)
    run = carom.rollout(
        *carom.compile_scene(b), duration=0.7, frame_dt=0.7, max_dt=max_dt, time_control="fixed", max_events=4
    )
    assert int(run.code) == results.OK
    assert int(run.stats.rollbacks) == 0
    assert int(run.stats.ticks) == 1 + round(0.7 / max_dt + 0.499)
    h = 0.7 / (int(run.stats.ticks) - 1)
    assert int(run.events.count) == 1
    struck = h * np.ceil(0.5 / h - 1e-9)
    assert float(run.events.t[0]) == pytest.approx(struck, abs=1e-12)
    assert float(run.stats.max_penetration) == pytest.approx(struck - 0.5, abs=1e-12) == pytest.approx(deepest, abs=h)
    assert float(run.state.q[0]) == pytest.approx(struck - 0.5 * (0.7 - struck), abs=1e-12)


def test_a_short_longest_step_does_not_use_up_the_ticks() -> None:
    """As many ticks as it needs: 10 000 a frame."""
    b = carom.SceneBuilder()
    b.add_plane(friction=0.5, restitution=0.0)
    b.add_body("block", [carom.Box((0.1, 0.1, 0.1))], position=(0, 0, 0.1), linear_velocity=(3, 0, 0))
    run = carom.rollout(*carom.compile_scene(b), duration=0.2, frame_dt=0.1, max_dt=1e-5)
    assert int(run.code) == results.OK
    assert int(run.stats.ticks) > 20_000
