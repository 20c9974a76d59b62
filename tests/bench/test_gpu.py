"""What `python -m bench.run gpu` says, on the device that is here; what it makes of wrong answers, and of what was
prepared."""

from __future__ import annotations

import json
import lzma
import os
from pathlib import Path

import jax
import numpy as np
import pytest

from carom.bench import gpu, gpu_cases, prepared
from carom.engine.native.warp import code
from carom.engine.native.warp.driver import LoadedKernel
from carom.tests.oracles.gpu import as_on_gpu, forget_kernels

SECONDS = 0.05
SCENE = "bouncing_ball"


def rows(capsys: pytest.CaptureFixture[str]) -> list[dict]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_lanes_are_compared_first_then_timed(capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu.alone(SCENE, (2, 4), SECONDS, None) == 0
    about, compared, two, four, energy = rows(capsys)
    assert about["device"] == jax.devices()[0].device_kind
    assert compared["right"]
    assert compared["same"] == compared["of"] == 30
    assert (two["lanes"], two["codes"]) == (2, {"OK": 2})
    assert four["lanes"] == 4
    assert four["ticks"] > 0
    assert abs(energy["energy_gained"]) < 1e-4


def test_other_bits_are_told() -> None:
    answers = [np.zeros(3), np.array([1.0, np.nan])]
    assert gpu.compare({"a": answers[0], "b": answers[1]}, answers)["right"]
    told = gpu.compare({"a": answers[0] + [0, 0, 0.5], "b": answers[1]}, answers)
    assert not told["right"]
    assert told["differ"] == {"['a']": (1, 0.5)}


@pytest.mark.slow
def test_a_scene_that_fails_leaves_the_others(capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    root = Path(gpu.__file__).parents[1]
    monkeypatch.chdir(root)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")]))
    assert gpu.suite([SCENE, "no such scene"], (2,), SECONDS, None, ["--dtype", "f32"]) == 1
    out = capsys.readouterr().out
    assert f"| {SCENE} | 2 |" in out
    assert "no such scene: ended with 1" in out


def test_what_was_prepared_is_what_the_driver_is_given(monkeypatch, tmp_path) -> None:
    """The kernels by what was assembled of them, the answers number by number."""
    monkeypatch.setenv("CAROM_CACHE", "off")
    monkeypatch.setattr(prepared, "_assemble", lambda _, ptx, file: file.write_bytes(_shortened(ptx)))
    monkeypatch.setattr("carom.tests.oracles.ptxas.assembler", lambda: Path("ptxas"))
    with as_on_gpu():
        one = gpu_cases.case(SCENE, SECONDS)
        forget_kernels(one.run, one.lanes(gpu_cases.CHECKED))
    assert prepared.prepare([SCENE], SECONDS, tmp_path) == 0

    given: list[bytes] = []
    monkeypatch.setattr(code, "load", lambda program, *_: given.append(program) or [LoadedKernel(1, 4, 1, 1 << 36)])
    monkeypatch.setattr(code, "driver", lambda: _Driver())
    one = gpu_cases.load_case(SCENE, tmp_path)
    with as_on_gpu(), prepared.kernels_of(tmp_path) as known:
        forget_kernels(one.run, one.lanes(gpu_cases.CHECKED))
        jax.jit(one.run).trace(one.lanes(gpu_cases.CHECKED)).lower(lowering_platforms=("cuda",))
    assert known
    assert all(known.values())
    assert given
    assert all(program.startswith(b"short //") for program in given)
    assert len(prepared.answers(SCENE, tmp_path)) == 30


def _shortened(ptx: bytes) -> bytes:
    return lzma.compress(b"short " + ptx.lstrip()[:100])


class _Driver:
    """Has functions at no place."""

    def __getattr__(self, name: str) -> int:
        return 0
