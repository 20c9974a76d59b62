"""Accelerations of a planar chain in O(n), without given angular accelerations.

Wawrzynski (2005), part I, sections 5 and 6. Joint i responds to a force F from the link before it with
    a_i = A F + b,    F_(i+1) = C F + d                                                    (1), (2)
computed from the last joint to the first; then the forces are passed outwards.

    r     unit vector from joint i to i + 1; zero for the last joint, which makes it "ending" (6.2)
    W     acceleration by a force on the joint itself: I/m; 0 if guided (6.1); (I - s s^T)/m on a line (6.3)
    u     its acceleration without its neighbours: W F^e, or a^w if guided
    e     r . (a_i - a_(i+1)), which keeps the link's length                               (3)

Departure: with W and u the four kinds of joint (free, guided, on a line, ending, and their combinations) are one
formula: (6)-(9) and sections 6.1-6.4 follow by putting W in. C = H W, H symmetric, A = W - W H W.
If no force can change the length of a link (6.1, both its ends guided) it carries none: 1/D = 0.
The loops over the joints stay loops: unrolled, XLA's fusion on the CPU would compute shared numbers once per
reader, twice as often with every joint (four joints, 1024 lanes: 54 us per chain, not 0.2).
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from ..algebra.safe import safe_div
from ..algebra.vec2 import Sym2, Vec2


class JointTerms(NamedTuple):
    """The joints, leaves (n, *batch).  least: below it 1/D of the link counts as infinite [1/kg]."""

    r: Vec2
    W: Sym2
    u: Vec2
    e: Array
    least: Array


class Response(NamedTuple):
    """a = A F + b of one joint."""

    A: Sym2
    b: Vec2


class Transmission(NamedTuple):
    """F_(i+1) = H W F + d, all joints."""

    H: Sym2
    d: Vec2


class ChainSolution(NamedTuple):
    """a: accelerations.  F: F^d, the force of the link before each joint.  torque: tau^w of each active joint."""

    a: Vec2
    F: Vec2
    torque: Array


def unless_small(x: Array, least: Array) -> Array:
    """Return 1/x, and 0 where x is not above `least`; there is no NaN, also in derivatives."""
    return safe_div(1, x, x > least)


def inwards(joints: JointTerms) -> tuple[Response, Transmission]:
    """Compute A_i, b_i and C_i, d_i of all joints, from the last to the first: (6)-(9)."""

    def one(outer: Response, joint: JointTerms) -> tuple[Response, tuple[Response, Transmission]]:
        r, W, u, e, least = joint
        A, b = outer
        Dinv = unless_small(r.dot((W + A) @ r), least)
        H = Sym2.outer(r) * Dinv
        d = r * ((r.dot(u - b) - e) * Dinv)
        Wr = W @ r
        here = Response(W - Sym2.outer(Wr) * Dinv, u - W @ d)
        return here, (here, Transmission(H, d))

    none = jnp.zeros_like(joints.e[0])
    beyond = Response(Sym2(none, none, none), Vec2(none, none))
    return lax.scan(one, beyond, joints, reverse=True)[1]


def outwards(joints: JointTerms, responses: Response, passed: Transmission) -> ChainSolution:
    """Compute forces of the links and accelerations, from the first joint to the last (section 3, steps 2 and 3)."""

    def one(F: Vec2, row: tuple[Sym2, Response, Transmission]) -> tuple[Vec2, tuple[Vec2, Vec2]]:
        W, (A, b), (H, d) = row
        return H @ (W @ F) + d, (A @ F + b, F)

    none = jnp.zeros_like(joints.e[0])
    _, (a, F) = lax.scan(one, Vec2(none, none), (joints.W, responses, passed))
    return ChainSolution(a, F, jnp.zeros_like(joints.e))


def motion(joints: JointTerms) -> ChainSolution:
    return outwards(joints, *inwards(joints))
