"""A character that walks: a capsule on virtual legs. Made of public calls of `carom.Live` alone.

Rays from the capsule find the ground below. The legs push the capsule up until it floats above the ground by `step`, so
that it passes lower stairs, and slopes, without contact. They push the ground down as hard, and a moving ground carries
them along. Legs only push: a jump leaves the ground. A character stores only its commands from frame to frame, so that
a rollback of the world includes its characters.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...collision.plain import Numbers
from ...collision.poses import Array, rotation_matrix
from ...collision.shapes import ALL_LAYERS
from ...engine.shaped import Float
from . import arguments
from .world import Live

STIFF = (
    12.0  # [1/s] rate at which legs bring the capsule to its height, critically damped; softer than what gravity stops
)
BELOW = 0.01  # [m] what is higher than the capsule's lowest point by more is no ground
LEAVES = 0.5  # [m/s] a character that rises faster, and does not press on the ground, has left it
SPREAD = 0.7  # distance of the outer rays from the capsule's axis, as part of its radius
FEET = np.array([(0, 0), (1, 0), (-1, 0), (0, 1), (0, -1)], float) * SPREAD


class Footing(NamedTuple):
    """The ground under the feet.

    body: its name.
    shape: its index in the model.
    distance: how far it is below the capsule's centre [m].
    point: where a ray meets it [m].
    """

    body: str
    shape: int
    distance: float
    point: Float[np.ndarray, " 3"]


class Character:
    """A character walks, jumps, climbs stairs and slopes, stands on moving ground and pushes bodies in its way.

    What is higher than `step` is in the way and no ground, nor is a loose body that a single ray meets, like a ball.

    world: the body's world.  body: name of a free body with one capsule along its z axis, upright.
    step: height of the stairs that it climbs [m]; the capsule floats that far above the ground. Its round bottom rides
        over edges that are higher by up to two thirds of its radius.
    slope: the steepest ground that it stands on [rad].
    acceleration, in_air: limits of its walk's acceleration on the ground, and off it [m/s^2].
    push: largest force of its legs, in parts of its weight.  mask: layers that are ground.

    Call `update` once before each `world.step`.
    """

    def __init__(
        self,
        world: Live,
        body: str,
        *,
        step: float = 0.3,
        slope: float = 0.9,
        acceleration: float = 20.0,
        in_air: float = 5.0,
        push: float = 10.0,
        mask: int = ALL_LAYERS,
    ) -> None:
        topology = world.model.topology
        link = topology.link(arguments.one_of("body", body, world.bodies))
        shapes = [k for k, carrier in enumerate(topology.shape_links) if carrier == link]
        if [topology.shape_kinds[k] for k in shapes] != ["capsule"]:
            raise ValueError(
                f"Character: {body!r} must have one shape, a capsule: give it Capsule(radius, half_length)"
            )
        radius, half, _ = np.asarray(world.model.shape_size, float)[shapes[0]]
        place = np.asarray(world.model.shape_position, float)[shapes[0]]
        w, x, y, z = np.asarray(world.model.shape_quaternion, float)[shapes[0]]
        if place.any() or x or y:
            raise ValueError(
                f"Character: the capsule of {body!r} is at {place.tolist()} with the quaternion {[w, x, y, z]} in its "
                "body; it must be at the body's origin, along its z axis: leave position and quaternion out"
            )
        gravity = np.asarray(world.model.gravity, float)
        if not gravity.any():
            raise ValueError("Character: the scene has no gravity, and nowhere is down: give SceneBuilder(gravity=...)")
        given = {"step": step, "slope": slope, "acceleration": acceleration, "in_air": in_air, "push": push}
        for name, value in given.items():
            if not arguments.numbers(name, value, 1)[0] >= 0:
                raise ValueError(f"Character: {name} is {value!r}; it must not be negative")
        self.world, self.body, self.mask = world, body, mask
        self.step, self.slope, self.acceleration, self.in_air, self.push = (float(x) for x in given.values())
        self.height = radius + half + self.step  # of the capsule's centre above the ground
        self._mass, self._radius = float(np.asarray(world.model.mass)[link]), radius
        self._inertia = np.asarray(world.model.inertia, float)[link]
        self._gravity = float(np.linalg.norm(gravity))
        self._up = -gravity / self._gravity
        ahead = np.eye(3)[int(abs(self._up[0]) > 0.9)]
        ahead = ahead - self._up * (ahead @ self._up)
        ahead /= np.linalg.norm(ahead)
        self._level = np.stack([ahead, np.cross(self._up, ahead)])
        self._walk, self._facing, self._jump = np.zeros(3), 0.0, 0.0

    def walk(self, velocity: Numbers, facing: float | None = None) -> None:
        """Walk at the velocity (3,) over the ground [m/s] from now on; its part along gravity is ignored.

        facing: turn to this angle about the vertical [rad]; None: as before.
        """
        v = arguments.numbers("velocity", velocity, 3)
        self._walk = v - self._up * (v @ self._up)
        if facing is not None:
            self._facing = float(arguments.numbers("facing", facing, 1)[0])

    def jump(self, speed: float) -> None:
        """Leave the ground at this speed [m/s] in the next `update`, if it stands."""
        self._jump = float(arguments.numbers("speed", speed, 1)[0])

    @property
    def ground(self) -> str | None:
        """Name of the body it stands on; None in the air, on too steep a slope, and while it rises from the ground."""
        footing = self._under()
        return None if footing is None else footing.body

    def update(self, dt: float | None = None) -> None:
        """Push the body so that it walks through the next frame of dt [s], the world's own by default."""
        world, up = self.world, self._up
        dt = world.dt if dt is None else arguments.seconds("dt", dt)
        v = np.asarray(world.velocity(self.body)[3:], float)
        footing = self._under()
        jump, self._jump = self._jump, 0.0
        most, ground_velocity, turning = self.in_air, np.zeros(3), np.zeros(3)
        legs = np.zeros(3)
        if footing is not None:
            ground_velocity, turning = self._ground_velocity(footing)
            rising = (v - ground_velocity) @ up
            if jump:
                world.apply_impulse(self.body, up * self._mass * (jump - rising))
                self._react(footing, -up * self._mass * (jump - rising), impulse=True)
            else:
                most = self.acceleration
                # one step of implicit Euler of a'' = STIFF^2 (height - x) - 2 STIFF v
                w = STIFF
                rise = (w * w * (self.height - footing.distance) - (2 * w + w * w * dt) * rising) / (
                    1 + 2 * w * dt + (w * dt) ** 2
                )
                bears = np.clip(self._mass * (rise + self._gravity), 0, self.push * self._mass * self._gravity)
                legs = up * bears
        wanted = (self._walk + ground_velocity - v) / dt + turning  # its velocity at the frame's end
        wanted -= up * (wanted @ up)
        size = float(np.linalg.norm(wanted))
        walk = wanted * (self._mass * min(1.0, most / size if size > 0 else 1.0))
        world.apply_force(self.body, legs + walk)
        if footing is not None:
            self._react(footing, -legs - walk)
        world.apply_torque(self.body, self._upright(dt))

    def _under(self) -> Footing | None:
        """The ground under it; None if it does not stand."""
        world, up = self.world, self._up
        at = np.asarray(world.pose(self.body)[:3], float)
        feet = at + self._radius * FEET @ self._level
        reach = self.height + self.step / 2
        hits = world.raycasts(feet, -up, reach, ignore=[self.body], mask=self.mask)
        firm = (hits.shape >= 0) & (hits.normal @ up >= np.cos(self.slope))
        firm &= hits.distance >= self.height - self.step - BELOW
        owners = [world.owner(int(shape)) if ok else "" for shape, ok in zip(hits.shape, firm, strict=True)]
        firm &= [owner not in world.bodies or owners.count(owner) > 1 for owner in owners]
        if not firm.any():
            return None
        k = int(np.where(firm, hits.distance, np.inf).argmin())
        shape, point = int(hits.shape[k]), np.asarray(hits.point[k], float)
        footing = Footing(owners[k], shape, float(hits.distance[k]), point)
        rising = (np.asarray(world.velocity(self.body)[3:], float) - self._ground_velocity(footing)[0]) @ up
        return None if footing.distance > self.height and rising > LEAVES else footing

    def _ground_velocity(self, hit: Footing) -> tuple[Array, Array]:
        """Velocity (3,) of the ground under it [m/s], and its rate of change while it turns about an axis [m/s^2].

        Without the latter a character would leave a turntable along tangents. A free body turns about its centre of
        mass, whose own acceleration is left out.
        """
        if hit.body not in self.world.bodies:
            model = self.world.model
            twist, origin = (np.asarray(x, float)[hit.shape] for x in (model.shape_twist, model.shape_position))
            velocity = twist[3:] + np.cross(twist[:3], hit.point - origin)
            return velocity, np.cross(twist[:3], velocity)
        moving = np.asarray(self.world.velocity(hit.body), float)
        link = self.world.model.topology.link(hit.body)
        pose = np.asarray(self.world.pose(hit.body), float)
        centre = pose[:3] + rotation_matrix(pose[3:]) @ np.asarray(self.world.model.com, float)[link]
        around = np.cross(moving[:3], hit.point - centre)
        free = self.world.model.topology.joints[link] == "floating"
        return moving[3:] + around, np.cross(moving[:3], around if free else moving[3:] + around)

    def _react(self, hit: Footing, what: Array, impulse: bool = False) -> None:
        """Apply the reaction to the ground: a force [N], or an impulse [N s]."""
        if hit.body in self.world.bodies:
            (self.world.apply_impulse if impulse else self.world.apply_force)(hit.body, what, hit.point)

    def _upright(self, dt: float) -> Array:
        """Torque (3,) that rotates it upright, and to its facing, by the end of the frame [N m]."""
        pose = np.asarray(self.world.pose(self.body), float)
        now, w = rotation_matrix(pose[3:]), np.asarray(self.world.velocity(self.body)[:3], float)
        ahead = np.cos(self._facing) * self._level[0] + np.sin(self._facing) * self._level[1]
        aim = np.stack([ahead, np.cross(self._up, ahead), self._up], 1)
        off = np.cross(now, aim, axis=0).sum(1) / 2  # the sine of the angle, about its axis
        return now @ self._inertia @ now.T @ (off / (2 * dt) - w) / dt
