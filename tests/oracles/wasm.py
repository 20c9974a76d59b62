"""A function as WebAssembly, run by node: arguments put in their places in memory, results taken from theirs."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

from carom.engine.native.code import lane_text
from carom.engine.native.flushed import flush_denormals
from carom.engine.native.portable import link_objects
from carom.engine.native.program import Program
from carom.engine.native.wasm import TARGET, module_of

NODE = shutil.which("node")
RUN = """
const fs = require("fs"), told = JSON.parse(fs.readFileSync(process.argv[2]));
const { memory, run } = new WebAssembly.Instance(new WebAssembly.Module(fs.readFileSync(told.module))).exports;
memory.grow(Math.ceil((told.arena + 65536) / 65536));
const bytes = new Uint8Array(memory.buffer);
for (const [place, file] of told.inputs) bytes.set(fs.readFileSync(file), told.heap + place);
run(told.heap);
for (const [place, size, file] of told.outputs) {
  fs.writeFileSync(file, bytes.slice(told.heap + place, told.heap + place + size));
}
"""


def answers(function: Callable[..., Any], *args: Any) -> list[np.ndarray]:
    """What the function, which returns a list, answers. Denormal arguments count as 0."""
    given = [_without_denormals(np.asarray(x)) for x in args]
    avals = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in given]
    closed = Program("of a test", function, avals, (0,) * len(avals), None).closed_jaxpr
    lane = lane_text(closed, (0,) * len(avals))
    outside = "define void @run(ptr %A) {\n  call void @lane(ptr %A)\n  ret void\n}"
    made = module_of(link_objects([flush_denormals(f"{lane.text}\n{outside}")], TARGET), ["run"])
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "module").write_bytes(made.code)
        (folder / "run.cjs").write_text(RUN)
        told: dict[str, Any] = {"module": str(folder / "module"), "heap": made.heap, "arena": lane.arena}
        told["inputs"], told["outputs"] = [], []
        for k, (x, (at, size)) in enumerate(zip(given, lane.inputs, strict=True)):
            (folder / f"in{k}").write_bytes(x.tobytes())
            told["inputs"] += [[at, str(folder / f"in{k}")]] if size else []
        told["outputs"] = [[at, size, str(folder / f"out{k}")] for k, (at, size) in enumerate(lane.outputs)]
        (folder / "told").write_text(json.dumps(told))
        subprocess.run([str(NODE), str(folder / "run.cjs"), str(folder / "told")], check=True)
        found = [(folder / f"out{k}").read_bytes() for k in range(len(lane.outputs))]
    return [np.frombuffer(x, a.dtype).reshape(a.shape) for x, a in zip(found, closed.out_avals, strict=True)]


def _without_denormals(x: np.ndarray) -> np.ndarray:
    if x.dtype.kind != "f":
        return x
    return np.where(np.abs(x) < np.finfo(x.dtype).tiny, np.copysign(np.zeros_like(x), x), x)
