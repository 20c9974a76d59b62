"""Sensitivity of the accelerations of a planar chain to forces and torques, and the torques that give joints prescribed
angular accelerations. Wawrzynski (2005), section 8: one back-propagation of O(n) per row.

Active and shut joints rotate freely here: section 8 belongs to part I. With them, differentiate `chain_accelerations`
by `ChainDrive.force`.

Departures:
- step 1 says B_i, which the report never defines: da_i/dF^d_i is A_i, by (1);
- db_(k-1)/db_k is C_(k-1)^T. The report has C_(k-1), which is the same for free and guided joints but not for joints on
  a line, where C = r r^T (I - s s^T)/(...) is not symmetric;
- dd_(k-1)/db_k, which step 4 needs and the report does not give, is -H_(k-1), by (7);
- the derivative of any sum of weights . a_i is propagated. A row of da/dF^e has a weight at joint i; one of
  d alpha^z/d tau has weights at three joints, by (13), so that 8.1 also takes O(n) per row.
Transposed, as written here, the steps are the recursion with the weights as forces: da_i/dF_j = (da_j/dF_i)^T.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from ..algebra.vec2 import Sym2, Vec2
from ..shaped import Float
from . import chain
from .accelerations import Posture, joint_alpha, mobility, pull, read, solve
from .links import Links, Rows, drive_rows, only, shift_rows
from .model import Chain, ChainDrive, ChainState


class JointFactors(NamedTuple):
    """Factors of all joints, leaves (n, *batch): C = H W."""

    W: Sym2
    A: Sym2
    H: Sym2


def factors(rows: Rows, now: Posture, link: Links) -> JointFactors:
    W, least = mobility(rows, now)
    none = jnp.zeros_like(least)
    responses, passed = chain.inwards(chain.JointTerms(link.r, W, Vec2(none, none), none, least))
    return JointFactors(W, responses.A, passed.H)


def backwards(factors: JointFactors, weight: Vec2) -> Vec2:
    """Derivatives of the sum of all weight_i . a_i by F^e, leaves (n, rows, *batch), as weight's: steps 1 to 5."""

    def inwards(dF: Vec2, row: tuple[JointFactors, Vec2]) -> tuple[Vec2, tuple[Vec2, Vec2]]:
        (W, A, H), own = row
        by_d = W @ (H @ dF)  # C_k^T da/dd_k, and da/dd_k = da/dF_(k+1): step 3
        return by_d + A @ own, (by_d, dF)  # da/dF_k: steps 1 and 2

    def outwards(db: Vec2, row: tuple[JointFactors, Vec2, Vec2, Vec2]) -> tuple[Vec2, Vec2]:
        (W, A, H), own, by_d, dd = row
        db = db + own  # [k = i]
        return H @ (W @ db - dd), by_d + A @ db  # step 4 for k + 1, step 5 for k

    zero = jnp.zeros_like(weight.x[0] * factors.W.xx[0])
    none = Vec2(zero, zero)
    _, (by_d, dd) = lax.scan(inwards, none, (factors, weight), reverse=True)
    return lax.scan(outwards, none, (factors, weight, by_d, dd))[1]


def angular(rows: Rows, link: Links, a: Vec2) -> Array:
    """alpha^z of every joint (n, rows, *batch) by accelerations a (n, rows, *batch) (13); 0 for the last."""
    return jnp.where(rows.linked[:, None], joint_alpha(link.L[:, None], a), 0)


def by_torques(factors: JointFactors, rows: Rows, link: Links, joints: Array) -> Array:
    """d alpha^z_i/d tau_j [i, j, *batch] of the joints with indices (m,): 8.1, both its sums over three joints by
    (13)."""
    L, before = link.L[:, None], shift_rows(link.L, -1)[:, None]
    later = jnp.arange(len(link.l))[:, None] - joints
    later = later.reshape(*later.shape, *(1,) * (link.l.ndim - 1))
    weight = L * (later == -1) - (L + before) * (later == 0) + before * (later == 1)
    by_force = backwards(factors, only(rows.linked[joints], weight))
    return jnp.swapaxes(angular(rows, link, by_force)[joints], 0, 1)


def joint_indices(n: int, joints: Sequence[int]) -> Array:
    wrong = [j for j in joints if not 0 <= j < n]
    if wrong:
        raise ValueError(f"joints {wrong} are not among 0 to {n - 1}, those of this chain that can be asked for")
    return jnp.array(joints, int)


def chain_force_jacobian(model: Chain, state: ChainState, i: int | None = None) -> Float[Array, "... n 2 2"]:
    """da_i/dF_j of one joint i by the forces on all joints j: (..., j, component of a_i, of F_j), in O(n) [1/kg].

    Without i, those of all joints, (..., i, j, component of a_i, of F_j), in O(n^2).
    """
    chosen = joint_indices(model.n, range(model.n) if i is None else [i])
    lanes = (1,) * state.t.ndim
    own = (jnp.arange(model.n)[:, None] == chosen).reshape(model.n, -1, 1, *lanes).astype(state.x.dtype)
    x, y = jnp.eye(2, dtype=own.dtype).reshape(2, 2, *lanes)
    # leaves (j, i, component of a_i, *batch)
    by_force = backwards(factors(*read(model, state)), Vec2(own * x, own * y))
    blocks = jnp.moveaxis(jnp.stack([by_force.x, by_force.y], 3), (1, 0, 2, 3), (-4, -3, -2, -1))
    return blocks if i is None else blocks[..., 0, :, :, :]


def chain_torque_jacobian(
    model: Chain, state: ChainState, joints: Sequence[int] | None = None
) -> Float[Array, "*#batch m m"]:
    """d alpha^z_i/d tau_j (..., m, m) of the listed joints, or of all n - 1 without a list (8.1) [1/(kg m^2)]."""
    rows, now, link = read(model, state)
    chosen = joint_indices(model.n - 1, range(model.n - 1) if joints is None else joints)
    return jnp.moveaxis(by_torques(factors(rows, now, link), rows, link, chosen), (0, 1), (-2, -1))


def chain_torques(
    model: Chain,
    state: ChainState,
    joints: Sequence[int],
    angular_accelerations: Float[Array, "*#batch m"],
    drive: ChainDrive | None = None,
    *,
    settle: float = float("inf"),
) -> Float[Array, "*#batch n"]:
    """Torques to add to the drive's, so that the angles of these joints have these accelerations (8.2) [N m].

    joints: m indices.  angular_accelerations [rad/s^2].  If no torques give them, the result is the least
    torques that come nearest. Costs O(n m + m^3); `Chain.active` does the same in O(n).
    """
    (rows, now, link), chosen = read(model, state), joint_indices(model.n - 1, joints)
    demand = pull(rows, link, now, drive_rows(rows, drive or ChainDrive()), settle)
    motion, _ = solve(rows, link, now, demand, turning=False)  # step 1
    alpha = angular(rows, link, Vec2(motion.a.x[:, None], motion.a.y[:, None]))[chosen, 0]
    short = jnp.asarray(angular_accelerations) - jnp.moveaxis(alpha, 0, -1)
    by_torque = jnp.moveaxis(by_torques(factors(rows, now, link), rows, link, chosen), (0, 1), (-2, -1))  # step 2
    rounding = 1024 * jnp.finfo(short.dtype).eps
    torque = jnp.einsum("...ij,...j", jnp.linalg.pinv(by_torque, rtol=rounding, hermitian=True), short)  # step 3
    return jnp.zeros((*torque.shape[:-1], model.n), torque.dtype).at[..., chosen].set(torque)
