"""The closed forms of Wawrzynski (2005), part III, as one: n rigid links on a fixed pivot (13) or on a cart (14).

In absolute angles phi all six objects are

    M x'' + sum_i k_i (c_i phi_i'' - s_i phi_i'^2) = F
    k_i c_i x'' + sum_j D_ij (cos(phi_i - phi_j) phi_j'' + sin(phi_i - phi_j) phi_j'^2) = h_i + tau_i - tau_(i+1)

where h_i = g k_i s_i with angles from the top, clockwise (13.1, 14), and -g k_i c_i from the horizontal (13.2, 13.3);
x is absent on a fixed pivot. So it is printed in 14.2 (d_1 = M; d_2, d_3 = k; d_4, d_5, d_6 = D) and in 14.3, corrected
as docs/wawrzynski.md says. Departure: q are the joints' own angles, each from the link before it, as in 13 and in the
library's scenes; friction acts at their rates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate

import jax.numpy as jnp
from jax import Array

from ...engine.algebra.fence import fence
from .sin_cos import sin_cos

LOSS_SPEED = 1e-3  # [rad/s, m/s] below it these smooth engines creep: they have no events, and nothing sticks in them

Components = tuple[Array, ...]  # one array (...) for each coordinate
Accelerate = Callable[[Components, Components, Components], Components]


@dataclass(frozen=True)
class Rods:
    """Links on one another; tuples from the first to the last.

    mass [kg], centre: distance from the joint to the centre of mass [m], length [m], inertia about the centre
    [kg m^2].  cart: its mass [kg]; None: a fixed pivot.  upright: angles from the top, clockwise; else the first from
    the horizontal, counter-clockwise.  damping [N s/m, N m s], loss (Coulomb) [N, N m]: of each coordinate.
    """

    mass: tuple[float, ...]
    centre: tuple[float, ...]
    length: tuple[float, ...]
    inertia: tuple[float, ...]
    gravity: float = 9.81
    cart: float | None = None
    upright: bool = True
    damping: tuple[float, ...] = ()
    loss: tuple[float, ...] = ()

    @property
    def beyond(self) -> list[float]:
        """Mass of the links after each link."""
        return [sum(self.mass[i + 1 :]) for i in range(len(self.mass))]

    @property
    def k(self) -> list[float]:
        """Moments of mass about the joints [kg m]."""
        return [m * a + M * L for m, a, L, M in zip(self.mass, self.centre, self.length, self.beyond, strict=True)]

    @property
    def D(self) -> list[list[float]]:
        """Moments of inertia D_ij [kg m^2], j <= i."""
        rows = zip(self.mass, self.centre, self.length, self.inertia, self.beyond, strict=True)
        own = [I + m * a**2 + M * L**2 for m, a, L, I, M in rows]
        return [[self.length[j] * k for j in range(i)] + [own[i]] for i, k in enumerate(self.k)]


def closed_form(rods: Rods) -> Accelerate:
    """Accelerations of the coordinates (x on a cart, then the joints' angles) under the forces along them."""
    k, D, g, cart = rods.k, rods.D, rods.gravity, rods.cart is not None
    total = (rods.cart or 0.0) + sum(rods.mass)

    def accelerate(q: Components, v: Components, push: Components) -> Components:
        force = friction(rods, v, push)
        x, tau = force[:cart], (*force[cart:], 0.0)
        sin_cos = sines_and_cosines(q[cart:])
        square = [w * w for w in accumulate(v[cart:])]
        rows, right = [], []
        if cart:
            rows.append([total])
            right.append(x[0] + sum(a * s * w for a, (s, _), w in zip(k, sin_cos, square, strict=True)))
        for i, (s, c) in enumerate(sin_cos):
            rows.append([k[i] * c] if cart else [])
            h = g * k[i] * s if rods.upright else -g * k[i] * c
            h = h + tau[i] - tau[i + 1]
            for j, (sj, cj) in enumerate(sin_cos):
                d = D[max(i, j)][min(i, j)]
                if j < i:
                    rows[-1].append(d * (c * cj + s * sj))
                if j != i:
                    h = h - d * (s * cj - c * sj) * square[j]
            rows[-1].append(D[i][i])
            right.append(h)
        a = solve(rows, right)
        angular = a[cart:]
        return (*a[:cart], *angular[:1], *(b - c for b, c in zip(angular[1:], angular[:-1], strict=True)))

    return accelerate


@fence
def sines_and_cosines(angles: Components) -> list[tuple[Array, Array]]:
    """Sine and cosine of every link's absolute angle; separate, so that accelerations share them."""
    return [sin_cos(phi) for phi in accumulate(angles)]


def friction(rods: Rods, v: Components, push: Components) -> list[Array]:
    """The forces, less damping and Coulomb loss."""
    left = list(push)
    for i, (c, w) in enumerate(zip(rods.damping, v, strict=False)):
        left[i] = left[i] - c * w if c else left[i]
    for i, (loss, w) in enumerate(zip(rods.loss, v, strict=False)):
        left[i] = left[i] - smooth_loss(loss, w) if loss else left[i]
    return left


def smooth_loss(loss: Array | float, rate: Array) -> Array:
    return loss * rate / jnp.sqrt(rate * rate + LOSS_SPEED**2)


def solve(rows: list[list], right: list) -> list:
    """x with A x = right; A symmetric, positive definite, rows its lower triangle: A = L D L^T, by components."""
    n = len(rows)
    L, pivot = [list(row) for row in rows], []
    x = list(right)
    for i in range(n):
        for j in range(i):
            scaled = L[i][j]  # L_ij d_j
            L[i][j] = scaled * pivot[j]
            for m in range(j + 1, i + 1):
                L[i][m] = L[i][m] - scaled * (L[m][j] if m < i else L[i][j])
            x[i] = x[i] - L[i][j] * x[j]
        pivot.append(1 / L[i][i])
    for i in reversed(range(n)):
        x[i] = x[i] * pivot[i]
        for m in range(i + 1, n):
            x[i] = x[i] - L[m][i] * x[m]
    return x
