"""Floating bodies and their joints: the sparse system of Featherstone (2008), (3.74), for any connectivity.

    [ I       P T ] [    a    ]   [ f - p             ]
    [ T^T P^T  0  ] [ -lambda ] = [ -d(T^T P^T)/dt v  ]

The bodies are eliminated first: I is block diagonal, one 6x6 block per body. The Schur complement W = T^T P^T I^-1 P T
has a block for each joint and one for each two joints that share a body; it is factored block by block, W = L D L^T, in
the order of `elimination_order.py`. Chains and trees of n joints cost about n blocks in time and memory; k joints on
one body cost k^2.

W may lack rank, if joints are redundant or a mechanism is momentarily singular: as in `proximal.py`, W + mu 1 is
factored, and proximal steps remove mu. The accelerations are then unique and the forces those of least norm; parts of a
right-hand side that W cannot reach are ignored.

Blocks are as wide as the joint with the most rows, w, with ones on the diagonals behind the others' rows.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.lax import fori_loop

from ..algebra.fence import fence
from ..algebra.spatial import Force
from ..algebra.vec3 import Scalar, Vec3
from ..algebra.zero import ZERO, dense, is_zero
from ..dynamics.aba import Factor, Root
from ..forest import Forest
from ..rows import sum_by_target, take
from ..topology import Topology
from .elimination import Blocks, factor, products, substitute
from .elimination_order import Order, order_of
from .evaluation import LoopRows, groups_of
from .kinds import Row, row_count
from .proximal import SMALL, STEPS


class Sparse(NamedTuple):
    """Rows and bodies coupled: J, I^-1 J^T and the factored W, loops in order of elimination.

    J: (loops, 2, w, 6, *batch) on links a and b.  Y: the same, times I^-1.  mu: (*batch).
    """

    forest: Forest
    J: Array
    Y: Array
    factor: list[Blocks]
    mu: Array

    @property
    def A(self) -> Array:
        """A (m, nv, *batch), dense."""
        return self._dense(self.J)

    @property
    def columns(self) -> Array:
        """M^-1 A^T as (m, nv, *batch), dense."""
        return self._dense(self.Y)

    def _dense(self, x: Array) -> Array:
        """x (loops, 2, w, 6, *batch) as (m, nv, *batch)."""
        topology = self.forest.topology
        order, n = order_of(topology), topology.n_links
        sides = [2 * len(order.loops)] * (len(order.loops) * n)
        for k, ends in enumerate(_ends(topology)):
            for side, body in enumerate(ends):
                if body >= 0:
                    sides[k * n + body] = 2 * k + side
        flat = x.reshape(-1, *x.shape[2:])
        full = take(jnp.concatenate([flat, jnp.zeros_like(flat[:1])]), sides)
        full = jnp.moveaxis(full.reshape(-1, n, *flat.shape[1:]), 2, 1)
        return self._rows(full.reshape(*full.shape[:2], 6 * n, *full.shape[4:]))

    def along(self, v: Array) -> Array:
        """A v (m, *batch)."""
        bodies = jnp.moveaxis(v, -1, 0).reshape(-1, 6, *v.shape[:-1])
        mine = take(bodies, _ends(self.forest.topology).clip(0).ravel().tolist())
        return self._rows((self.J * mine.reshape(-1, 2, 1, *bodies.shape[1:])).sum((1, 3)))

    def solve(self, r: Array) -> Array:
        """x (m, k, *batch) of least norm with W x = r (m, k, *batch)."""
        padded = self._pad_rows(r)
        levels = order_of(self.forest.topology).levels
        step = lambda _, x: substitute(levels, self.factor, padded + self.mu * x)  # noqa: E731
        return self._rows(fori_loop(0, STEPS, step, jnp.zeros_like(padded)))

    def response(self, force: Array) -> Array:
        """M^-1 A^T force: accelerations (*batch, nv) of multipliers (m, *batch), or velocity changes of impulses."""
        sides = (self.Y * self._pad_rows(force)[:, None, :, None]).sum(2)
        n = self.forest.topology.n_links
        bodies = sum_by_target(sides.reshape(-1, *sides.shape[2:]), _ends(self.forest.topology).ravel().tolist(), n)
        return jnp.moveaxis(bodies.reshape(6 * n, *bodies.shape[2:]), 0, -1)

    def _pad_rows(self, rows: Array) -> Array:
        """Padded rows (loops, w, ...) of rows (m, ...) as `evaluation.py` orders them."""
        place, w = _places(self.forest.topology)
        filled = jnp.concatenate([rows, jnp.zeros_like(rows[:1])])
        order = np.full(self.J.shape[0] * w, len(rows))
        order[place] = np.arange(len(rows))
        return take(filled, order.tolist()).reshape(-1, w, *rows.shape[1:])

    def _rows(self, padded: Array) -> Array:
        place, _ = _places(self.forest.topology)
        return take(padded.reshape(-1, *padded.shape[2:]), place.tolist())


def apart(topology: Topology) -> bool:
    """Return whether all links float and loops join only links."""
    return set(topology.joints) == {"floating"} and not any(loop.dofs for loop in topology.loops)


def sparse(forest: Forest, factors: list[Factor], loops: list[LoopRows]) -> Sparse:
    """Factor the system of a forest that is `apart`."""
    order = order_of(forest.topology)
    ends = _ends(forest.topology)
    J = jnp.where((ends >= 0).reshape(*ends.shape, *(1,) * (forest.rank + 2)), _wrenches(forest, loops), 0)
    root = jax.tree.map(lambda x: forest.by_link([x]), factors[0].pivots)  # all bodies are one group
    mine = jax.tree.map(lambda x: take(x, ends.clip(0).ravel().tolist()), root)
    Y = _inverse_times(mine, J.reshape(-1, *J.shape[2:])).reshape(J.shape)
    D = products(J[:, 0], Y[:, 0]) + products(J[:, 1], Y[:, 1])
    place, w = _places(forest.topology)
    real = np.isin(np.arange(len(D) * w), place).reshape(-1, w, *(1,) * forest.rank)
    diagonal = jnp.stack([D[:, k, k] for k in range(w)], 1)
    mean = jnp.where(real, diagonal, 0).sum((0, 1)) / len(place)
    mu = jnp.where(mean > 0, mean, 1) * SMALL[D.dtype.itemsize]
    unit = jnp.eye(w, dtype=D.dtype).reshape(1, w, w, *(1,) * forest.rank)
    D = D + unit * jnp.where(real, mu, 1)[:, None]
    return Sparse(forest, J, Y, factor(order.levels, D, _between(order, J, Y)), mu)


def _between(order: Order, J: Array, Y: Array) -> Array:
    """Blocks of W between joints that share a body, (edges, w, w, *batch); 0 for edges that elimination adds."""
    if not order.shared:
        return jnp.zeros((0, *J.shape[2:3] * 2, *J.shape[4:]), J.dtype)
    edge, side, other = zip(*order.shared, strict=True)
    later, earlier = zip(*(order.edges[e] for e in edge), strict=True)
    ends = ([2 * k + s for k, s in zip(*x, strict=True)] for x in ((later, side), (earlier, other)))
    both = products(*(take(x.reshape(-1, *x.shape[2:]), rows) for x, rows in zip((J, Y), ends, strict=True)))
    return sum_by_target(both, edge, len(order.edges))


# -- rows and blocks ----------------------------------------------------------------------------------


@functools.lru_cache(maxsize=256)
def _ends(topology: Topology) -> np.ndarray:
    """Links a and b of the loops, (loops, 2), in order of elimination."""
    loops = [topology.loops[k] for k in order_of(topology).loops]
    return np.array([(loop.a, loop.b) for loop in loops], int).reshape(-1, 2)


@functools.lru_cache(maxsize=256)
def _places(topology: Topology) -> tuple[np.ndarray, int]:
    """Index (m,) of each row of `evaluation.py` in the flattened (loops, w), and w."""
    place = {k: n for n, k in enumerate(order_of(topology).loops)}
    w = max(row_count(topology.loops[k].kind) for k in place)
    rows = [
        place[k] * w + row for group in groups_of(topology) for row in range(row_count(group.kind)) for k in group.loops
    ]
    return np.array(rows, int), w


def _wrenches(forest: Forest, loops: list[LoopRows]) -> Array:
    """Wrenches (loops, 2, w, 6, *batch) of unit multipliers on a and b: moments about the links' origins, forces."""
    order, (_, w) = order_of(forest.topology), _places(forest.topology)
    wrenches, numbers = [], []
    for group, loop_rows in zip(groups_of(forest.topology), loops, strict=True):
        if not loop_rows.rows:
            continue
        n, none = len(group.loops), ((ZERO,) * 6,) * 2
        rows = [_sides(row, loop_rows.origins) for row in loop_rows.rows] + [none] * (w - len(loop_rows.rows))
        flat = [dense(x, (n, *forest.batch), forest.dtype) for side in range(2) for row in rows for x in row[side]]
        wrenches.append(jnp.stack(flat, 1).reshape(n, 2, w, 6, *forest.batch))
        numbers += group.loops
    return take(jnp.concatenate(wrenches), [numbers.index(k) for k in order.loops])


@fence
def _sides(row: Row, origins: tuple[Vec3, Vec3]) -> tuple[tuple[Scalar, ...], ...]:
    """Wrenches of a unit multiplier on a and on b, six components each."""
    on_a, on_b = (Force((x - o).cross(row.f) + row.m, row.f) for x, o in zip((row.x_a, row.x_b), origins, strict=True))
    return tuple((*_instantiate_zeros(F.n).xyz, *_instantiate_zeros(F.f).xyz) for F in (on_a, on_b * -1))


def _instantiate_zeros(x: Vec3) -> Vec3:
    return Vec3(ZERO, ZERO, ZERO) if is_zero(x) else x


@fence
def _inverse_times(root: Root, J: Array) -> Array:
    """I^-1 J^T, transposed, of one body each: (n, w, 6, *batch)."""
    root = jax.tree.map(lambda x: x[:, None], root)
    n, f = Vec3(*(J[:, :, k] for k in range(3))), Vec3(*(J[:, :, k] for k in range(3, 6)))
    w = root.Sinv @ (n - root.G @ f)
    v = root.Minv @ f - root.G.T @ w
    return jnp.stack([*w.xyz, *v.xyz], 2)
