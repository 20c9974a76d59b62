"""Frames: the base of `Live`, a world that is stepped frame by frame, queried, saved and rolled back."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from copy import copy
from time import perf_counter
from typing import NamedTuple, Unpack

import numpy as np
from numpy.typing import DTypeLike

from ...collision.poses import Array
from ...collision.shapes import ALL_LAYERS, Shape
from ...engine import results
from ...engine.shaped import Float
from ...engine.state import State
from ...integrators.frame import Frame, Touching
from ...integrators.options import OptionKeywords, Options
from ...integrators.snapshots import state_hash
from ..sources import SceneLike, scene_of_links
from . import arguments, saves
from .asleep import Asleep
from .background import in_background
from .between import between
from .changes import Changes
from .growing import beginning, larger
from .parts import Parts
from .pool import Pool, with_spares
from .standing import LinkStates, WorldState
from .touching import Bodies, Contact, contacts_of
from .triggers import Trigger, compose_poses


class ComputedFrame(NamedTuple):
    """A computed frame: its first state, the sleep then, the commands to the motors, and the pushes.
    dt: its length, took: the time of its computation, waited: that part of it in which a program with larger
    capacities was made and computed it again [s]."""

    before: State
    asleep: Asleep
    motors: Array
    pushes: Array
    frame: Frame
    link_states: LinkStates
    dt: float
    took: float
    waited: float


class Last(NamedTuple):
    """The last frame, of dt [s], between these bodies.  pushes: (nl, 6) on the links through it."""

    bodies: Bodies
    frame: Frame
    dt: float
    pushes: Array


class SteppedWorld:
    """See `carom.Live`."""

    def __init__(
        self,
        scene: SceneLike,
        *,
        dt: float = 1 / 60,
        budget: float | None = None,
        sleep_speed: float = 0.0,
        pool: Pool | None = None,
        probes: Sequence[Shape] = (),
        dtype: DTypeLike | None = None,
        warm: bool = True,
        options: Options | None = None,
        **keywords: Unpack[OptionKeywords],
    ) -> None:
        spec = scene_of_links(scene, "Live")
        self._probes = tuple(arguments.shapes("probes", probes))
        self.dt = arguments.seconds("dt", dt)
        budget = None if budget is None else arguments.seconds("budget", budget)
        slow = arguments.speed("sleep_speed", sleep_speed)
        self._made_with = dtype, arguments.options_of_frames(self.dt, options, keywords), budget, slow
        self._parts = Parts(spec, () if pool is None else (pool,), *self._made_with)
        self._outgrown: list[Parts] = []
        self._larger: Future[SteppedWorld] | None = None
        self.model = self._parts.model
        self._changes = Changes(self._parts.spec, self.model, self._parts.bodies)
        self._calling_back = False
        self._callbacks: list[tuple[Callable[[Contact], object], str | None]] = []
        self._triggers: list[Trigger] = []
        self._warned: set[results.Code] = set()
        self._coming: Future[ComputedFrame] | None = None
        self._took, self._wires = [0.0, 0.0], None
        self._last: Last | None = None
        self._last_during: Touching | None = None  # of the frame of `_contacts`
        self._contacts: Callable[[], list[Contact]] | None
        self.reset()
        self._is_warm = warm
        if warm:
            self._warm(self._probes)

    # -- time ------------------------------------------------------------------------------------------------

    def step(self, dt: float | None = None) -> None:
        """Step one frame of dt seconds (None: the world's own), with the forces applied since the last one."""
        self._idle()
        self._not_in_callback()
        self._finish_frame(self._frame_task(dt)())

    def begin_step(self, dt: float | None = None) -> None:
        """Begin `step` on another thread, while this one draws: `end_step` waits for it, and calls callbacks.

        Until then the world has its state before the frame. Forces that are applied meanwhile are the next frame's; all
        other changes raise RuntimeError.
        """
        self._idle()
        self._not_in_callback()
        self._coming = _another_thread().submit(self._frame_task(dt))

    def end_step(self) -> None:
        """Wait for the frame that `begin_step` began, if there is one."""
        if self._coming is not None:
            coming, self._coming = self._coming, None
            self._finish_frame(coming.result())

    def _idle(self) -> None:
        if self._coming is not None:
            raise RuntimeError("a frame is on its way, of begin_step(): call end_step() first")

    def _not_in_callback(self) -> None:
        if self._calling_back:
            raise RuntimeError("a callback of on_contact or of a trigger is in the frame's end: step after it returns")

    def _frame_task(self, dt: float | None) -> Callable[[], ComputedFrame]:
        """A function that computes a frame, and changes nothing of the world."""
        if self._larger is not None and self._larger.done():
            self._grow()
        real = self.model.mass.dtype.type
        requested = real(arguments.seconds("dt", self.dt if dt is None else dt)) + real(self.behind)
        motors, pushes = self._commands(requested), self._pushes.copy()
        self._pushes[:] = 0  # even if the frame fails: they may be the cause, and the next one would fail too
        asleep, before = self._now.asleep.after_pushes(pushes, motors), self.state

        def compute() -> ComputedFrame:
            began = perf_counter()
            frame, link_states = self._parts.stepper.step(before, asleep.island, pushes, motors, requested)
            took = perf_counter() - began
            waited = self._parts.stepper.waited
            return ComputedFrame(before, asleep, motors, pushes, frame, link_states, float(requested), took, waited)

        return compute

    def _commands(self, dt: np.floating) -> Array:
        """Commands (nv,) to the motors for a frame of dt [s]; motors of `move_joint` stop afterwards."""
        motors = self._motors.astype(self.state.q.dtype)
        for link, q in self._targets.items():
            coordinates, dofs = self._now.joint(link)
            motors[dofs] = (q - self.state.q[coordinates]) / dt
            self._motors[dofs] = 0
        self._targets.clear()
        return motors

    def _finish_frame(self, computed: ComputedFrame) -> None:
        """Set the world's state after a frame, and call the callbacks."""
        before, asleep, motors, pushes, frame, link_states, _, *self._took = computed
        parts = self._parts
        code = results.Code(int(frame.code))
        if code.grave:
            results.raise_for(frame.code, self.state.t)
        if code != results.OK and code not in self._warned:
            self._warned.add(code)
            warnings.warn(f"Live, t = {self.time:.6g} s: {results.MESSAGES[code]}", results.SimulationWarning, 3)
        again = self._contacts if frame.during is self._last_during else None
        earlier = self._now.link_states.pose
        self._set_state(self._now.at(frame.state, asleep.after(frame.island, motors), link_states))
        self._earlier = earlier
        left = float(np.float32(frame.left))
        self.behind, self.windows = min(left, saves.LATEST), int(frame.windows)
        self.missed += max(left - saves.LATEST, 0.0)
        self._last_during, self._last = frame.during, Last(parts.bodies, frame, computed.dt, pushes)
        self._contacts = again or functools.cache(
            lambda: contacts_of(
                parts.bodies, frame, parts.stepper.sleeping_contacts(before, asleep.island, motors, frame)
            )
        )
        self._calling_back = True
        try:
            self._call_back()
        finally:
            self._calling_back = False

    def _call_back(self) -> None:
        """Call the callbacks of contacts and triggers."""
        for contact in self.contact_events() if self._callbacks else ():
            for callback, body in tuple(self._callbacks):  # callbacks may add some
                if body in (None, contact.a, contact.b):
                    callback(contact)
        for trigger in tuple(self._triggers):
            came, went = trigger.update(self._within(trigger))
            for tell, bodies in ((trigger.on_enter, came), (trigger.on_leave, went)):
                if tell is not None:
                    for body in bodies:
                        tell(body)

    def reset(self) -> None:
        """Restore the scene's start, the motors' targets, and the scene's materials, layers and joints."""
        self._idle()
        self._changes.reset()
        self._use()
        self._motors = np.array(self.model.motor_target, np.float64)
        self._targets: dict[int, Array] = {}
        self.behind = self.missed = 0.0
        self.windows = 0
        self._pushes = np.zeros((self.model.topology.n_links, 6), self.model.mass.dtype)
        self._set_state(self._parts.start)
        self._earlier = self._now.link_states.pose
        self._update_triggers()

    @property
    def time(self) -> float:
        """The world's clock [s]; if frames had too few ticks, it lags by `behind` [s], and by `missed` [s] that was
        skipped."""
        return float(self.state.t)

    @property
    def state(self) -> State:
        """q, v, t as numpy arrays, spare bodies included; `model` is their model."""
        return self._now.state

    # -- more bodies -----------------------------------------------------------------------------------------

    def add_spares(self, pool: Pool, *, wait: bool = False) -> None:
        """Add spare bodies, in the form of the world's `pool`, while it runs.

        The world is rebuilt with them on another thread, which takes seconds, and goes on meanwhile; `add_body` has
        them from the first `step` on that finds them ready (until then `growing` is true). That time depends on the
        machine. A program that ends meanwhile waits for the thread.
        wait: block until they are there, for lockstep and replays.
        Saves of the smaller world can still be loaded.
        """
        self._idle()
        if self._larger is not None:
            raise RuntimeError("add_spares: the world is growing already: go on when world.growing is False")
        pools = (*self._parts.pools, pool)
        with_spares(self._parts.scene, pools)  # raises if they are invalid
        self._larger = in_background(functools.partial(self._twin, pools))
        if wait:
            self._grow()

    @property
    def growing(self) -> bool:
        """Return whether spare bodies of `add_spares` are not ready yet."""
        return self._larger is not None

    def _twin(self, pools: Sequence[Pool]) -> SteppedWorld:
        """The same world with other pools, at its start, compiled."""
        twin = copy(self)
        twin._parts = Parts(self._parts.scene, pools, *self._made_with)
        twin._parts.stepper.expect(self._parts.stepper)
        twin.model = twin._parts.model
        twin._changes = Changes(twin._parts.spec, twin.model, twin._parts.bodies)
        twin._triggers, twin._coming, twin._wires = [], None, None
        twin.reset()
        if self._is_warm:
            twin._warm(self._probes)
        return twin

    def _grow(self) -> None:
        """Change over to the larger world, if it is ready."""
        assert self._larger is not None
        coming, self._larger = self._larger, None
        twin, small = coming.result(), self._parts
        twin._changes.take_over(self._changes)
        self._outgrown.append(small)
        self._parts, self._changes, self.model = twin._parts, twin._changes, twin._changes.model
        self._parts.stepper.use(self.model)
        now = larger(self._now, self._parts)
        self._now = WorldState(self.model, self._parts.spares, now.state, now.asleep)
        pose = self._now.link_states.pose
        self._earlier, self._pushes = beginning(self._earlier, pose), beginning(self._pushes, twin._pushes)
        self._motors = beginning(self._motors, twin._motors)
        self._last_during, self._wires = None, None
        if self._last is not None:
            pushes = beginning(self._last.pushes, np.zeros_like(twin._pushes))
            self._last = self._last._replace(pushes=pushes)

    # -- bodies ----------------------------------------------------------------------------------------------

    @property
    def bodies(self) -> tuple[str, ...]:
        """Bodies and links that are there, in the order of `poses`."""
        return self._now.bodies

    @property
    def asleep(self) -> tuple[str, ...]:
        """Bodies that sleep: they rest, and cost nothing until another body comes near or a push acts."""
        sleeps = self._now.sleeps[self._now.links]
        return tuple(name for name, does in zip(self._now.bodies, sleeps, strict=True) if does)

    def poses(self, alpha: float = 1.0) -> Float[np.ndarray, "n 7"]:
        """Poses of `bodies`, a row each: x y z of the origin [m], w x y z.

        alpha: from 0, before the last `step`, to 1, after it, to draw between frames. Bodies that were teleported
        since have their new pose.
        """
        now = self._now.link_states.pose[self._now.links]
        part = arguments.fraction("alpha", alpha)
        return now if part == 1 else between(self._earlier[self._now.links], now, part)

    def pose(self, body: str) -> Float[np.ndarray, " 7"]:
        """Pose of a body: x y z of its origin [m], w x y z."""
        return self._now.link_states.pose[self._now.link(body)]

    def velocity(self, body: str) -> Float[np.ndarray, " 6"]:
        """Velocity of a body: angular, and that of the centre of mass [rad/s, m/s]."""
        return self._now.velocity(body)

    def contact_events(self) -> list[Contact]:
        """Contacts of the last frame, one record per pair of bodies; none after a change of the state by hand."""
        return [] if self._contacts is None else list(self._contacts())

    def on_contact(self, callback: Callable[[Contact], object], body: str | None = None) -> None:
        """Call `callback` for every contact of later frames, or for those of one body, at the end of `step`."""
        function = arguments.function("callback", callback, "a Contact")
        self._callbacks.append(
            (function, None if body is None else arguments.one_of("body", body, self._parts.touchable))
        )

    def _within(self, trigger: Trigger, then: WorldState | None = None) -> tuple[str, ...]:
        """Names of the bodies that are in the trigger now, or were then."""
        now, carrier = then or self._now, trigger.body
        if carrier in now.hidden:
            return ()
        q, pose = now.state.q, trigger.place.astype(now.state.q.dtype)
        there = (
            pose
            if carrier is None
            else np.array(compose_poses(pose, now.link_states.pose[now.link(carrier)]), pose.dtype)
        )
        among = self._changes.shapes_in(ALL_LAYERS)
        overlapping = self._parts.questions.overlaps(q, trigger.shape, there[:3], there[3:], 0.0, now.hidden, among)
        return tuple(name for name in overlapping if name != carrier and name in now.bodies)

    def _update_triggers(self) -> None:
        """Update the bodies in triggers, without callbacks."""
        for trigger in self._triggers:
            trigger.update(self._within(trigger))

    # -- rollback -----------------------------------------------------------------------------------------

    def save_state(self) -> bytes:
        """Save all that decides the next frames, except their forces and motors: those are inputs."""
        asleep = self._now.asleep
        known = (asleep.island, asleep.motors) if asleep.some else (asleep.island[:0], asleep.motors[:0])
        return saves.pack(saves.Saved(self.state.q, self.state.v, self.state.t, self.behind, *known), self._parts.mark)

    def load_state(self, data: bytes) -> None:
        """Restore a state of `save_state`; raises SaveError for one of another world. Pending forces and moves are
        dropped."""
        self._idle()
        marks = {parts.mark: parts for parts in (*self._outgrown, self._parts)}
        parts = marks.get(saves.mark_of(data, marks), self._parts)
        saved = saves.unpack(data, parts.mark, parts.model.topology, self.state.q.dtype)
        self._pushes[:] = 0
        self._targets.clear()
        self.behind = saved.behind
        asleep = parts.start.asleep
        asleep = asleep.after(saved.island, saved.motors) if len(saved.island) else asleep
        loaded = larger(WorldState(parts.model, parts.spares, State(saved.q, saved.v, saved.t), asleep), self._parts)
        self._set_state(self._now.at(loaded.state, loaded.asleep))
        self._earlier = self._now.link_states.pose
        self._update_triggers()

    def hash(self) -> str:
        """Hash of the state, by `carom.state_hash`."""
        return str(state_hash(self.state))

    def _use(self) -> None:
        """Use the model with other numbers. All bodies wake: their supports may have changed."""
        model = self._changes.model
        if model is not self.model:
            try:
                self._parts.stepper.check(model)
            except ValueError:
                self._changes.model = self.model  # a refused change has no effect
                raise
            self.model = model
            self._parts.stepper.use(model)
            self._set_state(self._now.at(self.state, Asleep.nobody(self.model.topology)))

    def _set_state(self, world: WorldState) -> None:
        self._idle()
        self._now, self._contacts = world, None

    def _set_by_hand(self, world: WorldState) -> None:
        """Set a state in which bodies were moved by hand."""
        self._idle()
        old, new = self._now.link_states.pose, world.link_states.pose
        self._earlier = np.where((old != new).any(-1, keepdims=True), new, self._earlier)
        self._set_state(world)

    def _warm(self, probes: Sequence[Shape]) -> None:
        """Run everything once, and restore the state. probes: shapes of later queries."""
        nobody = self._now.asleep.island
        self._parts.stepper.warm(self.state, nobody, self._pushes, self._motors.astype(self.state.q.dtype), self.dt)
        self.poses()


@functools.cache
def _another_thread() -> ThreadPoolExecutor:
    """The thread that computes frames of all worlds, one after another."""
    return ThreadPoolExecutor(1, "carom.Live")
