"""What resting contacts ask a step for."""

import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.contact.cone.solve import SEVERAL
from carom.contact.resting.targets import CLOSING, STEP, gap_to_close, target_velocity


@pytest.fixture(scope="module")
def model():
    b = carom.SceneBuilder()
    b.add_plane()
    b.add_body("ball", [carom.Sphere(1.0)], mass=1.0, position=(0, 0, 1.0))
    return carom.compile_scene(b.build())[0]


def test_few_close_their_gaps_and_many_what_is_beyond_the_band(model):
    band = float(model.gap_band)
    gap = jnp.asarray([0.5, -0.5, 1.0, 3.0, -3.0] + [0.0] * SEVERAL) * band
    many = jnp.ones(len(gap), bool)
    few = many.at[5:].set(False)
    np.testing.assert_array_equal(gap_to_close(model, gap, few), gap)
    np.testing.assert_allclose(gap_to_close(model, gap, many)[:5], jnp.asarray([0, 0, 0, 2, -2]) * band, rtol=1e-12)


def test_what_is_deep_comes_out_slowly_and_what_hovers_may_come_down(model):
    gap = jnp.asarray([-1e-9, 1e-9, -1.0])
    aim = target_velocity(model, gap, 1e-3)
    np.testing.assert_allclose(aim[:2], [CLOSING * 1e-9 / STEP, -CLOSING * 1e-9 / STEP], rtol=1e-12)
    assert aim[2] == model.rest_speed / 2
