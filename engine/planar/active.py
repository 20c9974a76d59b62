"""Accelerations of a planar chain in O(n), with given angular accelerations of some joints.

Wawrzynski (2005), part II, sections 9 to 11. Joint i and the link behind it respond to a force F of the link before it
and the torque tau that holds joint i with
    a_i = A F + b^w tau + b,    alpha^o_i = p . F + q^w tau + q,
    F_(i+1) = C F + d^w tau + d,    tau_(i+1) = g . F + h^w tau + h.

The letters are those of `chain.py`, and
    L     r*/l, with r* r turned left: L . (a_(i+1) - a_i) is the angular acceleration of link i       (11)
    k     of section 10, in two numbers per row: of phi (force along the link) and of tau_(i+1)

Departures:
- W and u make sections 10, 11.1, 11.2 and 11.3 one formula, as in `chain.py`: the sixteen cases are rows of data;
- the response of a chain to (F, tau) is symmetric (Maxwell), so p = b^w, and the system for phi and tau_(i+1) is
  symmetric and positive:  D phi - c tau' = y_1,  -c phi + K tau' = y_2;
- the exceptional situations are then its rank: a demand that no force or torque can meet is dropped. Of two demands
  that contradict each other the report keeps the one with the larger coefficients; here they are compared without
  units, D and K/|L|^2.
- joint 0 rotates against the world: its torque is computed at the end of the recursion.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from ..algebra.safe import safe_div
from ..algebra.vec2 import Sym2, Vec2
from .chain import ChainSolution, JointTerms, unless_small


class Turning(NamedTuple):
    """Active joints, leaves (n, *batch). active: whether alpha is given.  alpha: alpha^w [rad/s^2].
    least: below it K counts as zero [1/(kg m^2)]."""

    L: Vec2
    active: Array
    alpha: Array
    least: Array


class ActiveResponse(NamedTuple):
    """a = A F + p tau + b and alpha^o = p . F + q^w tau + q of one joint and its link."""

    A: Sym2
    p: Vec2
    b: Vec2
    q_w: Array
    q: Array


class ActiveTransmission(NamedTuple):
    """F_(i+1) = H W F + d^w tau + d and tau_(i+1) = g . F + h^w tau + h."""

    H: Sym2
    d_w: Vec2
    d: Vec2
    g: Vec2
    h_w: Array
    h: Array


def inverse(D: Array, c: Array, K: Array, link: JointTerms, next_: Turning, L: Vec2) -> tuple[Array, Array, Array]:
    """G of [phi, tau'] = G [y_1, y_2]: the inverse of [[D, -c], [-c, K]], or of the part of it that can be met."""
    stiff, binding = link.least < D, next_.active & (next_.least < K)
    determinant = D * K - c * c
    both = stiff & binding & (determinant > 64 * jnp.finfo(D.dtype).eps * D * K)
    length_first = D * L.dot(L) >= K
    only_link = stiff & ~both & (~binding | length_first)
    only_angle = binding & ~both & (~stiff | ~length_first)
    over = safe_div(1, determinant, both)
    G11 = jnp.where(both, K * over, safe_div(1, D, only_link))
    G22 = jnp.where(both, D * over, safe_div(1, K, only_angle))
    return G11, c * over, G22


def inwards(joints: JointTerms, turning: Turning) -> tuple[ActiveResponse, ActiveTransmission]:
    """Compute the twelve coefficients of all joints, from the last to the first."""

    def one(
        carry: tuple[ActiveResponse, Turning], row: tuple[JointTerms, Turning]
    ) -> tuple[tuple[ActiveResponse, Turning], tuple]:
        (A, p, b, q_w, q), next_ = carry
        joint, own = row
        r, W, u, e, _ = joint
        L, X = own.L, W + A
        Xr, XL = X @ r, X @ L
        D, c, K = r.dot(Xr), r.dot(XL - p), q_w + L.dot(XL) - 2 * L.dot(p)
        G11, G12, G22 = inverse(D, c, K, joint, next_, L)
        # y = k_F . F + k_tau tau + k_1, for phi and for tau_(i+1): (16)-(18), (21)-(23)
        Wr, WL = W @ r, W @ L
        tau_1, tau_2 = -r.dot(XL), L.dot(XL - p)
        one_1, one_2 = r.dot(u - b) - e, next_.alpha - q - L.dot(u - b)
        g = Wr * G12 - WL * G22
        h_w, h = G12 * tau_1 + G22 * tau_2, G12 * one_1 + G22 * one_2
        d_w = r * (G11 * tau_1 + G12 * tau_2) + L * (1 - h_w)
        d = r * (G11 * one_1 + G12 * one_2) - L * h
        H = form(r, L, G11, G12, G22)
        here_p, here_b = -(W @ d_w), u - W @ d
        here = ActiveResponse(
            W - form(Wr, WL, G11, G12, G22),
            here_p,
            here_b,
            L.dot(A @ d_w + p * h_w - here_p),
            L.dot(A @ d + p * h + b - here_b),
        )
        return (here, own), (here, ActiveTransmission(H, d_w, d, g, h_w, h))

    none = jnp.zeros_like(joints.e[0])
    nowhere = Vec2(none, none)
    beyond = ActiveResponse(Sym2(none, none, none), nowhere, nowhere, none, none)
    outside = Turning(nowhere, jnp.zeros(none.shape, bool), none, none)
    return lax.scan(one, (beyond, outside), (joints, turning), reverse=True)[1]


def form(a: Vec2, b: Vec2, G11: Array, G12: Array, G22: Array) -> Sym2:
    """[a, -b] G [a, -b]^T."""
    ab = Sym2(2 * a.x * b.x, 2 * a.y * b.y, a.x * b.y + a.y * b.x)
    return Sym2.outer(a) * G11 - ab * G12 + Sym2.outer(b) * G22


def outwards(
    joints: JointTerms, turning: Turning, responses: ActiveResponse, passed: ActiveTransmission
) -> ChainSolution:
    """Compute forces, torques and accelerations, from the first joint to the last (section 9, steps 2 and 3)."""

    def one(
        carry: tuple[Vec2, Array], row: tuple[Sym2, ActiveResponse, ActiveTransmission]
    ) -> tuple[tuple[Vec2, Array], tuple]:
        F, tau = carry
        W, response, (H, d_w, d, g, h_w, h) = row
        a = response.A @ F + response.p * tau + response.b
        return (H @ (W @ F) + d_w * tau + d, g.dot(F) + h_w * tau + h), (a, F, tau)

    none = jnp.zeros_like(joints.e[0])
    q_w, q = responses.q_w[0], responses.q[0]
    tau = jnp.where(turning.active[0], (turning.alpha[0] - q) * unless_small(q_w, turning.least[0]), 0)
    rows = (joints.W, responses, passed)
    _, (a, F, torque) = lax.scan(one, (Vec2(none, none), tau), rows)
    return ChainSolution(a, F, torque)


def motion(joints: JointTerms, turning: Turning) -> ChainSolution:
    return outwards(joints, turning, *inwards(joints, turning))
