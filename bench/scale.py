"""Growth of the cost of a simulated second: with bodies that never meet, with bodies in a heap, in a stack, with lanes.

Every line is compared with MuJoCo's of the same bodies, on one thread; for lanes, its `rollout` on a thread per core.
Carom's steps are at most STEP; MuJoCo's have the same length, except that it needs SHORT if bodies bounce or lie in
heaps. Heaps come down in windows of SHORT if events are closer.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np

import carom
from carom.engine.results import LEAST_GRAVE
from carom.scenes.library.registry import library_scene

from .contact_cases import STEP
from .peers import MujocoWorld
from .timing import in_turn

SHORT = 1e-3  # [s]
SECONDS = 60.0  # [s] a curve ends after a run of either that takes longer


@dataclass(frozen=True)
class Curve:
    """A curve of cost over size.

    scene: size -> the scene.
    sizes: numbers of bodies or lanes.
    duration: simulated time [s].
    step: MuJoCo's step [s].
    lanes: whether lanes grow, not bodies.
    window: Carom's window [s]; None: it locates every event.
    """

    scene: Callable[[int], Any]
    sizes: tuple[int, ...]
    duration: float
    step: float
    lanes: bool = False
    window: float | None = None


def _balls(n: int) -> Any:
    """Build a scene of balls far from each other, at different heights."""
    b, side = carom.SceneBuilder(), int(np.ceil(np.sqrt(n)))
    b.add_plane(restitution=0.9, friction=0.0)
    for k in range(n):
        position = (k % side, k // side, 0.3 + 0.5 * ((k * 0.618) % 1))
        b.add_body(f"ball{k}", [carom.Sphere(0.1)], mass=1.0, position=position, restitution=0.9, friction=0.0)
    return b.build()


def _heap(shape: Any, size: float, n: int) -> Any:
    """Build a scene of bodies dropped in square layers, each a little displaced from the one below."""
    b, side, rng = carom.SceneBuilder(), max(2, int(np.ceil(n ** (1 / 3)))), np.random.default_rng(0)
    b.add_plane(friction=0.5)
    for k in range(n):
        layer, cell = divmod(k, side * side)
        x, y = (2.2 * size * np.array(divmod(cell, side)) + rng.uniform(-0.1, 0.1, 2) * size).tolist()
        b.add_body(f"b{k}", [shape], mass=1.0, position=(x, y, size * (1.2 + 2.3 * layer)), friction=0.5)
    return b.build()


CURVES: dict[str, Curve] = {
    "balls that bounce apart": Curve(_balls, (10, 100, 1000), 1.0, SHORT),
    "spheres in a heap": Curve(
        functools.partial(_heap, carom.Sphere(0.1), 0.1), (10, 30, 100, 300, 1000), 1.0, SHORT, window=SHORT
    ),
    "boxes in a heap": Curve(
        functools.partial(_heap, carom.Box((0.1, 0.1, 0.1)), 0.1), (10, 30, 100, 300, 1000), 1.0, SHORT, window=SHORT
    ),
    "boxes in a stack": Curve(lambda n: library_scene("stack", n=n), (2, 5, 10, 20, 40), 1.0, STEP),
    "lanes of a pool break": Curve(lambda _: library_scene("pool_break"), (1, 8, 64, 512), 1.0, SHORT, lanes=True),
}


def suite(names: list[str], rounds: int, path: str | None) -> int:
    """Print a table for each curve. The exit status says whether all runs went well.

    path: a plot to write, .svg or .png.
    """
    right, found = True, {}
    for name in names:
        curve = CURVES[name]
        print(
            f"\n{name}: {curve.duration:g} s, Carom's steps at most 1/{1 / STEP:g} s, MuJoCo's 1/{1 / curve.step:g} s"
        )
        head = f"{'n':>6} {'contacts':>8} {'ticks':>7} {'us/tick':>9} {'s/s':>10} {'MuJoCo s/s':>11}"
        print(f"{head} {'ratio':>7} {'growth':>6}")
        rows: list[tuple[int, float, float]] = []
        for n in curve.sizes:
            print(f"{name}, {n} ...", file=sys.stderr, flush=True)
            line, row, well = _row(curve, n, rounds, rows)
            print(line, flush=True)
            rows.append(row)
            right &= well
            if max(row[1:]) > SECONDS:
                break
        found[name] = rows
    if path:
        plot(path, found)
    return 0 if right else 1


def _row(
    curve: Curve, n: int, rounds: int, before: list[tuple[int, float, float]]
) -> tuple[str, tuple[int, float, float], bool]:
    """Return a line; n and the seconds of Carom and MuJoCo; and whether the run went well."""
    model, state = carom.compile_scene(curve.scene(n))
    lanes = n if curve.lanes else 1
    first = state
    if curve.lanes:
        rng = np.random.default_rng(0)
        v = np.tile(np.asarray(state.v), (lanes, 1))
        v[:, 3:5] += rng.uniform(-0.2, 0.2, (lanes, 2))
        state = replace(carom.tile(state, lanes), v=jnp.asarray(v))
    call = functools.partial(
        carom.rollout, model, state, duration=curve.duration, frame_dt=curve.duration, max_dt=STEP, max_events=0,
        throw=False, window=curve.window,
    )  # fmt: skip
    result = call()
    world, steps = MujocoWorld(model, curve.step), round(curve.duration / curve.step)
    world.start(np.asarray(first.q), np.asarray(first.v))
    peer: Any = functools.partial(world.run, steps)
    if curve.lanes:
        peer = world.batch(np.asarray(state.q), np.asarray(state.v), steps, os.cpu_count() or 1)
    timed = in_turn({"Carom": call, "MuJoCo": peer}, rounds)
    mine, theirs = (timed[who].median for who in ("Carom", "MuJoCo"))
    ticks, codes = np.atleast_1d(np.asarray(result.stats.ticks)), np.atleast_1d(np.asarray(result.code))
    contacts = int(np.max(np.asarray(result.stats.contacts)))
    # ratio of the cost per body or lane to that of the size before
    grown = mine / before[-1][1] / (n / before[-1][0]) if before else 1.0
    well = bool((codes < LEAST_GRAVE).all())
    simulated = lanes * curve.duration
    line = (
        f"{n:6d} {contacts:8d} {ticks.mean():7.0f} {mine * 1e6 / ticks.sum():9.1f} {simulated / mine:10.4g}"
        f" {simulated / theirs:11.4g} {mine / theirs:7.2f} {grown:6.2f}"
    )
    return line + ("" if well else f"  codes {sorted(set(codes.tolist()))}"), (n, mine, theirs), well


def plot(path: str, found: dict[str, list[tuple[int, float, float]]]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 5), layout="constrained")
    axes = figure.subplots()
    for k, (name, rows) in enumerate(found.items()):
        n, mine, theirs = zip(*rows, strict=True)
        duration = CURVES[name].duration
        axes.loglog(n, [x / duration for x in mine], marker="o", markersize=4, color=f"C{k}", label=name)
        axes.loglog(n, [x / duration for x in theirs], linestyle="--", linewidth=1, color=f"C{k}")
    axes.set(xlabel="bodies, boxes or lanes", ylabel="seconds a simulated second (dashed: MuJoCo)")
    axes.grid(alpha=0.3)
    figure.legend(loc="outside right center", fontsize=8, frameon=False)
    figure.savefig(path)
