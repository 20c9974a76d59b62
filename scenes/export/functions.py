"""The functions of an exported world, as C sees them: what each is given, and the program behind it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...engine.native.code import LaneText, lane_text
from ...engine.native.primitive import Program
from .asking import Questions
from .changes import Changes
from .contacts import REALS, WHOLES
from .fields import Field, Fields
from .programs import Programs

HIT_WHOLES, HIT_REALS = 2, 7  # of what a ray hits


@dataclass(frozen=True)
class Argument:
    """kind: "real" or "int", a number; "reals", an array of `size` real numbers; "maybe", one or NULL; "bits", where a
    set of layers is, or NULL; "save", bytes and how many; "out", where `size` numbers go; "rows", where records go, and
    how many there is room for.  type: of C, where that does not say it."""

    name: str
    kind: str
    size: int = 1
    type: str = ""


@dataclass(frozen=True)
class Function:
    """name: without the world's.  arguments: behind the world.  returns: "int" or "void".  says: what it does.
    program: see `programs.py`.  wide: needs jax to have 64 bits."""

    name: str
    arguments: tuple[Argument, ...]
    returns: str
    says: str
    program: Callable[..., Any]
    wide: bool = False


@dataclass(frozen=True)
class Compiled:
    """function: what it is of.  text: of its lane.  reads, writes: what each input and each result of the lane is: the
    name of a field, or of an argument, or "result"."""

    function: Function
    text: LaneText
    reads: tuple[str, ...]
    writes: tuple[str, ...]


def functions_of(programs: Programs) -> tuple[Function, ...]:
    """All of a world's functions that compute anything; the frame is the first."""
    body, three = Argument("body", "int"), lambda name: Argument(name, "reals", 3)
    maybe = lambda name, n=3: Argument(name, "maybe", n)  # noqa: E731
    p, c, topology = programs, Changes(programs), programs.live.model.topology
    save = Argument("save", "save")
    rows = Argument("rows", "rows", WHOLES + REALS, "contact")
    hit = Argument("hit", "out", HIT_WHOLES + HIT_REALS, "hit")
    turned = (maybe("quaternion", 4), maybe("linear"), maybe("angular"))
    moved, added = (body, maybe("position"), *turned), (Argument("kind", "int"), three("position"), *turned)
    layers, two = (Argument(name, "bits") for name in ("group", "mask")), (Argument(name, "int") for name in "ab")
    joint, ignore = Argument("joint", "int"), Argument("ignore", "int")
    force = Argument("force", "out", 3, "real")
    says = "returns its number; -1: all are in use, -1000: that cannot be"
    pool = (
        Function("add_body", added, "int", f"a spare one; what is NULL is 0; {says}", c.add_body),
        Function("remove_body", (body,), "int", "back to where it waits", c.remove_body),
    )
    filters = (
        Function("set_layers", (body, *layers), "int", "of a body or a static; what is NULL stays", c.set_layers),
        Function("ignore_collision", (*two, ignore), "int", "1: a and b go through each other", c.ignore_collision),
    )
    pose = (Argument("probe", "int"), three("position"), maybe("quaternion", 4), Argument("within", "real"))
    found = (Argument("mask", "int", type="uint32_t"), Argument("found", "rows", 1, "int"))
    says = "returns how many bodies and statics are found, the nearest first, or -1000"
    asked = (
        Function("overlap", (*pose, *found), "int", f"what a probe is within so far of; {says}", Questions(p).overlap),
    )
    joints = (
        Function("attach", (joint, maybe("point")), "int", "where its ends are now", c.attach),
        Function("detach", (joint,), "int", "cut it", c.detach),
        Function("joint_force", (joint, force), "int", "[N] on its first link, contacts left out", c.joint_force),
    )
    return (
        Function("step", (Argument("dt", "real"),), "int", "a frame of dt seconds", p.step),
        Function(
            "apply_force", (body, three("force"), maybe("point")), "int", "[N] through the next frame", p.apply_force
        ),
        Function("apply_torque", (body, three("torque")), "int", "[N m] through the next frame", p.apply_torque),
        Function("apply_impulse", (body, three("impulse"), maybe("point")), "int", "[N s] at once", p.apply_impulse),
        Function("put", moved, "int", "a free body elsewhere; what is NULL stays", p.put),
        Function("contacts", (rows,), "int", "of the last frame, of what is awake; returns how many", p.contacts),
        Function(
            "ray",
            (
                three("origin"),
                three("direction"),
                Argument("most", "real"),
                Argument("moving", "int"),
                Argument("mask", "int", type="uint32_t"),
                hit,
            ),
            "int",
            "1: it hits; moving: or 0, also statics; mask: layers that it sees, ~0u all",
            p.ray,
        ),
        *(asked if programs.live._probes else ()),
        *(pool if programs.live._parts.start.spares.names else ()),
        *(filters if topology.filtered else ()),
        *(joints if any(loop.switched for loop in topology.loops) else ()),
        Function("load", (save,), "int", "what a save holds", p.load),
        Function("hash", (Argument("digits", "out", 33, "char"),), "void", "of the state, as Python's", p.hash, True),
    )


def compiled(function: Function, fields: Fields) -> Compiled:
    """A function's lane, traced as `carom.Live` traces its own."""
    with jax.enable_x64(True) if function.wide else contextlib.nullcontext():
        return _compiled(function, fields)


def _compiled(function: Function, fields: Fields) -> Compiled:
    names, avals = [], []
    real = fields.all["q"].start.dtype
    for argument in function.arguments:
        for name, shape, dtype in _given(argument, fields, real):
            names.append(name)
            avals.append(jax.ShapeDtypeStruct(shape, dtype))
    held = [name for name in sorted(fields.all)]
    avals += [jax.ShapeDtypeStruct(fields.all[n].start.shape, fields.all[n].start.dtype) for n in held]
    changed: list[str] = []

    def flat(*leaves: Any) -> list[Any]:
        world = dict(zip(held, leaves[len(names) :], strict=True))
        new, results = function.program(world, *leaves[: len(names)])
        changed[:] = sorted(new)
        for name in changed:
            if name not in fields.all:  # what only a frame makes
                fields.all[name] = Field(np.zeros(new[name].shape, new[name].dtype))
        return [*(jnp.asarray(new[n], fields.all[n].start.dtype) for n in changed), *results]

    program = Program(function.name, flat, avals, (0,) * len(avals), None)
    closed = program.closed
    text = lane_text(closed, (0,) * len(avals))
    results = ("result",) * (len(text.outputs) - len(changed))
    return Compiled(function, text, (*names, *held), (*changed, *results))


def _given(argument: Argument, fields: Fields, real: Any) -> Sequence[tuple[str, tuple[int, ...], Any]]:
    """What of the program's arguments stands for one of C's: name, shape, type."""
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
