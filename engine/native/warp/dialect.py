"""How the things that only a warp knows are written: for a GPU, or for who runs a warp in its place (the tests)."""

from __future__ import annotations

from typing import NamedTuple

from ..runner import Runner


class Dialect(NamedTuple):
    """LLVM's text.

    shuffle: the i32 {x} that thread {source} holds.
    sync: all threads of the warp wait for each other, and see what the others wrote.
    thread: the number of this one, i32.
    warp: instructions that set %warp, i64: the warp's number.
    kernel: what a kernel's definition begins with.
    buffers: the type of its parameter, an array of {count} pointers.
    head: declarations, the attributes of functions, #0, and what is to be known of the kernel, `lanes`.
    functions: of C's library, which the target has.
    """

    shuffle: str
    sync: str
    thread: str
    warp: tuple[str, ...]
    kernel: str
    buffers: str
    head: str
    functions: tuple[str, ...] = ()


# behind the branch back of a loop: assemblers would make many times as much of it
NO_UNROLLING = '!0 = distinct !{!0, !1}\n!1 = !{!"llvm.loop.unroll.disable"}'

NVIDIA = Dialect(
    "call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 -1, i32 {x}, i32 {source}, i32 31)",
    "call void @llvm.nvvm.bar.warp.sync(i32 -1)",
    "call i32 @llvm.nvvm.read.ptx.sreg.laneid()",
    (
        "%block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()",
        "%wide = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()",
        "%place = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()",
        "%first = mul i32 %block, %wide",
        "%all = add i32 %first, %place",
        "%number = lshr i32 %all, 5",
        "%warp = zext i32 %number to i64",
    ),
    "ptx_kernel void",
    "ptr byval([{count} x ptr])",
    """declare i32 @llvm.nvvm.shfl.sync.idx.i32(i32, i32, i32, i32)
declare void @llvm.nvvm.bar.warp.sync(i32)
declare i32 @llvm.nvvm.read.ptx.sreg.laneid()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
attributes #0 = { nounwind noinline "denormal-fp-math"="preserve-sign,preserve-sign" }
; one warp a block, so many on a multiprocessor: 65536 registers among their threads
!nvvm.annotations = !{!2}
!2 = !{ptr @lanes, !"maxntidx", i32 32, !"minctasm", i32 WARPS}""",
)


def nvidia(runner: Runner) -> Dialect:
    """Threads that share a lane have 64 registers each: 32 warps run at once. Those with a lane each have 128."""
    return NVIDIA._replace(head=NVIDIA.head.replace("WARPS", "16" if runner is Runner.THREAD else "32"))
