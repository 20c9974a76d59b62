"""The rotation of free bodies in flight has no step error: against tight solutions of Euler's equations, closed forms,
and what is conserved. Balls, symmetric tops, bodies of three moments, off their principal axes and off their origin."""

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import ellipj, ellipk

import carom
from carom.integrators.motion.exact import exact
from carom.integrators.motion.flight import STAGES, WEIGHTS

SPAN = 0.2  # s
ATTITUDE = np.array([0.8, 0.6, 0, 0])
BODIES = {
    "ball": np.eye(3) * 0.1,
    "disc": np.diag([0.1, 0.1, 0.2]),
    "rod": np.diag([0.3, 0.3, 0.01]),
    "nearly a ball": np.diag([0.1, 0.1 + 1e-9, 0.1 - 1e-12]),
    "box": np.diag([0.3, 0.2, 0.1]),
    "askew": np.array([[0.3, 0.03, -0.02], [0.03, 0.2, 0.01], [-0.02, 0.01, 0.15]]),
}
RATES = (7.0, 40.0, 100.0)  # rad/s
LANES = [(name, rate) for name in BODIES for rate in RATES]
STEPS = (1 / 1000, 1 / 240, 1 / 60)  # s


def turn(q: np.ndarray) -> np.ndarray:
    """Rotation matrix, body to world, of a unit quaternion w x y z."""
    w, v = q[0], q[1:]
    return np.eye(3) + 2 * w * (cross := np.cross(np.eye(3), v)) + 2 * cross @ cross


@cache
def stone(dtype: str = "float64") -> tuple[carom.Model, carom.State]:
    b = carom.SceneBuilder(gravity=(1.0, -2.0, -9.81))
    b.add_body("stone", mass=2.0, com=(0.1, -0.2, 0.3), inertia=(1, 1, 1), quaternion=ATTITUDE)
    return carom.compile_scene(b, dtype=dtype)


def spun(inertia: np.ndarray, w: np.ndarray, dtype: str = "float64") -> tuple[carom.Model, carom.State]:
    """Lanes of stones: inertia (n, 3, 3) [kg m^2], w (n, 3) in their own axes [rad/s]."""
    model, state = stone(dtype)
    state = carom.tile(state, len(w))
    model = model.replace(inertia=jnp.asarray(inertia, dtype)[:, None])
    return model, carom.State(state.q, state.v.at[:, :3].set(jnp.asarray(w @ turn(ATTITUDE).T, dtype)), state.t)


def euler(J: np.ndarray, w: np.ndarray, span: float, moment: np.ndarray | None = None) -> np.ndarray:
    """Attitude and spin in the body's axes (7,) after a time, moment about the centre in the world's: DOP853."""

    def rate(_: float, y: np.ndarray) -> np.ndarray:
        q, w = y[:4], y[4:]
        own = 0 if moment is None else turn(q / np.linalg.norm(q)).T @ moment
        dw = np.linalg.solve(J, own - np.cross(w, J @ w))
        return np.concatenate([[-q[1:] @ w / 2], (q[0] * w + np.cross(q[1:], w)) / 2, dw])

    steps = {"rtol": 1e-13, "atol": 1e-15, "max_step": 0.3 / np.linalg.norm(w)}
    return solve_ivp(rate, (0, span), np.concatenate([ATTITUDE, w]), method="DOP853", **steps).y[:, -1]


@cache
def lanes() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inertias, spins, and where they lead."""
    w = np.array([rate * np.array([0.3, 0.9, 0.31]) for _, rate in LANES])
    J = np.array([BODIES[name] for name, _ in LANES])
    return J, w, np.array([euler(*x, SPAN) for x in zip(J, w, strict=True)])


def off(result: Any, expected: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How far attitudes, and spins over the scale, are from expected ones, by lane."""
    q, v = np.asarray(result.q[:, -1, 3:], float), np.asarray(result.v[:, -1, :3], float)
    same = np.sign((q * expected[:, :4]).sum(1))[:, None]
    own = np.array([turn(a).T @ b for a, b in zip(q, v, strict=True)])
    return np.abs(q * same - expected[:, :4]).max(1), np.abs(own - expected[:, 4:]).max(1) / scale


@pytest.mark.parametrize("h", STEPS)
@pytest.mark.parametrize(("dtype", "rounding"), [("float64", 1e-13), ("float32", 3e-5)])
def test_no_step_error(h: float, dtype: str, rounding: float) -> None:
    """At 100 rad/s and 1/60 s too. What is left is rounding, of 20 rad in up to 200 steps (and the oracle's 1e-14)."""
    J, w, expected = lanes()
    result = carom.rollout(*spun(J, w, dtype), duration=SPAN, frame_dt=SPAN, max_dt=h)
    assert result.q.dtype == dtype
    moments = np.linalg.eigvalsh(J)  # a rounding of the angular momentum turns what is thin the most
    for error in off(result, expected, np.linalg.norm(w, axis=1)):
        error = error / (moments[:, -1] / moments[:, 0])
        assert error.max() < rounding, dict(zip(LANES, error, strict=True))


def test_a_ball_keeps_its_spin_to_the_bit() -> None:
    """Nothing turns it, so nothing changes, in one step or in many; its attitude is the exponential's."""
    w = np.array([[3.0, -20.0, 31.0]])
    for h in (1 / 240, 1.0):
        model, state = spun(BODIES["ball"][None], w)
        result = carom.rollout(model, state, duration=1.0, frame_dt=1.0, max_dt=h)
        np.testing.assert_array_equal(result.v[:, -1, :3], state.v[:, :3])
        attitude, _ = off(result, euler(BODIES["ball"], w[0], 1.0)[None], np.ones(1))
        assert attitude.max() < 1e-12


def test_momentum_and_energy_stay() -> None:
    """For 10 s, at 1/60 s: 600 steps of rounding."""
    J, w, _ = lanes()
    model, state = spun(J, w)
    model = model.replace(gravity=jnp.zeros(3))
    result = carom.rollout(model, state, duration=10.0, frame_dt=1.0, max_dt=1 / 60)
    every = model.replace(inertia=model.inertia[:, None])
    states = carom.State(result.q, result.v, result.t)
    energy = np.asarray(carom.energy(every, states).total)
    assert np.abs(energy / energy[:, :1] - 1).max() < 1e-12
    q = np.asarray(result.q)
    center = q[..., :3] + np.array([[turn(x) @ np.asarray(model.com[0]) for x in lane] for lane in q[..., 3:]])
    spin = np.asarray(carom.momentum(every, states, jnp.asarray(center)).angular)
    assert (np.abs(spin - spin[:, :1]).max((1, 2)) < 1e-12 * np.linalg.norm(spin[:, 0], axis=1)).all()


def test_the_wing_nut_flips_on_time() -> None:
    """Dzhanibekov's: a spin about the middle axis, a little off, turns over again and again, as Jacobi's functions say.

    Flips are told from none by 1e-4 of the energy, and slow: of its rounding, some 1e-15, four of them make 1e-9.
    """
    J, start = np.array([0.3, 0.2, 0.1]), np.array([0.0, 7.0, 0.07])
    # Landau and Lifshitz 1976, section 37: M^2 < 2 E I2, so I1 is the greatest here
    (I1, I2, I3), E2, M2 = J, J @ start**2, (J * start) @ (J * start)
    rate = np.sqrt((I3 - I2) * (M2 - E2 * I1) / (I1 * I2 * I3))
    m = (I2 - I1) * (E2 * I3 - M2) / ((I3 - I2) * (M2 - E2 * I1))
    quarter = ellipk(m) / rate
    span = 8 * quarter
    model, state = spun(np.diag(J)[None], start[None])
    result = carom.rollout(model, state, duration=float(span), frame_dt=float(span / 64), max_dt=1 / 60)
    t, q, v = (np.asarray(x)[0] for x in (result.t, result.q, result.v))
    own = np.array([turn(a[3:]).T @ b[:3] for a, b in zip(q, v, strict=True)])
    largest = np.sqrt((E2 * I3 - M2) / (I2 * (I3 - I2)))
    sn, *_ = ellipj(rate * t + ellipk(m), m)  # it starts where the second component is largest
    np.testing.assert_allclose(own[:, 1], largest * sn, rtol=0, atol=5e-9)
    flips = np.diff(np.sign(own[:, 1])) != 0
    assert flips.sum() == 4


def test_a_constant_moment_too() -> None:
    """A moment about the centre, constant in the world: of order 8, 1e-10 at 1/60 s and 1e-13 at 1/1000 s."""
    J, w = np.array([BODIES["ball"], BODIES["askew"]]), np.array([[3.0, 9.0, 2.0], [2.0, -7.0, 4.0]])
    moment, push = np.array([0.5, -1.0, 2.0]), np.array([3.0, 1.0, -2.0])
    expected = np.array([euler(*x, SPAN, moment) for x in zip(J, w, strict=True)])
    model, state = spun(J, w)

    @jax.jit
    def run(n: int) -> carom.State:
        def step(_: int, s: carom.State) -> carom.State:
            # impulses are given about the origin, for the step
            arm = carom.fk(model, s.q).rotation[:, 0] @ model.com[0]
            p = jnp.concatenate([moment + jnp.cross(arm, push), jnp.broadcast_to(push, arm.shape)], -1)
            return exact(model, s, SPAN / n, None, p * (SPAN / n))

        return jax.lax.fori_loop(0, n, step, state)

    for n, most in ((12, 1e-10), (200, 1e-13)):
        end = run(n)
        frames = carom.State(end.q[:, None], end.v[:, None], end.t)
        attitude, spin = off(frames, expected, np.linalg.norm(w, axis=1))
        assert max(attitude.max(), spin.max()) < most
        arm = np.array([turn(a) @ np.asarray(model.com[0]) for a in np.asarray(end.q)[:, 3:]])
        u = np.asarray(end.v[:, 3:]) + np.cross(end.v[:, :3], arm)
        start = np.cross(state.v[:, :3], turn(ATTITUDE) @ np.asarray(model.com[0]))
        np.testing.assert_allclose(u, start + (np.asarray(model.gravity) + push / 2) * SPAN, rtol=0, atol=1e-12)


def test_what_is_damped_does_not_spoil_the_rest() -> None:
    """Of two stones one has a damper: it makes Runge-Kutta steps, the other flies."""
    b = carom.SceneBuilder()
    how: dict[str, Any] = {"mass": 2.0, "com": (0.1, -0.2, 0.3), "inertia": (0.3, 0.2, 0.1), "q0": (0, 0, 0, *ATTITUDE)}
    w = np.array([2.0, -7.0, 4.0])
    start = (*turn(ATTITUDE) @ w, 0, 0, 0)
    b.add_link("free", joint=carom.Floating(), v0=start, **how)
    b.add_link("damped", joint=carom.Floating(damping=0.1), v0=start, **how)
    model, state = carom.compile_scene(b)
    ends = [carom.rollout(model, state, duration=SPAN, frame_dt=SPAN, max_dt=1 / n, scheme=s)
            for n, s in ((60, "exact"), (240, "exact"), (1000, "rk4"))]  # fmt: skip
    for end in ends[:2]:
        one = carom.State(end.q[None, :, :7], end.v[None, :, :6], end.t)
        attitude, spin = off(one, euler(np.diag([0.3, 0.2, 0.1]), w, SPAN)[None], np.array([np.linalg.norm(w)]))
        assert max(attitude.max(), spin.max()) < 1e-13
    np.testing.assert_allclose(ends[1].q[-1, 7:], ends[2].q[-1, 7:], rtol=0, atol=1e-7)


def test_the_same_bits_alone_and_in_a_batch() -> None:
    J, w, _ = lanes()
    model, state = spun(J, w)
    every = carom.rollout(model, state, duration=SPAN, frame_dt=SPAN, max_dt=1 / 240)
    for lane in (0, 4, len(w) - 1):
        own = model.replace(inertia=model.inertia[lane])
        alone = carom.rollout(
            own, jax.tree.map(lambda x, k=lane: x[k], state), duration=SPAN, frame_dt=SPAN, max_dt=1 / 240
        )
        np.testing.assert_array_equal(alone.q, every.q[lane])
        np.testing.assert_array_equal(alone.v, every.v[lane])


# -- derivatives -----------------------------------------------------------------------------------

ROWS, COLUMNS = np.array([0, 1, 2, 0, 0, 1]), np.array([0, 1, 2, 1, 2, 2])


@jax.jit
def end(x: jax.Array) -> jax.Array:
    """q and v after 0.1 s by six numbers of the inertia and the spin."""
    model, state = stone()
    own = jnp.zeros((3, 3)).at[ROWS, COLUMNS].set(x[:6]).at[COLUMNS, ROWS].set(x[:6])
    start = carom.State(state.q, state.v.at[:3].set(x[6:]), state.t)
    after = exact(model.replace(inertia=own[None]), start, 0.1)
    return jnp.concatenate([after.q, after.v])


along = jax.jit(lambda x, d: jax.jvp(end, (x,), (d,))[1])
backwards = jax.jit(jax.grad(lambda x: jnp.arange(13.0) @ end(x)))


def slopes(x: jax.Array) -> np.ndarray:
    return np.stack([along(x, d) for d in jnp.eye(len(x))], -1)


def given(name: str) -> jax.Array:
    stone()  # not inside jit
    return jnp.asarray([*BODIES[name][ROWS, COLUMNS], *turn(ATTITUDE) @ [2.0, -7.0, 4.0]])


@pytest.mark.parametrize("name", ["ball", "rod", "box"])
def test_derivatives_know_no_cases(name: str) -> None:
    """By moments that are equal or not, products of inertia, and the spin: differences of order 4."""
    x = given(name)
    d = 1e-3 * float(x[:3].min())
    ends = [(8 * (end(x + e) - end(x - e)) - (end(x + 2 * e) - end(x - 2 * e))) / (12 * d) for e in jnp.eye(9) * d]
    expected = np.stack(ends, -1)
    np.testing.assert_allclose(slopes(x), expected, rtol=0, atol=1e-7 * np.abs(expected).max())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ball", "box"])
def test_reverse_is_forward(name: str) -> None:
    x = given(name)
    np.testing.assert_allclose(backwards(x), np.arange(13.0) @ slopes(x), rtol=1e-9, atol=1e-9)


def test_cooper_and_verner_satisfy_the_quadratures() -> None:
    """Sums of rows are nodes; weights integrate up to degree 7."""
    c = np.array([sum(row) for row in STAGES])
    np.testing.assert_allclose([np.dot(WEIGHTS, c**k) for k in range(8)], 1 / np.arange(1, 9), rtol=1e-14)
