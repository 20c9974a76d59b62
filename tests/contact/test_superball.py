"""Tangential restitution through time: Garwin's superball on a plane, in closed form."""

from typing import Any

import numpy as np
import pytest

import carom
from carom.scenes.formats.toml import parse_toml, to_toml
from carom.scenes.regression.invariants import energy_kept, impulses_in_cone

G, R, M, HEIGHT = 9.81, 0.1, 0.7, 0.5
I = 0.4 * M * R**2
V, W = 0.8, 12.0  # at the start, along x and about y
FIRST = np.sqrt(2 * HEIGHT / G)
BOUNCES = 4
RUN: dict[str, Any] = {"duration": FIRST * 2 * BOUNCES, "law": "chatterjee_ruina", "frame_dt": FIRST / 4}


def scene(e_t: float | None = 1.0, of_pair: float | None = None) -> carom.SceneBuilder:
    b = carom.SceneBuilder(gravity=(0, 0, -G))
    how: dict[str, Any] = {"friction": 3.0, "restitution": 1.0, "tangential_restitution": e_t, "material": "rubber"}
    b.add_plane(**how)
    ball = carom.Sphere(R)
    b.add_body("ball", [ball], mass=M, position=(0, 0, R + HEIGHT), linear_velocity=(V, 0, 0),
               angular_velocity=(0, W, 0), **how)  # fmt: skip
    if of_pair is not None:
        b.set_pair("rubber", "rubber", tangential_restitution=of_pair)
    return b


def bounced(e_t: float) -> tuple[np.ndarray, np.ndarray]:
    """Slip before and after each bounce: u = v - R w, K = 1/m + R^2/I, p = -(1 + e_t) u / K."""
    v, w, slips = V, W, []
    for _ in range(BOUNCES):
        u = v - R * w
        p = -(1 + e_t) * u / (1 / M + R**2 / I)
        v, w = v + p / M, w - R * p / I
        slips.append((u, v - R * w))
    return np.array(slips), np.array([v, w])


@pytest.mark.parametrize("e_t", [1.0, 0.6])
def test_a_superball_bounces_in_closed_form(e_t: float) -> None:
    result = carom.rollout(*carom.compile_scene(scene(e_t)), **RUN)
    slips, (v, w) = bounced(e_t)
    log = result.events
    assert int(log.count) == BOUNCES
    np.testing.assert_allclose(log.t[:BOUNCES], FIRST * (1 + 2 * np.arange(BOUNCES)), atol=1e-9)
    # A is the ground: its velocity against the ball's, in a frame of its own
    before, after = (np.linalg.norm(x[:BOUNCES, :2], axis=-1) for x in (log.u_before, log.u_after))
    np.testing.assert_allclose(before, abs(slips[:, 0]), atol=1e-12)
    np.testing.assert_allclose(after, abs(slips[:, 1]), atol=1e-12)
    np.testing.assert_allclose(np.asarray(result.state.v)[[1, 3]], [w, v], atol=1e-9)
    if e_t == 1:
        np.testing.assert_allclose(log.energy_after[:BOUNCES], log.energy_before[:BOUNCES], rtol=1e-12)
        np.testing.assert_allclose(np.asarray(result.state.v)[[1, 3]], [W, V], atol=1e-9)  # after two it is as it was


def test_its_books_are_right() -> None:
    recording = carom.record(scene().build(), **RUN)
    energy_kept(recording).check()
    impulses_in_cone(recording).check()
    assert parse_toml(to_toml(scene().build()), "scene.toml") == scene().build()


def test_pairs_take_the_smaller_or_what_a_rule_says() -> None:
    assert carom.compile_scene(scene(None))[0].pair_tangential_restitution.tolist() == [0.0]
    model, state = carom.compile_scene(scene(None, of_pair=0.6))
    assert model.pair_tangential_restitution.tolist() == [0.6]
    lanes = carom.rollout(
        carom.compile_scene(scene(0.3))[0].replace(tangential_restitution=np.array([[0.6, 1.0], [1.0, 1.0]])),
        carom.tile(state, 2), **RUN,
    )  # fmt: skip
    for lane, e_t in enumerate((0.6, 1.0)):
        np.testing.assert_allclose(np.asarray(lanes.state.v)[lane, [1, 3]], bounced(e_t)[1][::-1], atol=1e-9)


def test_a_law_that_would_not_read_it_is_refused() -> None:
    model, state = carom.compile_scene(scene())
    others: tuple[dict[str, Any], ...] = (
        {"duration": 1.0},
        {"duration": 1.0, "law": "newton"},
        RUN | {"impacts": "simultaneous"},
    )
    for how in others:
        with pytest.raises(ValueError, match=r"tangential_restitution, which law=.* use law='chatterjee_ruina'"):
            carom.rollout(model, state, **how)
    with pytest.raises(ValueError, match="use law='chatterjee_ruina'"):
        carom.step(model, state, dt=0.1)
    with pytest.raises(carom.SceneError, match=r"tangential_restitution is 1\.5; it must lie between -1 and 1"):
        carom.compile_scene(scene(1.5))
