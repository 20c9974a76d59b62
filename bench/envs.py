"""Environments: steps per second compared with gymnasium's classic control, for one lane and for thousands.

All ways of a task take actions drawn beforehand from the same distribution, and restart episodes when they end.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table

import carom
from carom.scenes.envs.environment import Environment, EnvState
from carom.scenes.envs.task import BoxSpace, Discrete

from .dynamics import STYLE
from .peers import batches
from .timing import in_turn

LANES = (1, 256, 4096)
STEPS, FEW = 100, 4  # steps of a call; if Python steps each lane
AGREEMENT = 1e-9  # difference of the engines after STEPS steps, f64, relative to the largest coordinate or rate
PEERS = {"cart_pole": "CartPole-v1", "acrobot": "Acrobot-v1", "pendulum": "Pendulum-v1"}
IDS = {"cart_pole": "carom/CartPole-v0", "acrobot": "carom/Acrobot-v0", "pendulum": "carom/Pendulum-v0"}
VECTORISED = ("cart_pole",)  # tasks of which gymnasium has an array form
OTHERS = {"cart_pole": LANES, "hopper": LANES[:2]}  # timed without peers, in the engine of general trees

ROBOTS = {  # gymnasium's robots with our contacts, compared with gymnasium, a process for each of two lanes
    "carom/HalfCheetah-v5": {},
    "carom/Ant-v5": {"include_cfrc_ext_in_observation": False, "contact_cost_weight": 0.0},
}
ROBOT_LANES, WORKERS, MANY = (1, 64, 1024), 2, 256  # MANY: with as many lanes, nothing is called step by step

SCAN, STEP, OURS = "carom, one scan", "carom, a call a step", "carom by gymnasium"
THEIRS, ARRAYS, PHYSICS = "gymnasium", "gymnasium, as arrays", "mujoco.rollout, no task"


class StepMethod(NamedTuple):
    """A way to step a task.  steps: number of steps of every lane by `call`."""

    steps: float
    call: Callable[[], Any]


def cpu(rounds: int, only: str) -> int:
    """Print a table for each task that `only` names; the exit status says whether the engines agreed."""
    console = Console(width=120)
    agreed = True
    for name in (name for name in PEERS if only in name):
        difference = apart(name)
        agreed &= difference < AGREEMENT
        console.log(f"{name}: its engines differ by {difference:.0e} after {STEPS} steps, f64")
        rates = {lanes: measure_rates(ways(name, lanes), lanes, rounds) for lanes in LANES}
        console.print(_table(f"{name} beside gymnasium's {PEERS[name]}: steps a second", rates))
    for name, sizes in OTHERS.items():
        if only in name:
            rates = {lanes: measure_rates(functional(name, lanes, "tree"), lanes, rounds) for lanes in sizes}
            console.print(_table(f"{name} as a tree: steps a second", rates))
    for id, parameters in ROBOTS.items():
        if only in id:
            rates = {lanes: measure_rates(robots(id, lanes, parameters), lanes, rounds) for lanes in ROBOT_LANES}
            console.print(_table(f"{id} beside gymnasium's, f32: steps a second", rates))
    if not agreed:
        console.print("[red]the engines differ: the figures above are worth nothing")
    return 0 if agreed else 1


def measure_rates(ways: dict[str, StepMethod], lanes: int, rounds: int) -> dict[str, float]:
    """Return the steps per second of the best round: other work on the machine only adds time."""
    timed = in_turn({name: way.call for name, way in ways.items()}, rounds)
    return {name: lanes * way.steps / timed[name].best for name, way in ways.items()}


def ways(name: str, lanes: int) -> dict[str, StepMethod]:
    """Return all ways of a task with a peer."""
    import gymnasium

    carom.register_envs()
    found = functional(name, lanes, None)
    if lanes == 1:
        found[OURS] = one(gymnasium.make(IDS[name], dtype="float32"))
        found[THEIRS] = one(gymnasium.make(PEERS[name]))
        return found
    found[OURS] = many(gymnasium.make_vec(IDS[name], lanes, dtype="float32"), STEPS)
    found[THEIRS] = many(gymnasium.make_vec(PEERS[name], lanes, vectorization_mode="sync"), FEW)
    if name in VECTORISED:
        found[ARRAYS] = many(gymnasium.make_vec(PEERS[name], lanes, vectorization_mode="vector_entry_point"), STEPS)
    return found


def robots(id: str, lanes: int, parameters: dict[str, Any]) -> dict[str, StepMethod]:
    """Return the ways of a robot of gymnasium with random controls; gymnasium's is AsyncVectorEnv with two lanes."""
    import gymnasium

    carom.register_envs()
    found, peer = functional(id, lanes, None, **parameters), id.removeprefix("carom/")
    found[PHYSICS] = physics(gymnasium.make(peer, **parameters).unwrapped, lanes)
    if lanes >= MANY:
        return found
    if lanes == 1:
        found[OURS] = one(gymnasium.make(id, dtype="float32", **parameters))
        found[THEIRS] = one(gymnasium.make(peer, **parameters))
        return found
    found[OURS] = many(gymnasium.make_vec(id, lanes, dtype="float32", **parameters), STEPS)
    words: dict[str, Any] = {"vectorization_mode": "async", "vector_kwargs": {"context": "spawn"}}
    peers = many(gymnasium.make_vec(peer, WORKERS, **words, **parameters), STEPS)
    found[THEIRS] = StepMethod(STEPS * WORKERS / lanes, peers.call)  # scaled to our number of lanes
    return found


def physics(env: Any, lanes: int) -> StepMethod:
    """Return MuJoCo's batches of the same steps with random controls on two threads, without observations or resets."""
    model, skip = env.model, env.frame_skip
    low, high = model.actuator_ctrlrange.T
    actions = np.random.default_rng(1).uniform(low, high, (lanes, STEPS, model.nu)).repeat(skip, axis=1)
    data = [type(env.data)(model) for _ in range(WORKERS)]
    first = np.tile(np.concatenate([[0.0], data[0].qpos, data[0].qvel]), (lanes, 1))
    pool = batches(WORKERS)
    return StepMethod(STEPS, lambda: pool.rollout(model, data, first, actions))


def functional(name: str, lanes: int, engine: str | None, **parameters: Any) -> dict[str, StepMethod]:
    """Return `env.step` and `env.restarted` as one jitted call per step, and in one scan; f32, as users have it."""
    env = carom.make_env(name, engine=engine, dtype="float32", **parameters)
    key = jax.random.key(0)
    begun = env.reset(key if lanes == 1 else jax.random.split(key, lanes))
    actions = jnp.asarray(draw_actions(env.actions, STEPS, lanes))
    each, step = list(actions), jax.jit(lambda now, action: step_once(env, now, action))
    scan = jax.jit(lambda now: jax.lax.scan(lambda now, action: step_once(env, now, action), now, actions))

    def step_by_step() -> Any:
        now = begun
        for action in each:
            now, _ = step(now, action)
        return now

    return {SCAN: StepMethod(STEPS, lambda: scan(begun)), STEP: StepMethod(STEPS, step_by_step)}


def step_once(env: Environment, now: tuple[EnvState, jax.Array], action: jax.Array) -> tuple[Any, jax.Array]:
    state, observation, reward, terminated, truncated = env.step(now[0], action)
    return env.restarted(state, observation, terminated | truncated), reward


def one(env: Any) -> StepMethod:
    """Return the way of a gymnasium.Env, which the caller resets."""
    space = env.action_space
    actions = list(draw_actions(space_of(space), STEPS, 1))
    env.reset(seed=0)

    def call() -> None:
        for action in actions:
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset()

    return StepMethod(STEPS, call)


def many(envs: Any, steps: int) -> StepMethod:
    """Return the way of a gymnasium.vector.VectorEnv, which resets by itself."""
    actions = itertools.cycle(draw_actions(space_of(envs.single_action_space), STEPS, envs.num_envs))
    envs.reset(seed=0)

    def call() -> None:
        for action in itertools.islice(actions, steps):
            envs.step(action)

    return StepMethod(steps, call)


def space_of(space: Any) -> BoxSpace | Discrete:
    """Convert gymnasium's space to ours."""
    return Discrete(int(space.n)) if hasattr(space, "n") else BoxSpace(tuple(space.low), tuple(space.high))


def draw_actions(space: BoxSpace | Discrete, steps: int, lanes: int) -> np.ndarray:
    """Draw actions (steps, lanes, ...), or (steps, ...) for one lane."""
    rng, shape = np.random.default_rng(1), (steps,) if lanes == 1 else (steps, lanes)
    if isinstance(space, Discrete):
        return rng.integers(space.n, size=shape)
    return rng.uniform(space.low, space.high, (*shape, len(space.low))).astype(np.float32)


def apart(name: str) -> float:
    """Return the largest difference between the end states of a task's engines, relative to the largest entry."""
    ends = []
    for engine in carom.make_env(name).task.engines:
        env = carom.make_env(name, engine=engine, dtype="float64")
        state, _ = env.reset(jax.random.split(jax.random.key(0), 4))
        for action in draw_actions(env.task.actions, STEPS, 4):
            state, *_ = env.step(state, jnp.asarray(action))
        ends.append(np.concatenate([state.q, state.v], -1))
    return max(float(np.abs(end - ends[0]).max() / np.abs(ends[0]).max()) for end in ends)


def _table(title: str, rates: dict[int, dict[str, float]]) -> Table:
    table = Table(**STYLE, title=title)
    for column in ("", *(f"{lanes} lane{'s' * (lanes > 1)}" for lanes in rates)):
        table.add_column(column, justify="right", no_wrap=True)
    for row in _rows(rates):
        table.add_row(*row)
    return table


def _rows(rates: dict[int, dict[str, float]]) -> Iterator[list[str]]:
    """Yield a row for each way, and the ratios of our rates to the fastest of gymnasium."""
    names = list(dict.fromkeys(name for found in rates.values() for name in found))
    for name in names:
        yield [name, *(f"{found[name]:,.0f}" if name in found else "" for found in rates.values())]
    for name in (SCAN, STEP, OURS):
        if name in names and THEIRS in names:
            theirs = [max(found.get(THEIRS, 0), found.get(ARRAYS, 0)) for found in rates.values()]
            yield [f"{name} / gymnasium's best", *_ratios(name, rates, theirs)]
    if PHYSICS in names:
        yield [f"{SCAN} / {PHYSICS}", *_ratios(SCAN, rates, [found[PHYSICS] for found in rates.values()])]


def _ratios(name: str, rates: dict[int, dict[str, float]], theirs: list[float]) -> Iterator[str]:
    for found, other in zip(rates.values(), theirs, strict=True):
        ratio = found[name] / other if name in found and other else None
        yield "" if ratio is None else f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"
