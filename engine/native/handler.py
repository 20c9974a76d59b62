"""The function that XLA calls: it runs lanes one after another, on as many threads as there is work for.

XLA's foreign function interface passes a call frame, `struct XLA_FFI_CallFrame` of xla/ffi/api/c_api.h, whose
layout is stable; the numbers below are offsets in bytes into it and the structures it points to. The first argument is
ours: `layout`, an int64 array: lanes, flags, grain, then for each argument and each result the stride from one lane's
to the next's (0: all lanes share it), then for each open argument its number of rows.

Lanes are taken from a counter, `grain` of them at a time, by the thread that was called and by tasks on XLA's own
threads, each with an arena of its own. A task that starts too late finds no lane and returns. They share a job in
memory, which the last of them frees.
"""

from __future__ import annotations

from collections.abc import Sequence

HEAD = 3  # numbers of the layout before the strides
POISON = 1  # flag: an arena is filled with NaN before each lane
ARENAS = 16  # kept for the next call

# offsets: of the call frame
EXTENSION, API, CONTEXT, ARGS, RESULTS = 8, 16, 24, 72, 112
DATA = 24  # of a buffer
_SCHEDULE, _THREADS = 136, 144  # of the interface's functions
# of a job
_NEXT, _DONE, _HOLDERS, _LANES, _LAYOUT, _ARG_POINTERS, _RESULT_POINTERS, _JOB = 0, 8, 16, 24, 32, 40, 48, 56


def handler_text(
    inputs: Sequence[tuple[int, int | None]], outputs: Sequence[tuple[int, int]], arena: int, triple: str
) -> str:
    """LLVM's text of the handler.  inputs, outputs: (offset in the arena, size), in bytes; the size of an open one is
    None. arena: its size."""
    lines: list[str] = []
    copies: dict[str, list[str]] = {"in": [], "out": []}
    for way, parts, table in (("in", inputs, "%args"), ("out", outputs, "%results")):
        for k, (offset, size) in enumerate(parts):
            if size == 0:
                continue
            stride = HEAD + k + (len(inputs) if way == "out" else 0)
            copy = [
                f"  %{way}.b{k} = getelementptr ptr, ptr {table}, i64 {k + (way == 'in')}",
                f"  %{way}.f{k} = load ptr, ptr %{way}.b{k}",
                f"  %{way}.g{k} = getelementptr i8, ptr %{way}.f{k}, i64 {DATA}",
                f"  %{way}.d{k} = load ptr, ptr %{way}.g{k}",
                f"  %{way}.o{k} = mul i64 %{way}.t{k}, %lane",
                f"  %{way}.p{k} = getelementptr i8, ptr %{way}.d{k}, i64 %{way}.o{k}",
                f"  %{way}.m{k} = getelementptr i8, ptr %A, i64 {offset}",
            ]
            if size is None:
                rows = HEAD + len(inputs) + len(outputs) + k
                copy += [
                    f"  store ptr %in.p{k}, ptr %in.m{k}",
                    f"  %in.r{k} = getelementptr i64, ptr %layout, i64 {rows}",
                    f"  %in.n{k} = load i64, ptr %in.r{k}",
                    f"  %in.q{k} = getelementptr i8, ptr %in.m{k}, i64 8",
                    f"  store i64 %in.n{k}, ptr %in.q{k}",
                ]
            else:
                to, of = (f"%in.m{k}", f"%in.p{k}") if way == "in" else (f"%out.p{k}", f"%out.m{k}")
                copy += [f"  call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {of}, i64 {size}, i1 false)"]
            copies[way] += [
                f"  %{way}.s{k} = getelementptr i64, ptr %layout, i64 {stride}",
                f"  %{way}.t{k} = load i64, ptr %{way}.s{k}",
            ]
            if way == "in":  # shared arguments are still there from the previous lane
                copy = [
                    f"  %in.own{k} = icmp ne i64 %in.t{k}, 0",
                    f"  %in.do{k} = or i1 %in.own{k}, %all",
                    f"  br i1 %in.do{k}, label %in.copy{k}, label %in.next{k}",
                    f"in.copy{k}:", *copy, f"  br label %in.next{k}", f"in.next{k}:",
                ]  # fmt: skip
            copies[way] += copy
    flush, restore = _flush_to_zero(triple)
    lines += [
        f"@arenas = internal global [{ARENAS} x ptr] zeroinitializer",
        *_one_lane(copies["in"], copies["out"], arena),
        *_work(flush, restore, arena),
        *_TASK,
        *_CALLED,
    ]
    return "\n".join(lines)


def _one_lane(take: list[str], give: list[str], arena: int) -> list[str]:
    return [
        "define internal void @one_lane(ptr %A, ptr %layout, ptr %args, ptr %results, i64 %lane, i1 %first) {",
        "entry:",
        "  %fp = getelementptr i64, ptr %layout, i64 1",
        "  %flags = load i64, ptr %fp",
        f"  %poison = and i64 %flags, {POISON}",
        "  %is = icmp ne i64 %poison, 0",
        "  %all = or i1 %is, %first",
        "  br i1 %is, label %fill, label %run",
        "fill:",
        f"  call void @llvm.memset.p0.i64(ptr %A, i8 -1, i64 {arena}, i1 false)",
        "  br label %run",
        "run:",
        *take,
        "  call void @lane(ptr %A)",
        *give,
        "  ret void",
        "}",
        "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
        "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
    ]


def _flush_to_zero(triple: str) -> tuple[list[str], list[str]]:
    """Instructions before and after the code by which denormals count as 0, as in XLA's own code."""
    if triple.startswith("x86_64"):
        return [
            "  %old = alloca i32", "  %new = alloca i32",
            "  call void @llvm.x86.sse.stmxcsr(ptr %old)", "  %was = load i32, ptr %old",
            "  %flushing = or i32 %was, 32832", "  store i32 %flushing, ptr %new",
            "  call void @llvm.x86.sse.ldmxcsr(ptr %new)",
        ], ["  call void @llvm.x86.sse.ldmxcsr(ptr %old)"]  # fmt: skip
    if triple.startswith("aarch64"):
        return [
            "  %was = call i64 @llvm.aarch64.get.fpcr()", "  %flushing = or i64 %was, 16777216",
            "  call void @llvm.aarch64.set.fpcr(i64 %flushing)",
        ], ["  call void @llvm.aarch64.set.fpcr(i64 %was)"]  # fmt: skip
    return [], []


def _work(flush: list[str], restore: list[str], arena: int) -> list[str]:
    """Text that takes lanes until none is left."""
    declared = {
        "x86": ["declare void @llvm.x86.sse.stmxcsr(ptr)", "declare void @llvm.x86.sse.ldmxcsr(ptr)"],
        "aarch64": ["declare i64 @llvm.aarch64.get.fpcr()", "declare void @llvm.aarch64.set.fpcr(i64)"],
    }
    kind = next((k for k in declared if any(f"llvm.{k}" in line for line in flush)), None)
    return [
        *(declared[kind] if kind else []),
        "declare ptr @malloc(i64)", "declare void @free(ptr)", "declare ptr @aligned_alloc(i64, i64)",
        "declare i32 @usleep(i32)",
        "define internal ptr @take_arena() {",
        "entry:", "  br label %look",
        "look:",
        "  %k = phi i64 [ 0, %entry ], [ %more, %look.next ]",
        f"  %slot = getelementptr [{ARENAS} x ptr], ptr @arenas, i64 0, i64 %k",
        "  %kept = atomicrmw xchg ptr %slot, ptr null seq_cst",
        "  %none = icmp eq ptr %kept, null",
        "  br i1 %none, label %look.next, label %found",
        "found:", "  ret ptr %kept",
        "look.next:",
        "  %more = add i64 %k, 1",
        f"  %again = icmp ult i64 %more, {ARENAS}",
        "  br i1 %again, label %look, label %make",
        "make:", f"  %new = call ptr @aligned_alloc(i64 64, i64 {-(-arena // 64) * 64})", "  ret ptr %new", "}",
        "define internal void @keep_arena(ptr %A) {",
        "entry:", "  br label %look",
        "look:",
        "  %k = phi i64 [ 0, %entry ], [ %more, %look.next ]",
        f"  %slot = getelementptr [{ARENAS} x ptr], ptr @arenas, i64 0, i64 %k",
        "  %tried = cmpxchg ptr %slot, ptr null, ptr %A seq_cst seq_cst",
        "  %put = extractvalue { ptr, i1 } %tried, 1",
        "  br i1 %put, label %end, label %look.next",
        "end:", "  ret void",
        "look.next:",
        "  %more = add i64 %k, 1",
        f"  %again = icmp ult i64 %more, {ARENAS}",
        "  br i1 %again, label %look, label %full",
        "full:", "  call void @free(ptr %A)", "  ret void", "}",
        "define internal void @work(ptr %job) {",
        "entry:",
        f"  %lp = getelementptr i8, ptr %job, i64 {_LAYOUT}",
        f"  %np = getelementptr i8, ptr %job, i64 {_LANES}",
        "  %lanes = load i64, ptr %np",
        f"  %gp = getelementptr i8, ptr %job, i64 {_JOB}",
        "  %grain = load i64, ptr %gp",
        f"  %next = getelementptr i8, ptr %job, i64 {_NEXT}",
        f"  %done = getelementptr i8, ptr %job, i64 {_DONE}",
        "  %first = atomicrmw add ptr %next, i64 %grain seq_cst",
        "  %any = icmp slt i64 %first, %lanes",
        "  br i1 %any, label %begin, label %none",
        "none:", "  ret void",
        "begin:",
        "  %layout = load ptr, ptr %lp",
        f"  %ap = getelementptr i8, ptr %job, i64 {_ARG_POINTERS}",
        "  %args = load ptr, ptr %ap",
        f"  %rp = getelementptr i8, ptr %job, i64 {_RESULT_POINTERS}",
        "  %results = load ptr, ptr %rp",
        *flush,
        "  %A = call ptr @take_arena()",
        "  br label %grains",
        "grains:",
        "  %from = phi i64 [ %first, %begin ], [ %then, %finished ]",
        "  %upto0 = add i64 %from, %grain",
        "  %over = icmp sgt i64 %upto0, %lanes",
        "  %upto = select i1 %over, i64 %lanes, i64 %upto0",
        "  br label %lanes.loop",
        "lanes.loop:",
        "  %lane = phi i64 [ %from, %grains ], [ %following, %lanes.loop ]",
        "  %is.first = icmp eq i64 %lane, %first",
        "  call void @one_lane(ptr %A, ptr %layout, ptr %args, ptr %results, i64 %lane, i1 %is.first)",
        "  %following = add i64 %lane, 1",
        "  %on = icmp slt i64 %following, %upto",
        "  br i1 %on, label %lanes.loop, label %finished",
        "finished:",
        "  %count = sub i64 %upto, %from",
        "  %then = atomicrmw add ptr %next, i64 %grain seq_cst",
        "  %last = atomicrmw add ptr %done, i64 %count seq_cst",
        "  %left = icmp slt i64 %then, %lanes",
        "  br i1 %left, label %grains, label %end",
        "end:",
        "  call void @keep_arena(ptr %A)",
        *restore,
        "  ret void", "}",
        "define internal void @let_go(ptr %job) {",
        "entry:",
        f"  %holders = getelementptr i8, ptr %job, i64 {_HOLDERS}",
        "  %was = atomicrmw sub ptr %holders, i64 1 seq_cst",
        "  %last = icmp eq i64 %was, 1",
        "  br i1 %last, label %away, label %end",
        "away:", "  call void @free(ptr %job)", "  br label %end",
        "end:", "  ret void", "}",
    ]  # fmt: skip


_TASK = [
    "define internal void @task(ptr %job) {", "entry:",
    "  call void @work(ptr %job)", "  call void @let_go(ptr %job)", "  ret void", "}",
]  # fmt: skip

METADATA = [  # is this a question about the handler instead of a call?
    f"  %e0 = getelementptr i8, ptr %frame, i64 {EXTENSION}",
    "  %extension = load ptr, ptr %e0",
    "  %plain = icmp eq ptr %extension, null",
    "  br i1 %plain, label %start, label %ask",
    "ask:",
    "  %e1 = getelementptr i8, ptr %extension, i64 8",
    "  %kind = load i32, ptr %e1",
    "  %metadata = icmp eq i32 %kind, 1",
    "  br i1 %metadata, label %answer, label %start",
    "answer:",
    "  %e2 = getelementptr i8, ptr %extension, i64 24",
    "  %m = load ptr, ptr %e2",
    "  %major = getelementptr i8, ptr %m, i64 24",
    "  store i32 0, ptr %major",
    "  %minor = getelementptr i8, ptr %m, i64 28",
    "  store i32 3, ptr %minor",
    "  %traits = getelementptr i8, ptr %m, i64 32",
    "  store i32 0, ptr %traits",
    "  ret ptr null",
]

_CALLED = [
    "define ptr @called(ptr %frame) {",
    "entry:",
    "  %schedule.args = alloca [5 x i64]", "  %threads.args = alloca [4 x i64]", "  %threads = alloca i64",
    *METADATA,
    "start:",
    f"  %ap = getelementptr i8, ptr %frame, i64 {ARGS}", "  %args = load ptr, ptr %ap",
    f"  %rp = getelementptr i8, ptr %frame, i64 {RESULTS}", "  %results = load ptr, ptr %rp",
    "  %lb = load ptr, ptr %args",
    f"  %ld = getelementptr i8, ptr %lb, i64 {DATA}", "  %layout = load ptr, ptr %ld",
    "  %lanes = load i64, ptr %layout",
    "  %lg = getelementptr i64, ptr %layout, i64 2", "  %grain = load i64, ptr %lg",
    f"  %job = call ptr @malloc(i64 {_JOB + 8})",
    *[
        line
        for offset, value in (
            (_NEXT, "i64 0"), (_DONE, "i64 0"), (_HOLDERS, "i64 1"), (_LANES, "i64 %lanes"), (_LAYOUT, "ptr %layout"),
            (_ARG_POINTERS, "ptr %args"), (_RESULT_POINTERS, "ptr %results"), (_JOB, "i64 %grain"),
        )
        for line in (f"  %j{offset} = getelementptr i8, ptr %job, i64 {offset}", f"  store {value}, ptr %j{offset}")
    ],
    "  %most = sub i64 %lanes, 1",
    "  %shares = sdiv i64 %most, %grain",
    "  %alone = icmp sle i64 %shares, 0",
    "  br i1 %alone, label %mine, label %count",
    # how many threads are there?
    "count:",
    f"  %api.p = getelementptr i8, ptr %frame, i64 {API}", "  %api = load ptr, ptr %api.p",
    f"  %context.p = getelementptr i8, ptr %frame, i64 {CONTEXT}", "  %context = load ptr, ptr %context.p",
    "  store i64 1, ptr %threads",
    "  store i64 32, ptr %threads.args",
    "  %t1 = getelementptr i64, ptr %threads.args, i64 1", "  store i64 0, ptr %t1",
    "  %t2 = getelementptr i64, ptr %threads.args, i64 2", "  store ptr %context, ptr %t2",
    "  %t3 = getelementptr i64, ptr %threads.args, i64 3", "  store ptr %threads, ptr %t3",
    f"  %ask.p = getelementptr i8, ptr %api, i64 {_THREADS}", "  %ask.f = load ptr, ptr %ask.p",
    "  %wrong = call ptr %ask.f(ptr %threads.args)",
    "  %there = icmp eq ptr %wrong, null",
    "  br i1 %there, label %how.many, label %mine",
    "how.many:",
    "  %n = load i64, ptr %threads",
    "  %others = sub i64 %n, 1",
    "  %fewer = icmp slt i64 %shares, %others",
    "  %tasks = select i1 %fewer, i64 %shares, i64 %others",
    "  %some = icmp sgt i64 %tasks, 0",
    "  br i1 %some, label %hire, label %mine",
    "hire:",
    "  store i64 40, ptr %schedule.args",
    "  %s1 = getelementptr i64, ptr %schedule.args, i64 1", "  store i64 0, ptr %s1",
    "  %s2 = getelementptr i64, ptr %schedule.args, i64 2", "  store ptr %context, ptr %s2",
    "  %s3 = getelementptr i64, ptr %schedule.args, i64 3", "  store ptr @task, ptr %s3",
    "  %s4 = getelementptr i64, ptr %schedule.args, i64 4", "  store ptr %job, ptr %s4",
    f"  %sp = getelementptr i8, ptr %api, i64 {_SCHEDULE}", "  %schedule = load ptr, ptr %sp",
    "  br label %hire.one",
    "hire.one:",
    "  %hired = phi i64 [ 0, %hire ], [ %hired.more, %hire.one ]",
    f"  %hp = getelementptr i8, ptr %job, i64 {_HOLDERS}",
    "  %h = atomicrmw add ptr %hp, i64 1 seq_cst",
    "  %refused = call ptr %schedule(ptr %schedule.args)",
    "  %gone = icmp ne ptr %refused, null",
    "  %back = zext i1 %gone to i64",
    "  %h2 = atomicrmw sub ptr %hp, i64 %back seq_cst",
    "  %hired.more = add i64 %hired, 1",
    "  %yet = icmp slt i64 %hired.more, %tasks",
    "  br i1 %yet, label %hire.one, label %mine",
    "mine:",
    "  call void @work(ptr %job)",
    "  br label %wait",
    "wait:",
    f"  %dp = getelementptr i8, ptr %job, i64 {_DONE}",
    "  %finished = load atomic i64, ptr %dp seq_cst, align 8",
    "  %all = icmp sge i64 %finished, %lanes",
    "  br i1 %all, label %end, label %sleep",
    "sleep:", "  %z = call i32 @usleep(i32 20)", "  br label %wait",
    "end:", "  call void @let_go(ptr %job)", "  ret ptr null",
    "}",
]  # fmt: skip
