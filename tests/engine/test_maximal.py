"""Bodies apart move as their tree does: accelerations of random trees, runs of scenes, what cannot be carried over."""

import dataclasses
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.engine.dynamics.kinematics import coordinate_rates, fk, propagate_poses, propagate_velocities
from carom.engine.forest import Forest
from carom.engine.loops.energy import energy
from carom.engine.loops.jacobian import closed
from carom.engine.maximal.bodies import bodies_apart
from carom.engine.model import Model
from carom.engine.state import State
from carom.engine.topology import Loop, Topology
from carom.integrators.motion.forces import acceleration
from carom.scenes.compiling.check import SceneError
from carom.tests.oracles.random_trees import quaternion_starts, random_model, random_q

EXACT = 1e-9  # accelerations in f64, of their size
CLOSED = 1e-13  # [m, rad] errors of bodies that were placed where their tree is
SINGLE = 5e-3  # accelerations in f32: W's condition is about 1e4
SOFT = 0.05  # [m] the same by penalty at ten times the paper's coefficients: what swings is long where joints give way
STRUCK = 1e-4  # [m] the same through some dozen impacts, each found to its band: 6e-6 seen
LATE = 0.12  # [m] by penalty, whose joints hand on an impact late: 0.062 of 2.4 m seen
DEEP = 1e-4  # [m] the deepest overlap: 1e-6 seen, 2e-5 by penalty
RUN = 1e-8  # [m] after a second of rk4 at 1e-3 s, both forms: what is left of order 4, grown by the motion

FEW = ("floating", "revolute", "universal", "revolute"), (-1, 0, 1, -1)
OTHERS = ("prismatic", "spherical", "cylindrical", "screw", "fixed", "planar", "revolute")
ALL = ("floating", "revolute", "universal", *OTHERS), (-1, -1, 1, 2, 0, 4, 5, 3, 6, 4)
MEASURED = {"revolute": 1, "prismatic": 1, "cylindrical": 2, "screw": 1}  # degrees of freedom that springs may act on


def tree(rng: np.random.Generator, joints: tuple[str, ...], parents: tuple[int, ...], *loops: Loop) -> Model:
    """Springs and motors where they may be, and some numbers that differ from lane to lane."""
    n, k = len(joints), len(loops)
    topology = Topology(tuple(f"link{i}" for i in range(n)), parents, joints, loops=loops)
    model, first = random_model(rng, topology), topology.v_start
    dofs = [d for i, j in enumerate(joints) for d in range(first[i], first[i] + MEASURED.get(j, 0))]
    passive = {name: np.zeros(first[-1]) for name in ("stiffness", "rest", "damping", "motor_kp", "motor_target")}
    for values in passive.values():
        values[dofs] = rng.uniform(0.5, 2, len(dofs))
    gain = np.ones(first[-1])
    gain[dofs] = passive["motor_kp"][dofs]
    lanes = {"mass": rng.uniform(0.3, 3, (3, n)), "stiffness": passive["stiffness"] * rng.uniform(1, 2, (3, 1))}
    return dataclasses.replace(  # springs of loops too, which these do not read
        model,
        armature=np.zeros(first[-1]),
        motor_gain=gain,
        motor_kd=0.3 * passive["damping"],
        loop_position=rng.normal(size=(k, 2, 3)),
        loop_quaternion=np.tile([1.0, 0, 0, 0], (k, 2, 1)),
        loop_size=np.zeros(k),
        loop_course=rng.uniform(0.2, 1, (k, 5)),
        loop_spring=np.zeros((k, 2, 4)),
        loop_stiff=np.zeros((k, 2)),
        loop_damp=np.zeros((k, 2)),
        loop_limits=np.tile([-np.inf, np.inf], (k, 2, 1)),
        loop_active=np.ones(k),
        **(passive | lanes),
    )


def velocities(model: Model, q, v):
    """(..., 6 nl) of links, as of floating ones."""
    forest = Forest.of(model, q=q, v=v)
    V = forest.by_link([x.V for x in propagate_velocities(forest, propagate_poses(forest, model, q), v)])
    x = jnp.moveaxis(jnp.stack([*V.w.xyz, *V.v.xyz], 1), (0, 1), (-2, -1))
    return x.reshape(*x.shape[:-2], -1)


def agree(model: Model, rng: np.random.Generator, dtype, tolerance: float) -> None:
    """Accelerations of the tree and of its bodies are the same, in three lanes."""
    model = jax.tree.map(lambda x: jnp.asarray(x, dtype), model)
    q, v = random_q(rng, model.topology, (3,)), rng.normal(size=(3, model.topology.nv))
    assert all(len(np.unique(q[:, k])) == 3 for k in quaternion_starts(model.topology))
    state = State(*(jnp.asarray(x, dtype) for x in (q, v, [0.1, 0.2, 0.3])))
    apart, there = bodies_apart(model, state)
    np.testing.assert_allclose(there.v, velocities(model, state.q, state.v), rtol=1e-6)

    @jax.jit
    def both(model, state, apart, there):
        rates = coordinate_rates(model, state.q, state.v), acceleration(model, state, 1.0)
        wanted = jax.jvp(lambda q, v: velocities(model, q, v), (state.q, state.v), rates)[1]
        return wanted, acceleration(apart, there, 1.0)

    wanted, found = both(model, state, apart, there)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance * abs(np.asarray(wanted)).max())


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(np.float64, EXACT), pytest.param(np.float32, SINGLE, marks=pytest.mark.exhaustive)]
)
@pytest.mark.slow
def test_accelerations_are_those_of_the_tree(dtype, tolerance):
    rng = np.random.default_rng(1)
    agree(tree(rng, *FEW), rng, dtype, tolerance)


@pytest.mark.slow
def test_accelerations_of_every_joint():
    """All joints, one of them driven, and a rod from tree to tree."""
    rng = np.random.default_rng(2)
    first = Topology((), ALL[1], ALL[0]).v_start
    loops = Loop("drive", 9, -1, (first[9], -1), course=jnp.sin), Loop("distance", 3, 8)
    model = tree(rng, *ALL, *loops)
    agree(model, rng, np.float64, EXACT)


@pytest.mark.slow
def test_bodies_stand_where_their_joints_are_closed():
    rng = np.random.default_rng(3)
    model = jax.tree.map(jnp.asarray, tree(rng, *ALL))
    q, v = (jnp.asarray(x) for x in (random_q(rng, model.topology, (3,)), rng.normal(size=(3, model.topology.nv))))
    apart, there = bodies_apart(model, State(q, v, jnp.zeros(3)))
    rows = closed(apart, there.q, there.v, there.t)
    assert rows.error.shape == (3, 60 - model.topology.nv)
    assert abs(np.asarray(rows.error)).max() < CLOSED
    assert abs(np.asarray(rows.rate)).max() < 10 * CLOSED


def four_bar_and_pendulum() -> carom.SceneBuilder:
    b = carom.SceneBuilder()
    hinge = carom.Revolute((0, 1, 0))
    bar = {"mass": 1.0, "com": (0.3, 0, 0), "inertia": (0.02, 0.05, 0.04)}
    b.add_link("crank", parent="world", joint=hinge, q0=-1.2, v0=2.0, **bar)
    b.add_link("coupler", parent="crank", joint=hinge, position=(0.6, 0, 0), q0=0.9, **bar)
    b.add_link("rocker", parent="world", joint=hinge, position=(1.2, 0, 0), q0=-1.5, **bar)
    b.add_loop("coupler", (1.0, 0, 0), "rocker", (0.7, 0, 0), joint=hinge)
    b.add_link("upper", parent="world", joint=carom.Revolute((0, 1, 0), damping=0.2), position=(4, 0, 0), **bar)
    lower = carom.Revolute((0, 0, 1), stiffness=3.0, rest=0.5)
    b.add_link("lower", parent="upper", joint=lower, position=(0.8, 0, 0), v0=-3.0, **bar)
    return b


def every_joint() -> carom.SceneBuilder:
    b = carom.SceneBuilder()
    bar = {"mass": 1.0, "com": (0, 0.1, -0.5), "inertia": (0.1, 0.12, 0.05)}
    below = (0, 0, -1)
    b.add_link("u", parent="world", joint=carom.Universal((0, 1, 0), (1, 0, 0), damping=0.1), q0=(0.4, 0.3), **bar)
    b.add_link("s", parent="u", joint=carom.Spherical(), position=below, v0=(1, 2, 0.5), **bar)
    b.add_link("r", parent="s", joint=carom.Revolute((0, 1, 0), stiffness=1.0), position=below, q0=0.3, **bar)
    b.add_link("p", parent="world", joint=carom.Prismatic((1, 0, 1)), position=(3, 0, 1), v0=0.3, **bar)
    b.add_link("h", parent="p", joint=carom.Screw((1, 0, 1), pitch=0.1), position=(0, 0, 1), v0=0.3, **bar)
    b.add_link("l", parent="world", joint=carom.Planar((1, 0, 0)), position=(-3, 0, 1), v0=(1, 0.3, 2), **bar)
    b.add_link("c", parent="world", joint=carom.Cylindrical((1, 0, 0)), position=(-6, 0, 1), v0=(1, 0.3), **bar)
    return b


@pytest.mark.slow
@pytest.mark.parametrize("scene", [four_bar_and_pendulum, every_joint])
def test_runs_agree(scene):
    ways, totals = {}, {}
    for form in ("reduced", "maximal", "penalty"):
        model, state = carom.compile_scene(scene(), coordinates=form)
        if form == "penalty":
            model = model.replace(loop_stiff=10 * model.loop_stiff, loop_damp=4 * model.loop_damp)
        result = carom.rollout(model, state, duration=0.5, frame_dt=0.1, scheme="rk4", max_dt=5e-4)
        ways[form] = np.asarray(fk(model, result.q).position)
        totals[form] = np.asarray(energy(model, State(result.q, result.v, result.t)).total)
    assert np.ptp(ways["reduced"], axis=0).max() > 0.3  # it moves
    np.testing.assert_allclose(ways["maximal"], ways["reduced"], rtol=0, atol=RUN)
    np.testing.assert_allclose(totals["maximal"], totals["reduced"], rtol=0, atol=1e2 * RUN)
    off = abs(ways["penalty"] - ways["reduced"]).max()
    assert 1e-6 < off < SOFT


@pytest.mark.slow
def test_a_chain_falls_on_a_floor():
    """Four balls on hinges strike the floor: as the tree's do, and by penalty nearly so."""
    ways = {}
    for form in ("reduced", "maximal", "penalty"):
        b = carom.SceneBuilder()
        b.add_plane(friction=0.4)
        for k in range(4):
            joint = carom.Revolute((0, 1, 0)) if k else carom.Floating()
            place: Any = (
                {"position": (0.3, 0, 0)} if k else {"position": (0, 0, 0.7), "quaternion": (0.995, 0, 0.0999, 0)}
            )
            parent = f"link{k - 1}" if k else "world"
            body: Any = {"mass": 0.5, "com": (0.15, 0, 0), "inertia": (0.01, 0.01, 0.01), "friction": 0.4}
            ball = [carom.Sphere(0.08, position=(0.15, 0, 0))]
            b.add_link(f"link{k}", parent=parent, joint=joint, shapes=ball, **body, **place)
        model, state = carom.compile_scene(b, coordinates=form)
        result = carom.rollout(model, state, duration=0.4, frame_dt=0.05, max_dt=2e-3)
        assert float(result.stats.max_penetration) < DEEP
        assert int(result.stats.impacts) >= 4  # each ball; as they roll on, they do not strike
        ways[form] = np.asarray(fk(model, result.q).position)
    np.testing.assert_allclose(ways["maximal"], ways["reduced"], rtol=0, atol=STRUCK)
    np.testing.assert_allclose(ways["penalty"], ways["reduced"], rtol=0, atol=LATE)


HINGE = carom.Revolute((0, 1, 0))
SOLID = {"mass": 1.0, "com": (0, 0, -0.5), "inertia": (1.0, 1.0, 1.0)}
REFUSED = [
    (SOLID | {"mass": 0.0, "inertia": None, "com": None}, HINGE, "mass", "a body of its own must have mass"),
    (SOLID | {"inertia": (1.0, 1.0, 0.0)}, HINGE, "inertia", "inertia about every axis"),
    (SOLID, replace(HINGE, armature=0.1), "armature", "have no rotors"),
    (SOLID, replace(HINGE, loss=0.1), "loss", "have no Coulomb loss"),
    (SOLID, carom.Spherical(stiffness=1.0), "stiffness", "no coordinates that it could act on"),
    (SOLID, carom.Planar((0, 1, 0), damping=1.0), "damping", "no coordinates that it could act on"),
    (SOLID, carom.Universal((0, 1, 0), (1, 1, 0), damping=1.0), "damping", "axes that are square"),
    (SOLID, replace(HINGE, motor=carom.Motor("position", kp=1.0, effort=2.0)), "motor_effort", "has no bound"),
    (SOLID, replace(HINGE, limits=(-1.0, 4.0)), "upper", "stay within half a turn"),
]


@pytest.mark.parametrize(("body", "joint", "field", "must"), REFUSED, ids=[row[2] for row in REFUSED])
def test_what_only_a_tree_can_have_is_refused(body, joint, field, must):
    b = carom.SceneBuilder()
    b.add_link("arm", parent="world", joint=joint, **{k: x for k, x in body.items() if x is not None})
    b.add_link("hand", parent="arm", joint=HINGE, **SOLID)
    model, state = carom.compile_scene(b)
    with pytest.raises(SceneError, match=f'^link "arm".*: {field} is .*{must}.*coordinates="reduced"'):
        carom.compile_scene(b, coordinates="maximal")
    with pytest.raises(ValueError, match=f"{field} is .*{must}"):
        bodies_apart(model, state)


@pytest.mark.parametrize(
    ("joint", "must"),
    [(carom.Gear(2.0), "no joints to gear"), (carom.Driven(rate=1.0), "only revolute, .* joints can be driven")],
)
def test_relations_of_joints_are_refused(joint, must):
    b = carom.SceneBuilder()
    b.add_link("arm", parent="world", joint=carom.Universal((0, 1, 0), (1, 0, 0)), **SOLID)
    b.add_link("hand", parent="arm", joint=HINGE, **SOLID)
    b.add_loop("arm", link_b="hand" if isinstance(joint, carom.Gear) else "world", joint=joint)
    with pytest.raises(SceneError, match=f"loop 0.*{must}"):
        carom.compile_scene(b, coordinates="penalty")
