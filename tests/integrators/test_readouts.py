"""Reports of the time between frames: what they say of forces and impulses adds up to how everything moved."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.integrators import recording, rollout

G = 9.81
EVERYTHING = (
    "contact_forces", "contact_impulses", "pair_forces", "pair_impulses", "joint_forces", "joint_impulses",
)  # fmt: skip
DT = 0.02


def _heap():
    b, rng = carom.SceneBuilder(), np.random.default_rng(7)
    for normal in ((0.0, 0.0, 1.0), (0.6, 0.0, 0.8), (0.0, 0.6, 0.8)):
        b.add_plane(normal, friction=0.5, restitution=0.4)
    for k in range(4):
        shape = carom.Sphere(0.05) if k % 2 else carom.Box((0.04, 0.05, 0.06))
        place = np.array([0.25, 0.25, 0.2 + 0.2 * k]) + rng.uniform(-0.03, 0.03, 3)
        turn = rng.normal(size=4)
        turn /= np.linalg.norm(turn)
        b.add_body(
            f"body{k}", (shape,), mass=0.2 + 0.1 * k, position=tuple(place), quaternion=tuple(turn),
            friction=0.5, restitution=0.4,
        )  # fmt: skip
    return carom.compile_scene(b)


def _walker():
    """A trunk on two legs with feet that falls on the floor, with a motor in each hip."""
    b = carom.SceneBuilder()
    b.add_plane(friction=0.8)
    b.add_link("trunk", joint=carom.Floating(), shapes=[carom.Box((0.1, 0.05, 0.1))], position=(0, 0, 0.45), mass=3.0)
    for name, x in (("left", 0.08), ("right", -0.08)):
        b.add_link(name, joint=carom.Revolute((0, 1, 0), damping=0.1), parent="trunk", position=(x, 0, -0.15), mass=0.5,
                   shapes=[carom.Capsule(0.03, 0.08, position=(0, 0, -0.1))])  # fmt: skip
    b.exclude("left", "right")
    return carom.compile_scene(b)


@pytest.fixture(scope="module", params=["heap", "heap in windows", "walker"])
def run(request):
    """The scene's model, its run with all reports, and how far momentum may be off: where there are windows, what
    is faint is stopped; and links of trees are shifted at the end of a step, by 1e-5 m [N s]."""
    model, state = _walker() if request.param == "walker" else _heap()
    if request.param == "walker":
        state = carom.State(state.q, state.v.at[:].set(np.random.default_rng(3).uniform(-1, 1, state.v.shape)), state.t)
    window = 1e-3 if "windows" in request.param else None
    off = {"heap": 1e-9, "heap in windows": 2e-5, "walker": 1e-4}[request.param]
    return model, carom.rollout(model, state, duration=1.0, frame_dt=DT, window=window, report=EVERYTHING), off


def _given(ran) -> np.ndarray:
    """(frames - 1, links, 6) what contacts handed over between frames."""
    report = jax.tree.map(np.asarray, ran.report)
    return (DT * report["contact_forces"] + report["contact_impulses"])[1:]


def test_contacts_and_weight_are_all_that_changes_momentum(run):
    model, ran, off = run
    assert int(ran.events.count) > 5
    momentum = jax.vmap(lambda q, v: carom.momentum(model, carom.State(q, v, ran.t[0])).linear)(ran.q, ran.v)
    change = np.diff(np.asarray(momentum), axis=0)
    weight = float(model.mass.sum()) * DT * np.array([0, 0, -G])
    np.testing.assert_allclose(change, _given(ran)[..., 3:].sum(1) + weight, rtol=0, atol=off)
    assert np.abs(_given(ran)[..., 3:].sum(1)).max() > 0.3


def test_the_root_joint_transmits_what_no_contact_does():
    """Of free bodies: what moves them besides their weight."""
    model, state = _heap()
    ran = carom.rollout(model, state, duration=1.0, frame_dt=DT, report=EVERYTHING)
    report = jax.tree.map(np.asarray, ran.report)
    np.testing.assert_allclose(report["joint_forces"][..., 3:], 0, atol=1e-6)  # what contacts do not explain [N]
    np.testing.assert_allclose(report["joint_impulses"], 0, atol=1e-10)
    assert np.abs(report["contact_forces"]).max() > 1
    assert np.abs(report["contact_impulses"]).max() > 0.1


def test_pairs_and_links_tell_the_same_story(run):
    model, ran, _ = run
    report, topology = jax.tree.map(np.asarray, ran.report), model.topology
    for kind in ("forces", "impulses"):
        links = np.zeros((len(ran.t), topology.n_links + 1, 3))
        for k, (i, j) in enumerate(topology.pairs):
            links[:, topology.shape_links[i]] += report[f"pair_{kind}"][:, k]
            links[:, topology.shape_links[j]] -= report[f"pair_{kind}"][:, k]
        np.testing.assert_allclose(links[:, :-1], report[f"contact_{kind}"][..., 3:], atol=1e-12)
        assert not report[f"pair_{kind}"][0].any()


def test_impulses_are_those_of_the_log(run):
    _, ran, _ = run
    if int(ran.stats.windows):
        pytest.skip("what is pushed at the start of a window is in no log, where it did not close")
    events, report = jax.tree.map(np.asarray, ran.events), jax.tree.map(np.asarray, ran.report)
    expected = np.zeros_like(report["pair_impulses"])
    for k in range(int(events.count)):
        if events.pair[k] >= 0:
            frame = np.asarray(_frame(events.normal[k]))
            number = min(int(np.searchsorted(np.asarray(ran.t), events.t[k], side="left")), len(ran.t) - 1)
            expected[max(number, 1), events.pair[k]] += frame.T @ events.impulse[k]
    np.testing.assert_allclose(report["pair_impulses"], expected, atol=1e-12)


def _frame(n: np.ndarray) -> np.ndarray:
    """Contact frame (rows t1, t2, n) about a normal, after Duff et al. (2017)."""
    sign = 1.0 if n[2] >= 0 else -1.0
    a = -1 / (sign + n[2])
    b = n[0] * n[1] * a
    return np.array([[1 + sign * n[0] ** 2 * a, sign * b, -sign * n[0]], [b, sign + n[1] ** 2 * a, -n[1]], n])


def test_a_pendulums_pin_holds_what_the_books_say():
    """Released level: at an angle a below, it pulls with 3 m g sin(a); there the mean over a frame is by quadrature."""
    b = carom.SceneBuilder()
    b.add_link("rod", joint=carom.Revolute((0, 1, 0)), mass=2.0, com=(0.5, 0, 0), inertia=(0, 0, 0))
    model, state = carom.compile_scene(b)
    ran = carom.rollout(model, state, duration=1.0, frame_dt=0.01, max_dt=0.0025, report="joint_forces")
    angle = np.asarray(ran.q[:, 0])
    along = np.stack([np.cos(angle), 0 * angle, -np.sin(angle)], -1)
    across = np.stack([-np.sin(angle), 0 * angle, -np.cos(angle)], -1)
    # along the rod the weight and the turn, m g sin a + 2 m g sin a; across it the weight less m r a'' = m g cos a
    exact = -2.0 * G * 3 * np.sin(angle)[:, None] * along + 0 * across
    simpson = (exact[:-2:2] + 4 * exact[1:-1:2] + exact[2::2]) / 6
    force = np.asarray(ran.report["joint_forces"])[1:, 0, 3:]
    np.testing.assert_allclose((force[::2] + force[1::2]) / 2, simpson, atol=5e-4)
    assert np.abs(simpson).max() > 50


def test_the_base_of_an_arm_bears_the_change_of_momentum():
    """Joint forces of a driven arm whose hand strikes a plane: in all, what its momentum needs."""
    b = carom.SceneBuilder()
    b.add_plane((0, 0, 1), -0.9, restitution=0.5)
    b.add_link("upper", joint=carom.Revolute((0, 1, 0)), mass=1.0, com=(0.25, 0, 0), inertia=(0.01, 0.02, 0.02))
    b.add_link("lower", joint=carom.Revolute((0, 1, 0)), parent="upper", position=(0.5, 0, 0),
               mass=1.0, com=(0.25, 0, 0), inertia=(0.01, 0.02, 0.02), restitution=0.5,
               shapes=[carom.Sphere(0.05, position=(0.5, 0, 0))])  # fmt: skip
    model, state = carom.compile_scene(b)
    ran = carom.rollout(model, state, duration=1.0, frame_dt=DT, max_dt=1e-3, report=EVERYTHING)
    assert int(ran.events.count) > 0
    report = jax.tree.map(np.asarray, ran.report)
    momentum = jax.vmap(lambda q, v: carom.momentum(model, carom.State(q, v, ran.t[0])).linear)(ran.q, ran.v)
    base = (DT * report["joint_forces"] + report["joint_impulses"])[1:, 0, 3:]
    given = base + _given(ran)[..., 3:].sum(1) + 2.0 * DT * np.array([0, 0, -G])
    np.testing.assert_allclose(np.diff(np.asarray(momentum), axis=0), given, atol=1e-5)
    assert np.abs(report["joint_impulses"]).max() > 0.1


def test_steps_report_what_a_rollout_reports_and_lanes_what_they_do_alone():
    model, state = _heap()
    ran = carom.rollout(model, state, duration=0.4, frame_dt=DT, report=EVERYTHING)
    lanes = carom.tile(state, 3)
    lanes = carom.State(lanes.q, lanes.v.at[1].add(0.1), lanes.t)
    batch = carom.rollout(model, lanes, duration=0.4, frame_dt=DT, report=EVERYTHING)
    for name in EVERYTHING:
        np.testing.assert_array_equal(batch.report[name][0], ran.report[name])
        np.testing.assert_array_equal(batch.report[name][2], ran.report[name])
        assert bool((batch.report[name][1] != batch.report[name][0]).any())
    number = int(jnp.argmax(jnp.abs(ran.report["pair_impulses"]).max((1, 2))))
    state = carom.State(ran.q[number - 1], ran.v[number - 1], ran.t[number - 1])
    state, report = carom.step(model, state, dt=DT, report=EVERYTHING)
    for name in EVERYTHING:
        np.testing.assert_allclose(report[name], ran.report[name][number], atol=1e-6)
    np.testing.assert_allclose(state.q, ran.q[number], atol=1e-9)


def test_what_is_not_asked_for_changes_nothing():
    model, state = _heap()
    plain = carom.rollout(model, state, duration=0.3, clocks="one")
    asked = carom.rollout(model, state, duration=0.3, report="contact_forces")
    np.testing.assert_array_equal(plain.q, asked.q)
    assert plain.report == {}
    assert list(asked.report) == ["contact_forces"]


def test_frames_that_a_lane_does_not_reach_are_nan():
    model, state = _heap()
    ran = carom.rollout(model, state, duration=1.0, max_ticks=40, throw=False, report="contact_forces")
    there = np.isfinite(np.asarray(ran.t))
    forces = np.asarray(ran.report["contact_forces"])
    assert not there.all()
    assert np.isfinite(forces[there]).all()
    assert np.isnan(forces[~there]).all()


@pytest.mark.slow  # minutes of XLA's compiler
def test_lanes_side_by_side_report_the_same(monkeypatch):
    """As XLA's program does it away from a CPU."""
    b = carom.SceneBuilder()
    b.add_plane(friction=0.4, restitution=0.3)
    b.add_body(
        "ball", [carom.Sphere(0.05)], mass=0.5, position=(0, 0, 0.08), linear_velocity=(1, 0, 0), restitution=0.3
    )
    b.add_site("imu", "ball", (0.02, 0, 0))
    for kind in ("accelerometer", "force"):
        b.add_sensor(kind, kind, "imu")
    model, state = carom.compile_scene(b)
    lanes = carom.tile(state, 2)
    lanes = carom.State(lanes.q, lanes.v.at[1, 5].set(-1.0), lanes.t)
    names = (*EVERYTHING, "sensors")
    own = carom.rollout(model, lanes, duration=0.2, frame_dt=DT, report=names)
    for module in (recording, rollout):
        monkeypatch.setattr(module, "lane_programs", lambda: False)
    compiled: Any = rollout._with_contacts
    monkeypatch.setattr(rollout, "_with_contacts", jax.jit(compiled.__wrapped__, static_argnums=0))
    xla = carom.rollout(model, lanes, duration=0.2, frame_dt=DT, report=names)
    assert bool((own.report["contact_impulses"][0] != own.report["contact_impulses"][1]).any())
    for mine, theirs in zip(jax.tree.leaves(own.report), jax.tree.leaves(xla.report), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-8)


@pytest.mark.slow
def test_inside_jit_and_forward_derivatives():
    b = carom.SceneBuilder()
    b.add_plane()
    b.add_body("box", [carom.Box((0.1, 0.1, 0.1))], mass=2.0, position=(0, 0, 0.1))
    model, state = carom.compile_scene(b)

    @jax.jit
    def weight(g):
        heavy = model.replace(gravity=jnp.array([0.0, 0.0, -1.0]) * g)
        _, report = carom.step(heavy, state, dt=DT, report="contact_forces", throw=False)
        return report["contact_forces"][0, 5]

    value, change = jax.jvp(weight, (G,), (1.0,))
    assert value == pytest.approx(2 * G, rel=1e-9)
    assert change == pytest.approx(2.0, rel=1e-6)


@pytest.mark.parametrize(
    ("report", "says"),
    [("contact_force", "did you mean 'contact_forces'"), (("nothing",), "there are contact_forces")],
)
def test_names_that_are_none(report, says):
    model, state = _heap()
    with pytest.raises(ValueError, match=says):
        carom.rollout(model, state, duration=0.1, report=report)


def test_what_cannot_be_reported():
    model, state = _heap()
    with pytest.raises(ValueError, match='clocks="one" or "auto"'):
        carom.rollout(model, state, duration=0.1, report="contact_forces", clocks="islands")
    with pytest.raises(ValueError, match="leave out report or reverse"):
        carom.rollout(model, state, duration=0.1, report="contact_forces", reverse=True, max_ticks=9)
