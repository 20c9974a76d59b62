"""Pages as Jupyter notebooks (nbformat 4.5): the text, and the Python code in between, in cells."""

from __future__ import annotations

import json
import re

PAGES = ("tour", "batches", "chains")
PYTHON = re.compile(r"^```python\n(.*?)\n```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[([^\]]+)\]\((?!https?:)[^)]+\)")  # to the site, which lies elsewhere


def notebook(page: str) -> str:
    """The notebook of a page's Markdown."""
    cells = []
    for k, source in enumerate(PYTHON.split(page)):  # text, code, text, ...
        code, source = k % 2, source if k % 2 else LINK.sub(r"\1", source.strip("\n"))
        of_code = {"execution_count": None, "outputs": []} if code else {}
        kind = "code" if code else "markdown"
        if source:
            cells.append({"cell_type": kind, "id": f"cell-{k}", "metadata": {}, "source": source} | of_code)
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    whole = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel}, "cells": cells}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"
