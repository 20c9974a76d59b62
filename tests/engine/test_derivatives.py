"""jvp and grad of the dynamics: finite and equal to central differences, also where coordinates vanish.

At q = 0 angles are zero and quaternions the identity: what is not written for it divides zero by zero there.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from carom.engine.dynamics.aba import aba
from carom.engine.dynamics.crba import crba
from carom.engine.dynamics.energy import energy, momentum
from carom.engine.dynamics.impulse import impulse_response
from carom.engine.dynamics.jacobian import jacobian
from carom.engine.dynamics.kinematics import fk, integrate_q
from carom.engine.dynamics.passive import motor_forces, passive_forces
from carom.engine.joints import JOINTS
from carom.engine.state import State
from carom.tests.oracles.random_trees import Recipe, random_state, random_tree, with_passive

STEP = 1e-5  # of the central difference: truncation and rounding, STEP^2 and 1e-16/STEP, are both near 1e-10
TOLERANCE = 1e-7  # relative to the largest entry, third derivatives of order 100 allowed for
ROUNDING = 1e-10  # forward against reverse mode
TREE = Recipe(601, 9, floating=True, branch=0.4)

FUNCTIONS = {  # rnea and hybrid: see test_dynamics_derivatives
    "aba": aba,
    "crba": lambda m, q, v, x: crba(m, q),
    "impulse_response": lambda m, q, v, x: impulse_response(m, q, 5, (0.1, 0.2, 0.3), (1.0, 2.0, 3.0)),
    "jacobian": lambda m, q, v, x: jacobian(m, q, 8, (0.1, 0.2, 0.3)),
    "fk": lambda m, q, v, x: fk(m, q),
    "energy": lambda m, q, v, x: energy(m, State(q, v, q[0])),
    "momentum": lambda m, q, v, x: momentum(m, State(q, v, q[0])),
    "integrate_q": lambda m, q, v, x: integrate_q(m, q, v, 0.1),
    "passive_forces": lambda m, q, v, x: passive_forces(m, q, v),
    "motor_forces": lambda m, q, v, x: motor_forces(m, q, v, x),
}


@pytest.fixture(autouse=True)
def op_by_op():
    with jax.disable_jit():
        yield


def drawn(at):
    """Model with springs, dampers and motors, a state, forces."""
    rng, model = random_tree(TREE)
    model = with_passive(rng, model).replace(motor_effort=np.full(model.topology.nv, np.inf))
    q, v = random_state(rng, model.topology)
    x = rng.normal(size=v.shape)
    if at == "zero":
        q = np.array([number for joint in model.topology.joints for number in JOINTS[joint].neutral])
        v = np.zeros_like(v)
    return rng, *jax.tree.map(jnp.asarray, (model, q, v, x))


def flat(tree):
    return jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(tree)])


# the others by hand, except one: they are made of the same stages
QUICK = {(name, "zero") for name in ("aba", "energy", "passive_forces", "integrate_q")}


def case(*which):
    mark = pytest.mark.slow if which == ("aba", "random") else pytest.mark.exhaustive
    return pytest.param(*which, marks=() if which in QUICK else mark)


@pytest.mark.parametrize(("name", "at"), [case(name, at) for name in FUNCTIONS for at in ("zero", "random")])
def test_derivative_by_the_state(name, at):
    """One direction that moves q, v and x at once: jvp, grad and central difference agree."""
    rng, model, *state = drawn(at)

    def f(*state):
        return flat(FUNCTIONS[name](model, *state))

    direction = [jnp.asarray(rng.normal(size=a.shape)) for a in state]
    value, rate = jax.jvp(f, state, direction)
    ends = [f(*(a + s * STEP * d for a, d in zip(state, direction, strict=True))) for s in (1, -1)]
    difference = (ends[0] - ends[1]) / (2 * STEP)
    assert np.isfinite(value).all()
    assert np.abs(rate - difference).max() <= TOLERANCE * np.abs(difference).max()

    weight = jnp.asarray(rng.normal(size=value.shape))
    slopes = jax.grad(lambda *state: f(*state) @ weight, argnums=(0, 1, 2))(*state)
    assert all(np.isfinite(slope).all() for slope in slopes)
    along = sum(slope @ d for slope, d in zip(slopes, direction, strict=True))
    assert abs(along - rate @ weight) <= ROUNDING * (np.abs(rate) @ np.abs(weight))


@pytest.mark.parametrize("name", ["aba", "energy", pytest.param("passive_forces", marks=pytest.mark.exhaustive)])
@pytest.mark.slow
def test_derivative_by_the_parameters(name):
    """All parameters of the links and joints moved at once: for identification and design."""
    rng, model, *state = drawn("zero")
    fixed = ("topology", "motor_effort", "lower", "upper", "limit_restitution", "baumgarte")
    names = [n for n in model.__dataclass_fields__ if n not in fixed and getattr(model, n).size]
    start = {n: getattr(model, n) for n in names}
    direction = {n: jnp.asarray(rng.normal(size=a.shape)) for n, a in start.items()}
    direction["inertia"] = direction["inertia"] + jnp.swapaxes(direction["inertia"], 1, 2)

    def f(changes):
        return flat(FUNCTIONS[name](model.replace(**changes), *state))

    _, rate = jax.jvp(f, (start,), (direction,))
    ends = [f(jax.tree.map(lambda a, d, s=s: a + s * STEP * d, start, direction)) for s in (1, -1)]
    difference = (ends[0] - ends[1]) / (2 * STEP)
    assert np.abs(rate - difference).max() <= TOLERANCE * np.abs(difference).max()
    slopes = jax.grad(lambda changes: f(changes).sum())(start)
    assert all(np.isfinite(slope).all() for slope in slopes.values())
    along = sum((slopes[n] * direction[n]).sum() for n in names)
    assert abs(along - rate.sum()) <= ROUNDING * np.abs(rate).sum()
