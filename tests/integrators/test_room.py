"""Room for contacts is made where a run needs it, and no lane loses a contact before."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.contact.determine import default_capacity
from carom.engine.results import CONTACTS_FULL, OK

APART = np.array([0.0, 7.0, 14.0, 21.0]).astype(int)  # where the coordinates of the four boxes begin


@pytest.fixture(scope="module")
def tiles():
    """Four boxes on a plane, side against side: 36 contacts, and room for 32."""
    b = carom.SceneBuilder()
    b.add_plane(friction=0.6, restitution=0.0)
    for k, (x, y) in enumerate(((0, 0), (0.2, 0), (0, 0.2), (0.2, 0.2))):
        b.add_body(f"{k}", [carom.Box((0.1, 0.1, 0.1))], mass=1.0, position=(x, y, 0.1), friction=0.6, restitution=0.0)
    model, state = carom.compile_scene(b.build())
    assert default_capacity(model.topology) == 32
    return model, state


def test_a_lane_that_needs_room_gets_it_and_others_do_not_change(tiles):
    model, state = tiles
    far = carom.State(state.q.at[APART].add(jnp.arange(4) * 0.5), state.v, state.t)  # 16 contacts
    alone = [carom.rollout(model, start, duration=0.1) for start in (state, far)]
    assert [int(run.stats.contacts) for run in alone] == [36, 16]
    assert np.abs(alone[0].q - state.q).max() <= 1e-12
    both = jax.tree.map(lambda *x: jnp.stack(x), far, state, far)
    batch = carom.rollout(model, both, duration=0.1)
    for lane, run in enumerate((alone[1], alone[0], alone[1])):
        np.testing.assert_array_equal(batch.q[lane], run.q)
        np.testing.assert_array_equal(batch.v[lane], run.v)
    np.testing.assert_array_equal(batch.code, OK)
    given = carom.rollout(model, state, duration=0.1, max_contacts=64)
    np.testing.assert_array_equal(given.q, alone[0].q)


def test_a_step_and_a_world_make_room_too(tiles):
    model, state = tiles
    after = carom.step(model, state, dt=1 / 60)
    assert float(after.t) == pytest.approx(1 / 60)
    assert np.abs(after.q - state.q).max() <= 1e-12
    jitted = jax.jit(lambda s: carom.rollout(model, s, duration=0.1))(state)
    assert int(jitted.code) == CONTACTS_FULL  # nothing can be compiled there; the lane stops where it was
    np.testing.assert_array_equal(jitted.state.q, state.q)
    assert np.isnan(jitted.q[1:]).all()


@pytest.mark.slow
def test_room_that_was_asked_for_is_an_error_with_the_number(tiles):
    model, state = tiles
    with pytest.raises(RuntimeError, match=r"t = 0 s: .*max_contacts.*\(36 needed\)"):
        carom.rollout(model, state, duration=0.1, max_contacts=20)


@pytest.mark.slow
def test_a_live_world_makes_room(tiles):
    del tiles
    b = carom.SceneBuilder()
    b.add_plane(friction=0.6, restitution=0.0)
    for k, (x, y) in enumerate(((0, 0), (0.2, 0), (0, 0.2), (0.2, 0.2))):
        b.add_body(f"{k}", [carom.Box((0.1, 0.1, 0.1))], mass=1.0, position=(x, y, 0.1), friction=0.6, restitution=0.0)
    world = carom.Live(b)
    before = np.array(world.state.q)
    for _ in range(3):
        world.step()
    assert world.time == pytest.approx(3 / 60)
    assert np.abs(world.state.q - before).max() <= 1e-5
