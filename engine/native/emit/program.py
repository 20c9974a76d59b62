"""A whole program: functions, slots, loops and branches.

A loop's carry has one slot for the whole loop, or is a register. It takes over the slot of its start value if nothing
reads that afterwards, its updates write in place, and the next carry is copied only if it is not yet in the carry's
slot. The same holds for a branch's results.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ..arena import Arena, Slot
from ..graph import Cluster, Graph, Node, Region, Value
from ..plan import END, Plan
from ..runner import Runner
from ..types import Unsupported, vector
from .addresses import kept_within, pointer_to
from .clusters import emit_cluster
from .function import Function, Module
from .nodes import EMITTERS
from .reading import WHOLE, power_of_two, read
from .writing import write

TWICE = 100  # operations: a test this short is written before the loop and at its end


class EmittedProgram:
    """A program.  module: the text.  inputs, outputs: their offsets in the arena [bytes]; None for open ones.  opens:
    for each result, the open argument that it is.  arena: its size.  weight: its number of operations.  loops: whether
    there are loops in it."""

    def __init__(self, graph: Graph, shared: Sequence[bool], plan: Plan, runner: Runner = Runner.CPU) -> None:
        """shared: whether each input is the same for the next lane."""
        self.module, self.plan = Module(runner), plan
        self._arena, self._small = Arena(self.module.warp), runner.small
        self._dying: dict[Region, dict[int, list[Value]]] = defaultdict(lambda: defaultdict(list))
        for value, fixed in zip(graph.top.inputs, shared, strict=True):
            value.slot = self._arena.take(value, fixed) if value.open is None else self._arena.take_open()
            if not fixed or value.open is not None:
                self._will_die(value)
        outputs = [self._arena.take(v, True) if v.open is None else None for v in graph.top.results]
        main = Function(self.module, "lane", plan.main)
        self._run(main, graph.top)
        for value, slot in zip(graph.top.results, outputs, strict=True):
            if value.size and slot is not None:
                write(main, value, main.pointer("%A", None, 0, slot.offset, slot), exact=False)
        main.close()
        self.inputs = [value.slot.offset for value in graph.top.inputs]
        self.outputs = [None if slot is None else slot.offset for slot in outputs]
        self.opens = [value.open for value in graph.top.results]
        self.arena = self._arena.top + self.module.beyond
        self.weight = graph.top.weight
        self.loops = any(isinstance(part, Node) and part.op == "loop" for part in graph.top.order)

    # slots

    def allocate(self, value: Value) -> None:
        """Give a value a slot: that of the carry or result it becomes, if that is free."""
        slot = self._result_slot(value)
        if slot is not None and slot.holders == slot.owners:
            slot.holders += 1
            value.slot = slot
        else:
            value.slot = self._arena.take(value)
        self._will_die(value)

    def allocate_if_stored(self, value: Value) -> None:
        if value.stored or value.size > self._small:
            self.allocate(value)

    def take_over(self, f: Function, old: Value, new: Value, node: Node) -> None:
        """Give `new` a slot that first contains `old`: the same slot, if this node is the last to read it."""
        if self._ends_at(old, node) and sum(a.base is old for a in node.args) == 1 and old not in node.outside:
            new.slot = old.slot
            if old.region is node.region:  # the holder changes
                self._dying[node.region][node.index].remove(old)
            else:
                new.slot.holders += 1
            self._will_die(new)
            return
        if old.open is not None:
            raise Unsupported("an open array that is read after it was changed")
        self.allocate(new)
        if not (old.op == "result" and old.param.op == "empty"):
            write(f, old, pointer_to(f, new), exact=False)

    def _result_slot(self, value: Value) -> Slot | None:
        region = value.region
        if region is None or region.owner is None or sum(r.base is value for r in region.results) != 1:
            return None
        if value not in region.results or (region is region.owner.regions[0] and region.owner.op == "loop"):
            return None
        if region.owner.op == "loop" and region is not region.owner.regions[2]:
            return None
        return region.owner.results[region.results.index(value)].slot

    def _ends_at(self, value: Value, node: Node) -> bool:
        """Return whether its memory may be overwritten from this node on."""
        if value.op in ("view", "const") or value.slot is None or (value.slot.fixed and value.open is None):
            return False
        home = value.region
        if value.op == "input" and home is not None and home.owner is not None and home is not home.owner.regions[2]:
            return False  # the body of a loop also reads the values of its test
        region = node.region
        while self.plan.last[region].get(value) == node.index:
            if region is value.region:
                return True
            if region.owner is None or region.owner.op != "cond":
                return False
            node, region = region.owner, region.owner.region
        return False

    def _will_die(self, value: Value) -> None:
        assert value.region is not None
        last = self.plan.last[value.region].get(value, -1)
        self._dying[value.region][last].append(value)

    def _bury(self, f: Function, region: Region, upto: int) -> None:
        """Release the slots of values that no later part reads; with CAROM_NATIVE_CHECK, filled with NaN."""
        waiting = self._dying[region]
        for last in [k for k in waiting if k <= upto]:
            for value in waiting.pop(last):
                slot = value.slot
                self._arena.drop(slot)
                unread = slot.holders == 0 or (slot.holders == slot.owners and last != END)
                if f.module.checked and unread and not slot.fixed:
                    start = f.pointer("%A", None, 0, slot.offset)
                    f.do(f"call void @llvm.memset.p0.i64(ptr {start}, i8 -1, i64 {slot.size}, i1 false)")

    # regions

    def _run(self, f: Function, region: Region) -> None:
        """Emit all parts in order: here, or in functions of their own that are called from here."""
        self._bury(f, region, -1) if region.owner is None else None
        inner: Function | None = None
        for part in region.order:
            if inner is not None and inner.number != part.function:
                inner.close()
                inner = None
            if part.function != f.number and inner is None:
                name = f"part{part.function}"
                f.do(f"call void @{name}(ptr %A)")
                inner = Function(self.module, name, part.function)
            self._part(inner or f, part)
            self._bury(inner or f, region, part.index)
        if inner is not None:
            inner.close()

    def _part(self, f: Function, part: Node | Cluster) -> None:
        if isinstance(part, Cluster):
            emit_cluster(f, part, self.allocate)
        elif part.op == "loop":
            self._loop(f, part)
        elif part.op == "cond":
            self._cond(f, part)
        else:
            EMITTERS[part.op](f, part, self)

    def _hand_on(self, f: Function, values: Sequence[Value], results: Sequence[Value]) -> list[str | None]:
        """Copy values to the slots of their results, as if all at once; return the registers of small ones."""
        registers = [read(f, v, WHOLE) if v.size and v.size <= self._small else None for v in values]
        slots = {id(r.slot) for r in results if r.slot is not None}
        copies: list[tuple[Value, Value]] = []
        aside: list[Value] = []
        for value, result in zip(values, results, strict=True):
            base = value.base
            if value.size <= self._small or (value is base and value.slot is result.slot and base.op != "const"):
                continue
            if base.op != "const" and id(base.slot) in slots:  # its slot may be written to before it is read
                kept = Value("input", value.size, value.type, (), None, None)
                kept.slot = self._arena.take(kept)
                write(f, value, pointer_to(f, kept), exact=False)
                aside.append(kept)
                value = kept
            copies.append((value, result))
        for value, result in copies:
            write(f, value, pointer_to(f, result), exact=False)
        for value, result, x in zip(values, results, registers, strict=True):
            if x is not None and result.slot is not None:
                f.store(value.type, power_of_two(value.size), x, pointer_to(f, result))
        for kept in aside:
            self._arena.drop(kept.slot)
        return registers

    def _loop(self, f: Function, node: Node) -> None:
        before, test, body = node.regions
        results = node.results
        for start, result, inner, tested in zip(node.args, results, body.inputs, test.inputs, strict=True):
            if result.size > self._small or result.stored or inner.stored or tested.stored:
                self.take_over(f, start, result, node)
                slot = result.slot
                slot.owners += 2  # the result, and the loop itself
                slot.holders += 2  # the loop, and the carry while the body reads it
                inner.slot = tested.slot = slot
                self._will_die(inner)
        first = [read(f, v, WHOLE) if 0 < v.size <= self._small else None for v in node.args]
        label = f"loop{next(self.module.labels)}"
        short = test.weight <= TWICE and all(p.function == f.number for p in test.order)
        entry = f.block
        if short and node.param is None:
            self._test(f, test, first, f"{label}.before", f"{label}.end")
            entry = f.block
            f.begin(f"{label}.before")
        f.scope_open()
        self._run(f, before)
        came = f.block
        f.do(f"br label %{label}")
        f.begin(label)
        phis = [
            f.phi(vector(v.type, power_of_two(v.size))) if x is not None else None
            for v, x in zip(results, first, strict=True)
        ]
        carry = [p[0] if p else None for p in phis]
        with f.scope():
            if not short:
                self._test(f, test, carry, f"{label}.body", f"{label}.end")
                f.begin(f"{label}.body")
            self._bind(f, body, carry)
            self._bury(f, body, -1)
            self._run(f, body)
            after = self._hand_on(f, body.results, results)
            self._bury(f, body, END)
            if short:
                again = self._test(f, test, after, label, f"{label}.end")
            else:
                again = f.block
                f.do(f"br label %{label}")
        for phi, x, y in zip(phis, first, after, strict=True):
            if phi:
                phi[1]([(x or "", came), (y or "", again)])
        f.scope_close()
        f.begin(f"{label}.end")
        for value, kept, x, y in zip(results, carry, first, after, strict=True):
            if kept is None or x is None or y is None:
                continue
            if not short:
                f.keep((value.id, WHOLE), kept)
            elif node.param is not None:
                f.keep((value.id, WHOLE), y)
            else:
                register, set_incoming = f.phi(vector(value.type, power_of_two(value.size)))
                set_incoming([(x, entry), (y, again)])
                f.keep((value.id, WHOLE), register)
        self._bury(f, before, END)
        for value in results:
            if value.slot is not None:
                value.slot.owners -= 2
                self._arena.drop(value.slot)

    def _bind(self, f: Function, region: Region, registers: Sequence[str | None]) -> None:
        for value, x in zip(region.inputs, registers, strict=True):
            if x is not None:
                f.keep((value.id, WHOLE), x)

    def _test(self, f: Function, test: Region, carry: Sequence[str | None], yes: str, no: str) -> str:
        """Branch to `yes` if the loop continues; return the block of the branch."""
        with f.scope():
            self._bind(f, test, carry)
            self._run(f, test)
            again = read(f, test.results[0], WHOLE)
            self._bury(f, test, END)
        f.do(f"br i1 {again}, label %{yes}, label %{no}")
        return f.block

    def _cond(self, f: Function, node: Node) -> None:
        which, (chosen,) = node.args[0], node.args
        for k, result in enumerate(node.results):
            if result.size > self._small or result.stored:
                self._branch_slot(node, k, result)
                result.slot.owners += 1
        label, count = f"branch{next(self.module.labels)}", len(node.regions)
        x = read(f, chosen, WHOLE)
        if which.type.kind == "b":
            f.do(f"br i1 {x}, label %{label}.1, label %{label}.0")
        else:
            x = kept_within(f, 1, which.type, x, count - 1)
            others = " ".join(f"i32 {k}, label %{label}.{k}" for k in range(1, count))
            f.do(f"switch i32 {x}, label %{label}.0 [ {others} ]")
        ways: list[tuple[list[str | None], str]] = []
        for k, region in enumerate(node.regions):
            f.begin(f"{label}.{k}")
            with f.scope():
                self._run(f, region)
                registers = self._hand_on(f, region.results, node.results)
                self._bury(f, region, END)
            ways.append((registers, f.block))
            f.do(f"br label %{label}.end")
        f.begin(f"{label}.end")
        for k, result in enumerate(node.results):
            if 0 < result.size <= self._small:
                register, set_incoming = f.phi(vector(result.type, power_of_two(result.size)))
                set_incoming([(registers[k] or "", block) for registers, block in ways])
                f.keep((result.id, WHOLE), register)
        for result in node.results:
            if result.slot is not None:
                result.slot.owners -= 1

    def _branch_slot(self, node: Node, k: int, result: Value) -> None:
        """The slot of a value that a branch returns unchanged, if nothing else reads it; else a new one."""
        for region in node.regions:
            value = region.results[k]
            passed = sum(v.base is value for r in node.regions for v in r.results)
            alone = all(r.results[j].base is not value for r in node.regions for j in range(len(r.results)) if j != k)
            escapes = value.region is not region and value.size > self._small
            if escapes and passed and alone and self._ends_at(value, node):
                result.slot = value.slot
                result.slot.holders += 1
                self._will_die(result)
                return
        self.allocate(result)
