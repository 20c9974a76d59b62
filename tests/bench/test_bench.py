"""The benchmarks run, agree with their peers, and print their tables. What they print decides nothing."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.bench import start
from carom.bench.contact_cases import by_law, check_impacts, impact_case
from carom.bench.peers import MujocoWorld
from carom.bench.rapier_world import RapierWorld
from carom.bench.step_cases import CASES
from carom.bench.timing import left_to_xla
from carom.engine.native.function import native
from carom.engine.results import IMPACT_UNFINISHED
from carom.engine.state import State

ROOT = Path(__file__).parents[2]


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench.run", *arguments, "--rounds", "1"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


@pytest.mark.slow
def test_dynamics_bench_runs_and_agrees_with_pinocchio():
    run = bench("dynamics", "--lanes", "8", "--only", "arm7")
    assert run.returncode == 0, run.stdout + run.stderr  # not 0: the accelerations differ
    assert "arm7 (7 dof)" in run.stdout
    assert "carom.aba of arm7, f64" in run.stdout
    assert run.stdout.count("semi_implicit") == 2  # precisions


@pytest.mark.slow
def test_collision_bench_runs_and_agrees_with_fcl():
    for part, rows in (("box-box", {"box-box ": 2}), ("broad", {"matrix": 3, "cells": 3})):  # precisions, sizes
        run = bench("collision", "--pairs", "200", "--only", part)
        assert run.returncode == 0, run.stdout + run.stderr  # not 0: gaps or candidates differ
        for row, count in rows.items():
            assert run.stdout.count(row) >= count, row


@pytest.mark.slow
def test_contact_bench_runs_and_agrees_with_a_law():
    run = bench("contact", "--only", "stronge", "--impacts", "64")
    assert run.returncode == 0, run.stdout + run.stderr  # not 0: the law is broken
    assert len(re.findall(r"^ *stronge +f(?:32|64) .* yes *$", run.stdout, re.M)) == 2  # two precisions


@pytest.mark.exhaustive
def test_contact_bench_runs_and_its_stack_stands():
    run = bench("contact", "--only", "stack", "--lanes", "4")
    assert run.returncode == 0, run.stdout + run.stderr  # not 0: a stack falls
    assert len(re.findall(r"^ *[14] +f(?:32|64) .* yes *$", run.stdout, re.M)) == 4


@pytest.mark.slow
def test_contact_bench_of_one_law():
    run = bench("contact", "--only", "frictionless", "--impacts", "64")
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.count(" yes") == 2
    assert "stronge" not in run.stdout
    assert "boxes" not in run.stdout


def test_impacts_are_checked():
    """Whatever a law may not do is found, and said so."""
    case = impact_case(jnp.float64, 64)
    out = by_law("stronge")(*case)
    assert check_impacts("stronge", "f64", case, out).fine
    moved = lambda p: out._replace(impulse=p, u=case.u + jnp.einsum("nij,nj->ni", case.K, p))  # noqa: E731
    wrong = {
        "nothing happens": moved(0 * out.impulse),
        "u is not u0 + K p": out._replace(u=out.u * 1.001),
        "still closes": moved(out.impulse * 0.5),
        "out of the cone": moved(out.impulse + jnp.array([9.0, 0, 0]) * out.impulse[:, 2:]),
        "gains energy": moved(out.impulse * 3),
        "not finite": moved(out.impulse * jnp.nan),
        "unfinished": out._replace(code=out.code + IMPACT_UNFINISHED),
    }
    assert [name for name, result in wrong.items() if check_impacts("stronge", "f64", case, result).fine] == []


@pytest.mark.slow
def test_step_bench_of_an_arm():
    run = bench("step", "--scene", "Euler", "--lanes", "2", "--duration", "0.02", "--dtype", "f64")
    assert run.returncode == 0, run.stdout + run.stderr  # not 0: a lane failed
    assert len(re.findall(r"^ *[12] +f64 .* yes$", run.stdout, re.M)) == 2
    assert "MuJoCo: steps of 1/500 s, Euler: energy drift" in run.stdout
    assert "XLA us/tick" in run.stdout
    assert "RK4" not in run.stdout


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["half_cheetah", "ant", "humanoid"])
def test_step_bench_of_a_robot(name):
    run = bench("step", "--scene", name, "--lanes", "1", "--duration", "0.2", "--dtype", "f64", "--no-xla")
    assert run.returncode == 0, run.stdout + run.stderr  # not 0: a lane failed
    assert len(re.findall(r"^ *1 +f64 .* yes$", run.stdout, re.M)) == 2  # that one, and the same with random torques
    assert "XLA us/tick" not in run.stdout


@pytest.mark.slow
def test_start_bench_of_a_ball():
    run = bench("start", "--scene", "bouncing_ball", "--no-xla")
    assert run.returncode == 0, run.stdout + run.stderr  # not 0: a process failed
    figure = r" +[0-9.]+ \([0-9.]+\)"
    assert re.search(rf"^ *first frame bouncing_ball({figure}){{4}}$", run.stdout, re.M), run.stdout
    assert re.search(rf"^ *carom run bouncing_ball({figure}){{2}} *$", run.stdout, re.M), run.stdout
    assert "ragdoll" not in run.stdout


def test_start_bench_says_what_failed(capfd, monkeypatch, tmp_path):
    assert start.time_process("nothing", ["rollout", "no such scene"], str(tmp_path)) is None
    assert "no such scene" in capfd.readouterr().err
    monkeypatch.setattr(start, "LIMIT", 0.05)
    stopped = start.time_process("bouncing_ball", ["rollout", "bouncing_ball"], str(tmp_path))
    assert stopped is not None
    assert stopped.cpu == float("inf")


def test_a_function_runs_both_ways_by_turns(monkeypatch):
    """As machine code of our own and as XLA's program, without either taking the place of the other."""
    monkeypatch.setenv("CAROM_CACHE", "off")

    @native
    def double(_, x):
        return 2 * x

    run: Any = jax.jit(lambda x: double(None, x))
    x, programs = jnp.arange(3.0), []
    for _ in range(2):
        assert "custom_call" in run.lower(x).as_text()
        np.testing.assert_array_equal(run(x), 2 * x)
        with left_to_xla():
            assert "custom_call" not in run.lower(x).as_text()
            np.testing.assert_array_equal(run(x), 2 * x)
        programs.append(run._cache_size())
    assert programs == [2, 2]


@pytest.mark.exhaustive
def test_profile_of_the_step_of_a_stack():
    run = bench("step", "--scene", "stack", "--lanes", "1", "--dtype", "f64", "--profile")
    assert run.returncode == 0, run.stdout + run.stderr  # not 0: the stages do not do what the tick does
    assert "all: the tick" in run.stdout


@pytest.mark.parametrize("name", CASES)
def test_lanes_of_the_step_bench_differ(name):
    _, state = CASES[name].model_and_state(jnp.float32)
    few, many = (CASES[name].states(state, lanes) for lanes in (3, 8))
    x = np.concatenate([many.q, many.v], 1)
    assert x.shape == (8, state.q.size + state.v.size)
    assert len(np.unique(x, axis=0)) == 8
    np.testing.assert_array_equal(np.concatenate([few.q, few.v], 1), x[:3])


@pytest.mark.parametrize(("name", "apart"), [("arm7, Euler", 1e-3), ("pool_break", 1e-4)])
def test_peers_move_alike(name, apart):
    """apart: [m, rad] after 0.05 s, without friction: a ball that slips hops in MuJoCo. rapier3d is in f32."""
    model, state = CASES[name].model_and_state(jnp.float64)
    model = model.replace(pair_friction=0 * model.pair_friction)
    state = CASES[name].states(state, 1)
    worlds = [make(model, 1 / 4000) for make in (MujocoWorld, RapierWorld)]
    ends = []
    for world in worlds:
        world.start(np.asarray(state.q[0]), np.asarray(state.v[0]))
        world.run(0)
        np.testing.assert_allclose(world.state()[0], state.q[0], rtol=0, atol=1e-6)
        world.run(200)
        ends.append(world.state()[0])
    assert np.abs(ends[0] - state.q[0]).max() > 50 * apart  # they have moved
    np.testing.assert_allclose(*ends, rtol=0, atol=apart)


@pytest.mark.parametrize("name", ["half_cheetah", "ant", "humanoid"])
def test_robots_are_in_the_same_state(name):
    """The peer reads the file itself: kinetic energies tell whether velocities mean the same."""
    case = CASES[name]
    model, state = case.model_and_state(jnp.float64)
    q, v = np.array(state.q), np.random.default_rng(0).normal(size=state.v.shape)
    if "floating" in model.topology.joints:
        q[3:7] = 0.5  # turned, so that axes matter
    world = MujocoWorld(model, case.max_dt, file=case.file)
    world.start(q, v)
    world.run(0)
    for mine, theirs in zip((q, v), world.state(), strict=True):
        np.testing.assert_allclose(theirs, mine, rtol=0, atol=1e-12)
    world.mujoco.mj_forward(world.model, world.data)
    world.mujoco.mj_energyVel(world.model, world.data)
    energy = carom.energy(model, State(jnp.asarray(q), jnp.asarray(v), state.t))
    np.testing.assert_allclose(world.data.energy[1], energy.kinetic, rtol=1e-12)


@pytest.mark.parametrize("count", ["--pairs", "--impacts"])
def test_counts_must_suit_two_devices(count):
    run = bench("collision", count, "5")
    assert run.returncode == 2
    assert f"{count} is 5; it must be even" in run.stderr


# fcl, trimesh, rich and typer cannot be imported here, as on a machine with a GPU that lacks them
BARE = """
import sys
for name in ("fcl", "trimesh", "rich", "typer", "pinocchio", "mujoco", "rapier3d"):
    sys.modules[name] = None
from bench import run
"""


def bare(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", BARE + code], cwd=ROOT, capture_output=True, text=True)


@pytest.mark.slow
def test_accelerator_part_imports_nothing_heavy():
    run = bare(
        "from bench import accelerator\n"
        "accelerator.pair_case('hull-hull 8', 'float32', 2)\n"
        "accelerator.stack_case('float32')"
    )
    assert run.returncode == 0, run.stderr


@pytest.mark.slow
def test_accelerator_part_runs_without_what_a_gpu_machine_may_lack():
    arguments = "['collision', '--device', 'gpu', '--pairs', '2', '--rounds', '1', '--only', 'capsule']"
    run = bare(f"sys.exit(run.main({arguments}))")
    assert run.returncode == 0, run.stdout + run.stderr  # not 0: single and double precision differ
    assert "capsule-capsule" in run.stdout
    assert "f64" in run.stdout


@pytest.mark.exhaustive
def test_gpu_suite_runs_without_what_a_gpu_machine_may_lack():
    run = bare("sys.exit(run.main(['gpu', '--alone', 'arm7', '--sizes', '2', '--duration', '0.02']))")
    assert run.returncode == 0, run.stdout + run.stderr
    assert '"right": true' in run.stdout
    assert '"lanes": 2' in run.stdout


@pytest.mark.exhaustive
def test_accelerator_part_of_contact_runs_without_what_a_gpu_machine_may_lack():
    arguments = "['contact', '--device', 'gpu', '--impacts', '64', '--rounds', '1', '--only', 'cone_projection']"
    run = bare(f"sys.exit(run.main({arguments}))")
    assert run.returncode == 0, run.stdout + run.stderr  # not 0: the law is broken
    assert run.stdout.count("cone_projection ") == 6  # two precisions, three sizes


@pytest.mark.slow
def test_envs_bench_and_its_engines_agree():
    run = bench("envs", "--only", "pendulum")
    assert run.returncode == 0, run.stdout + run.stderr  # not 0: the engines differ
    assert run.stdout.count("gymnasium's best") == 3
