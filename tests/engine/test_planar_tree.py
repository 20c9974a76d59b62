"""The recursion along planar chains against the general dynamics of trees."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.engine.planar.accelerations import chain_accelerations
from carom.engine.planar.angles import chain_angular
from carom.engine.planar.model import Chain, ChainDrive, ChainState
from carom.tests.oracles.random_chains import placed, unit

RELATIVE = 1e-9  # what the project promises


@pytest.mark.parametrize("n", [5, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 17, 60))])
@pytest.mark.slow
def test_against_the_general_tree(n):
    """Point-mass links as a tree on two sliders: base free, on a line or guided, joints active or not."""
    rng, lanes = np.random.default_rng(n), 12
    model, state, drive, q, v = random_open(rng, n, lanes)
    along = np.asarray(model.line[:, 0])
    guided, line = np.asarray(model.guided[:, 0]), np.asarray(along.any(-1))
    s = np.where(line[:, None], along, unit(rng.normal(size=(lanes, 2))))
    axes = np.stack([np.stack([s[:, 1], -s[:, 0]], -1), s], 1)
    tree = twin(model, axes)
    base = np.einsum("lij,lj->li", axes, drive.acceleration[:, 0])
    given = np.concatenate([guided[:, None], (guided | line)[:, None], model.active[:, :-1]], 1)
    asked = np.concatenate([np.where(line[:, None], 0, base), drive.angular[:, :-1]], 1)
    forces = np.concatenate([np.zeros((lanes, 2)), drive.torque[:, :-1]], 1)
    q0, v0 = (np.einsum("lij,lj->li", axes, y[:, 0]) for y in (state.x, state.v))
    with jax.disable_jit():  # compiling a tree takes longer than running it once
        true = carom.hybrid(
            tree, *(jnp.asarray(np.concatenate(y, 1)) for y in ((q0, q), (v0, v))), jnp.asarray(given),
            jnp.asarray(np.where(given, asked, forces)),
        )  # fmt: skip
    found = jax.jit(chain_accelerations)(model, state, drive)
    mine = np.concatenate([np.einsum("lij,lj->li", axes, found.a[:, 0]), chain_angular(model, state, found.a)], 1)
    torque = found.torque[:, :-1] + drive.torque[:, :-1]
    for ours, theirs in ((mine, true.acceleration), (torque, true.force[:, 2:])):
        error = np.abs(ours - theirs).max(1) / np.abs(theirs).max(1)
        assert error.max() < RELATIVE


def random_open(rng: np.random.Generator, n: int, lanes: int) -> tuple:
    """Chains held nowhere but at joint 0: a third free, on a line, guided; half of the joints of most active."""
    angle, rate = rng.uniform(-np.pi, np.pi, (lanes, n - 1)), rng.normal(size=(lanes, n - 1))
    length = rng.uniform(0.3, 1, (lanes, n - 1))
    x, v = placed(length, angle, rate, *rng.normal(size=(2, lanes, 2)))
    first = np.arange(n) == 0
    kind = np.arange(lanes)[:, None] % 3
    active = (rng.random((lanes, n)) < 0.5 * (np.arange(lanes)[:, None] % 4 > 0)) & (np.arange(n) < n - 1)
    wide = np.ones((lanes, n))
    none, empty = np.zeros((lanes, n), int), np.zeros((lanes, 0, 2))
    numbers: list[Any] = [
        rng.uniform(0.3, 3, (lanes, n)), length, np.tile([1.0, -9.81], (lanes, 1)), np.full(lanes, n),
        first & (kind == 2), (first & (kind == 1))[..., None] * unit(rng.normal(size=(lanes, n, 2))), active,
        -np.inf * wide, np.inf * wide, 0 * wide, 0 * wide, empty, empty,
    ]  # fmt: skip
    now: list[Any] = [x, v, np.zeros(lanes), none - 1, none]
    outside = {"torque": (), "acceleration": (2,), "angular": ()}
    given: dict[str, Any] = {name: rng.normal(size=(lanes, n, *tail)) for name, tail in outside.items()}
    return Chain(*numbers), ChainState(*now), ChainDrive(**given), angle, rate


def twin(model: Chain, axes: np.ndarray) -> carom.Model:
    """The chain as a tree, (lanes): two sliders along `axes` (lanes, 2, 2) that carry joint 0, then the links."""
    n, none = model.n, np.zeros((3, 3))
    b = carom.SceneBuilder(gravity=(1.0, -9.81, 0))
    b.add_link("x", parent="world", joint=carom.Prismatic(axis=(1, 0, 0)), mass=0.0, inertia=none)
    b.add_link("y", parent="x", joint=carom.Prismatic(axis=(0, 1, 0)), mass=1.0, inertia=none)
    for i in range(n - 1):
        turn = carom.Revolute(axis=(0, 0, 1))
        b.add_link(f"{i}", parent=f"{i - 1}" if i else "y", joint=turn, mass=1.0, com=(1, 0, 0), inertia=none)
    tree, _ = carom.compile_scene(b.build())
    lanes = len(axes)
    mass = np.concatenate([np.zeros((lanes, 1)), model.mass], 1)
    com, position = np.zeros((2, lanes, n + 1, 3))
    com[:, 2:, 0], position[:, 3:, 0] = model.length, model.length[:, :-1]
    axis = np.tile(np.asarray(tree.axis), (lanes, 1, 1))
    axis[:, :2, :2] = axes
    return tree.replace(**{k: jnp.asarray(x) for k, x in
                           {"mass": mass, "com": com, "joint_position": position, "axis": axis}.items()})  # fmt: skip
