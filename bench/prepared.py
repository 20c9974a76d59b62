"""Work that is done without the GPU, before one is available: kernels assembled for it, and the CPU's results, in a
folder.

Kernels are identified by their text: if another version of jax writes another text, the driver compiles as usual.
"""

from __future__ import annotations

import contextlib
import hashlib
import lzma
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import numpy as np

from carom.engine.native.warp import code
from carom.engine.native.warp.code import GpuKernel

from .gpu_cases import CHECKED, case

ARCHITECTURE = "sm_90"
_MARK = b"assembled "


def prepare(scenes: list[str], seconds: float, folder: Path) -> int:
    """Fill a folder for `kernels_of` and `answers`."""
    from carom.tests.oracles import ptxas
    from carom.tests.oracles.gpu import as_on_gpu

    assembler = ptxas.assembler()
    if assembler is None:
        raise SystemExit("there is no ptxas: pip install nvidia-cuda-nvcc-cu12")
    folder.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(2) as pool:
        waiting = []
        for name in scenes:
            one = case(name, seconds)
            one.save(folder)
            lanes = one.lanes(CHECKED)
            with _caught() as texts, as_on_gpu():
                jax.jit(one.run).trace(lanes).lower(lowering_platforms=("cuda",))
            ran = jax.jit(one.run)(lanes)
            np.savez_compressed(folder / f"{name}.npz", *map(np.asarray, jax.tree.leaves(ran)))
            for text, ptx in texts.items():
                file = folder / f"{_key(text)}.cubin.xz"
                if not file.exists():
                    waiting.append(pool.submit(_assemble, str(assembler), ptx, file))
            print(f"{name}: {len(texts)} kernels", flush=True)
        for one in waiting:
            print(one.result(), flush=True)
    return 0


def answers(name: str, folder: Path) -> list[np.ndarray]:
    kept = np.load(folder / f"{name}.npz")
    return [kept[f"arr_{k}"] for k in range(len(kept.files))]


@contextlib.contextmanager
def kernels_of(folder: Path | None) -> Iterator[dict[str, bool]]:
    """Use the folder's kernels in this context instead of compiling them; yield whether each came from there."""
    ready: dict[str, bool] = {}
    if folder is None:
        yield ready
        return
    make, load = code.ptx_of, code.load

    def ptx_of(text: str) -> str:
        known = (folder / f"{_key(text)}.cubin.xz").exists()
        ready[_key(text)] = known
        return (_MARK.decode() + _key(text)) if known else make(text)

    def load_prepared(program: bytes, *how: Any) -> Any:
        if program.startswith(_MARK):
            file = folder / f"{program[len(_MARK) :].decode()}.cubin.xz"
            program = lzma.decompress(file.read_bytes())
        return load(program, *how)

    code.ptx_of, code.load = ptx_of, load_prepared
    try:
        yield ready
    finally:
        code.ptx_of, code.load = make, load


@contextlib.contextmanager
def _caught() -> Iterator[dict[str, bytes]]:
    """Yield text and PTX of the kernels that are lowered in this context; none is loaded."""
    texts: dict[str, bytes] = {}
    make, register = code.ptx_of, GpuKernel.register

    def ptx_of(text: str) -> str:
        ptx = make(text)
        texts[text] = ptx.encode()
        return ptx

    code.ptx_of, GpuKernel.register = ptx_of, lambda self: "nowhere"
    try:
        yield texts
    finally:
        code.ptx_of, GpuKernel.register = make, register


def _key(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _assemble(assembler: str, ptx: bytes, file: Path) -> str:
    source, made = file.with_suffix(".ptx"), file.with_suffix(".cubin")
    source.write_bytes(ptx)
    ran = subprocess.run([assembler, f"-arch={ARCHITECTURE}", source, "-o", made], capture_output=True, text=True)
    if ran.returncode:
        return ran.stderr[-2000:]
    code = made.read_bytes()
    file.write_bytes(lzma.compress(code))
    source.unlink()
    made.unlink()
    return f"{file.name}: {len(code) >> 10} KB"
