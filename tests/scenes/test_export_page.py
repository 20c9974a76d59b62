"""A page that simulates, in a browser: it prints Python's hash, and can be played with."""

import re
from pathlib import Path
from typing import Any

import pytest

from carom.engine.native.machine import level
from carom.scenes.export.page import export_page
from carom.scenes.live.debug import islands
from carom.scenes.live.world import Live
from carom.tests.scenes.browser import LONG, chromium, needs_browser, said

FRAMES = 300
DRIVE = """
const wait = () => new Promise((done) => setTimeout(done, 50));
(async () => {
  while (!window.game || !document.documentElement.dataset.state) await wait();
  const { game } = window, { world, camera } = game, told = {};
  const pose = (body) => Array.from(world.poses().subarray(7 * body, 7 * body + 3));
  const on = (body) => {  // where on the screen it is
    const [x, y] = project(camera.matrices().view, pose(body));
    return { clientX: (x + 1) / 2 * innerWidth, clientY: (1 - y) / 2 * innerHeight, pointerId: 1, bubbles: true };
  };
  const mouse = (kind, at) => camera.canvas.dispatchEvent(new PointerEvent(kind, at));
  camera.canvas.setPointerCapture = () => {};
  game.playing = false;
  // dragging draws a ball to the pointer
  const ball = 15, at = on(ball), there = pose(ball);
  mouse("pointerdown", at);
  told.held = game.held && game.held.body;
  game.playing = false;
  mouse("pointermove", { ...at, clientX: at.clientX - 60 });
  for (let k = 0; k < 40; k++) game.step();
  mouse("pointerup", at);
  told.dragged = norm(sub(pose(ball), there));
  told.released = game.held === null;
  // the same moment again, however often
  const hash = world.hash(), { frame } = world;
  game.rewind(10);
  told.rewound = world.hash() !== hash && world.frame === 10;
  game.rewind(frame);
  told.returned = world.hash() === hash;
  // the address holds the world
  game.toAddress();
  told.address = location.hash;
  // from the start: a blow, and other materials
  game.does("reset");
  game.does("shoot");
  const before = pose(0);
  mouse("pointerdown", on(0));
  game.playing = false;
  for (let k = 0; k < 20; k++) game.step();
  told.struck = norm(sub(pose(0), before));
  game.does("reset");
  for (let k = 0; k < 60; k++) game.step();
  const own = world.hash();
  game.does("reset");
  game.change("restitution", 0.1);
  game.change("friction", 0);
  for (let k = 0; k < 60; k++) game.step();
  const other = world.hash();
  told.changed = other !== own;
  game.does("reset");
  for (let k = 0; k < 60; k++) game.step();
  told.kept = world.hash() === other;
  game.does("reset");
  game.does("own");
  for (let k = 0; k < 60; k++) game.step();
  told.same = world.hash() === own;
  // what the solver sees
  game.does("reset");
  game.does("debug");
  told.islands = [];
  for (let k = 0; k < 90; k++) {
    const slept = world.asleep().includes(1);
    game.step();
    const { colours, marks } = game.options.debug(), island = game.debug.islands(game.debug.contacts());
    const grey = colours.map((x) => Number(x === ASLEEP));
    told.islands.push({ slept, island, lines: marks.length / 14, asleep: grey });
  }
  game.does("debug");
  told.plain = game.options.debug === null;
  told.refused = world.load(new Uint8Array(8)) >= 1000;
  // addresses that are pasted into the open page
  const paste = async (hash) => {
    clearTimeout(game.noting);
    location.hash = hash;
    for (let k = 0; k < 4; k++) await wait();
  };
  game.does("reset");
  for (let k = 0; k < 12; k++) game.step();
  const twelve = world.hash();
  await paste("paused&frames=12&e=5&mu=0.25");
  told.clamped = game.materials.restitution === 1 && game.materials.friction === 0.25;
  await paste("paused&frames=12");
  told.forgotten = game.materials.restitution === null && game.materials.friction === null;
  told.counted = world.frame === 12 && world.hash() === twelve;
  await paste("paused&save=A&e=0.5");
  told.said = document.getElementById("trouble").textContent;
  told.untouched = world.hash() === twelve && game.materials.restitution === null;
  game.does("forth");
  for (let k = 0; k < 12; k++) await wait();
  told.written = location.hash.includes("&camera=");
  // keys work after a slider does
  const slider = document.getElementById("friction");
  slider.focus();
  slider.dispatchEvent(new PointerEvent("pointerup", { bubbles: true }));
  document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: " ", bubbles: true }));
  told.space = game.playing;
  document.documentElement.dataset.told = JSON.stringify(told);
})();
"""

pytestmark = [needs_browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "game.html"
    export_page("pool_break", path, dtype="float32")
    return path


def test_it_prints_the_hash_of_python(page: Path, tmp_path: Path) -> None:
    live = Live("pool_break", dtype="float32", warm=False)
    for _ in range(FRAMES):
        live.step()
    state = said(
        chromium(tmp_path, f"{page.as_uri()}#paused&frames={FRAMES}", "--dump-dom", milliseconds=LONG), "state"
    )
    assert (state["frame"], state["code"], state["playing"]) == (FRAMES, 0, False)
    assert state["hash"] == live.hash()


def test_it_is_one_small_file(page: Path) -> None:
    text = page.read_text()
    assert page.stat().st_size < (2e6 if level() == 2 else 4e6)  # tests' code is not optimised, and longer
    assert not re.findall(r"""https?:|\b(?:src|href)\s*=|@import|url\(|\bimport\s*\(|\bfetch\(|XMLHttpRequest""", text)


def test_it_can_be_played_with(page: Path, tmp_path: Path) -> None:
    driven = tmp_path / "driven.html"
    driven.write_text(page.read_text().replace("</body>", f"<script>{DRIVE}</script></body>"))
    told = said(chromium(tmp_path, driven.as_uri(), "--dump-dom", milliseconds=LONG), "told")
    assert told["held"] == 15
    assert told["dragged"] > 0.05
    assert told["struck"] > 0.05
    did = ("released", "rewound", "returned", "changed", "kept", "same", "plain", "refused")
    assert all(told[name] for name in did), told
    pasted = ("clamped", "forgotten", "counted", "untouched", "written", "space")
    assert all(told[name] for name in pasted), {name: told[name] for name in pasted}
    assert "the save in the address is no text of a save: copy the whole address again" in told["said"]
    islands_are_those_of_python(told["islands"])
    # somebody else opens the address
    state = said(chromium(tmp_path, f"{page.as_uri()}{told['address']}", "--dump-dom", milliseconds=LONG), "state")
    assert state["t"] > 0.5
    assert state["frame"] == 0
    assert not state["playing"]


def islands_are_those_of_python(seen: list[dict[str, Any]]) -> None:
    """seen: of each frame from the start who sleeps, the islands, and how many lines the page draws: 4 a contact."""
    live = Live("pool_break", dtype="float32", warm=False)
    names = live.model.topology.names
    for one in seen:
        live.step()
        assert one["asleep"] == [int(name in live.asleep) for name in names]
        if not one["slept"]:  # in a page contacts are of those that are awake
            events = [event for event in live.contact_events() if event.phase != "end"]
            assert (one["island"], one["lines"]) == (islands(events, names).tolist(), 4 * len(events))
    assert len({tuple(one["island"]) for one in seen if not one["slept"]}) > 3  # they meet and part
    assert any(1 in one["asleep"] for one in seen)


def test_a_save_of_another_world_is_refused(page: Path, tmp_path: Path) -> None:
    text = chromium(tmp_path, f"{page.as_uri()}#save=AAAA", "--dump-dom", milliseconds=LONG)
    assert "the address holds a save that is not of this world (1001)" in text
