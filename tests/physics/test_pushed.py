"""What pushes against the side of a body bears none of its weight, though friction there could."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import carom

WEIGHT, MU = 0.3 * 9.81, 0.5


def pushed(pushes, dtype):
    """A box on the floor, pushed at half its height by a ball on a guide: the run, a lane for each force [N]."""
    b = carom.SceneBuilder()
    b.add_plane(friction=MU)
    guide = carom.Prismatic((1, 0, 0), motor=carom.Motor("torque"))
    b.add_link("tip", joint=guide, position=(0, 0, 0.05), mass=1.0, com=(0, 0, 0), inertia=(1e-3,) * 3,
               shapes=[carom.Sphere(0.01)], friction=MU)  # fmt: skip
    b.add_body("box", [carom.Box((0.05, 0.05, 0.05))], mass=WEIGHT / 9.81, position=(0.06, 0, 0.05), friction=MU)
    model, state = carom.compile_scene(b, dtype=dtype)
    control = jnp.zeros((len(pushes), model.topology.nv)).at[:, 0].set(jnp.array(pushes))
    return carom.rollout(
        model, carom.tile(state, len(pushes)), duration=0.3, frame_dt=0.05, control=control, report="pair_forces"
    )


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_pushed_box_starts_where_coulomb_says(dtype):
    """It started below 0.9 of mu m g, since the tip held a fifth of its weight."""
    parts = (0.5, 0.9, 0.99, 1.02)
    run = pushed([part * MU * WEIGHT for part in parts], dtype)
    moved = np.asarray(run.q)[:, -1, 1] - 0.06
    assert (np.abs(moved[:3]) < 1e-6).all()
    assert moved[3] > 1e-4
    # of the tip on the floor, on the box; of the box on the floor
    on_box = np.asarray(run.report["pair_forces"])[:, 1:]
    assert (np.abs(on_box[:3, :, 1, 2] + WEIGHT) < 0.01 * WEIGHT).all()
    assert (np.abs(on_box[:3, :, 2, 2]) < 0.01 * WEIGHT).all()


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_pushed_box_slides_as_coulomb_says(dtype):
    """The tip took a fifth of the weight of a box that slid, with the impulses of a guess that it sticks."""
    pushes = np.array([1.6, 3.0, 5.0])
    run = pushed(pushes, dtype)
    exact = (pushes - MU * WEIGHT) / (1 + WEIGHT / 9.81) * 0.3**2 / 2
    np.testing.assert_allclose(np.asarray(run.q)[:, -1, 1] - 0.06, exact, rtol=0.02)
    assert (np.abs(np.asarray(run.report["pair_forces"])[:, 1:, 2, 2]) < 0.01 * WEIGHT).all()
