"""Bodies apart and their joints: (3.74) solved block by block against NumPy's dense pseudo-inverse, for any graph."""

import dataclasses
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from carom.engine.loops.elimination_order import order_of
from carom.engine.loops.forward import constrained
from carom.engine.loops.jacobian import closed
from carom.engine.model import Model
from carom.engine.topology import Loop, Topology
from carom.tests.oracles.random_trees import random_model, random_state, unit

ACCELERATION = 1e-9  # of what they are without constraints: f64, W's condition about 1e4 here
FORCE = 1e-5  # where W lacks rank: rounding by mu, 1e-16/1e-9, a step, in forces that balance each other; 4e-6 seen
SINGLE = 2e-3  # in f32, mostly from the oracle's side of the same rounded numbers

# every body is in several loops, one loop has no rows, and two tie the same two bodies
GRAPH = (
    Loop("revolute", -1, 0), Loop("spherical", 0, 1), Loop("distance", 1, 2), Loop("revolute", 2, 3),
    Loop("spring", 0, 2, acts=True), Loop("spherical", 3, 0), Loop("distance", 1, 3), Loop("distance", 2, 1),
    Loop("spherical", 4, -1),
)  # fmt: skip


def bodies(rng: np.random.Generator, n: int, loops: tuple[Loop, ...]) -> Model:
    topology = Topology(tuple(f"body{i}" for i in range(n)), (-1,) * n, ("floating",) * n, loops=loops)
    k = len(loops)
    model = random_model(rng, topology)
    return dataclasses.replace(  # springs of loops too, which these do not read
        model,
        armature=0 * model.armature,
        loop_position=rng.normal(size=(k, 2, 3)),
        loop_quaternion=unit(rng.normal(size=(k, 2, 4))),
        loop_size=rng.uniform(0.5, 1, k),
        loop_course=rng.uniform(0.5, 1, (k, 5)),
        loop_spring=np.zeros((k, 2, 4)),
        loop_stiff=np.zeros((k, 2)),
        loop_damp=np.zeros((k, 2)),
        loop_limits=np.tile([-np.inf, np.inf], (k, 2, 1)),
        loop_active=np.ones(k),
    )


def rotation(q: np.ndarray) -> np.ndarray:
    w, x, y, z = q
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + 2 * w * cross + 2 * cross @ cross


def closed_up(model: Model, q: np.ndarray) -> Model:
    """The model with each frame on b where its partner on a is."""
    poses = [(np.zeros(3), np.eye(3)), *((x[:3], rotation(x[3:])) for x in q.reshape(-1, 7))]
    position, quaternion = model.loop_position.copy(), model.loop_quaternion.copy()
    for k, loop in enumerate(model.topology.loops):
        (p_a, R_a), (p_b, R_b) = poses[loop.a + 1], poses[loop.b + 1]
        position[k, 1] = R_b.T @ (p_a + R_a @ position[k, 0] - p_b)
        q_a, q_b = ([1.0, 0, 0, 0] if end < 0 else q.reshape(-1, 7)[end, 3:] for end in (loop.a, loop.b))
        quaternion[k, 1] = times(conjugate(q_b), times(q_a, quaternion[k, 0]))
    return model.replace(loop_position=position, loop_quaternion=quaternion)


def conjugate(q):
    return np.array([q[0], -q[1], -q[2], -q[3]])


def times(a, b):
    v, w = np.asarray(a[1:]), np.asarray(b[1:])
    return np.array([a[0] * b[0] - v @ w, *(a[0] * w + b[0] * v + np.cross(v, w))])


def dense(model: Model, q: np.ndarray, v: np.ndarray, tau: np.ndarray, A, bias) -> tuple[np.ndarray, ...]:
    """Accelerations of bodies without and with constraints, and least forces, by Newton, Euler and NumPy; one lane."""
    n = model.topology.n_links
    inverse, f = np.zeros((6 * n, 6 * n)), np.asarray(tau, float).copy()
    for i, (x, u) in enumerate(zip(q.reshape(n, 7), v.reshape(n, 6), strict=True)):
        m, g, R, w = model.mass[i], np.asarray(model.gravity), rotation(x[3:]), u[:3]
        c = R @ model.com[i]
        C = np.array([[0, -c[2], c[1]], [c[2], 0, -c[0]], [-c[1], c[0], 0]])
        about = R @ model.inertia[i] @ R.T - m * C @ C
        own = slice(6 * i, 6 * i + 6)
        inverse[own, own] = np.linalg.inv(np.block([[about, m * C], [-m * C, m * np.eye(3)]]))
        spin = np.cross(w, np.cross(w, c))
        f[own] += np.concatenate([m * np.cross(c, g) - np.cross(w, about @ w), m * g - m * spin])
    alone = inverse @ f
    force = -np.linalg.pinv(A @ inverse @ A.T, rcond=1e-11, hermitian=True) @ (A @ alone + bias)
    return alone, alone + inverse @ A.T @ force, force


def compare(model: Model, q, v, tau, *, force: float = ACCELERATION, acceleration: float = ACCELERATION) -> None:
    """Check all lanes."""
    t = jnp.zeros((), q.dtype)
    found, rows = constrained(model, q, v, t, tau), closed(model, q, v, t)
    lanes = [np.asarray(x, float).reshape(-1, x.shape[-1]) for x in (q, v, tau, *found, rows.bias)]
    A = np.asarray(rows.A, float).reshape(-1, *rows.A.shape[-2:])
    for k, (q_k, v_k, tau_k, a, push, bias) in enumerate(zip(*lanes, strict=True)):
        alone, wanted, least = dense(jax.tree.map(lambda x: np.asarray(x, float), model), q_k, v_k, tau_k, A[k], bias)
        np.testing.assert_allclose(a, wanted, rtol=0, atol=acceleration * abs(alone).max())
        np.testing.assert_allclose(push, least, rtol=0, atol=force * abs(least).max())


@pytest.mark.parametrize("dtype", [np.float64, pytest.param(np.float32, marks=pytest.mark.exhaustive)])
@pytest.mark.slow
def test_any_graph(dtype):
    rng = np.random.default_rng(7)
    model = jax.tree.map(lambda x: jnp.asarray(x, dtype), bodies(rng, 5, GRAPH))
    q, v = random_state(rng, model.topology, (3,))
    tau = rng.normal(size=v.shape) * 10
    assert len({tuple(x) for x in q}) == 3
    tolerance = ACCELERATION if dtype is np.float64 else SINGLE
    q, v, tau = (jnp.asarray(x, dtype) for x in (q, v, tau))
    compare(model, q, v, tau, force=tolerance, acceleration=tolerance)


@pytest.mark.slow
def test_redundant_loops():
    """A ring of three bodies, welded all around and twice to the world (30 rows of rank 18), and a plane four-bar in
    space, in motion (20 rows of rank 17): accelerations are unique, forces the least."""
    rng = np.random.default_rng(8)
    ring = (*(Loop("fixed", k, (k + 1) % 3) for k in range(3)), Loop("fixed", -1, 0), Loop("fixed", 1, -1))
    hinges = (Loop("revolute", -1, 3), Loop("revolute", 3, 4), Loop("revolute", 4, 5), Loop("revolute", 5, -1))
    model = bodies(rng, 6, ring + hinges)
    q, _ = random_state(rng, model.topology)
    corners = np.array([[0, 0, 0], [-0.3, 0, 0.7], [0.9, 0, 1.1], [1.1, 0, 0.0]])
    axis = np.array([np.sqrt(0.5), 0, 0, np.sqrt(0.5)])  # takes x to y: the hinges' axis
    for k, (corner, loop) in enumerate(zip(corners, hinges, strict=True), len(ring)):
        p, turn = np.split(np.array([0.0, 0, 0, 1, 0, 0, 0]) if loop.a < 0 else q.reshape(6, 7)[loop.a], [3])
        model.loop_position[k, 0] = rotation(turn).T @ (corner - p)
        model.loop_quaternion[k, 0] = times(conjugate(turn), axis)
    model = jax.tree.map(jnp.asarray, closed_up(model, q))
    A = np.asarray(closed(model, jnp.asarray(q), jnp.zeros(36), jnp.zeros(())).A)
    assert A.shape == (50, 36)
    assert np.linalg.matrix_rank(A[:30], tol=1e-9) == 18
    _, sizes, ways = np.linalg.svd(A[30:, 18:])
    assert np.sum(sizes > 1e-9) == 17
    v, tau = np.concatenate([np.zeros(18), 2 * ways[-1]]), rng.normal(size=36) * 10
    compare(model, *map(jnp.asarray, (q, v, tau)), force=FORCE)


def test_chains_take_few_levels_and_blocks():
    n = 100
    chain = topology_of([(k - 1, k) for k in range(n)])
    assert len(order_of(chain).levels) <= 8  # log2(100) = 6.6
    assert len(order_of(chain).edges) < 2 * n
    rng = np.random.default_rng(3)
    tree = topology_of([(int(rng.integers(max(0, k - 5), k)) if k else -1, k) for k in range(n)])
    assert len(order_of(tree).edges) < 3 * n  # fill is where many joints share a body
    ring = topology_of([(k - 1, k) for k in range(n)] + [(n - 1, -1)])
    assert len(order_of(ring).levels) <= 8


def topology_of(ends: list[tuple[int, int]]) -> Topology:
    n = 1 + max(map(max, ends))
    loops = tuple(Loop("revolute", a, b) for a, b in ends)
    return replace(Topology(tuple(f"body{i}" for i in range(n)), (-1,) * n, ("floating",) * n), loops=loops)
