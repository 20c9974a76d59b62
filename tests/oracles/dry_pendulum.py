"""Two links in a plane whose joints rub: stick and slip by enumeration, time by SciPy from event to event.

    M(q) a + b(q, v) = tau,   tau_i = -loss_i sign(v_i) where v_i is not 0; else a_i = 0 with |tau_i| <= loss_i, or
    tau_i = -loss_i sign(a_i)

Lagrange's equations by hand; angles as carom's joints have them: each from the link before, about y, 0 hanging.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

G = 9.81
STARTED = 1e-12  # rad/s: at its start a slide has no speed, and that is not its stop


@dataclass(frozen=True)
class Links:
    """mass, centre (from the joint), inertia (about the centre): (2,).  length: of the first [m].  loss: (2,)."""

    mass: NDArray
    centre: NDArray
    inertia: NDArray
    length: float
    loss: NDArray

    def dynamics(self, q: NDArray, v: NDArray) -> tuple[NDArray, NDArray]:
        """M and b."""
        (m1, m2), (c1, c2), (I1, I2), L = self.mass, self.centre, self.inertia, self.length
        own, joint, tied = I2 + m2 * c2**2, I1 + m1 * c1**2 + m2 * L**2, m2 * L * c2
        s, c = np.sin(q[1]), np.cos(q[1])
        M = np.array([[joint + own + 2 * tied * c, own + tied * c], [own + tied * c, own]])
        weight2 = m2 * c2 * G * np.sin(q[0] + q[1])
        weight1 = (m1 * c1 + m2 * L) * G * np.sin(q[0]) + weight2
        return M, np.array([weight1 - tied * s * (2 * v[0] * v[1] + v[1] ** 2), weight2 + tied * s * v[0] ** 2])

    def accelerations(self, q: NDArray, v: NDArray, mode: NDArray) -> tuple[NDArray, NDArray]:
        """a and tau of a mode: -1 or 1 where a joint slides that way, 0 where it sticks."""
        M, b = self.dynamics(q, v)
        slides, a = mode != 0, np.zeros(2)
        tau = -mode * self.loss
        if slides.any():
            a[slides] = np.linalg.solve(M[np.ix_(slides, slides)], (tau - b)[slides])
        return a, np.where(slides, tau, M @ a + b)

    def mode(self, q: NDArray, v: NDArray, breaks: NDArray) -> NDArray:
        """The one mode, of all there are, that keeps the law; v exactly 0 where a joint rests.

        breaks: -1 or 1 where a joint starts to slide that way, its torque being at the bound; else 0.
        """
        known = np.where(v != 0, np.sign(v), breaks)
        fits = set()
        for choice in product((-1, 0, 1), repeat=2):
            mode = np.where(known != 0, known, choice)
            a, tau = self.accelerations(q, v, mode)
            if np.where(known != 0, True, np.where(mode == 0, np.abs(tau) <= self.loss, mode * a > 0)).all():
                fits.add(tuple(mode))
        (only,) = fits
        return np.array(only)

    def run(self, q: NDArray, v: NDArray, end: float) -> tuple[NDArray, NDArray, list[float], int]:
        """q, v at the end, the times of all stops and starts, and how many of them are starts."""
        t, q, v, times, breaks, starts = 0.0, np.array(q, float), np.array(v, float), [], np.zeros(2), 0
        while t < end:
            mode = self.mode(q, v, breaks)

            def flow(_, y, mode=mode):
                return np.concatenate([np.where(mode != 0, y[2:], 0), self.accelerations(y[:2], y[2:], mode)[0]])

            def changes(_, y, i, mode=mode):
                if mode[i]:
                    return mode[i] * y[2 + i] + STARTED
                return self.loss[i] - abs(self.accelerations(y[:2], y[2:], mode)[1][i])

            events = [lambda t, y, i=i, mode=mode: changes(t, y, i, mode) for i in range(2)]
            for event in events:
                event.terminal, event.direction = True, -1  # type: ignore[attr-defined]
            y = np.concatenate([q, v])
            ran = solve_ivp(flow, (t, end), y, "DOP853", events=events, rtol=1e-12, atol=1e-13)
            t, q, v = ran.t[-1], ran.y[:2, -1], ran.y[2:, -1]
            struck = np.array([len(x) > 0 for x in ran.t_events])
            breaks = np.where(struck & (mode == 0), -np.sign(self.accelerations(q, v, mode)[1]), 0)
            v = np.where((mode == 0) | struck, 0, v)
            times += [t] * bool(struck.any())
            starts += int((breaks != 0).sum())
        return q, v, times, starts
