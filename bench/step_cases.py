"""Cases of the step suite: scenes, states in which all lanes differ, lengths of steps, and how good a run was."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import carom
from carom.engine.model import Model
from carom.engine.state import State
from carom.scenes.library.registry import library_entry

from .contact_cases import BOXES, SIDEWAYS, STEP

FRAME = 1 / 20  # [s] from one recorded frame to the next
TOGETHER = 256  # states that are measured in one call
EULER = 1 / 500  # [s] steps of first order: MuJoCo's own

Numbers = np.ndarray


@dataclass(frozen=True)
class Case:
    """scene: of the library, or a file of gymnasium's.  duration [s].  keywords: of `carom.rollout`, beside those of
    the scene's usual play.

    parameters: of the scene.  changes: parameters of the model.  vary: (rng, lanes, q, v) -> q (lanes, nq), v
    (lanes, nv), another state in each lane.  steps: of the peers [s].  integrator: MuJoCo's.
    quality: names of QUALITIES that say something here.  worst: of Carom's f32 and f64, the first of them at most.
    middle: a time in the midst of it, for the profile [s].
    """

    scene: str
    duration: float
    vary: Callable[..., tuple[Numbers, Numbers]]
    quality: tuple[str, ...]
    worst: Mapping[str, float]
    max_dt: float = STEP
    steps: Mapping[str, float] = field(default_factory=lambda: {"MuJoCo": STEP, "rapier3d": STEP})
    scheme: str = "exact"
    time_control: str | None = None
    integrator: str = "Euler"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    changes: Mapping[str, float] = field(default_factory=dict)
    middle: float = 0.0

    def compiled(self, dtype: Any) -> tuple[Model, State]:
        if self.file:
            scene = carom.import_mjcf(str(self.file)).scene
        else:
            scene = library_entry(self.scene).build(**self.parameters)
        model, state = carom.compile_scene(scene, dtype=dtype)
        return model.replace(**{k: jnp.full_like(getattr(model, k), x) for k, x in self.changes.items()}), state

    @property
    def file(self) -> Path | None:
        """gymnasium's, where it is installed; MuJoCo reads the same one."""
        if not self.scene.endswith(".xml"):
            return None
        found = find_spec("gymnasium")
        if found is None or found.origin is None:
            raise ModuleNotFoundError(f"{self.scene} comes with gymnasium: pip install gymnasium", name="gymnasium")
        return Path(found.origin).parent / "envs" / "mujoco" / "assets" / self.scene

    @property
    def keywords(self) -> dict[str, Any]:
        """Of `carom.rollout`: as the scene is usually played, frames apart; nothing is logged, as by the peers."""
        usual = {} if self.file else library_entry(self.scene).play.keywords
        told = {"time_control": self.time_control} if self.time_control else {}
        return {**usual, **told, "duration": self.duration, "frame_dt": FRAME, "max_dt": self.max_dt,
                "scheme": self.scheme, "max_events": 0}  # fmt: skip

    def states(self, state: State, lanes: int, seed: int = 0) -> State:
        """A state for each lane. The first is the same however many there are."""
        q, v = (np.asarray(x, np.float64) for x in (state.q, state.v))
        q, v = self.vary(np.random.default_rng(seed), lanes, q, v)
        assert q.shape == (lanes, *state.q.shape), q.shape
        assert v.shape == (lanes, *state.v.shape), v.shape
        assert len(np.unique(np.concatenate([q, v], 1), axis=0)) == lanes, "states must differ from lane to lane"
        dtype = state.q.dtype
        return replace(carom.tile(state, lanes), q=jnp.asarray(q, dtype), v=jnp.asarray(v, dtype))


# -- lanes that differ -----------------------------------------------------------------------------------------------


def _spun(rng: Any, lanes: int, q: Numbers, v: Numbers) -> tuple[Numbers, Numbers]:
    """Every degree of freedom at a random speed, 1 rad/s or m/s."""
    return np.tile(q, (lanes, 1)), v + rng.normal(size=(lanes, len(v)))


def _nudged(rng: Any, lanes: int, q: Numbers, v: Numbers) -> tuple[Numbers, Numbers]:
    """Every degree of freedom at a small random speed, 0.1 rad/s or m/s."""
    return np.tile(q, (lanes, 1)), v + 0.1 * rng.normal(size=(lanes, len(v)))


def _shifted(rng: Any, lanes: int, q: Numbers, v: Numbers) -> tuple[Numbers, Numbers]:
    """Every box a little off the middle."""
    q = np.tile(q, (lanes, 1)).reshape(lanes, -1, 7)
    q[..., :2] += rng.uniform(-SIDEWAYS, SIDEWAYS, (*q.shape[:2], 2))
    return q.reshape(lanes, -1), np.tile(v, (lanes, 1))


SPEED, ANGLE = (6.0, 10.0), 0.05  # [m/s], [rad] from the table's axis, at most: the rack is hit


def _struck(rng: Any, lanes: int, q: Numbers, v: Numbers) -> tuple[Numbers, Numbers]:
    """The cue ball, the scene's first body, at a random speed in a random direction."""
    draws = rng.uniform(size=(lanes, 2))
    speed, angle = SPEED[0] + (SPEED[1] - SPEED[0]) * draws[:, 0], ANGLE * (2 * draws[:, 1] - 1)
    v = np.tile(v, (lanes, 1))
    v[:, 3], v[:, 4] = speed * np.cos(angle), speed * np.sin(angle)
    return np.tile(q, (lanes, 1)), v


# the arm alone: nothing that could touch, and nothing that takes energy
_ALONE = {"lower": -np.inf, "upper": np.inf, "damping": 0.0, "loss": 0.0}


def _robot(file: str, step: float) -> Case:
    """Falls down with its motors off. step: of the file [s]; MuJoCo has the file's own settings."""
    return Case(
        file, 1.0, _nudged, ("overlap", "left"), {"f32": 0.02, "f64": 0.02}, max_dt=step, steps={"MuJoCo": step},
        scheme="semi_implicit", time_control="likely", integrator="the file's own",
    )  # fmt: skip


CASES: dict[str, Case] = {
    "arm7, Euler": Case(
        "arm7", 1.0, _spun, ("drift",), {"f32": 1.0, "f64": 1.0}, max_dt=EULER, scheme="semi_implicit",
        steps={"MuJoCo": EULER, "rapier3d": EULER}, changes=_ALONE,
    ),
    "arm7, RK4": Case(
        "arm7", 1.0, _spun, ("drift",), {"f32": 0.01, "f64": 0.01}, integrator="RK4", steps={"MuJoCo": STEP},
        changes=_ALONE,
    ),
    "stack": Case(
        "stack", 1.0, _shifted, ("moved", "overlap"), {"f32": 1e-3, "f64": 1e-3}, parameters={"n": BOXES}, middle=0.05
    ),
    "pool_break": Case(
        "pool_break", 3.0, _struck, ("gain", "left", "overlap"), {"f32": 1e-3, "f64": 1e-8}, middle=0.4,
        steps={"MuJoCo": 1e-3, "rapier3d": STEP},
    ),
    "pool_break, long steps": Case(  # what rolls and slides on the flat needs no short steps
        "pool_break", 3.0, _struck, ("gain", "left", "overlap"), {"f32": 1e-3, "f64": 1e-8}, middle=0.4,
        steps={"MuJoCo": 1e-3, "rapier3d": STEP}, max_dt=1 / 60,
    ),
    "ragdoll": Case(
        "ragdoll", 2.0, _spun, ("gain", "left", "overlap"), {"f32": 1e-3, "f64": 1e-6}, middle=0.8,
        steps={"MuJoCo": 2e-3, "rapier3d": STEP},
    ),
    "half_cheetah": _robot("half_cheetah.xml", 0.01),
    "ant": _robot("ant.xml", 0.01),
    "humanoid": _robot("humanoid.xml", 0.003),
}  # fmt: skip


# -- how good a run was ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """Of some lanes, frame by frame: kinetic and potential energy (lanes, frames) [J], the deepest overlap
    (lanes, frames) [m], q (lanes, frames, nq)."""

    kinetic: Numbers
    potential: Numbers
    overlap: Numbers
    q: Numbers

    @property
    def energy(self) -> Numbers:
        return self.kinetic + self.potential


def _of_kinetic(run: Run, x: Numbers) -> float:
    return float((x.max(1) / run.kinetic.max(1)).max())


# what is measured, by the worst of all lanes (left: their mean)
QUALITIES: dict[str, tuple[str, Callable[[Run], float]]] = {
    "drift": ("energy drift", lambda run: _of_kinetic(run, np.abs(run.energy - run.energy[:, :1]))),
    "gain": ("energy gain", lambda run: _of_kinetic(run, run.energy - np.minimum.accumulate(run.energy, 1))),
    "left": ("kinetic left", lambda run: float((run.kinetic[:, -1] / run.kinetic.max(1)).mean())),
    "overlap": ("overlap m", lambda run: float(run.overlap.max())),
    "moved": ("moved m", lambda run: float(np.abs(run.q - run.q[:, :1]).max())),
}


class Measured:
    """Measures states of a case, in f64, whoever made them."""

    def __init__(self, case: Case) -> None:
        self.model, state = case.compiled(jnp.float64)
        zeros = (jnp.zeros((TOGETHER, *x.shape)) for x in (state.q, state.v))
        self.call = jax.jit(self._measure).lower(self.model, *zeros).compile()

    @staticmethod
    def _measure(model: Model, q: Any, v: Any) -> tuple[Any, Any, Any]:
        energy = carom.energy(model, State(q, v, jnp.zeros(len(q))))
        overlap = jnp.zeros(len(q))
        if model.topology.pairs:
            near = carom.detect(model, q)
            overlap = jnp.where(near.active, -near.gap, 0).max(-1, initial=0)
        return energy.kinetic, energy.potential, overlap

    def __call__(self, q: Any, v: Any) -> Run:
        """Of lanes (lanes, frames, nq) and (lanes, frames, nv)."""
        q, v = (np.asarray(x, np.float64) for x in (q, v))
        lanes, frames = q.shape[:2]
        rows = [x.reshape(lanes * frames, -1) for x in (q, v)]
        rows = [np.pad(x, ((0, -len(x) % TOGETHER), (0, 0)), mode="edge") for x in rows]
        pieces = [
            self.call(self.model, *(jnp.asarray(x[k : k + TOGETHER]) for x in rows))
            for k in range(0, len(rows[0]), TOGETHER)
        ]
        columns = (np.concatenate([np.asarray(x) for x in column]) for column in zip(*pieces, strict=True))
        kinetic, potential, overlap = (x[: lanes * frames].reshape(lanes, frames) for x in columns)
        return Run(kinetic, potential, overlap, q)
