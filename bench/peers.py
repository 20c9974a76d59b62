"""Peers: the same work done by other engines. Each is imported only where it is used, since all are optional."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import jax
import numpy as np
from scipy.spatial.transform import Rotation

from .cases import Case, PairCase

CONTACTS = 4  # contacts requested if shapes overlap, as many as Carom returns


class PinocchioBatch:
    """`abaInParallel` over a case's states, in Pinocchio's conventions and column-major."""

    def __init__(self, case: Case) -> None:
        from carom.tests.oracles.pinocchio_model import Oracle

        self.oracle = Oracle(jax.tree.map(lambda x: np.asarray(x, np.float64), case.model))
        self.states = [np.asarray(x, np.float64) for x in (case.q, case.v, case.tau)]
        columns = [self._column(*state) for state in zip(*self.states, strict=True)]
        self.q, self.v, self.tau = (np.asfortranarray(np.stack(x, -1)) for x in zip(*columns, strict=True))
        self.a = np.zeros_like(self.v, order="F")
        self.pools: dict[int, Any] = {}

    def _column(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> tuple[np.ndarray, ...]:
        T = self.oracle.T(q)
        return self.oracle.q(q), T @ v, np.linalg.solve(T.T, tau)

    def run(self, threads: int) -> None:
        """Compute the accelerations of the whole batch in self.a."""
        import pinocchio as pin

        if threads not in self.pools:
            self.pools[threads] = pin.ModelPool(self.oracle.pin, threads)  # pyright: ignore[reportAttributeAccessIssue]
        batched_aba: Any = pin.abaInParallel  # pyright: ignore[reportAttributeAccessIssue]
        batched_aba(threads, self.pools[threads], self.q, self.v, self.tau, self.a)

    def accelerations(self) -> np.ndarray:
        """Return the result of the last run in Carom's conventions (lanes, nv)."""
        lanes = zip(self.states[0], self.states[1], self.a.T, strict=True)
        return np.array(
            [np.linalg.solve(self.oracle.T(q), a - self.oracle.a(q, v, np.zeros_like(v))) for q, v, a in lanes]
        )


class FclPairs:
    """FCL's loop over a case's placements, through python-fcl; poses of objects are set beforehand.

    The data of a row of `carom.detect` need FCL's distance with the nearest points, and, if the shapes overlap, its
    contacts with their depths.
    """

    def __init__(self, case: PairCase, sample: int) -> None:
        """Set up the case's first `sample` placements."""
        import fcl

        self.fcl = fcl
        a, b = (_geometry(case.model, shape) for shape in (0, 1))
        self.objects = [(_object_at(a, q[:7]), _object_at(b, q[7:])) for q in np.asarray(case.q[:sample], np.float64)]
        ball, pose = fcl.Sphere(1.0), np.array([9.0, 0, 0, 1, 0, 0, 0])
        self.far = _object_at(ball, pose), _object_at(ball, pose * [-1, 0, 0, 1, 0, 0, 0])
        # not enable_signed_distance: in overlap that takes milliseconds, or does not end
        self.distance = fcl.DistanceRequest(enable_nearest_points=True)
        self.contacts = fcl.CollisionRequest(num_max_contacts=CONTACTS, enable_contact=True)
        self.gaps: list[float] = []

    def run(self) -> None:
        """Compute all placements, with their distances [m] in self.gaps; they are not positive if FCL finds overlap."""
        fcl, distance, contacts = self.fcl, self.distance, self.contacts
        gaps = []
        for a, b in self.objects:
            gap = fcl.distance(a, b, distance, fcl.DistanceResult())
            if gap <= 0:
                fcl.collide(a, b, contacts, fcl.CollisionResult())
            gaps.append(gap)
        self.gaps = gaps

    def calls(self) -> int:
        """Return the number of calls of FCL by `run`."""
        self.run()
        return len(self.gaps) + sum(gap <= 0 for gap in self.gaps)

    def cheapest(self) -> None:
        """Make python-fcl's cheapest call once for each placement: whether two balls far apart meet.

        Its time is nearly all Python's overhead, which every call has.
        """
        fcl, contacts = self.fcl, self.contacts
        a, b = self.far
        for _ in self.objects:
            fcl.collide(a, b, contacts, fcl.CollisionResult())


def _object_at(geometry: Any, pose: np.ndarray) -> Any:
    """Return an object at a pose (7,): position [m] and quaternion, w first as in FCL."""
    import fcl

    return fcl.CollisionObject(geometry, fcl.Transform(pose[3:], pose[:3]))


def _geometry(model: Any, shape: int) -> Any:
    """Return FCL's shape for a shape of a model, whose frame must be that of its body."""
    import fcl

    topology, x = model.topology, np.asarray(model.shape_size, np.float64)[shape]
    assert not np.asarray(model.shape_position)[shape].any()
    assert np.asarray(model.shape_quaternion)[shape, 0] == 1.0
    kind = topology.shape_kinds[shape]
    if kind == "hull":
        points = np.asarray(model.points, np.float64)[slice(*topology.shape_points[shape])]
        faces = topology.shape_faces[shape]
        return fcl.Convex(points, len(faces), np.array([number for ring in faces for number in (len(ring), *ring)]))
    makers = {
        "sphere": lambda: fcl.Sphere(x[0]),
        "capsule": lambda: fcl.Capsule(x[0], 2 * x[1]),
        "box": lambda: fcl.Box(*(2 * x)),
    }
    return makers[kind]()


BOUNCE = 10  # steps of a bounce in MuJoCo, whose contacts are springs: restitution is then right to 0.02
PIECE = 256  # steps of a rollout whose states are kept at a time


class MujocoWorld:
    """MuJoCo's `mj_step` of a scene of trees and planes, with its default solver, on one thread; `rollout` of many.

    Contacts that bounce have the spring and damper with the same restitution in `BOUNCE` steps. States are q (..., nq)
    and v (..., nv) in Carom's conventions.
    """

    def __init__(self, model: Any, h: float, integrator: str = "Euler", file: Path | None = None) -> None:
        """Set up the world.  file: MJCF file of the model; it is run unchanged, with its own steps and integrator."""
        import mujoco as module

        self.mujoco: Any = module  # its stubs lack the compiled names
        self.torques: np.ndarray | None = None  # (steps, nv)
        self.done = 0
        model = jax.tree.map(lambda x: np.array(x, np.float64), model)
        if file:
            self.maps: Any = SameOrder(model.topology)
            self.model = self.mujoco.MjModel.from_xml_path(str(file))
            assert self.model.opt.timestep == h, f"{file.name}: steps of {self.model.opt.timestep} s"
        else:
            self._build(model, h, integrator)
        self.data = self.mujoco.MjData(self.model)
        self.mujoco.mj_setConst(self.model, self.data)

    def _build(self, model: Any, h: float, integrator: str) -> None:
        from carom.tests.oracles.mujoco_model import Oracle, xml

        mujoco, topology, maps = self.mujoco, model.topology, Oracle(model)
        self.maps = maps
        spec = mujoco.MjSpec.from_string(xml(model))
        spec.option.disableflags &= ~int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
        spec.option.timestep = h
        spec.option.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{integrator.upper()}")
        among_moving, found = int(mutual(topology)), materials(model)
        for shape, (kind, link) in enumerate(zip(topology.shape_kinds, topology.shape_links, strict=True)):
            (mu, e), world = found[shape], link < 0
            body = spec.worldbody if world else spec.body(f"link{link}")
            body.add_geom(
                type=getattr(mujoco.mjtGeom, f"mjGEOM_{kind.upper()}"), pos=model.shape_position[shape],
                quat=model.shape_quaternion[shape], size=(9, 9, 1) if world else model.shape_size[shape],
                friction=(mu, 0.005, 0.0001), solref=_spring(e, h), priority=int(world),
                contype=1 if world else among_moving, conaffinity=1,
            )  # fmt: skip
        self.model = spec.compile()
        self.xml = spec.to_xml()
        dofs = maps.v_of
        for name, x in (("armature", model.armature), ("damping", model.damping), ("frictionloss", model.loss)):
            getattr(self.model, f"dof_{name}")[:] = x[dofs]
        for joint in range(self.model.njnt):
            dof = dofs[self.model.jnt_dofadr[joint]]
            if np.isfinite(model.lower[dof]):
                self.model.jnt_limited[joint] = 1
                self.model.jnt_range[joint] = model.lower[dof], model.upper[dof]

    def start(self, q: np.ndarray, v: np.ndarray) -> None:
        """Set the state from which `run` starts: q (nq,), v (nv,)."""
        self.first = q[self.maps.q_of], self.maps.T(q) @ v

    def drive(self, torques: np.ndarray, each: int) -> None:
        """Set torques (frames, nv) along the joints, each for `each` steps, from the start of a run."""
        self.torques = np.repeat(torques, each, 0)

    def run(self, steps: int) -> None:
        """Run a number of steps from the start."""
        self.mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:], self.data.qvel[:] = self.first
        self.done = 0
        self.advance(steps)

    def advance(self, steps: int) -> None:
        """Run a number of further steps."""
        if self.torques is None:
            return self.mujoco.mj_step(self.model, self.data, nstep=steps)
        for torque in self.torques[self.done : self.done + steps]:
            self.data.qfrc_applied[:] = torque
            self.mujoco.mj_step(self.model, self.data)
        self.done += steps

    def trajectory(self, steps: int) -> tuple[np.ndarray, np.ndarray]:
        """Return coordinates (steps + 1, nq) and velocities (steps + 1, nv) from the start."""
        return record_states(self, steps)

    def state(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the present q (nq,) and v (nv,)."""
        q = np.empty(len(self.maps.q_of))
        q[self.maps.q_of] = self.data.qpos
        return q, self.maps.T(q).T @ self.data.qvel  # T rotates and reorders

    def batch(self, q: np.ndarray, v: np.ndarray, steps: int, threads: int) -> Any:
        """Return a function that runs lanes (lanes, nq), (lanes, nv) from these states by `rollout`."""
        first = np.array([[0, *x[self.maps.q_of], *(self.maps.T(x) @ y)] for x, y in zip(q, v, strict=True)])
        data = [self.mujoco.MjData(self.model) for _ in range(threads)]
        pool = batches(threads)

        def run() -> np.ndarray:
            state: Any = first
            for begin in range(0, steps, PIECE):
                commands, piece = {}, min(steps - begin, PIECE)
                if self.torques is not None:
                    spec = int(self.mujoco.mjtState.mjSTATE_QFRC_APPLIED)
                    rows = np.broadcast_to(
                        self.torques[begin : begin + piece], (len(first), piece, self.torques.shape[1])
                    )
                    commands = {"control": rows, "control_spec": spec}
                state = pool.rollout(self.model, data, state, nstep=piece, **commands)[0][:, -1]
            return state

        return run


def batches(threads: int) -> Any:
    """Return the function that runs MuJoCo's batches on a number of threads."""
    from mujoco.rollout import Rollout

    return Rollout(nthread=threads)


class SameOrder:
    """Maps of a model that was read from MJCF, as those of `Oracle`.

    q is qpos, and v is qvel except for free joints, whose velocities are angular first and in world axes.
    """

    def __init__(self, topology: Any) -> None:
        self.q_of, self.nv = np.arange(topology.nq), topology.nv
        starts = zip(topology.joints, topology.q_start, topology.v_start, strict=False)
        self.free = [(q0, v0) for joint, q0, v0 in starts if joint == "floating"]

    def T(self, q: np.ndarray) -> np.ndarray:
        """Return T, with qvel = T v."""
        T = np.eye(self.nv)
        for q0, v0 in self.free:
            rotation = Rotation.from_quat(q[q0 + 3 : q0 + 7], scalar_first=True).as_matrix()
            T[v0 : v0 + 6, v0 : v0 + 6] = np.block([[np.zeros((3, 3)), np.eye(3)], [rotation.T, np.zeros((3, 3))]])
        return T


def mutual(topology: Any) -> bool:
    """Return whether moving bodies may touch each other: all of them or none."""
    moving = [k for k, link in enumerate(topology.shape_links) if link >= 0]
    pairs = sum(topology.shape_links[a] >= 0 <= topology.shape_links[b] for a, b in topology.pairs)
    assert pairs in (0, len(moving) * (len(moving) - 1) // 2), "the peers' scenes have all pairs or none"
    return pairs > 0


def materials(model: Any) -> list[tuple[float, float]]:
    """Return friction and restitution of each shape. In contacts with the world the world's count, one for all."""
    moves = np.array(model.topology.shape_links) >= 0
    pairs = np.array(model.topology.pairs, int).reshape(-1, 2)
    numbers = np.stack([model.pair_friction, model.pair_restitution], -1)
    own = np.tile((0.0, 1.0), (len(moves), 1))  # the greater friction and the smaller restitution count
    for shapes, others in (pairs.T, pairs.T[::-1]):
        counts = ~moves[shapes] | moves[others]
        own[shapes[counts]] = numbers[counts]
    for shapes, others in (pairs.T, pairs.T[::-1]):
        counts = ~moves[shapes] | moves[others]
        assert (own[shapes[counts]] == numbers[counts]).all(), "the peers' shapes have one material each"
    return [(float(mu), float(e)) for mu, e in own]


def _spring(e: float, h: float) -> tuple[float, float]:
    """Return solref of a contact with restitution e for steps h [s].

    It holds stiffness and damping of half a swing [1/s^2, 1/s].
    """
    if e == 0:
        return 0.02, 1.0  # MuJoCo's default
    rate, lost = math.pi / (BOUNCE * h), -math.log(e)
    return -(rate**2 + (lost / (BOUNCE * h)) ** 2), -2 * lost / (BOUNCE * h)


def record_states(world: Any, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Return q and v of a world at its start and after each step."""
    world.run(0)
    rows = [world.state()]
    for _ in range(steps):
        world.advance(1)
        rows.append(world.state())
    return np.array([q for q, _ in rows]), np.array([v for _, v in rows])
