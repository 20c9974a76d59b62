"""Pairs of geoms that may touch in a compiled MJCF model, and their friction.

MuJoCo lets geoms a and b touch if (a.contype & b.conaffinity) or (b.contype & a.conaffinity), or if a pair names them;
Carom if each is in a layer of the other's mask. So geoms that touch the same others form a class, each class is a
layer, and its mask holds the classes it touches: exact up to 32 classes. MuJoCo takes the larger of two frictions,
Carom the geometric mean: geoms of equal friction form a material, and rules between materials hold the larger.
"""

from __future__ import annotations

from itertools import combinations_with_replacement, product
from math import isclose, sqrt
from typing import Any, NamedTuple

from ....collision.shapes import ALL_LAYERS
from ...spec import PairSpec
from .compiled import Compiled
from .ledger import Ledger

LAYERS = 32


class ContactProperties(NamedTuple):
    """Layers (group, mask), friction and material of each geom that may touch something; and the rules."""

    layers: dict[int, tuple[int, int]]
    materials: dict[int, tuple[float, str | None]]
    rules: tuple[PairSpec, ...]

    def of(self, g: int) -> dict[str, Any]:
        """The keywords of a shape."""
        (group, mask), (friction, material) = self.layers[g], self.materials[g]
        return {"friction": friction, "material": material, "group": group, "mask": mask}


class Alike(NamedTuple):
    """The properties that decide which geoms a geom touches: its bits, and the geoms that pairs name it with."""

    contype: int
    conaffinity: int
    partners: frozenset[int]


def read_contact(file: Compiled, ledger: Ledger) -> ContactProperties:
    if {"contact", "constraint"} & file.off:
        ledger.note("ignored", "all geoms", "", "the file switches contact off")
        return ContactProperties({}, {}, ())
    layers = _layers(file, _partners(file), ledger)
    materials, rules = _materials(file, layers)
    return ContactProperties(layers, materials, rules)


def _partners(file: Compiled) -> dict[int, frozenset[int]]:
    """The partners of each geom that pairs name."""
    pairs = list(zip(file.m.pair_geom1.tolist(), file.m.pair_geom2.tolist(), strict=True))
    geoms = {g for pair in pairs for g in pair}
    return {g: frozenset(a + b - g for a, b in pairs if g in (a, b)) for g in geoms}


def _layers(file: Compiled, partners: dict[int, frozenset[int]], ledger: Ledger) -> dict[int, tuple[int, int]]:
    m = file.m
    alike: dict[Alike, list[int]] = {}
    for g in range(m.ngeom):
        key = Alike(int(m.geom_contype[g]), int(m.geom_conaffinity[g]), partners.get(g, frozenset()))
        alike.setdefault(key, []).append(g)
    touching = {a: [b for b in alike if _touch(a, alike[a], b, alike[b])] for a in alike}
    classes = [a for a in alike if touching[a]]
    if len(classes) > LAYERS:
        why = f"there are {len(classes)} sets of geoms that touch differently, and Carom has {LAYERS} layers"
        ledger.refuse("pair", "contact filter", "pairs" if partners else "contype, conaffinity", why)
        return _layers(file, {}, ledger) if partners else {g: (1, ALL_LAYERS) for g in range(m.ngeom)}
    silent = [g for a, geoms in alike.items() if not touching[a] for g in geoms]
    for g in silent:
        ledger.note("ignored", "geom", file.name("geom", g), "it touches nothing, it is only looked at")
    if all(len(touching[a]) == len(classes) for a in classes):
        return {g: (1, ALL_LAYERS) for a in classes for g in alike[a]}
    bit = {a: 1 << k for k, a in enumerate(classes)}
    return {g: (bit[a], sum(bit[b] for b in touching[a])) for a in classes for g in alike[a]}


def _touch(a: Alike, geoms_a: list[int], b: Alike, geoms_b: list[int]) -> bool:
    named = not a.partners.isdisjoint(geoms_b)
    return named or bool((a.contype & b.conaffinity) | (b.contype & a.conaffinity))


class Surface(NamedTuple):
    """The properties that decide the friction between geoms; partners: friction with the geoms that pairs name."""

    friction: float
    condim: int
    priority: int
    partners: tuple[tuple[int, float], ...]


def _materials(
    file: Compiled, layers: dict[int, tuple[int, int]]
) -> tuple[dict[int, tuple[float, str | None]], tuple[PairSpec, ...]]:
    m = file.m
    partners: dict[int, list[tuple[int, float]]] = {}
    for k in range(m.npair):
        a, b, mu = int(m.pair_geom1[k]), int(m.pair_geom2[k]), _sliding(m.pair_friction[k, 0], m.pair_dim[k])
        partners.setdefault(a, []).append((b, mu))
        partners.setdefault(b, []).append((a, mu))
    surfaces: dict[Surface, list[int]] = {}
    for g in layers:
        mu = file.m.opt.o_friction[0] if "override" in file.on else m.geom_friction[g, 0]
        surface = Surface(float(mu), int(m.geom_condim[g]), int(m.geom_priority[g]), tuple(sorted(partners.get(g, []))))
        surfaces.setdefault(surface, []).append(g)
    own = {s: _between(s, s, surfaces[s]) for s in surfaces}
    rules: dict[tuple[Surface, Surface], float] = {}
    for a, b in combinations_with_replacement(surfaces, 2):
        mu = _between(a, b, surfaces[b])
        if not isclose(mu, sqrt(abs(own[a] * own[b])), rel_tol=1e-12):
            rules[a, b] = mu
    names = {s: f"surface {k}, friction {own[s]:g}" for k, s in enumerate(surfaces)} if rules else {}
    materials = {g: (own[s], names.get(s)) for s, geoms in surfaces.items() for g in geoms}
    return materials, tuple(PairSpec(names[a], names[b], friction=mu) for (a, b), mu in rules.items())


def _between(a: Surface, b: Surface, geoms_b: list[int]) -> float:
    for partner, mu in a.partners:
        if partner in geoms_b:
            return mu
    if a.priority != b.priority:
        above = max(a, b, key=lambda s: s.priority)
        return _sliding(above.friction, above.condim)
    return _sliding(max(a.friction, b.friction), max(a.condim, b.condim))


def _sliding(friction: float, condim: int) -> float:
    return float(friction) if condim > 1 else 0.0


def exclusions(file: Compiled, names: dict[int, list[str]], ledger: Ledger) -> tuple[tuple[str, str], ...]:
    """Pairs of names that never touch: those the file excludes, and neighbours with several joints between them.

    names: those of the owners of each body's shapes, by body.
    """
    m, welded = file.m, file.m.body_weldid
    excluded: dict[tuple[str, str], None] = {}
    bodies = [(int(s) >> 16, int(s) & 0xFFFF) for s in m.exclude_signature]
    members: dict[int, list[int]] = {}
    for b, weld in enumerate(welded.tolist()):
        members.setdefault(weld, []).append(b)
    for b in range(m.nbody):  # Carom itself leaves out neighbours with one joint between them
        inner = int(welded[m.body_parentid[b]])
        if m.body_jntnum[b] > 1 and inner:
            bodies += product(members.get(b, []), members[inner])
    for x, y in bodies:
        excluded |= {(a, b): None for a in names.get(x, []) for b in names.get(y, []) if file.moves(x) or file.moves(y)}
    for s in m.exclude_signature.tolist():
        ledger.note("taken", "exclusion", f"{file.name('body', s >> 16)}, {file.name('body', s & 0xFFFF)}")
    if "filterparent" in file.off:
        ledger.note("approximated", "flag filterparent", "", "neighbours in the tree do not touch, whatever it says")
    return tuple(excluded)
