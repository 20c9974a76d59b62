"""The default scheme: exact free flight, order 4 for trees.

A free body moves as in `flight.py` if only gravity acts on it, and forces that are constant over the step about its
centre of mass (impulses of resting contacts, external forces). Motors, springs, damping and armature of a free body
turn with it or change with its speed: it then takes classical Runge-Kutta steps of order 4, in coordinates of its
centre of mass, in which parabolas are exact. Trees take these steps in coordinates of their origins.

A Runge-Kutta step in which a body rotates by more than 2.8 rad about an axis that itself rotates gains energy without
end (Hairer, Wanner 1996, section IV.2), so a step is divided into equal parts of at most `LARGEST_ROTATION` each. The
two guesses that each part makes of the velocities midway differ by (h w)^3 / 4 of what changes at the rate w. Where
that is much, the part is halved, and so are those that follow: light links under a heavy load swing fast, and a slack
chain is taut in no time. Bodies that loops hold do not count: they are slow at one moment and fast at the next, and the
drift of loops finds the step that is short enough (`time_control.py`).
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.lax import stop_gradient

from ...engine.algebra.bounded import loop
from ...engine.algebra.fence import fence
from ...engine.algebra.rotation import Quat
from ...engine.algebra.vec3 import Sym3, Vec3
from ...engine.dynamics.trees import trees_of
from ...engine.forest import Forest
from ...engine.loops.forward import forward
from ...engine.model import Model
from ...engine.state import State
from ...engine.topology import Topology
from .flight import Body, fly_body
from .forces import Step, column, joint_forces
from .rk4 import classical_with_error

TURNING = ("damping", "stiffness", "armature", "motor_kp", "motor_kd")  # forces that change within a step

LARGEST_ROTATION = 0.25  # [rad] of a floating or spherical joint in a Runge-Kutta step: 1e-5 of what precesses is lost
MOST_PARTS = 256  # parts of one step; with this number, parts grow longer
MOST_TRIES = MOST_PARTS + 8  # with those that are halved
LARGEST_ERROR = 0.01  # of the first guess of the velocities midway, as a part of the largest one: 0.34 rad

Columns = Sequence[Array]  # one for each coordinate, (n, *batch) of n links or (*batch) of one


def exact(
    model: Model,
    state: State,
    h: Step,
    control: Array | None = None,
    impulses: Array | None = None,
    *,
    each: Array | None = None,
) -> State:
    """Take one step of length h [s], exact for free bodies under constant forces, otherwise of order 4.

    each: (T,) length of the step of each tree, if all are free bodies; None: h [s].
    """
    free = free_bodies(model.topology)
    if not free.any():
        return _step(model, state, h, control, impulses, free)
    links = np.flatnonzero(free).tolist()
    forest = Forest.of(model, q=state.q, v=state.v)
    flight = h if each is None else each[trees_of(model.topology).of_link[links]]
    q, v = _flight(forest, model, state, flight, impulses, links)
    flies = _flies(forest, model, control, links)

    def step_rest() -> State:
        after = _step(model, state, h, control, impulses, free, flies)
        old_q, old_v = _columns(forest, after.q, after.v, links)
        own_q, own_v = ([jnp.where(flies, x, y) for x, y in zip(*z, strict=True)] for z in ((q, old_q), (v, old_v)))
        return _put(forest, after, own_q, own_v, links)

    end = jax.lax.cond(flies.all(), lambda: _put(forest, state, q, v, links), step_rest) if free.all() else step_rest()
    return State(end.q, end.v, state.t + h)


def free_bodies(topology: Topology) -> np.ndarray:
    """Return floating links that carry no other links and are in no loop, (nl,) bool."""
    floating = np.array([joint == "floating" for joint in topology.joints], bool)
    tied = [*topology.parents, *(end for loop in topology.loops for end in (loop.a, loop.b))]
    return floating & ~np.isin(np.arange(topology.n_links), tied)


def impulses_from(model: Model, there: Array, q: Array, impulses: Array) -> Array:
    """Convert impulses (..., nv) at the coordinates `there` to those that `exact` takes in a step from q.

    They have the same moment about the centres of mass of free bodies.
    """
    free = free_bodies(model.topology)
    if not free.any():
        return impulses
    arm = jnp.where(free[:, None], model.com, 0)
    return _about_centers(model, q, -arm, _about_centers(model, there, arm, impulses))


# -- free bodies that fly ----------------------------------------------------------------------------


def _flies(forest: Forest, model: Model, control: Array | None, links: list[int]) -> Array:
    """Return whether only constant forces act on these free bodies, (n, *batch) or what broadcasts to it."""
    acts = model.motor_gain * (model.motor_target if control is None else control) != 0
    for name in TURNING:
        acts = acts | (getattr(model, name) != 0)
    start = forest.topology.v_start
    return ~jnp.stack([forest.rows(acts, 1, [start[i] + k for i in links]) for k in range(6)]).any(0)


def _flight(
    forest: Forest, model: Model, state: State, h: Step, impulses: Array | None, links: list[int]
) -> tuple[Columns, Columns]:
    """Return q and v of these free bodies after a flight."""
    q, v = _columns(forest, state.q, state.v, links)
    start = forest.topology.v_start
    p = [forest.rows(impulses, 1, [start[i] + k for i in links]) for k in range(6)] if impulses is not None else None
    mass, com, inertia = (forest.rows(getattr(model, x), Model.base_ndim(x), links) for x in ("mass", "com", "inertia"))
    return _fly(q, v, p, mass, com, inertia, model.gravity, h)


@fence
def _fly(q, v, p, mass, com, inertia, gravity, h):
    arm = Vec3.of(com)
    attitude, w = Quat(*q[3:]), Vec3(*v[:3])
    r = attitude.rotate(arm)
    none = jax.tree.map(jnp.zeros_like, w)
    push, moment = (none, none) if p is None else (Vec3(*p[3:]), Vec3(*p[:3]) - r.cross(Vec3(*p[3:])))
    body = Body(attitude, w, Vec3(*q[:3]) + r, Vec3(*v[3:]) + w.cross(r))
    end = fly_body(body, mass, Sym3.of(inertia), Vec3.of(gravity), moment, push, h)
    r = end.attitude.rotate(arm)
    o, u = end.center - r, end.u - end.w.cross(r)
    return (o.x, o.y, o.z, end.attitude.w, *end.attitude.vector.xyz), (*end.w.xyz, *u.xyz)


def _columns(forest: Forest, q: Array, v: Array, links: list[int]) -> tuple[Columns, Columns]:
    """Return the coordinates and velocities of these links."""
    topology = forest.topology
    return (
        [forest.rows(q, 1, [topology.q_start[i] + k for i in links]) for k in range(7)],
        [forest.rows(v, 1, [topology.v_start[i] + k for i in links]) for k in range(6)],
    )


def _put(forest: Forest, state: State, q: Columns, v: Columns, links: list[int]) -> State:
    """Return the state with the coordinates and velocities of these links replaced."""

    def put(x: Array, columns: Columns, start: tuple[int, ...]) -> Array:
        shape = (*(() if len(links) == 1 else (len(links),)), *forest.batch)
        rows = jnp.stack([jnp.broadcast_to(y, shape) for y in columns], -1)
        own = rows if len(links) == 1 else jnp.moveaxis(rows, 0, -2).reshape(*forest.batch, -1)
        x = jnp.broadcast_to(x, (*forest.batch, x.shape[-1]))
        pieces, at = [], 0
        for mine, run in itertools.groupby(range(forest.topology.n_links), lambda i: i in links):
            several = list(run)
            first, last = start[several[0]], start[several[-1] + 1]
            pieces.append(own[..., at : at + last - first] if mine else x[..., first:last])
            at += last - first if mine else 0
        return jnp.concatenate(pieces, -1)

    topology = forest.topology
    return State(put(state.q, q, topology.q_start), put(state.v, v, topology.v_start), state.t)


# -- all by Runge-Kutta, free bodies in coordinates of their centres of mass ---------------------------


class Given(NamedTuple):
    """Values that are the same in all parts of a step.

    arm: (..., nl, 3) from the origins of free bodies to their centres of mass, else 0, in the links' frames [m]; None:
        there are no free bodies.
    forces: (*batch, nv) forces constant over the step, about the centres of mass [N m, N]; None: there are none.
    h: () or (*batch) length of the step [s].
    moving: (*batch, nv) degrees of freedom whose result is used; None: all.
    """

    model: Model
    arm: Array | None
    control: Array | None
    forces: Array | None
    h: Step
    moving: Array | None


class StepParts(NamedTuple):
    """Progress within a step.  done, of: () or (*batch) number of parts that are done, and of all.  state: the last."""

    done: Array
    of: Array
    state: State


def _step(
    model: Model,
    state: State,
    h: Step,
    control: Array | None,
    impulses: Array | None,
    free: np.ndarray,
    flies: Array | None = None,
) -> State:
    """Take one step by Runge-Kutta.  flies: free bodies whose result is not used."""
    parts = _parts(model, state, h, free, flies)
    arm = jnp.where(free[:, None], model.com, 0) if free.any() else None
    if impulses is not None:
        impulses = impulses if arm is None else _about_centers(model, state.q, arm, impulses)
    forces = None if impulses is None else impulses / column(h)
    moving = None if flies is None else _not_flying(model.topology, state.t.shape, free, flies)
    given = Given(model, arm, control, forces, h, moving)
    start = state if arm is None else _shift_origins(model, state, arm)
    if parts is None:
        end = _part(given, start, h)[0]
    else:
        begin = StepParts(jnp.zeros_like(parts), parts, start)
        end = loop(MOST_TRIES, _has_parts_left, _try_part, given, begin).state
    return end if arm is None else _shift_origins(model, end, -arm)


def _parts(model: Model, state: State, h: Step, free: np.ndarray, flies: Array | None) -> Array | None:
    """Return the number of parts that a step begins with, () or (*batch); None if it is one, and stays one."""
    state, h = stop_gradient((state, h))
    rates, trees = [], trees_of(model.topology).of_link
    tied = {trees[end] for loop in model.topology.loops for end in (loop.a, loop.b) if end >= 0}
    for i, joint in enumerate(model.topology.joints):
        if joint in ("floating", "spherical") and trees[i] not in tied:
            w = state.v[..., model.topology.v_start[i] : model.topology.v_start[i] + 3]
            rate = jnp.sqrt((w * w).sum(-1))
            if free[i] and flies is not None:
                rate = jnp.where(flies[free[:i].sum()] if free.sum() > 1 else flies, 0, rate)
            rates.append(rate)
    if not rates:
        return None if model.topology.loops else jnp.ones(state.t.shape, jnp.int32)
    rotation = functools.reduce(jnp.maximum, rates) * h
    return jnp.clip(jnp.ceil(rotation / LARGEST_ROTATION), 1, MOST_PARTS).astype(jnp.int32)


def _not_flying(topology: Topology, batch: tuple[int, ...], free: np.ndarray, flies: Array) -> Array:
    """Return the degrees of freedom (*batch, nv) that are not of free bodies that fly."""
    of_link = iter(flies if free.sum() > 1 else [flies])
    counts = [jnp.logical_not(next(of_link)) if one else True for one in free]
    sizes = np.diff(topology.v_start)
    columns = [jnp.broadcast_to(jnp.asarray(x)[..., None], (*batch, n)) for x, n in zip(counts, sizes, strict=True)]
    return jnp.concatenate(columns, -1)


def _has_parts_left(_: Given, carry: StepParts) -> Array:
    return (carry.done < carry.of).any()


def _try_part(given: Given, carry: StepParts) -> StepParts:
    """Take one part in lanes that have parts left; one that is too long is halved, and so are all that follow."""
    done, of, state = carry
    v = state.v
    after, change = _part(given, state, given.h / of)
    if given.moving is not None:
        change, v = change * given.moving, v * given.moving
    error, speed = jnp.abs(change).max(-1), jnp.abs(v).max(-1)
    rough = (error > LARGEST_ERROR * speed + given.model.rest_speed) & (of <= MOST_PARTS // 2)
    if given.model.topology.loops:  # near dead centres accelerations have no bound
        rough = jnp.zeros_like(rough)
    busy, halved = done < of, stop_gradient(rough)
    new = jax.tree.map(
        lambda x, y: jnp.where(column(busy & ~halved) if x.ndim > busy.ndim else busy & ~halved, x, y), after, state
    )
    twice = jnp.where(busy & halved, 2, 1)
    return StepParts(jnp.where(busy & ~halved, done + 1, done * twice), of * twice, new)


def _part(given: Given, state: State, h: Step) -> tuple[State, Array]:
    """Take a step of length h [s], and return also the change that `classical_with_error` returns."""
    model, arm, control, forces, *_ = given
    centered = model if arm is None else model.replace(com=model.com - arm)

    def accelerate(now: State) -> Array:
        # motors and damping act at the origins, and on the velocities of the origins
        actual = now if arm is None else _shift_origins(model, now, -arm)
        acting = joint_forces(model, actual, control)
        acting = acting if arm is None else _about_centers(model, actual.q, arm, acting)
        return forward(centered, now.q, now.v, now.t, acting if forces is None else acting + forces)

    return classical_with_error(centered, state, h, accelerate)


@fence
def _move(q, v, arm):
    r = Quat(*q[3:]).rotate(Vec3.of(arm))
    p, u = Vec3(*q[:3]) + r, Vec3(*v[3:]) + Vec3(*v[:3]).cross(r)
    return (p.x, p.y, p.z, *q[3:]), (*v[:3], u.x, u.y, u.z)


@fence
def _recenter(q, impulse, arm):
    n = Vec3(*impulse[:3]) - Quat(*q[3:]).rotate(Vec3.of(arm)).cross(Vec3(*impulse[3:]))
    return n.x, n.y, n.z, *impulse[3:]


def _shift_origins(model: Model, state: State, arm: Array) -> State:
    """Return the state with the origin of each floating link moved by `arm` (..., nl, 3), given in its frame."""
    forest = Forest.of(model, q=state.q, v=state.v)
    recentered = []
    for group in forest.groups:
        q, v = forest.coordinates(state.q, group), forest.per_dof(state.v, group)
        recentered.append(_move(q, v, forest.rows(arm, 2, group.links)) if group.joint == "floating" else (q, v))
    q, v = zip(*recentered, strict=True)
    return State(forest.join_coordinates(q), forest.join_dofs(v), state.t)


def _about_centers(model: Model, q: Array, arm: Array, impulses: Array) -> Array:
    """Convert impulses or forces about the origins to those about points at `arm` (..., nl, 3) in the links' frames."""
    forest = Forest.of(model, q=q, impulses=impulses)
    taken = []
    for group in forest.groups:
        at, p = forest.coordinates(q, group), forest.per_dof(impulses, group)
        taken.append(_recenter(at, p, forest.rows(arm, 2, group.links)) if group.joint == "floating" else p)
    return forest.join_dofs(taken)
