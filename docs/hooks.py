"""What `mkdocs build` does beside its own: the site is the repository as it lies, its texts where they lie in it.

A link to a program leads to a page that shows it. Some pages can be had as notebooks.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from gallery import gallery
from mkdocs.structure.files import File, Files
from notebooks import PAGES, notebook

ROOT = Path(__file__).parents[1]
CODE = re.compile(r"\]\(([\w./]+\.(?:py|c))\)")
ASIDE = "---\nsearch: {exclude: true}\n---\n"  # not found by search

_gallery = cache(gallery)  # `mkdocs serve` builds again and again


def on_files(files: Files, *, config: Any) -> Files:
    """The pages in the place of those that mkdocs found."""
    for file in [file for file in files if file.src_dir == config.docs_dir]:
        files.remove(file)
    made: dict[str, str | bytes] = dict(_gallery())
    for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")):
        text = path.read_text()
        page = CODE.sub(r"](\1.md)", text)
        if path.stem in PAGES:
            book = f"{path.stem}.ipynb"
            made[f"docs/{book}"] = notebook(text)
            page = page.replace("\n", f"\n\n[This page as a Jupyter notebook]({book}){{download={book}}}\n", 1)
        made[str(path.relative_to(ROOT))] = page
        for program in CODE.findall(text):
            source = (path.parent / program).resolve()
            name = str(source.relative_to(ROOT))
            made[f"{name}.md"] = f"{ASIDE}# `{name}`\n\n~~~~ {source.suffix[1:]}\n{source.read_text()}~~~~\n"
    for path in (ROOT / "LICENSE", *ROOT.glob("docs/*.png"), *ROOT.glob("docs/*.svg"), *ROOT.glob("docs/web/*")):
        made[str(path.relative_to(ROOT))] = path.read_bytes()
    for name, content in made.items():
        files.append(File.generated(config, name, content=content))
    return files
