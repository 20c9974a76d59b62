"""The benchmarks run, agree with their peers, and print their tables. What they print decides nothing."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench.run", *arguments, "--rounds", "1"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


@pytest.mark.slow
def test_dynamics_bench_runs_and_agrees_with_pinocchio():
    run = bench("dynamics", "--lanes", "8")
    assert run.returncode == 0, run.stdout + run.stderr  # not 0: the accelerations differ
    assert "arm7 (7 dof)" in run.stdout
    assert "humanoid (30 dof)" in run.stdout
    assert run.stdout.count("semi_implicit") == 4  # two scenes, two precisions


@pytest.mark.slow
def test_collision_bench_runs_and_agrees_with_fcl():
    run = bench("collision", "--pairs", "200")
    assert run.returncode == 0, run.stdout + run.stderr  # not 0: gaps or candidates differ
    for pair in ("sphere-sphere", "capsule-capsule", "box-box", *(f"hull-hull {n}" for n in (8, 16, 32, 64))):
        assert run.stdout.count(f"{pair} ") >= 2, pair  # two precisions
    assert run.stdout.count("matrix") == run.stdout.count("cells") == 3  # sizes


def test_number_of_pairs_must_suit_two_devices():
    run = bench("collision", "--pairs", "5")
    assert run.returncode == 2
    assert "--pairs is 5; it must be even" in run.stderr


# fcl, trimesh, rich and typer cannot be imported here, as on a machine with a GPU that lacks them
BARE = """
import sys
for name in ("fcl", "trimesh", "rich", "typer", "pinocchio", "mujoco"):
    sys.modules[name] = None
from bench import run
"""


def bare(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", BARE + code], cwd=ROOT, capture_output=True, text=True)


def test_accelerator_part_imports_nothing_heavy():
    run = bare("from bench import accelerator; accelerator.pair_case('hull-hull 8', 'float32', 2)")
    assert run.returncode == 0, run.stderr


@pytest.mark.slow
def test_accelerator_part_runs_without_what_a_gpu_machine_may_lack():
    run = bare("sys.exit(run.main(['collision', '--device', 'gpu', '--pairs', '2', '--rounds', '1']))")
    assert run.returncode == 0, run.stdout + run.stderr  # not 0: single and double precision differ
    assert "hull-hull 64    f64" in run.stdout
    assert "broad phase, 4096 bodies, cells" in run.stdout
    assert "scene of 1000 bodies" in run.stdout
