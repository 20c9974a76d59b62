"""Notebooks of the site's pages: of nbformat's form, and with the code that the tests of the pages run."""

import json
import re
import runpy
from pathlib import Path

import pytest

from carom.tests.test_readme import blocks

ROOT = Path(__file__).parents[1]
MADE = runpy.run_path(str(ROOT / "docs" / "notebooks.py"))


@pytest.fixture(params=MADE["PAGES"])
def both(request):
    """A page, and its notebook."""
    page = (ROOT / "docs" / f"{request.param}.md").read_text()
    return page, json.loads(MADE["notebook"](page))


def test_it_has_the_form_of_version_4_5(both) -> None:
    _, book = both
    assert set(book) == {"nbformat", "nbformat_minor", "metadata", "cells"}
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)
    assert set(book["metadata"]["kernelspec"]) >= {"name", "display_name"}
    of_every = {"cell_type": str, "id": str, "metadata": dict, "source": str}
    of_kind = {"markdown": {}, "code": {"execution_count": type(None), "outputs": list}}
    for cell in book["cells"]:
        form = of_every | of_kind[cell["cell_type"]]
        assert set(cell) == set(form)
        assert all(isinstance(cell[name], kind) for name, kind in form.items())
        assert re.fullmatch(r"[\w-]{1,64}", cell["id"], re.ASCII)
        assert cell["source"].strip("\n") == cell["source"] != ""
    assert len({cell["id"] for cell in book["cells"]}) == len(book["cells"])


def test_its_code_is_that_of_the_page(both) -> None:
    page, book = both
    code = [cell["source"] + "\n" for cell in book["cells"] if cell["cell_type"] == "code"]
    assert code == blocks("python", page)
    assert len(code) > 2


def words(text: str) -> list[str]:
    return [word for word in text.split() if not word.startswith("```")]


def test_its_text_is_that_of_the_page_without_links_to_the_site(both) -> None:
    page, book = both
    for name, to in re.findall(r"\[([^]]+)\]\(([^)]+)\)", page):
        assert not to.startswith("http")  # those would stay
        page = page.replace(f"![{name}]({to})", name).replace(f"[{name}]({to})", name)
    assert words("\n".join(cell["source"] for cell in book["cells"])) == words(page)
