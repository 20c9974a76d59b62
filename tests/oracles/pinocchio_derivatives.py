"""Pinocchio's derivatives of inverse and forward dynamics, for one state, in Carom's conventions.

With v_pin = T v, a_pin = T a + b(v_pin) and tau = T^T tau_pin (see `pinocchio_model.py`; T is orthogonal), what is left
to say is how T turns: displaced along Carom's k-th degree of freedom by the local rotation w of a floating joint,
dT y = -G T y with G y = w x y on each half of that joint's rows. b = -w x v on the linear rows of floating joints.
"""

# pyright does not see the names of a compiled module
# pyright: reportAttributeAccessIssue=false

import numpy as np
import pinocchio as pin

from carom.tests.oracles.pinocchio_model import Oracle

Jacobians = tuple[np.ndarray, np.ndarray, np.ndarray]  # (nv, nv) each


def rnea_derivatives(oracle: Oracle, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> Jacobians:
    """Of the joint forces, by q, v and a."""
    T, state = oracle.T(q), (oracle.q(q), oracle.T(q) @ v, oracle.a(q, v, a))
    tau_pin = pin.rnea(oracle.pin, oracle.data, *state)
    by_q, by_v, _ = (square(x, T) for x in pin.computeRNEADerivatives(oracle.pin, oracle.data, *state))
    M = T @ oracle.crba(q) @ T.T
    G, bias = _turns(oracle, q, T), _bias_rate(oracle, q, T @ v)
    columns = [
        g @ tau_pin + by_q @ t - by_v @ g @ T @ v - M @ (g @ T @ a + bias @ g @ T @ v)
        for g, t in zip(G, T.T, strict=True)
    ]
    return T.T @ np.stack(columns, -1), T.T @ (by_v + M @ bias) @ T, T.T @ M @ T


def aba_derivatives(oracle: Oracle, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> Jacobians:
    """Of the accelerations, by q, v and tau."""
    T, a = oracle.T(q), oracle.aba(q, v, tau)
    found = pin.computeABADerivatives(oracle.pin, oracle.data, oracle.q(q), T @ v, T @ tau)
    by_q, by_v, Minv = (square(x, T) for x in found)
    Minv = np.triu(Minv) + np.triu(Minv, 1).T
    G, bias = _turns(oracle, q, T), _bias_rate(oracle, q, T @ v)
    columns = [
        by_q @ t + g @ T @ a - by_v @ g @ T @ v - Minv @ g @ T @ tau + bias @ g @ T @ v
        for g, t in zip(G, T.T, strict=True)
    ]
    return T.T @ np.stack(columns, -1), T.T @ (by_v - bias) @ T, T.T @ Minv @ T


def square(x: np.ndarray, T: np.ndarray) -> np.ndarray:
    """A copy, of the shape that one degree of freedom loses."""
    return np.array(x).reshape(T.shape)


def _turns(oracle: Oracle, q: np.ndarray, T: np.ndarray) -> list[np.ndarray]:
    """G of each of Carom's degrees of freedom."""
    turns = [np.zeros_like(T) for _ in T]
    for rows, _ in oracle._free(q):
        for half in (rows[:3], rows[3:]):
            for k, g in enumerate(turns):
                g[np.ix_(half, half)] = _cross(T[rows[3:], k])
    return turns


def _bias_rate(oracle: Oracle, q: np.ndarray, v_pin: np.ndarray) -> np.ndarray:
    """db/dv_pin."""
    rate = np.zeros((v_pin.size, v_pin.size))
    for rows, _ in oracle._free(q):
        linear, angular = rows[:3], rows[3:]
        rate[np.ix_(linear, angular)] = _cross(v_pin[linear])
        rate[np.ix_(linear, linear)] = -_cross(v_pin[angular])
    return rate


def _cross(w: np.ndarray) -> np.ndarray:
    return np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
