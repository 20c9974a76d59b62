"""Hybrid dynamics: its two extremes, and mixed systems against a dense solve of M a + b = tau."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from carom.engine.dynamics.aba import aba
from carom.engine.dynamics.crba import crba
from carom.engine.dynamics.hybrid import hybrid
from carom.engine.dynamics.rnea import rnea
from carom.tests.oracles.random_trees import Recipe, random_state, random_tree

TREES = [
    Recipe(301, 9, branch=0.0),
    Recipe(302, 10, roots=3, floating=True, branch=0.6),
    Recipe(303, 1, floating=True),
    Recipe(304, 1, joints=("spherical",)),
]
TOLERANCE = 1e-9  # promised, relative to the largest entry; the dense solve loses 1e-12 to M's condition
ROUNDING = 1e-11  # two O(n) recursions over the same tree


def close(a, b, tolerance):
    return np.abs(np.asarray(a) - np.asarray(b)).max() <= tolerance * np.abs(b).max()


def drawn(recipe, batch=()):
    """Model, q, v, and as many random numbers as degrees of freedom."""
    rng, model = random_tree(recipe)
    q, v = random_state(rng, model.topology, batch)
    return rng, *jax.tree.map(jnp.asarray, (model, q, v, rng.normal(size=v.shape)))


@pytest.fixture(autouse=True)
def op_by_op():
    """Without compiling, except in the test that asks for it: these trees are all different."""
    with jax.disable_jit():
        yield


@pytest.mark.parametrize("recipe", TREES, ids=str)
def test_all_prescribed_is_inverse_dynamics(recipe):
    _, model, q, v, a = drawn(recipe)
    found = hybrid(model, q, v, jnp.ones(v.shape, bool), a)
    assert np.array_equal(found.acceleration, a)
    assert close(found.force, rnea(model, q, v, a), ROUNDING)


@pytest.mark.parametrize("recipe", TREES, ids=str)
def test_none_prescribed_is_forward_dynamics(recipe):
    _, model, q, v, tau = drawn(recipe)
    found = hybrid(model, q, v, jnp.zeros(v.shape, bool), tau)
    assert np.array_equal(found.force, tau)
    assert close(found.acceleration, aba(model, q, v, tau), ROUNDING)


def dense(model, q, v, given, values):
    """M a + b = tau with M and b in numbers: M_ff a_f = tau_f - b_f - M_fp a_p."""
    M, b = np.asarray(crba(model, q)), np.asarray(rnea(model, q, v, jnp.zeros_like(v)))
    free = ~given
    a = np.where(given, values, 0.0)
    a[free] = np.linalg.solve(M[np.ix_(free, free)], (values - b - M @ a)[free])
    return a, M @ a + b


@pytest.mark.parametrize("recipe", TREES, ids=str)
def test_mixed_system(recipe):
    """Each lane prescribes other degrees of freedom, also some but not all of one joint's."""
    rng, model, q, v, values = drawn(recipe, (6,))
    given = rng.random(v.shape) < 0.5
    given[:, 0], given[:, -1] = [0, 1, 0, 1, 0, 1], [1, 0, 1, 0, 1, 0]
    split = [
        given[0, s : s + n].any() and not given[0, s : s + n].all()
        for s, n in zip(model.topology.v_start, np.diff(model.topology.v_start), strict=False)
        if n > 1
    ]
    assert any(split)
    found = hybrid(model, q, v, jnp.asarray(given), values)
    for k in range(6):
        a, tau = dense(model, q[k], v[k], given[k], np.asarray(values[k]))
        assert close(found.acceleration[k], a, TOLERANCE)
        assert close(found.force[k], tau, TOLERANCE)


def test_prescribed_floating_base():
    """The base is led along a given path; the arms follow, and the wrench that leads it comes out."""
    _, model, q, v, values = drawn(Recipe(305, 8, floating=True, branch=0.4))
    given = np.arange(v.size) < 6
    found = hybrid(model, q, v, jnp.asarray(given), values)
    a, tau = dense(model, q, v, given, np.asarray(values))
    assert close(found.acceleration, a, TOLERANCE)
    assert close(found.force[:6], tau[:6], TOLERANCE)


@pytest.mark.slow
def test_compiled_and_traced_choice():
    """One program serves every choice of what is given: `given` is data, not structure."""
    _, model, q, v, values = drawn(Recipe(306, 3, floating=True, branch=0.0, joints=("universal", "prismatic")))
    with jax.disable_jit(False):
        solve = jax.jit(jax.vmap(lambda given: hybrid(model, q, v, given, values)))
        choices = np.random.default_rng(0).random((5, v.size)) < 0.5
        found = solve(jnp.asarray(choices))
    for k, given in enumerate(choices):
        a, tau = dense(model, q, v, given, np.asarray(values))
        assert close(found.acceleration[k], a, TOLERANCE)
        assert close(found.force[k], tau, TOLERANCE)
