"""Contact determination: what touches, at which limits joints stand, what becomes of it."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.contact.contact_jacobian import jacobian_at, relative_velocity
from carom.contact.contacts import tangents
from carom.contact.determine import default_capacity, determine, phases
from carom.engine.algebra.vec3 import Vec3
from carom.engine.dynamics.trees import to_blocks, trees_of
from carom.engine.results import CONTACTS_FULL, OK


@functools.partial(jax.jit, static_argnames="max_contacts")
def found(model, state, max_contacts=None):
    """Contacts of a state and their relative velocities (C, *batch)."""
    contacts = determine(model, state.q, carom.detect(model, state.q, margin=np.inf), max_contacts=max_contacts)
    rows = jacobian_at(model, state.q, contacts)
    return contacts, relative_velocity(rows, to_blocks(trees_of(model.topology), state.v))


def stack(xyz):
    return np.stack([np.asarray(c) for c in xyz.xyz], -1)


def test_contact_frames_are_right_handed_about_any_normal():
    rng = np.random.default_rng(0)
    n = rng.normal(size=(500, 3))
    n = np.concatenate([n / np.linalg.norm(n, axis=1)[:, None], np.eye(3), -np.eye(3)])
    F = np.stack([stack(row) for row in tangents(Vec3.of(jnp.asarray(n))).rows], 1)
    np.testing.assert_allclose(F @ F.swapaxes(1, 2), np.broadcast_to(np.eye(3), F.shape), atol=1e-14)
    np.testing.assert_allclose(np.linalg.det(F), 1, atol=1e-14)
    np.testing.assert_array_equal(F[:, 2], n)


def two_balls(gap=0.0, **second):
    b = carom.SceneBuilder(gravity=(0, 0, 0))
    b.add_body("a", [carom.Sphere(0.5)], mass=1.0, position=(1 + gap, 0, 0), friction=0.4, restitution=0.9)
    b.add_body("b", [carom.Sphere(0.5)], mass=1.0, friction=0.9, restitution=0.3, **second)
    return carom.compile_scene(b.build())


def test_free_bodies_velocities_and_materials():
    """u is A's point less B's, n from B to A; friction the geometric mean, restitution the smaller."""
    model, state = two_balls(linear_velocity=(2, 0.3, 0), angular_velocity=(0, 0, 4))
    contacts, u = found(model, state)
    assert contacts.active.tolist() == [True]
    np.testing.assert_allclose(stack(contacts.frame.rows[2]), [[1, 0, 0]], atol=1e-15)
    np.testing.assert_allclose(stack(contacts.point), [[0.5, 0, 0]], atol=1e-15)
    # B's point moves with (2, 0.3, 0) + (0, 0, 4) x (0.5, 0, 0) = (2, 2.3, 0), A's stands
    np.testing.assert_allclose(stack(contacts.frame.T @ u), [[-2, -2.3, 0]], atol=1e-14)
    np.testing.assert_allclose(contacts.friction, np.sqrt(0.4 * 0.9))
    np.testing.assert_allclose(contacts.restitution, 0.3)


@pytest.mark.parametrize(
    ("gap", "speed", "phase"),
    [
        (0.0, -1.0, "impact"), (-1e-3, -1.0, "impact"), (0.0, 1.0, "separating"), (5e-9, 1.0, "separating"),
        (0.0, 0.0, "resting"), (0.0, -1e-6, "resting"), (5e-9, 1e-6, "resting"), (5e-9, -1.0, None), (2e-8, -1.0, None),
    ],
)  # fmt: skip
def test_phases(gap, speed, phase):
    """Touching within a band of 1e-9 m a fast approach is an impact; what is slow rests, within ten bands."""
    model, state = two_balls(gap, linear_velocity=(-speed, 0, 0))
    contacts, u = found(model, state)
    got = phases(model, contacts, u.z)
    assert [name for name in got._fields if getattr(got, name)[0]] == ([phase] if phase else [])


def arm(q0, v0=(0.0, 0.0)):
    b = carom.SceneBuilder()
    joint = carom.Revolute(axis=(0, 1, 0), limits=(-0.5, 1.0), restitution=0.7)
    common = {"mass": 1.0, "com": (0, 0, -0.5), "inertia": (0.1, 0.1, 0.01)}
    b.add_link("upper", joint=joint, q0=q0[0], v0=v0[0], **common)
    slide = carom.Prismatic(axis=(0, 0, 1), limits=(-0.2, 0.3))
    b.add_link("lower", "upper", joint=slide, position=(0, 0, -1), q0=q0[1], v0=v0[1], **common)
    return carom.compile_scene(b.build())


@pytest.mark.slow
def test_joint_limits_are_contacts():
    """Each limit at which a joint stands is one contact, its normal the way back, without friction."""
    model, state = arm((1.0, -0.2), (0.6, 0.25))
    contacts, u = found(model, state)
    assert contacts.active.tolist() == [True, True]
    assert contacts.dof.tolist() == [0, 1]
    assert contacts.is_limit.all()
    assert contacts.link_a.tolist() == [0, 1]
    assert contacts.link_b.tolist() == [-1, 0]
    np.testing.assert_allclose(u.z, [-0.6, 0.25], atol=1e-15)  # into the upper limit, away from the lower
    np.testing.assert_array_equal(contacts.restitution, [0.7, 0])
    np.testing.assert_array_equal(contacts.friction, 0)
    K = np.linalg.inv(carom.crba(model, state.q)).diagonal()
    np.testing.assert_allclose(jacobian_at(model, state.q, contacts).K.zz, K, rtol=1e-12)


def test_limits_may_differ_by_lane_and_be_added_later():
    model, state = arm((0.2, 0.0))
    assert not found(model, state)[0].active.any()
    upper = jnp.array([[0.2, 0.3], [1.0, 0.0], [1.0, 0.3]])
    contacts, _ = found(model.replace(upper=upper), carom.tile(state, 3))
    assert contacts.active.T.tolist() == [[True, False], [False, True], [False, False]]


def box_on_plane(lanes=None):
    b = carom.SceneBuilder()
    b.add_plane()
    b.add_body("box", [carom.Box((0.5, 0.5, 0.5))], mass=1.0, position=(0, 0, 0.5))
    b.add_body("far", [carom.Box((0.5, 0.5, 0.5))], mass=1.0, position=(5, 0, 0.5))
    return carom.compile_scene(b.build())


@pytest.mark.slow
def test_room_for_contacts():
    """The active ones move to the front; what finds no room is counted, and said."""
    model, state = box_on_plane()
    whole, u = found(model, state)
    assert whole.gap.shape == (12,)  # two boxes on a plane, and one on the other
    assert whole.active.sum() == 8
    assert default_capacity(model.topology) == 32
    packed, v = found(model, state, max_contacts=8)
    assert (packed.code, packed.needed) == (OK, 0)
    assert packed.active.all()
    np.testing.assert_array_equal(stack(v), stack(u)[np.asarray(whole.active)])
    short = found(model, state, max_contacts=5)[0]
    assert (short.code, short.needed, short.active.sum()) == (CONTACTS_FULL, 8, 5)
    lanes = found(model, carom.tile(state, 3), max_contacts=8)[0]
    np.testing.assert_array_equal(lanes.pair, np.tile(packed.pair, (3, 1)).T)


def test_what_is_active_comes_first():
    """Even where there is room for all: rows are looked at up to the last that is active."""
    b, above = carom.SceneBuilder(), "world"
    for k in range(12):
        hinge = carom.Revolute(axis=(0, 1, 0), limits=(-0.5, 0.5))
        angle = {9: 0.5, 11: -0.5}.get(k, 0.0)
        b.add_link(f"link{k}", above, joint=hinge, position=(0, 0, -1), q0=angle, mass=1.0, inertia=(0.1, 0.1, 0.1))
        above = f"link{k}"
    contacts, _ = found(*carom.compile_scene(b.build()), max_contacts=200)
    assert contacts.active.tolist() == [True, True, *[False] * 10]
    assert contacts.dof[:2].tolist() == [9, 11]


def test_driven_static():
    """A turntable's and a conveyor's surface moves in place."""
    b = carom.SceneBuilder()
    moves = {"angular_velocity": (0, 0, 3), "linear_velocity": (0.5, 0, 0)}
    b.add_static("table", [carom.Box((2, 2, 0.1))], position=(1, 0, -0.1), **moves)
    b.add_body("ball", [carom.Sphere(0.2)], mass=1.0, position=(1.4, 0.3, 0.2), linear_velocity=(0.1, 0, 0))
    model, state = carom.compile_scene(b.build())
    assert model.topology.driven
    contacts, u = found(model, state)
    at = [k for k in range(len(contacts.gap)) if contacts.active[k]]
    assert len(at) == 1
    # ball (0.1, 0, 0) less table (0.5, 0, 0) + (0, 0, 3) x (0.4, 0.3, 0) = (-0.4, 1.2, 0)
    want = np.array([0.1 + 0.4, -1.2, 0])
    sign = 1 if model.topology.shape_links[model.topology.pairs[0][0]] >= 0 else -1
    np.testing.assert_allclose(stack(contacts.frame.T @ u)[at[0]], sign * want, atol=1e-12)


@pytest.mark.slow
def test_inactive_rows_may_hold_anything():
    """NaN in a row that is not active stays out of all the others, and out of derivatives."""
    model, state = two_balls(0.5)
    near = carom.detect(model, state.q, margin=np.inf)
    nan = {name: jnp.full_like(getattr(near, name), np.nan) for name in ("gap", "normal", "point_a", "point_b")}
    lost = near._replace(active=near.active & False, **nan)

    def total(q):
        contacts = determine(model, q, lost)
        u = relative_velocity(jacobian_at(model, q, contacts), to_blocks(trees_of(model.topology), state.v))
        return jnp.where(contacts.active, u.z, 0).sum()

    value, slope = jax.value_and_grad(total)(state.q)
    assert value == 0
    assert np.isfinite(slope).all()
    rows = jacobian_at(model, state.q, determine(model, state.q, lost))
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(rows))
