"""Inputs that last: motors, materials, layers, joints that are cut and joined."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...collision.plain import Numbers
from ...collision.poses import Array, cross
from ...collision.shapes import Shape
from ...engine.dynamics.wrenches import joint_forces
from ...engine.shaped import Float
from . import arguments
from .changes import Changes, attach_ends, loop_pulls, velocities_after_attaching
from .frames import SteppedWorld
from .saves import TURNING


class Inputs(SteppedWorld):
    """See `carom.Live`."""

    def set_motors(self, values: Numbers) -> None:
        """Set the commands to all motors from now on, (nv,); see `carom.Motor`."""
        self._idle()
        self._motors = arguments.numbers("values", values, self.model.topology.nv)

    def motor(self, link: str, value: Numbers) -> None:
        """Set the commands to the motors of one joint from now on."""
        self._idle()
        number = self._now.link(link, "link")
        _, dofs = self._now.joint(number)
        try:
            self._motors[dofs] = arguments.numbers("value", value, dofs.stop - dofs.start)
        except ValueError as error:
            kind = self.model.topology.joints[number]
            raise ValueError(f"{error}, for the {kind} joint of {link!r} (forces, if it has no motor)") from None

    def move_joint(self, link: str, q: Numbers) -> None:
        """Move a joint to these coordinates (those of `set_joint`) within the next frame; from then on it stays there.

        It moves at a constant speed, if its effort suffices for that, pushes bodies in its way and carries bodies
        that stand on it: its motor is `Motor("velocity", kd=math.inf, effort=...)`. It is an input of the next
        frame, like forces.
        """
        self._idle()
        number, topology = self._now.link(link, "link"), self.model.topology
        coordinates, dofs = self._now.joint(number)
        kind, size = topology.joints[number], coordinates.stop - coordinates.start
        if size == 0 or kind in TURNING:
            raise ValueError(f"move_joint: the joint of {link!r} is {kind}: move it by set_joint, or by its motor")
        if not np.isinf(np.asarray(self.model.motor_kd)[dofs]).all():
            raise ValueError(
                f'move_joint: the motor of {link!r} is not rigid: give its joint Motor("velocity", kd=math.inf, '
                "effort=...)"
            )
        self._targets[number] = arguments.numbers("q", q, size).astype(self.state.q.dtype)

    def set_material(
        self,
        body: str,
        *,
        friction: float | None = None,
        restitution: float | None = None,
        tangential_restitution: float | None = None,
    ) -> None:
        """Change the material of all shapes of a body, or of a static, from now on; None leaves a number unchanged.

        Pairs change as in a scene: the geometric mean of friction, the smaller restitution. Like motors this is an
        input of later frames: a save does not have it, and `reset` undoes it. After loading a save from before the
        change, call it again, which wakes all bodies.
        """
        given = {"friction": friction, "restitution": restitution, "tangential_restitution": tangential_restitution}
        self._changing.material(arguments.one_of("body", body, self._parts.touchable), given)
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
        """Change the material of the contacts between two bodies, or a body and a static, until `set_material` changes
        one of them."""
        given = {"friction": friction, "restitution": restitution, "tangential_restitution": tangential_restitution}
        self._changing.pair_material(*self._two(a, b), given)
        self._use()

    def set_surface_velocity(self, static: str, linear: Numbers = (0, 0, 0), angular: Numbers = (0, 0, 0)) -> None:
        """Set the velocity of the surface of a static, which stays in place: a conveyor [m/s], a turntable [rad/s].

        The static must have a name, and the scene a static whose surface moves. An input like `set_material`.
        """
        origin = np.asarray(self._parts.origins[arguments.one_of("static", static, self._parts.origins)], float)
        velocity = arguments.numbers("linear", linear, 3), arguments.numbers("angular", angular, 3)
        self._changing.surface(static, *velocity, origin)
        self._use()

    def set_layers(self, body: str, *, group: int | None = None, mask: int | None = None) -> None:
        """Set the layers that a body, or a static, is in (group), and those that it touches (mask); None: unchanged.

        Two shapes touch if each is in a layer of the other's mask. Needs a scene with filtering=True. An input like
        `set_material`. Bodies that overlap when they begin to touch are pushed apart.
        """
        self._changing.layers(arguments.one_of("body", body, self._parts.touchable), group, mask)
        self._use()

    def ignore_collision(self, a: str, b: str, ignore: bool = True) -> None:
        """Let two bodies ignore each other, or touch again; needs filtering=True. An input like `set_material`."""
        if type(ignore) is not bool:
            raise TypeError(f"ignore is {ignore!r}; it must be True or False")
        self._changing.ignore(*self._two(a, b), ignore)
        self._use()

    def attach(self, joint: str, point: Numbers | None = None) -> None:
        """Join the ends of a loop that can be cut (`SceneBuilder.add_loop(active=...)`) at their present poses.

        joint: the loop's name.  point: position of the joint in the world [m]; None: the loop's frame on link_a. A rod
        gets its present length. An impulse of the joint stops relative motion. An input like `set_material`.
        """
        where = None if point is None else arguments.numbers("point", point, 3)
        loop = self.model.topology.loops[self._changes.number(joint)]
        for link in (loop.a, loop.b):
            if link >= 0:
                self._now.link(self.model.topology.names[link])
        self._changing.attach(joint, self._now.link_states.pose, where)
        self._use()
        q, v = velocities_after_attaching.straight(self.model, self.state.q, self.state.v, self.state.t)
        self._set_state(self._now.change(q=q, v=v))

    def detach(self, joint: str) -> None:
        """Cut a loop that can be cut."""
        self._changing.detach(joint)
        self._use()

    @property
    def attached(self) -> tuple[str, ...]:
        """Names of the loops that can be cut and hold now."""
        return self._changes.attached

    def joint_force(self, joint: str) -> Float[np.ndarray, " 3"]:
        """Force of a loop that can be cut on link_a, world axes [N], which keeps its ends together at the present
        motion and weights, under the mean forces of contacts and `apply_force` in the last frame. Rigid motors keep
        the rates that their joints have, with their effort at most; dry friction and stops hold what rests.

        To break a joint at a load, cut it after a frame in which it carried more.
        """
        k = self._changes.number(joint)
        q, v, t = self.state.q, self.state.v, self.state.t
        forces = joint_forces.straight(self.model, q, self._felt().astype(q.dtype))
        return np.asarray(loop_pulls.straight(self.model, q, v, t, self._motors.astype(q.dtype), forces)[k], np.float64)

    def _felt(self) -> Array:
        """Moment about its origin and force on each link (nl, 6) [N m, N] by contacts and pushes of the last frame."""
        felt = np.zeros((self.model.topology.n_links, 6))
        if self._last is None or self._contacts is None:
            return felt
        dt = self._last.dt - float(self._last.frame.left)  # the part of it that passed
        if dt <= 0:
            return felt
        felt += self._last.pushes
        names, poses = self.model.topology.names, self._now.link_states.pose
        for contact in self.contact_events():
            for body, force in ((contact.a, contact.impulse / dt), (contact.b, -contact.impulse / dt)):
                if body in names:
                    link = names.index(body)
                    felt[link] += (*cross(contact.point - poses[link, :3], force), *force)
        return felt

    def _warm(self, probes: Sequence[Shape]) -> None:
        super()._warm(probes)
        if self._changes.joints:
            velocities_after_attaching.straight(self.model, self.state.q, self.state.v, self.state.t)
            self.joint_force(self._changes.joints[0])
            nowhere = np.int32(0), np.zeros(3, self.state.q.dtype), np.bool_(False)
            attach_ends.straight(self.model, self._now.link_states.pose, *nowhere)

    def _two(self, a: str, b: str) -> tuple[str, str]:
        return arguments.one_of("a", a, self._parts.touchable), arguments.one_of("b", b, self._parts.touchable)

    @property
    def _changing(self) -> Changes:
        self._idle()
        return self._changes
