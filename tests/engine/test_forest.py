"""Forests and batches: grouping, order and batch axes change how links are walked, never what comes out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from carom.engine.dynamics.aba import aba
from carom.engine.dynamics.crba import crba
from carom.engine.dynamics.energy import energy, momentum
from carom.engine.dynamics.hybrid import hybrid
from carom.engine.dynamics.impulse import impulse_response
from carom.engine.dynamics.jacobian import jacobian
from carom.engine.dynamics.kinematics import coordinate_rates, fk, integrate_q
from carom.engine.dynamics.passive import motor_forces, passive_forces
from carom.engine.dynamics.rnea import rnea
from carom.engine.forest import BATCHABLE
from carom.engine.state import State
from carom.engine.topology import Topology
from carom.tests.oracles.programs import equations
from carom.tests.oracles.random_trees import Recipe, random_model, random_state, random_tree, subset, unit, with_passive

ROUNDING = 1e-11  # the same numbers in another order of summation, relative to the largest
LANES = 3
TREE = Recipe(501, 9, roots=2, floating=True, branch=0.6)  # all joint types; groups of one and of several links


@pytest.fixture(autouse=True)
def op_by_op():
    with jax.disable_jit():
        yield


def everything(model, q, v, x):
    """All public functions of the dynamics; x are forces, accelerations or controls."""
    state, given = State(q, v, q[..., 0]), jnp.arange(model.topology.nv) % 2 == 0
    point = (0.1, 0.2, 0.3)
    return {
        "aba": aba(model, q, v, x),
        "rnea": rnea(model, q, v, x),
        "crba": crba(model, q),
        "hybrid": hybrid(model, q, v, given, x),
        "impulse": impulse_response(model, q, 4, point, (1.0, 2.0, 3.0), point),
        "energy": energy(model, state),
        "momentum": momentum(model, state, point),
        "jacobian": jacobian(model, q, 4, point),
        "fk": fk(model, q),
        "integrate_q": integrate_q(model, q, v, 0.1),
        "coordinate_rates": coordinate_rates(model, q, v),
        "passive": passive_forces(model, q, v),
        "motor": motor_forces(model, q, v, x),
        "hold": motor_forces(model, q, v),
    }


def drawn(recipe=TREE, batch=()):
    rng, model = random_tree(recipe)
    model = with_passive(rng, model)
    q, v = random_state(rng, model.topology, batch)
    return rng, *jax.tree.map(jnp.asarray, (model, q, v, rng.normal(size=v.shape)))


def perturbed(rng, name, value):
    """One parameter for each lane; unit vectors stay unit, inertias physical."""
    if name == "inertia":
        return np.asarray(value) * rng.uniform(0.5, 1.5, (LANES, value.shape[0], 1, 1))
    other = np.asarray(value) * rng.uniform(0.8, 1.2, (LANES, *value.shape))
    return unit(other) if name in ("joint_quaternion", "axis", "axis2") else other


def assert_same(found, expected):
    for name in expected:
        for a, b in zip(jax.tree.leaves(found[name]), jax.tree.leaves(expected[name]), strict=True):
            assert a.shape == b.shape, name
            assert np.abs(a - b).max() <= ROUNDING * np.abs(b).max(), name


def stacked(lanes):
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *lanes)


@pytest.mark.parametrize(
    "batch",
    [
        pytest.param((), marks=pytest.mark.exhaustive, id="one state"),
        pytest.param((LANES,), id="a state for each lane"),
    ],
)
def test_all_parameters_per_lane(batch):
    """A leading axis on every parameter at once gives what a loop over models gives."""
    rng, model, q, v, x = drawn(batch=batch)
    per_lane = {name: perturbed(rng, name, getattr(model, name)) for name in BATCHABLE}
    lanes = [
        everything(model.replace(**{name: jnp.asarray(a[k]) for name, a in per_lane.items()}), *state)
        for k, state in enumerate(zip(*(a if batch else [a] * LANES for a in (q, v, x)), strict=True))
    ]
    found = everything(model.replace(**{name: jnp.asarray(a) for name, a in per_lane.items()}), q, v, x)
    assert_same(found, stacked(lanes))


@pytest.mark.parametrize("name", ["mass", "gravity", "damping", "armature", "axis", "stiffness"])
@pytest.mark.slow
def test_one_parameter_per_lane(name):
    """One batched parameter is enough to make lanes of everything that depends on it; the others stay single."""
    rng, model, q, v, x = drawn()
    values = jnp.asarray(perturbed(rng, name, getattr(model, name)))
    pick = {
        "damping": lambda m: passive_forces(m, q, v),
        "stiffness": lambda m: (passive_forces(m, q, v), energy(m, State(q, v, q[0]))),
    }.get(name, lambda m: (aba(m, q, v, x), energy(m, State(q, v, q[0]))))
    found = pick(model.replace(**{name: values}))
    loop = stacked([pick(model.replace(**{name: value})) for value in values])
    assert_same({"": found}, {"": loop})
    first = jax.tree.leaves(found)[0]
    assert np.abs(first[0] - first[1]).max() > 1e-6 * np.abs(first).max()


@pytest.mark.slow
def test_vmap_is_native_batch():
    """vmap over states, and over a model with some parameters per lane; two batch axes are like one."""
    rng, model, q, v, x = drawn(batch=(2, LANES))
    native = everything(model, q, v, x)
    assert_same(jax.vmap(jax.vmap(lambda *s: everything(model, *s)))(q, v, x), native)
    model = model.replace(mass=jnp.asarray(perturbed(rng, "mass", model.mass)))
    axes = jax.tree.map(lambda _: None, model).replace(mass=0)
    q, v, x = q[0], v[0], x[0]
    assert_same(jax.vmap(everything, (axes, 0, 0, 0))(model, q, v, x), everything(model, q, v, x))


@pytest.mark.slow
def test_links_in_another_order():
    """Links renumbered, parents still first: the same scene, its coordinates in another order."""
    rng, model, q, v, x = drawn(Recipe(502, 14, roots=3, branch=0.7))
    order, left = [], list(range(14))
    while left:
        ready = [i for i in left if model.topology.parents[i] not in left]
        order.append(int(rng.choice(ready)))
        left.remove(order[-1])
    assert order != sorted(order)
    other, q_of, v_of = subset(model, order)
    found, old = everything(other, q[q_of], v[v_of], x[v_of]), everything(model, q, v, x)
    expected = {name: old[name][v_of] for name in ("aba", "rnea", "passive", "motor", "hold")}
    expected |= {
        "crba": old["crba"][np.ix_(v_of, v_of)],
        "fk": jax.tree.map(lambda a: a[np.array(order)], old["fk"]),
        "integrate_q": old["integrate_q"][q_of],
        "energy": old["energy"],
        "momentum": old["momentum"],
        "jacobian": jacobian(model, q, order[4], (0.1, 0.2, 0.3))[:, v_of],
    }
    assert_same(found, expected)


@pytest.mark.slow
def test_each_tree_of_a_forest_is_on_its_own():
    """Trees that share groups with others move as they do alone, and see nothing of each other's state."""
    _, model, q, v, x = drawn(Recipe(503, 15, roots=4, branch=0.5))
    together, M = aba(model, q, v, x), crba(model, q)
    roots = [model.topology.ancestors(i)[-1] for i in range(15)]
    for root in range(4):
        alone, q_of, v_of = subset(model, [i for i in range(15) if roots[i] == root])
        tau = aba(alone, q[q_of], v[v_of], x[v_of])
        assert_same({"": tau}, {"": together[v_of]})
        others = np.setdiff1d(np.arange(x.size), v_of)
        assert np.all(M[np.ix_(v_of, others)] == 0)


def bodies(n):
    rng = np.random.default_rng(n)
    model = random_model(rng, Topology(tuple(f"body{i}" for i in range(n)), (-1,) * n, ("floating",) * n))
    q, v = random_state(rng, model.topology)
    return jax.tree.map(jnp.asarray, (model, q, v, rng.normal(size=v.shape)))


def test_free_bodies_are_one_group():
    """50 free bodies cost one body's program, and each moves by Newton's and Euler's equations."""
    model, q, v, x = bodies(50)
    (group,) = model.topology.groups
    assert (group.n, group.depth) == (50, 0)
    with jax.disable_jit(False):
        programs = [[e.primitive.name for e in equations(jax.make_jaxpr(aba)(*bodies(n)).jaxpr)] for n in (5, 50)]
    assert programs[0] == programs[1]
    model = model.replace(armature=jnp.zeros_like(model.armature))
    R, qdd = np.asarray(fk(model, q).rotation), np.asarray(aba(model, q, v, x))
    for i, (m, c, I) in enumerate(zip(*map(np.asarray, (model.mass, model.com, model.inertia)), strict=True)):
        k = slice(6 * i, 6 * i + 6)
        (w, _), (n, f), (dw, dv) = (np.asarray(a[k]).reshape(2, 3) for a in (v, x, qdd))
        c, I = R[i] @ c, R[i] @ I @ R[i].T
        euler = np.linalg.solve(I, n - np.cross(c, f) - np.cross(w, I @ w))
        newton = f / m + np.asarray(model.gravity)
        assert np.allclose(dw, euler, rtol=ROUNDING, atol=ROUNDING * np.abs(euler).max())
        assert np.allclose(dv + np.cross(dw, c) + np.cross(w, np.cross(w, c)), newton, rtol=1e-9)
