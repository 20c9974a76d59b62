"""The code of docs/export.md for Godot and Unity compiles, and moves the nodes of a game as `carom.Live` moves bodies:
their classes are small stand-ins (`glue/`), and what is computed is Python's, in the axes of the engine."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import carom
from carom.scenes.live.world import Live
from carom.tests.oracles.exported import World

ROOT, GLUE, FRAMES, DT = Path(__file__).parents[2], Path(__file__).with_name("glue"), 10, 1 / 60
GODOT = np.array([[1, 0, 0], [0, 0, 1], [0, -1, 0]])  # from our axes: y is up
UNITY = np.array([[1, 0, 0], [0, 0, 1], [0, 1, 0]])  # left-handed as well


def needs(*programs: str) -> pytest.MarkDecorator:
    missing = [name for name in programs if shutil.which(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"needs {missing}")


def block(language: str) -> str:
    page = (ROOT / "docs" / "export.md").read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.M | re.S)[0]


@pytest.fixture
def live() -> Live:
    """The world of the page, with a box that is rotated about all axes."""
    exec(block("python").partition("world =")[0], names := {})
    scene: Any = names["b"]
    scene.add_body("box", [carom.Box((0.1, 0.1, 0.1))], mass=1.0, position=(5, 0, 3), quaternion=(0.4, 0.2, 0.8, 0.4))
    return Live(scene, dtype="float32", warm=False)


def rotation(quaternion: np.ndarray) -> np.ndarray:
    """Of a unit quaternion (x, y, z, w)."""
    x, y, z, w = quaternion
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + 2 * w * cross + 2 * cross @ cross


def check(said: str, live: Live, axes: np.ndarray) -> None:
    """The lines of a program are the poses of the bodies in those axes."""
    rows = np.array([line.split() for line in said.splitlines()], float)
    for name, row in zip(("ball", "door", "box"), rows, strict=True):
        x, y, z, w, *xyz = np.asarray(live.pose(name))
        np.testing.assert_allclose(row[:3], axes @ [x, y, z], atol=1e-6)
        np.testing.assert_allclose(rotation(row[3:]), axes @ rotation(np.array([*xyz, w])) @ axes.T, atol=1e-6)
    assert np.abs(rows[0, :3] - axes @ [0, 0, 1]).min() > 1e-2  # the ball has moved along each axis


@pytest.mark.exhaustive
@needs("gcc", "g++")
def test_godot(live: Live, tmp_path: Path) -> None:
    World(live, tmp_path, name="room").close()
    (tmp_path / "room.hpp").write_text(block("cpp"))
    here = f"-I{tmp_path}", f"-I{GLUE}"
    command = "g++", "-Wall", "-Wextra", "-Werror", *here, GLUE / "godot.cpp", tmp_path / "libroom.a"
    subprocess.run([*command, "-o", tmp_path / "godot"], check=True)
    said = subprocess.run([tmp_path / "godot"], check=True, capture_output=True, text=True).stdout
    for _ in range(FRAMES):
        live.apply_force("ball", (1, -3, 2))
        live.step(DT)
    check(said, live, GODOT)


@pytest.mark.exhaustive
@needs("gcc", "mcs", "mono")
def test_unity(live: Live, tmp_path: Path) -> None:
    World(live, tmp_path, name="room").close()
    (tmp_path / "room.so").rename(tmp_path / "libroom.so")
    (tmp_path / "room.cs").write_text(block("cs"))
    subprocess.run(["mcs", "-out:game.exe", "room.cs", GLUE / "unity.cs"], check=True, cwd=tmp_path)
    said = subprocess.run(["mono", "game.exe"], check=True, capture_output=True, text=True, cwd=tmp_path).stdout
    live.apply_impulse("ball", (1, 3, 2))
    for _ in range(FRAMES):
        live.step(DT)
    check(said, live, UNITY)
