"""Impossible masses: merged with the links they are welded to, or replaced by the nearest possible ones.

Files of real robots have many: frames with made-up inertias, inertias that are not about the centre of mass.
Most are on fixed joints. Links welded together are one body, so that moving mass among them changes no motion.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ....collision.mass import MassProperties, combine
from ....collision.poses import Array
from ...compiling.check import MOST, SceneError
from ...compiling.inertia import link_mass
from ...joint_specs import Fixed, Floating
from ...spec import LinkSpec
from .frames import Pose, translation
from .nodes import XmlElement
from .notes import Notes


def sound_masses(
    links: list[LinkSpec], nodes: Mapping[str, XmlElement], notes: Notes, inertias: str
) -> tuple[LinkSpec, ...]:
    """The links, each with a mass that compile_scene accepts; other masses are noted as refused.

    links: parents first.  inertias: "nearest" replaces impossible inertias, "refuse" refuses them.
    """
    carriers: dict[str, tuple[str, Pose]] = {}  # link -> the link it is welded to, and its pose there
    welded: dict[str, list[LinkSpec]] = {}
    for link in links:
        at = translation(np.zeros(3))
        first = link.name
        if isinstance(link.joint, Fixed) and link.parent in carriers:
            first, above = carriers[link.parent]
            at = above @ Pose(np.asarray(link.position), np.asarray(link.quaternion))
        carriers[link.name] = first, at
        welded.setdefault(first, []).append(link)
    sound: dict[str, LinkSpec] = {}
    for first, *others in welded.values():
        for link in _one_body(first, others, carriers, nodes, notes, inertias):
            sound[link.name] = link
    return tuple(sound[link.name] for link in links)


def _one_body(
    first: LinkSpec, others: list[LinkSpec], carriers: Mapping[str, tuple[str, Pose]],
    nodes: Mapping[str, XmlElement], notes: Notes, inertias: str,
) -> list[LinkSpec]:  # fmt: skip
    """Merge the masses of links that are welded to the first of them."""
    flaw = _flaw(first)
    merged = [link for link in others if _flaw(link) or (flaw and link.mass)]
    body = _body(first)
    parts = [body, *(_body(link).in_frame(*carriers[link.name][1]) for link in merged)]
    if merged and sum(part.mass for part in parts) > 0:
        body = combine(parts)
        names = {link.name for link in merged}
        first, others = _with(first, body), [_massless(link) if link.name in names else link for link in others]
        for link in merged:
            why = f'welded to "{first.name}", and counted with it: by itself it, or that link, is a mass that none has'
            notes.add("approximated", nodes[link.name], f'inertial of link "{link.name}"', why)
        flaw = _flaw(first)
    if flaw is None:
        return [first, *others]
    what, node = f'inertial of link "{first.name}"', nodes[first.name]
    if isinstance(first.joint, Fixed):
        notes.add("ignored", node, what, f"it is fixed to the world, and does not matter. {flaw}")
        return [_massless(first), *others]
    small = np.abs(body.inertia).max() <= MOST  # too large numbers and NaN stay
    inertia = _nearest(body.inertia) if small else body.inertia
    nearest = _with(first, replace(body, inertia=inertia))
    if inertias == "nearest" and _flaw(nearest) is None:
        notes.add("approximated", node, what, f"the nearest inertia that a body can have, instead. {flaw}")
        return [nearest, *others]
    fix = ', or give inertias="nearest"' if inertias == "refuse" and _flaw(nearest) is None else ""
    notes.add("refused", node, what, flaw + fix)
    return [first, *others]


def _flaw(link: LinkSpec) -> str | None:
    """The reason why a link's mass is not accepted; None: it is."""
    try:
        link_mass("it", replace(link, shapes=()), [], jointed=not isinstance(link.joint, Floating))
    except SceneError as error:
        return str(error).removeprefix("it: ")
    return None


def _body(link: LinkSpec) -> MassProperties:
    com = np.zeros(3) if link.com is None else np.asarray(link.com)
    inertia = np.zeros((3, 3)) if link.inertia is None else np.asarray(link.inertia)
    return MassProperties(link.mass or 0.0, com, inertia)


def _with(link: LinkSpec, body: MassProperties) -> LinkSpec:
    return replace(link, mass=body.mass, com=body.com, inertia=body.inertia)


def _massless(link: LinkSpec) -> LinkSpec:
    return replace(link, mass=0.0, com=None, inertia=None)


def _nearest(inertia: Array) -> Array:
    """The nearest (3, 3) inertia of a distribution of mass.

    S = tr(I)/2 - I is the sum of m r r^T over the body, so that I is an inertia exactly when S has no negative
    eigenvalue (Traversaro et al. 2016, sec. III; Wensing, Kim and Slotine 2018, sec. III); those are set to zero.
    """
    values, axes = np.linalg.eigh(np.trace(inertia) / 2 * np.eye(3) - inertia)
    S = (axes * np.maximum(values, 0)) @ axes.T
    return np.trace(S) * np.eye(3) - S
