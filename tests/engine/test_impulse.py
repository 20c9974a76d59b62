"""Impulse response: M^-1 J^T by a dense solve, K matrices of contacts, and the energy an impulse brings."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from carom.engine.dynamics.crba import crba
from carom.engine.dynamics.energy import energy
from carom.engine.dynamics.impulse import impulse_response
from carom.engine.dynamics.jacobian import jacobian
from carom.engine.state import State
from carom.tests.oracles.random_trees import Recipe, random_q, random_state, random_tree

TOLERANCE = 1e-10  # promised, relative to the largest entry; M's condition of up to 1e4 leaves 1e-12
TREES = [
    Recipe(401, 9, branch=0.0),
    Recipe(402, 10, roots=2, floating=True, branch=0.7),
    Recipe(403, 12, roots=3),
    Recipe(404, 1, floating=True),
]


@pytest.fixture(autouse=True)
def op_by_op():
    with jax.disable_jit():
        yield


def drawn(recipe, batch=()):
    rng, model = random_tree(recipe)
    return rng, jax.tree.map(jnp.asarray, model), jnp.asarray(random_q(rng, model.topology, batch))


def close(a, b):
    return np.abs(np.asarray(a) - np.asarray(b)).max() <= TOLERANCE * np.abs(b).max()


def moving_links(model):
    """Links that some degree of freedom moves."""
    moves = np.diff(model.topology.v_start) > 0
    return [i for i in range(model.topology.n_links) if moves[list(model.topology.ancestors(i))].any()]


def two_links(model):
    """Two links of the first tree that has two moving ones, far apart."""
    trees = {i: [] for i in range(model.topology.n_links)}
    for i in moving_links(model):
        trees[model.topology.ancestors(i)[-1]].append(i)
    return next((links[0], links[-1]) for links in trees.values() if len(links) > 1)


def dense_response(model, q, link, point, wrench):
    """M^-1 J^T w by a dense solve; one state."""
    return np.linalg.solve(crba(model, q), jacobian(model, q, link, point).T @ wrench)


@pytest.mark.parametrize("recipe", TREES, ids=str)
@pytest.mark.slow
def test_is_inverse_inertia_times_jacobian(recipe):
    """Impulse and moment at once, other numbers in each lane, given as (..., 3) arrays."""
    rng, model, q = drawn(recipe, (2,))
    for link in moving_links(model)[::4]:
        point, impulse, moment = (jnp.asarray(x) for x in rng.normal(size=(3, 2, 3)))
        found = impulse_response(model, q, link, point, impulse, moment)
        assert found.shape == (2, model.topology.nv)
        for k in range(2):
            wrench = np.concatenate([moment[k], impulse[k]])
            assert close(found[k], dense_response(model, q[k], link, point[k], wrench))


@pytest.mark.parametrize("recipe", TREES[:3], ids=str)
@pytest.mark.slow
def test_two_points_of_one_tree(recipe):
    """Opposite impulses on two links of a tree: the responses add up to M^-1 (J_1 - J_2)^T p."""
    rng, model, q = drawn(recipe)
    first, second = two_links(model)
    x1, x2, p = jnp.asarray(rng.normal(size=(3, 3)))
    J = np.asarray(jacobian(model, q, first, x1) - jacobian(model, q, second, x2))[3:]
    found = impulse_response(model, q, first, x1, p) + impulse_response(model, q, second, x2, -p)
    dense = np.linalg.solve(crba(model, q), J.T @ p)
    assert close(found, dense)


def responses(model, q, link, point):
    """(nv, 3): M^-1 J^T of the point, a unit impulse along each world axis as a batch of three lanes."""
    return impulse_response(model, jnp.broadcast_to(q, (3, q.size)), link, point, jnp.eye(3)).T


@pytest.mark.slow
def test_contact_matrix_of_a_tree_with_itself():
    """K = K11 - K12 - K21 + K22 is J M^-1 J^T of the relative velocity: symmetric, K21 = K12^T, no negative power."""
    rng, model, q = drawn(TREES[1])
    first, second = two_links(model)
    x1, x2 = jnp.asarray(rng.normal(size=(2, 3)))
    J1, J2 = (np.asarray(jacobian(model, q, i, x))[3:] for i, x in ((first, x1), (second, x2)))
    W1, W2 = responses(model, q, first, x1), responses(model, q, second, x2)
    K11, K12, K21, K22 = J1 @ W1, J1 @ W2, J2 @ W1, J2 @ W2
    assert close(K12, K21.T)
    K = K11 - K12 - K21 + K22
    assert close(K, K.T)
    assert close(K, (J1 - J2) @ np.linalg.solve(crba(model, q), (J1 - J2).T))
    assert np.linalg.eigvalsh((K + K.T) / 2)[0] > 0


@pytest.mark.parametrize("recipe", TREES, ids=str)
@pytest.mark.slow
def test_energy_gained_is_impulse_times_mean_velocity(recipe):
    """dT = p . (u_before + u_after) / 2, u the velocity of the struck point."""
    rng, model = random_tree(recipe)
    q, v = random_state(rng, model.topology)
    model, q, v = jax.tree.map(jnp.asarray, (model, q, v))
    link, (point, p) = moving_links(model)[-1], jnp.asarray(rng.normal(size=(2, 3)))
    after = v + impulse_response(model, q, link, point, p)
    J = jacobian(model, q, link, point)[3:]
    T = [energy(model, State(q, x, jnp.zeros(()))).kinetic for x in (v, after)]
    work = p @ J @ (v + after) / 2
    assert abs(T[1] - T[0] - work) <= TOLERANCE * abs(T[1])
    assert abs(work) > 1e-3  # the blow does something


def test_free_body_is_newton_euler():
    """dv = p/m at the centre of mass, dw = I^-1 (r x p)."""
    rng, model, q = drawn(TREES[3])
    point, p = jnp.asarray(rng.normal(size=(2, 3)))
    w, x, y, z = np.asarray(q[3:])
    R = np.array([
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ])  # fmt: skip
    com = R @ np.asarray(model.com[0])
    bare = model.replace(armature=jnp.zeros(6))
    dw = np.linalg.solve(R @ np.asarray(model.inertia[0]) @ R.T, np.cross(R @ point - com, p))
    origin = p / float(model.mass[0]) - np.cross(dw, com)
    assert close(impulse_response(bare, q, 0, point, p), np.concatenate([dw, origin]))


def test_other_trees_do_not_move():
    """In a forest a blow changes the velocities of its own tree, all of them, and of no other, exactly."""
    rng, model, q = drawn(Recipe(405, 12, roots=4, floating=True, branch=0.5))
    top = model.topology
    for link in (2, 11):
        struck = np.asarray(impulse_response(model, q, link, *jnp.asarray(rng.normal(size=(2, 3)))))
        own = np.repeat([top.ancestors(i)[-1] == top.ancestors(link)[-1] for i in range(12)], np.diff(top.v_start))
        assert np.all(struck[own] != 0)
        assert np.all(struck[~own] == 0)
        assert not own.all()


def test_nothing_moves_the_world():
    _, model, q = drawn(TREES[0], (2,))
    assert np.array_equal(impulse_response(model, q, "world", (0, 0, 0), (1, 2, 3)), np.zeros((2, model.topology.nv)))
