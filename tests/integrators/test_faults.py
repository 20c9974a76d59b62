"""Fault drills: what goes wrong in one lane is said in that lane, and changes no bit of any other."""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from carom.engine import results
from carom.integrators import lane_map, recording, rollout
from carom.tests.integrators.bouncing import LANES, RADIUS, RUN, lanes, ran

ILL = 2  # the lane in which it happens
FRAMES = 61

# places in q (7 a ball) and v (6 a ball) of the balls' heights and upward speeds
HEIGHTS, SPEEDS = jnp.array([2, 9]), jnp.array([5, 11])


WAYS = ["one by one", pytest.param("side by side", marks=pytest.mark.slow)]


@pytest.fixture(scope="module", params=WAYS, autouse=True)
def how(request: pytest.FixtureRequest) -> Iterator[None]:
    """On a CPU lanes run one after another; what they do on a GPU, side by side, is tried here too."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "side by side":
            for module in (lane_map, recording, rollout):
                patch.setattr(module, "lane_programs", lambda: False)
            compiled: Any = rollout._with_contacts
            program = jax.jit(compiled.__wrapped__, static_argnums=0)
            patch.setattr(rollout, "_with_contacts", program)
        yield


@pytest.fixture(scope="module")
def well(how: None) -> Any:
    return ran(lanes())


def others_are_the_same(result: Any, well: Any) -> None:
    """Bit by bit: frames, events, counts. Only `useful` is a part of what the slowest lane took."""
    kept = np.array([k for k in range(LANES) if k != ILL])
    for name in ("t", "q", "v", "events", "code", "state"):
        for mine, theirs in zip(*(jax.tree.leaves(getattr(x, name)) for x in (result, well)), strict=True):
            np.testing.assert_array_equal(np.asarray(mine)[kept], np.asarray(theirs)[kept], err_msg=name)
    for name in ("ticks", "rollbacks", "impacts", "resting", "max_penetration"):
        mine, theirs = (np.asarray(getattr(x.stats, name)) for x in (result, well))
        np.testing.assert_array_equal(mine[kept], theirs[kept], err_msg=name)
    np.testing.assert_array_equal(np.asarray(result.code)[kept], results.OK)


def test_well_lanes_are_well(well: Any) -> None:
    """What the drills are compared with: every lane bounces, and no two lanes alike."""
    np.testing.assert_array_equal(well.code, results.OK)
    assert (np.asarray(well.stats.impacts) >= 4).all()
    assert len(np.unique(np.asarray(well.state.q[:, 0]))) == LANES
    assert np.isfinite(well.q).all()


def test_nan_from_the_start(well: Any) -> None:
    """Nothing of the lane is recorded but its first state; it stays there, and t says how far it got."""
    result = ran(lanes((ILL, lambda q, v: (q, v.at[3].set(jnp.nan)))))
    assert int(result.code[ILL]) == results.NOT_FINITE
    assert np.isnan(result.q[ILL, 1:]).all()
    assert np.isnan(result.t[ILL, 1:]).all()
    assert int(result.events.count[ILL]) == 0
    assert int(result.stats.ticks[ILL]) < 10  # a lost lane does no more work
    others_are_the_same(result, well)


def test_not_finite_on_the_way(well: Any) -> None:
    """A speed that overflows in flight: frames before it are kept, those from there on are NaN."""
    result = ran(lanes((ILL, lambda q, v: (q.at[HEIGHTS].set(1e306), v.at[5].set(1.7e308)))))
    assert int(result.code[ILL]) == results.NOT_FINITE
    reached = np.isfinite(np.asarray(result.t[ILL])).sum()
    assert 1 <= reached < FRAMES
    assert np.isfinite(result.q[ILL, :reached]).all()
    assert np.isnan(result.q[ILL, reached:]).all()
    assert np.isfinite(result.state.q[ILL]).all()  # the last state that was accepted
    others_are_the_same(result, well)


def test_more_impacts_than_the_log_holds(well: Any) -> None:
    """The motion is complete, the first rows are kept, and `missed` says how many there are no rows for."""
    low = lambda q, v: (q.at[HEIGHTS].set(RADIUS + 0.02), v * 0)  # noqa: E731 - bounces 30 times in 0.6 s
    result = ran(lanes((ILL, low)))
    assert int(result.code[ILL]) == results.EVENTS_FULL
    room = RUN["max_events"]
    assert int(result.events.count[ILL]) == room
    assert int(result.events.missed[ILL]) == int(result.stats.impacts[ILL]) - room > 0
    np.testing.assert_allclose(result.q[ILL, -1, HEIGHTS], RADIUS, atol=1e-9)
    t = np.asarray(result.events.t[ILL])
    assert (np.diff(t) >= 0).all()
    assert t[0] == pytest.approx(np.sqrt(2 * 0.02 / 9.81), abs=1e-12)
    others_are_the_same(result, well)


def test_ticks_run_out_in_one_lane(well: Any) -> None:
    """A lane of a hundred small bounces, and that goes on to slide, against others of few: it is given up there."""
    most = int(np.delete(np.asarray(well.stats.ticks), ILL).max())
    low = lambda q, v: (q.at[HEIGHTS].set(RADIUS + 0.02), (v * 0).at[SPEEDS - 2].set(0.2))  # noqa: E731
    result = ran(lanes((ILL, low)), max_ticks=most)
    assert int(result.code[ILL]) == results.TICKS_CAPPED
    assert int(result.stats.ticks[ILL]) == most
    reached = np.isfinite(np.asarray(result.t[ILL])).sum()
    assert 1 < reached < FRAMES
    assert np.isnan(result.q[ILL, reached:]).all()
    assert float(result.state.t[ILL]) >= float(result.t[ILL, reached - 1])
    others_are_the_same(result, well)


def test_more_contacts_than_there_is_room_for(well: Any) -> None:
    """Two balls that touch, on the floor: three contacts where two have room. The others never have three."""
    heap = lambda q, v: (  # noqa: E731
        q.at[jnp.array([0, 1, 2, 7, 8, 9])].set(jnp.array([0, 0, RADIUS, 2 * RADIUS, 0, RADIUS])),
        v * 0,
    )
    result = ran(lanes((ILL, heap)))
    assert int(result.code[ILL]) == results.CONTACTS_FULL
    assert int(result.stats.contacts[ILL]) == 3
    assert np.isnan(result.q[ILL, 1:]).all()  # it stops before it loses one
    others_are_the_same(result, well)


@pytest.mark.parametrize(
    ("change", "changes", "message"),
    [
        (lambda q, v: (q, v * jnp.nan), {}, r"^lane 2 \(1 of 4 lanes\), after t = 0 s: .* not finite"),
        (lambda q, v: (q, v), {"max_ticks": 3}, r"^lanes 0, 1, 2, 3 \(4 of 4 lanes\), after t = .* raise max_ticks"),
    ],
)
def test_the_host_raises(change: Any, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(results.SimulationError, match=message):
        ran(lanes((ILL, change)), throw=True, **changes)


def test_a_full_log_warns_and_the_run_is_returned() -> None:
    low = lambda q, v: (q.at[HEIGHTS].set(RADIUS + 0.02), v * 0)  # noqa: E731
    message = r"^lane 2 \(1 of 4 lanes\), after t = 1 s: EVENTS_FULL: more impacts happened .* raise max_events"
    with pytest.warns(results.SimulationWarning, match=message) as told:
        result = ran(lanes((ILL, low)), throw=True)
    assert np.isfinite(result.q).all()
    assert result.why() == str(told[0].message)


def test_a_graver_code_hides_a_full_log() -> None:
    """It bounces until its log is full, and is given up later."""
    low = lambda q, v: (q.at[HEIGHTS].set(RADIUS + 0.02), v * 0)  # noqa: E731
    most = int(ran(lanes((ILL, low))).stats.ticks[ILL]) - 1
    result = ran(lanes((ILL, low)), max_ticks=most)
    assert int(result.events.missed[ILL]) > 0
    assert int(result.code[ILL]) == results.TICKS_CAPPED


def test_what_happened_in_words() -> None:
    t = np.array([1.0, 0.5, 1.0, 0.25])
    assert results.why(np.zeros(4, np.int32), t) == "finished"
    lines = results.why(np.array([0, results.TICKS_CAPPED, results.EVENTS_FULL, results.TICKS_CAPPED]), t).splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("lanes 1, 3 (2 of 4 lanes), after t = 0.5 s: TICKS_CAPPED: the most ticks")
    assert lines[1].startswith("lane 2 (1 of 4 lanes), after t = 1 s: EVENTS_FULL: more impacts happened")


def test_every_code_has_its_words_and_its_gravity() -> None:
    assert set(results.MESSAGES) == set(results.Code)
    assert sorted(results.Code)[:2] == [results.Code.OK, results.Code.EVENTS_FULL]
    found = results.gravest(np.array([0, 10, 160]), np.array([20, 10, 130]), results.OK)
    np.testing.assert_array_equal(found, [20, 10, 160])
    assert found.dtype == np.int32
