"""Actuation: motor commands and external forces. Each is None, constant, one row for each frame, or a function of the
state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from ..engine.model import Model
from ..engine.state import State
from .motion.forces import Drive
from .prepare import Controller

Control = Callable[[Model, State, Array], Array]


class Orders(NamedTuple):
    """Motor commands and forces of a run.

    rows: (frames, nv) or (frames, lanes, nv), one row for each interval between frames; or None.
    functions: (model, state, t) -> (*batch, nv), or None.
    """

    rows: Drive
    functions: Drive

    @staticmethod
    def of(
        control: Control | ArrayLike | None, forces: Control | ArrayLike | None, frames: int, nv: int, state: State
    ) -> Orders:
        """Return the orders of arguments of `rollout`.  frames: the number of intervals."""
        if control is None and forces is None:
            return NOTHING
        given = {"control": control, "forces": forces}
        functions = Drive(*(x if callable(x) else None for x in given.values()))
        return Orders(Drive(*(_rows(name, x, frames, nv, state) for name, x in given.items())), functions)


NOTHING = Orders(Drive(), Drive())


def _rows(name: str, given: Control | ArrayLike | None, frames: int, nv: int, state: State) -> Array | None:
    if given is None or callable(given):
        return None
    if isinstance(given, Mapping):
        column = "model.topology.v_start[model.topology.names.index(name)]"
        raise ValueError(
            f"rollout: {name} is a {type(given).__name__}; give an array with a column for each of the {nv} degrees of "
            f"freedom: those of a link's joint begin at {column}"
        )
    rows = jnp.asarray(given, state.q.dtype)
    if rows.shape == (nv,):
        return jnp.broadcast_to(rows, (frames, nv))
    axes = order_of(name, rows.shape, frames, nv, state.t.shape)
    if axes == "lanes":
        return jnp.broadcast_to(rows, (frames, *rows.shape))
    return jnp.moveaxis(rows, 0, 1) if axes == "lanes, frames" else rows


def order_of(name: str, shape: tuple[int, ...], frames: int, nv: int, lanes: tuple[int, ...]) -> str:
    """Return the leading axes of an array of motor commands or forces, before the axis of the nv degrees of freedom.

    They are "frames", "lanes", "lanes, frames" or, as in programs, "frames, lanes".
    frames: the number of intervals.
    lanes: () for one scene.
    Raises ValueError for another shape.
    """
    known = {"frames": (frames, nv)}
    if lanes:
        known |= {"lanes": (*lanes, nv), "lanes, frames": (*lanes, frames, nv), "frames, lanes": (frames, *lanes, nv)}
    fits = [axes for axes, wanted in known.items() if shape == wanted]
    if not fits:
        either = f"({nv},) for a constant, " + (f"{known['lanes']} for one a lane, " if lanes else "")
        every = f" or {known['lanes, frames']}" if lanes else ""
        raise ValueError(
            f"rollout: {name} has shape {shape}; give {either}or one row for each of the {frames} intervals between "
            f"frames: {known['frames']}{every}"
        )
    if fits == ["frames", "lanes"]:
        raise ValueError(
            f"rollout: {name} has shape {shape}, and there are as many lanes as intervals between frames: give "
            f"{known['lanes, frames']}, lanes first"
        )
    return fits[0]


def hold_over_steps(name: str, given: Control | ArrayLike | None, nv: int, state: State) -> Control | Array | None:
    """Return the argument of `step`, constant over its time, in the form of `Orders`."""
    if given is None or callable(given):
        return given
    rows, wide = jnp.asarray(given, state.q.dtype), (*state.t.shape, nv)
    if rows.shape not in (wide, wide[-1:]):
        either = f"{wide[-1:]}" + (f" or {wide}" if len(wide) > 1 else "")
        raise ValueError(f"step: {name} has shape {rows.shape}; give {either}, for the whole of dt")
    return jnp.broadcast_to(rows, wide)[None]


def controller_of(rows: Drive, functions: Drive) -> Controller:
    """Return the controller of a run: (model, state, number of the next frame () or (*batch)) -> drive until then."""

    def controller(model: Model, state: State, frame: Array) -> Drive:
        def one(rows: Array | None, function: Control | None) -> Array | None:
            batch, nv = state.t.shape, model.topology.nv
            if function is not None:
                return jnp.broadcast_to(function(model, state, state.t), (*batch, nv))
            if rows is None:
                return None
            if rows.ndim == 3 and jnp.ndim(frame):
                return rows[jnp.clip(frame - 1, 0, len(rows) - 1), jnp.arange(len(frame))]
            if jnp.ndim(frame):
                return jnp.broadcast_to(rows[jnp.clip(frame - 1, 0, len(rows) - 1)], (*batch, nv))
            row = jax.lax.dynamic_index_in_dim(rows, frame - 1, keepdims=False)  # clamped to the first and last row
            return jnp.broadcast_to(row, (*batch, nv))

        return Drive(*(one(x, f) for x, f in zip(rows, functions, strict=True)))

    return controller
