"""The coordinates a scene is compiled to: those of its tree of joints, or maximal ones."""

from __future__ import annotations

from dataclasses import replace

import jax.numpy as jnp

from ...engine.maximal.bodies import bodies_apart
from ...engine.maximal.refusals import refusals
from ...engine.model import Model
from ...engine.state import State
from ..spec import SceneSpec
from . import check

COORDINATES = ("reduced", "maximal", "penalty")


def checked_coordinates(name: str) -> str:
    """Return one of the three names; raise an error that lists them for others."""
    if name not in COORDINATES:
        must = f"it must be one of {', '.join(COORDINATES)}"
        check.reject_name("compile_scene", "coordinates", name, COORDINATES, must)
    return name


def in_coordinates(name: str, scene: SceneSpec, model: Model, state: State) -> tuple[Model, State]:
    """The model and its state in these coordinates; raises SceneError for features that only a tree has."""
    if name == "reduced":
        return model, state
    for refusal in refusals(model):
        check.reject(*refusal)
    if scene.baumgarte is not None:  # a tree without loops has had no use for it
        model = replace(model, baumgarte=jnp.asarray(scene.baumgarte, model.mass.dtype))
    exactly = "projection" if scene.baumgarte is None else "baumgarte"
    return bodies_apart(model, state, hold="penalty" if name == "penalty" else exactly)
