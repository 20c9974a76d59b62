"""LLVM's text of a lane's program for one thread of a warp, in which a vector is one element per thread.

Thread t holds element t mod w of a vector of w elements, so a vector is a scalar register, and an operation on vectors
is the same operation on scalars. Operations that move elements (shuffles, extracted elements) are shuffles between
threads. Scalars are the same in all threads, and so are addresses and conditions: all threads branch alike.

Memory is the lane's, and all threads see it. Before an access that may meet an earlier one of another thread, the
threads wait for each other (`sync`).
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Sequence

from ..arena import THREADS
from ..types import Unsupported
from .access import BYTES, Access, Address
from .dialect import NO_UNROLLING, Dialect

WIDTHS = (2, 4, 8, 16, 32)
_TYPE = re.compile(r"<(\d+) x (\w+)>")
_CONSTANT = re.compile(r"<(\w+ [^\s,<>]+(?:, \w+ [^\s,<>]+)*)>")
_LABEL = re.compile(r"label %([\w.]+)")
_SUFFIX = re.compile(r"\.v\d+(?=[fip]\d)")


def spread(text: str, dialect: Dialect) -> str:
    """Rewrite text: that of a program, `void lane(ptr %A)` and its parts."""
    return _Spread(dialect).text(text)


class _Spread:
    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.out: list[str] = []
        self.tables: dict[tuple[str, tuple[str, ...]], int] = {}  # constants that are not the same in all threads
        self.declared: dict[str, str] = {}
        self.count = itertools.count()
        self.start = 0  # index in `out` of the function's entry
        self.early: list[str] = []  # instructions still to be added to its entry
        self.same: dict[str, str] = {}  # vectors with equal elements -> the element; also scalars under another name
        self.scalars: set[str] = set()  # registers that are the same in all threads
        self.phis: list[int] = []  # lines that name what is made after them
        self.labels: set[str] = set()  # of the function, so far
        self.addresses: dict[str, Address] = {}  # address of each pointer into the arena
        self.since: list[Access] | None = None  # accesses since the threads last waited; None: unknown
        self.ways: Counter[str] = Counter()  # number of branches to a label
        self.came: dict[str, list[list[Access] | None]] = {}  # branches to a label so far, and the accesses before them

    def text(self, text: str) -> str:
        lines = text.split("\n")
        for k, line in enumerate(lines):
            if line.startswith("define"):
                body = itertools.takewhile(lambda line: line != "}", lines[k:])
                self.ways = Counter(label for line in body for label in _LABEL.findall(line))
            if line.endswith(":") and not line.startswith(" "):
                self._label(line, list(itertools.takewhile(lambda x: x.startswith("  "), lines[k + 1 :])))
            else:
                self._line(line)
        tables = [
            f"@spread{k} = internal constant [{len(elements)} x {type}] [{', '.join(f'{type} {x}' for x in elements)}]"
            for (type, elements), k in self.tables.items()
        ]
        return "\n".join([*tables, *self.out, *self.declared.values(), self.dialect.head, NO_UNROLLING])

    def _line(self, line: str) -> None:
        stripped = line.strip()
        if not line.startswith("  "):
            self._outside(stripped)
            return
        result, _, rest = stripped.rpartition(" = ") if stripped.startswith("%") else ("", "", stripped)
        op = rest.split(" ", 1)[0]
        rest = self._substitute(rest)
        handler = {
            "shufflevector": self._shuffle, "insertelement": self._insert, "extractelement": self._extract,
            "load": self._load, "store": self._store, "call": self._call, "phi": self._phi, "br": self._branch,
            "getelementptr": self._pointer, "switch": self._switch,
        }.get(op, self._plain)  # fmt: skip
        handler(result, rest)

    def _outside(self, line: str) -> None:
        """Handle a line that is not an instruction."""
        if line.startswith("define"):
            self.out.append(line.replace("noalias ", ""))
            self.same, self.scalars, self.early, self.phis, self.labels = {}, set(), [], [], set()
            self.addresses, self.came = {"%A": Address(), "@tables": Address(constant=True)}, {}
        elif line == "}":
            self.out.append(line)
            for k in self.phis:
                self.out[k] = self._substitute(self.out[k])
            self.out[self.start : self.start] = self.early
        elif line.startswith("declare"):
            if "masked." not in line:
                plain = _SUFFIX.sub(".", _TYPE.sub(r"\2", line))
                self.declared.setdefault(plain.split("@")[1].split("(")[0], plain)
        elif not line.startswith("attributes #0"):
            self.out.append(line)

    def _label(self, line: str, body: list[str]) -> None:
        """Begin a block.  body: its lines."""
        label = line[:-1]
        if label == "entry":
            self._entry(line)
            return
        came = self.came.get(label, [])
        self.since = None
        if len(came) == self.ways[label] and None not in came:
            self.since = list(dict.fromkeys(access for since in came for access in since or ()))
        elif len(came) == 1 and self.ways[label] == 2 and label in _LABEL.findall(body[-1]):
            accesses = self._apart(body)
            if accesses is not None:  # the threads need not wait in this loop, if they waited before it
                self.since = came[0]
                if self.since is None or any(x.meets(y) for x in self.since for y in accesses):
                    self.out.insert(-1, f"  {self.dialect.sync}")
                    self.since = []
        self.out.append(line)
        self.labels.add(label)

    def _entry(self, line: str) -> None:
        self.out += [line, f"  %warp.t = {self.dialect.thread}"]
        for w in WIDTHS:
            self.out.append(f"  %warp.e{w} = and i32 %warp.t, {w - 1}")
            for n in (1, 2, 4, 8):
                self.out.append(f"  %warp.by{w}.{n} = mul i32 %warp.e{w}, {n}")
                self.out.append(f"  %warp.A{w}.{n} = getelementptr i8, ptr %A, i32 %warp.by{w}.{n}")
        self.start, self.since = len(self.out), None

    def _apart(self, body: list[str]) -> list[Access] | None:
        """Accesses of a loop of one block, if no iteration conflicts with itself or another: data are written
        strip by strip of 32, each element by its thread, and not read otherwise. Else None."""
        counter = re.fullmatch(r"  (%v\d+) = phi i32 \[ 0, .*", body[0])
        if counter is None or f"add nuw nsw i32 {counter[1]}, {THREADS}" not in body[-3]:
            return None
        trial = _Spread(self.dialect)
        trial.same, trial.scalars, trial.addresses = dict(self.same), set(self.scalars), dict(self.addresses)
        trial.since = []
        for line in body[:-1]:
            trial._line(line)
        if f"  {self.dialect.sync}" in trial.out or trial.since is None:
            return None
        strips = lambda x, y: x.by == y.by and x.together and x.by is not None and x.by[2] == counter[1]  # noqa: E731
        for x, y in itertools.combinations_with_replacement(trial.since, 2):
            if (x.writes or y.writes) and x.low < y.high and y.low < x.high and not strips(x, y):
                return None
        return trial.since

    # registers

    def _new(self, text: str) -> str:
        register = f"%w{next(self.count)}"
        self.out.append(f"  {register} = {text}")
        return register

    def _substitute(self, text: str) -> str:
        return re.sub(r"%v\d+\b", lambda m: self.same.get(m[0], m[0]), text) if self.same else text

    def _constant(self, width: int, type: str, elements: Sequence[str]) -> str:
        """The element of a vector of constants that this thread holds; poison becomes any value."""
        meant = [x for x in elements if x != "poison"]
        if len(set(meant)) <= 1:
            return meant[0] if meant else _zero(type)
        filled = [x if x != "poison" else meant[0] for x in elements]
        if type in ("i32", "i64"):
            return self._numbers([int(x) for x in filled], type)
        if type == "i1":
            count = filled.count("true")
            if filled == ["true"] * count + ["false"] * (width - count):
                return self._new(f"icmp ult i32 %warp.e{width}, {count}")
            bits = sum(1 << k for k, x in enumerate(filled) if x == "true")
            shifted = self._new(f"lshr i32 {_as_signed(bits, 32)}, %warp.e{width}")
            return self._new(f"trunc i32 {shifted} to i1")
        return self._table(type, filled)

    def _numbers(self, numbers: Sequence[int], type: str = "i32") -> str:
        """Element e of a list, for this thread's element e."""
        width, first, step = len(numbers), numbers[0], numbers[1] - numbers[0]
        e = f"%warp.e{width}"
        if all(x == first for x in numbers):
            return str(first)
        if all(x == first + k * step for k, x in enumerate(numbers)):
            x = e if type == "i32" else self._new(f"zext i32 {e} to i64")
            x = x if step == 1 else self._new(f"mul {type} {x}, {step}")
            return x if first == 0 else self._new(f"add {type} {x}, {first}")
        if type == "i32" and width <= 16 and min(numbers) >= 0 and max(numbers) < 16:  # four bits each
            wide = "i32" if width <= 8 else "i64"
            packed = _as_signed(sum(x << (4 * k) for k, x in enumerate(numbers)), 32 if width <= 8 else 64)
            by = self._new(f"shl i32 {e}, 2")
            by = by if wide == "i32" else self._new(f"zext i32 {by} to i64")
            x = self._new(f"lshr {wide} {packed}, {by}")
            x = x if wide == "i32" else self._new(f"trunc i64 {x} to i32")
            return self._new(f"and i32 {x}, 15")
        return self._table(type, [str(x) for x in numbers])

    def _table(self, type: str, elements: Sequence[str]) -> str:
        name = f"@spread{self.tables.setdefault((type, tuple(elements)), len(self.tables))}"
        pointer = self._new(f"getelementptr inbounds {type}, ptr {name}, i32 %warp.e{len(elements)}")
        return self._new(f"load {type}, ptr {pointer}")

    def _of(self, type: str, x: str) -> str:
        """An operand, as this thread holds it.  type: its original type, of a vector."""
        vector = _TYPE.fullmatch(type)
        if vector is None:
            return x
        if x in ("poison", "zeroinitializer"):
            return _zero(vector[2])
        if x.startswith("<"):
            parts = [part.split(" ") for part in x[1:-1].split(", ")]
            return self._constant(len(parts), parts[0][0], [value for _, value in parts])
        return x

    def _from_thread(self, type: str, x: str, source: str) -> str:
        """The value of x in thread `source`."""
        if not x.startswith("%") or x in self.scalars:
            return x
        shuffled = lambda y: self._new(self.dialect.shuffle.format(x=y, source=source))  # noqa: E731
        if type == "float":
            return self._new(f"bitcast i32 {shuffled(self._new(f'bitcast float {x} to i32'))} to float")
        if type in ("double", "i64", "ptr"):
            if type != "i64":
                x = self._new(f"{'bitcast' if type == 'double' else 'ptrtoint'} {type} {x} to i64")
            high = self._new(f"trunc i64 {self._new(f'lshr i64 {x}, 32')} to i32")
            low = shuffled(self._new(f"trunc i64 {x} to i32"))
            both = self._new(f"shl i64 {self._new(f'zext i32 {shuffled(high)} to i64')}, 32")
            y = self._new(f"or disjoint i64 {both}, {self._new(f'zext i32 {low} to i64')}")
            return (
                y if type == "i64" else self._new(f"{'bitcast' if type == 'double' else 'inttoptr'} i64 {y} to {type}")
            )
        if type == "i32":
            return shuffled(x)
        return self._new(f"trunc i32 {shuffled(self._new(f'zext {type} {x} to i32'))} to {type}")

    # instructions that move elements

    def _shuffle(self, result: str, rest: str) -> None:
        match = re.fullmatch(r"shufflevector (<\d+ x \w+>) (.+), <\d+ x \w+> (.+), <(\d+) x i32> (.+)", rest)
        if match is None:
            raise Unsupported(rest)
        type, first, second, count, mask = match.groups()
        width, element = _TYPE.fullmatch(type).groups()  # pyright: ignore[reportOptionalMemberAccess]
        width, count = int(width), int(count)
        picks = [0] * count if mask == "zeroinitializer" else _picks(mask)
        meant = [k for k in picks if k >= 0]
        if not meant:
            self.same[result] = _zero(element)
            return
        if count == width and all(k in (e, -1) for e, k in enumerate(picks)):
            self.same[result] = self._of(type, first)
            return
        sides = []
        for side, operand in enumerate((first, second)):
            if any(k // width == side for k in meant):
                wanted = [k % width if k >= 0 and k // width == side else e % width for e, k in enumerate(picks)]
                x = self._of(type, operand)
                exchanged = count != width or wanted != list(range(width))
                sides.append(self._from_thread(element, x, self._numbers(wanted)) if exchanged else x)
        self.same[result] = sides[0]
        if len(sides) == 2:
            which = self._constant(count, "i1", [str(k >= width).lower() for k in picks])
            self.same[result] = self._new(f"select i1 {which}, {element} {sides[1]}, {element} {sides[0]}")

    def _insert(self, result: str, rest: str) -> None:
        match = re.fullmatch(r"insertelement (<\d+ x \w+>) (.+), (\w+) (\S+), i32 (\d+)", rest)
        if match is None:
            raise Unsupported(rest)
        type, vector, element, x, k = match.groups()
        if vector == "poison":
            self.same[result] = x
            self.scalars.add(x)
            return
        width = _TYPE.fullmatch(type)[1]  # pyright: ignore[reportOptionalSubscript]
        here = self._new(f"icmp eq i32 %warp.e{width}, {k}")
        self.same[result] = self._new(f"select i1 {here}, {element} {x}, {element} {self._of(type, vector)}")

    def _extract(self, result: str, rest: str) -> None:
        match = re.fullmatch(r"extractelement (<\d+ x \w+>) (.+), i32 (\d+)", rest)
        if match is None:
            raise Unsupported(rest)
        type, vector, k = match.groups()
        element = _TYPE.fullmatch(type)[2]  # pyright: ignore[reportOptionalSubscript]
        if vector.startswith("<"):
            self.same[result] = vector[1:-1].split(", ")[int(k)].split(" ")[1]
        else:
            self.same[result] = self._from_thread(element, self._of(type, vector), k)

    # memory

    def _meets(self, pointer: str, type: str, writes: bool) -> None:
        """Record an access: the threads first wait, if an earlier one may be of the same bytes by another thread.

        pointer, type: the original ones, of a vector; for a pointer per thread, the type of an element."""
        address = self.addresses.get(pointer, Address(index=""))
        if address.constant:
            return
        vector = _TYPE.fullmatch(type)
        width, element = (int(vector[1]), vector[2]) if vector else (1, type)
        low, high = address.slot
        if address.index is None:
            low, high = address.bytes, address.bytes + width * BYTES[element]
        by = None if address.index == "" else (address.bytes, address.type, address.index, width, element)
        access = Access(low, high, by, width == THREADS, writes)
        if self.since is None or any(x.meets(access) for x in self.since):
            self.out.append(f"  {self.dialect.sync}")
            self.since = []
        self.since.append(access)

    def _pointer(self, result: str, rest: str) -> None:
        rest, _, within = rest.partition(" ; ")
        match = re.fullmatch(r"getelementptr inbounds (\w+), ptr (\S+), (i32|i64|<\d+ x i32>) (\S+|<.+>)", rest)
        if match is None:
            raise Unsupported(rest)
        type, base, kind, index = match.groups()
        before = self.addresses.get(base)
        if before:
            if within:
                start, size = (int(x) for x in within.split(" "))
                before = before._replace(slot=(start, start + size))
            if kind.startswith("<"):
                self.addresses[result] = before._replace(index="")
            elif not index.startswith("%"):
                self.addresses[result] = before._replace(bytes=before.bytes + int(index) * BYTES[type])
            else:
                self.addresses[result] = before._replace(type=type, index=index if before.index is None else "")
        self._plain(result, rest)

    def _address(self, type: str, pointer: str) -> tuple[str, str]:
        """The type of an element and the address of this thread's."""
        vector = _TYPE.fullmatch(type)
        if vector is None:
            return type, pointer
        width, element = vector.groups()
        address = self.addresses.get(pointer)
        if address is None or address.constant or address.index == "":
            return element, self._new(f"getelementptr inbounds {element}, ptr {pointer}, i32 %warp.e{width}")
        x = f"%warp.A{width}.{BYTES[element]}"
        if address.index:
            x = self._new(f"getelementptr {address.type}, ptr {x}, i32 {address.index}")
        return element, self._new(f"getelementptr i8, ptr {x}, i64 {address.bytes}") if address.bytes else x

    def _load(self, result: str, rest: str) -> None:
        match = re.fullmatch(r"load (<\d+ x \w+>|\w+), ptr (\S+), align \d+", rest)
        if match is None:
            raise Unsupported(rest)
        type, at = match.groups()
        element, pointer = self._address(type, at)
        self._meets(at, type, writes=False)
        self.out.append(f"  {result} = load {element}, ptr {pointer}")

    def _store(self, _: str, rest: str) -> None:
        match = re.fullmatch(r"store (<\d+ x \w+>|\w+) (.+), ptr (\S+), align \d+", rest)
        if match is None:
            raise Unsupported(rest)
        type, x, pointer = match.groups()
        x = self._of(type, x)
        self._meets(pointer, type, writes=True)
        element, pointer = self._address(type, pointer)
        self.out.append(f"  store {element} {x}, ptr {pointer}")

    def _store_some(self, element: str, x: str, pointer: str, width: int, those: str) -> None:
        """Redirect elements that must not be written to an address that nobody reads."""
        wanted = self._of(f"<{width} x i1>", those)
        if wanted != "true":
            pointer = self._new(f"select i1 {wanted}, ptr {pointer}, ptr %A")
        self.out.append(f"  store {element} {x}, ptr {pointer}")

    def _call(self, result: str, rest: str) -> None:
        if "@llvm.masked.gather" in rest:
            match = re.match(r"call <\d+ x (\w+)> @\S+\(<\d+ x ptr> (\S+), ", rest)
            assert match is not None
            self._meets(match[2], match[1], writes=False)
            self.out.append(f"  {result} = load {match[1]}, ptr {match[2]}")
        elif "@llvm.masked.load" in rest:
            match = re.match(r"call (<\d+ x \w+>) @\S+\(ptr (\S+), i32 \d+, <\d+ x i1> (\S+), ", rest)
            assert match is not None
            element, pointer = self._address(match[1], match[2])
            pointer = self._new(f"select i1 {match[3]}, ptr {pointer}, ptr %A")
            self._meets(match[2], match[1], writes=False)
            there = self._new(f"load {element}, ptr {pointer}")
            self.out.append(f"  {result} = select i1 {match[3]}, {element} {there}, {element} {_zero(element)}")
        elif "@llvm.masked.store" in rest:
            match = re.match(r"call void @\S+\((<\d+ x \w+>) (.+), ptr (\S+), i32 \d+, <(\d+) x i1> (<.+>)\)", rest)
            assert match is not None
            type, x, pointer, width, those = match.groups()
            self._meets(pointer, type, writes=True)
            element, pointer = self._address(type, pointer)
            self._store_some(element, self._of(type, x), pointer, int(width), those)
        elif "@llvm.masked.scatter" in rest:
            match = re.match(
                r"call void @\S+\((<\d+ x \w+>) (.+), <\d+ x ptr> (\S+), i32 \d+, <(\d+) x i1> (<.+>)\)", rest
            )
            assert match is not None
            type, x, pointer, width, those = match.groups()
            self._meets(pointer, type, writes=True)
            self._store_some(_TYPE.fullmatch(type)[2], self._of(type, x), pointer, int(width), those)  # pyright: ignore
        elif "@part" in rest:
            self.out.append(f"  {rest}")
            self.since = None
        elif self._is_known(rest):
            self._plain(result, rest)
        else:
            raise Unsupported(f"{rest.split('(')[0]} on a GPU")

    def _is_known(self, call: str) -> bool:
        if "@llvm." in call:
            return "vector.reduce" not in call and "memset" not in call  # those are the compiler's checks
        return call.split("@")[1].split("(")[0] in self.dialect.functions

    # other instructions do not change

    def _phi(self, result: str, rest: str) -> None:
        """Translate a phi; constants of this thread are computed in the function's entry."""
        if _CONSTANT.search(rest):
            before, self.out = self.out, []
            rest = self._scalars(rest)
            self.early += self.out
            self.out = before
        self.phis.append(len(self.out))
        self.out.append(f"  {result} = {self._scalars(rest)}")

    def _branch(self, _: str, rest: str) -> None:
        """Forbid unrolling of a loop: assemblers would make it many times as long."""
        back = any(label in self.labels for label in _LABEL.findall(rest))
        self._leaves(rest)
        self.out.append(f"  {rest}, !llvm.loop !0" if back else f"  {rest}")

    def _leaves(self, rest: str) -> None:
        """Record that control passes to other blocks."""
        for label in _LABEL.findall(rest):
            self.came.setdefault(label, []).append(None if self.since is None else list(self.since))

    def _switch(self, _: str, rest: str) -> None:
        self._leaves(rest)
        self.out.append(f"  {rest}")

    def _plain(self, result: str, rest: str) -> None:
        if "<" in rest:
            rest = self._scalars(rest)
        self.out.append(f"  {result} = {rest}" if result else f"  {rest}")

    def _scalars(self, rest: str) -> str:
        rest = _CONSTANT.sub(lambda m: self._of(f"<1 x {m[1].split(' ')[0]}>", m[0]), rest)
        vector = _TYPE.search(rest)
        if vector and "zeroinitializer" in rest:
            rest = rest.replace("zeroinitializer", _zero(vector[2]))
        return _SUFFIX.sub(".", _TYPE.sub(r"\2", rest))


def _picks(mask: str) -> list[int]:
    return [-1 if part.endswith("poison") else int(part.split(" ")[1]) for part in mask[1:-1].split(", ")]


def _zero(type: str) -> str:
    return {"float": "0.0", "double": "0.0", "i1": "false", "ptr": "null"}.get(type, "0")


def _as_signed(bits: int, width: int) -> int:
    """Return the bits as the signed number of LLVM's text."""
    return bits - (1 << width) if bits >> (width - 1) else bits
