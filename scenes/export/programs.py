"""Functions of an exported world as jax programs: (fields of the world, arguments) -> (changed fields, results).

A frame, pushes and rays are the programs of `carom.Live` itself. The others do what `Live` does on the host: they
track the sleep, check saves and refuse bad arguments. `w` is a world, name -> array, see `fields.py`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ...collision.queries.rays import cast_rays
from ...contact.determine import default_capacity
from ...engine.algebra.rotation import Quat
from ...engine.algebra.vec3 import Vec3
from ...engine.dynamics.trees import trees_of
from ...engine.loops.impulse import velocity_changes
from ...engine.model import Model
from ...engine.packed import Packed, pack_model
from ...engine.results import LEAST_GRAVE
from ...engine.state import State
from ...engine.topology import Topology
from ...integrators.rules import Rules
from ..compiling.check import MOST, UNIT_TOLERANCE
from ..live.by_hand import centre, leaves_plane, put_in_plane, put_there, with_push
from ..live.saves import LATEST, quaternions
from ..live.standing import LinkStates, link_states
from ..live.stepping import ROOM, advance_frame
from ..live.world import Live
from .contacts import as_real, contacts_of, pushes_and_contacts, touching_of
from .digest import blake2b
from .fields import Fields, movable_dofs
from .overlaps import Triggers
from .sleeping import any_of, motors_of_sleepers, wake

REFUSED = 1000  # an invalid argument: a number that is not finite, a body that is not there
OTHER_SAVE, DAMAGED_SAVE = 1001, 1002

World = dict[str, Array]
Change = tuple[World, tuple[Array, ...]]


class Programs:
    """Programs of one world, whose rules, lengths and bodies are constants in them.

    kinds: rows of contacts of a frame: impacts, before it, after it, during it. Known once `step` was traced.
    """

    def __init__(self, live: Live, fields: Fields) -> None:
        self.live, self.fields = live, fields
        self.rules, self.kinds, self.triggers = roomy(live), (0, 0, 0, 0), Triggers(live)

    def step(self, w: World, dt: Array) -> Change:
        """`Live.step`: a frame of dt [s], which `glue.py` has checked."""
        stepper, topology, real = self.live._parts.stepper, self.live.model.topology, w["q"].dtype
        length = dt + w["behind"].astype(real)
        pushed, motors = _of_trees(topology, w["pushes"] != 0), self._commands(w, length)
        island, last_motors = wake(topology, w["island"], w["last_motors"], pushed, motors != w["last_motors"])
        waits, parked = self.parked_links(w["q"]), self._parked_trees(w["q"])
        held = waits & ~parked[trees_of(topology).of_link[:-1]] if stepper._shared else None
        asleep = jnp.where(parked, jnp.arange(len(island), dtype=jnp.int32), island)
        state = State(w["q"], w["v"], w["t"])
        max_ticks, window = stepper._room
        windows = () if window is None else (jnp.asarray(window, real),)
        static = self.rules, stepper._max_events, stepper._sleeps
        bounds = jnp.asarray(stepper._max_dt, real), jnp.int32(max_ticks), *windows
        given = state, asleep, ~pushed, held, w["pushes"], motors, length, *bounds
        done, there = advance_frame(static, self._model(w), *given)
        code = done.code.astype(jnp.int32)
        well = code < LEAST_GRAVE
        after = jnp.where(parked, -1, done.island)
        left = done.left.astype(jnp.float32)
        self.kinds, touched, touching = touching_of(done)
        new = {
            "q": done.state.q, "v": done.state.v, "t": done.state.t, **self._with_link_states(w, there),
            "island": after, "last_motors": motors_of_sleepers(topology, island, after, last_motors, motors),
            "windows": done.windows,
            "behind": jnp.minimum(left, LATEST), "missed": w["missed"] + jnp.maximum(left - LATEST, 0).astype(real),
            "fresh": jnp.int32(1),
        }  # fmt: skip
        if self.triggers.looks:
            new["inside"] = self.triggers.inside(w["layers"], done.state.q, there.pose, self.parked_links(done.state.q))
            new["crossed"] = new["inside"] - w["inside"]
        if "felt" in w:
            rows = contacts_of(self.live, self.kinds, touched, touching)
            felt = pushes_and_contacts(w["pushes"], there.pose, *rows, length - done.left)
            slept = jnp.append((w["island"] >= 0) & (after >= 0), False)[trees_of(topology).of_link[:-1]]
            new["felt"] = jnp.where(slept[:, None], w["felt"], felt)  # forces that hold sleeping bodies stay
        new = {name: jnp.where(well, x, w[name]) for name, x in new.items()}
        new |= {"touched": jnp.where(well, touched, -1), "touching": touching}
        new["pushes"] = jnp.zeros_like(w["pushes"])  # also where the frame fails: they may be why
        if "aimed" in w:
            new["motors"] = jnp.where(w["aimed"] != 0, 0, w["motors"])
            new["aimed"] = jnp.zeros_like(w["aimed"])
        return self._add_derived(new), (code,)

    def move_joint(self, w: World, dof: Array, q: Array) -> Change:
        """`Live.move_joint`, of one degree of freedom of a joint."""
        movable = movable_dofs(self.live.model)
        valid = (dof >= 0) & (dof < len(movable)) & (abs(q) <= MOST)
        k = jnp.clip(dof, 0, len(movable) - 1)
        valid &= jnp.asarray(movable)[k]
        new = {"targets": w["targets"].at[k].set(q), "aimed": w["aimed"].at[k].set(1)}
        return {name: jnp.where(valid, x, w[name]) for name, x in new.items()}, (return_code(valid),)

    def apply_force(self, w: World, body: Array, force: Array, point: Array, given: Array, own: bool = False) -> Change:
        """`Live.apply_force`.  own: in the body's axes."""
        return self._push(w, body, force, jnp.zeros_like(force), point, given, own)

    def apply_torque(self, w: World, body: Array, torque: Array, own: bool = False) -> Change:
        """`Live.apply_torque`."""
        return self._push(w, body, jnp.zeros_like(torque), torque, jnp.zeros_like(torque), jnp.int32(0), own)

    def apply_impulse(
        self, w: World, body: Array, impulse: Array, point: Array, given: Array, own: bool = False
    ) -> Change:
        """`Live.apply_impulse`."""
        model, link, valid = self._model(w), *self._link(w, body, impulse, point)
        valid &= self._there(w, link)
        nothing = jnp.zeros_like(w["pushes"]), link, impulse, jnp.zeros_like(impulse), point
        struck = with_push(model, w["pose"], *nothing, given == 0, jnp.asarray(own))
        return self._set_state(w, w["q"], w["v"] + velocity_changes(model, w["q"], struck), valid)

    def put(self, w: World, body: Array, *arguments: Array) -> Change:
        """`Live.teleport`, see `set_free_body`."""
        changed, (code,) = self.set_free_body(w, body, *arguments)
        there = self._there(w, jnp.clip(body, 0, self.live.model.topology.n_links - 1))
        return {name: jnp.where(there, x, w[name]) for name, x in changed.items()}, (jnp.where(there, code, REFUSED),)

    def set_free_body(self, w: World, body: Array, *arguments: Array) -> Change:
        """Put a free body, or one in a plane, at a pose with velocities; spare ones that wait too.

        arguments: position, quaternion, linear and angular velocity, each followed by () whether it is given; others
        stay unchanged."""
        (position, quaternion, linear, angular), given = arguments[::2], arguments[1::2]
        model, topology = self._model(w), self.live.model.topology
        link, valid = self._link(w, body, position, quaternion, linear, angular)
        free = np.array([joint == "floating" for joint in topology.joints])
        flat = np.array(topology.in_plane)
        pose, velocity = w["pose"][link], w["velocity"][link]
        now = pose[:3], pose[3:], velocity[3:], velocity[:3]
        new_position, new_quaternion, v, omega = (
            jnp.where(yes != 0, x, y) for yes, x, y in zip(given, arguments[::2], now, strict=True)
        )
        valid &= jnp.asarray(free | flat)[link] & unit(new_quaternion[None])
        start = jnp.asarray(topology.q_start[:-1])[link], jnp.asarray(topology.v_start[:-1])[link]

        def there(*made: Array) -> list[Array]:
            old = w["q"], w["v"]
            parts = zip(old, start, made, strict=True)
            return [x.at[first + jnp.arange(len(some))].set(some, mode="drop") for x, first, some in parts]

        given = model, link, new_position, new_quaternion, v, omega
        q, v = there(*put_there(*given))
        if flat.any():
            *made, off = put_in_plane(*given)
            mine = jnp.asarray(flat)[link]
            valid &= ~mine | ~leaves_plane(off)
            q, v = (jnp.where(mine, x, y) for x, y in zip(there(*made), (q, v), strict=True))
        return self._set_state(w, q, v, valid)

    def load(self, w: World, header: Array, q: Array, v: Array, t: Array, island: Array, last_motors: Array) -> Change:
        """`Live.load_state`.  header: (4,) whole numbers."""
        own = np.frombuffer(self.fields.header, np.int32)
        behind = jax.lax.bitcast_convert_type(header[1], jnp.float32)
        mine = (header == own)[np.array([0, 2, 3])].all()
        finite = jnp.isfinite(q).all() & jnp.isfinite(v).all() & jnp.isfinite(t) & jnp.isfinite(last_motors).all()
        late = (behind >= 0) & (behind <= LATEST)
        n = len(island)
        named = island[jnp.clip(island, 0, max(n - 1, 0))] if n else island
        sound = ((island >= -1) & (island < n) & ((island < 0) | (named == island))).all()
        quaternion_indices = quaternions(self.live.model.topology)
        whole = finite & late & sound & unit(q[quaternion_indices])
        code = jnp.where(mine, jnp.where(whole, 0, DAMAGED_SAVE), OTHER_SAVE).astype(jnp.int32)
        new = {"q": q, "v": v, "t": t, "behind": behind, "island": island, "last_motors": last_motors}
        new |= {"pushes": jnp.zeros_like(w["pushes"]), "fresh": jnp.int32(0)}
        states = link_states(self._model(w), q, v)
        new |= self._with_link_states(w, states)
        if "aimed" in w:
            new["aimed"] = jnp.zeros_like(w["aimed"])
        if self.triggers.looks:
            new["inside"] = self.triggers.inside(w["layers"], q, states.pose, self.parked_links(q))
            new["crossed"] = jnp.zeros_like(w["crossed"])
        return self._add_derived({name: jnp.where(code == 0, x, w[name]) for name, x in new.items()}), (code,)

    def hash(self, w: World) -> Change:
        """`Live.hash`: hexadecimal digits, and the 0 that ends a text."""
        digits = blake2b(jnp.concatenate([w["q"], w["v"], w["t"][None]]))
        return {}, (jnp.concatenate([digits, jnp.zeros(1, jnp.uint8)]),)

    def ray(self, w: World, origin: Array, direction: Array, most: Array, moving: Array, mask: Array) -> Change:
        """`Live.raycast`: 1 if it hits, and (9,) body, shape, distance, point, normal.  moving: () without statics.
        mask: () layers that it hits."""
        topology, dtype = self.live.model.topology, w["q"].dtype
        parked = jnp.append(self.parked_links(w["q"]), False)
        links = np.array(topology.shape_links, int)
        among = ~parked[links] & ((moving == 0) | (links >= 0))
        among &= w["layers"][:, 0] & mask != 0
        ray = cast_rays(self._model(w), w["q"], origin[None], direction[None], max_distance=most, among=among)
        whole = as_real(jnp.stack([ray.link[0], ray.shape[0]]), dtype)
        hit = jnp.concatenate([whole, ray.distance, ray.point[0], ray.normal[0]])
        return {}, ((ray.shape[0] >= 0).astype(jnp.int32), hit)

    def contacts(self, w: World) -> Change:
        """`Live.contact_events` of bodies that are awake: their number, and rows (n, 14) as in `contacts.py`."""
        count, rows = contacts_of(self.live, self.kinds, w["touched"], w["touching"])
        return {}, (jnp.where(w["fresh"] != 0, count, 0).astype(jnp.int32), rows)

    # -- parts of these ----------------------------------------------------------------------------------------

    def _commands(self, w: World, dt: Array) -> Array:
        """Commands to the motors (nv,) for a frame of dt [s]."""
        if "aimed" not in w:
            return w["motors"]
        topology = self.live.model.topology
        links = np.repeat(np.arange(topology.n_links), np.diff(topology.v_start))
        coordinates = np.arange(topology.nv) + (np.array(topology.q_start) - np.array(topology.v_start))[links]
        there = w["q"][np.where(movable_dofs(self.live.model), coordinates, 0)]
        return jnp.where(w["aimed"] != 0, (w["targets"] - there) / dt, w["motors"])

    def _model(self, w: World) -> Model:
        known: Any = pack_model(self.live.model)
        return Packed(w["parameters"], known.topology, known.shapes).model

    def _parked_trees(self, q: Array) -> Array:
        """Trees all of whose links are spare bodies that wait, (T,) bool."""
        trees = trees_of(self.live.model.topology)
        return ~any_of(trees.of_link[:-1], ~self.parked_links(q), trees.n)

    def parked_links(self, q: Array) -> Array:
        """Spare bodies that wait, (nl,) bool."""
        spares, waiting = self.live._parts.start.spares, jnp.zeros(self.live.model.topology.n_links, bool)
        if len(spares.owned):
            index = spares.coordinates
            away = (q[index] == jnp.asarray(spares.parked[index], q.dtype)).all(1)
            waiting = waiting.at[spares.owned[:, 0]].set(away)
        return waiting

    def _there(self, w: World, link: Array) -> Array:
        """Return whether a link is present, not a spare body that waits, () bool."""
        return ~self.parked_links(w["q"])[link]

    def _link(self, w: World, body: Array, *numbers: Array) -> tuple[Array, Array]:
        """A body's number, clipped to its range, and whether it and the other arguments are valid."""
        n = self.live.model.topology.n_links
        fine = [(abs(x) <= MOST).all() for x in numbers]  # false for NaN
        valid = (body >= 0) & (body < n)
        for one in fine:
            valid &= one
        return jnp.clip(body, 0, n - 1), valid

    def _push(
        self, w: World, body: Array, force: Array, torque: Array, point: Array, given: Array, own: bool
    ) -> Change:
        link, valid = self._link(w, body, force, torque, point)
        valid &= self._there(w, link)
        numbers = w["pose"], w["pushes"], link, force, torque, point
        pushes = with_push(self._model(w), *numbers, given == 0, jnp.asarray(own))
        valid &= jnp.isfinite(pushes).all()
        return {"pushes": jnp.where(valid, pushes, w["pushes"])}, (return_code(valid),)

    def _set_state(self, w: World, q: Array, v: Array, valid: Array) -> Change:
        """Set coordinates and velocities; trees whose state changes wake."""
        topology = self.live.model.topology
        valid &= jnp.isfinite(q).all() & jnp.isfinite(v).all()
        q, v = jnp.where(valid, q, w["q"]), jnp.where(valid, v, w["v"])
        trees = trees_of(topology)
        of_q = np.repeat(trees.of_link[:-1], np.diff(topology.q_start))
        woken = any_of(of_q, q != w["q"], trees.n)
        island, last_motors = wake(topology, w["island"], w["last_motors"], woken, v != w["v"])
        states = self._with_link_states(w, link_states(self._model(w), q, v))
        fresh = jnp.where(valid, 0, w["fresh"]).astype(jnp.int32)
        changed = {"q": q, "v": v, "island": island, "last_motors": last_motors, "fresh": fresh, **states}
        return self._add_derived(changed), (return_code(valid),)

    def _with_link_states(self, w: World, states: LinkStates) -> World:
        """The fields of poses and of velocities of centres of mass."""
        model = self._model(w)
        every = np.arange(model.topology.n_links)
        rotation = Quat.of_array(states.pose[:, 3:]).matrix()
        omega, v = Vec3.of(states.velocity[:, :3]), Vec3.of(states.velocity[:, 3:])
        v = v + omega.cross(centre(model, rotation, every))
        return {"pose": states.pose, "velocity": jnp.stack([*omega.xyz, *v.xyz], -1)}

    def _add_derived(self, new: World) -> World:
        """Add the number of bytes of a save, and which bodies sleep."""
        sizes, tree = (self.fields.most, self.fields.awake), trees_of(self.live.model.topology).of_link[:-1]
        sleeps = new["island"] >= 0
        asleep = jnp.append(sleeps, False)[tree].astype(jnp.int32)
        return new | {"saved": jnp.where(sleeps.any(), *sizes).astype(jnp.int32), "asleep": asleep}


def roomy(live: Live) -> Rules:
    """A world's rules, with twice the capacity for contacts if it had to grow: an exported world cannot."""
    stepper = live._parts.stepper
    room, default = stepper._rules.max_contacts, ROOM * default_capacity(live.model.topology)
    if room is None or room <= default or "max_contacts" in stepper._given:
        return stepper._rules
    return replace(stepper._rules, max_contacts=2 * room)


def _of_trees(topology: Topology, pushed: Array) -> Array:
    """Trees with a link for which any of (nl, 6) is true, (T,) bool."""
    trees = trees_of(topology)
    return any_of(trees.of_link[:-1], pushed.any(1), trees.n)


def unit(quaternions: Array) -> Array:
    """Return whether quaternions (n, 4) are all of length 1."""
    return (abs(jnp.sqrt((quaternions * quaternions).sum(-1)) - 1) <= UNIT_TOLERANCE).all()


def return_code(valid: Array) -> Array:
    return jnp.where(valid, 0, REFUSED).astype(jnp.int32)
