"""A corner that comes in and goes out again within one step."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
from scipy.spatial.transform import Rotation

import carom
from carom import Box, SceneBuilder

LANES = 1000


def test_a_corner_that_dips_in_and_out_within_a_step_strikes() -> None:
    """Boxes that fly past each other and graze, turning by up to half a radian in a step: none is found inside another
    on its way out."""
    b = SceneBuilder(gravity=(0, 0, 0))
    for name in "ab":
        b.add_body(name, [Box((0.2, 0.2, 0.2))], mass=1.0, position=(0, 0, "ab".index(name)))
    model, state = carom.compile_scene(b.build())
    rng = np.random.default_rng(0)
    q, v = np.zeros((LANES, 2, 7)), np.zeros((LANES, 2, 2, 3))
    q[:, 1, 0], q[:, 1, 2] = 0.6, rng.uniform(0.4, 0.7, LANES)
    q[:, :, 3:] = Rotation.random(2 * LANES, rng=rng).as_quat(scalar_first=True).reshape(LANES, 2, 4)
    v[:, :, 0] = rng.normal(size=(LANES, 2, 3)) * 60
    v[:, 1, 1, 0] = rng.uniform(-40, -10, LANES)
    states = replace(carom.tile(state, LANES), q=jnp.asarray(q.reshape(LANES, -1)), v=jnp.asarray(v.reshape(LANES, -1)))
    run = carom.rollout(model, states, duration=0.05)
    struck = np.asarray(run.stats.impacts) > 0
    assert LANES / 10 < struck.sum() < LANES
    assert np.asarray(run.stats.max_penetration).max() < 1e-8
