"""Loops close at the start of a scene: where, and what is said if they cannot."""

import numpy as np
import pytest

import carom
from carom import Revolute
from carom.scenes.compile import compile_scene
from carom.scenes.compiling.check import SceneError


def slider_crank(turn, back, x, limits=None):
    """A crank of 0.1 m, a rod of 0.3 m and a slider, at these coordinates."""
    b, axis = carom.SceneBuilder(gravity=(0, 0, 0)), (0, -1, 0)
    inertia = {"mass": 1.0, "com": (0, 0, 0), "inertia": (0.01, 0.01, 0.01)}
    b.add_link("crank", joint=Revolute(axis, limits=limits), q0=turn, **inertia)
    b.add_link("rod", "crank", joint=Revolute(axis), position=(0.1, 0, 0), q0=back, **inertia)
    b.add_link("slider", joint=carom.Prismatic((1, 0, 0)), q0=x, **inertia)
    b.add_loop("rod", (0.3, 0, 0), "slider", (0, 0, 0), joint=Revolute(axis), name="pin")
    return b


@pytest.mark.parametrize("start", [(0.3, -0.4, 0.39), (1.5, 0, 0.3), (0, 0, 0.6), (-1.5, -2, 0.1), (2, 2, 0.3)])
def test_loops_close_where_they_are_not_a_turn_away(start):
    """Newton's method alone leaps by whole turns from a start that is nearly singular."""
    state = compile_scene(slider_crank(*start), dtype="float64")[1]
    turn, back, x = np.asarray(state.q)
    angle = turn + back
    np.testing.assert_allclose(0.1 * np.exp(1j * turn) + 0.3 * np.exp(1j * angle), x, atol=1e-11)
    assert np.abs(state.q - np.array(start)).max() < np.pi


def test_loops_close_within_limits():
    compile_scene(slider_crank(1.15, -1.4, 0.33, limits=(0, 1.3)))
    with pytest.raises(SceneError, match=r'link "crank": q0 is 1\.15; the loops close at 1\.2.*limits \(0, 1\.16\)'):
        compile_scene(slider_crank(1.15, -1.4, 0.31, limits=(0, 1.16)))


def test_the_loop_that_cannot_close_is_named_with_its_gap():
    b = slider_crank(0.3, -0.4, 0.39)
    b.add_link("arm", joint=Revolute((0, -1, 0)), mass=1.0, inertia=(0.01, 0.01, 0.01), com=(0, 0, 0))
    b.add_loop("arm", (1.0, 0, 0), "slider", (0.2, 0, 0), joint=Revolute((0, -1, 0)), name="strut")
    with pytest.raises(SceneError, match=r'loop "strut": .* it is 0\.41 m or rad off, and moving the joints leaves'):
        compile_scene(b)
