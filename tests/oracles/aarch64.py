"""Carom's programs as machine code for AArch64, which qemu runs on this machine.

jax traces, and calls, as it always does; in place of code for this processor it calls a process of qemu's, to which it
hands the arguments in a file. Needs, in Debian: apt-get install qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import jax
import numpy as np

from carom.engine.native import assembling, code, handler, machine

COMPILER, EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64"
TRIPLE = "aarch64-linux-gnu"
DRIVER = Path(__file__).with_suffix(".c")


def missing() -> list[str]:
    """What this needs and is not here."""
    return [name for name in (COMPILER, EMULATOR) if shutil.which(name) is None]


@contextlib.contextmanager
def emulated() -> Iterator[None]:
    """Programs that jax compiles meanwhile are AArch64's."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.dict("os.environ", {"CAROM_CACHE": "off"}))
        stack.enter_context(mock.patch.object(code, "target", _target))
        stack.enter_context(mock.patch.object(code.MachineCode, "register", lambda self: _linked(self, Path(folder))))
        stack.enter_context(mock.patch.object(jax.ffi, "ffi_call", _call))
        jax.clear_caches()
        yield
        jax.clear_caches()


def _target() -> Any:
    binding = machine.llvm()
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    return binding.Target.from_triple(TRIPLE).create_target_machine(cpu="generic", opt=machine.level())


def _linked(made: code.MachineCode, folder: Path) -> str:
    """The program's file, in place of the name under which XLA finds it."""
    files = []
    for k, part in enumerate(assembling.unpack(made.code)):
        files.append(folder / f"{made._name}_{k}.o")
        files[-1].write_bytes(part)
    places = {"DATA": handler.DATA, "ARGS": handler.ARGS, "RESULTS": handler.RESULTS}
    options = [f"-D{name}={place}" for name, place in places.items()]
    program = str(folder / made._name)
    subprocess.run([COMPILER, "-O1", "-static", *options, DRIVER, *files, "-lm", "-o", program], check=True)
    return program


def _call(program: str, results: Sequence[Any], input_output_aliases: Mapping[int, int]) -> Callable[..., Any]:
    """As `jax.ffi.ffi_call`."""
    argument_of = {result: argument for argument, result in input_output_aliases.items()}

    def run(*args: Any) -> list[np.ndarray]:
        given = [np.ascontiguousarray(x) for x in args]
        sizes = [x.nbytes for x in given] + [int(np.prod(x.shape)) * x.dtype.itemsize for x in results]
        same = [argument_of.get(k, -1) for k in range(len(results))]
        with tempfile.TemporaryDirectory() as folder:
            file, out = Path(folder) / "in", Path(folder) / "out"
            with file.open("wb") as writer:
                writer.write(np.array([len(given), len(results), *sizes, *same], np.int64).tobytes())
                for x in given:
                    writer.write(x.tobytes())
            subprocess.run([EMULATOR, program, file, out], check=True)
            made, at = out.read_bytes(), 0
        answers = []
        for x, size in zip(results, sizes[len(given) :], strict=True):
            answers.append(np.frombuffer(made[at : at + size], x.dtype).reshape(x.shape))
            at += size
        return answers

    return lambda *args: jax.pure_callback(run, results, *args)
