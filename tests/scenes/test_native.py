"""Scenes of the library as machine code: each runs as XLA's program of it runs, and none is left to XLA."""

from typing import Any
from unittest import mock

import jax
import numpy as np
import pytest

import carom
from carom.engine.native import machine
from carom.engine.native.program import Program
from carom.scenes.compile import compile_scene
from carom.scenes.library.facts import ChainPlay
from carom.scenes.library.registry import SCENES, library_entry, library_scene
from carom.tests.oracles.native_and_xla import no_fallback

RUN: dict[str, Any] = {"duration": 0.1, "frame_dt": 0.05, "max_events": 64, "throw": False}
FEW = ("bouncing_ball", "billiard_stroke", "five_bar", "ragdoll", "multi_01", "hopper")  # one of a kind
# XLA sums in other orders and fuses what it likes: after steps and a few impacts what differs is far below
NEAR = 1e-10
# four impacts at one instant: 1e-15 in where the run begins moves its end by 7.6e-8 m and 7.2e-7 m/s, or not at all
ROUGH = {"dominoes": 1e-6}


def switched() -> Any:
    """What may be switched while a world runs, on and off: pairs, layers and loops."""
    b = carom.SceneBuilder(filtering=True)
    b.add_plane(name="floor", restitution=0.5, mask=1)
    for k, (group, active) in enumerate(((1, True), (2, False), (1, None))):
        shape = carom.Box((0.1, 0.1, 0.1), restitution=0.5, group=group)
        b.add_body(f"box {k}", [shape], mass=1.0, position=(0.4 * k, 0, 0.12), angular_velocity=(0, 1, k))
        b.add_loop(f"box {k}", (0, 0, 0.1), joint=carom.Spherical() if k else carom.Revolute((0, 1, 0)), active=active)
    return b.build()


OWN = {"switched": switched}


def answered(name: str) -> dict[str, np.ndarray]:
    model, state = compile_scene(OWN[name]() if name in OWN else library_scene(name))
    made = carom.rollout(model, state, **RUN)
    events, code = made.events, np.asarray(made.code)
    whole = {"code": code, "events": np.asarray(events.count), "bodies": np.asarray(events.bodies)}
    return {
        **whole,
        "t": np.asarray(made.t),
        "q": np.asarray(made.q),
        "v": np.asarray(made.v),
        "at": np.asarray(events.t),
    }


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in (*FEW, *OWN) else pytest.mark.exhaustive)
        for name in (*SCENES, *OWN)
    ],
)
def test_scene_runs_as_with_xla(name: str) -> None:
    """Events are the same ones, so that no run has become another before its end; then fields can be compared."""
    with mock.patch.dict("os.environ", {"CAROM_CACHE": "off", "CAROM_NATIVE_CHECK": "1", "CAROM_NATIVE_POISON": "1"}):
        jax.clear_caches()
        with mock.patch.object(Program, "code", None):
            theirs = answered(name)
        jax.clear_caches()
        with no_fallback():
            mine = answered(name)
        jax.clear_caches()  # others are not to run what is checked
    outside, machine.OUTSIDE[:] = list(machine.OUTSIDE), []
    assert not outside
    for field, x in mine.items():
        if x.dtype.kind == "f":
            near = ROUGH.get(name, NEAR)
            np.testing.assert_allclose(x, theirs[field], rtol=near, atol=near, err_msg=field)
        else:
            np.testing.assert_array_equal(x, theirs[field], field)


def usual(name: str) -> dict[str, Any]:
    """As the scene is played, but a millisecond of it."""
    play = library_entry(name).play
    keywords = {} if isinstance(play, ChainPlay) else play.keywords
    return {**keywords, "duration": 1e-3, "frame_dt": 1e-3, "throw": False}


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENES)
def test_scene_is_not_left_to_xla(name: str) -> None:
    model, state = compile_scene(library_scene(name))
    with no_fallback():
        jax.block_until_ready(carom.rollout(model, state, **usual(name)).q)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in ("ragdoll", "rod_drop") else pytest.mark.slow) for name in SCENES]
)
def test_scene_can_be_traced_as_it_is_played(name: str) -> None:
    """Compiled by hand only, or by other tests with other keywords."""
    model, state = compile_scene(library_scene(name))
    q = jax.eval_shape(lambda x: carom.rollout(model, x, **usual(name)).q, state)
    assert q.shape == (2, *state.q.shape)
