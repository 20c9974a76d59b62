"""Bounding balls and boxes, inner balls and reach: against points sampled on the shapes, and closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from carom.collision import bounds
from carom.collision.host import radii
from carom.engine.model import Model
from carom.engine.topology import Topology
from carom.tests.oracles.bare_shapes import BareShape, hull, with_shapes
from carom.tests.oracles.random_trees import random_model, unit

ROUNDING = 1e-12  # relative to lengths of order 1
DENSE = 0.02  # sampled extremes are this close to the true ones (relative): 4000 points on a sphere are 0.03 rad apart
SOLID = ("sphere", "box", "capsule", "cylinder", "ellipsoid", "hull")


def scene(rng: np.random.Generator) -> tuple[Model, list[BareShape]]:
    """A model with two shapes of every solid kind, two meshes, a plane and a heightfield."""
    shapes = []
    for kind in (*SOLID, "mesh") * 2:
        pose = {"position": rng.normal(size=3), "quaternion": unit(rng.normal(size=4))}
        if kind == "hull":
            shapes.append(hull(rng.normal(size=(12, 3)), **pose))
        elif kind == "mesh":
            shapes.append(BareShape(kind, points=rng.normal(size=(9, 3)), **pose))
        else:
            shapes.append(BareShape(kind, rng.uniform(0.2, 1.5, 3), **pose))
    X, Y = np.meshgrid(np.arange(3.0), np.arange(4.0), indexing="ij")
    field = np.stack([X, Y, rng.normal(size=X.shape)], -1).reshape(-1, 3)
    shapes += [BareShape("plane"), BareShape("heightfield", (1, 1, 3), points=field)]
    return with_shapes(random_model(rng, Topology(("a",), (-1,), ("floating",))), shapes), shapes


def surface(shape: BareShape, rng: np.random.Generator, n: int = 4000) -> np.ndarray:
    """(n, 3) points of the shape in its own axes, the outermost among them; vertices for shapes that have some."""
    r, h, _ = shape.size
    d = unit(rng.normal(size=(n, 3)))
    if shape.kind == "sphere":
        return r * d
    if shape.kind == "ellipsoid":
        return d * shape.size
    if shape.kind == "capsule":
        return r * d + np.where(d[:, 2:] > 0, 1, -1) * (0, 0, h)
    if shape.kind == "cylinder":
        flat = unit(d[:, :2]) * r
        return np.column_stack([flat, np.where(d[:, 2] > 0, h, -h)])
    if shape.kind == "box":
        return np.stack(np.meshgrid(*[(-1.0, 1.0)] * 3), -1).reshape(-1, 3) * shape.size
    return np.asarray(shape.points)


def test_radii_on_the_host_are_those_of_the_device(rng):
    model, shapes = scene(rng)
    np.testing.assert_allclose(radii.bounding_radii(model), bounds.bounding_spheres(model).radius, rtol=ROUNDING)
    for i, (shape, radius) in enumerate(zip(shapes, radii.origin_radii(model), strict=True)):
        farthest = 0 if shape.kind == "plane" else np.linalg.norm(surface(shape, rng), axis=1).max()
        assert farthest <= radius + ROUNDING
        assert radius <= farthest * (1 + DENSE), f"shape {i}, {shape.kind}"


def test_balls_and_reach_hold_every_point(rng):
    model, shapes = scene(rng)
    about = rng.normal(size=(len(shapes), 3))
    ball, reach = bounds.bounding_spheres(model), bounds.reach(model, about)
    for i, shape in enumerate(shapes[:-2]):
        points = surface(shape, rng)
        assert np.linalg.norm(points - ball.center[i], axis=1).max() <= ball.radius[i] + ROUNDING, shape.kind
        turned = Rotation.from_quat(np.roll(shape.quaternion, -1)).apply(points) + shape.position
        farthest = np.linalg.norm(turned - about[i], axis=1).max()
        assert farthest <= reach.full[i] + ROUNDING, shape.kind
        loose = 1.5 if shape.kind == "ellipsoid" else 1 + DENSE  # all but the ellipsoid's are exact
        assert reach.full[i] <= farthest * loose, shape.kind
    assert np.isinf(ball.radius[-2])
    assert np.isinf(reach.full[-2:]).all()
    assert np.isfinite(ball.radius[-1])


def support(shape: BareShape, d: np.ndarray) -> np.ndarray:
    """h(d) of unit directions (n, 3) in the shape's axes, about its centre."""
    s = shape.size
    if shape.kind == "sphere":
        return np.full(len(d), s[0])
    if shape.kind == "ellipsoid":
        return np.linalg.norm(d * s, axis=1)
    if shape.kind == "capsule":
        return s[0] + s[1] * abs(d[:, 2])
    if shape.kind == "cylinder":
        return s[0] * np.linalg.norm(d[:, :2], axis=1) + s[1] * abs(d[:, 2])
    return (d @ surface(shape, np.random.default_rng(0)).T).max(1)


@pytest.mark.parametrize("centred", [True, False])
def test_a_small_turn_moves_no_supporting_plane_further_than_the_swing(rng, centred):
    model, shapes = scene(rng)
    here = np.array([s.position for s in shapes])
    about = here if centred else here + 0.5 * rng.normal(size=here.shape)
    swing = bounds.reach(model, jnp.asarray(about)).swing
    angle = 1e-6  # differences below lose less than angle^2/angle: 1e-6 relative
    for i, shape in enumerate(shapes[:-2]):
        # h of the shape seen from the point, before and after the direction (instead of the shape) turns
        rotation = Rotation.from_quat(np.roll(shape.quaternion, -1))
        x = rotation.inv().apply(about[i] - shape.position)
        d = unit(rng.normal(size=(20000, 3)))
        away = unit(np.cross(d, rng.normal(size=d.shape)))
        turned = unit(d + angle * away)
        moved = abs((support(shape, turned) - turned @ x) - (support(shape, d) - d @ x)).max() / angle
        assert moved <= swing[i] * (1 + 1e-5) + 1e-8, shape.kind  # rounding of h is 1e-16/angle
        if shape.kind in ("sphere", "capsule", "ellipsoid", "cylinder") and centred:
            assert moved >= 0.9 * swing[i], shape.kind  # and these are the least possible


def test_boxes_touch_the_posed_shapes(rng):
    model, shapes = scene(rng)
    p, R = rng.normal(size=(len(shapes), 3)), Rotation.from_quat(rng.normal(size=(len(shapes), 4))).as_matrix()
    lo, hi = bounds.bounding_boxes(model, jnp.asarray(p), jnp.asarray(R))
    for i, shape in enumerate(shapes[:-2]):
        extent = np.array([support(shape, sign * R[i]) for sign in (1, -1)])
        np.testing.assert_allclose(hi[i], p[i] + extent[0], rtol=0, atol=ROUNDING, err_msg=shape.kind)
        np.testing.assert_allclose(lo[i], p[i] - extent[1], rtol=0, atol=ROUNDING, err_msg=shape.kind)
        points = surface(shape, rng) @ R[i].T + p[i]
        assert (points >= np.asarray(lo[i]) - ROUNDING).all()
        assert (points <= np.asarray(hi[i]) + ROUNDING).all()
    assert np.isinf(lo[-2:]).any()
    assert not np.isnan(np.concatenate([lo, hi])).any()


def test_level_ground_is_unbounded_below_only(rng):
    model, shapes = scene(rng)
    n = len(shapes)
    lo, hi = bounds.bounding_boxes(model, jnp.zeros((n, 3)) + 2.0, jnp.broadcast_to(jnp.eye(3), (n, 3, 3)))
    inf, top = np.inf, np.asarray(shapes[-1].points)
    np.testing.assert_array_equal(hi[-2], [inf, inf, 2])
    np.testing.assert_array_equal(lo[-2], [-inf] * 3)
    np.testing.assert_array_equal(lo[-1], [*(top.min(0)[:2] + 2), -inf])
    np.testing.assert_array_equal(hi[-1], top.max(0) + 2)


def test_inner_balls(rng):
    model, shapes = scene(rng)
    for shape, r in zip(shapes, bounds.inradius(model), strict=True):
        s = shape.size
        if shape.kind == "hull":
            points, center = np.asarray(shape.points), np.mean(shape.points, 0)
            corners = [points[list(ring)] for ring in shape.faces]
            normals = [unit(np.cross(b - a, c - a)) for a, b, c in corners]
            least = min(n @ (a - center) for n, (a, _, _) in zip(normals, corners, strict=True))
            assert least > 0
            assert abs(r - least) < ROUNDING
            continue
        wanted = {
            "sphere": s[0],
            "capsule": s[0],
            "cylinder": min(s[:2]),
            "box": min(s),
            "ellipsoid": min(s),
            "mesh": 0,
        }
        assert r == wanted.get(shape.kind, np.inf), shape.kind


def test_inner_ball_of_a_hull_with_faces_of_many_sizes():
    # a prism over a regular hexagon, height 1: rings of 6 and of 4; the apothem is sqrt(3)/2
    angle = np.arange(6) * np.pi / 3
    ring = np.column_stack([np.cos(angle), np.sin(angle)])
    points = np.concatenate([np.column_stack([ring, np.full(6, z)]) for z in (-0.5, 0.5)])
    sides = tuple((k, (k + 1) % 6, 6 + (k + 1) % 6, 6 + k) for k in range(6))
    faces = (tuple(range(5, -1, -1)), tuple(range(6, 12)), *sides)
    bare = random_model(np.random.default_rng(0), Topology(("a",), (-1,), ("floating",)))
    prism = with_shapes(bare, [BareShape("hull", points=points * (1, 1, 4), faces=faces)])
    flat = with_shapes(bare, [BareShape("hull", points=points, faces=faces)])
    unknown = with_shapes(bare, [BareShape("hull", points=points)])
    found = [float(bounds.inradius(m)[0]) for m in (prism, flat, unknown)]
    np.testing.assert_allclose(found, [np.sqrt(3) / 2, 0.5, 0.0], rtol=ROUNDING)


@pytest.mark.slow
def test_parameters_may_be_batched(rng):
    model, _ = scene(rng)
    scale = np.array([1.0, 2.0, 3.0])
    names = ("shape_size", "shape_position", "points")
    many = model.replace(**{name: scale[:, None, None] * np.asarray(getattr(model, name)) for name in names})
    about = rng.normal(size=(model.shape_size.shape[0], 3))
    one, all_ = bounds.inradius(model), bounds.inradius(many)
    np.testing.assert_allclose(all_, scale[:, None] * one, rtol=ROUNDING)
    np.testing.assert_allclose(
        bounds.reach(many, scale[:, None, None] * about).full, scale[:, None] * bounds.reach(model, about).full
    )
    np.testing.assert_allclose(
        bounds.bounding_spheres(many).radius, scale[:, None] * bounds.bounding_spheres(model).radius, rtol=ROUNDING
    )


@pytest.mark.slow
def test_single_precision_stays_single(rng):
    model = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), scene(rng)[0])
    n = model.shape_size.shape[0]
    lo, hi = bounds.bounding_boxes(model, jnp.zeros((n, 3), jnp.float32), jnp.ones((n, 3, 3), jnp.float32))
    out = (bounds.bounding_spheres(model), bounds.inradius(model), bounds.reach(model, jnp.zeros((n, 3), jnp.float32)))
    assert {x.dtype for x in jax.tree.leaves((lo, hi, out))} == {jnp.dtype("float32")}


@pytest.mark.parametrize("mode", [jax.jacfwd, jax.jacrev])
@pytest.mark.slow
def test_derivatives_are_finite_for_shapes_without_size(mode):
    bare = random_model(np.random.default_rng(0), Topology(("a",), (-1,), ("floating",)))
    shapes = [BareShape(kind) for kind in SOLID[:-1]] + [BareShape("mesh", points=np.zeros((3, 3)))]
    model = with_shapes(bare, shapes)
    n = len(shapes)

    def all_bounds(size, about):
        m = model.replace(shape_size=size)
        R = jnp.broadcast_to(jnp.eye(3), (n, 3, 3))
        return (
            bounds.bounding_spheres(m),
            bounds.inradius(m),
            bounds.reach(m, about),
            bounds.bounding_boxes(m, about, R),
        )

    slopes = mode(all_bounds, argnums=(0, 1))(jnp.asarray(model.shape_size), jnp.zeros((n, 3)))
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(slopes))


@pytest.fixture
def rng():
    return np.random.default_rng(7)
