"""Cases of the step suite: scenes, states in which all lanes differ, lengths of steps, and the quality of runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from sysconfig import get_path
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
EULER = 1 / 500  # [s] steps of first order: MuJoCo's default

Numbers = np.ndarray


@dataclass(frozen=True)
class StepCase:
    """A case of the step suite.

    scene: name in the library, a file of gymnasium or example-robot-data, or a function that builds one.
    duration: simulated time [s].
    parameters: parameters of the scene.  changes: parameters of the model.
    vary: (rng, lanes, q, v) -> q (lanes, nq), v (lanes, nv), another state in each lane.
    steps: steps of the peers [s].  integrator: MuJoCo's.  window: Carom's [s].
    frame: time between recorded frames [s].  driven: whether motors have new random torques in every frame.
    posture: stiffness and damping of motors that hold a robot in its pose [N m/rad, N m s/rad].
    quality: names of the QUALITIES that apply.  worst: largest value of the first of them, for Carom's f32 and f64.
    middle: a time in the middle of the run, for the profile [s].
    """

    scene: str | Callable[[], Any]
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
    window: float | None = None
    frame: float = FRAME
    driven: bool = False
    posture: tuple[float, float] | None = None

    def model_and_state(self, dtype: Any) -> tuple[Model, State]:
        model, state = carom.compile_scene(self._scene(), dtype=dtype)
        if self.posture:
            hinges = np.arange(model.topology.nv) >= 6  # after the free root
            kp, kd = (jnp.asarray(np.where(hinges, x, 0), dtype) for x in self.posture)
            wanted = jnp.zeros_like(kp).at[6:].set(state.q[7:])
            model = model.replace(motor_kp=kp, motor_kd=kd, motor_gain=kp, motor_target=wanted)
        return model.replace(**{k: jnp.full_like(getattr(model, k), x) for k, x in self.changes.items()}), state

    def _scene(self) -> Any:
        if callable(self.scene):
            return self.scene()
        if self.scene.endswith(".urdf"):
            return carom.import_urdf(_robots() / self.scene, floating=True, ground=True).scene
        if self.file:
            return carom.import_mjcf(str(self.file)).scene
        return library_entry(self.scene).build(**self.parameters)

    @property
    def file(self) -> Path | None:
        """The file of gymnasium's installation, which MuJoCo reads too."""
        if callable(self.scene) or not self.scene.endswith(".xml"):
            return None
        found = find_spec("gymnasium")
        if found is None or found.origin is None:
            raise ModuleNotFoundError(f"{self.scene} comes with gymnasium: pip install gymnasium", name="gymnasium")
        return Path(found.origin).parent / "envs" / "mujoco" / "assets" / self.scene

    @property
    def keywords(self) -> dict[str, Any]:
        """Keywords of `carom.rollout`: the scene's usual ones, except frames; there is no log, as with the peers."""
        known = not callable(self.scene) and Path(self.scene).suffix == ""
        usual = library_entry(str(self.scene)).play.keywords if known else {}
        more: dict[str, Any] = {"time_control": self.time_control} if self.time_control else {}
        if self.driven:
            more["control"] = jnp.asarray(self.torques())
        if self.window:
            more["window"] = self.window
        return {**usual, **more, "duration": self.duration, "frame_dt": self.frame, "max_dt": self.max_dt,
                "scheme": self.scheme, "max_events": 0}  # fmt: skip

    def torques(self) -> Numbers:
        """Draw torques (frames - 1, nv) of the file's motors within their limits [N m, N]."""
        effort = np.asarray(self.model_and_state(jnp.zeros(()).dtype)[0].motor_effort, np.float64)
        draws = np.random.default_rng(7).uniform(-1, 1, (round(self.duration / self.frame), len(effort)))
        return draws * np.where(np.isfinite(effort), effort, 0)

    def states(self, state: State, lanes: int, seed: int = 0) -> State:
        """Return a state for each lane. The first is the same for any number of lanes."""
        q, v = (np.asarray(x, np.float64) for x in (state.q, state.v))
        q, v = self.vary(np.random.default_rng(seed), lanes, q, v)
        assert q.shape == (lanes, *state.q.shape), q.shape
        assert v.shape == (lanes, *state.v.shape), v.shape
        assert len(np.unique(np.concatenate([q, v], 1), axis=0)) == lanes, "states must differ from lane to lane"
        dtype = state.q.dtype
        return replace(carom.tile(state, lanes), q=jnp.asarray(q, dtype), v=jnp.asarray(v, dtype))


# -- lanes that differ -----------------------------------------------------------------------------------------------


def _spun(rng: Any, lanes: int, q: Numbers, v: Numbers) -> tuple[Numbers, Numbers]:
    """Give every degree of freedom a random speed, 1 rad/s or m/s."""
    return np.tile(q, (lanes, 1)), v + rng.normal(size=(lanes, len(v)))


def _nudge(rng: Any, lanes: int, q: Numbers, v: Numbers) -> tuple[Numbers, Numbers]:
    """Give every degree of freedom a small random speed, 0.1 rad/s or m/s."""
    return np.tile(q, (lanes, 1)), v + 0.1 * rng.normal(size=(lanes, len(v)))


def _shift_boxes(rng: Any, lanes: int, q: Numbers, v: Numbers) -> tuple[Numbers, Numbers]:
    """Displace every box a little from the middle."""
    q = np.tile(q, (lanes, 1)).reshape(lanes, -1, 7)
    q[..., :2] += rng.uniform(-SIDEWAYS, SIDEWAYS, (*q.shape[:2], 2))
    return q.reshape(lanes, -1), np.tile(v, (lanes, 1))


def _off(rng: Any, lanes: int, q: Numbers, v: Numbers) -> tuple[Numbers, Numbers]:
    """Displace every box a fifth as far as `_shift_boxes`: at most a fifth of the joints of a wall."""
    shifted, _ = _shift_boxes(rng, lanes, q, v)
    return q + (shifted - q) / 5, np.tile(v, (lanes, 1))


SPEED, ANGLE = (6.0, 10.0), 0.05  # [m/s]; largest angle from the table's axis [rad]: the rack is hit


def _struck(rng: Any, lanes: int, q: Numbers, v: Numbers) -> tuple[Numbers, Numbers]:
    """Give the cue ball, the scene's first body, a random speed in a random direction."""
    draws = rng.uniform(size=(lanes, 2))
    speed, angle = SPEED[0] + (SPEED[1] - SPEED[0]) * draws[:, 0], ANGLE * (2 * draws[:, 1] - 1)
    v = np.tile(v, (lanes, 1))
    v[:, 3], v[:, 4] = speed * np.cos(angle), speed * np.sin(angle)
    return np.tile(q, (lanes, 1)), v


# the arm alone: nothing can touch, and nothing takes energy
_ALONE = {"lower": -np.inf, "upper": np.inf, "damping": 0.0, "loss": 0.0}


def _figure(file: str, step: float, driven: int = 0) -> StepCase:
    """Return a figure that falls down with its motors off, or is driven: new torques every `driven` steps, as in
    gymnasium.  step: step of the file [s]; MuJoCo uses the file's settings."""
    frame = driven * step or FRAME
    return StepCase(
        file, frame * max(1, round(1 / frame)), _nudge, ("overlap", "left"), {"f32": 0.02, "f64": 0.02}, max_dt=step,
        steps={"MuJoCo": step}, scheme="semi_implicit", time_control="likely", integrator="the file's own", frame=frame,
        driven=driven > 0,
    )  # fmt: skip


def _robot(file: str, posture: tuple[float, float] | None = None) -> StepCase:
    """Return a robot of example-robot-data with hulls instead of its meshes; it stands, held by its motors, or falls
    with these off."""
    return StepCase(file, 1.0, _nudge, ("overlap",), {"f32": 0.02, "f64": 0.02}, steps={}, posture=posture)


def _robots() -> Path:
    """Return the folder of the robots of example-robot-data, which comes with Pinocchio."""
    folder = Path(get_path("purelib")) / "cmeel.prefix" / "share" / "example-robot-data" / "robots"
    if not folder.is_dir():
        raise ModuleNotFoundError(f"{folder} is not there: pip install pin", name="pin")
    return folder


def _boxes(positions: Iterable[Any], half: Sequence[float]) -> Any:
    b = carom.SceneBuilder()
    b.add_plane(friction=0.6)
    for k, position in enumerate(positions):
        b.add_body(f"box{k}", [carom.Box(tuple(half))], mass=1.0, position=tuple(position), friction=0.6)
    return b.build()


def _wall() -> Any:
    """Return five rows of five bricks, each row displaced by a third of a brick, a centimetre from each other."""
    return _boxes(
        ((0.51 * k + 0.17 * (row % 2), 0.0, 0.1 + 0.2 * row) for row in range(5) for k in range(5)), (0.25, 0.15, 0.1)
    )


def _pile() -> Any:
    """Return 200 boxes, dropped in layers above the ground, each a little displaced from the one below."""
    rng = np.random.default_rng(3)
    grid = ((k % 5, k // 5 % 5, k // 25) for k in range(200))
    return _boxes(
        ((0.3 * x, 0.3 * y, 0.2 + 0.3 * z) + rng.uniform(-0.04, 0.04, 3) * (1, 1, 0) for x, y, z in grid), (0.1,) * 3
    )


CASES: dict[str, StepCase] = {
    "arm7, Euler": StepCase(
        "arm7", 1.0, _spun, ("drift",), {"f32": 1.0, "f64": 1.0}, max_dt=EULER, scheme="semi_implicit",
        steps={"MuJoCo": EULER, "rapier3d": EULER}, changes=_ALONE,
    ),
    "arm7, RK4": StepCase(
        "arm7", 1.0, _spun, ("drift",), {"f32": 0.01, "f64": 0.01}, integrator="RK4", steps={"MuJoCo": STEP},
        changes=_ALONE,
    ),
    "stack": StepCase(
        "stack", 1.0, _shift_boxes, ("moved", "overlap"), {"f32": 1e-3, "f64": 1e-3}, parameters={"n": BOXES},
        middle=0.05,
    ),
    "pool_break": StepCase(
        "pool_break", 3.0, _struck, ("gain", "left", "overlap"), {"f32": 1e-3, "f64": 1e-8}, middle=0.4,
        steps={"MuJoCo": 1e-3, "rapier3d": STEP},
    ),
    "pool_break, long steps": StepCase(  # rolling and sliding on a plane need no short steps
        "pool_break", 3.0, _struck, ("gain", "left", "overlap"), {"f32": 1e-3, "f64": 1e-8}, middle=0.4,
        steps={"MuJoCo": 1e-3, "rapier3d": STEP}, max_dt=1 / 60,
    ),
    "ragdoll": StepCase(
        "ragdoll", 2.0, _spun, ("gain", "left", "overlap"), {"f32": 1e-3, "f64": 1e-6}, middle=0.8,
        steps={"MuJoCo": 2e-3, "rapier3d": STEP},
    ),
    "wall": StepCase(_wall, 1.0, _off, ("moved", "overlap"), {"f32": 1e-3, "f64": 1e-3}, steps={"MuJoCo": STEP}),
    "wall, shaken": StepCase(
        _wall, 1.0, _nudge, ("overlap", "left"), {"f32": 1e-3, "f64": 1e-3}, steps={"MuJoCo": STEP}, window=STEP
    ),
    "pile": StepCase(
        _pile, 12.0, _nudge, ("overlap", "left"), {"f32": 1e-2, "f64": 1e-2}, steps={"MuJoCo": STEP}, window=STEP
    ),
    "half_cheetah": _figure("half_cheetah.xml", 0.01),
    "ant": _figure("ant.xml", 0.01),
    "humanoid": _figure("humanoid.xml", 0.003),
    "half_cheetah, driven": _figure("half_cheetah.xml", 0.01, driven=5),
    "ant, driven": _figure("ant.xml", 0.01, driven=5),
    "humanoid, driven": _figure("humanoid.xml", 0.003, driven=5),
    "walker2d, driven": _figure("walker2d_v5.xml", 0.002, driven=4),
    "hopper, driven": _figure("hopper.xml", 0.002, driven=4),
    "solo12": _robot("solo_description/robots/solo12.urdf"),
    "solo12, standing": _robot("solo_description/robots/solo12.urdf", (5.0, 0.1)),
    "anymal": _robot("anymal_b_simple_description/robots/anymal.urdf"),
    "anymal, standing": _robot("anymal_b_simple_description/robots/anymal.urdf", (300.0, 8.0)),
    "a1": _robot("a1_description/urdf/a1.urdf"),
    "a1, standing": _robot("a1_description/urdf/a1.urdf", (80.0, 2.0)),
}  # fmt: skip


# -- quality of a run ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """Runs of some lanes, frame by frame.

    kinetic, potential: (lanes, frames) energy [J].
    overlap: (lanes, frames) the deepest overlap [m].
    q: (lanes, frames, nq) coordinates.
    """

    kinetic: Numbers
    potential: Numbers
    overlap: Numbers
    q: Numbers

    @property
    def energy(self) -> Numbers:
        return self.kinetic + self.potential


def _of_kinetic(run: Run, x: Numbers) -> float:
    return float((x.max(1) / run.kinetic.max(1)).max())


# measures of quality, by the worst of all lanes (left: their mean)
QUALITIES: dict[str, tuple[str, Callable[[Run], float]]] = {
    "drift": ("energy drift", lambda run: _of_kinetic(run, np.abs(run.energy - run.energy[:, :1]))),
    "gain": ("energy gain", lambda run: _of_kinetic(run, run.energy - np.minimum.accumulate(run.energy, 1))),
    "left": ("kinetic left", lambda run: float((run.kinetic[:, -1] / run.kinetic.max(1)).mean())),
    "overlap": ("overlap m", lambda run: float(run.overlap.max())),
    "moved": ("moved m", lambda run: float(np.abs(run.q - run.q[:, :1]).max())),
}


class Measured:
    """Measures states of a case by any engine, in f64."""

    def __init__(self, case: StepCase) -> None:
        self.model, state = case.model_and_state(jnp.float64)
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
        """Measure lanes, by q (lanes, frames, nq) and v (lanes, frames, nv)."""
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
