"""A scene as one HTML file that simulates: what `carom export SCENE --page FILE` writes.

The world is a module of WebAssembly, made of the same text as a C library's (`library.py`); what draws it is the page
of a recording (`scenes/show/web/`), whose scene here is the world as it stands.
"""

from __future__ import annotations

import html
import os
from importlib.resources import files
from typing import Any

import numpy as np

from ...engine.native.flushed import flushed
from ...engine.native.portable import objects_joined
from ...engine.native.wasm import TARGET, Module, module_of
from ..formats.atomic import replacing
from ..live.world import Live
from ..show.drawing import drawing_of
from ..show.motion import Hits, Motion
from ..show.page import Block, as_json, drawn, filled, moved, packed_bytes, scripts, style
from .contacts import REALS, WHOLES
from .exported import Exported
from .library import live_of

DRAWING = ("math", "page", "shaders", "renderer", "scene", "camera", "stage")  # of a recording's page
OWN = ("world", "game", "start")
NAME = "world"


def export_page(scene: Any, path: str | os.PathLike[str], *, title: str | None = None, **live: Any) -> None:
    """Write a scene as a page that simulates it, one file that opens without a network.

    scene: a `Live`, or what it takes, then made with the keywords `live`, as for `carom.export_library`.
    title: None takes the scene's name.
    """
    text = game_text(live_of(scene, live), title or (scene if isinstance(scene, str) else "world"))
    with replacing(path) as file:
        file.write(text.encode())


def module(made: Exported) -> Module:
    """The world as WebAssembly."""
    texts = made.texts(TARGET, heap=False)
    exported = [symbol for _, symbols in texts.values() for symbol in symbols]
    return module_of(objects_joined([flushed(text) for text, _ in texts.values()], TARGET), exported)


def game_text(live: Live, title: str) -> str:
    """The whole file."""
    made, block = Exported.of(live, NAME), Block()
    world, motion = module(made), _still(live)
    drawing = drawing_of(live._parts.spec, live.model)
    fields, topology = made.fields, live.model.topology
    data = {
        "title": title, "subtitle": "", "notes": [],
        **drawn(drawing, motion, block), **moved(motion, topology, block),
        "world": {
            "wide": fields.all["q"].start.dtype.itemsize, "heap": world.heap, "save": fields.most, "dt": live.dt,
            "links": topology.n_links, "pairs": len(topology.pairs), "row": WHOLES + REALS,
            "mass": np.asarray(live.model.mass, float).tolist(),
        },
    }  # fmt: skip
    parts = files(__package__ or __name__) / "parts"
    own = "\n".join((parts / f"{name}.js").read_text("utf-8") for name in OWN)
    return filled(
        (parts / "game.html").read_text("utf-8"),
        {
            "title": html.escape(title),
            "style": style() + (parts / "game.css").read_text("utf-8"),
            "script": scripts(DRAWING) + "\n" + own,
            "data": as_json(data),
            "arrays": packed_bytes(bytes(block.bytes)),
            "program": packed_bytes(world.code),
        },
    )


def _still(live: Live) -> Motion:
    """The world at its start, as a recording of one frame."""
    pose = live._parts.start.places.pose
    links = len(pose)
    none, one = np.zeros((0, 3)), np.zeros((1, 1))
    hits = Hits(none[:, 0], np.zeros((0, 2)), none[:, 0], none[:, 0], none, none, none[:, 0], none[:, 0])
    places = pose[None, None, :, :3], pose[None, None, :, 3:]
    return Motion((0,), np.zeros(1), *places, np.zeros((1, 1, links, 3)), one, one, np.ones(1), (hits,))
