"""The page: one file that needs nothing else, holds the recording, and shows it in a browser."""

import base64
import json
import re
import shutil
import subprocess
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from carom.scenes.show import page
from carom.scenes.show.page import write_page
from carom.tests.scenes.browser import chromium, needs_browser
from carom.tests.scenes.drawn import FRAMES, recording

NODE = shutil.which("node")
QUANTUM = 0.5 / page.QUATERNION  # of a quaternion's numbers, by rounding
SINGLE = 1e-6  # relative, of 32-bit numbers


@pytest.fixture(scope="module")
def text(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("page") / "page.html"
    write_page(recording(), path)
    assert [p.name for p in path.parent.iterdir()] == ["page.html"]
    return path.read_text()


def element(text: str, name: str) -> str:
    found = re.search(rf'<script type="application/[a-z-]+" id="{name}">(.*?)</script>', text, re.S)
    assert found is not None
    return found[1]


def opened(text: str):
    """The data, and a function that finds an array in it."""
    data, block = json.loads(element(text, "recording")), zlib.decompress(base64.b64decode(element(text, "arrays")))

    def array(where):
        count = int(np.prod(where["shape"]))
        return np.frombuffer(block, f"<{where['dtype']}", count, where["at"]).reshape(where["shape"])

    return data, array


def test_nothing_outside_the_file_is_needed(text):
    assert not re.findall(r"""https?:|\b(?:src|href)\s*=|@import|url\(|\bimport\s*\(|\bfetch\(|XMLHttpRequest""", text)
    assert "{{" not in text.split("<script>")[0]


def test_a_title_is_text_and_not_html(text):
    assert "<title>two &lt;bodies&gt;</title>" in text
    assert "<bodies>" not in text
    assert opened(text)[0]["title"] == "two <bodies>"


def test_the_page_holds_the_recordings_poses(text):
    run = recording()
    data, array = opened(text)
    assert data["names"] == ["ball", "arm"]
    position, quaternion = array(data["position"]), array(data["quaternion"]) / page.QUATERNION
    assert position.shape == (1, FRAMES, 2, 3)
    np.testing.assert_allclose(array(data["t"]), run.t, rtol=SINGLE)
    np.testing.assert_allclose(position[0, :, 0], run.q[:, :3], rtol=SINGLE, atol=1e-12)
    same = quaternion[0, :, 0] * np.sign((quaternion[0, :, 0] * run.q[:, 3:7]).sum(-1))[:, None]
    np.testing.assert_allclose(same, run.q[:, 3:7], atol=QUANTUM)
    np.testing.assert_allclose(np.abs(array(data["turns"])[0, :, 0]), 1)  # the ball spins faster than frames tell
    assert not array(data["turns"])[0, :, 1].any()


def test_the_page_holds_impacts_in_world_axes(text):
    data, array = opened(text)
    impacts = data["impacts"]
    assert impacts["starts"] == [0, 1]
    np.testing.assert_allclose(array(impacts["point"]), [[0.2, 0, 0]], rtol=SINGLE)
    assert array(impacts["impulse"])[0, 2] == pytest.approx(3.0)
    assert data["owners"][data["pairs"][0][0]] == "ground"


def test_shapes_point_at_their_meshes(text):
    data, array = opened(text)
    assert [shape["link"] for shape in data["shapes"]] == [0, 1]
    for mesh in data["meshes"]:
        assert array(mesh["faces"]).max() < len(array(mesh["vertices"])) == len(array(mesh["normals"]))


def test_a_batch_is_cut_and_says_so(tmp_path):
    write_page(recording(lanes=20), tmp_path / "a.html")
    data, array = opened((tmp_path / "a.html").read_text())
    assert data["lanes"] == list(range(page.LANES))
    assert data["notes"] == ["16 of 20 lanes are in this page"]
    write_page(recording(lanes=20), tmp_path / "b.html", lane=[19, 3], title="chosen")
    data, array = opened((tmp_path / "b.html").read_text())
    assert (data["lanes"], data["title"]) == ([19, 3], "chosen")
    assert array(data["position"])[:, 0, 0, 1].tolist() == [19, 3]


def test_long_runs_are_thinned_and_say_so(tmp_path, monkeypatch):
    monkeypatch.setattr(page, "POSES", 2 * FRAMES // 2)
    write_page(recording(), tmp_path / "a.html")
    data, array = opened((tmp_path / "a.html").read_text())
    assert data["notes"] == ["one frame of 2 is in this page"]
    np.testing.assert_allclose(array(data["t"]), recording().t[::2], rtol=SINGLE)


def test_a_lane_that_stopped_is_told(tmp_path):
    run = recording()
    q, v = run.q.copy(), run.v.copy()
    q[10:], v[10:] = np.nan, np.nan
    write_page(replace(run, q=q, v=v), tmp_path / "a.html")
    assert opened((tmp_path / "a.html").read_text())[0]["notes"] == ["stopped at 0.15 s"]


@pytest.mark.parametrize(
    ("lane", "says"), [(3, "lane is 3; the recording's lanes are 0 to 2"), ([], "0 lanes"), (-1, "lane is -1")]
)
def test_wrong_lanes_are_refused_and_nothing_is_written(tmp_path, lane, says):
    with pytest.raises(ValueError, match=says):
        write_page(recording(lanes=3), tmp_path / "a.html", lane=lane)
    assert not list(tmp_path.iterdir())


# -- in a browser -------------------------------------------------------------------------------------


@pytest.mark.skipif(NODE is None, reason="no node on this machine, which runs the page's scripts")
def test_the_clock_does_not_run_below_the_start():
    """A frame's clock may be behind the page's, as under a virtual clock."""
    web = Path(page.__file__).parent / "web"
    script = (
        "".join((web / f"{name}.js").read_text() for name in ("math", "player"))
        + """
        const player = Object.create(Player.prototype);
        Object.assign(player, { scene: { start: 2, end: 3 }, playing: true, t: 2.1, options: { speed: 1 } });
        player.tick(-0.24);
        const early = player.t;
        player.tick(0.25);
        console.log(JSON.stringify([early, player.t]));"""
    )
    done = subprocess.run([str(NODE), "-e", script], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [2, 2.25]
    assert "seconds = clamp(" in (web / "main.js").read_text()


@needs_browser
@pytest.mark.slow
@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("paused&t=0.2", {"t": 0.2, "frame": 12, "playing": False, "lane": 0, "follow": -1, "wire": False}),
        ("paused&t=0.3&lane=2&mode=grid&wire", {"t": 0.3, "lane": 2, "mode": "grid", "wire": True, "arrows": True}),
        ("paused&t=9&follow=arm&trails=all&theme=dark", {"t": 0.5, "follow": 1, "trails": "all", "theme": "dark"}),
        ("t=0.1&speed=0.25", {"playing": True, "speed": 0.25}),
        ("t=nonsense&lane=99&mode=none&arrows=off&paused", {"t": 0, "lane": 0, "mode": "one", "arrows": False}),
    ],
)  # fmt: skip
def test_the_page_shows_what_its_address_says(tmp_path, address, expected):
    write_page(recording(lanes=3), tmp_path / "page.html")
    text = chromium(tmp_path, f"file://{tmp_path}/page.html#{address}", "--dump-dom")
    assert "data-error" not in text.split(">")[1]
    found = re.search(r'data-state="([^"]*)"', text)
    assert found is not None
    state = json.loads(found[1].replace("&quot;", '"'))
    assert state["ready"]
    assert 0 <= state["t"] <= 0.5
    for name, value in expected.items():
        assert state[name] == pytest.approx(value) if isinstance(value, float) else state[name] == value, name


@needs_browser
@pytest.mark.slow
def test_the_picture_is_drawn_and_changes_with_time(tmp_path):
    image = pytest.importorskip("matplotlib.image")
    write_page(recording(), tmp_path / "page.html")
    pictures = []
    for t in (0.0, 0.3):
        address = f"file://{tmp_path}/page.html#paused&list=off&theme=light&t={t}"
        shot = tmp_path / f"{t}.png"
        chromium(tmp_path, address, f"--screenshot={shot}")
        pictures.append(image.imread(shot)[120:450, 250:, :3])  # without the readouts and controls
    first, second = pictures
    blue = first[..., 2] - first[..., 0]
    assert blue.max() > 0.3  # the ball
    assert first.std() > 0.02  # ground, light and shade
    assert (np.abs(first - second).max(axis=-1) > 0.1).mean() > 0.002  # it has moved
