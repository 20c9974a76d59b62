"""A world translated for C: its modules, their functions, and where its numbers are. The header, the library and the
page are made from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...engine.native.portable import INEXACT, Target, library_functions, objects
from ...engine.packed import Packed, pack_model
from ...engine.topology import Topology
from ..live.world import Live
from .archive import archive
from .asking import probes
from .fields import Fields, fields_of
from .functions import LoweredFunction, compile_function, functions_of
from .glue import Layout, basics_text, function_text
from .named import kinds, things
from .programs import Programs


class Pointer(NamedTuple):
    """A function that returns the address of an array.  name: the function's.  offset: in the world [bytes].
    constant: whether the caller must not write it.  says: its contents, in words.  whole: whether of whole numbers."""

    name: str
    offset: int
    constant: bool
    says: str
    whole: bool = False


class Numbered(NamedTuple):
    """Numbers by which C calls things other than bodies and degrees of freedom: name -> number.

    static: statics, numbered behind bodies, in worlds whose pairs are filtered, or that have probes.
    joint: joints that can be cut.
    kind: kinds of spare bodies.
    probe: shapes of queries by `overlap`.
    """

    static: dict[str, int]
    joint: dict[str, int]
    kind: dict[str, int]
    probe: dict[str, int]


@dataclass(frozen=True)
class Exported:
    """A translated world, not yet for a machine.  name: an identifier of C, the prefix of all others."""

    name: str
    topology: Topology
    dt: float
    fields: Fields
    functions: tuple[LoweredFunction, ...]
    layout: Layout
    pointers: tuple[Pointer, ...]
    numbered: Numbered

    @staticmethod
    def of(live: Live, name: str) -> Exported:
        """Export a world as it is at its start."""
        fields = fields_of(live)
        programs = Programs(live, fields)
        functions = tuple(compile_function(function, fields) for function in functions_of(programs))
        layout = Layout.of(fields, functions)
        pointers = _pointers(live, fields, layout)
        return Exported(name, live.model.topology, live.dt, fields, functions, layout, pointers, _numbering(live))

    def texts(self, target: Target, heap: bool = True) -> dict[str, tuple[str, list[str]]]:
        """Modules for a machine: name of each -> its text, and the functions that it defines."""
        pointers = {p.name: p.offset for p in self.pointers}
        own = ["size", "init", "reset", "save", *pointers, *(("create", "free") if heap else ())]
        basics = basics_text(self.name, self.fields, self.layout, pointers, heap)
        texts = {self.name: (basics, [f"{self.name}_{x}" for x in own])}
        for made in self.functions:
            whole = f"{self.name}_{made.function.name}"
            texts[whole] = function_text(self.name, made, self.fields, self.layout, target.triple), [whole]
        return texts

    def library(self, target: Target, cpu: str | None = None) -> bytes:
        """The static library for a machine."""
        texts = self.texts(target)
        code = objects({name: text for name, (text, _) in texts.items()}, target, cpu)
        for name, one in code.items():
            if called := library_functions(one, INEXACT):
                raise ValueError(
                    f"{name} calls {', '.join(called)} of C's library, which are not the same everywhere: this scene "
                    "cannot be exported"
                )
        return archive(
            {f"{name}.o": (code[name], symbols) for name, (_, symbols) in texts.items()}, "apple" in target.triple
        )


def _numbering(live: Live) -> Numbered:
    statics = {name: k for k, name in enumerate(things(live)) if k >= live.model.topology.n_links}
    joints = {name: live._changes.number(name) for name in live._changes.joints}
    return Numbered(statics, joints, {name: k for k, name in enumerate(kinds(live))}, probes(live))


def _pointers(live: Live, fields: Fields, layout: Layout) -> tuple[Pointer, ...]:
    wide, known, at, parameters = fields.all["q"].start.dtype.itemsize, {}, 0, pack_model(live.model)
    assert isinstance(parameters, Packed)
    for name, shape in parameters.shapes:
        known[name] = layout.addresses["parameters"] + wide * at
        at += int(np.prod(shape, dtype=int))
    addresses, switched = layout.addresses, any(loop.switched for loop in live.model.topology.loops)
    holds = Pointer("attached", known["loop_active"], True, "one a joint: 1 where it holds") if switched else None
    triggers = (
        Pointer("inside", addresses["inside"], True, "bodies a trigger: 1 of those in it", True),
        Pointer("crossed", addresses["crossed"], True, "the same: 1 came in, -1 went out in the last frame", True),
    ) if live._triggers else ()  # fmt: skip
    return (
        *((holds,) if holds else ()),
        Pointer("time", addresses["t"], True, "[s]"),
        Pointer("poses", addresses["pose"], True, "7 a body: x y z of its origin [m], w x y z"),
        Pointer("velocities", addresses["velocity"], True, "6 a body: angular [rad/s], of its centre of mass [m/s]"),
        Pointer("asleep", addresses["asleep"], True, "one a body: 1 where it sleeps", True),
        *triggers,
        Pointer("motors", addresses["motors"], False, "one command a degree of freedom"),
        Pointer("friction", known["pair_friction"], False, "one a pair of shapes"),
        Pointer("restitution", known["pair_restitution"], False, "one a pair of shapes"),
    )
