"""Steps resolve what acts in joints: none is longer than the fastest motion allows, and none is much shorter."""

import dataclasses
import functools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.engine.dynamics.load_stiffness import load_stiffness
from carom.engine.state import State
from carom.integrators.resolved import DECAY, SWING, resolved_step
from carom.tests.oracles.random_trees import Recipe, random_q, random_tree


@pytest.mark.parametrize("recipe", [Recipe(901, 1), Recipe(902, 6, branch=0.0), Recipe(903, 8, roots=2)], ids=str)
def test_no_motion_is_faster_and_steps_are_not_much_shorter(recipe):
    rng, model = random_tree(recipe)
    nv = model.topology.nv
    model, still = model.replace(gravity=np.zeros(3)), jnp.zeros(nv)
    step = jax.jit(lambda model, q: resolved_step(model, State(q, still, jnp.zeros(())), still))
    for _ in range(5):
        k, kp, d, kd = 10.0 ** rng.uniform(-2, 3, (4, nv))
        model = model.replace(stiffness=k, motor_kp=kp, damping=d, motor_kd=np.where(rng.random(nv) < 0.2, np.inf, kd))
        q = random_q(rng, model.topology)
        M = np.asarray(carom.crba(model, jnp.asarray(q)))
        damped = d + np.where(np.isfinite(model.motor_kd), model.motor_kd, 0)
        square, rate = (np.linalg.eigvals(np.linalg.solve(M, np.diag(x))).real.max() for x in (k + kp, damped))
        exact = min(SWING / np.sqrt(square), DECAY / rate)
        # a symmetric matrix has no eigenvalue above its largest sum of a row, which is at most sqrt(nv) times that
        assert exact / np.sqrt(nv) * (1 - 1e-9) <= float(step(model, jnp.asarray(q))) <= exact * (1 + 1e-9)


def test_a_weight_holds_a_joint_by_the_second_derivative_of_its_potential():
    """Where all axes are parallel, a joint turns the lever of each link beyond it."""
    rng = np.random.default_rng(7)
    b = carom.SceneBuilder()
    parents = ["world", "a", "b", "b", "d"]
    for name, parent in zip("abcde", parents, strict=True):
        joint = carom.Revolute(axis=(0, 1, 0))
        at, com = rng.normal(size=(2, 3))
        b.add_link(name, parent, joint=joint, position=at, mass=rng.uniform(0.1, 2), com=com, inertia=np.eye(3) * 0.1)
    model, _ = carom.compile_scene(b)
    q, still = jnp.asarray(rng.normal(size=5)), jnp.zeros(5)
    own = np.asarray(load_stiffness(model, q, still, still))
    potential = lambda q: carom.energy(model, State(q, still, jnp.zeros(()))).potential  # noqa: E731
    beyond = {0: (0, 1, 2, 3, 4), 1: (1, 2, 3, 4), 2: (2,), 3: (3, 4), 4: (4,)}
    total = [own[list(links)].sum() for links in beyond.values()]
    np.testing.assert_allclose(total, np.diag(jax.hessian(potential)(q)), rtol=1e-10, atol=1e-12)
    spun = load_stiffness(model.replace(gravity=np.zeros(3)), q, still.at[0].set(3.0), still)
    assert np.abs(np.asarray(spun)).max() > 1  # what turns is pulled outwards


def _crane(load: float, floor: bool = False) -> tuple[carom.Model, State]:
    """Five links of 1 kg and 0.3 m that carry a load."""
    b = carom.SceneBuilder()
    shapes = [carom.Sphere(0.4, position=(0, 0, -0.4))] if floor else []
    if floor:
        b.add_plane(offset=-20.0)
    for k in range(5):
        parent, at = (f"c{k - 1}", (0, 0, -0.3)) if k else ("world", (0, 0, 0))
        inertia = np.diag([7e-3, 7e-3, 8e-4])
        b.add_link(f"c{k}", parent, joint=carom.Spherical(), position=at, mass=1.0, com=(0, 0, -0.15), inertia=inertia)
    b.add_link(
        "ball", "c4", joint=carom.Spherical(), position=(0, 0, -0.3), mass=load, com=(0, 0, -0.4),
        inertia=np.eye(3) * 0.064 * load, shapes=shapes,
    )  # fmt: skip
    return carom.compile_scene(b)


@pytest.mark.parametrize("scheme", ["exact", "semi_implicit"])
def test_a_heavy_load_on_light_links_swings_without_growing(scheme):
    """The links of the chain swing at 500 rad/s and more. A step of 1/60 s let their energy grow to infinity."""
    model, state = _crane(500.0, floor=True)
    push = carom.impulse_response(model, state.q, link="ball", impulse=[250.0, 0, 0], point=[0, 0, -0.4])
    state = dataclasses.replace(state, v=state.v + push)
    run = carom.rollout(model, state, duration=1.0, max_dt=1 / 60, scheme=scheme)
    e = carom.energy(model, State(run.q, run.v, run.t))
    total = np.asarray(e.kinetic + e.potential)
    assert np.abs(total - total[0]).max() < (1e-3 if scheme == "exact" else 2e-1) * float(e.kinetic[0])
    assert int(run.stats.ticks) < (130 if scheme == "exact" else 600)  # 60 frames


def test_where_nothing_can_touch_the_code_says_that_steps_are_too_long():
    model, state = _crane(1000.0)
    state = dataclasses.replace(state, v=state.v.at[0].add(0.1))
    plain = functools.partial(carom.rollout, model, state, duration=0.1, scheme="rk4")
    with pytest.warns(carom.SimulationWarning, match="STEPS_TOO_LONG: .* lower max_dt"):
        assert int(plain(max_dt=1 / 240).code) == 90
    assert int(plain(max_dt=1 / 4000).code) == 0
    lanes = jax.vmap(lambda v: plain(max_dt=1 / 240, throw=False).code + 0 * v[0].astype(int))
    assert (np.asarray(lanes(jnp.stack([state.v, 2 * state.v]))) == 90).all()
    assert int(plain(max_dt=1 / 240, time_control="fixed", throw=False).code) != 90


@pytest.mark.parametrize("load", [1000.0, 100000.0])
def test_the_default_scheme_divides_steps_that_would_grow(load):
    model, state = _crane(load)
    state = dataclasses.replace(state, v=state.v.at[0].add(0.1))
    run = carom.rollout(model, state, duration=1.0, max_dt=1 / 60)
    e = carom.energy(model, State(run.q, run.v, run.t))
    total = np.asarray(e.kinetic + e.potential)
    assert int(run.code) == 0
    assert (total - total[0]).max() < 1e-4 * float(e.kinetic[0])
    fine = carom.rollout(model, state, duration=0.25, max_dt=1 / 8000)
    np.testing.assert_allclose(run.q[:16], fine.q, rtol=0, atol=2e-4)


def test_a_chain_that_becomes_taut_within_a_step_gains_nothing():
    """A load falls until slack links hold it, at an instant within a step, and whips them about."""
    model, state = _crane(500.0)
    bent = np.tile(np.array([np.cos(0.6), 0, np.sin(0.6), 0]), 6).reshape(6, 4)
    bent[1::2, 2] *= -1  # links go to and fro
    state = dataclasses.replace(state, q=jnp.asarray(bent.ravel()))
    for scheme in ("exact", "semi_implicit"):
        run = carom.rollout(model, state, duration=2.0, max_dt=1 / 60, scheme=scheme, throw=False)
        e = carom.energy(model, State(run.q, run.v, run.t))
        total = np.asarray(e.kinetic + e.potential)
        if scheme == "exact":
            assert int(run.code) == 0
            assert total.max() - total[0] < 0.02 * float(e.kinetic.max())
        else:  # has no such check: the state is one that needs it
            assert not total.max() - total[0] < 0.02 * float(e.kinetic.max())


def test_a_stiff_joint_over_a_floor_swings_in_time():
    """A rod on a spring of 800 rad/s, in steps of at most 1/60 s; where it is after 5 swings."""
    b = carom.SceneBuilder()
    b.add_plane(offset=-5.0)
    joint = carom.Revolute(axis=(0, 1, 0), stiffness=64.0)
    b.add_link(
        "rod", joint=joint, shapes=[carom.Sphere(0.02)], mass=0.01, com=(0, 0, -0.1), inertia=(0, 0, 0), q0=[0.1]
    )
    model, state = carom.compile_scene(b.build())
    rate = np.sqrt(64.0 / 1e-4 + 9.81 / 0.1)
    end = carom.rollout(model, state, duration=5 * 2 * np.pi / rate, frame_dt=5 * 2 * np.pi / rate, max_dt=1 / 60)
    assert float(end.q[-1, 0]) == pytest.approx(0.1, rel=2e-2)


def test_stiff_motors_need_no_short_steps_of_order_1():
    """A mass that sinks on a leg whose light foot stands: m z'' = kp (length - z) - kd z' - m g. The foot alone would
    come to rest within 1e-4 s."""
    kp, kd, m, g, length = 2000.0, 240.0, 5.0, 9.81, 0.5
    b = carom.SceneBuilder()
    b.add_plane(friction=0.5)
    b.add_link("mass", joint=carom.Prismatic((0, 0, 1)), mass=m, inertia=np.eye(3), q0=length)
    leg = carom.Prismatic((0, 0, 1), motor=carom.Motor("position", kp=kp, kd=kd))
    b.add_link(
        "foot", "mass", joint=leg, position=(0, 0, -length), mass=0.02, inertia=np.eye(3) * 1e-5,
        shapes=[carom.Box((0.1, 0.1, 0.01), position=(0, 0, 0.01))],
    )  # fmt: skip
    model, state = carom.compile_scene(b)
    slow, fast = np.roots([m, kd, kp])[::-1]
    t = np.linspace(0, 0.5, 26)
    sag = -m * g / kp * (1 - (fast * np.exp(slow * t) - slow * np.exp(fast * t)) / (fast - slow))
    worst = []
    for rate in (200, 400):
        run = carom.rollout(model, state, duration=0.5, frame_dt=0.02, max_dt=1 / rate, scheme="semi_implicit")
        assert int(run.stats.ticks) <= rate + 5  # two a step
        assert int(run.stats.impacts) == 0
        worst.append(np.abs(np.asarray(run.q)[:, 0] - length - sag).max())
    assert worst[0] < 1e-3
    assert worst[1] == pytest.approx(worst[0] / 2, rel=0.2)
    with pytest.warns(
        carom.SimulationWarning, match=r'stops link "foot" \(8.3e-05 s\). scheme="semi_implicit" needs no'
    ):
        carom.rollout(model, state, duration=0.1, frame_dt=0.02)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        carom.rollout(model.replace(armature=[0.05, 0.05]), state, duration=0.1, frame_dt=0.02)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*steps resolve")
@pytest.mark.parametrize("effort", [5.0, 50.0])
def test_a_stiff_motor_at_its_bound_does_not_throw_a_light_link(effort):
    """Its bound would change the link's speed by 100 rad/s in a step; the motor gives less once that is enough."""
    b = carom.SceneBuilder()
    b.add_plane(offset=-5.0)
    motor = carom.Motor("position", kp=800.0, kd=30.0, effort=effort)
    joint = carom.Revolute((0, 1, 0), motor=motor)
    b.add_link("foot", joint=joint, mass=0.1, inertia=np.eye(3) * 2e-3, shapes=[carom.Sphere(0.01)], q0=1.0)
    model, state = carom.compile_scene(b)
    ends = []
    for scheme in ("semi_implicit", "exact"):
        run = carom.rollout(model, state, duration=0.3, frame_dt=0.02, max_dt=1 / 240, scheme=scheme)
        ends.append(np.asarray(run.q)[:, 0])
        assert (np.diff(ends[-1]) < 0).all()  # no way back
        assert scheme == "exact" or int(run.stats.ticks) <= 90
    np.testing.assert_allclose(*ends, atol=0.03)
