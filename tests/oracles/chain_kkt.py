"""Accelerations of a planar chain from its equations as they stand: Newton's for every mass, one row for every demand,
solved together as one dense system. The demands: lengths of links, prescribed accelerations, lines, angles."""

import numpy as np


def left(r):
    return np.stack([-r[..., 1], r[..., 0]], -1)


def accelerations(mass, x, v, F, *, guided=(), lines=(), angles=()):
    """a (n, 2), and the multiplier of each demand.

    F: (n, 2) what acts on each mass besides.  guided: (joint, acceleration (2,)).  lines: (joint, unit normal (2,)).
    angles: (joint, angular acceleration), joint 0 turning against the world.
    """
    n = len(mass)
    rows, right = [], []

    def link_row(i, sign, row):  # angular acceleration of link i
        d = x[i + 1] - x[i]
        L = left(d) / (d @ d)
        row[i + 1] += sign * L
        row[i] -= sign * L

    for i in range(n - 1):
        d, w = x[i + 1] - x[i], v[i + 1] - v[i]
        row = np.zeros((n, 2))
        row[i], row[i + 1] = d, -d
        rows.append(row)
        right.append(w @ w)
    for i, a in guided:
        for k in (0, 1):
            row = np.zeros((n, 2))
            row[i, k] = 1
            rows.append(row)
            right.append(a[k])
    for i, s in lines:
        row = np.zeros((n, 2))
        row[i] = s
        rows.append(row)
        right.append(0)
    for i, alpha in angles:
        row = np.zeros((n, 2))
        link_row(i, 1, row)
        if i:
            link_row(i - 1, -1, row)
        rows.append(row)
        right.append(alpha)
    J = np.array(rows).reshape(-1, 2 * n)
    M = np.repeat(mass, 2)
    W = J / M @ J.T
    multipliers = np.linalg.solve(W, np.array(right) - J / M @ F.ravel())
    return ((F.ravel() + J.T @ multipliers) / M).reshape(n, 2), multipliers
