"""The same tree in Pinocchio, and the maps between its conventions and Carom's.

A joint of several degrees of freedom becomes a row of Pinocchio's simple joints with massless bodies in
between; fixed links are welded to what carries them. What then still differs:

    order      planar: (x, y, angle) here, (angle, x, y) in Carom; quaternions x y z w here, w x y z in Carom
    floating   v here is (linear, angular) in the child's axes, in Carom (angular, linear) in world axes

so v_pin = T v with T a permutation and, for floating joints, a rotation R^T. Then tau = T^T tau_pin,
M = T^T M_pin T, J = J_pin T and a_pin = T a + dT/dt v, of which only - w x v (child's axes) remains.
"""

# pyright does not see the names of a compiled module
# pyright: reportAttributeAccessIssue=false

import numpy as np
import pinocchio as pin

from carom.engine.model import Model

# simple joints, in order from the parent outwards; the coordinate of Carom's joint that each of them is
SPLIT = {
    "fixed": (),
    "revolute": ((pin.JointModelRevoluteUnaligned, "axis", 0),),
    "prismatic": ((pin.JointModelPrismaticUnaligned, "axis", 0),),
    "screw": ((pin.JointModelHelicalUnaligned, "axis", 0),),
    "cylindrical": ((pin.JointModelRevoluteUnaligned, "axis", 0), (pin.JointModelPrismaticUnaligned, "axis", 1)),
    "universal": ((pin.JointModelRevoluteUnaligned, "axis", 0), (pin.JointModelRevoluteUnaligned, "axis2", 1)),
    "planar": (
        (pin.JointModelPrismaticUnaligned, "axis2", 1),
        (pin.JointModelPrismaticUnaligned, "axis3", 2),
        (pin.JointModelRevoluteUnaligned, "axis", 0),
    ),
}
XYZW = [1, 2, 3, 0]


class Oracle:
    """Pinocchio's answers for a Carom model, in Carom's conventions. Arguments are for one state."""

    def __init__(self, model: Model):
        self.topology = model.topology
        self.pin = pin.Model()
        self.pin.gravity.linear = np.array(model.gravity, float)
        self.q_of: list[int] = []  # Carom's coordinate behind each of Pinocchio's
        self.v_of: list[int] = []
        self.static_weight = 0.0  # potential energy of links on the world, which Pinocchio leaves out
        self.free: list[tuple[int, int]] = []  # first (q, v) of each floating joint
        self.frames = [0] * self.topology.n_links  # Pinocchio's index of each link's frame
        self._add_children(model, -1, 0, pin.SE3.Identity())
        self.bare = pin.Model(self.pin)  # pin 4.1's kinetic energy and armature: not v M v / 2
        self.armature = np.array(model.armature)
        self.pin.armature = self.armature[self.v_of]
        self.data = self.pin.createData()

    def _add_children(self, model: Model, parent: int, carrier: int, pose: pin.SE3) -> None:
        """Depth first, as Pinocchio's crba expects: it takes a subtree's joints to be consecutive."""
        for i in range(self.topology.n_links):
            if self.topology.parents[i] == parent:
                self._add_children(model, i, *self._add_link(model, i, carrier, pose))

    def _add_link(self, model: Model, i: int, carrier: int, pose: pin.SE3) -> tuple[int, pin.SE3]:
        """Adds joint and body of a link; returns the simple joint that carries it, and its pose there."""
        joint, q0, v0 = self.topology.joints[i], self.topology.q_start[i], self.topology.v_start[i]
        x, y, z, w = model.joint_quaternion[i][XYZW]
        pose = pose * pin.SE3(pin.Quaternion(w, x, y, z).matrix(), model.joint_position[i])
        if joint in ("spherical", "floating"):
            kind = pin.JointModelSpherical() if joint == "spherical" else pin.JointModelFreeFlyer()
            carrier, pose = self.pin.addJoint(carrier, kind, pose, f"{i}"), pin.SE3.Identity()
            head = 0 if joint == "spherical" else 3
            self.q_of += [*range(q0, q0 + head), *(q0 + head + k for k in XYZW)]
            self.v_of += [*range(v0, v0 + 3)] if joint == "spherical" else [v0 + k for k in (3, 4, 5, 0, 1, 2)]
            if joint == "floating":
                self.free.append((q0, v0))
        else:
            axes = {"axis": model.axis[i], "axis2": model.axis2[i], "axis3": np.cross(model.axis[i], model.axis2[i])}
            for kind, axis, k in SPLIT[joint]:
                extra = (model.pitch[i],) if joint == "screw" else ()
                carrier = self.pin.addJoint(carrier, kind(*axes[axis], *extra), pose, f"{i}.{k}")
                pose = pin.SE3.Identity()
                self.q_of.append(q0 + k)
                self.v_of.append(v0 + k)
        body = pin.Inertia(model.mass[i], model.com[i], model.inertia[i])
        self.pin.appendBodyToJoint(carrier, body, pose)
        self.frames[i] = self.pin.addFrame(pin.Frame(f"link{i}", carrier, 0, pose, pin.FrameType.OP_FRAME))
        if carrier == 0:
            self.static_weight -= model.mass[i] * model.gravity @ pose.act(model.com[i])
        return carrier, pose

    # -- between the conventions ---------------------------------------------------------------

    def q(self, q: np.ndarray) -> np.ndarray:
        return q[self.q_of]

    def T(self, q: np.ndarray) -> np.ndarray:
        """v_pin = T v."""
        T = np.eye(self.topology.nv)[self.v_of]
        for rows, R in self._free(q):
            T[rows] = np.kron(np.eye(2), R.T) @ T[rows]
        return T

    def a(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        """a_pin = T a + dT/dt v."""
        T = self.T(q)
        v_pin, a_pin = T @ v, T @ a
        for rows, _ in self._free(q):
            a_pin[rows[:3]] -= np.cross(v_pin[rows[3:]], v_pin[rows[:3]])
        return a_pin

    def _free(self, q: np.ndarray):
        """Pinocchio's six rows and the orientation of each floating joint."""
        for q0, v0 in self.free:
            first = self.v_of.index(v0 + 3)
            w, x, y, z = q[q0 + 3 : q0 + 7]
            yield list(range(first, first + 6)), pin.Quaternion(w, x, y, z).matrix()

    # -- answers -------------------------------------------------------------------------------

    def rnea(self, q, v, a) -> np.ndarray:
        T = self.T(q)
        return T.T @ pin.rnea(self.pin, self.data, self.q(q), T @ v, self.a(q, v, a))

    def aba(self, q, v, tau) -> np.ndarray:
        T = self.T(q)
        a_pin = pin.aba(self.pin, self.data, self.q(q), T @ v, np.linalg.solve(T.T, tau))
        return np.linalg.solve(T, a_pin - self.a(q, v, np.zeros_like(v)))

    def crba(self, q) -> np.ndarray:
        T = self.T(q)
        M = np.triu(pin.crba(self.pin, self.data, self.q(q)).reshape(T.shape))
        return T.T @ (M + np.triu(M, 1).T) @ T

    def energy(self, q, v) -> tuple[float, float]:
        """Kinetic, of links and rotors, and potential."""
        links = pin.computeKineticEnergy(self.bare, self.bare.createData(), self.q(q), self.T(q) @ v)
        rotors = self.armature @ v**2 / 2
        return links + rotors, pin.computePotentialEnergy(self.pin, self.data, self.q(q)) + self.static_weight

    def momentum(self, q, v) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Linear, angular about the centre of mass of all that can move, and where that is."""
        h = pin.computeCentroidalMomentum(self.pin, self.data, self.q(q), self.T(q) @ v)
        return h.linear.copy(), h.angular.copy(), self.data.com[0].copy()

    def poses(self, q) -> tuple[np.ndarray, np.ndarray]:
        """Positions (nl, 3) and rotations (nl, 3, 3)."""
        pin.framesForwardKinematics(self.pin, self.data, self.q(q))
        frames = [self.data.oMf[f] for f in self.frames]
        return np.array([f.translation for f in frames]), np.array([f.rotation for f in frames])

    def jacobian(self, q, link: int, point: np.ndarray) -> np.ndarray:
        """(6, nv): angular rows, then the rows of the point (given in the link's frame), world axes."""
        pin.computeJointJacobians(self.pin, self.data, self.q(q))
        frame = self.pin.frames[self.frames[link]]
        if frame.parentJoint == 0:
            return np.zeros((6, self.topology.nv))
        at = frame.placement * pin.SE3(np.eye(3), point)
        axes = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        J = pin.getFrameJacobian(self.pin, self.data, frame.parentJoint, at, axes)
        return J.reshape(6, -1)[[3, 4, 5, 0, 1, 2]] @ self.T(q)  # pin flattens a single column
