"""Hybrid dynamics with loops: its extremes, mixtures on Kim's five-bar, and more given than is free."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from carom.engine import results
from carom.engine.algebra.constraints import constrain_implicitly
from carom.engine.dynamics.crba import crba
from carom.engine.dynamics.hybrid import hybrid
from carom.engine.dynamics.rnea import rnea
from carom.engine.loops.forward import constrained
from carom.engine.loops.hybrid import constrained_hybrid
from carom.engine.loops.inverse import constrained_inverse
from carom.engine.loops.jacobian import closed
from carom.tests.oracles.five_bar import five_bar
from carom.tests.oracles.random_trees import Recipe, random_state, random_tree

TOLERANCE = 1e-9  # promised, relative to the largest entry; A_v M^-1 A_v^T squares A's condition number, 1e2


def near(found, wanted, tolerance=TOLERANCE):
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance * max(1, np.abs(wanted).max(initial=0)))


@pytest.fixture(autouse=True)
def op_by_op(request):
    with jax.disable_jit("compiled" not in request.node.name):
        yield


@pytest.fixture(scope="module")
def moving():
    with jax.disable_jit():
        return five_bar(1)


def chosen(*given):
    return jnp.array([[k in row for k in range(5)] for row in given])


GIVEN = chosen((), (1,), (0, 1), (0, 4), (0, 1, 2, 3, 4), (0, 1, 2), (1, 2, 3, 4), (0, 1, 2))
TAU = jnp.array([0.4, -1.0, 2.0, 0.3, -0.6])
IMPOSSIBLE = 7  # the last lane wants accelerations that the loop forbids


@pytest.fixture(scope="module", params=["constraint_force", "torque"])
def found(moving, request):
    """All choices of what is given; accelerations from a motion that the loop allows, except the last."""
    model, q, v, a = moving
    values = jnp.where(GIVEN, a, TAU).at[IMPOSSIBLE, 0].add(1)
    with jax.disable_jit():
        return request.param, constrained_hybrid(model, q, v, given=GIVEN, values=values, minimize=request.param)


@pytest.mark.slow
def test_equations_and_extremes(moving, found):
    """(70, 71); none given: forward dynamics; one, less than is free: the system in one piece, what is prescribed as a
    constraint like the loop's own."""
    model, q, v, a = moving
    found = found[1]
    assert np.array_equal(found.code, [results.OK] * 7 + [results.LOOPS_FORBID])
    assert np.array_equal(found.redundancy, [0, 0, 0, 0, 3, 1, 2, 1])
    A, bias, *_ = closed(model, q, v, 0.0)
    M, b = crba(model, q), rnea(model, q, v, 0 * v)
    for k, held in enumerate(np.asarray(GIVEN)):
        near(M @ found.acceleration[k] + b, found.force[k] + A.T @ found.constraint_force[k])
        near(found.force[k][~held], TAU[~held])
        if k != IMPOSSIBLE:
            near(A @ found.acceleration[k] + bias, np.zeros(6))
            near(found.acceleration[k][held], a[held])
    forward = constrained(model, q, v, 0.0, TAU)
    near(found.acceleration[0], forward.acceleration)
    near(found.constraint_force[0], forward.force)
    K, k = jnp.concatenate([A, jnp.eye(5)[1:2]]), jnp.concatenate([-bias, a[1:2]])
    one = constrain_implicitly(M, b, jnp.where(GIVEN[1], 0, TAU), K, k)
    near(found.acceleration[1], one.acceleration)
    near(found.force[1, 1], one.force[6])
    assert np.abs(found.acceleration[1] - a).max() > 0.1  # the rest moves as it will


@pytest.mark.slow
def test_enough_given_is_inverse_dynamics(moving, found):
    """As much as is free, and more: motors there, redundant ones by the same rule."""
    model, q, v, a = moving
    minimize, found = found
    given, rest = GIVEN[2:], jnp.where(GIVEN[2:], 0, TAU)
    inverse = constrained_inverse(model, q, v, a, actuated=given, passive_force=rest, minimize=minimize)
    own = slice(2, IMPOSSIBLE)
    near(found.force[own], (inverse.torque + rest)[:-1])
    near(found.constraint_force[own], inverse.constraint_force[:-1])
    near(found.acceleration[own], np.tile(a, (IMPOSSIBLE - 2, 1)))


@pytest.mark.slow
def test_a_tree_without_loops():
    rng, model = random_tree(Recipe(305, 3, floating=True, branch=0.4, joints=("revolute",)))
    model = jax.tree.map(jnp.asarray, model)
    q, v = map(jnp.asarray, random_state(rng, model.topology))
    values, given = jnp.asarray(rng.normal(size=v.shape)), jnp.arange(v.size) % 2 == 0
    found, tree = constrained_hybrid(model, q, v, given=given, values=values), hybrid(model, q, v, given, values)
    near(found.acceleration, tree.acceleration)
    near(found.force, tree.force)
    assert found.code == results.OK


@pytest.mark.slow
@pytest.mark.parametrize("kind", [jnp.float32, pytest.param(jnp.float64, marks=pytest.mark.exhaustive)])
def test_compiled_lanes(moving, kind):
    """Choices as lanes of one compiled program, in both widths."""
    model, q, v, a = moving
    given = chosen((), (1,), (0, 1), (0, 1, 2))
    values = jnp.where(given, a, 0.5)
    with jax.disable_jit():
        wanted = constrained_hybrid(model, q, v, given=given, values=values, minimize="torque")
    small = jax.tree.map(lambda x: x.astype(kind), (model, q, v))
    found = constrained_hybrid(*small, given=given, values=values.astype(kind), minimize="torque")
    assert found.force.dtype == kind
    assert np.all(found.code == results.OK)
    for x, y in zip(found[:3], wanted[:3], strict=True):
        near(x, y, 1e-2 if kind == jnp.float32 else TOLERANCE)
