"""Checkpoints: arrays of a run in one file, and back, bit for bit."""

from __future__ import annotations

import json
import zipfile
from os import PathLike, fspath
from typing import Any, TypeVar

import jax
import numpy as np

from ..formats.atomic import replacing
from ..formats.errors import FileError

T = TypeVar("T")
FORM = "carom checkpoint 1"


def save_checkpoint(path: str | PathLike[str], tree: Any) -> None:
    """Write all arrays of `tree` to one file: a State, an environment's EnvState, a learner's parameters, or a tuple or
    dictionary of these.

    After a failure the file is complete or absent. Random keys are kept as keys.
    """
    numbers, keys = {}, {}
    for name, x in _leaves(tree):
        if isinstance(x, jax.Array) and jax.numpy.issubdtype(x.dtype, jax.dtypes.prng_key):
            keys[name] = str(jax.random.key_impl(x))
            x = jax.random.key_data(x)
        numbers[name] = np.asarray(x)
        if numbers[name].dtype.hasobject:
            raise TypeError(f"save_checkpoint: {name} is {type(x).__name__}; it must be an array or a number")
    about = json.dumps({"form": FORM, "keys": keys})
    with replacing(path) as file:
        np.savez(file, **{"about": np.array(about), **{f"at {name}": x for name, x in numbers.items()}})


def load_checkpoint(path: str | PathLike[str], like: T) -> T:
    """Read the file of `save_checkpoint` as a tree like `like`, whose arrays define the shapes and types.

    like: for instance the state that a fresh `env.reset(keys)` gives.
    Raises FileError for a file that is no checkpoint, is cut off, or holds something else.
    """
    path = fspath(path)
    try:
        with np.load(path, allow_pickle=False) as file:
            about = json.loads(str(file["about"]))
            arrays = {name.removeprefix("at "): file[name] for name in file.files if name != "about"}
        if about["form"] != FORM:
            raise ValueError(f"its form is {about['form']!r}")
    except FileNotFoundError:
        raise
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise FileError(path, f"this is no checkpoint of Carom's, or it was cut off ({error})") from None
    wanted = dict(_leaves(like))
    if odd := sorted(wanted.keys() ^ arrays.keys()):
        where = "the file has none" if odd[0] in wanted else "the file has one, and `like` does not"
        raise FileError(path, f"it holds something else: of {odd[0] or 'the array'} {where}")
    leaves = [_restore(path, name, arrays[name], x, about["keys"].get(name)) for name, x in wanted.items()]
    return jax.tree.unflatten(jax.tree.structure(like), leaves)


def _restore(path: str, name: str, x: np.ndarray, like: Any, kind: str | None) -> jax.Array:
    made = jax.random.wrap_key_data(jax.numpy.asarray(x), impl=kind) if kind else jax.numpy.asarray(x)
    like = like if hasattr(like, "dtype") else jax.numpy.asarray(like)
    if (made.shape, made.dtype) != (like.shape, like.dtype):
        has, wants = (f"{x.dtype} {x.shape}" for x in (made, like))
        raise FileError(path, f"{name or 'the array'} is {has} there, and {wants} in `like`")
    return made


def _leaves(tree: Any) -> list[tuple[str, Any]]:
    """Every array by its path in the tree."""
    return [(jax.tree_util.keystr(name), x) for name, x in jax.tree_util.tree_flatten_with_path(tree)[0]]
