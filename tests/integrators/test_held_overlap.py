"""Links of a tree that their joints hold into each other: no impulse moves them apart, so it is no contact."""

import jax
import numpy as np
import pytest

import carom

OTHERS = [{"resting": "microcollisions"}, {"impacts": "simultaneous"}, {"law": "newton"}]
SCHEMES = [{}, *(pytest.param(one, marks=pytest.mark.exhaustive) for one in OTHERS)]


def car(shapes: bool) -> tuple:
    """A chassis, a knuckle and a wheel that reaches 0.15 m into the chassis."""
    b = carom.SceneBuilder()
    box, tyre = ([carom.Box((1.3, 0.55, 0.25))], [carom.Sphere(0.35)]) if shapes else ([], [])
    b.add_link("car", joint=carom.Floating(), position=(0, 0, 3), mass=600.0, inertia=(80, 400, 400), shapes=box)
    knuckle = carom.Revolute((0, 0, 1))
    b.add_link("knuckle", "car", joint=knuckle, position=(1.1, 0.75, -0.25), mass=10.0, inertia=(1, 1, 1))
    axle, spins = carom.Revolute((0, 1, 0)), {"v0": 3.0, "mass": 30.0, "inertia": (1, 1, 1)}
    b.add_link("wheel", "knuckle", joint=axle, shapes=tyre, **spins)
    return carom.compile_scene(b, dtype=np.float64, overlaps="ignore")


@pytest.mark.parametrize("keywords", SCHEMES, ids=str)
def test_it_moves_as_if_nothing_touched(keywords: dict) -> None:
    times = {"duration": 0.1, "frame_dt": 0.05, "max_dt": 0.005}
    runs = [carom.rollout(*car(shapes), **times, **keywords) for shapes in (True, False)]
    assert not int(runs[0].events.count)
    np.testing.assert_allclose(runs[0].q, runs[1].q, atol=1e-12)
    np.testing.assert_allclose(runs[0].v, runs[1].v, atol=1e-11)


@pytest.mark.exhaustive
def test_it_has_derivatives() -> None:
    model, state = car(True)

    def height(v: jax.Array) -> jax.Array:
        return carom.step(model, carom.State(state.q, v, state.t), dt=0.01).q[2]

    slope = jax.jacfwd(height)(state.v)
    assert np.isfinite(slope).all()
    assert slope[5] == pytest.approx(0.01, rel=1e-6), "what it rises at, it rises by"
