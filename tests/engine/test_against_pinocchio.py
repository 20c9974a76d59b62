"""Every algorithm on trees against Pinocchio: 50 random trees, 1 to 40 links, all joint types.

Most trees run op by op (`jax.disable_jit`): compiling one takes longer than all its checks. A few run as
users run them, compiled; the same code is traced either way.
"""

import math

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
from carom.engine.dynamics.kinematics import fk, integrate_q
from carom.engine.dynamics.rnea import rnea
from carom.engine.joints import JOINTS
from carom.engine.state import State
from carom.tests.oracles.pinocchio_model import Oracle
from carom.tests.oracles.programs import equations
from carom.tests.oracles.random_trees import INNER, Recipe, random_state, random_topology, random_tree

TREES = [
    Recipe(
        seed=i,
        links=int(links),
        roots=(1, 1, 2, 1, 3, 1, 1)[i % 7],
        floating=i % 3 == 1,
        branch=(0.5, 0.0, 1.0, 0.2, 0.8)[i % 5],
    )
    for i, links in enumerate(np.linspace(1, 40, 50).round())
]
STATES = 2  # of every tree, as one batch

# what the project promises, relative to the largest entry; rounding leaves 1e-13 and 1e-5 (40 links, condition 1e4)
TOLERANCE = {"float64": 1e-9, "float32": 1e-4}


def every(k: int, seldom: int) -> list:
    """Each k-th tree of the smallest third in the default run; one of the middle in the slow one; of all others each
    seldom-th, and the largest, by hand: what a tree costs grows with its links."""
    last, slow = len(TREES) - 1, len(TREES) // 2
    quick = {*range(0, len(TREES) // 3, k)}
    marks = {**dict.fromkeys(quick, ()), slow: pytest.mark.slow}
    chosen = sorted({*marks, *range(0, len(TREES), seldom), last})
    return [pytest.param(TREES[i], marks=marks.get(i, pytest.mark.exhaustive), id=str(TREES[i])) for i in chosen]


def ours(model, q, v, x, center, points, links) -> dict:
    """What Carom says; x are accelerations for rnea and forces for aba."""
    state = State(q, v, q[..., 0])
    e, poses, about_origin = energy(model, state), fk(model, q), momentum(model, state)
    return {
        "aba": aba(model, q, v, x),
        "rnea": rnea(model, q, v, x),
        "crba": crba(model, q),
        "kinetic": e.kinetic,
        "potential": e.potential,
        "linear momentum": about_origin.linear,
        "angular momentum": about_origin.angular,
        "angular momentum about the centre of mass": momentum(model, state, center).angular,
        "positions": poses.position,
        "rotations": poses.rotation,
        **{f"jacobian {link}": jacobian(model, q, link, p) for link, p in zip(links, points, strict=True)},
    }


def theirs(oracle: Oracle, q, v, x, links, points) -> dict:
    """What Pinocchio says, for one state."""
    kinetic, potential = oracle.energy(q, v)
    linear, angular, com = oracle.momentum(q, v)
    positions, rotations = oracle.poses(q)
    return {
        "aba": oracle.aba(q, v, x),
        "rnea": oracle.rnea(q, v, x),
        "crba": oracle.crba(q),
        "kinetic": kinetic,
        "potential": potential,
        "linear momentum": linear,
        "angular momentum": angular + np.cross(com, linear),
        "angular momentum about the centre of mass": angular,
        "positions": positions,
        "rotations": rotations,
        **{f"jacobian {link}": oracle.jacobian(q, link, p) for link, p in zip(links, points, strict=True)},
    }


def compare(recipe: Recipe, dtype: str, batch: tuple[int, ...], call=lambda f, *args: f(*args)) -> None:
    rng, model = random_tree(recipe)
    oracle, n = Oracle(model), recipe.links
    q, v = random_state(rng, model.topology, batch)
    x = rng.normal(size=v.shape)
    links = sorted({n // 2, n - 1})
    points = rng.normal(size=(len(links), 3))
    states = [[a.reshape(-1, a.shape[-1])[k] for a in (q, v, x)] for k in range(math.prod(batch))]
    expected = [theirs(oracle, q, v, x, links, points) for q, v, x in states]
    center = np.reshape([oracle.momentum(q, v)[2] for q, v, _ in states], (*batch, 3))
    numbers = jax.tree.map(lambda a: jnp.asarray(a, dtype), (model, q, v, x, center, points))
    found = call(lambda *args: ours(*args, links=links), *numbers)
    reference = {name: np.reshape([e[name] for e in expected], x.shape) for name, x in found.items()}
    worst = {}
    for name, value in found.items():
        assert value.dtype == dtype, name
        error = np.abs(np.asarray(value, float) - reference[name]).max(initial=0)
        scale = np.abs(reference[name]).max(initial=0)
        if "momentum" in name:  # one that happens to vanish is as exact as the linear one (lengths are about 1 m)
            scale = max(scale, np.abs(reference["linear momentum"]).max())
        worst[name] = error / scale if scale else error  # a link that cannot move has the Jacobian 0
    assert {name: e for name, e in worst.items() if not e < TOLERANCE[dtype]} == {}


@pytest.mark.parametrize("recipe", every(6, seldom=4))
def test_tree_in_double_precision(recipe):
    with jax.disable_jit():
        compare(recipe, "float64", (STATES,))


@pytest.mark.parametrize("recipe", every(15, seldom=9))
def test_tree_in_single_precision(recipe):
    with jax.disable_jit():
        compare(recipe, "float32", (STATES,))


@pytest.mark.parametrize(
    ("recipe", "batch"),
    [
        pytest.param(Recipe(101, 9, branch=0.0), (2, 1), id="chain of all inner joints", marks=pytest.mark.slow),
        pytest.param(Recipe(102, 5, floating=True, branch=1.0), (), id="free tree, one state"),
    ],
)
@pytest.mark.slow
def test_compiled_as_one_program(recipe, batch):
    compare(recipe, "float64", batch, lambda f, *args: jax.jit(f)(*args))


def test_trees_are_what_they_claim():
    """All joint types, sizes 1 to 40, free and fixed, chains and bushes, one and several trees; and so do those run."""
    assert len(TREES) == 50
    for some in (TREES, [*TREES[::4], TREES[-1]]):
        drawn = [random_topology(np.random.default_rng(r.seed), r) for r in some]
        assert {j for t in drawn for j in t.joints} == set(JOINTS)
        assert min(t.n_links for t in drawn) == 1
        assert max(t.n_links for t in drawn) > 36
        assert {"floating" in t.joints for t in drawn} == {True, False}
        assert {t.parents.count(-1) for t in drawn} >= {1, 2, 3}
        assert any(max(t.depth) == t.n_links - 1 > 5 for t in drawn)
        assert any(len(set(t.parents)) < 0.7 * t.n_links for t in drawn if t.n_links > 10)
    assert TREES[-1].links == 40


def test_random_states_are_random():
    """No number is copied over a batch, a link or a vector; quaternions are unit and of both signs."""
    rng, model = random_tree(Recipe(7, 20, floating=True))
    q, v = random_state(rng, model.topology, (50,))
    assert q.shape == (50, model.topology.nq)
    assert v.shape == (50, model.topology.nv)
    assert np.unique(q).size == q.size
    assert np.unique(v).size == v.size
    assert np.allclose(np.linalg.norm(q[:, 3:7], axis=-1), 1)
    assert np.ptp(q[:, 3]) > 1.5
    per_link = (model.mass, model.com, model.inertia[:, 0, 0], model.axis, model.pitch)
    assert all(np.unique(a).size == a.size for a in per_link)


def test_single_precision_stays_single():
    """With x64 switched on, float32 in is float32 out, and nothing in between is promoted."""
    rng, model = random_tree(Recipe(5, 9, floating=True, branch=0.3, joints=INNER))
    q, v = random_state(rng, model.topology)
    args = jax.tree.map(lambda a: jnp.asarray(a, "float32"), (model, q, v, rng.normal(size=v.shape)))

    def everything(model, q, v, x):
        answers = ours(model, q, v, x, jnp.zeros(3, "float32"), np.zeros((1, 3)), [3])
        given = jnp.asarray(np.arange(v.size) % 2 == 0)
        more = impulse_response(model, q, 4, (0.1, 0.2, 0.3), (1.0, 2.0, 3.0)), hybrid(model, q, v, given, x)
        return answers, more, integrate_q(model, q, v, 0.1)

    traced, shapes = jax.make_jaxpr(everything, return_shape=True)(*args)
    assert {leaf.dtype.name for leaf in jax.tree.leaves(shapes)} == {"float32"}
    doubles = [eqn for eqn in equations(traced.jaxpr) for x in eqn.outvars if promoted(x.aval)]
    assert doubles == []


def promoted(aval) -> bool:
    """A double that Python's own numbers do not explain (those are weakly typed and yield to float32)."""
    return aval.dtype == np.float64 and not aval.weak_type
