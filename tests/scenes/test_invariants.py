"""Invariants hold of runs, and a run that was tampered with is caught, with the place in the message."""

import dataclasses

import numpy as np
import pytest

import carom
from carom.scenes.recordings.reading import Reading
from carom.scenes.regression.invariants import (
    ALWAYS,
    complementarity,
    energy_kept,
    energy_never_grows,
    impulses_in_cone,
    momentum_kept,
    no_penetration,
)
from carom.scenes.regression.runs import record_run
from carom.scenes.regression.sweep import dt_independent
from carom.tests.scenes.small_runs import RUN, ball, balls, scene, with_events


@pytest.mark.parametrize("name", ALWAYS)
def test_they_hold_of_a_run_and_of_a_batch(name):
    for recording in (ball(0.1), balls()):
        finding = ALWAYS[name](recording).check()
        assert finding
        assert "holds" in str(finding)


def test_energy_that_an_impact_gains_is_caught():
    run = ball(0.1)
    after = np.array(run.events.energy_after)
    after[1] = run.events.energy_before[1] * (1 + 1e-6)
    with pytest.raises(AssertionError, match=r"energy never grows .* in the impact between ball - floor at t = 1.264"):
        energy_never_grows(with_events(run, energy_after=after)).check()


def test_energy_that_a_frame_gains_is_caught():
    run = ball(0.1)
    v = run.v.copy()
    v[30:] *= 1 + 1e-6
    grown = dataclasses.replace(run, v=v)
    energy_never_grows(grown).check()  # so much could be the error of a scene's steps
    with pytest.raises(AssertionError, match="at the frame t = "):
        energy_never_grows(grown, tolerance=1e-9).check()
    v[30:] *= 1 + 1e-3
    with pytest.raises(AssertionError, match="at the frame t = "):
        energy_never_grows(grown).check()


def test_energy_is_kept_besides_what_impacts_took():
    assert not energy_kept(ball(0.1))
    assert energy_kept(ball(0.1), besides_impacts=True)
    # without friction a bounce takes nothing but (1 - e^2) of m v_n^2 / 2
    assert energy_kept(ball(0.0, 1.0))
    assert energy_kept(ball(0.0, 0.9)).measured == pytest.approx(9.81 * (1 - 0.9**4) / Reading(ball()).ledger.scale)


def test_a_ledger_of_an_impact_at_a_frame_balances():
    run = ball(0.1)
    t = np.array(run.events.t)
    frame = int(np.searchsorted(run.t, t[0]))
    shifted = run.t.copy()
    shifted[frame] = t[0]  # a frame from after the impact, said to be at its very instant
    rest = Reading(dataclasses.replace(run, t=shifted)).ledger.rest
    assert np.abs(rest).max() < 1e-9


def test_momentum_is_kept_along_a_smooth_floor():
    assert momentum_kept(ball(), linear="xy", angular="xyz")
    assert not momentum_kept(ball(), linear="z", angular="")  # the floor pushes
    assert not momentum_kept(ball(0.1), linear="x", angular="")
    assert not momentum_kept(ball(0.1), linear="", angular="y")


def test_weight_takes_no_part_in_momentum_and_turning_bodies_keep_theirs():
    b = carom.SceneBuilder()
    for k, side in enumerate((0.1, 0.2)):
        b.add_body(
            f"box{k}", [carom.Box((side, 0.1, 0.05))], mass=1.0 + k, position=(3.0 * k, 1, 0),
            linear_velocity=(k, 1, 2), angular_velocity=(1, 2, 3),
        )  # fmt: skip
    b.exclude("box0", "box1")
    flying = record_run(b, duration=0.5, frame_dt=0.1)
    assert momentum_kept(flying, 1e-12)  # rounding
    v = flying.v.copy()
    v[3:, 3] += 1e-4
    assert not momentum_kept(dataclasses.replace(flying, v=v), 1e-12)


def test_friction_out_of_the_cone_and_impulses_that_pull_are_caught():
    run = balls()
    p = np.array(run.events.impulse)
    p[1, 0, :2] *= 1 + 1e-6
    with pytest.raises(AssertionError, match=r"friction cone .* t = 0\.4515\d* s of lane 1"):
        impulses_in_cone(with_events(run, impulse=p)).check()
    assert not impulses_in_cone(with_events(run, impulse=-np.array(run.events.impulse)))


@pytest.mark.parametrize(("column", "velocity"), [("u_before", 1e-3), ("u_after", -1e-3)])
def test_impulses_where_nothing_closes_and_what_still_closes_are_caught(column, velocity):
    u = np.array(getattr(ball(0.1).events, column))
    u[0, 2] = velocity
    finding = complementarity(with_events(ball(0.1), **{column: u}))
    assert 1e-4 < finding.measured < 1e-3
    assert "violated" in str(finding)


def test_bodies_in_each_other_are_caught():
    q = ball().q.copy()
    q[7, 2] = 0.1 - 1e-6
    finding = no_penetration(dataclasses.replace(ball(), q=q))
    assert finding.measured == pytest.approx(1e-6, rel=1e-6)
    with pytest.raises(AssertionError, match=r"at the frame t = 0\.0388"):
        finding.check()
    stats = {**ball().stats, "max_penetration": np.array(1e-3)}
    assert "statistics" in str(no_penetration(dataclasses.replace(ball(), stats=stats)))


def test_a_run_does_not_hang_on_the_step_unless_it_is_fixed():
    steps = (1 / 240, 1 / 100)
    assert dt_independent(scene(0.1), steps, **RUN).measured < 1e-9


def test_frames_that_were_not_reached_are_left_out():
    run = ball(0.1)
    cut = {name: np.where(np.arange(len(run.t)) < 200, getattr(run, name).T, np.nan).T for name in ("t", "q", "v")}
    for check in ALWAYS.values():
        assert check(dataclasses.replace(run, **cut))
