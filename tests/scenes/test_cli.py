"""The command line tells what is there, and what is wrong with what was typed."""

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from carom.collision.shapes import Mesh, Sphere
from carom.engine.results import TICKS_CAPPED
from carom.integrators.snapshots import model_hash
from carom.scenes import running
from carom.scenes.builder import SceneBuilder
from carom.scenes.cli import app
from carom.scenes.compile import compile_scene
from carom.scenes.library.balls import bouncing_ball
from carom.scenes.library.facts import Entry, Fact, Play
from carom.scenes.library.registry import CHAINS, SCENES
from carom.scenes.recordings.file import read_recording, write_recording


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "200"})
    return result.exit_code, result.output


def told_as_json(*arguments: str) -> tuple[int, Any]:
    """All that goes to stdout; what is said of a slow start goes to stderr."""
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "200"})
    return result.exit_code, json.loads(result.stdout)


def test_list_has_one_line_for_each_scene() -> None:
    code, output = run("list")
    lines = [line.split(maxsplit=1) for line in output.splitlines()]
    assert code == 0
    known = SCENES | CHAINS
    assert [(name, text.strip()) for name, text in lines] == [(name, e.description) for name, e in known.items()]


@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.slow
def test_info_describes_every_scene(scene: str) -> None:
    code, output = run("info", scene)
    assert code == 0
    assert output.startswith(f"{scene}: ")


def test_info_counts_what_the_scene_has() -> None:
    code, output = run("info", "humanoid")
    assert code == 0
    assert "15 links, nq 36, nv 30" in output
    assert "depth 0: 1 floating" in output
    assert "it runs as machine code" in output
    assert output.splitlines()[2].split() == ["world", "1", "plane"]


def table_of_pairs(output: str) -> tuple[int, list[list[str]]]:
    """How many pairs `carom info` counts, and its table of them, cells two blanks or more apart."""
    lines = output.splitlines()
    at = next(i for i, line in enumerate(lines) if line.endswith(" pairs of shapes may touch"))
    rows = [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in lines[at + 1 :] if line.strip()]
    return int(lines[at].split()[0]), rows


def test_info_tells_which_kinds_may_touch_and_in_how_many_points() -> None:
    _, output = run("info", "humanoid")
    count, (header, *rows) = table_of_pairs(output)
    t = compile_scene(SCENES["humanoid"].build())[0].topology
    assert count == len(t.pairs) == sum(int(row[1]) for row in rows)
    assert header == ["kinds", "pairs", "looked at", "points a pair"]
    told = {frozenset(row[0].split(" - ")): int(row[1]) for row in rows}
    want = [frozenset(t.shape_kinds[shape] for shape in pair) for pair in t.pairs]
    assert told == {kinds: want.count(kinds) for kinds in set(want)}
    assert {row[2] for row in rows} == {"every pair"}
    assert ["plane - sphere", "1", "every pair", "up to 1"] in rows
    assert ["box - box", "14", "every pair", "up to 4"] in rows


def test_info_tells_for_how_many_near_pairs_there_is_room() -> None:
    _, output = run("info", "free_bodies")
    assert table_of_pairs(output) == (
        1225,
        [["kinds", "pairs", "looked at", "points a pair"], ["box - box", "1225", "up to 800 near ones", "up to 4"]],
    )


def test_info_tells_what_the_device_cannot_detect(monkeypatch: pytest.MonkeyPatch) -> None:
    corners = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
    faces = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
    b = SceneBuilder()
    b.add_body("stone", [Mesh((corners, faces), convex="none")])
    b.add_body("ball", [Sphere(0.1)])
    monkeypatch.setitem(SCENES, "stone", Entry(b.build, "a mesh and a ball"))
    _, output = run("info", "stone")
    assert table_of_pairs(output)[1][1] == ["sphere - mesh", "1", "every pair", "by the FCL backend only"]


def test_info_has_no_table_where_nothing_may_touch() -> None:
    _, output = run("info", "babyboot")
    assert table_of_pairs(output) == (0, [])


BALL = ("run", "bouncing_ball", "--time", "1", "--frame-dt", str(1 / 36))  # the program of test_running.py
BARE = ("--no-plot", "--no-page")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_run_prints_energies_and_writes_frames(here: Path) -> None:
    code, output = run("run", "pendulum", "--time", "0.5", "--frame-dt", "0.1", "--out", "frames.npz", *BARE)
    assert code == 0
    lines = output.splitlines()  # before the table it may say that it compiles
    first = next(k for k, line in enumerate(lines) if line.startswith("t [s]")) + 1
    rows = [[float(x) for x in line.split()] for line in lines[first : first + 6]]
    assert [row[0] for row in rows] == pytest.approx([0.0, 0.1, 0.2, 0.3, 0.4, 0.5])
    totals = [row[3] for row in rows]
    assert totals == pytest.approx([totals[0]] * 6, rel=1e-5)  # six digits are printed
    assert "0 impacts; " in output
    assert "pendulum: 6 frames, f64, exact" in output
    assert output.splitlines()[-1] == "wrote frames.npz"
    with np.load("frames.npz") as frames:
        assert frames["q"].shape == (6, 1)
        assert frames["q"].dtype == np.float64


@pytest.mark.slow
def test_run_leaves_a_page_that_takes_over(here: Path) -> None:
    assert run(*BALL, "--no-plot", "--take-over")[0] == 0
    page = Path("bouncing_ball.html").read_text()
    assert ">Take over from here</button>" in page
    assert 'id="program"' in page


def test_run_leaves_a_recording_a_plot_and_a_page(here: Path) -> None:
    """And what the other commands do with the recording."""
    code, output = run(*BALL)
    assert code == 0
    assert "1 impacts, from 0.451524 to 0.451524 s" in output
    assert {path.name for path in here.iterdir()} == {f"bouncing_ball.{x}" for x in ("npz", "png", "html")}
    assert read_recording("bouncing_ball.npz").title == "bouncing_ball"

    code, output = run("replay", "bouncing_ball.npz")
    assert (code, output) == (0, "bouncing_ball.npz: 37 frames and 1 impacts are the same, bit by bit\n")
    assert told_as_json("replay", "bouncing_ball.npz", "--json")[1] == {
        "same": True,
        "frames": 37,
        "events": 1,
        "difference": "",
        "changed": [],
    }
    code, output = run("plot", "bouncing_ball.npz", "--kind", "energy", "--out", "energy.svg")
    assert (code, output) == (0, "wrote energy.svg\n")
    code, output = run("view", "bouncing_ball.npz", "--export", "other.html")
    assert (code, output) == (0, "wrote other.html\n")
    assert Path("other.html").stat().st_size > 10_000

    recording = read_recording("bouncing_ball.npz")
    recording.q[30, 2] += 1e-12
    write_recording(recording, "bouncing_ball.npz")
    code, output = run("replay", "bouncing_ball.npz")
    assert code == 1
    assert "not the same: frame 30, t = 0.833333 s: q[2] of 'ball' is " in output


def test_run_as_json_with_settings_and_lanes(here: Path) -> None:
    vary = ("--vary", "body.link0.q0=0.1:0.3", "--vary", "gravity.2=-1:-3")
    options = ("--time", "0.4", "--frame-dt", "0.1", "--set", "body.link0.mass=2", "--batch", "3", "--json", *BARE)
    code, told = told_as_json("run", "pendulum", *vary, *options)
    assert code == 0
    assert (told["scene"], told["lanes"], told["frames"], told["codes"]) == ("pendulum", 3, 5, [0, 0, 0])
    assert told["files"] == {"recording": "pendulum.npz"}
    assert [row["t"] for row in told["energy"]] == pytest.approx([0, 0.1, 0.2, 0.3, 0.4])
    recording = read_recording("pendulum.npz")
    assert recording.scene.links[0].mass == 2
    np.testing.assert_allclose(recording.q[:, 0, 0], [0.1, 0.2, 0.3])
    assert sorted(recording.varied["gravity"][:, 2]) == [-3, -2, -1]


def test_a_scene_goes_out_as_a_file_and_comes_back(here: Path) -> None:
    code, output = run("export", "bouncing_ball", "ball.toml")
    assert (code, output) == (0, "wrote ball.toml\n")
    assert run("export", "ball.toml") == (0, Path("ball.toml").read_text())
    code, told = told_as_json("info", "ball.toml", "--json")
    assert (told["scene"], told["links"], told["nq"], told["pairs"]) == ("ball", 1, 7, 1)
    assert told["model_hash"] == model_hash(compile_scene(bouncing_ball())[0])
    assert [device["runs"] for device in told["devices"]] == ["machine code"]


@pytest.mark.slow
def test_export_takes_spare_bodies_probes_and_triggers(here: Path) -> None:
    asked = "--pool ball=2 --probe sphere:0.5 --probe capsule:0.1,0.2"
    triggers = "--trigger box:1,1,0.1@0,0,0 --trigger sphere:1@0,0,0@ball"
    code, _ = run("export", "bouncing_ball", "--library", "lib", *asked.split(), *triggers.split())
    assert code == 0
    header = Path("lib/bouncing_ball.h").read_text()
    assert "bouncing_ball_body_ball_2 = 2" in header
    assert "bouncing_ball_kind_ball = 0" in header
    assert "bouncing_ball_probe_sphere = 0, bouncing_ball_probe_capsule = 1" in header
    assert "bouncing_ball_triggers = 2" in header
    for name in ("add_body", "overlap", "inside", "crossed"):
        assert f"bouncing_ball_{name}(" in header


def test_what_was_not_taken_from_a_robots_file_is_said(here: Path) -> None:
    inertia = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    joint = '<joint name="j" type="revolute"><parent link="a"/><child link="b"/><limit lower="-1" upper="1"/></joint>'
    sensor = '<gazebo reference="b"/>'
    Path("robot.urdf").write_text(
        f'<robot name="r"><link name="a">{inertia}</link><link name="b">{inertia}</link>{joint}{sensor}</robot>'
    )
    code, output = run("info", "robot.urdf")
    assert code == 0
    assert "1 ignored" in output
    assert "gazebo" in output


def test_an_interrupted_run_exits_with_130(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def record(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "record", record)
    code, output = run(*BALL)
    assert code == 130
    assert "interrupted: nothing was written" in output
    assert not [*here.iterdir()]


PROGRAM = """
import sys
from carom.scenes.cli import main
sys.argv = ["carom", "run", "pendulum", "--time", "9000", "--out", "long.npz", "--no-plot", "--no-page"]
print("it begins", flush=True)
main()
"""


@pytest.mark.parametrize("delay", [0.02, 0.15, 0.4, None])
def test_ctrl_c_ends_it_at_whatever_moment(here: Path, delay: float | None) -> None:
    """While modules are imported, and in a run, of which it leaves what there is (None)."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "it begins\n"
        end = time.monotonic() + 60
        while delay is None and not Path("long.npz").exists() and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(0.5 if delay is None else delay)
        process.send_signal(signal.SIGINT)
        output = "".join(process.communicate(timeout=60))
    assert process.returncode == 130, output
    assert "interrupted" in output
    assert "Traceback" not in output
    if delay is None:
        recording = read_recording("long.npz")
        assert recording.t.size > 1
        assert not recording.complete


def test_files_to_write_are_tried_before_a_run_begins(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And an older file stays where the run fails."""

    def begun(*_: Any, **__: Any) -> None:
        raise AssertionError("it began")

    monkeypatch.setattr(running, "compile_lanes", begun)
    Path("a.html").mkdir()
    Path("b.npz").write_text("older")
    for out, code, message in (
        ("/proc/a.npz", 2, "/proc/a.npz: it cannot be written"),
        ("a.npz", 2, "a.html: it cannot be written (Is a directory)"),
        ("b.npz", 1, ""),
    ):
        found, output = run("run", "pendulum", "--out", out)
        assert found == code
        assert message in output
    assert {path.name for path in here.iterdir()} == {"a.html", "b.npz"}
    assert Path("b.npz").read_text() == "older"


def test_a_run_that_fails_says_so_and_keeps_what_there_is(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = running.record

    def failed(*arguments: Any, **options: Any) -> Any:
        return replace(record(*arguments, **options), code=np.array(TICKS_CAPPED))

    monkeypatch.setattr(running, "record", failed)
    code, output = run("run", "pendulum", "--time", "0.4", "--frame-dt", "0.1", *BARE)
    assert code == 1
    assert "error: lane 0, after t = 0.4 s: TICKS_CAPPED: the most ticks of a run were used up" in output
    assert read_recording("pendulum.npz").t.size == 5


BOUNCES = Play(
    (
        Fact("time of impact 0 [s]", (2 / 9.81) ** 0.5, 1e-9, lambda p: p.event("t")[0]),
        Fact("time of impact 1 [s]", 0.7, 0.1, lambda p: p.event("t")[1]),
    ),
    duration=1.3,
    frame_dt=1.3 / 36,  # as many frames as in test_running.py: one compiled program for all
)


def test_check_tells_what_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SCENES, "bounces", Entry(bouncing_ball, "a fall", (BOUNCES,)))
    code, output = run("check", "bounces")
    assert code == 1
    lines = output.splitlines()
    assert [line.split()[0] for line in lines[2:5]] == ["ok", "FAILS", "ok"]
    assert lines[-1] == "2 of 3 facts hold in 1 scenes"

    held = replace(BOUNCES, facts=BOUNCES.facts[:1])
    monkeypatch.setitem(SCENES, "bounces", Entry(bouncing_ball, "a fall", (held,)))
    code, output = run("check", "bounces", "pendulum")
    assert code == 0
    assert "pendulum promises nothing" in output
    assert output.splitlines()[-1] == "2 of 2 facts hold in 2 scenes"
    code, told = told_as_json("check", "bounces", "--json")
    assert (code, told["held"], told["plays"][0]["facts"][0]["holds"]) == (0, 2, True)


DEEP, WIDE = "[" * 3000, "x" * 50_000

WRONG = {
    "run pendulum --time 1e12": "a run has at most 10000000 frames: give a shorter duration, or a longer frame_dt",
    "run pendulum --frame-dt 1e-300": "a run has at most 10000000 frames",
    "run pendulum --max-dt 1e-300": "between two frames are at most 1000000 steps: give a longer max_dt",
    "run pendulum --window 1e-300": "window is 1e-300; it must be a positive number of seconds of at least 1e-09",
    "run pendulum --batch 99999999999999999999": "Invalid value for '--batch'",
    "run pendulum --batch 1000000 --time 1e5 --frame-dt 0.1": "give a shorter duration, a longer frame_dt, or fewer",
    "run pendulum --out /proc/x.npz": "/proc/x.npz: it cannot be written",
    f"run pendulum --set gravity={DEEP}": "is no value: too many lists and tables are in each other",
    f"run pendulum --set body.{'*' * 90}x.mass=1": "there is no '*",
    f"run pendulum --set {WIDE}=1": "has 50000 characters, the path of a setting has 1000 at most",
    f"run pendulum --set gravity={'1' * 5000}": "is no value",
    "run pendulum --set gravity.2=[[]] --vary gravity.2=1:2 --batch 2": "gravity is (0.0, 0.0, ((),))",
    f"run {WIDE}": "no scene named 'xxx",
    f"run {WIDE}.toml": "there is no such file",
    f"view none.npz --export {WIDE}.html": "it cannot be written (File name too long)",
    "run deep.toml": "deep.toml, line 1: too many lists and tables are in each other here: they are at most 10 deep",
    "check": "name some scenes, or give --all",
    "run pendulum --robot ground": "pendulum is not the file of a robot: leave it out",
    "check pendulum --all": "name some scenes, or give --all",
    "check pendulm": "did you mean 'pendulum'?",
    "check pendulum --dtype f16": "'f16' is unknown: give f32 or f64",
    "rnu pendulum": "No such command 'rnu'",
    "run": "Missing argument",
    "run pendulm": "no scene named 'pendulm': did you mean 'pendulum'?",
    "run pendulum.toml": "pendulum.toml: there is no such file",
    "run .": ".: it is a folder",
    "run notes.txt": "notes.txt: ",
    "run bad.toml": "bad.toml, line 1: ",
    "run light.toml": "light.toml, line 3: ",
    "run pendulum --time -1": "duration is -1.0; it must be a positive number of seconds",
    "run pendulum --time soon": "Invalid value for '--time'",
    "run pendulum --frame-dt 0": "frame_dt is 0.0; it must be a positive number of seconds",
    "run pendulum --scheme euler": "scheme 'euler' is unknown; it must be one of exact, rk4",
    "run bouncing_ball --law hooke": "hooke",
    "run pendulum --dtype f16": "'f16' is unknown: give f32 or f64",
    "run pendulum --dtype f32 --x64": "--x64 and --dtype f32 are not both possible",
    "run pendulum --tiem 3": "No such option",
    "run pendulum --set mass": "'mass' is not a setting: write PATH=VALUE",
    "run pendulum --set body.link9.mass=1": "body.link9.mass: there is no 'link9'",
    "run pendulum --set body.link0.mass=-1": "mass",
    "run pendulum --set body.link0.mass=heavy": "mass",
    "run pendulum --vary body.link0.mass=1:2": "how many lanes? add --batch N",
    "run pendulum --batch 0": "Invalid value for '--batch'",
    "run pendulum --batch 2 --vary body.link0.mass=1:2:3": "is not a range: write low:high",
    "run hanging_chain --take-over": "--take-over: a planar chain is not a scene of links and joints",
    "run pendulum --batch 2 --take-over": "it is for the page of a single run: leave out --batch and --no-page",
    "run pendulum --take-over --no-page": "it is for the page of a single run: leave out --batch and --no-page",
    "run pendulum --batch 2 --vary gravity.2=1:2 --vary gravity.2=1:2": "gravity.2 is varied twice",
    "run pendulum --out frames.csv": "frames.csv must end in .npz",
    "run pendulum --out none/frames.npz": "there is no folder none",
    "export pendulum pendulum.json": "pendulum.json must end in .toml",
    "export pendulum --page a.htm": "Invalid value for --page: a.htm must end in .html",
    "export pendulum --page none/a.html": "--page: there is no folder none",
    "export pendulum out.toml --library lib": "leave out out.toml, or --library and --page",
    "export pendulum --library lib --cpu nonsense": "no processor 'nonsense' of ",
    "export bouncing_ball --library lib --pool ball": "'ball' is no BODY=N",
    "export bouncing_ball --library lib --pool ball=2 --pool ball=3": "'ball=3' is no BODY=N, once a body",
    "export bouncing_ball --library lib --pool none=2": "'none' is no free body of the scene",
    "export bouncing_ball --library lib --probe cube:1": "'cube:1' is no shape: give sphere:R",
    "export bouncing_ball --library lib --probe box:1,2": "'box:1,2' is no shape",
    "export bouncing_ball --library lib --probe sphere:-1": "radius",
    "export bouncing_ball --library lib --trigger sphere:1": "'sphere:1' is no SHAPE@X,Y,Z",
    "export bouncing_ball --library lib --trigger sphere:1@0,0,0@none": "body is 'none'",
    "check bad.toml": "bad.toml is a file: only scenes of the library promise facts",
    "replay": "Missing argument",
    "replay none.npz": "none.npz: there is no such file",
    "replay notes.txt": "this is no recording of Carom",
    "plot none.npz --kind pie": "'pie' is unknown: give run, energy",
    "plot none.npz": "none.npz: there is no such file",
    "plot none.npz --out a.bmp": "a.bmp must end in .png or .svg",
    "view none.npz --export a.html": "none.npz: there is no such file",
    "view pendulm": "did you mean 'pendulum'?",
    "compare pendulum --laws newton": "give two or more",
    "compare pendulum --laws newton,hooke": "hooke",
    "bench": "Missing argument",
}


@pytest.mark.parametrize("line", WRONG, ids=lambda line: line[:60])
def test_what_is_wrong_is_said_in_one_line(here: Path, line: str) -> None:
    """With exit code 2, and nothing half-written."""
    (here / "notes.txt").write_text("nothing")
    (here / "deep.toml").write_text(f"gravity = {DEEP}")
    (here / "bad.toml").write_text("gravity = up")
    (here / "light.toml").write_text('[[body]]\nname = "ball"\nmass = -1.0\n')
    code, output = run(*line.split())
    assert code == 2, output
    assert WRONG[line] in output
    assert output.startswith("error: ")
    assert output.count("\n") == 1
    assert " root " not in output
    assert len(output) < 3000
    assert {path.name for path in here.iterdir()} == {"notes.txt", "bad.toml", "deep.toml", "light.toml"}


def test_help_comes_before_jax_does() -> None:
    """And the commands in the order in which one needs them."""
    script = "import sys; from carom.scenes.cli import app; print('jax' in sys.modules, 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
    code, output = run("--help")
    assert code == 0
    assert output.index(" run ") < output.index(" list ") < output.index(" bench ")
    assert "carom run pool_break" in run("run", "--help")[1]


def test_info_suggests_a_name() -> None:
    code, output = run("info", "humanoit")
    assert code == 2
    assert "no scene named 'humanoit': did you mean 'humanoid'?" in output


def test_robots_are_read_as_told(here: Path) -> None:
    body = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    (here / "brick.urdf").write_text(f'<robot name="brick"><link name="body">{body}</link></robot>')
    code, output = run("export", "brick.urdf", "--robot", "floating", "--robot", "ground")
    assert code == 0
    assert 'kind = "floating"' in output
    assert 'name = "ground"' in output
    code, output = run("info", "brick.urdf", "--robot", "flying")
    assert (code, "'flying' is unknown: give floating, ground, mimic," in output) == (2, True)
