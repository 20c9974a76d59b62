"""Assignment of clocks to trees: bodies that cannot meet for some time may have separate clocks (`clocks.py`).

Derivation. Forces within an island change only the island's own energy, and impacts and contacts never increase it. So
with T the kinetic energy of an island, and f the other forces on its bodies,

    s = sqrt(2 T),   ds/dt <= r = |M^-1/2 f|;   for a free body   r <= sqrt(m) g + |F|/sqrt(m) + |N|/sqrt(I)

and during a time t no body of it is faster than (s + r t)/sqrt(m), or turns faster than (s + r t)/sqrt(I), with I its
least moment of inertia, and s and r root sums of squares over the island. No point of a body moves farther than t times
the first bound plus t times the second times the swing of the shape (`collision/bounds.py`).

Bodies that may come within detection range of each other share a clock. Their energies add up, so that they may move
farther and reach more bodies. All bodies share one clock if one may move farther than its detection reach, or if
springs, motors or damping act on free bodies. A contact that is too deep opens at half the rest speed at most. Each of
the contacts in a pile may do so, therefore that speed is multiplied by the number of bodies.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.lax import stop_gradient

from ..collision.bounds import norm, reach
from ..collision.proximities import Proximities
from ..collision.safe_step import shapes_of
from ..contact.resting.targets import PUSH
from ..engine.algebra.safe import safe_sqrt
from ..engine.algebra.vec3 import Sym3, Vec3
from ..engine.dynamics.energy import kinetic_of_trees
from ..engine.dynamics.trees import trees_of
from ..engine.model import Model
from ..engine.state import State
from ..engine.topology import Topology
from .clocks import Clocks, IslandClocks
from .lanes import Lane
from .motion.exact import TURNING, free_bodies
from .motion.forces import Drive
from .rules import Rules
from .sensitivity import search_range

MANY = 32  # trees: with fewer, ticks are cheap, and several clocks cost more than they save
SURE = 1.01  # factor of distances, for rounding
GAINING = ("newton",)  # laws under which an impact may gain energy


def clocks_may_differ(rules: Rules, topology: Topology) -> bool:
    """Return whether trees may have their own clocks: the scene has several free bodies, and nothing else moves."""
    wanted = rules.clocks == "islands" or (rules.clocks == "auto" and trees_of(topology).n >= MANY)
    plain = rules.scheme == "exact" and rules.resting == "solve" and rules.time_control != "fixed" and not rules.limits
    bodies = trees_of(topology).n > 1 and free_bodies(topology).all() and not topology.driven
    return wanted and plain and rules.law not in GAINING and bool(topology.pairs) and bool(bodies)


def one_island(topology: Topology) -> IslandClocks:
    """Return the assignment of all trees to one clock."""
    return IslandClocks(jnp.zeros(trees_of(topology).n, jnp.int32))


def assign_clocks(
    model: Model,
    lane: Lane,
    h: Array,
    after: State,
    drive: Drive,
    bounds: Proximities,
    free_reach: Array | None,
    left: Array,
) -> Clocks:
    """Return the clock of each tree after steps h (T,) that led to the state `after`.

    It changes only at synchronizations.
    drive, bounds, free_reach: as for `separate_islands`.
    left: (T,) time to the next synchronization [s].
    """
    if not lane.clocks.each():
        return lane.clocks
    near, met = search_range(after.q) * model.gap_band, lane.fresh | (h == lane.clock.left).all()
    again = lambda: separate_islands(model, after, drive, bounds, free_reach, near, left.max())  # noqa: E731
    return jax.lax.cond(met, again, lambda: lane.clocks)


def separate_islands(
    model: Model, state: State, drive: Drive, bounds: Proximities, free_reach: Array | None, near: Array, time: Array
) -> IslandClocks:
    """Return the clock of each tree for a time () [s], starting at `state`.

    bounds: lower bounds of the distances of pairs.
    free_reach: (ns,) distance that each shape may move before it can touch a pair without a row [m], or None.
    near: () distance within which contacts are detected [m].
    """
    model, state, drive, bounds, free_reach = stop_gradient((model, state, drive, bounds, free_reach))
    topology, body = model.topology, _Bodies.of(model, state, drive)
    tree = trees_of(topology).of_link[np.array(topology.shape_links, int)]
    swing, full = _sizes(model)
    active, pair = bounds.active, jnp.maximum(bounds.pair, 0)
    a, b = shapes_of(topology, pair)
    tree_a, tree_b = jnp.asarray(tree)[a], jnp.asarray(tree)[b]
    both = active & (tree_a != tree_b) & (jnp.maximum(tree_a, tree_b) < len(body.s))
    gap = bounds.gap - near

    def ways(island: Array) -> Array:
        """Return the largest distance that a point of each shape may move, (ns,) [m]."""
        s, r = (safe_sqrt(jnp.zeros_like(x).at[island].add(x * x))[island] for x in (body.s, body.r))
        number = jnp.zeros_like(body.s).at[island].add(1)[island]
        energy = s + r * time
        way = (energy * body.lightness + number * PUSH * model.rest_speed) * time
        angle = energy * body.slenderness * time
        way, angle = (jnp.concatenate([x, jnp.zeros_like(x[:1])])[tree] for x in (way, angle))
        by_rotation = jnp.where(swing > 0, jnp.minimum(swing * angle, 2 * full), 0)
        return jnp.where(tree < len(body.s), SURE * (way + by_rotation), 0)

    def join_islands(island: Array) -> tuple[Array, Array]:
        """Join islands that may meet; return them, and whether any body may touch a pair without a row."""
        way = ways(island)
        meet = both & ~(gap > way[a] + way[b])
        last = jnp.int32(len(island))

        def spread(carry: tuple[Array, Array]) -> tuple[Array, Array]:
            own, _ = carry
            padded = jnp.concatenate([own, last[None]])
            lowest = jnp.where(meet, jnp.minimum(padded[tree_a], padded[tree_b]), last)
            new = padded.at[jnp.where(meet, tree_a, last)].min(lowest).at[jnp.where(meet, tree_b, last)].min(lowest)
            new = new[new[:-1]]  # follow links to lower trees
            return new, (new != own).any()

        joined = jax.lax.while_loop(lambda carry: carry[1], spread, (island, jnp.array(True)))[0]
        return joined, jnp.zeros((), bool) if free_reach is None else (way > free_reach).any()

    def more(carry: tuple[Array, Array, Array]) -> Array:
        return carry[1] & ~carry[2]

    def again(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        island, _, _ = carry
        new, far = join_islands(island)
        return new, (new != island).any(), far

    alone = jnp.arange(len(body.s), dtype=jnp.int32)
    island, _, far = jax.lax.while_loop(more, again, (alone, jnp.array(True), body.driven))
    return IslandClocks(jnp.where(far, 0, island))


class _Bodies(NamedTuple):
    """Free bodies (T,), see the derivation above.

    s: square root of twice the kinetic energy [sqrt(J)].
    r: bound of ds/dt [sqrt(J)/s].
    lightness: 1/sqrt(m) [1/sqrt(kg)].
    slenderness: 1/sqrt(I) [1/(m sqrt(kg))].
    driven: () whether forces that are not constant act on any of them.
    """

    s: Array
    r: Array
    lightness: Array
    slenderness: Array
    driven: Array

    @staticmethod
    def of(model: Model, state: State, drive: Drive) -> _Bodies:
        trees = trees_of(model.topology)
        link = np.argsort(trees.of_link[:-1], kind="stable")[: trees.n]  # the link of each tree
        dofs = trees.dofs
        mass, inverse = model.mass[link], Sym3.of(model.inertia[link]).inverse()
        light = 1 / jnp.sqrt(mass)
        slender = safe_sqrt(inverse.xx + inverse.yy + inverse.zz)  # no less than 1/sqrt(I)
        r = norm(Vec3.of(model.gravity)) * jnp.sqrt(mass)
        if drive.forces is not None:
            N, F = (norm(Vec3.of(drive.forces[dofs[:, k : k + 3]])) for k in (0, 3))
            r = r + F * light + (N + norm(Vec3.of(model.com[link])) * F) * slender
        acts = model.motor_gain * (model.motor_target if drive.motors is None else drive.motors) != 0
        for name in TURNING:
            acts = acts | (getattr(model, name) != 0)
        s = safe_sqrt(2 * kinetic_of_trees(model, state.q, state.v)[:-1])
        return _Bodies(s, r, light, slender, acts.any())


def _sizes(model: Model) -> tuple[Array, Array]:
    """Return swing and radius (ns,) of each shape about the centre of mass of its link [m]; 0 for statics."""
    links = np.array(model.topology.shape_links, int)
    sizes = reach(model, model.com[np.maximum(links, 0)])
    return tuple(jnp.where(links >= 0, x, 0) for x in (sizes.swing, sizes.full))  # type: ignore[return-value]
