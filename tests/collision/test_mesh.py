"""Meshes as people have them: many formats, wrong winding, holes, rubbish; and the hulls made of them."""

import io
import json
import re
import struct
import time
import zipfile

import numpy as np
import pytest
import trimesh

from carom.collision import mesh
from carom.collision.mesh import FORMATS, inspect_mesh, load_mesh
from carom.collision.meshes.hulls import MAX_HULL_VERTICES, above, as_hull, convex_hull, outlines, reduced_hull
from carom.collision.meshes.repair import cluster_vertices, consistent_winding
from carom.collision.meshes.surfaces import MeshError, is_closed, signed_volume, solid_moments
from carom.tests.oracles.placements import random_rotation

ROUNDING = 1e-12  # sums of some thousand terms of order one
SINGLE = 1e-6  # STL and GLB hold single precision
BOX = trimesh.creation.box(extents=(1.0, 2.0, 3.0))
BALL = trimesh.creation.icosphere(subdivisions=3)


def arrays(mesh):
    return np.array(mesh.vertices, float), np.array(mesh.faces, int)


def joined(*surfaces):
    starts = np.cumsum([0, *(len(v) for v, _ in surfaces)])
    faces = [f + start for (_, f), start in zip(surfaces, starts, strict=False)]
    return np.concatenate([v for v, _ in surfaces]), np.concatenate(faces)


def soup(vertices, faces):
    """The same triangles, no vertex shared."""
    return vertices[faces].reshape(-1, 3), np.arange(3 * len(faces)).reshape(-1, 3)


@pytest.fixture
def rng():
    return np.random.default_rng(7)


# files


@pytest.mark.parametrize("suffix", ["stl", "stl_ascii", "obj", "ply", "off", "glb", "dae"])
def test_formats_hold_the_same_box(tmp_path, suffix):
    path = tmp_path / f"box.{suffix.removesuffix('_ascii')}"
    BOX.export(path, file_type=suffix)
    (vertices, faces), report = inspect_mesh(path, scale=0.5)
    assert (len(vertices), len(faces)) == (report.vertices, report.faces) == (8, 12)
    assert report.closed
    assert report.repairs == ()
    assert report.volume == pytest.approx(6 / 8, rel=SINGLE)
    np.testing.assert_allclose(report.size, (0.5, 1, 1.5), rtol=SINGLE)


def test_parts_of_a_file_stand_in_their_places(tmp_path):
    scene = trimesh.Scene()
    place = trimesh.transformations.translation_matrix
    scene.add_geometry(BOX, transform=place([5, 0, 0]))
    scene.add_geometry(trimesh.creation.icosphere(), transform=place([0, 0, 9]))
    path = tmp_path / "scene.glb"
    scene.export(path)
    (vertices, _), report = inspect_mesh(str(path))
    np.testing.assert_allclose([vertices.min(axis=0), vertices.max(axis=0)], scene.bounds, atol=SINGLE)
    assert report.bodies == 2
    assert report.volume == pytest.approx(6 + trimesh.creation.icosphere().volume, rel=SINGLE)


def test_report_says_what_a_mesh_is_and_guesses_at_millimetres():
    text = str(inspect_mesh(arrays(BOX), scale=(100.0, 1.0, 1.0))[1])
    assert "8 vertices, 12 faces, 1 body, 100 x 2 x 3 m, closed, 600 m^3" in text
    assert "if it is in millimetres, give scale=0.001" in text
    assert "another unit" in inspect_mesh(arrays(BOX), scale=1e-6)[1].hint
    assert inspect_mesh(arrays(BOX))[1].hint == ""


# repairs


@pytest.mark.parametrize("share", [0.02, 0.3, 0.9, 1.0])
def test_flipped_faces_are_turned(rng, share):
    vertices, faces = arrays(BALL)
    flip = rng.random(len(faces)) < share
    flip[0] = share < 0.5  # the first face is not a model for the others
    surface, report = inspect_mesh(soup(vertices, np.where(flip[:, None], faces[:, ::-1], faces)))
    assert is_closed(surface)
    assert signed_volume(surface) == pytest.approx(BALL.volume, rel=ROUNDING)
    fewer = min(flip.sum(), (~flip).sum())
    expected = [f"faces turned that were wound the wrong way: {fewer}"] * int(fewer > 0)
    expected += ["inside out: all faces turned"] * int(2 * flip.sum() > len(flip))
    assert list(report.repairs) == expected


def test_a_void_faces_inwards_and_bodies_apart_outwards():
    ball = arrays(BALL)
    hollow = joined(ball, (0.5 * ball[0], ball[1][:, ::-1]))
    beside = ball[0] + np.array([5.0, 0, 0]), ball[1][:, ::-1]  # inside out
    two_hollow = joined(hollow, (hollow[0] + np.array([0, 5.0, 0]), hollow[1][:, ::-1]))
    for source, volume in ((hollow, 7 / 8), (joined(hollow, beside), 15 / 8), (two_hollow, 14 / 8)):
        for turned in (source, (source[0], source[1][:, ::-1])):
            surface, report = inspect_mesh(turned)
            assert report.closed
            assert report.volume == pytest.approx(volume * BALL.volume, rel=ROUNDING)
            assert signed_volume(surface) == report.volume


def test_small_holes_are_filled_and_openings_are_not():
    vertices, faces = arrays(BOX)
    end = np.flatnonzero((vertices[faces][:, :, 2] > 1.4).all(axis=1))  # two triangles of 1/2, on a surface of 22
    assert len(end) == 2
    _, report = inspect_mesh((vertices, np.delete(faces, end[0], axis=0)))
    assert report.closed
    assert report.volume == pytest.approx(6.0, rel=ROUNDING)
    assert report.vertices == 8
    assert "holes filled: 1," in report.repairs[0]
    front = np.flatnonzero((vertices[faces][:, :, 0] > 0.4).all(axis=1))  # 6 of 22
    lidless = np.delete(faces, front, axis=0)
    assert len(lidless) == 10
    _, report = inspect_mesh((vertices, lidless))
    assert not report.closed
    assert np.isnan(report.volume)
    vertices, faces = arrays(BALL)
    around = [np.flatnonzero((faces == v).any(axis=1)) for v in (0, 100, 300)]  # the faces at three vertices
    surface, report = inspect_mesh((vertices, np.delete(faces, np.concatenate(around), axis=0)))
    assert is_closed(surface)
    assert "holes filled: 3," in report.repairs[0]
    assert 0.99 * BALL.volume < report.volume < BALL.volume


def test_cracks_are_welded(rng):
    vertices, faces = soup(*arrays(BALL))
    vertices = vertices + rng.uniform(-1e-7, 1e-7, vertices.shape)
    surface, report = inspect_mesh((vertices, faces))
    assert is_closed(surface)
    assert report.repairs == ("cracks welded: 3840 of 3840 open edges",)
    assert report.volume == pytest.approx(BALL.volume, rel=1e-6)  # the surface moved by 1e-7


def test_a_vertex_on_its_neighbours_edge_leaves_no_hole():
    vertices, faces = arrays(BOX)
    split = np.concatenate([vertices, vertices[faces[0, :2]].mean(axis=0)[None]])  # on one side of an edge only
    a, b, c = faces[0]
    surface, report = inspect_mesh((split, np.concatenate([faces[1:], [(a, 8, c), (8, b, c)]])))
    assert is_closed(surface)
    assert report.repairs == ("seams closed, vertices on neighbours' edges: 1",)
    assert report.volume == pytest.approx(6.0, rel=ROUNDING)


def test_degenerate_and_repeated_faces_go():
    vertices, faces = arrays(BOX)
    messy = np.concatenate([faces, faces[:3], faces[5:7, ::-1], [(0, 0, 1), (2, 2, 2)]])
    _, report = inspect_mesh((vertices, messy))
    assert (report.faces, report.closed) == (12, True)
    assert report.volume == pytest.approx(6.0, rel=ROUNDING)
    assert report.repairs == ("degenerate faces removed: 2", "repeated faces removed: 5")


def test_faces_of_both_sides_leave_one_surface():
    vertices, faces = arrays(BALL)
    _, report = inspect_mesh((vertices, np.concatenate([faces, faces[:, ::-1]])))
    assert (report.faces, report.closed) == (len(faces), True)
    assert report.volume == pytest.approx(BALL.volume, rel=ROUNDING)


def test_the_wall_between_touching_boxes_goes_if_it_can():
    vertices, faces = arrays(BOX)
    _, report = inspect_mesh(joined((vertices, faces), (vertices * (-1, 1, 1) + (1, 0, 0), faces[:, ::-1])))
    assert (report.faces, report.closed) == (20, True)
    assert report.volume == pytest.approx(12.0, rel=ROUNDING)
    _, report = inspect_mesh(
        joined(*((vertices + np.array([x, 0, 0]), faces) for x in range(3)))
    )  # diagonals across: it stays
    assert (report.faces, report.closed, report.bodies) == (36, True, 1)
    assert report.volume == pytest.approx(18.0, rel=ROUNDING)


def test_a_moebius_strip_stays_open():
    turn = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    rim = [np.stack([(2 + s * np.cos(turn / 2)) * np.cos(turn), (2 + s * np.cos(turn / 2)) * np.sin(turn),
                     s * np.sin(turn / 2)], axis=1) for s in (-0.5, 0.5)]  # fmt: skip
    k = np.arange(40)
    after, other = (k + 1) % 40, np.where(k == 39, 0, 40)
    lower, upper = after + 40 - np.where(k == 39, 0, 40), after + other
    faces = np.concatenate([np.stack([k, lower, upper], 1), np.stack([k, upper, k + 40], 1)])
    assert consistent_winding(faces)[2]
    assert not inspect_mesh((np.concatenate(rim), faces))[1].closed


def test_mirrored_meshes_still_face_outwards():
    for scale in (-1.0, (1, -2, 1), (-1, -1, 0.5)):
        surface, report = inspect_mesh(arrays(BALL), scale)
        assert report.repairs == ()
        factor = abs(np.prod(np.broadcast_to(scale, 3)))
        assert signed_volume(surface) == pytest.approx(factor * BALL.volume, rel=ROUNDING)


def test_moments_agree_with_trimesh(rng):
    torus = trimesh.creation.torus(1.0, 0.3)
    vertices, faces = arrays(torus)
    vertices = vertices @ random_rotation(rng).T * (1.0, 0.5, 2.0) + (3.0, -2.0, 1.0)
    theirs = trimesh.Trimesh(vertices, faces, process=False).mass_properties
    volume, centroid, inertia = solid_moments((vertices, faces))
    assert volume == pytest.approx(theirs["volume"], rel=ROUNDING)
    np.testing.assert_allclose(centroid, theirs["center_mass"], rtol=1e-10)
    np.testing.assert_allclose(inertia, theirs["inertia"], atol=1e-10 * np.trace(inertia))


def test_a_clustered_surface_stays_closed_and_keeps_its_corners():
    vertices, faces = arrays(BOX.subdivide().subdivide().subdivide().subdivide())
    surface = cluster_vertices((vertices, faces), 0.25)
    assert is_closed(surface)
    assert len(surface[1]) < len(faces) / 4
    assert signed_volume(surface) == pytest.approx(6.0, rel=ROUNDING)


# what cannot be used

NAN = float("nan")
TRIANGLE = [(0, 0, 0), (1, 0, 0), (0, 1, 0)]
BAD_ARRAYS = {
    "no faces": ((np.zeros((3, 3)), np.zeros((0, 3))), "no triangles"),
    "nothing": (([], []), "no triangles"),
    "NaN": (([*TRIANGLE[:2], (0, NAN, 0)], [(0, 1, 2)]), "not finite"),
    "infinite": (([*TRIANGLE[:2], (0, np.inf, 0)], [(0, 1, 2)]), "not finite"),
    "vertex too high": ((TRIANGLE, [(0, 1, 3)]), "names vertex 3 of 3"),
    "vertex negative": ((TRIANGLE, [(0, 1, -1)]), "names vertex -1 of 3"),
    "halves": ((TRIANGLE, [(0, 1, 1.5)]), "whole numbers"),
    "NaN face": ((TRIANGLE, [(0, 1, NAN)]), "whole numbers"),
    "all on two vertices": ((TRIANGLE, [(0, 1, 0), (1, 1, 2)]), "no area"),
    "all on one line": (([(0, 0, 0), (1, 1, 1), (2, 2, 2)], [(0, 1, 2)]), "no area"),
    "all in one point": ((np.ones((3, 3)), [(0, 1, 2)]), "no area"),
    "quads": (([*TRIANGLE, (1, 1, 0)], [(0, 1, 3, 2)]), "shapes (4, 3) and (1, 4)"),
    "two dimensions": (([(0, 0), (1, 0), (0, 1)], [(0, 1, 2)]), "shapes (3, 2)"),
    "words": ((["a", "b"], ["c"]), "not made of vertices and faces"),
    "three things": ((TRIANGLE, [(0, 1, 2)], 3), "not made of vertices and faces"),
    "nothing at all": (None, "not made of vertices and faces"),
    "huge": ((np.array(TRIANGLE) * 1e200, [(0, 1, 2)]), "check its numbers"),
}


@pytest.mark.parametrize("name", BAD_ARRAYS)
def test_bad_arrays_are_refused_with_a_reason(name):
    source, reason = BAD_ARRAYS[name]
    with pytest.raises(MeshError) as caught, np.errstate(all="ignore"):
        load_mesh(source)
    assert reason in str(caught.value)


@pytest.mark.parametrize("scale", [0.0, (1, 0, 1), NAN, np.inf, "big", (1, 2), None])
def test_bad_scales_are_refused(scale):
    with pytest.raises(MeshError, match="its scale is"):
        load_mesh(arrays(BOX), scale)


def _gltf(nodes):
    return json.dumps({"asset": {"version": "2.0"}, "scene": 0, "scenes": [{"nodes": [0]}], "nodes": nodes})


def _glb(text: str) -> bytes:
    """A binary glTF file of that JSON alone."""
    chunk = text.encode().ljust(-(-len(text) // 4) * 4)
    return struct.pack("<4sII", b"glTF", 2, 20 + len(chunk)) + struct.pack("<I4s", len(chunk), b"JSON") + chunk


def _bomb() -> bytes:
    """An archive that unpacks to a mesh a thousand times its size."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mesh.obj", "v 0 0 0\n" * 500_000)
    return file.getvalue()


# nine entities, each ten of the one before: 3 GB
ENTITIES = b"<!DOCTYPE COLLADA [<!ENTITY e0 'mesh'>%s]><COLLADA>&e9;</COLLADA>" % b"".join(
    b"<!ENTITY e%d '%s'>" % (k, b"&e%d;" % (k - 1) * 10) for k in range(1, 10)
)
STL_HEADER, TEXT = b"\0" * 80, b"this is not a mesh\n" * 50
# trimesh takes it for a text, and what comes of that depends on whether it has chardet
NOT_BINARY = "cannot read it|no triangles"
BAD_FILES = {
    **{f"empty.{suffix}": (b"", "the file is empty") for suffix in FORMATS},
    **{f"text.{suffix}": (TEXT, "") for suffix in FORMATS},
    **{f"bytes.{suffix}": (np.random.default_rng(0).bytes(4000), "") for suffix in FORMATS},
    "entities.dae": (ENTITIES, "cannot read it"),
    "no_triangles.stl": (b"solid x\nendsolid x\n", "no triangles"),
    "none.stl": (STL_HEADER + struct.pack("<I", 0), "no triangles"),
    "four_billion.stl": (STL_HEADER + struct.pack("<I", 4_000_000_000) + b"\0" * 500, NOT_BINARY),
    "cut_short.stl": (trimesh.creation.box().export(file_type="stl")[:300], NOT_BINARY),
    "nan.stl": (STL_HEADER + struct.pack("<I12f", 1, *[0] * 3, *[NAN] * 9) + b"\0\0", "not finite"),
    "nan.obj": (b"v 0 0 0\nv 1 0 0\nv nan 1 0\nf 1 2 3\n", "not finite"),
    "range.obj": (b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 9\n", "cannot read it"),
    "points.obj": (b"v 0 0 0\nv 1 0 0\nv 0 1 0\n", "no triangles"),
    "four_billion.off": (b"OFF\n4000000000 4000000000 0\n0 0 0\n", "cannot read it"),
    "circle.glb": (_glb(_gltf([{"children": [1]}, {"children": [0]}])), ""),
    **{f"bomb.{suffix}": (_bomb(), "no format that is read") for suffix in ("zip", "3mf", "tar.gz", "ZIP")},
    "mesh.xyzzy": (TEXT, "'xyzzy', which is no format that is read"),
    "mesh": (TEXT, "no format that is read"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files_are_refused_with_a_reason(tmp_path, name):
    content, reason = BAD_FILES[name]
    (tmp_path / name).write_bytes(content)
    start = time.perf_counter()
    with pytest.raises(MeshError) as caught:
        load_mesh(tmp_path / name)
    assert re.search(reason, str(caught.value))
    assert ": " in str(caught.value), "the message must say what to do"
    assert time.perf_counter() - start < 10  # a hang, not a slow machine


def test_a_folder_and_a_missing_file(tmp_path):
    with pytest.raises(MeshError, match="it is a folder"):
        load_mesh(tmp_path)
    with pytest.raises(MeshError, match="no such file"):
        load_mesh(tmp_path / "no.stl")
    with pytest.raises(MeshError, match="no such file"):
        load_mesh("")


def test_a_large_file_is_not_opened(tmp_path, monkeypatch):
    monkeypatch.setattr(mesh, "MOST", 2**20)
    path = tmp_path / "large.stl"
    path.write_bytes(bytes(2**21))
    with pytest.raises(MeshError, match=r"2 MB, and may have 1: simplify"):
        load_mesh(path)


# hulls


def _check_outlines(hull, planar):
    vertices, rings = hull[0], outlines(hull)
    sides = [(ring[k - 1], ring[k]) for ring in rings for k in range(len(ring))]
    assert len(set(sides)) == len(sides)
    assert {(b, a) for a, b in sides} == set(sides)  # every edge once in each direction: closed
    assert len(vertices) - len(sides) // 2 + len(rings) == 2  # Euler
    for ring in rings:
        corners = vertices[list(ring)]
        normal = np.cross(corners, np.roll(corners, -1, axis=0)).sum(axis=0)
        heights = (vertices - corners.mean(axis=0)) @ normal / np.linalg.norm(normal)
        assert heights.max() <= planar  # counter-clockwise: all else is below
        assert np.abs(heights[list(ring)]).max() <= planar
    return rings


def test_outlines_of_polyhedra_in_any_pose(rng):
    angle = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    prism = np.array([(np.cos(a), np.sin(a), z) for a in angle for z in (-0.3, 0.9)])
    grid = np.array([[x, y, z] for x in range(4) for y in range(4) for z in range(4)]) / 3.0  # points on faces, edges
    phi = (1 + np.sqrt(5)) / 2
    dodecahedron = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)
    for k in range(3):
        thin = np.array([[0, y / phi, z * phi] for y in (-1, 1) for z in (-1, 1)])
        dodecahedron = np.concatenate([dodecahedron, np.roll(thin, k, axis=1)])
    tetrahedron = np.array([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)], float)
    cases = ((prism, [4] * 12 + [12] * 2), (grid, [4] * 6), (dodecahedron, [5] * 12), (tetrahedron, [3] * 4))
    for points, lengths in cases:
        for _ in range(5):
            moved = points @ random_rotation(rng).T * 0.37 + rng.normal(size=3)
            rings = _check_outlines(convex_hull(moved), planar=1e-9)
            assert sorted(map(len, rings)) == lengths


def test_outlines_of_random_hulls_are_their_triangles(rng):
    for n in (5, 20, 64):
        points = rng.normal(size=(n, 3))
        hull = convex_hull(points)
        assert len(_check_outlines(hull, planar=1e-9)) == len(hull[1])


def test_large_hulls_are_reduced_to_points_of_theirs(rng):
    points = rng.normal(size=(3000, 3))
    points *= (1.0, 0.5, 0.2) / np.linalg.norm(points, axis=1, keepdims=True)
    (vertices, faces), deviation = reduced_hull(points)
    assert len(vertices) == MAX_HULL_VERTICES
    assert {tuple(v) for v in vertices} <= {tuple(p) for p in points}
    heights = above(points, (vertices, faces))
    assert deviation == heights.max() > 0
    assert deviation < 0.03 * 2  # an even spread of 64 points on a sphere leaves 2.5 % of the diameter
    a, b, c = np.moveaxis(vertices[faces], 1, 0)
    normals = np.cross(b - a, c - a)
    plain = ((points[:, None] - a) * normals).sum(axis=-1) / np.linalg.norm(normals, axis=1)
    np.testing.assert_allclose(heights, plain.max(axis=1), atol=1e-14)


def test_noise_of_single_precision_needs_no_vertices(rng):
    box = trimesh.creation.box().subdivide().subdivide().subdivide()
    points = (np.array(box.vertices) @ random_rotation(rng).T).astype(np.float32).astype(float)
    (vertices, _), deviation = reduced_hull(points)
    assert len(convex_hull(points)[0]) > 8
    assert len(vertices) == 8
    assert deviation < 1e-6


def test_many_points_have_the_hull_of_their_corners(rng):
    corners = rng.normal(size=(40, 3))
    hull = convex_hull(corners)
    weights = rng.dirichlet(np.ones(40), size=50_000)
    (vertices, faces), deviation = reduced_hull(np.concatenate([weights @ corners, corners]))
    assert deviation == pytest.approx(0.0, abs=1e-9)
    assert {tuple(v) for v in vertices} == {tuple(v) for v in hull[0]}
    assert signed_volume((vertices, faces)) == pytest.approx(signed_volume(hull), rel=ROUNDING)


def test_a_flat_mesh_has_no_hull(rng):
    vertices = np.column_stack([rng.normal(size=(30, 2)), np.zeros(30)])
    faces = rng.permutation(30).reshape(10, 3)
    surface, report = inspect_mesh((vertices @ random_rotation(rng).T, faces))
    with pytest.raises(MeshError, match="it is flat"):
        as_hull(surface, report.volume)


def _refined_ball(rng, subdivisions):
    """An icosphere with random faces turned, no vertex shared."""
    ball = trimesh.creation.icosphere(subdivisions=subdivisions)
    vertices, faces = arrays(ball)
    flip = rng.random(len(faces)) < 0.3
    return soup(vertices, np.where(flip[:, None], faces[:, ::-1], faces)), ball.volume


@pytest.mark.parametrize("subdivisions", [6, pytest.param(8, marks=pytest.mark.slow)])  # 80 000 and 1.3 million faces
def test_large_meshes_take_seconds(rng, subdivisions):
    source, volume = _refined_ball(rng, subdivisions)
    start = time.perf_counter()
    surface, report = inspect_mesh(source)
    moments = solid_moments(surface)
    convex = as_hull(surface, report.volume)
    took = time.perf_counter() - start
    assert report.faces == 20 * 4**subdivisions
    assert moments[0] == report.volume == pytest.approx(volume, rel=1e-9)
    np.testing.assert_allclose(moments[2], 0.4 * volume * np.eye(3), atol=1e-3 * volume)
    assert len(convex.parts[0][0]) == MAX_HULL_VERTICES
    assert 0.02 < convex.deviation < 0.08
    assert abs(convex.excess) < 0.01
    assert took < 60  # 8 s for 1.3 million faces on an idle core; here only that it ends
