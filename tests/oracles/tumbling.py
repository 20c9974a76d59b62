"""Free bodies by textbook, in NumPy: parabola and torque-free tumbling; and polytopes that overlap or not, by SAT."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

Numbers = NDArray[np.float64]


@dataclass
class Flight:
    """n bodies: centre c (n, 3) [m], its velocity u (n, 3) [m/s], R (n, 3, 3), w (n, 3) in the world [rad/s],
    inertia (n, 3) [kg m^2] about the principal axes, which are the bodies' axes; gravity (3,)."""

    c: Numbers
    u: Numbers
    R: Numbers
    w: Numbers
    inertia: Numbers
    gravity: Numbers

    def after(self, h: Numbers) -> "Flight":
        """Each body its own time h (n,) later: exact arc, one Runge-Kutta step of Euler's equations."""
        h = h[:, None]
        L = np.einsum("nij,nj->ni", self.R, self.inertia * np.einsum("nji,nj->ni", self.R, self.w))

        def rate(R: Numbers) -> Numbers:
            return np.einsum("nij,nj->ni", R, np.einsum("nji,nj->ni", R, L) / self.inertia)

        # the rotation vectors of a commutator-free step of order 4 (Celledoni, Marthinsen & Owren 2003)
        k1 = h * rate(self.R)
        k2 = h * rate(_turned(k1 / 2, self.R))
        k3 = h * rate(_turned(k2 / 2, self.R))
        k4 = h * rate(_turned(k3 - k1 / 2, _turned(k1 / 2, self.R)))
        R = _turned((3 * k1 + 2 * k2 + 2 * k3 - k4) / 12, self.R)
        R = _turned((-k1 + 2 * k2 + 2 * k3 + 3 * k4) / 12, R)
        w = np.einsum("nij,nj->ni", R, np.einsum("nji,nj->ni", R, L) / self.inertia)
        c = self.c + h * self.u + h * h / 2 * self.gravity
        return Flight(c, self.u + h * self.gravity, R, w, self.inertia, self.gravity)


def _turned(phi: Numbers, R: Numbers) -> Numbers:
    return Rotation.from_rotvec(phi).as_matrix() @ R


def widest_slab(A: Numbers, B: Numbers, axes: Numbers) -> tuple[Numbers, Numbers]:
    """(width (n,), normal from B to A (n, 3)) of the widest slab between point clouds (n, k, 3), over the axes
    (n, m, 3), which need not be unit; negative if no axis separates them."""
    length = np.linalg.norm(axes, axis=2, keepdims=True)
    unit = np.where(length > 1e-9, axes / np.maximum(length, 1e-9), 0)
    a, b = A @ unit.transpose(0, 2, 1), B @ unit.transpose(0, 2, 1)
    widths = np.concatenate([a.min(1) - b.max(1), b.min(1) - a.max(1)], axis=1)
    widths = np.where(np.tile(length[..., 0] > 1e-9, 2), widths, -np.inf)
    best = widths.argmax(1)
    m, rows = axes.shape[1], np.arange(len(A))
    normal = unit[rows, best % m] * np.where(best < m, 1, -1)[:, None]
    return widths[rows, best], normal


def candidate_axes(faces_a: Numbers, edges_a: Numbers, faces_b: Numbers, edges_b: Numbers) -> Numbers:
    """(n, m, 3) normals of faces and products of edges: one of them separates convex polytopes that are apart."""
    cross = np.cross(edges_a[:, :, None], edges_b[:, None]).reshape(len(edges_a), -1, 3)
    return np.concatenate([faces_a, faces_b, cross], axis=1)
