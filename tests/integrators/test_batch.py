"""Batches: lanes some at a time, over two devices, and over two processes. As a program it is one of those."""

import functools
import os
import socket
import subprocess
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

import carom
from carom.engine.results import SimulationError
from carom.integrators import batch

RUN: dict[str, Any] = {"duration": 0.3, "frame_dt": 0.1}
LANES = 5


@functools.cache
def sliders() -> tuple[carom.Model, carom.State, jax.Array]:
    """Lanes of a mass on a rail, no two alike in mass or speed; and what pushes each, one row a frame."""
    b = carom.SceneBuilder()
    b.add_link("slider", joint=carom.Prismatic((1, 0, 0)), mass=2.0, inertia=(1, 1, 1))
    model, state = carom.compile_scene(b)
    states = carom.tile(state, LANES)
    states = carom.State(states.q, jnp.arange(LANES, dtype=states.v.dtype)[:, None], states.t)
    pushes = jnp.sin(jnp.arange(3 * LANES, dtype=states.v.dtype)).reshape(3, LANES, 1)
    return model.replace(mass=jnp.linspace(1, 2, LANES)[:, None]), states, pushes


def balls(lanes: int, friction: float) -> tuple[carom.Model, carom.State]:
    """Two balls that drop on a plane and meet there; speeds and masses differ from lane to lane."""
    b = carom.SceneBuilder()
    b.add_plane(friction=friction, restitution=0.8)
    for k in range(2):
        ball, place = carom.Sphere(0.1), (0.3 * k, 0, 0.2 + 0.1 * k)
        b.add_body(f"ball{k}", [ball], mass=1.0, position=place, friction=friction, restitution=0.8)
    model, state = carom.compile_scene(b)
    states = carom.tile(state, lanes)
    random = np.random.default_rng(0).normal(size=(lanes, 3)) * 0.3
    v = np.array(states.v)
    v[:, 3:6] = random + np.array([1.0, 0, 0])
    mass = jnp.linspace(1, 2, lanes)[:, None] * model.mass
    return model.replace(mass=mass), carom.State(states.q, jnp.asarray(v), states.t)


BALLS: dict[str, Any] = {**RUN, "max_events": 16}


def assert_same(one: Any, two: Any, atol: float = 0.0) -> None:
    assert jax.tree.structure(one) == jax.tree.structure(two)
    for (path, x), y in zip(jax.tree_util.tree_leaves_with_path(one), jax.tree.leaves(two), strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=atol, err_msg=jax.tree_util.keystr(path))


# -- some at a time ---------------------------------------------------------------------------------


def test_chunks_give_the_same_numbers_in_numpy() -> None:
    """Whether the last chunk is full or not (5 lanes), or one is all."""
    model, states, pushes = sliders()
    whole = carom.rollout(model, states, control=pushes, **RUN)
    assert len(np.unique(whole.q[:, -1, 0])) == LANES
    for chunk in (2, 8):
        parts = carom.rollout(model, states, control=pushes, chunk=chunk, **RUN)
        assert_same(parts, whole, atol=1e-15)  # programs of other shapes may round differently
        assert isinstance(parts.q, np.ndarray) == (chunk < LANES)


def test_chunks_share_one_program() -> None:
    """The last one too, which has fewer lanes."""
    model, states, _ = sliders()
    shapes = []

    def run(model: carom.Model, state: carom.State, *_: Any) -> Any:
        assert model.mass.shape == (len(state.t), 1)
        shapes.append(state.t.shape)
        return {"v": state.v, "m": model.mass}

    gathered = batch.in_chunks(run, 2, 1, model, states, jnp.ones(3), None)
    assert shapes == [(2,), (2,), (2,)]
    np.testing.assert_array_equal(gathered["v"], states.v)
    np.testing.assert_array_equal(gathered["m"], model.mass)


def test_chunks_say_how_far_they_are(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    model, states, _ = sliders()
    carom.rollout(model, states, chunk=2, **RUN)
    said = capsys.readouterr()
    assert said.out == said.err == ""  # it takes no two seconds
    monkeypatch.setattr(batch, "PATIENCE", 0.0)
    carom.rollout(model, states, chunk=2, **RUN)
    said = capsys.readouterr()
    assert said.out == ""
    assert f"{LANES}/{LANES}" in said.err


def test_a_lane_that_fails_is_named_by_its_number_in_the_batch() -> None:
    model, states, _ = sliders()
    broken = carom.State(states.q, states.v.at[3].set(jnp.nan), states.t)
    with pytest.raises(SimulationError, match="lane 3 "):
        carom.rollout(model, broken, chunk=2, **RUN)


# -- over devices -----------------------------------------------------------------------------------


def test_a_mesh_of_one_device_gives_the_same_numbers() -> None:
    model, states, pushes = sliders()
    whole = carom.rollout(model, states, control=pushes, devices=1, **RUN)
    ran = []

    def program(static: Any, *numbers: Any) -> Any:
        ran.append(static)
        return jax.tree.map(lambda x: 2 * x, numbers[1])

    numbers = (model, states, jnp.ones(3), pushes)
    twice = batch.over_devices(program, "static", jax.devices()[:1], *numbers)
    assert ran == ["static"]
    np.testing.assert_array_equal(twice.v, 2 * states.v)
    assert_same(carom.rollout(model, states, control=pushes, devices=jax.devices()[:1], **RUN), whole)


def test_what_cannot_be_done_is_said() -> None:
    model, states, _ = sliders()
    for devices in (0, 1000):
        with pytest.raises(ValueError, match=f"devices is {devices}; there are"):
            carom.rollout(model, states, devices=devices, **RUN)
    with pytest.raises(ValueError, match="chunk is 0"):
        carom.rollout(model, states, chunk=0, **RUN)
    with pytest.raises(ValueError, match="inside jit"):
        jax.jit(lambda s: carom.rollout(model, s, chunk=2, **RUN).q)(states)
    spread = jax.device_put(states, NamedSharding(jax.make_mesh((1,), ("those",)), PartitionSpec("those")))
    with pytest.raises(ValueError, match="inside jit the lanes are spread over the explicit mesh axis 'those'"):
        jax.jit(lambda s: carom.rollout(model, s, **RUN).q)(spread)
    carom.rollout(model, spread, **RUN)


def run_here(*arguments: str, flags: str | None = None) -> subprocess.Popen[str]:
    """This file as a program in a process of its own."""
    env = os.environ | ({} if flags is None else {"XLA_FLAGS": flags})
    command = [sys.executable, __file__, *arguments]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.mark.exhaustive
def test_two_devices() -> None:
    """The code that users get: in this small scene all bits are the same there (not in every scene is that so)."""
    child = run_here("devices", flags="")
    said, _ = child.communicate(timeout=600)
    assert child.returncode == 0, said
    assert "two devices: same" in said


@pytest.mark.slow
def test_two_processes() -> None:
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = str(free.getsockname()[1])
    children = [run_here("process", str(k), port) for k in range(2)]
    try:
        for k, child in enumerate(children):
            said, _ = child.communicate(timeout=600)
            assert child.returncode == 0, said
            assert f"process {k}: same" in said
    finally:
        for child in children:
            child.kill()


# -- what the subprocesses do -----------------------------------------------------------------------


def on_two_devices() -> None:
    jax.config.update("jax_num_cpu_devices", 2)
    model, states = balls(7, friction=0.3)
    one = carom.rollout(model, states, devices=1, **BALLS)
    assert np.asarray(one.stats.impacts).min() > 1
    assert_same(carom.rollout(model, states, chunk=4, **BALLS), one)

    model, states, pushes = sliders()
    spread = carom.rollout(model, states, control=pushes, **RUN)  # 5 lanes, and one more that is cut off
    assert spread.q.sharding.device_set == set(jax.devices())
    second = carom.rollout(model, states, control=pushes, devices=[jax.devices()[1]], **RUN)
    assert second.q.devices() == {jax.devices()[1]}
    assert_same(spread, second, atol=1e-15)  # programs of other shapes may round differently
    print("two devices: same")


def in_two_processes(number: int, port: str) -> None:
    jax.config.update("jax_num_cpu_devices", 1)
    jax.distributed.initialize(f"localhost:{port}", num_processes=2, process_id=number)
    from jax.experimental.multihost_utils import process_allgather

    # without friction: whether a ball still slips when its impact ends can turn on the last bit, and other programs
    # round that differently
    model, states = balls(4, friction=0.0)
    alone = carom.rollout(model, states, chunk=2, **BALLS)
    mine = slice(2 * number, 2 * number + 2)
    own = model.replace(mass=model.mass[mine]), jax.tree.map(lambda x: x[mine], states)
    ran = carom.rollout(*own, **BALLS)
    assert ran.q.devices() == set(jax.local_devices())
    assert_same(process_allgather(ran, tiled=True), alone)

    # one array over both processes, of which each has its part
    sharding = NamedSharding(jax.make_mesh((2,), ("lane",)), PartitionSpec("lane"))
    spread = jax.tree.map(lambda x: jax.make_array_from_process_local_data(sharding, np.asarray(x)), own[1])
    ran = carom.rollout(model, spread, **BALLS)
    assert not ran.q.is_fully_addressable
    with pytest.raises(ValueError, match="chunk is for"):
        carom.rollout(model, spread, chunk=2, **BALLS)
    assert_same(process_allgather(ran, tiled=True), alone, atol=1e-12)  # another program: it may round differently
    print(f"process {number}: same")


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    if sys.argv[1] == "devices":
        on_two_devices()
    else:
        in_two_processes(int(sys.argv[2]), sys.argv[3])
