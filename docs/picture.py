"""Draws docs/tour.png for the README: `python docs/picture.py` (needs the extra `view`)."""

from __future__ import annotations

from pathlib import Path

import jax
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

import carom

LINKS, LENGTH = 8, 0.2
COLORS = {"semi_implicit": "#c0504d", "lie_midpoint": "#e0a030", "exact": "#2a6f97"}


def strobe(axes: Axes) -> None:
    """A chain let go from the horizontal, every 1/15 s."""
    model, state = carom.compile_scene(carom.load("chain", n=LINKS, length=LENGTH, angle=0.0))
    start = state.q.at[0].set(-np.pi / 2)
    result = carom.rollout(model, carom.State(start, state.v, state.t), duration=1.0, frame_dt=1 / 15)
    poses = carom.fk(model, result.q)
    tip = poses.position[:, -1] + poses.rotation[:, -1] @ np.array([0, 0, -LENGTH])
    points = np.concatenate([poses.position, tip[:, None]], axis=1)[..., [0, 2]]
    lines = LineCollection(list(points), cmap="viridis", array=np.asarray(result.t), linewidths=2)
    axes.add_collection(lines)
    axes.plot(points[..., -1, 0], points[..., -1, 1], ".", color="0.3", markersize=3)
    axes.figure.colorbar(lines, ax=axes, label="time [s]", orientation="horizontal")
    axes.set(xlabel="x [m]", ylabel="z [m]", title=f"a chain of {LINKS} links, let go", aspect="equal")
    axes.autoscale_view()


def energy_errors(axes: Axes) -> None:
    """How well three schemes keep the energy of a triple pendulum at 1 ms a step."""
    model, state = carom.compile_scene(carom.load("chain", n=3, length=0.5, angle=0.8))
    before = carom.energy(model, state).total
    for scheme, color in COLORS.items():
        result = carom.rollout(model, state, duration=20.0, frame_dt=1 / 60, max_dt=1e-3, scheme=scheme)
        total = jax.vmap(lambda q, v, t: carom.energy(model, carom.State(q, v, t)).total)(result.q, result.v, result.t)
        axes.semilogy(result.t, np.abs((total - before) / before).clip(1e-16), color=color, label=scheme)
    axes.set(xlabel="time [s]", ylabel="relative energy error", title="a triple pendulum at 1 ms a step")
    axes.legend(frameon=False)


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    strobe(left)
    energy_errors(right)
    figure.savefig(Path(__file__).with_name("tour.png"), dpi=90)


if __name__ == "__main__":
    main()
