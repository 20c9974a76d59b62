"""The FCL backend: Proximities of any shapes, also non-convex meshes, computed on the host.

The abilities of python-fcl 0.7 were measured on shapes of unit size; they explain how it is used here.

- `fcl.distance` of shapes that are *apart* always ended (12 600 placements, degenerate ones among them), but its
  tolerance is absolute: gaps are off by 1e-7 as a rule and 1.5e-4 at worst, of shapes of size 1e4 by 5e-8 of their
  size at worst. So lengths are multiplied until the largest shape is about 1e4 long. In symmetric placements it may
  stop early: a point over the middle of a tetrahedron's face got the distance of a corner (see `host/fcl_pair.py`).
- Its signed distance (`enable_signed_distance`) is right to 1e-6 in shallow overlap, but took 9 s for two spheres a
  thousandth off concentric and did not end in 8 minutes for concentric ones; python-fcl catches none of its exceptions.
- `fcl.collide` gives depths that are wrong by up to 0.1 between convex shapes, and one per triangle for meshes.
- Meshes that intersect have distance 0 or -1. A mesh's nearest point comes first, whichever order the two are given
  in; the points between a mesh and a sphere are in a frame of their own.

So depths come from distances alone. Planes are closed forms: FCL has no distance to them.

Accuracy, in units of the largest shape's size. Convex shapes: gaps 5e-8, in symmetric placements 1e-6, where round
shapes overlap deeply 1e-4 at worst, exact for boxes and hulls of few edges; normals 1e-10 as a rule, 4e-4 at worst.
Meshes: the same if apart, or if only the rounding of a sphere or capsule overlaps; else the shortest way out
found from the triangles that meet, exact where the surface is flat as far as the depth. Closed meshes are solid,
heightfields are solid below, open meshes are surfaces.
Rows of a pair: up to four for box on box and for flat sides on a plane, else one. There are no derivatives.
"""

from __future__ import annotations

import threading
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike

from ..engine.model import Model
from ..engine.topology import Topology
from .host.fcl_boxes import FclScene, near_pairs
from .host.fcl_pair import TILT, pair_hits
from .host.fcl_shapes import FclShape, bodies_of, fcl_library
from .host.pair_rows import HostRow, blank, fill, pair_table
from .host.planes import plane_rows
from .proximities import Proximities

_LOCK = threading.Lock()  # callbacks of several devices share FCL's objects


def fcl_proximities(
    model: Model, positions: ArrayLike, rotations: ArrayLike, margin: ArrayLike = np.inf
) -> Proximities:
    """Proximities of the shapes at their poses in the world: positions (..., ns, 3) [m], rotations (..., ns, 3, 3).

    margin: [m] pairs farther apart are not reported. Leading axes, also those of the geometry, are the batch; the host
    loops over its lanes, under jit and vmap in one callback. Pairs of shapes whose pose or geometry is not
    finite are inactive; a lane that has one is coded NOT_FINITE. A lane with more rows than there is room for keeps
    the closest and is coded PAIRS_FULL.
    """
    fcl_library()
    topology, dtype = model.topology, jnp.result_type(positions)
    operands = {2: (positions, model.shape_size, model.points), 3: (rotations,), 0: (margin,)}
    leads = [jnp.shape(x)[: jnp.ndim(x) - own] for own, xs in operands.items() for x in xs]
    batch, n = np.broadcast_shapes(*leads), pair_table(topology).capacity

    def add_batch_axes(x: ArrayLike, own: int) -> jax.Array:
        """Give x as many batch axes as the result, so that another axis in front fits all operands."""
        shape = jnp.shape(x)
        return jnp.reshape(x, (1,) * (len(batch) + own - len(shape)) + shape)

    def out(*shape: int, kind: DTypeLike = dtype) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct((*batch, *shape), kind)

    i32, yes = np.dtype(np.int32), np.dtype(bool)
    rows = out(n, kind=i32), out(n, kind=yes), out(n), out(n, 3), out(n, 3), out(n, 3)
    result = Proximities._make((*rows, out(kind=i32), out(kind=i32)))
    return jax.pure_callback(
        partial(host_proximities, topology), result, add_batch_axes(positions, 2), add_batch_axes(rotations, 3),
        add_batch_axes(model.shape_size, 2), add_batch_axes(model.points, 2),
        add_batch_axes(jnp.asarray(margin, dtype), 0),
        vmap_method="expand_dims",
    )  # fmt: skip


def host_proximities(topology: Topology, *operands: ArrayLike) -> Proximities:
    """Run the detector on numpy arrays, in a loop over lanes; nothing is compiled.

    operands: positions, rotations, `shape_size` and `points` of the model, margin, as in fcl_proximities, with equal
    numbers of batch axes.
    """
    fcl_library()
    own = (2, 3, 2, 2, 0)
    arrays = [np.asarray(x, np.float64) for x in operands]
    batch = np.broadcast_shapes(*(x.shape[: x.ndim - k] for x, k in zip(arrays, own, strict=True)))
    lanes = [np.broadcast_to(x, (*batch, *x.shape[x.ndim - k :])) for x, k in zip(arrays, own, strict=True)]
    one_geometry = all(np.prod(x.shape[:-2]) == 1 for x in arrays[2:4])
    made = blank(batch, pair_table(topology).capacity, np.asarray(operands[0]).dtype)
    with _LOCK:
        bodies: tuple[list[FclShape], float] | None = None
        for index in np.ndindex(*batch):
            positions, rotations, sizes, points, margin = (x[index] for x in lanes)
            if bodies is None or not one_geometry:
                bodies = bodies_of(topology, sizes, points)
            fill(made, index, *_lane_rows(FclScene(topology, *bodies, positions, rotations, float(margin))))
    return made


def _lane_rows(lane: FclScene) -> tuple[list[HostRow], bool]:
    """All rows of a lane, and whether every shape with pairs is finite."""
    fine, pairs, kinds = lane.finite(), lane.topology.pairs, lane.topology.shape_kinds
    rows: list[HostRow] = []
    for k in near_pairs(lane, fine):
        i, j = pairs[k]
        a, b = lane.bodies[i], lane.bodies[j]
        poses = lane.positions[i], lane.rotations[i], lane.positions[j], lane.rotations[j]
        if "plane" in (kinds[i], kinds[j]):
            hits = plane_rows(a.shape, b.shape, poses, lane.unit, TILT)
        else:
            hits = pair_hits(a, b, poses, lane.unit)
        rows += [HostRow(k, *hit) for hit in hits if hit.gap <= lane.margin]
    return rows, bool(fine.all()) or all(fine[i] and fine[j] for i, j in pairs)
