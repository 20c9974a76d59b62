"""Bounds of the motion of shapes, until an impulse acts; `safe_step.py` adds them up over the two sides of a pair."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ...engine.algebra.rotation import Quat
from ...engine.algebra.vec3 import Vec3
from ...engine.dynamics.kinematics import propagate_poses
from ...engine.forest import Forest
from ...engine.model import Model
from ...engine.rows import take
from ...engine.state import State
from ..bounds import Reach, insides, reach
from .link_motion import link_motion, trees
from .tree_speeds import speed_at, times

CONCAVE = frozenset({"heightfield", "mesh"})
ENDLESS = frozenset({"plane", "heightfield"})  # solid below, without a far side
ASSUMED = 2.0  # times its present speed: bound for a link whose energy is unknown


class ShapeBounds(NamedTuple):
    """Bounds of the motion of shapes, components (..., ns) or gathered (..., N).

    velocity: of the common translation [m/s].
    falls: 1 if gravity changes it, else 0.
    slope: bound of the speed of the remaining motion, in any direction [m/s].
    growth: bound of its rate [m/s^2].
    center: centre of a ball that the shape never leaves and that moves with `velocity` [m].
    full: radius of that ball, inf if it does not exist [m].
    middle: an interior point of the shape, in the world [m].
    endless: 1 for planes and heightfields, else 0.
    concave: 1 if the shape is not convex, else 0.
    """

    velocity: Vec3
    falls: Array
    slope: Array
    growth: Array
    center: Vec3
    full: Array
    middle: Vec3
    endless: Array
    concave: Array

    @staticmethod
    def of_columns(x: Array) -> ShapeBounds:
        """Bounds from the columns of an array (..., 15)."""
        return ShapeBounds(
            Vec3.of(x[..., :3]), x[..., 3], x[..., 4], x[..., 5], Vec3.of(x[..., 6:9]), x[..., 9],
            Vec3.of(x[..., 10:13]), x[..., 13], x[..., 14],
        )  # fmt: skip


def shape_bounds(model: Model, state: State, *drive: Array | None) -> ShapeBounds:
    """Bounds of every shape, (..., ns)."""
    topology, motion = model.topology, link_motion(model, state, *drive)
    tree, _ = trees(topology)
    moves = np.array([i >= 0 and tree[i] >= 0 for i in topology.shape_links], bool)
    link = np.where(moves, topology.shape_links, 0).tolist()

    def of_link(x: Array) -> Array:
        return jnp.where(moves, take(x, link, -1), 0.0)

    def reach_about(point: Array) -> Reach:  # without static shapes, which may be unbounded
        sizes = reach(model, take(point, link, -2))
        return Reach(jnp.where(moves, sizes.full, 0.0), jnp.where(moves, sizes.swing, 0.0))

    from_com, from_origin = reach_about(model.com), reach_about(jnp.zeros_like(model.com))
    mobility, turning, origin, spin, _ = motion.speeds
    own, hung = (of_link(mobility), of_link(turning)), (of_link(origin), of_link(spin))
    speed = speed_at(*own, *hung, from_com.swing, from_origin.swing)
    slope = times(speed, of_link(motion.energy_root))
    growth = times(speed, of_link(motion.growth))
    assumed = motion.assumed[link] & moves
    if assumed.any():
        now = of_link(motion.drift) + times(of_link(motion.angular_speed), from_com.swing)
        slope, growth = jnp.where(assumed, ASSUMED * now, slope), jnp.where(assumed, 0, growth)
    falls = of_link(motion.falls)
    alone = motion.single[link] & (falls > 0)
    concave, endless = (np.array([k in kinds for k in topology.shape_kinds], bool) for kinds in (CONCAVE, ENDLESS))
    return ShapeBounds(
        velocity=jax.tree.map(of_link, motion.velocity),
        falls=falls,
        slope=jnp.where(alone, times(of_link(motion.spin), from_com.swing), slope),
        growth=growth,
        center=jax.tree.map(of_link, motion.center),
        full=jnp.where(alone & ~concave, from_com.full, jnp.inf),
        middle=interior_points(model, state.q),
        endless=jnp.where(endless, 1.0, 0.0),
        concave=jnp.where(concave, 1.0, 0.0),
    )


def freeze(side: ShapeBounds, still: Array | None) -> ShapeBounds:
    """Return the bounds of shapes (..., ns), with no motion for those that are still."""
    if still is None:
        return side
    velocity, falls, slope, growth = jax.tree.map(lambda x: jnp.where(still, 0.0, x), side[:4])
    return side._replace(velocity=velocity, falls=falls, slope=slope, growth=growth)


def table_of(side: ShapeBounds) -> Array:
    """Bounds of every shape (..., ns, columns), as `ShapeBounds.of_columns` reads them."""
    columns = [*(getattr(side.velocity, k) for k in "xyz"), side.falls, side.slope, side.growth]
    columns += [*(getattr(side.center, k) for k in "xyz"), side.full]
    columns += [*(getattr(side.middle, k) for k in "xyz"), side.endless, side.concave]
    return jnp.stack(jnp.broadcast_arrays(*columns), -1)


def interior_points(model: Model, q: Array) -> Vec3:
    """A point inside each shape, components (..., ns), in the world [m]."""
    on_link, forest = np.array(model.topology.shape_links, int) >= 0, Forest.of(model, q=q)
    inside = Quat.of_array(model.shape_quaternion).rotate(Vec3.of(insides(model))) + Vec3.of(model.shape_position)
    if not on_link.any():
        return inside
    poses = [link.pose for link in propagate_poses(forest, model, q)]
    links = jax.tree.map(lambda *x: forest.join_links(x), *poses)
    link = np.where(on_link, model.topology.shape_links, 0).tolist()
    pose = jax.tree.map(lambda x: take(x, link, -1), links)
    return jax.tree.map(lambda x, y: jnp.where(on_link, x, y), pose.R @ inside + pose.p, inside)
