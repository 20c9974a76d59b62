"""Sweeps: what lanes draw, that they are what compiling makes of them, and that a kill changes nothing."""

import csv
import json
import math
import os
import re
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

import carom
from carom.scenes.cli import app
from carom.scenes.compiling.check import SceneError
from carom.scenes.formats.errors import FileError
from carom.scenes.formats.settings import apply_setting
from carom.scenes.sweeps import lane_models, result
from carom.scenes.sweeps.draws import lane_values
from carom.scenes.sweeps.lane_models import LaneModels
from carom.scenes.sweeps.parts import ShardFolder
from carom.scenes.sweeps.result import Sweep, read_design
from carom.scenes.variations import compile_lanes

ROOT = Path(__file__).parents[2]
E = "body.ball.restitution"
FALL = math.sqrt(2 / 9.81)  # [s] until the ball of the library strikes, from a metre
RUN: dict[str, Any] = {"vary": {E: "uniform(0.1, 0.85)"}, "duration": 1.0}


def draws(text: str, lanes: int = 4000, seed: int = 1, path: str = "x") -> np.ndarray:
    return np.array(lane_values({path: text}, {}, lanes, seed)[path])


# -- draws -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "law"),
    [
        ("uniform(-1, 3)", stats.uniform(-1, 4)),
        ("normal(2, 0.5)", stats.norm(2, 0.5)),
        ("loguniform(0.01, 10)", stats.loguniform(0.01, 10)),
    ],
)
def test_values_are_distributed_as_said(text: str, law: Any) -> None:
    assert stats.kstest(draws(text), law.cdf).pvalue > 0.01


def test_a_lane_draws_by_its_number_the_path_and_the_seed() -> None:
    some = draws("uniform(0, 1)", 10)
    np.testing.assert_array_equal(draws("uniform(0, 1)", 1000)[:10], some)
    other = {"y": "uniform(0, 1)", "x": "uniform(0, 1)", "z": "linspace(0, 1, 3)"}
    values = lane_values(other, {}, 10, 1)
    np.testing.assert_array_equal(values["x"], some)
    assert not np.isin(some, values["y"]).any()
    assert not np.isin(some, draws("uniform(0, 1)", 1000, seed=2)).any()


def test_a_choice_takes_all_alike() -> None:
    count = np.bincount(draws("choice(0, 1, 2)"))
    assert stats.chisquare(count).pvalue > 0.01
    assert set(lane_values({"m": 'choice("ice", "felt")'}, {}, 20, 0)["m"]) == {"ice", "felt"}


def test_grids_are_multiplied_and_repeated() -> None:
    grids = {"a": "linspace(0, 1, 2)", "b": [10, 20, 30]}
    values = lane_values(grids, {}, None, 0)
    assert list(zip(values["a"], values["b"], strict=True)) == [(a, b) for a in (0.0, 1.0) for b in (10, 20, 30)]
    assert lane_values({"b": "1, 2, 3"}, {}, 5, 0)["b"] == [1, 2, 3, 1, 2]
    assert lane_values({"a": "5"}, {"d": [7, 8]}, 3, 0) == {"a": [5, 5, 5], "d": [7, 8, 7]}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("uniform(1)", "must have 2 numbers: low, high"),
        ("uniform(2, 1)", "low must be less than high"),
        ("loguniform(0, 1)", "above 0"),
        ("normal(0, -1)", "above 0"),
        ("normal(0, inf)", "must have 2 numbers"),
        ("choice()", "nothing to choose from"),
        ("linspace(0, 1, 2.5)", "must be whole"),
        ("beta(1, 2)", "there is no 'beta': write uniform"),
        ("0.1:0.9", "a range of `carom run`"),
        ("1, ,", "is no value"),
    ],
)
def test_what_is_no_variation_is_refused(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        draws(text)


def test_what_is_said_twice_or_not_at_all_is_refused() -> None:
    with pytest.raises(ValueError, match="how many lanes"):
        lane_values({"a": "uniform(0, 1)"}, {}, None, 0)
    with pytest.raises(ValueError, match="varied twice"):
        lane_values({"a": "1"}, {"a": [1]}, None, 0)
    with pytest.raises(ValueError, match="equally long"):
        lane_values({}, {"a": [1], "b": [1, 2]}, None, 0)
    with pytest.raises(ValueError, match="seed is -1"):
        lane_values({"a": "1"}, {}, 1, -1)


# -- models of lanes -------------------------------------------------------------------------------


def materials() -> carom.SceneSpec:
    """Two materials with a rule, a third body without, and a floor."""
    b = carom.SceneBuilder()
    b.add_plane(material="felt", friction=0.3, restitution=0.6)
    for k, name in enumerate(("a", "b")):
        b.add_body(name, [carom.Sphere(0.1)], mass=1.0, position=(k, 0, 1), material="steel")
    b.add_body("c", [carom.Box((0.1, 0.2, 0.3))], position=(0, 3, 1), friction=0.4)
    b.set_pair("steel", "felt", restitution=0.8)
    return b.build()


BALL = {
    E: "uniform(0.1, 0.95)", "static.0.restitution": "uniform(0.1, 0.95)", "gravity.2": "uniform(-20, -1)",
    "body.ball.friction": "uniform(0, 1)", "static.*.friction": "uniform(0.1, 1)",
    "body.ball.position.2": "normal(3, 0.1)", "body.ball.mass": "loguniform(0.1, 10)",
    "body.ball.linear_velocity.0": "normal(0, 1)", "body.ball.angular_velocity.1": "normal(0, 1)",
}  # fmt: skip
RULED = {
    "pair.steel.felt.restitution": "uniform(0, 1)", "body.*.friction": "uniform(0, 1)",
    "body.c.restitution": "uniform(0, 1)", "body.a.restitution": "uniform(0, 1)", "body.c.mass": "uniform(1, 2)",
}  # fmt: skip
JOINT = {
    "body.thigh.joint.damping": "uniform(0, 1)", "body.body.joint.armature": "uniform(0, 1)",
    "body.shank.q0": "uniform(-0.2, 0)", "body.shank.v0": "uniform(-1, 1)",
}  # fmt: skip
SHAPE = {"body.ball.shapes.0.radius": "uniform(0.05, 2)", E: "uniform(0.1, 0.9)"}


@pytest.mark.parametrize(
    ("scene", "vary", "compiled"),
    [
        (lambda: carom.load("bouncing_ball"), BALL, ()),
        (materials, RULED, ()),
        (lambda: carom.load("hopper"), JOINT, ()),
        (lambda: carom.load("bouncing_ball"), SHAPE, ("body.ball.shapes.0.radius",)),
        (lambda: carom.load("bouncing_ball"), {"gravity": "choice([0, 0, -9.81], [0, 0, -1.62])"}, ("gravity",)),
    ],
    ids=["ball", "rules", "joints", "radius", "vectors"],
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["f64", "f32"])
def test_lanes_are_what_compiling_makes_of_them(
    scene: Any, vary: dict[str, str], compiled: tuple[str, ...], dtype: Any
) -> None:
    spec, lanes = scene(), 60
    values = lane_values(vary, {}, lanes, 3)
    models = LaneModels(spec, values, dtype)
    assert models.compiled == compiled
    true_model, true_state, _ = compile_lanes(spec, lanes, values, dtype)
    for some in (range(lanes), range(41, 44)):  # a few, none of which is the first
        model, state = models.of(some)
        for name, x in true_model.parameters.items():
            own = x.ndim - carom.Model.base_ndim(name)
            mine = np.broadcast_to(np.asarray(getattr(model, name)), (len(some), *x.shape[own:]))
            truth = np.asarray(x)[list(some)] if own else np.broadcast_to(np.asarray(x), mine.shape)
            assert mine.tobytes() == truth.tobytes(), name
        for name in ("q", "v", "t"):
            assert (
                np.asarray(getattr(state, name)).tobytes()
                == np.asarray(getattr(true_state, name))[list(some)].tobytes()
            )


def test_few_lanes_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    true = lane_models.compile_scene
    monkeypatch.setattr(
        lane_models, "compile_scene", lambda *x, **select_measures: calls.append(x) or true(*x, **select_measures)
    )
    models = LaneModels(carom.load("bouncing_ball"), lane_values(BALL, {}, 10_000, 0))
    models.of(range(10_000))
    assert len(calls) < 120  # of nine paths


def test_the_worst_value_of_all_lanes_is_refused_at_once() -> None:
    with pytest.raises(SceneError, match=r"lane \d+ \(body\.ball\.restitution = 1\.\d+\): .*restitution is 1\.\d+"):
        LaneModels(carom.load("bouncing_ball"), lane_values({E: "normal(0.8, 0.08)"}, {}, 10_000, 0))


def test_values_that_must_fit_each_other_are_compiled() -> None:
    """Each lane's start is within its limits, but not within those of another."""
    spec = carom.load("hopper")
    lower, upper = "body.thigh.joint.limits.0", "body.thigh.joint.limits.1"
    q0, starts = "body.thigh.q0", [-0.7, 2.5, 0.7]
    models = LaneModels(spec, {lower: [-1.0, 2.0, 0.5], upper: [-0.5, 3.0, 1.0], q0: starts})
    assert models.compiled == (lower, upper, q0)
    model, state = models.of([1, 2])
    dof = np.flatnonzero(np.asarray(model.lower)[0] == 2.0)
    np.testing.assert_array_equal(np.asarray(model.upper)[:, dof], [[3.0], [1.0]])
    assert [2.5 in np.asarray(state.q)[0], 0.7 in np.asarray(state.q)[1]] == [True, True]
    with pytest.raises(SceneError, match="must lie within the limits"):
        LaneModels(spec, {lower: [-1.0, 2.0], upper: [-0.5, 3.0], q0: [-0.7, 1.5]})


def test_what_is_another_scene_or_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="another scene than lane 0"):
        LaneModels(carom.load("hopper"), {"body.thigh.joint.loss": [0.0, 0.1]}).of([0, 1])
    with pytest.raises(ValueError, match="changes nothing"):
        LaneModels(carom.load("bouncing_ball"), {"body.ball.density": [1.0, 2.0]})


# -- sweeps ----------------------------------------------------------------------------------------


def test_quantities_are_those_of_the_run() -> None:
    """Against the ball's law in closed form, and a rollout of the same lanes with its whole log."""
    names = (
        "code", "first_impact", "impacts", "energy", "loss", "overlap", "ticks", "rollbacks", "resting", "t", "q", "v",
        "max_speed", "at_rest", "position.ball",
    )  # fmt: skip
    vary = {E: "uniform(0.1, 0.85)", "body.ball.position.2": "uniform(0.6, 1.1)", "body.ball.mass": "uniform(1, 2)"}
    found = carom.sweep("bouncing_ball", vary=vary, lanes=20, duration=1.0, measure=names, seed=5)
    assert (found.varied, found.measured, len(found)) == (tuple(vary), names, 20)
    e, height, mass = found[E], found["body.ball.position.2"] - 0.1, found["body.ball.mass"]
    fall = np.sqrt(2 * height / 9.81)
    np.testing.assert_allclose(found["first_impact"], fall, atol=1e-12)
    np.testing.assert_allclose(found["energy"] + found["loss"], mass * 9.81 * (height + 0.1), rtol=1e-12)
    rests = fall * (1 + e) / (1 - e)  # the time of its last impact
    np.testing.assert_array_equal(found["at_rest"], rests < 1)
    v = 9.81 * fall
    np.testing.assert_allclose(found["loss"][rests < 1], (mass * v**2 / 2)[rests < 1], atol=1e-6)
    assert np.all(found["max_speed"] <= v)
    assert np.all(found["max_speed"] >= v - 9.81 / 60)
    np.testing.assert_array_equal(found["position.ball"], found["q"][:, :3])
    np.testing.assert_allclose(found["t"], 1.0, atol=1e-14)
    model, state, _ = compile_lanes(carom.load("bouncing_ball"), 20, {path: found[path].tolist() for path in vary})
    ran = carom.rollout(model, state, duration=1.0)
    np.testing.assert_array_equal(found["impacts"], ran.events.count)
    for name in ("ticks", "rollbacks", "resting"):
        np.testing.assert_array_equal(found[name], getattr(ran.stats, name))
    np.testing.assert_array_equal(found["v"], ran.state.v)
    assert not found["code"].any()


def test_a_lane_that_fails_has_its_code_and_one_that_meets_nothing_no_impact() -> None:
    few = carom.sweep("bouncing_ball", vary={E: "0.1, 0.8"}, duration=1.0, max_ticks=50)
    assert set(few["code"]) == {carom.Code.TICKS_CAPPED}
    short = carom.sweep("bouncing_ball", vary={E: "0.1, 0.8"}, duration=0.3)
    assert np.isnan(short["first_impact"]).all()
    assert not short["impacts"].any()


def test_shards_of_any_size_and_lanes_of_any_number_are_the_same_bits() -> None:
    names = {**dict.fromkeys(("energy", "first_impact", "q", "max_speed")), "own": lambda model, ran: ran.q[:, 30, 2]}
    whole = carom.sweep("bouncing_ball", lanes=50, measure=names, **RUN)
    for lanes, shard in ((50, 7), (31, 16), (1, 1)):
        some = carom.sweep("bouncing_ball", lanes=lanes, shard=shard, measure=names, **RUN)
        for name, x in some.arrays.items():
            assert x.tobytes() == whole[name][:lanes].tobytes(), name


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"measure": ["impact"]}, "there is no measure 'impact': did you mean \"impacts\"?"),
        ({"measure": []}, "measure is empty"),
        ({"measure": {"q": len}}, "must have another name"),
        ({"measure": {"mine": lambda model, ran: 1.0}}, "must have one row a lane"),
        ({"measure": {"mine": 3}}, "give a function"),
        ({"lanes": 0}, "lanes is 0"),
        ({"shard": 0}, "shard is 0"),
        ({"part": (0, 2)}, "give out"),
        ({"part": (2, 2), "out": "x.npz"}, "give (k, n)"),
        ({"out": "x.txt"}, "a sweep is written to .parquet, .csv, .npz"),
    ],
)
def test_wrong_arguments_are_refused(given: dict[str, Any], says: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=re.escape(says)):
        carom.sweep("bouncing_ball", **{"lanes": 3, **RUN, **given})
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="duration is missing"):
        carom.sweep(carom.load("bouncing_ball"), lanes=3, vary=RUN["vary"])


# -- files -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def swept() -> Sweep:
    vary = {E: "uniform(0.1, 0.85)", "body.ball.position": [[0, 0, 1.0], [0, 0, 1.5]]}
    return carom.sweep("bouncing_ball", vary=vary, lanes=4, duration=0.5, measure=["impacts", "q", "at_rest"])


def test_results_are_written_in_full(swept: Sweep, tmp_path: Path) -> None:
    columns = swept.columns()
    assert list(columns)[:3] == ["lane", E, "body.ball.position.0"]
    swept.write(tmp_path / "x.npz")
    with np.load(tmp_path / "x.npz") as arrays:
        assert json.loads(str(arrays["manifest"])) == json.loads(json.dumps(swept.manifest))
        for name, x in swept.arrays.items():
            np.testing.assert_array_equal(arrays[name], x)
    swept.write(tmp_path / "x.csv")
    head, *rows = csv.reader((tmp_path / "x.csv").read_text().splitlines())
    assert head == list(columns)
    for name, cells in zip(head, zip(*rows, strict=True), strict=True):
        x = columns[name]
        read = [float(cell) for cell in cells] if x.dtype.kind == "f" else list(cells)
        assert read == (x.tolist() if x.dtype.kind == "f" else [str(y) for y in x])


def test_parquet_holds_columns_and_manifest(swept: Sweep, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    swept.write(tmp_path / "x.parquet")
    table = parquet.read_table(tmp_path / "x.parquet")
    assert json.loads(table.schema.metadata[b"carom"])["seed"] == 0
    for name, x in swept.columns().items():
        assert table[name].to_pylist() == x.tolist()
    design = {E: [0.25, 0.5], "gravity.2": [-1.0, -2.0]}
    import pyarrow

    parquet.write_table(pyarrow.table(design), tmp_path / "design.parquet")
    assert read_design(tmp_path / "design.parquet") == design


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(swept: Sweep, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(library)
    if library == "polars":
        monkeypatch.setitem(sys.modules, "pandas", None)
    frame = swept.frame()
    assert type(frame).__module__.startswith(library)
    assert list(frame.columns) == list(swept.columns())
    np.testing.assert_array_equal(frame[E].to_numpy(), swept[E])


def test_what_is_not_installed_is_named(swept: Sweep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pandas", "polars", "pyarrow", "distributed"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "carom.scenes.sweeps.on_dask", raising=False)
    with pytest.raises(ImportError, match="pip install pandas"):
        swept.frame()
    with pytest.raises(ImportError, match=re.escape("pip install 'carom[sweep]'")):
        swept.write(tmp_path / "x.parquet")
    with pytest.raises(ImportError, match=re.escape("pip install 'carom[dask]'")):
        carom.sweep("bouncing_ball", lanes=2, on="dask", **RUN)


def test_designs(tmp_path: Path) -> None:
    file = tmp_path / "design.csv"
    file.write_text(f'{E}, body.ball.position\n0.5,"[0, 0, 1.1]"\n0.25,"[0, 0, 0.6]"\n')
    found = carom.sweep("bouncing_ball", design=file, duration=1.0)
    assert found[E].tolist() == [0.5, 0.25]
    np.testing.assert_allclose(found["first_impact"], [FALL, FALL * math.sqrt(0.5)], atol=1e-12)
    for text, says in (
        ("a,b\n1\n", "there are 1 values for 2"),
        ("a\n", "a line of values"),
        ("a,a\n1,2\n", "same path"),
    ):
        file.write_text(text)
        with pytest.raises(FileError, match=says):
            read_design(file)
    with pytest.raises(FileError, match=r"from \.csv or \.parquet"):
        read_design(tmp_path / "design.txt")
    with pytest.raises(FileError, match="cannot be read"):
        read_design(tmp_path / "none.csv")


# -- what is killed goes on ------------------------------------------------------------------------


def command(*arguments: str) -> list[str]:
    program = "import sys; from carom.scenes.cli import main; sys.argv[0] = 'carom'; main()"
    return [sys.executable, "-c", program, "sweep", "bouncing_ball", *arguments]


def arrays_of(file: Path) -> dict[str, bytes]:
    with np.load(file) as arrays:
        return {name: x.tobytes() for name, x in arrays.items() if name != "manifest"}


@pytest.mark.parametrize("lanes", [2000, pytest.param(100_000, marks=pytest.mark.exhaustive)])
def test_a_sweep_that_was_killed_goes_on_and_ends_as_one_that_was_not(lanes: int, tmp_path: Path) -> None:
    """With kill -9, in a process of its own; and what is not finished is no file that could be taken for one."""
    common = ["--vary", f"{E}=uniform(0.1, 0.95)", "--time", "2", "--lanes", str(lanes)]
    killed = command(*common, "--shard", str(lanes // 20), "--out", "killed.npz")
    parts = tmp_path / "killed.npz.parts"
    process = subprocess.Popen(killed, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    try:
        limit = time.monotonic() + 300
        while not parts.exists() or len(list(parts.glob("shard-*.npz"))) < 3:
            assert process.poll() is None, process.stderr and process.stderr.read()
            assert time.monotonic() < limit
            time.sleep(0.005)
    finally:
        process.kill()
    assert process.wait() == -signal.SIGKILL
    done = {file.name: file.stat().st_mtime_ns for file in parts.glob("shard-*.npz")}
    assert 3 <= len(done) < 20
    assert not (tmp_path / "killed.npz").exists()

    other = subprocess.run([*killed, "--seed", "1"], cwd=tmp_path, capture_output=True, text=True)
    assert other.returncode == 2
    drawn = r"'uniform\(0.1, 0.95\) \(\w+\)'"
    assert re.search(rf"another sweep: values.{E} was {drawn}, and is {drawn}; seed was 0, and is 1", other.stderr)

    (parts / ".shard-000019.npz.1.part").write_bytes(b"what a kill cuts off")
    again = subprocess.run([*killed, "--json"], cwd=tmp_path, capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    said = json.loads(again.stdout)
    assert (said["lanes"], said["lanes_here"]) == (lanes, lanes - lanes // 20 * len(done))
    assert re.search(rf"{lanes} of {lanes} lanes, [\d.e+]+ lanes/s, 0:00 left", again.stderr)
    assert not parts.exists()

    values = {E: "uniform(0.1, 0.95)"}
    carom.sweep("bouncing_ball", vary=values, duration=2.0, lanes=lanes, out=tmp_path / "whole.npz")
    assert arrays_of(tmp_path / "killed.npz") == arrays_of(tmp_path / "whole.npz")


def test_shards_by_several_hands_are_put_together(tmp_path: Path) -> None:
    out = tmp_path / "x.npz"
    given: dict[str, Any] = {"lanes": 40, "shard": 8, "out": out, **RUN}
    one, two = (carom.sweep("bouncing_ball", part=(k, 2), **given) for k in range(2))
    assert (one["lane"][[0, 8, -1]].tolist(), len(two)) == ([0, 16, 39], 16)
    assert not out.exists()
    told = []
    whole = carom.sweep("bouncing_ball", progress=told.append, **given)
    assert not told  # there was nothing left to run
    again = carom.sweep("bouncing_ball", lanes=40, **RUN)
    assert all(whole[name].tobytes() == x.tobytes() for name, x in again.arrays.items())


def test_a_shard_that_was_cut_off_is_run_again(tmp_path: Path) -> None:
    given: dict[str, Any] = {"lanes": 12, "shard": 4, "out": tmp_path / "x.npz", **RUN}
    carom.sweep("bouncing_ball", part=(0, 2), **given)
    file = tmp_path / "x.npz.parts" / "shard-000000.npz"
    file.write_bytes(file.read_bytes()[:500])
    again = carom.sweep("bouncing_ball", **given)
    whole = carom.sweep("bouncing_ball", lanes=12, **RUN)
    assert all(whole[name].tobytes() == x.tobytes() for name, x in again.arrays.items())


def test_folders_that_are_not_ours_are_refused(tmp_path: Path) -> None:
    def of(**options: Any) -> None:
        carom.sweep("bouncing_ball", part=(0, 2), out=tmp_path / "x.npz", **{"lanes": 8, "shard": 4, **RUN, **options})

    of()
    parts = tmp_path / "x.npz.parts"
    own = {"own": lambda model, ran: ran.code}
    for options, says in (
        ({"duration": 2.0}, "options.duration was 1.0, and is 2.0"),
        ({"shard": 2}, "shard was 4, and is 2"),
        ({"lanes": 9}, "lanes was 8, and is 9"),
        ({"law": "newton"}, "options.law was 'stronge', and is 'newton'"),
        ({"measure": own}, "measures.own was None, and is '"),
    ):
        with pytest.raises(FileError, match=re.escape(says)):
            of(**options)
    spec = apply_setting(carom.load("bouncing_ball"), "gravity.2", -5.0)
    with pytest.raises(FileError, match=r"scene\.model was"):
        carom.sweep(spec, part=(0, 2), out=tmp_path / "x.npz", lanes=8, shard=4, **RUN)
    (parts / "manifest.json").write_text("{")
    with pytest.raises(FileError, match="no manifest of a sweep"):
        of()
    (parts / "manifest.json").unlink()
    with pytest.raises(FileError, match=r"no manifest\.json"):
        ShardFolder(parts, {})


def test_what_fails_at_once_leaves_nothing(tmp_path: Path) -> None:
    out = tmp_path / "x.npz"
    with pytest.raises(ValueError, match="must have one row a lane"):
        carom.sweep("bouncing_ball", lanes=4, out=out, measure={"own": lambda model, ran: 1.0}, **RUN)
    carom.sweep("bouncing_ball", lanes=4, out=out, measure={"own": lambda model, ran: ran.code}, **RUN)
    assert [file.name for file in tmp_path.iterdir()] == ["x.npz"]


# -- the command -----------------------------------------------------------------------------------


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["sweep", *arguments], env={"COLUMNS": "200"})
    return result.exit_code, result.output


def test_the_command_sums_up(tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    design = tmp_path / "design.csv"
    design.write_text("gravity.2\n-9.81\n-1.62\n")
    code, output = run(
        "bouncing_ball", "--vary", f"{E}=linspace(0.1, 0.8, 3)", "--vary", str(design), "--measure", "code",
        "--measure", "position.ball", "--set", "static.0.restitution=0.5", "--lanes", "6", "--time", "0.5",
        "--out", str(file), "--shard", "4",
    )  # fmt: skip
    assert code == 0, output
    assert re.search(r"code +6 OK", output)
    assert re.search(r"position\.ball\.2 +0\.\d+", output)
    assert "bouncing_ball: 6 lanes, 6 of them now" in output
    assert len(file.read_text().splitlines()) == 7
    code, output = run(
        "bouncing_ball", "--vary", "body.ball.shapes.0.radius=0.1, 0.2", "--time", "0.1", "--out", str(file)
    )
    assert code == 0
    assert "body.ball.shapes.0.radius sets more than one number of the model" in output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--vary", "gravity.2"), "is not a setting: write PATH=VALUE"),
        (("--vary", "gravity.2=1", "--vary", "gravity.2=2"), "varied twice"),
        (("--part", "2/2", "--vary", "gravity.2=-1, -2"), "must be K/N"),
        (("--out", "x.txt", "--vary", "gravity.2=-1, -2"), "must end in .parquet or .csv or .npz"),
        (("--vary", "gravity.2=uniform(-2, -1)"), "how many lanes?"),
        (("--vary", "body.bell.mass=1, 2"), 'did you mean "ball"'),
    ],
)
def test_what_is_typed_wrong_is_said_in_a_line(
    arguments: tuple[str, ...], says: str, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    code, output = run("bouncing_ball", "--time", "0.1", *arguments)
    assert code == 2
    assert says in output
    assert not list(tmp_path.iterdir())


# -- many processes --------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_its_shard_alone() -> None:
    distributed = pytest.importorskip("distributed")
    given: dict[str, Any] = {"lanes": 3000, "shard": 100, "vary": {E: "uniform(0.1, 0.95)"}, "duration": 2.0}
    one = carom.sweep("bouncing_ball", **given)
    killed: list[int] = []
    with (
        distributed.LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        workers = client.run(os.getpid).values()
        assert len({*workers, os.getpid()}) == 4

        def kill(progress: Any) -> None:
            if progress.here >= 500 and not killed:
                killed.append(next(iter(workers)))
                os.kill(killed[0], signal.SIGKILL)

        many = carom.sweep("bouncing_ball", on=client, progress=kill, **given)
        assert killed
        assert killed[0] not in client.run(os.getpid).values()
    for name, x in one.arrays.items():
        assert many[name].tobytes() == x.tobytes(), name


PAGE = (ROOT / "docs" / "batches.md").read_text()


def page_blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_the_job_of_many_processes_runs(tmp_path: Path) -> None:
    """With SLURM's variables as it sets them for a job of two processes on one machine."""
    (tmp_path / "balls.py").write_text(page_blocks("python")[-1])
    common = {**os.environ, "LANES": "230", "JAX_PLATFORMS": "cpu"}
    slurm = {"SLURM_JOB_ID": str(os.getpid()), "SLURM_STEP_NODELIST": "localhost", "SLURM_NTASKS": "2"}
    jobs = [
        subprocess.Popen(
            [sys.executable, "balls.py"],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**common, **slurm, "SLURM_PROCID": str(k), "SLURM_LOCALID": str(k)},
        )
        for k in range(2)
    ]
    try:
        said = [job.communicate(timeout=300)[0] for job in jobs]
    finally:
        for job in jobs:
            job.kill()
    assert [job.returncode for job in jobs] == [0, 0], said
    assert "process 0 of 2: 130 lanes" in said[0]
    assert "process 1 of 2: 100 lanes" in said[1]
    (tmp_path / "slurm.npz").rename(tmp_path / "two.npz")
    subprocess.run([sys.executable, "balls.py"], cwd=tmp_path, env=common, check=True, timeout=300)
    assert arrays_of(tmp_path / "slurm.npz") == arrays_of(tmp_path / "two.npz")


@pytest.mark.slow
def test_the_job_array_runs(tmp_path: Path) -> None:
    """The page's shell script, with a `carom` that is this one, and fewer lanes."""
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    program = "import sys; from carom.scenes.cli import main; sys.argv[0] = 'carom'; main()"
    (bin_ / "carom").write_text(f"#!{sys.executable}\n{program}\n")
    (bin_ / "carom").chmod(stat.S_IRWXU)
    (script,) = (block for block in page_blocks("sh") if "SBATCH" in block)
    (tmp_path / "job.sh").write_text(script.replace("1000000", "30 --shard 8").replace(".parquet", ".npz"))
    env = {**os.environ, "PATH": f"{bin_}:{os.environ['PATH']}", "SLURM_ARRAY_TASK_COUNT": "2"}
    for k in (0, 1):
        job = {**env, "SLURM_ARRAY_TASK_ID": str(k)}
        subprocess.run(["bash", "job.sh"], cwd=tmp_path, env=job, check=True, timeout=300)
    assert len(list((tmp_path / "balls.npz.parts").glob("shard-*.npz"))) == 4
    whole = script.replace("1000000", "30 --shard 8").replace(".parquet", ".npz").split("\\\n")[0]
    subprocess.run(["bash", "-c", whole], cwd=tmp_path, env=env, check=True, timeout=300)
    with np.load(tmp_path / "balls.npz") as arrays:
        assert arrays["lane"].tolist() == list(range(30))


@pytest.mark.slow
def test_memory_does_not_go_with_the_lanes() -> None:
    """Of 12 000 lanes all frames would take 250 MB."""
    program = (
        "import resource, jax; jax.config.update('jax_enable_x64', True); import carom; "
        "carom.sweep('bouncing_ball', vary={'gravity.2': 'uniform(-20, -9)'}, lanes={}, shard=500, duration=3.0); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3)"
    )
    few, many = (
        float(subprocess.run([sys.executable, "-c", program.replace("lanes={}", f"lanes={lanes}")],
                             capture_output=True, text=True, check=True).stdout)
        for lanes in (2000, 12_000)
    )  # fmt: skip
    assert many - few < 60  # [MB]


def test_values_of_any_kind_are_columns() -> None:
    assert result.value_array([1, 2]).dtype.kind == "i"
    assert result.value_array([1, 2.5]).tolist() == [1.0, 2.5]
    assert result.value_array([(1, 2), (3, 4.5)]).shape == (2, 2)
    assert result.value_array(["a", (1, 2)]).tolist() == ["a", "[1, 2]"]
    assert jax.config.jax_enable_x64  # pyright: ignore[reportAttributeAccessIssue]
