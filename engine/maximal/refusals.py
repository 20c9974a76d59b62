"""Features of a tree's joints that the same joints as loops do not support."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..model import Model

SQUARE = 1e-9  # cosine below which the axes of a universal joint are square; else its angles are not measured here
ROUND = 1e-9  # lower bound of the least principal inertia, as a part of the largest
# joints whose coordinates a loop measures, and whether each is an angle
COORDINATES = {
    "revolute": (True,), "screw": (True,), "prismatic": (False,), "cylindrical": (True, False),
    "universal": (True, True),
}  # fmt: skip
DRIVEN = ("revolute", "screw", "prismatic", "cylindrical")


class Refusal(NamedTuple):
    """A refused feature.  where: the link and its joint, or the loop.  must: the remedy, the value it must have."""

    where: str
    field: str
    value: object
    must: str

    def __str__(self) -> str:
        return f"{self.where}: {self.field} is {self.value!r}; {self.must}"


def refusals(model: Model) -> Iterator[Refusal]:
    """Reasons why a model has no maximal coordinates, the most severe first; batched parameters count in all lanes."""
    yield from _bodies(model)
    for link, joint in enumerate(model.topology.joints):
        if joint != "floating":
            yield from _joint(model, link)
    yield from _relations(model)


OR_REDUCED = ', or keep coordinates="reduced"'


def _bodies(model: Model) -> Iterator[Refusal]:
    mass, inertia = (np.asarray(x, float) for x in (model.mass, model.inertia))
    least, most = (np.linalg.eigvalsh(inertia)[..., k] for k in (0, -1))
    for link, name in enumerate(model.topology.names):
        where = f'link "{name}"'
        if (mass[..., link] <= 0).any():
            fix = "give it mass, or make its shapes a part of its parent" + OR_REDUCED
            yield Refusal(where, "mass", mass[..., link].min().item(), f"a body of its own must have mass: {fix}")
        elif (least[..., link] <= ROUND * most[..., link]).any():
            fix = "give it extent" + OR_REDUCED
            must = f"a body of its own must have inertia about every axis: {fix}"
            yield Refusal(where, "inertia", inertia[..., link, :, :].tolist(), must)


def _joint(model: Model, link: int) -> Iterator[Refusal]:
    topology = model.topology
    kind, first, end = topology.joints[link], topology.v_start[link], topology.v_start[link + 1]
    where = f'link "{topology.names[link]}", joint ({kind})'
    own = {name: np.asarray(getattr(model, name), float)[..., first:end] for name in _FIELDS}

    def refuse(field: str, must: str) -> Refusal:
        return Refusal(where, field, own[field].tolist(), must + OR_REDUCED)

    for field, thing in (("armature", "rotors"), ("loss", "Coulomb loss")):
        if own[field].any():
            yield refuse(field, f"joints between bodies apart have no {thing}: leave it out")
    has_limits = np.isfinite(own["lower"]).any() or np.isfinite(own["upper"]).any()
    acting = [f for f in ("stiffness", "damping", "motor_kp", "motor_kd", "motor_target") if own[f].any()]
    acting += ["lower", "upper"] * bool(has_limits)
    cosine = (np.asarray(model.axis, float) * np.asarray(model.axis2, float)).sum(-1)[..., link]
    if kind not in COORDINATES:
        for field in acting:
            yield refuse(field, f"a {kind} joint between bodies apart has no coordinates that it could act on: drop it")
        return
    if kind == "universal" and acting and (abs(cosine) > SQUARE).any():
        yield refuse(acting[0], "it needs axes that are square to each other: turn axis2")
    if (np.isfinite(own["motor_effort"]) & ((own["motor_kp"] != 0) | (own["motor_kd"] != 0))).any():
        yield refuse("motor_effort", "a motor between bodies apart has no bound: give it as inf")
    turns = np.array(COORDINATES[kind])
    used = {"lower": 1, "upper": 1, "rest": own["stiffness"], "motor_target": own["motor_kp"]}
    for field, by in used.items():
        if (np.isfinite(own[field]) & (abs(own[field]) > np.pi) & turns & (by != 0)).any():
            yield refuse(field, "bodies apart do not count turns: stay within half a turn")


_FIELDS = (
    "armature", "loss", "stiffness", "rest", "damping", "motor_kp", "motor_kd", "motor_target", "motor_effort", "lower",
    "upper",
)  # fmt: skip


def _relations(model: Model) -> Iterator[Refusal]:
    topology = model.topology
    for k, loop in enumerate(topology.loops):
        if loop.kind == "gear":
            yield Refusal(
                f"loop {k}", "joint", "gear", "bodies apart have no joints to gear: leave it out" + OR_REDUCED
            )
        if loop.kind == "drive" and topology.joints[loop.a] not in DRIVEN:
            must = f"of bodies apart only {', '.join(DRIVEN)} joints can be driven: use several of them"
            yield Refusal(f"loop {k}", "link_a", topology.names[loop.a], must + OR_REDUCED)
