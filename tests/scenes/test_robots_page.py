"""The URDF part of docs/robots.md: its code runs, and its table has every option."""

import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from carom.scenes.formats.urdf import import_urdf

PAGE = (Path(__file__).parents[2] / "docs" / "robots.md").read_text().partition("## MJCF")[0]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.slow  # half a minute of compiling
def test_code_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("hopper.urdf").write_text(blocks("xml")[0])
    names: dict[str, Any] = {}
    exec("\n".join(blocks("python")), names)
    assert 'link "body" (the root): free' in capsys.readouterr().out
    np.testing.assert_allclose(names["state"].q, (0, 0, 0.23, 1, 0, 0, 0, 0.1), atol=1e-12)
    result = names["result"]
    assert result.code == 0
    np.testing.assert_allclose(result.q[-1, :8], names["state"].q, atol=1e-6)  # rest closes gaps to the band's order
    assert float(result.q[-1, 10]) < 0.2  # the ball has fallen


def test_every_option_is_told():
    options = [name for name, p in inspect.signature(import_urdf).parameters.items() if p.kind is p.KEYWORD_ONLY]
    table = re.findall(r"^\| `(\w+)=", PAGE, flags=re.MULTILINE)
    assert sorted(set(table)) == sorted(options)
