"""The results of a program as a few arrays, one per kind of number: forty arrays take longer than many programs run."""

from __future__ import annotations

import collections
import functools
import json
import math
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from . import structure


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class JoinedResults:
    """Joined results.  arrays: by kind, (n,) one result after the other.  layout: as JSON, the results' structure, and
    the kind and the shape of each."""

    arrays: dict[str, Array]
    layout: str = field(metadata={"static": True})


def join_results(results: Any) -> JoinedResults:
    """Join, in a program, results of any structure that `structure.py` can write."""
    leaves, tree = jax.tree.flatten(results)
    parts: dict[str, list[Array]] = {}
    for x in leaves:
        parts.setdefault(x.dtype.name, []).append(x.reshape(-1))
    kinds = [(x.dtype.name, x.shape) for x in leaves]
    arrays = {kind: jnp.concatenate(some) for kind, some in parts.items()}
    return JoinedResults(arrays, json.dumps([structure.write(tree), kinds]))


def split_results(given: JoinedResults) -> Any:
    """Split, outside of a program, into the original results, with arrays of numpy."""
    tree, parts = _read(given.layout)
    arrays = {kind: np.asarray(x) for kind, x in given.arrays.items()}
    return jax.tree.unflatten(tree, [arrays[kind][part].reshape(shape) for kind, part, shape in parts])


@functools.cache
def _read(layout: str) -> tuple[Any, list[tuple[str, slice, tuple[int, ...]]]]:
    tree, kinds = json.loads(layout)
    at, parts = collections.Counter[str](), []
    for kind, shape in kinds:
        parts.append((kind, slice(at[kind], at[kind] + math.prod(shape)), tuple(shape)))
        at[kind] += math.prod(shape)
    return structure.read(tree), parts
