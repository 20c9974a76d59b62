"""The library: every scene compiles, and says what its description promises."""

import math

import numpy as np
import pytest

from carom.collision.poses import rotation_matrix
from carom.scenes.compile import compile_scene
from carom.scenes.library.registry import SCENES, library_scene


@pytest.mark.parametrize("name", SCENES)
def test_every_scene_compiles_and_is_the_same_each_time(name):
    scene = library_scene(name)
    assert scene == library_scene(name)
    model, state = compile_scene(scene)
    assert model.topology.nv == state.v.shape[0] > 0
    assert all(np.isfinite(x).all() for x in (state.q, state.v, model.inertia))


@pytest.mark.parametrize(
    ("name", "parameters", "links", "nv"),
    [
        ("pendulum", {}, 1, 1),
        ("double_pendulum", {}, 2, 2),
        ("chain", {"n": 4}, 4, 4),
        ("chain", {"n": 10, "free": True}, 10, 15),
        ("arm7", {}, 7, 7),
        ("humanoid", {}, 15, 30),
        ("free_bodies", {"n": 50}, 50, 300),
        ("stack", {"n": 3}, 3, 18),
    ],
)
def test_sizes(name, parameters, links, nv):
    model, _ = compile_scene(library_scene(name, **parameters))
    assert (model.topology.n_links, model.topology.nv) == (links, nv)


def test_humanoid_has_one_free_root_and_branches():
    model, _ = compile_scene(library_scene("humanoid"))
    assert model.topology.joints.count("floating") == 1
    assert set(model.topology.joints) == {"floating", "spherical", "revolute"}
    assert model.topology.parents.count(0) == 3
    assert float(model.mass.sum()) == pytest.approx(75.2)


@pytest.mark.parametrize(("fast", "rate"), [(False, 2.10788155784), (True, 67.1741507449)])
def test_heavy_top_starts_at_the_rate_of_steady_precession(fast, rate):
    _, state = compile_scene(library_scene("heavy_top", fast=fast))
    R = rotation_matrix(np.asarray(state.q))
    w = R @ np.asarray(state.v)
    axis = R[:, 2]
    assert axis[2] == pytest.approx(math.cos(math.radians(30)))
    assert R.T[2] @ w == pytest.approx(150.0)
    # the axis goes round the vertical: its velocity is that of a turn about z
    np.testing.assert_allclose(np.cross(w, axis), rate * np.cross((0, 0, 1), axis), rtol=1e-10)


def test_a_misspelt_name_gets_a_suggestion():
    with pytest.raises(ValueError, match="no scene named 'pendulm': did you mean 'pendulum'"):
        library_scene("pendulm")
