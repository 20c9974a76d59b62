"""Constraints made linear: A a + bias = 0 for the accelerations, A v + dG/dt = 0 for the velocities (Kim 55, 71)."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..algebra.fence import fence
from ..algebra.spatial import Motion
from ..algebra.vec3 import Vec3
from ..algebra.zero import is_zero
from ..dynamics.kinematics import Placed, coordinate_rates, move, place
from ..dynamics.trees import dof_motions
from ..forest import Forest
from ..model import Model, Topology
from .kinds import RELATIONS, Row
from .measured import Group, Standing, by_loop, errors, groups_of, numbers, rates, standing


class Closed(NamedTuple):
    """m constraints, loop by loop.  A (..., m, nv);  bias (..., m): what dA/dt v and time add to their acceleration;
    error (..., m): G [m, rad];  rate (..., m): dG/dt = A v less the rate of what is driven."""

    A: Array
    bias: Array
    error: Array
    rate: Array


@jax.jit
def closed(model: Model, q: Array, v: Array, t: Array | float = 0.0) -> Closed:
    """The constraints of a model's loops at q (..., nq), v (..., nv), t (...)."""
    forest = Forest.of(model, q=q, v=v)
    t = jnp.broadcast_to(jnp.asarray(t, q.dtype), forest.batch)
    order = by_loop(model.topology)
    placed = place(forest, model, q)
    loops = standing(forest, model, placed)
    A, error = jacobian(forest, model, placed, loops)[order], errors(forest, model, loops, q, t)
    rate = rates(forest, model, loops, move(forest, placed, v), v, t)
    rows = [jnp.moveaxis(x[order], 0, -1) for x in (bias(model, q, v, t), error, rate)]
    return Closed(jnp.moveaxis(A, (0, 1), (-2, -1)), *rows)


def bias(model: Model, q: Array, v: Array, t: Array) -> Array:
    """What the rates' rates would be without acceleration, (m, *batch): their derivative along the motion."""

    def found(q: Array, t: Array) -> Array:
        forest = Forest.of(model, q=q, v=v)
        placed = place(forest, model, q)
        return rates(forest, model, standing(forest, model, placed), move(forest, placed, v), v, t)

    return jax.jvp(found, (q, t), (coordinate_rates(model, q, v), jnp.ones_like(t)))[1]


def jacobian(forest: Forest, model: Model, placed: list[Placed], loops: list[Standing]) -> Array:
    """A (m, nv, *batch): what each degree of freedom adds to the rates of the rows."""
    motions, points = dof_motions(forest, placed)
    columns = [jnp.zeros((0, forest.topology.nv, *forest.batch), forest.dtype)]
    for group, stand in zip(groups_of(forest.topology), loops, strict=True):
        moves = [_moves(forest.topology, end, forest.rank) for end in (group.a, group.b)]
        if group.kind in RELATIONS:
            columns.append(_relation(forest, model, group))
        columns += [_column(row, motions, points, *moves) for row in stand.rows]
    return jnp.concatenate(columns)


@fence
def _column(row: Row, s: Motion, at: Vec3, by_a: Any, by_b: Any) -> Array:
    """One row against all degrees of freedom, (n, nv, *batch); by_a, by_b (n, nv, 1...) whether they move a and b."""
    each = lambda x: x[:, None] if jnp.ndim(x) else x  # noqa: E731  # some forces are along the world's axes
    f, m, x_a, x_b = jax.tree.map(each, (row.f, row.m, row.x_a, row.x_b))
    s, at = jax.tree.map(lambda x: x[None], (s, at))
    turning = 0.0 if is_zero(m) else m.dot(s.w)
    parts = [turning if is_zero(f) else f.dot(s.at(x - at).v) + turning for x in (x_a, x_b)]
    return jnp.where(by_a, parts[0], 0) - jnp.where(by_b, parts[1], 0)


def _moves(topology: Topology, links: tuple[int, ...], rank: int) -> np.ndarray:
    """(n, nv, 1...) which degrees of freedom move each link."""
    owner = np.repeat(np.arange(topology.n_links), np.diff(topology.v_start))
    rows = [np.isin(owner, topology.ancestors(link)) for link in links]
    return np.array(rows).reshape(len(links), topology.nv, *(1,) * rank)


def _relation(forest: Forest, model: Model, group: Group) -> Array:
    """(n, nv, *batch): 1 at q_i's degree of freedom, -size at q_j's."""
    nv, lanes = forest.topology.nv, (1,) * forest.rank
    dofs = [forest.topology.loops[k].dofs for k in group.loops]
    place = lambda n: np.array([np.arange(nv) == d[n] for d in dofs]).reshape(-1, nv, *lanes)  # noqa: E731
    A = jnp.asarray(place(0), forest.dtype)
    if group.kind == "gear":
        A = A - numbers(forest, model.loop_size, 1, group.loops)[:, None] * place(1)
    return jnp.broadcast_to(A, (len(dofs), nv, *forest.batch))
