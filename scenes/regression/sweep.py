"""Sweeps: a scene under laws, steps, restitutions and frictions, the last two as lanes of one batch."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..recordings.reading import Reading
from ..recordings.recording import Recording
from ..sources import SceneLike
from .compare import end_off
from .finding import Finding
from .invariants import ALWAYS
from .runs import resolve_scene
from .table import Table

TOO_FAR = 1e-6  # [m] if bodies end farther apart under another step, the step matters


def sweep(
    scene: SceneLike,
    *,
    laws: Sequence[str] = ("stronge",),
    e: Iterable[float] | None = None,
    mu: Iterable[float] | None = None,
    dt: Sequence[float] = (1 / 240,),
    invariants: Iterable[str] = ALWAYS,
    **keywords: Any,
) -> Table:
    """Run a scene; return a row for each law, step, restitution and friction.

    scene, keywords: see `record_run`.  e, mu: restitution and friction of all pairs; None: the scene's.
    dt: longest steps, `max_dt` of `carom.rollout` [s].  invariants: names in `invariants.ALWAYS`.
    Columns: impacts; energy lost [J]; end off [m]: largest distance of a link's end from that with the same e and mu
    under the first law and step; violated: the invariants that do not hold.
    """
    es, mus = ([None] if x is None else [float(y) for y in x] for x in (e, mu))
    lanes = list(itertools.product(es, mus))
    checks = {name: ALWAYS[name] for name in invariants}
    first: Reading | None = None
    rows: list[tuple[Any, ...]] = []
    for law, step in itertools.product(laws, dt):
        batch = Reading(_batch(scene, lanes, {**keywords, "law": law, "max_dt": step, "throw": False}))
        first = first or batch
        for k, (restitution, friction) in enumerate(lanes):
            one = Reading(lane_of(batch.recording, k))
            total = one.ledger.total[0]
            violated = [name for name, check in checks.items() if not check(one)]
            rows.append((
                law, step, restitution, friction, len(one.impacts.t), float(total[0] - total[-1]),
                end_off(first, batch, k)[0], ", ".join(violated),
            ))  # fmt: skip
    columns = ("law", "dt [s]", "e", "mu", "impacts", "energy lost [J]", "end off [m]", "violated")
    return Table(columns, tuple(rows))


def _batch(scene: SceneLike, lanes: list[tuple[float | None, float | None]], keywords: dict[str, Any]) -> Recording:
    """All lanes in one run."""
    import jax.numpy as jnp

    from ...integrators.rollout import rollout, tile
    from ..compile import compile_scene

    spec, title, keywords = resolve_scene(scene, "", keywords, "sweep")
    model, state = compile_scene(spec)
    pairs = model.pair_friction.shape[-1]
    varied = {
        name: np.repeat(np.array(values, model.pair_friction.dtype)[:, None], pairs, 1)
        for name, values in zip(("pair_restitution", "pair_friction"), zip(*lanes, strict=True), strict=True)
        if values[0] is not None
    }
    model = model.replace(**{name: jnp.asarray(x) for name, x in varied.items()})
    ran = rollout(model, tile(state, len(lanes)), **keywords)
    return Recording.of(spec, ran, title=title, keywords=keywords, varied=varied, model=model)


def lane_of(recording: Recording, k: int) -> Recording:
    """One lane of a batch, still with its axis: a batch of one."""
    import dataclasses

    cut = slice(k, k + 1)
    events = recording.events
    rows = {f.name: getattr(events, f.name)[cut] for f in dataclasses.fields(events) if f.name != "law"}
    return dataclasses.replace(
        recording, t=recording.t[cut], q=recording.q[cut], v=recording.v[cut], code=recording.code[cut],
        events=dataclasses.replace(events, **rows), stats={name: x[cut] for name, x in recording.stats.items()},
        varied={name: x[cut] for name, x in recording.varied.items()},
    )  # fmt: skip


def dt_independent(
    scene: SceneLike,
    max_dts: Sequence[float] = (1 / 240, 1 / 400, 1 / 1000),
    *,
    tolerance: float = TOO_FAR,
    **keywords: Any,
) -> Finding:
    """Check that bodies' ends and the number of impacts do not depend on the longest step.

    scene, keywords: see `record_run`.  tolerance: [m]; a chaotic scene needs a short duration."""
    from .runs import record_run

    runs = [Reading(record_run(scene, **{**keywords, "max_dt": step})) for step in max_dts]
    counts = [len(run.impacts.t) for run in runs]
    off, who, step = max((*end_off(runs[0], run), step) for run, step in zip(runs[1:], max_dts[1:], strict=True))
    where = f"the end of {who} under max_dt = {step:.6g} s" if who else ""
    if len({*counts}) > 1:
        off, where = np.inf, f"there are {', '.join(map(str, counts))} impacts"
    return Finding("the run does not hang on the step", off, tolerance, "m", where)
