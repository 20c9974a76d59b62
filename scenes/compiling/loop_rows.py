"""Loops of a scene: their part of the topology and of the model's arrays, and the state at the start."""

from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np

from ...collision.poses import Array
from ...engine.loops.evaluation import dof_coordinates, row_loops
from ...engine.loops.projection import FAR, closer, loop_errors
from ...engine.model import Model
from ...engine.state import State
from ..spec import LoopSpec, SceneSpec
from . import check
from .loop_frames import SHAPES
from .loop_reader import LoopReader

CLOSED = {4: 1e-5, 8: 1e-11}  # [m, rad] by the bytes of a number
BEYOND = 1e-4  # [rad, m] a limit may be passed by this: joints bounce off it


def no_loops() -> dict[str, Array]:
    """The arrays of a model without loops."""
    return {name: np.zeros((0, *shape)) for name, shape in SHAPES.items()}


def with_loops(scene: SceneSpec, model: Model, state: State) -> tuple[Model, State]:
    """The model with the scene's loops, and the nearest state that closes them."""
    if scene.baumgarte is not None:
        check.non_negative("scene", "baumgarte", scene.baumgarte, unit="1/s")
    if not scene.loops:
        return model, state
    reader = LoopReader(model, state)
    rows = [reader.row(spec, loop_label(spec, k)) for k, spec in enumerate(scene.loops)]
    hold = "projection" if scene.baumgarte is None else "baumgarte"
    topology = replace(model.topology, loops=tuple(row.loop for row in rows), hold=hold)
    arrays = {name: np.array([row.numbers[name] for row in rows]) for name in SHAPES}
    arrays["baumgarte"] = np.array(scene.baumgarte or 0.0)
    kind = model.mass.dtype
    model = replace(
        model, topology=topology, **{name: jax.device_put(np.asarray(x, kind)) for name, x in arrays.items()}
    )
    return model, _assemble(scene, model, state)


def loop_label(spec: LoopSpec, number: int) -> str:
    if type(spec) is not LoopSpec:
        check.reject("scene", "loops", spec, "it must hold LoopSpec: use SceneBuilder.add_loop")
    return f"loop {number}" if spec.name is None else f'loop "{spec.name}"'


def _assemble(scene: SceneSpec, model: Model, state: State) -> State:
    """q and v that satisfy the loops, by Newton's method from the given ones."""
    now, error, rate = state, np.zeros(0), np.zeros(0)
    for _ in range(FAR + 1):
        error, rate = (np.abs(np.asarray(x, np.float64)) for x in loop_errors(model, now.q, now.v, now.t))
        fastest = 1 + np.abs(np.asarray(now.v)).max(initial=0)
        if (np.maximum(error, rate / fastest) <= CLOSED[now.q.dtype.itemsize]).all():
            _check_limits(model, state, now.q)
            return now
        now = State(*closer(model, now.q, now.v, now.t), now.t)
    first = np.abs(np.asarray(loop_errors(model, state.q, state.v, state.t)[0], np.float64))
    loops, apart = np.array(sorted(row_loops(model.topology))), ~(error <= CLOSED[state.q.dtype.itemsize])
    off = np.where(np.isin(loops, loops[apart]), first, -1) if apart.any() else rate
    worst = int(loops[off.argmax()])
    where, kind, rows = loop_label(scene.loops[worst], worst), type(scene.loops[worst].joint).__name__, loops == worst
    if apart.any():
        gap, left = (np.linalg.norm(x[rows]) for x in (first, error))
        check.reject(
            where, "joint", kind,
            f"the loop must close at the start: it is {gap:.3g} m or rad off, and moving the joints leaves {left:.3g}: "
            "correct q0, the lengths or the frames, or leave the frame on link_b out",
        )  # fmt: skip
    check.reject(
        where, "joint", kind,
        f"it must be able to move as it is told to: its ends part at {rate[rows].max():.3g} m/s or rad/s, whatever the "
        "joints do: correct v0 or the rates of what is driven, or start elsewhere",
    )  # fmt: skip


def _check_limits(model: Model, start: State, q: jax.Array) -> None:
    """Reject coordinates (nq,) at which the loops close beyond the limits of joints."""
    of_dof = np.array(dof_coordinates(model.topology))
    own = np.where(of_dof < 0, 0, np.asarray(q, np.float64)[of_dof])
    lower, upper = np.asarray(model.lower), np.asarray(model.upper)
    beyond = (of_dof >= 0) & ((own < lower - BEYOND) | (own > upper + BEYOND))
    if beyond.any():
        dof = int(beyond.argmax())
        link = int(np.searchsorted(model.topology.v_start, dof, "right")) - 1
        check.reject(
            f'link "{model.topology.names[link]}"', "q0", float(start.q[of_dof[dof]]),
            f"the loops close at {own[dof]:.4g}, which must lie within the limits ({lower[dof]:g}, {upper[dof]:g}): "
            "give q0 nearer to where they close (in MJCF another keyframe), widen the limits, or leave out a loop",
        )  # fmt: skip
