"""Variations: lanes of a batch that are one scene with different numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from .recordings.recording import Recording
from .spec import SceneSpec

if TYPE_CHECKING:
    from jax import Array

    from ..engine.model import Model
    from ..engine.state import State


def compile_lanes(
    scene: SceneSpec, lanes: int | None, variations: Mapping[str, Sequence[Any]], dtype: DTypeLike | None = None
) -> tuple[Model, State, dict[str, np.ndarray]]:
    """The model, the state, and the model's parameters that differ between lanes, each (lanes, ...)."""
    from ..integrators.rollout import tile
    from .compile import compile_scene
    from .formats.settings import apply_setting, check_lanes

    if lanes is None and not variations:
        return *compile_scene(scene, dtype), {}
    for path, values in variations.items():
        lanes = len(values) if lanes is None else lanes
        if len(values) != lanes:
            raise ValueError(f"{path} has {len(values)} values for {lanes} lanes: give one for each")
    lanes = 0 if lanes is None else lanes
    check_lanes(lanes)
    compile_scene(scene, dtype, overlaps="ignore")  # it is recorded, and must be valid even where lanes change it
    known: dict[str, tuple[Model, State]] = {}  # repeated values are compiled once
    compiled = []
    for lane in range(lanes):
        given = {path: values[lane] for path, values in variations.items()}
        if (key := repr(given)) not in known:
            mine = scene
            for path, value in given.items():
                mine = apply_setting(mine, path, value)
            known[key] = compile_scene(mine, dtype, overlaps="ignore" if compiled else "warn")
        compiled.append(known[key])
    model, state = compiled[0]
    for lane, (other, _) in enumerate(compiled):
        if other is not model and other.topology != model.topology:
            raise ValueError(
                f"lane {lane} is another scene than lane 0, not the same one with other numbers: what may touch, the "
                "kinds of shapes and the joints must be equal in all lanes"
            )
    parameters = [name for name in vars(model) if name != "topology"]
    varied = _stack([other for other, _ in compiled], parameters)
    started = _stack([other for _, other in compiled], ["q", "v"])
    return model.replace(**_on_device(varied)), replace(tile(state, lanes), **_on_device(started)), varied


def recompile(recording: Recording) -> tuple[Model, State]:
    """The model of a recording, and its first state."""
    from ..engine.state import State
    from .compile import compile_scene

    model, _ = compile_scene(recording.scene, recording.q.dtype, overlaps="ignore")
    state = {"q": recording.q[..., 0, :], "v": recording.v[..., 0, :], "t": recording.t[..., 0]}
    return model.replace(**_on_device(dict(recording.varied))), State(**_on_device(state))


def _stack(lanes: Sequence[Model] | Sequence[State], names: Sequence[str]) -> dict[str, np.ndarray]:
    """The arrays of these names, lanes first, that are not equal in all lanes."""
    stacked, different = {}, {id(lane): lane for lane in lanes}
    for name in names:
        arrays = {key: np.asarray(getattr(lane, name)) for key, lane in different.items()}
        if len({x.tobytes() for x in arrays.values()}) > 1:
            stacked[name] = np.stack([arrays[id(lane)] for lane in lanes])
    return stacked


def _on_device(arrays: dict[str, np.ndarray]) -> dict[str, Array]:
    import jax

    return jax.tree.map(jax.numpy.asarray, arrays)
