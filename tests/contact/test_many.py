"""A thousand bodies at one instant: Coulomb's law holds for all of them, in room that grows as their number does."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from carom.contact.cone.elimination import FILL, elimination_order, pairs_room
from carom.contact.cone.solve import solve_cone
from carom.contact.contact_jacobian import ContactJacobian
from carom.engine.algebra.vec3 import Sym3, Vec3
from carom.engine.native.surface import native_jit
from carom.engine.results import OK, SOLVER_UNFINISHED
from carom.tests.oracles import cone_oracle as oracle

MU = 0.5
FALL = 9.81 / 240  # [m/s] in a step
BRICK = np.array([*np.diag(oracle.box_inertia(1.0, np.array([0.5, 0.25, 0.25]))), 1, 1, 1])  # inertia, mass
EXACT = 1e-9  # of FALL: ten times the tolerance


def wall(wide: int, high: int) -> tuple[Any, ...]:
    """Arguments of solve_cone: bricks of 1 kg, 1 m x 0.5 m x 0.5 m, each on two of the row below, all falling.

    Each half of a brick's lower face has a contact at its four corners.
    """
    places = np.array([[x + 0.5 * (z % 2), 0, 0.5 * z + 0.25] for z in range(high) for x in range(wide)])
    n = len(places)
    row, column = np.divmod(np.arange(n), wide)
    contacts = []
    for k in range(n):
        for half in (-1, 1):
            # of odd rows the right half stands on the next brick, of even rows the left half on the one before
            below = column[k] + (half + 1) // 2 - 1 + row[k] % 2
            other = n if row[k] == 0 else (row[k] - 1) * wide + below
            if row[k] == 0 or 0 <= below < wide:
                corners = [(x, y) for x in sorted((0, half * 0.5)) for y in (-0.25, 0.25)]
                contacts += [(k, other, places[k] + [x, y, -0.25]) for x, y in corners]
    tree = np.array([(a, b) for a, b, _ in contacts], np.int32)
    J = np.zeros((len(contacts), 3, 2, 6))
    R = oracle.frame(np.array([0, 0, 1.0]))
    for c, (a, b, point) in enumerate(contacts):
        for side, (body, sign) in enumerate(((a, 1), (b, -1))):
            if body < n:
                J[c, :, side, 3:], J[c, :, side, :3] = sign * R, sign * np.cross(point - places[body], R)
    Y = J / BRICK
    K = np.einsum("cisk,cjsk->cij", J, Y)
    V = np.zeros((n + 1, 6))
    V[:n, :5], V[:n, 5] = 1e-3 * FALL * np.random.default_rng(5).normal(size=(n, 5)), -FALL
    three = lambda x: Vec3(*(jnp.asarray(x[:, k]) for k in range(3)))  # noqa: E731
    none = jnp.zeros(len(tree))
    rows = ContactJacobian(jnp.asarray(tree), three(J), three(Y), Sym3.of(jnp.asarray(K)), Vec3(none, none, none))
    return rows, jnp.asarray(V), none, none + MU, none == 0


@native_jit
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


@pytest.mark.parametrize(("wide", "high"), [(5, 4), pytest.param(40, 25, marks=pytest.mark.slow)])
def test_a_wall_of_bricks(wide: int, high: int) -> None:
    arguments = wall(wide, high)
    p, V, code, _ = run(arguments)
    p, V = np.stack([np.asarray(x) for x in p.xyz], 1), np.asarray(V)
    assert int(code) == OK
    assert law_error(arguments, p, V) < EXACT * FALL
    ground = np.asarray(arguments[0].tree)[:, 1] == wide * high
    assert 0.9 < p[ground, 2].sum() / (FALL * wide * high) < 1.1  # it carries all, but for the noise they came with


@pytest.mark.parametrize(("wide", "high"), [(5, 4), (20, 10), (40, 25)])
def test_room_grows_with_the_bodies(wide: int, high: int) -> None:
    """Blocks that elimination fills in fit, and what there is room for grows no faster than the bodies."""
    tree = wall(wide, high)[0].tree
    n, C = wide * high, len(tree)
    order = jax.jit(elimination_order, static_argnums=3)(tree, jnp.arange(C, dtype=jnp.int32), jnp.int32(C), n)
    assert bool(order.fits)
    assert sorted(np.asarray(order.order)) == list(range(n))
    assert int(order.first[order.count]) <= 12 * n
    assert pairs_room(n) <= FILL * n


def test_where_there_is_no_room_sweeps_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """More slowly."""
    monkeypatch.setattr("carom.contact.cone.elimination.FILL", 1)
    arguments = wall(5, 3)
    C = len(arguments[-1])
    assert not bool(elimination_order(arguments[0].tree, jnp.arange(C, dtype=jnp.int32), jnp.int32(C), 15).fits)
    p, V, code, _ = solve_cone(*arguments)
    p, V = np.stack([np.asarray(x) for x in p.xyz], 1), np.asarray(V)
    assert int(code) == OK
    assert law_error(arguments, p, V) < EXACT * FALL
    _, _, code, _ = solve_cone(*arguments, max_iterations=1)
    assert int(code) == SOLVER_UNFINISHED


@pytest.mark.parametrize("friction", [0.0, 0.1, 0.5])
def test_derivatives_of_many_go_both_ways(friction: float) -> None:
    """Of a wall of more contacts than are computed without being counted: back and forth they are the same."""
    rows, V0, target, mu, active = wall(5, 4)
    assert len(active) > 64
    after = lambda V: solve_cone(rows, V, target, mu * 0 + friction, active).V  # noqa: E731
    forward = jax.jit(lambda V, d: jax.jvp(after, (V,), (d,))[1])
    backward = jax.jit(lambda V, onto: jax.vjp(after, V)[1](onto)[0])
    for seed in range(5):
        rng = np.random.default_rng(seed)
        d, onto, thrown = (jnp.asarray(rng.normal(size=V0.shape)) for _ in range(3))
        V = (V0 + 0.3 * thrown).at[-1].set(0)  # a contact on the verge of slipping has no derivative
        forth, back = forward(V, d), backward(V, onto)
        np.testing.assert_allclose((forth * onto).sum(), (back * d).sum(), rtol=1e-12 if friction == 0 else 1e-6)
    assert float(jnp.abs(forth).max()) > 1e-3
