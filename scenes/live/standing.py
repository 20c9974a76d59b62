"""How a world stands: its state, and its bodies by name: where they are, and how to put them elsewhere.

Nothing here is remembered but q, v and t, and who sleeps; which spare bodies wait is seen from q. Arrays are numpy's.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...collision.plain import Numbers
from ...collision.poses import Array, cross, rotation_matrix
from ...engine.algebra.rotation import Quat
from ...engine.algebra.vec3 import Mat3
from ...engine.dynamics.kinematics import move, place
from ...engine.forest import Forest
from ...engine.model import Model
from ...engine.native.surface import compiled
from ...engine.state import State
from ..compiling.check import MOST
from .asleep import Asleep
from .pool import PoolError, Spares


class Places(NamedTuple):
    """Of all links: pose (nl, 7) x y z of the origin [m], w x y z; velocity (nl, 6) angular, of the origin, world
    axes [rad/s, m/s]."""

    pose: Any
    velocity: Any


@compiled
def places(model: Model, q: jax.Array, v: jax.Array) -> Places:
    """Where all links are, and how they move: q (nq,), v (nv,)."""
    forest = Forest.of(model, q=q, v=v)
    placed = place(forest, model, q)
    pose, velocity = forest.by_link([x.pose for x in placed]), forest.by_link([x.V for x in move(forest, placed, v)])
    turn = Quat.from_matrix(Mat3(*(getattr(pose.R, k) for k in Mat3.__dataclass_fields__)))
    rows = (*pose.p.xyz, turn.w, turn.x, turn.y, turn.z), (*velocity.w.xyz, *velocity.v.xyz)
    return Places(*(jnp.stack(row, -1) for row in rows))


class Standing:
    """A world at one instant; every change makes another."""

    def __init__(self, model: Model, spares: Spares, state: State, asleep: Asleep) -> None:
        self.model, self.spares, self.state, self.asleep = model, spares, state, asleep

    def changed(self, q: Any = None, v: Any = None, t: Any = None) -> Standing:
        """With some of the state changed; whose changes wakes up."""
        old: Any = self.state
        with np.errstate(over="ignore"):
            q, v, t = (a if b is None else np.asarray(b, a.dtype) for a, b in ((old.q, q), (old.v, v), (old.t, t)))
        if not (np.isfinite(q).all() and np.isfinite(v).all()):
            raise ValueError(f"that would leave the world with numbers that {q.dtype} cannot hold; it is as it was")
        new = State(q, v, t)
        return Standing(self.model, self.spares, new, self.asleep.moved(old, new))

    def at(self, state: State, asleep: Asleep, places: Places | None = None) -> Standing:
        """In another state; where nothing but the time changed, what was worked out of it is kept.

        places: of that state, where they are known."""
        new, old = Standing(self.model, self.spares, state, asleep), self.state
        if state.q is old.q and state.v is old.v:
            vars(new).update(vars(self), state=state, asleep=asleep)
        if places is not None:
            vars(new)["places"] = places
        return new

    @cached_property
    def hidden(self) -> frozenset[str]:
        """Spare bodies that wait."""
        return frozenset(self.model.topology.names[link] for link in self.spares.links_waiting(self.state.q))

    @cached_property
    def bodies(self) -> tuple[str, ...]:
        """Links that are there."""
        return tuple(name for name in self.model.topology.names if name not in self.hidden)

    @cached_property
    def links(self) -> Array:
        """Their numbers."""
        there = np.ones(self.model.topology.n_links, bool)
        there[self.spares.links_waiting(self.state.q)] = False
        return np.flatnonzero(there)

    @cached_property
    def places(self) -> Places:
        """Of all links, spare ones too."""
        return jax.device_get(places(self.model, self.state.q, self.state.v))

    def link(self, body: str) -> int:
        """The number of a link that is there."""
        if body in self.hidden:
            raise PoolError(f"{body!r} waits in the pool: spawn() brings it in")
        link = self.model.topology.link(body)
        if link < 0:
            raise ValueError(f"{body!r} does not move; the bodies are {', '.join(self.bodies)}")
        return link

    def centre(self, link: int) -> Array:
        """(3,) from the link's origin to its centre of mass, world axes [m]."""
        return rotation_matrix(self.places.pose[link, 3:]) @ np.asarray(self.model.com)[link]

    def velocity(self, body: str) -> Array:
        """(6,) angular velocity, and velocity of the centre of mass, world axes [rad/s, m/s]."""
        link = self.link(body)
        w, v = np.split(self.places.velocity[link], 2)
        return np.concatenate([w, v + cross(w, self.centre(link))])

    def wrench(self, body: str, force: Numbers, point: Numbers | None, torque: Numbers, frame: str) -> Array:
        """(nl, 6) of a push on one body: moment about each link's origin, and force, world axes [N m, N]."""
        link, f, moment = self.link(body), checked("force", force, 3), checked("torque", torque, 3)
        pose = self.places.pose[link]
        if frame not in ("world", "body"):
            raise ValueError(f'frame is {frame!r}; it must be "world" or "body"')
        R = rotation_matrix(pose[3:]) if frame == "body" else np.eye(3)
        if point is None:
            arm = self.centre(link)
        else:
            arm = R @ checked("point", point, 3) - (0 if frame == "body" else pose[:3])
        rows = np.zeros((self.model.topology.n_links, 6))
        rows[link] = np.concatenate([R @ moment + cross(arm, R @ f), R @ f])
        return rows

    def put(self, body: str, position: Numbers, quaternion: Numbers, linear: Numbers, angular: Numbers) -> Standing:
        """With a free body there, its centre of mass moving like that [m/s, rad/s]; spare ones too."""
        topology = self.model.topology
        link = topology.link(body)
        if link < 0 or topology.joints[link] != "floating":
            raise ValueError(f"{body!r} is no free body: move it by set_joint, joint by joint")
        turn = unit(quaternion)
        w, arm = checked("angular_velocity", angular, 3), rotation_matrix(turn) @ np.asarray(self.model.com)[link]
        v = checked("linear_velocity", linear, 3) - cross(w, arm)
        return self.jointed(body, np.concatenate([checked("position", position, 3), turn]), np.concatenate([w, v]))

    def jointed(self, link: str, q: Numbers | None, v: Numbers | None) -> Standing:
        """With one joint's coordinates and velocities changed."""
        all_q, all_v = np.array(self.state.q), np.array(self.state.v)
        coordinates, dofs = self.joint(link)
        for name, numbers, at, given in (("q", all_q, coordinates, q), ("v", all_v, dofs, v)):
            if given is not None:
                numbers[at] = checked(name, np.atleast_1d(np.asarray(given)), at.stop - at.start)
        return self.changed(all_q, all_v)

    def joint(self, link: str) -> tuple[slice, slice]:
        """Coordinates and degrees of freedom of a link's joint."""
        topology = self.model.topology
        k = topology.link(link)
        return slice(*topology.q_start[k : k + 2]), slice(*topology.v_start[k : k + 2])

    def spare(self, kind: str) -> str:
        """The first of the pool's bodies of this kind that waits."""
        names = self.spares.names
        if kind not in names:
            raise PoolError(
                f"spawn: the pool has no {kind!r}; it has {', '.join(names) or 'nothing: give Live a pool'}"
            )
        body = next((body for body in names[kind] if body in self.hidden), None)
        if body is None:
            fix = "despawn one, or make the pool larger"
            raise PoolError(f"spawn: all {len(names[kind])} of {kind!r} are in use: {fix}")
        return body

    def parked(self, body: str) -> Standing:
        """With a spare body back where it waits."""
        if not any(body in names for names in self.spares.names.values()):
            raise PoolError(f"despawn: {body!r} is no body of the pool: only what spawn() returned goes back")
        self.link(body)
        coordinates, _ = self.joint(body)
        return self.jointed(body, self.spares.parked[coordinates], np.zeros(6))


def checked(name: str, value: Any, length: int) -> Array:
    """So many numbers of no more than MOST, or an error that says which are not."""
    try:
        numbers = np.asarray(value, np.float64)
    except (TypeError, ValueError, OverflowError):
        numbers = np.array(np.nan)
    if numbers.shape != (length,) or not (np.abs(numbers) <= MOST).all():
        must = f"it must be {length} finite number{'s' * (length > 1)} of at most {MOST:g}"
        raise ValueError(f"{name} is {value!r}; {must}")
    return numbers


def unit(value: Any) -> Array:
    """A quaternion of length 1 from one of about that length."""
    numbers = checked("quaternion", value, 4)
    length = np.linalg.norm(numbers)
    if abs(length - 1) > 1e-3:
        raise ValueError(f"quaternion is {value!r}, of length {length:.6g}; it must have length 1: w x y z")
    return numbers / length
