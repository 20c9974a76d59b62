"""The collision matrix of every combination of bodies, against Pinocchio's J M^-1 J^T; theorem 1 and its neighbours."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.contact.contact_jacobian import apply_impulses, jacobian_at, joint_impulses, relative_velocity
from carom.contact.contacts import Contacts, tangents
from carom.contact.matrix import contact_operator
from carom.engine.algebra.vec3 import Vec3
from carom.engine.dynamics.trees import from_blocks, to_blocks, trees_of
from carom.tests.oracles.pinocchio_model import Oracle
from carom.tests.oracles.random_trees import Recipe, random_q, random_state, random_tree, unit

TOLERANCE = 1e-9  # relative, as promised; M's condition of up to 1e4 leaves 1e-12
TREES = [
    Recipe(501, 5, branch=0.0),
    Recipe(502, 6, roots=2, floating=True, branch=0.7),
    Recipe(503, 8, roots=3),
    Recipe(504, 3, roots=3, floating=True),
]
EACH = pytest.mark.parametrize("recipe", TREES, ids=str)


def drawn(recipe, count=1):
    """A model, coordinates (nq,), and contacts: rows of links (count + as many, 2), points and normals (n, 3)."""
    rng, model = random_tree(recipe)
    topology = model.topology
    moving = [i for i in range(topology.n_links) if trees_of(topology).moves[i].any()]
    pairs = [(i, -1) for i in moving] + [(i, j) for i in moving for j in moving if i != j]
    links = np.array([pairs[k] for k in rng.permutation(len(pairs))[: 12 * count]])
    n = len(links)
    return model, random_q(rng, topology), links, rng.normal(size=(n, 3)), unit(rng.normal(size=(n, 3)))


def contacts_at(links, points, normals):
    """Contacts with these frames, nothing else of them being asked."""
    n, none = len(links), jnp.zeros(len(links))
    whole, one = jnp.full(n, -1, jnp.int32), jnp.zeros((), jnp.int32)
    return Contacts(
        whole, whole, jnp.asarray(links[:, 0]), jnp.asarray(links[:, 1]), none == 0, none,
        tangents(Vec3.of(jnp.asarray(normals))), Vec3.of(jnp.asarray(points)), Vec3(none, none, none), none, none,
        one, one,
    )  # fmt: skip


def dense_jacobians(model, q, links, points, normals):
    """J (n, 3, nv) of the contacts from Pinocchio, and its M."""
    oracle = Oracle(model)
    position, rotation = oracle.poses(q)
    frames = np.stack([np.stack(row.xyz, -1) for row in tangents(Vec3.of(jnp.asarray(normals))).rows], 1)

    def velocity(link, x):
        if link < 0:
            return np.zeros((3, model.topology.nv))
        return oracle.jacobian(q, int(link), rotation[link].T @ (x - position[link]))[3:]

    J = [F @ (velocity(a, x) - velocity(b, x)) for F, (a, b), x in zip(frames, links, points, strict=True)]
    return np.array(J), oracle.crba(q)


@EACH
def test_is_pinocchios(recipe):
    """Trees with the world, with others, with themselves, and free bodies: what J M^-1 J^T says."""
    model, q, links, points, normals = drawn(recipe)
    J, M = dense_jacobians(model, q, links, points, normals)
    want = J @ np.linalg.solve(M, J.swapaxes(1, 2))
    for k, (a, b) in enumerate(links):
        got = carom.collision_matrix(model, q, int(a), int(b), point=points[k], normal=normals[k])
        least = 1e-6 * np.abs(want).max()  # links welded together have none
        assert np.abs(got - want[k]).max() <= TOLERANCE * max(np.abs(want[k]).max(), least), (a, b)


@EACH
def test_rows_of_many_contacts_are_the_dense_ones(recipe):
    model, q, links, points, normals = drawn(recipe)
    J, M = dense_jacobians(model, q, links, points, normals)
    rows = jax.jit(jacobian_at)(model, jnp.asarray(q), contacts_at(links, points, normals))
    n, nv, trees = len(links), model.topology.nv, trees_of(model.topology)
    W = np.einsum("civ,vdj->cidj", J, np.linalg.solve(M, J.reshape(-1, nv).T).reshape(nv, n, 3))
    assert np.abs(contact_operator(model, rows) - W).max() <= TOLERANCE * np.abs(W).max()
    rng = np.random.default_rng(recipe.seed)
    v, p = rng.normal(size=nv), rng.normal(size=(n, 3))
    V = to_blocks(trees, jnp.asarray(v))
    u = np.stack(relative_velocity(rows, V).xyz, -1)
    assert np.abs(u - J @ v).max() <= TOLERANCE * np.abs(u).max()
    after = np.asarray(from_blocks(trees, apply_impulses(rows, V, Vec3.of(jnp.asarray(p)))))
    tau = np.einsum("civ,ci->v", J, p)
    change = np.linalg.solve(M, tau)
    assert np.abs(after - v - change).max() <= TOLERANCE * np.abs(change).max()
    spread = np.asarray(from_blocks(trees, joint_impulses(rows, Vec3.of(jnp.asarray(p)), len(V))))
    assert np.abs(spread - tau).max() <= TOLERANCE * np.abs(tau).max()


@EACH
def test_theorem_1_and_the_bound_by_the_free_links(recipe):
    """Symmetric, positive definite, and never larger than were the links cut loose from their trees."""
    rng, model = random_tree(recipe)
    model = jax.tree.map(jnp.asarray, model)
    q = random_q(rng, model.topology)
    poses, moves = carom.fk(model, q), trees_of(model.topology).moves
    own = np.diff(model.topology.v_start)
    point = rng.normal(size=3)
    for link in range(model.topology.n_links):
        if not moves[link].any():
            continue
        K = np.asarray(carom.collision_matrix(model, q, link, point=point))
        assert np.abs(K - K.T).max() <= 1e-13 * np.abs(K).max()
        least = np.linalg.eigvalsh(K).min()
        freedom = moves[link].sum() >= 6 or own[link] == 6
        assert least > (0 if freedom else -1e-12) * np.abs(K).max()
        R = np.asarray(poses.rotation[link])
        r = point - poses.position[link] - R @ model.com[link]
        cross = np.array([[0, -r[2], r[1]], [r[2], 0, -r[0]], [-r[1], r[0], 0]])
        free = np.eye(3) / model.mass[link] - cross @ np.linalg.inv(R @ model.inertia[link] @ R.T) @ cross
        assert np.linalg.eigvalsh(free - K).min() >= -1e-9 * np.abs(free).max(), "cut loose, it moves more easily"


def test_free_body_has_holcks_matrix():
    """K = 1/m - r~ I^-1 r~ (Holck 2.16), for two bodies their sum."""
    b = carom.SceneBuilder()
    inertia = np.diag([2e-5, 2e-5, 4e-5])
    b.add_body("a", mass=5e-3, inertia=inertia)
    b.add_body("b", mass=5e-3, inertia=inertia, position=(0.2, 0.08, -0.04))
    model, state = carom.compile_scene(b.build())
    want = np.array([[260, -100, 100], [-100, 470, 40], [100, 40, 780.0]])  # IHMC, CollisionResolutionTest
    x = (0.1, 0.04, -0.02)
    np.testing.assert_allclose(carom.collision_matrix(model, state.q, "a", point=x), want, atol=1e-10)
    np.testing.assert_allclose(carom.collision_matrix(model, state.q, "a", "b", point=x), 2 * want, atol=1e-10)
    with pytest.raises(ValueError, match="link_a and link_b are both 'a'"):
        carom.collision_matrix(model, state.q, "a", "a", point=x)


@pytest.mark.slow
def test_lanes_are_single_scenes_and_models_may_differ():
    recipe = TREES[1]
    rng, model = random_tree(recipe)
    model = jax.tree.map(jnp.asarray, model)
    q = random_q(rng, model.topology, (3,))
    points, mass = rng.normal(size=(3, 3)), model.mass * rng.uniform(0.5, 2, (3, 1))
    got = carom.collision_matrix(model.replace(mass=mass), q, 0, 1, point=points)
    for k in range(3):
        one = carom.collision_matrix(model.replace(mass=mass[k]), q[k], 0, 1, point=points[k])
        np.testing.assert_allclose(got[k], one, rtol=1e-12, atol=1e-12)


@pytest.mark.slow
def test_energy_of_an_impulse():
    """dT = p . (u0 + u1) / 2 for any impulse on any pair of links."""
    recipe = TREES[2]
    model, q, links, points, normals = drawn(recipe)
    rng = np.random.default_rng(1)
    _, v = random_state(rng, model.topology)
    rows = jacobian_at(model, jnp.asarray(q), contacts_at(links, points, normals))
    trees = trees_of(model.topology)
    V = to_blocks(trees, jnp.asarray(v))
    p = Vec3.of(jnp.asarray(rng.normal(size=(len(links), 3))))
    W = apply_impulses(rows, V, p)
    kinetic = [
        carom.energy(model, carom.State(jnp.asarray(q), from_blocks(trees, x), jnp.zeros(()))).kinetic for x in (V, W)
    ]
    before, after = relative_velocity(rows, V), relative_velocity(rows, W)
    # all impulses together: each does its work on the mean of what its own contact does
    np.testing.assert_allclose(kinetic[1] - kinetic[0], (p.dot(before + after) / 2).sum(), rtol=1e-10)
