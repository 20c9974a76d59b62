"""The joint table, row by row: each joint's subspace, bias, exponential map and displacement are of one motion.

The pose as a function of q is what Pinocchio and MuJoCo confirm; here all else is derived from it.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from carom.engine.algebra.spatial import IDENTITY
from carom.engine.algebra.vec3 import Vec3
from carom.engine.algebra.zero import is_zero
from carom.engine.dynamics.energy import energy
from carom.engine.dynamics.jacobian import jacobian
from carom.engine.dynamics.kinematics import (
    bracket,
    coordinate_rates,
    fk,
    integrate_q,
    propagate_poses,
    propagate_velocities,
)
from carom.engine.dynamics.passive import displacement, passive_forces
from carom.engine.forest import Forest
from carom.engine.joints import JOINTS
from carom.engine.state import State
from carom.engine.topology import Topology
from carom.tests.oracles.random_trees import (
    Recipe,
    quaternion_starts,
    random_model,
    random_q,
    random_state,
    random_tree,
)

ROUNDING = 1e-12  # exact derivatives and closed forms: only rounding is left, numbers are of order 1 to 10
MOVING = [joint for joint in JOINTS if joint != "fixed"]
every_joint = pytest.mark.parametrize("joint", JOINTS)
moving_joint = pytest.mark.parametrize("joint", MOVING)


@pytest.fixture(autouse=True)
def op_by_op():
    with jax.disable_jit():
        yield


def drawn(*joints, seed=0):
    """A chain of these joints in general position, and a state."""
    rng = np.random.default_rng((seed, *map(list(JOINTS).index, joints)))
    n = len(joints)
    model = random_model(rng, Topology(tuple(map(str, range(n))), tuple(range(-1, n - 1)), joints))
    return rng, *jax.tree.map(jnp.asarray, (model, *random_state(rng, model.topology)))


def along(f, model, q, v):
    """f(q) and its rate while the joints move with constant v."""
    return jax.jvp(lambda h: f(integrate_q(model, q, v, h)), (jnp.zeros(()),), (jnp.ones(()),))


def angular(R, dR):
    """The angular velocity of axes R (columns) that change at the rate dR; dR R^T is skew or this is no rotation."""
    W = np.asarray(dR) @ np.asarray(R).T
    assert np.allclose(W, -W.T, atol=ROUNDING)
    return np.array([W[2, 1], W[0, 2], W[1, 0]])


@every_joint
def test_subspace_is_the_rate_of_the_pose(joint):
    """S qd is the velocity of the link, in world axes at its own origin."""
    _, model, q, v = drawn(joint)
    poses, rates = along(lambda q: fk(model, q), model, q, v)
    V = jacobian(model, q, 0) @ v
    assert np.allclose(V[:3], angular(poses.rotation[0], rates.rotation[0]), atol=ROUNDING)
    assert np.allclose(V[3:], rates.position[0], atol=ROUNDING)
    assert joint == "fixed" or np.abs(V).max() > 0.1


def numbers(twist):
    """A twist as six numbers."""
    parts = (0.0 if is_zero(u) else getattr(u, c) for u in (twist.w, twist.v) for c in "xyz")
    return np.array([0.0 if is_zero(x) else float(x) for x in parts])


def spatial_acceleration(model, q, v, link):
    """Of a link whose joints do not accelerate: (dw/dt, dv/dt - w x v), the rate of J v at constant v."""
    V, dV = along(lambda q: jacobian(model, q, link) @ v, model, q, v)
    return np.concatenate([dV[:3], dV[3:] - np.cross(V[:3], V[3:])])


def velocity_parts(model, q, v):
    """V and c of each link of a chain, and r."""
    forest = Forest.of(model, q=q, v=v)
    poses = propagate_poses(forest, model, q)
    moving = propagate_velocities(forest, poses, v)
    offsets = [np.array([float(getattr(at.r, k)) for k in "xyz"]) for at in poses]
    return [(numbers(m.V), numbers(m.c), r) for m, r in zip(moving, offsets, strict=True)]


@every_joint
def test_bias_on_the_world(joint):
    """On a parent at rest V x (S qd) = 0, and all of c is c_J."""
    _, model, q, v = drawn(joint)
    ((_, c, _),) = velocity_parts(model, q, v)
    assert np.allclose(c, spatial_acceleration(model, q, v, 0), atol=ROUNDING)
    assert (np.abs(c).max() > 0.01) == (joint in ("universal", "planar", "floating"))


@pytest.mark.parametrize("joint", [joint for joint in JOINTS if joint != "floating"])
def test_bias_on_a_moving_parent(joint):
    """a = a_parent + V x (S qd) + c_J, each in world axes at the link's own origin."""
    _, model, q, v = drawn("floating", joint)
    (_, parent, _), (_, c, r) = velocity_parts(model, q, v)
    shifted = np.concatenate([parent[:3], parent[3:] + np.cross(parent[:3], r)])
    assert np.allclose(shifted + c, spatial_acceleration(model, q, v, 1), atol=10 * ROUNDING)


@moving_joint
@pytest.mark.parametrize("h", [1e-9, 0.3, 4.0])
def test_integrate_q_is_a_flow(joint, h):
    """Moving for h in two parts, and there and back again; quaternions stay unit, also over several turns."""
    _, model, q, v = drawn(joint)
    once = integrate_q(model, q, v, h)
    twice = integrate_q(model, integrate_q(model, q, v, 0.3 * h), v, 0.7 * h)
    assert np.allclose(once, twice, atol=10 * ROUNDING)
    assert np.allclose(integrate_q(model, once, v, -h), q, atol=10 * ROUNDING)
    assert np.abs(once - q).max() > 0.01 * h


def test_integrate_q_is_the_exponential():
    """Quaternions against SciPy: spherical turns about the child's axes, floating about the world's; h per lane."""
    rng, model = random_tree(Recipe(1, 2, floating=True, joints=("spherical",)))
    q, v = random_state(rng, model.topology, (4,))
    h = np.array([1e-8, 0.1, 2.0, 30.0])
    found = np.asarray(integrate_q(model, jnp.asarray(q), jnp.asarray(v), jnp.asarray(h)))
    turn = [Rotation.from_rotvec(v[:, k : k + 3] * h[:, None]) for k in (0, 6)]
    before = [Rotation.from_quat(q[:, k : k + 4], scalar_first=True) for k in (3, 7)]
    for k, expected in ((3, turn[0] * before[0]), (7, before[1] * turn[1])):
        after = Rotation.from_quat(found[:, k : k + 4], scalar_first=True)
        assert np.abs((after.inv() * expected).magnitude()).max() < 1e-7  # arccos near 1 keeps half the digits
        assert np.allclose(after.as_matrix(), expected.as_matrix(), atol=ROUNDING)
        assert np.allclose(np.linalg.norm(found[:, k : k + 4], axis=-1), 1, atol=1e-15)
    assert np.allclose(found[:, :3], q[:, :3] + v[:, 3:6] * h[:, None], atol=ROUNDING)


@moving_joint
def test_moves_do_not_commute_by_their_bracket(joint):
    rng, model, q, a = drawn(joint)
    b = jnp.asarray(rng.normal(size=a.shape))
    (_, of_b), (_, of_a) = (
        along(lambda q, w=w: coordinate_rates(model, q, w), model, q, v) for v, w in ((a, b), (b, a))
    )
    assert np.allclose(of_b - of_a, coordinate_rates(model, q, bracket(model, a, b)), atol=ROUNDING)


@moving_joint
def test_coordinate_rates_are_the_rates_of_integrate_q(joint):
    _, model, q, v = drawn(joint)
    _, rates = along(lambda q: q, model, q, v)
    assert np.allclose(coordinate_rates(model, q, v), rates, atol=ROUNDING)


@every_joint
def test_neutral_is_the_joint_frame(joint):
    _, model, _, _ = drawn(joint)
    poses = fk(model, jnp.asarray(JOINTS[joint].neutral, float))
    R = Rotation.from_quat(np.asarray(model.joint_quaternion[0]), scalar_first=True)
    assert np.allclose(poses.position[0], model.joint_position[0], atol=ROUNDING)
    assert np.allclose(poses.rotation[0], R.as_matrix(), atol=ROUNDING)


@moving_joint
@pytest.mark.parametrize("size", [1.0, 0.1, 1e-7, 0.0])
def test_displacement_undoes_integrate_q_from_neutral(joint, size):
    """For quaternions the rotation vector, and its derivative at zero is 1 as everywhere else."""
    _, model, _, v = drawn(joint)
    v = size * v / jnp.abs(v).max()  # below half a turn
    neutral = jnp.asarray(JOINTS[joint].neutral, float)
    there, rate = jax.jvp(
        lambda h: displacement(model, integrate_q(model, neutral, v, h)), (jnp.ones(()),), (jnp.ones(()),)
    )
    assert np.allclose(there, v, rtol=ROUNDING, atol=0)
    assert np.allclose(rate, v, rtol=1e-10, atol=0)


@moving_joint
def test_spring_force_is_the_gradient_of_its_energy(joint):
    """dV/dt = -F v, for springs of another stiffness about each axis and that rest anywhere."""
    _, model, q, v = drawn(joint)
    nv = model.topology.nv
    model = model.replace(stiffness=1.0 + jnp.arange(nv), rest=0.3 - 0.2 * jnp.arange(nv), gravity=jnp.zeros(3))
    _, rate = along(lambda q: energy(model, State(q, v, jnp.zeros(()))).potential, model, q, v)
    assert np.allclose(rate, -passive_forces(model, q, v) @ v, atol=ROUNDING)
    assert abs(rate) > 1e-3


def test_random_quaternions_cover_both_halves():
    """The tests above see rotations beyond a quarter turn, of either sign of w."""
    rng, model = random_tree(Recipe(2, 30, joints=("spherical",)))
    w = random_q(rng, model.topology)[quaternion_starts(model.topology)]
    assert w.min() < -0.5
    assert w.max() > 0.5


@pytest.mark.parametrize("kind", JOINTS)
def test_the_table_says_what_a_joint_reads(kind: str) -> None:
    joint, seen = JOINTS[kind], set()

    class Watched:
        def __getattribute__(self, name: str) -> object:
            seen.add(name)
            return {"axis": Vec3(0.0, 0.0, 1.0), "axis2": Vec3(1.0, 0.0, 0.0), "pitch": 0.1}[name]

    cos_sin = [(jnp.ones(()), jnp.zeros(()))] * joint.angles
    joint.move(IDENTITY, Watched(), tuple(map(jnp.asarray, joint.neutral)), cos_sin)  # type: ignore[arg-type]
    assert seen == {*joint.reads}
