"""Contradictions that are dropped: what is left can be, what can be stays, and what is meant so stays, too."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.contact.cone.consistent import MOST, remove_contradictions
from carom.contact.cone.solve import solve_cone
from carom.engine.algebra.vec3 import Vec3
from carom.engine.native.surface import native_jit
from carom.engine.results import OK, SOLVER_UNFINISHED
from carom.scenes.library.registry import library_scene
from carom.tests.contact.test_cone import G, H, arrays, problem
from carom.tests.oracles import cone_oracle as oracle

ROOM, SEEDS = 13, range(12)


@native_jit
def standing(asked, sticks):
    return solve_cone(*asked, sticks=sticks)


@native_jit
def dropped(W, free, sticks, count, scale):
    return remove_contradictions(W, free, sticks, count, scale)


def lying(
    seed: int, contacts: int = 8, dofs: int = 9
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.random.Generator]:
    """J (3, C, dofs), more rows than degrees of freedom; W as the solver has it; and a velocity that can be (3, C)."""
    rng = np.random.default_rng(seed)
    J = np.zeros((3, ROOM, dofs))
    J[:, :contacts] = rng.normal(size=(3, contacts, dofs))
    W = np.einsum("kcm,ldm->ckld", J, J).reshape(3 * ROOM, 3 * ROOM)
    return J, W, J @ rng.normal(size=dofs), rng


def asked(W, free, sticks, contacts=8, scale=1.0):
    given = jnp.asarray(W), Vec3(*map(jnp.asarray, free)), jnp.asarray(sticks)
    return np.array(dropped(*given, jnp.int32(contacts), jnp.full(ROOM, scale)).xyz)


def not_possible(J, free, rows):
    """How far (3, C) the rows are from what any motion makes them."""
    A = J[rows]
    return np.abs(free[rows] - A @ np.linalg.lstsq(A, free[rows], rcond=1e-9)[0]).max()


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_left_can_be(seed):
    J, W, free, rng = lying(seed)
    sticks = rng.random(ROOM) < 0.7
    free[:, :8] += 1e-5 * rng.normal(size=(3, 8))
    rows = np.zeros((3, ROOM), bool)
    rows[2, :8], rows[:2, :8] = True, sticks[:8]
    assert not_possible(J, free, rows) > 1e-7
    new = asked(W, free, sticks)
    assert not_possible(J, new, rows) < 1e-10
    np.testing.assert_array_equal(new[~rows], free[~rows])
    # no more than there was to drop: rows that do not depend on those before them stay
    assert (new != free).sum() == rows.sum() - np.linalg.matrix_rank(J[rows])


@pytest.mark.parametrize("seed", SEEDS)
def test_what_can_be_stays(seed):
    _, W, free, _ = lying(seed)
    np.testing.assert_allclose(asked(W, free, np.ones(ROOM, bool)), free, rtol=0, atol=1e-10)
    _, W, free, rng = lying(seed, contacts=3)
    free[:, :3] += rng.normal(size=(3, 3))
    np.testing.assert_array_equal(asked(W, free, np.ones(ROOM, bool), 3), free)


def test_what_is_far_off_is_meant_so():
    """As where a body lies on two belts that part."""
    _, W, free, _ = lying(0)
    free[0, 7] += 3 * MOST
    np.testing.assert_allclose(asked(W, free, np.ones(ROOM, bool)), free, rtol=0, atol=1e-10)


@pytest.mark.parametrize("boxes", [1, 3, 5])
def test_boxes_whose_corners_are_told_to_part_stand(boxes):
    """Four corners each, few of them and many: the surfaces under them creep apart by micrometres a second."""
    V = np.zeros((boxes, 6))
    V[:, 5] = -G * H
    rows, V, target, mu, active = problem(oracle.stack(boxes, 0.5, 0.5, V))
    rng = np.random.default_rng(boxes)
    x, y = 1e-6 * rng.normal(size=(2, len(mu)))
    creep = Vec3(x, y, np.zeros(len(mu)))
    asked = arrays((rows._replace(drift=creep), V, target, mu, active))
    solved = standing(asked, jnp.ones(len(mu), bool))
    assert int(solved.code) == OK
    np.testing.assert_allclose(solved.V, 0, atol=2e-5)
    loads = np.asarray(solved.p.z).reshape(boxes, 4)
    np.testing.assert_allclose(loads.sum(1), G * H * np.arange(boxes, 0, -1), rtol=1e-5)
    # friction does not fight itself
    assert np.hypot(solved.p.x, solved.p.y).max() < 1e-3 * loads.max()


def test_figures_that_come_to_rest_are_solved():
    """Guesses of what sticks are wrong where redundant contacts creep: a search that fails is tried again otherwise."""
    model, state = carom.compile_scene(library_scene("ragdoll"))
    lanes, rng = 32, np.random.default_rng(5)
    v = np.asarray(state.v) + rng.normal(size=(lanes, len(state.v)))
    states = replace(carom.tile(state, lanes), v=jnp.asarray(v))
    end = carom.rollout(model, states, duration=5.0, frame_dt=0.5, throw=False, max_events=0)
    assert (np.asarray(end.code) >= SOLVER_UNFINISHED).sum() <= 1
