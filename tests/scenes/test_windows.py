"""How many cells of a heightfield are looked at: numbers of small cases, and what they are for."""

import jax.numpy as jnp
import numpy as np
import pytest

from carom.collision.pairs.heightfield import _first_cell
from carom.collision.shapes import Box, Capsule, ConvexHull, Cylinder, Ellipsoid, Heightfield, Sphere
from carom.scenes.builder import SceneBuilder
from carom.scenes.compile import compile_scene
from carom.tests.oracles.random_trees import unit

CELL = (0.5, 0.4)
ROUNDING = 1e-12  # of places up to 30 m


def window(*shapes, grid=(21, 16), cell=CELL, excluded=()):
    """The window of a heightfield under one body a shape, some of which it may not touch."""
    b = SceneBuilder()
    b.add_static("ground", [Heightfield(np.zeros(grid), cell)])
    for k, shape in enumerate(shapes):
        b.add_body(f"body {k}", [shape])
    for k in excluded:
        b.exclude("ground", f"body {k}")
    topology = compile_scene(b)[0].topology
    assert set(topology.shape_window[1:]) <= {(0, 0)}  # of heightfields only
    return topology.shape_window[0]


@pytest.mark.parametrize(
    ("shape", "width"),
    [
        (Sphere(0.34), 0.68),
        (Box((0.3, 0.4, 1.2)), 2.6),
        (Capsule(0.2, 0.35), 1.1),
        (Cylinder(0.3, 0.4), 1.0),
        (Ellipsoid((0.1, 0.7, 0.2)), 1.4),
        (ConvexHull([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]), 3**0.5),
    ],
    ids=lambda x: getattr(x, "kind", ""),
)
def test_it_is_two_cells_wider_than_the_body_however_it_is_turned(shape, width):
    want = tuple(int(np.ceil(width / d - 1e-9)) + 2 for d in CELL)
    assert window(shape) == want


def test_the_widest_body_counts():
    assert window(Sphere(0.1), Sphere(0.95), Box((0.1, 0.1, 0.1))) == window(Sphere(0.95)) == (6, 7)


def test_only_bodies_that_may_touch_count():
    assert window(Sphere(0.1), Sphere(0.95), excluded=[1]) == window(Sphere(0.1)) == (3, 3)
    assert window(Sphere(0.95), excluded=[0]) == (2, 2)


def test_there_are_no_more_cells_than_the_grid_has():
    assert window(Sphere(0.95), grid=(4, 16)) == (3, 7)
    assert window(Sphere(5.0), grid=(2, 3)) == (1, 2)


def test_two_heightfields_have_windows_of_their_own():
    b = SceneBuilder()
    b.add_static("fine", [Heightfield(np.zeros((30, 30)), 0.1)])
    b.add_static("coarse", [Heightfield(np.zeros((30, 30)), 1.0)])
    b.add_body("ball", [Sphere(0.33)])
    assert compile_scene(b)[0].topology.shape_window == ((9, 9), (3, 3), (0, 0))


@pytest.mark.parametrize("d", CELL)
def test_half_a_cell_beyond_the_body_is_in_it_wherever_it_stands(d):
    rng, grid = np.random.default_rng(20261123), 101
    half = rng.uniform(0.05, 1.0, 3)
    corners = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * half
    cells = window(Box(half), grid=(grid, grid), cell=d)[0]
    across = unit(rng.normal(size=(1000, 3)))  # to the grid's lines, seen by the body
    reach = (across @ corners.T).max(1)
    middle = rng.uniform(-0.4, 0.4, 1000) * grid * d
    first = (np.asarray(_first_cell(jnp.asarray(middle), d, grid, cells)) - (grid - 1) / 2) * d
    assert (first <= middle - reach - d / 2 + ROUNDING).all()
    assert (first + cells * d >= middle + reach + d / 2 - ROUNDING).all()
