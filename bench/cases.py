"""Cases: scenes of the library with random states, pairs of shapes at random placements, bodies in a lattice."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

import carom
from carom.collision.broad import Candidates, candidates, plan_pairs
from carom.engine.algebra.vec3 import Vec3
from carom.engine.joints import JOINTS
from carom.engine.model import Model
from carom.scenes.library.registry import library_scene

BATCH = 4096
CASES = ("arm7", "humanoid")
DTYPES = {"f32": jnp.float32, "f64": jnp.float64}


@dataclass(frozen=True)
class Case:
    """A model with q (lanes, nq), v and tau (lanes, nv)."""

    name: str
    model: Model
    q: Any
    v: Any
    tau: Any


def dynamics_case(name: str, dtype: Any, lanes: int = BATCH, seed: int = 0) -> Case:
    """Return a library scene with `lanes` random states; every lane differs."""
    model, _ = carom.compile_scene(library_scene(name), dtype=dtype)
    rng = np.random.default_rng(seed)
    q, v, tau = random_q(model, rng, lanes), rng.normal(size=(lanes, model.topology.nv)), None
    tau = rng.normal(size=v.shape)
    assert len(np.unique(q[:, -1])) == lanes, "random states must differ from lane to lane"
    return Case(name, model, *(jnp.asarray(x, dtype) for x in (q, v, tau)))


def random_q(model: Model, rng: np.random.Generator, lanes: int) -> np.ndarray:
    """Draw normally distributed coordinates (lanes, nq), with quaternions uniform on the sphere."""
    topology = model.topology
    q = rng.normal(size=(lanes, topology.nq))
    for joint, start in zip(topology.joints, topology.q_start, strict=False):
        if joint in ("spherical", "floating"):
            end = start + JOINTS[joint].nq
            q[:, end - 4 : end] /= np.linalg.norm(q[:, end - 4 : end], axis=1, keepdims=True)
    return q


# -- pairs of shapes -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PairCase:
    """Two free bodies of one shape each, in many placements: q (pairs, 14)."""

    name: str
    model: Model
    q: Any


def _round_hull(corners: int, seed: int) -> Any:
    """Return a hull of points on a sphere of 1 m diameter, all of them corners."""
    x = np.random.default_rng([corners, seed]).normal(size=(corners, 3))
    return carom.ConvexHull(x / np.linalg.norm(x, axis=1)[:, None] / 2)


SIZE = 1.0  # [m] about the diameter of the larger shape
# the shapes, and the largest distance of their origins [m]: in about a quarter of the placements they overlap
PAIRS: dict[str, tuple[Any, Any, float]] = {
    "sphere-sphere": (lambda: carom.Sphere(0.5), lambda: carom.Sphere(0.3), 1.25),
    "capsule-capsule": (lambda: carom.Capsule(0.2, 0.3), lambda: carom.Capsule(0.15, 0.25), 0.9),
    "box-box": (lambda: carom.Box((0.4, 0.25, 0.15)), lambda: carom.Box((0.2, 0.3, 0.25)), 1.1),
    **{
        f"hull-hull {n}": (functools.partial(_round_hull, n, 0), functools.partial(_round_hull, n, 1), reach)
        for n, reach in ((8, 1.13), (16, 1.27), (32, 1.43), (64, 1.5))
    },
}


LATTICES = ("broad phase", "scenes")  # the other parts of the collision suite


def parts(only: str) -> tuple[list[str], bool, bool]:
    """Return the parts of the collision suite with a text in their name: pairs; whether the broad phase; the scenes."""
    broad, scenes = (only in name for name in LATTICES)
    return [name for name in PAIRS if only in name], broad, scenes


def pair_case(name: str, dtype: Any, pairs: int, seed: int = 0) -> PairCase:
    """Return placements of a pair, turned at random, B's origin uniform in a ball about A's; every lane differs."""
    a, b, reach = PAIRS[name]
    builder = carom.SceneBuilder()
    builder.add_body("a", [a()])
    builder.add_body("b", [b()])
    model, _ = carom.compile_scene(builder.build(), dtype=dtype)
    rng = np.random.default_rng(seed)
    q = random_q(model, rng, pairs)
    away = rng.normal(size=(pairs, 3))
    away *= reach * rng.uniform(size=(pairs, 1)) ** (1 / 3) / np.linalg.norm(away, axis=1, keepdims=True)
    q[:, 7:10] = q[:, :3] + away
    assert len(np.unique(q[:, -1])) == pairs, "placements must differ from lane to lane"
    return PairCase(name, model, jnp.asarray(q, dtype))


# -- bodies in a lattice ---------------------------------------------------------------------------------------------

RADIUS, SPACING, JITTER, MARGIN = 0.1, 0.205, 0.005, 0.01  # [m]
SIDES, SCENES = (6, 10, 16), (6, 10)  # sides for the broad phase (216, 1000 and 4096 bodies), and for whole scenes


def lattice(side: int) -> np.ndarray:
    """Return centres (side^3, 3) of a jittered cubic lattice [m], in random order."""
    rng = np.random.default_rng(side)
    position = np.stack(np.meshgrid(*[np.arange(side)] * 3), -1).reshape(-1, 3) * SPACING
    return (position + JITTER * rng.normal(size=position.shape))[rng.permutation(len(position))]


def broad_case(side: int, way: str | None, dtype: Any) -> tuple[Callable[..., Candidates], Vec3, Any]:
    """Return the broad phase of side^3 balls, about two candidates each, and its arguments: centres and radii [m].

    way: "matrix" or "cells"; None: the one that detect would choose.
    """
    center, n = lattice(side), side**3
    pairs = np.stack(np.triu_indices(n, 1), -1).astype(np.int32)
    plan = plan_pairs(("sphere",) * n, tuple(range(n)), pairs, way=way)
    up = Vec3(*[jnp.zeros(n, dtype)] * 3)

    def near(center: Vec3, radius: Any) -> Candidates:
        return candidates(plan, center, radius, up, MARGIN)[0]

    return near, Vec3(*jnp.asarray(center.T, dtype)), jnp.full(n, RADIUS, dtype)


def lattice_scene(side: int, dtype: Any) -> tuple[Model, Any]:
    """Return a scene of side^3 free balls and boxes alternating in the lattice, turned at random, and its q (nq,)."""
    builder, rng = carom.SceneBuilder(), np.random.default_rng(side)
    for k, position in enumerate(lattice(side)):
        shape = carom.Box((0.09, 0.08, 0.07)) if k % 2 else carom.Sphere(RADIUS)
        quaternion = rng.normal(size=4)
        builder.add_body(f"body{k}", [shape], position=position, quaternion=quaternion / np.linalg.norm(quaternion))
    model, state = carom.compile_scene(builder.build(), dtype=dtype)
    return model, state.q
