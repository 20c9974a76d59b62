"""Inertia matrix, bias force, accelerations and positions against MuJoCo, on random trees written as MJCF."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from carom.engine.dynamics.aba import aba
from carom.engine.dynamics.crba import crba
from carom.engine.dynamics.kinematics import fk
from carom.engine.dynamics.rnea import rnea
from carom.tests.oracles.mujoco_model import SPLIT, Oracle
from carom.tests.oracles.random_trees import Recipe, random_state, random_tree

ITS_OWN = ("revolute", "prismatic", "spherical")  # hinge, slide, ball; free at the root
ALL = tuple(joint for joint in SPLIT if joint != "floating")

TREES = [
    Recipe(201, 1, floating=True),
    Recipe(202, 4, joints=ITS_OWN, branch=0.0),
    Recipe(203, 7, floating=True, joints=ITS_OWN),
    Recipe(204, 8, roots=2, joints=ALL, branch=0.0),
    Recipe(205, 12, roots=3, floating=True, joints=ALL),
    Recipe(206, 20, joints=ALL, branch=0.2),
]
LONG = [Recipe(210 + i, 16 + 3 * i, 1 + i % 2, bool(i % 3), 0.3 * (i % 4), ALL) for i in (1, 3, 6, 8)]
SLOW = [TREES[-1], *LONG]

# the project's promise, relative to the largest entry; MuJoCo keeps inertias as principal axes and a
# quaternion, which costs it some digits (1e-12 seen)
TOLERANCE = 1e-9
STATES = 2
CASES = [pytest.param(r, id=str(r), marks=pytest.mark.exhaustive if r in SLOW else ()) for r in TREES + LONG]


@pytest.mark.parametrize("recipe", CASES)
def test_tree(recipe):
    rng, model = random_tree(recipe)
    oracle = Oracle(model)
    q, v = random_state(rng, model.topology, (STATES,))
    tau = rng.normal(size=v.shape)
    with jax.disable_jit():  # op by op: compiling takes longer than all the checks
        m, *numbers = jax.tree.map(jnp.asarray, (model, q, v, tau))
        found = (
            crba(m, numbers[0]),
            rnea(m, *numbers[:2], jnp.zeros_like(numbers[1])),
            aba(m, *numbers),
            fk(m, numbers[0]).position,
        )
    for k in range(STATES):
        expected = (
            oracle.crba(q[k], v[k]),
            oracle.bias(q[k], v[k]),
            oracle.acceleration(q[k], v[k], tau[k]),
            oracle.positions(q[k], v[k]),
        )
        for mine, theirs in zip(found, expected, strict=True):
            assert mine[k].shape == theirs.shape
            assert np.abs(mine[k] - theirs).max() <= TOLERANCE * np.abs(theirs).max()
