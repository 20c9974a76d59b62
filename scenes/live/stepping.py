"""The programs that step a world: a frame, and the response to an impulse. Each is compiled once."""

from __future__ import annotations

import functools
from concurrent.futures import Future
from dataclasses import replace
from time import perf_counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...collision.poses import Array
from ...contact.determine import default_capacity
from ...engine.dynamics.kinematics import fk
from ...engine.dynamics.trees import trees_of
from ...engine.dynamics.wrenches import joint_forces
from ...engine.loops.impulse import velocity_changes
from ...engine.model import Model
from ...engine.native.function import native
from ...engine.native.joined_results import JoinedResults, join_results, split_results
from ...engine.packed import Packed, pack_model, unpack_model
from ...engine.results import CONTACTS_FULL
from ...engine.state import State
from ...engine.topology import Topology
from ...integrators.capacity import CAPACITIES, given_capacities, raise_capacity
from ...integrators.frame import Frame, frame
from ...integrators.motion.forces import Drive
from ...integrators.options import Options
from ...integrators.rules import Rules
from ...integrators.sleep import follows_time
from .asleep import pushed_trees
from .background import in_background
from .pace import Pace
from .pool import Spares
from .standing import LinkStates, link_states
from .touching import SleepingContacts

ISLANDS = 4096  # islands whose contacts are kept, at most
ROOM = 2  # default capacities of a world for contacts: bricks that collapse have ten each, a flush wall of them twelve
AHEAD = 3 / 4  # part of the capacity that is in use before a program with more is compiled
NOTHING = np.zeros(0, int), np.zeros(0, int), *np.zeros((3, 0, 3))


class Stepper:
    """The programs of one model. Arrays are numpy's; spare bodies do not move in its states q, v, t."""

    def __init__(
        self,
        model: Model,
        rules: Rules,
        spares: Spares,
        options: Options,
        budget: float | None,
        sleep_speed: float,
    ) -> None:
        self._model, self._spares, self._dtype = model, spares, np.dtype(model.mass.dtype)
        self._given, self._max_events = given_capacities(rules), options.max_events
        room = ROOM * default_capacity(model.topology)
        self._rules = rules if "max_contacts" in self._given else replace(rules, max_contacts=room)
        self._max_dt = options.max_dt
        self._room: Any = options.max_ticks, options.window
        self._pace, self._compiled = None if budget is None else Pace(budget), set[Rules]()
        self._sleeps = None if follows_time(model) else sleep_speed
        self._asleep: tuple[list[bytes], Frame, LinkStates] | None = None
        self._ahead: dict[int, Future[Any]] = {}  # by the capacity that was nearly used up
        self._numbers: tuple[Any, ...] = ()  # arguments of the last frame's program
        self.waited = 0.0  # [s] of the last frame, until a program with larger capacities had computed it
        self._resting_rows: dict[bytes, tuple[Array, ...]] = {}
        self._parked_trees: dict[bytes, tuple[Array, Array | None]] = {}  # by the bodies that wait now
        trees, self._shared = trees_of(model.topology), spares.shares_trees(model.topology)
        self._tree_of_q = np.repeat(trees.of_link[:-1], np.diff(model.topology.q_start))
        self._tree_of_v = trees.of_dof

    @property
    def windowed(self) -> bool:
        """Whether the rest of a frame after its ticks passes in windows."""
        return self._room[1] is not None

    def warm(self, state: State, island: Array, wrenches: Array, motors: Array, dt: float) -> None:
        """Compile the programs, with the arguments of `step`."""
        self._compute_in_budget(state, island, wrenches, motors, dt)
        self.response(state.q, wrenches)

    def check(self, model: Model) -> None:
        """Raise ValueError if a model has numbers that the rules do not read."""
        self._rules.check(model)

    def expect(self, other: Stepper) -> None:
        """Begin with the capacities of a smaller one, unless they are smaller."""
        for name in CAPACITIES.values():
            mine, needed = getattr(self._rules, name), getattr(other._rules, name)
            if needed is not None:
                self._rules = replace(self._rules, **{name: max(mine or 0, needed)})

    def use(self, model: Model) -> None:
        """Use another model, which differs in numbers only."""
        self._model, self._asleep = model, None
        self._resting_rows.clear()

    def step(self, state: State, island: Array, wrenches: Array, motors: Array, dt: float) -> tuple[Frame, LinkStates]:
        """Compute a frame of dt [s], and the poses and velocities of all links at its end.

        island: (T,) sleep.  wrenches: (nl, 6) moment about each link's origin [N m] and force [N], world axes.
        motors: (nv,) the commands to them.

        A sleeping world, one that the last frame did not change, is not computed: it returns the same frame again.
        """
        self.waited = 0.0
        given: list[Any] = [state.q, state.v, island, wrenches, motors, np.asarray(dt, self._dtype)]
        bits = [x.tobytes() for x in given]
        if self._asleep and bits == self._asleep[0]:
            _, frame, there = self._asleep
            end: Any = np.asarray(state.t + given[-1] - frame.left, self._dtype)
            return frame._replace(state=State(frame.state.q, frame.state.v, end)), there
        frame, there = self._compute_in_budget(state, island, wrenches, motors, dt)
        after: list[Any] = [frame.state.q, frame.state.v, frame.island]
        self._compile_ahead(int(frame.contacts))
        stays = self._sleeps is not None and bits[:3] == [x.tobytes() for x in after]
        self._asleep = (bits, frame, there) if stays else None
        return frame, there

    def sleeping_contacts(self, state: State, island: Array, motors: Array, frame: Frame) -> SleepingContacts:
        """Contacts that hold the trees asleep (T,) at the start of a frame, in this state of the world.

        Each island is computed by a step of it alone: the result does not depend on other sleeping islands.
        """
        islands = [self._rows(state, island, motors, tree) for tree in np.unique(island[island >= 0])]
        columns = (np.concatenate(x) for x in zip(*islands, strict=True)) if islands else NOTHING
        tree, pair, point, normal, force = columns
        slept = np.asarray(frame.slept)[tree]
        return SleepingContacts(pair, point, normal, slept[:, None] * force, frame.island[tree] >= 0)

    def _rows(self, state: State, island: Array, motors: Array, tree: int) -> tuple[Array, ...]:
        """Rows of contacts that hold an island: its tree, their pair, point, normal, and force on A [N]."""
        mine = np.append(island == tree, False)
        coordinates, dofs = mine[self._tree_of_q], mine[self._tree_of_v]
        key = b"".join(x.tobytes() for x in (mine, state.q[coordinates], motors[dofs]))
        if key not in self._resting_rows:
            if len(self._resting_rows) >= ISLANDS:
                self._resting_rows.clear()
            others = np.where(mine[:-1], -1, np.arange(len(island), dtype=np.int32))
            nothing = np.zeros((self._model.topology.n_links, 6))
            alone, _ = self._compute(state, others, nothing, motors, self._max_dt, self._room)
            parts = alone.after, alone.during
            pair, point, normal, impulse = (
                np.concatenate([getattr(x, name).reshape(-1, *own) for x in parts])
                for name, own in (("pair", ()), ("point", (3,)), ("normal", (3,)), ("impulse", (3,)))
            )
            real = pair >= 0
            rows = (np.full(len(pair), tree), pair, point, normal, impulse / self._max_dt)
            self._resting_rows[key] = tuple(x[real] for x in rows)
        return self._resting_rows[key]

    def _compute_in_budget(
        self, state: State, island: Array, wrenches: Array, motors: Array, dt: float
    ) -> tuple[Frame, LinkStates]:
        """Compute a frame within the budget, if there is one."""
        if self._pace is None:
            return self._compute(state, island, wrenches, motors, dt, self._room)
        room, begin, ready = self._pace.room(dt, *self._room), perf_counter(), self._rules in self._compiled
        frame, there = self._compute(state, island, wrenches, motors, dt, room)
        if ready and self._rules in self._compiled:
            self._pace.took(perf_counter() - begin, int(frame.ticks))
        self._compiled.add(self._rules)
        return frame, there

    def _compute(
        self, state: State, island: Array, wrenches: Array, motors: Array, dt: float, room: tuple[int, float | None]
    ) -> tuple[Frame, LinkStates]:
        """Compute a frame.  room: the most ticks, and the length of windows [s]."""
        still, quiet = np.array(island), ~pushed_trees(self._model.topology, wrenches)
        parked, waits = self._find_parked(state.q)
        still[parked] = parked
        max_ticks, *windows = (x for x in room if x is not None)
        given = (np.asarray(x, self._dtype) for x in (wrenches, motors, dt, self._max_dt))
        bounds = np.asarray(max_ticks, np.int32), *(np.asarray(x, self._dtype) for x in windows)
        numbers = pack_model(self._model), state, still, quiet, waits, *given, *bounds
        self._numbers = numbers
        done, there = self._attempt(numbers)
        while (more := raise_capacity(self._rules, *self._outcome(done), self._given)) != self._rules:
            self._rules, began = more, perf_counter()  # from here on: a world may need again what it needed once
            done, there = self._attempt(numbers)
            self.waited += perf_counter() - began
        after = np.array(done.island)
        after[parked] = -1
        return done._replace(island=after), there

    def _find_parked(self, q: Array | jax.Array) -> tuple[Array, Array | None]:
        """Trees of which all links are parked; and the links that wait in others (nl,) bool, if there can be any."""
        key = self._spares.waiting(q).tobytes()
        if key not in self._parked_trees:
            of_link = trees_of(self._model.topology).of_link[:-1]
            waits = np.zeros(len(of_link), bool)
            waits[self._spares.links_waiting(q)] = True
            parked = np.setdiff1d(of_link[waits], of_link[~waits])
            self._parked_trees = {key: (parked, waits & ~np.isin(of_link, parked) if self._shared else None)}
        return self._parked_trees[key]

    def _compile_ahead(self, contacts: int) -> None:
        """Compile the program for more contacts in the background, before a frame has to wait for it."""
        most = self._rules.max_contacts
        if "max_contacts" in self._given or most is None or contacts <= AHEAD * most or most in self._ahead:
            return
        more = raise_capacity(self._rules, CONTACTS_FULL, most + 1, 0)
        self._ahead[most] = in_background(functools.partial(self._attempt, self._numbers, more))

    def _attempt(self, numbers: tuple[Any, ...], rules: Rules | None = None) -> tuple[Frame, LinkStates]:
        static = rules or self._rules, self._max_events, self._sleeps
        return split_results(_advance.straight(static, *numbers))

    @staticmethod
    def _outcome(frame: Frame) -> tuple[int, int, int]:
        return int(frame.code), int(frame.contacts), int(frame.pairs)

    def response(self, q: Array | jax.Array, wrenches: Array) -> Array:
        """Change of the velocities (nv,) by impulsive wrenches on links (nl, 6) [N m s, N s], all at once."""
        return velocity_changes.straight(self._model, q, wrenches.astype(self._dtype))


@native
def _advance(static: tuple[Rules, int, float | None], given: Packed | Model, *others: Any) -> JoinedResults:
    return join_results(advance_frame(static, unpack_model(given), *others))


def advance_frame(
    static: Any,
    model: Model,
    state: State,
    island: jax.Array,
    quiet: jax.Array,
    waits: jax.Array | None,
    wrenches: jax.Array,
    motors: jax.Array,
    dt: jax.Array,
    *bounds: jax.Array,
) -> tuple[Frame, LinkStates]:
    """A frame, see `integrators/frame.py`, and the poses and velocities of all links at its end.

    waits: (nl,) bool, links that are held where they are in trees that move; None: there are no such trees.
    """
    if waits is not None:
        wrenches = jnp.where(waits[:, None], -_weights(model, state.q), wrenches)
    forces = joint_forces(model, state.q, wrenches)
    done = frame(static, model, state, Drive(motors, forces), island, quiet, dt, *bounds)
    if waits is not None:
        done = done._replace(state=_put_back(model.topology, waits, state, done.state))
    return done, link_states(model, done.state.q, done.state.v)


def _weights(model: Model, q: jax.Array) -> jax.Array:
    """Weight of each link (nl, 6): moment about its origin and force, world axes."""
    arm = (fk(model, q).rotation @ model.com[..., None])[..., 0]
    weight = model.mass[:, None] * model.gravity
    return jnp.concatenate([jnp.cross(arm, weight), weight], -1)


def _put_back(topology: Topology, waits: jax.Array, before: State, after: State) -> State:
    """The state after a frame, with the links that wait as they were before."""
    q, v = (
        jnp.where(waits[np.repeat(np.arange(topology.n_links), np.diff(start))], old, new)
        for start, old, new in ((topology.q_start, before.q, after.q), (topology.v_start, before.v, after.v))
    )
    return State(q, v, after.t)
