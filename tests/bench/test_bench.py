"""The benchmark runs, agrees with its peer, and prints its table. What it prints decides nothing."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_dynamics_bench_runs_and_agrees_with_pinocchio():
    command = [sys.executable, "-m", "bench.run", "dynamics", "--lanes", "8", "--rounds", "1"]
    run = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr  # not 0: the accelerations differ
    assert "arm7 (7 dof)" in run.stdout
    assert "humanoid (30 dof)" in run.stdout
    assert run.stdout.count("semi_implicit") == 4  # two scenes, two precisions
