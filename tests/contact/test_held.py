"""Contacts of bodies that loops hold: those that the loop makes immovable carry nothing, the others carry all."""

import jax
import numpy as np
import pytest

import carom
from carom.contact.contact_jacobian import drop_immovable, inverse_mass_matrix, jacobian_at
from carom.contact.determine import determine

LOW, MASS, HALF = 0.02, 2.0, 0.3
PRECISIONS = (np.float32, np.float64)


def tray(joint, lever=(0.0, 0.0, 0.0)) -> carom.SceneBuilder:
    """A tray that lies on the floor and that a loop holds, at a point `lever` from its centre."""
    b = carom.SceneBuilder()
    b.add_plane(friction=0.5)
    b.add_body("tray", [carom.Box((HALF, HALF, LOW))], mass=MASS, position=(0.2, 0.1, LOW), friction=0.5)
    where = np.array([0.2, 0.1, LOW]) + lever
    b.add_loop("tray", tuple(lever), "world", tuple(where), joint=joint, name="hold")
    return b


def inverse(joint, lever, dtype) -> np.ndarray:
    model, state = carom.compile_scene(tray(joint, lever), dtype=dtype)
    return np.asarray(inverse_mass_matrix(model, state.q))[0]


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("radius", [0.0, 0.1, 1.0, 3.0])
def test_what_is_bolted_does_not_move_at_all(radius: float, dtype: type) -> None:
    """3 m are 17 radii of gyration."""
    rng = np.random.default_rng(int(10 * radius))
    for _ in range(3):
        way = rng.normal(size=3)
        lever = radius * way / np.linalg.norm(way)
        np.testing.assert_array_equal(inverse(carom.Fixed(), lever, dtype), 0)


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_what_slides_moves_along_its_guide(dtype: type) -> None:
    axis = np.array([0.48, -0.6, 0.64])
    exact = np.zeros((6, 6))
    exact[3:, 3:] = np.outer(axis, axis) / MASS
    found = inverse(carom.Prismatic(tuple(axis)), (0.3, 0.2, -0.1), dtype)
    np.testing.assert_allclose(found, exact, rtol=0, atol=20 * np.finfo(dtype).eps / MASS)


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize(("axis", "stay"), [((0.6, 0.8, 0.0), 0), ((0.6, 0.79, 0.126), 4)])
def test_contacts_across_a_guide_are_dropped(axis: tuple, stay: int, dtype: type) -> None:
    """The floor's normal is across a level guide, not across one that rises by 7 degrees."""
    guide = tuple(np.array(axis) / np.linalg.norm(axis))
    model, state = carom.compile_scene(tray(carom.Prismatic(guide)), dtype=dtype)
    contacts = determine(model, state.q, carom.detect(model, state.q))
    assert int(contacts.active.sum()) == 4
    rows = jacobian_at(model, state.q, contacts)
    assert int(drop_immovable(model, contacts, rows).active.sum()) == stay


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("lever", [(0.0, 0.0, 0.0), (1e-4, -1e-4, 0.05), (0.6, -0.5, 0.3)])
def test_a_bolted_tray_on_the_floor_bears_its_load(lever: tuple, dtype: type) -> None:
    """Its contacts with the floor carry nothing, and spoil nothing: the load, a crate beside it, and one that falls."""
    b = tray(carom.Fixed(), lever)
    b.add_body("load", [carom.Box((0.1, 0.1, 0.1))], mass=3.0, position=(0.2, 0.1, 2 * LOW + 0.1), friction=0.5)
    b.add_body("crate", [carom.Box((0.1, 0.1, 0.1))], mass=1.0, position=(2, 0, 0.1), friction=0.5)
    b.add_body("ball", [carom.Sphere(0.1)], mass=1.0, position=(0.42, 0.32, 0.5), restitution=0.0)
    model, state = carom.compile_scene(b, dtype=dtype)
    run = carom.rollout(model, state, duration=0.6, frame_dt=0.1)
    assert int(run.code) == carom.Code.OK
    assert int(run.stats.ticks) < 200
    tray_there, load, crate, ball = np.asarray(run.q[-1]).reshape(4, 7)
    start = np.asarray(state.q).reshape(4, 7)
    np.testing.assert_allclose(tray_there, start[0], rtol=0, atol=1e-6)
    np.testing.assert_allclose((load[:3], crate[:3]), start[1:3, :3], rtol=0, atol=1e-5)
    np.testing.assert_allclose(ball[:3], (0.42, 0.32, 2 * LOW + 0.1), rtol=0, atol=1e-5)


def test_it_has_derivatives_where_a_tree_is_shorter_than_another() -> None:
    """A pendulum's block of M^-1 is padded with zeros to that of the tray."""
    b = tray(carom.Prismatic((0.6, 0.8, 0.0)))
    b.add_link(
        "pendulum", joint=carom.Revolute((0, 1, 0)), position=(3, 0, 3), com=(0, 0, -0.5), mass=1.0, inertia=(0, 0, 0)
    )
    model, state = carom.compile_scene(b, dtype=np.float64)
    slope = jax.grad(lambda mass: inverse_mass_matrix(model.replace(mass=mass), state.q).sum())(model.mass)
    assert np.isfinite(slope).all()
    assert float(slope[0]) == pytest.approx(-(1.4**2) / MASS**2)  # of d d^T / m
