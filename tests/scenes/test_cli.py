"""The command line tells what is there, and what is wrong with what was typed."""

from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from carom.collision.shapes import Mesh, Sphere
from carom.scenes.builder import SceneBuilder
from carom.scenes.cli import app
from carom.scenes.compile import compile_scene
from carom.scenes.library.balls import bouncing_ball
from carom.scenes.library.facts import Entry, Fact, Play
from carom.scenes.library.registry import SCENES


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "200"})
    return result.exit_code, result.output


def test_list_has_one_line_for_each_scene() -> None:
    code, output = run("list")
    lines = [line.split(maxsplit=1) for line in output.splitlines()]
    assert code == 0
    assert [(name, text.strip()) for name, text in lines] == [(name, e.description) for name, e in SCENES.items()]


@pytest.mark.parametrize("scene", SCENES)
def test_info_describes_every_scene(scene: str) -> None:
    code, output = run("info", scene)
    assert code == 0
    assert output.startswith(f"{scene}: ")


def test_info_counts_what_the_scene_has() -> None:
    code, output = run("info", "humanoid")
    assert code == 0
    assert "15 links, nq 36, nv 30" in output
    assert "depth 0: 1 floating" in output
    assert output.splitlines()[2].split() == ["world", "1", "plane"]


def table_of_pairs(output: str) -> tuple[int, list[list[str]]]:
    """How many pairs `carom info` counts, and its table of them, cells two blanks or more apart."""
    lines = output.splitlines()
    at = next(i for i, line in enumerate(lines) if line.endswith(" pairs of shapes may touch"))
    rows = [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in lines[at + 1 :] if line.strip()]
    return int(lines[at].split()[0]), rows


def test_info_tells_which_kinds_may_touch_and_in_how_many_points() -> None:
    _, output = run("info", "humanoid")
    count, (header, *rows) = table_of_pairs(output)
    t = compile_scene(SCENES["humanoid"].build())[0].topology
    assert count == len(t.pairs) == sum(int(row[1]) for row in rows)
    assert header == ["kinds", "pairs", "looked at", "points a pair"]
    told = {frozenset(row[0].split(" - ")): int(row[1]) for row in rows}
    want = [frozenset(t.shape_kinds[shape] for shape in pair) for pair in t.pairs]
    assert told == {kinds: want.count(kinds) for kinds in set(want)}
    assert {row[2] for row in rows} == {"every pair"}
    assert ["plane - sphere", "1", "every pair", "up to 1"] in rows
    assert ["box - box", "14", "every pair", "up to 4"] in rows


def test_info_tells_for_how_many_near_pairs_there_is_room() -> None:
    _, output = run("info", "free_bodies")
    assert table_of_pairs(output) == (
        1225,
        [["kinds", "pairs", "looked at", "points a pair"], ["box - box", "1225", "up to 800 near ones", "up to 4"]],
    )


def test_info_tells_what_the_device_cannot_detect(monkeypatch: pytest.MonkeyPatch) -> None:
    corners = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
    faces = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
    b = SceneBuilder()
    b.add_body("stone", [Mesh((corners, faces), convex="none")])
    b.add_body("ball", [Sphere(0.1)])
    monkeypatch.setitem(SCENES, "stone", Entry(b.build, "a mesh and a ball"))
    _, output = run("info", "stone")
    assert table_of_pairs(output)[1][1] == ["sphere - mesh", "1", "every pair", "by the FCL backend only"]


def test_info_has_no_table_where_nothing_may_touch() -> None:
    _, output = run("info", "babyboot")
    assert table_of_pairs(output) == (0, [])


def test_run_prints_energies_and_writes_frames(tmp_path) -> None:
    out = tmp_path / "frames.npz"
    code, output = run("run", "pendulum", "--duration", "0.5", "--frame-dt", "0.1", "--out", str(out))
    assert code == 0
    rows = [[float(x) for x in line.split()] for line in output.splitlines()[1:7]]
    assert [row[0] for row in rows] == pytest.approx([0.0, 0.1, 0.2, 0.3, 0.4, 0.5])
    totals = [row[3] for row in rows]
    assert totals == pytest.approx([totals[0]] * 6, rel=1e-5)  # six digits are printed
    assert "0 impacts; " in output
    assert "pendulum: 6 frames, f64, exact" in output
    with np.load(out) as frames:
        assert frames["q"].shape == (6, 1)
        assert frames["q"].dtype == np.float64


BOUNCES = Play(
    (
        Fact("time of impact 0 [s]", (2 / 9.81) ** 0.5, 1e-9, lambda p: p.event("t")[0], "1.1"),
        Fact("time of impact 1 [s]", 0.7, 0.1, lambda p: p.event("t")[1]),
    ),
    duration=10.0,  # as the library's bouncing_ball: one compiled program for all
)


def test_run_and_check_tell_of_impacts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SCENES, "bounces", Entry(bouncing_ball, "a fall", (BOUNCES,)))
    code, output = run("run", "bounces")
    assert code == 0
    assert "88 impacts, from 0.451524 to 8.57" in output
    assert "bounces: 601 frames, f64, exact" in output

    code, output = run("check", "bounces")
    assert code == 1
    lines = output.splitlines()
    assert [line.split()[0] for line in lines[2:5]] == ["ok", "FAILS", "ok"]
    assert lines[-1] == "2 of 3 facts hold in 1 scenes"

    held = replace(BOUNCES, facts=BOUNCES.facts[:1])
    monkeypatch.setitem(SCENES, "bounces", Entry(bouncing_ball, "a fall", (held,)))
    code, output = run("check", "bounces", "pendulum")
    assert code == 0
    assert "pendulum promises nothing" in output
    assert output.splitlines()[-1] == "2 of 2 facts hold in 2 scenes"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name some scenes, or give --all"),
        (("pendulum", "--all"), "name some scenes, or give --all"),
        (("pendulm",), "did you mean 'pendulum'?"),
        (("pendulum", "--dtype", "f16"), "'f16' is unknown: give f32 or f64"),
    ],
)
def test_check_says_what_is_wrong(arguments: tuple[str, ...], message: str) -> None:
    code, output = run("check", *arguments)
    assert code == 2
    assert message in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--scheme", "euler"), "scheme 'euler' is unknown; it must be one of exact, rk4"),
        (("--dtype", "f16"), "'f16' is unknown: give f32 or f64"),
        (("--duration", "-1"), "duration is -1.0; it must be a positive number of seconds"),
    ],
)
def test_run_says_what_is_wrong(arguments: tuple[str, ...], message: str) -> None:
    code, output = run("run", "pendulum", *arguments)
    assert code == 2
    assert message in output


def test_info_suggests_a_name() -> None:
    code, output = run("info", "humanoit")
    assert code == 2
    assert "no scene named 'humanoit': did you mean 'humanoid'?" in output
