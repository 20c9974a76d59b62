"""Object code for other machines than this one, for exported worlds.

A lane's text does not depend on the machine. Each operation rounds by IEEE 754 and none is contracted or reordered, so
every processor computes the same bits; the width of its vectors changes only the time.
"""

from __future__ import annotations

import difflib
import re
import subprocess
import sys
from typing import Any, NamedTuple

from .machine import level, llvm

MODE = 0x9FC0  # of x86's vector unit: to nearest, no traps, denormals count as 0
FLUSH = 1 << 24  # of AArch64's FPCR: the same
# functions that LLVM takes from C's library if a processor lacks the instruction; all of them are exact
EXACT = ("floor", "ceil", "trunc", "round", "roundeven", "rint")
# functions of C's library that are not the same everywhere
INEXACT = ("fmod", "erf")


class Target(NamedTuple):
    """triple: LLVM's name of the machine.  cpu: the minimum processor, by LLVM's name.  features: its other features.
    library: file name of a static library, {} for its name.  reloc: "pic" if code may be at any address, or not."""

    triple: str
    cpu: str
    features: str = ""
    library: str = "lib{}.a"
    reloc: str = "pic"


X86 = "x86-64-v3"  # with AVX2: processors since 2013 to 2015
TARGETS = {
    "x86_64-linux": Target("x86_64-unknown-linux-gnu", X86),
    "aarch64-linux": Target("aarch64-unknown-linux-gnu", "generic"),
    "x86_64-windows": Target("x86_64-pc-windows-msvc", X86, library="{}.lib"),
    "aarch64-windows": Target("aarch64-pc-windows-msvc", "generic", library="{}.lib"),
    "x86_64-macos": Target("x86_64-apple-macosx11.0.0", X86),
    "aarch64-macos": Target("arm64-apple-macosx11.0.0", "apple-m1"),
    "x86_64-android": Target("x86_64-linux-android21", "x86-64-v2"),
    "aarch64-android": Target("aarch64-linux-android21", "generic"),
}


FAMILIAR = "x86-64-v2", "x86-64-v3", "x86-64-v4", "generic", "cortex-a72", "neoverse-n1", "apple-m1"  # processors
# lists the processors of a machine, then compiles for one: LLVM ends the process if it cannot
PROBE = """
import sys
import llvmlite.binding as binding
triple, cpu = sys.argv[1:]
binding.initialize_all_targets()
binding.initialize_all_asmprinters()
target = binding.Target.from_triple(triple)
target.create_target_machine(cpu="help")
module = binding.parse_assembly("define void @f() { ret void }")
module.triple = triple
target.create_target_machine(cpu=cpu).emit_object(module)
"""


def this_machine() -> str:
    """The name of this machine's target."""
    triple = llvm().get_default_triple()
    machine = "aarch64" if triple.startswith(("aarch64", "arm64")) else triple.partition("-")[0]
    system = next((s for s in ("windows", "macos", "android") if s in triple.replace("darwin", "macos")), "linux")
    return f"{machine}-{system}"


def check_cpu(target: Target, cpu: str) -> None:
    """Refuse a processor that LLVM has no code for: it would end this process, or be ignored silently."""
    command = [sys.executable, "-c", PROBE, target.triple, cpu]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    names = re.findall(r"^ +(\S+) +- Select the \1 processor", done.stderr, re.M)
    if done.returncode or cpu not in names:
        near = difflib.get_close_matches(cpu, names, 5)
        few = dict.fromkeys([*near, *(name for name in FAMILIAR if name in names)])
        machine = target.triple.partition("-")[0]
        raise ValueError(f"cpu: LLVM has no processor {cpu!r} of {machine}: give {', '.join(few)} ..., or leave it out")


def objects(texts: dict[str, str], target: Target, cpu: str | None = None) -> dict[str, bytes]:
    """Object code of each of these texts.  cpu: another processor than the target's minimum."""
    machine = _machine(target, cpu)
    return {name: _object(_parse(text), machine) for name, text in texts.items()}


def link_objects(texts: list[str], target: Target) -> bytes:
    """Link texts into one file of object code."""
    machine, first = _machine(target, None), _parse(texts[0])
    for text in texts[1:]:
        first.link_in(_parse(text))
    return _object(first, machine)


def _machine(target: Target, cpu: str | None) -> Any:
    binding = llvm()
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    return binding.Target.from_triple(target.triple).create_target_machine(
        cpu=cpu or target.cpu, features=target.features, opt=level(), reloc=target.reloc, codemodel="small"
    )


def _parse(text: str) -> Any:
    module = llvm().parse_assembly(text)
    module.verify()
    return module


def _object(module: Any, machine: Any) -> bytes:
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    return machine.emit_object(module)


def library_functions(code: bytes, names: tuple[str, ...] = EXACT) -> list[str]:
    """The functions of C's mathematics library, of those named, that object code calls."""
    symbols = {m[1].decode() for m in re.finditer(rb"(?<![\w.])_?([a-z]+)f?\x00", code)}
    return [name for name in names if name in symbols or f"{name}f" in symbols]


class FloatMode(NamedTuple):
    """Instructions before and after a computation, and their declarations: the caller's modes of rounding, trapping
    and denormals are saved, and restored."""

    before: list[str]
    after: list[str]
    declared: list[str]


def float_mode(triple: str) -> FloatMode:
    """The float mode of a machine."""
    if triple.startswith("x86_64"):
        return FloatMode(
            [
                "  %mode.old = alloca i32", "  %mode.new = alloca i32",
                "  call void @llvm.x86.sse.stmxcsr(ptr %mode.old)", f"  store i32 {MODE}, ptr %mode.new",
                "  call void @llvm.x86.sse.ldmxcsr(ptr %mode.new)",
            ],
            ["  call void @llvm.x86.sse.ldmxcsr(ptr %mode.old)"],
            ["declare void @llvm.x86.sse.stmxcsr(ptr)", "declare void @llvm.x86.sse.ldmxcsr(ptr)"],
        )  # fmt: skip
    if triple.startswith(("aarch64", "arm64")):
        return FloatMode(
            ["  %mode.old = call i64 @llvm.aarch64.get.fpcr()", f"  call void @llvm.aarch64.set.fpcr(i64 {FLUSH})"],
            ["  call void @llvm.aarch64.set.fpcr(i64 %mode.old)"],
            ["declare i64 @llvm.aarch64.get.fpcr()", "declare void @llvm.aarch64.set.fpcr(i64)"],
        )
    return FloatMode([], [], [])
