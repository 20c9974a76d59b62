"""Impacts in scenes: cradles, limits of joints, Kane and Levinson's pendulum, heaps that must not gain energy."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import nnls

import carom
from carom.contact.cone.search import LOOSE
from carom.contact.contact_jacobian import jacobian_at, relative_velocity
from carom.contact.determine import determine, limited_dofs
from carom.contact.events import contact_events
from carom.contact.respond import respond
from carom.contact.resting.solve import Midway, solve
from carom.engine.dynamics.trees import to_blocks, trees_of
from carom.engine.native.surface import native_jit
from carom.engine.results import ENERGY_GAINED, IMPACTS_CAPPED, OK, SOLVER_UNFINISHED, gravest
from carom.tests.oracles.random_trees import Recipe, random_state, random_tree
from carom.tests.oracles.stepping import run

BOTH = pytest.mark.parametrize("impacts", ["sequential", "simultaneous"])


@functools.partial(native_jit, static_argnames=("law", "impacts", "max_impacts"))
def strike(model, state, law="stronge", impacts="sequential", max_impacts=512):
    """(v after, events, code, slowest u_n) of a state's impacts, and of stopping what they leave closing."""
    contacts = determine(model, state.q, carom.detect(model, state.q, margin=1e-6))
    rows = jacobian_at(model, state.q, contacts)
    response = respond(
        model, state.q, state.v, contacts, rows, law=law, impacts=impacts, max_impacts=max_impacts, max_logged=512
    )
    none = jax.tree.map(jnp.zeros_like, contacts.point)
    rest = solve(
        model, contacts, rows, response.v, response.v, jnp.zeros_like(state.t), Midway(rows, none, contacts.frame)
    )
    u = relative_velocity(rows, to_blocks(trees_of(model.topology), rest.v))
    slowest = jnp.where(contacts.active, u.z, jnp.inf).min(0)
    code = gravest(response.code, rest.code)
    return rest.v, contact_events(contacts, response.impacts), code, slowest


def cradle(masses, e, gap=0.0):
    """Balls in a row along x, the first one moving at 1 m/s."""
    b = carom.SceneBuilder(gravity=(0, 0, 0))
    for k, m in enumerate(masses):
        velocity = (1, 0, 0) if k == 0 else (0, 0, 0)
        position = (k * (1 + gap), 0, 0)
        b.add_body(f"ball {k}", [carom.Sphere(0.5)], mass=m, position=position, linear_velocity=velocity, restitution=e)
    return carom.compile_scene(b.build())


def one_by_one(masses, e, slow):
    """Velocities after pairwise impacts, the fastest first, until none closes faster than `slow` [m/s]."""
    m, v, count = np.array(masses, float), np.eye(len(masses))[0], 0
    while (closing := v[:-1] - v[1:]).max() > slow:
        k = int(closing.argmax())
        p = (1 + e) * closing[k] * m[k] * m[k + 1] / (m[k] + m[k + 1])
        v[k], v[k + 1], count = v[k] - p / m[k], v[k + 1] + p / m[k + 1], count + 1
    return v, count


def all_at_once(masses, e):
    """Moreau's law without friction: impulses that minimise p W p / 2 + (1 + e) p u over p >= 0, by nnls."""
    m, v = np.array(masses, float), np.eye(len(masses))[0]
    J = np.eye(len(m), k=1)[:-1] - np.eye(len(m))[:-1]
    u = J @ v
    L = J / np.sqrt(m)  # W = L L^T
    p, _ = nnls(L.T, -np.linalg.lstsq(L, np.where(u < 0, 1 + e, 1) * u, rcond=None)[0])
    return v + J.T @ p / m


MASSES = [(1.0,) * 5, (3.0, 1.0, 0.5, 2.0, 1.0), (1.0, 2.0)]
FIVE = [pytest.param(m, marks=pytest.mark.slow) for m in MASSES[:2]]


@pytest.mark.parametrize("e", [1.0, 0.5, 0.0])
@pytest.mark.parametrize("masses", MASSES, ids=str)
def test_cradle_one_by_one(masses, e):
    model, state = cradle(masses, e)
    v, events, code, slowest = strike(model, state)
    want, count = one_by_one(masses, e, float(model.rest_speed))
    got = np.asarray(v).reshape(-1, 6)[:, 3]
    assert code == OK
    assert events.count == count
    # what closes more slowly than `rest_speed` is ended together: plastic balls at the speed of all
    np.testing.assert_allclose(got, want, atol=1e-12 if e == 1 else 3 * float(model.rest_speed))
    if e == 0:
        np.testing.assert_allclose(got, masses[0] / sum(masses), atol=1e-9)
    assert slowest >= -1e-12
    if e == 1 and len(set(masses)) == 1:
        np.testing.assert_allclose(got, np.eye(len(masses))[-1], atol=1e-12)  # only the last ball leaves
    if len(masses) == 2:
        np.testing.assert_allclose(got[1], masses[0] * (1 + e) / sum(masses), atol=1e-12)


@pytest.mark.parametrize("e", [1.0, 0.5, 0.0])
@pytest.mark.parametrize("masses", [(1.0,) * 3, *FIVE], ids=str)
@pytest.mark.slow
def test_cradle_all_at_once(masses, e):
    model, state = cradle(masses, e)
    v, events, code, slowest = strike(model, state, impacts="simultaneous")
    got = np.asarray(v).reshape(-1, 6)[:, 3]
    assert code == OK
    assert slowest >= -1e-9
    np.testing.assert_allclose(got, all_at_once(masses, e), atol=1e-8)
    if len(masses) == 3:
        np.testing.assert_allclose(got, [[-1 / 3, 2 / 3, 2 / 3], [0, 0.5, 0.5], [1 / 3] * 3][int(2 - 2 * e)], atol=1e-8)
    np.testing.assert_allclose(np.dot(got, masses), masses[0], rtol=1e-12)
    assert events.energy_after[events.count - 1] <= events.energy_before[0] * (1 + 1e-12)


@pytest.mark.parametrize(
    ("count", "e"),
    [(5, 0.5), *(pytest.param(*row, marks=pytest.mark.exhaustive) for row in ((5, 1.0), (5, 0.0), (7, 0.5)))],
)
def test_cradle_with_gaps(count, e):
    """0.1 mm apart, stepped: a blow passes ball by ball, whichever way several impacts at once are resolved.

    The last ball leaves with ((1 + e)/2)^(N - 1) v after one sweep; plastic ones end at the speed of all.
    """
    model, state = cradle((1.0,) * count, e, gap=1e-4)
    steps = 4000 if e == 0 else 400
    speeds = np.asarray(run(model, state, 1e-5, steps=steps).path.v).reshape(steps, count, 6)[:, :, 3]
    last = speeds[:, -1]
    if e == 0:
        np.testing.assert_allclose(speeds[-1], 1 / count, atol=2 * float(model.rest_speed))
    else:
        np.testing.assert_allclose(last[np.argmax(last > 0)], ((1 + e) / 2) ** (count - 1), atol=1e-12)
    if e == 1:
        np.testing.assert_allclose(speeds[-1], np.eye(count)[-1], atol=1e-12)
    np.testing.assert_allclose(speeds.sum(1), 1, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("e", "said"), [(0.5, IMPACTS_CAPPED), (0.0, OK)])
def test_capped_cradle_is_ended_together(e, said):
    """Five balls and room for three impacts: the code says so, unless they are plastic and lose no bounce by that."""
    model, state = cradle((1.0,) * 5, e)
    v, events, code, slowest = strike(model, state, max_impacts=3)
    assert code == said
    assert events.count == 3
    assert slowest >= -1e-9
    np.testing.assert_allclose(np.asarray(v).reshape(-1, 6)[:, 3].sum(), 1)


# -- Kane and Levinson ----------------------------------------------------------------------------------


def kane(e):
    """Two rods hang from a pin, turned by 20 and 30 degrees from down; the tip strikes a rough floor."""
    b = carom.SceneBuilder()
    angles, L = np.radians([20, 30]), 1.0
    tip = L * (np.cos(angles[0]) + np.cos(angles[1]))
    b.add_plane(offset=-tip, friction=0.5, restitution=e)
    rod = {"mass": 1.0, "com": (0, 0, -L / 2), "inertia": (1 / 12, 1 / 12, 1e-9)}
    y = carom.Revolute(axis=(0, -1, 0))  # so that a positive angle carries the tip along +x
    b.add_link("upper", joint=y, q0=angles[0], v0=-0.1, **rod)
    point = carom.Sphere(1e-10, position=(0, 0, -L), friction=0.5, restitution=e)
    b.add_link("lower", "upper", joint=y, position=(0, 0, -L), q0=angles[1] - angles[0], v0=-0.1, shapes=[point], **rod)
    return carom.compile_scene(b.build())


@pytest.mark.parametrize(
    ("law", "e", "ratio"),
    [
        ("newton", 0.5, 0.0170882544 / 0.0231814109), ("poisson", 0.5, 0.0126356768 / 0.0231814109),
        ("stronge", 0.5, 0.0128236780 / 0.0231814109), ("newton", 0.8, 1.13935), ("poisson", 0.8, 0.58534),
        ("stronge", 0.8, 0.62781),
    ],
)  # fmt: skip
@pytest.mark.slow
def test_kane_pendulum(law, e, ratio):
    model, state = kane(e)
    v, events, code, _ = strike(model, state, law=law)
    assert code == OK
    assert events.count == 1
    np.testing.assert_allclose(events.energy_before[0], 0.0231814109, rtol=1e-8)
    np.testing.assert_allclose(events.energy_after[0] / events.energy_before[0], ratio, rtol=1e-5)
    after = carom.energy(model, carom.State(state.q, v, state.t)).kinetic
    np.testing.assert_allclose(after, events.energy_after[0], rtol=1e-10)
    assert events.code[0] == (ENERGY_GAINED if ratio > 1 else OK)
    if (law, e) == ("stronge", 0.5):
        np.testing.assert_allclose(np.cumsum(v), [-0.1989323360, 0.2231367854], atol=1e-8)
    if (law, e) == ("stronge", 0.8):
        np.testing.assert_allclose(np.cumsum(v), [-0.214207309439, 0.253903235688], atol=1e-8)


# -- joint limits -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "recipe", [Recipe(601, 7, branch=0.4), pytest.param(Recipe(602, 9, roots=3), marks=pytest.mark.exhaustive)], ids=str
)
def test_limit_of_a_random_tree(recipe):
    """4.7: dqd = M^-1 e_j lambda, lambda = -(1 + e) qd_j / (M^-1)_jj, dT = -(1 - e^2) qd_j^2 / (2 (M^-1)_jj)."""
    rng, model = random_tree(recipe)
    model = jax.tree.map(jnp.asarray, model)
    q, v = random_state(rng, model.topology)
    dofs, coordinates, _ = limited_dofs(model.topology)
    assert len(dofs) >= 3
    Minv = np.linalg.inv(carom.crba(model, q))
    for upper in (False, True):
        for j, k in zip(dofs[:4], coordinates[:4], strict=False):
            e = rng.uniform()
            sign = -1 if upper else 1
            vj = np.array(v)
            vj[j] = -sign * abs(v[j])  # into the limit
            stop = jnp.full_like(model.lower, -sign * np.inf).at[j].set(q[k])
            one = model.replace(limit_restitution=jnp.full_like(model.damping, e))
            one = one.replace(**{"upper" if upper else "lower": stop})
            state = carom.State(jnp.asarray(q), jnp.asarray(vj), jnp.zeros(()))
            after, events, code, _ = strike(one, state)
            assert code == OK
            assert events.count == 1
            assert events.dof[0] == j
            lam = float(-(1 + e) * vj[j] / Minv[j, j])
            np.testing.assert_allclose(after - vj, Minv[:, j] * lam, rtol=1e-8, atol=1e-10)
            np.testing.assert_allclose(events.impulse[0], [0, 0, abs(lam)], rtol=1e-8)
            lost = events.energy_before[0] - events.energy_after[0]
            np.testing.assert_allclose(lost, (1 - e**2) * vj[j] ** 2 / (2 * Minv[j, j]), rtol=1e-8)


@pytest.mark.parametrize("e", [1.0, 0.4, 0.0])
@pytest.mark.slow
def test_two_rods_struck_at_the_elbow(e):
    """A straight arm of two equal rods, the elbow opening into its limit: M = m L^2 ((8/3, 5/6), (5/6, 1/3))."""
    b = carom.SceneBuilder(gravity=(0, 0, 0))
    rod = {"mass": 2.0, "com": (0.35, 0, 0), "inertia": (1e-9, 2.0 * 0.7**2 / 12, 2.0 * 0.7**2 / 12)}
    b.add_link("upper", joint=carom.Revolute(axis=(0, 0, 1)), v0=0.3, **rod)
    elbow = carom.Revolute(axis=(0, 0, 1), limits=(-2, 0), restitution=e)
    b.add_link("lower", "upper", joint=elbow, position=(0.7, 0, 0), v0=1.0, **rod)
    model, state = carom.compile_scene(b.build())
    v, events, code, _ = strike(model, state)
    det = 8 / 3 * 1 / 3 - (5 / 6) ** 2
    inverse = np.array([-5 / 6, 8 / 3]) / det  # column of the elbow, times m L^2
    assert (code, events.count) == (OK, 1)
    np.testing.assert_allclose(v, [0.3, 1.0] - inverse * (1 + e) / inverse[1], atol=1e-12)
    assert events.bodies[0].tolist() == [1, 0]


# -- heaps ----------------------------------------------------------------------------------------------------


@functools.cache
def heap():
    """Boxes and balls pressed into each other and into the ground, their velocities and materials drawn per lane."""
    b = carom.SceneBuilder()
    b.add_plane()
    for k, (x, z) in enumerate([(0, 0.29), (0.55, 0.28), (0.3, 0.8), (-0.2, 0.85)]):
        shape = [carom.Box((0.3, 0.3, 0.3)), carom.Sphere(0.3)][k % 2]
        b.add_body(f"body {k}", [shape], mass=0.5 + k, position=(x, 0.02 * k, z))
    model, state = carom.compile_scene(b.build())
    rng, lanes = np.random.default_rng(5), 200
    n = len(model.topology.pairs)
    mu, e = (jnp.asarray(rng.uniform(0, most, (lanes, n))) for most in (2, 1))
    model = model.replace(pair_friction=mu, pair_restitution=e)
    states = carom.tile(state, lanes)
    v = rng.normal(size=states.v.shape)
    assert len(np.unique(v)) == v.size
    return model, carom.State(states.q, jnp.asarray(v), states.t)


@pytest.mark.slow
@pytest.mark.parametrize("impacts", ["sequential", pytest.param("simultaneous", marks=pytest.mark.exhaustive)])
def test_heaps_never_gain_energy_and_end_apart(impacts):
    """Whatever e in [0, 1] and mu in [0, 2]; and every impact's energy follows from its impulse."""
    model, states = heap()
    v, events, code, slowest = strike(model, states, impacts=impacts)
    assert (events.count >= 1).all()
    assert np.isfinite(v).all()
    kinetic = [carom.energy(model, carom.State(states.q, x, states.t)).kinetic for x in (states.v, v)]
    np.testing.assert_allclose(events.energy_before[:, 0], kinetic[0], rtol=1e-12)
    assert (kinetic[1] <= kinetic[0] * (1 + 1e-9)).all()
    settled = code != SOLVER_UNFINISHED
    fastest = np.abs(np.nan_to_num(events.u_before)).max((1, 2))
    assert (slowest >= np.where(settled, -LOOSE[8] * fastest, -1)).all()
    assert (slowest >= -1e-6).mean() > 0.98
    real = np.arange(events.code.shape[1]) < events.count[:, None]
    work = (events.impulse * (events.u_before + events.u_after)).sum(-1) / 2
    gained = np.where(real, events.energy_after - events.energy_before, 0)
    np.testing.assert_allclose(gained, np.where(real, work, 0), atol=1e-9)
    assert (code == OK).mean() > 0.9, np.unique(code, return_counts=True)
    assert settled.mean() > 0.98
    if impacts == "sequential":
        assert (gained <= 1e-9).all()
        tangential = np.linalg.norm(events.impulse[..., :2], axis=-1)
        mu = np.take_along_axis(np.asarray(model.pair_friction), np.asarray(events.pair), 1)
        assert (tangential <= np.where(real, mu * events.impulse[..., 2], 0) + 1e-9).all()


@pytest.mark.exhaustive
def test_a_lane_is_a_single_scene():
    model, states = heap()
    v, events, _, _ = strike(model, states)
    one = model.replace(pair_friction=model.pair_friction[7], pair_restitution=model.pair_restitution[7])
    v7, events7, _, _ = strike(one, jax.tree.map(lambda x: x[7], states))
    np.testing.assert_allclose(v[7], v7, atol=1e-9)
    assert events.count[7] == events7.count


def test_unknown_names_are_refused():
    model, state = cradle((1.0, 1.0), 1.0)
    with pytest.raises(ValueError, match="impacts is 'both'; it must be one of sequential, simultaneous"):
        strike(model, state, impacts="both")
    with pytest.raises(ValueError, match="no law of impact 'fair'"):
        strike(model, state, law="fair")


def test_no_impact_changes_nothing():
    model, state = cradle((1.0, 1.0), 1.0)
    away = carom.State(state.q, -state.v, state.t)
    v, events, code, _ = strike(model, away)
    np.testing.assert_array_equal(v, away.v)
    assert (code, events.count) == (OK, 0)
    assert (events.bodies == -1).all()
