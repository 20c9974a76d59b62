"""A recording for pictures: poses of all links, energies, impacts as arrows, and the extent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...engine.model import Model
from ..recordings.recording import Recording
from .drawing import Drawing, quaternions
from .meshes import Floats


class Hits(NamedTuple):
    """Impacts of one lane, E of them in order of time.

    t (E,) [s].  bodies (E, 2): links, -1 the world.  pair (E,): row of the model's pairs, -1 at a
    limit.  dof (E,): the joint limit that was hit, -1: none.
    point (E, 3), impulse (E, 3) on the first body, of the two the one that moves: world [m, N s]; zeros at a limit.
    size (E,): of the impulse [N s; N m s at the limit of an angle].  loss (E,): of kinetic energy [J].
    """

    t: Floats
    bodies: Floats
    pair: Floats
    dof: Floats
    point: Floats
    impulse: Floats
    size: Floats
    loss: Floats


class RecordedMotion(NamedTuple):
    """The motion of L lanes of a recording, at F frames and nl links.

    lanes: their numbers.  t (F,) [s].  position (L, F, nl, 3) [m] and quaternion (L, F, nl, 4): of the links in W.
    spin (L, F, nl, 3): angular velocity of free links in W [rad/s]; zero for those on joints.
    kinetic, potential (L, F) [J].  reached (L,): number of frames that a lane reached; after them it stands still.
    hits: of each lane.
    """

    lanes: tuple[int, ...]
    t: Floats
    position: Floats
    quaternion: Floats
    spin: Floats
    kinetic: Floats
    potential: Floats
    reached: Floats
    hits: tuple[Hits, ...]


def model_of(recording: Recording) -> Model:
    """The model that was run; parameters that varied have a leading axis of lanes."""
    import jax.numpy as jnp

    from ..compile import compile_scene

    model, _ = compile_scene(recording.scene, overlaps="ignore")
    kind = model.gravity.dtype
    return model.replace(**{name: jnp.asarray(array, kind) for name, array in recording.varied.items()})


def motion_of(recording: Recording, model: Model, lanes: Sequence[int], every: int = 1) -> RecordedMotion:
    """The motion of a recording.  every: take one of every `every` frames."""
    from ...engine.dynamics.kinematics import fk
    from ...engine.loops.energy import energy
    from ...engine.state import State

    pick = np.asarray(lanes, int)
    t, q, v = (x[None] if recording.lanes is None else x[pick] for x in (recording.t, recording.q, recording.v))
    reached = np.isfinite(q).all(-1).sum(-1)
    last = np.maximum(np.minimum(np.arange(q.shape[1]), reached[:, None] - 1), 0)
    q, v = (np.take_along_axis(x, last[..., None], axis=1)[:, ::every] for x in (q, v))
    clock = np.nanmax(t, axis=0)[::every]
    varied = {name: getattr(model, name)[pick][:, None] for name in recording.varied}  # the same at all frames
    model = model.replace(**varied)
    kind = model.gravity.dtype
    poses = fk(model, q.astype(kind))
    spent = energy(model, State(q.astype(kind), v.astype(kind), np.broadcast_to(clock, q.shape[:2]).astype(kind)))  # type: ignore[arg-type]
    return RecordedMotion(
        tuple(pick.tolist()), clock, np.asarray(poses.position), quaternions(np.asarray(poses.rotation)),
        _spin(model, v), np.asarray(spent.kinetic), np.asarray(spent.potential), -(-reached // every),
        tuple(hits_of(recording, lane) for lane in pick),
    )  # fmt: skip


def _spin(model: Model, v: Floats) -> Floats:
    """Angular velocities (..., nl, 3) of velocities (..., nv): a floating joint's first three are its link's in W."""
    topology = model.topology
    spin = np.zeros((*v.shape[:-1], topology.n_links, 3))
    for link, (joint, start) in enumerate(zip(topology.joints, topology.v_start, strict=False)):
        if joint == "floating":
            spin[..., link, :] = v[..., start : start + 3]
    return spin


def hits_of(recording: Recording, lane: int = 0) -> Hits:
    """Impacts of one lane; impulses are rotated from the contact frame into the world."""
    e = recording.events
    many = recording.lanes is not None
    n = int(e.count[lane] if many else e.count)
    t, bodies, pair, dof, point, normal, impulse, before, after = (
        np.asarray(x[lane] if many else x)[:n]
        for x in (e.t, e.bodies, e.pair, e.dof, e.point, e.normal, e.impulse, e.energy_before, e.energy_after)
    )
    world = np.einsum("ei,eij->ej", impulse, contact_frames(normal))
    from_world = bodies[:, 0] < 0  # the impulse on the body is shown, not the one on the world
    world = np.where(from_world[:, None], -world, world)
    bodies = np.where(from_world[:, None], bodies[:, ::-1], bodies)
    return Hits(t, bodies, pair, dof, point, world, np.linalg.norm(impulse, axis=1), before - after)


def contact_frames(normal: Floats) -> Floats:
    """Contact frames (..., 3, 3), rows t1, t2, n, of unit normals (..., 3), as in `contact.contacts.tangents` (Duff et
    al. 2017); zero for a zero normal."""
    x, y, z = np.moveaxis(np.asarray(normal, float), -1, 0)
    sign = np.where(z >= 0, 1.0, -1.0)
    a = -1 / (sign + z)
    b = x * y * a
    rows = [(1 + sign * x * x * a, sign * b, -sign * x), (b, sign + y * y * a, -y), (x, y, z)]
    frames = np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)
    return frames * (np.abs(normal).sum(-1) > 0)[..., None, None]


def turns_between(motion: RecordedMotion) -> Floats:
    """Whole turns (L, F - 1, nl) of a link from frame to frame beyond the shortest rotation, about the same axis.

    Two quaternions do not determine them: a ball that rolls fast makes a turn in three frames. Its velocity does.
    """
    a, b = motion.quaternion[:, :-1], motion.quaternion[:, 1:]
    scalar = (a * b).sum(-1)
    vector = a[..., :1] * b[..., 1:] - b[..., :1] * a[..., 1:] - np.cross(b[..., 1:], a[..., 1:])
    vector = np.where(scalar[..., None] < 0, -vector, vector)
    sine = np.linalg.norm(vector, axis=-1)
    angle = 2 * np.arctan2(sine, np.abs(scalar))
    axis = vector / np.maximum(sine, 1e-300)[..., None]
    mean = (motion.spin[:, :-1] + motion.spin[:, 1:]) / 2 * np.diff(motion.t)[:, None, None]
    turns = np.round(((axis * mean).sum(-1) - angle) / (2 * np.pi))
    return np.where(sine > 1e-3, np.clip(turns, -100, 100), 0)


def extent(drawing: Drawing, position: Floats, quaternion: Floats) -> tuple[Floats, Floats]:
    """Corners (3,), (3,) of the box that a picture must show [m]: moving shapes, except in a few moments and bodies
    that fly away, and static ones nearby.

    position (..., nl, 3) [m], quaternion (..., nl, 4): of the links.
    """
    nl = len(drawing.names)
    p, q = position.reshape(-1, nl, 3), quaternion.reshape(-1, nl, 4)
    few = np.unique(np.linspace(0, len(p) - 1, 300).astype(int))
    p, q = p[few], q[few]
    moving, still = [], []
    for shape in drawing.shapes:
        vertices = drawing.meshes[shape.mesh].vertices
        box = np.stack(np.meshgrid(*np.stack([vertices.min(0), vertices.max(0)], axis=1)), axis=-1).reshape(-1, 3)
        corners = shape.position + _rotate(shape.quaternion, box)
        if shape.link < 0:
            still.append((corners.min(0), corners.max(0)))
            continue
        corners_in_world = p[:, shape.link, None] + _rotate(q[:, shape.link, None], corners)
        low, high = corners_in_world.min(1), corners_in_world.max(1)
        moving.append(
            (np.minimum(np.quantile(low, 0.02, axis=0), low[0]), np.maximum(np.quantile(high, 0.98, axis=0), high[0]))
        )
    still += [(at, at) for tie in drawing.ties for link, at in ((tie.a, tie.at_a), (tie.b, tie.at_b)) if link < 0]
    lows, highs = (np.array(x) for x in zip(*moving, strict=True))
    middle = np.median((lows + highs) / 2, axis=0)
    spread = max(float(np.median(np.abs((lows + highs) / 2 - middle).max(1) + (highs - lows).max(1))), 1e-9)
    low, high = np.maximum(lows.min(0), middle - 8 * spread), np.minimum(highs.max(0), middle + 8 * spread)
    room = float((high - low).max())
    for least, most in still:
        low = np.minimum(low, np.maximum(least, low - room))
        high = np.maximum(high, np.minimum(most, high + room))
    return low, high


def _rotate(quaternion: Floats, v: Floats) -> Floats:
    """Rotate vectors (..., 3) by unit quaternions (..., 4)."""
    w, u = quaternion[..., :1], quaternion[..., 1:]
    c = 2 * np.cross(u, v)
    return v + w * c + np.cross(u, c)
