"""Control environments: engines against each other and against energy; episodes, lanes and keys."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import ndimage
from scipy.linalg import solve_discrete_are

import carom
from carom.engine.native.program import Program
from carom.engine.state import State
from carom.scenes.envs.engines import Smooth, formulas, planar
from carom.scenes.envs.environment import AT_ONCE, Environment
from carom.scenes.envs.registry import TASKS, make_env
from carom.scenes.envs.sin_cos import sin_cos
from carom.scenes.envs.task import BoxSpace
from carom.scenes.envs.tasks import weightlifter
from carom.scenes.envs.tasks.cart_pendulums import DOUBLE, triple
from carom.scenes.library.registry import library_scene
from carom.tests.oracles.native_and_xla import no_fallback

SMOOTH = [name for name in TASKS if name != "hopper"]  # which has contacts, and its own tests
LANES = 6
AGREES = 1e-12  # of accelerations, relative: rounding alone leaves 1e-15, the lightest link's inertia a factor of 100


def arrays(name: str, *bounds: float) -> list[jax.Array]:
    """Random arrays (20, nq) as wide as the task's coordinates: numbers within each of the bounds."""
    q, _ = jax.eval_shape(TASKS[name]().start, jax.random.key(0))
    rng = np.random.default_rng(14)
    return [jnp.asarray(rng.uniform(-bound, bound, (20, *q.shape))) for bound in bounds]


def rows(x: jax.Array) -> tuple[jax.Array, ...]:
    return tuple(x.T)


# -- engines ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in SMOOTH if name != "cart_pole_swing_up"])  # it has cart_pole's
def test_engines_agree(name: str) -> None:
    """Accelerations at random states."""
    q, v, push = (rows(x) for x in arrays(name, np.pi, 3.0, 5.0))
    ways = TASKS[name]().engines
    found = {engine: np.array(jax.jit(way.accelerations(jnp.float64))(q, v, push)) for engine, way in ways.items()}
    expected = found.pop("tree")
    assert found
    for a in found.values():
        np.testing.assert_allclose(a, expected, rtol=0, atol=AGREES * abs(expected).max())


def test_periods_agree() -> None:
    """The same states one control period later, in all three engines."""
    q, v, push = arrays("pendulum", np.pi, 3.0, 5.0)
    moved = [jax.jit(way(jnp.float64))(q, v, push) for way in TASKS["pendulum"]().engines.values()]
    for other in moved[:2]:
        np.testing.assert_allclose(other, moved[2], rtol=0, atol=1e-10)


SCENES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {  # task: scene, its parameters, the task's
    "pendulum": ("wawrzynski_pendulum", {}, {}),
    "acrobot": ("acrobot", {}, {}),
    "weightlifter": ("weightlifter", {}, {}),
    "cart_pole": ("cart_pole", {"friction": False}, {"friction": False}),
    "cart_double_pendulum": ("cart_double_pendulum", {}, {"swing_up": True}),
}


@pytest.mark.parametrize(
    "name", ["acrobot", *(pytest.param(s, marks=pytest.mark.slow) for s in SCENES if s != "acrobot")]
)
def test_energy_is_kept(name: str) -> None:
    """Over an episode that nobody touches, let go from within 60 degrees of the horizontal or of upright: to 1e-6 of
    what lifts the links, for half of the lanes; chaos may take the others through faster turns."""
    scene, its, parameters = SCENES[name]
    task = TASKS[name](**parameters)
    model, _ = carom.compile_scene(library_scene(scene, **its))
    (q,) = arrays(name, np.pi / 3)
    v = jnp.zeros_like(q)
    period = task.engines["closed"](jnp.float64)

    def energy(q: jax.Array, v: jax.Array) -> jax.Array:
        kinetic, potential = carom.energy(model, State(q, v, jnp.zeros(len(q))))
        return kinetic + potential

    @jax.jit
    def played(q: jax.Array, v: jax.Array) -> tuple[jax.Array, jax.Array]:
        end = jax.lax.fori_loop(0, task.max_steps, lambda _, at: period(at[0], at[1], v), (q, v))
        return energy(q, v), energy(*end)

    before, after = played(q, v)
    assert np.median(abs(after - before)) < 1e-6 * np.ptp(before)


def test_derivatives_of_a_period() -> None:
    """Forward and reverse, against differences."""
    period = jax.jit(TASKS["cart_pole"]().engines["closed"](jnp.float64))
    q, v, push = (x[0] for x in arrays("cart_pole", 3.0, 3.0, 5.0))
    d = jnp.array([0.3, -0.5])
    _, slope = jax.jvp(lambda q: period(q, v, push)[1], (q,), (d,))
    h = 1e-5
    differences = (period(q + h * d, v, push)[1] - period(q - h * d, v, push)[1]) / (2 * h)
    np.testing.assert_allclose(slope, differences, rtol=1e-7, atol=1e-7)  # h^2, and rounding over h
    back = jax.grad(lambda q: period(q, v, push)[1].sum())(q)
    np.testing.assert_allclose(back @ d, slope.sum(), rtol=1e-12)


@pytest.mark.parametrize(("dtype", "ulp"), [(np.float32, 1.2e-7), (np.float64, 2.3e-16)])
def test_sine_and_cosine(dtype: Any, ulp: float) -> None:
    x = np.random.default_rng(1).uniform(-1e4, 1e4, 20000).astype(dtype)
    x[:9] = np.arange(-4, 5) * (np.pi / 2)
    sine, cosine = jax.jit(sin_cos)(x)
    np.testing.assert_allclose(sine, np.sin(x.astype(np.longdouble)), rtol=0, atol=ulp)
    np.testing.assert_allclose(cosine, np.cos(x.astype(np.longdouble)), rtol=0, atol=ulp)


def test_planar_wants_points() -> None:
    with pytest.raises(ValueError, match="point masses at the ends"):
        planar(DOUBLE)


# -- tasks --------------------------------------------------------------------------------------------------------


def test_arm_cannot_lift_slowly() -> None:
    """No path of postures that the torques could hold leads from hanging to upright; at full strength one does."""

    def leads_up(strength: float, steps: int = 40) -> bool:
        angle = np.arange(steps) * (2 * np.pi / steps)
        turned = np.meshgrid(angle, angle, angle, indexing="ij")
        x = [np.cos(np.sum(turned[: i + 1], axis=0)) for i in range(3)]
        weight = [3 * x[0] + 2 * x[1] + x[2], 2 * x[1] + x[2], x[2]]  # torques over g, all masses 1 kg
        efforts = np.array(weightlifter.efforts(1.0, strength)) / weightlifter.GRAVITY
        holds = np.all([abs(w) <= e + 1e-9 for w, e in zip(weight, efforts, strict=True)], axis=0)
        twice = np.tile(holds, (2, 2, 2))  # the circle, once more around
        place: Any = ndimage.label(twice, np.ones((3, 3, 3)))[0]  # type: ignore[index]
        down, up = steps * 3 // 4, steps // 4 + steps
        return bool(place[down, 0, 0]) and place[down, 0, 0] in place[[up, up - steps], 0, 0]

    assert not leads_up(0.5)
    assert not leads_up(0.9)
    assert leads_up(1.05)


@pytest.mark.parametrize(
    ("name", "inside", "outside"),
    [
        ("cart_pole", [2.399, 0.0], [2.401, 0.0]),
        ("cart_pole", [-2.399, 0.0], [-2.401, 0.0]),
        ("cart_pole", [0.0, np.radians(11.99)], [0.0, np.radians(12.01)]),
        ("cart_pole", [0.0, -np.radians(11.99)], [0.0, -np.radians(12.01)]),
        ("cart_pole_swing_up", [2.399, 3.0], [2.401, 3.0]),
        ("cart_double_pendulum", [0.0, 0.0, np.radians(23.9)], [0.0, np.radians(12.1), np.radians(12.1)]),
        ("cart_triple_pendulum", [0.0, np.radians(23.9), 0.0, 0.0], [0.0, np.radians(24.1), 0.0, 0.0]),
        ("acrobot", [np.pi / 2, 1.58], [np.pi / 2, 1.56]),  # the feet level with a link's length, and above
        ("pendulum", [0.0], None),
        ("weightlifter", [np.pi / 2, 0.0, 0.0], None),
    ],
)
def test_episodes_end_at_their_bounds(name: str, inside: list[float], outside: list[float] | None) -> None:
    task = TASKS[name]()
    still = jnp.zeros(len(inside))
    assert not task.ended(jnp.array(inside), still)
    if outside is not None:
        assert task.ended(jnp.array(outside), still)


def test_rewards() -> None:
    """The best posture pays most, and what gymnasium's tasks pay."""
    top, bottom, still = jnp.array([2 * np.pi]), jnp.array([np.pi / 2]), jnp.zeros(1)
    pendulum = TASKS["pendulum"]()
    assert pendulum.reward(top, still, still, top, still) == pytest.approx(0, abs=1e-15)  # a whole turn is upright too
    paid = pendulum.reward(bottom, jnp.array([2.0]), jnp.array([0.2]), top, still)
    assert paid == pytest.approx(-((np.pi / 2) ** 2 + 0.1 * 4 + 0.001 * 0.04))
    swing, two = TASKS["cart_pole_swing_up"](), jnp.zeros(2)
    for angle, height in ((0.0, 1.0), (np.pi, 0.0), (np.pi / 2, 0.5)):
        assert swing.reward(two, two, two, jnp.array([1.0, angle]), two) == pytest.approx(height)
    acrobot = TASKS["acrobot"]()
    for angle, pay in ((np.pi / 2, 0.0), (0.0, -1.0)):
        assert acrobot.reward(two, two, two, jnp.array([angle, 0.0]), two) == pay
    lift, three = TASKS["weightlifter"](), jnp.zeros(3)
    up = jnp.array([np.pi / 2, 0.0, 0.0])
    assert lift.reward(three, three, three, up, three) == pytest.approx(1)
    assert isinstance(lift.actions, BoxSpace)
    assert lift.reward(three, three, jnp.array(lift.actions.high), up, three) == pytest.approx(0.95)


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_shapes_and_dtypes(name: str, dtype: Any) -> None:
    """Of every engine, for lanes in two axes; and a drawing of one."""
    for engine in TASKS[name]().engines:
        env = Environment(TASKS[name](), engine, dtype)
        state, seen = jax.eval_shape(env.reset, jax.random.split(jax.random.key(0), (2, 3)))
        action = jnp.zeros((2, 3, *env.task.actions.shape), "int32" if not env.task.actions.shape else None)
        step = jax.eval_shape(env.step, state, action)
        assert jax.tree.map(_kind, step.state) == jax.tree.map(_kind, state)
        assert step.observation.shape == seen.shape == (2, 3, *env.task.observations.shape)
        assert {x.dtype for x in (state.q, state.v, seen, step.observation, step.reward)} == {jnp.dtype(dtype)}
        assert {x.shape for x in step[2:]} == {(2, 3)}
    for x0, y0, x1, y1, radius, colour in env.task.sketch(np.zeros(state.q.shape[-1])):
        left, right, low, high = env.task.window
        assert radius > 0
        assert left < min(x0, x1) <= max(x0, x1) < right
        assert low < min(y0, y1) <= max(y0, y1) < high
        assert len(colour) == 3


def _kind(x: Any) -> tuple:
    return x.shape, x.dtype


@pytest.mark.slow
@pytest.mark.parametrize(("name", "gain"), [("cart_double_pendulum", 1.0), ("cart_triple_pendulum", 24.7125)])
def test_links_can_be_balanced(name: str, gain: float) -> None:
    """Within the bounds of force, track and angles, by a linear regulator for the motion without losses."""
    env = make_env(name)
    task = TASKS[name]()
    n = jax.eval_shape(task.start, jax.random.key(0))[0].shape[0]
    rods = DOUBLE if gain == 1 else replace(triple(friction=True), loss=())
    period = Smooth(formulas(rods), task.dt, 4)(jnp.float64)

    def moved(s, u):
        return jnp.concatenate(period(s[:n], s[n:], jnp.zeros(n).at[0].set(u)))

    A, B = jax.jit(jax.jacfwd(moved, (0, 1)))(jnp.zeros(2 * n), 0.0)
    A, B, R = np.asarray(A), np.asarray(B)[:, None], np.array([[1e-3]])
    Q = np.diag([1.0] + [10.0] * (n - 1) + [0.1] * n)
    P = solve_discrete_are(A, B, Q, R)
    K = jnp.asarray(np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A) / gain)

    @jax.jit
    def played(state):
        def step(carry, _):
            state, fallen = carry
            state, _, _, over, _ = env.step(state, -jnp.concatenate([state.q, state.v], -1) @ K.T)
            return (state, fallen | over), None

        return jax.lax.scan(step, (state, jnp.zeros(100, bool)), None, length=task.max_steps)[0][1]

    state, _ = env.reset(jax.random.split(jax.random.key(5), 100))
    assert not played(state).any()


# -- episodes, lanes, keys ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def env() -> Environment:
    return make_env("cart_pole")


@pytest.fixture(scope="module")
def played(env: Environment) -> Callable[[jax.Array], Any]:
    """600 steps of LANES lanes with restarts: (state, (seen, paid, ended, cut, steps)).

    Actions by the side of the pole; of odd lanes by that of the cart.
    """

    def play(keys: jax.Array) -> Any:
        def step(carry, _):
            state, seen = carry
            push = jnp.where(jnp.arange(LANES) % 2, seen[..., 0], seen[..., 2] + seen[..., 3]) > 0
            state, seen, paid, ended, cut = env.step(state, push.astype(int))
            carry = env.restarted(state, seen, ended | cut)
            return carry, (seen, paid, ended, cut, carry[0].steps)

        carry, rows = jax.lax.scan(step, env.reset(keys), None, length=600)
        return carry[0], rows

    return jax.jit(play)


def test_restarts(env: Environment, played: Callable) -> None:
    """Every lane begins anew after its own last step, elsewhere than before, and keeps count."""
    state, (seen, paid, ended, cut, steps) = played(jax.random.split(jax.random.key(3), LANES))
    done = np.asarray(ended | cut)
    assert cut.any()  # this hand balances 500 steps in some lane
    assert ended.any()  # and loses it in another
    assert (paid == 1).all()
    np.testing.assert_array_equal(np.asarray(steps)[done], 0)
    for lane in range(LANES):
        last = np.flatnonzero(done[:, lane])
        lengths = np.diff(last, prepend=-1)
        assert (lengths <= 500).all()
        np.testing.assert_array_equal(np.asarray(cut)[last, lane], lengths == 500)
        assert steps[-1, lane] == 599 - last[-1]
    off = (abs(seen[..., 0]) > 2.4) | (abs(seen[..., 2]) > np.radians(12))
    np.testing.assert_array_equal(off, ended)
    assert len(np.unique(np.asarray(state.q)[:, 0])) == LANES


def test_keys_decide(env: Environment, played: Callable) -> None:
    keys = jax.random.split(jax.random.key(3), LANES)
    first, again = played(keys), played(keys)
    jax.tree.map(np.testing.assert_array_equal, _plain(first), _plain(again))
    other, _ = env.reset(jax.random.split(jax.random.key(4), LANES))
    one, _ = env.reset(keys)
    assert (np.asarray(one.q) != np.asarray(other.q)).all()
    assert (np.asarray(jax.random.key_data(one.key)) != np.asarray(jax.random.key_data(keys))).any()


def test_lanes_are_single_environments(env: Environment) -> None:
    """Alone, side by side, in two axes and under vmap; in step, reset and restart. To rounding: programs differ."""
    keys = jax.random.split(jax.random.key(8), LANES)
    push = jnp.arange(LANES) % 2
    done = jnp.arange(LANES) % 3 == 0
    reset, step, restarted = env.reset, env.step, env.restarted

    def through(keys, push, done):
        state, seen = reset(keys)
        out = step(state, push)
        return seen, *out, *restarted(out.state, out.observation, done)

    both = _plain(through(keys, push, done))
    alone = [_plain(through(*x)) for x in zip(keys, push, done, strict=True)]
    mapped = _plain(jax.jit(jax.vmap(through))(keys, push, done))
    paired = _plain(through(*(x.reshape(2, 3) for x in (keys, push, done))))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=0, atol=1e-13), both, mapped)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b.reshape(a.shape), rtol=0, atol=1e-13), both, paired)
    jax.tree.map(lambda a, *b: np.testing.assert_allclose(a, np.stack(b), rtol=0, atol=1e-13), both, *alone)
    assert (both[-2].steps == np.where(done, 0, 1)).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("name", "engine"), [(name, engine) for name in ("cart_pole", "weightlifter") for engine in TASKS[name]().engines]
)
def test_a_lane_is_the_same_bits_anywhere(name: str, engine: str, dtype: str) -> None:
    """As machine code: alone, at any place in a batch, in two axes, under vmap, in a scan; and XLA's program is the
    same to rounding."""
    env = Environment(TASKS[name](), engine, dtype)
    n, rng = 22, np.random.default_rng(4)
    state, _ = env.reset(jax.random.split(jax.random.key(2), n))
    space = env.task.actions
    push = jnp.asarray(rng.normal(size=(n, *space.shape)) if space.shape else rng.integers(2, size=n))
    with no_fallback():
        both = _plain(env.step(state, push))
        turned = _plain(env.step(*jax.tree.map(lambda x: x[::-1], (state, push))))
        mapped = _plain(jax.jit(jax.vmap(env.step))(state, push))
        paired = _plain(env.step(*jax.tree.map(lambda x: x.reshape(2, 11, *x.shape[1:]), (state, push))))
        scanned = _plain(jax.lax.scan(lambda s, a: (s, env.step(s, a)), state, push[None])[1])
        alone = [_plain(env.step(*jax.tree.map(lambda x, k=k: x[k], (state, push)))) for k in (0, 5, n - 1)]
    for mine, *others in zip(*map(jax.tree.leaves, (both, turned, mapped, paired, scanned, *alone)), strict=True):
        np.testing.assert_array_equal(mine, others[0][::-1])
        for other in others[1:4]:
            np.testing.assert_array_equal(mine, other.reshape(mine.shape))
        np.testing.assert_array_equal(mine[[0, 5, n - 1]], np.stack(others[4:]))
    with mock.patch.object(Program, "code", None):
        theirs = _plain(Environment(TASKS[name](), engine, dtype).step(state, push))
    near = {"rtol": 0, "atol": 1e-4 if dtype == "float32" else 1e-12}
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, **near), both, theirs)


@pytest.mark.parametrize("one_in", [1, 3, 100])
def test_many_lanes_restart_as_few_do(env: Environment, one_in: int) -> None:
    """Of many, those that are done are begun some at a time; and what goes on can be differentiated."""
    few = AT_ONCE // 2
    state, seen = env.reset(jax.random.split(jax.random.key(9), (5, few)))
    done = (jnp.arange(5 * few) % one_in == 0).reshape(5, few)
    many = _plain(env.restarted(state, seen, done))
    for row in range(5):
        expected = _plain(env.restarted(*jax.tree.map(lambda x, row=row: x[row], (state, seen)), done[row]))
        jax.tree.map(np.testing.assert_array_equal, jax.tree.map(lambda x, row=row: x[row], many), expected)
    slope = jax.grad(lambda q: env.restarted(state._replace(q=q), seen, done)[0].q.sum())(state.q)
    np.testing.assert_array_equal(slope, np.broadcast_to(~np.asarray(done)[..., None], slope.shape))


def _plain(tree: Any) -> Any:
    """Keys as numbers."""
    plain = lambda x: np.asarray(jax.random.key_data(x) if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else x)  # noqa: E731
    return jax.tree.map(plain, tree)


def test_same_words_same_environment(env: Environment) -> None:
    assert make_env("cart_pole") is env
    assert make_env("cart_pole", dtype="float64", engine=None) is env
    assert make_env("cart_pole", friction=False) is not env


def test_refusals(env: Environment) -> None:
    with pytest.raises(ValueError, match="no environment named 'cartpole': did you mean 'cart_pole'"):
        make_env("cartpole")
    with pytest.raises(ValueError, match="no environment named 'zzz': there are pendulum, acrobot"):
        make_env("zzz")
    with pytest.raises(TypeError, match=r"make_env: .pendulum. has no parameter .efort.; it has"):
        make_env("pendulum", efort=1)
    with pytest.raises(ValueError, match=r"acrobot has no engine 'planar': it has closed, tree"):
        make_env("acrobot", engine="planar")
    with pytest.raises(ValueError, match=r"has no engine 'trees': did you mean 'tree'"):
        make_env("pendulum", engine="trees")
    with pytest.raises(ValueError, match="float32 or float64"):
        make_env("pendulum", dtype="int32")
    with pytest.raises(ValueError, match="must be positive"):
        make_env("weightlifter", weight=0.0)
    state, _ = env.reset(jax.random.split(jax.random.key(0), 2))
    with pytest.raises(ValueError, match=r"actions of shape \(3,\).*lanes \(2,\).*shape \(2,\)"):
        env.step(state, jnp.zeros(3, int))
    with pytest.raises(TypeError, match="integers below 2, not float64"):
        env.step(state, jnp.zeros(2))
    with pytest.raises(TypeError, match="reset takes a key"):
        env.reset(jnp.zeros((2, 2), jnp.uint32))


def test_double_precision_must_be_on() -> None:
    with jax.enable_x64(False), pytest.raises(ValueError, match="jax_enable_x64"):
        make_env("pendulum", dtype="float64")
