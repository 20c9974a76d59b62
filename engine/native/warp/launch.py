"""The function that XLA calls on a GPU: it runs on the host, and launches the kernel on XLA's stream.

It is machine code of this machine, like that of `handler.py`. The kernel's buffers are the arguments and results of the
call in order, the last result being the scratch: one row per block, each with room for all its warps.
"""

from __future__ import annotations

from ..arena import THREADS
from ..handler import API, ARGS, CONTEXT, DATA, METADATA, RESULTS
from .driver import MOST_DEVICES

_DIMENSIONS = 40  # offset: of a buffer
_ERROR, _STREAM = 48, 80  # of the interface's functions
_INTERNAL = 13  # kind of error


def launch_text(arguments: int, results: int) -> str:
    """LLVM's text: `launched`, and `set_function(device, function)`. The layout and the scratch are counted too."""
    count = arguments + results
    lines = [
        f"@functions = internal global [{MOST_DEVICES} x ptr] zeroinitializer",
        *(f'@said{k} = internal constant [{len(said) + 1} x i8] c"{said}\\00"' for k, said in enumerate(_SAID)),
        "declare i32 @cuCtxGetDevice(ptr)",
        "declare i32 @cuMemsetD32Async(ptr, i32, i64, ptr)",
        "declare i32 @cuLaunchKernel(ptr, i32, i32, i32, i32, i32, i32, i32, ptr, ptr, ptr)",
        "define void @set_function(i64 %device, ptr %function) {",
        f"  %slot = getelementptr [{MOST_DEVICES} x ptr], ptr @functions, i64 0, i64 %device",
        "  store ptr %function, ptr %slot", "  ret void", "}",
        "define ptr @launched(ptr %frame) {",
        "entry:",
        f"  %buffers = alloca [{count} x ptr]", "  %parameters = alloca [1 x ptr]",
        "  %stream.args = alloca [4 x i64]", "  %error.args = alloca [4 x i64]", "  %device = alloca i32",
        *METADATA,
        "start:",
        f"  %api.p = getelementptr i8, ptr %frame, i64 {API}", "  %api = load ptr, ptr %api.p",
        f"  %context.p = getelementptr i8, ptr %frame, i64 {CONTEXT}", "  %context = load ptr, ptr %context.p",
        f"  %ap = getelementptr i8, ptr %frame, i64 {ARGS}", "  %args = load ptr, ptr %ap",
        f"  %rp = getelementptr i8, ptr %frame, i64 {RESULTS}", "  %results = load ptr, ptr %rp",
        *(line for k in range(count) for line in _buffer(k, arguments)),
        f"  %dims.p = getelementptr i8, ptr %f{count - 1}, i64 {_DIMENSIONS}", "  %dims = load ptr, ptr %dims.p",
        "  %blocks.long = load i64, ptr %dims", "  %blocks = trunc i64 %blocks.long to i32",
        "  %warps.p = getelementptr i64, ptr %dims, i64 1", "  %warps.long = load i64, ptr %warps.p",
        "  %warps = trunc i64 %warps.long to i32", f"  %threads = mul i32 %warps, {THREADS}",
        # the stream
        "  store i64 32, ptr %stream.args",
        "  %s1 = getelementptr i64, ptr %stream.args, i64 1", "  store i64 0, ptr %s1",
        "  %s2 = getelementptr i64, ptr %stream.args, i64 2", "  store ptr %context, ptr %s2",
        "  %s3 = getelementptr i64, ptr %stream.args, i64 3",
        f"  %stream.p = getelementptr i8, ptr %api, i64 {_STREAM}", "  %stream.f = load ptr, ptr %stream.p",
        "  %wrong = call ptr %stream.f(ptr %stream.args)",
        "  %there = icmp eq ptr %wrong, null",
        "  br i1 %there, label %find, label %refused",
        "refused:", "  ret ptr %wrong",
        # the kernel of this device
        "find:",
        "  %stream = load ptr, ptr %s3",
        "  %r0 = call i32 @cuCtxGetDevice(ptr %device)",
        "  %number = load i32, ptr %device",
        f"  %beyond = icmp uge i32 %number, {MOST_DEVICES}",
        "  %lost = icmp ne i32 %r0, 0",
        "  %none = or i1 %beyond, %lost",
        "  br i1 %none, label %no.device, label %look",
        "no.device:", "  br label %fail",
        "look:",
        "  %at = zext i32 %number to i64",
        f"  %slot = getelementptr [{MOST_DEVICES} x ptr], ptr @functions, i64 0, i64 %at",
        "  %function = load ptr, ptr %slot",
        "  %unloaded = icmp eq ptr %function, null",
        "  br i1 %unloaded, label %no.kernel, label %clear",
        "no.kernel:", "  br label %fail",
        # no lane is taken yet
        "clear:",
        f"  %r1 = call i32 @cuMemsetD32Async(ptr %d{count - 1}, i32 0, i64 1, ptr %stream)",
        "  %not.cleared = icmp ne i32 %r1, 0",
        "  br i1 %not.cleared, label %no.memset, label %launch",
        "no.memset:", "  br label %fail",
        "launch:",
        "  store ptr %buffers, ptr %parameters",
        "  %r2 = call i32 @cuLaunchKernel(ptr %function, i32 %blocks, i32 1, i32 1, i32 %threads, i32 1, i32 1, i32 0,"
        " ptr %stream, ptr %parameters, ptr null)",
        "  %not.launched = icmp ne i32 %r2, 0",
        "  br i1 %not.launched, label %no.launch, label %end",
        "no.launch:", "  br label %fail",
        "end:", "  ret ptr null",
        "fail:",
        "  %said = phi ptr [ @said0, %no.device ], [ @said1, %no.kernel ],"
        " [ @said2, %no.memset ], [ @said3, %no.launch ]",
        "  store i64 32, ptr %error.args",
        "  %x1 = getelementptr i64, ptr %error.args, i64 1", "  store i64 0, ptr %x1",
        "  %x2 = getelementptr i64, ptr %error.args, i64 2", "  store ptr %said, ptr %x2",
        "  %x3 = getelementptr i64, ptr %error.args, i64 3", f"  store i64 {_INTERNAL}, ptr %x3",
        f"  %error.p = getelementptr i8, ptr %api, i64 {_ERROR}", "  %error.f = load ptr, ptr %error.p",
        "  %error = call ptr %error.f(ptr %error.args)",
        "  ret ptr %error", "}",
    ]  # fmt: skip
    return "\n".join(lines)


_SAID = (
    "carom: the driver does not say which GPU this is",
    "carom: the kernel is not on this GPU",
    "carom: the driver refused to clear the counter of lanes",
    "carom: the driver refused to launch the kernel",
)


def _buffer(k: int, arguments: int) -> list[str]:
    table, number = ("%args", k) if k < arguments else ("%results", k - arguments)
    return [
        f"  %b{k} = getelementptr ptr, ptr {table}, i64 {number}", f"  %f{k} = load ptr, ptr %b{k}",
        f"  %g{k} = getelementptr i8, ptr %f{k}, i64 {DATA}", f"  %d{k} = load ptr, ptr %g{k}",
        f"  %o{k} = getelementptr ptr, ptr %buffers, i64 {k}", f"  store ptr %d{k}, ptr %o{k}",
    ]  # fmt: skip
