"""Who waits at a terminal is told why."""

import io
import time

import pytest

from carom.engine.native import stages


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("takes", "lines"), [(0.0, 0), (0.2, 1)])
def test_a_long_stage_is_told_once(takes, lines, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(stages.sys, "stderr", terminal)
    monkeypatch.setattr(stages, "PATIENCE", 0.05)
    monkeypatch.setattr(stages, "_told", set())
    for name in ("tracing", "translating"):
        with stages.stage("run_lane", name):
            time.sleep(takes)
    assert terminal.getvalue().count("compiling run_lane, once for this kind of scene") == lines


def test_a_file_and_a_watcher_are_not_told(monkeypatch):
    monkeypatch.setattr(stages, "PATIENCE", 0.01)
    monkeypatch.setattr(stages, "_told", set())
    monkeypatch.setattr(stages.sys, "stderr", file := io.StringIO())
    with stages.stage("run_lane", "tracing"):
        time.sleep(0.05)
    monkeypatch.setattr(stages.sys, "stderr", terminal := Terminal())
    with stages.watch_stages(lambda *_: None), stages.stage("run_lane", "tracing"):
        time.sleep(0.05)
    assert file.getvalue() == terminal.getvalue() == ""
