"""Fields of an exported world: named arrays, each with an address in one block of memory.

A world begins with its save (`scenes/live/saves.py`), so that a copy of its first bytes saves it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...collision.poses import Array
from ...engine.model import Model
from ...engine.packed import Packed, pack_model
from ...integrators.snapshots import model_hash
from ..live.saves import HEADER, TURNING, Saved, pack
from ..live.world import Live
from .overlaps import inside_at_start


class Field(NamedTuple):
    """A field.  start: its value in a new world, with its shape and type."""

    start: Array

    @property
    def bytes(self) -> int:
        return self.start.nbytes


class Fields(NamedTuple):
    """The fields of a world.  image: names of the fields of a save, in its order, after a header of 16 bytes that
    includes `behind`.  header: these bytes.  all: name -> field."""

    header: bytes
    image: tuple[str, ...]
    all: dict[str, Field]

    @property
    def awake(self) -> int:
        """Bytes of a save of a world in which no body sleeps."""
        return len(self.header) + sum(self.all[name].bytes for name in ("q", "v", "t"))

    @property
    def most(self) -> int:
        """Bytes of a save of a world in which bodies sleep."""
        return self.awake + sum(self.all[name].bytes for name in ("island", "last_motors"))


def fields_of(live: Live) -> Fields:
    """Fields of a world at its start; the frame's program adds those of contacts."""
    start, model = live._parts.start, live.model
    state, nobody, link_states = start.state, start.asleep, start.link_states
    real = state.q.dtype
    parameters = pack_model(model)
    if not isinstance(parameters, Packed):
        raise ValueError("a model whose parameters are of several types, or batched, cannot be exported")
    awake = Saved(state.q, state.v, state.t, 0.0, nobody.island[:0], nobody.motors[:0])
    header = pack(awake, model_hash(model))[: HEADER.size]
    links = model.topology.n_links
    velocity = [start.velocity(name) if name in start.bodies else np.zeros(6) for name in model.topology.names]
    kept = {
        "behind": np.zeros((), np.float32),
        "q": state.q, "v": state.v, "t": state.t,
        "island": nobody.island.astype(np.int32), "last_motors": np.zeros(model.topology.nv, real),
        "motors": model.motor_target, "pushes": np.zeros((links, 6), real),
        "pose": link_states.pose, "velocity": np.reshape(velocity, (links, 6)),
        "missed": np.zeros((), real), "windows": np.int32(0), "saved": np.int32(0), "fresh": np.int32(0),
        "asleep": np.zeros(links, np.int32),
        "layers": np.reshape(np.array(model.topology.shape_layers, np.uint32).view(np.int32), (-1, 2)),
        "parameters": parameters.numbers,
    }  # fmt: skip
    if live._triggers:
        kept["inside"] = inside_at_start(live)
        kept["crossed"] = np.zeros_like(kept["inside"])
    if any(loop.switched for loop in model.topology.loops):
        kept["felt"] = np.zeros((links, 6), real)
    if movable_dofs(model).any():
        kept["targets"] = np.zeros(model.topology.nv, real)
        kept["aimed"] = np.zeros(model.topology.nv, np.int32)
    if model.topology.filtered:
        kept["ignored"] = np.zeros(len(model.topology.pairs), np.int32)
    whole = "island", "windows", "saved", "fresh", "asleep", "layers", "ignored", "aimed", "inside", "crossed"
    types = dict.fromkeys(whole, np.int32) | {"behind": np.float32}
    fields = {name: Field(np.array(x, types.get(name, real), order="C")) for name, x in kept.items()}
    made = Fields(header, ("q", "v", "t", "island", "last_motors"), fields)
    fields["saved"] = Field(np.array(made.awake, np.int32))
    return made


def movable_dofs(model: Model) -> np.ndarray:
    """Degrees of freedom that `Live.move_joint` moves (nv,) bool: of joints without a quaternion, with rigid motors."""
    joints = np.repeat(np.isin(model.topology.joints, TURNING), np.diff(model.topology.v_start))
    return ~joints & np.isinf(np.asarray(model.motor_kd))
