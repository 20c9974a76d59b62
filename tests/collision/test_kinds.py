"""A new kind of shape is in every table of kinds."""

from __future__ import annotations

import pytest

from carom.collision import bounds, mass, narrow
from carom.collision.geometry import growth, solid
from carom.collision.host import radii
from carom.collision.pairs import heightfield
from carom.collision.queries import spans
from carom.collision.shapes import Shape
from carom.contact import features
from carom.scenes.cli import worlds
from carom.scenes.compiling import geometry
from carom.scenes.live import asking
from carom.scenes.show import meshes
from carom.tests.collision import test_bounds, test_fcl_backend, test_mass, test_queries
from carom.tests.oracles import pair_scene, placements
from carom.tests.scenes import test_drawing, test_overlaps

KINDS = {shape.kind for shape in Shape.__subclasses__()}
ENDLESS, OF_POINTS = {"plane", "heightfield"}, {"hull", "mesh"}
CONVEX = KINDS - ENDLESS - {"mesh"}
OF_SIZE = CONVEX - OF_POINTS  # and symmetric about their origins: whatever is not needs more than a row in the tables

TABLES = {
    "narrow.KINDS": (narrow.KINDS, KINDS),
    "growth.GROWTH": (growth.GROWTH, OF_SIZE),
    "solid.SUPPORT": (solid.SUPPORT, CONVEX),
    "solid.ONTO": (solid.ONTO, CONVEX),
    "heightfield.COLUMN": (heightfield.COLUMN, CONVEX),
    "bounds._REACHES": (bounds._REACHES, OF_SIZE),
    "bounds._EXTENTS": (bounds._EXTENTS, OF_SIZE),
    "radii.OF_SIZE": (radii.OF_SIZE, OF_SIZE),
    "mass._SOLIDS": (mass._SOLIDS, CONVEX | {"mesh"}),
    "spans.SPANS": (spans.SPANS, CONVEX | {"plane"}),
    "features.STAGES": (features.STAGES, KINDS),
    "GEOMETRY": (geometry.GEOMETRY, KINDS - {"mesh"}),
    "meshes._MESHES": (meshes._MESHES, KINDS - {"plane"}),
    "worlds.SIZES": (worlds.SIZES, OF_SIZE),
    "asking._SOLIDS": (asking._SOLIDS, OF_SIZE),
    "placements.SHAPES": (placements.SHAPES, KINDS - {"mesh"}),
    "pair_scene._SHAPES": (pair_scene._SHAPES, OF_SIZE | {"heightfield"}),
    "test_bounds.SOLID": (test_bounds.SOLID, CONVEX),
    "test_fcl_backend.SHAPES": (test_fcl_backend.SHAPES, CONVEX),
    "test_mass._GEOM": (test_mass._GEOM, OF_SIZE),
    "test_queries.KINDS": (test_queries.KINDS, KINDS - {"mesh"}),
    "test_drawing.SOLIDS": (test_drawing.SOLIDS, CONVEX | {"mesh"}),
    "test_overlaps.SHAPES": (test_overlaps.SHAPES, CONVEX),
}


@pytest.mark.parametrize("name", TABLES)
def test_every_kind_is_in_every_table(name):
    table, kinds = TABLES[name]
    assert set(table) == kinds


def test_all_pairs_have_a_kernel_in_the_order_of_kinds():
    kinds = [kind for kind in narrow.KINDS if kind != "mesh"]
    pairs = {(a, b) for i, a in enumerate(kinds) for b in kinds[i:]} - {(a, b) for a in ENDLESS for b in ENDLESS}
    assert set(narrow.KERNELS) >= pairs
