"""The functions of an exported world, as C sees them: the arguments of each, and its program."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import DTypeLike

from ...engine.native.code import LaneText, lane_text
from ...engine.native.program import Program
from ...engine.parameters import COMBINED
from .asking import QueryPrograms
from .changes import ChangePrograms
from .contacts import REALS, WHOLES
from .fields import Field, Fields, movable_dofs
from .programs import Change, Programs
from .surfaces import Surfaces

HIT_WHOLES, HIT_REALS = 2, 7  # whole and real numbers of a ray's hit


@dataclass(frozen=True)
class Argument:
    """An argument.  kind: "real" or "int", a number; "reals", an array of `size` real numbers; "maybe", one or NULL;
    "bits", the address of a set of layers, or NULL; "save", bytes and their number; "out", the address for `size`
    numbers; "rows", the address for records, and room for how many.  type: of C, if the kind does not determine it."""

    name: str
    kind: str
    size: int = 1
    type: str = ""


@dataclass(frozen=True)
class ExportFunction:
    """A function.  name: without the world's.  arguments: after the world.  returns: "int" or "void".  says: what it
    does.  program: see `programs.py`.  wide: whether it needs 64 bits in jax."""

    name: str
    arguments: tuple[Argument, ...]
    returns: str
    says: str
    program: Callable[..., Change]
    wide: bool = False


@dataclass(frozen=True)
class LoweredFunction:
    """A lowered function.  function: its source.  text: of its lane.  reads, writes: the name of each input and each
    result of the lane: of a field, or of an argument, or "result"."""

    function: ExportFunction
    text: LaneText
    reads: tuple[str, ...]
    writes: tuple[str, ...]


def functions_of(programs: Programs) -> tuple[ExportFunction, ...]:
    """All functions of a world that compute something; the frame is the first."""
    p, c, live = programs, ChangePrograms(programs), programs.live
    s, topology = Surfaces(c), live.model.topology
    whole = lambda *names: tuple(Argument(name, "int") for name in names)  # noqa: E731
    real = lambda *names: tuple(Argument(name, "real") for name in names)  # noqa: E731
    three = lambda *names: tuple(Argument(name, "reals", 3) for name in names)  # noqa: E731
    maybe = lambda *names, n=3: tuple(Argument(name, "maybe", n) for name in names)  # noqa: E731
    layers = tuple(Argument(name, "bits") for name in ("group", "mask"))
    mask = (Argument("mask", "int", type="uint32_t"),)
    hit = (Argument("hit", "out", HIT_WHOLES + HIT_REALS, "hit"),)
    body, point, motion = (
        whole("body"),
        maybe("point"),
        (*maybe("quaternion", n=4), *maybe("linear", "angular")),
    )
    materials = maybe(*COMBINED, n=1)
    joins = any(loop.switched for loop in topology.loops)
    returned = "returns how many bodies and statics are found, the nearest first, or -1000"
    spare = "returns its number; -1: all are in use, -1000: that cannot be"
    known: Sequence[tuple[bool, str, Sequence[Argument], str, Callable[..., Change]]] = (
        (True, "step", real("dt"), "a frame of dt seconds", p.step),
        (True, "apply_force", (*body, *three("force"), *point), "[N] through the next frame", p.apply_force),
        (True, "apply_torque", (*body, *three("torque")), "[N m] through the next frame", p.apply_torque),
        (True, "apply_impulse", (*body, *three("impulse"), *point), "[N s] at once", p.apply_impulse),
        (True, "apply_own_force", (*body, *three("force"), *point), "all in the body's axes, as the next two",
         partial(p.apply_force, own=True)),
        (True, "apply_own_torque", (*body, *three("torque")), "", partial(p.apply_torque, own=True)),
        (True, "apply_own_impulse", (*body, *three("impulse"), *point), "", partial(p.apply_impulse, own=True)),
        (True, "put", (*body, *maybe("position"), *motion), "a free body elsewhere; what is NULL stays", p.put),
        (bool(movable_dofs(live.model).any()), "move_joint", (*whole("dof"), *real("q")),
         "it is there [rad, m] at the end of the next frame, and stands", p.move_joint),
        (True, "contacts", (Argument("rows", "rows", WHOLES + REALS, "contact"),),
         "of the last frame, of what is awake; returns how many", p.contacts),
        (True, "ray", (*three("origin", "direction"), *real("most"), *whole("moving"), *mask, *hit),
         "1: it hits; moving: or 0, also statics; mask: layers that it sees, ~0u all", p.ray),
        (bool(live._probes), "overlap",
         (*whole("probe"), *three("position"), *maybe("quaternion", n=4), *real("within"), *mask,
          Argument("found", "rows", 1, "int")),
         f"what a probe is within so far of; {returned}", QueryPrograms(p).overlap),
        (bool(live._parts.start.spares.names), "add_body", (*whole("kind"), *three("position"), *motion),
         f"a spare one; what is NULL is 0; {spare}", c.add_body),
        (bool(live._parts.start.spares.names), "remove_body", body, "back to where it waits", c.remove_body),
        (bool(topology.pairs), "set_material", (*body, *materials), "of a body or a static; what is NULL stays",
         s.set_material),
        (bool(topology.pairs), "set_pair_material", (*whole("a", "b"), *materials), "of two that touch each other",
         s.set_pair_material),
        (topology.driven, "set_surface_velocity", (*body, *maybe("linear", "angular")), "of a static; NULL is 0",
         s.set_surface_velocity),
        (topology.filtered, "set_layers", (*body, *layers), "of a body or a static; what is NULL stays", c.set_layers),
        (topology.filtered, "ignore_collision", whole("a", "b", "ignore"), "1: a and b go through each other",
         c.ignore_collision),
        (joins, "attach", (*whole("joint"), *point), "where its ends are now", c.attach),
        (joins, "detach", whole("joint"), "cut it", c.detach),
        (joins, "joint_force", (*whole("joint"), Argument("force", "out", 3, "real")),
         "[N] on its first link", c.joint_force),
        (True, "load", (Argument("save", "save"),), "what a save holds", p.load),
    )  # fmt: skip
    digits = (Argument("digits", "out", 33, "char"),)
    return (
        *(
            ExportFunction(name, tuple(given), "int", says, program)
            for there, name, given, says, program in known
            if there
        ),
        ExportFunction("hash", digits, "void", "of the state, as Python's", p.hash, True),
    )


def compile_function(function: ExportFunction, fields: Fields) -> LoweredFunction:
    """A function's lane, traced as `carom.Live` traces its own."""
    with jax.enable_x64(True) if function.wide else contextlib.nullcontext():
        return _compile(function, fields)


def _compile(function: ExportFunction, fields: Fields) -> LoweredFunction:
    names, avals = [], []
    real = fields.all["q"].start.dtype
    for argument in function.arguments:
        for name, shape, dtype in _program_arguments(argument, fields, real):
            names.append(name)
            avals.append(jax.ShapeDtypeStruct(shape, dtype))
    names_of_world = [name for name in sorted(fields.all)]
    avals += [jax.ShapeDtypeStruct(fields.all[n].start.shape, fields.all[n].start.dtype) for n in names_of_world]
    changed: list[str] = []

    def flat(*leaves: Array) -> list[Array]:
        world = dict(zip(names_of_world, leaves[len(names) :], strict=True))
        new, results = function.program(world, *leaves[: len(names)])
        changed[:] = sorted(new)
        for name in changed:
            if name not in fields.all:  # made by a frame only
                fields.all[name] = Field(np.zeros(new[name].shape, new[name].dtype))
        return [*(jnp.asarray(new[n], fields.all[n].start.dtype) for n in changed), *results]

    program = Program(function.name, flat, avals, (0,) * len(avals), None)
    jaxpr = program.closed_jaxpr
    text = lane_text(jaxpr, (0,) * len(avals))
    results = ("result",) * (len(text.outputs) - len(changed))
    return LoweredFunction(function, text, (*names, *names_of_world), (*changed, *results))


def _program_arguments(
    argument: Argument, fields: Fields, real: DTypeLike
) -> Sequence[tuple[str, tuple[int, ...], DTypeLike]]:
    """The program's arguments for one argument of C: name, shape, type of each."""
    name, shape = argument.name, (argument.size,)
    if argument.kind == "maybe":
        return [(name, shape, real), (f"{name}?", (), np.int32)]
    if argument.kind == "bits":
        return [(name, (), np.int32), (f"{name}?", (), np.int32)]
    if argument.kind == "save":
        image = [(n, fields.all[n].start) for n in fields.image]
        return [("save header", (4,), np.int32), *((f"save {n}", x.shape, x.dtype) for n, x in image)]
    if argument.kind in ("out", "rows"):
        return []
    return [(name, shape if argument.kind == "reals" else (), np.int32 if argument.kind == "int" else real)]
