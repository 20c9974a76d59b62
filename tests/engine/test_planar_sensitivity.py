"""Section 8's back-propagation against automatic derivatives, and its torques against part II."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from carom.engine.planar.accelerations import chain_accelerations
from carom.engine.planar.angles import chain_angular
from carom.engine.planar.sensitivity import chain_force_jacobian, chain_torque_jacobian, chain_torques
from carom.tests.oracles.random_chains import random_chains

N, LANES = 6, 24
accelerated, torques = jax.jit(chain_accelerations), jax.jit(chain_torques, static_argnums=2)
ROUNDING = 1e-10  # of entries up to 1e2, through forces up to 1e3


@pytest.fixture(scope="module")
def drawn():
    """Joints free, guided, stuck and on lines, none active: section 8 is of part I."""
    model, state, drive, *_ = random_chains(np.random.default_rng(2), N, LANES)
    return jax.tree.map(jnp.asarray, (model.replace(active=np.zeros_like(model.active)), state, drive))


@pytest.fixture(scope="module")
def automatic(drawn):
    """da_i/dF_j [lane, i, j, component, component] and d alpha_i/d tau_j [lane, i, j]."""

    def answers(model, state, drive, force, torque):
        a = chain_accelerations(model, state, replace(drive, force=force, torque=torque)).a
        return a, chain_angular(model, state, a)

    model, state, drive = drawn
    by = jax.jit(jax.vmap(jax.jacfwd(answers, (3, 4))))(model, state, drive, drive.force, drive.torque)
    return jnp.swapaxes(by[0][0], 2, 3), by[1][1][..., : N - 1]


def test_all_accelerations_by_all_forces(drawn, automatic):
    found = jax.jit(chain_force_jacobian)(*drawn[:2])
    np.testing.assert_allclose(found, automatic[0], atol=ROUNDING)
    np.testing.assert_allclose(found, np.einsum("lijab->ljiba", found), atol=ROUNDING)  # Maxwell


def test_one_row_costs_a_chain_not_a_matrix(drawn, automatic):
    row = jax.jit(chain_force_jacobian, static_argnums=2)
    np.testing.assert_allclose(row(*drawn[:2], 3), automatic[0][:, 3], atol=ROUNDING)
    text = row.lower(*drawn[:2], 3).as_text()
    assert f"{N}x{N}x" not in text  # nothing has a row and a column for every joint


def test_the_report_s_own_steps_hold_off_lines_only(drawn, automatic):
    """Steps 1 to 5 as printed, with A_i for B_i: right except for joints on lines, where db_(k-1)/db_k is C_(k-1)^T."""
    model, state, _ = (jax.tree.map(np.asarray, part) for part in drawn)
    true = np.asarray(automatic[0])
    wrong = {True: 0, False: 0}
    for lane in range(LANES):
        k = int(model.joints[lane])
        A, C, H = answers(model, state, lane, k)
        on_line = bool(model.line[lane, : k - 1].any())
        right = propagated(A, C, H, lambda c: c.T)
        np.testing.assert_allclose(right, true[lane, :k, :k], atol=ROUNDING)
        printed = propagated(A, C, H, lambda c: c)
        if np.abs(printed - right).max() > 1e-6:
            wrong[on_line] += 1
    assert wrong[False] == 0
    assert wrong[True] > 2


def answers(model, state, lane, k):
    """A_i, C_i and H_i of one chain, (6) to (8) and 6.1 to 6.4 in matrices."""
    x, mass = state.x[lane], model.mass[lane]
    A, C, H = np.zeros((k, 2, 2)), np.zeros((k, 2, 2)), np.zeros((k, 2, 2))
    for i in reversed(range(k)):
        s = model.line[lane, i]
        held = model.guided[lane, i] or state.stuck[lane, i] >= 0
        W = np.zeros((2, 2)) if held else (np.eye(2) - np.outer(s, s)) / mass[i]
        if i < k - 1:
            r = x[i + 1] - x[i]
            r = r / np.linalg.norm(r)
            D = r @ (W + A[i + 1]) @ r
            H[i] = np.outer(r, r) / D if D > 1e-9 else 0
        C[i], A[i] = H[i] @ W, W - W @ H[i] @ W
    return A, C, H


def propagated(A, C, H, carried):
    """da_i/dF_j by steps 1 to 5; carried(C_(k-1)) is db_(k-1)/db_k."""
    k = len(A)
    J = np.zeros((k, k, 2, 2))
    for i in range(k):
        dF, dd, db = np.zeros((k, 2, 2)), np.zeros((k, 2, 2)), np.zeros((k, 2, 2))
        dF[i] = A[i]
        for m in range(i - 1, 0, -1):
            dF[m] = dF[m + 1] @ C[m]
        for m in range(i):
            dd[m] = dF[m + 1]
        for m in range(k):
            db[m] = (m == i) * np.eye(2)
            if m:
                db[m] += dd[m - 1] @ -H[m - 1] + db[m - 1] @ carried(C[m - 1])
            J[i, m] = dd[m] @ C[m] + db[m] @ A[m]
    return J


def test_angular_accelerations_by_torques(drawn, automatic):
    by_torques = jax.jit(chain_torque_jacobian, static_argnums=2)
    found = by_torques(*drawn[:2], None)
    linked = np.arange(N - 1) < np.asarray(drawn[0].joints)[:, None] - 1
    true = np.where(linked[:, :, None], automatic[1], 0)
    np.testing.assert_allclose(found, true, atol=ROUNDING * np.abs(true).max())
    some = by_torques(*drawn[:2], (4, 1))
    np.testing.assert_allclose(some, np.asarray(found)[:, [[4], [1]], [4, 1]], atol=ROUNDING * np.abs(true).max())


def test_torques_are_those_of_active_joints(drawn):
    """8.2 against part II: the same motion, by the same torques, on top of those that act already."""
    model, state, drive = drawn
    chosen = np.array((1, 3))
    held = model.guided | (state.stuck >= 0)
    left = model.joints + 1 - 2 * held.sum(-1) - model.line.any(-1).sum(-1)
    lanes = np.flatnonzero((left > len(chosen)) & (model.joints > 4))
    assert len(lanes) > 3
    model, state, drive = (jax.tree.map(lambda a: a[lanes], part) for part in (model, state, drive))
    torque = torques(model, state, (1, 3), drive.angular[:, chosen], drive)
    given = model.replace(active=jnp.zeros_like(model.active).at[:, chosen].set(True))
    true = accelerated(given, state, drive)
    np.testing.assert_allclose(torque, true.torque, rtol=1e-8, atol=1e-8)
    again = accelerated(model, state, replace(drive, torque=drive.torque + torque))  # step 4
    np.testing.assert_allclose(again.a, true.a, rtol=1e-8, atol=1e-8)


def test_demands_that_no_torque_can_meet(drawn):
    """Of a link between guided joints, or of a joint that is not there: no torque there, and the others stay right."""
    model, state, drive = drawn
    model = model.replace(guided=jnp.zeros_like(model.guided).at[:, :2].set(True), line=0 * model.line)
    state = replace(state, stuck=jnp.full_like(state.stuck, -1))
    found = torques(model, state, (0, 2, N - 2), jnp.ones((LANES, 3)), drive)
    np.testing.assert_allclose(found[:, 0], 0, atol=1e-8)
    assert not np.asarray(found)[model.joints < N, N - 2].any()
    a = accelerated(model, state, replace(drive, torque=drive.torque + found)).a
    turned = np.asarray(chain_angular(model, state, a))[model.joints > 3, 2]
    assert len(turned) > 4
    np.testing.assert_allclose(turned, 1, atol=1e-8)


def test_joints_that_no_chain_has_are_refused(drawn):
    model, state, drive = drawn
    for call in (chain_force_jacobian, lambda m, s, i: chain_torque_jacobian(m, s, (i,))):
        with pytest.raises(ValueError, match=rf"joints \[{N}\] are not among 0 to"):
            call(model, state, N)
    with pytest.raises(ValueError, match=rf"joints \[{N - 1}\] are not among 0 to {N - 2}"):
        chain_torques(model, state, (0, N - 1), jnp.ones((LANES, 2)), drive)
