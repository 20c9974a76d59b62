"""The six reference objects (planar chains, part III): the printed accelerations against aba, at random states.

Two printed formulas are wrong, and the tests hold both the correction and the fact that the print fails:
- 14.1, theta'': the friction of the pole is printed + mu_p theta' / (m_p l), so that it drives the pole;
- 14.3, A10: printed I1 + m2 l1^2 + ..., it must be m1 l1^2, the first link about its joint.
14.2 and all of 13 are right as printed. Coulomb losses are left out here: the text counts them by the signs of
positions, and the engine rounds the corner at rest.
"""

import numpy as np
import pytest
from numpy import cos, sin

from carom.engine.dynamics.aba import aba
from carom.engine.dynamics.passive import passive_forces
from carom.scenes.compile import compile_scene
from carom.scenes.library.registry import library_scene

TOLERANCE = 1e-9
STATES = 20
G = 9.81


def single(q, v, tau):
    return sin(q) + tau


def acrobot(q, v, tau):
    m, l, lc, inertia = 1.0, 1.0, 0.5, 1.0
    B12 = m * (lc * lc + l * lc * cos(q[1])) + inertia
    B11 = m * lc * lc + m * (l * l + lc * lc + 2 * l * lc * cos(q[1])) + 2 * inertia
    c = np.array([-(v[1] ** 2) - 2 * v[0] * v[1], v[0] ** 2]) * m * l * lc * sin(q[1])
    h2 = m * lc * G * cos(q[0] + q[1])
    h = np.array([(m * lc + m * l) * G * cos(q[0]) + h2, h2])
    return np.linalg.solve(np.array([[B11, B12], [B12, m * lc * lc + inertia]]), tau - c - h)


def weightlifter(q, v, tau, m=1.0):
    c2, c3, c23 = cos(q[1]), cos(q[2]), cos(q[1] + q[2])
    s2, s3, s23 = sin(q[1]), sin(q[2]), sin(q[1] + q[2])
    v1, v2, v3 = v
    B12, B13 = 1 + c2 + m * (2 + c2 + c23 + 2 * c3), m * (1 + c23 + c3)
    B23 = m * (1 + c3)
    B11 = 3 + 2 * c2 + m * (3 + 2 * c2 + 2 * c23 + 2 * c3)
    B = np.array([[B11, B12, B13], [B12, 1 + 2 * m * (1 + c3), B23], [B13, B23, m]])
    a, b = s2 + m * (s2 + s23), m * (s23 + s3)
    c = np.array(
        [
            -2 * v1 * v2 * a - 2 * v1 * v3 * b - v2 * v2 * a - 2 * v2 * v3 * b - v3 * v3 * b,
            v1 * v1 * a - m * s3 * v3 * (2 * v1 + 2 * v2 + v3),
            v1 * v1 * b + m * s3 * v2 * (2 * v1 + v2),
        ]
    )
    h3 = m * cos(q[0] + q[1] + q[2])
    h2 = (1 + m) * cos(q[0] + q[1]) + h3
    return np.linalg.solve(B, tau - c - G * np.array([(2 + m) * cos(q[0]) + h2, h2, h3]))


def cart_pole(q, v, tau, pole_friction=-1.0):
    """14.1, without mu_c; pole_friction: sign of mu_p's term, printed as +1."""
    F, w, M, m, l = tau[0], v[1], 1.0, 0.1, 0.5
    push = (-F - m * l * w * w * sin(q[1])) / (M + m) * cos(q[1])
    turn = push + G * sin(q[1]) + pole_friction * 0.000002 * w / (m * l)
    a = turn / l / (4 / 3 - m * cos(q[1]) ** 2 / (M + m))
    return np.array([(F + m * l * (w * w * sin(q[1]) - a * cos(q[1]))) / (M + m), a])


def cart_double_pendulum(q, v, tau):
    m0, m1, m2, L1, L2 = 1.5, 0.5, 0.75, 0.5, 0.75
    l1, l2, I1, I2 = L1 / 2, L2 / 2, m1 * L1**2 / 12, m2 * L2**2 / 12
    d1, d2, d3 = m0 + m1 + m2, m1 * l1 + m2 * L1, m2 * l2
    d4, d5, d6 = m1 * l1**2 + m2 * L1**2 + I1, m2 * L1 * l2, m2 * l2**2 + I2
    (_, a, b), (_, va, vb) = q, v
    B = [[d1, d2 * cos(a), d3 * cos(b)], [d2 * cos(a), d4, d5 * cos(a - b)], [d3 * cos(b), d5 * cos(a - b), d6]]
    s = d5 * sin(a - b)
    C = np.array([[0, -d2 * sin(a) * va, -d3 * sin(b) * vb], [0, 0, s * vb], [0, -s * va, 0]])
    h = np.array([0, -d2 * G * sin(a), -d3 * G * sin(b)])
    return np.linalg.solve(np.array(B), tau - C @ v - h)


def cart_triple_pendulum(q, v, tau, A10_mass=0.4506):
    """14.3, without Coulomb friction; A10_mass: the mass that multiplies l1^2 in A10, printed as m2."""
    g, M, m1, m2, m3 = 9.8, 1.014, 0.4506, 0.219, 0.0568
    l1, l2, l3, L1, L2, I1, I2, I3 = 0.37, 0.3, 0.05, 0.43, 0.33, 0.0042, 0.0012, 0.00010609
    Cc, C1, C2, C3 = 5.5, 0.00026875, 0.00026875, 0.00026875
    A1, A2, A3, A4 = M + m1 + m2 + m3, m1 * l1 + (m2 + m3) * L1, m2 * l2 + m3 * L2, m3 * l3
    A10, A20, A31 = I1 + A10_mass * l1**2 + (m2 + m3) * L1**2, I2 + m3 * L2**2 + m2 * l2**2, I3 + m3 * l3**2
    A11, A12, A21 = A3 * L1, A4 * L1, A4 * L2
    (_, a, b, c), (_, va, vb, vc) = q, v
    B = [
        [A1, A2 * cos(a), A3 * cos(b), A4 * cos(c)],
        [A2 * cos(a), A10, A11 * cos(a - b), A12 * cos(a - c)],
        [A3 * cos(b), A11 * cos(a - b), A20, A21 * cos(b - c)],
        [A4 * cos(c), A12 * cos(a - c), A21 * cos(b - c), A31],
    ]
    sab, sac, sbc = A11 * sin(a - b), A12 * sin(a - c), A21 * sin(b - c)
    C = [
        [Cc, -A2 * sin(a) * va, -A3 * sin(b) * vb, -A4 * sin(c) * vc],
        [0, C1 + C2, sab * vb - C2, sac * vc],
        [0, -sab * va - C2, C2 + C3, sbc * vc - C3],
        [0, -sac * va, -sbc * vb - C3, C3],
    ]
    h = -g * np.array([0, A2 * sin(a), A3 * sin(b), A4 * sin(c)])
    return np.linalg.solve(np.array(B), tau - np.array(C) @ v - h)


# closed form, dofs, whether its angles are absolute (then only the cart is pushed, as in the text)
OBJECTS = {
    "wawrzynski_pendulum": (single, 1, False),
    "acrobot": (acrobot, 2, False),
    "weightlifter": (weightlifter, 3, False),
    "cart_pole": (cart_pole, 2, True),
    "cart_double_pendulum": (cart_double_pendulum, 3, True),
    "cart_triple_pendulum": (cart_triple_pendulum, 4, True),
}


def _worst_error(name, closed_form):
    """Largest difference of accelerations over random states, in joint coordinates, relative to the largest one."""
    _, n, absolute = OBJECTS[name]
    model, _ = compile_scene(library_scene(name))
    model = model.replace(loss=np.zeros(n))
    T = np.eye(n)  # absolute angles -> joint angles: q_i = theta_i - theta_(i-1), the cart apart
    if absolute:
        T[range(2, n), range(1, n - 1)] = -1
    rng = np.random.default_rng(0)
    states = rng.normal(size=(STATES, n)), 3 * rng.normal(size=(STATES, n)), rng.normal(size=(STATES, n))
    if absolute:
        states[2][:, 1:] = 0
    q, v = states[0] @ T.T, states[1] @ T.T
    got = np.asarray(aba(model, q, v, states[2] + passive_forces(model, q, v)))
    want = np.array([T @ closed_form(*state) for state in zip(*states, strict=True)])
    assert got.shape == want.shape == (STATES, n)
    return np.abs(got - want).max() / np.abs(want).max()


@pytest.mark.parametrize("name", OBJECTS)
def test_closed_form(name):
    assert _worst_error(name, OBJECTS[name][0]) < TOLERANCE


def test_two_formulas_are_wrong_as_printed():
    assert _worst_error("cart_pole", lambda *state: cart_pole(*state, pole_friction=1.0)) > 1e-7
    assert _worst_error("cart_triple_pendulum", lambda *state: cart_triple_pendulum(*state, A10_mass=0.219)) > 1e-2


def test_weight_of_the_weightlifter_is_a_parameter():
    model, _ = compile_scene(library_scene("weightlifter", weight=2.5))
    rng = np.random.default_rng(1)
    q, v, tau = rng.normal(size=(3, 3))
    np.testing.assert_allclose(aba(model, q, v, tau), weightlifter(q, v, tau, m=2.5), rtol=TOLERANCE)
