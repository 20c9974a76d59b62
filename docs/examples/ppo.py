"""Proximal policy optimisation in plain JAX: lanes play, and one jitted program plays and learns.

After Schulman and others (2017), with what CleanRL found to matter (Huang and others 2022): observations and rewards
scaled by what was seen of them, generalised advantages, orthogonal weights. Episodes that are cut off by their length
are worth what the critic says of their last state. What was learned is kept in a checkpoint, from which the same
command goes on. Run: python docs/examples/ppo.py carom/Ant-v5 --minutes 20
"""

import argparse
import csv
import time
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

import carom

LANES, PERIODS = 64, 64  # played between two lessons
EPOCHS, PARTS = 6, 8  # times that what was played is gone through, each time in so many parts
DISCOUNT, DECAY = 0.99, 0.95  # of rewards, of advantages
CLIP, RATE, MOST = 0.2, 3e-4, 0.5  # of the ratio of probabilities; of learning; of a gradient's length
HIDDEN = 64
OPTIONS = {  # observed without contact forces, as Ant-v4 is
    "carom/Ant-v5": {"include_cfrc_ext_in_observation": False, "contact_cost_weight": 0.0},
}


class Scale(NamedTuple):
    """Of what was seen so far: how much, its mean, and its variance."""

    count: Any
    mean: Any
    var: Any

    def after(self, x: jax.Array) -> "Scale":
        """With x (n, ...) too."""
        n, mean, var = len(x), x.mean(0), x.var(0)
        total, off = self.count + n, mean - self.mean
        spread = self.var * self.count + var * n + off**2 * self.count * n / total
        return Scale(total, self.mean + off * n / total, spread / total)

    def of(self, x: jax.Array) -> jax.Array:
        return jnp.clip((x - self.mean) / jnp.sqrt(self.var + 1e-8), -10, 10)


class Learner(NamedTuple):
    """weights: of both networks, and the log of the policy's spread.  first, second: moments of their gradients.
    lessons: steps of the optimiser.  seen: observations.  gains: discounted returns.
    state, observation: of all lanes.  gained: (lanes,) their discounted returns so far.  paid: their rewards so far."""

    weights: Any
    first: Any
    second: Any
    lessons: jax.Array
    seen: Scale
    gains: Scale
    state: Any
    observation: jax.Array
    gained: jax.Array
    paid: jax.Array
    key: jax.Array


class Round(NamedTuple):
    """What a round showed: mean return of the episodes that ended, how many, and the mean reward of a period."""

    episode: jax.Array
    ended: jax.Array
    reward: jax.Array


class School:
    def __init__(self, name: str, lanes: int = LANES) -> None:
        self.env, self.lanes = carom.make_env(name, **OPTIONS.get(name, {})), lanes
        self.size, self.actions = self.env.observations.shape[0], self.env.actions.shape[0]
        low, high = (jnp.array(x) for x in (self.env.actions.low, self.env.actions.high))
        self.middle, self.half = (high + low) / 2, (high - low) / 2
        self.learn = jax.jit(self._learn)

    def begin(self, seed: int) -> Learner:
        key, *keys = jax.random.split(jax.random.key(seed), 9)
        layer = lambda key, n, m, gain: {  # noqa: E731
            "W": jax.nn.initializers.orthogonal(gain)(key, (n, m)), "b": jnp.zeros(m)
        }  # fmt: skip
        sizes = (self.size, HIDDEN, HIDDEN)
        hidden = lambda keys: [layer(k, n, HIDDEN, 2**0.5) for k, n in zip(keys, sizes[:2], strict=True)]  # noqa: E731
        weights = {
            "policy": [*hidden(keys[:2]), layer(keys[2], HIDDEN, self.actions, 0.01)],
            "value": [*hidden(keys[3:5]), layer(keys[5], HIDDEN, 1, 1.0)],
            "spread": jnp.full(self.actions, -0.5),
        }
        state, observation = self.env.reset(jax.random.split(keys[6], self.lanes))
        nothing, zero = jax.tree.map(jnp.zeros_like, weights), jnp.zeros(self.lanes)
        new = Scale(jnp.array(1e-4), jnp.zeros(self.size), jnp.ones(self.size))
        return Learner(
            weights, nothing, nothing, jnp.int32(0), new, Scale(jnp.array(1e-4), jnp.array(0.0), jnp.array(1.0)),
            state, observation, zero, zero, key,
        )  # fmt: skip

    def drive(self, actions: jax.Array) -> jax.Array:
        """The environment's actions, of those of the policy: -1 and 1 are its bounds."""
        return self.middle + self.half * jnp.clip(actions, -1, 1)

    def _play(self, learner: Learner) -> tuple[Learner, Any, Round]:
        """PERIODS of all lanes, and what is to be learned from them."""

        def period(now: Any, key: jax.Array) -> tuple[Any, Any]:
            state, observation, gained, paid = now
            x = learner.seen.of(observation)
            mean, spread = network(learner.weights["policy"], x), jnp.exp(learner.weights["spread"])
            action = mean + spread * jax.random.normal(key, mean.shape, mean.dtype)
            after = self.env.step(state, self.drive(action))
            over = after.terminated | after.truncated
            gained, paid = gained * DISCOUNT + after.reward, paid + after.reward
            value, next_value = (self.worth(learner, y) for y in (observation, after.observation))
            state, observation = self.env.restarted(after.state, after.observation, over)
            chance = log_chance(learner.weights, mean, action)
            row = now[1], x, action, chance, value, next_value, after.reward, after.terminated, over, gained, paid
            return (state, observation, jnp.where(over, 0, gained), jnp.where(over, 0, paid)), row

        key, own = jax.random.split(learner.key)
        now = learner.state, learner.observation, learner.gained, learner.paid
        now, rows = jax.lax.scan(period, now, jax.random.split(own, PERIODS))
        seen, x, action, chance, value, next_value, reward, ended, over, gained, paid = rows
        gains = learner.gains.after(gained.reshape(-1))
        error = reward / jnp.sqrt(gains.var + 1e-8) + DISCOUNT * next_value * ~ended - value

        def back(later: jax.Array, row: Any) -> tuple[jax.Array, jax.Array]:
            error, over = row
            now = error + DISCOUNT * DECAY * later * ~over
            return now, now

        advantage = jax.lax.scan(back, jnp.zeros(self.lanes), (error, over), reverse=True)[1]
        batch = jax.tree.map(
            lambda y: y.reshape(-1, *y.shape[2:]), (x, action, chance, advantage, advantage + value, value)
        )
        shown = Round((paid * over).sum() / jnp.maximum(over.sum(), 1), over.sum(), reward.mean())
        scales = {"seen": learner.seen.after(seen.reshape(-1, self.size)), "gains": gains}
        state, observation, gained, paid = now
        moved = {"state": state, "observation": observation, "gained": gained, "paid": paid, "key": key}
        return learner._replace(**scales, **moved), batch, shown

    def worth(self, learner: Learner, observation: jax.Array) -> jax.Array:
        """What the critic says of it."""
        return network(learner.weights["value"], learner.seen.of(observation))[..., 0]

    def _learn(self, learner: Learner) -> tuple[Learner, Round]:
        learner, batch, shown = self._play(learner)
        n = len(batch[0]) // PARTS

        def lesson(learner: Learner, which: jax.Array) -> tuple[Learner, None]:
            gradient = jax.grad(loss)(learner.weights, jax.tree.map(lambda x: x[which], batch))
            return adam(learner, gradient), None

        key, own = jax.random.split(learner.key)
        orders = jax.vmap(lambda key: jax.random.permutation(key, n * PARTS))(jax.random.split(own, EPOCHS))
        learner, _ = jax.lax.scan(lesson, learner._replace(key=key), orders.reshape(-1, n))
        return learner, shown


def network(layers: Any, x: jax.Array) -> jax.Array:
    for layer in layers[:-1]:
        x = jnp.tanh(x @ layer["W"] + layer["b"])
    return x @ layers[-1]["W"] + layers[-1]["b"]


def log_chance(weights: Any, mean: jax.Array, action: jax.Array) -> jax.Array:
    """Log of how likely the policy is to act so, up to a constant."""
    spread = weights["spread"]
    return -(((action - mean) * jnp.exp(-spread)) ** 2 / 2 + spread).sum(-1)


def loss(weights: Any, batch: Any) -> jax.Array:
    x, action, chance, advantage, gain, before = batch
    ratio = jnp.exp(log_chance(weights, network(weights["policy"], x), action) - chance)
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    policy = -jnp.minimum(ratio * advantage, jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * advantage).mean()
    value = network(weights["value"], x)[..., 0]
    near = before + jnp.clip(value - before, -CLIP, CLIP)
    return policy + 0.25 * jnp.maximum((value - gain) ** 2, (near - gain) ** 2).mean()


def adam(learner: Learner, gradient: Any) -> Learner:
    """Kingma and Ba (2015), of gradients no longer than MOST."""
    length = jnp.sqrt(sum(jnp.sum(g * g) for g in jax.tree.leaves(gradient)))
    gradient = jax.tree.map(lambda g: g * jnp.minimum(1, MOST / (length + 1e-8)), gradient)
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, learner.first, gradient)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, learner.second, gradient)
    n = learner.lessons + 1
    rate = RATE * jnp.sqrt(1 - 0.999**n) / (1 - 0.9**n)
    move = lambda w, m, v: w - rate * m / (jnp.sqrt(v) + 1e-8)  # noqa: E731
    return learner._replace(
        weights=jax.tree.map(move, learner.weights, first, second), first=first, second=second, lessons=n
    )


def train(name: str, minutes: float, lanes: int = LANES, seed: int = 0, out: Path | None = None) -> tuple[Any, list]:
    """The learner, and a row for each half minute: periods played, seconds, mean return, mean reward of a period.

    out: of a checkpoint; where there is one, the run goes on from it."""
    school = School(name, lanes)
    learner, rows = school.begin(seed), []
    if out is not None and out.exists():
        learner = carom.load_checkpoint(out, like=learner)
    began, reported, returns, ended = time.monotonic(), 0.0, 0.0, 0
    while (spent := time.monotonic() - began) < 60 * minutes:
        learner, shown = school.learn(learner)
        returns, ended = returns + float(shown.episode) * int(shown.ended), ended + int(shown.ended)
        if spent - reported >= min(30, 6 * minutes) or not rows:
            played = int(learner.lessons) // (EPOCHS * PARTS) * PERIODS * lanes
            rows.append((played, round(spent, 1), round(returns / max(ended, 1), 1), round(float(shown.reward), 3)))
            print("{:>10} periods {:>7} s   return {:>8}   reward of a period {:>7}".format(*rows[-1]), flush=True)
            reported, returns, ended = spent, 0.0, 0
            if out is not None:
                carom.save_checkpoint(out, learner)
    return learner, rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", nargs="?", default="carom/Ant-v5")
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--lanes", type=int, default=LANES)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="checkpoint to keep, and to go on from")
    parser.add_argument("--curve", type=Path, help="CSV file for what is printed")
    given = parser.parse_args()
    _, table = train(given.task, given.minutes, given.lanes, given.seed, given.out)
    if given.curve is not None:
        with given.curve.open("w", newline="") as file:
            csv.writer(file).writerows([("periods", "seconds", "return", "reward"), *table])
