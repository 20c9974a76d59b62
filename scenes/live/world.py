"""Live: a world that a game steps, pushes, asks and takes back. `docs/live.md` is the guide."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from time import perf_counter
from typing import Any, NamedTuple, Unpack

import jax
import numpy as np

from ...collision.plain import Numbers
from ...collision.poses import Array
from ...collision.queries.rays import RayHits
from ...collision.shapes import ALL_LAYERS, Shape
from ...engine import results
from ...engine.closures.reactions import loop_wrenches
from ...engine.dynamics.trees import trees_of
from ...engine.state import State
from ...integrators.frame import Frame
from ...integrators.options import OptionKeywords, Options
from ...integrators.rules import Rules
from ...integrators.snapshots import model_hash, state_hash
from ..chains.spec import ChainSpec, refuse_chain
from ..compile import compile_scene
from ..sources import load
from ..spec import SceneSpec, StaticSpec
from . import arguments, saves
from .asking import Hit, Questions, placed_shape
from .asleep import Asleep
from .between import between
from .changes import Changes, joined_velocities
from .debug import DebugLines, Wires, contact_lines, islands, joined_lines, trigger_lines
from .explained import explained
from .pool import Pool, Spares, with_spares
from .standing import Places, Standing
from .stepping import Stepper
from .touching import Bodies, Contact, contacts_of
from .triggers import Told, Trigger, carried

MAX_TICKS, MAX_EVENTS, WINDOW = 64, 1024, 1e-3  # of a frame, where nobody says otherwise
FREE = "floating"
RENAMED = {
    "spawn": "add_body", "despawn": "remove_body", "ray": "raycast", "rays": "raycasts", "contacts": "contact_events",
    "save": "save_state", "load": "load_state",
}  # fmt: skip
ORIGIN, NO_TURN, NOTHING = (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0), np.zeros(3)


class Passed(NamedTuple):
    """A frame that was worked out: from which state, who slept, what motors were told.
    dt: its length, took: how long it was worked out [s]."""

    before: State
    asleep: Asleep
    motors: Array
    frame: Frame
    places: Places
    dt: float
    took: float


class Live:
    """A scene that is stepped frame by frame, for games. Bodies go by their names; SI units, vectors in world axes.

    scene: SceneSpec, SceneBuilder, or what `carom.load` takes.
    dt: length of a frame [s].
    budget: time that a frame may take to compute [s]; None: as long as it takes. It has as many ticks, and windows as
        long, as fit by what ticks took lately, so what happens depends on the machine: not for lockstep or replays.
    pool: spare bodies: {"ball": 8} for eight more like the scene's body, {"shot": (BodySpec(...), 8)} for others.
    probes: shapes such as `overlap` will be asked with.
    warm: compile all of it now, so that nothing is compiled later.
    options: how time passes, see `carom.Options`.  keywords: its fields one by one, which go before it. Without options
        they begin with max_dt a frame, max_ticks 64 and max_events 1024, of a frame, and window 1e-3: what is left of
        a frame after max_ticks passes in windows, which `windows` counts. With window=None there are none, and what a
        frame did not reach is made up for in later ones (`behind`). resting is "solve".
    """

    def __init__(
        self,
        scene: Any,
        *,
        dt: float = 1 / 60,
        budget: float | None = None,
        pool: Pool | None = None,
        probes: Sequence[Shape] = (),
        dtype: Any = None,
        warm: bool = True,
        options: Options | None = None,
        **keywords: Unpack[OptionKeywords],
    ) -> None:
        made = isinstance(scene, (SceneSpec, ChainSpec))
        spec: Any = scene if made else scene.build() if hasattr(scene, "build") else load(scene)
        refuse_chain(spec, "Live")
        spec, names = with_spares(spec, {} if pool is None else pool)
        shapes = arguments.shapes("probes", probes)
        self.dt = arguments.seconds("dt", dt)
        self.model, start = compile_scene(spec, dtype=dtype)
        spares, state = Spares.of(self.model, np.asarray(start.q), names), jax.device_get(start)
        self._start = Standing(self.model, spares, state, Asleep.nobody(self.model.topology))
        options = _of_frames(self.dt, options, keywords)
        limits = bool(np.isfinite([self.model.lower, self.model.upper]).any())
        limits |= not self.model.topology.pairs  # where nothing can touch, a step looks at limits, be there none
        rules = Rules.of(options, limits)
        rules.check(self.model)
        budget = None if budget is None else arguments.seconds("budget", budget)
        self._stepper = Stepper(self.model, rules, self._start.spares, options, budget)
        self._spec, self._bodies = spec, Bodies.of(spec, self.model.topology)
        self._touchable = tuple(dict.fromkeys(self._bodies.owners))
        statics = (static.name for static in spec.statics if static.name)
        self._named = tuple(dict.fromkeys([*self.model.topology.names, *self._touchable, *statics]))
        self._questions = Questions(spec, self.model, self._bodies)
        self._mark, self._changes = model_hash(self.model), Changes(spec, self.model, self._bodies)
        self._origins = {x.name: x.position for x in spec.statics if isinstance(x, StaticSpec) and x.name}
        self._callbacks: list[tuple[Callable[[Contact], Any], str | None]] = []
        self._triggers: list[Trigger] = []
        self._warned: set[results.Code] = set()
        self._coming: Future[Passed] | None = None
        self._took, self._last, self._wires = 0.0, None, None
        self._told: Any = None  # of the frame that `_contacts` are of
        self._contacts: Callable[[], list[Contact]] | None
        self.reset()
        if warm:
            self._warm(shapes)

    def __getattr__(self, name: str) -> Any:
        """Names of the version before this one."""
        if name not in RENAMED:
            raise AttributeError(f"'Live' object has no attribute {name!r}", name=name, obj=self)
        warnings.warn(f"Live.{name} is called {RENAMED[name]} now", DeprecationWarning, 2)
        return getattr(self, RENAMED[name])

    # -- time ------------------------------------------------------------------------------------------------

    def step(self, dt: float | None = None) -> None:
        """One frame of dt seconds (None: the world's own), with the forces applied since the last one."""
        self._idle()
        self._done(self._begun(dt)())

    def begin_step(self, dt: float | None = None) -> None:
        """`step` on another thread, while this one draws: `end_step` waits for it, and calls back.

        Until then the world answers as it stood before the frame. Forces that are applied meanwhile are the next
        frame's; all else that would change it is a RuntimeError.
        """
        self._idle()
        self._coming = _another_thread().submit(self._begun(dt))

    def end_step(self) -> None:
        """Wait for the frame that `begin_step` began; without one, nothing."""
        if self._coming is not None:
            coming, self._coming = self._coming, None
            self._done(coming.result())

    def _idle(self) -> None:
        if self._coming is not None:
            raise RuntimeError("a frame is on its way, of begin_step(): call end_step() first")

    @property
    def _changing(self) -> Changes:
        self._idle()
        return self._changes

    def _begun(self, dt: float | None) -> Callable[[], Passed]:
        """What works a frame out, and touches nothing of the world."""
        real = self.model.mass.dtype.type
        asked = real(arguments.seconds("dt", self.dt if dt is None else dt)) + real(self.behind)
        motors, pushes = self._motors.astype(self.state.q.dtype), self._pushes.copy()
        self._pushes[:] = 0  # also where the frame fails: they may be why, and the next one would fail as well
        asleep, before = self._now.asleep.pushed(pushes, motors), self.state

        def passed() -> Passed:
            began = perf_counter()
            frame, places = self._stepper.step(before, asleep.island, pushes, motors, asked)
            return Passed(before, asleep, motors, frame, places, float(asked), perf_counter() - began)

        return passed

    def _done(self, passed: Passed) -> None:
        """The world after a frame, and who asked is told."""
        before, asleep, motors, frame, places, _, self._took = passed
        code = results.Code(int(frame.code))
        if code.grave:
            results.raise_for(frame.code, self.state.t)
        if code != results.OK and code not in self._warned:
            self._warned.add(code)
            warnings.warn(f"Live, t = {self.time:.6g} s: {results.MESSAGES[code]}", results.SimulationWarning, 2)
        again = self._contacts if frame.carried is self._told else None
        earlier = self._now.places.pose
        self._stand(self._now.at(frame.state, asleep.after(frame.island, motors), places))
        self._earlier = earlier
        left = float(np.float32(frame.left))
        self.behind, self.windows = min(left, saves.LATEST), int(frame.windows)
        self.missed += max(left - saves.LATEST, 0.0)
        self._told, self._last = frame.carried, (frame, passed.dt)
        self._contacts = again or functools.cache(
            lambda: contacts_of(self._bodies, frame, self._stepper.held(before, asleep.island, motors, frame))
        )
        for contact in self.contact_events() if self._callbacks else ():
            for callback, body in tuple(self._callbacks):  # who is called may add some
                if body in (None, contact.a, contact.b):
                    callback(contact)
        for trigger in tuple(self._triggers):
            came, went = trigger.found(self._within(trigger))
            for tell, bodies in ((trigger.on_enter, came), (trigger.on_leave, went)):
                if tell is not None:
                    for body in bodies:
                        tell(body)

    def reset(self) -> None:
        """Back to the scene's start; motors back to their targets, materials, layers and joints to the scene's."""
        self._idle()
        self._changes.reset()
        self._use()
        self._motors = np.array(self.model.motor_target, np.float64)
        self.behind = self.missed = 0.0
        self.windows = 0
        self._pushes = np.zeros((self.model.topology.n_links, 6), self.model.mass.dtype)
        self._stand(self._start)
        self._earlier = self._now.places.pose
        self._look_again()

    @property
    def time(self) -> float:
        """The world's clock [s]; where frames had too few ticks for all that happened it lags by `behind` [s], and by
        `missed` [s] that was given up."""
        return float(self.state.t)

    @property
    def state(self) -> State:
        """q, v, t as numpy arrays, spare bodies included; `model` is their model."""
        return self._now.state

    # -- pushing ---------------------------------------------------------------------------------------------

    def apply_force(self, body: str, force: Numbers, point: Numbers | None = None, *, frame: str = "world") -> None:
        """Push a body [N] through the next frame, at a point [m] (None: its centre of mass).

        frame: "world", or "body": force and point are in the body's axes, the point from its origin.
        """
        f = arguments.numbers("force", force, 3)
        self._pushes = self._now.pushed(self._pushes, body, f, point, NOTHING, frame)

    def apply_torque(self, body: str, torque: Numbers, *, frame: str = "world") -> None:
        """Turn a body [N m] through the next frame."""
        m = arguments.numbers("torque", torque, 3)
        self._pushes = self._now.pushed(self._pushes, body, NOTHING, None, m, frame)

    def apply_impulse(self, body: str, impulse: Numbers, point: Numbers | None = None, *, frame: str = "world") -> None:
        """Strike a body [N s] at once, at a point as in `apply_force`; a tree answers as a whole."""
        nothing, p = np.zeros_like(self._pushes), arguments.numbers("impulse", impulse, 3)
        struck = self._now.pushed(nothing, body, p, point, NOTHING, frame)
        answer = self._stepper.answer(self.state.q, struck)
        with np.errstate(over="ignore"):  # which is refused
            self._stand(self._now.changed(v=self.state.v + answer))

    def set_motors(self, values: Numbers) -> None:
        """What all motors are told from now on, (nv,); see `carom.Motor`."""
        self._motors = arguments.numbers("values", values, self.model.topology.nv)

    def motor(self, link: str, value: Numbers) -> None:
        """What the motors of one joint are told from now on."""
        _, dofs = self._now.joint(self._now.link(link, "link"))
        self._motors[dofs] = arguments.numbers("value", value, dofs.stop - dofs.start)

    def set_material(
        self,
        body: str,
        *,
        friction: float | None = None,
        restitution: float | None = None,
        tangential_restitution: float | None = None,
    ) -> None:
        """Change what all shapes of a body, or of a static, are made of from now on; what is None stays as it is.

        Pairs follow as in a scene: the geometric mean of friction, the smaller restitution. Like motors this is an
        input of the frames to come: a save does not hold it, and `reset` undoes it. Who loads a save of before it says
        it again, which wakes all that sleeps.
        """
        given = {"friction": friction, "restitution": restitution, "tangential_restitution": tangential_restitution}
        self._changing.material(arguments.one_of("body", body, self._touchable), given)
        self._use()

    def set_pair_material(
        self,
        a: str,
        b: str,
        *,
        friction: float | None = None,
        restitution: float | None = None,
        tangential_restitution: float | None = None,
    ) -> None:
        """The same of two bodies, or a body and a static, where they touch each other, until `set_material` is told of
        one of them."""
        given = {"friction": friction, "restitution": restitution, "tangential_restitution": tangential_restitution}
        self._changing.pair_material(*self._two(a, b), given)
        self._use()

    def set_surface_velocity(self, static: str, linear: Numbers = ORIGIN, angular: Numbers = ORIGIN) -> None:
        """How the surface of a static goes, which stays where it is: a conveyor [m/s], a turntable [rad/s].

        Of a static with a name, in a scene in which the surface of some static moves. An input, as `set_material`.
        """
        origin = np.asarray(self._origins[arguments.one_of("static", static, self._origins)], float)
        velocity = arguments.numbers("linear", linear, 3), arguments.numbers("angular", angular, 3)
        self._changing.surface(static, *velocity, origin)
        self._use()

    def set_layers(self, body: str, *, group: int | None = None, mask: int | None = None) -> None:
        """The layers that a body, or a static, is in (group), and those that it touches (mask); None: as they are.

        Two shapes touch where each is in a layer of the other's mask. In scenes with filtering=True. An input, as
        `set_material`. What overlaps when it begins to touch comes out.
        """
        self._changing.layers(arguments.one_of("body", body, self._touchable), group, mask)
        self._use()

    def ignore_collision(self, a: str, b: str, ignore: bool = True) -> None:
        """Two bodies go through each other, or no longer; in scenes with filtering=True, an input as `set_material`."""
        if type(ignore) is not bool:
            raise TypeError(f"ignore is {ignore!r}; it must be True or False")
        self._changing.ignore(*self._two(a, b), ignore)
        self._use()

    def attach(self, joint: str, point: Numbers | None = None) -> None:
        """Join the ends of a loop that can be cut (`SceneBuilder.add_loop(active=...)`) where they are now.

        joint: the loop's name.  point: where in the world the joint is [m]; None: at the loop's frame on link_a. The
        distance of a rod is what it is now. What moved apart is stopped by an impulse of the joint. An input, as
        `set_material`.
        """
        where = None if point is None else arguments.numbers("point", point, 3)
        loop = self.model.topology.loops[self._changes.number(joint)]
        for link in (loop.a, loop.b):
            if link >= 0:
                self._now.link(self.model.topology.names[link])
        self._changing.attach(joint, self._now.places.pose, where)
        self._use()
        q, v = joined_velocities(self.model, *(self.state.q, self.state.v, self.state.t))
        self._stand(self._now.changed(q=np.asarray(q), v=np.asarray(v)))

    def detach(self, joint: str) -> None:
        """Cut a loop that can be cut."""
        self._changing.detach(joint)
        self._use()

    @property
    def attached(self) -> tuple[str, ...]:
        """Names of the loops that can be cut, and hold now."""
        return self._changes.attached

    def joint_force(self, joint: str) -> Array:
        """(3,) what a loop that can be cut puts on link_a now, world axes [N]: to keep its ends together as everything
        moves and weighs. What contacts add to it acts by impulses, and is not felt."""
        k = self._changes.number(joint)
        return np.asarray(loop_wrenches(self.model, self.state), np.float64)[k, 3:]

    def _two(self, a: str, b: str) -> tuple[str, str]:
        return arguments.one_of("a", a, self._touchable), arguments.one_of("b", b, self._touchable)

    def _use(self) -> None:
        """The model that was told something new; who sleeps wakes, for it may be why."""
        model = self._changes.model
        if model is not self.model:
            self._stepper.check(model)
            self.model = model
            self._stepper.use(model)
            self._stand(self._now.at(self.state, Asleep.nobody(self.model.topology)))

    # -- putting elsewhere -----------------------------------------------------------------------------------

    def add_body(
        self,
        name: str,
        position: Numbers,
        quaternion: Numbers = NO_TURN,
        linear_velocity: Numbers = ORIGIN,
        angular_velocity: Numbers = ORIGIN,
    ) -> str:
        """Bring in a spare body of the pool's kind `name`, and say what it is called: the first that waits."""
        body = self._now.spare(name)
        self._put(self._now.put(body, position, quaternion, linear_velocity, angular_velocity))
        return body

    def remove_body(self, body: str) -> None:
        """Send a body that was added back to the pool."""
        self._put(self._now.parked(body))
        self._pushes[self.model.topology.link(body)] = 0

    def teleport(
        self,
        body: str,
        position: Numbers | None = None,
        quaternion: Numbers | None = None,
        linear_velocity: Numbers | None = None,
        angular_velocity: Numbers | None = None,
    ) -> None:
        """Put a free body, or the floating root of a tree, elsewhere; what is None stays as it is."""
        pose, velocity = self.pose(body), self.velocity(body)
        given = (position, quaternion, linear_velocity, angular_velocity)
        now = (pose[:3], pose[3:], velocity[3:], velocity[:3])
        put = (old if new is None else new for new, old in zip(given, now, strict=True))
        self._put(self._now.put(body, *put))

    def set_joint(self, link: str, q: Numbers | None = None, v: Numbers | None = None) -> None:
        """Put a joint at these coordinates, moving at these velocities; what is None stays as it is."""
        self._put(self._now.jointed(link, q, v))

    # -- asking ----------------------------------------------------------------------------------------------

    @property
    def bodies(self) -> tuple[str, ...]:
        """Bodies and links that are there, in the order of `poses`."""
        return self._now.bodies

    def poses(self, alpha: float = 1.0) -> Array:
        """(n, 7) of `bodies`: x y z of the origin [m], w x y z.

        alpha: from 0, before the last `step`, to 1, after it: for who draws between frames. What was put elsewhere
        since is where it was put.
        """
        now = self._now.places.pose[self._now.links]
        part = arguments.fraction("alpha", alpha)
        return now if part == 1 else between(self._earlier[self._now.links], now, part)

    def pose(self, body: str) -> Array:
        """(7,) of a body: x y z of its origin [m], w x y z."""
        return self._now.places.pose[self._now.link(body)]

    def velocity(self, body: str) -> Array:
        """(6,) of a body: angular velocity, and velocity of the centre of mass [rad/s, m/s]."""
        return self._now.velocity(body)

    def contact_events(self) -> list[Contact]:
        """What touched in the last frame, one record a pair of bodies; nothing once the state was changed by hand."""
        return [] if self._contacts is None else list(self._contacts())

    def on_contact(self, callback: Callable[[Contact], Any], body: str | None = None) -> None:
        """Call back for every contact of every frame from now on, or for those of one body, once `step` is done."""
        told = arguments.function("callback", callback, "a Contact")
        self._callbacks.append((told, None if body is None else arguments.one_of("body", body, self._touchable)))

    def raycast(
        self, origin: Numbers, direction: Numbers, max_distance: float = math.inf, *, ignore: Sequence[str] = (),
        mask: int = ALL_LAYERS,
    ) -> Hit | None:  # fmt: skip
        """What a ray hits first; see `carom.cast_rays`.

        ignore: names of bodies that are left out.  mask: only shapes in one of these layers are there for it."""
        one = arguments.numbers("origin", origin, 3), arguments.numbers("direction", direction, 3)
        return self._questions.hit(self.raycasts(*one, max_distance, ignore=ignore, mask=mask), 0)

    def raycasts(
        self, origins: Any, directions: Any, max_distance: float = math.inf, *, ignore: Sequence[str] = (),
        mask: int = ALL_LAYERS,
    ) -> RayHits:  # fmt: skip
        """The same of many rays, (R, 3), as numpy arrays."""
        rays = arguments.vectors("origins", origins), arguments.vectors("directions", directions)
        hidden = arguments.names("ignore", ignore, self._named) | self._now.hidden
        among = self._changes.shapes_in(mask)
        return self._questions.rays(self.state.q, *rays, arguments.metres("max_distance", max_distance), hidden, among)

    def owner(self, shape: int) -> str:
        """Name of the body, link or static that carries a shape of the model, as `raycasts(...).shape` has them."""
        return self._bodies.owners[arguments.count("shape", shape, 0)]

    def overlap(
        self, shape: Shape, position: Numbers = ORIGIN, quaternion: Numbers = NO_TURN, *, within: float = 0.0,
        ignore: Sequence[str] = (), mask: int = ALL_LAYERS,
    ) -> list[str]:  # fmt: skip
        """What a shape put there would overlap, or come within so many metres of: names, the nearest first.
        ignore, mask: see `raycast`."""
        asked, place = arguments.shape("shape", shape), arguments.numbers("position", position, 3)
        pose = placed_shape(asked, place, arguments.quaternion("quaternion", quaternion))
        hidden = self._now.hidden | arguments.names("ignore", ignore, self._named)
        among = self._changes.shapes_in(mask)
        return self._questions.overlaps(self.state.q, asked, pose, arguments.metres("within", within), hidden, among)

    def add_trigger(
        self,
        shape: Shape,
        position: Numbers = ORIGIN,
        quaternion: Numbers = NO_TURN,
        *,
        body: str | None = None,
        on_enter: Told | None = None,
        on_leave: Told | None = None,
    ) -> Trigger:
        """A region that tells who comes in and who goes out; it stops and pushes nothing.

        position, quaternion: where it is, in the world, or in the axes of a `body` that carries it.
        on_enter, on_leave: called after `step` with the name of each body or link that came in or went out in the
        frame, or was put there by hand before it. `load_state` and `reset` call nothing: so a frame that is played
        again calls again. What flies through within one frame is not seen; ask `contact_events` of what it strikes.
        Each shape is asked for as `overlap` is: name its kind in `probes` to have that compiled at the start.
        """
        asked, place = arguments.shape("shape", shape), arguments.numbers("position", position, 3)
        turn = arguments.quaternion("quaternion", quaternion)
        carrier = None if body is None else arguments.one_of("body", body, self.model.topology.names)
        told = [
            None if x is None else arguments.function(name, x, "the name of a body")
            for name, x in (("on_enter", on_enter), ("on_leave", on_leave))
        ]
        trigger = Trigger(asked, np.concatenate([place, turn]), carrier, *told)
        trigger.found(self._within(trigger))
        self._triggers.append(trigger)
        return trigger

    def remove_trigger(self, trigger: Trigger) -> None:
        """It tells nothing from here on."""
        if trigger not in self._triggers:
            raise ValueError("remove_trigger: the world has no such trigger; give one that add_trigger returned")
        self._triggers.remove(trigger)

    def _within(self, trigger: Trigger) -> tuple[str, ...]:
        """Who is in it now."""
        carrier, place = trigger.body, trigger.place
        if carrier in self._now.hidden:
            return ()
        where = (place[:3], place[3:]) if carrier is None else carried(place, self.pose(carrier))
        pose = placed_shape(trigger.shape, *where)
        among = self._changes.shapes_in(ALL_LAYERS)
        found = self._questions.overlaps(self.state.q, trigger.shape, pose, 0.0, self._now.hidden, among)
        return tuple(name for name in found if name != carrier and name in self.bodies)

    def _look_again(self) -> None:
        """Who is in triggers, and nobody is told."""
        for trigger in self._triggers:
            trigger.found(self._within(trigger))

    def explain(self) -> str:
        """Where the time of the last frame went: ticks, impacts, contacts, and between whom. Print it."""
        if self._last is None:
            return "no frame has passed yet"
        return explained(self._bodies, *self._last, self._took, len(self._now.hidden))

    def debug_lines(
        self, *, contacts: bool = True, triggers: bool = True, colour: str = "body", per_impulse: float | None = None
    ) -> DebugLines:
        """Straight lines that show what the world does, to be drawn over a game or in place of it.

        Shapes are wireframes, those of bodies asleep grey; a contact is a cross, with a line along its impulse on the
        first body, per_impulse [m / N s] long (None: a quarter of the largest body for the mean weight through a
        frame); triggers are green, bright with somebody inside.
        colour: "body": each its own; "island": one for all that touch each other.
        """
        chosen = arguments.one_of("colour", colour, ("body", "island"))
        if self._wires is None:
            self._wires = Wires(self._spec, self._changes.model)
        events, poses, names = self.contact_events(), self._now.places.pose, self.model.topology.names
        island = islands(events, names) if chosen == "island" else None
        asleep = (self._now.asleep.island >= 0)[trees_of(self.model.topology).of_link[:-1]]
        lines = self._wires.lines(poses, self._now.spares.links_waiting(self.state.q), asleep, island)
        if contacts:
            size = self._wires.size
            weight = float(np.linalg.norm(np.asarray(self.model.gravity))) * float(np.mean(np.asarray(self.model.mass)))
            usual = size / 4 / max(weight * self.dt, 1e-12)
            lines += contact_lines(events, usual if per_impulse is None else per_impulse, size / 10)
        if triggers:
            lines += trigger_lines(self._triggers, {name: poses[names.index(name)] for name in self.bodies})
        return joined_lines(lines)

    # -- taking back -----------------------------------------------------------------------------------------

    def save_state(self) -> bytes:
        """All that decides what comes next, but for the forces and motors of frames to come: those are inputs."""
        asleep = self._now.asleep
        known = (asleep.island, asleep.motors) if asleep.some else (asleep.island[:0], asleep.motors[:0])
        return saves.pack(saves.Saved(self.state.q, self.state.v, self.state.t, self.behind, *known), self._mark)

    def load_state(self, data: bytes) -> None:
        """Back to what `save_state` returned; raises SaveError where it is not of this world. Forces that wait are
        dropped."""
        nobody, state = self._start.asleep, self.state
        saved = saves.unpack(data, self._mark, self.model.topology, state.q.dtype)
        self._pushes[:] = 0
        self.behind = saved.behind
        asleep = nobody.after(saved.island, saved.motors) if len(saved.island) else nobody
        self._stand(self._now.at(State(saved.q, saved.v, saved.t), asleep))
        self._earlier = self._now.places.pose
        self._look_again()

    def hash(self) -> str:
        """`carom.state_hash` of the state."""
        return str(state_hash(self.state))

    def _stand(self, standing: Standing) -> None:
        self._idle()
        self._now, self._contacts = standing, None

    def _put(self, standing: Standing) -> None:
        """Where something stands elsewhere, without having gone there."""
        old, new = self._now.places.pose, standing.places.pose
        self._earlier = np.where((old != new).any(-1, keepdims=True), new, self._earlier)
        self._stand(standing)

    def _warm(self, probes: Sequence[Shape]) -> None:
        """Everything once, and the state as it was."""
        nobody = self._now.asleep.island
        self._stepper.step(self.state, nobody, self._pushes, self._motors.astype(self.state.q.dtype), self.dt)
        self._stepper.answer(self.state.q, self._pushes)
        self.poses()
        for body in self.bodies[:1]:
            self._now.pushed(self._pushes, body, NOTHING, None, NOTHING, "world")
        free = (
            n for n, joint in zip(self.model.topology.names, self.model.topology.joints, strict=True) if joint == FREE
        )
        for body in list(free)[:1]:
            self._now.put(body, ORIGIN, NO_TURN, ORIGIN, ORIGIN)
        self.raycasts(ORIGIN, (0.0, 0.0, 1.0))
        for shape in probes:
            self.overlap(shape)


@functools.cache
def _another_thread() -> ThreadPoolExecutor:
    """Where frames of all worlds are worked out, one after another."""
    return ThreadPoolExecutor(1, "carom.Live")


def _of_frames(dt: float, options: Options | None, keywords: OptionKeywords) -> Options:
    """The options of frames of dt [s]."""
    if options is None:
        window = None if keywords.get("time_control") == "fixed" else WINDOW
        keywords = {"max_dt": dt, "window": window, **keywords}
    options = Options.of(options, keywords)
    if options.resting != "solve":
        raise ValueError(f"Live: resting is {options.resting!r}; worlds know 'solve' alone")
    ticks, events = options.max_ticks, options.max_events
    return options.replace(
        max_ticks=MAX_TICKS if ticks is None else ticks, max_events=MAX_EVENTS if events is None else events
    )
