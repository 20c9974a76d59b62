"""Laws of impact of one's own: asked as Carom's are, in impacts, runs and batches, and never taken for another."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.contact.laws.table import LAWS
from carom.engine.native import key

G = 9.81


def sticks(K, u, mu, e, e_t):
    """The point stops, as far as friction can do that."""
    inverse = jnp.stack([jnp.cross(K[1], K[2]), jnp.cross(K[2], K[0]), jnp.cross(K[0], K[1])], 1) / jnp.dot(
        K[0], jnp.cross(K[1], K[2])
    )
    return -inverse @ u


def bounces(K, u, mu, e, e_t):
    """Normal restitution e, no friction."""
    return jnp.array([0, 0, -(1 + e) * u[2] / K[2, 2]])


def dropped(restitution):
    b = carom.SceneBuilder(gravity=(0, 0, -G))
    b.add_plane(restitution=restitution)
    b.add_body("ball", [carom.Sphere(radius=0.1)], position=(0, 0, 1.1))
    return carom.compile_scene(b.build())


@pytest.fixture
def law():
    """Registers one for a test."""
    names = []

    def register(name, impulse, **more):
        carom.register_law(name, impulse, **more)
        names.append(name)
        return name

    yield register
    for name in set(names):
        del LAWS[name]
        key._only_here.discard(name)


def asked(K, u, law, mu=0.1):
    return carom.resolve_impact(K, np.array(u, float), friction=mu, restitution=0.5, law=law)


def test_its_impulse_is_what_the_impact_has(law):
    name = law("sticks", sticks, loses=True)
    K = np.array([[3.04, -0.9, 1.5], [-0.9, 4, 0.9], [1.5, 0.9, 3.04]])
    impact = asked(K, [0.3, -0.2, -1], name, mu=1.0)
    np.testing.assert_allclose(impact.u, 0, atol=1e-12)
    np.testing.assert_allclose(impact.impulse, -np.linalg.solve(K, [0.3, -0.2, -1]), rtol=1e-12)
    away = asked(K, [0.3, -0.2, 1], name)
    np.testing.assert_array_equal(away.impulse, 0)


def test_an_impulse_that_friction_cannot_give_is_put_on_the_cone(law):
    impact = asked(np.diag([3.5, 3.5, 1.0]), [1.0, 0, -1], law("sticks", sticks))
    assert int(impact.code) == carom.Code.IMPACT_UNFINISHED
    np.testing.assert_allclose(impact.impulse, [-0.1, 0, 1], rtol=1e-12)


def test_a_run_is_that_of_the_law_it_repeats(law):
    """A law without friction, told twice: Carom's own, and one's own."""
    name = law("bounces", bounces)
    model, state = dropped(0.8)
    lanes = carom.tile(state, 3)
    lanes = dataclasses.replace(lanes, v=lanes.v.at[:, 5].set(jnp.arange(3.0)))
    own, theirs = (carom.rollout(model, lanes, duration=1.5, frame_dt=0.5, law=x) for x in (name, "frictionless"))
    np.testing.assert_allclose(own.q, theirs.q, atol=1e-12)
    assert int(own.events.count.min()) >= 1
    alone = carom.rollout(model, state, duration=1.5, frame_dt=0.5, law=name)
    assert np.asarray(alone.q).tobytes() == np.asarray(own.q[0]).tobytes()


def test_a_law_that_is_registered_again_is_the_new_one(law):
    """As where a notebook's cell is run twice: in runs, too, that were compiled with the old one."""
    model, state = dropped(0.8)
    speeds = []
    for keeps in (0.5, 0.25):
        name = law("again", lambda K, u, mu, e, e_t, keeps=keeps: jnp.array([0, 0, -(1 + keeps) * u[2] / K[2, 2]]))
        run = carom.rollout(model, state, duration=0.5, frame_dt=0.5, law=name)
        assert int(run.events.count) == 1
        speeds.append(-float(run.events.u_after[0, 2] / run.events.u_before[0, 2]))
    np.testing.assert_allclose(speeds, [0.5, 0.25], rtol=1e-9)


def test_its_code_has_no_lasting_name(law):
    """Another process may have another law of this name."""
    name = law("mine", bounces)
    assert key.program_key(test_its_code_has_no_lasting_name, "stronge", ()) is None  # a test's function has none
    assert key.program_key(carom.rollout, ("stronge",), ()) is not None
    assert key.program_key(carom.rollout, (name,), ()) is None


def test_a_law_that_gains_energy_is_told(law):
    name = law("gains", lambda K, u, mu, e, e_t: jnp.array([0, 0, -3 * u[2] / K[2, 2]]))
    impact = asked(np.eye(3), [0.0, 0, -1], name)
    assert int(impact.code) == carom.Code.ENERGY_GAINED


def test_what_is_put_on_the_cone_and_gains_energy_is_told(law):
    """A tangential impulse of 100 N s is cut to mu p_n, which is too much still."""
    name = law("pushes", lambda K, u, mu, e, e_t: jnp.array([100.0, 0, -1.5 * u[2] / K[2, 2]]))
    impact = asked(np.eye(3), [2.0, 0, -2], name, mu=0.9)
    np.testing.assert_allclose(impact.impulse, [2.7, 0, 3], rtol=1e-12)
    assert int(impact.code) == carom.Code.ENERGY_GAINED


def test_an_answer_that_is_not_finite_is_told(law):
    name = law("breaks", lambda K, u, mu, e, e_t: u / 0)
    impact = asked(np.eye(3), [0.0, 0, -1], name)
    assert np.isnan(impact.impulse).all()
    assert int(impact.code) == carom.Code.NOT_FINITE


@pytest.mark.parametrize(
    ("name", "impulse", "said"),
    [
        ("stronge", sticks, "there is a law 'stronge' already"),
        ("two words", sticks, "name is 'two words'"),
        ("three", 3, "its function is 3; it must be a function"),
        ("short", lambda K, u, mu, e, e_t: u[:2], r"must return one array \(3,\)"),
        (
            "chooses",
            lambda K, u, mu, e, e_t: -u if u[2] > 0 else u,
            "'chooses' asks for the value of an array",
        ),
        ("pair", lambda K, u, mu, e, e_t: (u, 0), r"must return one array \(3,\)"),
        ("whole", lambda K, u, mu, e, e_t: jnp.array([0, 0, 1]), r"an array \(3,\) of int\d+; it must .* of floats"),
        ("outside", lambda K, u, mu, e, e_t: np.asarray(u), "'outside' hands arrays to numpy"),
    ],
)
def test_what_is_no_law_is_refused(name, impulse, said):
    with pytest.raises(ValueError, match=said):
        carom.register_law(name, impulse)
