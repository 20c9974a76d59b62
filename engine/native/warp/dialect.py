"""Text specific to a warp: for a GPU, or for a program that runs a warp instead (the tests)."""

from __future__ import annotations

from typing import NamedTuple

from ..runner import Runner


class Dialect(NamedTuple):
    """LLVM's text.

    shuffle: the i32 {x} that thread {source} holds.
    sync: all threads of the warp wait for each other, and see the writes of the others.
    thread: the index of this one, i32.
    warp: instructions that set %warp, i64: the warp's index.
    kernel: the beginning of a kernel's definition.
    buffers: the type of its parameter, an array of {count} pointers.
    head: declarations, the attributes of functions, #0, and the kernel's metadata, `lanes`.
    functions: those of C's library that the target has.
    mark: this warp is at the mark PHASE of COUNT, and waits a while for those of its block that are less than WINDOW
    marks behind.
    begin, end: the first and last instructions of a kernel with marks.
    """

    shuffle: str
    sync: str
    thread: str
    warp: tuple[str, ...]
    kernel: str
    buffers: str
    head: str
    functions: tuple[str, ...] = ()
    mark: str = ""
    begin: tuple[str, ...] = ()
    end: tuple[str, ...] = ()


PHASE, COUNT, WINDOW = "PHASE", "COUNT", "WINDOW"
BLOCK = 32  # warps that may share a block: the number that a multiprocessor runs
# Cycles that a warp waits at a mark, at most. On an H200 with 4224 lanes 80 000 made ragdoll 2.2 times as fast and
# half_cheetah 1.5 times; 20 000 was too short for ragdoll, 400 000 made stack 9 % slower.
PATIENCE = 80_000

# behind the branch back of a loop: assemblers would make it many times as long
NO_UNROLLING = '!0 = distinct !{!0, !1}\n!1 = !{!"llvm.loop.unroll.disable"}'

NVIDIA = Dialect(
    "call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 -1, i32 {x}, i32 {source}, i32 31)",
    "call void @llvm.nvvm.bar.warp.sync(i32 -1)",
    "call i32 @llvm.nvvm.read.ptx.sreg.laneid()",
    (
        "%block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()",
        "%wide = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()",
        "%thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()",
        "%first = mul i32 %block, %wide",
        "%all = add i32 %first, %thread",
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
; threads of a block, and blocks on a multiprocessor: their threads share 65536 registers
!nvvm.annotations = !{!2}
!2 = !{ptr @lanes, !"maxntidx", i32 THREADS, !"minctasm", i32 BLOCKS}""",
)

# Shared by a block: the last mark of each warp, -1 of those that have ended. Thread t checks warp t.
# All read the time before they vote, so they stay together.
_MARK = f"""{{
.reg .pred p, q;
.reg .b32 a, l, w, x, t, u;
mov.u32 a, phases;
mov.u32 w, %tid.x;
and.b32 l, w, 31;
shr.u32 w, w, 5;
mad.lo.u32 l, l, 4, a;
mad.lo.u32 w, w, 4, a;
st.volatile.shared.u32 [w], {PHASE};
mov.u32 t, %clock;
look:
ld.volatile.shared.u32 x, [l];
setp.ge.s32 q, x, 0;
sub.s32 x, {PHASE}, x;
setp.lt.s32 p, x, 0;
@p add.s32 x, x, {COUNT};
sub.s32 x, x, 1;
setp.lt.and.u32 p, x, {WINDOW}, q;
mov.u32 u, %clock;
sub.u32 u, u, t;
setp.lt.and.u32 p, u, {PATIENCE}, p;
vote.sync.any.pred p, p, 0xffffffff;
@!p bra met;
nanosleep.u32 300;
bra look;
met:
}}"""
MEETING = NVIDIA._replace(
    mark=f'call void asm sideeffect "{_MARK}", ""() convergent nounwind'.replace("\n", "\\0A"),
    begin=(
        "%own = lshr i32 %thread, 5", "%warps = lshr i32 %wide, 5",
        "%is.own = icmp eq i32 %t, %own", "%is.none = icmp uge i32 %t, %warps", "%is.mine = or i1 %is.own, %is.none",
        "%mine.number = select i1 %is.mine, i32 %t, i32 %own",
        "%mine.phase = getelementptr i32, ptr addrspace(3) @phases, i32 %mine.number",
        "store volatile i32 -1, ptr addrspace(3) %mine.phase",
        NVIDIA.sync,
    ),
    end=("store volatile i32 -1, ptr addrspace(3) %mine.phase",),
    head=f"""@phases = addrspace(3) global [{BLOCK} x i32] undef, align 4
{NVIDIA.head}""",
)  # fmt: skip


def nvidia(runner: Runner) -> Dialect:
    """Threads that share a lane have 64 registers each: 32 warps run at once. Those with a lane each have 128."""
    dialect, warps, block = (NVIDIA, 16, 1) if runner is Runner.THREAD else (MEETING, 32, BLOCK)
    head = dialect.head.replace("THREADS", str(32 * block)).replace("BLOCKS", str(warps // block))
    return dialect._replace(head=head)
