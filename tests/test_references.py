"""`docs/references.md` and the code cite each other: entries that exist, and tests that are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "references.md").read_text()
ENTRIES = re.findall(r"(?m)^### (.+)$", PAGE)
FOLDERS = ("engine", "collision", "contact", "integrators", "scenes", "tests", "bench")
TEXTS = {path: path.read_text() for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))}


def test_what_the_code_cites_is_an_entry() -> None:
    for path, text in TEXTS.items():
        if path == Path(__file__).resolve():
            continue
        for cited in re.findall(r"references\.md, ([^\n]+)", text):
            assert any(cited.startswith(entry) for entry in ENTRIES), f"{path}: {cited}"


def test_every_entry_is_held_by_tests_that_exist() -> None:
    for entry in re.split(r"(?m)^### ", PAGE)[1:]:
        tests = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", entry)
        assert tests, entry.splitlines()[0]
        for file, name in tests:
            assert f"def {name}(" in TEXTS[ROOT / file], f"{file}::{name}"
