"""Candidates among all pairs of a group: every bounding sphere against every other, one bit per pair.

The cost is quadratic, but at 0.1 ns per pair on one CPU core it is faster than any sort up to a thousand
shapes and more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from ...engine.algebra.fence import fence
from ...engine.algebra.vec3 import Scalar, Vec3
from ...engine.compaction import WORD


class CullingSphere(NamedTuple):
    """Bounding spheres of shapes: centre in W [m], radius [m] and z axis in W, components (n, *batch)."""

    center: Vec3
    radius: Array
    up: Vec3


def near_matrix(kinds: tuple[str, str], a: CullingSphere, b: CullingSphere, margin: Array) -> Array:
    """Bits (na, words, *batch) uint32: bit k of word w of row i says whether shapes i of A and 32 w + k of B are near.

    a, b: na and nb shapes of these kinds; margin (*batch) [m].
    """
    rows, columns = jax.tree.map(lambda x: x[None], a), jax.tree.map(_by_word, b)
    rule = _SWAPPED[kinds[1]] if kinds[1] in _SWAPPED else _RULES.get(kinds[0], _spheres)
    return jnp.swapaxes(rule(rows, columns, margin), 0, 1)


def within(distance2: Scalar, reach: Scalar) -> Scalar:
    """Return whether distance <= reach, from the square of the distance; widened, so that rounding loses no pair."""
    reach = reach * (1 + 8 * jnp.finfo(reach.dtype).eps)
    return distance2 <= reach * jnp.abs(reach)


def near_spheres(a: CullingSphere, b: CullingSphere, margin: Array) -> Array:
    d = b.center - a.center
    return within(d.dot(d), a.radius + b.radius + margin)


def near_plane(plane: CullingSphere, b: CullingSphere, margin: Array) -> Array:
    return plane.up.dot(b.center - plane.center) <= b.radius + margin


def near_heightfield(field: CullingSphere, b: CullingSphere, margin: Array) -> Array:
    """Heightfields are solid below: their bounding sphere is extended downwards."""
    d = b.center - field.center
    beside = d - field.up * jnp.minimum(field.up.dot(d), 0)
    return within(beside.dot(beside), field.radius + b.radius + margin)


def _by_word(x: Array) -> Array:
    """x (n, *batch) as (32, words, 1, *batch): item 32 w + k at [k, w, 0]; padded with copies of the last."""
    words = -(-len(x) // WORD)
    x = jnp.pad(x, [(0, words * WORD - len(x))] + [(0, 0)] * (x.ndim - 1), mode="edge")
    return jnp.moveaxis(x.reshape(words, WORD, *x.shape[1:]), 1, 0)[:, :, None]


def _word_rule(
    near: Callable[[CullingSphere, CullingSphere, Array], Array], swapped: bool = False
) -> Callable[[CullingSphere, CullingSphere, Array], Array]:
    """Return the rule for rows A and columns B by word, 32 results packed into one word.

    It is written out bit by bit, so that every lane of the processor has a word of its own: a reduction over the 32 was
    vectorised or not (five times slower), depending on the number of shapes. It is fenced: fused into the comparison,
    the computation of the centres would be done once per pair instead of once per shape.
    """

    def pack(rows: CullingSphere, columns: CullingSphere, margin: Array) -> Array:
        words: Any = 0
        for k in range(WORD):
            column = jax.tree.map(lambda x, k=k: x[k], columns)
            near_k = near(column, rows, margin) if swapped else near(rows, column, margin)
            words = words | near_k.astype(jnp.uint32) << k
        return words

    return fence(pack)


_spheres = _word_rule(near_spheres)
# where A, or B, is of an unbounded kind
_RULES = {"plane": _word_rule(near_plane), "heightfield": _word_rule(near_heightfield)}
_SWAPPED = {"plane": _word_rule(near_plane, swapped=True), "heightfield": _word_rule(near_heightfield, swapped=True)}
