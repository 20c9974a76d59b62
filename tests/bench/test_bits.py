"""What `python -m bench.run bits` makes of runs, which `tests/engine/native/test_same_bits.py` makes for itself."""

import dataclasses

import pytest

from carom.bench import bits
from carom.tests.oracles.bits import FIELDS, HERE, X86, Bits

SAME = Bits({name: 64 * "a" for name in FIELDS}, impacts=7, ticks=100, cpu_seconds=0.001)
OTHER = dataclasses.replace(SAME, digests={**SAME.digests, "v": 64 * "b"})


@pytest.mark.parametrize(("there", "status"), [(SAME, 0), (OTHER, 1)])
def test_other_bits_are_told(
    there: Bits, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bits, "missing", lambda processor: "avx2" if processor == X86[1] else "")
    monkeypatch.setattr(bits, "bits_of", lambda scene, seconds, processor=HERE: there if processor == X86[2] else SAME)
    assert bits.suite(["stack"]) == status
    rows = capsys.readouterr().out.splitlines()
    lines = {name: next(row for row in rows if f" {name} " in row) for name in (HERE, *X86)}
    assert [name for name, line in lines.items() if "!" in line] == ([X86[2]] if status else [])
    assert "not run: this machine has no avx2" in lines[X86[1]]
