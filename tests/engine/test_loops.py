"""Loops as constraints: Jacobians and biases of every kind by central differences, motion by dense algebra."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from carom.engine.dynamics.crba import crba
from carom.engine.dynamics.kinematics import fk, integrate_q
from carom.engine.dynamics.rnea import rnea
from carom.engine.loops.active_forces import loop_forces
from carom.engine.loops.forward import constrained
from carom.engine.loops.impulse import project_velocity_changes
from carom.engine.loops.jacobian import closed
from carom.engine.loops.kinds import KINDS, RELATIONS, row_count
from carom.engine.loops.projection import project
from carom.engine.loops.proximal import solve_symmetric
from carom.engine.model import Model
from carom.engine.topology import Loop
from carom.tests.oracles.random_trees import Recipe, random_state, random_tree, unit

H = 1e-5  # of central differences: third derivatives of order 10 by H^2, and rounding by H, are below 1e-8
BY_DIFFERENCES = 2e-8
DENSE = 1e-9  # condition numbers of up to 1e5
FORCES = 1e-5  # of forces that repeat each other: rounding, by the 1e-9 that the solver adds to tell them apart
ALL = (*KINDS, *RELATIONS)
FREE = ("distance", "ball", "disc")  # which are exact wherever they are
TURNING = ("revolute", "cylindrical", "screw", "driven_turn")  # turned and shifted away from zero, where they can be


def wavy(t):
    return 0.2 * jnp.sin(3 * t) + 0.1 * t


def tied(kinds: tuple[str, ...], *, seed: int = 0, twice: bool = False) -> tuple[np.random.Generator, Model]:
    """Two trees of which one is free, with a loop of each kind between links drawn at random, the world among them.

    twice: every loop but relations and springs once more, on the same links and frames.
    """
    recipe = Recipe(seed, 5, roots=2, floating=True, branch=0.0, joints=("revolute", "prismatic"))
    rng, model = random_tree(recipe)
    topology, n = model.topology, model.topology.n_links
    angles = [topology.v_start[i] for i, joint in enumerate(topology.joints) if joint in ("revolute", "prismatic")]
    loops = []
    for k, kind in enumerate(kinds):
        a, b = (int(x) for x in rng.permutation(n)[:2])
        dofs = tuple(int(x) for x in rng.permutation(angles)[:2])
        dofs = {"gear": dofs, "drive": (dofs[0], -1)}.get(kind, ())
        loops.append(
            Loop(kind, a, -1 if k % 3 == 2 else b, dofs, wavy if kind == "distance" else None, kind == "spring")
        )
    loops += [loop for loop in loops if twice and loop.kind not in (*RELATIONS, "spring")]
    m = len(loops)
    model = model.replace(
        topology=dataclasses.replace(topology, loops=tuple(loops)),
        loop_position=rng.normal(size=(m, 2, 3)) * 0.5,
        loop_quaternion=unit(rng.normal(size=(m, 2, 4))),
        loop_size=rng.uniform(0.1, 0.4, m),
        loop_course=rng.normal(size=(m, 5)) * 0.3,
        loop_spring=rng.uniform(0.5, 2, (m, 2, 4)),
        loop_stiff=np.zeros((m, 2)),
        loop_damp=np.zeros((m, 2)),
        loop_limits=np.tile([-np.inf, np.inf], (m, 2, 1)),
        loop_active=np.ones(m),
    )  # fmt: skip
    if twice:
        half = len(kinds)
        for name in ("loop_position", "loop_quaternion", "loop_size", "loop_course"):
            array = getattr(model, name)
            kept = [k for k, loop in enumerate(loops[:half]) if loop.kind not in (*RELATIONS, "spring")]
            array[half:] = array[kept]
    return rng, jax.tree.map(jnp.asarray, model)


def closing(model: Model, q) -> Model:
    """The frames on b moved to where those on a are at q; joints that turn are turned from there, screws shifted."""
    poses = fk(model, q)
    p, R = (np.concatenate([np.asarray(x), y[None]]) for x, y in zip(poses, (np.zeros(3), np.eye(3)), strict=True))
    at, turned = (np.array(x) for x in (model.loop_position, model.loop_quaternion))
    size = np.array(model.loop_size)
    for k, loop in enumerate(model.topology.loops):
        frame = R[loop.a] @ matrix(turned[k, 0])
        point = p[loop.a] + R[loop.a] @ at[k, 0]
        if loop.kind in TURNING:
            shift = size[k] * 0.7 if loop.kind == "screw" else 0.3 if loop.kind == "cylindrical" else 0.0
            point = point + frame[:, 0] * shift
            frame = frame @ np.array([[1, 0, 0], [0, np.cos(0.7), -np.sin(0.7)], [0, np.sin(0.7), np.cos(0.7)]])
        if loop.kind == "universal":
            size[k] = 0.0
        if loop.kind in (*FREE, "spring", *RELATIONS):
            continue
        at[k, 1] = R[loop.b].T @ (point - p[loop.b])
        turned[k, 1] = quaternion(R[loop.b].T @ frame)
    return model.replace(
        loop_position=jnp.asarray(at), loop_quaternion=jnp.asarray(turned), loop_size=jnp.asarray(size)
    )


def matrix(q):
    w, v = q[0], q[1:]
    cross = np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])
    return np.eye(3) + 2 * w * cross + 2 * cross @ cross


def quaternion(R):
    """Of a rotation by less than half a turn, by its eigenvector."""
    K = np.array([[R[j, i] + R[i, j] if i != j else 2 * R[i, i] - np.trace(R) for j in range(3)] for i in range(3)])
    z = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    _, vectors = np.linalg.eigh(np.block([[np.trace(R), z[None]], [z[:, None], K]]))
    return vectors[:, -1]


def rows_of(model: Model) -> list[tuple[str, int]]:
    """Kind and number within the loop of each row that `closed` returns."""
    return [(loop.kind, n) for loop in model.topology.loops for n in range(row_count(loop.kind))]


@pytest.mark.parametrize("on", [False, True], ids=["off", "on"])
@pytest.mark.slow
def test_every_kind_by_central_differences(on):
    """A is the derivative of the errors, the bias that of the rates along the motion; rates are A v less the course's.

    Angles are exact where the rows beside them hold: off the manifold they are left out.
    """
    rng, model = tied(ALL, seed=1)
    q, v = map(jnp.asarray, random_state(rng, model.topology))
    t, nv = 0.4, model.topology.nv
    model = closing(model, q) if on else model
    rows = rows_of(model)
    assert {kind for kind, _ in rows} == set(ALL) - {"spring"}
    steps = jnp.concatenate([H * jnp.eye(nv), -H * jnp.eye(nv), H * v[None], -H * v[None], 0 * v[None]])
    moved = jax.vmap(lambda dv: integrate_q(model, q, dv, 1.0))(steps)
    times = jnp.concatenate([jnp.full(2 * nv, t), jnp.array([t + H, t - H, t])])
    near = jax.tree.map(np.asarray, closed(model, moved, jnp.broadcast_to(v, steps.shape), times))
    found = jax.tree.map(lambda x: x[-1], near)
    assert found.A.shape == (len(rows), nv)
    A = (near.error[:nv] - near.error[nv : 2 * nv]).T / (2 * H)
    along, bias = ((x[-3] - x[-2]) / (2 * H) for x in (near.error, near.rate))
    for k, row in enumerate(rows):
        angle = row in (("screw", 0), ("driven_turn", 0))
        slips = row[0] in ("ball", "disc") and row[1] > 0  # rates of nothing: below
        wanted = [(found.bias, bias)] * (on or not angle)
        wanted += [(found.A, A), (found.rate, along)] * ((on or not angle) and not slips)
        for ours, theirs in wanted:
            np.testing.assert_allclose(ours[k], theirs[k], rtol=0, atol=BY_DIFFERENCES, err_msg=str(row))
    if on:
        still = [k for k, (kind, _) in enumerate(rows) if kind in KINDS and not KINDS[kind].timed and kind not in FREE]
        np.testing.assert_allclose(found.error[np.array(still)], 0, atol=1e-14)
    no_slip(model, q, v, found, rows)


def no_slip(model, q, v, found, rows):
    """The point of a ball or disc on the plane has the velocity of the plane's point there, by the poses of both."""
    poses = fk(model, q)
    ends = [fk(model, integrate_q(model, q, s * H * v, 1.0)) for s in (1, -1)]

    def velocity(link, x):
        local = poses.rotation[link].T @ (x - poses.position[link])
        a, b = (pose.position[link] + pose.rotation[link] @ local for pose in ends)
        return (a - b) / (2 * H)

    for k, loop in enumerate(model.topology.loops):
        if loop.kind not in ("ball", "disc"):
            continue
        first = rows.index((loop.kind, 0))
        assert loop.b >= 0
        (i, Ri), (j, Rj) = (
            (poses.position[link] + poses.rotation[link] @ model.loop_position[k, n],
             poses.rotation[link] @ matrix(np.asarray(model.loop_quaternion[k, n])))
            for n, link in enumerate((loop.a, loop.b))
        )  # fmt: skip
        n, axle, r = Rj[:, 0], Ri[:, 0], model.loop_size[k]
        up = n if loop.kind == "ball" else n - axle * (n @ axle)  # as far as the disc's own plane lets it
        touch = i - r * up / jnp.linalg.norm(up)
        slip = Rj.T @ (velocity(loop.a, touch) - velocity(loop.b, touch))
        np.testing.assert_allclose(found.rate[first : first + 3], slip, rtol=0, atol=BY_DIFFERENCES)
        np.testing.assert_allclose(found.error[first], (touch - j) @ n, rtol=0, atol=1e-14)


SOME = ("revolute", "spring", "distance", "gear")  # of which the first and third are there twice


def lanes_of(seed: int):
    """Two lanes with parameters of their own, which break the loops and move against them."""
    rng, model = tied(SOME, seed=seed, twice=True)
    q, v = map(jnp.asarray, random_state(rng, model.topology, (2,)))
    wide = np.array([1.0, 1.5])
    lanes = model.replace(
        loop_position=model.loop_position * wide[:, None, None, None], loop_size=model.loop_size * wide[:, None],
        mass=model.mass * wide[:, None],
    )  # fmt: skip
    return rng, lanes, q, v, jnp.array([0.1, 0.3])


def dense(model, q, v, t, tau):
    """What equations are made of, and accelerations and multipliers of least norm by NumPy; lane by lane."""
    rows = closed(model, q, v, t)
    mass, bias = crba(model, q), rnea(model, q, v, jnp.zeros_like(v))
    for A, k, M, b, f in zip(*map(np.asarray, (rows.A, rows.bias, mass, bias, tau)), strict=True):
        free, back = np.linalg.solve(M, f - b), np.linalg.solve(M, A.T)
        force = -np.linalg.pinv(A @ back, rcond=1e-10, hermitian=True) @ (A @ free + k)
        yield M, b, A, k, free + back @ force, force


@pytest.mark.slow
def test_against_dense_algebra():
    """Newton's law and the constraints, where loops are there twice; in lanes with parameters of their own.

    What constraint forces do is what the courses make them do: multipliers by rates.
    """
    rng, model, q, v, t = lanes_of(3)
    rows = closed(model, q, v, t)
    v = v - (np.linalg.pinv(rows.A, rcond=1e-10) @ rows.rate[..., None])[..., 0]
    course = rows.A @ v[..., None]
    tau = rng.normal(size=v.shape)
    found = constrained(model, q, v, t, jnp.asarray(tau))
    for lane, (M, b, A, k, wanted, force) in enumerate(dense(model, q, v, t, tau)):
        assert (len(A), np.linalg.matrix_rank(A, tol=1e-6)) == (13, 7)
        a, forces = found.acceleration[lane], found.force[lane]
        np.testing.assert_allclose(a, wanted, rtol=0, atol=DENSE * np.abs(wanted).max())
        np.testing.assert_allclose(A @ a + k, 0, atol=DENSE * np.abs(k).max())
        np.testing.assert_allclose(forces, force, rtol=0, atol=FORCES * np.abs(force).max())
        np.testing.assert_allclose(M @ a + b - tau[lane], A.T @ forces, rtol=0, atol=DENSE * np.abs(force).max() * 10)
        power = v[lane] @ (M @ a + b - tau[lane])
        np.testing.assert_allclose(power, forces @ course[lane, :, 0], rtol=0, atol=1e-8 * np.abs(force).max())


@pytest.mark.slow
def test_projection_and_impulses():
    """Errors go as Newton's method takes them; velocities change as little as can be in the metric of the masses; and
    impulses leave A v as it is."""
    rng, model, q, v, t = lanes_of(4)
    near = q
    for _ in range(8):
        near, _ = project(model, near, v, t)
    assert np.abs(closed(model, near, v, t).error).max() < 1e-13
    off = integrate_q(model, near, jnp.asarray(rng.normal(size=v.shape)) * 1e-3, 1.0)
    first = np.abs(closed(model, off, v, t).error).max()
    once, moved = project(model, off, v, t)
    found = closed(model, once, moved, t)
    assert first > 1e-4
    assert np.abs(found.error).max() < 1e-3 * first**2  # two turns
    _, moved = project(model, near, v, t)
    kept, rate = project_velocity_changes(model, near, v), closed(model, near, v, t).rate
    for lane, (M, _, A, *_) in enumerate(dense(model, near, v, t, v)):
        back = np.linalg.solve(M, A.T) @ np.linalg.pinv(A @ np.linalg.solve(M, A.T), rcond=1e-10)
        np.testing.assert_allclose(moved[lane], v[lane] - back @ rate[lane], rtol=0, atol=1e-8)
        np.testing.assert_allclose(kept[lane], v[lane] - back @ (A @ v[lane]), rtol=0, atol=1e-8)


def test_springs_pull_as_their_energy_says():
    _, model, q, v, t = lanes_of(5)
    pulls = loop_forces(model, q, v, t)
    for lane in range(2):
        own = model.replace(**{name: getattr(model, name)[lane] for name in ("loop_position", "loop_size", "mass")})
        np.testing.assert_allclose(pulls[lane], spring_by_energy(own, q[lane], v[lane]), rtol=0, atol=1e-7)


def spring_by_energy(model, q, v):
    """Minus the derivative of k (d - l)^2/2 along each degree of freedom, and of c d' d by Rayleigh's function."""
    (k,) = (n for n, loop in enumerate(model.topology.loops) if loop.kind == "spring")
    loop = model.topology.loops[k]
    stiffness, rest, damping, force = np.asarray(model.loop_spring[k, 0])

    def length(q):
        poses = fk(model, q)
        ends = [
            at if link < 0 else poses.position[link] + poses.rotation[link] @ at
            for link, at in zip((loop.a, loop.b), model.loop_position[k], strict=True)
        ]
        return float(jnp.linalg.norm(ends[0] - ends[1]))

    steps = np.eye(len(v)) * H
    ends = [[length(integrate_q(model, q, sign * dv, 1.0)) for dv in steps] for sign in (1, -1)]
    slopes = (np.array(ends[0]) - np.array(ends[1])) / (2 * H)
    return slopes * (force - stiffness * (length(q) - rest) - damping * (slopes @ v))


def test_solver_of_equations_that_lack_rank():
    """Whatever the rank: right sides that can be reached are, and x is that of least norm, to what rounding leaves."""
    rng = np.random.default_rng(6)
    for rank in (0, 1, 4, 7):
        J = rng.normal(size=(7, rank))
        W, r = J @ J.T, J @ rng.normal(size=(rank, 2))
        x = np.asarray(solve_symmetric(jnp.asarray(W), jnp.asarray(r)))
        np.testing.assert_allclose(W @ x, r, rtol=0, atol=1e-12)
        np.testing.assert_allclose(x, np.linalg.pinv(W, rcond=1e-10) @ r, rtol=0, atol=FORCES)
    assert solve_symmetric(jnp.zeros((0, 0)), jnp.zeros((0, 2))).shape == (0, 2)


@pytest.mark.slow
def test_single_precision():
    rng, model, q, v, t = lanes_of(3)
    tau = jnp.asarray(rng.normal(size=v.shape))
    fine = constrained(model, q, v, t, tau).acceleration
    coarse = constrained(*jax.tree.map(lambda x: x.astype(jnp.float32), (model, q, v, t, tau))).acceleration
    assert coarse.dtype == jnp.float32
    np.testing.assert_allclose(coarse, fine, rtol=0, atol=2e-3 * np.abs(fine).max())
