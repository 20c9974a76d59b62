"""The command line tells what is there, and what is wrong with what was typed."""

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


def test_info_suggests_a_name() -> None:
    code, output = run("info", "humanoit")
    assert code == 2
    assert "no scene named 'humanoit': did you mean 'humanoid'?" in output
