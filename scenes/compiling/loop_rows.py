"""Loops of a scene: their part of the topology and of the model's arrays, and the state at the start."""

from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np

from ...collision.poses import Array
from ...engine.loops.evaluation import row_loops
from ...engine.loops.projection import loop_errors, project
from ...engine.model import Model
from ...engine.native.surface import native_jit
from ...engine.state import State
from ..spec import LoopSpec, SceneSpec
from . import check
from .loop_frames import SHAPES
from .loop_reader import LoopReader

ASSEMBLY = 10  # rounds of projection, two of Newton's iterations each
CLOSED = {4: 1e-5, 8: 1e-11}  # [m, rad] by the bytes of a number


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
    q, v = state.q, state.v
    for iteration in range(ASSEMBLY + 1):
        error, rate = (np.abs(np.asarray(x, np.float64)) for x in loop_errors(model, q, v, state.t))
        fastest = 1 + np.abs(np.asarray(v)).max(initial=0)
        off = np.maximum(error, rate / fastest)
        if (off <= CLOSED[q.dtype.itemsize]).all():
            return State(q, v, state.t)
        if iteration < ASSEMBLY:
            q, v = _closer(model, q, v, state.t)
    worst = int(np.where(np.isfinite(off), off, np.inf).argmax())
    loop = sorted(row_loops(model.topology))[worst]
    spec, first = scene.loops[loop], loop_errors(model, state.q, state.v, state.t)[0]
    where = loop_label(spec, loop)
    if error[worst] <= CLOSED[q.dtype.itemsize]:
        check.reject(
            where, "joint", spec.joint,
            f"it must be able to move as it is told to: its ends part at {rate[worst]:.3g} m/s or rad/s, whatever the "
            "joints do: correct v0 or the rates of what is driven, or start elsewhere",
        )  # fmt: skip
    gap = abs(float(first[worst]))
    check.reject(
        where, "joint", spec.joint,
        f"the loop must close at the start: it is {gap:.3g} m or rad off, and moving the joints leaves "
        f"{error[worst]:.3g}: correct q0, the lengths or the frames, or leave the frame on link_b out",
    )  # fmt: skip


@native_jit  # XLA takes ten times as long for a robot
def _closer(model: Model, q: jax.Array, v: jax.Array, t: jax.Array) -> tuple[jax.Array, jax.Array]:
    return project(model, q, v, t)
