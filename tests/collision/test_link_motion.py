"""Bounds on the motion of single links and trees that are reached: tumbling bodies, weights, springs and motors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from carom.collision.speeds.link_motion import link_motion, trees
from carom.engine.model import Model
from carom.engine.parameters import unread
from carom.engine.state import State
from carom.engine.topology import Topology
from carom.tests.oracles.random_trees import random_model, unit
from carom.tests.oracles.tumbling import Flight

EXACT = 1e-12  # relative: closed forms


@pytest.fixture(autouse=True)
def op_by_op():
    with jax.disable_jit():
        yield


def single(joint: str, **changes: object) -> Model:
    """One link of 2 kg on one joint along or about z, its centre of mass at the origin, without rotors."""
    model = random_model(np.random.default_rng(0), Topology(("a",), (-1,), (joint,)))
    still = {"mass": [2.0], "com": np.zeros((1, 3)), "axis": [[0, 0, 1.0]], "gravity": [0, 0, -9.81]}
    still |= {"joint_quaternion": [[1.0, 0, 0, 0]], "armature": np.zeros(model.topology.nv)}
    read = {name: x for name, x in still.items() if not unread(name, model.topology)}
    return model.replace(**{name: jnp.asarray(x, float) for name, x in (read | changes).items()})


def at(q: list[float], v: list[float]) -> State:
    return State(jnp.array(q, float), jnp.array(v, float), jnp.array(0.0))


@pytest.mark.slow
def test_a_tumbling_body_reaches_its_spin_and_never_passes_it():
    rng = np.random.default_rng(3)
    n = 200
    second = rng.uniform(0.01, 0.1, (n, 3))
    inertia = second.sum(1, keepdims=True) - second
    R = np.broadcast_to(np.eye(3), (n, 3, 3))
    w = unit(rng.normal(size=(n, 3))) * rng.uniform(1, 5, (n, 1))
    model = single("floating").replace(inertia=jnp.asarray(inertia[:, None, :, None] * np.eye(3)))
    q = np.tile([0, 0, 0, 1.0, 0, 0, 0], (n, 1))
    spin = np.asarray(link_motion(model, State(jnp.asarray(q), jnp.asarray(np.hstack([w, 0 * w])), jnp.zeros(n))).spin)[
        :, 0
    ]
    flight, fastest = Flight(0 * w, 0 * w, R, w, inertia, np.zeros(3)), np.zeros(n)
    for _ in range(1500):  # 15 s: several periods of most polhodes
        flight = flight.after(np.full(n, 0.01))
        fastest = np.maximum(fastest, np.linalg.norm(flight.w, axis=1))
    assert (fastest <= spin * (1 + 1e-6)).all()  # the oracle's steps of 0.05 rad
    assert np.mean(fastest > 0.999 * spin) > 0.8


@pytest.mark.slow
def test_a_body_in_free_fall_has_a_common_motion_and_no_energy():
    model = single("floating", com=[[0.1, 0, 0]])
    state = at([0, 0, 5, 1, 0, 0, 0], [0, 0, 3, 1, 2, -4])
    motion = link_motion(model, state)
    velocity = [float(x[0]) for x in (motion.velocity.x, motion.velocity.y, motion.velocity.z)]
    np.testing.assert_allclose(velocity, [1, 2.3, -4], rtol=EXACT)
    np.testing.assert_allclose([float(x[0]) for x in (motion.center.x, motion.center.z)], [0.1, 5], rtol=EXACT)
    np.testing.assert_allclose(motion.energy_root, [np.sqrt(9 * model.inertia[0, 2, 2])], rtol=EXACT)
    assert motion.falls[0] == 1
    assert motion.growth[0] == 0
    assert motion.single.all()


@pytest.mark.parametrize(
    "changes",
    [{"damping": np.ones(6)}, {"motor_target": np.eye(6)[5]}, {"motor_kd": np.ones(6), "motor_gain": np.ones(6)}],
    ids=["damping", "thrust", "velocity motor"],
)
def test_a_force_on_a_free_body_ends_its_free_fall(changes):
    motion = link_motion(single("floating", **changes), at([0, 0, 5, 1, 0, 0, 0], [0, 0, 0, 3, 0, 4]))
    assert motion.falls[0] == 0
    np.testing.assert_allclose(motion.energy_root, [np.sqrt(2) * 5], rtol=EXACT)
    assert motion.growth[0] >= 9.81 * np.sqrt(2)


def test_a_thrust_on_a_free_body_adds_to_its_weight():
    # F = 6 N on 2 kg: power F v <= e F/sqrt(m); a torque of 3 N m: e 3/sqrt(I_min)
    state, root = at([0, 0, 5, 1, 0, 0, 0], [0] * 6), np.sqrt(2)
    weight = 9.81 * root
    thrust = link_motion(single("floating", motor_target=6 * np.eye(6)[5]), state).growth
    np.testing.assert_allclose(thrust, [weight + 6 / root], rtol=EXACT)
    ball = single("floating", motor_target=3 * np.eye(6)[0], inertia=[0.01 * np.eye(3)])
    np.testing.assert_allclose(link_motion(ball, state).growth, [weight + 3 / 0.1], rtol=EXACT)


def test_a_falling_slider_gains_all_that_is_allowed():
    # m = 2 on vertical rails, thrown down at 3 m/s: e = sqrt(2 T) = sqrt(m) v grows by sqrt(m) g
    motion = link_motion(single("prismatic"), at([0], [-3]))
    np.testing.assert_allclose(motion.energy_root, [np.sqrt(2) * 3], rtol=EXACT)
    np.testing.assert_allclose(motion.growth, [np.sqrt(2) * 9.81], rtol=EXACT)
    np.testing.assert_allclose(motion.speeds.origin, [1 / np.sqrt(2)], rtol=EXACT)


def test_a_thrust_gains_all_that_is_allowed():
    # F = 6 N, though the control asks for 10: e = sqrt(m) F t/m; limited to 6 by the effort
    model = single("prismatic", gravity=[0, 0, 0], motor_effort=[6.0])
    for control, force in (([10.0], 6), ([-4.0], 4)):
        growth = link_motion(model, at([0], [0]), jnp.array(control)).growth
        np.testing.assert_allclose(growth, [force / np.sqrt(2)], rtol=EXACT)
    np.testing.assert_allclose(link_motion(model, at([0], [0])).growth, [0])


def test_springs_and_position_motors_count_what_they_store():
    # a spring of 50 N/m stretched by 0.2 m, and a motor of 30 N/m that is 0.5 m away but has no more than 6 N
    held = {"motor_gain": [30.0], "motor_kp": [30.0], "motor_target": [0.8], "motor_effort": [6.0]}
    model = single("prismatic", gravity=[0, 0, 0], stiffness=[50.0], rest=[0.1], **held)
    stored = 50 * 0.2**2 / 2 + (6 * 0.5 - 6**2 / (2 * 30))
    motion = link_motion(model, at([0.3], [0]))
    np.testing.assert_allclose(motion.energy_root, [np.sqrt(2 * stored)], rtol=EXACT)
    np.testing.assert_allclose(motion.growth, [0])


def test_an_arm_on_a_fixed_base_is_its_own_tree():
    topology = Topology(("base", "left", "right", "hand"), (-1, 0, 0, 2), ("fixed", "revolute", "revolute", "fixed"))
    assert trees(topology) == ((-1, 0, 1, 1), (1, 2))
    model = jax.tree.map(jnp.asarray, random_model(np.random.default_rng(3), topology))
    energy = np.asarray(link_motion(model, State(jnp.zeros(2), jnp.array([5.0, 0.0]), jnp.array(0.0))).energy_root)
    assert energy[1] > 0
    np.testing.assert_array_equal(energy[[0, 2, 3]], 0)  # the other arm's energy is not theirs


def test_nothing_moves_in_a_scene_that_is_all_fixed():
    model = jax.tree.map(jnp.asarray, random_model(np.random.default_rng(3), Topology(("a",), (-1,), ("fixed",))))
    motion = link_motion(model, State(jnp.zeros(0), jnp.zeros(0), jnp.array(0.0)))
    np.testing.assert_array_equal([motion.energy_root, motion.growth, motion.falls], 0)


def test_a_rigid_motor_counts_with_its_effort():
    """As a torque motor that gives all of it; one that brakes does no work."""
    inf = [np.inf]
    rigid = single("revolute", motor_gain=inf, motor_kd=inf, motor_effort=[3.0], motor_target=[0.5])
    torque = single("revolute", motor_gain=[1.0], motor_kd=[0.0], motor_effort=[3.0], motor_target=[3.0])
    state = at([0.1], [0.2])
    of = lambda model: np.asarray(link_motion(model, state).growth)  # noqa: E731
    assert of(rigid) == of(torque)
    assert of(rigid.replace(motor_target=[0.0])) == of(torque.replace(motor_target=[0.0]))
