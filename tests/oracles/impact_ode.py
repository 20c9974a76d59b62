"""One impact the straightforward way: theorem 3 of Holck (2005) integrated in p_z by SciPy, events by its root finder.

Shares no code and no formula with carom.contact: another variable (p_z), another method (DOP853), sticking by theorem 4
with K^-1 as printed, the diverging ray from Mirtich's quartic. Slow, and good to about 1e-10 of |u|.
"""

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

UX, UY, UZ, PX, PY, W = range(6)


def impact_by_ode(K, u, mu, e, law):
    """The impulse (3,) of one impact; law "newton", "poisson" or "stronge"."""
    K, u = np.asarray(K, float), np.asarray(u, float)
    if u[2] >= 0:
        return np.zeros(3)
    speed, mobility = np.linalg.norm(u), np.abs(K).max()
    return _impact(K / mobility, u / speed, mu, e, law) * speed / mobility


def _impact(K, u0, mu, e, law):
    y, p_z, W_c, p_c, compressing = np.array([*u0, 0.0, 0.0, 0.0]), 0.0, 0.0, 0.0, True
    sliding = np.hypot(*u0[:2]) > 1e-10
    xi = None if sliding else _after_slip(K, mu)

    def missing(p_z, y):
        if law == "newton":
            return y[UZ] + e * u0[2]
        if law == "poisson":
            return p_z - (1 + e) * p_c
        return y[W] - (1 - e * e) * W_c

    for _ in range(20):
        goals = [lambda p, y: y[UZ]] if compressing else [missing, lambda p, y: y[UZ] + 1e-13]
        signs = [1] if compressing else [1, -1]
        if sliding:
            goals.append(lambda p, y: np.hypot(y[UX], y[UY]) - 1e-11)
            signs.append(-1)
            p_z, y, hit = _slide(K, mu, p_z, y, goals, signs)
            stops = hit == len(goals) - 1
        else:
            p_z, y, hit = _line(K, xi, p_z, y, goals)
            stops = False
        if stops:
            sliding, xi = False, _after_slip(K, mu)
        elif compressing:
            compressing, p_c, W_c = False, p_z, min(W_c, y[W])
            if e == 0:
                break
        elif hit == 1:
            compressing = True
        else:
            break
    else:
        raise RuntimeError("the impact does not end")
    return np.array([y[PX], y[PY], p_z])


def _slide(K, mu, p_z, y, goals, signs):
    def rate(p_z, y):
        c = y[[UX, UY]] / np.hypot(y[UX], y[UY])
        xi = np.array([-mu * c[0], -mu * c[1], 1.0])
        return np.array([*(K @ xi), xi[0], xi[1], y[UZ]])

    events = []
    for goal, sign in zip(goals, signs, strict=True):
        event = lambda p, y, goal=goal: goal(p, y)  # noqa: E731
        event.terminal, event.direction = True, sign
        events.append(event)
    longest = 0.02 * (abs(y[UZ]) + np.hypot(y[UX], y[UY])) / K.max() + 1e-3  # shorter than any turn of u_z
    answer = solve_ivp(
        rate, (p_z, p_z + 1e6), y, method="DOP853", rtol=1e-12, atol=1e-14, events=events, max_step=longest
    )
    hits = [(answer.t_events[i][0], i) for i in range(len(events)) if len(answer.t_events[i])]
    p, hit = min(hits)
    return p, answer.y_events[hit][0], hit


def _line(K, xi, p_z, y, goals):
    slope = K @ xi

    def at(d):
        work = y[W] + y[UZ] * d + slope[2] * d * d / 2
        return p_z + d, np.array([*(y[:3] + slope * d), y[PX] + xi[0] * d, y[PY] + xi[1] * d, work])

    goal = goals[0]
    far = 1.0
    while goal(*at(far)) < 0:
        far *= 2
    d = brentq(lambda d: goal(*at(d)), 0, far, xtol=1e-300) if goal(*at(0.0)) < 0 else 0.0
    p, y = at(d)
    return p, y, 0


def _after_slip(K, mu):
    inverse = np.linalg.inv(K)
    if inverse[0, 2] ** 2 + inverse[1, 2] ** 2 <= mu**2 * inverse[2, 2] ** 2:  # theorem 4
        return inverse[:, 2] / inverse[2, 2]
    (a, b, c), (_, d, f) = K[0], K[1]  # references.md, Sticking, t = tan(beta / 2)
    quartic = [-mu * b - f, -2 * mu * (a - d) - 2 * c, 6 * mu * b, 2 * mu * (a - d) - 2 * c, f - mu * b]
    for root in np.roots(quartic):
        if abs(root.imag) < 1e-9:
            beta = 2 * np.arctan(root.real)
            direction = np.array([np.cos(beta), np.sin(beta)])
            xi = np.array([*(-mu * direction), 1.0])
            if (K @ xi)[:2] @ direction > 0:
                return xi
    raise RuntimeError("no diverging ray")
