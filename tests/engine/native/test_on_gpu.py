"""What is traced where a GPU is jax's device: the programs that a CPU has, whose kernels the other tests prove."""

import jax
import pytest

import carom
from carom.engine.algebra import fence
from carom.scenes.library.registry import library_entry
from carom.tests.oracles.programs import equations


def scene(name, **changed):
    model, state = carom.compile_scene(library_entry(name).build())
    return lambda lanes: carom.rollout(model, lanes, duration=0.02, frame_dt=0.01, throw=False, **changed), state


def stepped(name):
    model, state = carom.compile_scene(library_entry(name).build())
    return lambda lanes: carom.step(model, lanes, dt=0.01, throw=False), state


RUNS = {
    "contacts": scene("bouncing_ball"),
    "free": scene("arm7", scheme="semi_implicit"),
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
        found.append([str(p.closed) for p in made])
    return found


@pytest.mark.parametrize("name", RUNS)
def test_a_gpu_is_given_the_programs_of_a_cpu(name, monkeypatch):
    monkeypatch.setenv("CAROM_CACHE", "off")
    here = programs(*RUNS[name])
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(fence, "_kernels", lambda: True)
    there = programs(*RUNS[name])
    jax.clear_caches()
    assert all(here)
    assert here == there
