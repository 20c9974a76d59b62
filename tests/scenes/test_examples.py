"""The example programs run to their end, and do what they say."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


def run(name: str, *arguments: str) -> str:
    quiet = {"SDL_VIDEODRIVER": "dummy", "SDL_AUDIODRIVER": "dummy"}
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    done = subprocess.run(command, env=os.environ | quiet, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_two_peers_end_in_the_same_world() -> None:
    said = run("netcode.py", "--frames", "60", "--scene", "bouncing_ball", "--bodies", "ball", "ball")
    assert "both are in the same world" in said
    assert int(re.findall(r"(\d+) rollbacks", said)[0]) > 0


@pytest.mark.exhaustive
def test_the_game_plays_by_itself_and_draws(tmp_path: Path) -> None:
    pytest.importorskip("pygame")
    picture = tmp_path / "marbles.png"
    said = run("game.py", "--frames", "100", "--screenshot", str(picture))
    assert "100 frames" in said
    assert picture.stat().st_size > 2000


@pytest.mark.exhaustive
def test_the_car_drives_by_itself_and_draws(tmp_path: Path) -> None:
    pytest.importorskip("pygame")
    picture = tmp_path / "car.png"
    said = run("car.py", "--frames", "240", "--screenshot", str(picture))
    told = re.findall(r"-?\d+\.\d+", said[said.index("after") :])
    _, x, y, z, speed = map(float, told)
    assert abs(x) + abs(y) > 5
    assert y > 1, "it steered to the left"
    assert -2 < z < 3
    assert 1 < speed < 22 * 0.35
    assert picture.stat().st_size > 2000


@pytest.mark.exhaustive
def test_two_players_play_in_the_arena(tmp_path: Path) -> None:
    pytest.importorskip("pygame")
    picture = tmp_path / "arena.png"
    said = run("arena.py", "--frames", "900", "--screenshot", str(picture))
    scores = [int(x) for x in re.findall(r"'(?:red|blue)': (\d+)", said)]
    assert sum(scores) >= 2, "both find their way through the door"
    assert int(re.findall(r"(\d+) hits", said)[0]) > 0
    assert picture.stat().st_size > 2000


@pytest.mark.exhaustive
def test_the_ragdoll_is_lifted_and_falls(tmp_path: Path) -> None:
    pytest.importorskip("pygame")
    picture = tmp_path / "ragdoll.png"
    heights = []
    for frames in ("150", "300"):
        said = run("ragdoll.py", "--frames", frames, "--screenshot", str(picture))
        heights.append(float(re.findall(r"([\d.]+) m high", said)[0]))
    assert heights[0] > 1.0 > 0.5 > heights[1]
    assert picture.stat().st_size > 2000
