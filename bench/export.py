"""Worlds without Python: time and size of the export, its start and frame times, and its hash against Python's, in C
and in a browser. Random play (`play.c`) is checked by valgrind and gcc's sanitizers."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from time import perf_counter

from carom.scenes.export.library import export_library
from carom.scenes.export.page import export_page
from carom.scenes.live.world import Live
from carom.tests.oracles import aarch64
from carom.tests.oracles.exported import COMPILER, everything
from carom.tests.scenes.browser import BROWSER, LONG, chromium, said

ALL = "everything"  # a world that has all functions
SCENES = ("pool_break", "stack", "ragdoll", ALL)
FRAMES = 300  # frames of 1/60 s: five seconds
PLAY = Path(__file__).with_name("play.c")
SANITIZERS = "-fsanitize=address,undefined", "-fno-sanitize-recover=all"
SEED = 7


def suite(scenes: list[str], dtype: str = "f32", checked: int = 0) -> int:
    """Print a line for each scene. The exit status says whether all hashes are Python's and nothing was found.

    checked: frames of random play with sanitizers; valgrind runs a hundredth as many.
    """
    print(f"{dtype}, {FRAMES} frames of 1/60 s; export in seconds, start and frames in milliseconds, size in megabytes")
    print(
        f"{'scene':>12} {'target':>14}", *(f"{x:>8}" for x in ("export", "size", "start", "frame", "longest")), " hash"
    )
    fine = True
    for name in scenes:
        live = everything(f"float{dtype[1:]}") if name == ALL else Live(name, dtype=f"float{dtype[1:]}", warm=False)
        for _ in range(FRAMES):
            live.step()
        print(f"{name:>12} {'Python':>14}", *(f"{'':8}",) * 5, live.hash())
        ways = [("x86_64-linux", [COMPILER], [])]
        if not aarch64.missing():
            ways.append(("aarch64-linux", [aarch64.COMPILER, "-static"], [aarch64.EMULATOR]))
        for target, compiler, runner in ways:
            with tempfile.TemporaryDirectory() as folder:
                begin = perf_counter()
                export_library(live, folder, name=name, targets=[target])
                took, size = perf_counter() - begin, (Path(folder) / f"lib{name}.a").stat().st_size / 1e6
                said = _play(Path(folder), name, compiler, runner, FRAMES, 0)
                start, frame, longest = re.findall(r"([\d.]+) ms", said)
                fine &= (same := said.split()[2].rstrip(":")) == live.hash()
                times = (start, frame, longest) if not runner else ("emulated", "", "")
                print(
                    f"{name:>12} {target:>14} {took:8.1f} {size:8.2f}",
                    *(f"{x:>8}" for x in times),
                    f" {same}",
                    flush=True,
                )
        if BROWSER is not None:
            fine &= _in_browser(live, name)
        if checked:
            fine &= _check(live, name, checked)
    return 0 if fine else 1


def _in_browser(live: Live, name: str) -> bool:
    """Print the line of the world's page, and return whether its hash is Python's."""
    with tempfile.TemporaryDirectory() as folder:
        page, begin = Path(folder) / "page.html", perf_counter()
        export_page(live, page)
        took, size = perf_counter() - begin, page.stat().st_size / 1e6
        text = chromium(Path(folder), f"{page.as_uri()}#paused&frames={FRAMES}", "--dump-dom", milliseconds=LONG)
    same = said(text, "state")["hash"]
    print(f"{name:>12} {'wasm, Chromium':>14} {took:8.1f} {size:8.2f}", *(f"{'':8}",) * 3, f" {same}", flush=True)
    return same == live.hash()


def _check(live: Live, name: str, frames: int) -> bool:
    """Check random play. valgrind 3.19 does not know all instructions of AVX, so code is for processors without it."""
    with tempfile.TemporaryDirectory() as folder:
        export_library(live, folder, name=name, cpu="x86-64-v2")
        ways = {"sanitizers": ([COMPILER, *SANITIZERS], [], frames)}
        if shutil.which("valgrind"):
            ways["valgrind"] = [COMPILER], ["valgrind", "-q", "--error-exitcode=9"], frames // 100
        for way, (compiler, runner, count) in ways.items():
            print(f"{name:>12} {way:>14} plays {count} frames", flush=True)
            try:
                said = _play(Path(folder), name, compiler, runner, count, SEED)
            except subprocess.CalledProcessError:  # the program has printed why on stderr
                print(f"{name:>12} {way:>14} found something")
                return False
            print(f"{name:>12} {way:>14} nothing found: {said.strip()}", flush=True)
    return True


def _play(folder: Path, name: str, compiler: list[str], runner: list[str], frames: int, seed: int) -> str:
    program, header = folder / "play", f'-DHEADER="{name}.h"'
    has = sorted(set(re.findall(rf"\b{name}_(\w+)\(", (folder / f"{name}.h").read_text())))
    options = ["-O2", "-g", f"-DWORLD={name}", header, f"-I{folder}", *(f"-DHAS_{x}" for x in has)]
    subprocess.run([*compiler, *options, PLAY, folder / f"lib{name}.a", "-lm", "-o", program], check=True)
    done = subprocess.run([*runner, program, str(frames), str(seed)], check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout
