"""A chain's twin: the same chain as a scene of links on joints, in the x-z plane, the chain's y up along z.

A slide without mass carries joint 0, which slides on it; each link hangs on a hinge in a joint, has the next joint's
mass at its end, and is named after that one. So q = (x, y, angles of joints 0 to n - 2), and v their rates. Pages and
plots draw the twin, and energies are the same.
A run of the twin itself has no lines, drags, guided or active joints, and balls may bounce along the ground instead of
sticking.
"""

from __future__ import annotations

import math

import numpy as np

from ...collision.poses import Array
from ...collision.shapes import Capsule, Sphere
from ..builder import SceneBuilder
from ..joint_specs import Prismatic, Revolute
from ..spec import SceneSpec
from .compile import checked_chain
from .spec import ChainSpec

LONG = (math.sqrt(0.5), 0.0, math.sqrt(0.5), 0.0)  # a capsule along x
BALLS, GROUNDS = 0b01, 0b10  # layers: balls touch grounds, nothing else touches
SLIDE = "slide"  # name of the link that carries joint 0


def chain_twin(spec: ChainSpec, *, radius: float | None = None) -> SceneSpec:
    """The twin of a chain at its start.  radius: of the balls [m]; None: from the length of its links.

    Grounds lie lower by the radius, so that balls touch where joints do.
    """
    chain, state = checked_chain(spec)
    n = int(chain.joints)
    mass, length, gravity = (a.tolist() for a in (chain.mass, chain.length[: n - 1], chain.gravity))
    size = (0.06 * float(np.mean(length)) if n > 1 else 0.05) if radius is None else radius
    q, v = twin_coordinates(state.x[:n], state.v[:n])
    start = list(zip(q.tolist(), v.tolist(), strict=True))
    b = SceneBuilder(gravity=(gravity[0], 0.0, gravity[1]))
    for k, (point, normal) in enumerate(zip(chain.ground, chain.normal, strict=True)):
        (x, y), out = normal.tolist(), float(normal @ point) - size
        b.add_plane((x, 0.0, y), out, name=f"ground {k}", group=GROUNDS, mask=BALLS, friction=1.0, restitution=0.0)
    (x0, vx0), (y0, vy0) = start[:2]
    b.add_link(SLIDE, joint=Prismatic((1.0, 0.0, 0.0)), mass=0.0, com=(0, 0, 0), inertia=(0, 0, 0), q0=x0, v0=vx0)
    ball = Sphere(size, group=BALLS, mask=GROUNDS)
    b.add_link(
        "joint 0", SLIDE, joint=Prismatic((0.0, 0.0, 1.0)), mass=mass[0], com=(0, 0, 0), inertia=(0, 0, 0),
        shapes=[ball], q0=y0, v0=vy0,
    )  # fmt: skip
    for k, l in enumerate(length):
        shapes = [
            Capsule(0.5 * size, l / 2, position=(l / 2, 0.0, 0.0), quaternion=LONG, mask=0),
            Sphere(size, position=(l, 0.0, 0.0), group=BALLS, mask=GROUNDS),
        ]
        b.add_link(
            f"joint {k + 1}", f"joint {k}", joint=Revolute((0.0, -1.0, 0.0)),
            position=(length[k - 1], 0.0, 0.0) if k else (0.0, 0.0, 0.0), mass=mass[k + 1], com=(l, 0.0, 0.0),
            inertia=(0, 0, 0), shapes=shapes, q0=start[2 + k][0], v0=start[2 + k][1],
        )  # fmt: skip
    return b.build()


def twin_coordinates(x: Array, v: Array) -> tuple[Array, Array]:
    """q, v (..., n + 1) of the twin from positions and velocities (..., n, 2) of the joints; angles in (-pi, pi]."""
    d, w = np.diff(x, axis=-2), np.diff(v, axis=-2)
    omega = (d[..., 0] * w[..., 1] - d[..., 1] * w[..., 0]) / (d * d).sum(-1)
    rate = np.diff(omega, axis=-1, prepend=0.0)
    before = np.concatenate([np.broadcast_to([1.0, 0.0], (*d.shape[:-2], 1, 2)), d], -2)[..., :-1, :]
    angle = np.arctan2(before[..., 0] * d[..., 1] - before[..., 1] * d[..., 0], (before * d).sum(-1))
    return tuple(np.concatenate([a[..., 0, :], b], -1) for a, b in ((x, angle), (v, rate)))  # type: ignore[return-value]
