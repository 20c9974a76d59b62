"""Tasks of one's own: what their functions see, what episodes are, and that lanes are what single environments are."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.scenes.envs.actuators import select_actuators
from carom.scenes.envs.registry import OWN
from carom.scenes.envs.scene_task import Period, Task
from carom.scenes.formats.report import Actuator

G, DT, LANES = 9.81, 0.02, 5
UP = (0, 0, 1)


def scene() -> Any:
    b = carom.SceneBuilder()
    rail = carom.Prismatic(axis=UP, limits=(-0.2, 0.2), motor=carom.Motor(effort=60.0))
    b.add_link("paddle", joint=rail, mass=1.0, shapes=[carom.Box((0.2, 0.2, 0.02), restitution=1.0)])
    b.add_link("ball", joint=carom.Prismatic(axis=UP), mass=0.1, shapes=[carom.Sphere(0.05, restitution=0.9)], q0=0.4)
    return b


def seen(s: Period) -> Any:
    parts = (s.q, s.v, s.before.q, s.action, s.command, s.t, s.steps, s.model.mass, s.model.pair_restitution)
    return jnp.concatenate([jnp.atleast_1d(part) for part in parts]).astype(s.q.dtype)


TASK = Task(
    name="test/Juggle-v0",
    scene=scene(),
    dt=DT,
    max_steps=40,
    observe=seen,
    reward=lambda s: s.q[1] - s.before.q[1],
    ended=lambda s: s.q[1] < 0.3,
    start=lambda key, q, v: (q.at[1].add(0.1 * jax.random.uniform(key, (), q.dtype)), v),
    command=lambda key: jax.random.uniform(key, (1,)),
    randomise=lambda key, m: m.replace(
        mass=m.mass * jax.random.uniform(key, (2,), minval=0.9, maxval=1.1),
        restitution=m.restitution * jax.random.uniform(key, minval=0.5, maxval=1.0),
    ),
    info=lambda s: {"height": s.q[1], "pair": s.q},
)


@pytest.fixture(scope="module")
def env() -> carom.Environment:
    return carom.Environment(TASK, dtype="float64")


def plain(tree: Any) -> Any:
    def numbers(x: Any) -> np.ndarray:
        return np.asarray(jax.random.key_data(x) if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else x)

    return jax.tree.map(numbers, tree)


def test_functions_see_the_period(env: carom.Environment) -> None:
    """A ball in free fall, before it meets the paddle; the paddle, without a force, stands on its lower stop."""
    state, first = env.reset(jax.random.split(jax.random.key(0), LANES))
    assert first.shape == (LANES, *env.observations.shape)
    np.testing.assert_array_equal(first[:, 4:6], state.q)  # before is the state itself
    np.testing.assert_array_equal(first[:, 8:10], 0)  # time and steps
    action = jnp.full((LANES, 1), 0.5)
    after, observation, reward, terminated, truncated, info = env.step_with_info(state, action)
    np.testing.assert_array_equal(observation[:, :2], after.q)
    np.testing.assert_array_equal(observation[:, 4:6], state.q)
    np.testing.assert_array_equal(observation[:, 6], 0.5)
    np.testing.assert_array_equal(observation[:, 7:8], state.command)
    np.testing.assert_allclose(observation[:, 8:10], [[DT, 1.0]] * LANES, rtol=1e-12)
    np.testing.assert_array_equal(observation[:, 10:12], state.parameters["mass"])
    np.testing.assert_array_equal(observation[:, 12], state.parameters["pair_restitution"][:, 0])
    np.testing.assert_allclose(after.q[:, 1], state.q[:, 1] - G * DT**2 / 2, rtol=1e-9)
    np.testing.assert_allclose(reward, -G * DT**2 / 2, rtol=1e-6)
    np.testing.assert_array_equal(info["height"], after.q[:, 1])
    assert info["pair"].shape == (LANES, 2)
    assert not terminated.any()
    assert not truncated.any()


def test_randomised_parameters_move_the_lane(env: carom.Environment) -> None:
    """Each paddle rises as its own mass has it, and each ball bounces with its own restitution."""
    state, _ = env.reset(jax.random.split(jax.random.key(3), LANES))
    assert len(np.unique(state.parameters["mass"])) == 2 * LANES
    state = state._replace(q=jnp.tile(jnp.array([-0.1, 0.4]), (LANES, 1)))
    after = env.step(state, jnp.full((LANES, 1), 20.0)).state
    np.testing.assert_allclose(after.v[:, 0], (20 / state.parameters["mass"][:, 0] - G) * DT, rtol=1e-9)
    # the paddle rests on its stop; the ball meets it at the speed of its fall, and leaves with a part of that
    heavy = {**state.parameters, "mass": state.parameters["mass"].at[:, 0].set(1e9)}
    above = 0.05  # [m] the paddle
    low = jnp.tile(jnp.array([-0.2, -0.2 + 0.02 + 0.05 + above]), (LANES, 1))
    speeds = jnp.tile(jnp.array([0.0, -10.0]), (LANES, 1))
    hit = env.step(state._replace(q=low, v=speeds, parameters=heavy), jnp.zeros((LANES, 1))).state
    meets = np.sqrt(100 + 2 * G * above)
    when = (meets - 10) / G
    leaves = np.asarray(state.parameters["pair_restitution"][:, 0]) * meets
    np.testing.assert_allclose(hit.v[:, 1], leaves - G * (DT - when), rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_lane_is_the_same_bits_anywhere(dtype: str) -> None:
    env, rng = carom.Environment(TASK, dtype=dtype), np.random.default_rng(1)
    keys = jax.random.split(jax.random.key(2), 6)
    state, observation = env.reset(keys)
    alone = [env.reset(key) for key in keys]
    for k, one in enumerate(alone):
        mine = plain(jax.tree.map(lambda x, k=k: x[k], (state, observation)))
        jax.tree.map(np.testing.assert_array_equal, mine, plain(one))
    for _ in range(30):
        action = jnp.asarray(rng.uniform(-60, 60, (6, 1)), dtype)
        step = env.step_with_info(state, action)
        one = plain(env.step_with_info(jax.tree.map(lambda x: x[4], state), action[4]))
        jax.tree.map(np.testing.assert_array_equal, plain(jax.tree.map(lambda x: x[4], step)), one)
        state = step.state
    pair = jax.tree.map(lambda x: x.reshape(2, 3, *x.shape[1:]), (state, action))
    paired, flat = plain(env.step(*pair)), plain(env.step(state, action))
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(a.reshape(b.shape), b), paired, flat)


def test_a_new_episode_has_its_own_parameters_and_command(env: carom.Environment) -> None:
    state, observation = env.reset(jax.random.split(jax.random.key(0), 2))
    new, _ = env.restarted(state, observation, jnp.array([True, False]))
    for old, now in ((state.parameters["mass"], new.parameters["mass"]), (state.command, new.command)):
        assert (old[0] != now[0]).all()
        np.testing.assert_array_equal(old[1], now[1])


def test_mjcf_actuators_keep_order_gear_and_range(tmp_path: Any) -> None:
    pytest.importorskip("mujoco")
    file = tmp_path / "arm.xml"
    file.write_text("""<mujoco><option gravity="0 0 0"/><worldbody><body>
      <joint name="x" type="slide" axis="1 0 0"/><joint name="y" type="slide" axis="0 1 0"/>
      <joint name="z" type="slide" axis="0 0 1"/><geom size="0.1" mass="2"/></body></worldbody>
      <actuator><motor joint="z" gear="3" ctrllimited="true" ctrlrange="-0.5 1"/>
      <motor name="sideways" joint="x" gear="-2"/></actuator></mujoco>""")
    task = Task(name="test/Arm-v0", scene=file, dt=0.1, reward=lambda s: s.q[0])
    assert [(a.name, a.scale, a.lower, a.upper) for a in task.driven] == [
        ("z", 3.0, -0.5, 1.0), ("sideways", -2.0, -np.inf, np.inf)
    ]  # fmt: skip
    env = carom.Environment(task, dtype="float64")
    after = env.step(env.reset(jax.random.key(0))[0], jnp.array([7.0, 5.0])).state
    np.testing.assert_allclose(after.v, [-2 * 5 * 0.1 / 2, 0, 3 * 1.0 * 0.1 / 2], rtol=1e-12)
    some = carom.Environment(dataclasses.replace(task, actuators=["sideways"]), dtype="float64")
    assert some.actions.shape == (1,)
    with pytest.raises(ValueError, match="no actuator named 'sideway': did you mean 'sideways'"):
        _ = dataclasses.replace(task, actuators=["sideway"]).driven
    with pytest.raises(ValueError, match="names 'sideways' twice"):
        _ = dataclasses.replace(task, actuators=["sideways", "sideways"]).driven


def test_refusals() -> None:
    with pytest.raises(TypeError, match=r"test/.*: options is {'max_dt': 0.1}; it must be carom.Options"):
        dataclasses.replace(TASK, options={"max_dt": 0.1})
    with pytest.raises(ValueError, match="reward gives shape"):
        carom.Environment(dataclasses.replace(TASK, reward=lambda s: s.q)).reset(jax.random.key(0))
    for steps in (0, -3, 2.5, True):
        with pytest.raises(ValueError, match=f"max_steps is {steps}; it must be a whole number"):
            dataclasses.replace(TASK, max_steps=steps)
    twins = [Actuator("b", "arm"), Actuator("b", "arm")]
    with pytest.raises(ValueError, match="2 actuators are named 'b'"):
        select_actuators(twins, ["b"], "test")
    with pytest.raises(ValueError, match="one of Carom's own tasks"):
        carom.register_task(dataclasses.replace(TASK, name="cart_pole"))
    with pytest.raises(TypeError, match=r"takes a carom\.Task"):
        carom.register_task(lambda: 3)  # type: ignore[arg-type, return-value]
    with pytest.raises(TypeError, match="randomise must return a model"):
        carom.Environment(dataclasses.replace(TASK, randomise=lambda key, m: m.mass))


@pytest.mark.parametrize(("given", "says"), [
    ({"start": lambda key, q, v: (q[:1], v)}, r"start gives shapes \[\(1,\), .*; it must be \(q, v\) of shapes"),
    ({"start": lambda key, q, v: q}, r"start gives .*(Tracer|Array).*; it must be \(q, v\) of shapes"),
    ({"ended": lambda s: s.q[0]}, "ended gives .*float64.*; it must be bool"),
    ({"ended": lambda s: None}, "ended gives None; it must be bool"),
    ({"info": lambda s: s.q}, "info gives .*Tracer; it must be a dict"),
    ({"reward": lambda s: s.report["pair_forces"][0, 2], "report": "contact_forces"},
     "report has 'contact_forces' and no 'pair_forces': give the task report="),
])  # fmt: skip
def test_a_function_that_returns_something_else_is_named(given: dict[str, Any], says: str) -> None:
    with pytest.raises((ValueError, TypeError, KeyError), match=f"{TASK.name}: {says}"):
        carom.Environment(dataclasses.replace(TASK, **given), dtype="float64").reset(jax.random.key(0))


def test_a_registered_task_at_gymnasium() -> None:
    gymnasium = pytest.importorskip("gymnasium")
    name = carom.register_task(TASK)
    try:
        lanes = gymnasium.make_vec(name, num_envs=3, autoreset_mode="SameStep")
        lanes.action_space.seed(0)
        lanes.reset(seed=4)
        for _ in range(40):
            observation, _, terminated, truncated, infos = lanes.step(lanes.action_space.sample())
            done = terminated | truncated
            if done.any():
                assert infos["final_info"]["pair"].shape == (3, 2)
                break
        assert done.any()
        assert observation in lanes.observation_space
        one = gymnasium.make(name, render_mode="rgb_array")
        one.reset(seed=4)
        *_, info = one.step(one.action_space.sample())
        assert isinstance(info["height"], float)
        picture = one.render()
        assert picture.shape[1:] == (400, 3)
        assert picture.std() > 1  # something is drawn
    finally:
        del OWN[name]


def test_functions_see_what_the_step_reports():
    """What the ball's sensor feels, and what the paddle is pushed by, as `carom.step` says of the same step."""
    b = scene()
    b.add_site("imu", "ball", (0, 0, 0.02))
    b.add_sensor("feels", "accelerometer", "imu")
    b.add_sensor("place", "position", "imu")
    names = ("sensors", "contact_impulses")
    task = Task(
        name="test/Feel-v0",
        scene=b,
        dt=0.4,
        reward=lambda s: s.report["contact_impulses"][1, 5],
        observe=lambda s: jnp.concatenate([s.report["sensors"][name] for name in ("feels", "feels.impulse", "place")]),
        report=names,
    )
    env = carom.Environment(task, dtype="float64")
    state, observation = env.reset(jax.random.split(jax.random.key(0), 2))
    np.testing.assert_array_equal(observation[:, :-1], 0)  # nothing was felt yet
    np.testing.assert_allclose(observation[:, -1], 0.4 + 0.02, rtol=1e-12)  # where it is can be read
    made = env.step(state, jnp.zeros((2, 1)))
    model, start = carom.compile_scene(b)
    _, report = carom.step(model, start, dt=0.4, control=jnp.zeros(2), report=names)
    assert float(report["contact_impulses"][1, 5]) > 0.1
    for lane in range(2):
        np.testing.assert_array_equal(made.reward[lane], report["contact_impulses"][1, 5])
        expected = np.concatenate([report["sensors"][name] for name in ("feels", "feels.impulse", "place")])
        np.testing.assert_allclose(made.observation[lane], expected, rtol=1e-12)
