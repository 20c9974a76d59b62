"""How fast links can move for a given energy, against the true maximum from the mass matrix at random poses."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from carom.collision.speeds.link_motion import link_motion, trees
from carom.collision.speeds.tree_speeds import principal_extremes, speed_at
from carom.engine.algebra.vec3 import Sym3
from carom.engine.dynamics.crba import crba
from carom.engine.dynamics.jacobian import jacobian
from carom.engine.model import Model
from carom.engine.state import State
from carom.engine.topology import Topology
from carom.tests.oracles.random_trees import Recipe, random_inertias, random_model, random_state, random_topology

ROUNDING = 1e-9  # relative: the mass matrices' condition of up to 1e5 on top of double precision
POSES = 100
TREES = [  # and whether they have rotors
    (Recipe(51, 1), False),
    (Recipe(52, 6, branch=0.0, joints=("revolute",)), False),
    (Recipe(53, 10, roots=2, branch=0.6), True),
    (Recipe(54, 9, roots=2, floating=True), True),
    (Recipe(55, 7, branch=0.3, joints=("fixed", "revolute", "spherical", "universal")), False),
]


@pytest.fixture(autouse=True)
def op_by_op():
    with jax.disable_jit():
        yield


def drawn(recipe: Recipe, rotors: bool) -> tuple[np.random.Generator, Model, State]:
    """A random forest, with rotors or without, limits at 2, and random states of it. Its free trees are free."""
    rng = np.random.default_rng(recipe.seed)
    topology = random_topology(rng, recipe)
    bare = random_model(rng, topology)
    floats = np.repeat([j == "floating" for j in topology.joints], np.diff(topology.v_start))
    limit = np.full(topology.nv, 2.0)
    model = bare.replace(
        armature=jnp.asarray(np.where(floats, 0, bare.armature) * rotors), lower=jnp.asarray(-limit), upper=limit
    )
    q, v = random_state(rng, topology, (POSES,))
    for i, joint in enumerate(topology.joints):
        if joint not in ("spherical", "floating"):
            span = slice(topology.q_start[i], topology.q_start[i + 1])
            q[:, span] = np.clip(q[:, span], -2, 2)
    model = jax.tree.map(jnp.asarray, model)
    return rng, model, State(jnp.asarray(q), jnp.asarray(v), jnp.zeros(POSES))


CASES = [pytest.param(*case, marks=pytest.mark.slow if case[0].links == 10 else ()) for case in TREES]


@pytest.mark.parametrize(("recipe", "rotors"), CASES, ids=str)
def test_no_point_and_no_joint_is_faster(recipe, rotors):
    rng, model, state = drawn(recipe, rotors)
    topology = model.topology
    tree, roots = trees(topology)
    motion = link_motion(model, state)
    free = np.asarray(motion.falls)[0] > 0
    assert free.any() == recipe.floating
    response = np.linalg.inv(crba(model, state.q))
    carried = np.array([[t == k for t in tree] for k in range(len(roots))])
    mass = np.asarray(model.mass)
    centres = np.stack([jacobian(model, state.q, i, model.com[i])[:, 3:] for i in range(topology.n_links)], 1)
    tightest = np.inf
    for i in range(topology.n_links):
        point = rng.normal(size=(POSES, 3)) * 0.5
        J = np.asarray(jacobian(model, state.q, i, point)[:, 3:])
        if free[i]:  # relative to the tree's centre of mass
            mine = carried[tree[i]]
            J = J - np.einsum("k,pkij->pij", mass[mine], centres[:, mine]) / mass[mine].sum()
        true = np.sqrt(np.linalg.eigvalsh(J @ response @ J.transpose(0, 2, 1))[:, -1].clip(0))
        lengths = np.linalg.norm(point - model.com[i], axis=1), np.linalg.norm(point, axis=1)
        mobility, turning, origin, spin, _ = (np.asarray(x)[..., i] for x in (*motion.speeds[:4], motion.spin))
        bound = np.asarray(speed_at(mobility, turning, origin, spin, *lengths))
        if tree[i] >= 0:
            assert (true <= bound * (1 + ROUNDING)).all()
            tightest = min(tightest, (bound / np.maximum(true, 1e-30)).min())
        else:
            assert true.max() < ROUNDING
    assert tightest < 2  # not just anything is larger
    rates = np.sqrt(np.diagonal(response, axis1=1, axis2=2))
    # an energy that a free tree has as a whole drives its six common motions too: only its inner joints are bounded
    inner = np.repeat([j != "floating" for j in topology.joints], np.diff(topology.v_start))
    assert (rates <= np.asarray(motion.speeds.rates) * (1 + ROUNDING))[:, inner].all()


def test_a_pendulum_has_exactly_its_speed():
    # point mass 2 kg, 0.7 m from a turning axis with a rotor of 0.3 kg m^2: w = e/sqrt(2 0.49 + 0.3)
    rng = np.random.default_rng(0)
    model = random_model(rng, Topology(("bob",), (-1,), ("revolute",)))
    changes = {"mass": [2.0], "com": [[0, 0, -0.7]], "inertia": np.zeros((1, 3, 3)), "axis": [[0, 1, 0]]}
    changes |= {"armature": [0.3]}
    model = model.replace(**{name: jnp.asarray(x, float) for name, x in changes.items()})
    state = State(jnp.array([0.4]), jnp.array([3.0]), jnp.array(0.0))
    motion = link_motion(jax.tree.map(jnp.asarray, model), state)
    spin = 1 / np.sqrt(2 * 0.49 + 0.3)
    np.testing.assert_allclose(motion.speeds.spin, [spin], rtol=1e-14)
    np.testing.assert_allclose(motion.speeds.rates, [spin], rtol=1e-14)
    np.testing.assert_allclose(motion.energy_root * spin, [3.0], rtol=1e-14)
    mobility, turning, origin, spins, _ = motion.speeds
    assert np.isinf(turning[0])
    np.testing.assert_allclose(speed_at(mobility, turning, origin, spins, 0.7, 1.4), 1.4 * spin, rtol=1e-14)


def test_a_massless_ring_between_two_joints_has_no_bound():
    topology = Topology(("ring", "rotor"), (-1, 0), ("revolute", "revolute"))
    model = random_model(np.random.default_rng(3), topology)
    model = model.replace(mass=model.mass * [0, 1], inertia=model.inertia * np.array([0, 1])[:, None, None])
    model = jax.tree.map(jnp.asarray, model.replace(armature=np.zeros(2)))
    motion = link_motion(model, State(jnp.zeros(2), jnp.zeros(2), jnp.array(0.0)))
    ring, rotor = (
        speed_at(*(np.asarray(x)[i] for x in motion.speeds[:4]), 0.1, 0.1)  # type: ignore[misc]
        for i in (0, 1)
    )
    assert np.isinf(ring)
    assert np.isfinite(rotor)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_principal_moments_are_bounded_closely(dtype):
    rng = np.random.default_rng(5)
    inertias = random_inertias(rng, 1000)
    axes = np.linalg.qr(rng.normal(size=(300, 3, 3)))[0]
    pairs = np.array([[1, 1, 1], [1, 1, 0.5], [1, 0.02, 1]])[rng.integers(3, size=300)]  # balls, tops, rods
    inertias = np.concatenate([inertias, np.einsum("nij,nj,nkj->nik", axes, pairs, axes)])
    low, high = (np.asarray(x) for x in principal_extremes(Sym3.of(jnp.asarray(inertias, dtype))))
    true = np.linalg.eigvalsh(inertias)
    eps = np.finfo(dtype).eps
    assert (low <= true[:, 0] * (1 + 8 * eps)).all()
    assert (high >= true[:, 2] * (1 - 8 * eps)).all()
    slack = 4 * np.sqrt(eps) * true[:, 2]  # what the docstring gives away, twice
    assert (low >= true[:, 0] - slack).all()
    assert (high <= true[:, 2] + slack).all()
