"""A learner in plain JAX: the cross-entropy method, every episode of a generation a lane of one jitted scan.

Policies are small networks, drawn from a normal distribution of their weights. All play the same episodes, and the best
eighth of them says what the next ones are drawn from: its mean, and its variance plus a noise that ebbs (Szita and
Lorincz 2006). Nothing is told of the task but its rewards. It is solved when the policy in the middle of the
distribution reaches the goal in a thousand fresh episodes, in every one. Run: python docs/examples/learn.py cart_pole
"""

import argparse
import itertools
import time
from typing import NamedTuple

import jax
import jax.numpy as jnp

import carom

HIDDEN, EPISODES, ELITE = 8, 16, 8  # units; episodes of each policy in a generation; one policy in so many is good
FRESH = 1000  # episodes on trial
TASKS = ("cart_pole", "pendulum", "cart_pole_swing_up", "cart_double_pendulum")
UPRIGHT = {"pendulum": 0, "cart_pole_swing_up": 2}  # which number observed is the cosine of the angle from the top
HELD = 50  # steps at the end that it must be within 0.3 rad, there; elsewhere the goal is that no episode ends early


class Learner(NamedTuple):
    """mean, std: of the weights.  generation: how many there were.  key: of the random numbers."""

    mean: jax.Array
    std: jax.Array
    generation: jax.Array
    key: jax.Array


class School:
    def __init__(self, name: str, lanes: int) -> None:
        self.env, self.policies = carom.make_env(name), max(2, lanes // EPISODES // ELITE) * ELITE
        self.cosine = UPRIGHT.get(name)
        self.learn, self.test = jax.jit(self._learn), jax.jit(self._test)

    def begin(self, seed: int) -> Learner:
        shape = (self.env.task.observations.shape[0] + 2, HIDDEN)
        return Learner(jnp.zeros(shape), jnp.ones(shape), jnp.array(0), jax.random.key(seed))

    def act(self, weights: jax.Array, observation: jax.Array) -> jax.Array:
        """weights (k + 2, HIDDEN), observation (..., k) -> one action (...)."""
        hidden = (observation[..., None] * weights[:-2]).sum(-2) + weights[-2]
        answer = (jnp.tanh(hidden) * weights[-1]).sum(-1)
        most = getattr(self.env.task.actions, "high", None)  # none: of two choices
        return (answer > 0).astype(int) if most is None else most[0] * jnp.tanh(answer)[..., None]

    def play(self, weights: jax.Array, keys: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return and whether the goal was reached, of one episode a key."""

        def step(now: tuple, _: None) -> tuple[tuple, None]:
            state, observation, going, total, held = now
            after = self.env.step(state, self.act(weights, observation))
            total = total + going * after.reward
            going = going & ~after.terminated
            good = going if self.cosine is None else going & (after.observation[..., self.cosine] > jnp.cos(0.3))
            return (after.state, after.observation, going, total, (held + 1) * good), None

        nothing, steps = jnp.zeros(keys.shape), self.env.task.max_steps
        now = (*self.env.reset(keys), nothing == 0, nothing, nothing)
        *_, total, held = jax.lax.scan(step, now, length=steps)[0]
        return total, held >= (steps if self.cosine is None else HELD)

    def _learn(self, learner: Learner) -> Learner:
        mean, std, generation, key = learner
        key, *keys = jax.random.split(key, 3)
        weights = mean + std * jax.random.normal(keys[0], (self.policies, *mean.shape))
        total, _ = jax.vmap(self.play, (0, None))(weights, jax.random.split(keys[1], EPISODES))
        best = weights[jnp.argsort(-total.mean(1))[: self.policies // ELITE]]
        noise = jnp.maximum(0.97**generation, 0.1)
        return Learner(best.mean(0), jnp.sqrt(best.var(0) + noise**2), generation + 1, key)

    def _test(self, learner: Learner) -> tuple[jax.Array, jax.Array]:
        """Mean return of the policy in the middle, and the part of fresh episodes in which it reached the goal."""
        keys = jax.random.split(jax.random.fold_in(learner.key, 1), FRESH)
        total, reached = self.play(learner.mean, keys)
        return total.mean(), reached.mean()


def learn(name: str, seconds: float, lanes: int = 1024, seed: int = 0) -> tuple[School, Learner, bool]:
    """Whether the task was solved, in about so many seconds, and by what."""
    begin = said = time.perf_counter()
    school = School(name, lanes)
    learner = school.begin(seed)
    for generation in itertools.count(4, 4):
        for _ in range(4):
            learner = school.learn(learner)
        total, reached = (float(x) for x in school.test(learner))
        now, solved = time.perf_counter(), reached == 1
        over = solved or now - begin > seconds
        if over or now - said > 1:
            said = now
            print(f"generation {generation}, {now - begin:.1f} s: mean return {total:.1f}, goal in {reached:.1%}")
        if over:
            print(f"{name}: {'solved' if solved else 'not solved'}")
            return school, learner, solved
    raise AssertionError  # never: the count does not end


def film(school: School, learner: Learner, path: str) -> None:
    """One episode, as a GIF (pip install pillow)."""
    from PIL import Image

    from carom.scenes.envs.render import picture

    task = school.env.task
    state, observation = school.env.reset(jax.random.key(0))
    frames = []
    for _ in range(task.max_steps):
        frames.append(Image.fromarray(picture(task.sketch(jax.device_get(state.q)), task.window)))
        state, observation, *_ = school.env.step(state, school.act(learner.mean, observation))
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=1000 * task.dt)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--lanes", type=int, default=1024)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--film", metavar="PATH", help="an episode of what it has learnt, .gif")
    options = parser.parse_args()
    school, learner, solved = learn(options.task, options.seconds, options.lanes, options.seed)
    if options.film:
        film(school, learner, options.film)
    raise SystemExit(not solved)
