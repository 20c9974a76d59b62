"""Planar chains to test with: random ones with joints of every kind, and what the dense oracle says of them, in NumPy
float64; plain ones; and NaN wherever nothing is."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from carom.engine.planar.model import Chain, ChainDrive, ChainState
from carom.tests.oracles.chain_kkt import accelerations, left

LARGEST = 1e3  # of accelerations [m/s^2] and multipliers: draws whose demands nearly contradict each other are none


class Drawn(NamedTuple):
    """Chains as a batch, all leaves (lanes, ...). a, force, torque: as `ChainMotion` has them; zero beyond `joints`."""

    model: Chain
    state: ChainState
    drive: ChainDrive
    a: np.ndarray
    force: np.ndarray
    torque: np.ndarray


def random_chains(rng: np.random.Generator, n: int, lanes: int) -> Drawn:
    """Chains of 2 to n joints, the first of n: torques, forces, friction and drag at all joints; some joints guided,
    stuck, on lines or active, as many as there is freedom for."""
    chains: list[list[dict[str, Any]]] = []
    while len(chains) < lanes:
        model, state, drive = draw(rng, n, int(rng.integers(2, n + 1)) if chains else n)
        answer = solved(model, state, drive)
        if answer is not None:
            chains.append([model, state, drive, answer])
    parts: list[Any] = [{name: np.stack([c[k][name] for c in chains]) for name in chains[0][k]} for k in range(4)]
    model, state, drive, answer = parts
    return Drawn(Chain(**model), ChainState(**state), ChainDrive(**drive), **answer)


def draw(rng: np.random.Generator, n: int, joints: int) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    order = rng.permutation(joints)
    held = order[: rng.integers(0, 2 if joints < 4 else 3)]
    line = order[len(held) : len(held) + rng.integers(0, 3)]
    spare = joints + 1 - 2 * len(held) - len(line)
    active = rng.permutation(joints - 1)[: rng.integers(0, max(0, min(spare, joints - 1)) + 1)]
    held, line, active = (np.isin(np.arange(n), who) for who in (held, line, active))
    stuck = held & (rng.random() < 0.5)
    length = rng.uniform(0.3, 1, n - 1)
    x, v = placed(length, rng.uniform(-np.pi, np.pi, n - 1), rng.normal(size=n - 1), *rng.normal(size=(2, 2)))
    model = {
        "mass": rng.uniform(0.3, 3, n),
        "length": length,
        "gravity": rng.normal(size=2) * 5,
        "joints": np.array(joints),
        "guided": held & ~stuck,
        "line": line[:, None] * unit(rng.normal(size=(n, 2))),
        "active": active,
        "lower": np.full(n, -np.inf),
        "upper": np.full(n, np.inf),
        "roll": rng.uniform(0, 0.5, n),
        "drag": rng.uniform(0, 0.5, n),
        "ground": np.zeros((1, 2)),
        "normal": np.array([[0.0, 1.0]]),
    }
    state = {"x": x, "v": v, "t": np.zeros(()), "stuck": np.where(stuck, 0, -1), "shut": np.zeros(n, int)}
    drive = {
        "torque": rng.normal(size=n),
        "force": rng.normal(size=(n, 2)),
        "acceleration": rng.normal(size=(n, 2)),
        "angular": rng.normal(size=n),
    }
    return model, state, drive


def placed(length, angle, rate, base, base_rate) -> tuple[np.ndarray, np.ndarray]:
    """x, v (..., n, 2) at angles and rates (..., n - 1) of the joints."""
    phi, omega = np.cumsum(angle, -1), np.cumsum(rate, -1)
    d = length[..., None] * np.stack([np.cos(phi), np.sin(phi)], -1)
    pairs = ((base, d), (base_rate, omega[..., None] * left(d)))
    x, v = (np.cumsum(np.concatenate([first[..., None, :], rest], -2), -2) for first, rest in pairs)
    return x, v


def unit(a: np.ndarray) -> np.ndarray:
    return a / np.linalg.norm(a, axis=-1, keepdims=True)


def solved(model, state, drive) -> dict[str, np.ndarray] | None:
    """a, force and torque of one chain; None where its demands are nearly too many."""
    k = int(model["joints"])
    x, v = state["x"][:k], state["v"][:k]
    held = np.flatnonzero((model["guided"] | (state["stuck"] >= 0))[:k])
    line, active = np.flatnonzero(model["line"][:k].any(-1)), np.flatnonzero(model["active"][:k])
    goal = np.where(model["guided"][:, None], drive["acceleration"], 0)
    try:
        a, multipliers = accelerations(
            model["mass"][:k],
            x,
            v,
            outside(model, drive, x, v),
            guided=[(i, goal[i]) for i in held],
            lines=[(i, model["line"][i]) for i in line],
            angles=[(i, drive["angular"][i]) for i in active],
        )
    except np.linalg.LinAlgError:
        return None
    if not max(np.abs(a).max(), np.abs(multipliers).max()) < LARGEST:
        return None
    d = x[1:] - x[:-1]
    room = len(model["mass"])
    answer = {"a": np.zeros((room, 2)), "force": np.zeros((room, 2)), "torque": np.zeros(room)}
    answer["a"][:k] = a
    answer["torque"][active] = multipliers[len(multipliers) - len(active) :]
    across = left(d) / (d * d).sum(-1, keepdims=True) * -np.diff(answer["torque"])[: k - 1, None]
    answer["force"][1:k] = across - d * multipliers[: k - 1, None]
    return answer


def outside(model, drive, x, v) -> np.ndarray:
    """F^e (k, 2) of sections 4.1 to 4.3, joint by joint as they are printed."""
    k = len(x)
    d, w = x[1:] - x[:-1], v[1:] - v[:-1]
    L = left(d) / (d * d).sum(-1, keepdims=True)
    omega = (L * w).sum(-1)
    F = model["mass"][:k, None] * model["gravity"] + drive["force"][:k]
    F = F - model["drag"][:k, None] * v * np.linalg.norm(v, axis=-1, keepdims=True)
    for i in range(k - 1):
        tau = drive["torque"][i] - model["roll"][i] * (omega[i] - (omega[i - 1] if i else 0))
        F[i] -= L[i] * tau
        F[i + 1] += L[i] * tau
        if i:
            F[i - 1] += L[i - 1] * tau
            F[i] -= L[i - 1] * tau
    return F


def plain_chain(n: int, *, length=None, mass=None, roll=None, drag=None) -> Chain:
    """A free chain of n equal masses and links without weight."""
    nothing, never = jnp.zeros(n), jnp.zeros(n, bool)
    given = {"length": length, "mass": mass, "roll": roll, "drag": drag}
    given = {name: jnp.asarray(x) for name, x in given.items() if x is not None}
    one = Chain(
        jnp.ones(n), jnp.ones(n - 1), jnp.zeros(2), jnp.array(n), never, jnp.zeros((n, 2)), never,
        jnp.full(n, -jnp.inf), jnp.full(n, jnp.inf), nothing, nothing, jnp.zeros((0, 2)), jnp.zeros((0, 2)),
    )  # fmt: skip
    return one.replace(**given)


def with_nan(model: Chain, state: ChainState, drive: ChainDrive) -> list:
    """NaN in all numbers of joints and links that are not there."""
    n, joints = model.n, np.asarray(model.joints)

    def spoil(a):
        a = np.asarray(a)
        if a.dtype.kind != "f" or a.ndim < 2 or a.shape[1] not in (n, n - 1):
            return a
        beyond = np.arange(a.shape[1]) >= joints[:, None] - (n - a.shape[1])
        return np.where(beyond.reshape(*beyond.shape, *(1,) * (a.ndim - 2)), np.nan, a)

    return [jax.tree.map(spoil, part) for part in (model, state, drive)]
