"""Runs for a GPU: scenes, durations, and lanes that differ. It imports nothing that a machine with a GPU may lack."""

from __future__ import annotations

import dataclasses
import pickle
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import carom
from carom.scenes.library.registry import library_entry

FIGURES = {  # names in `step_cases.CASES` of scenes whose files come with other packages
    "arm7 Euler": "arm7, Euler", "half_cheetah": "half_cheetah, driven", "ant": "ant, driven",
    "humanoid": "humanoid, driven", "solo12": "solo12, standing",
}  # fmt: skip
SCENES = ("arm7", "arm7 Euler", "stack", "pool_break", "ragdoll", "half_cheetah", "ant", "humanoid", "solo12")
STEP = 1 / 240  # [s]
SPREAD = 1e-3  # spread of velocities between lanes
CHECKED = 64  # lanes that are compared with the CPU


@dataclasses.dataclass(frozen=True, eq=False)
class GpuCase:
    """A scene and its run.  keywords: keywords of `carom.rollout`, including `duration` [s]."""

    name: str
    model: Any
    state: Any
    keywords: dict[str, Any]

    def run(self, state: Any) -> Any:
        return carom.rollout(self.model, state, throw=False, **self.keywords)

    def lanes(self, count: int) -> Any:
        """Return lanes whose velocities differ; they are the same on every machine."""
        many = carom.tile(self.state, count)
        draws = np.random.default_rng(count).normal(size=many.v.shape)
        return dataclasses.replace(many, v=many.v + jnp.asarray(SPREAD * draws, many.v.dtype))

    def save(self, folder: Path) -> None:
        plain = lambda x: np.asarray(x) if isinstance(x, jax.Array) else x  # noqa: E731
        whole = self.name, *(jax.tree.map(plain, x) for x in (self.model, self.state, self.keywords))
        (folder / f"{self.name}.case").write_bytes(pickle.dumps(whole))


def load_case(name: str, folder: Path) -> GpuCase:
    name, *parts = pickle.loads((folder / f"{name}.case").read_bytes())
    return GpuCase(name, *jax.tree.map(lambda x: jnp.asarray(x) if isinstance(x, np.ndarray) else x, parts))


def case(name: str, seconds: float) -> GpuCase:
    """Return the case of one of FIGURES, a library scene, or a scene's file."""
    if name in FIGURES:
        from .step_cases import CASES

        figure = CASES[FIGURES[name]]
        model, state = figure.model_and_state(jnp.zeros(()).dtype)
        return GpuCase(name, model, state, figure.keywords)
    keywords = {"duration": seconds, "frame_dt": seconds, "max_dt": STEP}
    if Path(name).suffix:
        spec: Any = carom.load(name)
        model, state = carom.compile_scene(spec)
        return GpuCase(Path(name).stem, model, state, keywords)
    entry = library_entry(name)
    play: Any = entry.play
    model, state = carom.compile_scene(entry.build(**play.parameters))
    return GpuCase(name, model, state, keywords)
