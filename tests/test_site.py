"""The site: it is built without a warning, needs nothing from elsewhere, shows every scene, and is searched offline."""

import html
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from carom.scenes.library.registry import CHAINS, SCENES
from carom.tests.scenes.browser import chromium, needs_browser

ROOT = Path(__file__).parents[1]
PLAYED = "pendulum"

pytest.importorskip("material", reason="mkdocs-material is not installed")
pytestmark = pytest.mark.slow


def build(folder: Path, play: str) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"PLAY": play}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    built = build(folder, PLAYED)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


class Loaded(HTMLParser):
    """Addresses of what a browser loads with a page: all but links to follow."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = ("src", "srcset", "data", "poster", "href") if tag != "a" else ()
        self.found += [value for name, value in attrs if name in names and value]


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    loaded = {page: Loaded(page).found for page in pages}
    assert min(len(found) for page, found in loaded.items() if page.parent.name != "gallery") > 3
    for page, found in loaded.items():
        assert [a for a in found if re.match(r"\w+:(?!image/)|//", a)] == [], page
        assert "mermaid" not in re.findall(r'class="([\w ]+)"', page.read_text()), page  # it would come from elsewhere
    styles = [style.read_text() for style in site.rglob("*.css")]
    assert len(styles) > 1
    assert not re.findall(r"(?:@import|url\()\s*[\"']?(?:https?:)?//[^)]*", "".join(styles))


def test_every_page_has_its_place(site: Path) -> None:
    home = (site / "index.html").read_text()
    for page in (*ROOT.glob("docs/*.md"), ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"):
        assert f'href="{page.relative_to(ROOT).with_suffix(".html")}" class="md-nav__link"' in home, page


@pytest.mark.parametrize("page", ["tour", "batches", "chains"])
def test_a_notebook_can_be_had(site: Path, page: str) -> None:
    file = f"{page}.ipynb"
    assert f'<a download="{file}" href="{file}">' in (site / "docs" / f"{page}.html").read_text()
    assert json.loads((site / "docs" / file).read_text())["nbformat"] == 4


def test_every_scene_is_in_the_gallery(site: Path) -> None:
    text = (site / "gallery.html").read_text()
    shown = re.findall(r'src="gallery/(\w+)\.png"', text)
    assert shown == list(SCENES | CHAINS)
    for name, entry in (SCENES | CHAINS).items():
        assert f"<code>{name}</code></strong>: {html.escape(entry.description, quote=False)}</p>" in text
        assert (site / "gallery" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert set(re.findall(r'href="gallery/(\w+)\.html"', text)) == {PLAYED}
    assert '<script type="application/json" id="recording">' in (site / "gallery" / f"{PLAYED}.html").read_text()


@needs_browser
def test_search_works_in_a_file(site: Path, tmp_path: Path) -> None:
    found = chromium(tmp_path, f"{(site / 'index.html').as_uri()}?q=restitution", "--dump-dom", milliseconds=15000)
    assert re.search(r"\d\d matching documents", found)
    assert 'href="docs/physics.html' in found.partition("md-search-result__list")[2]


def test_a_scene_that_is_not_there_is_said_not_to_be(tmp_path: Path) -> None:
    built = build(tmp_path, "pendulums")
    assert built.returncode != 0
    assert "PLAY: the library has no pendulums: `carom list` names its scenes" in built.stderr
