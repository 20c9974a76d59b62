"""Whatever is typed, the command line does it or refuses it: in one line, soon, with exit code 2 and no file behind."""

import os
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import jax
import numpy as np
import pytest
from typer.testing import CliRunner

from carom.scenes.cli import app
from carom.scenes.recordings.file import read_recording

LONG, DEEP = "x" * 100_000, "[" * 3000
NUMBERS = (
    "0.05", "0.01", "1e-4", "1e12", "1e300", "1e-300", "5e-324", "nan", "inf", "-inf", "0", "-0.0", "-1", "", "soon",
    "0x10", "1_0", "\u0663", "9" * 400, LONG, "1e", "\x00", "True", "0.05s",
)  # fmt: skip
WORDS = (
    "exact",
    "newton",
    "fixed",
    "f32",
    "f64",
    "",
    "none",
    "EXACT",
    "x y",
    LONG,
    "\u00fc",
    "\x1b[31m",
    "\x00",
    "%s",
    "{0}",
    "-1",
)
VALUES = (
    "0.1", "1", "1e-9", "1e308", "-1e308", "nan", "inf", "true", "none", "steel", '""', "[]", "[[]]",
    "{}", DEEP, DEEP + "]" * 3000,
    "[0, 0, -1]", "[1, 2]", "1" * 5000, "0x" + "f" * 5000, LONG, "", "=", "2005-06-01", "\x00",
    "{a." + "b." * 3000 + "c = 1}",
    "1\nx = 2", "'", '"""', '{ kind = "position", kp = 10.0 }', "1e13", "5e-324", "{ kind = 3 }",
)  # fmt: skip
PATHS = (
    "gravity.2", "body.link0.mass", "body.link0.q0", "gravity", "gravity.9", "body.*.mass", "body.link0.joint",
    "body.link0.joint.axis",
    "body.link0.joint.damping", "body.link0.name", "body.link0", "body", "body.0", "loop", "exclude",
    "*", ".", "..", "", " ", LONG, "body." + "*" * 90 + "x.mass", "body." + ".".join("a" * 3000), "a" * 999, "\x00",
    "body.link0.mass.real", "body.link0.__class__", "gap_band", "rest_speed", "static", "pair.a.b", "\u00fc",
)  # fmt: skip
RANGES = (
    "0.1:0.9", "1,2", "1:2", "1:2:3", ":", "nan:1", "-1e308:1e308", "0,1", "1,2,3,4,5,6", "," * 5000,
    ":" * 5000, DEEP, LONG, "",
    "0:inf", "a:b", '"a":"b"', "1", "[1, 2]:[3, 4]", "5e-324:1e300", "true,false", "1e13:1e14",
)  # fmt: skip
OUTS = (
    "a.npz", "a.NPZ", "/proc/a.npz", "/dev/full", "/dev/null/a.npz", "none/a.npz", ".", "..", "/", "", ".npz", "a.csv",
    LONG + ".npz", "a" * 300 + ".npz", "a\x00.npz", "folder.npz", "~/a.npz", "a.npz/", "-", "there/a.npz", "\u00fc.npz",
)  # fmt: skip
SCENES = (
    "pendulum", "pendulm", "", ".", "..", "/", "/dev/null", "/dev/zero", "/proc/self/mem", "none.toml",
    "folder.toml", LONG,
    LONG + ".toml", "a\x00.toml", "bad.toml", "deep.toml", "bytes.toml", "bad.urdf", "bad.xml", "empty.xml",
    "good.toml",
    "good.npz", "-", "--", "\u00fc", "hanging_chain", "*", "pendulum ", "PENDULUM",
)  # fmt: skip
FILES = (
    "good.npz",
    "bad.npz",
    "none.npz",
    "folder.npz",
    "",
    ".",
    "/dev/null",
    LONG,
    "a\x00.npz",
    "good.toml",
    "pendulum",
)
OPTIONS = {
    "--time": NUMBERS, "--frame-dt": NUMBERS, "--max-dt": NUMBERS, "--window": NUMBERS, "--scheme": WORDS,
    "--law": WORDS,
    "--impacts": WORDS, "--time-control": WORDS, "--dtype": ("f64", *WORDS), "--out": OUTS,
    "--batch": ("3", "1", "0", "-1", "1000001", "9" * 20, "9" * 5000, "1e3", "", "nan", "two", "3.5"),
    "--robot": ("floating", "ground=", "drop", "=", "", LONG, "mimic=free", "x=1"),
    "--kind": ("energy", "pie", "", LONG),
    "--laws": (",", "newton", "newton,newton", "newton,x", "", LONG), "--port": ("0", "70000", "x", ""),
    "--export": ("/proc/a.html", "a.csv", "", LONG, "none/a.html"), "--json": (), "--x64": (), "--all": ("x",),
    "--" + "x" * 5000: ("1",), "--\x00": (), "-h": (), "--help": (), "--no-plot": (), "--no-page": (),
}  # fmt: skip
OF = {
    "run": ("--time", "--frame-dt", "--max-dt", "--window", "--scheme", "--law", "--impacts", "--time-control",
    "--dtype",
            "--out", "--batch", "--robot", "--json", "--x64"),
    "info": ("--robot", "--json"), "export": ("--robot",), "plot": ("--kind", "--out"), "replay": ("--json",),
    "check": ("--dtype", "--json"), "compare": ("--laws", "--time", "--out", "--dtype"), "view": ("--export",
    "--robot"),
    "list": ("--json",),
}  # fmt: skip
RUN, TRIED = ("run", "pendulum", "--time", "0.05", "--no-plot", "--no-page"), 700


def line(rng: np.random.Generator) -> list[str]:
    """A command with one to four things that it may be told, or may not."""

    def one(of: tuple[str, ...]) -> str:
        """The first three are more likely than the others."""
        return of[rng.integers(min(len(of), 3) if rng.random() < 0.4 else len(of))]

    if rng.random() < 0.7:
        words = [*RUN]
        if rng.random() < 0.15:
            words[1] = one(SCENES)
        for _ in range(rng.integers(1, 3)):
            match rng.integers(4):
                case 0:
                    words += ["--set", f"{one(PATHS)}={one(VALUES)}" if rng.random() < 0.9 else one(VALUES)]
                case 1:
                    words += [
                        "--vary",
                        f"{one(PATHS)}={one(RANGES)}",
                        *(("--batch", "3") if rng.random() < 0.9 else ()),
                    ]
                case _:
                    words += options(one, "run")
        return words
    command = one(("info", "export", "plot", "replay", "check", "compare", "view", "list", "rnu", "", LONG))
    words = [command]
    if command in ("plot", "replay"):
        words.append(one(FILES))
    elif command != "list":
        words.append(one(SCENES[1:] if command in ("check", "compare", "view") else SCENES))
    if command == "view":  # a page, or it would wait for Ctrl-C
        words += ["--export", one(OPTIONS["--export"])]
    if command == "export" and rng.random() < 0.7:
        words.append(one(("a.toml", "/proc/a.toml", "a.json", "", LONG, "folder.toml", "a\x00.toml")))
    if rng.random() < 0.5:
        words += options(one, command)
    return words


def options(one, command: str) -> list[str]:  # type: ignore[no-untyped-def]
    name = one(OF.get(command, ("--json",)) + (tuple(OPTIONS) if one(("", "", "", "x")) and command != "check" else ()))
    return [name, *([one(OPTIONS[name])] if OPTIONS[name] else [])]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with good files and bad ones; jax is as before afterwards."""
    monkeypatch.chdir(tmp_path)
    for folder in ("folder.npz", "folder.toml", "there"):
        Path(folder).mkdir()
    Path("bad.toml").write_text("gravity = up")
    Path("deep.toml").write_text(f"gravity = {DEEP}")
    Path("bytes.toml").write_bytes(bytes(range(256)))
    Path("bad.urdf").write_text("<robot><link/>")
    Path("bad.xml").write_text("<mujoco><body/>")
    Path("empty.xml").write_text("")
    assert CliRunner().invoke(app, [*RUN, "--out", "good.npz"]).exit_code == 0
    assert CliRunner().invoke(app, ["export", "pendulum", "good.toml"]).exit_code == 0
    Path("bad.npz").write_bytes(Path("good.npz").read_bytes()[:-50])
    yield tmp_path
    jax.config.update("jax_enable_x64", True)


def files(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_whatever_is_typed_is_done_or_refused(here: Path, seed: int) -> None:
    rng, counts, crashes = np.random.default_rng(seed), Counter[str](), list[str]()
    warnings.simplefilter("ignore")
    before = files(here)
    for k in range(TRIED):
        words, started = line(rng), time.process_time()
        result = CliRunner().invoke(app, words, env={"COLUMNS": "200"})
        told = f"{k}: {' '.join(word[:60] for word in words)}"
        outcome = {0: "accepted", 1: "failed", 2: "refused"}.get(result.exit_code, "crashed")
        if not isinstance(result.exception, SystemExit | None):
            outcome = "crashed"
            crashes.append(f"{told}: {type(result.exception).__name__}: {str(result.exception)[:200]}")
        elif outcome != "accepted":
            last = result.stderr.splitlines()[-1] if result.stderr else ""
            if not (last.startswith("error: ") and len(last) < 3000):
                crashes.append(f"{told}: exit code {result.exit_code}, and {len(last)} characters: {last[:200]!r}")
        now = files(here)
        if outcome == "refused" and now != before:
            crashes.append(f"{told}: it left {[name for name in now if now[name] != before.get(name)]}")
        for name in now.keys() - before.keys():
            os.unlink(name)
        before = files(here)
        counts[outcome] += 1
        counts["over 10 s"] += time.process_time() - started > 10
    print(dict(counts))
    assert not crashes, "\n".join(crashes)
    assert counts["crashed"] == counts["over 10 s"] == 0
    assert min(counts["refused"], counts["accepted"]) > TRIED / 10


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ([*RUN[1:4], "--time", "1e12"], 2, "error: "),
        (["run", b"\xff\xfe.toml"], 2, "there is no such file"),
        (["run", "x" * 100_000], 2, "no scene named"),
        ([*RUN, "--out", "/proc/x.npz"], 2, "it cannot be written"),
        ([*RUN, "--out", b"\xff.npz"], 0, "wrote "),
        ([*RUN, "--set", "gravity=" + "[" * 100_000], 2, "gravity: "),
    ],
)
def test_words_as_a_shell_gives_them(tmp_path: Path, words: list[str], code: int, message: str) -> None:
    program = [sys.executable, "-c", "from carom.scenes.cli import main; main()"]
    done = subprocess.run([*program, *words], cwd=tmp_path, capture_output=True, timeout=100)
    output = (done.stdout + done.stderr).decode(errors="replace")
    assert done.returncode == code, output
    assert message in output
    assert "Traceback" not in output
    if code:
        assert len(output) < 1000
        assert not [*tmp_path.iterdir()]
    else:
        assert read_recording(next(tmp_path.iterdir())).complete
