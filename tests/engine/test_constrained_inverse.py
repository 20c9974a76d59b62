"""Inverse dynamics with loops: Kim's five-bar with one, two, three and five motors, and what least norms mean."""

from itertools import combinations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from carom.engine import results
from carom.engine.dynamics.rnea import rnea
from carom.engine.loops.forward import constrained
from carom.engine.loops.inverse import constrained_inverse, share
from carom.engine.loops.jacobian import closed
from carom.scenes.compile import compile_scene
from carom.scenes.library.five_bar import five_bar as five_bar_scene
from carom.scenes.library.five_bar import holding_torque
from carom.tests.oracles.five_bar import five_bar

TOLERANCE = 1e-10  # relative to the largest entry; A_p of the worst choice of motors has a condition number of 1e3


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
    """The five-bar in motion, A (6, 5), and the load that motors and constraints must share."""
    with jax.disable_jit():
        model, q, v, a = five_bar()
        return model, q, v, a, closed(model, q, v, 0.0).A, rnea(model, q, v, a)


MOTORS = np.array([np.isin(np.arange(5), own) for n in (2, 3, 4, 5) for own in combinations(range(5), n)])


@pytest.fixture(scope="module")
def shared(moving):
    """For all ways to put two motors or more: the least lambda, and the least torques."""
    *_, A, load = moving
    with jax.disable_jit():
        return {least_torque: share(A, load, jnp.asarray(MOTORS), least_torque) for least_torque in (False, True)}


def test_two_motors_are_unique(moving, shared):
    """Power alone decides, without any constraint force: along what is free, the motors do what the load asks."""
    A, load = (np.asarray(x) for x in moving[-2:])
    free = np.linalg.svd(A)[2][np.linalg.matrix_rank(A) :].T
    assert free.shape == (5, 2)
    for k, own in enumerate(MOTORS[:10]):
        torque = np.zeros(5)
        torque[own] = np.linalg.solve(free[own].T, free.T @ load)
        for found in shared.values():
            assert found.redundancy[k] == 0
            near(found.torque[k], torque, 1e-9)  # of ten choices the worst
            near(found.residual[k], np.zeros(5))
            near(found.torque[k] + found.constraint_force[k] @ A, load)


@pytest.mark.parametrize("least_torque", [False, True])
def test_redundant_motors_have_a_least_solution(moving, shared, least_torque):
    """Whatever else gives the same motion, found by straining along the null space, has the larger norm."""
    A, load = (np.asarray(x) for x in moving[-2:])
    rng, found = np.random.default_rng(0), shared[least_torque]
    for k, own in [*enumerate(MOTORS)][10:]:
        torque, force, spare = np.asarray(found.torque[k]), np.asarray(found.constraint_force[k]), own.sum() - 2
        assert found.redundancy[k] == spare
        near(found.residual[k], np.zeros(5))
        near(torque + A.T @ force, load)
        assert not torque[~own].any()
        # [motors, A^T] (torque, force) = load: all of its null space, and three forces out of the plane
        system = np.concatenate([np.eye(5)[:, own], A.T], 1)
        null = np.linalg.svd(system)[2][np.linalg.matrix_rank(system) :].T
        assert null.shape[1] == spare + 3
        motors, forces = null[: own.sum()], null[own.sum() :]
        chosen, strains = (torque[own], motors) if least_torque else (force, forces)
        near(strains.T @ chosen, np.zeros(null.shape[1]), 1e-9)  # stationary, and the square of a norm is convex
        aside = strains @ rng.normal(size=(null.shape[1], 10))
        near(system @ np.concatenate([motors, forces]), np.zeros((5, null.shape[1])))
        assert np.all(np.linalg.norm(chosen[:, None] + aside, axis=0) > np.linalg.norm(chosen))
        if least_torque:  # of all forces with these torques, again the least
            silent = forces @ np.linalg.svd(motors)[2][spare:].T
            near(silent.T @ force, np.zeros(3), 1e-9)


def test_every_joint_has_a_motor(moving):
    """(65, 66), with independent rows; and the other least: no constraint force at all."""
    *_, A, load = moving
    A = A[::2]
    found = share(A, load, jnp.ones(5, bool), True)
    near(found.constraint_force, np.linalg.solve(A @ A.T, A @ load))
    near(found.torque, load - A.T @ found.constraint_force)
    near(share(A, load, jnp.ones(5, bool), False).torque, load)


def test_what_cannot_move_needs_no_torque():
    """n < m: the constraints carry everything."""
    rng = np.random.default_rng(1)
    A, load = jnp.asarray(rng.normal(size=(6, 4))), jnp.asarray(rng.normal(size=4))
    near(share(A, load, jnp.ones(4, bool), True).torque, np.zeros(4))


@pytest.mark.parametrize(("m", "independent"), [(0, 0), (5, 2), (8, 5)])
def test_constraints_of_any_rank(m, independent):
    """What is missing is the least that can be: NumPy's least squares over torques and forces together."""
    rng = np.random.default_rng(2)
    A = rng.normal(size=(m, independent)) @ rng.normal(size=(independent, 6))
    load = rng.normal(size=6)
    for n in (0, 2, 4, 6):
        own = np.isin(np.arange(6), rng.permutation(6)[:n])
        system = np.concatenate([np.eye(6)[:, own], A.T], 1)
        missing = load - system @ np.linalg.lstsq(system, load, rcond=1e-9)[0] if system.size else load
        for least_torque in (False, True):
            torque, force, residual, redundancy = share(
                jnp.asarray(A), jnp.asarray(load), jnp.asarray(own), least_torque
            )
            near(torque + A.T @ force + residual, load)
            near(residual, missing)
            assert not np.any(torque[~own])
            assert not np.any(residual[own])
            free = A[:, ~own]  # older NumPys have no rank of what is empty
            assert redundancy == independent - (np.linalg.matrix_rank(free) if free.size else 0)


@pytest.mark.slow
def test_forward_dynamics_of_what_the_motors_do(moving):
    """The torques, put into forward dynamics, give the accelerations back, and the least forces are those found there.
    Springs at all joints, also where there are motors."""
    model, q, v, a, *_ = moving
    spring = jnp.array([0.3, -2.0, 1.0, 0.5, -0.7])
    actuated = jnp.array([[1, 1, 0, 0, 0], [1, 0, 1, 0, 1]], bool)
    found = constrained_inverse(model, q, v, a, actuated=actuated, passive_force=spring, minimize="torque")
    assert np.array_equal(found.code, [results.OK, results.OK])
    assert np.array_equal(found.redundancy, [0, 1])
    twice = (jnp.stack([x, x]) for x in (q, v))
    forward = constrained(model, *twice, 0.0, found.torque + spring)
    near(forward.acceleration, np.tile(a, (2, 1)))
    near(forward.force, found.constraint_force)
    assert not np.any(found.torque[~actuated])


def test_motors_that_hold_a_five_bar():
    """The library's, two arms and two forearms: the slope of the potential energy, in closed form. In space the hinge
    at the tip has five rows, where two would do."""
    model, state = compile_scene(five_bar_scene(angle=0.6), jnp.float64)
    arms = jnp.array([name.endswith(" arm") for name in model.topology.names])
    found = constrained_inverse(model, state.q, state.v, 0 * state.v, actuated=arms)
    near(found.torque, holding_torque(0.6) * np.array([1, 0, -1, 0]))
    assert found.code == results.OK
    assert found.redundancy == 0


@pytest.mark.slow
def test_infeasible_is_said(moving):
    """One motor moves what two must; and accelerations that the loop forbids."""
    model, q, v, a, *_ = moving
    few = constrained_inverse(model, q, v, a, actuated=jnp.arange(5) == 1)
    assert few.code == results.MOTORS_TOO_FEW
    assert np.abs(few.residual).max() > 0.1
    with pytest.raises(results.SimulationError, match="mark more degrees of freedom as actuated"):
        results.raise_for(few.code, np.zeros(()))
    bad = jnp.stack([a, a.at[2].add(1e-5), a.at[0].set(jnp.nan)])
    codes = constrained_inverse(model, q, v, bad, actuated=jnp.arange(5) < 2).code
    assert np.array_equal(codes, [results.OK, results.LOOPS_FORBID, results.NOT_FINITE])
    assert constrained_inverse(model, q, v, bad[1], actuated=jnp.arange(5) < 2, tolerance=1e-4).code == results.OK


def test_at_rest_without_weight_nothing_is_missing(moving):
    """Accelerations of rounding size: nothing is relative to nothing."""
    model, q, v, a, *_ = moving
    model = model.replace(gravity=0 * model.gravity)
    assert constrained_inverse(model, q, 0 * v, 1e-16 * a, actuated=jnp.arange(5) == 1).code == results.OK


def test_bad_input_is_refused(moving):
    model, q, v, a, *_ = moving
    with pytest.raises(ValueError, match="minimize is 'force'; it must be one of constraint_force, torque"):
        constrained_inverse(model, q, v, a, actuated=jnp.ones(5), minimize="force")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match=r"actuated has shape \(4,\); this model needs \(\.\.\., 5\)"):
        constrained_inverse(model, q, v, a, actuated=jnp.ones(4))


@pytest.mark.parametrize("least_torque", [False, True])
def test_derivative(moving, least_torque):
    """Of the shares by A and load, against central differences; A stays of its rank, as that of a loop does."""
    *_, A, load = moving
    rng = np.random.default_rng(3)
    dA, dload = jnp.asarray(rng.normal(size=A.shape)).at[1::2].set(0), jnp.asarray(rng.normal(size=5))
    f = lambda A, load: share(A, load, jnp.array([1, 0, 1, 0, 1], bool), least_torque)[:2]  # noqa: E731
    slopes, h = jax.jvp(f, (A, load), (dA, dload))[1], 1e-5
    ends = [f(A + s * h * dA, load + s * h * dload) for s in (1, -1)]
    for slope, above, below in zip(slopes, *ends, strict=True):
        near(slope, (above - below) / (2 * h), 1e-6)  # truncation by h^2, third derivatives of order 1e4
    # and in reverse, without other numbers: pulled back along them, their own square
    pulled = jax.vjp(f, A, load)[1](slopes)
    near((pulled[0] * dA).sum() + pulled[1] @ dload, sum((slope**2).sum() for slope in slopes))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [jnp.float32, pytest.param(jnp.float64, marks=pytest.mark.exhaustive)])
def test_compiled_lanes(moving, kind):
    """Batches of states, masses and choices of motors in one compiled program, in both widths."""
    model, q, v, a, *_ = moving
    lanes = jnp.arange(1.0, 4.0)[:, None]
    v = v * lanes
    rows = closed(model, jnp.tile(q, (3, 1)), v, 0.0)
    a = a - jnp.einsum("ij,kj->ki", jnp.linalg.pinv(rows.A[0], rtol=1e-10), rows.bias + rows.A[0] @ a)
    lumps = model.replace(mass=model.mass * lanes)
    actuated = jnp.array([[1, 1, 0, 0, 0], [1, 1, 0, 0, 1], [1, 0, 0, 0, 0]], bool)
    small = jax.tree.map(lambda x: x.astype(kind), (lumps, jnp.tile(q, (3, 1)), v, a))
    found = constrained_inverse(*small, actuated=actuated, minimize="torque")
    assert found.torque.dtype == kind
    assert np.array_equal(found.code, [results.OK, results.OK, results.MOTORS_TOO_FEW])
    assert np.array_equal(found.redundancy, [0, 1, 0])
    for k in range(3):
        with jax.disable_jit():
            one = constrained_inverse(
                lumps.replace(mass=lumps.mass[k]), q, v[k], a[k], actuated=actuated[k], minimize="torque"
            )
        near(
            found.torque[k], one.torque, 1e-3 if kind == jnp.float32 else TOLERANCE
        )  # rounding by the condition of A_p
