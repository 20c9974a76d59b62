"""The programs that move a world: a frame, and the answer to a blow. Each is compiled once, for good."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from ...collision.poses import Array
from ...contact.determine import default_capacity
from ...engine.closures.blocks import velocity_changes
from ...engine.dynamics.rnea import rnea
from ...engine.dynamics.wrenches import joint_forces
from ...engine.model import Model
from ...engine.native.primitive import native
from ...engine.packed import Packed, packed, unpacked
from ...engine.state import State
from ...integrators.frame import Frame, frame
from ...integrators.motion.forces import Drive
from ...integrators.room import given_rooms, with_more
from ...integrators.rules import Rules
from ...integrators.sleep import may_sleep
from .pool import Spares

# what rested is kept of so many steps of a frame, the first of them and the last; of fewer where that is so many rows
STEPS, ROWS = 16, 2**16


class Stepper:
    """Of one model. Arrays in and out are numpy's; a state is q, v, t without its spare bodies having moved."""

    def __init__(
        self,
        model: Model,
        rules: Rules,
        spares: Spares,
        max_events: int,
        max_dt: float,
        max_ticks: int,
        window: float | None,
    ) -> None:
        if max_ticks < 1:
            raise ValueError(f"max_ticks is {max_ticks}; it must be at least 1: a frame of no tick goes nowhere")
        self._model, self._spares, self._dtype = model, spares, np.dtype(model.mass.dtype)
        self._rules, self._given, self._max_events = rules, given_rooms(rules), max_events
        self._bounds = np.asarray(max_dt, self._dtype), np.asarray(max_ticks, np.int32)
        self._bounds += () if window is None else (np.asarray(window, self._dtype),)
        still = np.zeros(model.topology.nv, self._dtype)
        self._weights = np.asarray(rnea(model, np.asarray(spares.parked, self._dtype), still, still))
        self._sleeps = may_sleep(model.topology, Drive())
        self._asleep: tuple[list[bytes], Frame] | None = None

    def step(self, state: State, wrenches: Array, motors: Array, dt: float) -> Frame:
        """A frame of dt [s]. wrenches: (nl, 6) moment about each link's origin [N m] and force [N], world axes.
        motors: (nv,) what they are told.

        A world asleep, that is one that the last frame left as it was, is left alone: the same frame comes again.
        """
        given: list[Any] = [state.q, state.v, wrenches, motors, np.asarray(dt, self._dtype)]
        bits = [x.tobytes() for x in given]
        if self._asleep and bits == self._asleep[0]:
            frame = self._asleep[1]
            end: Any = np.asarray(state.t + given[-1] - frame.left, self._dtype)
            return frame._replace(state=State(frame.state.q, frame.state.v, end))
        frame = self._made(state, wrenches, motors, dt)
        after: list[Any] = [frame.state.q, frame.state.v]
        stays = self._sleeps and bits[:2] == [x.tobytes() for x in after]
        self._asleep = (bits, frame) if stays else None
        return frame

    def _made(self, state: State, wrenches: Array, motors: Array, dt: float) -> Frame:
        held, waits = np.zeros_like(self._weights), self._spares.owned[self._spares.waiting(state.q)]
        dofs, coordinates = waits[:, 2, None] + np.arange(6), waits[:, 1, None] + np.arange(7)
        held[dofs] = self._weights[dofs]
        given = (x.astype(self._dtype) for x in (wrenches, motors, held, np.asarray(dt)))
        numbers = packed(self._model), state, *given, *self._bounds
        done = self._advanced(numbers)
        while (more := with_more(self._rules, *self._ended(done), self._given)) != self._rules:
            self._rules = more  # from here on: what needed it once may need it again
            done = self._advanced(numbers)
        q: Any = np.array(done.state.q)
        v: Any = np.array(done.state.v)
        q[coordinates], v[dofs] = self._spares.parked[coordinates], 0
        return done._replace(state=State(q, v, done.state.t))

    def _advanced(self, numbers: Any) -> Frame:
        room = self._rules.max_contacts or default_capacity(self._model.topology)
        static = self._rules, self._max_events, max(2, min(STEPS, ROWS // room))
        return jax.device_get(_advance(static, *numbers))

    @staticmethod
    def _ended(frame: Frame) -> tuple[int, int, int]:
        return int(frame.code), int(frame.contacts), int(frame.pairs)

    def answer(self, q: Any, wrenches: Array) -> Array:
        """Change of the velocities (nv,) when links are struck by wrenches (nl, 6) [N m s, N s] at once."""
        return np.asarray(velocity_changes(self._model, q, wrenches.astype(self._dtype)))


@native
def _advance(
    static: Any, given: Packed | Model, state: State, wrenches: Any, motors: Any, held: Any, dt: Any, *bounds: Any
) -> Frame:
    model = unpacked(given)
    forces = joint_forces(model, state.q, wrenches) + held
    return frame(static, model, state, Drive(motors, forces), dt, *bounds)
