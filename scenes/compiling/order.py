"""Names, parents and the order of links: parents before children, otherwise the order of adding."""

from __future__ import annotations

import heapq

from ..spec import BodySpec, LinkSpec, PlaneSpec, SceneSpec, SensorSpec, SiteSpec, StaticSpec
from .check import reject, reject_name, text

_NOUNS: dict[type, str] = {BodySpec: "body", LinkSpec: "link", PlaneSpec: "plane", StaticSpec: "static"}


def label_of(spec: BodySpec | LinkSpec | PlaneSpec | StaticSpec, index: int | None = None) -> str:
    """Name of a body, link, plane or static in messages."""
    noun = _NOUNS[type(spec)]
    return f"{noun} {index}" if spec.name is None else f'{noun} "{spec.name}"'


def parent_name(spec: BodySpec | LinkSpec) -> str:
    return getattr(spec, "parent", "world")


def sort_links(scene: SceneSpec) -> tuple[tuple[BodySpec | LinkSpec, ...], tuple[int, ...]]:
    """Links with every parent before its children, and the parent index of each (-1: the world).

    The order is stable: of all links whose parent is in the list, the one added first comes next.
    """
    _check_names(scene)
    specs = scene.links
    index = {spec.name: i for i, spec in enumerate(specs)}
    children: dict[str, list[int]] = {}
    for i, spec in enumerate(specs):
        parent = parent_name(spec)
        if parent != "world" and parent not in index:
            reject_name(label_of(spec), "parent", parent, ["world", *index], "it must be 'world' or the name of a link")
        children.setdefault(parent, []).append(i)
    ready, order = list(children.get("world", [])), []
    while ready:
        order.append(heapq.heappop(ready))
        for child in children.get(specs[order[-1]].name, []):
            heapq.heappush(ready, child)
    if len(order) < len(specs):
        _reject_loop(specs, set(range(len(specs))) - set(order))
    new_index = {specs[old].name: new for new, old in enumerate(order)}
    links = tuple(specs[old] for old in order)
    return links, tuple(new_index.get(parent_name(spec), -1) for spec in links)


WANTED: tuple[tuple[str, tuple[type, ...]], ...] = (
    ("links", (BodySpec, LinkSpec)),
    ("statics", (PlaneSpec, StaticSpec)),
    ("sites", (SiteSpec,)),
    ("sensors", (SensorSpec,)),
)


def _check_names(scene: SceneSpec) -> None:
    for field, kinds in WANTED:
        for spec in getattr(scene, field):
            if type(spec) not in kinds:
                wanted = " or ".join(kind.__name__ for kind in kinds)
                reject("scene", field, spec, f"it must hold {wanted}: use SceneBuilder, or these classes")
    if not scene.links:
        reject(
            "scene", "links", (), "there must be at least one: use add_body or add_link; in TOML [[body]] or [[link]]"
        )
    first: dict[str, str] = {}
    for i, spec in enumerate((*scene.links, *scene.statics)):
        if spec.name is None and type(spec) in (PlaneSpec, StaticSpec):
            continue
        name = text(f"{_NOUNS[type(spec)]} {i}", "name", spec.name)
        if name == "world":
            reject(label_of(spec), "name", name, "it must not be 'world', the name of the fixed world: choose another")
        if name in first:
            reject(label_of(spec), "name", name, f"it must be unique, but a {first[name]} has it already: rename one")
        first[name] = _NOUNS[type(spec)]


def _reject_loop(specs: tuple[BodySpec | LinkSpec, ...], left: set[int]) -> None:
    """Raise an error that names the parents in the cycle."""
    index = {spec.name: i for i, spec in enumerate(specs)}
    visited: list[int] = []
    i = min(left)
    while i not in visited:
        visited.append(i)
        i = index[parent_name(specs[i])]
    loop = [specs[j].name for j in visited[visited.index(i) :]]
    chain = " -> ".join([*loop, loop[0]])
    reject(
        label_of(specs[i]), "parent", parent_name(specs[i]),
        f"it closes a joint loop without a closure ({chain}): let one of them hang on 'world' or on another link",
    )  # fmt: skip
