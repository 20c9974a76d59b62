"""A run's page whose viewer takes over: the world goes on from the recorded state, to the last bit, and comes back."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import carom
from carom.engine.state import State
from carom.integrators.snapshots import state_hash
from carom.scenes.export.page import export_page
from carom.scenes.export.recorded import live_of_run, notes, states
from carom.scenes.live.world import Live
from carom.scenes.recordings.recording import Recording
from carom.tests.scenes import drawn
from carom.tests.scenes.browser import chromium, needs_browser
from carom.tests.scenes.test_export_page import LONG, said

FIRST, OTHER, ON = 12, 33, 25  # frames at which the viewer takes over, and frames simulated then
DRIVE = f"""
const wait = () => new Promise((done) => setTimeout(done, 50));
(async () => {{
  while (!window.over || !document.documentElement.dataset.state) await wait();
  const {{ over }} = window, {{ player }} = over, told = {{}};
  const seen = (id) => getComputedStyle(document.getElementById(id)).display !== "none";
  const state = () => JSON.parse(document.documentElement.dataset.state);
  const pose = (body) => Array.from(over.game.world.poses().subarray(7 * body, 7 * body + 3));
  const at = async (frame) => {{ player.seek(player.scene.t[frame]); await over.take(); over.game.playing = false; }};
  told.replay = [seen("player"), seen("facts"), !seen("game"), !seen("world")];
  await at({FIRST});
  const {{ game }} = over, {{ world, camera }} = game;
  told.taken = [!seen("player"), !seen("facts"), seen("game"), seen("world")];
  told.first = world.hash();
  told.t = world.t;
  for (let k = 0; k < {ON}; k++) game.step();
  told.on = world.hash();
  game.does("reset");
  told.again = world.hash();
  // a blow, as in any page that simulates
  const [x, y] = project(camera.matrices().view, pose(0));
  const there = {{ clientX: (x + 1) / 2 * innerWidth, clientY: (1 - y) / 2 * innerHeight, pointerId: 1 }};
  camera.canvas.setPointerCapture = () => {{}};
  const follow = player.options.follow;
  game.does("shoot");
  for (const kind of ["pointerdown", "pointerup"]) camera.canvas.dispatchEvent(new PointerEvent(kind, there));
  game.playing = false;
  for (let k = 0; k < {ON}; k++) game.step();
  told.struck = world.hash();
  told.followed = player.options.follow !== follow;
  // other materials
  game.does("reset");
  game.change("restitution", 0);
  for (let k = 0; k < {ON}; k++) game.step();
  told.dull = world.hash();
  game.does("own");
  game.toAddress();
  told.address = location.hash;
  // back, by the key, and on from elsewhere
  dispatchEvent(new KeyboardEvent("keydown", {{ key: "Escape" }}));
  while (state().hash) await wait();
  told.back = [seen("player"), !seen("game"), state().frame === {FIRST}, state().t === player.t];
  await at({OTHER});
  told.other = world.hash();
  document.documentElement.dataset.told = JSON.stringify(told);
}})();
"""


@pytest.fixture(scope="module")
def run() -> Recording:
    """A ball that bounces beside a pendulum."""
    b = carom.SceneBuilder()
    b.add_plane(restitution=0.8)
    b.add_body(
        "ball", [carom.Sphere(0.1)], mass=2.0, position=(0, 0, 0.5), restitution=0.8, linear_velocity=(0.3, 0, 0)
    )
    b.add_link("arm", joint=carom.Revolute((0, 1, 0)), position=(0, 1, 1), mass=1.0, com=(0.3, 0, 0),
               inertia=(0.1, 0.1, 0.01), shapes=[carom.Capsule(0.05, 0.2, position=(0.3, 0, 0))])  # fmt: skip
    return carom.record(b.build(), duration=0.8, law="newton", title="run")


def state(run: Recording, frame: int) -> State:
    q, v, t = (np.asarray(x[frame]) for x in (run.q, run.v, run.t))
    return State(q, v, t)  # pyright: ignore[reportArgumentType]


def test_a_frame_of_the_page_is_a_save_of_the_world(run: Recording) -> None:
    live: Any = live_of_run(run, {})
    header = live.save_state()[:16]
    assert (live.dt, live._parts.stepper._max_dt, live._parts.stepper._rules.law) == (1 / 60, 1 / 240, "newton")
    for frame in (0, FIRST, OTHER):
        live.load_state(header + states(run)[frame].tobytes())
        assert live.hash() == str(state_hash(state(run, frame)))


def test_a_run_that_stopped_goes_on_from_its_last_frame(run: Recording) -> None:
    q = run.q.copy()
    q[FIRST:] = np.nan
    rows = states(replace(run, q=q))
    assert len(rows) == len(q)
    assert (rows[FIRST:] == rows[FIRST - 1]).all()
    assert (rows[FIRST - 1] == states(run)[FIRST - 1]).all()


def test_control_that_ends_is_told(run: Recording) -> None:
    assert notes(run) == []
    driven = replace(run, keywords={**run.keywords, "control": [0.0]})
    assert notes(driven) == ["the run's control ends where the viewer takes over"]


def test_runs_of_many_lanes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="two <bodies> is of many lanes, or a lane of them"):
        export_page(drawn.recording(lanes=2), tmp_path / "a.html")
    assert not list(tmp_path.iterdir())


def test_runs_of_planar_chains_are_refused(run: Recording, tmp_path: Path) -> None:
    of_chain = replace(run, provenance={"chain": "planar chain of 3 joints"})
    with pytest.raises(ValueError, match="run is of a planar chain of 3 joints, and what is recorded is its twin"):
        export_page(of_chain, tmp_path / "a.html")


@needs_browser
@pytest.mark.slow
def test_the_viewer_takes_over_and_goes_back(run: Recording, tmp_path: Path) -> None:
    page, driven = tmp_path / "run.html", tmp_path / "driven.html"
    export_page(run, page)
    driven.write_text(page.read_text().replace("</body>", f"<script>{DRIVE}</script></body>"))
    told = said(chromium(tmp_path, f"{driven.as_uri()}#paused", "--dump-dom", milliseconds=LONG), "told")
    assert all(told["replay"] + told["taken"] + told["back"]), told
    for name, frame in (("first", FIRST), ("again", FIRST), ("other", OTHER)):
        assert told[name] == str(state_hash(state(run, frame)))
    assert told["t"] == run.t[FIRST]
    live: Live = live_of_run(run, {})
    live.load_state(live.save_state()[:16] + states(run)[FIRST].tobytes())
    for _ in range(ON):
        live.step()
    assert told["on"] == live.hash()
    assert len({told[name] for name in ("first", "on", "struck", "dull")}) == 4
    assert not told["followed"]  # the replay does not hear what the game is told
    # somebody else opens the address
    end: dict[str, Any] = {}
    for _ in range(5):  # a browser may end before it has compiled the world
        end = said(chromium(tmp_path, f"{page.as_uri()}{told['address']}", "--dump-dom", milliseconds=LONG), "state")
        if "hash" in end:
            break
    assert end["hash"] == told["dull"]
    assert not end["playing"]
