"""The pair table: shapes that may touch, and the friction and restitutions between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...collision.poses import Array
from ...engine.parameters import COMBINED
from ..spec import LoopSpec, SceneSpec
from .check import bits, fraction, non_negative, reject, reject_name, signed_fraction
from .shape_rows import ShapeRow

Pairs = tuple[tuple[int, int], ...]
BLOCK = 256  # shapes that are compared with all others at a time

# numbers that a rule between materials may give, and their checks
CHECKS: dict[str, Callable[[str, str, object], Array]] = {
    "friction": non_negative,
    "restitution": fraction,
    "tangential_restitution": signed_fraction,
}


def pair_table(
    scene: SceneSpec, names: Sequence[str], parents: Sequence[int], joints: Sequence[str],
    rows: list[ShapeRow], links: list[int], owners: list[str | None],
) -> tuple[Pairs, dict[str, Array], tuple[tuple[int, ...], ...]]:  # fmt: skip
    """Pairs (i, j), i < j, of shapes that may touch, their numbers by the names of the model's fields, (np,) each, and
    the rows that a rule gives, see `Topology.ruled`. If the scene filters its pairs, they include those that may not
    touch at first: shapes in no layer of the other's mask, and shapes tied by a loop that can be cut.

    rows, links, owners: each shape, its link (-1: the world) and the name of its owner.
    Left out: shapes of one body (links welded together are one body), two static shapes, two bodies joined by a
    joint or a loop, pairs that `exclude` names, and shapes in no layer of the other's mask (see Shape). Bodies that
    hang on the world by a joint may touch the statics.
    """
    _check_exclusions(scene, names)
    weld, jointed = _welds(parents, joints)
    body = np.array([weld[link] if link >= 0 else -1 for link in links], int)
    still = _still(parents, joints)
    static = np.array([link < 0 or still[link] for link in links], bool)
    above = np.array([jointed[link] if link >= 0 else -2 for link in links], int)
    i, j = _separate_pairs(body, static, above)
    touch = np.ones(len(i), bool)
    number = {name: n for n, name in enumerate(dict.fromkeys(owners))}
    owner = np.array([number[name] for name in owners], int)
    switched = [loop for loop in scene.loops if scene.filtering and loop.active is not None]
    uncut = [loop for loop in scene.loops if loop not in switched]
    for a, b in (*scene.exclusions, *_ties(uncut)):
        touch &= ~_couples(_members(a, owner, number, links), _members(b, owner, number, links), i, j)
    layers = shape_layers(rows)
    may = meet(layers[:, 0], layers[:, 1], i, j)
    for a, b in _ties([loop for loop in switched if loop.active]):
        may &= ~_couples(_members(a, owner, number, links), _members(b, owner, number, links), i, j)
    if not scene.filtering:
        touch &= may
    i, j, may = i[touch], j[touch], may[touch]
    numbers, ruled = _combine(scene, rows, i, j)
    numbers["pair_touches"] = may if scene.filtering else np.zeros(0)
    return tuple(zip(i.tolist(), j.tolist(), strict=True)), numbers, ruled


def meet(group: Array, mask: Array, i: Array, j: Array) -> Array:
    """Return whether the shapes of pairs (np,) are in a layer of each other's mask; group, mask (ns,)."""
    return (group[i] & mask[j] != 0) & (group[j] & mask[i] != 0)


def _couples(one: Array, other: Array, i: Array, j: Array) -> Array:
    """Return whether pairs of shapes (np,) have one shape in `one` and one in `other`, (ns,) bool each."""
    return (one[i] & other[j]) | (other[i] & one[j])


def _ties(loops: Sequence[LoopSpec]) -> list[tuple[str, str]]:
    """Pairs of links that loops keep in touch, as joints do, and links that roll on statics. Loops are unchecked."""
    tied = []
    for loop in loops:
        kind = getattr(getattr(loop, "joint", None), "kind", None)
        if kind not in (None, "distance", "spring", "gear", "driven"):
            ends = loop.link_a, loop.link_b
            tied += [ends] if "world" not in ends or kind == "rolling" else []
    return tied


def _welds(parents: Sequence[int], joints: Sequence[str]) -> tuple[list[int], list[int]]:
    """The first link that each link is welded to, and that of the link its body hangs on by a joint (-2: none)."""
    weld, jointed = [], []
    for i, (parent, joint) in enumerate(zip(parents, joints, strict=True)):
        if joint == "fixed" and parent >= 0:
            weld.append(weld[parent])
            jointed.append(jointed[parent])
        else:
            weld.append(i)
            jointed.append(weld[parent] if parent >= 0 else -2)
    return weld, jointed


def _still(parents: Sequence[int], joints: Sequence[str]) -> list[bool]:
    """Return whether only fixed joints are between each link and the world."""
    still: list[bool] = []
    for parent, joint in zip(parents, joints, strict=True):
        still.append(joint == "fixed" and (parent < 0 or still[parent]))
    return still


def _separate_pairs(body: Array, static: Array, above: Array) -> tuple[Array, Array]:
    """Pairs i < j of shapes that neither a common body, nor the world, nor a joint keeps together."""
    pairs = [np.zeros((2, 0), int)]
    for first in range(0, len(body), BLOCK):  # not all pairs at once: thousands of shapes have millions
        a = np.arange(first, min(first + BLOCK, len(body)))[:, None]
        b = np.arange(first, len(body))[None]
        apart = (a < b) & (body[a] != body[b]) & ~(static[a] & static[b])
        apart &= (above[a] != body[b]) & (above[b] != body[a])
        pairs.append(np.array(np.nonzero(apart)) + first)
    return tuple(np.concatenate(pairs, axis=1))


def _members(name: str, owner: Array, number: dict[str | None, int], links: list[int]) -> Array:
    return np.array(links, int) < 0 if name == "world" else owner == number.get(name, -1)


def shape_layers(rows: list[ShapeRow]) -> Array:
    """The group and the mask of each shape, (ns, 2) uint32."""
    both = [[bits(row.where, field, getattr(row.shape, field)) for field in ("group", "mask")] for row in rows]
    return np.array(both, np.uint32).reshape(-1, 2)


def _check_exclusions(scene: SceneSpec, names: Sequence[str]) -> None:
    known = ["world", *names, *(spec.name for spec in scene.statics if spec.name is not None)]
    for k, pair in enumerate(scene.exclusions):
        for name in pair:
            if name not in known:
                reject_name(f"exclusion {k}", "name", name, known, "it must be the name of a body, link or static")
        if pair[0] == pair[1]:
            reject(f"exclusion {k}", "names", pair, "they must differ: shapes of one body never touch each other")


def _combine(
    scene: SceneSpec, rows: list[ShapeRow], i: Array, j: Array
) -> tuple[dict[str, Array], tuple[tuple[int, ...], ...]]:
    """The numbers of the pairs by `COMBINED`; rules between materials override."""
    numbers, ruled = {}, {}
    for name, combine in COMBINED.items():
        of = np.array([getattr(row, name) for row in rows], float)
        numbers[name], ruled[name] = combine(np, of[i], of[j]), np.zeros(len(i), bool)
    materials = list(dict.fromkeys(row.material for row in rows if row.material is not None))
    of = np.array([-1 if row.material is None else materials.index(row.material) for row in rows], int)
    seen: set[frozenset[str]] = set()
    for k, rule in enumerate(scene.pairs):
        where = f"pair rule {k}"
        a, b = (_material(where, name, materials) for name in (rule.material_a, rule.material_b))
        key = frozenset((rule.material_a, rule.material_b))
        if key in seen:
            names = (rule.material_a, rule.material_b)
            reject(where, "materials", names, "they must have one rule, and have one already: keep one of the two")
        seen.add(key)
        given = {name: value for name in COMBINED if (value := getattr(rule, name)) is not None}
        if not given:
            reject(where, "friction", None, f"the rule must say something: give one of {', '.join(COMBINED)}")
        hit = ((of[i] == a) & (of[j] == b)) | ((of[i] == b) & (of[j] == a))
        for name, value in given.items():
            numbers[name][hit] = CHECKS[name](where, name, value)
            ruled[name] |= hit
    of_pairs = {f"pair_{name}": x for name, x in numbers.items()}
    return of_pairs, tuple(tuple(np.flatnonzero(x).tolist()) for x in ruled.values())


def _material(where: str, name: str, known: list[str]) -> int:
    if name not in known:
        reject_name(where, "material", name, known, "it must be the material of some shape or body")
    return known.index(name)
