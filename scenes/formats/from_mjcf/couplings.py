"""Fixed tendons whose length an equality holds: they couple the coordinates of joints, sum of c (q - q0) = c0."""

from __future__ import annotations

from .compiled import Compiled

TENDON, ON_JOINT = 3, 1  # mjtEq, mjtWrap


def coupled_joints(file: Compiled, equality: int) -> list[tuple[int, float]] | None:
    """The joints that an equality of one fixed tendon couples, and their coefficients; None if it does not."""
    m = file.m
    if m.eq_type[equality] != TENDON or m.eq_obj2id[equality] >= 0:
        return None
    tendon = int(m.eq_obj1id[equality])
    parts = range(m.tendon_adr[tendon], m.tendon_adr[tendon] + m.tendon_num[tendon])
    if any(m.wrap_type[k] != ON_JOINT for k in parts):
        return None
    joints = [(int(m.wrap_objid[k]), float(m.wrap_prm[k])) for k in parts if m.wrap_prm[k]]
    return joints if 1 <= len(joints) <= 2 and len({j for j, _ in joints}) == len(joints) else None


def held_tendons(file: Compiled) -> set[int]:
    """Tendons whose length never changes, so that their springs, losses and masses do nothing."""
    m, off = file.m, {"equality", "constraint"} & file.off
    return {
        int(m.eq_obj1id[i]) for i in range(m.neq) if m.eq_active0[i] and not off and coupled_joints(file, i) is not None
    }
