"""Free flight with exact answers: a tumbling body (references.md, Free axisymmetric body); arcs no step bends."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.scenes.library.registry import library_scene

# -- Kane's axisymmetric body: I = 0.04, J = 0.02 kg m^2 -------------------------------------------


@pytest.fixture(scope="module")
def tumbling():
    model, state = carom.compile_scene(library_scene("tumbling_body"))
    return model, carom.rollout(model, state, duration=1.0, frame_dt=0.125, max_dt=1 / 60)


def turn(q: np.ndarray) -> np.ndarray:
    """Rotation matrix, body to world, of a unit quaternion w x y z."""
    w, x, y, z = q
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def test_printed_attitude_and_spin(tumbling) -> None:
    _, result = tumbling
    quaternion, w = np.asarray(result.q)[-1, 3:], np.asarray(result.v)[-1, :3]
    printed = np.array([-0.3049363885, 0.3330180984, -0.1379999984, -0.8815150285])
    # the sign of a quaternion has no meaning; half a unit of the printed digits is 5e-11
    np.testing.assert_allclose(quaternion * np.sign(quaternion @ printed), printed, rtol=0, atol=1e-10)
    np.testing.assert_allclose(turn(quaternion).T @ w, [-1.4155049610, -4.2422100025, 6], rtol=0, atol=1e-9)


def test_attitude_at_all_times(tumbling) -> None:
    """The closed form: the spin precesses in the body with s = 3 rad/s, the body about its momentum with p."""
    _, result = tumbling
    I, J, (wx, wy, wz) = 0.04, 0.02, (2.0, 4.0, 6.0)
    for t, q, v in zip(*(np.asarray(x) for x in (result.t, result.q, result.v)), strict=True):
        s, p = (I - J) / I * wz, np.sqrt(wx**2 + wy**2 + (wz * J / I) ** 2)
        c = wz * J / (I * p)
        sp, cp, ss, cs = np.sin(p * t / 2), np.cos(p * t / 2), np.sin(s * t / 2), np.cos(s * t / 2)
        e = np.array(
            [cp * cs - c * sp * ss, sp / p * (wx * cs + wy * ss), sp / p * (wy * cs - wx * ss), c * sp * cs + cp * ss]
        )
        np.testing.assert_allclose(q[3:] * np.sign(q[3:] @ e), e, rtol=0, atol=1e-13)
        ss, cs = np.sin(s * t), np.cos(s * t)
        np.testing.assert_allclose(
            turn(q[3:]).T @ v[:3], [wx * cs + wy * ss, wy * cs - wx * ss, wz], rtol=0, atol=1e-12
        )


def test_arc_of_tumbling_body(tumbling) -> None:
    _, result = tumbling
    t = np.asarray(result.t)[:, None]
    arc = np.array([1, 2, 3]) + np.array([-4.2, 5.5, 6.1]) * t - np.array([0, 0, 9.81]) * t**2 / 2
    np.testing.assert_allclose(np.asarray(result.q)[:, :3], arc, rtol=0, atol=1e-12)


# -- a lopsided body, whose origin does not move on a parabola, under the default scheme ------------

COM = np.array([0.3, -0.2, 0.4])


@pytest.fixture(scope="module")
def lopsided():
    b = carom.SceneBuilder(gravity=(1.0, -2.0, -9.81))
    b.add_body(
        "stone",
        mass=2.0,
        com=COM,
        inertia=(0.4, 0.3, 0.2),
        position=(0.5, -1.0, 2.0),
        quaternion=(0.8, 0.6, 0, 0),
        linear_velocity=(3.0, 1.0, 4.0),
        angular_velocity=(3.0, -5.0, 7.0),
    )
    return carom.compile_scene(b)


@pytest.mark.parametrize("max_dt", [1.0, 0.1, 1 / 240])
def test_no_step_bends_the_arc(lopsided, max_dt: float) -> None:
    """The centre of mass and its velocity at t = 1 s to rounding, even in one step of 1 s."""
    model, state = lopsided
    start = np.array([0.5, -1.0, 2.0]) + turn(np.array([0.8, 0.6, 0, 0])) @ COM
    result = carom.rollout(model, state, duration=1.0, frame_dt=1.0, max_dt=max_dt)
    q, v = np.asarray(result.q)[-1], np.asarray(result.v)[-1]
    arm = turn(q[3:]) @ COM
    np.testing.assert_allclose(q[:3] + arm, start + np.array([3 + 0.5, 1 - 1, 4 - 9.81 / 2]), rtol=0, atol=1e-12)
    np.testing.assert_allclose(v[3:] + np.cross(v[:3], arm), [4, -1, 4 - 9.81], rtol=0, atol=1e-12)


def test_spin_keeps_momentum_and_energy(lopsided) -> None:
    """Angular momentum about the moving centre of mass, and the energy, stay: to rounding [relative]."""
    model, state = lopsided
    result = carom.rollout(model, state, duration=2.0, frame_dt=0.5, max_dt=1 / 60)
    states = carom.State(result.q, result.v, result.t)
    energy = np.asarray(carom.energy(model, states).total)
    assert np.abs(energy / energy[0] - 1).max() < 1e-12
    center = jnp.stack([q[:3] + turn(q[3:]) @ COM for q in np.asarray(result.q)])
    spin = np.asarray(carom.momentum(model, states, center).angular)
    assert np.abs(spin - spin[0]).max() < 1e-12 * np.linalg.norm(spin[0])
    assert jax.tree.all(jax.tree.map(lambda x: bool(jnp.isfinite(x).all()), result))
