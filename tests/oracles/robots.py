"""Robots of the PyPI package example-robot-data, and what Pinocchio makes of a URDF, in Carom's conventions.

Carom's joint is known by the link that it carries, Pinocchio's by its own name. Conventions that differ:

    floating    q = (position, x y z w) in the joint frame, v = (linear, angular) in the child's axes;
                Carom: (position, w x y z), v = (angular, linear), all in the world
    continuous  q = (cos, sin); Carom: the angle
    planar      q = (x, y, cos, sin), v = (x, y, turn) in the child's axes; Carom: (turn, x, y) in the joint frame's

so v_pin = T v, a_pin = T a + dT/dt v, tau = T^T tau_pin and M = T^T M_pin T. A joint that Carom has fixed stays where
it starts: it has no column in T. Pinocchio takes every planar joint's normal for z.
"""

# pyright does not see the names of a compiled module
# pyright: reportAttributeAccessIssue=false

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin

from carom.engine.topology import Topology


def urdf_files() -> dict[str, Path]:
    """Every URDF of example-robot-data by its path inside the collection; empty where that is not installed."""
    try:
        folder = Path(str(distribution("example-robot-data").locate_file("cmeel.prefix"))) / "share/example-robot-data"
    except PackageNotFoundError:
        return {}
    return {str(path.relative_to(folder / "robots")): path for path in sorted(folder.glob("robots/**/*.urdf"))}


class UrdfOracle:
    """Pinocchio's answers for a URDF. Arguments are for one state of a Carom model with the given topology."""

    def __init__(self, path: Path, topology: Topology, floating: bool = False):
        self.topology = topology
        root = (pin.JointModelFreeFlyer(),) if floating else ()
        self.pin = pin.buildModelFromUrdf(str(path), *root)
        self.data = self.pin.createData()
        written = {joint.get("name"): joint for joint in ElementTree.parse(path).getroot().findall("joint")}
        starts = {name: _start(joint, written) for name, joint in written.items()}
        self.rows = []  # of each of Pinocchio's joints: itself, Carom's link (-1: fixed there), where it starts
        for name, joint in zip(self.pin.names, self.pin.joints, strict=True):
            if name == "universe":
                continue
            link = written[name].findall("child")[0].get("link") if name in written else topology.names[0]
            i = topology.names.index(link)
            self.rows.append((joint, -1 if topology.joints[i] == "fixed" else i, starts.get(name, 0.0)))

    def q(self, q: np.ndarray) -> np.ndarray:
        out = np.zeros(self.pin.nq)
        for joint, link, start in self.rows:
            own = np.array([start]) if link < 0 else q[self.topology.q_start[link] :]
            if joint.nq == 1:
                x = own[:1]
            elif joint.nq == 2:
                x = np.array([np.cos(own[0]), np.sin(own[0])])
            elif joint.nq == 4:
                x = np.array([own[1], own[2], np.cos(own[0]), np.sin(own[0])])
            else:
                frame = self.pin.jointPlacements[joint.id].inverse() * pin.SE3(_matrix(own), own[:3])
                x = pin.SE3ToXYZQUAT(frame)
            out[joint.idx_q : joint.idx_q + joint.nq] = x
        return out

    def T(self, q: np.ndarray) -> np.ndarray:
        """(nv of Pinocchio, nv of Carom)."""
        T = np.zeros((self.pin.nv, self.topology.nv))
        for joint, link, _ in self.rows:
            if link >= 0:
                v0, own = self.topology.v_start[link], q[self.topology.q_start[link] :]
                block = _to_child(joint.nv, own)
                T[joint.idx_v : joint.idx_v + joint.nv, v0 : v0 + joint.nv] = block
        return T

    def rnea(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        T = self.T(q)
        v_pin, a_pin = T @ v, T @ a
        for joint, link, _ in self.rows:
            x = slice(joint.idx_v, joint.idx_v + joint.nv)
            if link >= 0 and joint.nv == 6:
                a_pin[x][:3] -= np.cross(v_pin[x][3:], v_pin[x][:3])
            elif link >= 0 and joint.nv == 3:
                vx, vy, turn = v_pin[x]
                a_pin[x] += [turn * vy, -turn * vx, 0]
        return T.T @ pin.rnea(self.pin, self.data, self.q(q), v_pin, a_pin)

    def crba(self, q: np.ndarray) -> np.ndarray:
        T = self.T(q)
        M = np.triu(pin.crba(self.pin, self.data, self.q(q)).reshape(len(T), len(T)))
        return T.T @ (M + np.triu(M, 1).T) @ T

    def poses(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Positions (nl, 3) and rotations (nl, 3, 3) of Carom's links."""
        pin.framesForwardKinematics(self.pin, self.data, self.q(q))
        frames = [self.data.oMf[self.pin.getFrameId(name, pin.FrameType.BODY)] for name in self.topology.names]
        return np.array([f.translation for f in frames]), np.array([f.rotation for f in frames])


def _start(joint: ElementTree.Element, joints: dict) -> float:
    """Where a joint starts when nobody says: what it follows decides, or the place within its limits nearest to 0."""
    mimic, limit = joint.find("mimic"), joint.find("limit")
    if mimic is not None and mimic.get("joint") in joints:
        leader = _start(joints[mimic.get("joint")], joints)
        return float(mimic.get("multiplier", 1)) * leader + float(mimic.get("offset", 0))
    if limit is None or joint.get("type") not in ("revolute", "prismatic"):
        return 0.0
    return min(max(0.0, float(limit.get("lower", 0))), float(limit.get("upper", 0)))


def _to_child(nv: int, own: np.ndarray) -> np.ndarray:
    """(nv, nv): Carom's velocity of a joint to Pinocchio's; own: the joint's coordinates, and what comes after them."""
    if nv == 1:
        return np.eye(1)
    if nv == 3:
        c, s = np.cos(own[0]), np.sin(own[0])
        return np.array([[0, c, s], [0, -s, c], [1, 0, 0]])
    R, zero = _matrix(own), np.zeros((3, 3))
    return np.block([[zero, R.T], [R.T, zero]])


def _matrix(own: np.ndarray) -> np.ndarray:
    """(3, 3) orientation in a floating joint's coordinates."""
    w, x, y, z = own[3:7]
    return pin.Quaternion(w, x, y, z).matrix()
