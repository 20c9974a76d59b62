"""Planar chains as plain data: what compiles, what is rejected, their batches, twins, recordings and the library's."""

from dataclasses import replace
from typing import Any, get_args

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.engine.planar.accelerations import chain_accelerations
from carom.engine.planar.angles import chain_angles, chain_angular, chain_state
from carom.engine.planar.energy import chain_energy
from carom.integrators.planar.rollout import chain_rollout
from carom.scenes.chains.batch import stack_chains
from carom.scenes.chains.spec import ChainJoint, ChainSpec, Ground
from carom.scenes.chains.twin import chain_twin, twin_coordinates
from carom.scenes.compile import compile_scene
from carom.scenes.compiling.check import SceneError
from carom.scenes.formats.settings import apply_setting
from carom.scenes.formats.toml_writing import to_toml
from carom.scenes.library.planar_chains import PULL, ChainName, mode_rate
from carom.scenes.library.registry import CHAINS, SCENES
from carom.scenes.recordings.file import read_recording, write_recording
from carom.scenes.recordings.reading import Reading
from carom.scenes.running_chains import record_chain
from carom.tests.oracles.chain_kkt import accelerations as dense
from carom.tests.scenes.test_cli import run
from carom.tests.scenes.test_facts import check

NAN, INF = float("nan"), float("inf")
ROUNDING = 1e-12
ARM = ChainSpec.of((0.5, 0.7), masses=(1, 2, 3), angles=(0.2, 0.3), rates=(1, 2), base=(1, 2), base_velocity=(0.3, 0.4))
accelerations = jax.jit(chain_accelerations)


def plain(x: Any) -> Any:
    return jax.tree.map(np.asarray, x)


# -- compiled ----------------------------------------------------------------------------------------------


def test_angles_make_the_places_that_the_engine_makes_of_them() -> None:
    chain, state = compile_scene(ARM)
    want = chain_state(
        chain, jnp.array([0.2, 0.3]), jnp.array([1.0, 2.0]), base=jnp.array([1.0, 2.0]), base_rate=jnp.array([0.3, 0.4])
    )
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=ROUNDING), state, want)
    assert (chain.n, int(chain.joints), chain.length.shape, chain.ground.shape) == (3, 3, (2,), (0, 2))


def test_places_make_the_same_state_as_angles() -> None:
    chain, state = compile_scene(ARM)
    x, v = plain((state.x, state.v))
    again, same = compile_scene(ChainSpec(ARM.joints, positions=x, velocities=v))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=ROUNDING), (again, same), (chain, state))


def test_every_field_of_a_joint_arrives() -> None:
    spec = replace(ARM, rates=None, base_velocity=(0, 0), grounds=[Ground((1, 2), (0, -3)), Ground((0, -1), (1, 1))])
    spec = replace(spec, gravity=(0, 1), angles=(-0.2, 0.3), room=4)
    spec = spec.with_joint(0, active=True, line=(0, 2), roll=0.1, drag=0.2, stuck=0)
    chain, state = plain(compile_scene(spec.with_joint(-1, guided=True).with_joint(1, limits=(-INF, 0.3))))
    assert chain.active.tolist() == [True, False, False, False]
    assert chain.guided.tolist() == [False, False, True, False]
    assert chain.line.tolist() == [[0, 1], [0, 0], [0, 0], [0, 0]]
    assert (chain.roll[0], chain.drag[0], chain.upper[1], chain.lower[1]) == (0.1, 0.2, 0.3, -INF)
    assert np.isinf(chain.upper[[0, 2, 3]]).all()
    assert state.stuck.tolist() == [0, -1, -1, -1]
    np.testing.assert_allclose(chain.normal, [(0, -1), (0.5**0.5, 0.5**0.5)])
    assert chain.gravity.tolist() == [0, 1]
    assert int(chain.joints) == 3


def test_numbers_are_of_the_kind_asked_for() -> None:
    chain, state = compile_scene(ARM, "float32")
    assert {x.dtype.name for x in (chain.mass, chain.lower, state.x, state.t)} == {"float32"}


def test_a_point_is_a_chain_of_one_joint() -> None:
    moved = chain_accelerations(*compile_scene(ChainSpec.of((), masses=2.0, base=(0, 1))))
    np.testing.assert_allclose(moved.a, [(0, -9.81)])


J = [ChainJoint(), ChainJoint(), ChainJoint()]
FLOOR = [Ground()]


def bent(k: int, **fields: Any) -> ChainSpec:
    """Three joints at an angle of one half above a floor, with something wrong about joint k."""
    return ChainSpec(J, (1.0, 1.0), angles=(0.5, 0.5), grounds=FLOOR).with_joint(k, **fields)


WRONG = [
    (ChainSpec(()), r"chain: joints is \(\); there must be at least one"),
    (ChainSpec([1.0, 2.0]), r"chain: joints is \(1.0, 2.0\); it must be a list of ChainJoints"),  # pyright: ignore
    (ChainSpec(J), "chain: lengths is None; it must be known: give 2 numbers in m, or positions"),
    (ChainSpec(J, (1.0, 0.0)), r"chain: lengths is \(1.0, 0.0\); it must be positive"),
    (ChainSpec(J, (1.0,)), r"chain: lengths is \(1.0,\); its shape must be \(2,\), not \(1,\)"),
    (ChainSpec(J, (1, 1), angles=(0,)), r"chain: angles is \(0,\); its shape must be \(2,\)"),
    (ChainSpec(J, (1, 1), angles=(0, NAN)), "chain: angles .* must not be NaN"),
    (ChainSpec(J, (1, 1), rates=(0, INF)), "chain: rates .* must be finite"),
    (ChainSpec(J, (1, 1), base=(0, 0, 0)), r"chain: base .* its shape must be \(2,\)"),
    (ChainSpec(J, (1, 1), gravity=(0, NAN)), "chain: gravity .* must not be NaN"),
    (ChainSpec(J, (1, 1), room=2), "chain: room is 2; .* not below the 3 joints there are: give at least 3"),
    (ChainSpec(J, (1, 1), room=3.5), "chain: room is 3.5; it must be a whole number"),  # pyright: ignore
    (ChainSpec(J, (1, 1), velocities=[(0, 0)] * 3), "chain: velocities .* go with positions"),
    (ChainSpec(J, (1, 1), positions=[(0, 0), (1, 0), (2.5, 0)]), "joints 1 and 2 are 1.5 m apart, link 1 is 1 m long"),
    (ChainSpec(J, positions=[(0, 0), (0, 0), (1, 0)]), "joints 0 and 1 are in one place"),
    (ChainSpec(J, positions=[(0, 0), (1, 0)]), r"chain: positions .* its shape must be \(3, 2\)"),
    (
        ChainSpec(J, positions=[(0, 0), (1, 0), (2, 0)], angles=(0, 0)),
        "chain: angles .* leave out angles, or positions",
    ),
    (
        ChainSpec(J, positions=[(0, 0), (1, 0), (2, 0)], velocities=[(0, 0), (0, 0), (1, 0)]),
        "chain: velocities .* stretch link 1 by 1 m/s",
    ),
    (ChainSpec(J, (1, 1), grounds=[(0, 1)]), r"chain: grounds is \(\(0, 1\),\); it must be a list of Grounds"),  # pyright: ignore
    (ChainSpec(J, (1, 1), grounds=[Ground((0, 0), (0, 0))]), r"ground 0: normal is \(0, 0\); it must not be zero"),
    (ChainSpec(J, (1, 1), angles=(-0.5, 0), grounds=FLOOR), "joint 1: position .* is 0.479426 m below ground 0: lift"),
    (bent(0, mass=-1.0), "joint 0: mass is -1.0; it must be positive: give one number in kg"),
    (bent(1, mass=NAN), "joint 1: mass is nan; it must not be NaN"),
    (bent(1, roll=-1), "joint 1: roll is -1; it must not be negative"),
    (bent(1, drag=-1), "joint 1: drag is -1; it must not be negative"),
    (bent(1, guided=1), "joint 1: guided is 1; it must be a yes or a no"),
    (bent(1, limits=(1, -1)), r"joint 1: limits is \(1, -1\); the lower must lie below the upper"),
    (bent(1, limits=(-4, 1)), r"joint 1: limits is \(-4, 1\); angles of joints are told within half a turn"),
    (bent(1, limits=(-1, 0.4)), "joint 1: angle is 0.5; it must lie in the limits, -1 to 0.4 rad"),
    (bent(1, line=(0, 0)), r"joint 1: line is \(0, 0\); it must not be zero"),
    (bent(1, line=(0, 1), guided=True), "joint 1: line .* leave out line, or guided"),
    (bent(2, active=True), "joint 2: active is True; the last joint has no angle: leave it out"),
    (bent(2, limits=(-1, 1)), "joint 2: limits .* the last joint has no angle"),
    (bent(2, roll=0.5), "joint 2: roll is 0.5; the last joint has no angle"),
    (bent(1, stuck=0), "joint 1: stuck is 0; the joint is 0.479426 m above that ground"),
    (bent(0, stuck=1), "joint 0: stuck is 1; it must be the number of a ground: there are 0 to 0"),
    (bent(0, stuck=0, guided=True), "joint 0: stuck is 0; a guided joint cannot stick"),
    (replace(bent(0, stuck=0), base_velocity=(1, 0)), "joint 0: velocity .* what sticks does not move"),
    (replace(bent(0, line=(0, 1)), base_velocity=(1, 1)), "joint 0: velocity .* 1 m/s of it lead off the joint's line"),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "words"), WRONG, ids=[words[:40] for _, words in WRONG])
def test_what_cannot_be_is_told(spec: ChainSpec, words: str) -> None:
    with pytest.raises(SceneError, match=words):
        compile_scene(spec)


def test_other_mistakes_are_told() -> None:
    with pytest.raises(ValueError, match="there is no joint 3; this chain has joints 0 to 2"):
        ARM.with_joint(3, guided=True)
    with pytest.raises(ValueError, match=r"ChainSpec.of: masses is \(1, 2\); there must be one number, or 3"):
        ChainSpec.of((1, 1), masses=(1, 2))
    with pytest.raises(SceneError, match="coordinates is 'maximal'; chains are by the places"):
        compile_scene(ARM, coordinates="maximal")  # pyright: ignore
    with pytest.raises(ValueError, match="stack_chains: there are no chains"):
        stack_chains([])
    batch = stack_chains([compile_scene(ARM)])
    with pytest.raises(ValueError, match=r"stack_chains: chain 0 is a batch, its masses are \(1, 3\)"):
        stack_chains([batch])


@pytest.mark.parametrize(
    "use",
    [lambda c: carom.Live(c), lambda c: apply_setting(c, "joints.0.mass", 2.0), to_toml,
     lambda c: carom.save_scene(c, "chain.toml")],
    ids=["live", "set", "to_toml", "save"],
)  # fmt: skip
def test_what_takes_scenes_alone_says_so(use: Any) -> None:
    with pytest.raises(ValueError, match="a planar chain is not a scene of links and joints"):
        use(ARM)


# -- batches -----------------------------------------------------------------------------------------------


SHORT = ChainSpec.of((0.4,), masses=(3, 1), angles=(0.1,), rates=(2,), grounds=[Ground((0, -0.01))])


def test_chains_of_other_lengths_are_lanes_of_one_batch() -> None:
    """Room changes nothing, whatever the chain next to it."""
    chains = [compile_scene(spec) for spec in (ARM, SHORT, replace(ARM, room=5))]
    batch, states = stack_chains(chains)
    assert (batch.mass.shape, batch.ground.shape, states.x.shape) == ((3, 5), (3, 1, 2), (3, 5, 2))
    together = plain(accelerations(batch, states))
    for k, (chain, state) in enumerate(plain(chains)):
        n = int(chain.joints)
        a, _ = dense(chain.mass[:n], state.x[:n], state.v[:n], chain.mass[:n, None] * chain.gravity)
        np.testing.assert_allclose(together.a[k, :n], a, atol=1e-10)


@pytest.mark.slow
def test_a_ground_that_a_lane_has_not_is_never_met() -> None:
    batch, states = stack_chains([compile_scene(spec) for spec in (ARM, SHORT, replace(ARM, room=5))])
    result = chain_rollout(batch, states, duration=0.1, frame_dt=0.1)
    assert result.events.count.tolist() == [0, 1, 0]
    np.testing.assert_allclose(result.x[0, :, :3], result.x[2, :, :3], rtol=ROUNDING)


# -- twins -------------------------------------------------------------------------------------------------


def test_a_twin_is_where_its_chain_is_and_has_its_energy() -> None:
    spec = replace(ARM, grounds=[Ground((0, -3), (0.1, 1))])
    chain, state = compile_scene(spec)
    model, start = compile_scene(chain_twin(spec))
    rng = np.random.default_rng(0)
    angle, rate = rng.uniform(-3, 3, (2, 20, 2))
    states = chain_state(chain, jnp.asarray(angle), jnp.asarray(rate), base=jnp.asarray(rng.normal(size=(20, 2))))
    for these in (state, states):
        q, v = twin_coordinates(*plain((these.x, these.v)))
        angles, rates = chain_angles(chain, these)
        np.testing.assert_allclose(q[..., 2:], angles, atol=ROUNDING)
        np.testing.assert_allclose(v[..., 2:], rates, atol=1e-10)  # from velocities, whose rounding l divides
    first = twin_coordinates(*plain((state.x, state.v)))
    np.testing.assert_allclose(np.stack([start.q, start.v]), first, atol=ROUNDING)
    places = carom.fk(model, start.q).position[1:]
    np.testing.assert_allclose(places[0, [0, 2]], state.x[0], atol=ROUNDING)
    np.testing.assert_allclose(places[1:, [0, 2]], state.x[:-1], atol=ROUNDING)  # a link's frame is at its hinge
    np.testing.assert_allclose(carom.energy(model, start), chain_energy(chain, state), rtol=ROUNDING)


# -- recordings --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def recorded() -> Any:
    """A chain of three joints that falls on two grounds, and one of whose angles meets its limit."""
    spec = ChainSpec.of((0.4, 0.3), angles=(0.8, 0.2), base=(0, 0.02), grounds=[Ground(), Ground((9, 0), (-1, 0))])
    spec = spec.with_joint(1, limits=(0, 1))
    return spec, record_chain(spec, title="falls", duration=0.5, frame_dt=1 / 120)


def test_a_recording_has_the_chains_energy_and_its_stops(recorded: Any) -> None:
    spec, recording = recorded
    reading = Reading(recording)
    chain, state = compile_scene(spec)
    result = chain_rollout(chain, state, duration=0.5, frame_dt=1 / 120)
    kinetic, _ = reading.energies
    states = replace(state, x=result.x, v=result.v, t=result.t)
    np.testing.assert_allclose(kinetic[0], chain_energy(chain, states)[0], rtol=1e-3)  # its links keep their lengths
    hits, n = reading.impacts, int(result.events.count)
    assert 0 < n == len(hits.t)
    at_limit = result.events.limit[:n] != 0
    assert set(hits.b) == {"ground 0", "limit"}
    assert (hits.a == [f"joint {k}" for k in result.events.joint[:n]]).all()
    assert ((hits.b == "limit") == at_limit).all()
    log = recording.events
    np.testing.assert_allclose(log.point[~at_limit, 2], 0, atol=1e-9)
    np.testing.assert_allclose(log.u_before[0, 2], -np.sqrt(2 * 9.81 * 0.02), rtol=1e-9)  # from rest, 2 cm
    np.testing.assert_allclose(hits.kinetic[:, 0], result.events.energy_before[:n])


def test_a_recording_goes_through_a_file_and_is_not_replayed(recorded: Any, tmp_path: Any) -> None:
    _, recording = recorded
    write_recording(recording, tmp_path / "falls.npz")
    again = read_recording(tmp_path / "falls.npz")
    np.testing.assert_array_equal(again.q, recording.q)
    assert again.scene == recording.scene
    with pytest.raises(ValueError, match="falls cannot be replayed: it is of a planar chain of 3 joints"):
        carom.replay(again)


def test_keywords_that_chains_have_not_are_told() -> None:
    with pytest.raises(ValueError, match="law is not for planar chains"):
        carom.record(ARM, duration=1.0, law="newton")
    with pytest.raises(ValueError, match="a planar chain is run alone"):
        carom.record(ARM, duration=1.0, lanes=2)


# -- the library's -----------------------------------------------------------------------------------------


def test_names_are_told_to_type_checkers() -> None:
    assert set(get_args(ChainName)) == set(CHAINS)
    assert not set(CHAINS) & set(SCENES)


@pytest.mark.parametrize("name", CHAINS)
def test_every_chain_of_the_library_compiles_and_is_told(name: str) -> None:
    spec: Any = carom.load(name)
    assert spec == carom.load(name)
    assert isinstance(spec, ChainSpec)
    model, _ = compile_scene(chain_twin(spec))
    assert model.topology.nv == len(spec.joints) + 1
    code, output = run("info", name)
    assert code == 0
    assert output.startswith(f"{name}: planar chain of {len(spec.joints)} joints")


@pytest.mark.slow
@pytest.mark.parametrize("name", CHAINS)
def test_chains_keep_their_promises(name: str) -> None:
    entry = CHAINS[name]
    rough = any(play.rough for play in entry.plays)  # of which it is known that something is kept against the forces
    check(entry) if not rough else check_rough(entry)


def check_rough(entry: Any) -> None:
    from carom.scenes.library.playing import outcomes

    for _, found, _ in outcomes(entry):
        assert not [outcome for outcome in found if not outcome.holds]


def test_hanging_masses_have_the_published_rates() -> None:
    """Verification 4.13."""
    found = [mode_rate(k, n) for n in (2, 3) for k in range(1, n + 1)]
    want = [2.397199397864, 5.787351298036, 2.019591147249, 4.744142739667, 7.855212362732]
    np.testing.assert_allclose(found, want, rtol=1e-12)


def test_no_set_of_holds_agrees_with_the_forces_of_the_scraping_scene() -> None:
    """As its text says: the loop of section 12.2."""
    spec: Any = carom.load("scraping")
    model, start = compile_scene(spec)
    chain, state = plain((model, start))
    F = chain.mass[:, None] * chain.gravity + np.array(PULL["force"])
    shut = {"angles": [(1, 0.0)]}
    # held by nothing joint 0 goes into the ground; by the ground, the angle goes beyond its limit
    free, _ = dense(chain.mass, state.x, state.v, F)
    assert free[0, 1] < -1
    stuck, _ = dense(chain.mass, state.x, state.v, F, guided=[(0, (0, 0))])
    assert chain_angular(model, start, jnp.array(stuck))[1] > 1
    # held by both, the ground pulls; held by the limit, that pulls
    _, forces = dense(chain.mass, state.x, state.v, F, guided=[(0, (0, 0))], **shut)
    assert forces[3] < -1
    _, forces = dense(chain.mass, state.x, state.v, F, **shut)
    assert forces[2] > 1


@pytest.mark.slow
def test_a_chain_is_run_from_the_command_line(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, output = run("run", "dropped_chain", "--time", "0.5")
    assert code == 0, output
    assert "links were off their lengths" in output
    assert {path.suffix for path in tmp_path.iterdir()} == {".npz", ".png", ".html"}
    assert run("plot", "dropped_chain.npz", "--kind", "energy")[0] == 0
    for command, words in (
        (("replay", "dropped_chain.npz"), "cannot be replayed"),
        (("run", "dropped_chain", "--batch", "3"), "is run alone"),
        (("run", "dropped_chain", "--law", "newton"), "is not for planar chains"),
        (("compare", "dropped_chain"), "is not a scene of links"),
    ):
        code, output = run(*command)
        assert code == 2
        assert words in output


def test_a_chain_without_grounds_is_recorded() -> None:
    run = carom.record(carom.load("hanging_chain"), duration=0.05)
    assert run.t.size == 4
    assert run.events.count == 0
