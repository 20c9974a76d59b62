"""The velocity-product part of contacts' accelerations, and how contacts move, against what the detector says along the
motion itself.

With constant joint velocities q(t) moves as dv/dt = 0 says, so the second derivative of the pair's gap is b_n, and the
velocity of the one point that follows the contact has the derivative b_t. Both are taken by differences, as are the
rates of the contact's point and normal.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.contact.contact_derivative import with_migration
from carom.contact.contact_jacobian import jacobian_at, relative_velocity
from carom.contact.curvature import BRIEF, contact_kinematics
from carom.contact.determine import determine
from carom.engine.algebra.rotation import Quat
from carom.engine.algebra.vec3 import Vec3
from carom.engine.dynamics.kinematics import coordinate_rates
from carom.engine.dynamics.trees import to_blocks, trees_of
from carom.tests.oracles.placements import HULLS, random_quaternion

LANES = 24
STEP = 1e-3  # [s]
# [m/s^2], where accelerations are some 10. Points in closed form; points good to 5e-6 of the size, over STEP
ROUNDING, SEARCHED = 1e-5, 1e-2
CURVED = 0.05  # part of the distance between differences over one and two steps that Richardson's may still err by
KINK = 2e-3  # of an acceleration: what lies farther apart has one
KINKS = 0.3  # of the lanes at most may meet another feature within two steps, which differences cannot tell

SHAPES = {
    "sphere": lambda **at: carom.Sphere(0.4, **at),
    "capsule": lambda **at: carom.Capsule(0.25, 0.4, **at),
    "box": lambda **at: carom.Box((0.5, 0.4, 0.3), **at),
    "cylinder": lambda **at: carom.Cylinder(0.4, 0.3, **at),
    "ellipsoid": lambda **at: carom.Ellipsoid((0.5, 0.35, 0.25), **at),
    "hull": lambda **at: carom.ConvexHull(0.5 * HULLS["hull"], **at),
    "prism": lambda **at: carom.ConvexHull(0.5 * HULLS["prism6"], **at),
    "belt": lambda **at: carom.Box((9.0, 9.0, 1.0), **at),
}
QUICK = (
    ("plane", "capsule"), ("plane", "box"), ("plane", "cylinder"), ("plane", "ellipsoid"), ("belt", "sphere"),
    ("sphere", "sphere"), ("sphere", "box"),
)  # fmt: skip
EDGES = (("box", "box"), ("sphere", "hull"))
RIMS = (("cylinder", "cylinder"),)


@jax.jit
def _follow(model, q, v):
    near = carom.detect(model, q, margin=np.inf)
    contacts = determine(model, q, near, envelope=np.inf)
    rows = jacobian_at(model, q, contacts)
    u = relative_velocity(rows, to_blocks(trees_of(model.topology), v))
    kinematics = contact_kinematics(model, q, v, contacts, rows)
    pairs = range(len(model.topology.pairs))
    best = [jnp.where(contacts.active & (contacts.pair == k), contacts.gap, np.inf).argmin(0) for k in pairs]

    def of(x):
        return jnp.stack([jnp.take_along_axis(x, row[None], 0)[0] for row in best], -1)

    def vector(x):
        return jnp.stack([of(c) for c in x.xyz], -1)

    F = contacts.frame
    frame = jnp.stack([vector(row) for row in F.rows], -2)
    moves = (vector(x) for x in (contacts.point, kinematics.point, kinematics.normal))
    return vector(kinematics.b), of(contacts.gap), frame, vector(F.T @ u), *moves


def follow(model, q, v):
    """Of each pair's closest row (lanes, pairs): b, gap, frame (3, 3), u in world axes, point, and what is said of how
    point and normal move."""
    return tuple(np.asarray(x, np.float64) for x in _follow(model, jnp.asarray(q), jnp.asarray(v)))


def differences(model, q, v):
    """b and the rates of point and normal (lanes, pairs, 9) of one program; the same by differences (Richardson's);
    and how far two of these differ."""
    at = {k: follow(model, carom.integrate_q(model, q, v, k * STEP), v) for k in (-2, -1, 0, 1, 2)}
    b, gap, frame, *_ = at[0]

    def over(k):
        normal = (at[k][1] - 2 * gap + at[-k][1]) / (k * STEP) ** 2
        tangent = np.einsum("...ij,...j->...i", frame, at[k][3] - at[-k][3]) / (2 * k * STEP)
        moves = [(at[k][n] - at[-k][n]) / (2 * k * STEP) for n in (2, 4)]
        return np.concatenate([tangent[..., :2], normal[..., None], moves[1], moves[0][..., 2, :]], -1)

    one, two = over(1), over(2)
    return np.concatenate([b, *at[0][5:]], -1), (4 * one - two) / 3, np.abs(one - two)


def agree(model, q, v, names, tolerance):
    b, want, apart = differences(model, q, v)
    assert np.isfinite(b).all()
    for k, name in enumerate(names):
        smooth = (apart[:, k] < KINK * (1 + np.abs(want[:, k]).max(-1, keepdims=True))).all(-1)
        assert smooth.mean() >= 1 - KINKS, (name, smooth.mean())
        assert np.abs(want[smooth, k, :3]).max(0).min() > 0.5, f"{name}: nothing to see"
        wrong = np.abs(b - want)[:, k] - CURVED * apart[:, k] - tolerance * (1 + 0.1 * np.abs(want[:, k]))
        worst = np.unravel_index(np.where(smooth[:, None], wrong, -np.inf).argmax(), wrong.shape)
        assert wrong[worst] <= 0, (name, worst, b[worst[0], k], want[worst[0], k], apart[worst[0], k])


# -- free bodies ----------------------------------------------------------------------------------------


def pairs(names):
    """A model of pairs of bodies that meet nobody else, their shapes turned and off the bodies' origins; which links
    meet in each row of `topology.pairs`, and the row's name."""
    rng = np.random.default_rng(0)
    b = carom.SceneBuilder()
    for k, (first, second) in enumerate(names):
        only: Any = {"group": 1 << k, "mask": 1 << k}
        off = [{"position": rng.normal(size=3) * 0.1, "quaternion": random_quaternion(rng)} for _ in range(2)]
        if first == "plane":
            b.add_plane(**only)
        elif first == "belt":
            b.add_static(
                f"{k}a", [SHAPES[first](position=(0, 0, -1), **only)],
                linear_velocity=(0.7, -0.4, 0), angular_velocity=(0, 0, 1.5),
            )  # fmt: skip
        else:
            b.add_body(f"{k}a", [SHAPES[first](**off[0], **only)], mass=1.0)
        b.add_body(f"{k}b", [SHAPES[second](**off[1], **only)], mass=1.0)
    model, _ = carom.compile_scene(b.build())
    topology = model.topology
    links = [tuple(topology.shape_links[s] for s in pair) for pair in topology.pairs]
    return model, links, ["-".join(names[int(topology.names[max(pair)][:-1])]) for pair in links]


def placed(model, links, rng):
    """q (lanes, nq) where each pair just touches, v (lanes, nv) of turning and sliding but no approach.

    Bodies come together in random directions (not along the normals: corners would meet corners).
    """
    n = model.topology.n_links
    q, v = np.zeros((LANES, n, 7)), rng.normal(size=(LANES, n, 6)) * ([2.0] * 3 + [1.0] * 3)
    q[..., 3:] = [[random_quaternion(rng) for _ in range(n)] for _ in range(LANES)]
    way = rng.normal(size=(LANES, len(links), 3))
    way /= np.linalg.norm(way, axis=-1, keepdims=True)
    for k, pair in enumerate(links):
        if min(pair) < 0:
            way[:, k] = (0, 0, 1)
            q[:, max(pair), :2] = rng.normal(size=(LANES, 2))
        q[:, max(pair), :3] += 1.6 * way[:, k]
    for _ in range(10):
        _, gap, frame, u, *_ = follow(model, q.reshape(LANES, -1), v.reshape(LANES, -1))
        for k, (a, b) in enumerate(links):
            n_moving = frame[:, k, 2] * (1 if a > b else -1)
            along = (n_moving * way[:, k]).sum(-1, keepdims=True)
            q[:, max(a, b), :3] -= way[:, k] * gap[:, k, None] / along
            v[:, max(a, b), 3:] -= frame[:, k, 2] * (u[:, k] * n_moving).sum(-1, keepdims=True)
    assert np.abs(gap).max() < 1e-7
    return q.reshape(LANES, -1), v.reshape(LANES, -1)


def check(names, tolerance):
    model, links, labels = pairs(names)
    q, v = placed(model, links, np.random.default_rng(1))
    agree(model, q, v, labels, tolerance)


def test_free_bodies():
    """Points, edges, faces, rims and round sides on a plane; a ball on a belt that turns; B moving as well as A."""
    check(QUICK, ROUNDING)


SIZED = (
    ("sphere", "cylinder"), ("capsule", "box"), ("box", "box"), ("box", "cylinder"), ("box", "ellipsoid"),
    ("capsule", "hull"), ("cylinder", "cylinder"), ("cylinder", "ellipsoid"), ("ellipsoid", "ellipsoid"),
)  # fmt: skip


@pytest.mark.slow
def test_derivatives_as_shapes_grow():
    """Of gaps, points and normals, by all sizes at once, against differences."""
    model, links, names = pairs(SIZED)
    q, _ = (jnp.asarray(x) for x in placed(model, links, np.random.default_rng(1)))
    rate = jnp.asarray(np.random.default_rng(2).uniform(-1, 1, model.shape_size.shape)) * (model.shape_size > 0)

    def closest(size):
        """Gap, normal and point (lanes, pairs, 7) of the closest contact of each pair."""
        changed = model.replace(shape_size=size)
        found = determine(changed, q, carom.detect(changed, q, margin=np.inf), envelope=np.inf)
        found = with_migration(changed, q, found)
        numbers = jnp.stack([found.gap, *found.frame.rows[2].xyz, *found.point.xyz], -1)
        rows = [jnp.where(found.active & (found.pair == k), found.gap, np.inf).argmin(0) for k in range(len(SIZED))]
        return jnp.stack([jnp.take_along_axis(numbers, row[None, :, None], 0)[0] for row in rows], 1)

    run = jax.jit(closest)
    slope = np.asarray(jax.jit(lambda x, d: jax.jvp(closest, (x,), (d,))[1])(model.shape_size, rate))
    one, two = (
        np.asarray(run(model.shape_size + h * rate) - run(model.shape_size - h * rate)) / (2 * h) for h in (1e-4, 2e-4)
    )
    smooth = (abs(one - two) < KINK * (1 + abs(two).max(-1, keepdims=True))).all(-1)
    for k, name in enumerate(names):
        on = smooth[:, k]
        assert on.mean() > 1 - KINKS, name
        assert abs(one[on, k, 0]).max() > 0.5, f"{name}: nothing to see"
        np.testing.assert_allclose(slope[on, k, 0], one[on, k, 0], atol=1e-6, err_msg=name)
        np.testing.assert_allclose(slope[on, k, 1:], one[on, k, 1:], atol=SEARCHED, err_msg=name)


@pytest.mark.slow
def test_corners_and_edges():
    check(EDGES, ROUNDING)


def test_derivatives_of_contacts_that_were_searched_for():
    """They are the velocities of contact kinematics, which the other tests check: as bodies move, and as shapes move
    over their bodies just as the bodies could carry them."""
    model, links, _ = pairs(EDGES)
    q, v = (jnp.asarray(x) for x in placed(model, links, np.random.default_rng(1)))
    shift = jnp.asarray(np.random.default_rng(2).normal(size=(LANES, model.topology.n_links, 3)))
    turn = jax.vmap(jax.vmap(lambda x: Quat.of_array(x).matrix()))(q.reshape(LANES, -1, 7)[..., 3:])
    carried = jnp.stack((turn @ Vec3.of(shift)).xyz, -1)
    carried = jnp.concatenate([jnp.zeros_like(carried), carried], -1).reshape(LANES, -1)
    shapes = shift[:, jnp.asarray(model.topology.shape_links)]

    def contacts(model, q):
        found = determine(model, q, carom.detect(model, q, margin=np.inf), envelope=np.inf)
        return found, with_migration(model, q, found)

    @jax.jit
    def rates(model, q, v, shapes):
        """Of all points and normals: velocities by contact kinematics, derivatives along v and as shapes shift."""
        found, _ = contacts(model, q)
        rows, n = jacobian_at(model, q, found), found.frame.rows[2]
        moves = contact_kinematics(model, q, v, found, rows)
        u_n = relative_velocity(rows, to_blocks(trees_of(model.topology), v), every=True).z
        point = jax.tree.map(lambda x: jnp.where(found.active, x, 0), moves.point - n * (u_n * 0.5))  # in the middle

        def derivative(of, x, dx):
            d = jax.jvp(lambda x: contacts(*of(x))[1], (x,), (dx,))[1]
            return jax.tree.map(lambda y: jnp.where(found.active, y, 0), (d.point, d.frame.rows[2]))

        along = derivative(lambda q: (model, q), q, coordinate_rates(model, q, v))
        own = jnp.broadcast_to(model.shape_position, shapes.shape)
        return (
            (point, moves.normal),
            along,
            derivative(lambda p: (model.replace(shape_position=p), q), own, shapes),
        )

    for speed in (v, carried):
        expected, along, shifted = (jax.tree.leaves(x) for x in rates(model, q, speed, shapes))
        assert min(float(abs(x).max()) for x in expected) > 0.1
        for x, y in zip(expected, along if speed is v else shifted, strict=True):
            np.testing.assert_allclose(y, x, atol=1e-9)


@pytest.mark.slow
def test_rims_that_cross():
    check(RIMS, SEARCHED)


# -- trees ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_links_of_trees():
    """Two links of one tree, and one of them with a free body. The spheres are as large as makes them touch."""
    b = carom.SceneBuilder()
    one: Any
    other: Any
    one, other = ({"group": k, "mask": k} for k in (1, 2))
    common = {"mass": 1.0, "inertia": (0.1, 0.1, 0.1)}
    b.add_link(
        "root",
        joint=carom.Revolute(axis=(0, 1, 0)),
        shapes=[carom.Sphere(0.3, position=(0.1, 0, 0.2), **one)],
        **common,
    )
    b.add_link("middle", "root", joint=carom.Spherical(), position=(0.8, 0, 0), **common)
    ball = [carom.Sphere(0.3, position=(0.1, 0.3, 0), **one), carom.Sphere(0.3, position=(-0.4, 0, 0.1), **other)]
    b.add_link(
        "tip", "middle", joint=carom.Screw(axis=(0, 0, 1), pitch=0.2), position=(0, 0.8, 0), shapes=ball, **common
    )
    b.add_body("free", [carom.Capsule(0.2, 0.5, position=(0, 0, 0.1), **other)], mass=1.0, position=(2, 0, 0))
    model, state = carom.compile_scene(b.build())
    topology, rng = model.topology, np.random.default_rng(2)
    assert topology.shape_kinds == ("sphere", "sphere", "sphere", "capsule")
    assert topology.pairs == ((0, 1), (2, 3))
    q = np.array(
        carom.integrate_q(model, np.tile(state.q, (LANES, 1)), rng.normal(size=(LANES, topology.nv)) * 0.5, 1.0)
    )
    three = rng.normal(size=(3, LANES, topology.nv))
    told = [follow(model, q, v) for v in three]
    size = np.tile(np.asarray(model.shape_size), (LANES, 1, 1))
    size[:, 1:3, 0] += told[0][1]  # the first pair's second sphere, the second pair's first
    assert (size[:, 1:3, 0] > 0.02).mean() > 0.9
    size[:, :, 0] = np.maximum(size[:, :, 0], 0.02)
    model = model.replace(shape_size=jnp.asarray(size))
    # of three velocities one without approach at either
    told = [follow(model, q, v) for v in three]
    approach = np.stack([np.einsum("lpi,lpi->lp", u, frame[:, :, 2]) for _, _, frame, u, *_ in told], -1)
    null = np.linalg.svd(approach)[2][:, 2]
    v = np.einsum("kli,lk->li", three, null)
    agree(model, q, v, ("in the tree", "with a free body"), ROUNDING)


# -- a wheel ------------------------------------------------------------------------------------------------


@functools.cache
def wheel():
    b = carom.SceneBuilder()
    b.add_plane()
    b.add_body("wheel", [carom.Cylinder(0.5, 0.1)], mass=1.0, position=(0, 0, 0.5))
    return carom.compile_scene(b.build())


@jax.jit
def _of_wheel(model, q, v, h, lost):
    def b_of(q, v):
        near = carom.detect(model, q)
        nan = {name: jnp.where(lost, np.nan, getattr(near, name)) for name in ("gap", "normal", "point_a", "point_b")}
        contacts = determine(model, q, near._replace(active=near.active & ~lost, **nan))
        b = contact_kinematics(model, q, v, contacts, jacobian_at(model, q, contacts), h / BRIEF).b
        return jnp.stack(b.xyz, -1), contacts

    b, slope, contacts = jax.jvp(b_of, (q, v), (jnp.cos(q), jnp.cos(v)), has_aux=True)
    return b, contacts, slope


def of_wheel(q, v, h=0.0, lost=False):
    """b (C, 3), the contacts, and the slope of b some way; lost: none is active, and all they say is NaN."""
    return _of_wheel(wheel()[0], jnp.array(q), jnp.array(v), h, lost)


UPRIGHT = (0.0, 0, 0.5, np.sqrt(0.5), np.sqrt(0.5), 0, 0)


def test_a_wheel_that_rolls_upright_has_none():
    b, contacts, _ = of_wheel(UPRIGHT, (0, 6.0, 0, 3.0, 0, 0))
    assert contacts.active.sum() == 2
    np.testing.assert_allclose(b, 0, atol=1e-12)


@pytest.mark.parametrize("lean", [0.0, 1e-3])
def test_a_disc_that_stands_and_rocks_keeps_its_rows(lean):
    """Each point of the rim has w x (w x r), whatever a lean of rounding, or of a step's turning, says of its rim."""
    w = np.array([0.3, -0.2, 0.5])
    origin = [0, 0, 0.1 * np.cos(lean) + 0.5 * np.sin(lean)]
    b, contacts, _ = of_wheel([*origin, np.cos(lean / 2), np.sin(lean / 2), 0, 0], [*w, 0, 0, 0], 1 / 240)
    on = np.asarray(contacts.active)
    assert on.sum() == (1 if lean else 4)
    r = np.stack(contacts.point.xyz, -1) - origin
    F = np.stack([np.stack(row.xyz, -1) for row in contacts.frame.rows], 1)
    want = -np.einsum("cij,cj->ci", F, np.cross(w, np.cross(w, r)))  # A is the plane
    np.testing.assert_allclose(b[on], want[on], atol=1e-9)


def test_contacts_run_around_rims_at_any_speed():
    """Also if they run past the shapes within a step, as no contact does along a straight edge."""
    w = np.array([1.2, -0.8, 0.5])
    lean = 0.01
    q = (0, 0, 0.1 * np.cos(lean) + 0.5 * np.sin(lean), np.cos(lean / 2), np.sin(lean / 2), 0, 0)
    v = (*w, 0, 0, 0)
    soon, contacts, _ = of_wheel(q, v)
    late, *_ = of_wheel(q, v, BRIEF / 60)
    on = np.asarray(contacts.active)
    assert on.sum() == 1
    speed = 0.5 * np.linalg.norm(w[:2]) / lean  # of the contact around the rim, about
    assert speed > 2 * 60 * np.hypot(0.5, 0.1)
    assert np.abs(soon[on]).max() > 20
    np.testing.assert_allclose(late[on], soon[on], rtol=1e-12)


def test_inactive_rows_are_zero_and_have_derivatives():
    for lost in (True, False):
        b, contacts, slope = of_wheel(UPRIGHT, (0.1, 6.0, 0, 3.0, 0, 0), lost=lost)
        assert contacts.active.any() != lost
        assert np.isfinite(slope).all()
        assert np.any(b) != lost
