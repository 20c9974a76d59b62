"""Pictures of tasks: how much of each pixel is covered."""

import math

import numpy as np
import pytest

from carom.scenes.envs.render import BACKGROUND, picture

BLACK, WHITE = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
LEVEL = 1 / 255  # of a channel: pictures are rounded to it


def covered(*segments, window=(0.0, 4.0, 0.0, 3.0), width=400):
    """(H, W): how much of each pixel the segments, drawn in black on white, cover."""
    ground = (-100.0, 0.0, 100.0, 0.0, 200.0, WHITE)
    image = picture([ground, *((*segment, BLACK) for segment in segments)], window, width=width)
    assert (image == image[:, :, :1]).all()
    return 1 - image[:, :, 0] / 255


@pytest.mark.parametrize("angle", [0.0, 0.3, math.pi / 4, 1.2, math.pi / 2])
@pytest.mark.parametrize("radius", [0.001, 0.004, 0.02, 0.3])
def test_capsules_cover_their_area(angle: float, radius: float) -> None:
    """In sum over the pixels: 2 r L between the ends, and a disc whose edge is one pixel wide, in pixels.

    A diagonal edge meets pixels in steps of 0.7 pixels, and is off by 0.05 pixels at most: |sin(k) / k| / k at
    k = sqrt(2) pi, what such steps let through of an edge."""
    length, pixel = 1.3, 0.01
    x, y = 2.0137, 1.5071
    dx, dy = length / 2 * math.cos(angle), length / 2 * math.sin(angle)
    area = covered((x - dx, y - dy, x + dx, y + dy, radius)).sum()
    r, span = radius / pixel, length / pixel
    disc = math.pi * (r**2 + 1 / 12 if r >= 0.5 else r / 2 + 2 * r**3 / 3)
    lattice = 0.1 + 0.03 * r  # a disc's pixels stand for it less well than a strip's
    rounding = 0.5 * LEVEL * (span + 4 * r)
    edges = 2 * 0.05 * span if angle == math.pi / 4 else 0.0
    assert abs(area - 2 * r * span - disc) < lattice + rounding + edges


def test_edges_on_pixel_borders_are_sharp() -> None:
    """A level bar from row 100 to 120, from which 100 columns are cut."""
    bar = covered((-1.0, 1.9, 5.0, 1.9, 0.1))
    assert bar.shape == (300, 400)
    assert (bar[100:120] == 1).all()
    assert bar.sum() == 20 * 400


def test_pictures_have_their_scenes_symmetry() -> None:
    window = (-2.0, 2.0, -1.5, 1.5)
    half = (0.3, -0.2, 1.1, 0.9, 0.12)
    mirrored = (-0.3, -0.2, -1.1, 0.9, 0.12)
    turned = (-0.3, 0.2, -1.1, -0.9, 0.12)
    image = covered(half, window=window)
    assert 0 < image.sum() < image.size
    np.testing.assert_allclose(image[:, ::-1], covered(mirrored, window=window), atol=LEVEL)
    np.testing.assert_allclose(image[::-1, ::-1], covered(turned, window=window), atol=LEVEL)
    both = covered(half, mirrored, window=window)
    np.testing.assert_allclose(both, both[:, ::-1], atol=2 * LEVEL)


def test_up_is_up_and_what_comes_later_is_in_front() -> None:
    red, blue = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)
    image = picture([(3.0, 2.5, 3.0, 2.5, 0.3, red), (3.0, 2.5, 3.0, 2.5, 0.2, blue)], (0.0, 4.0, 0.0, 3.0))
    assert image.dtype == np.uint8
    assert image.shape == (300, 400, 3)
    assert tuple(image[50, 300]) == (0, 0, 255)
    assert tuple(image[50, 325]) == (255, 0, 0)
    assert tuple(image[250, 300]) == tuple(round(255 * c) for c in BACKGROUND)


def test_what_is_outside_or_nowhere_is_not_drawn() -> None:
    outside = [(9.0, 1.0, 9.0, 2.0, 0.5), (1.0, -3.0, 2.0, -3.0, 1.0), (math.nan, 0.0, 1.0, 1.0, 0.5)]
    assert not covered(*outside).any()
    assert not covered((1e30, 1.0, 1e30, 2.0, 0.5)).any()
