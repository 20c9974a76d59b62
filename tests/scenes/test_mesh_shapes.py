"""Meshes in scenes: what collides in their place, what they weigh, and every way they are refused."""

import warnings

import numpy as np
import pytest
import trimesh

from carom.collision.meshes.hulls import MAX_HULL_VERTICES
from carom.collision.shapes import Box, ConvexHull, Heightfield, Mesh, Sphere
from carom.scenes.builder import SceneBuilder
from carom.scenes.compile import compile_scene
from carom.scenes.compiling.check import SceneError

pytestmark = pytest.mark.filterwarnings("error::UserWarning")  # a scene that is right compiles in silence

BOX = trimesh.creation.box(extents=(1.0, 2.0, 3.0))
BALL = trimesh.creation.icosphere(subdivisions=4)
# an L of three unit cubes, its middle at the inner edge: (x, z) in the corner square is missing
CORNERS = np.array([(-1, -1), (1, -1), (1, 0), (0, 0), (0, 1), (-1, 1)], float)
L_VERTICES = np.array([(x, y, z) for y in (-0.5, 0.5) for x, z in CORNERS])
CAP = np.array([(0, 1, 3), (1, 2, 3), (0, 3, 5), (3, 4, 5)])
SIDES = [t for k in range(6) for m in [(k + 1) % 6] for t in ((k, k + 6, m), (m, k + 6, m + 6))]
L_FACES = np.concatenate([CAP, CAP[:, ::-1] + 6, SIDES])
L_SHAPE = (L_VERTICES, L_FACES)
L_VOLUME, L_HULL = 3.0, 3.5
MANY = trimesh.util.concatenate([BOX.copy().apply_translation((4 * i, 4 * j, 0)) for i in range(7) for j in range(7)])
OPEN_BOX = (BOX.vertices, BOX.faces[(BOX.face_normals[:, 0] < 0.5)])


def compiled(*shapes, static=False, **fields):
    builder = SceneBuilder()
    builder.add_body("ball", [Sphere(0.1)])
    if static:
        builder.add_static("rock", shapes, **fields)
    else:
        builder.add_body("stone", shapes, **fields)
    return compile_scene(builder, overlaps="ignore")[0]


def rows_of(model, link):
    """(kind, points, faces) of the shapes of a link; -1: the world."""
    t = model.topology
    assert len(t.shape_kinds) == len(t.shape_faces) == len(t.shape_grid) == len(t.shape_points) == len(t.shape_links)
    points = np.asarray(model.points)
    of = [k for k, on in enumerate(t.shape_links) if on == link]
    return [(t.shape_kinds[k], points[slice(*t.shape_points[k])], t.shape_faces[k]) for k in of]


def test_a_mesh_is_one_hull_with_its_faces():
    (row,) = rows_of(compiled(Mesh(BOX)), 1)
    kind, points, faces = row
    assert kind == "hull"
    assert {tuple(p) for p in points} == {tuple(p) for p in BOX.vertices}
    assert sorted(map(len, faces)) == [4] * 6
    for ring in faces:
        a, b, c, _ = points[list(ring)]
        assert np.cross(b - a, c - b) @ a > 0  # counter-clockwise from outside; the middle is the origin


def test_pieces_are_hulls_of_one_material_and_one_mass():
    fields = {"friction": 0.3, "restitution": 0.7, "density": 500.0}
    pose = {"position": (1.0, 2.0, 3.0), "quaternion": (0.6, 0.8, 0, 0)}
    model = compiled(Mesh(L_SHAPE, convex="pieces", **fields, **pose), Box((1, 1, 1), position=(9, 0, 0)))
    t = model.topology
    assert t.shape_kinds == ("sphere", "hull", "hull", "box")
    assert t.shape_links == (0, 1, 1, 1)
    assert [len(points) for _, points, _ in rows_of(model, 1)] == [8, 8, 0]
    assert set(t.pairs) == {(0, 1), (0, 2), (0, 3)}  # the pieces of a body do not touch each other
    np.testing.assert_array_equal(model.friction[1:3], (0.3, 0.3))
    np.testing.assert_array_equal(model.restitution[1:3], (0.7, 0.7))
    np.testing.assert_array_equal(model.shape_position[1], model.shape_position[2])
    assert model.mass[1] == pytest.approx(500 * L_VOLUME + 1000 * 8, rel=1e-12)


@pytest.mark.parametrize("convex", ["hull", "pieces", "none"])
def test_the_mesh_itself_decides_the_mass(convex):
    model = compiled(Mesh(L_SHAPE, convex=convex))
    want = compiled(Box((0.5, 0.5, 1), position=(-0.5, 0, 0)), Box((0.5, 0.5, 0.5), position=(0.5, 0, -0.5)))
    np.testing.assert_allclose(model.mass[1], want.mass[1], rtol=1e-12)
    np.testing.assert_allclose(model.com[1], want.com[1], atol=1e-12)
    np.testing.assert_allclose(model.inertia[1], want.inertia[1], rtol=1e-12, atol=1e-9)


def test_none_keeps_the_triangles():
    # one face split in two, whose neighbour is not: the mesh is closed by a third that has no area
    a, b, c = L_FACES[0]
    split = np.concatenate([L_VERTICES, L_VERTICES[[a, b]].mean(axis=0)[None]])
    faces = np.concatenate([L_FACES[1:], [(a, 12, c), (12, b, c)]])
    (row,) = rows_of(compiled(Mesh((split, faces), convex="none"), static=True), -1)
    kind, points, outlines = row
    assert (kind, outlines) == ("mesh", ())
    a, b, c = np.moveaxis(points.reshape(-1, 3, 3), 1, 0)
    assert len(a) == len(L_FACES) + 1 == 21
    assert (np.linalg.norm(np.cross(b - a, c - a), axis=1) > 0.1).all()
    assert np.einsum("ij,ij->", a, np.cross(b, c)) / 6 == pytest.approx(L_VOLUME)


def test_hulls_and_heightfields_say_their_faces_and_grid():
    model = compiled(ConvexHull(BOX.vertices), Heightfield(np.zeros((3, 5)), 0.5), Sphere(1), static=True)
    t = model.topology
    assert t.shape_kinds == ("hull", "heightfield", "sphere", "sphere")
    assert [len(faces) for faces in t.shape_faces] == [6, 0, 0, 0]
    assert t.shape_grid == ((0, 0), (3, 5), (0, 0), (0, 0))
    np.testing.assert_array_equal(model.shape_size[1], (0.5, 0.5, 3))


def test_bodies_of_one_file_load_it_once_until_it_changes(tmp_path, monkeypatch):
    from carom.scenes.compiling import mesh_parts

    path, seen = tmp_path / "stone.stl", []
    load = mesh_parts.inspect_mesh
    monkeypatch.setattr(mesh_parts, "inspect_mesh", lambda *args: seen.append(args) or load(*args))
    BOX.export(path)
    assert compiled(*[Mesh(path)] * 5).mass[1] == pytest.approx(5 * 6000)
    assert len(seen) == 1
    trimesh.creation.box(extents=(1, 1, 1)).subdivide().export(path)
    assert compiled(Mesh(path)).mass[1] == pytest.approx(1000)
    assert len(seen) == 2


# doubts: it compiles, and says what might be wrong

DOUBTS = {
    "hull much larger": (Mesh(L_SHAPE), {}, "is 16.7 % larger: write convex=\"pieces\""),
    "open surface": (Mesh(OPEN_BOX), {"mass": 1.0, "inertia": (1, 1, 1)}, "surface is open, and its convex hull"),
    "coarse hull": (Mesh(BALL), {}, "64 vertices at most, which leaves out up to 0.05"),
    "hole filled": (Mesh((BOX.vertices, BOX.faces[np.argsort(BOX.area_faces)][1:])), {}, "holes filled: 1,"),
    "too few pieces": (Mesh(MANY, convex="pieces"), {}, "convex pieces are together"),
}  # fmt: skip


@pytest.mark.parametrize("name", DOUBTS)
def test_doubts_are_warnings_that_name_the_mesh(name):
    shape, fields, text = DOUBTS[name]
    with pytest.warns(UserWarning, match='body "stone", shape 0 \\(mesh\\)') as caught:
        compiled(shape, **fields)
    assert text in str(caught[0].message)
    assert len(caught) == 1


def test_asking_for_the_hull_silences_the_doubts_about_it():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert rows_of(compiled(Mesh(L_SHAPE, convex="hull")), 1)[0][0] == "hull"
        compiled(Mesh(OPEN_BOX, convex="hull"), mass=1.0, inertia=(1, 1, 1))
        compiled(Mesh(OPEN_BOX, convex="none"), static=True)


def test_a_hull_is_reduced_and_the_mass_is_not():
    with pytest.warns(UserWarning, match="64 vertices"):
        model = compiled(Mesh(BALL, density=1.0))
    assert len(rows_of(model, 1)[0][1]) == MAX_HULL_VERTICES
    assert model.mass[1] == pytest.approx(BALL.volume, rel=1e-12)


def test_mirrored_and_flipped_meshes_weigh_the_same():
    flipped = (L_VERTICES, np.where(np.arange(20)[:, None] % 3 == 0, L_FACES[:, ::-1], L_FACES))
    for shape in (Mesh(L_SHAPE, (-1, 1, 1), convex="hull"), Mesh(L_SHAPE, -1, convex="pieces"),
                  Mesh(flipped, convex="pieces")):  # fmt: skip
        assert compiled(shape).mass[1] == pytest.approx(1000 * L_VOLUME, rel=1e-12)


# refusals: who, the field, the value, and the fix

NAN = float("nan")
FLAT = ([(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0)], [(0, 1, 2), (1, 3, 2)])
SHEET = ([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)], [(0, 1, 2), (0, 2, 1)])  # both sides: closed, and empty
ARRAYS = "'a mesh given as arrays'"
REFUSED = {
    "unknown convex": (Mesh(BOX, convex="hul"), "convex", "'hul'", "did you mean 'hull'?"),
    "convex is no name": (Mesh(BOX, convex=7), "convex", "7",  # pyright: ignore[reportArgumentType]
                           "known are 'hull', 'pieces', 'none'"),
    "zero scale": (Mesh(BOX, 0), "scale", "0", "0.001 for millimetres"),
    "one zero scale": (Mesh(BOX, (1, 0, 1)), "scale", "(1, 0, 1)", "0.001 for millimetres"),
    "NaN scale": (Mesh(BOX, NAN), "scale", "nan", "not be NaN"),
    "two scales": (Mesh(BOX, (1, 2)), "scale", "(1, 2)", "give 3 numbers"),
    "scale in words": (Mesh(BOX, "mm"), "scale", "'mm'", "made of numbers"),
    "no faces": (Mesh(([(0, 0, 0)], [])), "source", ARRAYS, "no triangles: give a mesh with faces"),
    "NaN vertex": (Mesh(([(0, 0, NAN), *FLAT[0][1:]], FLAT[1])), "source", ARRAYS, "not finite: repair"),
    "index out of range": (Mesh((FLAT[0], [(0, 1, 4)])), "source", ARRAYS, "vertex 4 of 4, numbered from 0: repair"),
    "degenerate": (Mesh((FLAT[0], [(0, 1, 1)])), "source", ARRAYS, "no area: give a mesh"),
    "flat": (Mesh(FLAT), "source", ARRAYS, 'use a thin Box, or convex="none"'),
    "pieces of an open mesh": (Mesh(OPEN_BOX, convex="pieces"), "source", ARRAYS, 'close it, or use convex="hull"'),
    "pieces of nothing": (Mesh(SHEET, convex="pieces"), "source", ARRAYS, "its surface is open"),
    "mass of an open mesh": (Mesh(OPEN_BOX, convex="none"), "source", "'an open surface'", "give the body's mass"),
    "not a mesh": (Mesh({"vertices": 3}), "source", "{'vertices': 3}", "give (vertices, faces)"),
    "a number": (Mesh(3), "source", ARRAYS, "give (vertices, faces)"),
    "no file": (Mesh("no.obj"), "source", "'no.obj'", "no such file: give a path"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_bad_meshes_are_refused_by_name_field_value_and_fix(name):
    shape, field, value, fix = REFUSED[name]
    with pytest.raises(SceneError) as caught:
        compiled(shape)
    head, rest = str(caught.value).split(f": {field} is ", 1)
    shown, must = rest.split("; ", 1)
    assert head == 'body "stone", shape 0 (mesh)'
    assert shown == value
    assert fix in must


@pytest.mark.parametrize("suffix", ["stl", "obj", "glb", "ply"])
@pytest.mark.parametrize(
    "content", [b"", b"no mesh at all\n" * 20, bytes(range(256)) * 8], ids=["empty", "text", "bytes"]
)
def test_rubbish_in_files_is_refused(tmp_path, suffix, content):
    path = tmp_path / f"stone.{suffix}"
    path.write_bytes(content)
    with pytest.raises(SceneError) as caught:
        compiled(Mesh(path))
    assert str(caught.value).startswith(f'body "stone", shape 0 (mesh): source is {str(path)!r}; ')
    assert "give a" in str(caught.value)
