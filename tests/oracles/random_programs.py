"""Random programs: mixes of what is computed, looked at, updated, put together, in loops within branches within loops.

A program is a function of its seed: numbers are drawn while jax traces it, from a new generator in each body, so that
every trace of a seed makes the same program. Floats are whole numbers, kept small, so that sums are exact in any
order and two compilers must agree to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from carom.engine.algebra.bounded import iterate

SHAPES = (
    (),
    (1,),
    (3,),
    (8,),
    (16,),
    (17,),
    (24,),
    (33,),
    (3, 5),
    (3, 8),
    (5, 5),
    (4, 9),
    (2, 3, 4),
    (10, 10),
    (3, 40),
)
INPUTS = ((24,), (5, 5), (3,), ())
TURNS = (0, 0, 1, 2, 3, 5)
SPECIAL = (np.nan, np.inf, -np.inf, -0.0, 5e-324, -1e-310)


def arguments(seed: int, lanes: int | None = None, special: bool = False) -> tuple[np.ndarray, ...]:
    """special: some floats are NaN, infinite, -0 or denormal. What sums make of these does not hang on the order."""
    random = np.random.default_rng([seed, 1])
    lead = () if lanes is None else (lanes,)
    floats = [random.integers(-8, 9, (*lead, *shape)).astype(float) for shape in INPUTS]
    whole = random.integers(0, 7, lead).astype(np.int32)
    if special:
        floats = [np.where(random.random(x.shape) < 0.1, random.choice(SPECIAL, x.shape), x) for x in floats]
    return *floats, whole


def program(seed: int, statements: int = 8, nested: int = 2, bounded: bool = False) -> Callable[..., list[Any]]:
    """statements: how many it has at the top; fewer of them are a beginning of the same program.

    bounded: every loop has a bound, so that the program can be differentiated in reverse mode.
    """

    def function(*args: Any) -> list[Any]:
        random = np.random.default_rng(seed)
        body = _Body(random, list(args), nested, bounded)
        for _ in range(statements):
            body.statement()
        picked = random.integers(0, len(body.pool), 3)
        return [body.pool[-1], *(body.pool[k] for k in picked)]

    return function


def small(x: Any) -> Any:
    """Whole numbers in 0 ... 63."""
    return x - 64 * jnp.floor(x * (1 / 64))


class _Body:
    """Statements one after another, each of which adds values to the pool that those behind it choose from."""

    def __init__(self, random: np.random.Generator, pool: list[Any], nested: int, bounded: bool) -> None:
        self.random, self.pool, self.nested, self.bounded = random, pool, nested, bounded
        self.start: list[Any] = []  # of the last loop or branch

    # choices

    def chance(self, p: float) -> bool:
        return bool(self.random.random() < p)

    def one(self, options: Sequence[Any]) -> Any:
        return options[int(self.random.integers(len(options)))]

    def value(self) -> Any:
        """A float array: rather one made lately."""
        floats = [x for x in self.pool if x.dtype == jnp.float64]
        back = min(int(self.random.exponential(3.0)), len(floats) - 1)
        return floats[-1 - back] if self.chance(0.8) else self.one(floats)

    def of_shape(self, shape: Sequence[int]) -> Any:
        """One of this shape, or a view of another one."""
        same = [x for x in self.pool if x.dtype == jnp.float64 and x.shape == tuple(shape)]
        if same and self.chance(0.7):
            return self.one(same)
        if self.chance(0.1):
            return jnp.asarray(self.random.integers(-3, 4, tuple(shape)).astype(float))
        return self.fitted(self.value(), shape)

    def fitted(self, x: Any, shape: Sequence[int]) -> Any:
        size = int(np.prod(shape, dtype=int))
        if x.size == 1:
            return jnp.broadcast_to(x.reshape(()), shape)
        flat = x.reshape(-1)
        if self.chance(0.3):
            flat = flat[::-1]
        if flat.size < size:
            flat = jnp.tile(flat, -(-size // flat.size))
        first = int(self.random.integers(0, flat.size - size + 1))
        return lax.slice(flat, (first,), (first + size,)).reshape(shape)

    def index(self, shape: Sequence[int] = (), most: int = 40) -> Any:
        """Whole numbers, some out of bounds."""
        if shape == () and self.chance(0.3):
            return jnp.int32(int(self.random.integers(-2, most + 2)))
        return self.of_shape(shape).astype(jnp.int32) % (most + 4) - 2

    # statements

    def statement(self) -> None:
        straight = [
            (self.arithmetic, 4),
            (self.view, 3),
            (self.look_up, 2),
            (self.update, 4),
            (self.reduce, 2),
            (self.join, 2),
            (self.whole, 1),
            (self.invariant, 1),
        ]
        blocks = [(self.repeat, 2), (self.scan, 2), (self.until, 2), (self.branch, 3)] if self.nested else []
        names, weights = zip(*straight, *blocks, strict=True)
        self.one([name for name, weight in zip(names, weights, strict=True) for _ in range(weight)])()

    def add(self, *values: Any) -> None:
        self.pool.extend(values)

    def arithmetic(self) -> None:
        x = self.value()
        y = self.of_shape(x.shape)
        z = [
            lambda: x + y,
            lambda: small(x * y),
            lambda: jnp.maximum(x, y),
            lambda: jnp.minimum(x, -y),
            lambda: jnp.where(x > y, x, y + 1),
            lambda: x - y,
            lambda: jnp.abs(x) - y,
            lambda: jnp.floor(x * 0.5),
            lambda: -x,
        ]
        self.add(small(self.one(z)()))

    def whole(self) -> None:
        """Through 32-bit integers, bools and single floats."""
        x = self.value()
        k = x.astype(jnp.int32)
        y = [
            lambda: k // 3,
            lambda: k % 5,
            lambda: k << 1,
            lambda: k ^ 5,
            lambda: (k > 3) & (k < 9),
            lambda: x.astype(jnp.float32) * 2,
            lambda: lax.div(k, self.of_shape(x.shape).astype(jnp.int32)),
            lambda: k.astype(jnp.int8),
        ]
        self.add(small(self.one(y)().astype(float)))

    def view(self) -> None:
        x = self.value()
        shape = self.one(SHAPES)
        views = [
            lambda: jnp.flip(x),
            lambda: x.T,
            lambda: self.fitted(x, shape),
            lambda: jnp.broadcast_to(x, (3, *x.shape))[1:],
            lambda: x.reshape(-1)[:: int(self.random.integers(1, 4))],
        ]
        y = self.one(views)()
        self.add(y if y.size <= 200 and self.chance(0.8) else self.fitted(y, shape))

    def look_up(self) -> None:
        x = self.value()
        flat = x.reshape(-1)
        shape = self.one(SHAPES)
        n = max(1, min(flat.size, int(self.random.integers(1, 30))))
        mode = self.one(["clip", "fill"])
        which = [
            lambda: flat.at[self.index(shape, flat.size)].get(mode=mode, fill_value=5.0),
            lambda: lax.dynamic_slice(flat, (self.index((), flat.size),), (n,)),
            lambda: lax.dynamic_slice(flat, (self.index((), flat.size),), (n,)),
            lambda: flat[jnp.clip(self.index((), flat.size), 0, flat.size - 1)],
            lambda: (
                x.at[self.index(self.one([(), (3,), (17,)]), x.shape[0])].get(mode=mode, fill_value=2.0)
                if x.ndim
                else x
            ),
        ]
        y = self.one(which)()
        self.add(y if y.size <= 200 else self.fitted(y, shape))

    def update(self) -> None:
        """Several one after another, as loops would make in place; the array before them may be read behind them."""
        x = y = self.value()
        for _ in range(int(self.random.integers(1, 4))):
            y = self.updated(y)
            if self.chance(0.2):
                self.add(y)
        if self.chance(0.2):
            y = small(y + x)
        self.add(y)

    def updated(self, x: Any) -> Any:
        flat = x.reshape(-1)
        n = max(1, min(flat.size, int(self.random.integers(1, 30))))
        mode = self.one(["clip", "drop"])

        def inside(index: Any) -> Any:  # jax's gradient of a maximum promises this
            return jnp.clip(index, 0, flat.size - 1) if self.bounded else index

        ways = [
            lambda: lax.dynamic_update_slice(flat, self.of_shape((n,)), (self.index((), flat.size),)),
            lambda: lax.dynamic_update_slice(flat, jnp.flip(flat[:n]), (self.index((), flat.size),)),
            lambda: flat.at[self.index((), flat.size)].set(self.of_shape(()), mode=mode),
            lambda: flat.at[self.index((n,), flat.size)].add(self.of_shape((n,)), mode=mode),
            lambda: flat.at[self.index((n,), flat.size)].set(flat[::-1][:n], mode=mode),
            lambda: flat.at[:n].set(self.of_shape((n,))),
            lambda: flat.at[inside(self.index((n,), flat.size))].max(self.of_shape((n,)), mode=mode),
            lambda: x.at[self.index((), x.shape[0])].set(self.of_shape(x.shape[1:]), mode=mode) if x.ndim else x + 1,
            lambda: (
                x.at[..., self.index((), x.shape[-1])].set(self.of_shape(x.shape[:-1]), mode=mode) if x.ndim else x + 1
            ),
        ]
        # the barrier is for XLA, whose simplifier ends the process when it meets some scatters turned round
        y = lax.optimization_barrier(self.one(ways)()).reshape(x.shape)
        return small(y) if self.chance(0.3) else y

    def reduce(self) -> None:
        x = self.value()
        axis = None if x.ndim == 0 or self.chance(0.4) else int(self.random.integers(x.ndim))
        ways = [
            lambda: jnp.sum(x, axis),
            lambda: jnp.max(x, axis),
            lambda: jnp.min(x, axis),
            lambda: jnp.argmax(x, axis).astype(float),
            lambda: jnp.any(x > 5, axis).astype(float),
            lambda: jnp.cumsum(x.reshape(-1)),
            lambda: lax.cummax(x.reshape(-1), reverse=True),
            lambda: self.product(x),
        ]
        self.add(small(self.one(ways)()))

    def product(self, x: Any) -> Any:
        n = x.shape[-1] if x.ndim else 1
        return small(x.reshape(-1, n)) @ small(self.of_shape((n, 3)))

    def join(self) -> None:
        x = self.value().reshape(-1)
        parts = [x, *(self.value().reshape(-1) for _ in range(int(self.random.integers(1, 3))))]
        whole = jnp.concatenate(parts) if self.chance(0.7) else jnp.pad(x, (2, 3), constant_values=4.0)
        self.add(self.fitted(whole, self.one(SHAPES)) if whole.size > 120 or self.chance(0.5) else whole)

    def invariant(self) -> None:
        """What does not change in the loops around it."""
        x = self.one([v for v in self.pool if v.dtype == jnp.float64][:3])
        self.add(small(jnp.floor(x * 3) + jnp.flip(x)))

    # bodies

    def inner(self, values: Sequence[Any], seed: int, statements: int) -> _Body:
        """Another body: what it is given comes last, so it is chosen first; it sees what is outside, too."""
        random = np.random.default_rng(seed)
        outside = [self.pool[k] for k in random.integers(0, len(self.pool), 3)]
        if random.random() < 0.5:  # what a loop started from, beside what has become of it
            outside += self.start
        body = _Body(random, [*outside, *values], self.nested - 1, self.bounded)
        if not any(x.dtype == jnp.float64 for x in body.pool):
            body.pool.insert(0, jnp.float64(3.0))
        for _ in range(statements):
            body.statement()
        return body

    def carry(self) -> list[Any]:
        """What a loop starts from: values, views, constants, and one value twice."""
        made = [self.value() for _ in range(int(self.random.integers(1, 4)))]
        if self.chance(0.3):
            made.append(made[0])
        if self.chance(0.3):
            made.append(jnp.flip(made[-1]))
        if self.chance(0.3):
            made.append(jnp.full(self.one(SHAPES), 2.0))
        if self.chance(0.3):
            made.append(jnp.asarray(self.of_shape(self.one([(17,), (24,), (4, 9)]))))
        if self.chance(0.4):  # made for this alone: nobody reads it afterwards
            made.append(jnp.cumsum(made[-1].reshape(-1)) % 32)
        self.start = made
        return made

    def handed_on(self, carry: Sequence[Any]) -> list[Any]:
        """What the next turn begins with: in one of the ways in which slots get mixed up."""
        made = []
        for k, x in enumerate(carry):
            same = [y for j, y in enumerate(carry) if j != k and y.shape == x.shape]
            way = self.random.random()
            if way < 0.15:
                made.append(x)
            elif way < 0.35 and same:
                made.append(self.one(same))
            elif way < 0.45:
                made.append(jnp.flip(self.one(same) if same else x))
            elif way < 0.65:
                made.append(self.updated(x))
            elif way < 0.7:
                made.append(jnp.full(x.shape, float(self.random.integers(9))))
            else:
                made.append(small(self.of_shape(x.shape) + (x if self.chance(0.5) else 1)))
        if self.chance(0.3) and len(made) > 1 and made[0].shape == made[-1].shape:
            made[0], made[-1] = made[-1], made[0]
        return [y.astype(float) for y in made]

    def _parameters(self) -> tuple[int, int]:
        return int(self.random.integers(1 << 30)), int(self.random.integers(0, 4))

    def kept(self, made: Sequence[Any]) -> None:
        """Some of the results are not read by anybody."""
        kept = [x for x in made if self.chance(0.7)]
        self.add(*(small(x) if self.chance(0.3) else x for x in kept))

    def repeat(self) -> None:
        seed, statements = self._parameters()
        known = self.chance(0.5) or self.bounded
        turns = self.one(TURNS) if known else self.index((), 4)

        def body(i: Any, carry: list[Any]) -> list[Any]:
            inner = self.inner([jnp.float64(i), *carry], seed, statements)
            return inner.handed_on(carry)

        self.kept(lax.fori_loop(0, turns, body, self.carry()))

    def scan(self) -> None:
        seed, statements = self._parameters()
        length, reverse = self.one(TURNS), self.chance(0.5)
        rows = [
            self.of_shape((length, *self.one(((), (3,), (17,), (2, 9)))))
            for _ in range(int(self.random.integers(0, 3)))
        ]

        def body(carry: list[Any], row: list[Any]) -> tuple[list[Any], list[Any]]:
            inner = self.inner([*row, *carry], seed, statements)
            after = inner.handed_on(carry)
            out = [
                inner.value(),
                inner.of_shape(inner.one(((), (3,), (17,)))),
                *([after[0]] if inner.chance(0.5) else []),
            ]
            return after, out

        after, out = lax.scan(body, self.carry(), rows, length=length, reverse=reverse)
        self.kept(after)
        if length:
            self.kept([self.fitted(x, self.one(SHAPES)) if x.size > 150 else x for x in out])

    def until(self) -> None:
        """A test that computes, updates and branches."""
        seed, statements = self._parameters()
        asked, doubts = self._parameters()
        most = self.one(TURNS)

        def test(carry: tuple[Any, list[Any]]) -> Any:
            turn, values = carry
            inner = self.inner(values, asked, doubts // 2)
            x = inner.updated(values[0]) if inner.chance(0.5) else inner.value()
            return (turn < most) & (jnp.sum(x) > -1e6) & (small(jnp.sum(inner.value())) < 60)

        def body(carry: tuple[Any, list[Any]]) -> tuple[Any, list[Any]]:
            turn, values = carry
            inner = self.inner(values, seed, statements)
            return turn + 1, inner.handed_on(values)

        start = jnp.int32(0), self.carry()
        self.kept((iterate(test, body, start, most) if self.bounded else lax.while_loop(test, body, start))[1])

    def branch(self) -> None:
        """Branches that hand on what they were given, changed, in another order, or not at all."""
        count = int(self.random.integers(1, 4))
        ways = [self._parameters() for _ in range(count)]
        given = self.carry()

        def branch(seed: int, statements: int) -> Callable[[], list[Any]]:
            def run() -> list[Any]:
                return self.inner(given, seed, statements).handed_on(given)

            return run

        which = self.index((), count)
        self.kept(lax.switch(which, [branch(*way) for way in ways]))


def together(seeds: Sequence[int], statements: int = 8, nested: int = 2) -> Callable[..., list[Any]]:
    """Programs in one: arguments one after another."""

    def function(*args: Any) -> list[Any]:
        n = len(INPUTS) + 1
        return [program(seed, statements, nested)(*args[n * k : n * k + n]) for k, seed in enumerate(seeds)]

    return function


__all__ = ["arguments", "jax", "program", "together"]
