"""The library keeps what it promises; and what it promises is what theory says."""

import dataclasses
import math
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import carom
from carom.engine.results import CONTACTS_FULL, OK
from carom.scenes.library import balls, playing, rods, rolling, simbench
from carom.scenes.library.facts import Entry, Fact, Play, at_most
from carom.scenes.library.playing import Outcome, outcomes
from carom.scenes.library.registry import SCENES

QUICK = ("bouncing_ball", "multi_07")  # the fewest seconds to compile
# of which other tests say as much, or which compile for 10 s and more where another of their family compiles in less
SELDOM = {
    *QUICK, "ragdoll", "babyboot", "newtons_cradle", "block_on_ramp", "rod_drop", "kane_pendulum", "dominoes",
    "chain_of_blocks", "stack", "pyramid", "coin", "tippe_top", "hexapod", "hopper", "multi_01", "multi_02", "multi_04",
    "multi_05", "multi_06", "multi_08", "multi_09", "multi_10", "multi_12", "multi_14", "simbench_bouncing",
    "simbench_666", "billiard_stroke", "spinning_platter", "rimless_wheel", "n_four_bar", "pool_break",
}  # fmt: skip
LONG = 10.0  # seconds of a scene's time: plays of more are for the slow half


def check(entry: Entry, longest: float = math.inf) -> None:
    plays = tuple(play for play in entry.plays if play.duration <= longest)
    for play, found, failure in outcomes(dataclasses.replace(entry, plays=plays)):
        assert not failure, f"{play.title}: {failure}"
        broken = [outcome for outcome in found if not outcome.holds]
        assert not broken, "\n".join(f"{play.title}: {o.fact.says} is {o.found!r}: {o.fact}" for o in broken)


@pytest.mark.parametrize("name", QUICK)
def test_some_scenes_keep_their_promises(name: str) -> None:
    check(SCENES[name], LONG)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.exhaustive if name in SELDOM else ())
        for name, entry in SCENES.items()
        if entry.facts
    ],
)
def test_scenes_keep_their_promises(name: str) -> None:
    check(SCENES[name])


HEADINGS = re.findall(r"^### (.*)$", (Path(carom.__file__).parent / "docs/references.md").read_text(), re.M)


# scenes to look at and to learn from, which promise nothing
BARE = {
    "pendulum", "double_pendulum", "chain", "arm7", "humanoid", "free_bodies", "wawrzynski_pendulum", "acrobot",
    "weightlifter", "cart_pole", "cart_double_pendulum", "cart_triple_pendulum",
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in SCENES if name not in BARE])
def test_facts_are_told_apart_and_have_a_source(name: str) -> None:
    for play in SCENES[name].plays:
        says = [fact.says for fact in play.facts]
        assert says
        assert len(set(says)) == len(says)
        for fact in play.facts:
            assert fact.tolerance >= 0
            assert math.isfinite(fact.expected)
            year = re.search(r" 1[89]\d\d$| 20\d\d$", fact.source)
            assert fact.source in ("derived", *HEADINGS) or year, fact.source


# -- whether a fact holds ---------------------------------------------------------------------------------


def test_a_fact_holds_up_to_its_tolerance() -> None:
    fact = at_most("a length [m]", 0.125, lambda _: 0.0)
    assert all(Outcome(fact, x).holds for x in (0.0, 0.125, -0.125))
    assert not any(Outcome(fact, x).holds for x in (0.126, -0.126, math.nan, math.inf))


def checked(monkeypatch: pytest.MonkeyPatch, code: int) -> playing.Checked:
    """What comes of a scene with two facts when two impacts happen, at 0 and 1 s, and this is the code of the run."""
    events = SimpleNamespace(count=np.array(2), t=np.arange(5.0))
    result: Any = SimpleNamespace(events=events, code=np.array(code))
    spec: Any = None
    monkeypatch.setattr(playing, "play", lambda *_: playing.Played(spec, None, None, result))
    facts = (at_most("t", 0.5, lambda p: p.event("t")[2]), Fact("n", 2, 0, lambda p: p.impacts))
    (all_of_it,) = outcomes(Entry(balls.bouncing_ball, "", (Play(facts),)))
    return all_of_it


def test_an_impact_that_did_not_come_is_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    _, found, failure = checked(monkeypatch, OK)
    assert not failure
    assert [outcome.holds for outcome in found] == [False, True, True]
    assert math.isnan(found[0].found)


def test_a_run_that_is_not_well_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    _, found, failure = checked(monkeypatch, CONTACTS_FULL)
    assert "raise max_contacts" in failure
    assert [outcome.holds for outcome in found] == [False, True, False]


def test_a_play_is_told_by_what_is_unusual() -> None:
    assert Play().title == ""
    assert (
        Play(parameters={"spin": 1 / 3, "floor": True}, law="newton").title == "spin=0.333333, floor=True, law=newton"
    )


# -- whether what is promised is right ---------------------------------------------------------------------


def test_bounces_are_those_of_the_formula() -> None:
    first, e = math.sqrt(2 / 9.81), 0.9
    want = [first + 2 * first * e * (1 - e**k) / (1 - e) for k in range(5)]
    np.testing.assert_allclose(balls.BOUNCES, want, rtol=1e-12)
    assert pytest.approx(first * (1 + e) / (1 - e)) == balls.ALL_BOUNCES


@pytest.mark.parametrize(("lean", "turn"), [(0.35, 6.0), (0.9, 4.0), (0.1, 2.0)])
def test_steady_coin_obeys_newton_and_euler(lean: float, turn: float) -> None:
    """Forces from the motion of its centre; the rate of its angular momentum is their moment; no slip."""
    R, h, g = 0.0116, 0.00115, 9.81
    place, along, w = (np.array(x) for x in rolling.steady_coin(lean, turn, R, h))
    e = np.array([math.cos(lean), 0, math.sin(lean)])
    I1, I3, up = R * R / 4 + h * h / 3, R * R / 2, np.array([0, 0, 1.0])
    L = I1 * w + (I3 - I1) * (w @ e) * e
    down = np.array([math.sin(lean), 0, -math.cos(lean)])
    contact = R * down - h * e  # from the centre
    assert place[2] + contact[2] == pytest.approx(0, abs=1e-15)
    velocity = np.array([0, along, 0])
    np.testing.assert_allclose(velocity + np.cross(w, contact), 0, atol=1e-12)
    np.testing.assert_allclose(turn * np.cross(up, place), velocity, atol=1e-12)
    force = np.cross(turn * up, velocity) + g * up
    np.testing.assert_allclose(np.cross(contact, force), turn * np.cross(up, L), atol=1e-12)


def test_wheel_without_inertia_is_drakes() -> None:
    a, slope = math.pi / 8, 0.08
    drake = 1 / math.tan(2 * a) * math.sqrt(4 * 9.81 * math.sin(a) * math.sin(slope))
    assert rods.wheel_rate(8, slope, 1.0, 0.0) == pytest.approx(drake)
    assert rods.wheel_keeps(8, 1.0, 0.0) ** 2 == pytest.approx(math.cos(2 * a) ** 2)


def test_simbench_accelerations_are_the_published_ones() -> None:
    assert pytest.approx(0.211) == simbench.BALLS
    assert pytest.approx(0.7385) == simbench.BOARD
