"""When a gap that moves like a parabola closes: against the roots that NumPy finds."""

from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from carom.contact.approach import _times, first_time, return_time
from carom.contact.determine import phases

ROUNDING = 1e-9  # relative: eigenvalues of companion matrices lose half the digits where two roots nearly meet


def roots(g: float, u: float, a: float) -> float:
    """The least t > 0 at which the gap falls through 0 (or just reaches it)."""
    g = max(g, 0.0)
    if not np.isfinite(g):
        return np.inf
    found = np.roots([a / 2, u, g])  # leading zeros are stripped
    real = found[np.abs(found.imag) == 0].real
    falls = real[(real > 1e-12) & (u + a * real <= 0)]
    return falls.min(initial=np.inf)


def test_against_roots() -> None:
    """Random gaps, speeds and accelerations over six decades, of all signs, and zeros among them."""
    rng = np.random.default_rng(3)
    size = lambda: rng.choice([-1.0, 1.0], 4000) * 10.0 ** rng.uniform(-3, 3, 4000)  # noqa: E731
    g, u, a = np.abs(size()), size(), size()
    for k, x in enumerate((g, u, a)):
        x[k * 100 : (k + 1) * 100] = 0
    g[1000:1100] *= -1  # overlap counts as touching
    g[1100:1200] = np.inf
    time = np.asarray(first_time(*(jnp.asarray(x) for x in (g, u, a))))
    expected = np.array([roots(*x) for x in zip(g, u, a, strict=True)])
    np.testing.assert_array_equal(np.isinf(time), np.isinf(expected))
    finite = np.isfinite(expected)
    assert 1000 < finite.sum() < 3500  # both kinds were drawn
    g, u, a, time, expected = (x[finite] for x in (np.maximum(g, 0), u, a, time, expected))
    scale = g + np.abs(u * time) + np.abs(a) * time**2
    assert (
        np.abs(g + (u + a * time / 2) * time) <= 8e-15 * scale
    ).all()  # a root to rounding, also where NumPy's is not
    apart = u * u - 2 * a * g > 1e-6 * u * u
    np.testing.assert_allclose(time[apart], expected[apart], rtol=ROUNDING)


@pytest.mark.parametrize(
    ("g", "u", "a", "t"),
    [
        (1.0, 0.0, -9.81, np.sqrt(2 / 9.81)),  # dropped
        (0.0, 2.0, -9.81, 4 / 9.81),  # thrown up from the ground
        (1.0, -2.0, 0.0, 0.5),
        (1.0, -2.0, 2.0, 1.0),  # just reaches it
        (1.0, -2.0, 2.1, np.inf),  # turns before it
        (1.0, 2.0, 1.0, np.inf),
        (0.0, 0.0, -9.81, np.inf),  # lies there, and presses
        (np.inf, -1.0, -1.0, np.inf),
        (1e-3, -1.0, -1e-12, 1e-3),  # nearly straight: no difference of nearly equal numbers
    ],
)
def test_by_hand(g: float, u: float, a: float, t: float) -> None:
    assert float(first_time(*(jnp.asarray(x) for x in (g, u, a)))) == pytest.approx(t, rel=1e-12)


@pytest.mark.slow
def test_derivatives_are_finite() -> None:
    """Whatever stands in a row: where there is no time they are 0; else they are those of the root."""
    rows = jnp.array([[1.0, 2, 1], [0, 0, 0], [0, 0, -1], [jnp.inf, -1, -1], [1, -2, 2.1], [1, 0, -9.81], [-1, 3, -2]])
    for mode in (jax.jacfwd, jax.jacrev):
        slopes = np.asarray(jax.vmap(mode(lambda x: first_time(x[0], x[1], x[2])))(rows))
        assert np.isfinite(slopes).all()
        np.testing.assert_array_equal(slopes[:5], 0)
        t = np.sqrt(2 / 9.81)  # of g + u t + a t^2/2 = 0: dt = -(dg + t du + t^2/2 da) / (u + a t)
        np.testing.assert_allclose(slopes[5], np.array([1, t, t * t / 2]) / (9.81 * t), rtol=1e-12)
        np.testing.assert_allclose(slopes[6], np.array([0, 3, 4.5]) / 3, rtol=1e-12)


def test_what_rests_is_not_waited_for() -> None:
    """Nothing is predicted for the contacts that `phases` calls resting, at any depth: it would be a step too short."""
    rng = np.random.default_rng(4)
    band, slow = 1e-9, 4e-4
    g, u = band * rng.uniform(-30, 15, 20000), slow * rng.uniform(-1.5, 1.5, 20000)
    model: Any = SimpleNamespace(gap_band=band, rest_speed=slow)
    contacts: Any = SimpleNamespace(active=g <= 10 * band, gap=g)
    resting = np.asarray(phases(model, contacts, jnp.asarray(u)).resting)
    one = jax.vmap(lambda g, u: _times(model, g[None], u[None], jnp.array([-9.81]))[0])
    time = np.asarray(one(g, u))
    np.testing.assert_array_equal(time[resting], np.inf)
    assert np.isfinite(time[~resting & (u > 0)]).all()  # what flies comes back
    assert min(resting.sum(), (~resting).sum()) > 2000


def test_what_opens_returns_from_where_it_is() -> None:
    """A contact that is above the ground and rises is back when a parabola that begins there is; also one in it."""
    rng = np.random.default_rng(5)
    gap, u, a = rng.uniform(-1e-3, 1e-3, 500), rng.uniform(0.01, 1.0, 500), -rng.uniform(1.0, 20.0, 500)
    model: Any = SimpleNamespace(gap_band=1e-9, rest_speed=4e-4)
    contacts: Any = SimpleNamespace(active=np.full(500, True), gap=jnp.asarray(gap))
    time = np.asarray(return_time(model, contacts, jnp.asarray(u), jnp.asarray(a)))
    np.testing.assert_allclose(np.maximum(gap, 0) + u * time + a * time**2 / 2, 0, atol=1e-12)
    assert (time > -u / a).all(), "behind the vertex"
