"""Hundreds of bodies in one heap: Coulomb's law holds for all of them, in room that grows as the heap does."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from carom.contact.cone.elimination import pairs_room, plan
from carom.contact.cone.solve import solve_cone
from carom.contact.rows import Rows
from carom.engine.algebra.vec3 import Sym3, Vec3
from carom.engine.native.surface import compiled
from carom.engine.results import OK
from carom.tests.oracles import cone_oracle as oracle

RADIUS, MASS, MU = 0.5, 1.0, 0.4
FALL = 9.81 / 240  # [m/s] in a step
EXACT = 1e-9  # of FALL: ten times the tolerance


def heap(wide: int, high: int) -> tuple[Any, ...]:
    """Arguments of solve_cone: layers of balls in the hollows of those below, on a table, all falling by a step."""
    rows, columns, layers = np.meshgrid(*map(np.arange, (wide, wide, high)), indexing="ij")
    x, y, z = (a.ravel() for a in (rows + layers % 2 / 2, columns + layers % 2 / 2, layers * 0.5**0.5))
    place = np.stack([x, y, z], 1) * 2 * RADIUS
    n = len(place)
    apart = np.linalg.norm(place[:, None] - place, axis=2)
    below, above = np.nonzero(np.triu(apart < 2 * RADIUS * (1 + 1e-9), 1))
    floor = np.nonzero(z == 0)[0]
    a, b = np.append(above, floor), np.append(below, np.full(len(floor), n))
    normal = np.concatenate([place[above] - place[below], np.tile([0.0, 0, 2 * RADIUS], (len(floor), 1))]) / 2 / RADIUS
    J = np.zeros((len(a), 3, 2, 6))
    for c, axis in enumerate(normal):
        R = oracle.frame(axis)
        for side, (sign, arm) in enumerate(((1, -RADIUS), (-1, RADIUS))):
            J[c, :, side, 3:], J[c, :, side, :3] = sign * R, sign * np.cross(arm * axis, R)
    J[b == n, :, 1] = 0
    inverse = np.array([1 / (0.4 * MASS * RADIUS**2)] * 3 + [1 / MASS] * 3)
    Y = J * inverse
    K = np.einsum("cisk,cjsk->cij", J, Y)
    V = np.zeros((n + 1, 6))
    V[:n, 5], V[:n, :5] = -FALL, 1e-3 * FALL * np.random.default_rng(5).normal(size=(n, 5))
    three = lambda x: Vec3(*(jnp.asarray(x[:, k]) for k in range(3)))  # noqa: E731
    none = np.zeros(len(a))
    tree = jnp.asarray(np.stack([a, b], 1), jnp.int32)
    made = Rows(tree, three(J), three(Y), Sym3.of(jnp.asarray(K)), Vec3(*(jnp.asarray(none),) * 3))
    return made, jnp.asarray(V), jnp.asarray(none), jnp.full(len(a), MU), jnp.ones(len(a), bool)


@functools.partial(compiled)
def run(arguments):
    return solve_cone(*arguments)


def law_error(arguments: tuple[Any, ...], p: np.ndarray, V: np.ndarray) -> float:
    """How far from the law, as a velocity."""
    rows, mu = arguments[0], np.asarray(arguments[3])
    J, K = np.stack([np.asarray(x) for x in rows.J.xyz], 1), np.asarray(rows.K.zz)
    u = np.einsum("cisk,csk->ci", J, V[np.asarray(rows.tree)])
    slip, push = np.hypot(u[:, 0], u[:, 1]), np.hypot(p[:, 0], p[:, 1])
    loose = mu * p[:, 2] - push
    errors = [-u[:, 2], np.minimum(p[:, 2] * K, u[:, 2]), -p[:, 2] * K, -loose * K, np.minimum(loose * K, slip)]
    return max(float(e.max()) for e in errors)


@pytest.mark.parametrize(("wide", "high"), [(6, 6), pytest.param(10, 10, marks=pytest.mark.slow)])
def test_a_heap_of_balls(wide: int, high: int) -> None:
    arguments = heap(wide, high)
    n = wide * wide * high
    p, V, code = run(arguments)
    p, V = np.stack([np.asarray(x) for x in p.xyz], 1), np.asarray(V)
    assert int(code) == OK
    assert law_error(arguments, p, V) < EXACT * FALL
    assert 0.5 * (V**2).sum() < 0.5 * (np.asarray(arguments[1]) ** 2).sum()  # equal in sign to kinetic energy
    assert (p[:, 2] > 0).sum() > n  # they carry each other


@pytest.mark.parametrize(("wide", "high"), [(3, 3), (6, 6), (10, 10)])
def test_room_grows_with_the_heap(wide: int, high: int) -> None:
    """Blocks that elimination fills in are counted, and fit."""
    tree = heap(wide, high)[0].tree
    n, C = wide * wide * high, len(tree)
    order = jax.jit(plan, static_argnums=3)(tree, jnp.arange(C, dtype=jnp.int32), jnp.int32(C), n)
    pairs = int(order.first[order.count])
    assert bool(order.fits)
    assert int(order.count) == n
    assert pairs <= pairs_room(n) <= 64 * n
    assert sorted(np.asarray(order.order)) == list(range(n))
