"""A scene as one HTML file that simulates it (`carom export SCENE --page FILE`), or a recording as one that replays it,
and goes on from any frame by simulation (`carom run SCENE --take-over`).

The world is a module of WebAssembly, made from the same text as a C library (`library.py`); the page of a
recording (`scenes/show/web/`) draws it, with the present state of the world as its scene.
"""

from __future__ import annotations

import html
import os
from importlib.resources import files
from typing import Any

import numpy as np

from ...engine.native.flushed import flush_denormals
from ...engine.native.portable import link_objects
from ...engine.native.wasm import TARGET, WasmModule, module_of
from ..formats.atomic import replacing
from ..live.debug import trigger_edges
from ..live.world import Live
from ..recordings.recording import Recording
from ..show.drawing import drawing_of
from ..show.motion import Hits, RecordedMotion
from ..show.page import (
    Block,
    as_json,
    drawing_data,
    fill_gaps,
    frames_apart,
    motion_data,
    packed_bytes,
    page_of,
    replay_data,
    scripts,
    style,
)
from ..sources import SceneLike
from .contacts import REALS, WHOLES
from .exported import Exported
from .library import live_of
from .recorded import live_of_run, notes, states

DRAWING = ("math", "page", "shaders", "renderer", "scene", "camera", "stage")  # scripts of a recording's page
OWN = ("world", "debug", "game")
NAME = "world"


def export_page(
    scene: Live | Recording | SceneLike, path: str | os.PathLike[str], *, title: str | None = None, **live: Any
) -> None:
    """Write a scene as a page that simulates it, one file that opens without a network.

    scene: a `Live`, or what it takes, then made with the keywords `live`, as for `carom.export_library`. Or a
        `carom.Recording` of a single run: the page replays it, and its viewer may take over at any frame, and back.
    title: None takes the scene's name.
    """
    if isinstance(scene, Recording):
        text = replay_text(scene, live_of_run(scene, live), title or scene.title)
    else:
        text = game_text(live_of(scene, live), title or (scene if isinstance(scene, str) else "world"))
    with replacing(path) as file:
        file.write(text.encode())


def module(made: Exported) -> WasmModule:
    """The world as WebAssembly."""
    texts = made.texts(TARGET, heap=False)
    exported = [symbol for _, symbols in texts.values() for symbol in symbols]
    return module_of(link_objects([flush_denormals(text) for text, _ in texts.values()], TARGET), exported)


def game_text(live: Live, title: str) -> str:
    """The whole file."""
    made, block = Exported.of(live, NAME), Block()
    world, motion = module(made), _still(live)
    drawing = drawing_of(live._parts.spec, live.model)
    data = {
        "title": title, "subtitle": "", "notes": [],
        **drawing_data(drawing, motion, block), **motion_data(motion, live.model.topology, block),
        "world": _world_data(live, made, world),
    }  # fmt: skip
    return fill_gaps(
        _part("game.html"),
        {
            "title": html.escape(title),
            "style": style() + _part("game.css"),
            "controls": _part("controls.html"),
            "script": "\n".join((scripts(DRAWING), _program(), _part("start.js"))),
            "data": as_json(data),
            "arrays": packed_bytes(bytes(block.bytes)),
            "program": packed_bytes(world.code),
        },
    )


def replay_text(recording: Recording, live: Live, title: str) -> str:
    """The whole file of a run and its world."""
    made, block = Exported.of(live, NAME), Block()
    world, every = module(made), frames_apart(recording, live.model.topology.n_links)
    data = replay_data(recording, [0], title, block)
    data["world"] = _world_data(live, made, world)
    data["notes"] += notes(recording)
    data["taken"] = {"header": list(made.fields.header), "states": block.add(states(recording)[::every], "u1")}
    own, looks = "\n".join((_program(), _part("over.js"))), _part("game.css") + _part("over.css")
    more = {"controls": _part("controls.html"), "program": packed_bytes(world.code)}
    return page_of(data, block, own, looks, fill_gaps(_part("over.html"), more))


def _world_data(live: Live, made: Exported, world: WasmModule) -> dict[str, Any]:
    """Facts of the world that a page's program needs."""
    topology = live.model.topology
    triggers = [
        {"link": -1 if x.body is None else topology.link(x.body), "ends": trigger_edges(x).round(6).tolist()}
        for x in live._triggers
    ]
    return {
        "wide": made.fields.all["q"].start.dtype.itemsize, "heap": world.heap, "save": made.fields.most, "dt": live.dt,
        "links": topology.n_links, "pairs": len(topology.pairs), "row": WHOLES + REALS,
        "mass": np.asarray(live.model.mass, float).tolist(), "triggers": triggers,
    }  # fmt: skip


def _program() -> str:
    return "\n".join(_part(f"{name}.js") for name in OWN)


def _part(name: str) -> str:
    return (files(__package__ or __name__) / "parts" / name).read_text("utf-8")


def _still(live: Live) -> RecordedMotion:
    """The world at its start, as a recording of one frame."""
    pose = live._parts.start.link_states.pose
    links = len(pose)
    none, one = np.zeros((0, 3)), np.zeros((1, 1))
    hits = Hits(none[:, 0], np.zeros((0, 2)), none[:, 0], none[:, 0], none, none, none[:, 0], none[:, 0])
    poses = pose[None, None, :, :3], pose[None, None, :, 3:]
    return RecordedMotion((0,), np.zeros(1), *poses, np.zeros((1, 1, links, 3)), one, one, np.ones(1), (hits,))
