"""The pytest plugin, as people have it: a test with a golden log that is missing, made, kept and broken."""

import subprocess
import sys
from importlib.metadata import entry_points
from typing import Any

import pytest

from carom.tests.scenes.small_runs import ball

pytest_plugins = ["pytester"]

# an installed Carom brings the plugin itself
INSTALLED = any(entry.value == "carom.scenes.pytest_plugin" for entry in entry_points(group="pytest11"))
PLUGIN = () if INSTALLED else ("-p", "carom.scenes.pytest_plugin")

# arrays shaped as in small_runs.py: one program
TEST = """
from carom.tests.scenes.small_runs import RUN, scene

def test_bounces(carom_run, carom_golden):
    carom_golden(carom_run(scene(0.1, {restitution}), title="ball", **RUN){more})
"""


@pytest.fixture(scope="module", autouse=True)
def _compiled() -> None:
    """Before any pytester: each forgets what was imported in its time, and so what that has compiled."""
    ball(0.1)


def ran(pytester: pytest.Pytester, *options: str, restitution: float = 0.9, more: str = "") -> Any:
    pytester.makepyfile(TEST.format(restitution=restitution, more=more))
    return pytester.runpytest_inprocess(*PLUGIN, "-p", "no:cacheprovider", *options)


def test_a_golden_log_is_made_once_and_then_watched(pytester):
    golden = pytester.path / "goldens" / "test_a_golden_log_is_made_once_and_then_watched.test_bounces.jsonl"

    result = ran(pytester)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*there is no golden log*--carom-update*"])
    assert not golden.exists()

    ran(pytester, "--carom-update").assert_outcomes(passed=1)
    text = golden.read_text()
    ran(pytester).assert_outcomes(passed=1)

    result = ran(pytester, restitution=0.900001)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*ball is not as in *", "*the impact ball - floor at t = 0.4515*u_n after was 3.98*"])
    assert golden.read_text() == text

    named = ', "soft"'
    ran(pytester, "--carom-update", restitution=0.5, more=named).assert_outcomes(passed=1)
    assert (golden.parent / "soft.jsonl").exists()


def test_wide_tolerances_let_small_changes_pass(pytester):
    named = ', "ball"'
    ran(pytester, "--carom-update", more=named).assert_outcomes(passed=1)
    wide = "".join(f", {name}=1e-5" for name in ("time", "impulse", "velocity", "energy", "position"))
    ran(pytester, restitution=0.900001, more=named + wide).assert_outcomes(passed=1)
    ran(pytester, more=named + ", times=1e-5").stdout.fnmatch_lines(["*there is no tolerance 'times'*"])


def test_two_runs_of_a_test_need_names(pytester):
    result = ran(pytester, "--carom-update", more=")\n    carom_golden(carom_run(scene(), title='ball', **RUN)")
    result.stdout.fnmatch_lines(["*give each a name*"])


@pytest.mark.parametrize(("dtype", "outcome"), [("float64", "failed"), ("float32", "passed")])
def test_runs_are_in_double_precision_unless_asked_otherwise(pytester, dtype, outcome):
    """In a process of its own, in which nobody has turned on jax's x64 mode."""

    def ran_apart(restitution: float, *options: str) -> Any:
        text = TEST.format(restitution=restitution, more="").replace("title=", f"dtype='{dtype}', title=")
        pytester.makepyfile(text if dtype == "float32" else text.replace("dtype='float64', ", ""))
        return pytester.runpytest_subprocess(*PLUGIN, "-p", "no:cacheprovider", *options)

    ran_apart(0.9, "--carom-update").assert_outcomes(passed=1)
    (golden,) = (pytester.path / "goldens").iterdir()
    assert f'"dtype": "{dtype}"' in golden.read_text().splitlines()[0]
    ran_apart(0.900001).assert_outcomes(**{outcome: 1})


def test_the_plugin_loads_without_jax():
    code = "import sys, carom.scenes.pytest_plugin; assert not {'jax', 'numpy', 'matplotlib'} & {*sys.modules}"
    subprocess.run([sys.executable, "-c", code], check=True)
