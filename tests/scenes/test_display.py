"""Models, states, rollouts, scenes and reports print what a person wants to know, in at most six lines."""

import subprocess
import sys
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import carom
from carom.engine.display import LINES, WIDTH
from carom.scenes.formats.report import ImportReport, Item


def scene() -> carom.SceneSpec:
    b = carom.SceneBuilder()
    b.add_plane(name="floor")
    b.add_body("ball", [carom.Sphere(0.1)], mass=1.0, position=(0, 0, 0.2), restitution=0.5)
    b.add_link(
        "door", joint=carom.Revolute((0, 0, 1)), mass=1.0, com=(0.5, 0, 0), inertia=(0.1, 0.1, 0.1), position=(0, 5, 1)
    )
    return b.build()


def everything() -> dict[str, Any]:
    model, state = carom.compile_scene(scene())
    run = carom.rollout(model, state, duration=0.5)
    lanes = carom.rollout(model.replace(restitution=jnp.ones((3, 2)) * 0.5), carom.tile(state, 3), duration=0.5)
    chain = carom.ChainSpec((carom.ChainJoint(),) * 3, positions=((0, 0), (1, 0), (2, 0)))
    links, at = carom.compile_scene(chain)
    items = (Item("taken", "link 'a'"), Item("approximated", "joint 'b'", "as a hinge"))
    return {
        "model": model, "state": state, "run": run, "lanes": lanes, "scene": scene(), "chain": links, "at": at,
        "humanoid": carom.compile_scene(carom.load("humanoid"))[0], "big": carom.load("pool_break"),
        "falls": carom.chain_rollout(links, at, duration=0.1), "report": ImportReport("a.urdf", items),
        "recording": carom.record(scene(), duration=0.5), "tiled": carom.tile(state, 1000),
    }  # fmt: skip


SAYS = {
    "model": ["2 links, 7 degrees of freedom, 2 shapes, 1 pair that may touch", "ball, door", "1 floating, 1 revolute"],
    "state": ["8 coordinates, 7 velocities", "0.2"],
    "run": ["31 frames from 0 to 0.5 s", "finished", "impacts:", "from 0.142784 to"],
    "lanes": ["31 frames", "3 lanes", "finished"],
    "tiled": ["1000 lanes", "[1000, 8], 0 to 1"],
    "scene": ["1 free body, 1 link, 1 static", "floor", "ball", "door"],
    "humanoid": ["links", "shapes"],
    "big": ["free bodies"],
    "report": ["a.urdf: 1 approximated, 1 taken", "joint 'b'"],
    "recording": ["31 frames", "finished"],
    "chain": ["3 joints"], "at": ["3 joints"], "falls": ["finished"],
}  # fmt: skip


@pytest.fixture(scope="module")
def objects() -> dict[str, Any]:
    return everything()


@pytest.mark.parametrize("name", SAYS)
def test_six_lines_and_a_table(name: str, objects: dict[str, Any]) -> None:
    text, table = repr(objects[name]), objects[name]._repr_html_()
    assert text.startswith(f"{type(objects[name]).__name__}: ")
    lines = text.splitlines()
    assert len(lines) <= LINES
    assert max(map(len, lines)) <= WIDTH
    for said in SAYS[name]:
        assert said in text
    assert table.startswith("<table><caption>")
    assert table.count("<tr>") == table.count("</tr>") >= 1


def test_what_is_no_array_prints_too(objects: dict[str, Any]) -> None:
    """Tracers, axes for vmap, shapes."""
    printed = []

    @jax.jit
    def inside(model: carom.Model, state: carom.State) -> jax.Array:
        run = carom.rollout(model, state, duration=0.5)
        printed.extend(map(repr, (model, state, run)))
        return run.q

    inside(objects["model"], objects["state"])
    assert "float64[8]" in printed[1]
    assert "float64[31, 8]" in printed[2]
    for name in ("model", "state", "run", "chain", "at", "falls"):
        for leaf in (lambda _: None, lambda _: 0, lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype)):
            assert len(repr(jax.tree.map(leaf, objects[name])).splitlines()) <= LINES


def test_a_run_that_failed_says_so(objects: dict[str, Any]) -> None:
    model, state = objects["model"], objects["state"]
    run = carom.rollout(model, state, duration=0.5, max_ticks=3, throw=False)
    assert "TICKS_CAPPED" in repr(run)
    nowhere = carom.State(state.q * jnp.nan, state.v, state.t)
    assert "none finite" in repr(carom.tile(nowhere, 9))


def test_a_scene_is_printed_without_jax() -> None:
    code = "import carom, sys; print(carom.SceneBuilder().build()); assert 'jax' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_numbers_are_written_shortly() -> None:
    assert "[ 0.3333 -1.    ]" in repr(carom.State(jnp.array([1 / 3, -1.0]), jnp.zeros(1), jnp.zeros(())))
