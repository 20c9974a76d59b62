"""What overlaps at the start is said, with names and depth, and what only touches is not."""

import warnings
from typing import Any

import numpy as np
import pytest

import carom
from carom.collision.detect import detect
from carom.collision.shapes import Shape
from carom.scenes.compiling.link_poses import link_poses
from carom.scenes.compiling.overlaps import COUNTED, NAMED, overlaps
from carom.scenes.library.registry import SCENES
from carom.tests.oracles.random_trees import Recipe, random_q, random_tree

TURN = (np.cos(0.4), 0.3, 0.2, 0.1)
TURNED = tuple(np.array(TURN) / np.linalg.norm(TURN))
CORNERS = ((0.1, 0, 0), (-0.1, 0.1, 0), (-0.1, -0.1, 0), (0, 0, 0.15))
SHAPES: dict[str, Shape] = {
    "sphere": carom.Sphere(0.1), "box": carom.Box((0.1, 0.15, 0.05)), "capsule": carom.Capsule(0.06, 0.1),
    "cylinder": carom.Cylinder(0.1, 0.05), "ellipsoid": carom.Ellipsoid((0.1, 0.07, 0.05)),
    "hull": carom.ConvexHull(CORNERS),
}  # fmt: skip


def two(a: Any, b: Any, height: float = 0.12) -> carom.SceneBuilder:
    made = carom.SceneBuilder()
    made.add_static("ground", [carom.Box((1, 1, 0.1))], position=(0, 0, -3))
    made.add_body("one", [a], position=(0, 0, 0))
    made.add_body("other", [b], position=(0.02, 0.03, height), quaternion=TURNED)
    return made


def told(scene: Any, **how: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", carom.SceneWarning)
        carom.compile_scene(scene, **how)
    return [str(one.message) for one in caught if issubclass(one.category, carom.SceneWarning)]


def test_names_and_depth() -> None:
    b = two(SHAPES["box"], carom.Sphere(0.1), 0.1)
    b.add_plane(offset=-0.055)
    (text,) = told(b)
    assert 'body "one" and body "other" by 0.05 m' in text
    assert "exclude the pair, or compile with overlaps='ignore'" in text
    assert not told(b, overlaps="ignore")
    b.exclude("one", "other")
    assert not told(b)
    with pytest.raises(carom.SceneError, match="overlaps is 'no'; it must be 'warn' or 'ignore'"):
        carom.compile_scene(b, overlaps="no")


def test_a_crowd_is_not_counted_to_its_end() -> None:
    b = carom.SceneBuilder()
    for k in range(150):
        b.add_body(f"ball{k}", [carom.Sphere(0.1)], mass=1.0)
    (text,) = told(b)
    assert f"; and at least {COUNTED - NAMED} more pairs. They come" in text
    assert 'body "ball0" and body "ball1" by 0.2 m; ' in text


@pytest.mark.parametrize("a", SHAPES)
@pytest.mark.parametrize("height", [0.02, 0.12])
def test_depths_are_those_of_the_detector(a: str, height: float) -> None:
    """Closed forms, and climbs to 1 % of the size."""
    for b in SHAPES:
        model, state = carom.compile_scene(two(SHAPES[a], SHAPES[b], height), overlaps="ignore")
        gap = detect(model, state.q, backend="fcl").gap
        expected = float(np.min(np.asarray(gap)))
        found = overlaps(model, np.asarray(state.q))
        if expected < -0.002:
            ((_, _, depth),) = found
            assert depth == pytest.approx(-expected, abs=2e-3)
        elif expected > 0:
            assert not found


@pytest.mark.parametrize("kind", SHAPES)
def test_what_touches_is_not_told(kind: str) -> None:
    """Standing on a plane, lying on a turned box to a part in a thousand."""
    shape = SHAPES[kind]
    low = {"sphere": 0.1, "box": 0.05, "capsule": 0.16, "cylinder": 0.05, "ellipsoid": 0.05, "hull": 0.0}[kind]
    b = carom.SceneBuilder()
    b.add_plane(normal=(0, 1, 2))
    b.add_static("table", [carom.Box((1, 1, 0.2))], position=(0, 9, 0), quaternion=TURNED)
    up = np.array([0, 1, 2]) / np.sqrt(5)
    tilt = (np.cos(np.arctan(0.5) / 2), -np.sin(np.arctan(0.5) / 2), 0, 0)
    b.add_body("first", [shape], position=low * up, quaternion=tilt)
    model, _ = carom.compile_scene(b)
    turn = link_poses(model, np.array([0, 0, 0, *TURNED]))[1][0]
    b.add_body("second", [shape], position=np.array([0, 9, 0]) + (0.2 + low) * turn[:, 2], quaternion=TURNED)
    assert not told(b)
    place = np.array([0, 9, 0]) + (0.2 + low - 0.002) * turn[:, 2] + 0.5 * turn[:, 0]
    b.add_body("third", [shape], position=place, quaternion=TURNED)
    (text,) = told(b)
    assert 'static "table" and body "third" by 0.002 m' in text


@pytest.mark.parametrize("seed", range(3))
def test_forward_kinematics_of_the_host_is_that_of_the_engine(seed: int) -> None:
    rng, model = random_tree(Recipe(seed=seed, links=9))
    q = random_q(rng, model.topology)
    poses = carom.fk(model, q)
    place, turn = link_poses(model, q)
    np.testing.assert_allclose(place, poses.position, atol=1e-12)
    np.testing.assert_allclose(turn, poses.rotation, atol=1e-12)


@pytest.mark.parametrize("name", ["stack", "dominoes", "pool_break", "humanoid", "newtons_cradle", "simbench_666"])
def test_the_library_compiles_without_a_word(name: str) -> None:
    assert not told(SCENES[name].build())


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", SCENES)
def test_all_of_the_library_compiles_without_a_word(name: str) -> None:
    assert not told(SCENES[name].build())
