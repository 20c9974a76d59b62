"""The gallery of the site: of every scene of the library a picture, a line of facts, and a page that plays."""

from __future__ import annotations

import io
import os
import re
from typing import Any

import jax
import numpy as np
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure

from carom.collision.poses import rotation_matrix
from carom.scenes.chains.spec import ChainSpec
from carom.scenes.chains.twin import chain_twin
from carom.scenes.compile import compile_scene
from carom.scenes.compiling.link_poses import link_poses
from carom.scenes.library.registry import CHAINS, SCENES
from carom.scenes.running import record
from carom.scenes.show.drawing import drawing_of, quaternions
from carom.scenes.show.motion import extent
from carom.scenes.show.page import page_text
from carom.scenes.show.planes import clip_polygon, patches

# whose pages are written if PLAY says nothing: each compiles in seconds
FEW = "double_pendulum heavy_top bouncing_ball pool_break andrews_squeezer peaucellier swing hexapod weightlifter"
HEAD = """---
hide: [toc]
---
# Gallery

Every scene of the library: how many bodies it has, how many joints and loops hold them, in how many degrees of freedom
they start, and the first of the numbers that `carom check NAME` holds it to. Pictures show the start. `carom run NAME`
leaves a page that plays the scene; those of some are here.

<div class="grid cards" markdown>
"""


def gallery() -> dict[str, str | bytes]:
    """The files of the gallery: path -> content.

    PLAY, of the environment, names the scenes whose pages are written; "all": those of all.
    """
    jax.config.update("jax_enable_x64", True)
    known = SCENES | CHAINS
    play = os.environ.get("PLAY", FEW).split()
    played = set(known) if play == ["all"] else set(play)
    if unknown := played - set(known):
        raise ValueError(f"PLAY: the library has no {', '.join(sorted(unknown))}: `carom list` names its scenes")
    files: dict[str, str | bytes] = {}
    cards = [HEAD]
    for name, entry in known.items():
        spec = entry.build(**entry.play.parameters)
        shape, files[f"gallery/{name}.png"] = drawn(spec)
        if name in played:
            run = record(spec, title=name, **entry.play.keywords)
            files[f"gallery/{name}.html"] = page_text(run, [0], name)
        fact = next((fact for fact in entry.facts if fact.expected), next(iter(entry.facts), None))
        number = "" if fact is None else f"; {fact.says}: {fact.expected:.9g}, within {fact.tolerance:.2g}"
        image = f"![{name}](gallery/{name}.png)"
        link = f"[{image}](gallery/{name}.html)" if name in played else image
        more = f" [Play](gallery/{name}.html)" if name in played else ""
        cards.append(f"-   {link}\n\n    **`{name}`**: {entry.description}\n\n    {shape}{number}.{more}\n")
    files["gallery.md"] = "\n".join([*cards, "</div>\n"])
    return files


def drawn(spec: Any) -> tuple[str, bytes]:
    """What a scene is made of, in words, and its picture as it starts."""
    scene = chain_twin(spec) if isinstance(spec, ChainSpec) else spec
    model, state = compile_scene(scene, overlaps="ignore")
    topology = model.topology
    jointed = sum(kind != "floating" for kind in topology.joints)
    counts = {"bod{y,ies}": topology.n_links, "joint{,s}": jointed, "loop{,s}": len(topology.loops),
              "degree{,s} of freedom": topology.nv}  # fmt: skip
    words = [f"{n} " + re.sub("{(.*),(.*)}", r"\1" if n == 1 else r"\2", what) for what, n in counts.items() if n]
    return ", ".join(words), picture(scene, model, np.asarray(state.q))


def picture(scene: Any, model: Any, q: Any) -> bytes:
    """A PNG of the scene's faces, the farthest first, seen as its page is at first, but from far away."""
    drawing = drawing_of(scene, model)
    places, turns = link_poses(model, q)
    low, high = extent(drawing, places, quaternions(turns))
    middle = (low + high) / 2
    feet = [middle - x.normal * (x.normal @ middle - x.offset) for x in drawing.planes]
    low, high = np.min([low, *feet], axis=0), np.max([high, *feet], axis=0)
    size = high - low
    flat, wide = size[2] < 0.35 * max(size[:2]), size[0] >= 0.8 * size[1]
    up, around = (0.62 if flat else 0.24), (-1.15 if wide else -0.5)
    (s, c), (sa, ca) = (np.sin(up), np.cos(up)), (np.sin(around), np.cos(around))
    view = np.array([[-sa, ca, 0], [-s * ca, -s * sa, c], [c * ca, c * sa, s]])  # right, up, towards the eye
    box = np.stack(np.meshgrid(*zip(low, high, strict=True)), axis=-1).reshape(-1, 3) @ view.T
    middle, room = (box.min(0) + box.max(0)) / 2, max(np.ptp(box[:, 0]) / 4, np.ptp(box[:, 1]) / 3) * 1.15
    figure = Figure(figsize=(4, 3), dpi=100)
    axes = figure.add_axes((0, 0, 1, 1), xlim=middle[0] + 2 * room * np.array([-1, 1]),
                           ylim=middle[1] + 1.5 * room * np.array([-1, 1]))  # fmt: skip
    axes.axis("off")
    for patch in patches(drawing.planes, low, high):
        if patch.plane.normal @ view[2] > 0:
            ring = patch.corners
            for side in np.vstack([np.eye(3)[:2], -np.eye(3)[:2]]):  # an endless ground ends not far from what is on it
                ring = clip_polygon(ring, side, float(side @ (low + high) / 2 - 0.8 * np.linalg.norm(size)))
            axes.add_collection(PolyCollection([ring @ view[:2].T], facecolors=[patch.plane.colour], zorder=0))
    seen = [faces(drawing.meshes[x.mesh], x, places, turns, view) for x in drawing.shapes if x.solid]
    if seen:
        corners, colours = (np.concatenate(x) for x in zip(*seen, strict=True))
        order = np.argsort(corners[:, :, 2].mean(1))
        axes.add_collection(PolyCollection(corners[order, :, :2], facecolors=colours[order], edgecolors=colours[order],
                                           linewidths=0.3, zorder=1))  # fmt: skip
    ends = [[at if k < 0 else places[k] + turns[k] @ at for k, at in ((x.a, x.at_a), (x.b, x.at_b))]
            for x in drawing.ties]  # fmt: skip
    axes.add_collection(LineCollection([x @ view[:2].T for x in np.array(ends).reshape(-1, 2, 3)], zorder=2,
                                       colors=[x.colour for x in drawing.ties]))  # fmt: skip
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()


def faces(mesh: Any, shape: Any, places: Any, turns: Any, view: Any) -> tuple[Any, Any]:
    """Of a shape what is towards the eye: triangles (n, 3, 3) as the eye has them, and their colours (n, 3)."""
    R, p = (np.eye(3), np.zeros(3)) if shape.link < 0 else (turns[shape.link], places[shape.link])
    at = (p + R @ shape.position + mesh.vertices @ (R @ rotation_matrix(shape.quaternion)).T) @ view.T
    corners = at[mesh.faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    corners, normals = corners[normals[:, 2] > 0], normals[normals[:, 2] > 0]
    light = normals @ np.array([-0.3, 0.6, 0.74]) / np.linalg.norm(normals, axis=1)
    return corners, np.clip(0.55 + 0.5 * light, 0.3, 1.05)[:, None].clip(0, 1) * np.asarray(shape.colour)
