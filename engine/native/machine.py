"""Machine code from LLVM's text, by llvmlite."""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import os
import sys
from typing import Any

_LIBRARY = {"linux": "libm.so.6", "darwin": "libSystem.B.dylib"}  # a search by name takes half a second


def level() -> int:
    """LLVM's optimization level for instructions and registers, 0 to 2. At 0 compiling takes a third of the time, and
    the code runs 1.4 times as long."""
    return int(os.environ.get("CAROM_NATIVE_LEVEL", "2"))


@functools.cache
def llvm() -> Any:
    import llvmlite.binding as binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    library = ctypes.CDLL(_LIBRARY.get(sys.platform) or ctypes.util.find_library("m"))
    for name in _MATHEMATICS:
        for one in (name, name + "f"):
            binding.add_symbol(one, ctypes.cast(getattr(library, one), ctypes.c_void_p).value)
    binding.add_symbol("carom_native_outside", ctypes.cast(_outside, ctypes.c_void_p).value)
    return binding


OUTSIDE: list[tuple[int, int]] = []  # of code made with CAROM_NATIVE_CHECK: values, and how far from their first byte
_outside = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)(lambda value, far: OUTSIDE.append((value, far)))

_MATHEMATICS = ("fmod", "erf")


def processor() -> tuple[str, str]:
    """The processor that code is made for, and its features: this machine, or CAROM_NATIVE_CPU, e.g. x86-64-v3."""
    named = os.environ.get("CAROM_NATIVE_CPU")
    if named:
        return named, ""
    return llvm().get_host_cpu_name(), llvm().get_host_cpu_features().flatten()


def target() -> Any:
    """The machine that code is made for."""
    cpu, features = processor()
    return (
        llvm()
        .Target.from_default_triple()
        .create_target_machine(cpu=cpu, features=features, opt=level(), codemodel="jitdefault", reloc="static")
    )


def assemble(text: str, machine: Any) -> bytes:
    """Assemble LLVM's text into object code."""
    binding = llvm()
    module = binding.parse_assembly(text)
    if os.environ.get("CAROM_NATIVE_CHECK"):
        module.verify()
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    return machine.emit_object(module)  # LLVM's passes over its own language would gain 2 %


class LoadedCode:
    """Object code in memory, ready to be called. It must be kept as long as anything may call it."""

    def __init__(self, *objects: bytes) -> None:
        binding = llvm()
        empty = binding.parse_assembly("")
        self._engine = binding.create_mcjit_compiler(empty, target())
        for code in objects:
            self._engine.add_object_file(binding.ObjectFileRef.from_data(code))
        self._engine.finalize_object()

    def address(self, name: str) -> int:
        return self._engine.get_function_address(name)

    def call(self, name: str, *numbers: int) -> None:
        """Call a function of integers."""
        ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * len(numbers))(self.address(name))(*numbers)


if __name__ == "__main__":  # a process that helps (`assembling.py`)
    sys.stdout.buffer.write(assemble(sys.stdin.read(), target()))
