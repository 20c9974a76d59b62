"""Elements of an MJCF model besides bodies, joints, geoms and motors: refused, approximated or ignored, and why."""

from __future__ import annotations

import numpy as np

from .compiled import BALL, FREE, Compiled
from .couplings import held_tendons
from .ledger import Ledger

# kinds that `drop` may name
KINDS = (
    "equality", "tendon", "actuator", "gravcomp", "fluid", "armature", "spring", "sdf", "flex", "plugin", "pair",
)  # fmt: skip

# counts of elements that do not affect motion
UNSEEN = {
    "camera": "ncam", "light": "nlight", "material": "nmat", "texture": "ntex",
    "skin": "nskin", "custom number": "nnumeric", "custom text": "ntext", "tuple": "ntuple",
}  # fmt: skip


def note_left_out(file: Compiled, ledger: Ledger) -> None:
    _tendons(file, ledger)
    _forces(file, ledger)
    _contacts(file, ledger)
    for noun, count in UNSEEN.items():
        if getattr(file.m, count, 0):
            ledger.note("ignored", f"{noun}s: {getattr(file.m, count)}", "", "they do not move the scene")
    why = "Carom finds the times of impacts, and solves contacts as impulses"
    ledger.note("ignored", "option timestep, integrator, solver; solref, solimp, margin, gap", "", why)


def _tendons(file: Compiled, ledger: Ledger) -> None:
    m = file.m
    used = set(m.actuator_trnid[m.actuator_trntype == 3, 0].tolist()) if m.nu else set()
    held = held_tendons(file)
    for i in range(m.ntendon):
        fields = ("stiffness", "stiffnesspoly", "damping", "dampingpoly", "frictionloss", "limited", "armature")
        acts = any(np.any(file.value(f"tendon_{field}", i)) for field in fields)
        name = file.name("tendon", i)
        if acts and i in held:
            ledger.note("ignored", "tendon", name, "an equality holds its length")
        elif acts:
            ledger.refuse("tendon", "tendon", name, "it pulls, is limited or has mass, and Carom has no tendons")
        else:
            ledger.note("ignored", "tendon", name, "it is driven only" if i in used else "it exerts no force")


def _forces(file: Compiled, ledger: Ledger) -> None:
    m = file.m
    for j in range(m.njnt):
        name, dof = file.name("joint", j), m.jnt_dofadr[j]
        if m.jnt_type[j] == FREE and m.dof_armature[dof]:
            ledger.refuse("armature", "armature of free joint", name, "a body that is free has no rotor")
        if m.jnt_type[j] == FREE and m.jnt_stiffness[j]:
            ledger.refuse("spring", "spring of free joint", name, "a body that is free hangs on no spring")
        if m.jnt_type[j] in (FREE, BALL) and m.dof_frictionloss[dof]:
            why = "it acts along the axes that Carom measures the joint's velocity in"
            ledger.note("approximated", "frictionloss of joint", name, why)
        curved = ("jnt_stiffnesspoly", j), ("jnt_springyield", j), ("dof_dampingpoly", dof)
        if any(np.any(file.value(*where)) for where in curved):
            ledger.refuse("spring", "spring or damper of joint", name, "Carom's are linear")
        if m.dof_damping[dof] < 0:
            ledger.refuse("spring", "damping of joint", name, f"it is negative, {m.dof_damping[dof]:g}")
    for i in range(m.nu):
        if np.any(file.value("actuator_dampingpoly", i)):
            ledger.refuse("spring", "damper of actuator", file.name("actuator", i), "Carom's are linear")
    for b in np.flatnonzero(m.body_gravcomp).tolist():
        ledger.refuse("gravcomp", "gravcomp of body", file.name("body", b), "gravity acts on all bodies alike")
    if m.opt.density > 0 or m.opt.viscosity > 0:
        name = f"density {m.opt.density:g}, viscosity {m.opt.viscosity:g}"
        ledger.refuse("fluid", "option", name, "Carom's scenes stand in a vacuum")
    for i in range(m.nflex):
        ledger.refuse("flex", "flex", file.name("flex", i), "Carom's bodies are rigid")
    for kind in ("body", "actuator"):
        for i in np.flatnonzero(getattr(m, f"{kind}_plugin") >= 0).tolist():
            ledger.refuse("plugin", f"plugin of {kind}", file.name(kind, i), "only MuJoCo can run it")


def _contacts(file: Compiled, ledger: Ledger) -> None:
    m = file.m
    if (m.geom_condim > 3).any():
        why = "left out: what slides is slowed, what spins or rolls is not"
        ledger.note("approximated", "torsional and rolling friction", "", why)
    for field, noun in (("geom_adhesion", "adhesion of geom"), ("geom_surfacevel", "moving surface of geom")):
        for g in range(m.ngeom):
            if np.any(file.value(field, g)):
                ledger.note("approximated", noun, file.name("geom", g), "left out")
    excluded = {frozenset((int(s) >> 16, int(s) & 0xFFFF)) for s in m.exclude_signature}
    for k in range(m.npair):
        a, b = (int(m.geom_bodyid[int(getattr(m, f"pair_geom{n}")[k])]) for n in (1, 2))
        weld_a, weld_b = m.body_weldid[a], m.body_weldid[b]
        above_a, above_b = (m.body_weldid[m.body_parentid[weld]] for weld in (weld_a, weld_b))
        near = weld_a == weld_b or (weld_a and weld_b and (above_a == weld_b or above_b == weld_a))
        both = f"{file.name('body', a)}, {file.name('body', b)}"
        if near:
            ledger.note("approximated", "pair", both, "neighbours do not touch")
        elif frozenset((a, b)) in excluded:
            ledger.note("approximated", "pair", both, "excluded bodies do not touch")
        elif m.pair_dim[k] > 1 and m.pair_friction[k, 0] != m.pair_friction[k, 1]:
            along = "friction {:g} along one tangent and {:g} along the other".format(*m.pair_friction[k, :2])
            ledger.note("approximated", "pair", both, f"{along}: the first holds all round")
        else:
            ledger.note("taken", "pair", both)
