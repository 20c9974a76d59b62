"""A run never stands still: steps have a least useful length, and what piles up is stopped together."""

from pathlib import Path

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.engine.native.surface import native_jit
from carom.engine.results import IMPACTS_CAPPED, OK
from carom.integrators.clock import Frames
from carom.integrators.motion.forces import Drive
from carom.integrators.rules import Rules
from carom.integrators.step import first_lane, tick
from carom.integrators.time_control import STALLED
from carom.tests.integrators.bouncing import RADIUS, ball

RULES, MAX_DT = Rules(), 1 / 240


def looked(model, state, short, *, more):
    """A lane that stands at this state, after so many short steps; after the next tick and after some more."""
    frames = Frames(jnp.asarray(0.1), jnp.asarray(0.1), jnp.int32(1))
    told = lambda *_: Drive()  # noqa: E731
    lane = first_lane(RULES, model, state, frames, told)
    lane = lane._replace(search=lane.search._replace(short=short))
    first = tick(RULES, model, lane, frames, jnp.asarray(MAX_DT), told)
    one = lambda _, lane: tick(RULES, model, lane, frames, jnp.asarray(MAX_DT), told).lane  # noqa: E731
    return first, jax.lax.fori_loop(0, more, one, first.lane)


@pytest.mark.parametrize("short", [STALLED - 2, STALLED])
def test_what_piles_up_is_stopped_without_bounce(short):
    """The ball strikes: with a bounce while the lane gets on; else it is stopped, and the code says so."""
    model, state = ball(restitution=0.8)
    at_ground = carom.State(state.q.at[2].set(RADIUS), state.v.at[5].set(-1.0), state.t)
    more = 20 if short < STALLED else 40  # before the frame's end; steps without progress grow to some length
    first, later = native_jit(looked, ("more",))(model, at_ground, jnp.int32(short), more=more)
    if short < STALLED:
        assert (int(first.impacts.count), int(first.lane.code)) == (1, OK)
        assert float(first.lane.ready.state.v[5]) == pytest.approx(0.8)
        assert int(first.lane.search.short) == STALLED - 1  # the first look takes no time
        assert int(later.search.short) == 0
    else:
        assert (int(first.impacts.count), int(first.lane.code)) == (0, IMPACTS_CAPPED)
        assert float(first.lane.ready.state.v[5]) == -1.0
        after = later.ready.state
        assert float(after.t) > MAX_DT
        assert float(after.q[2]) == pytest.approx(RADIUS, abs=1e-9)
        assert float(after.v[5]) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.slow
def test_a_walker_that_falls_gets_to_the_end():
    """Its foot's slide stopped again and again after 1e-16 s: 20000 ticks did not get it past 0.951 s."""
    path = Path(gymnasium.__file__).parent / "envs/mujoco/assets/walker2d.xml"
    model, state = carom.compile_scene(carom.load(path))
    how = {"scheme": "semi_implicit", "time_control": "likely", "max_dt": 0.01, "frame_dt": 0.01}
    run = carom.rollout(model, state, duration=2.0, max_ticks=5000, throw=False, **how)
    assert float(run.state.t) == pytest.approx(2.0)
    assert np.isfinite(run.q).all()


def test_a_step_gives_up_after_its_ticks():
    model, state = ball(restitution=0.8)
    with pytest.raises(RuntimeError, match="raise max_ticks"):
        carom.step(model, state, dt=0.1, max_ticks=3)


def test_what_turns_fast_in_contact_is_not_followed_in_ever_shorter_steps():
    """Two drums over each other in a corner of the floor, as sixty random bodies left them: they roll on each other's
    edges with 500 m/s^2. Steps were cut to 3 us for the energy that such a contact loses; 1/64 of the longest is the
    least for that."""
    b = carom.SceneBuilder()
    b.add_plane(restitution=0.5, friction=0.3)
    for name, mass, place, turn, v in (
        ("under", 1.5451346766855238, (4.595340647099827, 4.540616063328934, 0.1008549454360063),
         (0.6945313690420216, 0.6632861470082805, -0.2361320149227201, 0.14805180219119743),
         (-1.12346966786646, -13.987053956972, 10.5191330846923, -0.1396077156793, 0.7188568221508, -0.0720785211401)),
        ("over", 7.027988218939148, (4.482450152847531, 4.553081029082678, 0.3012383269413124),
         (-0.9886701594581087, 0.024520614025240407, -0.004821378898224704, 0.14800949155518067),
         (14.9177917992866, 12.7402319476615, 2.0143357896781, -0.3805341163233, -1.0459310825325, 0.8925981498567)),
    ):  # fmt: skip
        b.add_body(name, [carom.Cylinder(0.1, 0.1)], mass=mass, position=place, quaternion=turn, friction=0.3,
                   restitution=0.2, angular_velocity=v[:3], linear_velocity=v[3:])  # fmt: skip
    model, state = carom.compile_scene(b.build(), overlaps="ignore")
    run = carom.rollout(model, state, duration=0.05, frame_dt=0.01, max_dt=1 / 120, max_ticks=1000, throw=False)
    assert run.code == carom.Code.OK
    assert int(run.stats.ticks) < 400
