"""Chromium without a window, for the tests that look at pages."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
LONG = 120_000  # [ms] of the clock of a page that simulates: it runs ahead while WebAssembly is compiled
needs_browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine, which shows pages to the test")


def chromium(folder: Path, address: str, *more: str, milliseconds: int = 4000) -> str:
    """What Chromium says of a page, opened without a network and drawn by the processor.

    milliseconds: of the page's own clock, that it is given.
    """
    flags = [
        "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
        "--disable-background-networking", "--disable-component-update", "--use-angle=swiftshader",
        "--enable-unsafe-swiftshader", "--hide-scrollbars", "--window-size=900,600",
        f"--virtual-time-budget={milliseconds}", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        f"--user-data-dir={folder / 'profile'}",
    ]  # fmt: skip
    done = subprocess.run([str(BROWSER), *flags, *more, address], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def said(text: str, name: str) -> Any:
    """The attribute data-`name` that a page has written into its document."""
    found = re.search(rf'data-{name}="([^"]*)"', text)
    assert found is not None, re.findall(r'data-error="[^"]*"', text)
    return json.loads(html.unescape(found[1]))
