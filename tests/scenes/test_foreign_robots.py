"""Robots that others have made, all of the URDF and MJCF files below the folders in CAROM_ROBOTS (like a PATH).

Each is imported and moves as in Pinocchio or MuJoCo, or is refused with a reason, soon. `-s` prints the outcomes.
"""

import os
import re
import resource
import time
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from carom.scenes.compile import compile_scene
from carom.scenes.compiling.check import SceneError
from carom.scenes.formats.errors import FileError
from carom.scenes.formats.mjcf import import_mjcf
from carom.scenes.formats.urdf import import_urdf

LONGEST = 10.0  # [s] of a file, to read and to compile
MEMORY = 2e9  # bytes, of all of them
TOLERANCE = 1e-9
FOLDERS = [Path(x) for x in os.environ.get("CAROM_ROBOTS", "").split(os.pathsep) if x]


def files(root: str, ending: str) -> list[Path]:
    """Those whose outermost element has this name."""
    found = []
    for path in sorted(path for folder in FOLDERS for path in folder.glob(f"**/*{ending}")):
        try:
            found += [path] if next(ElementTree.iterparse(path, ["start"]))[1].tag == root else []
        except ElementTree.ParseError:  # say so, as a user's file that is none
            found.append(path)
    return found


def read(path: Path) -> tuple[list[str], Any]:
    """As it is, or without what Carom says it has nothing like; what it is without, and the model."""
    dropped: list[str] = []
    if path.suffix == ".urdf":
        imported = import_urdf(path)
    else:
        try:
            imported = import_mjcf(path)
        except FileError as error:
            kinds = re.search(r"drop=\[(.*?)\]", str(error))
            if kinds is None:
                raise
            dropped = re.findall(r"'(\w+)'", kinds[1])
            imported = import_mjcf(path, drop=dropped)
    return dropped, compile_scene(imported.scene, overlaps="ignore")[0]


def difference(path: Path, dropped: list[str], model: Any) -> float:
    """From the other engine at a random state; NaN where it does not read the file, or reads another model."""
    if path.suffix == ".urdf":
        from carom.tests.scenes.test_urdf import differences

        try:
            return max(differences(path)[0].values())
        except ValueError:
            return np.nan
    import mujoco  # pyright: ignore[reportMissingImports]

    from carom.tests.oracles.mjcf_answers import errors

    m = mujoco.MjModel.from_xml_path(str(path))  # pyright: ignore[reportAttributeAccessIssue]
    if (m.nq, m.nv) != (model.topology.nq, model.topology.nv):
        return np.nan
    found = errors(m, model, np.random.default_rng(0))
    otherwise = {"passive"} if dropped else set()
    otherwise |= {"inertia"} if "armature" in dropped else set()
    return max(error for name, error in found.items() if name not in otherwise)


EACH = [("robot", ".urdf"), ("mujoco", ".xml")]
pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.skipif(not FOLDERS, reason="CAROM_ROBOTS names no folders"),
    pytest.mark.filterwarnings("ignore"),
]


@pytest.mark.parametrize(("root", "ending"), EACH)
def test_each_is_imported_or_refused_with_a_reason_soon(root: str, ending: str) -> None:
    count: Counter[str] = Counter()
    late, slowest = [], 0.0
    for path in files(root, ending):
        started = time.perf_counter()
        try:
            read(path)
            count["imported"] += 1
        except (FileError, SceneError) as error:
            count["refused"] += 1
            print(f"{path}: refused: {str(error).removeprefix(str(path))[:200]}")
        seconds = time.perf_counter() - started
        slowest = max(slowest, seconds)
        if seconds > LONGEST:
            late.append(f"{path}: {seconds:.1f} s")
    memory = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"{dict(count)}, the slowest {slowest:.1f} s, {memory / 1e9:.2f} GB")
    assert not late
    assert memory < MEMORY


@pytest.mark.parametrize(("root", "ending"), EACH)
def test_what_is_imported_moves_as_in_the_other_engine(root: str, ending: str) -> None:
    count: Counter[str] = Counter()
    others = []
    for path in files(root, ending):
        try:
            error = difference(path, *read(path))
        except (FileError, SceneError):
            continue
        count["equal"] += error < TOLERANCE
        if np.isnan(error):
            count["not compared"] += 1
            print(f"{path}: not compared")
        elif error >= TOLERANCE:
            others.append(f"{path}: by {error:.0e}")
    print(dict(count))
    assert not others
    assert not count or count["equal"] > count["not compared"]
