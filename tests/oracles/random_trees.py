"""Random forests of links, and random states of them: truly random, every number drawn on its own.

Everything comes from one NumPy generator, so that a tree is known by its recipe. Numbers are NumPy float64.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from carom.engine.joints import JOINTS
from carom.engine.model import Model
from carom.engine.topology import Topology

INNER = tuple(joint for joint in JOINTS if joint != "floating")  # a floating joint hangs on the world only


@dataclass(frozen=True)
class Recipe:
    """A tree to draw. links: how many. roots: how many trees. floating: the roots are free.

    branch: 0 for chains, 1 for parents drawn from all links before, in between for both.
    joints: the types to mix; each type comes up equally often (give or take one).
    """

    seed: int
    links: int
    roots: int = 1
    floating: bool = False
    branch: float = 0.5
    joints: tuple[str, ...] = INNER

    def __str__(self) -> str:  # the name of the test case
        base = "free" if self.floating else "fixed"
        return f"{self.links}links-{self.roots}{base}-branch{self.branch:g}-seed{self.seed}"


def random_topology(rng: np.random.Generator, recipe: Recipe) -> Topology:
    """The links of a recipe, in an order in which the trees of the forest are interleaved."""
    n, roots = recipe.links, min(recipe.roots, recipe.links)
    parents, last = [-1] * roots, list(range(roots))  # last: the newest link of each tree
    tree = list(range(roots))
    for i in range(roots, n):
        mine = int(rng.integers(roots))
        kin = [k for k in range(i) if tree[k] == mine]
        parents.append(int(rng.choice(kin)) if rng.random() < recipe.branch else last[mine])
        tree.append(mine)
        last[mine] = i
    joints = [str(j) for _ in range(n) for j in rng.permutation(recipe.joints)][:n]
    if recipe.floating:
        joints[:roots] = ["floating"] * roots
    elif set(joints) == {"fixed"}:
        joints[-1] = "revolute"  # something must move
    return Topology(tuple(f"link{i}" for i in range(n)), tuple(parents), tuple(joints))


def random_model(rng: np.random.Generator, topology: Topology) -> Model:
    """Parameters for a topology: general frames, axes, inertias and centres of mass, gravity not along z."""
    n, nv = topology.n_links, topology.nv
    axis, other = unit(rng.normal(size=(n, 3))), rng.normal(size=(n, 3))
    planar = np.array([j == "planar" for j in topology.joints])[:, None]
    other -= np.where(planar, axis * (axis * other).sum(-1, keepdims=True), 0)  # x axis in the plane
    position, quaternion = rng.normal(size=(n, 3)) * 0.4, unit(rng.normal(size=(n, 4)))
    free = [i for i, j in enumerate(topology.joints) if j == "floating"]
    position[free], quaternion[free] = 0, (1, 0, 0, 0)  # the coordinates of a floating joint say it all
    none, nowhere = np.zeros(nv), np.zeros((0, 3))
    numbers: dict[str, Any] = {
        "mass": rng.uniform(0.3, 3, n),
        "com": rng.normal(size=(n, 3)) * 0.2,
        "inertia": random_inertias(rng, n),
        "joint_position": position,
        "joint_quaternion": quaternion,
        "axis": axis,
        "axis2": unit(other),
        "pitch": rng.normal(size=n) * 0.3,
        "armature": random_armature(rng, topology),
        "damping": none,
        "loss": none,
        "stiffness": none,
        "rest": none,
        "motor_gain": np.ones(nv),
        "motor_kp": none,
        "motor_kd": none,
        "motor_effort": np.full(nv, np.inf),
        "motor_target": none,
        "lower": np.full(nv, -np.inf),
        "upper": np.full(nv, np.inf),
        "limit_restitution": none,
        "gravity": np.array([0.3, -0.5, -9.81]),
        "gap_band": np.array(1e-9),
        "rest_speed": np.array(1e-4),
        "shape_size": nowhere,
        "shape_position": nowhere,
        "shape_quaternion": np.zeros((0, 4)),
        "friction": np.zeros(0),
        "restitution": np.zeros(0),
        "tangential_restitution": np.zeros(0),
        "points": nowhere,
        "shape_twist": np.zeros((0, 6)),
        "pair_friction": np.zeros(0),
        "pair_restitution": np.zeros(0),
        "pair_tangential_restitution": np.zeros(0),
        "pair_touches": np.zeros(0),
        "loop_position": np.zeros((0, 2, 3)),
        "loop_quaternion": np.zeros((0, 2, 4)),
        "loop_size": np.zeros(0),
        "loop_course": np.zeros((0, 5)),
        "loop_spring": np.zeros((0, 2, 4)),
        "loop_stiff": np.zeros((0, 2)),
        "loop_damp": np.zeros((0, 2)),
        "loop_limits": np.zeros((0, 2, 2)),
        "loop_active": np.zeros(0),
        "baumgarte": np.array(0.0),
        "site_position": nowhere,
        "site_quaternion": np.zeros((0, 4)),
    }
    return Model(topology, **numbers)


def random_armature(rng: np.random.Generator, topology: Topology) -> np.ndarray:
    """(nv,). A free body has no rotors: only its turning gets some, the same about all axes.

    There alone do the engines agree on what armature would be: Pinocchio multiplies it with accelerations
    in the child's axes, we in the world's.
    """
    armature = rng.uniform(0, 0.3, topology.nv)
    for start, joint in zip(topology.v_start, topology.joints, strict=False):
        if joint == "floating":
            armature[start : start + 6] = [armature[start]] * 3 + [0.0] * 3
    return armature


def random_inertias(rng: np.random.Generator, n: int) -> np.ndarray:
    """(n, 3, 3) of real bodies: positive second moments d in general axes give trace(d) 1 - d."""
    axes = np.linalg.qr(rng.normal(size=(n, 3, 3)))[0]
    second = np.einsum("nij,nj,nkj->nik", axes, rng.uniform(0.005, 0.1, (n, 3)), axes)
    return np.trace(second, axis1=1, axis2=2)[:, None, None] * np.eye(3) - second


def random_tree(recipe: Recipe) -> tuple[np.random.Generator, Model]:
    """The model of a recipe, and the generator to draw its states from."""
    rng = np.random.default_rng(recipe.seed)
    return rng, random_model(rng, random_topology(rng, recipe))


def random_q(rng: np.random.Generator, topology: Topology, batch: tuple[int, ...] = ()) -> np.ndarray:
    """Coordinates (*batch, nq): angles and lengths of order 1, uniform orientations."""
    q = rng.normal(size=(*batch, topology.nq))
    for start in quaternion_starts(topology):
        q[..., start : start + 4] = unit(q[..., start : start + 4])
    return q


def random_state(
    rng: np.random.Generator, topology: Topology, batch: tuple[int, ...] = ()
) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates (*batch, nq) and velocities (*batch, nv)."""
    return random_q(rng, topology, batch), rng.normal(size=(*batch, topology.nv))


def quaternion_starts(topology: Topology) -> list[int]:
    """Where in q each quaternion begins."""
    first = {"spherical": 0, "floating": 3}
    return [topology.q_start[i] + first[j] for i, j in enumerate(topology.joints) if j in first]


def unit(a: np.ndarray) -> np.ndarray:
    return a / np.linalg.norm(a, axis=-1, keepdims=True)


def subset(model: Model, links: list[int]) -> tuple[Model, np.ndarray, np.ndarray]:
    """The model of some links in the order given, parents first and included; its place in the old q and v."""
    old = model.topology
    parents = tuple(-1 if old.parents[i] < 0 else links.index(old.parents[i]) for i in links)
    q_of = np.concatenate([np.arange(old.q_start[i], old.q_start[i + 1]) for i in links])
    v_of = np.concatenate([np.arange(old.v_start[i], old.v_start[i + 1]) for i in links])
    names, joints = (tuple(x[i] for i in links) for x in (old.names, old.joints))
    per_link = ("mass", "com", "inertia", "joint_position", "joint_quaternion", "axis", "axis2", "pitch")
    parts = {name: getattr(model, name)[np.array(links)] for name in per_link}
    parts |= {name: getattr(model, name)[v_of] for name in PER_DOF}
    return model.replace(topology=Topology(names, parents, joints), **parts), q_of, v_of


PER_DOF = (
    "armature", "damping", "loss", "stiffness", "rest", "motor_gain", "motor_kp", "motor_kd", "motor_effort",
    "motor_target", "lower", "upper", "limit_restitution",
)  # fmt: skip


def with_passive(rng: np.random.Generator, model: Model) -> Model:
    """The same tree with springs, damping, Coulomb loss and motors of every kind at every degree of freedom."""
    drawn = {name: rng.uniform(0.1, 2, model.topology.nv) for name in PER_DOF[1:10]}
    return model.replace(**drawn)
