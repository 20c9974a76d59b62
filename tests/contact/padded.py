"""`resolve_impact` for a handful of impacts, always as many lanes: tests compile each law once, not once a shape."""

from typing import Any, NamedTuple

import numpy as np

from carom.contact.resolve import resolve_impact

LANES = 64
MANY = 5000  # more are compiled in their own shape: it runs faster


class Resolved(NamedTuple):
    u: np.ndarray
    impulse: np.ndarray
    code: np.ndarray


def resolved(K, u, mu, e, law: str = "stronge", dtype: Any = np.float64, e_t: Any = 0.0) -> Resolved:
    """Arguments as resolve_impact's, in this dtype; results in float64."""
    K, u, mu, e, e_t = (np.asarray(x, dtype) for x in (K, u, mu, e, e_t))
    front = np.broadcast_shapes(K.shape[:-2], u.shape[:-1], mu.shape, e.shape, e_t.shape)
    count = int(np.prod(front))
    lanes = LANES if count <= MANY else count

    def filled(x, tail=()):
        """(calls, lanes, ...): the last impact fills up."""
        x = np.broadcast_to(x, front + tail).reshape(count, *tail)
        return np.concatenate([x, np.repeat(x[-1:], -count % lanes, 0)]).reshape(-1, lanes, *tail)

    calls = []
    for K_, u_, mu_, e_, t_ in zip(filled(K, (3, 3)), filled(u, (3,)), filled(mu), filled(e), filled(e_t), strict=True):
        calls.append(resolve_impact(K_, u_, friction=mu_, restitution=e_, law=law, tangential_restitution=t_))
    assert calls[0].u.dtype == calls[0].impulse.dtype == dtype
    after, p, code = (np.concatenate(x)[:count] for x in zip(*calls, strict=True))
    return Resolved(after.astype(float).reshape(*front, 3), p.astype(float).reshape(*front, 3), code.reshape(front))
