"""Layers: which shapes may touch by their group and mask."""

import itertools

import numpy as np
import pytest

from carom.collision.shapes import ALL_LAYERS, Box, Plane, Sphere
from carom.scenes.builder import SceneBuilder
from carom.scenes.compile import compile_scene
from carom.scenes.compiling.check import SceneError


def pairs_of(layers, plane=None):
    """The pair table of one ball a (group, mask), after a plane with these layers where there is one."""
    b = SceneBuilder()
    if plane is not None:
        b.add_plane(group=plane[0], mask=plane[1])
    for i, (group, mask) in enumerate(layers):
        b.add_body(f"ball {i}", [Sphere(0.1, group=group, mask=mask)])
    return set(compile_scene(b)[0].topology.pairs)


def test_everything_touches_by_default():
    b = SceneBuilder()
    b.add_plane()
    for i in range(3):
        b.add_body(f"ball {i}", [Sphere(0.1)])
    assert set(compile_scene(b)[0].topology.pairs) == set(itertools.combinations(range(4), 2))


def test_two_touch_where_each_is_in_a_layer_of_the_others_mask():
    rng = np.random.default_rng(5)
    layers = rng.integers(0, 8, size=(20, 2)).tolist()  # three layers, so that all of both, one and none are there
    want = {
        (i, j)
        for (i, a), (j, b) in itertools.combinations(enumerate(layers), 2)
        if set(bits(a[0])) & set(bits(b[1])) and set(bits(b[0])) & set(bits(a[1]))
    }
    assert pairs_of(layers) == want
    assert 0 < len(want) < 190  # some pass, some do not


def bits(number):
    return [k for k in range(32) if number >> k & 1]


def test_a_one_sided_mask_is_enough_to_part_two():
    assert pairs_of([(1, 0b10), (0b10, 0b01)]) == {(0, 1)}
    assert pairs_of([(1, 0b10), (0b10, 0b10)]) == set()


def test_the_highest_layer_is_a_layer():
    top = 1 << 31
    assert pairs_of([(top, top), (top, top), (1, ALL_LAYERS)]) == {(0, 1)}


@pytest.mark.parametrize("nothing", [(0, ALL_LAYERS), (1, 0)])
def test_no_layer_touches_nothing(nothing):
    assert pairs_of([nothing, (1, ALL_LAYERS)]) == set()


def test_planes_have_layers():
    assert pairs_of([(1, ALL_LAYERS), (2, ALL_LAYERS)], plane=(4, 0b10)) == {(0, 2), (1, 2)}


def test_shapes_of_one_body_may_differ():
    b = SceneBuilder()
    b.add_static("wall", [Plane(group=2)])
    b.add_body("stick", [Sphere(0.1, mask=2), Box((0.1, 0.1, 0.1), mask=1)])
    assert compile_scene(b)[0].topology.pairs == ((0, 1),)


def test_numpy_integers_are_integers():
    assert pairs_of([(np.int64(2), np.uint32(2**32 - 1)), (2, 2)]) == {(0, 1)}


@pytest.mark.parametrize("field", ["group", "mask"])
@pytest.mark.parametrize("value", [-1, 2**32, 1.0, "1", None, True, float("nan")])
@pytest.mark.parametrize("on", ["shape", "plane"])
def test_what_is_no_set_of_layers_is_rejected(on, field, value):
    b = SceneBuilder()
    b.add_body("ball", [Sphere(0.1, **({field: value} if on == "shape" else {}))])
    if on == "plane":
        b.add_plane(name="floor", **{field: value})
    with pytest.raises(SceneError) as error:
        compile_scene(b)
    text = str(error.value)
    assert ('"ball"' if on == "shape" else '"floor"') in text
    assert f"{field} is {value!r}" in text
    assert "from 0 to 2^32 - 1: give" in text


def test_a_thousand_bodies_compile():
    b = SceneBuilder()
    b.add_plane()
    for i in range(1000):
        b.add_body(f"ball {i}", [Sphere(0.1)], position=(i % 10, i // 10 % 10, 1 + i // 100))
    model, _ = compile_scene(b)
    assert len(model.topology.pairs) == 1001 * 1000 // 2
