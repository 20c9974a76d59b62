"""Live: a world that a game steps, pushes, queries and rolls back. `docs/live.md` is the guide."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...collision.plain import Numbers
from ...collision.queries.rays import RayHits
from ...collision.shapes import ALL_LAYERS, Shape
from . import arguments
from .asking import Hit
from .debug import DebugLines, Wires, concatenate_lines, contact_lines, islands, trigger_lines
from .explained import explain_frame
from .inputs import Inputs
from .triggers import Callback, Trigger

FREE = ("floating", "planar")
RENAMED = {
    "spawn": "add_body", "despawn": "remove_body", "ray": "raycast", "rays": "raycasts", "contacts": "contact_events",
    "save": "save_state", "load": "load_state",
}  # fmt: skip
ORIGIN, IDENTITY, NOTHING = (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0), np.zeros(3)


class Live(Inputs):
    """A scene that is stepped frame by frame, for games. Names identify bodies; SI units, vectors in world axes.

    scene: SceneSpec, SceneBuilder, or an argument of `carom.load`.
    dt: length of a frame [s].
    budget: time to compute a frame [s]; None: unlimited. The number of ticks and the length of windows
        follow from the times of recent ticks, so results depend on the machine: not for lockstep or replays.
    sleep_speed: a body in contact that is slower than this [m/s, rad/s] at both ends of a frame, and changes by less
        than a sixteenth of it, sleeps, unless its motors have commands; its velocity becomes 0. With 0, only bodies
        that a frame leaves unchanged to the last bit sleep.
    pool: spare bodies: {"ball": 8} for eight more like the scene's body, {"shot": (BodySpec(...), 8)} for others.
    probes: shapes for later calls of `overlap`.
    warm: compile everything now; later frames compile only if there are more contacts than the world has room for
        (`max_contacts`), and begin to do so on another thread when three quarters of the room are used.
    options: of the integration, see `carom.Options`.  keywords: its fields one by one, which override it. Without
        options the defaults are max_dt one frame, max_ticks 64 and max_events 1024 per frame, and window 1e-3: the rest
        of a frame after max_ticks passes in windows, which `windows` counts. With window=None there are none, and later
        frames make up for the rest of a frame (`behind`). resting must be "solve".
    """

    if not TYPE_CHECKING:  # type checkers must not accept every name

        def __getattr__(self, name: str) -> Any:
            """Find an attribute by its name in the previous version."""
            if name not in RENAMED:
                raise AttributeError(f"'Live' object has no attribute {name!r}", name=name, obj=self)
            warnings.warn(f"Live.{name} is called {RENAMED[name]} now", DeprecationWarning, 2)
            return getattr(self, RENAMED[name])

    # -- pushing ---------------------------------------------------------------------------------------------

    def apply_force(self, body: str, force: Numbers, point: Numbers | None = None, *, frame: str = "world") -> None:
        """Push a body [N] through the next frame, at a point [m] (None: its centre of mass).

        frame: "world", or "body": force and point are in the body's axes, the point from its origin.
        """
        f = arguments.numbers("force", force, 3)
        self._pushes = self._now.add_push(self._pushes, body, f, point, NOTHING, frame)

    def apply_torque(self, body: str, torque: Numbers, *, frame: str = "world") -> None:
        """Turn a body [N m] through the next frame."""
        m = arguments.numbers("torque", torque, 3)
        self._pushes = self._now.add_push(self._pushes, body, NOTHING, None, m, frame)

    def apply_impulse(self, body: str, impulse: Numbers, point: Numbers | None = None, *, frame: str = "world") -> None:
        """Strike a body [N s] at once, at a point as in `apply_force`; a tree responds as a whole."""
        nothing, p = np.zeros_like(self._pushes), arguments.numbers("impulse", impulse, 3)
        wrenches = self._now.add_push(nothing, body, p, point, NOTHING, frame)
        response = self._parts.stepper.response(self.state.q, wrenches)
        with np.errstate(over="ignore"):  # `change` refuses it
            self._set_state(self._now.change(v=self.state.v + response))

    # -- putting elsewhere -----------------------------------------------------------------------------------

    def add_body(
        self,
        name: str,
        position: Numbers,
        quaternion: Numbers | None = None,
        linear_velocity: Numbers = ORIGIN,
        angular_velocity: Numbers = ORIGIN,
    ) -> str:
        """Bring in the first waiting spare body of the pool's kind `name`, and return its name.

        quaternion: None: (1, 0, 0, 0); for a body in a plane, that of its kind in the scene."""
        body = self._now.spare(name)
        parked = self._now.link_states.pose[self.model.topology.link(body), 3:]
        rotation = parked if quaternion is None else quaternion
        self._set_by_hand(self._now.put(body, position, rotation, linear_velocity, angular_velocity))
        return body

    def remove_body(self, body: str) -> None:
        """Send a body that was added back to the pool; joints that hold it and can be cut are cut."""
        self._idle()
        self._now.park(body)  # raises for a body that is not a spare one, or waits
        for joint in self._changes.attached_to(self.model.topology.link(body)):
            self.detach(joint)
        self._set_by_hand(self._now.park(body))
        self._pushes[self.model.topology.link(body)] = 0

    def teleport(
        self,
        body: str,
        position: Numbers | None = None,
        quaternion: Numbers | None = None,
        linear_velocity: Numbers | None = None,
        angular_velocity: Numbers | None = None,
    ) -> None:
        """Put a free body, one in a plane, or the floating root of a tree elsewhere; None leaves a part unchanged."""
        pose, velocity = self.pose(body), self.velocity(body)
        given = (position, quaternion, linear_velocity, angular_velocity)
        now = (pose[:3], pose[3:], velocity[3:], velocity[:3])
        put = (old if new is None else new for new, old in zip(given, now, strict=True))
        self._set_by_hand(self._now.put(body, *put))

    def set_joint(self, link: str, q: Numbers | None = None, v: Numbers | None = None) -> None:
        """Put a joint at these coordinates, within its limits, moving at these velocities; None: unchanged."""
        self._set_by_hand(self._now.put_joint(link, q, v))

    def raycast(
        self, origin: Numbers, direction: Numbers, max_distance: float = math.inf, *, ignore: Sequence[str] = (),
        mask: int = ALL_LAYERS,
    ) -> Hit | None:  # fmt: skip
        """Return the first hit of a ray; see `carom.cast_rays`.

        ignore: names of bodies that are left out.  mask: the ray hits only shapes in one of these layers."""
        one = arguments.numbers("origin", origin, 3), arguments.direction("direction", direction)
        return self._parts.questions.hit(self.raycasts(*one, max_distance, ignore=ignore, mask=mask), 0)

    def raycasts(
        self, origins: Numbers, directions: Numbers, max_distance: float = math.inf, *, ignore: Sequence[str] = (),
        mask: int = ALL_LAYERS,
    ) -> RayHits:  # fmt: skip
        """Return the first hits of many rays, (R, 3), as numpy arrays."""
        rays = arguments.vectors("origins", origins), arguments.vectors("directions", directions)
        hidden = arguments.names("ignore", ignore, self._parts.named) | self._now.hidden
        among = self._changes.shapes_in(mask)
        return self._parts.questions.rays(
            self.state.q, *rays, arguments.metres("max_distance", max_distance), hidden, among
        )

    def owner(self, shape: int) -> str:
        """Name of the body, link or static that carries a shape of the model, e.g. one of `raycasts(...).shape`."""
        owners = self._parts.bodies.owners
        if arguments.count("shape", shape, 0) >= len(owners):
            raise ValueError(f"shape is {shape}; the model has {len(owners)}: it must be from 0 to {len(owners) - 1}")
        return owners[shape]

    def overlap(
        self, shape: Shape, position: Numbers = ORIGIN, quaternion: Numbers = IDENTITY, *, within: float = 0.0,
        ignore: Sequence[str] = (), mask: int = ALL_LAYERS,
    ) -> list[str]:  # fmt: skip
        """Names of the bodies that a shape there would overlap, or be `within` [m] of, the nearest first.
        ignore, mask: see `raycast`."""
        probe, origin = arguments.shape("shape", shape), arguments.numbers("position", position, 3)
        rotation, reach = arguments.quaternion("quaternion", quaternion), arguments.metres("within", within)
        hidden = self._now.hidden | arguments.names("ignore", ignore, self._parts.named)
        among = self._changes.shapes_in(mask)
        return self._parts.questions.overlaps(self.state.q, probe, origin, rotation, reach, hidden, among)

    def add_trigger(
        self,
        shape: Shape,
        position: Numbers = ORIGIN,
        quaternion: Numbers = IDENTITY,
        *,
        body: str | None = None,
        on_enter: Callback | None = None,
        on_leave: Callback | None = None,
    ) -> Trigger:
        """Add a region that reports bodies that enter and leave; it stops and pushes nothing.

        position, quaternion: its pose in the world, or in the axes of a `body` that carries it.
        on_enter, on_leave: called after `step` with the name of each body or link that entered or left in the frame, or
        by hand before it. `load_state` and `reset` call nothing, so a frame that is played again calls again. A body
        that flies through within one frame is not reported; see `contact_events` for impacts.
        Each trigger queries its shape as `overlap` does: name its kind in `probes` to compile that at the start.
        """
        probe, origin = arguments.shape("shape", shape), arguments.numbers("position", position, 3)
        rotation = arguments.quaternion("quaternion", quaternion)
        carrier = None if body is None else arguments.one_of("body", body, self.model.topology.names)
        callbacks = [
            None if x is None else arguments.function(name, x, "the name of a body")
            for name, x in (("on_enter", on_enter), ("on_leave", on_leave))
        ]
        trigger = Trigger(probe, np.concatenate([origin, rotation]), carrier, *callbacks)
        trigger.update(self._within(trigger))
        self._triggers.append(trigger)
        return trigger

    def remove_trigger(self, trigger: Trigger) -> None:
        """Remove a trigger: it reports nothing from here on."""
        if trigger not in self._triggers:
            raise ValueError("remove_trigger: the world has no such trigger; give one that add_trigger returned")
        self._triggers.remove(trigger)

    def explain(self) -> str:
        """Return a text about the time of the last frame: ticks, impacts, contacts, and their bodies."""
        if self._last is None:
            return "no frame has passed yet"
        last, waiting, windowed = self._last, len(self._now.hidden), self._parts.stepper.windowed
        return explain_frame(last.bodies, last.frame, last.dt, *self._took, waiting=waiting, windowed=windowed)

    def debug_lines(
        self, *, contacts: bool = True, triggers: bool = True, colour: str = "body", per_impulse: float | None = None
    ) -> DebugLines:
        """Return lines that show the world's shapes, contacts and triggers, to draw over a game or instead of it.

        Shapes are wireframes, those of sleeping bodies grey; a contact is a cross, with a line along its impulse on the
        first body, per_impulse [m / N s] long (None: a quarter of the largest body for the mean weight through a
        frame); triggers are green, bright with a body inside.
        colour: "body": each its own; "island": one for all that touch each other.
        """
        chosen = arguments.one_of("colour", colour, ("body", "island"))
        if per_impulse is not None:
            per_impulse = float(arguments.numbers("per_impulse", per_impulse, 1)[0])
        if self._wires is None:
            self._wires = Wires(self._parts.spec, self._changes.model)
        events, poses, names = self.contact_events(), self._now.link_states.pose, self.model.topology.names
        island = islands(events, names) if chosen == "island" else None
        lines = self._wires.lines(poses, self._now.spares.links_waiting(self.state.q), self._now.sleeps, island)
        if contacts:
            size = self._wires.size
            weight = float(np.linalg.norm(np.asarray(self.model.gravity))) * float(np.mean(np.asarray(self.model.mass)))
            usual = size / 4 / max(weight * self.dt, 1e-12)
            lines += contact_lines(events, usual if per_impulse is None else per_impulse, size / 10)
        if triggers:
            lines += trigger_lines(self._triggers, {name: poses[names.index(name)] for name in self.bodies})
        return concatenate_lines(lines)

    def _warm(self, probes: Sequence[Shape]) -> None:
        super()._warm(probes)
        for body in self.bodies[:1]:
            self._now.add_push(self._pushes, body, NOTHING, None, NOTHING, "world")
        topology = self.model.topology
        for joint in FREE:
            roots = zip(topology.names, topology.joints, topology.parents, strict=True)
            for body in [name for name, kind, parent in roots if kind == joint and parent < 0][:1]:
                pose = self._now.link_states.pose[topology.link(body)]
                self._now.put(body, pose[:3], pose[3:], ORIGIN, ORIGIN)
        self.raycasts(ORIGIN, (0.0, 0.0, 1.0))
        for shape in probes:
            self.overlap(shape)
