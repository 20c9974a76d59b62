"""Runs in pieces are runs in one; what is recorded comes again; lanes differ where they are told to."""

import functools
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import carom
from carom.engine.results import EVENTS_FULL, NOT_FINITE, OK, TICKS_CAPPED
from carom.integrators import rollout as rollouts
from carom.scenes.library.balls import bouncing_ball
from carom.scenes.recordings.file import read_recording
from carom.scenes.recordings.recording import Recording
from carom.scenes.replaying import replay
from carom.scenes.running import PIECE, Progress, _piece_size, pieces, record
from carom.scenes.sources import load
from carom.scenes.variations import compile_lanes, recompile

KEYWORDS: dict[str, Any] = {"duration": 1.0, "frame_dt": 1 / 36}  # three pieces, an impact in the second


@functools.cache
def recorded() -> Recording:
    return record(bouncing_ball(), title="ball", **KEYWORDS)


def same_run(one: Recording, other: Recording) -> None:
    for name in ("t", "q", "v"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    for name in ("t", "impulse", "energy_after", "count"):
        np.testing.assert_array_equal(getattr(one.events, name), getattr(other.events, name))


# -- pieces --------------------------------------------------------------------------------------------


def test_a_run_in_pieces_is_the_run_in_one() -> None:
    model, state = carom.compile_scene(bouncing_ball())
    whole = Recording.of(bouncing_ball(), carom.rollout(model, state, **KEYWORDS), title="ball", keywords=KEYWORDS)
    same_run(recorded(), whole)
    assert (recorded().piece, recorded().t.size) == (PIECE, 37)
    assert recorded().events.count == 1
    assert recorded().stats["impacts"] == 1
    assert recorded().model_hash == whole.model_hash == carom.integrators.snapshots.model_hash(model)


def test_options_are_recorded_by_name(tmp_path: Path) -> None:
    options = carom.Options(law="newton", max_dt=1 / 120, max_events=64)
    spec = bouncing_ball()
    one = record(spec, tmp_path / "one.npz", duration=0.5, options=options, max_events=32)
    other = record(spec, duration=0.5, law="newton", max_dt=1 / 120, max_events=32)
    same_run(one, other)
    kept = read_recording(tmp_path / "one.npz").keywords
    assert kept == {**vars(options), "max_events": 32, "duration": 0.5}


def test_progress_is_told_and_the_file_is_the_run(tmp_path: Path) -> None:
    told: list[Progress] = []
    run = record(bouncing_ball(), tmp_path / "a.npz", title="ball", progress=told.append, **KEYWORDS)
    assert [progress.events for progress in told] == [0, 1, 1]
    assert [progress.t for progress in told] == pytest.approx([1 / 3, 2 / 3, 1.0])
    assert {progress.duration for progress in told} == {1.0}
    same_run(run, recorded())
    same_run(read_recording(tmp_path / "a.npz"), recorded())


def test_an_interrupted_run_is_kept_and_comes_again(tmp_path: Path) -> None:
    def stop(progress: Progress) -> None:
        if progress.events:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        record(bouncing_ball(), tmp_path / "a.npz", title="ball", progress=stop, **KEYWORDS)
    run = read_recording(tmp_path / "a.npz")
    assert not run.complete
    assert run.t.size == 2 * PIECE + 1
    np.testing.assert_array_equal(run.q, recorded().q[: 2 * PIECE + 1])
    again = replay(run)
    assert again.same
    assert (again.frames, again.events) == (2 * PIECE + 1, 1)


EVEN = {1: 1, 12: 12, 180: 12, 36000: 12, 121: 11, 26: 13, 127: 12, 25: 12, 46: 23}


def test_pieces_are_alike_where_they_can_be() -> None:
    assert {intervals: _piece_size(intervals, 12) for intervals in EVEN} == EVEN


def fake_rollouts(monkeypatch: pytest.MonkeyPatch, codes: list[Any]) -> list[Any]:
    """Rollouts that end with these codes; what each was asked."""
    asked: list[Any] = []

    def rollout(model: Any, state: Any, **keywords: Any) -> Any:
        asked.append(SimpleNamespace(state=state, **keywords))
        after = carom.State(state.q + 1, state.v, state.t)
        return SimpleNamespace(code=np.array(codes[len(asked) - 1]), state=after)

    monkeypatch.setattr(rollouts, "rollout", rollout)
    return asked


def state_of(*batch: int) -> Any:
    return carom.State(np.zeros((*batch, 2)), np.zeros((*batch, 2)), np.zeros(batch))  # type: ignore[arg-type]


def test_a_lane_that_is_lost_is_nan_from_then_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would go on from some other time than its last frame. A full log is no reason to stop."""
    asked = fake_rollouts(monkeypatch, [[OK, TICKS_CAPPED, EVENTS_FULL], [OK, NOT_FINITE, OK]])
    list(pieces(None, state_of(3), {"duration": 2.0, "frame_dt": 1.0}, 1))  # type: ignore[arg-type]
    np.testing.assert_array_equal(asked[1].state.q[:, 0], [1, np.nan, 1])
    np.testing.assert_array_equal(asked[1].state.v[:, 0], [0, np.nan, 0])


def test_a_run_ends_when_no_lane_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = fake_rollouts(monkeypatch, [OK, TICKS_CAPPED])
    assert len(list(pieces(None, state_of(), {"duration": 9.0, "frame_dt": 1.0}, 1))) == 2  # type: ignore[arg-type]
    assert len(asked) == 2


@pytest.mark.parametrize("name", ["control", "forces"])
def test_a_last_interval_that_is_shorter_and_rows_of_what_drives(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = fake_rollouts(monkeypatch, [OK] * 2)
    rows = np.arange(6.0).reshape(3, 2)
    list(pieces(None, state_of(), {"duration": 2.5, "frame_dt": 1.0, name: rows}, 2))  # type: ignore[arg-type]
    assert [x.duration for x in asked] == [2.0, 0.5]
    np.testing.assert_array_equal(np.concatenate([vars(x)[name] for x in asked]), rows)
    with pytest.raises(ValueError, match=f"{name} has shape .* one row for each of the 3 intervals"):
        next(pieces(None, state_of(), {"duration": 2.5, "frame_dt": 1.0, name: rows[:2]}, 2))  # type: ignore[arg-type]


# -- lanes ---------------------------------------------------------------------------------------------


def test_lanes_differ_where_they_are_told_to() -> None:
    variations = {"gravity.2": [-1.0, -2.0, -2.0], "body.link0.q0": [0.5, 0.5, 0.7]}
    run = record(load("pendulum"), variations=variations, duration=0.4, frame_dt=0.1)
    assert (run.lanes, {*run.varied}) == (3, {"gravity", "rest_speed"})
    np.testing.assert_array_equal(run.varied["gravity"][:, 2], [-1, -2, -2])
    np.testing.assert_array_equal(run.q[:, 0, 0], [0.5, 0.5, 0.7])
    assert len({*run.q[:, -1, 0]}) == 3
    assert replay(run).same


@pytest.mark.slow
def test_lanes_with_impacts(tmp_path: Path) -> None:
    variations = {"body.ball.restitution": [0.2, 0.9, 0.9], "body.ball.position": [(0, 0, z) for z in (0.2, 0.2, 0.3)]}
    run = record(bouncing_ball(), tmp_path / "a.npz", title="balls", variations=variations, duration=0.3, frame_dt=0.1)
    assert {*run.varied} == {"restitution", "pair_restitution"}
    np.testing.assert_array_equal(run.varied["pair_restitution"], [[0.2], [0.9], [0.9]])
    np.testing.assert_allclose(run.events.u_after[:, 0, 2] / -run.events.u_before[:, 0, 2], [0.2, 0.9, 0.9], atol=1e-9)
    assert replay(run).same


def test_lanes_share_what_is_equal() -> None:
    model, state, varied = compile_lanes(bouncing_ball(), 2, {"body.ball.mass": [2.0, 2.0]})
    assert not varied
    assert (model.mass.shape, state.q.shape) == ((1,), (2, 7))


@pytest.mark.parametrize(
    ("lanes", "variations", "message"),
    [
        (0, {}, "there are 0 lanes"),
        (3, {"body.ball.mass": [1.0, 2.0]}, "body.ball.mass has 2 values for 3 lanes"),
        (None, {"body.ball.maas": [1.0]}, "body.ball.maas: there is no 'maas'"),
        (None, {"body.ball.mass": [1.0, -1.0]}, "mass is -1"),
        (None, {"body.ball.shapes.0.mask": [1, 0]}, "lane 1 is another scene than lane 0"),
    ],
)
def test_lanes_that_cannot_be(lanes: Any, variations: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compile_lanes(bouncing_ball(), lanes, variations)


# -- replays -------------------------------------------------------------------------------------------


def changed(recording: Recording, name: str, index: Any) -> Recording:
    """With the last bit of one number turned."""
    x = np.array(getattr(recording, name))
    x[index] = np.nextafter(x[index], 9)
    return replace(recording, **{name: x})


def test_a_recording_comes_again() -> None:
    again = replay(recorded())
    assert again.same
    assert (again.frames, again.events, again.changed) == (37, 1, ())


def test_a_replay_tells_where_it_differs() -> None:
    ball = r"frame 20, t = 0.555556 s: q\[2\] of 'ball' is 0.\d+, it was 0.\d+"
    for other, words in (
        (changed(recorded(), "q", (20, 2)), ball),
        (changed(changed(recorded(), "q", (20, 2)), "t", (30,)), ball),
        (changed(recorded(), "v", (36, 5)), r"frame 36, t = 1 s: v\[5\] of 'ball'"),
        (replace(recorded(), model_hash="0"), "compiles to another model"),
        (replace(recorded(), events=replace(recorded().events, count=np.int32(0))), "1 impacts, there were 0"),
        (replace(recorded(), events=replace(recorded().events, t=recorded().events.t + 1)), "impact 0: t is "),
    ):
        again = replay(other)
        assert not again.same
        assert re.search(words, again.difference), again.difference


def test_a_replay_tells_what_else_is_different_here() -> None:
    there = {**recorded().provenance, "jaxlib": "0.0.1", "device": "gpu, H200"}
    changes = " ".join(replay(replace(recorded(), provenance=there)).changed)
    assert "jaxlib is " in changes
    assert "it was 0.0.1" in changes
    assert "it was gpu, H200" in changes


def test_what_cannot_be_replayed() -> None:
    for name in ("control", "forces"):
        with pytest.raises(ValueError, match=f"its {name} was a function, push"):
            replay(replace(recorded(), keywords={name: {"function": "push"}}))


def test_the_model_of_a_recording_is_the_one_that_was_run() -> None:
    run = replace(recorded(), varied={"mass": np.array([[1.0], [2.0]])})
    model, state = recompile(run)
    np.testing.assert_array_equal(model.mass, run.varied["mass"])
    np.testing.assert_array_equal(state.q, run.q[0])


def test_a_recording_holds_no_reports():
    with pytest.raises(ValueError, match=r"carom\.rollout"):
        record(load("bouncing_ball"), duration=0.1, report="contact_forces")
