"""Owners of shapes: the name of the body of every shape of a compiled scene, for contacts, logs and plots."""

from __future__ import annotations

from ..engine.topology import Topology
from .compiling.shape_rows import shape_rows
from .spec import PlaneSpec, SceneSpec


def shape_owners(scene: SceneSpec, topology: Topology) -> tuple[str, ...]:
    """The name of the link or static that carries each shape of the scene's model, in the model's order."""
    statics = _static_owners(scene, topology.shape_links.count(-1))
    return statics + tuple(topology.names[link] for link in topology.shape_links[len(statics) :])


def _static_owners(scene: SceneSpec, n: int) -> tuple[str, ...]:
    """Names of the n shapes of statics, in the model's order; a static without a name has the name of its kind."""
    unnamed = [static for static in scene.statics if static.name is None]
    names, counts = [], []
    for k, static in enumerate(scene.statics):
        kind = "plane" if isinstance(static, PlaneSpec) else "static"
        alone = sum(isinstance(other, type(static)) for other in unnamed) == 1
        names.append(static.name or (kind if alone else f"{kind} {k}"))
        counts.append(1 if isinstance(static, PlaneSpec) else len(static.shapes))
    if sum(counts) != n:  # a mesh becomes several shapes
        counts = [len(shape_rows(static, k, moving=False)) for k, static in enumerate(scene.statics)]
    return tuple(name for name, count in zip(names, counts, strict=True) for _ in range(count))
