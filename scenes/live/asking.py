"""Queries of a world: rays, and the overlaps of a shape. Each has one program for all calls."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np

from ...collision.detect import detect
from ...collision.poses import Array
from ...collision.proximities import Proximities
from ...collision.queries.rays import RayHits, cast_rays
from ...collision.shapes import Shape
from ...engine.algebra.rotation import Quat
from ...engine.algebra.vec3 import Vec3
from ...engine.model import Model
from ...engine.native.surface import native_jit
from ...engine.shaped import Float
from ..compile import compile_scene
from ..compiling.geometry import GEOMETRY
from ..spec import BodySpec, SceneSpec
from .touching import Bodies

TOGETHER = 32  # rays of one call
PROBE = "overlap"
_SOLIDS = ("sphere", "box", "capsule", "cylinder", "ellipsoid")


@dataclass(frozen=True)
class Hit:
    """A ray's hit.  body: name of the body, link or static.  shape: its index in the model.
    distance: from the origin [m].  point, normal: in the world [m], the normal outward."""

    body: str
    shape: int
    distance: float
    point: Float[np.ndarray, " 3"]
    normal: Float[np.ndarray, " 3"]


class Questions:
    """Queries of one model, at given coordinates."""

    def __init__(self, scene: SceneSpec, model: Model, bodies: Bodies) -> None:
        self._scene, self._model, self._bodies = scene, model, bodies
        self._owners = np.array(bodies.owners, str)
        self._probed: dict[str | Shape, Model] = {}

    def rays(
        self, q: Array | jax.Array, origins: Array, directions: Array, most: float, hidden: Set[str], among: Array
    ) -> RayHits:
        """Cast rays as `cast_rays` does, with numpy arrays (R, ...), from origins and directions (R, 3) or (1, 3).
        hidden: names of ignored bodies.  among: (ns,) bool, shapes that rays can hit."""
        if hidden:
            among = among & ~np.isin(self._owners, list(hidden))
        if len(origins) != len(directions) and 1 not in (len(origins), len(directions)):
            raise ValueError(f"{len(origins)} origins have {len(directions)} directions: give as many, or one for all")
        o, d = np.broadcast_arrays(*(np.asarray(x, q.dtype) for x in (origins, directions)))
        parts: list[RayHits] = []
        for begin in range(0, max(1, len(o)), TOGETHER):
            a, b = np.zeros((2, TOGETHER, 3), q.dtype)  # unused rows have no direction, and hit nothing
            for some, given in ((a, o), (b, d)):
                some[: len(o) - begin] = given[begin : begin + TOGETHER]
            parts.append(self._cast(q, a, b, most, among))
        return RayHits._make(np.concatenate(x)[: len(o)] for x in zip(*parts, strict=True))

    def _cast(self, q: Array | jax.Array, o: Array, d: Array, most: float, among: Array) -> RayHits:
        return cast_rays.straight(self._model, q, o, d, max_distance=np.asarray(most, q.dtype), among=among)

    def hit(self, hits: RayHits, k: int) -> Hit | None:
        """One of the hits."""
        shape = int(hits.shape[k])
        if shape < 0:
            return None
        point, normal = (np.asarray(x[k]) for x in (hits.point, hits.normal))
        return Hit(self._bodies.owners[shape], shape, float(hits.distance[k]), point, normal)

    def overlaps(
        self,
        q: Array | jax.Array,
        shape: Shape,
        position: Array,
        quaternion: Array,
        within: float,
        hidden: Set[str],
        among: Array,
    ) -> list[str]:
        """Names of bodies at most `within` [m] from the shape, the nearest first, equally near ones by row.

        position, quaternion: (3,), (4,) the frame in which the shape has its pose.  hidden, among: see `rays`."""
        model = self.probing(shape)
        near = near_probe.straight(model, q, *(np.asarray(x, q.dtype) for x in (own_pose(shape), position, quaternion)))
        rows = np.flatnonzero(near.active & (near.gap <= within))
        rows = rows[np.argsort(near.gap[rows], kind="stable")]
        shapes = np.array(model.topology.pairs).reshape(-1, 2)[near.pair[rows], 0]
        names = dict.fromkeys(self._bodies.owners[k] for k in shapes if among[k])
        return [name for name in names if name not in hidden]

    def probing(self, shape: Shape) -> Model:
        """The model with one more body, the probe, whose pairs alone are examined."""
        solid = shape.kind in _SOLIDS  # shapes that differ in size only share all else
        key = shape.kind if solid else replace(shape, position=(0, 0, 0), quaternion=(1, 0, 0, 0))
        if key not in self._probed:
            probe = replace(shape, position=(0, 0, 0), quaternion=(1, 0, 0, 0))
            taken, name = {x.name for x in (*self._scene.links, *self._scene.statics)}, PROBE
            while name in taken:
                name += "_"
            links = (*self._scene.links, BodySpec(name, (probe,), mass=1.0))
            scene = replace(
                self._scene, links=links, exclusions=(), loops=(), sensors=(), gap_band=1.0, filtering=False
            )
            model, _ = compile_scene(scene, dtype=self._model.mass.dtype, overlaps="ignore")
            mine = model.topology.shape_links.count(model.topology.n_links - 1)  # a mesh may have several
            others = len(model.topology.shape_kinds) - mine
            pairs = tuple((k, others + j) for k in range(others) for j in range(mine))
            numbers = jnp.zeros(len(pairs), model.mass.dtype)
            topology = replace(model.topology, pairs=pairs)
            names = ("pair_friction", "pair_restitution", "pair_tangential_restitution")
            model = model.replace(topology=topology, **dict.fromkeys(names, numbers))
            self._probed[key] = model
        model = self._probed[key]
        if solid:
            size = np.array(model.shape_size)
            size[-1] = GEOMETRY[shape.kind](f"overlap, shape ({shape.kind})", shape).size
            if (size != model.shape_size).any():
                model = model.replace(shape_size=size)
                self._probed[key] = model  # triggers ask with the same shape again and again
        return model


@native_jit
def near_probe(model: Model, q: jax.Array, own: jax.Array, position: jax.Array, quaternion: jax.Array) -> Proximities:
    """All pairs of a model whose last body is a probe, which is left out of q.

    own: (7,) its pose in the probe's frame: position (3,) [m], quaternion (4,).  position, quaternion: the frame's."""
    rotation = Quat.of_array(quaternion).to_unit()
    origin = Vec3.of(position) + rotation.matrix() @ Vec3.of(own[:3])
    composed = (rotation * Quat.of_array(own[3:])).to_unit()
    pose = jnp.stack([*origin.xyz, composed.w, composed.x, composed.y, composed.z])
    return detect(model, jnp.concatenate([q, pose]), margin=jnp.inf, max_pairs=len(model.topology.pairs))


def own_pose(shape: Shape) -> Array:
    """Position and quaternion (7,) of a shape."""
    return np.concatenate([np.asarray(shape.position, float), np.asarray(shape.quaternion, float)])
