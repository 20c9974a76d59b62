"""Golden logs, sweeps, comparisons and the page of what changed: they catch what they should, and say it."""

import dataclasses
import json
import re
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from carom.scenes.formats.errors import FileError
from carom.scenes.recordings.events import EventLog, LoggedImpact, event_log, log_text, read_log
from carom.scenes.recordings.file import write_recording
from carom.scenes.regression.compare import Comparison, compare_laws
from carom.scenes.regression.difference import Tolerances, differences
from carom.scenes.regression.golden import check_golden, write_golden
from carom.scenes.regression.report import report
from carom.scenes.regression.sweep import sweep
from carom.scenes.regression.table import Table
from carom.tests.scenes.small_runs import FRICTIONS, RUN, ball, balls, scene

GOLDENS = Path(__file__).parent / "goldens"


def impact(t: float, bodies: tuple[str, str] = ("a", "b"), p_n: float = 1.0, lane: int = 0) -> LoggedImpact:
    return LoggedImpact(t, bodies, p_n, 0.1, (-1.0, 0.5), (0.2, 0.0), (2.0, 1.5), lane)


def told(old: list[LoggedImpact], new: list[LoggedImpact]) -> list[str]:
    return [d.what for d in differences(EventLog({}, tuple(old)), EventLog({}, tuple(new)), Tolerances())]


# -- golden logs ------------------------------------------------------------------------------------------


def test_runs_are_as_their_golden_logs():
    check_golden(ball(0.1), GOLDENS / "ball.jsonl")
    check_golden(balls(), GOLDENS / "balls.jsonl")


def test_a_log_reads_back_as_it_was(tmp_path):
    log = event_log(balls())
    assert len(log.impacts) == 6
    assert {(i.bodies, i.lane) for i in log.impacts} == {(("ball", "floor"), k) for k in range(3)}
    write_golden(log, tmp_path / "new" / "log.jsonl")
    assert read_log(tmp_path / "new" / "log.jsonl") == log
    assert [json.loads(line) for line in log_text(log).splitlines()][1]["bodies"] == ["ball", "floor"]


def test_restitution_off_by_a_millionth_is_caught():
    off = ball(0.1, 0.9 + 1e-6)
    with pytest.raises(AssertionError) as caught:
        check_golden(off, GOLDENS / "ball.jsonl")
    first, second = str(caught.value).splitlines()[1:3]
    assert re.match(r"  the impact ball - floor at t = 0\.45152\d* s: p_n was .*; u_n after was 3\.98.*", first)
    assert re.match(
        r"  the impact ball - floor at t = 1\.26426\d* s: t was 1\.26\d*, is 1\.26\d* s \(off by 9e-07", second
    )
    loose = Tolerances(*[1e-5] * 5)
    check_golden(off, GOLDENS / "ball.jsonl", loose)


def test_a_missing_and_a_new_impact_are_caught():
    log = event_log(ball(0.1))
    fewer = dataclasses.replace(log, impacts=log.impacts[1:])
    (missing,) = differences(log, fewer, Tolerances())
    (new,) = differences(fewer, log, Tolerances())
    assert missing.what == "the impact ball - floor at t = 0.451523641 s is missing: p_n = 8.41595 N s"
    assert new.what.startswith("the impact ball - floor at t = 0.451523641 s is new")


def test_another_law_and_another_end_are_caught():
    run = ball(0.1)
    other = dataclasses.replace(run, events=dataclasses.replace(run.events, law="newton"))
    with pytest.raises(AssertionError, match="one difference:\n  law was 'stronge', is 'newton'"):
        check_golden(other, GOLDENS / "ball.jsonl")
    q = run.q.copy()
    q[-1, 0] += 1e-6
    with pytest.raises(AssertionError, match=r"the end of ball: q\[0\] was"):
        check_golden(dataclasses.replace(run, q=q), GOLDENS / "ball.jsonl")
    q[-1, 0] = np.nan
    with pytest.raises(AssertionError, match=r"q\[0\] was .* is nan"):
        check_golden(dataclasses.replace(run, q=q), GOLDENS / "ball.jsonl")


def test_a_missing_golden_says_how_to_make_it(tmp_path):
    path = tmp_path / "goldens" / "ball.jsonl"
    with pytest.raises(AssertionError, match=r"there is no golden log .* --carom-update"):
        check_golden(ball(0.1), path)
    assert not path.parent.exists()
    check_golden(ball(0.1), path, update=True)
    check_golden(ball(0.1), path)
    assert [p.name for p in path.parent.iterdir()] == ["ball.jsonl"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "line 1: this is no event log"),
        ("[1, 2]\n", "line 1: this is no event log"),
        ('{"carom event log": 2}\n', "line 1: schema 2 is not 1"),
        ('{"carom event log": 1}\n{"t": 1.0\n', "line 2: .* is no line of JSON"),
        ('{"carom event log": 1}\n{"t": 1.0}\n', "line 2: neither an impact nor"),
        ('{"carom event log": 1}\n{"link": "a", "q": ["0"], "v": [0]}\n', "line 2: neither an impact nor"),
        (
            '{"carom event log": 1}\n{"t": 1, "bodies": ["a", "b"], "p_n": "1", "p_t": 0, "u_n": [0, 0], '
            '"u_t": [0, 0], "kinetic": [0, 0]}\n',
            "line 2: neither an impact nor",
        ),
    ],
)
def test_files_that_are_no_logs_are_refused(tmp_path, text, says):
    (tmp_path / "log.jsonl").write_text(text)
    with pytest.raises(FileError, match=says):
        read_log(tmp_path / "log.jsonl")


def test_a_tolerance_that_is_none_is_refused():
    with pytest.raises(ValueError, match="no tolerance 'times'; there are time, impulse"):
        Tolerances.usual("float64", times=1e-3)


# -- what differs -----------------------------------------------------------------------------------------


def test_impacts_at_the_same_time_may_come_in_any_order():
    old = [impact(1.0, p_n=1.0), impact(1.0, p_n=2.0), impact(1.0 + 5e-9, ("b", "c")), impact(2.0)]
    for new in permutations(old):
        assert told(old, list(new)) == []


def test_each_number_has_its_tolerance():
    old = [impact(1.0), impact(2.0, p_n=10.0)]
    assert told(old, [impact(1.0 + 9e-9), impact(2.0, p_n=10.0 + 9e-8)]) == []
    assert told(old, [impact(1.0 + 2e-8), old[1]])[0].startswith(
        "the impact a - b at t = 1 s: t was 1, is 1.00000002 s"
    )
    (what,) = told(old, [old[0], impact(2.0, p_n=10.0 + 2e-7)])
    assert what == "the impact a - b at t = 2 s: p_n was 10, is 10.0000002 N s (off by 2e-07, 2 x allowed)"


def test_what_comes_first_is_said_first_and_lanes_are_told_apart():
    old = [impact(3.0), impact(1.0, ("b", "c")), impact(2.0, lane=4)]
    lines = told(old, [impact(3.5), impact(1.5, ("b", "c"))])
    starts = ["the impact b - c at t = 1 s: t was 1, is 1.5", "the impact a - b at t = 2 s in lane 4 is missing"]
    starts.append("the impact a - b at t = 3 s: t was 3, is 3.5")
    assert [line[: len(start)] for line, start in zip(lines, starts, strict=True)] == starts


# -- sweeps and laws ----------------------------------------------------------------------------------------


def test_a_sweep_has_a_row_for_each_case(tmp_path):
    table = sweep(scene(), mu=FRICTIONS, dt=(1 / 240, 1 / 100), **RUN)
    assert len(table) == 6
    assert table.column("mu") == [*FRICTIONS] * 2
    assert table.column("impacts") == [2] * 6
    assert table.column("violated") == [""] * 6
    assert max(table.column("end off [m]")) < 1e-9
    # two bounces without friction take (1 - e^4) of the energy of the fall
    lost = table.column("energy lost [J]")
    assert lost[0] == pytest.approx(9.81 * (1 - 0.9**4), rel=1e-9)
    assert lost[0] < lost[1] == pytest.approx(lost[2])  # friction of 0.1 is enough to end its slip
    table.write_csv(tmp_path / "table.csv")
    assert (tmp_path / "table.csv").read_text().splitlines()[0].startswith("law,dt [s],e,mu,impacts")


def test_a_table_prints_in_columns():
    table = Table(("name", "x [m]"), (("a", 1.5), ("long", None)))
    assert str(table).splitlines() == ["name  x [m]", "a       1.5", "long"]
    assert list(table) == [{"name": "a", "x [m]": 1.5}, {"name": "long", "x [m]": None}]


def test_a_comparison_says_where_runs_part():
    compared = Comparison("ball", {"one": ball(0.1), "same": ball(0.1), "livelier": ball(0.1, 0.95)})
    rows = list(compared.table())
    assert [row["parts at impact"] for row in rows] == [None, None, 0]
    assert [row["by"] for row in rows] == ["", "", "ball"]
    assert rows[2]["end off [m]"] > 0.01
    assert rows[2]["energy lost [J]"] < rows[0]["energy lost [J]"]
    impacts = compared.impacts(5)
    assert len(impacts) == 2
    assert impacts.column("one: p_n [N s]")[0] == pytest.approx(1.9 * np.sqrt(2 * 9.81))


def test_laws_are_two_or_more():
    with pytest.raises(ValueError, match="give two or more, each once"):
        compare_laws("bouncing_ball", ("newton", "newton"))


# -- the page -------------------------------------------------------------------------------------------------


def test_the_page_has_the_most_changed_scene_first(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    for folder, restitution in ((old, 0.9), (new, 0.9 + 1e-6)):
        write_golden(event_log(ball(0.1)), folder / "a" / "same.jsonl")
        write_golden(event_log(ball(0.1, restitution)), folder / "b" / "little.jsonl")
    write_golden(event_log(ball(0.0)), old / "much.jsonl")
    write_recording(ball(0.4), new / "much.npz")
    write_golden(event_log(ball(0.1)), new / "fresh.jsonl")
    found = report(old, new, tmp_path / "page.html")
    assert [(c.name, c.verdict) for c in found] == [
        ("much", "changed"), ("b/little", "changed"), ("fresh", "new"), ("a/same", "same"),
    ]  # fmt: skip
    page = (tmp_path / "page.html").read_text()
    assert "<h1>3 of 4 scenes changed</h1>" in page
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in page
    assert page.count('src="data:image/svg+xml;base64,') == 2
    assert not re.search(r'(src|href)="(http|//|file)', page)


def test_a_page_needs_folders_with_logs(tmp_path):
    with pytest.raises(FileError, match="this is no folder"):
        report(tmp_path / "old", tmp_path, tmp_path / "page.html")
    (tmp_path / "old").mkdir()
    with pytest.raises(FileError, match="no event log"):
        report(tmp_path / "old", tmp_path / "old", tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()
