"""An ellipsoid that rolls on a floor without slipping, by its ordinary differential equation.

The body's point of contact r (from its centre) has no velocity: v = -w x r. With Newton's law for the force of the
floor, m (a - g), Euler's equation becomes

    (I + m (r^2 - r r^T)) dw/dt = -w x I w - m r x (w x dr/dt) - m r x g

(Routh, Advanced Rigid Dynamics, chapter V; the rattleback of Walker, 1896.) No code is shared with the simulator.
"""

from __future__ import annotations

import math

import numpy as np

GRAVITY = np.array([0.0, 0.0, -9.81])


def rolling_ellipsoid(half_axes, inertia, mass, omega, duration, steps):
    """From its lowest position: angular velocities (steps + 1, 3), and of the friction it needs the most, over N."""
    squares = np.diag(np.square(half_axes))

    def rates(R, w):
        up = R.T[:, 2]
        at = squares @ up
        length = math.sqrt(up @ at)
        d_up = -np.cross(R.T @ w, up)
        d_at = squares @ d_up
        r = -R @ at / length
        dr = R @ (at * (up @ d_at) / length**3 - d_at / length) + np.cross(w, r)
        world = R @ inertia @ R.T
        about = world + mass * (r @ r * np.eye(3) - np.outer(r, r))
        torque = -np.cross(w, world @ w) - mass * np.cross(r, np.cross(w, dr)) - mass * np.cross(r, GRAVITY)
        dw = np.linalg.solve(about, torque)
        force = mass * (-np.cross(dw, r) - np.cross(w, dr) - GRAVITY)
        return np.cross(w, R.T).T, dw, math.hypot(force[0], force[1]) / force[2]

    h, R, w = duration / steps, np.eye(3), np.array(omega, float)
    path, most = [w], 0.0
    for _ in range(steps):  # the classical Runge-Kutta rule
        k1 = rates(R, w)
        k2 = rates(R + h / 2 * k1[0], w + h / 2 * k1[1])
        k3 = rates(R + h / 2 * k2[0], w + h / 2 * k2[1])
        k4 = rates(R + h * k3[0], w + h * k3[1])
        R = R + h / 6 * (k1[0] + 2 * k2[0] + 2 * k3[0] + k4[0])
        w = w + h / 6 * (k1[1] + 2 * k2[1] + 2 * k3[1] + k4[1])
        path.append(w)
        most = max(most, k1[2])
    return np.array(path), most
