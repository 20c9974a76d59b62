"""What `python -m bench.run gpu` says, on the device that is here, and what it makes of wrong answers."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

from carom.bench import gpu


def test_lanes_are_compared_first_then_timed(capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu.suite(["bouncing_ball"], sizes=(2, 4), seconds=0.3, checked=2) == 0
    rows = capsys.readouterr().out.splitlines()
    assert rows[0].startswith(f"{jax.devices()[0].device_kind}, jax ")
    assert "30/30" in rows[2]
    assert "{0: 2}" in rows[2]
    assert "{0: 4}" in rows[3]
    assert rows[-1] == "the CPU's bits"


def test_other_bits_are_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    drawn = iter(range(10))
    monkeypatch.setattr(gpu, "rollout", lambda case, state, own=gpu.rollout: own(case, _moved(state, next(drawn))))
    assert gpu.suite(["bouncing_ball"], sizes=(), seconds=0.05, checked=2) == 1
    assert "not the CPU's bits" in capsys.readouterr().out


def _moved(state, k):
    return jax.tree.map(lambda x: x + 1e-6 * k if jnp.issubdtype(x.dtype, jnp.floating) else x, state)
