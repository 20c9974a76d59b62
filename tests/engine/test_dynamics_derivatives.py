"""Analytic derivatives of rnea, aba and hybrid: against differences, Pinocchio, `jax.jvp` and one another."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from carom.engine.dynamics.aba import aba
from carom.engine.dynamics.crba import crba
from carom.engine.dynamics.derivatives.forward import aba_derivatives
from carom.engine.dynamics.derivatives.hybrid import hybrid_derivatives
from carom.engine.dynamics.derivatives.inverse import rnea_derivatives
from carom.engine.dynamics.hybrid import hybrid
from carom.engine.dynamics.kinematics import coordinate_rates, integrate_q
from carom.engine.dynamics.rnea import rnea
from carom.engine.joints import JOINTS
from carom.tests.oracles import pinocchio_derivatives as theirs
from carom.tests.oracles.pinocchio_model import Oracle
from carom.tests.oracles.programs import equations
from carom.tests.oracles.random_trees import Recipe, random_state, random_tree

TOLERANCE = 1e-8  # promised, relative to the largest entry
STEP = 1e-3  # of central differences of fourth order: truncation STEP^4 and rounding 1e-16/STEP, near 1e-12 both
ROUNDING = 1e-11  # one algorithm against another, inertia matrices of condition 1e4

SMALL = Recipe(641, 2, floating=True, joints=("universal",))
MIXED = Recipe(642, 5, floating=True, branch=0.4, joints=("universal", "planar", "spherical", "screw"))
EVERY = Recipe(621, 9, floating=True, branch=0.4)  # one of each joint
TREES = [
    EVERY,
    Recipe(302, 10, roots=3, floating=True, branch=0.6),
    Recipe(622, 8, branch=0.0),
    *(Recipe(630 + k, 3, joints=(joint,)) for k, joint in enumerate(JOINTS) if joint not in ("fixed", "floating")),
]


def quick(first, second, *others):
    """The first in the default run, the second in the slow one, the others by hand."""
    marked = [pytest.param(recipe, marks=pytest.mark.exhaustive) for recipe in others]
    return [first, pytest.param(second, marks=pytest.mark.slow), *marked]


@pytest.fixture(autouse=True)
def op_by_op():
    """Without compiling, except in the tests that ask for it: these trees are all different."""
    with jax.disable_jit():
        yield


def drawn(recipe, batch=(), dtype="float64"):
    """Generator, model, q, v and as many random numbers x; all arrays of one dtype."""
    rng, model = random_tree(recipe)
    q, v = random_state(rng, model.topology, batch)
    return rng, *jax.tree.map(lambda a: jnp.asarray(a, dtype), (model, q, v, rng.normal(size=v.shape)))


def close(a, b, tolerance):
    return np.abs(np.asarray(a) - np.asarray(b)).max() <= tolerance * np.abs(b).max()


def differences(model, f, q, v, x):
    """Central differences of the outputs of f(q, v, x), (..., nv) each, by all of the joints' displacements, v and x:
    for each output (nv, nv) by each of the three."""
    nv = v.size
    sizes = np.multiply.outer([1, -1, 2, -2], STEP * np.eye(3 * nv))  # four ends of each direction, as one batch
    by_q, by_v, by_x = (sizes[..., k * nv : (k + 1) * nv] for k in range(3))
    q = integrate_q(model, jnp.broadcast_to(q, (*by_q.shape[:-1], q.size)), jnp.asarray(by_q), 1.0)
    slopes = [(8 * (a - b) - (c - d)) / (12 * STEP) for a, b, c, d in f(q, v + by_v, x + by_x)]
    return [[slope[k * nv : (k + 1) * nv].T for k in range(3)] for slope in slopes]


@pytest.mark.parametrize("recipe", quick(MIXED, *TREES), ids=str)
@pytest.mark.slow
def test_against_differences(recipe):
    """Of both outputs of hybrid by displacements, velocities and what is given."""
    rng, model, q, v, x = drawn(recipe)
    given = jnp.asarray(rng.random(v.shape) < 0.5)
    expected = differences(model, lambda *s: hybrid(model, *s[:2], given, s[2]), q, v, x)
    for mine, slopes in zip(hybrid_derivatives(model, q, v, given, x), expected, strict=True):
        for name, a, b in zip(mine._fields, mine, slopes, strict=True):
            assert np.abs(a - b).max() <= TOLERANCE * np.abs(b).max(initial=1), name  # what is given has slope zero


@pytest.mark.parametrize("recipe", quick(SMALL, *TREES[:3]), ids=str)
@pytest.mark.slow
def test_extremes_of_hybrid(recipe):
    """All accelerations given: inverse dynamics. None: forward dynamics."""
    _, model, q, v, x = drawn(recipe)
    inverse, forward = rnea_derivatives(model, q, v, x), aba_derivatives(model, q, v, x)
    all_given, none = (hybrid_derivatives(model, q, v, jnp.full(v.shape, given), x) for given in (True, False))
    for mine, other in zip((*all_given.force, *none.acceleration), (*inverse, *forward), strict=True):
        assert close(mine, other, ROUNDING)
    assert np.array_equal(all_given.acceleration.values, np.eye(v.size))
    assert np.array_equal(none.force.values, np.eye(v.size))
    assert close(inverse.a, crba(model, q), ROUNDING)
    assert close(forward.tau @ inverse.a, np.eye(v.size), TOLERANCE)


SIZES = (0, 1, 3, 6, 9, 11)
MANY = [Recipe(650 + k, 1 + 3 * k, roots=1 + k % 3, floating=k % 2 == 0, branch=0.25 * (k % 5)) for k in SIZES]


@pytest.mark.parametrize("recipe", quick(MIXED, EVERY, *MANY), ids=str)
@pytest.mark.slow
def test_against_pinocchio(recipe):
    _, model, q, v, x = drawn(recipe, (2,))
    oracle = Oracle(jax.tree.map(np.asarray, model))
    inverse, forward = rnea_derivatives(model, q, v, x), aba_derivatives(model, q, v, x)
    for mine, reference in ((inverse, theirs.rnea_derivatives), (forward, theirs.aba_derivatives)):
        for lane in range(2):
            expected = reference(oracle, *(np.asarray(a[lane]) for a in (q, v, x)))
            for name, a, b in zip(mine._fields, mine, expected, strict=True):
                assert close(a[lane], b, TOLERANCE), (reference.__name__, name)


@pytest.mark.parametrize("recipe", quick(Recipe(643, 1, joints=("universal",)), EVERY), ids=str)
@pytest.mark.parametrize("at", ["zero", pytest.param("random", marks=pytest.mark.exhaustive)])
@pytest.mark.slow
def test_jvp_and_grad(recipe, at):
    """`jax.jvp` along a motion is the Jacobians times it; `jax.grad` is its transpose. No NaN where angles vanish."""
    rng, model, q, v, x = drawn(recipe)
    if at == "zero":
        q = jnp.asarray([number for joint in model.topology.joints for number in JOINTS[joint].neutral])
        v = 0 * v
    given = jnp.asarray(np.arange(v.size) % 2 == 0)
    dq, dv, dx = (jnp.asarray(rng.normal(size=v.shape)) for _ in range(3))
    tangents = (coordinate_rates(model, q, dq), dv, dx)

    def mixed(*state):
        return jnp.stack(hybrid(model, *state[:2], given, state[2]))

    both = hybrid_derivatives(model, q, v, given, x)
    for f, jacobians in (
        (lambda *s: rnea(model, *s), rnea_derivatives(model, q, v, x)),
        (lambda *s: aba(model, *s), aba_derivatives(model, q, v, x)),
        (mixed, [np.stack(pair) for pair in zip(*both, strict=True)]),
    ):
        value, rate = jax.jvp(f, (q, v, x), tangents)
        expected = sum(J @ d for J, d in zip(jacobians, (dq, dv, dx), strict=True))
        assert close(rate, expected, TOLERANCE)
        weight = jnp.asarray(rng.normal(size=value.shape))
        slopes = jax.grad(lambda *s, f=f, w=weight: (f(*s) * w).sum(), argnums=(0, 1, 2))(q, v, x)
        along = sum(slope @ d for slope, d in zip(slopes, tangents, strict=True))
        assert abs(along - (rate * weight).sum()) <= ROUNDING * (np.abs(rate) * np.abs(weight)).sum()
        assert all(np.isfinite(slope).all() for slope in slopes)


def test_what_does_not_move_costs_nothing():
    """Derivatives of aba by tau alone are solves with its factors: nothing of inverse dynamics is traced."""
    _, model, q, v, x = drawn(Recipe(1, 2, joints=("revolute",)))

    def operations(f, at):
        return len(list(equations(jax.make_jaxpr(lambda x: jax.jvp(f, (x,), (x,)))(at).jaxpr)))

    by_tau, by_v = operations(lambda x: aba(model, q, v, x), x), operations(lambda v: aba(model, q, v, x), v)
    assert by_tau < 0.7 * by_v


@pytest.mark.slow
def test_compiled_in_tiles_and_batched_parameters():
    """One program over a batch, larger than a tile and no multiple of it, in f32 too; parameters a lane."""
    recipe, lanes = Recipe(4, 1, joints=("universal",)), 2060
    _, model, q, v, x = drawn(recipe, (lanes,))
    with jax.disable_jit(False):
        found = aba_derivatives(model, q, v, x)
    single = jax.tree.map(lambda a: jnp.asarray(a, "float32"), (model, q, v, x))
    rounded = aba_derivatives(*single)
    heavy = model.replace(mass=jnp.broadcast_to(model.mass, (lanes, 1)))
    some = aba_derivatives(heavy, q, v, x)
    for a, b, c in zip(found, rounded, some, strict=True):
        assert a.shape == (lanes, 2, 2)
        assert b.dtype == "float32"
        assert close(b, a, 1e-3)  # f32 and inertia matrices of condition 1e2
        assert close(c, a, ROUNDING)
