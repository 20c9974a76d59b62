"""Friction integrated through an impact: published impacts, an independent integrator, rays, jams, singular K."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from carom.contact.laws import newton, poisson, stronge
from carom.contact.sliding import slide
from carom.contact.sliding.slide import STEPS, slide_and_count
from carom.contact.sliding.straight import diverging_ray, stuck_friction
from carom.engine.algebra.vec3 import Sym3, Vec3
from carom.engine.results import IMPACT_UNFINISHED, NOT_FINITE, OK
from carom.tests.contact.padded import resolved
from carom.tests.oracles.impact_ode import impact_by_ode
from carom.tests.oracles.random_impacts import random_impacts

ENDINGS = {"newton": newton.ENDING, "poisson": poisson.ENDING, "stronge": stronge.ENDING}
ORACLE = 1e-9  # the oracle's own error, in units of |u|: it runs at 1e-12 a step, and takes slip of 1e-11 for none


@pytest.mark.parametrize("law", ENDINGS)
def test_agrees_with_an_integration_in_p_z(law):
    compare(law, 25, 501)


@pytest.mark.slow
@pytest.mark.parametrize("law", ENDINGS)
def test_agrees_with_an_integration_in_p_z_often(law):
    compare(law, 300, 502)


def compare(law, count, seed):
    K, u, mu, e = random_impacts(count, np.random.default_rng(seed))
    p = np.asarray(resolved(K, u, mu, e, law).impulse)
    expected = np.array([impact_by_ode(*one, law) for one in zip(K, u, mu, e, strict=True)])
    error = np.linalg.norm(np.einsum("nij,nj->ni", K, p - expected), axis=1) / np.linalg.norm(u, axis=1)
    assert error.max() < ORACLE


def several_compressions():
    K = np.array([[11.14, 1.965, -0.538], [1.965, 25.14, -28.53], [-0.538, -28.53, 35.03]])
    return K, np.array([1.1667, 0.2184, -1.0]), 1.336


def test_an_impact_with_several_compressions():
    """references.md, Several compressions, computed there to all digits printed."""
    K, u, mu = several_compressions()
    stronge_ = resolved(K, u, mu, 1.0)
    np.testing.assert_allclose(stronge_.u, [0, 0, 0.352439561], atol=6e-10)
    np.testing.assert_allclose(stronge_.impulse, [-0.187147193, 0.613915952, 0.535734413], atol=6e-10)
    np.testing.assert_allclose(stronge_.impulse @ (u + stronge_.u) / 2, -0.215592899, atol=6e-10)
    np.testing.assert_allclose(resolved(K, u, mu, 0.5, "newton").u, [0, 0, 0.5], atol=1e-12)


def test_small_restitution_ends_after_the_first_compression():
    """u_z rises to 0.13 between compressions (references.md, Several compressions): laws that ask less end there."""
    K, u, mu = several_compressions()
    plastic = resolved(K, u, mu, 0.0)
    np.testing.assert_allclose(plastic.impulse[2], 0.047152098, atol=1e-9)  # 4.9's first upward crossing
    bounced = resolved(K, u, mu, 0.1, "newton")
    np.testing.assert_allclose(bounced.u[2], 0.1, atol=1e-12)
    assert 0.047 < bounced.impulse[2] < 0.1


def test_rod_with_slip_that_reverses():
    """Routh's planar impact, references.md, Planar impact with slip reversal: piecewise linear, given to ten digits."""
    K = np.array([[2.5, 0, -1.5], [0, 3.0, 0], [-1.5, 0, 2.5]])
    u = np.array([0.3, 0, -1])
    table = {
        "newton": ((-0.1636363636, 0.5), (0.2727272727, 0.7636363636), -0.1723140496),
        "poisson": ((-0.1519480520, 0.4181818182), (0.2493506494, 0.7168831169), -0.1900893911),
        "stronge": ((-0.1532674737, 0.4274177704), (0.2519894928, 0.7221608038), -0.1882606942),
    }
    for law, (after, p, energy) in table.items():
        got = resolved(K, u, 0.5, 0.5, law)
        np.testing.assert_allclose(got.u, [after[0], 0, after[1]], atol=1e-10)
        np.testing.assert_allclose(got.impulse, [p[0], 0, p[1]], atol=1e-10)
        np.testing.assert_allclose(got.impulse @ (u + got.u) / 2, energy, atol=1e-10)


def test_the_diverging_ray_is_the_quartics():
    """references.md, Sticking: beta = -1.124523963193, f = 0.004211913527 from both methods."""
    K = Sym3.of(
        np.array(
            [
                [1.6450778034099955, 0.7982095897676131, -0.0051886292105426],
                [0.7982095897676131, 0.4345846372265398, -0.03705665798843],
                [-0.0051886292105426, -0.03705665798843, 0.1569436335022114],
            ]
        )
    )
    x, y = diverging_ray(jax.tree.map(jnp.asarray, K), jnp.asarray(0.7), jnp.asarray(True))
    np.testing.assert_allclose(np.arctan2(y, x), -1.124523963193, atol=1e-11)
    f = x * K.xz + y * K.yz - 0.7 * (K.xx * x * x + 2 * K.xy * x * y + K.yy * y * y)
    np.testing.assert_allclose(f, 0.004211913527, atol=1e-11)


def test_diverging_rays_of_random_bodies():
    """Straight, and away from rest: b - mu A c = f c with f > 0, |c| = 1."""
    K, _, _, _ = random_impacts(2000, np.random.default_rng(503))
    A, b = K[:, :2, :2], K[:, :2, 2]
    size = np.linalg.norm(np.linalg.solve(A, b[..., None])[..., 0], axis=1)
    mu = size * np.random.default_rng(504).uniform(0, 0.999999, len(size))
    c = np.stack(diverging_ray(Sym3.of(jnp.asarray(K)), jnp.asarray(mu), jnp.full(mu.shape, True)), -1)
    np.testing.assert_allclose(np.linalg.norm(c, axis=1), 1, atol=1e-12)
    rate = b - mu[:, None] * np.einsum("nij,nj->ni", A, c)
    f = np.einsum("ni,ni->n", rate, c)
    assert (f > 0).all()
    scale = np.linalg.norm(b, axis=1)[:, None]
    np.testing.assert_allclose(rate / scale, f[:, None] * c / scale, atol=1e-11)


def test_sticking_is_theorem_4():
    """(K^-1)_13^2 + (K^-1)_23^2 <= mu^2 (K^-1)_33^2, where |A^-1 b| <= mu."""
    K, _, mu, _ = random_impacts(2000, np.random.default_rng(505))
    inverse = np.linalg.inv(K)
    x, y = stuck_friction(Sym3.of(jnp.asarray(K)))
    theorem = inverse[:, 0, 2] ** 2 + inverse[:, 1, 2] ** 2 <= mu**2 * inverse[:, 2, 2] ** 2
    np.testing.assert_array_equal(np.hypot(x, y) <= mu, theorem)


@pytest.mark.parametrize("scale", [0.0, 1e-15, 1e-13, 1e-9, 1e-5])
@pytest.mark.parametrize("mu", [0.1, 0.7, 1.2])
def test_slow_slip_is_the_limit_of_no_slip(scale, mu):
    """The impulse is continuous at u_t = 0 where sticking is stable and where it is not (critical mu 0.6997)."""
    K = np.array([[3.04, -0.9, 1.5], [-0.9, 4, 0.9], [1.5, 0.9, 3.04]])
    still = resolved(K, np.array([0, 0, -1.0]), mu, 0.5)
    slow = resolved(K, np.array([0.6 * scale, -0.8 * scale, -1.0]), mu, 0.5)
    np.testing.assert_allclose(slow.impulse, still.impulse, atol=20 * scale + 1e-14)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_mechanisms_without_all_motions(dtype):
    """K of rank one (a hinged rod) and two (a planar chain): no NaN, u in K's range, no energy gained."""
    rng = np.random.default_rng(506)
    J = rng.normal(size=(4000, 2, 3))  # rows: what each degree of freedom does to the contact point
    J[:2000, 1] = 0  # rank one
    J[2000:3000, :, 1] = 0  # planar
    K = np.einsum("nij,nik->njk", J, J).astype(dtype)
    u = np.einsum("nij,ni->nj", J, rng.normal(size=(4000, 2))).astype(dtype)
    mu, e = rng.uniform(0, 3, 4000).astype(dtype), rng.uniform(0, 1, 4000).astype(dtype)
    for law in ("poisson", "stronge") if dtype is np.float64 else ("stronge",):
        got = resolved(K, u, mu, e, law, dtype)
        # one in thousands jams at more than 400 times its approach, where rounding would decide
        assert set(got.code) <= {OK, IMPACT_UNFINISHED}
        assert (np.asarray(got.code) != OK).mean() <= 5e-4
        p, after = np.asarray(got.impulse, float), np.asarray(got.u, float)
        eps = np.finfo(dtype).eps
        assert np.isfinite(p).all()
        size = np.abs(u).max(1) + np.linalg.norm(p, axis=1) * np.abs(K).max((1, 2))
        assert (after[u[:, 2] < 0, 2] >= -1e2 * eps * size[u[:, 2] < 0]).all()
        gained = np.einsum("ni,ni->n", p, u + after) / 2
        assert (gained <= 1e3 * eps * size * np.linalg.norm(p, axis=1)).all()


def test_painleve_rod_is_stopped_by_an_impulse():
    """references.md, Painlevé's rod: at the paradox sliding presses the rod into the ground. No NaN, slip ends."""
    mu, e = 5 / 3, 0.0
    for degrees in (45.0, 50.0, 60.0, 70.0, 75.9):
        phi = np.radians(degrees)
        s, c = np.sin(phi), np.cos(phi)
        K = np.array([[1 + 3 * s * s, 0, 3 * s * c], [0, 1, 0], [3 * s * c, 0, 1 + 3 * c * c]])
        slides = K[2, 2] - mu * K[0, 2]
        assert slides < 1e-12  # u_z cannot rise while the rod slides forward
        for speed in (12.0, 1e-3):
            u = np.array([speed, 0.0, -1e-6])
            got = resolved(K, u, mu, e)
            assert int(got.code) == OK
            assert np.isfinite(got.u).all()
            assert abs(got.u[0]) < 1e-12 * max(speed, 1)  # slip has been killed
            assert abs(got.u[2]) < 1e-10
            assert got.impulse @ (u + got.u) < 0


@pytest.mark.parametrize(
    ("law", "dtype"),
    [
        ("stronge", np.float64),
        ("stronge", np.float32),
        *(
            pytest.param(law, dtype, marks=pytest.mark.exhaustive)
            for law in ("newton", "poisson")
            for dtype in (float, np.float32)
        ),
    ],
)
@pytest.mark.slow
def test_few_steps_and_never_the_cap(law, dtype):
    """So many that the cap of STEPS has room for what 4000 random impacts do not show."""
    K, u, mu, e = (jnp.asarray(x, dtype) for x in random_impacts(4000, np.random.default_rng(507)))
    _, code, steps = jax.jit(lambda: slide_and_count(ENDINGS[law], Sym3.of(K), Vec3.of(u), mu, e))()
    assert set(np.asarray(code)) == {OK}
    assert np.percentile(steps, 99) <= 20
    assert np.max(steps) < STEPS / 2


def test_sliding_that_is_cut_short_says_so_and_ends_apart(monkeypatch):
    """With one step where 4.9 needs several: the code, and still no approach, the cone, and no energy gained."""
    monkeypatch.setattr(slide, "STEPS", 1)
    K, u, mu = several_compressions()
    numbers = jnp.asarray([K[0, 0], K[1, 1], K[2, 2], K[0, 1], K[0, 2], K[1, 2], *u, mu])[:, None]
    cut_short = jax.jit(lambda x: slide.slide(stronge.ENDING, Sym3(*x[:6]), Vec3(*x[6:9]), x[9], jnp.ones(1)))
    p, code = cut_short(numbers)
    p = np.array([float(x[0]) for x in p.xyz])
    after = u + K @ p
    assert code[0] == IMPACT_UNFINISHED
    assert after[2] >= -1e-12
    assert np.hypot(*p[:2]) <= mu * p[2] * (1 + 1e-9)
    assert p @ (u + after) <= 1e-12


def test_a_lane_of_nan_stays_one():
    K, u, mu, e = random_impacts(64, np.random.default_rng(508))
    sound = resolved(K, u, mu, e)
    for spoil in ("K", "u", "mu", "e"):
        bad = {"K": K.copy(), "u": u.copy(), "mu": mu.copy(), "e": e.copy()}
        bad[spoil][7] = np.nan
        got = resolved(bad["K"], bad["u"], bad["mu"], bad["e"])
        assert int(got.code[7]) == NOT_FINITE
        assert np.isnan(got.impulse[7]).all()
        others = np.arange(64) != 7
        np.testing.assert_array_equal(got.impulse[others], sound.impulse[others])


@pytest.mark.parametrize("law", ENDINGS)
def test_a_ball_that_stops_sliding_has_no_slip_left(law):
    """K of a ball turns no slip aside, nor may its rounding: 500 impacts, each of their numbers some ulps off."""
    random = np.random.default_rng(7)
    count = 500
    u = np.array([-0.925403885383026, 0.021214651053136, -1.804876927755616])
    u = u * (1 + random.integers(-20, 20, (count, 3)) * 2.2e-16)
    off = random.normal(size=(count, 3, 3)) * 3e-16
    K = np.diag([3.5, 3.5, 1]) * 7 / 8 + off + np.swapaxes(off, 1, 2)
    after = np.asarray(resolved(K, u, np.full(count, 0.3), np.full(count, 0.8), law).u)
    assert np.abs(after[:, :2]).max() < 1e-13
