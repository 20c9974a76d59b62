"""A recording in the viewer: its controls, and the picture at a time t."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from ..recordings.recording import Recording
from ..show.drawing import drawing_of
from ..show.meshes import Floats
from ..show.motion import RecordedMotion, extent, model_of, motion_of
from ..show.planes import patches, with_patches
from .nodes import Nodes

GLOWS, TAIL = 0.15, 1.2  # [s] duration of an arrow, and of a trail
SPEEDS = {"0.1x": 0.1, "0.25x": 0.25, "0.5x": 0.5, "1x": 1.0, "2x": 2.0, "4x": 4.0}
NOBODY = "nothing"
LANES = 256  # lanes of a batch that can be chosen


class RecordingShow:
    """Controls set requests, `advance` shows them: only one thread changes the scene."""

    def __init__(self, server: Any, recording: Recording) -> None:
        self.model = model_of(recording)
        self.recording = recording
        self.lanes = range(min(recording.lanes or 1, LANES))
        self.drawing = drawing_of(recording.scene, self.model, self.lanes)
        self.motions: dict[int, RecordedMotion] = {}
        first = self.motion(0)
        low, high = extent(self.drawing, first.position, first.quaternion)
        ground = patches(self.drawing.planes, low, high)
        self.nodes = Nodes(server, self.drawing, ground, *with_patches(ground, low, high))
        self.server, self.lock = server, threading.Lock()
        self.t, self.playing, self.shown, self.followed = float(first.t[0]), True, None, None
        self._add_controls(server.gui, first.t)
        self.advance(0.0)

    def motion(self, lane: int) -> RecordedMotion:
        """The motion of one lane, computed when it is needed."""
        if lane not in self.motions:
            self.motions[lane] = motion_of(self.recording, self.model, [lane])
        return self.motions[lane]

    def _add_controls(self, gui: Any, t: Floats) -> None:
        names = list(self.drawing.names)
        step = float(np.diff(t).mean()) if len(t) > 1 else 1.0
        gui.configure_theme(show_logo=False, show_share_button=False, brand_color=(217, 115, 13))
        with gui.add_folder(self.recording.title):
            self.text = gui.add_markdown("")
            self.clock = gui.add_slider("time [s]", float(t[0]), float(t[-1]), step / 100, float(t[0]))
            buttons = gui.add_button_group("", ["start", "◂ frame", "play / pause", "frame ▸", "impact ▸"])
            self.speed = gui.add_dropdown("speed", list(SPEEDS), initial_value="1x")
        with gui.add_folder("Show"):
            lanes = [str(k) for k in self.lanes]
            hint = f"{len(lanes)} of {self.recording.lanes or 1}"
            self.lane = gui.add_dropdown("lane", lanes, initial_value=lanes[0], visible=len(lanes) > 1, hint=hint)
            self.follow = gui.add_dropdown("follow", [NOBODY, *names], initial_value=NOBODY)
            self.arrows = gui.add_checkbox("impulses", True)
            self.wire = gui.add_checkbox("wireframe of what collides", False)
            self.trails = gui.add_dropdown("trails", ["off", "followed", "all"], initial_value="followed")
        actions = {
            "start": lambda: self.seek(float(t[0])), "◂ frame": lambda: self.step(-1), "frame ▸": lambda: self.step(1),
            "play / pause": self.toggle, "impact ▸": self.next_impact,
        }  # fmt: skip
        buttons.on_click(lambda event: actions[event.target.value]())
        # a slider that a person moves has a client; one that `advance` moves has none
        self.clock.on_update(lambda event: self.seek(event.target.value) if event.client is not None else None)
        keys = (
            ("play or pause", "space", self.toggle),
            ("next frame", "arrowright", lambda: self.step(1)),
            ("frame before", "arrowleft", lambda: self.step(-1)),
            ("next impact", "n", self.next_impact),
        )
        for label, key, action in keys:
            gui.add_command(label, hotkey=key).on_trigger(lambda _, action=action: action())

    def toggle(self) -> None:
        end = self.motion(self._lane).t[-1]
        with self.lock:
            self.playing = not self.playing
            if self.playing and self.t >= end:
                self.t = float(self.motion(self._lane).t[0])

    def seek(self, t: float) -> None:
        """Show the time t [s], and pause."""
        with self.lock:
            self.t, self.playing = t, False

    def step(self, frames: int) -> None:
        """Step by frames, and pause."""
        t = self.motion(self._lane).t
        k = int(np.abs(t - self.t).argmin()) + frames
        self.seek(float(t[np.clip(k, 0, len(t) - 1)]))

    def next_impact(self) -> None:
        later = [t for t in self.motion(self._lane).hits[0].t if t > self.t + 1e-9]
        if later:
            self.seek(float(later[0]))

    @property
    def _lane(self) -> int:
        return int(self.lane.value)

    def advance(self, seconds: float) -> None:
        """Advance by seconds of real time."""
        motion = self.motion(self._lane)
        with self.lock:
            if self.playing:
                self.t += seconds * SPEEDS[self.speed.value]
                if self.t > motion.t[-1]:
                    self.t = float(motion.t[0])
            t = min(max(self.t, float(motion.t[0])), float(motion.t[-1]))
        wanted = (t, self._lane, self.follow.value, self.arrows.value, self.wire.value, self.trails.value)
        if wanted == self.shown:
            return
        with self.server.atomic():
            self._draw(motion, t, changed=self.shown is None or wanted[1:] != self.shown[1:])
        self.shown = wanted

    def _draw(self, motion: RecordedMotion, t: float, changed: bool) -> None:
        names = self.drawing.names
        k, s = frame_at(motion.t, t)
        position, quaternion = between(motion, k, s)
        self.nodes.set_poses(position, quaternion)
        if changed:
            self.nodes.show(self._lane, self.wire.value)
        hits = motion.hits[0]
        now = (hits.t <= t + 1e-9) & (hits.t > t - GLOWS) & (hits.dof < 0) & self.arrows.value
        self.nodes.arrows(hits.point[now], hits.impulse[now], float(hits.size.max(initial=1e-30)))
        link = names.index(self.follow.value) if self.follow.value != NOBODY else -1
        links = {"off": [], "followed": [link] if link >= 0 else [], "all": list(range(len(names)))}[self.trails.value]
        since = int(np.searchsorted(motion.t, t - TAIL))
        path = np.concatenate([motion.position[0, since : k + 1], position[None]])
        self.nodes.trails(np.moveaxis(path[:, links], 1, 0), links)
        self.followed = self.nodes.follow(link, position[link] if link >= 0 else None, self.followed)
        self.clock.value = t
        energy, past = (motion.kinetic + motion.potential)[0, k], int((hits.t <= t + 1e-9).sum())
        self.text.content = f"energy **{energy:.4g} J** · impacts **{past}** of {len(hits.t)}"


def frame_at(times: Floats, t: float) -> tuple[int, float]:
    """The last frame at or before t, and the fraction of t on the way to the next."""
    k = int(np.clip(np.searchsorted(times, t, side="right") - 1, 0, max(len(times) - 2, 0)))
    if len(times) < 2:
        return 0, 0.0
    return k, float((t - times[k]) / (times[k + 1] - times[k]))


def between(motion: RecordedMotion, k: int, s: float) -> tuple[Floats, Floats]:
    """Positions (nl, 3) [m] and quaternions (nl, 4) of the first lane, between two frames."""
    last = min(k + 1, len(motion.t) - 1)
    position = (1 - s) * motion.position[0, k] + s * motion.position[0, last]
    a, b = motion.quaternion[0, k], motion.quaternion[0, last]
    b = np.where((a * b).sum(-1, keepdims=True) < 0, -b, b)
    mixed = (1 - s) * a + s * b
    return position, mixed / np.linalg.norm(mixed, axis=-1, keepdims=True)
