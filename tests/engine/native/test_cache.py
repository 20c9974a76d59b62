"""Machine code on disk: what is whole and ours is found again, and nothing else is run."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from carom.engine.native import cache

KEY = "a" * 64
WHAT: dict[str, Any] = {"grain": 3}
CODE = bytes(range(256))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CAROM_CACHE", str(tmp_path / "native"))
    return tmp_path / "native"


def test_what_was_stored_is_found(place: Path) -> None:
    assert cache.find(KEY) is None
    cache.store(KEY, WHAT, CODE)
    assert cache.find(KEY) == (WHAT, CODE)
    assert [path.name for path in place.iterdir()] == [KEY]


@pytest.mark.parametrize("cut", [0, 10, 40, 50, 100])
def test_a_file_that_was_cut_off_is_not_run(place: Path, cut: int) -> None:
    cache.store(KEY, WHAT, CODE)
    data = (place / KEY).read_bytes()
    (place / KEY).write_bytes(data[:cut])
    assert cache.find(KEY) is None


@pytest.mark.parametrize("at", [3, 20, 50, -1])
def test_a_file_that_was_changed_is_not_run(place: Path, at: int) -> None:
    cache.store(KEY, WHAT, CODE)
    data = bytearray((place / KEY).read_bytes())
    data[at] ^= 1
    (place / KEY).write_bytes(data)
    assert cache.find(KEY) is None


def test_a_file_under_another_name_is_not_run(place: Path) -> None:
    cache.store(KEY, WHAT, CODE)
    (place / KEY).rename(place / ("b" * 64))
    assert cache.find("b" * 64) is None


def test_a_file_that_others_may_write_is_not_run(place: Path) -> None:
    cache.store(KEY, WHAT, CODE)
    (place / KEY).chmod(0o666)
    assert cache.find(KEY) is None


def test_those_used_longest_ago_go(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MOST", 1200)
    for k in range(4):
        cache.store(f"{k:064}", WHAT, CODE)
        os.utime(place / f"{k:064}", (k, k))
    assert cache.find(f"{0:064}") is None
    assert cache.find(f"{3:064}") == (WHAT, CODE)
    assert sum(path.stat().st_size for path in place.iterdir()) <= 1200


def test_without_a_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAROM_CACHE", "off")
    cache.store(KEY, WHAT, CODE)
    assert cache.find(KEY) is None


def test_a_folder_that_cannot_be_made_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CAROM_CACHE", str(tmp_path / "file" / "native"))
    cache.store(KEY, WHAT, CODE)
    assert cache.find(KEY) is None


RUN = """
import carom, jax
from carom.engine.native.stages import watch_stages
jax.config.update("jax_enable_x64", True)
b = carom.SceneBuilder()
b.add_plane(restitution=0.9)
b.add_body("ball", [carom.Sphere(0.1)], mass=1.0, position=(0, 0, 1.1), restitution=0.9)
stages = []
with watch_stages(lambda program, stage, seconds: stages.append(stage)):
    model, state = carom.compile_scene(b)
    result = carom.rollout(model, state, duration=1.0)
print(sorted(set(stages)), result.q[-1, 2], int(result.events.count))
"""


def test_a_second_process_neither_traces_nor_compiles(place: Path) -> None:
    """And has the same numbers."""
    first, second = (
        subprocess.run([sys.executable, "-c", RUN], capture_output=True, text=True, check=True).stdout.strip()
        for _ in range(2)
    )
    stages, numbers = first.split("]")
    assert stages == "['making machine code', 'tracing', 'translating'"
    assert second == f"[]{numbers}"
