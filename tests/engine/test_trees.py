"""Joint velocities as blocks, a tree each, and back."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.engine.dynamics.trees import from_blocks, to_blocks, trees_of


@pytest.mark.parametrize("widths", [(3, 3), (4, 3), (3, 4), (1, 3, 2)], ids=str)
def test_blocks_and_back(widths):
    b = carom.SceneBuilder()
    for tree, width in enumerate(widths):
        for k in range(width):
            parent = f"{tree} {k - 1}" if k else "world"
            b.add_link(f"{tree} {k}", parent, joint=carom.Revolute(axis=(0, 1, 0)), mass=1.0, inertia=(0.1, 0.1, 0.1))
    model, _ = carom.compile_scene(b.build())
    trees = trees_of(model.topology)
    v = jnp.arange(1.0, model.topology.nv + 1)
    blocks = to_blocks(trees, v)
    rows = [list(row[row != 0]) for row in np.asarray(blocks)]
    ends = np.cumsum((0, *widths))
    assert rows == [*(list(v[a:z]) for a, z in itertools.pairwise(ends)), []]
    np.testing.assert_array_equal(from_blocks(trees, blocks), v)
