"""Wrenches on links: J^T by the Jacobian of every link, and M^-1 J^T by a dense solve."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from carom.engine.dynamics.crba import crba
from carom.engine.dynamics.jacobian import jacobian
from carom.engine.dynamics.wrenches import joint_forces, velocity_changes
from carom.tests.oracles.random_trees import Recipe, random_q, random_tree

TOLERANCE = 1e-10  # relative to the largest entry; M's condition of up to 1e4 leaves 1e-12
TREES = [Recipe(402, 6, roots=2, floating=True, branch=0.7), Recipe(404, 1, floating=True)]


@pytest.fixture(autouse=True)
def op_by_op():
    with jax.disable_jit():
        yield


@pytest.mark.parametrize("recipe", TREES, ids=str)
@pytest.mark.slow
def test_all_links_pushed_at_once(recipe):
    """Other wrenches and coordinates in each of two lanes."""
    rng, model = random_tree(recipe)
    model = jax.tree.map(jnp.asarray, model)
    q = jnp.asarray(random_q(rng, model.topology, (2,)))
    wrenches = rng.normal(size=(2, model.topology.n_links, 6))
    tau, dv = (f(model, q, jnp.asarray(wrenches)) for f in (joint_forces, velocity_changes))
    for lane in range(2):
        links = range(model.topology.n_links)
        J = np.stack([jacobian(model, q[lane], link, (0.0, 0.0, 0.0)) for link in links])
        wanted = np.einsum("lij,li->j", J, wrenches[lane])
        np.testing.assert_allclose(tau[lane], wanted, rtol=0, atol=TOLERANCE * np.abs(wanted).max())
        wanted = np.linalg.solve(crba(model, q[lane]), wanted)
        np.testing.assert_allclose(dv[lane], wanted, rtol=0, atol=TOLERANCE * np.abs(wanted).max())


def test_wrenches_of_another_model_are_refused():
    _, model = random_tree(TREES[1])
    with pytest.raises(ValueError, match=r"wrenches has shape \(3, 6\); this model needs \(\.\.\., 1, 6\)"):
        joint_forces(model, jnp.zeros(7), jnp.zeros((3, 6)))
