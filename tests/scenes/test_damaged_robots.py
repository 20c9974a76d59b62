"""Robots' files, damaged at random: each is imported or refused with a reason, soon; no other exception, no crash.

`-s` prints the counts.
"""

import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import jax
import numpy as np
import pytest

from carom.scenes.compile import compile_scene
from carom.scenes.formats.errors import FileError
from carom.scenes.formats.mjcf import import_mjcf
from carom.scenes.formats.report import Imported
from carom.scenes.formats.urdf import import_urdf
from carom.tests.oracles.mutations import mutated
from carom.tests.scenes import test_mjcf, test_urdf
from carom.tests.scenes.test_import_cost import chain

LONGEST = 10.0  # [s] of a file, by the process's clock
LONGEST_MESSAGE = 3000
LEAST = 0.05  # of the files: how many must be imported, and how many refused, for the damages to mean something

URDF = (
    chain(4, "continuous", test_urdf.SHAPES),
    test_urdf.EVERYTHING,
    '<robot name="r">' + test_urdf.link("a") + test_urdf.link("b") + test_urdf.HINGE + "</robot>",
)
MJCF = (test_mjcf.TREE, test_mjcf.CROWD, test_mjcf.ACTUATED, test_mjcf.SHAPES, test_mjcf.CLOSED)


def outcome(read: Callable[[Path], Imported], path: Path) -> str:
    started, result = time.process_time(), "imported"
    try:
        scene = replace(read(path).scene, loops=())  # whether they close is not the file's reader's to say
        model, state = compile_scene(scene, overlaps="ignore")
        if not all(np.isfinite(x).all() for x in jax.tree.leaves((model.mass, model.inertia, model.points, state))):
            result = "imported with numbers that are none"
    except FileError as error:
        told = str(error).startswith(str(path)) and len(str(error)) < LONGEST_MESSAGE
        result = "refused" if told else "refused without a message"
    return result if time.process_time() - started < LONGEST else "too slow"


def counts(tmp_path: Path, seeds: tuple[str, ...], readers: tuple[Any, ...], files: int) -> Counter[str]:
    found: Counter[str] = Counter(tried=files)
    path = tmp_path / "robot.xml"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k in range(files):
            random = Random(k)
            text = mutated(random.choice(seeds), random)
            path.write_bytes(text.encode("utf-8", "surrogatepass"))
            try:
                found[outcome(random.choice(readers), path)] += 1
            except Exception as error:
                kept = tmp_path / f"file{k}.xml"
                kept.write_bytes(path.read_bytes())
                print(f"file {k}: {type(error).__name__}: {str(error)[:300]}")
                found["crashed"] += 1
    print(dict(found))
    return found


def sound(found: Counter[str]) -> None:
    assert (found["crashed"], found["too slow"]) == (0, 0)
    assert found["imported"] + found["refused"] == found["tried"]
    assert min(found["imported"], found["refused"]) > LEAST * found["tried"]


READ_URDF = (
    import_urdf,
    lambda path: import_urdf(path, lenient=True, inertias="nearest"),
    lambda path: import_urdf(path, floating=True, ground=True, mimic="free", lenient=True),
)
READ_MJCF = (import_mjcf, lambda path: import_mjcf(path, drop=test_mjcf.KINDS))


def test_some_damaged_urdf_files(tmp_path):
    sound(counts(tmp_path, URDF, READ_URDF, 150))


def test_some_damaged_mjcf_files(tmp_path):
    sound(counts(tmp_path, MJCF, READ_MJCF, 100))


@pytest.mark.slow
def test_many_damaged_urdf_files(tmp_path):
    sound(counts(tmp_path, URDF, READ_URDF, 3000))


@pytest.mark.slow
def test_many_damaged_mjcf_files(tmp_path):
    sound(counts(tmp_path, MJCF, READ_MJCF, 2000))
