"""What the motors are told: nothing, numbers, numbers for each frame, or a function of the state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from ..engine.model import Model
from ..engine.state import State
from .prepare import Told

Control = Callable[[Model, State, Array], Array]


class Orders(NamedTuple):
    """rows: (frames, nv) or (frames, lanes, nv), one row an interval between frames; or None.  function: (model, state,
    t) -> (*batch, nv), or None."""

    rows: Array | None
    function: Control | None

    @staticmethod
    def of(control: Any, frames: int, nv: int, state: State) -> Orders:
        """From what `rollout` is given; frames: how many intervals there are."""
        if control is None:
            return Orders(None, None)
        if callable(control):
            return Orders(None, control)  # type: ignore[arg-type]
        rows = jnp.asarray(control, state.q.dtype)
        if rows.shape == (nv,):
            return Orders(jnp.broadcast_to(rows, (frames, nv)), None)
        lanes = state.t.shape
        if rows.shape not in ((frames, nv), (frames, *lanes, nv)):
            raise ValueError(
                f"rollout: control has shape {rows.shape}; give ({nv},) for a constant, or one row for each of the "
                f"{frames} intervals between frames: {(frames, nv)}" + (f" or {(frames, *lanes, nv)}" if lanes else "")
            )
        return Orders(rows, None)


def told_by(rows: Array | None, function: Control | None) -> Told:
    """(model, state, number of the next frame () or (*batch)) -> (*batch, nv), or None."""

    def told(model: Model, state: State, frame: Array) -> Array | None:
        batch, nv = state.t.shape, model.topology.nv
        if function is not None:
            return jnp.broadcast_to(function(model, state, state.t), (*batch, nv))
        if rows is None:
            return None
        number = jnp.clip(frame - 1, 0, len(rows) - 1)
        if rows.ndim == 3 and jnp.ndim(number):
            return rows[number, jnp.arange(len(number))]
        return jnp.broadcast_to(rows[number], (*batch, nv))

    return told
