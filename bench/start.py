"""Start times: the time until a scene's first frame, the first time and the second, compared with XLA and peers.

Each figure is a separate process, which ends at the first frame. Cold: in an empty CAROM_CACHE; second: in the same
folder again. jax keeps no compiled programs, except for `carom run`, which requests it: these are in that folder too.
Python's bytecode is kept beside the sources, as it is if PYTHONDONTWRITEBYTECODE is not set (half a second per
process), and exists before the first figure. The child processes run this file too, and their imports count, so
imports are inside functions.
"""

from __future__ import annotations

import compileall
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
FLOORS = ("engine", "collision", "contact", "integrators", "scenes", "bench")
SCENES = ("bouncing_ball", "pool_break", "stack", "ragdoll")
COMMANDS = ("bouncing_ball", "pool_break")  # scenes that `carom run` plays
BOXES, SPARE = "stack", {"box0": 4}  # scene and pool of the live world
FRAME = 1 / 60  # [s]
LIMIT = 420.0  # [s] after which a start is stopped: XLA's take minutes if the machine is busy
LINE = 2.0  # [s] after which a start prints a line if stderr is no terminal
COLUMNS = ("cold", "second", "XLA, cold", "MuJoCo", "rapier3d")


class Spent(NamedTuple):
    """Times of a process.  cpu: user and system time [s].  wall: wall-clock time [s]."""

    cpu: float
    wall: float


def suite(scenes: str, xla: bool, peers: bool) -> int:
    """Print a line for each scene with this text in its name. The exit status says whether all processes ran."""
    columns = [x for x in COLUMNS if (xla or "XLA" not in x) and (peers or x not in ("MuJoCo", "rapier3d"))]
    rows: list[tuple[str, str, str]] = [("first frame", "rollout", name) for name in SCENES]
    rows += [("carom run", "command", name) for name in COMMANDS] + [("carom.Live, pool", "live", BOXES)]
    rows = [row for row in rows if scenes in row[2]]
    if not rows:
        raise SystemExit(f"no scene has {scenes!r} in its name; there are {', '.join(SCENES)}")
    for floor in FLOORS:
        compileall.compile_dir(ROOT / floor, quiet=2)
    print(f"CPU seconds (seconds by the clock); load average {os.getloadavg()[0]:.1f}")
    print(f"{'':32}", *(f"{x:>15}" for x in columns), flush=True)
    well = True
    for title, way, name in rows:
        spent = _row(way, name, columns)
        cells = ["" if x not in spent else _cell(spent[x]) for x in columns]
        print(f"{title + ' ' + name:>32}", *(f"{x:>15}" for x in cells), flush=True)
        well &= all(x is not None for x in spent.values())
    return 0 if well else 1


def _row(way: str, name: str, columns: Sequence[str]) -> dict[str, Spent | None]:
    """Return the value of each column that this row has."""
    spent: dict[str, Spent | None] = {}
    with tempfile.TemporaryDirectory() as folder:
        for column in columns[:2]:
            spent[column] = time_process(f"{name}, {column}", [way, name], folder)
        if "XLA, cold" in columns and way != "command":
            spent["XLA, cold"] = time_process(f"{name}, XLA", [way, name, "xla"], folder)
        if "MuJoCo" in columns and way == "rollout":
            for peer, file in _peer_files(name, Path(folder)).items():
                spent[peer] = time_process(f"{name}, {peer}", [peer, str(file)], folder)
    return spent


def time_process(what: str, arguments: Sequence[str], folder: str) -> Spent | None:
    """Return the time of a process of this file; None if it failed, infinite if it was stopped at LIMIT."""
    surroundings = {**os.environ, "CAROM_CACHE": folder, "XDG_CACHE_HOME": folder, "JAX_PLATFORMS": "cpu"}
    for name in ("JAX_COMPILATION_CACHE_DIR", "PYTHONDONTWRITEBYTECODE"):
        surroundings.pop(name, None)
    surroundings["PYTHONPATH"] = os.pathsep.join([str(ROOT / ".dev"), str(ROOT), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "bench.start", *arguments]
    with tempfile.TemporaryFile() as output, tempfile.TemporaryDirectory() as scratch:
        begin = time.perf_counter()
        child = subprocess.Popen(command, cwd=scratch, env=surroundings, stdout=output, stderr=output)
        usage = _wait(child, what, begin)
        wall = time.perf_counter() - begin
        if usage is None:
            return Spent(float("inf"), wall)
        if child.returncode:
            output.seek(0)
            print(f"{what} failed:\n{output.read().decode()[-2000:]}", file=sys.stderr)
            return None
    return Spent(usage.ru_utime + usage.ru_stime, wall)


def _wait(child: subprocess.Popen[bytes], what: str, begin: float) -> Any:
    """Wait, and return the resources that the process used; None if it was stopped. Its time is shown on stderr."""
    said, terminal = 0.0, sys.stderr.isatty()
    while True:
        pid, status, usage = os.wait4(child.pid, os.WNOHANG)
        taken = time.perf_counter() - begin
        if terminal and (pid or taken > said + 1):
            print("\r\033[K" if pid else f"\r{what}: {taken:.0f} s", end="", file=sys.stderr, flush=True)
            said = taken
        elif not terminal and not said and taken > LINE:
            print(f"{what} ...", file=sys.stderr, flush=True)
            said = taken
        if pid:
            child.returncode = os.waitstatus_to_exitcode(status)
            return usage
        if taken > LIMIT:
            child.kill()
            child.wait()
            return None
        time.sleep(0.005)


def _cell(spent: Spent | None) -> str:
    if spent is None:
        return "failed"
    if spent.cpu == float("inf"):
        return f"(> {spent.wall:.0f})"
    return f"{spent.cpu:.2f} ({spent.wall:.2f})"


def _peer_files(name: str, folder: Path) -> dict[str, Path]:
    """Write the scene as a file for each peer: MuJoCo's XML, which it compiles; rapier3d's snapshot."""
    import numpy as np

    import carom
    from carom.scenes.library.registry import library_scene

    from .contact_cases import STEP
    from .peers import MujocoWorld
    from .rapier_world import RapierWorld

    model, state = carom.compile_scene(library_scene(name))
    files = {"MuJoCo": folder / "scene.xml", "rapier3d": folder / "scene.rapier"}
    files["MuJoCo"].write_text(MujocoWorld(model, STEP).xml)
    world = RapierWorld(model, STEP)
    world.start(np.asarray(state.q), np.asarray(state.v))
    files["rapier3d"].write_bytes(world.copy)
    return files


# -- work of a child process -----------------------------------------------------------------------------------------


def _rollout(name: str) -> None:
    import jax

    jax.config.update("jax_enable_x64", True)
    import carom
    from carom.scenes.library.registry import library_entry

    entry = library_entry(name)
    keywords = {**entry.play.keywords, "duration": FRAME, "frame_dt": FRAME}
    jax.block_until_ready(carom.rollout(*carom.compile_scene(entry.build()), **keywords).q)


def _command(name: str) -> None:
    from carom.scenes.cli import main

    sys.argv = ["carom", "run", name, "--no-page", "--no-plot"]
    main()


def _live(name: str) -> None:
    import carom

    carom.Live(name, pool=SPARE, dtype="float32").step()


def _mujoco(path: str) -> None:
    import mujoco as module

    mujoco: Any = module  # its stubs lack the compiled names
    model = mujoco.MjModel.from_xml_path(path)
    mujoco.mj_step(model, mujoco.MjData(model))


def _rapier(path: str) -> None:
    import rapier3d

    rapier3d.PhysicsWorld.restore(Path(path).read_bytes()).step()


WAYS = {"rollout": _rollout, "command": _command, "live": _live, "MuJoCo": _mujoco, "rapier3d": _rapier}


def _run(way: str, name: str, xla: str = "") -> None:
    if xla:
        from .timing import left_to_xla

        with left_to_xla():
            WAYS[way](name)
    else:
        WAYS[way](name)


if __name__ == "__main__":
    try:
        _run(*sys.argv[1:])
    except SystemExit as ended:  # from a command
        if ended.code:
            raise
    sys.stdout.flush()
    os._exit(0)  # the frame is done: Python's cleanup does not count
