"""Parts of a world that depend only on its scene, its pool and its options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import jax
import numpy as np
from numpy.typing import DTypeLike

from ...integrators.options import Options
from ...integrators.rules import Rules
from ...integrators.snapshots import model_hash
from ..compile import compile_scene
from ..spec import SceneSpec, StaticSpec
from .asking import Questions
from .asleep import Asleep
from .pool import Pool, Spares, with_spares
from .standing import WorldState
from .stepping import Stepper
from .touching import Bodies


class Parts:
    """Parts.  scene: the argument.  spec: with its spare bodies, which are `spares`.  model: compiled from it.
    start: the first state of the world.  stepper, questions: the programs that step it and that query it.
    bodies: names.  touchable: names of bodies with shapes.  named: these, and all links and statics with a name.
    origins: of the statics with a name [m].  mark: fingerprint of the model."""

    def __init__(
        self,
        scene: SceneSpec,
        pools: Sequence[Pool],
        dtype: DTypeLike | None,
        options: Options,
        budget: float | None,
        sleep_speed: float,
    ) -> None:
        self.scene, self.pools = scene, tuple(pools)
        self.spec, names = with_spares(scene, self.pools)
        self.model, start = compile_scene(self.spec, dtype=dtype)
        topology = self.model.topology
        self.spares, state = Spares.of(self.model, np.asarray(start.q), names), jax.device_get(start)
        self.start = WorldState(self.model, self.spares, state, Asleep.nobody(topology))
        limits = bool(np.isfinite([self.model.lower, self.model.upper]).any())
        limits |= not topology.pairs  # where nothing can touch, a step looks at limits, even if there are none
        rules = replace(Rules.of(options, limits), max_logged=None)  # `contact_events` misses none
        rules.check(self.model)
        self.stepper = Stepper(self.model, rules, self.spares, options, budget, sleep_speed)
        self.bodies = Bodies.of(self.spec, topology)
        self.touchable = tuple(dict.fromkeys(self.bodies.owners))
        statics = (static.name for static in self.spec.statics if static.name)
        self.named = tuple(dict.fromkeys([*topology.names, *self.touchable, *statics]))
        self.origins = {x.name: x.position for x in self.spec.statics if isinstance(x, StaticSpec) and x.name}
        self.questions = Questions(self.spec, self.model, self.bodies)
        self.mark = model_hash(self.model)
