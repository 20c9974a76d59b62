"""Joint velocities as blocks, a tree each, and back; and the inverse inertia of each tree."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.contact.contact_jacobian import inverse_mass_matrix
from carom.engine.dynamics import trees
from carom.engine.dynamics.crba import crba
from carom.engine.dynamics.kinematics import propagate_poses
from carom.engine.dynamics.trees import from_blocks, to_blocks, trees_of
from carom.engine.forest import Forest
from carom.tests.oracles.random_trees import Recipe, random_q, random_tree


@pytest.mark.parametrize("widths", [(3, 3), (4, 3), (3, 4), (1, 3, 2)], ids=str)
def test_blocks_and_back(widths):
    b = carom.SceneBuilder()
    for tree, width in enumerate(widths):
        for k in range(width):
            parent = f"{tree} {k - 1}" if k else "world"
            b.add_link(f"{tree} {k}", parent, joint=carom.Revolute(axis=(0, 1, 0)), mass=1.0, inertia=(0.1, 0.1, 0.1))
    model, _ = carom.compile_scene(b.build())
    rows_of = trees_of(model.topology)
    v = jnp.arange(1.0, model.topology.nv + 1)
    blocks = to_blocks(rows_of, v)
    rows = [list(row[row != 0]) for row in np.asarray(blocks)]
    ends = np.cumsum((0, *widths))
    assert rows == [*(list(v[a:z]) for a, z in itertools.pairwise(ends)), []]
    np.testing.assert_array_equal(from_blocks(rows_of, blocks), v)


# -- M^-1, of one tree from its factors, of others by responses -----------------------------------------

TREES = [Recipe(k, links, floating=k % 2 > 0) for k, links in enumerate((2, 3, 5, 8, 9, 12, 25))]
FORESTS = [Recipe(7, 6, 2), Recipe(8, 9, 3, True)]


@pytest.mark.parametrize("recipe", [*TREES, *FORESTS], ids=str)
def test_inverse_inertias_are_inverse(recipe):
    rng, model = random_tree(recipe)
    topology = model.topology
    lanes = random_q(rng, topology, (3,))
    for q in (lanes, lanes[0]):
        M = np.asarray(crba(model, q))
        blocks = np.asarray(jax.jit(inverse_mass_matrix)(model, q))
        for dofs, block in zip(trees_of(topology).dofs, blocks, strict=True):
            own = dofs[dofs < topology.nv]
            size, inverse = M[..., own[:, None], own], np.moveaxis(block, (0, 1), (-2, -1))
            inverse = inverse[..., : len(own), : len(own)]
            scale = np.sqrt(np.diagonal(inverse, axis1=-2, axis2=-1))
            wanted = np.linalg.inv(size)
            error = np.abs(inverse - wanted) / (scale[..., :, None] * scale[..., None, :])
            assert error.max() < 1e-14 * np.linalg.cond(size).max()
            assert np.abs(size @ inverse - np.eye(len(own))).max() < 1e-14 * np.linalg.cond(size).max()


def test_trees_of_any_width_respond_alike(monkeypatch):
    """The inverse from the factors, and the one by responses, which wide trees have."""
    recipe = Recipe(3, 12, floating=True)
    rng, model = random_tree(recipe)
    assert 12 < model.topology.nv <= trees.WIDEST
    q = random_q(rng, model.topology)
    forest = Forest(model.topology, (), jnp.zeros(()).dtype)
    inverse = lambda q: trees.inverse_inertias(forest, model, propagate_poses(forest, model, q))  # noqa: E731
    by_factors = jax.jit(inverse)(jnp.asarray(q))
    monkeypatch.setattr(trees, "WIDEST", 0)
    by_responses = jax.jit(lambda q: inverse(q))(jnp.asarray(q))
    np.testing.assert_allclose(by_factors, by_responses, rtol=1e-9, atol=1e-12 * np.abs(by_factors).max())
