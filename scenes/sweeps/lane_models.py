"""Models and states of lanes of one scene with varied numbers, without compiling each.

Most paths set numbers of the model or of the state directly: a position, a velocity, a restitution, a damping. The
scene is compiled at a few values of the path to find these entries, and the results are compared, bit by bit, with
some lanes that are compiled. Other paths (a radius changes inertias and bands too) are compiled, once for each value.
Either way a lane is that of `compile_scene`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from ..compile import compile_scene, rest_speed
from ..formats.settings import apply_setting
from ..spec import SceneSpec
from ..wording import abridge

if TYPE_CHECKING:
    from ...engine.model import Model
    from ...engine.state import State

Arrays = dict[str, np.ndarray]
PROBES = 6  # lanes at which a path is examined, besides its least and greatest value; and lanes that are compared
KEPT = 1000  # compiled scenes
COUPLED = {"inertia", "lower", "upper"}  # entries that must fit each other, which only compiling checks


@dataclass(frozen=True)
class Scaled:
    """Inertias that scale with a given mass: entries `where` are inertia * (mass / own), those of the shapes."""

    where: np.ndarray
    inertia: np.ndarray
    own: np.ndarray

    def at(self, mass: np.ndarray) -> np.ndarray:
        return self.inertia * (mass / self.own)


@dataclass
class LaneModels:
    """Models of lanes.  scene: unchanged.  values: path -> one value per lane.  dtype: None: by jax's x64 mode."""

    scene: SceneSpec
    values: Mapping[str, Sequence[Any]]
    dtype: DTypeLike | None = None
    _kept: dict[str, tuple[Model, Arrays]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self.lanes = len(next(iter(self.values.values()))) if self.values else 1
        self._random = np.random.default_rng(0)
        self.model, self.state = self._truly(0)
        self._base = _arrays(self.model, self.state)
        self._fine = self._base if self._base["mass"].dtype == float else self._in_double({})
        self._direct: dict[str, dict[str, np.ndarray]] = {}  # path -> the entries of each array that are its value
        self._scaled: dict[str, Scaled] = {}
        self.varied: set[str] = set()
        self._unclear = False
        for path in self.values:
            self._look(path)
        if self._unclear or self.varied & {"lower", "upper"}:  # a start must lie within its own lane's limits
            self._direct = {path: own for path, own in self._direct.items() if "q" not in own}
        self._combine()
        if self._direct and not self._holds():
            self._direct, self._scaled, self._pairs, self._falls = {}, {}, {}, False

    @property
    def compiled(self) -> tuple[str, ...]:
        """Paths whose every value is compiled."""
        return tuple(path for path in self.values if path not in self._direct)

    def of(self, lanes: Sequence[int]) -> tuple[Model, State]:
        """Model and state of some lanes, by their indices; parameters that vary have an axis of lanes."""
        import jax.numpy as jnp

        from ...integrators.rollout import tile

        arrays = {name: jnp.asarray(x) for name, x in self._of(lanes).items()}
        started = {name: arrays.pop(name) for name in ("q", "v") if name in arrays}
        return replace(self.model, **arrays), replace(tile(self.state, len(lanes)), **started)

    def _of(self, lanes: Sequence[int]) -> Arrays:
        """Arrays that vary, lanes first."""
        bases = [self._compile_lane(lane) for lane in lanes] if self.compiled else [self._base] * len(lanes)
        for x in {id(x): x for x in bases}.values():  # entries that no probe found to vary may vary here
            if x is not self._base:
                self.varied |= {name for name in x if not _same(x[name], self._base[name])}
        arrays = {name: np.stack([x[name] for x in bases]) for name in sorted(self.varied)}
        exact = {name: arrays[name].astype(float) for name in self._pairs}  # numbers of shapes before rounding
        if not self.compiled:
            exact = {name: np.tile(self._fine[name], (len(lanes), 1)) for name in self._pairs}
        for path, entries in self._direct.items():
            given = np.array([self.values[path][lane] for lane in lanes], float)
            for name, where in entries.items():
                flat = arrays[name].reshape(len(lanes), -1)
                flat[:, where] = given[:, None]
                if name in exact:
                    exact[name][:, where] = given[:, None]
            if scaled := self._scaled.get(path):
                arrays["inertia"].reshape(len(lanes), -1)[:, scaled.where] = scaled.at(given[:, None])
        self._derive(arrays, exact)
        return arrays

    def _derive(self, arrays: Arrays, exact: Arrays) -> None:
        """Derive the entries that depend on others: numbers of pairs, and the speed below which contacts rest."""
        from ...engine.parameters import COMBINED

        for name, rows in self._pairs.items():
            i, j = np.array(self.model.topology.pairs, int)[rows].T
            arrays[f"pair_{name}"][:, rows] = COMBINED[name](np, exact[name][:, i], exact[name][:, j])
        if self._falls:
            kind = self._base["gravity"].dtype
            bands = arrays.get("gap_band", np.broadcast_to(self._base["gap_band"], len(arrays["gravity"])))
            if self.scene.gap_band is not None:  # else it is in the model's precision from the start
                bands = np.full(len(arrays["gravity"]), float(self.scene.gap_band))
            speeds = [rest_speed(g, band) for g, band in zip(arrays["gravity"], bands, strict=True)]
            arrays["rest_speed"] = np.array(speeds, kind)

    def _look(self, path: str) -> None:
        """Find the entries that the path sets directly, if it does."""
        from ...engine.parameters import COMBINED

        values = self.values[path]
        probes = {0, *self._random.integers(0, self.lanes, PROBES).tolist()}
        numbers = all(type(x) in (int, float) for x in values)
        if numbers:
            probes |= {int(np.argmin(values)), int(np.argmax(values))}
        at = {repr(values[lane]): lane for lane in sorted(probes)}
        seen = []
        for lane in at.values():
            try:
                model, state = self._compile_with(0, {path: values[lane]})
            except ValueError:
                self._truly(lane)  # raises, unless the value only does not fit lane 0's other values
                self._unclear = True
                return
            self._check(model, lane)
            seen.append((values[lane], _arrays(model, state)))
        first = seen[0][1]
        moved: Arrays = {}
        for name, x in first.items():
            differs = np.any([_bits(y[name]) != _bits(x) for _, y in seen[1:]], axis=0) if len(seen) > 1 else False
            if np.any(differs):
                moved[name] = np.flatnonzero(differs)
        self.varied |= moved.keys()
        if len(seen) > 1 and not moved:
            raise ValueError(f"{abridge(path)} changes nothing in this scene: what it sets is overridden, or not used")
        follows = {f"pair_{name}" for name in COMBINED if name in moved}
        follows |= {"rest_speed"} if "gravity" in moved and self.scene.rest_speed is None else set()
        if not numbers:
            return
        scaled = self._inertia_of(path, moved)
        if scaled is not None:
            follows |= {"inertia"}
        own = {name: where for name, where in moved.items() if name not in follows}
        as_given = all(
            _same(y[name].reshape(-1)[where], np.full(len(where), value, y[name].dtype))
            for value, y in seen
            for name, where in own.items()
        )
        if as_given and not COUPLED & own.keys():
            self._direct[path] = own
            self._scaled |= {path: scaled} if scaled is not None else {}

    def _inertia_of(self, path: str, moved: Arrays) -> Scaled | None:
        """The inertias that a mass scales, if the shapes' densities define the mass."""
        if not {"mass", "inertia"} <= moved.keys() or not path.endswith(".mass"):
            return None
        own = self._in_double({path: None})
        where = moved["inertia"]
        return Scaled(where, own["inertia"].reshape(-1)[where], own["mass"][where // 9])

    def _combine(self) -> None:
        """Pairs, by parameter, whose numbers depend on those of varied shapes; and whether gravity varies."""
        from ...engine.parameters import COMBINED

        topology = self.model.topology
        self._pairs: dict[str, np.ndarray] = {}
        for k, name in enumerate(COMBINED):
            shapes = np.concatenate([np.zeros(0, int), *(x[name] for x in self._direct.values() if name in x)])
            of = np.array(topology.pairs, int).reshape(-1, 2)
            rows = np.flatnonzero(np.isin(of, shapes).any(1) & ~np.isin(np.arange(len(of)), topology.ruled[k]))
            if len(rows):
                self._pairs[name] = rows
                self.varied |= {name, f"pair_{name}"}
        self._falls = self.scene.rest_speed is None and any("gravity" in x for x in self._direct.values())
        self.varied |= {"rest_speed"} if self._falls else set()

    def _holds(self) -> bool:
        """Return whether some random lanes equal the compiled ones."""
        lanes = self._random.integers(0, self.lanes, PROBES).tolist()
        arrays = self._of(lanes)
        for row, lane in enumerate(lanes):
            truth = _arrays(*self._truly(lane))
            mine = {name: arrays[name][row] if name in arrays else x for name, x in self._base.items()}
            if not all(_same(mine[name], x) for name, x in truth.items()):
                return False
        return True

    def _truly(self, lane: int) -> tuple[Model, State]:
        with self._blame(lane):
            model, state = self._compile_with(lane, {})
        if lane:
            self._check(model, lane)
        return model, state

    def _compile_with(
        self, lane: int, others: Mapping[str, object], dtype: DTypeLike | None = None
    ) -> tuple[Model, State]:
        """The lane's scene, compiled, with other values at some paths."""
        mine = self.scene
        for path, values in self.values.items():
            mine = apply_setting(mine, path, others.get(path, values[lane]))
        return compile_scene(mine, dtype or self.dtype, overlaps="ignore")

    def _in_double(self, others: Mapping[str, object]) -> Arrays:
        """Lane 0 in double precision: entries before rounding."""
        import jax

        with jax.enable_x64(True):
            return _arrays(*self._compile_with(0, others, np.float64))

    def _compile_lane(self, lane: int) -> Arrays:
        """Compile the lane's values at paths that are compiled, and those of lane 0 at the others."""
        given = {path: self.values[path][lane] for path in self.compiled}
        if (key := repr(given)) not in self._kept:
            if len(self._kept) >= KEPT:
                self._kept.clear()
            with self._blame(lane):
                model, state = self._compile_with(0, given)
            self._check(model, lane)
            self._kept[key] = model, _arrays(model, state)
        return self._kept[key][1]

    @contextlib.contextmanager
    def _blame(self, lane: int) -> Iterator[None]:
        """Say which lane a scene is of that is refused, and its values."""
        try:
            yield
        except ValueError as error:
            if self.values:
                error.args = (f"{self._name(lane)}: {error}",)
            raise

    def _check(self, model: Model, lane: int) -> None:
        if model.topology != self.model.topology:
            raise ValueError(
                f"{self._name(lane)} is another scene than lane 0, not the same one with other numbers: "
                "what may touch, the kinds of shapes and the joints must be equal in all lanes"
            )

    def _name(self, lane: int) -> str:
        given = ", ".join(f"{abridge(path)} = {values[lane]!r}" for path, values in self.values.items())
        return f"lane {lane} ({abridge(given)})"


def _arrays(model: Model, state: State) -> Arrays:
    arrays = {name: np.asarray(x) for name, x in model.parameters.items()}
    return arrays | {"q": np.asarray(state.q), "v": np.asarray(state.v)}


def _bits(x: np.ndarray) -> np.ndarray:
    """Bits as whole numbers (n,); NaN equals itself, and -0 is not 0."""
    return np.ascontiguousarray(x).reshape(-1).view(f"u{x.dtype.itemsize}")


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and a.tobytes() == b.tobytes()
