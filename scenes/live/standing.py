"""The state of a world with its bodies by name: poses, velocities, and changes by hand.

It stores only q, v, t and the sleep; q tells which spare bodies wait. Arrays are numpy's.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from ...collision.plain import Numbers
from ...collision.poses import Array, cross, rotation_matrix
from ...engine.algebra.rotation import Quat
from ...engine.algebra.vec3 import Mat3
from ...engine.dynamics.kinematics import propagate_poses, propagate_velocities
from ...engine.dynamics.trees import trees_of
from ...engine.forest import Forest
from ...engine.model import Model
from ...engine.native.surface import native_jit
from ...engine.state import State
from ..wording import brief
from . import arguments
from .asleep import Asleep
from .by_hand import leaves_plane, put_in_plane, put_there, with_push
from .pool import PoolError, Spares
from .saves import TURNING

BEYOND = 1e-5  # [rad, m] rounding of coordinates that are put at a limit

T = TypeVar("T", bound=Iterable[Any])


class LinkStates(NamedTuple):
    """Poses and velocities of all links: pose (nl, 7) x y z of the origin [m], w x y z; velocity (nl, 6) angular, and
    of the origin, world axes [rad/s, m/s]."""

    pose: Any
    velocity: Any


@native_jit
def link_states(model: Model, q: jax.Array, v: jax.Array) -> LinkStates:
    """Poses and velocities of all links at q (nq,), v (nv,)."""
    forest = Forest.of(model, q=q, v=v)
    poses = propagate_poses(forest, model, q)
    pose, velocity = (
        forest.by_link([x.pose for x in poses]),
        forest.by_link([x.V for x in propagate_velocities(forest, poses, v)]),
    )
    turn = Quat.from_matrix(Mat3(*(getattr(pose.R, k) for k in Mat3.__dataclass_fields__)))
    rows = (*pose.p.xyz, turn.w, turn.x, turn.y, turn.z), (*velocity.w.xyz, *velocity.v.xyz)
    return LinkStates(*(jnp.stack(row, -1) for row in rows))


def _read_only(arrays: T) -> T:
    """Mark arrays as read-only."""
    for array in arrays:
        array.setflags(write=False)
    return arrays


class WorldState:
    """A world at one instant; every change returns a new one."""

    def __init__(self, model: Model, spares: Spares, state: State, asleep: Asleep) -> None:
        self.model, self.spares, self.state, self.asleep = model, spares, state, asleep
        _read_only((state.q, state.v))

    def change(self, q: Any = None, v: Any = None, t: Any = None) -> WorldState:
        """Change some of the state; bodies whose state changes wake."""
        old: Any = self.state
        with np.errstate(over="ignore"):
            q, v, t = (a if b is None else np.asarray(b, a.dtype) for a, b in ((old.q, q), (old.v, v), (old.t, t)))
        self._check_range(q, v)
        new = State(q, v, t)
        return WorldState(self.model, self.spares, new, self.asleep.after_change(old, new))

    def _check_range(self, *numbers: Array) -> None:
        """Raise ValueError for numbers that the world's dtype cannot hold."""
        if not all(np.isfinite(x).all() for x in numbers):
            dtype = self.state.q.dtype
            raise ValueError(f"that would leave the world with numbers that {dtype} cannot hold; it is as it was")

    def at(self, state: State, asleep: Asleep, link_states: LinkStates | None = None) -> WorldState:
        """The world in another state; if only the time changed, computed values are kept.

        link_states: those of that state, if they are known."""
        new, old = WorldState(self.model, self.spares, state, asleep), self.state
        if state.q is old.q and state.v is old.v:
            kept = {name: x for name, x in vars(self).items() if name != "sleeps"}
            vars(new).update(kept, state=state, asleep=asleep)
        if link_states is not None:
            vars(new)["link_states"] = _read_only(link_states)
        return new

    @cached_property
    def hidden(self) -> frozenset[str]:
        """Names of the spare bodies that wait."""
        return frozenset(self.model.topology.names[link] for link in self.spares.links_waiting(self.state.q))

    @cached_property
    def bodies(self) -> tuple[str, ...]:
        """Names of the links that are there."""
        return tuple(name for name in self.model.topology.names if name not in self.hidden)

    @cached_property
    def links(self) -> Array:
        """Indices of the links that are there."""
        there = np.ones(self.model.topology.n_links, bool)
        there[self.spares.links_waiting(self.state.q)] = False
        return np.flatnonzero(there)

    @cached_property
    def sleeps(self) -> Array:
        """Links whose tree sleeps, (nl,) bool."""
        return (self.asleep.island >= 0)[trees_of(self.model.topology).of_link[:-1]]

    @cached_property
    def link_states(self) -> LinkStates:
        """Poses and velocities of all links, spare ones too."""
        return _read_only(link_states.straight(self.model, self.state.q, self.state.v))

    def link(self, body: str, called: str = "body") -> int:
        """The index of a link that is there.  called: the argument that names it."""
        if isinstance(body, str) and body in self.hidden:
            raise PoolError(f"{body!r} waits in the pool: add_body() brings it in")
        return self.model.topology.link(arguments.one_of(called, body, self.bodies))

    def centre(self, link: int) -> Array:
        """Vector (3,) from the link's origin to its centre of mass, world axes [m]."""
        return rotation_matrix(self.link_states.pose[link, 3:]) @ np.asarray(self.model.com)[link]

    def velocity(self, body: str) -> Array:
        """Angular velocity, and velocity of the centre of mass (6,), world axes [rad/s, m/s]."""
        link = self.link(body)
        w, v = np.split(self.link_states.velocity[link], 2)
        return np.concatenate([w, v + cross(w, self.centre(link))])

    def add_push(
        self, wrenches: Array, body: str, force: Array, point: Numbers | None, torque: Array, frame: str
    ) -> Array:
        """Add a push on one body to wrenches (nl, 6), see `by_hand.py`; force and torque are checked."""
        link, at_centre = self.link(body), point is None
        own = arguments.one_of("frame", frame, ("world", "body")) == "body"
        where = np.zeros(3) if point is None else arguments.numbers("point", point, 3)
        dtype = self.state.q.dtype
        pose, given, f, m, p = (np.asarray(x, dtype) for x in (self.link_states.pose, wrenches, force, torque, where))
        which = np.int32(link), np.bool_(at_centre), np.bool_(own)
        made = np.array(with_push.straight(self.model, pose, given, which[0], f, m, p, *which[1:]))
        self._check_range(made)
        return made

    def put(self, body: str, position: Numbers, rotation: Numbers, linear: Numbers, angular: Numbers) -> WorldState:
        """Put a free body at a pose, with velocities of its centre of mass [m/s, rad/s]; spare ones too."""
        topology = self.model.topology
        link = topology.link(body)
        flat = topology.in_plane[link]
        if topology.joints[link] != "floating" and not flat:
            raise ValueError(f"{body!r} is no free body: move it by set_joint, joint by joint")
        arguments.quaternion("quaternion", rotation)
        rotation = arguments.numbers("quaternion", rotation, 4)  # not made unit before it is in the world's dtype
        where, w = arguments.numbers("position", position, 3), arguments.numbers("angular_velocity", angular, 3)
        given = where, rotation, arguments.numbers("linear_velocity", linear, 3), w
        dtype = self.state.q.dtype
        numbers = [np.asarray(x, dtype) for x in given]
        if flat:
            q, v, off = put_in_plane.straight(self.model, np.int32(link), *numbers)
            if leaves_plane(off):
                raise ValueError(
                    f"{body!r} stays in its plane: position, quaternion, linear_velocity, angular_velocity are "
                    f"{', '.join(f'{x:.3g}' for x in off)} off it; give what lies in it"
                )
            return self._put_joint(link, q, v)
        return self._put_joint(link, *put_there.straight(self.model, np.int32(link), *numbers))

    def put_joint(self, name: str, q: Numbers | None, v: Numbers | None) -> WorldState:
        """Change the coordinates and velocities of one link's joint; None leaves them unchanged."""
        link = self.link(name, "link")
        coordinates, dofs = self.joint(link)
        if q is not None:
            q = arguments.numbers("q", q, coordinates.stop - coordinates.start)
            if self.model.topology.joints[link] in TURNING:
                q[-4:] = arguments.quaternion("the quaternion in q", q[-4:])
            else:
                self._check_limits(name, q, dofs)
        return self._put_joint(link, q, None if v is None else arguments.numbers("v", v, dofs.stop - dofs.start))

    def _check_limits(self, name: str, q: Numbers, dofs: slice) -> None:
        """Raise ValueError if coordinates are beyond the limits by more than rounding."""
        lower, upper = (np.asarray(x, float)[dofs] for x in (self.model.lower, self.model.upper))
        if (np.asarray(q) < lower - BEYOND).any() or (np.asarray(q) > upper + BEYOND).any():
            raise ValueError(
                f"set_joint: q is {brief(np.asarray(q).tolist())}, beyond the limits of the joint of {name!r}, "
                f"{brief(lower.tolist())} to {brief(upper.tolist())}"
            )

    def _put_joint(self, link: int, q: Numbers | None, v: Numbers | None) -> WorldState:
        """Put a joint at checked coordinates."""
        all_q, all_v = np.array(self.state.q), np.array(self.state.v)
        for old, at, new in zip((all_q, all_v), self.joint(link), (q, v), strict=True):
            if new is not None:
                old[at] = new
        return self.change(all_q, all_v)

    def joint(self, k: int) -> tuple[slice, slice]:
        """Coordinates and degrees of freedom of the joint of link k."""
        topology = self.model.topology
        return slice(*topology.q_start[k : k + 2]), slice(*topology.v_start[k : k + 2])

    def spare(self, kind: str) -> str:
        """The first of the pool's bodies of this kind that waits."""
        names = self.spares.names
        if not (isinstance(kind, str) and kind in names):
            raise PoolError(
                f"add_body: the pool has no {brief(kind)}; it has {', '.join(names) or 'nothing: give Live a pool'}"
            )
        body = next((body for body in names[kind] if body in self.hidden), None)
        if body is None:
            fix = "remove_body one, or make the pool larger, by add_spares"
            raise PoolError(f"add_body: all {len(names[kind])} of {kind!r} are in use: {fix}")
        return body

    def park(self, body: str) -> WorldState:
        """Return a spare body to its parking position."""
        if not (isinstance(body, str) and any(body in names for names in self.spares.names.values())):
            which = f"{brief(body)} is no body of the pool"
            raise PoolError(f"remove_body: {which}: only what add_body() returned goes back")
        link = self.link(body)
        coordinates, dofs = self.joint(link)
        return self._put_joint(link, self.spares.parked[coordinates], np.zeros(dofs.stop - dofs.start))
