"""A running world in the viewer: pause, step, reset, and the impulses of its impacts."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

import numpy as np

from ..show.drawing import drawing_of
from ..show.meshes import Floats
from ..show.motion import extent
from ..show.planes import patches, with_patches
from ..sources import SceneLike, scene_of_links
from .nodes import Nodes
from .recording import GLOWS, NOBODY, SPEEDS, TAIL

LATE = 0.2  # [s] of real time that is made up for; a slower world runs in slow motion


class LiveShow:
    """Steps a `carom.Live` in real time, from one thread; controls only set requests."""

    def __init__(self, server: Any, scene: SceneLike) -> None:
        from ..live.world import Live

        spec = scene_of_links(scene, "view")
        self.world = Live(spec, warm=False)
        self.world.step()  # compiles, before the first picture
        self.world.reset()
        self.drawing = drawing_of(spec, self.world.model)
        poses = self.world.poses()
        low, high = extent(self.drawing, poses[None, :, :3], poses[None, :, 3:])
        ground = patches(self.drawing.planes, low, high)
        self.nodes = Nodes(server, self.drawing, ground, *with_patches(ground, low, high))
        self.server, self.lock = server, threading.Lock()
        self.running, self.steps_requested, self.reset = True, 0, False
        self.left, self.followed, self.strongest = 0.0, None, 1e-30
        self.hits: deque[tuple[float, Floats, Floats]] = deque()
        self.past: deque[tuple[float, Floats]] = deque()
        self._add_controls(server.gui)
        self._draw()

    def _add_controls(self, gui: Any) -> None:
        gui.configure_theme(show_logo=False, show_share_button=False, brand_color=(217, 115, 13))
        with gui.add_folder("World"):
            self.text = gui.add_markdown("")
            buttons = gui.add_button_group("", ["run / pause", "frame ▸", "reset"])
            self.speed = gui.add_dropdown("speed", [name for name, x in SPEEDS.items() if x <= 1], initial_value="1x")
        with gui.add_folder("Show"):
            self.follow = gui.add_dropdown("follow", [NOBODY, *self.drawing.names], initial_value=NOBODY)
            self.arrows = gui.add_checkbox("impulses", True)
            self.wire = gui.add_checkbox("wireframe of what collides", False)
            self.trails = gui.add_dropdown("trails", ["off", "followed", "all"], initial_value="off")
            self.debug = gui.add_dropdown("debug lines", ["off", "body", "island"], initial_value="off")
        actions = {"run / pause": self.toggle, "frame ▸": self.step, "reset": self.restart}
        buttons.on_click(lambda event: actions[event.target.value]())
        self.wire.on_update(lambda event: self.nodes.show(0, event.target.value))
        keys = (
            ("run or pause", "space", self.toggle),
            ("one frame", "arrowright", self.step),
            ("reset", "r", self.restart),
        )
        for label, key, action in keys:
            gui.add_command(label, hotkey=key).on_trigger(lambda _, action=action: action())

    def toggle(self) -> None:
        with self.lock:
            self.running = not self.running

    def step(self) -> None:
        """Step one frame, and pause."""
        with self.lock:
            self.running, self.steps_requested = False, self.steps_requested + 1

    def restart(self) -> None:
        with self.lock:
            self.reset = True

    def advance(self, seconds: float) -> None:
        """Advance by seconds of real time."""
        with self.lock:
            frames, self.steps_requested, reset, self.reset = self.steps_requested, 0, self.reset, False
            if self.running:
                self.left = min(self.left + seconds, LATE) if frames == 0 else 0.0
                whole = int(self.left * SPEEDS[self.speed.value] / self.world.dt)
                self.left -= whole * self.world.dt / SPEEDS[self.speed.value]
                frames += whole
        if reset:
            self.world.reset()
            self.hits.clear()
            self.past.clear()
        for _ in range(frames):
            self.world.step()
            self._remember()
        if frames or reset:
            self._draw()

    def _remember(self) -> None:
        """Store the frame's impacts, and the poses."""
        t = self.world.time
        for contact in self.world.contact_events():
            if contact.impacts:
                moving = contact.a in self.drawing.names
                self.hits.append((t, contact.point, contact.impulse if moving else -contact.impulse))
                self.strongest = max(self.strongest, float(np.linalg.norm(contact.impulse)))
        self.past.append((t, self.world.poses()[:, :3]))
        while self.hits and self.hits[0][0] < t - GLOWS:
            self.hits.popleft()
        while self.past[0][0] < t - TAIL:
            self.past.popleft()

    def _draw(self) -> None:
        poses, names = self.world.poses(), self.drawing.names
        link = names.index(self.follow.value) if self.follow.value != NOBODY else -1
        links = {"off": [], "followed": [link] if link >= 0 else [], "all": list(range(len(names)))}[self.trails.value]
        hits = list(self.hits) if self.arrows.value else []
        path = np.array([position for _, position in self.past]).reshape(-1, len(names), 3)
        with self.server.atomic():
            self.nodes.set_poses(poses[:, :3], poses[:, 3:])
            points, impulses = (np.array([hit[k] for hit in hits]).reshape(-1, 3) for k in (1, 2))
            self.nodes.arrows(points, impulses, self.strongest)
            self.nodes.trails(np.moveaxis(path[:, links], 1, 0), links)
            colour = self.debug.value
            self.nodes.debug(None if colour == "off" else self.world.debug_lines(colour=colour))
            at = poses[link, :3] if link >= 0 else None
            self.followed = self.nodes.follow(link, at, self.followed)
            late = f" · {1e3 * self.world.behind:.0f} ms behind" if self.world.behind > 1e-3 else ""
            self.text.content = f"time **{self.world.time:.2f} s**{late}"
