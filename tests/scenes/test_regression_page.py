"""docs/regression.md: its code runs, and prints what it says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from carom.scenes.show.plots import KINDS
from carom.tests.scenes.test_pytest_plugin import PLUGIN

PAGE = (Path(__file__).parents[2] / "docs" / "regression.md").read_text()
BLOCKS = re.findall(r"^```(python test|python|text)\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)


def of(kind: str) -> list[str]:
    return [text for name, text in BLOCKS if name == kind]


def run(*command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    fast = "--xla_cpu_use_fusion_emitters=false --xla_backend_optimization_level=0"
    env = {**os.environ, "XLA_FLAGS": os.environ.get("XLA_FLAGS") or fast, "JAX_ENABLE_X64": "1"}
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=500)


@pytest.mark.exhaustive  # four programs
def test_code_runs_and_prints_what_the_page_says(tmp_path):
    (tmp_path / "page.py").write_text("\n".join(of("python")))
    result = run(sys.executable, "page.py", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [line for text in of("text")[2:] for line in text.splitlines()]
    written = {"sweep.csv", "laws.svg", "changes.html", "ball.png", "energy.svg", "phase.svg"}
    assert written < {path.name for path in tmp_path.iterdir()}


@pytest.mark.slow  # a program, three times over
def test_the_test_fails_until_its_log_is_made_and_says_what_the_page_says(tmp_path):
    (tmp_path / "test_ball.py").write_text(*of("python test"))

    def outcome(*options: str) -> str:
        return run(sys.executable, "-m", "pytest", "-q", *PLUGIN, *options, cwd=tmp_path).stdout

    assert "there is no golden log" in outcome()
    assert "1 passed" in outcome("--carom-update")
    log = (tmp_path / "goldens" / "test_ball.test_a_ball_bounces_as_it_did.jsonl").read_text().splitlines()
    said, failure = of("text")[:2]
    for line, shown in zip(log[:3], said.splitlines(), strict=False):
        assert line.startswith(shown.removesuffix("..."))
    (tmp_path / "test_ball.py").write_text(of("python test")[0].replace("0.9)", "0.900001)"))
    assert failure.strip() in outcome()


def test_the_page_names_all_kinds_of_plots():
    assert re.findall(r"`(\w+)`", PAGE.split("Kinds:")[1]) == list(KINDS)
