"""A frame depends on the state at its start and on nothing before: from every frame a new run goes on with the same
bits. A replay, a recording made in pieces, and a rollback in a game rest on it."""

from typing import Any

import numpy as np
import pytest

import carom

FRAME = 1 / 60


def dominoes(count: int, dtype: str = "float64") -> Any:
    """They topple, slide on each other, and rattle: the next touch is foreseen from the step before."""
    b = carom.SceneBuilder()
    b.add_plane(friction=0.6)
    for k in range(count):
        push: dict[str, Any] = {"angular_velocity": (0, 2.5, 0), "linear_velocity": (0.5, 0, 0)} if k == 0 else {}
        box = carom.Box((0.02, 0.08, 0.2))
        b.add_body(f"domino{k}", shapes=[box], position=(0.12 * k, 0, 0.2), mass=1.0, friction=0.4, **push)
    return carom.compile_scene(b, dtype=dtype)


def sliding_boxes() -> Any:
    """They slide to rest, one of them turning."""
    b = carom.SceneBuilder()
    b.add_plane(friction=0.3)
    for k, spin in enumerate((0.0, 4.0)):
        b.add_body(
            f"box{k}", shapes=[carom.Box((0.1, 0.1, 0.05))], position=(0, k, 0.05), mass=1.0, friction=0.3,
            linear_velocity=(1.0, 0, 0), angular_velocity=(0, 0, spin),
        )  # fmt: skip
    return carom.compile_scene(b, dtype="float64")


def of_library(name: str) -> Any:
    return carom.compile_scene(carom.load(name), dtype="float64")


SCENES: dict[str, Any] = {
    "two dominoes": lambda: dominoes(2),
    "sliding boxes": sliding_boxes,
    "eight dominoes": lambda: dominoes(8),
    **{name: lambda name=name: of_library(name) for name in ("ragdoll", "coin", "hopper", "pool_break")},
}
ISLANDS: dict[str, Any] = {"clocks": "islands"}
SIMULTANEOUS, WINDOWS, RK4 = {"impacts": "simultaneous"}, {"window": 1e-3}, {"scheme": "rk4"}
RUNS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in SCENES), ("pool_break", ISLANDS),
    *(("two dominoes", how) for how in (ISLANDS, SIMULTANEOUS, WINDOWS, RK4)),
]  # fmt: skip
QUICK = [("sliding boxes", {})]


@pytest.mark.parametrize(
    ("scene", "how"), [pytest.param(*run, marks=[] if run in QUICK else pytest.mark.slow) for run in RUNS]
)
def test_a_run_from_any_frame_has_the_same_bits(scene: str, how: dict[str, Any]) -> None:
    model, state = SCENES[scene]()
    run = carom.rollout(model, state, duration=0.7, frame_dt=FRAME, throw=False, **how)
    starts = carom.State(run.q[:-1], run.v[:-1], run.t[:-1])
    alone = carom.rollout(model, starts, duration=FRAME, frame_dt=FRAME, throw=False, **how)
    for name in ("q", "v"):
        whole, parts = np.asarray(getattr(run, name))[1:], np.asarray(getattr(alone, name))[:, 1]
        differ = np.flatnonzero((whole != parts).any(-1))
        assert not differ.size, f"{scene}: {name} at the end of frames {differ}, up to {np.abs(whole - parts).max()}"
    assert run.t.shape[0] == 43


@pytest.mark.parametrize("count", [2, pytest.param(8, marks=pytest.mark.slow)])
def test_dominoes_do_not_sink_into_each_other(count: int) -> None:
    """Touches slower than the rest speed are let in by ENVELOPE gap bands, and so is what they lean on."""
    model, state = dominoes(count)
    run = carom.rollout(model, state, duration=0.7, frame_dt=FRAME)
    assert int(run.stats.impacts) > 20
    assert float(run.stats.max_penetration) < 20 * float(model.gap_band)


@pytest.mark.slow
def test_pieces_are_the_whole() -> None:
    """Cut at any frame, and in single precision too."""
    for model, state in (dominoes(2), dominoes(2, "float32")):
        whole = carom.rollout(model, state, duration=0.5, frame_dt=FRAME)
        for frames in (1, 7, 20):
            first = carom.rollout(model, state, duration=frames * FRAME, frame_dt=FRAME)
            rest = carom.rollout(model, first.state, duration=0.5 - frames * FRAME, frame_dt=FRAME)
            assert carom.state_hash(rest.state) == carom.state_hash(whole.state), (model.mass.dtype, frames)
