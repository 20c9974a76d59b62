"""Forward dynamics with loops: accelerations and constraint forces from joint forces (Kim 2012, section 3.2).

    qdd_r = M^-1 (tau - b)                          the tree alone
    lambda = -(A M^-1 A^T)^+ (A qdd_r + bias)       (67)
    qdd = qdd_r + M^-1 A^T lambda                   (68, 69)

M^-1 A^T comes from the reduced articulated-body passes, with one factorisation for all columns: O(n m) + O(m^3). If
every link floats, the system is sparse and is solved by `kkt.py`.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from ..dynamics.aba import Factor, aba, factorize, solve
from ..dynamics.bodies import bias_forces, gravity, inertias
from ..dynamics.impulse import NONE, respond
from ..dynamics.kinematics import LinkPoses, LinkVelocities, propagate_poses, propagate_velocities
from ..forest import Forest
from ..model import Model
from ..shaped import Float
from ..topology import Topology
from .evaluation import LoopRows, by_loop, errors, evaluate_loops, rates, row_loops
from .jacobian import bias, jacobian
from .kinds import row_count
from .kkt import Sparse, apart, sparse
from .proximal import solve_symmetric


class Constrained(NamedTuple):
    """acceleration [rad/s^2, m/s^2]; force: the multipliers, rows as in `closed` [N, N m]."""

    acceleration: Float[Array, "*batch nv"]
    force: Float[Array, "*batch m"]


def forward(model: Model, q: Array, v: Array, t: Array | float, tau: Array) -> Array:
    """Accelerations (..., nv) under joint forces tau (..., nv) and constraint forces of the loops held exactly."""
    return _solve_constrained(model, q, v, t, tau)[0] if exact(model.topology) else aba(model, q, v, tau)


def exact(topology: Topology) -> bool:
    """Return whether there are loops that constraint forces hold."""
    return topology.hold != "penalty" and any(row_count(loop.kind) for loop in topology.loops)


class Dense(NamedTuple):
    """A (m, nv, *batch), (M^-1 A^T)^T in the same shape, and W = A M^-1 A^T (m, m, *batch)."""

    A: Array
    columns: Array
    W: Array

    def along(self, v: Array) -> Array:
        """A v (m, *batch) of velocities (*batch, nv)."""
        return (self.A * jnp.moveaxis(v, -1, 0)).sum(1)

    def solve(self, r: Array) -> Array:
        """x (m, k, *batch) of least norm with W x = r (m, k, *batch)."""
        return solve_symmetric(self.W, r)

    def response(self, force: Array) -> Array:
        """M^-1 A^T force: accelerations (*batch, nv) of multipliers (m, *batch), or velocity changes of impulses."""
        return jnp.moveaxis((self.columns * force[:, None]).sum(0), 0, -1)


@jax.jit
def constrained(
    model: Model,
    q: Float[Array, "*#batch nq"],
    v: Float[Array, "*#batch nv"],
    t: Float[Array, "*#batch"] | float,
    tau: Float[Array, "*#batch nv"],
) -> Constrained:
    """Accelerations under joint forces tau and the loops' constraint forces."""
    acceleration, force = _solve_constrained(model, q, v, t, tau)
    return Constrained(acceleration, jnp.moveaxis(force[by_loop(model.topology)], 0, -1))


def _solve_constrained(model: Model, q: Array, v: Array, t: Array | float, tau: Array) -> tuple[Array, Array]:
    """Accelerations (*batch, nv) and multipliers (m, *batch), rows as in `evaluation.py`."""
    forest = Forest.of(model, q=q, v=v, tau=tau)
    poses = propagate_poses(forest, model, q)
    velocities, loops = propagate_velocities(forest, poses, v), evaluate_loops(forest, model, poses)
    alone, coupling = _tree_alone(forest, model, poses, velocities, loops, tau)
    t = jnp.broadcast_to(jnp.asarray(t, q.dtype), forest.batch)
    wrong = bias(forest, model, poses, velocities, t) + coupling.along(alone)
    if model.topology.hold == "baumgarte":
        error, rate = errors(forest, model, loops, q, t), rates(forest, model, loops, velocities, v, t)
        wrong = wrong + model.baumgarte * (2 * rate + model.baumgarte * error)
    force = coupling.solve(-wrong[:, None])[:, 0]
    return alone + coupling.response(force), force


def multipliers(model: Model, q: Array, v: Array, a: Array, tau: Array) -> Array:
    """Multipliers (m, *batch) with which joint forces tau (..., nv) give the accelerations a (..., nv) as closely as
    possible in the metric of the masses; rows as in `evaluation.py`. Zeros if no constraint forces hold the loops.

    q: (..., nq), v: (..., nv).
    """
    forest = Forest.of(model, q=q, v=v, tau=tau)
    if not exact(model.topology):
        return jnp.zeros((len(row_loops(model.topology)), *forest.batch), forest.dtype)
    poses = propagate_poses(forest, model, q)
    velocities, loops = propagate_velocities(forest, poses, v), evaluate_loops(forest, model, poses)
    alone, coupling = _tree_alone(forest, model, poses, velocities, loops, tau)
    return coupling.solve(coupling.along(a - alone)[:, None])[:, 0]


def _tree_alone(
    forest: Forest,
    model: Model,
    poses: list[LinkPoses],
    velocities: list[LinkVelocities],
    loops: list[LoopRows],
    tau: Array,
) -> tuple[Array, Dense | Sparse]:
    """Accelerations (*batch, nv) without constraint forces, and the coupling of the loops' rows to the tree."""
    bodies = inertias(forest, model, poses)
    factors = factorize(forest, model, poses, bodies)
    forces, c = [forest.per_dof(tau, group) for group in forest.groups], [x.c for x in velocities]
    alone = forest.join_dofs(solve(forest, poses, factors, bias_forces(bodies, velocities), forces, c, gravity(model)))
    return alone, couple(forest, model, poses, factors, loops)


def couple(
    forest: Forest, model: Model, poses: list[LinkPoses], factors: list[Factor], loops: list[LoopRows]
) -> Dense | Sparse:
    """Couple the rows to the tree: A, M^-1 A^T and W."""
    if apart(forest.topology):
        return sparse(forest, factors, loops)
    A = jacobian(forest, model, poses, loops)
    still = [NONE] * len(forest.groups)

    def respond_to(row: Array) -> Array:
        joints = [forest.per_dof(jnp.moveaxis(row, 0, -1), group) for group in forest.groups]
        return jnp.moveaxis(forest.join_dofs(respond(forest, poses, factors, still, joints)), -1, 0)

    Y = jax.vmap(respond_to)(A)
    return Dense(A, Y, (A[:, None] * Y).sum(2))
