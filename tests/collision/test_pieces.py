"""Convex pieces: exact for unions of boxes, which know what is inside; within the tolerance for curved solids."""

import time
from typing import Any

import numpy as np
import pytest
import trimesh

from carom.collision.mesh import load_mesh
from carom.collision.meshes.cutting import ClosedMesh, cut
from carom.collision.meshes.hulls import MAX_HULL_VERTICES, above
from carom.collision.meshes.pieces import MAX_PIECES, TOLERANCE, _pieces, as_pieces
from carom.collision.meshes.surfaces import MeshError, is_closed, signed_volume, solid_moments
from carom.tests.oracles.placements import random_rotation

EXACT = 1e-9  # hull volumes of sums of some dozen tetrahedra, and Qhull's own rounding


def voxels(filled):
    """Surface of the unit cubes (i, j, k) of a boolean grid: two triangles a side, vertices shared."""
    filled = np.pad(np.asarray(filled, bool), 1)
    corners, faces = {}, []
    for axis in range(3):
        for up in (0, 1):
            bare = filled & ~np.roll(filled, 1 - 2 * up, axis)
            for cube in np.argwhere(bare):
                ring = []
                for u, v in ((0, 0), (1, 0), (1, 1), (0, 1)):
                    corner = cube.copy()
                    corner[axis] += up
                    corner[(axis + 1) % 3] += u
                    corner[(axis + 2) % 3] += v
                    ring.append(corners.setdefault(tuple(corner - 1), len(corners)))
                a, b, c, d = ring if up else ring[::-1]
                faces += [(a, b, c), (a, c, d)]
    return np.array(list(corners), float), np.array(faces)


def grid(*rows):
    """A flat figure drawn in rows of text, one cube thick."""
    return np.array([[c == "#" for c in row] for row in rows])[:, :, None]


CROSS_3D = np.zeros((3, 3, 3), bool)
CROSS_3D[1, 1] = CROSS_3D[:, 1, 1] = CROSS_3D[1, :, 1] = True
HOLLOW = np.ones((3, 3, 3), bool)
HOLLOW[1, 1, 1] = False
SHELLS = np.pad(np.pad(HOLLOW, 1), 1, constant_values=True)  # one floats in the other
FIGURES = {
    "box": (grid("##", "##"), 1),
    "L": (grid("#.", "##"), 2),
    "T": (grid("###", ".#."), 2),
    "U": (grid("#.#", "###"), 3),
    "cross": (grid(".#.", "###", ".#."), 3),
    "cross in space": (CROSS_3D, 5),
    "stairs": (grid("#....", "##...", "###..", "####.", "#####"), 5),
    "S": (grid(".##", "##."), 2),
    "comb": (grid("#.#.#.#", "#.#.#.#", "#######"), 5),
    "what cuts part is joined": (grid(".##.", ".###", "####", "###."), 3),
    "three cuts": (grid("##..", "###.", "####", ".#.#"), 4),
    "frame": (grid("####", "#..#", "#..#", "####"), 4),
    "hollow cube": (HOLLOW, 6),
    "hollow cubes": (SHELLS, 12),
    "two bodies": (grid("##..#", "#...#"), 3),
    "touching at an edge": (grid("#.", ".#"), 2),
}


@pytest.fixture
def rng():
    return np.random.default_rng(11)


@pytest.mark.parametrize("turned", [False, True], ids=["straight", "turned"])
@pytest.mark.parametrize("name", FIGURES)
def test_unions_of_boxes_are_taken_apart_exactly(rng, name, turned):
    filled, count = FIGURES[name]
    vertices, faces = voxels(filled)
    R = random_rotation(rng) if turned else np.eye(3)
    convex = as_pieces(load_mesh((vertices @ R.T, faces)), tolerance=EXACT)
    volumes = [signed_volume(part) for part in convex.parts]
    assert all(map(is_closed, convex.parts))
    assert min(volumes) > 0.5
    assert sum(volumes) == pytest.approx(filled.sum(), rel=EXACT)
    assert abs(convex.excess) < EXACT
    assert convex.deviation < EXACT
    assert count <= len(convex.parts) <= count + turned  # of cuts alike rounding may choose another
    # whatever is inside is in a piece, whatever is outside in none
    points = rng.uniform(-0.5, np.array(filled.shape) + 0.5, (4000, 3))
    cell = np.floor(points).astype(int)
    off = np.abs(points - np.rint(points)).min(axis=1) > 1e-6  # not on the surface
    within = ((cell >= 0) & (cell < filled.shape)).all(axis=1)
    inside = within.copy()
    inside[within] = filled[tuple(cell[within].T)]
    assert 0.05 < inside.mean() < 0.95
    heights = np.min([above(points @ R.T, part) for part in convex.parts], axis=0)
    np.testing.assert_array_equal((heights < 0)[off], inside[off])


def test_neighbours_that_are_convex_together_become_one():
    box = trimesh.creation.box()
    two: Any = trimesh.util.concatenate([box.copy().apply_translation((x, 0, 0)) for x in (0, 1, 5)])
    convex = as_pieces(load_mesh((two.vertices, two.faces)))
    assert sorted(signed_volume(part) for part in convex.parts) == pytest.approx([1, 2], rel=EXACT)


def test_many_coplanar_triangles_are_few_faces(rng):
    fine = np.kron(FIGURES["U"][0], np.ones((12, 12, 12), bool))
    vertices, faces = voxels(fine)
    convex = as_pieces(load_mesh((vertices @ random_rotation(rng).T, faces)))
    assert len(faces) > 5000
    assert sorted(len(part[0]) for part in convex.parts) == [8, 8, 8]
    assert sum(map(signed_volume, convex.parts)) == pytest.approx(fine.sum(), rel=EXACT)


def test_files_in_single_precision_lose_nothing(rng):
    vertices, faces = voxels(FIGURES["stairs"][0])
    rough = (vertices @ random_rotation(rng).T).astype(np.float32)
    convex = as_pieces(load_mesh((rough, faces)))
    assert len(convex.parts) == 5
    assert sum(map(signed_volume, convex.parts)) == pytest.approx(15, rel=1e-5)  # 1e-7 of the size, on 52 vertices


@pytest.mark.parametrize("solid", ["torus", "tube", "bent"])
@pytest.mark.slow
def test_curved_solids_stay_within_the_tolerance(solid):
    mesh = {
        "torus": lambda: trimesh.creation.torus(1.0, 0.3, major_sections=24, minor_sections=12),
        "tube": lambda: trimesh.creation.annulus(0.7, 1.0, 1.0, sections=24),
        "bent": lambda: trimesh.creation.torus(1.0, 0.4, major_sections=12, minor_sections=8),
    }[solid]()
    vertices, faces = np.array(mesh.vertices), np.array(mesh.faces)
    convex = as_pieces(load_mesh((vertices, faces)))
    assert 8 <= len(convex.parts) <= MAX_PIECES
    assert 0 < convex.excess <= TOLERANCE
    assert sum(map(signed_volume, convex.parts)) == pytest.approx(mesh.volume, rel=2 * TOLERANCE)
    heights = np.min([above(vertices, part) for part in convex.parts], axis=0)
    assert heights.max() <= convex.deviation + EXACT
    assert convex.deviation < 0.02
    assert np.min([above(np.zeros((1, 3)), part) for part in convex.parts]) > 0.4  # the hole stays open


def test_convex_solids_are_one_piece():
    for mesh in (trimesh.creation.icosphere(3), trimesh.creation.cylinder(0.3, 1.0, sections=20)):
        convex = as_pieces(load_mesh((mesh.vertices, mesh.faces)))
        assert len(convex.parts) == 1
        assert len(convex.parts[0][0]) <= MAX_HULL_VERTICES
        assert abs(convex.excess) < EXACT


@pytest.mark.slow
def test_the_number_of_pieces_is_bounded(rng):
    dust = np.zeros((11, 11, 11), bool)
    dust[::2, ::2, ::2] = True
    for filled in (rng.random((6, 6, 6)) < 0.5, dust):
        surface = load_mesh(voxels(filled))
        for limit in (1, 3, MAX_PIECES):
            convex = as_pieces(surface, max_pieces=limit)
            assert 1 <= len(convex.parts) <= limit
            assert convex.deviation < EXACT  # too few pieces are too large, never too small
            volume = sum(map(signed_volume, convex.parts))
            assert volume == pytest.approx((1 + convex.excess) * filled.sum(), rel=1e-6)


@pytest.mark.slow
def test_the_same_mesh_gives_the_same_pieces():
    torus = trimesh.creation.torus(1.0, 0.3, major_sections=12, minor_sections=8)
    surface = load_mesh((torus.vertices, torus.faces))
    first, second = as_pieces(surface), as_pieces(surface)
    for a, b in zip(first.parts, second.parts, strict=True):
        np.testing.assert_array_equal(a[0], b[0])
        np.testing.assert_array_equal(a[1], b[1])
    assert first[1:] == second[1:]


def test_open_and_empty_surfaces_are_refused():
    vertices, faces = voxels(FIGURES["L"][0])
    with pytest.raises(MeshError, match="its surface is open"):
        as_pieces((vertices, faces[:-8]))
    sheet = np.array([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)], float)
    with pytest.raises(MeshError, match="it encloses no volume"):
        as_pieces((sheet, np.array([(0, 1, 2), (0, 2, 1)])))


def test_halves_of_a_cut_are_the_solid(rng):
    """Volume and first moment along the plane's normal, for planes anywhere and through vertices, edges and faces."""
    vertices, faces = voxels(FIGURES["frame"][0])
    surface = load_mesh((vertices, faces))
    solid, total = ClosedMesh.of(surface, 1e-9), signed_volume(surface)
    planes = [(n / np.linalg.norm(n), rng.uniform(-1, 4)) for n in rng.normal(size=(50, 3))]
    planes += [(np.eye(3)[k], float(x)) for k in range(3) for x in range(5)]
    planes += [(np.array([1.0, s, 0]) / np.sqrt(2), x / np.sqrt(2)) for s in (-1, 1) for x in range(-2, 5)]
    for normal, offset in planes:
        halves = cut(solid, normal, offset, 1e-9)
        assert sum(half.volume() for half in halves) == pytest.approx(total, rel=1e-12)
        for half, side in zip(halves, (1, -1), strict=True):
            assert half.volume() >= -1e-12
            assert (side * (half.vertices @ normal - offset) >= -1e-9).all()
            # no vertex is anywhere but on the frame
            near = (half.vertices > -1e-9) & (half.vertices < np.array([4, 4, 1]) + 1e-9)
            assert near.all()
            in_hole = ((half.vertices > 1 + 1e-9) & (half.vertices < 3 - 1e-9))[:, :2].all(axis=1)
            assert not in_hole.any()


def test_a_plane_beside_a_solid_leaves_one_half_empty():
    box = trimesh.creation.box((1, 1, 1))
    above, below = cut(ClosedMesh.of((np.array(box.vertices), np.array(box.faces)), 1e-9), np.eye(3)[2], 2.0, 1e-9)
    assert [len(half.edges) for half in (above, below)] == [0, 24]
    assert [len(_pieces(half, 0.0)) for half in (above, below)] == [0, 1]


def test_volume_of_a_half_against_sampling(rng):
    torus = trimesh.creation.torus(1.0, 0.3)
    surface = load_mesh((torus.vertices, torus.faces))
    normal = np.array([1.0, 2.0, 0.5]) / np.linalg.norm([1.0, 2.0, 0.5])
    points = rng.uniform(-1.3, 1.3, (200_000, 3))
    inside = (np.hypot(points[:, 0], points[:, 1]) - 1) ** 2 + points[:, 2] ** 2 < 0.09
    for offset in (0.0, 0.4, -0.9):
        upper, _ = cut(ClosedMesh.of(surface, 1e-9), normal, offset, 1e-9)
        share = (inside & (points @ normal > offset)).mean() * 2.6**3
        noise = 2.6**3 * np.sqrt(0.1 / len(points))  # one standard deviation of the count, at most
        assert upper.volume() == pytest.approx(share, abs=4 * noise + 0.02)  # the polyhedron lies inside the torus


@pytest.mark.slow
def test_large_meshes_take_seconds():
    torus = trimesh.creation.torus(1.0, 0.3, major_sections=1000, minor_sections=500)
    surface = np.array(torus.vertices), np.array(torus.faces)
    start = time.perf_counter()
    convex = as_pieces(surface)
    took = time.perf_counter() - start
    assert len(torus.faces) == 1_000_000
    assert convex.excess <= TOLERANCE
    assert convex.deviation < 0.03  # the mesh is coarsened to a 32nd of 2.6 m first
    assert sum(map(signed_volume, convex.parts)) == pytest.approx(solid_moments(surface)[0], rel=0.03)
    assert took < 120  # 10 s on an idle core; here only that it ends
