"""Mass properties against slice-by-slice integration, closed polyhedra, and MuJoCo's compiler."""

from typing import Any

import mujoco
import numpy as np
import pytest
import trimesh

from carom.collision.mass import combine, mass_in_body_frame, shape_mass
from carom.collision.poses import from_axis_angle, rotation_matrix
from carom.collision.shapes import Box, Capsule, ConvexHull, Cylinder, Ellipsoid, Heightfield, Mesh, Plane, Sphere

ROUNDING = 1e-12  # closed forms against exact quadrature of the same integrals
ROUND = [Sphere(0.3), Ellipsoid((0.2, 0.35, 0.5)), Cylinder(0.3, 0.7), Capsule(0.3, 0.7), Box((0.2, 0.3, 0.5))]
NAMES = [shape.kind for shape in ROUND]
TURN = from_axis_angle((1.0, -2.0, 0.5), 1.1)


def _ellipse(a, b):
    """Area and integrals of x^2 and y^2 over an ellipse."""
    return np.pi * a * b * np.array([1.0, a * a / 4, b * b / 4])


def _slices(shape):
    """(z intervals, function z -> area, integral of x^2, integral of y^2) of the shape cut across z."""
    if shape.kind == "box":
        a, b, c = shape.half_extents
        return [(-c, c)], lambda z: 4 * a * b * np.array([1.0, a * a / 3, b * b / 3])
    if shape.kind in ("sphere", "ellipsoid"):
        a, b, c = getattr(shape, "radii", None) or (shape.radius,) * 3
        return [(-c, c)], lambda z: _ellipse(a * np.sqrt(1 - z * z / c / c), b * np.sqrt(1 - z * z / c / c))
    r, h = shape.radius, shape.half_length
    if shape.kind == "cylinder":
        return [(-h, h)], lambda z: _ellipse(r, r)

    def capsule(z):
        over = max(abs(z) - h, 0.0)
        return _ellipse(np.sqrt(r * r - over * over), np.sqrt(r * r - over * over))

    return [(-h - r, -h), (-h, h), (h, h + r)], capsule


def _by_slices(shape, density):
    """Mass and diagonal of the inertia; eight Gauss points are exact: the integrands are quartic in z."""
    points, weights = np.polynomial.legendre.leggauss(8)
    intervals, cut = _slices(shape)
    total = np.zeros(4)  # mass, integrals of x^2, y^2, z^2
    for low, high in intervals:
        for p, w in zip(points, weights, strict=True):
            z = (low + high) / 2 + (high - low) / 2 * p
            area, xx, yy = cut(z)
            total += density * w * (high - low) / 2 * np.array([area, xx, yy, z * z * area])
    mass, xx, yy, zz = total
    return mass, np.array([yy + zz, xx + zz, xx + yy])


@pytest.mark.parametrize("shape", ROUND, ids=NAMES)
def test_closed_forms_are_the_integrals_over_slices(shape):
    mass, diagonal = _by_slices(shape, density=700.0)
    got = shape_mass(shape, density=700.0)
    assert got.mass == pytest.approx(mass, rel=ROUNDING)
    np.testing.assert_allclose(got.inertia, np.diag(diagonal), rtol=ROUNDING, atol=ROUNDING * mass)
    np.testing.assert_array_equal(got.com, np.zeros(3))


_GEOM = {
    "sphere": lambda s: f'type="sphere" size="{s.radius}"',
    "box": lambda s: 'type="box" size="{} {} {}"'.format(*s.half_extents),
    "capsule": lambda s: f'type="capsule" size="{s.radius} {s.half_length}"',
    "cylinder": lambda s: f'type="cylinder" size="{s.radius} {s.half_length}"',
    "ellipsoid": lambda s: 'type="ellipsoid" size="{} {} {}"'.format(*s.radii),
}


def _by_mujoco(shapes):
    geoms = "".join(
        f'<geom {_GEOM[s.kind](s)} density="{s.density}" pos="{" ".join(map(str, s.position))}" '
        f'quat="{" ".join(map(str, s.quaternion))}"/>'
        for s in shapes
    )
    text = f"<mujoco><worldbody><body><freejoint/>{geoms}</body></worldbody></mujoco>"
    model: Any = mujoco.MjModel.from_xml_string(text)  # pyright: ignore[reportAttributeAccessIssue]  compiled
    R = rotation_matrix(model.body_iquat[1])
    return model.body_mass[1], model.body_ipos[1], R @ np.diag(model.body_inertia[1]) @ R.T


PLACED = [
    Sphere(0.3, position=(0.1, 0.2, -0.4), density=500.0),
    Box((0.2, 0.3, 0.5), position=(-1.0, 0.3, 0.2), quaternion=TURN, density=900.0),
    Capsule(0.2, 0.7, position=(0.5, -0.6, 0.1), quaternion=from_axis_angle((0, 1, 0), 0.7), density=300.0),
    Cylinder(0.25, 0.4, position=(0.0, 0.9, 0.3), quaternion=from_axis_angle((1, 1, 0), -2.0), density=1200.0),
    Ellipsoid((0.2, 0.35, 0.5), position=(0.3, 0.1, 1.0), quaternion=from_axis_angle((3, 1, 2), 0.4), density=800.0),
]


@pytest.mark.parametrize("count", range(1, 6))
def test_placed_and_combined_shapes_agree_with_mujoco(count):
    shapes = PLACED[-count:]
    mass, com, inertia = _by_mujoco(shapes)
    got = combine(mass_in_body_frame(s, s.density or 0.0) for s in shapes)
    assert got.mass == pytest.approx(mass, rel=1e-10)
    np.testing.assert_allclose(got.com, com, atol=1e-10)
    np.testing.assert_allclose(got.inertia, inertia, atol=1e-9 * np.trace(inertia))


def test_hull_and_mesh_of_a_box_are_the_box():
    corners = np.array([[x, y, z] for x in (-0.2, 0.2) for y in (-0.3, 0.3) for z in (-0.5, 0.5)])
    far = np.array([100.0, -50.0, 30.0])  # moments taken about a far origin would lose eight digits here
    want = shape_mass(Box((0.2, 0.3, 0.5)))
    mesh = trimesh.creation.box(extents=(0.4, 0.6, 1.0))
    mesh.apply_translation(far)
    for got in (shape_mass(ConvexHull(corners + far)), shape_mass(Mesh(mesh))):
        assert got.mass == pytest.approx(want.mass, rel=1e-12)
        np.testing.assert_allclose(got.com, far, rtol=1e-13)
        np.testing.assert_allclose(got.inertia, want.inertia, atol=1e-10 * np.trace(want.inertia))


def test_unit_tetrahedron():
    # volume 1/6; integral of x^2 is 1/60, of x y 1/120; centroid 1/4: I = sum of two x^2, less the parallel part
    got = shape_mass(ConvexHull([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]), density=1.0)
    about_corner = np.full((3, 3), -1 / 120) + np.eye(3) * (2 / 60 + 1 / 120)
    assert got.mass == pytest.approx(1 / 6, rel=1e-14)
    np.testing.assert_allclose(got.com, [0.25] * 3, rtol=1e-14)
    np.testing.assert_allclose(got.inertia_about(np.zeros(3)), about_corner, atol=1e-15)


@pytest.mark.parametrize("shape", ROUND, ids=NAMES)
def test_fine_meshes_approach_the_closed_forms(shape):
    makers = {
        "sphere": lambda s: trimesh.creation.icosphere(subdivisions=5, radius=s.radius),
        "ellipsoid": lambda s: trimesh.creation.icosphere(subdivisions=5).apply_scale(s.radii),
        "cylinder": lambda s: trimesh.creation.cylinder(radius=s.radius, height=2 * s.half_length, sections=400),
        "capsule": lambda s: trimesh.creation.capsule(radius=s.radius, height=2 * s.half_length, count=[200, 200]),
        "box": lambda s: trimesh.creation.box(extents=2 * np.array(s.half_extents)),
    }
    got, want = shape_mass(Mesh(makers[shape.kind](shape))), shape_mass(shape)
    inscribed = 2e-3  # a polyhedron inside a curved surface; its error shrinks with the square of the edge
    assert got.mass == pytest.approx(want.mass, rel=inscribed)
    np.testing.assert_allclose(got.com, want.com, atol=inscribed)
    np.testing.assert_allclose(got.inertia, want.inertia, atol=inscribed * np.trace(want.inertia))


def test_mesh_turned_inside_out_or_mirrored_keeps_its_mass():
    mesh = trimesh.creation.box(extents=(0.4, 0.6, 1.0))
    inside_out = Mesh((mesh.vertices, mesh.faces[:, ::-1]))
    mirrored = Mesh(mesh, scale=(-1.0, 1.0, 1.0))
    for shape in (inside_out, mirrored):
        assert shape_mass(shape).mass == pytest.approx(240.0, rel=1e-12)


def test_mesh_file_and_scale(tmp_path):
    path = tmp_path / "box.stl"
    trimesh.creation.box(extents=(400, 600, 1000)).export(path)
    got = shape_mass(Mesh(path, scale=0.001))
    assert got.mass == pytest.approx(240.0, rel=1e-6)  # STL files hold single precision


@pytest.mark.parametrize("shape", [Plane(), Heightfield([[0, 0], [0, 0]], 1.0)], ids=["plane", "heightfield"])
def test_static_shapes_have_no_mass(shape):
    with pytest.raises(ValueError, match="it is static"):
        shape_mass(shape)


def test_shapes_are_plain_and_comparable():
    mesh = trimesh.creation.box()
    assert Box(np.array([1, 2, 3])) == Box((1, 2, 3)) == Box([1.0, 2.0, 3.0])
    assert ConvexHull(mesh.vertices) == ConvexHull([list(v) for v in mesh.vertices])
    assert Mesh(mesh) == Mesh((mesh.vertices, mesh.faces))
    assert hash(Sphere(0.1)) == hash(Sphere(0.1))
    assert Sphere(0.1) != Sphere(0.1, friction=0.2)
