"""Actuators of a compiled MJCF model as motors of joints.

MuJoCo: force = gain u + b0 + b1 l + b2 dl/dt, clipped, with l = gear q; gear times that is the torque. Carom: torque =
clip(k u - kp q - kd v). Both are the same law, with u in other units.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ....collision.poses import Array
from ...joint_specs import Motor
from ..report import Actuator
from .compiled import HINGE, SLIDE, Compiled
from .ledger import Ledger

ON_JOINTS = (0, 1)  # mjtTrn: in the child's axes, in the parent's
FIXED, AFFINE = 0, 1  # mjtGain
NO_BIAS, LINEAR_BIAS = 0, 1  # mjtBias
DIRECT, INTEGRATOR, FILTERS = 0, 1, (2, 3)  # mjtDyn


class ActuatorEffect(NamedTuple):
    """The effect of a joint's actuators: a motor, and the armature and damping of their rotors."""

    motor: Motor | None = None
    armature: float = 0.0
    damping: float = 0.0


class TorqueLaw(NamedTuple):
    """torque = clip(scale u + constant - kp q - kd v, -effort, effort); u: the control at the start."""

    scale: float
    constant: float
    kp: float
    kd: float
    effort: float
    u: float
    actuator: int


def read_motors(file: Compiled, ledger: Ledger) -> tuple[dict[int, ActuatorEffect], tuple[Actuator, ...]]:
    """Effects of actuators by joint; and the actuators that these motors represent."""
    m = file.m
    laws: dict[int, list[TorqueLaw]] = {}
    rotors: dict[int, Array] = {}
    many = m.nu != getattr(m, "nactuator", m.nu) or m.nu != getattr(m, "nout", m.nu)
    for i in range(getattr(m, "nactuator", m.nu)):
        name, j = file.name("actuator", i), m.actuator_trnid[i, 0]
        if many:
            ledger.refuse("actuator", "actuator", name, "some actuator of the file has several controls or outputs")
        elif "actuation" in file.off or (m.opt.disableactuator >> max(m.actuator_group[i], 0)) & 1:
            ledger.note("ignored", "actuator", name, "the file switches it off")
        elif m.actuator_trntype[i] in ON_JOINTS and m.jnt_type[j] in (HINGE, SLIDE):
            rotor = np.array([file.value("actuator_armature", i), _number(file.value("actuator_damping", i))])
            rotors[j] = rotors.get(j, np.zeros(2)) + m.actuator_gear[i, 0] ** 2 * rotor
            law = _law(file, i, ledger)
            laws.setdefault(j, []).extend([law] if law else [])
        else:
            _elsewhere(file, i, ledger)
    drives = {j: ActuatorEffect(_motor(file, j, laws[j], ledger), *rotors[j].tolist()) for j in laws}
    driven = sorted((law.actuator, j, law, _gain(laws[j])) for j in laws for law in laws[j])
    return drives, tuple(_actuator(file, j, law, gain) for _, j, law, gain in driven)


def _gain(laws: list[TorqueLaw]) -> float:
    """The gain of a joint's motor."""
    return sum(law.kp for law in laws) or sum(law.kd for law in laws) or 1.0


def _actuator(file: Compiled, j: int, law: TorqueLaw, gain: float) -> Actuator:
    m, i = file.m, law.actuator
    lower, upper = -np.inf, np.inf
    if m.actuator_dyntype[i] == INTEGRATOR:
        lower, upper = m.actuator_actrange[i].tolist() if m.actuator_actlimited[i] else (lower, upper)
    elif _is_clamped(file, i):
        lower, upper = m.actuator_ctrlrange[i].tolist()
    name = m.actuator(i).name or file.name("joint", j)
    return Actuator(name, file.link_of(j), 0, lower, upper, law.scale / gain, law.constant / gain)


def _number(value: float | Array) -> float:
    return float(np.sum(value))


def _elsewhere(file: Compiled, i: int, ledger: Ledger) -> None:
    """Note an actuator of a tendon, a site, a body, a ball or a free joint."""
    m, name = file.m, file.name("actuator", i)
    heavy = np.any(file.value("actuator_armature", i)) or np.any(file.value("actuator_damping", i))
    if m.actuator_gaintype[i] <= AFFINE and m.actuator_biastype[i] == NO_BIAS and not heavy:
        why = "it drives no hinge or slide, and exerts no force unless driven: apply its force by hand"
        ledger.note("ignored", "actuator", name, why)
    else:
        why = "it acts on something else than a hinge or a slide, whether it is driven or not"
        ledger.refuse("actuator", "actuator", name, why)


def _law(file: Compiled, i: int, ledger: Ledger) -> TorqueLaw | None:
    """The law of one actuator of a joint; None: it exerts no force, or is refused."""
    m, name = file.m, file.name("actuator", i)
    gear, gain = m.actuator_gear[i, 0], m.actuator_gainprm[i]
    bias = m.actuator_biasprm[i] if m.actuator_biastype[i] == LINEAR_BIAS else np.zeros(3)
    fixed = m.actuator_gaintype[i] == FIXED or (m.actuator_gaintype[i] == AFFINE and not gain[1:3].any())
    linear = m.actuator_biastype[i] in (NO_BIAS, LINEAR_BIAS) and bias[1] <= 0 and bias[2] <= 0
    if not (fixed and linear and m.actuator_dyntype[i] in (DIRECT, INTEGRATOR, *FILTERS)):
        ledger.refuse("actuator", "actuator", name, "its law is neither a torque nor a spring and damper to a target")
        return None
    u = _clamp(file.ctrl[i], _is_clamped(file, i), m.actuator_ctrlrange[i])
    if m.actuator_dyntype[i] == INTEGRATOR:
        why = "its ctrl is a rate, which nothing integrates: u stands for its activation, the integral"
        ledger.note("approximated", "actuator", name, why)
    elif m.actuator_dyntype[i] != DIRECT or np.any(file.value("actuator_delay", i)):
        why = "it acts at once: its activation or delay is left out, and u is what it would come to"
        ledger.note("approximated", "actuator", name, why)
    if m.actuator_dyntype[i] != DIRECT:
        u = _clamp(0.0, m.actuator_actlimited[i], m.actuator_actrange[i])
    effort = np.inf
    if m.actuator_forcelimited[i]:
        effort = abs(gear) * _bound(m.actuator_forcerange[i], name, ledger)
    if bias.any() and _is_clamped(file, i):
        ledger.note("ignored", "control range of actuator", name, "its motor takes any target")
    elif _is_clamped(file, i):
        effort = min(effort, abs(gear * gain[0]) * _bound(m.actuator_ctrlrange[i], name, ledger))
    if gear == 0 or effort == 0:
        ledger.note("ignored", "actuator", name, "its gear or its limits leave it no force")
        return None
    return TorqueLaw(gear * gain[0], gear * bias[0], -bias[1] * gear**2, -bias[2] * gear**2, effort, u, i)


def _is_clamped(file: Compiled, i: int) -> bool:
    """Return whether an actuator's control is clamped to its range."""
    return bool(file.m.actuator_ctrllimited[i]) and "clampctrl" not in file.off


def _clamp(u: float, limited: bool, interval: Array) -> float:
    return float(np.clip(u, *interval)) if limited else float(u)


def _bound(interval: Array, name: str, ledger: Ledger) -> float:
    if interval[0] != -interval[1]:
        ledger.note(
            "approximated", "limits of actuator", name, "a motor's are symmetric: the wider one holds both ways"
        )
    return float(np.abs(interval).max())


def _motor(file: Compiled, j: int, laws: list[TorqueLaw], ledger: Ledger) -> Motor | None:
    """One motor for all actuators of a joint: the sum of their laws."""
    m, joint = file.m, file.name("joint", j)
    if not laws:
        return None
    kp, kd = sum(law.kp for law in laws), sum(law.kd for law in laws)
    effort, constant = sum(law.effort for law in laws), sum(law.scale * law.u + law.constant for law in laws)
    if m.jnt_actfrclimited[j]:
        effort = min(effort, _bound(m.jnt_actfrcrange[j], joint, ledger))
    gain = _gain(laws)
    scale, offset = (laws[0].scale / gain, laws[0].constant / gain) if len(laws) == 1 else (0.0, 0.0)
    kind = "position" if kp else "velocity" if kd else "torque"
    shift = f" + {offset:.6g}" if offset else ""
    why = f"{kind} motor" if (scale, shift) == (1.0, "") else f"{kind} motor, its u is {scale:.6g} ctrl{shift}"
    if len(laws) > 1:
        some = 0 < sum(law.effort < np.inf for law in laws) < len(laws)
        added = "forces added up, limits left out: some have none" if some else "limits and forces added up"
        why = f"{kind} motor in place of {len(laws)} actuators, their {added}"
    ledger.note("taken" if len(laws) == 1 else "approximated", "actuated joint", joint, why)
    limits = {"effort": effort, "target": constant / gain}
    return Motor(kind, kp=kp if kp else None, kd=kd if kp or kd else None, **limits)
