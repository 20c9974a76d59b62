"""Frames of `carom.Live` as a game would play them: times of the longest ones, and whether anything was compiled.

One core, single precision, 60 Hz. Every frame saves the state and reads the poses, as a game with rollback does. A room
has boxes in stacks of three, a door on a hinge, a capsule that walks about among them, and a ball that is shot at them
every second. It is played with and without a time budget.
"""

from __future__ import annotations

import functools
import os
from time import perf_counter
from typing import Any

import jax
import numpy as np

import carom
from carom.scenes.live.world import Live

FRAMES, AGAIN = 2000, 8  # frames of a run; frames that a game with rollback plays again in one
BUDGET = 1e3 / 60  # [ms] per frame


HALF = 0.15  # half the side of a box [m]
SHOT = carom.BodySpec("shot", (carom.Sphere(0.08),), mass=2.0, restitution=0.3)


def room(boxes: int) -> Any:
    """Build a room with stacks of three boxes on a square grid, 0.9 m apart."""
    b, side = carom.SceneBuilder(), int(np.ceil(np.sqrt(boxes / 3)))
    b.add_plane(friction=0.6)
    for k in range(boxes):
        stack, level = divmod(k, 3)
        x, y = 0.9 * (np.array(divmod(stack, side)) - (side - 1) / 2)
        position = (float(x), float(y), HALF * (1 + 2 * level))
        b.add_body(f"box{k}", [carom.Box((HALF,) * 3)], mass=1.0, position=position, friction=0.6, restitution=0.1)
    wide = 0.45 * side + 0.6
    b.add_link(
        "door", joint=carom.Revolute((0.0, 0.0, 1.0), limits=(-1.5, 1.5), damping=0.2), position=(wide, 0.0, 1.0),
        shapes=[carom.Box((0.03, 0.4, 0.95), position=(0.0, 0.45, 0.0))], mass=8.0,
    )  # fmt: skip
    b.add_body("walker", [carom.Capsule(0.2, 0.3)], mass=10.0, position=(-wide, 0.0, 0.5), friction=0.2)
    return b.build()


def play_room(world: Live, frame: int) -> None:
    """Do the work of a game before a frame: it depends only on the state and the frame's number."""
    angle = 2 * np.pi * frame / 600
    wide = 2.5 * np.array((np.cos(angle), np.sin(angle)))
    way = wide - world.pose("walker")[:2]
    push = 60.0 * way / max(1.0, float(np.hypot(*way))) - 20.0 * world.velocity("walker")[3:5]
    world.apply_force("walker", (float(push[0]), float(push[1]), 0.0))
    if frame % 60 == 0:
        if frame >= 240:
            world.remove_body(f"shot.{(frame // 60) % 4 + 1}")
        world.add_body("shot", (-4.0, 0.3 * np.sin(frame), 0.6), linear_velocity=(14.0, 0.0, 1.0))


def wall(plane: str | None) -> Any:
    """Build a wall of fifteen boxes, five in the lowest row, with small gaps."""
    b = carom.SceneBuilder(plane=plane)
    b.add_plane(friction=0.6)
    for row in range(5):
        for k in range(5 - row):
            place = (HALF * (2.13 * k + 1.07 * row), 0.0, HALF * (1 + 2 * row))
            b.add_body(
                f"box{row}{k}", [carom.Box((HALF,) * 3)], mass=1.0, position=place, friction=0.6, restitution=0.1
            )
    return b.build()


def play_wall(world: Live, frame: int) -> None:
    """Strike the wall at its foot and at its top every half second, and set it up again every four."""
    if frame % 240 == 0:
        world.reset()
    if frame % 30 == 0:
        for name in ("box00", "box40"):
            world.apply_impulse(name, (1.5 if frame % 60 else -1.5, 0.0, 1.0))


def _nothing(world: Live, frame: int) -> None:
    pass


def _room(boxes: int, **keywords: Any) -> tuple[Any, dict[str, Any], Any]:
    return functools.partial(room, boxes), {"pool": {"shot": (SHOT, 4)}, **keywords}, play_room


# function that makes a scene, arguments of `Live`, and function called before each frame
SCENES: dict[str, tuple[Any, dict[str, Any], Any]] = {
    **{name: (functools.partial(str, name), {}, _nothing) for name in ("stack", "ragdoll", "pool_break")},
    **{f"room_{n}": _room(n) for n in (10, 50, 200)},
    **{f"wall_{name}": (functools.partial(wall, p), {}, play_wall) for name, p in (("flat", "xz"), ("free", None))},
    **{f"room_{n}_{1e3 * s:g}ms": _room(n, budget=s) for n, s in ((10, 7e-4), (50, 3e-3), (200, 1e-2))},
}


def suite(scenes: list[str], frames: int = FRAMES) -> int:
    """Print a line for each scene. The exit status says whether nothing was compiled after the start."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    compiled: list[str] = []

    def heard(event: str, duration_secs: float, **_: Any) -> None:
        if "backend_compile" in event:
            compiled.append(event)

    jax.monitoring.register_event_duration_secs_listener(heard)
    print(f"{frames} frames of 1/60 s, one core, f32; milliseconds")
    columns = ("start s", "p50", "p99", "most", "late %", "8 again", "behind", "compiled")
    print(f"{'scene':>12}", *(f"{x:>8}" for x in columns))
    quiet = True
    for name in scenes:
        begin = perf_counter()
        make, keywords, play = SCENES[name]
        world = Live(make(), dtype="float32", **keywords)
        start, before = perf_counter() - begin, len(compiled)
        times, saves, behind = np.empty(frames), [], 0.0
        for k in range(frames):
            play(world, k)
            begin = perf_counter()
            saves.append(world.save_state())
            world.step()
            world.poses()
            times[k] = 1e3 * (perf_counter() - begin)
            behind = max(behind, world.behind)
        again = _again(world, saves)
        p50, p99 = np.percentile(times, (50, 99))
        late, new = (times > BUDGET).mean(), len(compiled) - before
        quiet &= new == 0
        cells = (start, p50, p99, times.max(), 100 * late, again, behind)
        print(f"{name:>12}", *(f"{x:8.2f}" for x in cells), f"{new:8d}", flush=True)
    return 0 if quiet else 1


def _again(world: Live, saves: list[bytes]) -> float:
    """Return the longest time to load a frame and play eight, from some instants of the run [ms]."""
    worst = 0.0
    for saved in saves[:: max(1, len(saves) // 50)]:
        begin = perf_counter()
        world.load_state(saved)
        for _ in range(AGAIN):
            world.step()
        worst = max(worst, 1e3 * (perf_counter() - begin))
    return worst
