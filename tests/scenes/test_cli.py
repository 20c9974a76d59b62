"""The command line tells what is there, and what is wrong with what was typed."""

import numpy as np
import pytest
from typer.testing import CliRunner

from carom.scenes.cli import app
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


def test_run_prints_energies_and_writes_frames(tmp_path) -> None:
    out = tmp_path / "frames.npz"
    code, output = run("run", "pendulum", "--duration", "0.5", "--frame-dt", "0.1", "--out", str(out))
    assert code == 0
    rows = [[float(x) for x in line.split()] for line in output.splitlines()[1:7]]
    assert [row[0] for row in rows] == pytest.approx([0.0, 0.1, 0.2, 0.3, 0.4, 0.5])
    totals = [row[3] for row in rows]
    assert totals == pytest.approx([totals[0]] * 6, rel=1e-5)  # six digits are printed
    assert "pendulum: 6 frames, f64, exact" in output
    with np.load(out) as frames:
        assert frames["q"].shape == (6, 1)
        assert frames["q"].dtype == np.float64


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
