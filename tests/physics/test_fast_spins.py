"""What spins fast on a point that runs around it: steps follow its spin, whatever max_dt is."""

import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.contact.contact_jacobian import jacobian_at
from carom.contact.curvature import contact_kinematics
from carom.contact.determine import determine
from carom.integrators.spin import SPIN, followed_step


@pytest.mark.parametrize(("dtype", "max_dt"), [("float32", 1 / 60), ("float64", 1 / 240)])
def test_a_fast_tippe_top_stays_upright(dtype, max_dt):
    """Its centre of mass is too far below the middle: by the differential equation, with friction smoothed below
    2e-5 m/s, the cosine of its tilt stays above 0.997 for six seconds, and 2 % of its energy go."""
    R, below, m, tilt, spin = 0.0227, 0.0055, 0.0247, 0.15, 183.0
    inertia = 0.4 * m * R**2 * np.array((0.9, 0.9, 0.92))
    axis = np.array((0, -np.sin(tilt), np.cos(tilt)))
    b = carom.SceneBuilder()
    b.add_plane(friction=0.27)
    b.add_body(
        "top", [carom.Sphere(R)], mass=m, com=(0, 0, -below), inertia=tuple(inertia), friction=0.27, position=(0, 0, R),
        quaternion=(np.cos(tilt / 2), np.sin(tilt / 2), 0, 0), angular_velocity=tuple(spin * axis),
    )  # fmt: skip
    model, state = carom.compile_scene(b, dtype=dtype)
    run = carom.rollout(model, state, duration=3.0, frame_dt=0.1, max_dt=max_dt)
    q = np.asarray(run.q, np.float64)
    assert (1 - 2 * (q[:, 4] ** 2 + q[:, 5] ** 2)).min() > 0.98
    energy = [float(carom.energy(model, carom.State(run.q[k], run.v[k], run.t[k])).total) for k in (0, -1)]
    assert 0.95 < energy[1] / energy[0] < 1 + 1e-6
    assert int(run.stats.impacts) == 0


LYING = (np.sqrt(0.5), np.sqrt(0.5), 0, 0)
FOLLOWED = {
    "a ball": (carom.Sphere(0.1), {}, (0, 50, 50), 0),
    "a wheel": (carom.Cylinder(0.1, 0.1), {"quaternion": LYING}, (0, 50, 0), 0),
    "a ball with its mass below": (carom.Sphere(0.1), {"com": (0, 0, -0.02)}, (0, 50, 1), 1),
    "a ball with its mass aside": (carom.Sphere(0.1), {"com": (0.02, 0, 0)}, (0, 0, 50), 1),
    "a box": (carom.Box((0.1, 0.1, 0.1)), {}, (0, 0, 50), 0),
}


@pytest.mark.parametrize("case", FOLLOWED)
def test_only_arms_that_turn_are_followed(case):
    shape, more, spin, follows = FOLLOWED[case]
    b = carom.SceneBuilder()
    b.add_plane()
    b.add_body("body", [shape], mass=1.0, position=(0, 0, 0.1), **more)
    model, state = carom.compile_scene(b, dtype="float64")
    state = carom.State(state.q, jnp.array((*spin, *np.cross(spin, (0, 0, 0.1)))), state.t)  # it rolls
    contacts = determine(model, state.q, carom.detect(model, state.q))
    rows = jacobian_at(model, state.q, contacts)
    kinematics = contact_kinematics(model, state.q, state.v, contacts, rows, 1 / 60)
    longest = float(followed_step(model, state, contacts, kinematics, jnp.array(1 / 60)).min())
    assert longest == (pytest.approx(SPIN / np.linalg.norm(spin), rel=1e-2) if follows else np.inf)
