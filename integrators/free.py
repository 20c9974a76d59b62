"""Runs of scenes in which nothing can touch: equal steps from frame to frame, for all lanes together."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from ..engine.model import Model
from ..engine.state import State
from .clock import Frames
from .prepare import Told
from .schemes import scheme_named


def run_free(
    scheme: str, model: Model, state: State, frames: Frames, count: int, told: Told, substeps: int
) -> tuple[State, tuple[Array, Array, Array]]:
    """The last state, and t (*batch, F), q (*batch, F, nq), v (*batch, F, nv) of all frames.

    count: of the frames after the first; from each to the next there are so many equal steps.
    """
    move = scheme_named(scheme)

    def frame(state: State, inputs: Any) -> tuple[State, State]:
        number, dt = inputs, frames.interval(inputs - 1)
        h = dt / substeps

        def substep(_: int, state: State) -> State:
            drive = told(model, state, number)
            return move(model, state, h, drive.motors, drive.impulses(h))

        moved = jax.lax.fori_loop(0, substeps, substep, state)
        state = State(moved.q, moved.v, state.t + dt)  # not the sum of many steps
        return state, state

    final, later = jax.lax.scan(frame, state, jnp.arange(1, count + 1))
    lanes = state.t.ndim
    recorded = jax.tree.map(lambda first, rest: jnp.concatenate([first[None], rest]), state, later)
    return final, tuple(jnp.moveaxis(x, 0, lanes) for x in (recorded.t, recorded.q, recorded.v))  # type: ignore[return-value]
