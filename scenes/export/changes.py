"""Changes of an exported world while it runs: layers, joints that are cut and joined, spare bodies. These
programs do what `scenes/live/changes.py` and `pool.py` do on the host.

All except spare bodies are inputs, as in `Live`: numbers of the model, which no save holds and a reset restores.
"""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from ...engine.dynamics.wrenches import joint_forces
from ...engine.model import Model
from ...engine.packed import pack_model
from ..compiling.pairs import meet
from ..live.changes import REACH, attach_ends, attached_pairs, loop_pulls, velocities_after_attaching
from .named import kinds, owners, things
from .programs import Change, Programs, World, return_code

NONE_WAITS = -1  # `add_body` returns it if all bodies are in use


class ChangePrograms:
    """Programs of one world, like those of `programs.py`."""

    def __init__(self, programs: Programs) -> None:
        self.programs, live = programs, programs.live
        self.live, self.topology = live, live.model.topology
        self.owner = owners(live)
        self.pairs = np.array(self.topology.pairs, np.int32).reshape(-1, 2)
        known: Any = pack_model(live.model)
        self.ranges, at = {}, 0
        for name, shape in known.shapes:
            size = math.prod(shape)
            self.ranges[name] = at, at + size
            at += size

    # -- who touches whom ----------------------------------------------------------------------------------------

    def set_layers(self, w: World, body: Array, group: Array, in_group: Array, mask: Array, masked: Array) -> Change:
        """`Live.set_layers`; each set of layers is followed by whether it is given."""
        mine = jnp.asarray(self.owner) == body
        given = jnp.stack([in_group, masked]) != 0
        layers = jnp.where(mine[:, None] & given, jnp.stack([group, mask]), w["layers"])
        touches = self._touches(layers, w["ignored"], self.model(w).loop_active)
        return self.apply(w, {"pair_touches": touches}, mine.any(), {"layers": layers})

    def ignore_collision(self, w: World, a: Array, b: Array, ignored: Array) -> Change:
        """`Live.ignore_collision`."""
        owner, mine = jnp.asarray(self.owner), self.between(a, b)
        valid = (a != b) & (owner == a).any() & (owner == b).any()
        after = jnp.where(mine, (ignored != 0).astype(jnp.int32), w["ignored"])
        touches = self._touches(w["layers"], after, self.model(w).loop_active)
        return self.apply(w, {"pair_touches": touches}, valid, {"ignored": after})

    def between(self, a: Array, b: Array) -> Array:
        """Pairs of a shape of one thing and a shape of the other, (np,) bool."""
        of = jnp.asarray(self.owner)[self.pairs]
        return ((of == jnp.stack([a, b])) | (of == jnp.stack([b, a]))).all(1)

    def _touches(self, layers: Array, ignored: Array, active: Array) -> Array:
        """Pairs that may touch, (np,) bool."""
        i, j = self.pairs.T
        group, mask = layers[:, 0], layers[:, 1]
        touches: Any = meet(group, mask, i, j) & (ignored == 0)  # type: ignore[arg-type]
        names = np.array(things(self.live))[self.owner][self.pairs]
        for k, ends in attached_pairs(self.topology).items():
            between = ((names == ends) | (names == ends[::-1])).all(1)
            touches &= ~((active[k] != 0) & between)
        return touches

    # -- joints --------------------------------------------------------------------------------------------------

    def attach(self, w: World, joint: Array, point: Array, given: Array) -> Change:
        """`Live.attach`."""
        model, (k, valid) = self.model(w), self._joint(joint)
        _, within = self.programs._link(w, jnp.int32(0), point)
        ends = attach_ends(model, w["pose"], k, point, given != 0)
        rod = jnp.asarray(np.array([loop.kind == "distance" for loop in self.topology.loops]))[k]
        tied = jnp.asarray(np.array([(loop.a, loop.b) for loop in self.topology.loops], np.int32))[k]
        here = ~jnp.append(self.programs.parked_links(w["q"]), False)[tied].any()
        valid &= within & here & ~(rod & (ends.length == 0)) & (ends.reach <= REACH[ends.reach.dtype.itemsize])
        new, _ = self.apply(w, ends.numbers | self._switch(w, model, k, 1), valid, {})
        after = w | new
        q, v = velocities_after_attaching(self.model(after), w["q"], w["v"], w["t"])
        changed, (code,) = self.programs._set_state(after, q, v, valid)
        both = new | changed
        return {name: jnp.where(code == 0, x, w[name]) for name, x in both.items()}, (code,)

    def detach(self, w: World, joint: Array) -> Change:
        """`Live.detach`."""
        k, valid = self._joint(joint)
        return self.apply(w, self._switch(w, self.model(w), k, 0), valid, {})

    def joint_force(self, w: World, joint: Array) -> Change:
        """`Live.joint_force`."""
        model, (k, valid) = self.model(w), self._joint(joint)
        felt = joint_forces(model, w["q"], jnp.where(w["fresh"] != 0, w["felt"], 0))
        forces = loop_pulls(model, w["q"], w["v"], w["t"], w["motors"], felt)
        return {}, (return_code(valid), jnp.where(valid, forces[k], 0))

    def _joint(self, joint: Array) -> tuple[Array, Array]:
        """A loop's number, clipped to its range, and whether the loop can be cut."""
        switched = np.array([loop.switched for loop in self.topology.loops])
        k = jnp.clip(joint, 0, len(switched) - 1)
        return k, (k == joint) & jnp.asarray(switched)[k]

    def _switch(self, w: World, model: Model, k: Array | np.ndarray, holds: Array | int) -> dict[str, Array]:
        """Parameters of the model with joints k cut or attached."""
        active = model.loop_active.at[k].set(jnp.asarray(holds, model.loop_active.dtype))
        new = {"loop_active": active}
        if self.topology.filtered:
            new["pair_touches"] = self._touches(w["layers"], w["ignored"], active)
        return new

    # -- spare bodies --------------------------------------------------------------------------------------------

    def add_body(self, w: World, kind: Array, position: Array, *arguments: Array) -> Change:
        """`Live.add_body`: the number of the body, or less than 0.  arguments: quaternion, linear and angular velocity,
        each followed by whether it is given."""
        waits, body = self.programs.parked_links(w["q"]), jnp.int32(-1)
        for k, links in enumerate(kinds(self.live).values()):
            mine = waits[np.array(links)]
            first = jnp.where(mine.any(), jnp.asarray(np.array(links, np.int32))[jnp.argmax(mine)], -1)
            body = jnp.where(kind == k, first, body).astype(jnp.int32)
        yes, still = jnp.int32(1), jnp.zeros(3, w["q"].dtype)
        velocities = [x for new, given in zip(arguments[2::2], arguments[3::2], strict=True)
                      for x in (jnp.where(given != 0, new, still), yes)]  # fmt: skip
        changed, (code,) = self.programs.set_free_body(w, body, position, yes, *arguments[:2], *velocities)
        known = (kind >= 0) & (kind < len(kinds(self.live)))
        none = jnp.where(known & (body < 0), NONE_WAITS, -code)
        return changed, (jnp.where(code == 0, body, none).astype(jnp.int32),)

    def remove_body(self, w: World, body: Array) -> Change:
        """`Live.remove_body`."""
        programs, topology, spares = self.programs, self.topology, self.live._parts.start.spares
        link, _ = programs._link(w, body)
        spare = np.isin(np.arange(topology.n_links), spares.owned[:, 0])
        valid = (link == body) & jnp.asarray(spare)[link] & ~programs.parked_links(w["q"])[link]
        coordinates, dofs = (
            jnp.asarray(np.repeat(np.arange(topology.n_links), np.diff(start))) == link
            for start in (topology.q_start, topology.v_start)
        )
        cut, loops = {}, [(k, loop) for k, loop in enumerate(topology.loops) if loop.switched]
        if loops:
            model = self.model(w)
            ends = jnp.asarray(np.array([(loop.a, loop.b) for _, loop in loops], np.int32))
            numbers = np.array([k for k, _ in loops])
            holds = jnp.where((ends == link).any(1), 0, model.loop_active[numbers])
            cut, _ = self.apply(w, self._switch(w, model, numbers, holds), valid, {})
        q = jnp.where(coordinates, jnp.asarray(spares.parked, w["q"].dtype), w["q"])
        parked, (code,) = programs._set_state(w | cut, q, jnp.where(dofs, 0, w["v"]), valid)
        mine = jnp.arange(topology.n_links) == link
        new = cut | parked | {"pushes": jnp.where(mine[:, None], 0, w["pushes"])}
        return {name: jnp.where(code == 0, x, w[name]) for name, x in new.items()}, (code,)

    # -- parts of these, and of `surfaces.py` ---------------------------------------------------------------------

    def model(self, w: World) -> Model:
        return self.programs._model(w)

    def _numbers(self, w: World, changes: dict[str, Array]) -> Array:
        """The model's packed parameters with some of them changed."""
        numbers = w["parameters"]
        for name, x in changes.items():
            a, b = self.ranges[name]
            numbers = numbers.at[a:b].set(x.astype(numbers.dtype).reshape(-1))
        return numbers

    def apply(self, w: World, changes: dict[str, Array], valid: Array, more: dict[str, Array]) -> Change:
        """Change parameters, if the call is valid; where any of them differs, all sleepers wake."""
        numbers = self._numbers(w, changes)
        new = valid & (numbers != w["parameters"]).any()
        awake = {
            "parameters": numbers,
            "island": jnp.full_like(w["island"], -1),
            "last_motors": jnp.zeros_like(w["last_motors"]),
        }
        awake["fresh"] = jnp.int32(0)
        new_world = {name: jnp.where(new, x, w[name]) for name, x in awake.items()}
        new_world |= {name: jnp.where(valid, x, w[name]) for name, x in more.items()}
        return self.programs._add_derived(new_world), (return_code(valid),)
