"""The same tree in MuJoCo, written as XML, and the maps between its conventions and Carom's.

A joint of several degrees of freedom becomes several joints of one body, applied in their order in the XML.
MuJoCo has no screw. A free joint's velocity is (linear in world axes, angular in the child's axes); Carom's is
(angular, linear), both in world axes: v_mj = T v, and dT/dt v = 0, since dw/dt is the same seen from the child.
"""

# pyright does not see the names of a compiled module
# pyright: reportAttributeAccessIssue=false

import mujoco
import numpy as np

from carom.engine.model import Model

# the XML joints of one of ours: type, axis, and which of our degrees of freedom it starts at
SPLIT = {
    "fixed": (),
    "revolute": (("hinge", "axis", 0),),
    "prismatic": (("slide", "axis", 0),),
    "cylindrical": (("hinge", "axis", 0), ("slide", "axis", 1)),
    "universal": (("hinge", "axis", 0), ("hinge", "axis2", 1)),
    "planar": (("slide", "axis2", 1), ("slide", "axis3", 2), ("hinge", "axis", 0)),
    "spherical": (("ball", None, 0),),
    "floating": (("free", None, 0),),
}


class Oracle:
    """MuJoCo's answers for a Carom model, in Carom's conventions. Arguments are for one state."""

    def __init__(self, model: Model):
        self.topology = model.topology
        self.mj = mujoco.MjModel.from_xml_string(xml(model))
        self.data = mujoco.MjData(self.mj)
        self.q_of: list[int] = []
        self.v_of: list[int] = []
        self.free: list[tuple[int, int]] = []  # first coordinate and angular row of each free joint
        for j in range(self.mj.njnt):  # MuJoCo's order is its own: depth first
            link, k = (int(n) for n in self.mj.joint(j).name.split("."))
            q0, v0 = self.topology.q_start[link] + k, self.topology.v_start[link] + k
            if self.topology.joints[link] == "floating":
                self.free.append((q0, len(self.v_of) + 3))
                self.q_of += range(q0, q0 + 7)
                self.v_of += [v0 + d for d in (3, 4, 5, 0, 1, 2)]
            elif self.topology.joints[link] == "spherical":
                self.q_of += range(q0, q0 + 4)
                self.v_of += range(v0, v0 + 3)
            else:
                self.q_of.append(q0)
                self.v_of.append(v0)
        self.mj.dof_armature[:] = np.array(model.armature)[self.v_of]  # XML has one number a joint

    def T(self, q: np.ndarray) -> np.ndarray:
        """v_mj = T v."""
        T = np.eye(self.topology.nv)[self.v_of]
        for q0, row in self.free:
            R = np.empty(9)
            mujoco.mju_quat2Mat(R, q[q0 + 3 : q0 + 7])
            T[row : row + 3] = R.reshape(3, 3).T @ T[row : row + 3]
        return T

    def forward(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Puts MuJoCo into the state; returns T."""
        T = self.T(q)
        self.data.qpos[:], self.data.qvel[:] = q[self.q_of], T @ v
        mujoco.mj_forward(self.mj, self.data)
        return T

    def crba(self, q, v) -> np.ndarray:
        T, M = self.forward(q, v), np.zeros((self.mj.nv, self.mj.nv))
        mujoco.mj_fullM(self.mj, self.data, M)
        return T.T @ M @ T

    def bias(self, q, v) -> np.ndarray:
        """Joint forces at zero acceleration."""
        return self.forward(q, v).T @ self.data.qfrc_bias

    def acceleration(self, q, v, tau) -> np.ndarray:
        """Of a scene without contacts, springs and damping."""
        T = self.T(q)
        self.data.qfrc_applied[:] = np.linalg.solve(T.T, tau)
        self.forward(q, v)
        return np.linalg.solve(T, self.data.qacc)

    def positions(self, q, v) -> np.ndarray:
        self.forward(q, v)
        return np.array([self.data.body(f"link{i}").xpos for i in range(self.topology.n_links)])


def xml(model: Model) -> str:
    """The tree as MJCF, numbers to the last digit."""
    options = f'<option gravity="{digits(model.gravity)}"><flag contact="disable"/></option>'
    world = "".join(_body(model, i) for i, p in enumerate(model.topology.parents) if p < 0)
    return f'<mujoco><compiler angle="radian"/>{options}<worldbody>{world}</worldbody></mujoco>'


def _body(model: Model, i: int) -> str:
    I = model.inertia[i]
    six = (I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2])
    axes = {"axis": model.axis[i], "axis2": model.axis2[i], "axis3": np.cross(model.axis[i], model.axis2[i])}
    joints = "".join(
        f'<joint name="{i}.{k}" type="{kind}"' + (f' axis="{digits(axes[axis])}"/>' if axis else "/>")
        for kind, axis, k in SPLIT[model.topology.joints[i]]
    )
    children = "".join(_body(model, k) for k, p in enumerate(model.topology.parents) if p == i)
    return (
        f'<body name="link{i}" pos="{digits(model.joint_position[i])}" quat="{digits(model.joint_quaternion[i])}">'
        f'<inertial mass="{digits([model.mass[i]])}" pos="{digits(model.com[i])}" fullinertia="{digits(six)}"/>'
        f"{joints}{children}</body>"
    )


def digits(numbers) -> str:
    return " ".join(f"{x:.17g}" for x in numbers)
