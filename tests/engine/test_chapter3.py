"""Featherstone (2008), chapter 3: constraints on equations of motion, joints' forces, apparent inertia.

Plain arrays; everything drawn at random is checked against NumPy or against another of the constructions.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from carom.engine.algebra.apparent_inertia import (
    apparent_inverse_inertia,
    bias_acceleration,
    body_by_forces,
    body_in_coordinates,
)
from carom.engine.algebra.constraints import (
    constrain_explicitly,
    constrain_implicitly,
    explicit_matrix,
    implicit_matrix,
    project,
)
from carom.engine.algebra.pseudo_inverse import pseudo_inverse, rank
from carom.engine.algebra.subspaces import active_subspace, bearing_forces, complement, decompose, split_force
from carom.engine.dynamics.aba import aba
from carom.engine.dynamics.jacobian import jacobian
from carom.engine.dynamics.kinematics import fk
from carom.engine.dynamics.rnea import rnea
from carom.engine.dynamics.wrenches import joint_forces, joint_wrenches, velocity_changes
from carom.engine.joints import JOINTS
from carom.engine.topology import Topology
from carom.tests.oracles.random_trees import Recipe, random_model, random_state, random_tree

TOLERANCE = 1e-10  # relative to the largest entry: rounding, times condition numbers of up to 1e4


@pytest.fixture(autouse=True)
def op_by_op():
    with jax.disable_jit():
        yield


def near(found, wanted, tolerance=TOLERANCE):
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance * max(1, np.abs(wanted).max(initial=0)))


def positive(rng, n, batch=()):
    """Inertia-like: symmetric, positive definite, condition number of up to 100."""
    axes = np.linalg.qr(rng.normal(size=(*batch, n, n)))[0]
    return axes * rng.uniform(0.1, 10, (*batch, 1, n)) @ axes.mT


def span(a):
    """The orthogonal projector on the range of a: the same for all matrices of one range."""
    return a @ np.linalg.pinv(a)


# -- constraints on equations of motion (3.11-3.23) -------------------------------------------------


def slider_crank(y, yd):
    """A mechanism in both forms. q = (crank angle, rod angle, slider); y = crank angle.

    phi(q) = (cos q0 + 2 cos q1 - q2, sin q0 - 2 sin q1); gamma(y) = (y, asin(sin y / 2), ...).
    """

    def phi(q):
        return jnp.array([jnp.cos(q[0]) + 2 * jnp.cos(q[1]) - q[2], jnp.sin(q[0]) - 2 * jnp.sin(q[1])])

    def gamma(y):
        rod = jnp.arcsin(jnp.sin(y[0]) / 2)
        return jnp.array([y[0], rod, jnp.cos(y[0]) + 2 * jnp.cos(rod)])

    def rates(f, x, xd):
        """df/dx and its rate times xd."""
        return jax.jacfwd(f)(x), jax.jvp(lambda x: jax.jvp(f, (x,), (xd,))[1], (x,), (xd,))[1]

    G, g = rates(gamma, y, yd)
    q = gamma(y)
    K, minus_k = rates(phi, q, G @ yd)
    return phi(q), K, -minus_k, G, g


@pytest.mark.slow
def test_implicit_and_explicit_forms_of_one_mechanism():
    rng = np.random.default_rng(0)
    y, yd = jnp.array([0.7]), jnp.array([1.3])
    H, C, tau = map(jnp.asarray, (positive(rng, 3), *rng.normal(size=(2, 3))))
    phi, K, k, G, g = slider_crank(y, yd)
    near(phi, np.zeros(2))  # (3.12)
    near(K @ G, np.zeros((2, 1)))
    near(K @ g, k)
    implicit, explicit = constrain_implicitly(H, C, tau, K, k), constrain_explicitly(H, C, tau, G, g)
    near(implicit.acceleration, explicit.acceleration)
    near(K.T @ implicit.force, explicit.force)  # (3.15)
    near(G.T @ explicit.force, np.zeros(1))  # (3.16)
    inertia, bias = project(H, C, G, g)
    near(inertia @ explicit.independent + bias, G.T @ tau)  # (3.21)
    near(yd @ inertia @ yd, (G @ yd) @ H @ (G @ yd))  # (3.22): the same kinetic energy
    near((G.T @ tau) @ yd, tau @ (G @ yd))  # (3.23): and power
    unknowns = np.concatenate([explicit.acceleration, explicit.force, explicit.independent])
    near(explicit_matrix(H, G) @ unknowns, np.concatenate([tau - C, -g, np.zeros(1)]))  # (3.18)


@pytest.mark.parametrize(("rows", "independent"), [(3, 3), (0, 0), (7, 4)])
def test_constraints_that_repeat_each_other(rows, independent):
    """(3.17): rank n + n_ic; the accelerations are unique, of the forces the smallest are found. A lane each of two."""
    rng, n = np.random.default_rng(1), 5
    H, C, tau = positive(rng, n, (2,)), *rng.normal(size=(2, 2, n))
    K = rng.normal(size=(2, rows, independent)) @ rng.normal(size=(2, independent, n))
    k = (K @ rng.normal(size=(2, n, 1)))[..., 0]
    found = constrain_implicitly(*map(jnp.asarray, (H, C, tau, K, k)))
    matrix = np.asarray(implicit_matrix(jnp.asarray(H), jnp.asarray(K)))
    for lane in range(2):
        assert np.linalg.matrix_rank(matrix[lane]) == n + independent
        right = np.concatenate([(tau - C)[lane], k[lane]])
        solution = np.linalg.pinv(matrix[lane], rcond=1e-12) @ right
        near(matrix[lane] @ solution, right)
        near(found.acceleration[lane], solution[:n])
        near(found.force[lane], -solution[n:])


def test_inertia_only_along_what_may_move():
    """A coordinate without inertia that a constraint ties to one with it: H is singular, the motion is not."""
    found = constrain_implicitly(*map(jnp.asarray, (np.diag([2.0, 0.0]), [0.0, 0.0], [0.0, 6.0], [[1.0, -1]], [0.0])))
    near(found.acceleration, [3.0, 3.0])


def test_pseudo_inverse():
    """Against NumPy's; what is below the given size counts as zero; derivative by central differences."""
    rng = np.random.default_rng(2)
    for shape, ranks in (((4, 6), (0, 2, 4)), ((6, 4), (3,))):
        for n in ranks:
            a = jnp.asarray(rng.normal(size=(shape[0], n)) @ rng.normal(size=(n, shape[1])))
            x = pseudo_inverse(a, jnp.array(1e-9))
            near(x, np.linalg.pinv(a, rcond=1e-9))
            assert rank(a, x) == n
            L, R, h = rng.normal(size=(shape[0],) * 2), rng.normal(size=(shape[1],) * 2), 1e-5
            ends = [np.linalg.pinv((np.eye(len(L)) + s * h * L) @ a @ (np.eye(len(R)) + s * h * R)) for s in (1, -1)]
            da = L @ a + a @ R  # keeps the rank
            slope = jax.jvp(lambda a: pseudo_inverse(a, jnp.array(1e-9)), (a,), (jnp.asarray(da),))[1]
            near(slope, (ends[0] - ends[1]) / (2 * h), 1e-5)  # third derivatives of order 1e5 by h^2
    assert not np.asarray(pseudo_inverse(jnp.full((3, 2), 1e-12), jnp.array(1e-9))).any()


# -- subspaces (3.24-3.28) and joints (3.31-3.39) ---------------------------------------------------


@pytest.mark.parametrize("n", [0, 2])
def test_decomposition(n):
    rng = np.random.default_rng(3)
    S1, S2, x = rng.normal(size=(6, n)), rng.normal(size=(6, 6 - n)), rng.normal(size=6)
    first, second = decompose(jnp.asarray(S1), jnp.asarray(S2), jnp.asarray(x))
    near(first + second, x)
    near(span(S1) @ first, first)
    near(span(S2) @ second, second)
    T = complement(jnp.asarray(S1))
    assert T.shape == (6, 6 - n)
    near(T.T @ S1, np.zeros((6 - n, n)))
    near(T.T @ T, np.eye(6 - n))


def test_force_split_by_inertia():
    """Example 3.1: I S and its complement make up all forces; the parts do not depend on the choice of S."""
    rng = np.random.default_rng(4)
    I, S, f = (jnp.asarray(x) for x in (positive(rng, 6), rng.normal(size=(6, 2)), rng.normal(size=6)))
    active, constraint = split_force(I, S, f)
    near(S.T @ constraint, np.zeros(2))
    near(span(I @ S) @ active, active)
    parts = decompose(I @ S, complement(S), f)
    near(parts.first, active)
    near(parts.second, constraint)
    other = split_force(I, S @ rng.normal(size=(2, 2)), f)
    near(other.first, active)
    near(jnp.linalg.solve(I, active), apparent_inverse_inertia(I, S) @ f)  # a body at rest that f alone pushes


def test_gear_of_example_32():
    """A motor that drives by a tooth at (-r, 0, 0) loads the bearing with 1/r of its torque; a pure couple does not."""
    S, T = jnp.eye(6)[:, 2:3], jnp.delete(jnp.eye(6), 2, axis=1)
    tau, load = 3.0, jnp.array([0.0, 0, 3.0, 0, 0, 0])  # what the joint transmits in all
    for r in (0.1, 0.25):
        Ta = active_subspace(S, jnp.array([[0, 0, -r, 0, 1, 0]]).T)
        near(Ta[:, 0], [0, 0, 1, 0, -1 / r, 0])
        near(Ta.T @ S, np.eye(1))  # (3.35)
        near(T.T @ S, np.zeros((5, 1)))  # (3.36)
        near(bearing_forces(load, S, Ta), [0, 0, 0, 0, tau / r, 0])
    near(bearing_forces(load, S, S), np.zeros(6))


@pytest.mark.parametrize("n", [0, 2])
def test_active_and_constraint_forces(n):
    """(3.34-3.39) for joints of all widths, with actuators that push in any way."""
    rng = np.random.default_rng(5)
    S, actuators, qd = rng.normal(size=(6, n)), rng.normal(size=(6, n)), rng.normal(size=n)
    transmitted = jnp.asarray(rng.normal(size=6))
    S, actuators, T = *map(jnp.asarray, (S, actuators)), complement(jnp.asarray(S))
    Ta = active_subspace(S, actuators)
    near(Ta.T @ S, np.eye(n))
    near(span(np.asarray(actuators)) @ Ta, Ta)
    tau, bearing = S.T @ transmitted, bearing_forces(transmitted, S, Ta)  # (3.37)
    near(Ta @ tau + bearing, transmitted)  # (3.34)
    near(S.T @ bearing, np.zeros(n))
    near(decompose(Ta, T, transmitted).second, bearing)
    sigma = rng.normal(size=6)
    near(T.T @ (S @ qd + sigma), T.T @ sigma)  # (3.38)
    near(transmitted @ (S @ qd), tau @ qd)  # (3.39): power
    near(tau @ (Ta.T @ S) @ qd, tau @ qd)


# -- a body on a joint (3.45-3.64), and the tree's own dynamics -------------------------------------


@pytest.mark.parametrize("n", [0, 3])
def test_apparent_inverse_inertia(n):
    rng = np.random.default_rng(6)
    I, S, p, f, rate = positive(rng, 6), *(rng.normal(size=s) for s in ((6, n), 6, 6, 6))
    I, S, p, f, rate = map(jnp.asarray, (I, S, p, f, rate))
    phi = apparent_inverse_inertia(I, S)
    near(phi, phi.T)
    assert np.linalg.eigvalsh(phi).min() > -1e-12
    assert np.linalg.matrix_rank(phi) == n
    T = complement(S)
    near(phi @ T, np.zeros((6, 6 - n)))  # null space
    near(span(np.asarray(phi)), span(np.asarray(S)), 1e-8)  # range; NumPy's rank is a guess
    near(phi @ I @ phi, phi)
    # the three methods
    a = phi @ f + bias_acceleration(I, S, rate, p)
    by_forces = body_by_forces(I, p, f, T, -T.T @ rate)  # T^T v = 0 makes dT^T/dt v = -T^T dS/dt qd
    near(by_forces.acceleration, a)
    near(I @ a + p, f + T @ by_forces.force)  # (3.59)
    H, C = body_in_coordinates(I, S, rate, p)
    near(S @ jnp.linalg.solve(H, S.T @ f - C) + rate, a)


@pytest.mark.slow
def test_links_answer_by_their_apparent_inverse_inertia():
    """A link on the world by each type of joint: M^-1 by the recursions, without armature, is (3.54); what the joint
    transmits is all constraint without a motor, and what a motor adds is the part of example 3.1."""
    rng, joints = np.random.default_rng(7), [joint for joint in JOINTS if joint != "fixed"]
    topology = Topology(tuple(joints), (-1,) * len(joints), tuple(joints))
    model = jax.tree.map(jnp.asarray, random_model(rng, topology))
    model = model.replace(armature=0 * model.armature)
    q, v = map(jnp.asarray, random_state(rng, topology))
    struck, torque = jnp.asarray(rng.normal(size=(len(joints), 6))), jnp.asarray(rng.normal(size=v.shape))
    change = velocity_changes(model, q, struck)
    transmitted, driven = (joint_wrenches(model, q, v, aba(model, q, v, tau)) for tau in (0 * torque, torque))
    for link, R in enumerate(fk(model, q).rotation):
        own = slice(*topology.v_start[link : link + 2])
        S = jacobian(model, q, link)[:, own]
        I = inertia_matrix(model.mass[link], R @ model.com[link], R @ model.inertia[link] @ R.T)
        near(S @ change[own], apparent_inverse_inertia(I, S) @ struck[link])
        Ta = active_subspace(S, I @ S)
        near(S.T @ transmitted[link], np.zeros(S.shape[1]))
        near(S.T @ driven[link], torque[own])
        near(bearing_forces(driven[link], S, Ta), transmitted[link])  # motors that push where the link is heavy


def inertia_matrix(m, c, I):
    """(6, 6) about the link's origin, from mass, centre of mass and inertia about it (Kim 22)."""
    h = m * jnp.array([[0, -c[2], c[1]], [c[2], 0, -c[0]], [-c[1], c[0], 0]])
    return jnp.block([[I + h @ h.T / m, h], [h.T, m * jnp.eye(3)]])


@pytest.mark.slow
def test_joint_wrenches_of_a_tree():
    """Along the joints they are inverse dynamics, also with wrenches on the links; links at rest carry what hangs on
    them. Two lanes."""
    rng, model = random_tree(Recipe(403, 5, roots=2, floating=True, branch=0.7))
    model = jax.tree.map(jnp.asarray, model)
    topology = model.topology
    q, v = map(jnp.asarray, random_state(rng, topology, (2,)))
    a, pushed = jnp.asarray(rng.normal(size=v.shape)), jnp.asarray(rng.normal(size=(2, topology.n_links, 6)))
    tau = rnea(model, q, v, a) - model.armature * a
    owns = [slice(*topology.v_start[link : link + 2]) for link in range(topology.n_links)]
    S = [jacobian(model, q, link)[..., own] for link, own in enumerate(owns)]
    for wrenches, wanted in ((None, tau), (pushed, tau - joint_forces(model, q, pushed))):
        F = joint_wrenches(model, q, v, a, wrenches)
        assert F.shape == (2, topology.n_links, 6)
        for link, own in enumerate(owns):
            near(np.einsum("lij,li->lj", S[link], F[:, link]), wanted[:, own])
    still = joint_wrenches(model, q, 0 * v, 0 * a)
    for root in (i for i, parent in enumerate(topology.parents) if parent < 0):
        carried = sum(model.mass[i] for i in range(topology.n_links) if root in topology.ancestors(i))
        near(still[:, root, 3:], np.tile(-carried * model.gravity, (2, 1)))
