"""Peers: the same work done by others. Each is imported where it is used, for nobody has to have all of them."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from .cases import Case, PairCase

CONTACTS = 4  # asked for where shapes overlap, as many as Carom returns


class PinocchioBatch:
    """`abaInParallel` over a case's states, in Pinocchio's conventions and column-major as it wants them."""

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
        """Accelerations of the whole batch into self.a."""
        import pinocchio as pin

        if threads not in self.pools:
            self.pools[threads] = pin.ModelPool(self.oracle.pin, threads)  # pyright: ignore[reportAttributeAccessIssue]
        batched_aba: Any = pin.abaInParallel  # pyright: ignore[reportAttributeAccessIssue]
        batched_aba(threads, self.pools[threads], self.q, self.v, self.tau, self.a)

    def accelerations(self) -> np.ndarray:
        """The result of the last run in Carom's conventions (lanes, nv)."""
        lanes = zip(self.states[0], self.states[1], self.a.T, strict=True)
        return np.array(
            [np.linalg.solve(self.oracle.T(q), a - self.oracle.a(q, v, np.zeros_like(v))) for q, v, a in lanes]
        )


class FclPairs:
    """FCL's loop over a case's placements, through python-fcl, objects at their places beforehand.

    To know what a row of `carom.detect` tells one has to ask FCL for the distance with the nearest points, and where
    it says that the shapes overlap, for contacts with their depths.
    """

    def __init__(self, case: PairCase, sample: int) -> None:
        """Of the case's first placements, `sample` of them."""
        import fcl

        self.fcl = fcl
        a, b = (_geometry(case.model, shape) for shape in (0, 1))
        self.objects = [(_placed(a, q[:7]), _placed(b, q[7:])) for q in np.asarray(case.q[:sample], np.float64)]
        ball, place = fcl.Sphere(1.0), np.array([9.0, 0, 0, 1, 0, 0, 0])
        self.far = _placed(ball, place), _placed(ball, place * [-1, 0, 0, 1, 0, 0, 0])
        # not enable_signed_distance: in overlap that takes milliseconds, or does not end
        self.distance = fcl.DistanceRequest(enable_nearest_points=True)
        self.contacts = fcl.CollisionRequest(num_max_contacts=CONTACTS, enable_contact=True)
        self.gaps: list[float] = []

    def run(self) -> None:
        """All placements; their distances [m] into self.gaps, not positive where FCL says overlap."""
        fcl, distance, contacts = self.fcl, self.distance, self.contacts
        gaps = []
        for a, b in self.objects:
            gap = fcl.distance(a, b, distance, fcl.DistanceResult())
            if gap <= 0:
                fcl.collide(a, b, contacts, fcl.CollisionResult())
            gaps.append(gap)
        self.gaps = gaps

    def calls(self) -> int:
        """How many times `run` calls FCL."""
        self.run()
        return len(self.gaps) + sum(gap <= 0 for gap in self.gaps)

    def cheapest(self) -> None:
        """As many of python-fcl's cheapest calls as there are placements: two balls far apart, whether they meet.

        What it takes is next to all Python's, and is in every call.
        """
        fcl, contacts = self.fcl, self.contacts
        a, b = self.far
        for _ in self.objects:
            fcl.collide(a, b, contacts, fcl.CollisionResult())


def _placed(geometry: Any, pose: np.ndarray) -> Any:
    """An object at a pose (7,): position [m] and quaternion, which FCL too has w first."""
    import fcl

    return fcl.CollisionObject(geometry, fcl.Transform(pose[3:], pose[:3]))


def _geometry(model: Any, shape: int) -> Any:
    """FCL's shape for one of a model's, whose frame must be that of its body."""
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


class MujocoStack:
    """MuJoCo's mj_step of a scene of free boxes on the ground, its solver as it comes, one thread."""

    def __init__(self, model: Any, state: Any, h: float) -> None:
        import mujoco

        self.mujoco: Any = mujoco  # its stubs miss the compiled names
        boxes = _boxes(model, state)
        bodies = "".join(
            f'<body pos="{_words(x)}" quat="{_words(turn)}"><freejoint/>'
            f'<geom type="box" size="{_words(half)}" mass="{mass!r}" friction="{mu!r}"/></body>'
            for x, turn, half, mass, mu in boxes
        )
        self.model = self.mujoco.MjModel.from_xml_string(
            f'<mujoco><option timestep="{h!r}" gravity="{_words(np.asarray(model.gravity))}"/><worldbody>'
            f'<geom type="plane" size="9 9 1" friction="{boxes[0][-1]!r}"/>{bodies}</worldbody></mujoco>'
        )
        self.data = self.mujoco.MjData(self.model)

    def run(self, steps: int) -> None:
        self.mujoco.mj_step(self.model, self.data, nstep=steps)

    def positions(self) -> np.ndarray:
        """Of the boxes (n, 3) [m]."""
        return np.array(self.data.qpos).reshape(-1, 7)[:, :3]


class RapierStack:
    """rapier3d's step of the same, one thread, boxes kept awake."""

    def __init__(self, model: Any, state: Any, h: float) -> None:
        import rapier3d as rapier

        boxes = _boxes(model, state)
        self.world = world = rapier.PhysicsWorld(gravity=tuple(np.asarray(model.gravity).tolist()))
        world.set_num_threads(1)
        world.integration_parameters.dt = h
        world.add_collider(rapier.Collider.halfspace((0.0, 0.0, 1.0)).friction(boxes[0][-1]))
        self.handles = []
        for x, turn, half, mass, mu in boxes:
            assert turn[0] == 1.0
            body = rapier.RigidBody.dynamic().translation((x[0], x[1], x[2])).can_sleep(False)
            shape = rapier.Collider.cuboid(*half).mass(mass).friction(mu)
            self.handles.append(world.add_body(body, [shape]))

    def run(self, steps: int) -> None:
        step = self.world.step
        for _ in range(steps):
            step()

    def positions(self) -> np.ndarray:
        """Of the boxes (n, 3) [m]."""
        bodies = [self.world.rigid_bodies[handle] for handle in self.handles]
        return np.array([(b.translation.x, b.translation.y, b.translation.z) for b in bodies])


def _boxes(model: Any, state: Any) -> list[tuple[list[float], list[float], list[float], float, float]]:
    """Of each box of a scene of boxes on a plane: position, quaternion, half extents, mass and friction."""
    topology = model.topology
    assert topology.shape_kinds == ("plane", *("box",) * topology.n_links)
    (mu,) = np.unique(np.asarray(model.pair_friction, np.float64))
    q = np.asarray(state.q, np.float64).reshape(-1, 7)
    halves, masses = np.asarray(model.shape_size, np.float64)[1:], np.asarray(model.mass, np.float64)
    return [
        (x[:3].tolist(), x[3:].tolist(), half.tolist(), float(mass), float(mu))
        for x, half, mass in zip(q, halves, masses, strict=True)
    ]


def _words(numbers: Any) -> str:
    return " ".join(repr(float(x)) for x in numbers)
