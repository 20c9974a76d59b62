"""Equality constraints of a compiled MJCF model as loops. MuJoCo holds them softly, Carom exactly.

connect: two points coincide; weld: two frames do; joint: q1 = q1_0 + c0 + c1 (q2 - q2_0), with _0 those of qpos0;
tendon: see `couplings.py`.
"""

from __future__ import annotations

from ....collision.poses import Array
from ...joint_specs import Fixed, Spherical
from ...loop_specs import Driven, Gear
from ...spec import LoopSpec
from .compiled import HINGE, SLIDE, Compiled
from .couplings import coupled_joints
from .ledger import Ledger
from .links import IDENTITY, BodyFrame

CONNECT, WELD, JOINT = range(3)  # mjtEq
SITE = 6  # mjOBJ_SITE
NOUNS = {CONNECT: "connect", WELD: "weld", JOINT: "joint equality"}


def read_loops(file: Compiled, body_frames: list[BodyFrame], ledger: Ledger) -> tuple[LoopSpec, ...]:
    """Loops of all active equalities.  body_frames: those of every body, see `links.py`."""
    loops = []
    for i in range(file.m.neq):
        name, kind = file.name("equality", i), int(file.m.eq_type[i])
        if not file.m.eq_active0[i] or {"equality", "constraint"} & file.off:
            ledger.note("ignored", "equality", name, "it is not active at the start")
        elif (joints := coupled_joints(file, i)) is not None:
            loops.append(_coupling(file, i, name, joints, ledger))
        elif kind not in NOUNS:
            ledger.refuse(
                "equality", "equality", name, "it holds a flex, or a tendon that is not a fixed one of two joints"
            )
        else:
            loop = _relation(file, i, name, ledger) if kind == JOINT else _tie(file, i, kind, name, body_frames, ledger)
            loops += [] if loop is None else [loop]
    return tuple(loops)


def _tie(file: Compiled, i: int, kind: int, name: str, body_frames: list[BodyFrame], ledger: Ledger) -> LoopSpec | None:
    m = file.m
    if m.eq_objtype[i] == SITE:
        sites = int(m.eq_obj1id[i]), int(m.eq_obj2id[i])
        bodies = tuple(int(m.site_bodyid[s]) for s in sites)
        frames = [(m.site_pos[s], m.site_quat[s]) for s in sites]
    else:
        bodies = int(m.eq_obj1id[i]), int(m.eq_obj2id[i])
        frames = _anchors(m.eq_data[i], kind)
    first, second = (body_frames[b].compose(*frame) for b, frame in zip(bodies, frames, strict=True))
    if first.owner == second.owner or not (file.moves(bodies[0]) or file.moves(bodies[1])):
        ledger.note("ignored", NOUNS[kind], name, "it holds what cannot move apart")
        return None
    loose = kind == WELD and m.eq_data[i, 10] != 1
    why = "it is held exactly, turns as well as shifts" if loose else "it is held exactly, not softly"
    ledger.note("approximated" if loose else "taken", NOUNS[kind], name, why)
    joint = Spherical() if kind == CONNECT else Fixed()
    return LoopSpec(first.owner, joint, second.owner, *first[1:], *second[1:], name=name)


def _anchors(data: Array, kind: int) -> list[tuple[Array, Array]]:
    """Frames on the two bodies that must coincide."""
    if kind == CONNECT:
        return [(data[0:3], IDENTITY), (data[3:6], IDENTITY)]
    return [(data[3:6], data[6:10]), (data[0:3], IDENTITY)]  # relpose on the first, anchor on the second


def _relation(file: Compiled, i: int, name: str, ledger: Ledger) -> LoopSpec | None:
    m = file.m
    first, second = int(m.eq_obj1id[i]), int(m.eq_obj2id[i])
    joints = [j for j in (first, second) if j >= 0]
    if any(m.jnt_type[j] not in (HINGE, SLIDE) for j in joints):
        ledger.refuse("equality", "joint equality", name, "it is between joints that have no single coordinate")
        return None
    c0, ratio, *curved = (float(x) for x in m.eq_data[i, :5])
    if second < 0:
        ledger.note("taken", "joint equality", name, "the joint is held still")
        return LoopSpec(carrier(file, first), Driven(start=float(_start(file, first)) + c0), name=name)
    if any(curved):
        ledger.refuse("equality", "joint equality", name, "its polycoef is not linear, and Carom's gears are")
        return None
    offset = float(_start(file, first)) + c0 - ratio * float(_start(file, second))
    ledger.note("taken", "joint equality", name, "a gear, held exactly")
    return LoopSpec(carrier(file, first), Gear(ratio, offset), carrier(file, second), name=name)


def _coupling(file: Compiled, i: int, name: str, joints: list[tuple[int, float]], ledger: Ledger) -> LoopSpec:
    (first, c), c0 = joints[0], float(file.m.eq_data[i, 0])
    here = float(_start(file, first)) + c0 / c
    if len(joints) == 1:
        ledger.note("taken", "equality of a fixed tendon", name, "the joint is held still")
        return LoopSpec(carrier(file, first), Driven(start=here), name=name)
    second, ratio = joints[1][0], -joints[1][1] / c
    ledger.note("taken", "equality of a fixed tendon", name, "a gear, held exactly")
    offset = here - ratio * float(_start(file, second))
    return LoopSpec(carrier(file, first), Gear(ratio, offset), carrier(file, second), name=name)


def _start(file: Compiled, j: int) -> float:
    return file.m.qpos0[file.m.jnt_qposadr[j]]


def carrier(file: Compiled, j: int) -> str:
    """The link that a joint moves: the body's own if it is the last of its body, see `links.py`."""
    b = int(file.m.jnt_bodyid[j])
    last = j == file.m.body_jntadr[b] + file.m.body_jntnum[b] - 1
    return file.name("body", b) if last else f"{file.name('body', b)}/{file.name('joint', j)}"
