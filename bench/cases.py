"""Cases: scenes of the library with a batch of truly random states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

import carom
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
    """A library scene with `lanes` random states; every lane differs."""
    model, _ = carom.compile_scene(library_scene(name), dtype=dtype)
    rng = np.random.default_rng(seed)
    q, v, tau = random_q(model, rng, lanes), rng.normal(size=(lanes, model.topology.nv)), None
    tau = rng.normal(size=v.shape)
    assert len(np.unique(q[:, -1])) == lanes, "random states must differ from lane to lane"
    return Case(name, model, *(jnp.asarray(x, dtype) for x in (q, v, tau)))


def random_q(model: Model, rng: np.random.Generator, lanes: int) -> np.ndarray:
    """Normal coordinates (lanes, nq), quaternions uniform on the sphere."""
    topology = model.topology
    q = rng.normal(size=(lanes, topology.nq))
    for joint, start in zip(topology.joints, topology.q_start, strict=False):
        if joint in ("spherical", "floating"):
            end = start + JOINTS[joint].nq
            q[:, end - 4 : end] /= np.linalg.norm(q[:, end - 4 : end], axis=1, keepdims=True)
    return q
