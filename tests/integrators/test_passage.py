"""What links of trees do in a step is checked after it: no whip passes through a wall, no bullet through a door.

Walls are thin, and steps so long that ends of links go much further in one than that.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.collision.detect import detect
from carom.collision.passage import clearance_used, clearances
from carom.collision.safe_step import undetected_depths
from carom.integrators.schemes import scheme_named

LINKS, LENGTH, RADIUS = 4, 0.25, 0.01  # [m]
AWAY = 0.52  # of the near face of the wall from the whip's root [m]
LANES = 64


def whips(restitution: float = 0.5) -> tuple[Any, Any]:
    """Chains of links a tenth as heavy one as the one before, each lane bent, and turning at up to 100 rad/s, in its
    own way, beside a wall of 1 mm to 10 cm."""
    b, rng = carom.SceneBuilder(), np.random.default_rng(5)
    b.add_static("wall", [carom.Box((0.5, 2.0, 2.0))], position=(AWAY + 0.5, 0, 0), restitution=restitution)
    rod = carom.Capsule(RADIUS, LENGTH / 2, position=(0, 0, -LENGTH / 2))
    for k in range(LINKS):
        b.add_link(
            f"{k}", f"{k - 1}" if k else "world", joint=carom.Revolute(axis=(0, 1, 0) if k % 2 else (0.3, 1, 0.2)),
            position=(0, 0, -LENGTH if k else 0.0), mass=10.0**-k, shapes=[rod], restitution=restitution,
        )  # fmt: skip
    model, state = carom.compile_scene(b.build())
    half = 10 ** rng.uniform(-3, -1, LANES) / 2
    size = np.broadcast_to(model.shape_size, (LANES, *model.shape_size.shape)).copy()
    position = np.broadcast_to(model.shape_position, (LANES, *model.shape_position.shape)).copy()
    wall = model.topology.shape_links.index(-1)
    size[:, wall, 0], position[:, wall, 0] = half, AWAY + half
    states = carom.tile(state, LANES)
    q, v = rng.uniform(-0.2, 0.2, states.q.shape), rng.uniform(-100, 100, states.v.shape)
    v[:, 0] = -abs(v[:, 0])  # towards the wall
    return model.replace(shape_size=jnp.asarray(size), shape_position=jnp.asarray(position)), carom.State(
        jnp.asarray(q), jnp.asarray(v), states.t
    )


def tips(model: Any, q: Any) -> np.ndarray:
    """How far beyond the near face of the wall the far end of any link is [m]."""
    poses = jax.vmap(carom.fk, (None, 0))(model, q)
    ends = poses.position - LENGTH * poses.rotation[..., :, 2]
    return np.asarray(ends[..., 0].max(-1)) + RADIUS - AWAY


def stepped(model: Any, states: Any, h: Any, parts: int = 1) -> list[Any]:
    """States after each part of a step h (lanes,)."""
    scheme, out = jax.jit(lambda state, h: scheme_named("exact")(model, state, h)), [states]
    for _ in range(parts):
        out.append(scheme(out[-1], h / parts))
    return out[1:]


def test_what_is_sure_never_was_deeper_than_may_go_unseen() -> None:
    """On the way, looked at in 200 places; of single steps from and to anywhere in the neighbourhood of a wall."""
    model, states = whips()
    rng = np.random.default_rng(7)
    q = np.array(states.q) + rng.uniform(-1.5, 1.5, (LANES, 1)) * (np.arange(LINKS) == 0)
    states = carom.State(jnp.asarray(q), states.v, states.t)
    h = jnp.asarray(10 ** rng.uniform(-4, np.log10(1 / 240), LANES))
    near = detect(model, states.q)
    apart = np.asarray(near.gap).min(-1) > 0
    (end,), on_the_way = stepped(model, states, h), stepped(model, states, h, 200)
    share = np.asarray(jax.jit(clearance_used)(model, states, end, h, clearances(model, states.q, near)))
    unseen = np.maximum(*(np.asarray(x) for x in undetected_depths(model, jnp.arange(len(model.topology.pairs)))))
    pair = np.asarray(near.pair)
    allowed = np.take_along_axis(np.broadcast_to(unseen, (LANES, unseen.shape[-1])), pair, 1)
    depth = np.max([-allowed - np.asarray(detect(model, x.q).gap) for x in on_the_way], 0).max(-1)
    scheme_error = np.abs(np.asarray(on_the_way[-1].q - end.q)).sum(-1)  # [m], at a metre from the root
    sure = apart & (share <= 1)
    assert (depth[sure] <= 2 * scheme_error[sure] + 1e-6).all()
    assert 0.2 < sure.mean() < 0.9
    assert (depth[apart & ~sure] > 0).mean() > 0.05  # and what is refused is so for a reason


def test_no_end_of_a_whip_is_ever_behind_the_wall() -> None:
    model, states = whips()
    run = carom.rollout(model, states, duration=0.1, frame_dt=0.002, max_events=4, throw=False)
    assert np.isfinite(np.asarray(run.q)).all()
    assert (np.asarray(run.events.count) > 0).mean() > 0.8
    beyond = np.stack([tips(model, q) for q in np.moveaxis(np.asarray(run.q), 1, 0)])
    assert beyond.max() < 1e-4


@pytest.mark.slow
def test_whips_strike_when_steps_a_hundredth_as_long_say_so() -> None:
    model, states = whips()
    longest = 1 / 2000  # the end goes 5 cm in that
    how: dict[str, Any] = {"duration": 0.04, "frame_dt": 0.04, "max_events": 256, "max_ticks": 20000}
    run, fine = (carom.rollout(model, states, max_dt=dt, **how) for dt in (longest, longest / 100))
    times, expected = (
        np.where(np.asarray(x.events.count) > 0, np.asarray(x.events.t[:, 0]), np.inf) for x in (run, fine)
    )
    assert np.isfinite(expected).mean() > 0.5
    np.testing.assert_allclose(times, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("way", ["straight", "aslant"])
def test_a_bullet_strikes_a_door_of_a_millimetre_in_time(way: str) -> None:
    """At 10 to 1000 m/s, where nothing else moves: the way to the door, over the speed."""
    b, rng, thin = carom.SceneBuilder(gravity=(0, 0, 0)), np.random.default_rng(3), 5e-4
    door = carom.Box((thin, 0.5, 1.0), position=(0, 0.5, 0))
    b.add_link("door", joint=carom.Revolute(axis=(0, 0, 1)), mass=1.0, shapes=[door])
    b.add_body("bullet", [carom.Sphere(RADIUS / 10)], mass=0.01, position=(-1, 0.5, 0))
    model, state = carom.compile_scene(b.build())
    states = carom.tile(state, LANES)
    speed, target = 10 ** rng.uniform(1, 3, (LANES, 1)), rng.uniform((0, 0.1, -0.8), (0, 0.9, 0.8), (LANES, 3))
    to = np.hstack([np.ones((LANES, 1)), rng.normal(size=(LANES, 2)) * (way == "aslant")])
    to /= np.linalg.norm(to, axis=1, keepdims=True)
    q, v = np.array(states.q), np.zeros(states.v.shape)
    start = rng.uniform(0.01, 3, (LANES, 1))
    q[:, 1:4], v[:, 4:7] = target - start * to, speed * to
    run = carom.rollout(model, carom.State(jnp.asarray(q), jnp.asarray(v), states.t), duration=0.4, frame_dt=0.1)
    times = (-q[:, 1] - thin - RADIUS / 10) / v[:, 4]
    fast = (times > 0) & (times < 0.4)
    assert fast.mean() > 0.9
    np.testing.assert_allclose(np.asarray(run.events.t)[fast, 0], times[fast], rtol=0, atol=1e-9)
