"""Scenes of two shapes, one compiled program a pair of kinds, asked about many placements at once."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.collision.proximities import Proximities

from .minkowski import Array, columns_gap, gap
from .placements import CELL, GRID, HULLS, STATIC, Placement, degenerate_placements, kind_of, random_placements

BATCH = 32  # placements a call: all calls alike, so that a pair compiles once

# as large as a placement's may be: what a heightfield looks at is chosen from these sizes when the scene is compiled
_SHAPES: dict[str, Any] = {
    "sphere": lambda: carom.Sphere(1.0),
    "capsule": lambda: carom.Capsule(1.0, 1.0),
    "box": lambda: carom.Box((1.0, 1.0, 1.0)),
    "cylinder": lambda: carom.Cylinder(1.0, 1.0),
    "ellipsoid": lambda: carom.Ellipsoid((1.0, 1.0, 1.0)),
    "heightfield": lambda: carom.Heightfield(np.zeros(GRID), CELL),
}
LARGE = 2.0  # hulls too, by this factor


@jax.jit
def _detect(model: carom.Model, q: Array) -> Any:
    return carom.detect(model, q, margin=np.inf)


class PairScene:
    """Two bodies of one shape each, or a static and a body. The first name is A, the second B."""

    def __init__(self, names: tuple[str, str], dtype: Any = None):
        builder = carom.SceneBuilder()
        for body, name in zip("ab", names, strict=True):
            shape = carom.ConvexHull(HULLS[name] * LARGE) if name in HULLS else _SHAPES.get(name, list)()
            if name == "plane":
                builder.add_plane()
            elif name in STATIC:
                builder.add_static(body, [shape])
            else:
                builder.add_body(body, [shape])
        self.names = names
        self.model, _ = carom.compile_scene(builder.build(), dtype=dtype, overlaps="ignore")
        self.topology = self.model.topology
        assert self.topology.pairs == ((0, 1),)
        assert self.topology.shape_kinds == tuple(kind_of(name) for name in names)

    @property
    def points(self) -> tuple[Array, Array]:
        """Corners or grid (k, 3) of A and B in the scene's order, hulls in their unit size [m]."""
        points = np.asarray(self.model.points, float)
        slices = [points[slice(*ends)] for ends in self.topology.shape_points]
        a, b = (x / LARGE if name in HULLS else x for x, name in zip(slices, self.names, strict=True))
        return a, b

    def inputs(self, placements: Sequence[Placement]) -> tuple[carom.Model, Array]:
        """The model and q (n, nq), everything that is a placement's batched."""
        solids = [(p.a, p.b) for p in placements]
        dtype, q = self.model.shape_size.dtype, []
        position, quaternion = np.zeros((len(solids), 2, 3)), np.tile(np.eye(4)[0], (len(solids), 2, 1))
        for k, link in enumerate(self.topology.shape_links):
            poses = [np.concatenate([pair[k].position, pair[k].quaternion]) for pair in solids]
            if link >= 0:
                q += [poses]
            else:
                position[:, k], quaternion[:, k] = np.split(np.array(poses), [3], 1)
        model = self.model.replace(
            shape_size=jnp.asarray([[s.size for s in pair] for pair in solids], dtype),
            points=jnp.asarray(np.array([np.concatenate([s.points for s in pair]) for pair in solids]), dtype),
            shape_position=jnp.asarray(position, dtype),
            shape_quaternion=jnp.asarray(quaternion, dtype),
        )
        return model, jnp.asarray(np.concatenate(q, 1), dtype)

    def detect(self, placements: Sequence[Placement]) -> Proximities:
        """Arrays with leading axis len(placements), by calls of BATCH placements."""
        found = []
        for start in range(0, len(placements), BATCH):
            some = placements[start : start + BATCH]
            rows = _detect(*self.inputs(filled(some)))
            found.append(type(rows)(*(np.asarray(x)[: len(some)] for x in rows)))
        return Proximities._make(np.concatenate(x) for x in zip(*found, strict=True))


def filled(placements: Sequence[Placement]) -> list[Placement]:
    """Up to BATCH placements, the last one repeated."""
    return [*placements, *[placements[-1]] * (BATCH - len(placements))]


@functools.cache
def pair_scene(names: tuple[str, str], dtype: Any = None) -> PairScene:
    """One scene a pair for the whole run."""
    return PairScene(names, dtype)


@dataclass(frozen=True)
class Sample:
    """Placements of one pair, the detector's rows for them, and the oracle's gaps (n,) [m]."""

    names: tuple[str, str]
    placements: list[Placement]
    rows: Proximities
    gaps: Array

    def demand(self, what: str, error: Array, bound: Any, but: int = 0, at_most: float = 0.0, **values: Any) -> None:
        """Fails, and tells the worst placements, where an error (n,) is not within its bound; so many may be off by
        no more than at_most."""
        wrong = np.nonzero(~(np.asarray(error) <= bound))[0]
        if len(wrong) <= but and (np.asarray(error)[wrong] <= at_most).all():
            return
        worst = wrong[np.argsort(-np.nan_to_num(np.asarray(error, float)[wrong], nan=np.inf))][:3]
        lines = [f"{'-'.join(self.names)}: {what}: {len(wrong)} of {len(self.placements)} placements"]
        for i in worst:
            p, told = self.placements[i], {name: np.asarray(v)[i] for name, v in values.items()}
            lines.append(f"[{i}] {p.label}: error {np.asarray(error)[i]:.3g}, {told}")
            for s in (p.a, p.b):
                numbers = ", ".join(
                    f"{f}={np.asarray(getattr(s, f)).tolist()}" for f in ("size", "position", "quaternion")
                )
                lines.append(f"    {s.kind} {numbers}")
        pytest.fail("\n".join(lines), pytrace=False)


@functools.cache
def sample(names: tuple[str, str], which: str, count: int = BATCH, dtype: Any = None) -> Sample:
    """Of a pair, random or degenerate placements: drawn and detected once for all tests of a run."""
    scene = pair_scene(names, dtype)
    rng = np.random.default_rng([len(which), *(ord(c) for c in "".join(names))])
    if which == "random":
        placements = random_placements(rng, names, scene.points, count)
    else:
        placements = degenerate_placements(rng, names, scene.points)
    gaps = np.array([true_gap(p) for p in placements])
    return Sample(names, placements, scene.detect(placements), gaps)


def true_gap(p: Placement) -> float:
    """The oracle's signed gap [m]."""
    return columns_gap(p.a, p.b) if p.a.kind == "heightfield" else gap(p.a, p.b)[0]
