"""`resolve_impact` as people call it: shapes, precision, what it rejects, batches, vmap, jit and derivatives."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from carom.contact.laws.table import LAWS, impulse, law_named
from carom.contact.resolve import TILE, resolve_impact
from carom.engine.algebra.vec3 import Sym3, Vec3
from carom.engine.results import OK
from carom.tests.contact.padded import LANES, resolved
from carom.tests.oracles.random_impacts import random_impacts

CUBE = np.array([[3.04, -0.9, 1.5], [-0.9, 4, 0.9], [1.5, 0.9, 3.04]])
U = np.array([0.3, -0.2, -1])
STEP = 1e-6  # of central differences: their error is STEP^2 times the third derivative, and 1e-16 / STEP
DIFFERENCES = 2e-7  # of derivatives of size 10, third derivatives of size 1e4
EVERY_LAW = pytest.mark.parametrize(
    "law", [pytest.param(law, marks=pytest.mark.exhaustive) if law in ("newton", "poisson") else law for law in LAWS]
)


def sample(count, seed):
    return random_impacts(count, np.random.default_rng(seed))


def test_shapes_broadcast():
    """One law will do: shapes are no law's business."""
    three = np.array([0.0, 0.5, 1.0])
    got = resolve_impact(CUBE, U, friction=0.2, restitution=three, law="frictionless")
    assert got.u.shape == got.impulse.shape == (3, 3)
    assert got.code.shape == (3,)
    grid = resolve_impact(CUBE, U, friction=np.ones((4, 1)), restitution=three, law="frictionless")
    assert grid.u.shape == (4, 3, 3)
    np.testing.assert_array_equal(grid.u[3], got.u)
    one = resolve_impact(CUBE, U, friction=0.2, restitution=0.5, law="frictionless")
    assert one.u.shape == (3,)
    np.testing.assert_allclose(got.u[1], one.u, rtol=0, atol=1e-14)
    assert one.code.shape == ()
    assert one.code.dtype == jnp.int32


@pytest.mark.parametrize("law", LAWS)
def test_no_approach_no_impulse(law):
    K, u, mu, e = sample(LANES, 701)
    u[:, 2] = np.abs(u[:, 2])
    u[:10, 2] = 0
    got = resolved(K, u, mu, e, law)
    np.testing.assert_array_equal(got.impulse, 0)
    np.testing.assert_array_equal(got.u, u)
    assert set(got.code) == {OK}


def test_batches_lanes_and_tiles_agree():
    """Alone, in a batch, in tiles (a batch is cut above 2 TILE), under vmap: rounding apart the same."""
    K, u, mu, e = sample(2 * TILE + 7, 702)
    tiled = resolve_impact(K, u, friction=mu, restitution=e)
    some = resolved(K[:LANES], u[:LANES], mu[:LANES], e[:LANES])
    mapped = jax.vmap(lambda K, u, mu, e: resolve_impact(K, u, friction=mu, restitution=e))(K, u, mu, e)
    size = np.linalg.norm(tiled.impulse, axis=1, keepdims=True)
    for other, count in ((some, LANES), (mapped, len(u))):
        np.testing.assert_allclose(other.impulse / size[:count], tiled.impulse[:count] / size[:count], atol=1e-12)
    for i in range(3):
        alone = resolve_impact(K[i], u[i], friction=mu[i], restitution=e[i])
        np.testing.assert_allclose(alone.impulse / size[i], tiled.impulse[i] / size[i], atol=1e-12)


def test_units_do_not_matter():
    """A millionth of the mass, or of the speed, is the same impact: p scales with both."""
    K, u, mu, e = sample(LANES, 703)
    base = resolved(K, u, mu, e)
    for mass, speed in ((1e-6, 1.0), (1e6, 1e-6), (2.0**-30, 2.0**20)):
        got = resolved(K / mass, u * speed, mu, e)
        np.testing.assert_allclose(got.u / speed, base.u, atol=1e-11 * np.abs(u).max())


def test_the_tangents_may_be_turned():
    """Any pair of tangents gives the same impact."""
    K, u, mu, e = sample(LANES, 704)
    angle = np.random.default_rng(705).uniform(-np.pi, np.pi, LANES)
    R = np.zeros((LANES, 3, 3))
    R[:, 0, 0], R[:, 0, 1], R[:, 1, 0], R[:, 1, 1] = np.cos(angle), -np.sin(angle), np.sin(angle), np.cos(angle)
    R[:, 2, 2] = 1
    base = resolved(K, u, mu, e)
    turned = resolved(R @ K @ R.transpose(0, 2, 1), (R @ u[..., None])[..., 0], mu, e)
    error = turned.u - (R @ base.u[..., None])[..., 0]
    assert (np.linalg.norm(error, axis=1) <= 1e-10 * np.linalg.norm(u, axis=1)).all()


@pytest.mark.parametrize(
    "law", ["stronge", *(pytest.param(law, marks=pytest.mark.exhaustive) for law in ("poisson", "newton"))]
)
def test_single_precision_is_good_to_1e_4(law):
    K, u, mu, e = (x.astype(np.float32) for x in random_impacts(5000, np.random.default_rng(706)))
    got, exact = resolved(K, u, mu, e, law, np.float32), resolved(K, u, mu, e, law)
    error = np.linalg.norm(got.u - exact.u, axis=1) / np.linalg.norm(u, axis=1)
    assert np.percentile(error, 99.9) < 1e-4
    assert np.median(error) < 1e-6


def impulses(law, K, u, mu, e):
    return resolve_impact(K, u, friction=mu, restitution=e, law=law).impulse


@functools.partial(jax.jit, static_argnums=0)
def derivative(law, numbers, d):
    """The kernel's own: one direction in forward mode. `resolve_impact` has the same by its Jacobian."""

    def p(K, u, mu, e):
        return jnp.stack(impulse(law_named(law), Sym3.of(K), Vec3.of(u), mu, e, jnp.zeros_like(e))[0].xyz, -1)

    return jax.jvp(p, numbers, d)


def tangents(numbers, seed):
    rng = np.random.default_rng(seed)
    dK, *rest = (rng.normal(size=x.shape) for x in numbers)
    return dK + dK.transpose(0, 2, 1), *rest


@EVERY_LAW
@pytest.mark.slow
def test_forward_derivatives_are_differences(law):
    """Along random directions, but for those within a step of another way of ending."""
    numbers = sample(LANES, 707)
    d = tangents(numbers, 708)
    value, got = (np.asarray(x) for x in derivative(law, numbers, d))
    ends = [derivative(law, tuple(x + s * STEP * y for x, y in zip(numbers, d, strict=True)), d)[0] for s in (1, -1)]
    expected = (ends[0] - ends[1]) / (2 * STEP)
    size = np.linalg.norm(expected, axis=1) + np.linalg.norm(value, axis=1)
    error = np.linalg.norm(got - expected, axis=1) / size
    assert np.isfinite(got).all()
    assert np.sort(error)[-4] < 50 * DIFFERENCES  # three may be near a change of kind
    assert np.median(error) < DIFFERENCES


def awkward():
    """No slip, no friction, no coupling, no or full restitution, no approach, no motion, singular K; a lane of NaN."""
    K, u, mu, e = sample(LANES, 712)
    u[0, :2] = 0
    mu[1] = 0
    K[2] = np.diag([3.5, 3.5, 1])
    e[3] = 0
    e[4] = 1
    u[5, 2] = 0.3
    u[6, 2] = 0
    u[7] = 0
    K[8] = 0
    j = np.array([0.3, 0.0, 0.8])
    K[9], u[9] = np.outer(j, j), -2 * j
    K[10] = np.diag([3.5, 3.5, 1])
    mu[10], u[10, :2] = 0, 0
    K[11, 0, 1] = K[11, 1, 0] = K[11, 1, 2] = K[11, 2, 1] = u[11, 1] = 0  # planar
    u[12, 0] = np.nan
    return K, u, mu, e


@EVERY_LAW
@pytest.mark.slow
def test_forward_derivatives_are_finite_where_the_formulas_are_not(law):
    numbers = awkward()
    sound = np.arange(LANES) != 12
    for seed in (1, 2):
        value, got = derivative(law, numbers, tangents(numbers, seed))
        assert np.isfinite(value[sound]).all()
        assert np.isnan(value[~sound]).all()
        assert np.isfinite(got[sound]).all()


@pytest.mark.parametrize("law", [pytest.param("stronge", marks=pytest.mark.exhaustive), "chatterjee_ruina"])
@pytest.mark.slow
def test_reverse_derivatives_are_the_forward_ones(law):
    """And finite beside awkward lanes; `resolve_impact` differentiated forwards has the same Jacobian."""
    numbers = awkward()
    d = tangents(numbers, 710)
    _, forward = derivative(law, numbers, d)
    value, back = jax.vjp(lambda *x: impulses(law, *x), *numbers)
    sound = np.arange(LANES) != 12
    w = np.random.default_rng(711).normal(size=value.shape)
    cotangents = [np.asarray(x) for x in back(w.astype(value.dtype))]
    got = np.sum([(x * y).reshape(LANES, -1).sum(1) for x, y in zip(cotangents, d, strict=True)], 0)
    assert all(np.isfinite(x[sound]).all() for x in cotangents)
    np.testing.assert_allclose(got[sound], (w * np.asarray(forward)).sum(1)[sound], rtol=1e-10, atol=1e-10)


@pytest.mark.slow
def test_the_public_functions_forward_derivative():
    numbers = sample(LANES, 707)
    d = tangents(numbers, 708)
    _, got = jax.jvp(lambda *x: impulses("stronge", *x), numbers, d)
    np.testing.assert_allclose(got, derivative("stronge", numbers, d)[1], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"K": np.eye(2)}, r"K has shape \(2, 2\)"),
        ({"u": np.zeros(2)}, r"u \(2,\); they must be"),
        ({"friction": -0.1}, "friction is -0.1: a coefficient of friction is not negative"),
        ({"friction": [0.1, -0.2]}, r"friction is -0.2 at \[1\]"),
        ({"restitution": 1.5}, r"restitution is 1.5: it must be in \[0, 1\]"),
        ({"tangential_restitution": 0.5}, "tangential_restitution is given, but the law 'stronge' does not read it"),
        ({"tangential_restitution": -2.0}, r"tangential_restitution is -2: it must be in \[-1, 1\]"),
        ({"law": "hertz"}, "no law of impact 'hertz'; choose one of"),
        (
            {"friction": [0.1, 0.2], "restitution": [0.1, 0.2, 0.3]},
            r"do not broadcast: K \(\), u \(\), friction \(2,\)",
        ),
    ],
)
def test_bad_input_is_named(change, message):
    arguments = {"K": CUBE, "u": U, "friction": 0.2, "restitution": 0.5} | change
    with pytest.raises(ValueError, match=message):
        resolve_impact(arguments.pop("K"), arguments.pop("u"), **arguments)


def test_inside_jit_values_are_not_checked():
    got = jax.jit(lambda e: resolve_impact(CUBE, U, friction=0.0, restitution=e))(1.25)
    np.testing.assert_allclose(got.u[2], 1.25, atol=1e-14)
