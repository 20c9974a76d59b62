"""The recursion along planar chains: against dense algebra, the general tree dynamics, closed forms, its own laws."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from carom.engine.algebra.vec2 import Sym2, Vec2
from carom.engine.planar.accelerations import chain_accelerations, chain_impulses
from carom.engine.planar.active import Turning
from carom.engine.planar.active import inwards as active_inwards
from carom.engine.planar.angles import chain_angular, chain_state
from carom.engine.planar.chain import JointTerms
from carom.tests.oracles.chain_kkt import accelerations as dense
from carom.tests.oracles.random_chains import Drawn, plain_chain, random_chains, unit, with_nan

DENSE = {"float64": 1e-9, "float32": 1e-3}  # conditions of up to 1e4
MET = 1e-8  # demands of order 1, through forces of up to 1e3
N, LANES = 9, 64
accelerated = jax.jit(chain_accelerations)


@pytest.fixture(scope="module")
def drawn() -> Drawn:
    return random_chains(np.random.default_rng(0), N, LANES)


def test_the_draw_has_every_kind_of_joint(drawn):
    model, state = drawn.model, drawn.state
    lane, last = np.arange(LANES), model.joints - 1
    held, line = model.guided | (state.stuck >= 0), model.line.any(-1)
    cases = {
        "guided": model.guided,
        "stuck": state.stuck >= 0,
        "two held": held.sum(-1) == 2,
        "line": line,
        "ending, held": held[lane, last],
        "ending, on a line": line[lane, last],
        "first on a line": line[:, 0],
        "first active": model.active[:, 0],
        "held and active": held & model.active,
        "on a line and active": line & model.active,
        "held, the next active": held[:, :-1] & model.active[:, 1:],
        "two links": last == 2,
    }
    assert [name for name, found in cases.items() if found.sum() < 2] == []


def test_every_kind_of_joint_against_dense_algebra(drawn):
    check(drawn, "float64")


@pytest.mark.slow
def test_sixty_joints_against_dense_algebra():
    check(random_chains(np.random.default_rng(1), 60, 16), "float64")


def test_single_precision(drawn):
    check(drawn, "float32")


def check(drawn: Drawn, dtype: str) -> None:
    def cast(tree):
        return jax.tree.map(lambda a: jnp.asarray(a, dtype) if a.dtype.kind == "f" else jnp.asarray(a), tree)

    found = accelerated(cast(drawn.model), cast(drawn.state), cast(drawn.drive))
    assert all(x.dtype == dtype for x in found)
    for name in ("a", "force", "torque"):
        mine, true = np.asarray(getattr(found, name)), getattr(drawn, name)
        error = np.abs(mine - true).reshape(len(true), -1).max(1)
        scale = 1 + np.abs(drawn.force).reshape(len(true), -1).max(1)
        assert (error / scale).max() < DENSE[dtype], name


def test_power_of_what_acts_is_what_kinetic_energy_gains(drawn):
    """Links do no work; whatever holds joints and angles does what its force by its velocity says."""
    model, state, drive = drawn.model, drawn.state, drawn.drive
    found = accelerated(model, state, drive)
    there = (np.arange(N) < model.joints[:, None])[..., None]
    linked = np.arange(N - 1) < model.joints[:, None] - 1
    x, v, a = (np.where(there, y, 0) for y in (state.x, state.v, found.a))
    d, w = np.diff(x, axis=1), np.diff(v, axis=1)
    omega = np.where(linked, (d[..., 0] * w[..., 1] - d[..., 1] * w[..., 0]) / (model.length**2), 0)
    rate = np.where(linked, np.diff(omega, axis=1, prepend=0), 0)
    mass, drag = model.mass[..., None], model.drag[..., None] * np.linalg.norm(v, axis=-1, keepdims=True)
    force = mass * model.gravity[:, None] + drive.force - drag * v + found.reaction
    torque = (drive.torque + np.asarray(found.torque))[:, :-1] - model.roll[:, :-1] * rate
    power = (np.where(there, force, 0) * v).sum((1, 2)) + (torque * rate).sum(1)
    np.testing.assert_allclose((mass * a * v).sum((1, 2)), power, atol=1e-9 * np.abs(drawn.force).max())


# ---- room: lanes shorter than the others


def test_nothing_is_read_beyond_the_last_joint(drawn):
    model, state, drive = with_nan(*drawn[:3])
    clean, found = accelerated(*drawn[:3]), accelerated(model, state, drive)
    beyond = np.arange(N) >= model.joints[:, None]
    assert beyond.sum() > LANES
    for a, b in zip(clean, found, strict=True):
        np.testing.assert_array_equal(a, b)
    assert not any(np.asarray(x)[beyond].any() for x in found)


def test_a_short_lane_is_the_short_chain(drawn):
    n = 4
    lanes = drawn.model.joints == n
    assert lanes.any()

    def cut(name, a):
        a = a[lanes]
        return a[:, : n - 1] if name == "length" else a[:, :n] if a.ndim > 1 and a.shape[1] == N else a

    parts = [replace(part, **{name: cut(name, a) for name, a in vars(part).items()}) for part in drawn[:3]]
    short = [np.asarray(x) for x in accelerated(*parts)]
    for own, padded in zip(short, accelerated(*drawn[:3]), strict=True):
        np.testing.assert_allclose(own, np.asarray(padded)[lanes, :n], atol=1e-9)


# ---- impacts


def test_impulses_stop_what_is_stuck_or_shut(drawn):
    """Z1 to Z3 against dense algebra: no forces, no centripetal accelerations, what is held loses its velocity."""
    model, state = drawn.model, drawn.state
    state = replace(state, stuck=np.where(model.guided, 0, state.stuck), shut=np.where(model.active, 1, 0))
    model = model.replace(guided=np.zeros_like(model.guided), active=np.zeros_like(model.active))
    found = jax.jit(chain_impulses)(model, state)
    for lane in range(0, LANES, 4):
        k = int(model.joints[lane])
        x, v = state.x[lane, :k], state.v[lane, :k]
        d, w = np.diff(x, axis=0), np.diff(v, axis=0)
        omega = (d[:, 0] * w[:, 1] - d[:, 1] * w[:, 0]) / (d * d).sum(-1)
        rate = np.diff(omega, prepend=0)
        change, _ = dense(
            model.mass[lane, :k], x, 0 * v, 0 * v,
            guided=[(i, -v[i]) for i in np.flatnonzero(state.stuck[lane, :k] >= 0)],
            lines=[(i, model.line[lane, i]) for i in np.flatnonzero(model.line[lane, :k].any(-1))],
            angles=[(i, -rate[i]) for i in np.flatnonzero(state.shut[lane, :k])],
        )  # fmt: skip
        np.testing.assert_allclose(found.a[lane, :k], change, atol=1e-8)


# ---- closed forms and symmetry


def test_frequencies_of_a_hanging_chain():
    """w^2 = g/l times the zeros of the Laguerre polynomial L_N (references.md, Hanging chain), of 2, 3 and 20 links."""
    g, links, n = 9.81, (2, 3, 20), 21
    model = plain_chain(n).replace(gravity=jnp.array([0.0, -g]), guided=jnp.arange(n) == 0)
    hanging = jnp.where(jnp.arange(n - 1) == 0, -jnp.pi / 2, 0.0)

    @jax.jit
    @jax.vmap
    def stiffness(joints):
        def alpha(angle):
            short = model.replace(joints=joints)
            state = chain_state(short, angle, jnp.zeros(n - 1))
            return chain_angular(short, state, chain_accelerations(short, state).a)

        return -jax.jacfwd(alpha)(hanging)

    found = {}
    for N, K in zip(links, stiffness(jnp.array(links) + 1), strict=True):
        found[N] = np.sqrt(np.sort(np.linalg.eigvals(K[:N, :N]).real))
        squares = g * np.polynomial.laguerre.lagroots([0] * N + [1])
        np.testing.assert_allclose(found[N], np.sqrt(squares), rtol=1e-8)
    np.testing.assert_allclose(found[2], [2.397199397864, 5.787351298036], rtol=1e-12)
    np.testing.assert_allclose(found[3], [2.019591147249, 4.744142739667, 7.855212362732], rtol=1e-12)


def test_the_answer_to_force_and_torque_is_symmetric():
    """p_i as sections 10 to 11.3 print it is b^w_i, whatever is guided, on a line or active."""
    rng, n = np.random.default_rng(5), 12
    r, s = (unit(rng.normal(size=(n, 2))) * np.arange(n)[:, None] ** 0 for _ in range(2))
    r[-1] = 0
    on_line = rng.random(n) < 0.3
    W = (np.eye(2) - np.einsum("ni,nj->nij", s, s) * on_line[:, None, None]) / rng.uniform(0.3, 3, n)[:, None, None]
    W[rng.random(n) < 0.2] = 0
    L = np.stack([-r[:, 1], r[:, 0]], -1) / rng.uniform(0.3, 1, n)[:, None]
    u, e, alpha = rng.normal(size=(n, 2)), rng.normal(size=n), rng.normal(size=n)

    def vector(a):
        return Vec2(jnp.asarray(a[:, 0]), jnp.asarray(a[:, 1]))

    tiny, symmetric = jnp.full(n, 1e-12), Sym2(*(jnp.asarray(W[:, i, j]) for i, j in ((0, 0), (1, 1), (0, 1))))
    turning = Turning(vector(L), jnp.asarray(rng.random(n) < 0.6), jnp.asarray(alpha), tiny)
    answer, passed = active_inwards(JointTerms(vector(r), symmetric, vector(u), jnp.asarray(e), tiny), turning)

    def matrix(a):
        return np.moveaxis(np.array([[a.xx, a.xy], [a.xy, a.yy]]), -1, 0)

    def array(a):
        return np.stack([a.x, a.y], -1)

    A, p, g, C = matrix(answer.A), array(answer.p), array(passed.g), matrix(passed.H) @ W
    for i in range(n - 1):  # p_i = (L^T A_(i+1) C + L^T b^w_(i+1) g^T - L^T A)^T
        printed = L[i] @ A[i + 1] @ C[i] + (L[i] @ p[i + 1]) * g[i] - L[i] @ A[i]
        np.testing.assert_allclose(printed, p[i], atol=1e-11)
    assert np.abs(p).max() > 0.1
