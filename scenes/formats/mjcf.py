"""MJCF files, MuJoCo's scenes, as the mujoco package compiles them. The only file of scenes that imports mujoco.

The reader takes the compiled model, in which defaults, includes, frames and angles are resolved. Names, order and
meaning of coordinates stay MuJoCo's: q is qpos, and v is qvel except for free joints, whose angular velocity comes
first and is in world axes.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection
from dataclasses import replace
from os import PathLike, fspath
from types import ModuleType
from typing import Any

import numpy as np

from ..compile import compile_scene
from ..compiling.check import SceneError
from ..spec import SceneSpec
from ..wording import list_names
from .errors import FileError
from .from_mjcf.compiled import Compiled
from .from_mjcf.contact import exclusions, read_contact
from .from_mjcf.ledger import Ledger
from .from_mjcf.left_out import KINDS, note_left_out
from .from_mjcf.links import read_links
from .from_mjcf.loops import read_loops
from .from_mjcf.motors import read_motors
from .from_mjcf.sensors import read_sensors
from .from_mjcf.shapes import shapes_of, statics_of
from .report import Imported, ImportReport

LINE = re.compile(r",? *line(?: number=| )(\d+)", re.IGNORECASE)
DEEP = 1e-4  # [m] overlaps that are reported: files are rounded


def import_mjcf(
    path: str | PathLike[str], *, drop: Collection[str] = (), keyframe: str | int | None = None
) -> Imported:
    """Import the scene of an MJCF file, with a report on everything in the file.

    drop: kinds of elements that Carom does not have, to be left out; without it, a file with such elements is a
    FileError that names them. "equality": those of balls, flexes and tendons, except fixed tendons of two joints, and
    curved ones; "tendon"; "actuator"; "gravcomp"; "fluid"; "armature" of free joints; "spring": those of free joints,
    and nonlinear ones; "sdf"; "flex"; "plugin"; "pair".
    keyframe: name or number (from 0) of the keyframe that the scene starts in; None: the file's initial pose.
    """
    path = fspath(path)
    unknown = [kind for kind in drop if kind not in KINDS] if not isinstance(drop, str) else [drop]
    if unknown:
        raise ValueError(f"drop has {unknown[0]!r}: give a list of some of {', '.join(KINDS)}")
    warned: list[str] = []
    file, ledger = _compile(path, keyframe, warned), Ledger(drop)
    for text in warned:
        ledger.note("taken", "the file, with a warning of MuJoCo's", "", " ".join(text.split()))
    contact, (drives, actuators) = read_contact(file, ledger), read_motors(file, ledger)
    links, frames = read_links(file, drives, lambda b, origin: shapes_of(file, b, origin, contact, ledger), ledger)
    statics, owners = statics_of(file, frames, contact, ledger)
    owners |= {b: [frames[b].owner] for b in range(file.m.nbody) if file.moves(b)}
    loops = read_loops(file, frames, ledger)
    sensors = read_sensors(file, frames, _kinds_of_sensors(path), len(contact.layers) < file.m.ngeom, ledger)
    excluded = exclusions(file, owners, ledger)
    note_left_out(file, ledger)
    if ledger.refused:
        kinds = ", ".join(repr(kind) for kind in ledger.refused)
        left = f"carom.import_mjcf(path, drop=[{kinds}]) leaves that out"
        raise FileError(path, f"it holds what Carom has nothing like; {'; '.join(ledger.refused.values())}: {left}")
    if file.m.nkey:
        said = (
            f"it starts in {keyframe!r}" if keyframe is not None else "import_mjcf(path, keyframe=name) starts in one"
        )
        ledger.note("ignored" if keyframe is None else "taken", f"keyframes: {file.m.nkey}", "", said)
    _note_overlaps(path, file, ledger)
    gravity = np.zeros(3) if "gravity" in file.off else file.m.opt.gravity
    scene = SceneSpec(gravity, links, statics, contact.rules, excluded, loops=loops, **sensors._asdict())
    if links:
        _check(path, scene)
    return Imported(scene, ImportReport(path, ledger.items(), actuators))


def _mujoco(path: str) -> ModuleType:
    try:
        import mujoco
    except ImportError as error:
        raise FileError(path, "MJCF is read with the package mujoco: pip install 'carom[io]'") from error
    return mujoco


def _kinds_of_sensors(path: str) -> dict[int, str]:
    kinds = _mujoco(path).mjtSensor.__members__
    return {int(number): name.removeprefix("mjSENS_").lower() for name, number in kinds.items()}


def _compile(path: str, keyframe: str | int | None, warned: list[str]) -> Compiled:
    """Compile a file.  warned: called with MuJoCo's warnings, those that Python would show too."""
    mujoco, before = _mujoco(path), _mujoco(path).get_mju_user_warning()
    mujoco.set_mju_user_warning(warned.append)  # otherwise they go to a log in the working directory
    try:
        with warnings.catch_warnings(record=True) as shown:
            warnings.simplefilter("always")
            if not path.lower().endswith((".xml", ".mjz", ".zip")):
                raise ValueError("MuJoCo reads only files whose name ends in .xml: rename it")
            spec = mujoco.MjSpec.from_file(path)
            spec.compiler.usethread = 0  # threads keep the memory that they took for meshes: 1 GB in hundreds of files
            m = spec.compile()
        warned += [str(w.message) for w in shown]
    except ValueError as error:
        message = " ".join(str(error).split())
        line = LINE.search(message)
        raise FileError(path, LINE.sub("", message), int(line[1]) if line else None) from error
    finally:
        mujoco.set_mju_user_warning(before)
    off, on = _set(mujoco.mjtDisableBit, m.opt.disableflags), _set(mujoco.mjtEnableBit, m.opt.enableflags)
    if keyframe is None:
        return Compiled(m, off, on, m.qpos0, np.zeros(m.nv), np.zeros(m.nu))
    names = [m.key(k).name for k in range(m.nkey)]
    by_number = isinstance(keyframe, int) or (keyframe.isdecimal() and keyframe not in names)  # text of a command line
    k = int(keyframe) if by_number else names.index(keyframe) if keyframe in names else -1
    if not 0 <= k < m.nkey:
        known = list_names(repr(name) if name else str(k) for k, name in enumerate(names)) or "none"
        raise FileError(path, f"there is no keyframe {keyframe!r}; it has {known}")
    mocap = m.body_mocapid >= 0
    which = m.body_mocapid[mocap]
    m.body_pos[mocap], m.body_quat[mocap] = m.key_mpos[k].reshape(-1, 3)[which], m.key_mquat[k].reshape(-1, 4)[which]
    return Compiled(m, off, on, m.key_qpos[k], m.key_qvel[k], m.key_ctrl[k])


def _check(path: str, scene: SceneSpec) -> None:
    """Check a scene by compile_scene, which also rejects MuJoCo's NaNs. The caller closes loops."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about meshes: the caller's own compile_scene gives them
            compile_scene(replace(scene, loops=()), overlaps="ignore")
    except SceneError as error:
        raise FileError(path, str(error)) from None


def _note_overlaps(path: str, file: Compiled, ledger: Ledger) -> None:
    mujoco = _mujoco(path)
    data = mujoco.MjData(file.m)
    data.qpos[:] = file.qpos
    mujoco.mj_kinematics(file.m, data)
    mujoco.mj_collision(file.m, data)
    why = "MuJoCo pushes apart what overlaps at the start, Carom keeps it from sinking: move it, or exclude the pair"
    for contact in data.contact:
        if contact.dist < -DEEP:
            names = " and ".join(file.name("body", file.m.geom_bodyid[g]) for g in contact.geom if g >= 0)
            ledger.note("approximated", "overlap", f"{names}, {-contact.dist:.2g} m", why)


def _set(bits: Any, flags: int) -> frozenset[str]:
    """Names of the flags that are set, as MJCF writes them."""
    members = bits.__members__.items()
    return frozenset(name[7:].lower() for name, bit in members if not name.startswith("mjN") and flags & int(bit))
