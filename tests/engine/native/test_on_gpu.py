"""What is traced where a GPU is jax's device: the programs that a CPU has, whose kernels the other tests prove, except
blocks, which are as wide as a warp."""

import jax
import pytest

import carom
from carom.engine.native.arena import THREADS
from carom.engine.native.runner import VARIABLE
from carom.scenes.library.registry import library_entry
from carom.tests.oracles.gpu import as_on_gpu
from carom.tests.oracles.programs import equations


def scene(name, **changed):
    model, state = carom.compile_scene(library_entry(name).build())
    return lambda lanes: carom.rollout(model, lanes, duration=0.02, frame_dt=0.01, throw=False, **changed), state


def stepped(name):
    model, state = carom.compile_scene(library_entry(name).build())
    return lambda lanes: carom.step(model, lanes, dt=0.01, throw=False), state


RUNS = {
    "contacts": scene("bouncing_ball"),
    "step": stepped("newtons_cradle"),
}


def programs(run, state):
    """The text of each, of one lane and of many."""
    jax.clear_caches()
    found = []
    for lanes in (state, carom.tile(state, 3)):
        made = [
            e.params["program"] for e in equations(jax.make_jaxpr(run)(lanes).jaxpr) if e.primitive.name == "native"
        ]
        found.append([str(p.closed_jaxpr) for p in made])
    return found


@pytest.mark.parametrize("name", RUNS)
def test_a_gpu_is_given_the_programs_of_a_cpu(name, monkeypatch):
    monkeypatch.setenv("CAROM_CACHE", "off")
    here = programs(*RUNS[name])
    with as_on_gpu():
        there = programs(*RUNS[name])
    assert all(here)
    assert here == there


@pytest.mark.parametrize(("runner", "wide"), [("warp", THREADS), ("thread", 1)])
def test_blocks_are_as_wide_as_a_warp_that_shares_them(monkeypatch, runner, wide):
    monkeypatch.setenv("CAROM_CACHE", "off")
    monkeypatch.setenv(VARIABLE, runner)
    with as_on_gpu():
        one, many = programs(*scene("double_pendulum", scheme="semi_implicit"))
    assert f"[{wide},2]" in one[0]
    assert f"[{wide},2]" in many[0]
