"""Motors, springs, damping and friction in time, each against its closed form: one rollout, one lane a law."""

import jax.numpy as jnp
import numpy as np
import pytest

import carom

M, X0, V0 = 2.0, 0.3, -1.0  # kg, m, m/s
TOLERANCE = 1e-8  # rk4 at 1/240 s, eigenvalues up to 10 /s

LANES = {
    "spring": {"stiffness": 20.0, "damping": 0.8, "rest": 0.1},
    "overdamped": {"stiffness": 5.0, "damping": 20.0},
    "position_motor": {"motor_gain": 30.0, "motor_kp": 30.0, "motor_kd": 2.0, "motor_target": 0.7},
    "weak_motor": {"motor_gain": 30.0, "motor_kp": 30.0, "motor_effort": 1.0, "motor_target": 5.0},
    "velocity_motor": {"motor_gain": 3.0, "motor_kd": 3.0, "motor_target": 1.5},
    "torque_motor": {"motor_target": 4.0},
    "armature": {"motor_target": 4.0, "armature": 3.0},
    "damping": {"damping": 1.2},
    "loss": {"loss": 0.6},
    "free": {},
}


@pytest.fixture(scope="module")
def run() -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """t, x, v of each lane."""
    b = carom.SceneBuilder()
    b.add_link("slider", joint=carom.Prismatic((1, 0, 0)), mass=M, inertia=(1, 1, 1), q0=X0, v0=V0)
    model, state = carom.compile_scene(b)
    names = {name for changes in LANES.values() for name in changes}
    model = model.replace(
        **{
            name: jnp.array([[changes.get(name, float(getattr(model, name)[0]))] for changes in LANES.values()])
            for name in names
        }
    )
    result = carom.rollout(model, state, duration=5.0, frame_dt=0.1)
    t, x, v = (np.asarray(a) for a in (result.t, result.q[..., 0], result.v[..., 0]))
    return {name: (t[i], x[i], v[i]) for i, name in enumerate(LANES)}


def oscillator(t: np.ndarray, m: float, d: float, k: float, middle: float) -> tuple[np.ndarray, np.ndarray]:
    """x and v of m x'' = k (middle - x) - d x' from X0, V0, by the two (perhaps complex) rates of decay."""
    r1, r2 = np.roots([m, d, k])
    a = (V0 - r2 * (X0 - middle)) / (r1 - r2)
    b = X0 - middle - a
    e1, e2 = np.exp(r1 * t), np.exp(r2 * t)
    return (middle + a * e1 + b * e2).real, (a * r1 * e1 + b * r2 * e2).real


def check(found: tuple, x: np.ndarray, v: np.ndarray) -> None:
    np.testing.assert_allclose(found[1], x, rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(found[2], v, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize(
    ("lane", "d", "k", "middle"),
    [("spring", 0.8, 20.0, 0.1), ("overdamped", 20.0, 5.0, 0.0), ("position_motor", 2.0, 30.0, 0.7)],
)
def test_oscillators(run, lane: str, d: float, k: float, middle: float) -> None:
    check(run[lane], *oscillator(run[lane][0], M, d, k, middle))


@pytest.mark.parametrize(("lane", "inertia"), [("torque_motor", M), ("armature", M + 3.0)])
def test_constant_push(run, lane: str, inertia: float) -> None:
    """A torque motor's 4 N; a rotor's inertia counts as mass."""
    t, a = run[lane][0], 4.0 / inertia
    check(run[lane], X0 + V0 * t + a * t**2 / 2, V0 + a * t)


@pytest.mark.parametrize(("lane", "d", "wanted"), [("damping", 1.2, 0.0), ("velocity_motor", 3.0, 1.5)])
def test_decay(run, lane: str, d: float, wanted: float) -> None:
    """m v' = d (wanted - v): damping alone, and a velocity motor with kd = d."""
    t = run[lane][0]
    fading = np.exp(-d * t / M)
    x = X0 + wanted * t + (V0 - wanted) * M / d * (1 - fading)
    check(run[lane], x, wanted + (V0 - wanted) * fading)


def test_effort_is_limited(run) -> None:
    """kp (target - x) asks for more than 1 N as long as x < 5 - 1/30: constant acceleration."""
    t, x, v = run["weak_motor"]
    assert x.max() < 5 - 1 / 30
    check((t, x, v), X0 + V0 * t + t**2 / (2 * M), V0 + t / M)


def test_no_force(run) -> None:
    t = run["free"][0]
    check(run["free"], X0 + V0 * t, np.full_like(t, V0))


def test_coulomb_loss_stops(run) -> None:
    """m v' = -L sign(v) until m |V0| / L = 10/3 s, and rest from then on."""
    t, x, v = run["loss"]
    slides = np.minimum(t, M * abs(V0) / 0.6)
    check((t, x, v), X0 + V0 * slides + 0.6 / M * slides**2 / 2, V0 + 0.6 / M * slides)
    assert not v[t > slides].any()
    assert len(set(x[t > slides])) == 1
