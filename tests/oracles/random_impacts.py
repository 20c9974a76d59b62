"""Random impacts that bodies could have: one body against the world, or two against each other."""

import numpy as np


def random_impacts(count, rng):
    """K (count, 3, 3) [1/kg], u (count, 3) [m/s] approaching, mu (count,) in [0, 3], e (count,) in [0, 1]."""
    two = rng.random(count) < 0.5
    K = one_body(count, rng) + np.where(two[:, None, None], one_body(count, rng), 0)
    u = rng.normal(size=(count, 3)) * 10.0 ** rng.uniform(-2, 1, (count, 3))
    u[:, 2] = -np.abs(u[:, 2])
    return (K + K.transpose(0, 2, 1)) / 2, u, rng.uniform(0, 3, count), rng.uniform(0, 1, count)


def one_body(count, rng):
    """1/m - [r] I^-1 [r]: masses 0.1 to 10 kg, any inertia that satisfies the triangle inequality, any point."""
    m = 10 ** rng.uniform(-1, 1, count)
    moments = rng.uniform(0.01, 1, (count, 3)) * 10 ** rng.uniform(-1, 0, (count, 1))  # integrals of x^2, y^2, z^2
    principal = m[:, None] * (moments.sum(1, keepdims=True) - moments)
    axes = np.linalg.qr(rng.normal(size=(count, 3, 3)))[0]
    inverse = np.einsum("nij,nj,nkj->nik", axes, 1 / principal, axes)
    r = rng.normal(size=(count, 3)) * rng.uniform(0, 1, (count, 1))
    cross = np.zeros((count, 3, 3))
    cross[:, [2, 0, 1], [1, 2, 0]] = r
    cross[:, [1, 2, 0], [2, 0, 1]] = -r
    return np.eye(3) / m[:, None, None] - cross @ inverse @ cross
