"""Proximities: the result of a detector, in the same form for both detectors."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from ..engine.shaped import Bool, Float, Int


class Proximities(NamedTuple):
    """Points of near approach, N rows: their number depends only on the model's topology.

    A pair of shapes has one row, or up to four where flat faces meet; the first is the closest. A is the pair's
    first shape, B its second. Inactive rows hold pair -1, gap inf and zeros.

    pair: row of `topology.pairs`.
    active: whether the row is real.
    gap: signed distance: the distance if separate, minus the depth of penetration if overlapping [m].
    normal: unit, world axes, from B to A.
    point_a, point_b: on the surfaces of A and B, in the world; point_a - point_b = gap normal [m].
    code: a code of `engine.results`.
    needed: candidate pairs found in the fullest group, if the code says that its capacity was exceeded.

    There are two exceptions. If a cylinder or an ellipsoid meets a shape other than a plane, each point is on its
    surface, and their difference is gap normal to 5e-6 of the size. Farther from a heightfield than half a cell, the
    gap is a lower bound of the distance.
    """

    pair: Int[Array, "*batch N"]
    active: Bool[Array, "*batch N"]
    gap: Float[Array, "*batch N"]
    normal: Float[Array, "*batch N 3"]
    point_a: Float[Array, "*batch N 3"]
    point_b: Float[Array, "*batch N 3"]
    code: Int[Array, "*batch"]
    needed: Int[Array, "*batch"]


def rows_at(near: Proximities, order: Array, real: Array) -> Proximities:
    """The rows with these indices (m, *batch), and which of them are real, as `compact` gives them."""
    index, active = (jnp.moveaxis(x, 0, -1) for x in (order, real))
    pair, gap = (jnp.take_along_axis(x, index, -1) for x in (near.pair, near.gap))
    vectors = near.normal, near.point_a, near.point_b
    normal, a, b = (jnp.take_along_axis(x, index[..., None], -2) for x in vectors)
    return Proximities(pair, active, gap, normal, a, b, near.code, near.needed)
