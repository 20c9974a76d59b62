"""The other two ways to rest, micro-collisions and penalties: they hold a body up, each with its own faults."""

import numpy as np
import pytest

import carom
from carom.contact.resting.models import RESTING, resting_named
from carom.engine.results import OK
from carom.tests.oracles.stepping import run

G, H = 9.81, 1 / 960


def ball_on_plane():
    b = carom.SceneBuilder()
    b.add_plane(friction=0.5)
    b.add_body("ball", [carom.Sphere(0.1)], mass=2.0, position=(0, 0, 0.1), friction=0.5)
    return carom.compile_scene(b.build())


MODELS = [name if name == "solve" else pytest.param(name, marks=pytest.mark.slow) for name in RESTING]


@pytest.mark.parametrize("resting", MODELS)
@pytest.mark.slow
def test_ball_rests_and_is_carried(resting):
    """Over a second the mean impulse rate is the weight (1 %), the energy does not grow, the ball stays."""
    model, state = ball_on_plane()
    result = run(model, state, H, steps=960, resting=resting)
    assert result.code == OK
    height = np.asarray(result.path.q[:, 2]) - 0.1
    assert height.max() <= G * H**2  # a hop of one step, where there are any
    # micro-collisions fall for a step, a spring sinks in by g (h / SWIFT)^2, and a little more while it settles
    deepest = {"solve": 1e-9, "microcollisions": 0.51 * G * H**2, "penalty": 1.5 * G * (H / 0.3) ** 2}
    assert height.min() >= -deepest[resting]
    pushed = float(result.impulses.links[0, 5])
    np.testing.assert_allclose(pushed, 2 * G, rtol=0.01)
    kinetic = (np.asarray(result.path.v[240:, 5]) ** 2).max()
    assert kinetic <= (3 * G * H) ** 2


@pytest.mark.parametrize("resting", MODELS)
@pytest.mark.slow
def test_sliding_ball_begins_to_roll(resting):
    """Slip to roll at 5/7 of the speed (billiards), whoever holds the ball."""
    model, state = ball_on_plane()
    v = state.v.at[3].set(0.3)
    result = run(model, carom.State(state.q, v, state.t), H, steps=960, resting=resting)
    w, u = float(result.path.v[-1, 1]), float(result.path.v[-1, 3])
    # micro-collisions turn what slip is left around, again and again: its sum with the spin is what settles
    np.testing.assert_allclose((5 * u + 2 * 0.1 * w) / 7, 0.3 * 5 / 7, rtol=1e-3)
    np.testing.assert_allclose([u, 0.1 * w], 0.3 * 5 / 7, rtol=0.05 if resting == "microcollisions" else 2e-3)


@pytest.mark.exhaustive
def test_microcollisions_on_a_slope_creep_a_little():
    """A box within its cone: held by p = -2 K^-1 u, its creep over 1 s is bounded, and it is not what `solve` does."""
    a = np.radians(10)
    normal = (np.sin(a), 0, np.cos(a))
    b = carom.SceneBuilder()
    b.add_plane(normal=normal, friction=0.6)
    b.add_body("box", [carom.Sphere(0.25)], mass=1.0, position=np.multiply(normal, 0.25), friction=0.6,
               inertia=(1e6, 1e6, 1e6))  # so heavy to turn that it slides like a block  # fmt: skip
    model, state = carom.compile_scene(b.build())
    moved = {}
    for resting in RESTING:
        result = run(model, state, H, steps=960, resting=resting)
        moved[resting] = float(np.linalg.norm(result.path.q[-1, :3] - state.q[:3]))
    rolls = G * np.sin(a) / 2 / (1 + 1e6 / 0.25**2)
    np.testing.assert_allclose(moved["solve"], rolls, rtol=1e-3)
    assert moved["microcollisions"] < 5e-3
    free = G * np.sin(a) / 2
    assert moved["penalty"] < 0.05 * free


def test_unknown_model_is_refused():
    with pytest.raises(ValueError, match="resting is 'glue'; it must be one of solve, microcollisions, penalty"):
        resting_named("glue")
