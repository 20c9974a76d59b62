"""Contacts of bodies in a plane: half as many, and the same motion."""

from __future__ import annotations

import numpy as np
import pytest

import carom
from carom.contact.contacts import Contacts
from carom.contact.determine import determine


def tower(plane: str | None, shift: float = 0.0) -> carom.SceneBuilder:
    """Three boxes on each other, the second as deep as shift says."""
    b = carom.SceneBuilder(plane=plane)
    b.add_plane(friction=0.5)
    for k in range(3):
        half = (0.2, 0.2 + shift * (k == 1), 0.2)
        b.add_body(f"box{k}", [carom.Box(half, friction=0.5, restitution=0.2)], position=(0.03 * k, 0, 0.2 + 0.4 * k))
    return b


def active(b: carom.SceneBuilder) -> Contacts:
    model, state = carom.compile_scene(b, dtype=np.float64)
    return determine(model, state.q, carom.detect(model, state.q, margin=1e-6))


@pytest.mark.parametrize("shift", [0.0, 0.05])
def test_a_face_has_two_contacts(shift: float) -> None:
    flat, free = (active(tower(plane, shift)) for plane in ("xz", None))
    pairs, counts = np.unique(free.pair[free.active], return_counts=True)
    assert counts.tolist() == [4, 4, 4]
    mine, halves = np.unique(flat.pair[flat.active], return_counts=True)
    assert mine.tolist() == pairs.tolist()
    assert halves.tolist() == [2, 2, 2]
    for pair in pairs:  # and they are the ends of the face
        ends = np.sort(np.asarray(flat.point.x)[np.asarray(flat.active & (flat.pair == pair))])
        corners = np.asarray(free.point.x)[np.asarray(free.active & (free.pair == pair))]
        np.testing.assert_allclose(ends, (corners.min(), corners.max()), atol=1e-12)


def test_bodies_of_two_planes_keep_theirs() -> None:
    b = carom.SceneBuilder()
    for k, plane in enumerate(("xz", "yz")):
        b.add_body(f"box{k}", [carom.Box((0.2, 0.2, 0.2))], position=(0, 0, 0.4 * k), plane=plane)
    contacts = active(b)
    assert int(contacts.active.sum()) == 4


def slid(name: str) -> carom.SceneBuilder:
    """Two boxes that slide on each other and on the floor, and stop."""
    b = carom.SceneBuilder(plane="xz")
    b.add_plane(friction=0.1)
    for k, v in enumerate((0.4, -0.4)):
        box = carom.Box((0.2, 0.3, 0.2), friction=0.1)
        b.add_body(f"{name}{k}", [box], position=(0, 0, 0.2 + 0.4 * k), linear_velocity=(v, 0, 0))
    return b


def dropped(name: str) -> carom.SceneBuilder:
    """A box that falls on an edge, and bounces and tumbles."""
    b = carom.SceneBuilder(plane="xz")
    b.add_plane(friction=0.4)
    tilted = (np.cos(0.2), 0.0, np.sin(0.2), 0.0)
    b.add_body(name, [carom.Box((0.2, 0.3, 0.1), restitution=0.5, friction=0.4)], position=(0, 0, 1), quaternion=tilted)
    return b


@pytest.mark.parametrize("scene", [slid, dropped])
def test_the_motion_is_that_with_all_contacts(scene, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = []
    for name in ("half", "all"):  # in the topology, so that nothing compiled is used again
        if name == "all":
            monkeypatch.setattr("carom.contact.determine.drop_repeated", lambda _, contacts: contacts)
        model, state = carom.compile_scene(scene(name), dtype=np.float64)
        ran = carom.rollout(model, state, duration=0.8, frame_dt=0.1, max_dt=1 / 240)
        assert int(ran.code) == 0
        assert scene is slid or int(ran.events.count) > 3
        ends.append((np.asarray(ran.q), np.asarray(ran.v)))
    for half, every in zip(*ends, strict=True):
        np.testing.assert_allclose(half, every, atol=1e-6)
