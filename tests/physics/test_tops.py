"""Heavy tops (references.md, Heavy tops): both steady precessions stay; let go, the top nods to a known angle."""

import jax
import numpy as np
import pytest

import carom
from carom.scenes.library.registry import library_scene

SLOW, FAST, LET_GO = range(3)  # lanes


@pytest.fixture(scope="module")
def run():
    """Slow and fast steady precession at 30 deg, and the same top let go with its axis at rest; spin 150 rad/s."""
    model, slow = carom.compile_scene(library_scene("heavy_top"))
    _, fast = carom.compile_scene(library_scene("heavy_top", fast=True))
    still = carom.State(slow.q, slow.v.at[0].set(0.0), slow.t)  # v is in the top's axes: only the spin is left
    states = jax.tree.map(lambda *x: np.stack(x), slow, fast, still)
    return model, carom.rollout(model, states, duration=0.3, frame_dt=1e-4, max_dt=1e-4, scheme="rk4")


@pytest.fixture(scope="module")
def axes(run) -> np.ndarray:
    """(lanes, frames, 3) the top's axis in the world."""
    w, x, y, z = np.moveaxis(np.asarray(run[1].q), -1, 0)
    return np.stack([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)], -1)


@pytest.mark.parametrize(("lane", "printed"), [(SLOW, 2.10788155784), (FAST, 67.1741507449)])
def test_steady_precession(run, axes: np.ndarray, lane: int, printed: float) -> None:
    """No nutation, and the printed rate [rad/s]; rk4 at 0.1 ms leaves 5e-10 of a radian."""
    x, y, z = axes[lane].T
    assert np.abs(np.arccos(z) - np.deg2rad(30)).max() < 2e-9
    t = np.asarray(run[1].t)[lane]
    angle = np.unwrap(np.arctan2(y, x))
    np.testing.assert_allclose(angle, printed * t, rtol=0, atol=2e-9)


def test_cuspidal_nutation(run, axes: np.ndarray) -> None:
    """It nods between 30 deg, where it stops each time, and the printed 32.1406817108 deg."""
    tilt = np.rad2deg(np.arccos(axes[LET_GO, :, 2]))
    k = int(tilt.argmax())
    assert 0 < k < len(tilt) - 1
    before, top, after = tilt[k - 1 : k + 2]
    peak = top + (after - before) ** 2 / (8 * (2 * top - before - after))  # of the parabola through three frames
    assert peak == pytest.approx(32.1406817108, abs=1e-8)
    assert tilt.min() == pytest.approx(30, abs=1e-8)
    back = int(tilt[k:].argmin()) + k  # at the cusp the whole axis is at rest again
    assert k < back < len(tilt) - 1
    assert np.linalg.norm(np.asarray(run[1].v)[LET_GO, back, :2]) < 0.02 * np.abs(run[1].v[LET_GO, :, :2]).max()


def test_integrals_of_motion(run) -> None:
    """Energy, spin about the axis, and angular momentum about the vertical, in all three motions."""
    model, result = run
    states = carom.State(result.q, result.v, result.t)
    energy = np.asarray(carom.energy(model, states).total)
    vertical = np.asarray(carom.momentum(model, states).angular)[..., 2]
    for kept in (energy, vertical, np.asarray(result.v)[..., 2]):
        assert np.abs(kept / kept[:, :1] - 1).max() < 1e-9
